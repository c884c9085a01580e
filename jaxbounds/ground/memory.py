"""Refuse a call that would need too much memory, before the call allocates the memory."""

from jaxbounds.ground.exceptions import Refused

LIMIT = 8 * 2**30
"""Default limit for the memory of one call, in bytes; a larger limit lets calls fill the memory."""


def shown_bytes(amount: float, /) -> str:
    """Return an amount of memory as a short text with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB"


def refuse_over(need: float, limit: float, what: str, advice: str = "") -> None:
    """Refuse a call that would take more memory than a limit, both in bytes.

    The error message begins with `what`, a subject and a verb such as "24 words need". The message
    gives `advice`, such as "take fewer words or ", before the words "raise memory_limit".

    Raises:
        Refused: if `need` exceeds the limit; the message gives both numbers.
    """
    if need > limit:
        raise Refused(
            f"{what} {shown_bytes(need)}, more than the limit of {shown_bytes(limit)}, got "
            f"memory_limit={limit:.0f} bytes. Try to {advice}raise memory_limit"
        )
