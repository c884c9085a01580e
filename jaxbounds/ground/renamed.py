"""Let old names of functions in a module work for one more release."""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed(module: str, names: Mapping[str, str], /) -> Callable[[str], Any]:
    """Return a module's `__getattr__`, which finds a function by its old name and warns."""

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is now called {names[name]}; the next release removes the old name. "
            "Try the new name",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(sys.modules[module], names[name])

    return look_up
