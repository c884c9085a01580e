"""The exceptions of the public functions; higher floors of the library raise them."""


class Refused(ValueError):
    """The library refuses an input; the message names the fault and a cure.

    `except ValueError` catches it too. `Undecided` and `NotSupported` are its two special cases, in
    which the input is sound and ball arithmetic has no answer.
    """


class Undecided(Refused):
    """A branch or an index depends on a comparison that the enclosures leave open."""


class NotSupported(Refused):
    """A program contains an operation that has no rule in ball arithmetic."""
