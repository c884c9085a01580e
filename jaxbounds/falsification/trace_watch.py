"""Record which functions of a claim run, and which operations are coarser than float64."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import jax

from jaxbounds.claims.statements import Judged, Statement, full_name
from jaxbounds.falsification.overheard import Listener, overheard
from jaxbounds.ground.jax_internals import current_trace
from jaxbounds.programs.ranges import operations_that_may_wrap
from jaxbounds.programs.traces import (
    APPROXIMATE,
    approximations,
    coarseness,
    narrow_constants,
    narrow_operations,
)


def modules(*names: str) -> Iterator[Any]:
    """Yield all loaded modules of the top-level packages that contain the named modules."""
    roots = {name.split(".")[0] for name in names}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").split(".")[0] in roots:
            yield module


def forget(*names: str) -> None:
    """Clear JAX's traces, and the caches of the packages of the named modules."""
    jax.clear_caches()
    for module in modules(*names, __name__):
        for held in list(vars(module).values()):
            if isinstance(held, functools._lru_cache_wrapper):
                held.cache_clear()


def _functions(function: Judged) -> list[FunctionType]:
    """Return the Python functions that a call runs: the wrappers first, the plain function last."""
    found, seen = list[FunctionType](), set[int]()
    inner: Any = function
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        plain: Any = getattr(inner, "__func__", inner)
        if isinstance(plain, FunctionType):
            found.append(plain)
        inner = getattr(plain, "__wrapped__", None) or getattr(plain, "func", None)
    return found


class TraceWatch:
    """Records events while JAX traces a statement, or while the statement runs outside JAX.

    Attributes:
        called: the full names of the functions that the claim is about and that ran.
        narrow: the operations that round to fewer digits than float64.
        constants: the types and shapes of constants with fewer digits than float64.
        approximate: the names of JAX's functions that are less accurate than float64.
        wrapping: the operations whose integers may wrap.
        fixed: whether a second trace gave the same program; None without a second trace.
        writes: whether `evaluate` writes into its instance.
        notes: whether the watch keeps results of the claim's functions in each call.
        returned: for each of the claim's functions, the first result in the last call with `notes`.
    """

    def __init__(self, statement: Statement) -> None:
        self.called: set[str] = set()
        self.narrow: tuple[str, ...] = ()
        self.constants: tuple[str, ...] = ()
        self.wrapping: tuple[str, ...] = ()
        self.approximate: tuple[str, ...] = ()
        self.fixed: bool | None = None
        self.writes = False
        self.notes = True
        self.returned: dict[str, Any] = {}
        self._judged = {f: _functions(f) for f in statement.judges}
        self._own = {held[-1]: full_name(f) for f, held in self._judged.items() if held}
        self._of = {one: full_name(f) for f, held in self._judged.items() for one in held}

    @property
    def never(self) -> tuple[str, ...]:
        """The functions that the claim is about, but that the program has not called."""
        return tuple(name for name in dict.fromkeys(self._of.values()) if name not in self.called)

    @property
    def coarsest(self) -> float:
        """The largest relative error of an operation; zero if all operations round as float64."""
        errors = [*map(coarseness, self.narrow), *(APPROXIMATE[one] for one in self.approximate)]
        return max(errors, default=0.0)

    def calls(self, function: Callable, /) -> Callable:
        """Wrap a function, so that the watch records its calls."""

        def run(*arguments: Any) -> Any:
            self.returned = {}
            awaited = set(self._own.values() if self.notes else ())
            if not self.never and not awaited:
                return function(*arguments)
            level = current_trace()

            def returned(one: FunctionType, value: Any) -> None:
                name = self._own.get(one)
                if name in awaited:
                    awaited.discard(name)
                    if current_trace() == level:  # inside a loop the result has many values
                        self.returned[name] = value

            called = lambda one: self.called.add(self._of[one])
            with overheard(self._of, Listener(called, returned)):
                return function(*arguments)

        return run

    def seen(self) -> dict[str, list[str]]:
        """Return the record as plain values, from which `recall` restores the record."""
        names = ("narrow", "constants", "wrapping", "approximate")
        return {"called": sorted(self.called)} | {name: list(getattr(self, name)) for name in names}

    def recall(self, seen: dict[str, list[str]], /) -> None:
        """Add the record of an earlier trace, which `seen` returned."""
        self.called.update(seen.get("called", ()))
        self.narrow = tuple(dict.fromkeys([*self.narrow, *seen.get("narrow", ())]))
        self.constants = tuple(dict.fromkeys([*self.constants, *seen.get("constants", ())]))
        self.wrapping = tuple(dict.fromkeys([*self.wrapping, *seen.get("wrapping", ())]))
        known = [*self.approximate, *seen.get("approximate", ())]
        self.approximate = tuple(dict.fromkeys(known))

    def program(self, closed: Any, given: Sequence[Any], /, retrace: Callable[[], Any]) -> None:
        """Record a trace's operations.

        JAX hides a call of a function that it has traced for another statement. If the trace calls
        none of the claim's functions, the method therefore clears JAX's caches and traces again.
        """
        if self.never:
            forget(*(f.__module__ for f in self._judged))
            retrace()
        wanted = jax.dtypes.canonicalize_dtype(float)
        found = narrow_operations(closed.jaxpr, wanted)
        self.narrow = tuple(dict.fromkeys([*self.narrow, *found]))
        held = narrow_constants(closed, wanted)
        self.constants = tuple(dict.fromkeys([*self.constants, *held]))
        calls = approximations(closed.jaxpr)
        self.approximate = tuple(dict.fromkeys([*self.approximate, *calls]))
        wrapping = operations_that_may_wrap(closed, given)
        self.wrapping = tuple(dict.fromkeys([*self.wrapping, *wrapping]))
