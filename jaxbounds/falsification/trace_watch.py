"""What a trace shows of a statement: which judged functions run, and what rounds coarsely."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jaxbounds.claims.statements import Judged, Statement, full_name
from jaxbounds.ground.jax_internals import current_trace
from jaxbounds.programs.ranges import operations_that_may_wrap
from jaxbounds.programs.traces import coarseness, narrow_operations


def modules(*names: str) -> Iterator[Any]:
    """All modules of the packages of these modules."""
    roots = {name.split(".")[0] for name in names}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").split(".")[0] in roots:
            yield module


def forget(*names: str) -> None:
    """Drop what JAX traced and what tables of these modules' packages, and of this one, hold."""
    jax.clear_caches()
    for module in modules(*names, __name__):
        for held in list(vars(module).values()):
            if isinstance(held, functools._lru_cache_wrapper):
                held.cache_clear()


def _codes(function: Judged) -> list[Any]:
    """The code objects that run when it is called, its own last.

    Functions with the same decorator share the code of what the decorator puts around them.
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
    """Notes what happens while a statement is traced, or run on the host.

    Attributes:
        called: the judged functions that were called, by full name.
        narrow: operations that round to fewer digits than float64 has.
        wrapping: operations whose integers may leave their type.
        blind: whether nothing could be seen, as somebody else profiles.
        fixed: whether another trace gave the same program; None where nobody looked.
        writes: whether it changes the instance that it is given.
        notes: whether what the judged functions return is noted in each call.
        returned: what each of them returned first, in the last call that was noted.
    """

    def __init__(self, statement: Statement) -> None:
        """Watch for the functions that a statement judges."""
        self.called: set[str] = set()
        self.narrow: tuple[str, ...] = ()
        self.wrapping: tuple[str, ...] = ()
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
        """The judged functions that were not seen to be called."""
        return tuple(name for name in dict.fromkeys(self._of.values()) if name not in self.called)

    @property
    def coarsest(self) -> float:
        """The largest unit of rounding of what was traced; zero where all is float64."""
        return max(map(coarseness, self.narrow), default=0.0)

    def calls(self, function: Callable, /) -> Callable:
        """The function, watched while it runs."""
        of, awaited, level = self._of, set[str](), [None]

        def seen(code: int, event: str, value: Any) -> None:
            name = self._own.get(code)
            if event == "call":
                self.called.add(of[code])
            elif event == "return" and name in awaited:
                awaited.discard(name)
                if current_trace() == level[0]:  # inside a loop or a derivative it has no one value
                    self.returned[name] = value
            if not awaited and not self.never:  # nothing is left to be seen; looking takes time
                sys.setprofile(None)

        # Called at each call of anything: a lambda, and codes by identity, cost least.
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
        """What was noted, in plain values; see `recall`."""
        named = {"narrow": list(self.narrow), "wrapping": list(self.wrapping)}
        return {"called": sorted(self.called), **named}

    def recall(self, seen: dict[str, list[str]], /) -> None:
        """Take over what was noted when a program was traced before."""
        self.called.update(seen.get("called", ()))
        self.narrow = tuple(dict.fromkeys([*self.narrow, *seen.get("narrow", ())]))
        self.wrapping = tuple(dict.fromkeys([*self.wrapping, *seen.get("wrapping", ())]))

    def program(self, closed: Any, given: Sequence[Any], /, retrace: Callable[[], Any]) -> None:
        """Look through what was traced; where a judged function is missing, trace from scratch.

        What was traced or tabulated for another statement is not traced again.

        Args:
            closed: what was traced.
            given: its arguments.
            retrace: traces it once more.
        """
        if self.never and not self.blind:
            forget(*(f.__module__ for f in self._codes))
            retrace()
        found = narrow_operations(closed.jaxpr, jax.dtypes.canonicalize_dtype(float))
        self.narrow = tuple(dict.fromkeys([*self.narrow, *found]))
        wrapping = operations_that_may_wrap(closed, given)
        self.wrapping = tuple(dict.fromkeys([*self.wrapping, *wrapping]))
