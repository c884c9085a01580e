"""Limits of a process below which the compiler ends it without a word of Python."""

import contextlib

LEAST = 5 * 2**28
"""Bytes of addresses that a command which compiles needs on two cores; below, LLVM aborts. A larger
value would refuse machines on which the commands work."""


def shortage() -> str:
    """Return one sentence about a limit that is too low; empty without such a limit."""
    with contextlib.suppress(ImportError, OSError):
        import resource  # of Unix

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY and limit < LEAST:
            return (
                f"a process may take {limit / 2**20:.0f} MiB of addresses, and the compiler needs "
                f"{LEAST / 2**20:.0f}. Try ulimit -v {LEAST // 1024}, or more"
            )
    return ""
