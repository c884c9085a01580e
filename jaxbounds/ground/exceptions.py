"""The exceptions that public functions of the library raise."""


class Refused(ValueError):
    """Raised when the library refuses an input; the message names the fault and a cure.

    `except ValueError` also catches `Refused`. The subclasses `Undecided` and `NotSupported` mean
    that the input is valid, but that ball arithmetic (rigorous interval arithmetic) has no answer.
    """


class Undecided(Refused):
    """Raised when the intervals around two compared numbers overlap.

    A branch or an index that depends on the comparison is therefore undecided.
    """


class NotSupported(Refused):
    """A program contains an operation that ball arithmetic (interval arithmetic) cannot enclose."""
