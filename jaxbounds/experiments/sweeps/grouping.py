"""How many lanes are vmapped together, and the memory that this takes."""

from collections.abc import Callable
from typing import Any

ON_CPU = 4
"""Lanes in a group on a CPU, unless given; a sweep of up to 32 lanes has such groups. A larger
number lets more lanes run for nothing, a smaller one makes tiny lanes slow."""
PARTS = 8
"""Groups of a sweep of more lanes on a CPU; so many devices share it. A larger number makes tiny
lanes slow."""
AT_MOST = 256
"""Lanes in a group on an accelerator, unless given, so that a few thousand fill several."""
SHARE = 0.8
"""Share of an accelerator's memory that `available` gives one program; a larger share makes larger
groups, and leaves less for other programs."""
LIMIT = 8 * 2**30
"""Bytes for one program where a device does not say how much memory it has."""


def available(device: Any, /) -> float:
    """Bytes that one program may take on the device, unless told otherwise."""
    stats = None if device.platform == "cpu" else device.memory_stats()
    total = (stats or {}).get("bytes_limit")
    return LIMIT if total is None else SHARE * total


def needed(program: Any, /) -> int:
    """Bytes that a compiled program takes on a device: arguments, results and what is between."""
    size = program.memory_analysis()
    kept = size.argument_size_in_bytes + size.output_size_in_bytes - size.alias_size_in_bytes
    return kept + size.temp_size_in_bytes


def fitting(count: int, limit: float, device: Any, need: Callable[[int], int], /) -> int:
    """The group of a sweep of `count` lanes that names none.

    It does not depend on how many devices there are, so that neither do the bits.

    Args:
        count: lanes in all.
        limit: bytes on one device.
        device: one of those that will be used.
        need: the bytes that a group of so many lanes takes; asked of accelerators only.

    Returns:
        `ON_CPU` on a CPU, or a `PARTS`th of the lanes if that is more; else the largest power of
        two that fits, up to `AT_MOST` and `count`.
    """
    if device.platform == "cpu":
        return min(AT_MOST, max(ON_CPU, -(-count // PARTS)))
    group = 1 << (min(count, AT_MOST).bit_length() - 1)
    while group > 1 and (bytes_ := need(group)) > limit:
        # Memory is taken to be proportional to the lanes; at least one halving.
        group = min(group // 2, 1 << (max(1, int(group * limit / bytes_)).bit_length() - 1))
    return group
