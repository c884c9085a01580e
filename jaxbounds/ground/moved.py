"""Make old dotted names importable for one release, with a warning that gives the new name.

`MODULES` and `NAMES` list all old names. The module of an old name holds no code and forwards each
attribute to the new module. An old pickle therefore finds its classes, and no class exists twice.
`import jaxbounds` calls `serve_old_names`, which adds one finder to `sys.meta_path`.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

ROOT = "jaxbounds"
LAST = "0.4"
"""The last version series in which old names work. A test fails if the library's version is later
than this series."""


def _within(old: str, new: str, names: str) -> dict[str, str]:
    dot = f"{old}." if old else ""
    return {f"{dot}{name}": f"{new}.{name}" for name in names.split()}


MODULES: dict[str, str] = {
    **_within("", "claims", "statements sets records"),
    **_within("", "networks", "curvature training own_network"),
    **_within("", "experiments", "sweeps results plotting provenance"),
    **_within("", "numerics", "norms arrays ascent chaining"),
    **_within("", "ground", "files memory stopping folders occupied readers"),
    **_within("", "programs", "traces interpreted"),
    "plain": "ground.to_json",
    "shown": "ground.tables",
    **_within(
        "certification",
        "programs.balls",
        "boxes certificate concrete contact coverage elementwise exact factorisations factors "
        "functions interpreter jets linear_algebra movement reductions rounding scalars slopes "
        "symmetry values windows",
    ),
    "certification.control": "programs.balls.loops",
    **_within(
        "certification.rocq",
        "programs.balls.rocq",
        "ledger names numbers operations rules scripts spectral terms translation",
    ),
    "falsification.far": "falsification.extrapolation",
    "falsification.lost": "falsification.cancellation",
    "falsification.kept": "falsification.program_cache",
    "falsification.doubt": "falsification.second_opinion",
    "falsification.outside": "falsification.hypothesis_coverage",
    "falsification.reading": "falsification.evaluation",
    "falsification.hopping": "falsification.move_search",
    "falsification.watched": "falsification.trace_watch",
    "constants.wandering": "constants.host_climb",
    "constants.ties": "constants.snapping",
    "runs.verify": "runs.verify_api",
    "runs.verification": "runs.statement_run",
    "runs.earlier": "runs.merged_files",
}
"""The new name of each module or subpackage that moved. The key is the old name; both names omit
the prefix "jaxbounds.". An entry for a subpackage covers all modules inside the subpackage."""

NAMES: dict[str, dict[str, str]] = {
    "experiments": {
        "Claim": "experiments.experiment:Claim",
        "Experiment": "experiments.experiment:Experiment",
        "refuse_unless_increasing": "experiments.experiment:refuse_unless_increasing",
    },
    "falsification": {"nobody": "no_referee"},
    "falsification.second_opinion": {"nobody": "no_referee"},
    "falsification.cancellation": {"is_lost": "is_cancellation", "LOST": "NOISE"},
    "falsification.extrapolation": {
        "confirm_far": "confirm_extrapolated",
        "look_far": "extrapolate",
        "set_aside": "without_rounding",
    },
    "falsification.explore": {"Far": "DistantInstance"},
    "falsification.program_cache": {
        "Kept": "StoredProgram",
        "read_kept": "read_program",
        "keep": "store_program",
        "loaded": "load_program",
        "kept_here": "without_jax_cache",
    },
    "falsification.move_search": {
        "hop": "search_by_moves",
        "Hopped": "FoundByMoves",
        "near_to": "within_range_of",
        "Near": "InRange",
    },
    "falsification.trace_watch": {"Watch": "TraceWatch"},
    "constants.problem": {"alone": "with_one_form"},
    "constants.on_host": {"doubt": "objection"},
    "constants.host_climb": {"Wanderer": "HostClimber"},
    "programs.balls.rocq.translation": {"plain": "without_balls"},
    "multihead.stability": {"kept": "leave_one_out_masks"},
    "ground.to_json": {"plain": "to_json"},
    "ground.tables": {"shown": "with_table"},
}
"""The functions and classes that have a new name. Each key is the present name of a module, without
"jaxbounds."; its value maps each old name in this module to the new name. A new name of the form
`module:name` is in another module."""


def new_place(module: str, /) -> str | None:
    """Return the new dotted name of a module that moved; None if the module did not move."""
    head, tail = module.removeprefix(f"{ROOT}."), ""
    while head:
        if head in MODULES:
            return f"{ROOT}.{MODULES[head]}{tail}"
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return None


def _warn(old: str, new: str, stacklevel: int) -> None:
    warnings.warn(
        f"{old} is now called {new}; the old name ends after version {LAST}. Try the new name",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def _getter(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{ROOT}.{module}' has no attribute {name!r}", name=name)
        place, _, new = names[name].rpartition(":")
        home = f"{ROOT}.{place or module}"
        found = getattr(importlib.import_module(home), new)
        _warn(f"{ROOT}.{module}.{name}", f"{home}.{new}", stacklevel=2)
        return found

    return __getattr__


class _Alias(importlib.abc.Loader):
    """A loader for the old name of a module, which forwards each attribute to the new module."""

    def __init__(self, new: str) -> None:
        self._new = new

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        there = importlib.import_module(self._new)
        new = self._new.removeprefix(f"{ROOT}.")
        names = NAMES.get(new, {})
        old_name = _getter(new, names)

        def __getattr__(name: str) -> Any:
            return old_name(name) if name in names else getattr(there, name)

        public = [name for name in vars(there) if not name.startswith("_")]
        vars(module).update(
            __doc__=there.__doc__,
            __all__=getattr(there, "__all__", public),
            __getattr__=__getattr__,
            __dir__=lambda: dir(there),
        )
        _warn(module.__name__, self._new, stacklevel=2)


class _WithOldNames(SourceFileLoader):
    """A loader for a module in `NAMES`, which adds the old names of the module's attributes.

    If another tool's import hook loads the module, the old names of its attributes do not work.
    """

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        old = module.__name__.removeprefix(f"{ROOT}.")
        vars(module).setdefault("__getattr__", _getter(old, NAMES[old]))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules by old names, and loads modules whose attributes have old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{ROOT}."):
            return None
        if new := new_place(fullname):
            return ModuleSpec(fullname, _Alias(new), is_package=True)
        if fullname.removeprefix(f"{ROOT}.") not in NAMES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _WithOldNames(fullname, spec.loader.path)
        return spec


def serve_old_names() -> None:
    """Make the old names of `MODULES` and `NAMES` importable; a second call has no effect."""
    if not any(type(finder).__qualname__ == _Finder.__qualname__
               and type(finder).__module__ == __name__ for finder in sys.meta_path):  # fmt: skip
        sys.meta_path.insert(0, _Finder())
