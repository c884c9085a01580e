"""The exceptions that public functions of the library raise."""


class Refused(ValueError):
    """The library refuses an input; the message names the fault and a cure.

    `except ValueError` also catches `Refused`. The subclasses `Undecided` and `NotSupported` mean
    that the input is valid, but that ball arithmetic (rigorous interval arithmetic) has no answer.
    """


class Undecided(Refused):
    """Intervals around two numbers overlap.

    A branch or an index that compares the numbers is therefore undecided.
    """


class NotSupported(Refused):
    """A program contains an operation that ball arithmetic (interval arithmetic) cannot enclose."""
