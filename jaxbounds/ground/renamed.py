"""Old names of a module's functions, for one release."""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed(module: str, names: Mapping[str, str], /) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that knows its old names and warns of them.

    Args:
        module: the module's `__name__`.
        names: a mapping from each old name to the new name in that module.
    """

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is called {names[name]} now; the old name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(sys.modules[module], names[name])

    return look_up
