"""The trace watch: it records which judged functions run, and which operations round coarsely.

A statement judges the functions that its claim is about.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jaxbounds.claims.statements import Judged, Statement, full_name
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
    """Yield all modules of the packages of the named modules."""
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


def _codes(function: Judged) -> list[Any]:
    """Return the code objects that a call runs: the wrappers' first, the function's own last.

    If functions have the same decorator, their wrappers have the same code object.
    """
    found, seen = list[Any](), set[int]()
    inner: Any = function
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        plain: Any = getattr(inner, "__func__", inner)
        code = getattr(plain, "__code__", None)
        if code is not None:
            found.append(code)
        inner = getattr(plain, "__wrapped__", None) or getattr(plain, "func", None)
    return found


class TraceWatch:
    """Records events while JAX traces a statement, or while the statement runs outside JAX.

    Attributes:
        called: the full names of the judged functions that ran.
        narrow: the operations that round to fewer digits than float64.
        constants: the types and shapes of constants with fewer digits than float64.
        approximate: the names of JAX's functions that are less accurate than float64.
        wrapping: the operations whose integers may wrap.
        blind: whether the trace watch recorded nothing, because another profiler runs.
        fixed: whether a second trace gave the same program; None without a second trace.
        writes: whether `evaluate` writes into its instance.
        notes: whether the watch notes the results of judged functions in each call.
        returned: for each judged function, its first result in the last call for which the watch
            noted results.
    """

    def __init__(self, statement: Statement) -> None:
        """Watch the functions that a statement judges (those that its claim is about)."""
        self.called: set[str] = set()
        self.narrow: tuple[str, ...] = ()
        self.constants: tuple[str, ...] = ()
        self.wrapping: tuple[str, ...] = ()
        self.approximate: tuple[str, ...] = ()
        self.blind = False
        self.fixed: bool | None = None
        self.writes = False
        self.notes = True
        self.returned: dict[str, Any] = {}
        self._codes = {f: _codes(f) for f in statement.judges}
        self._own = {id(held[-1]): full_name(f) for f, held in self._codes.items() if held}
        self._of = {id(code): full_name(f) for f, held in self._codes.items() for code in held}

    @property
    def never(self) -> tuple[str, ...]:
        """The judged functions that the program has not called, as far as the watch could see.

        A statement judges the functions that its claim is about.
        """
        return tuple(name for name in dict.fromkeys(self._of.values()) if name not in self.called)

    @property
    def coarsest(self) -> float:
        """The largest relative error of an operation; zero if all operations round as float64."""
        errors = [*map(coarseness, self.narrow), *(APPROXIMATE[one] for one in self.approximate)]
        return max(errors, default=0.0)

    def calls(self, function: Callable, /) -> Callable:
        """Wrap a function, so that the watch records its calls."""
        of, awaited, level = self._of, set[str](), [None]

        def seen(code: int, event: str, value: Any) -> None:
            name = self._own.get(code)
            if event == "call":
                self.called.add(of[code])
            elif event == "return" and name in awaited:
                awaited.discard(name)
                if current_trace() == level[0]:  # inside a loop the result has many values
                    self.returned[name] = value
            if not awaited and not self.never:  # all functions ran, and watching takes time
                sys.setprofile(None)

        # Python runs this function at each call. A lambda, and codes compared by identity, cost
        # least.
        look = lambda frame, event, value: (
            seen(id(frame.f_code), event, value) if id(frame.f_code) in of else None
        )

        def run(*arguments: Any) -> Any:
            self.returned = {}
            awaited.clear()
            awaited.update(self._own.values() if self.notes else ())
            if not self.never and not awaited:
                return function(*arguments)
            level[0] = current_trace()
            if sys.getprofile() is not None:
                self.blind = True
                return function(*arguments)
            sys.setprofile(look)
            try:
                return function(*arguments)
            finally:
                sys.setprofile(None)

        return run

    def seen(self) -> dict[str, list[str]]:
        """Return the record as plain values, from which `recall` restores the record."""
        names = ("narrow", "constants", "wrapping", "approximate")
        return {"called": sorted(self.called)} | {name: list(getattr(self, name)) for name in names}

    def recall(self, seen: dict[str, list[str]], /) -> None:
        """Add the record of an earlier trace of a program."""
        self.called.update(seen.get("called", ()))
        self.narrow = tuple(dict.fromkeys([*self.narrow, *seen.get("narrow", ())]))
        self.constants = tuple(dict.fromkeys([*self.constants, *seen.get("constants", ())]))
        self.wrapping = tuple(dict.fromkeys([*self.wrapping, *seen.get("wrapping", ())]))
        known = [*self.approximate, *seen.get("approximate", ())]
        self.approximate = tuple(dict.fromkeys(known))

    def program(self, closed: Any, given: Sequence[Any], /, retrace: Callable[[], Any]) -> None:
        """Record a trace's operations.

        If the trace does not call a judged function, the watch traces the function again from
        scratch. JAX does not trace a function again if it has traced or cached the function for
        another statement.

        Args:
            closed: the traced program of the function.
            given: its arguments.
            retrace: a function that traces the statement's program once more.
        """
        if self.never and not self.blind:
            forget(*(f.__module__ for f in self._codes))
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
