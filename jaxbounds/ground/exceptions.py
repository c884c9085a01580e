"""The exceptions of the public face; this floor knows none of their causes."""


class Undecided(Exception):
    """A branch or an index hangs on a comparison that the enclosures leave open."""


class NotSupported(Exception):
    """A program contains an operation that has no rule in ball arithmetic."""
