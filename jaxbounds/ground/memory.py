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
    """Raise if a call would take more memory than a limit.

    Args:
        need: the bytes that the call would take.
        limit: the bytes that the call may take.
        what: the user of the memory, with its verb ("24 words need").
        advice: a first cure for the message, that goes before "raise memory_limit".

    Raises:
        Refused: if `need` is over the limit, with both numbers.
    """
    if need > limit:
        raise Refused(
            f"{what} {shown_bytes(need)}, more than the limit of {shown_bytes(limit)}, got "
            f"memory_limit={limit:.0f}. Try to {advice}raise memory_limit"
        )
