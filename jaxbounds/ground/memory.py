"""Memory: what a call may take, said before it takes it."""

LIMIT = 8 * 2**30
"""Bytes that a call may need unless it is told otherwise."""


def shown_bytes(amount: float, /) -> str:
    """An amount of memory for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB"


def refuse_over(need: float, limit: float, what: str, advice: str = "") -> None:
    """Raise where `need` is over the limit, both in bytes.

    Args:
        need: what would be taken.
        limit: what may be.
        what: that needs it, with its verb ("24 words need").
        advice: what to do instead, before "raise memory_limit".

    Raises:
        ValueError: then, with the numbers.
    """
    if need > limit:
        raise ValueError(
            f"{what} {shown_bytes(need)}, more than the limit of {shown_bytes(limit)}: "
            f"{advice}raise memory_limit"
        )
