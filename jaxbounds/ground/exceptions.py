"""The exceptions that public functions of the library raise."""


class Refused(ValueError):
    """The library refuses an input; the message names the fault and a cure.

    `except ValueError` also catches `Refused`. The subclasses `Undecided` and `NotSupported` mean
    that the input is valid, but that ball arithmetic (rigorous interval arithmetic) has no answer.
    """


class Undecided(Refused):
    """The enclosures of two numbers overlap, and a branch or an index compares these numbers."""


class NotSupported(Refused):
    """A program contains an operation that has no rule in ball arithmetic."""
