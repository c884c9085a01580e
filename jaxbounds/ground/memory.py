"""Memory: the bytes that a call would take, checked before the call takes them."""

from jaxbounds.ground.exceptions import Refused

LIMIT = 8 * 2**30
"""Bytes that a call may need unless the caller sets a limit; a larger limit lets calls fill memory.
"""


def shown_bytes(amount: float, /) -> str:
    """Return an amount of memory as text for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB"


def refuse_over(need: float, limit: float, what: str, advice: str = "") -> None:
    """Raise if `need` is over the limit, both in bytes.

    Args:
        need: the bytes that would be taken.
        limit: the bytes that may be taken.
        what: the user of the memory, with its verb ("24 words need").
        advice: a cure to name before "raise memory_limit".

    Raises:
        Refused: if `need` is over the limit, with both numbers.
    """
    if need > limit:
        raise Refused(
            f"{what} {shown_bytes(need)}, more than the limit of {shown_bytes(limit)}: "
            f"{advice}raise memory_limit"
        )
