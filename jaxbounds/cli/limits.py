"""Limits of the system below which the compiler aborts the process without an exception."""

import contextlib

LEAST = 5 * 2**28
"""Bytes of address space that a command needs to compile on two cores; with less, LLVM aborts. If
this limit were larger, commands would refuse machines on which they work."""


def shortage() -> str:
    """Return a sentence about a system limit that is too low; empty if no limit is too low."""
    with contextlib.suppress(ImportError, OSError):
        import resource  # only on Unix

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY and limit < LEAST:
            return (
                f"a process may use {limit / 2**20:.0f} MiB of addresses, and the compiler needs "
                f"{LEAST / 2**20:.0f}. Try ulimit -v {LEAST // 1024}, or more"
            )
    return ""
