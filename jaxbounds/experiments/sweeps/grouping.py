"""Choose how many lanes (runs) are vmapped together, from the memory that they take."""

from collections.abc import Callable
from typing import Any

ON_CPU = 4
"""The default number of lanes (runs) in a group on a CPU, in sweeps of up to 32 lanes.

A group of more lanes wastes more steps on finished lanes. If groups have fewer lanes, sweeps with
tiny matrices take longer.
"""
PARTS = 8
"""The number of groups into which a sweep of more than 32 runs is divided on a CPU.

At most this many devices can share the sweep. A larger number of groups makes sweeps slower if the
matrices of a run are tiny.
"""
AT_MOST = 256
"""The largest default number of lanes (runs) that are vmapped together on an accelerator.

Because of this limit a few thousand lanes form several groups. A program for more lanes is larger.
"""
SHARE = 0.8
"""The fraction of an accelerator's memory that `available` gives one program.

If this fraction is larger, groups of lanes are larger, and other programs have less memory.
"""
LIMIT = 8 * 2**30
"""The number of bytes that one program may take on a device that does not report its memory.

If this number of bytes is larger, groups of lanes are larger.
"""


def available(device: Any, /) -> float:
    """Return the bytes that one program may take on the device if the caller sets no limit."""
    stats = None if device.platform == "cpu" else device.memory_stats()
    total = (stats or {}).get("bytes_limit")
    return LIMIT if total is None else SHARE * total


def needed(program: Any, /) -> int:
    """Return the bytes that a compiled program takes: arguments, results and temporaries."""
    size = program.memory_analysis()
    kept = size.argument_size_in_bytes + size.output_size_in_bytes - size.alias_size_in_bytes
    return kept + size.temp_size_in_bytes


def fitting(count: int, limit: float, device: Any, need: Callable[[int], int], /) -> int:
    """Return the default number of lanes (runs) vmapped together, for a sweep of `count` lanes.

    The number does not depend on the number of devices, so the results have equal bits on any
    number of devices. On a CPU the number is the larger of `ON_CPU` and `count` / `PARTS`. On an
    accelerator the number is the largest power of two, up to `AT_MOST` and `count`, for which
    `need(number)` is at most `limit` bytes.
    """
    if device.platform == "cpu":
        return min(AT_MOST, max(ON_CPU, -(-count // PARTS)))
    group = 1 << (min(count, AT_MOST).bit_length() - 1)
    while group > 1 and (bytes_ := need(group)) > limit:
        # This assumes memory proportional to the lanes, and halves the group at least once.
        group = min(group // 2, 1 << (max(1, int(group * limit / bytes_)).bit_length() - 1))
    return group
