"""The exceptions that public functions of the library raise."""


class Refused(ValueError):
    """Raised when the library refuses an input; the message names the fault and a cure.

    `except ValueError` also catches `Refused`. The subclasses `Undecided` and `NotSupported` mean
    that the input is valid, but that ball arithmetic (rigorous interval arithmetic) has no answer.
    """


class Undecided(Refused):
    """Raised when the intervals around two compared numbers overlap.

    A branch or an index of the program that depends on this comparison is then undecided.
    """


class NotSupported(Refused):
    """Raised when ball (interval) arithmetic cannot enclose an operation of a program."""
