"""Describe to the user how another run differs from this run."""

from collections.abc import Iterable, Mapping
from typing import Any

HASHED = {
    "source": "the source of the library, or of an imported file, changed",
    "environment": "an environment variable changed",
    "jax_settings": "a setting of JAX changed",
    "installed": "an installed package changed",
}
"""The settings that a run's folder stores as digests. Each setting's name maps to the words that
report a change of the setting."""
LENGTH = 40
"""The number of characters of a value that `what_differs` shows. A larger number of characters
makes longer messages.
"""


def _shown(settings: Mapping[str, Any], name: str) -> str:
    return str(settings[name])[:LENGTH] if name in settings else "unknown"


def what_differs(
    before: Mapping[str, Any], now: Mapping[str, Any], /, depends: Iterable[str]
) -> str:
    """Describe the first difference between two runs, and count the further differences."""
    names = [name for name in now if name not in before or before[name] != now[name]]
    told = [
        f"{name} was {_shown(before, name)} and is {_shown(now, name)}"
        for name in names
        if name not in HASHED
    ]
    told += [f"the {one.replace(': ', ' ', 1)} changed" for one in depends]
    told += [HASHED[name] for name in names if name in HASHED]
    if not told:
        return "the files of that run have another format"
    return told[0] + (f", and {len(told) - 1} more" if told[1:] else "")
