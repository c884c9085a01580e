"""The exceptions of the public face; this floor knows none of their causes."""


class Refused(ValueError):
    """The library refuses an argument, a file or a statement; the message says how to go on.

    A `ValueError`, so that code which catches that type catches this one.
    """


class Undecided(Exception):
    """A branch or an index hangs on a comparison that the enclosures leave open."""


class NotSupported(Exception):
    """A program contains an operation that has no rule in ball arithmetic."""
