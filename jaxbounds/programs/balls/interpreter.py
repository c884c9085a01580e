"""Run a JAX program in ball arithmetic, a rigorous interval arithmetic.

`enclose` traces a function with `jax.make_jaxpr` and evaluates its equations one by one on balls.
If overlapping balls leave a choice open (an index, a branch, the position of a maximum), the
interpreter runs the program once for each possible choice. One of these runs encloses the true
value.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from flint import ctx

from jaxbounds.ground.jax_internals import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    UnknownParametersError,
)
from jaxbounds.programs.balls import (
    elementwise,
    factorisations,
    linear_algebra,
    loops,
    movement,
    reductions,
    windows,
)
from jaxbounds.programs.balls.concrete import concrete
from jaxbounds.programs.balls.values import (
    NotSupported,
    Reading,
    Undecided,
    dtype_of,
    enclosed,
    has_few_digits,
    is_narrow,
    is_reals,
    is_soft,
    shape_of,
)
from jaxbounds.programs.primitives import is_exact, unknown_parameters

RULES: dict[str, Callable[[JaxprEqn, list[Any], Any], list[Any]]] = {
    **elementwise.RULES,
    **movement.RULES,
    **movement.COMBINE,
    **windows.RULES,
    **factorisations.RULES,
    **reductions.RULES,
    **linear_algebra.RULES,
    **loops.RULES,
}
_ALWAYS = frozenset(loops.RULES) | {"custom_linear_solve"}
MOST_CHOICES, MOST_WAYS = 8, 16
MOST_RUNS = 64
"""The interpreter runs at most this many paths (combinations of choices) through a program.

A larger number decides more programs and takes more time.
"""


class Interpreter:
    """One run of a program, with one answer to each open choice.

    An open choice is a branch or an index that the enclosures (balls) are too wide to decide. The
    method `ways` runs the program once for each combination of answers to the open choices.

    Attributes:
        reading: "exact" if each float constant means exactly its own value, "ulp" if it means any
            nearby real.
        rules: a dict from each primitive's name to the function that encloses its results.
        computed: whether the program holds constants that look as if Python computed them before
            the trace: arrays, or floats of more than 26 binary digits.
        widened: whether the run replaced a constant by a ball wider than the constant's float.
    """

    def __init__(
        self,
        reading: Reading = "exact",
        *,
        rules: dict[str, Any] | None = None,
        seconds: float | None = None,
    ) -> None:
        self.reading: Reading = reading
        self.computed = self.widened = False
        self.rules = RULES if rules is None else rules
        self._choices: list[list[int]] = []
        self._next = 0
        self._live: dict[Any, tuple[frozenset[Any], tuple[JaxprEqn, ...]]] = {}
        self._reads: list[frozenset[Any]] = []
        self._until = None if seconds is None else time.process_time() + seconds
        self._looked = -np.inf

    def fork(self, ways: int, what: str) -> int:
        """Return the index of the option that this run of the program takes at an undecided choice.

        `what` names the choice in messages, such as "the sign of a pivot".

        Raises:
            Undecided: if the program has had too many undecided choices, or if the choice has too
                many options.
        """
        if self._next == len(self._choices):
            if ways > MOST_WAYS or len(self._choices) >= MOST_CHOICES:
                raise Undecided(
                    f"the enclosures (balls) are too wide to decide {what}: too many continuations "
                    f"of the program are possible. Try a smaller box or more bits"
                )
            self._choices.append([0, ways])
        taken = self._choices[self._next][0]
        self._next += 1
        return taken

    def ways(self, closed: ClosedJaxpr, *values: Any) -> Iterator[list[Any]]:
        """Run the program for each combination of answers to undecided choices; yield the outputs.

        Raises:
            Undecided: if a choice stays undecided although the interpreter tried each outcome, if
                the program has more than 64 paths, or if the time limit is over.
            NotSupported: if a primitive of the program has no rule.
        """
        self._choices = []
        for _ in range(MOST_RUNS):
            self._next, self._reads = 0, []
            yield self.closed(closed, *values)
            while self._choices and self._choices[-1][0] + 1 >= self._choices[-1][1]:
                self._choices.pop()
            if not self._choices:
                return
            self._choices[-1][0] += 1
        raise Undecided(
            f"the enclosures (balls) are too wide to decide the program's branches: more than "
            f"{MOST_RUNS} paths remain possible. Try a smaller box or more bits"
        )

    def used(self, variable: Any) -> bool:
        """Tell whether a later equation or a wanted result reads the variable."""
        return variable in self._reads[-1]

    def closed(
        self, closed: ClosedJaxpr, *values: Any, wanted: tuple[bool, ...] | None = None
    ) -> list[Any]:
        """Run a program that holds its constants; return None for results not in `wanted`."""
        consts = [self._constant(c) for c in closed.consts]
        return self.jaxpr(closed.jaxpr, consts, values, wanted)

    def _constant(self, x: Any) -> Any:
        value = enclosed(x, self.reading)
        if is_reals(value):
            self.computed |= any(not has_few_digits(float(v)) for v in np.asarray(x).ravel())
            self.widened |= any(not v.is_exact() and v.is_finite() for v in value.ravel())
        self.computed |= np.size(value) > 1
        return value

    def _needed(self, program: Jaxpr, wanted: tuple[bool, ...]) -> Any:
        key = (program, wanted)  # the program's hash is its identity; `_live` keeps it alive
        if key not in self._live:
            read = {
                v for v, want in zip(program.outvars, wanted) if want and not isinstance(v, Literal)
            }
            kept = []
            for eqn in reversed(program.eqns):
                if any(v in read for v in eqn.outvars):
                    kept.append(eqn)
                    read.update(v for v in eqn.invars if not isinstance(v, Literal))
            self._live[key] = (frozenset(read), tuple(reversed(kept)))
        return self._live[key]

    def jaxpr(
        self,
        program: Jaxpr,
        consts: list[Any],
        values: Any,
        wanted: tuple[bool, ...] | None = None,
    ) -> list[Any]:
        """Run, in order, the equations on which a result marked in `wanted` depends.

        Raises:
            NotSupported: if the rule for a primitive returns an array of another shape than the
                program declares.
        """
        wanted = (True,) * len(program.outvars) if wanted is None else wanted
        reads, equations = self._needed(program, wanted)
        self._reads.append(reads)
        known = dict(zip(program.constvars, consts)) | dict(zip(program.invars, values))

        def value_of(atom: Any) -> Any:
            if isinstance(atom, Literal):
                return self._constant(np.asarray(atom.val, dtype=dtype_of(atom)))
            return known[atom]

        for eqn in equations:
            if unknown := unknown_parameters(eqn):
                raise NotSupported(unknown)
            outs = self._equation(eqn, [value_of(v) for v in eqn.invars])
            for variable, out in zip(eqn.outvars, outs, strict=True):
                if out is not None and np.shape(out) != shape_of(variable):
                    raise NotSupported(
                        f"the rule for primitive={eqn.primitive.name!r} gives the shape "
                        f"{np.shape(out)}, expected {shape_of(variable)}. Try another operation"
                    )
                known[variable] = out
        self._reads.pop()
        return [value_of(v) if want else None for v, want in zip(program.outvars, wanted)]

    def _look_at_time(self) -> None:
        """Check the time limit at most every 20 ms, because a look at the clock costs time."""
        if self._until is None or (now := time.perf_counter()) < self._looked + 0.02:
            return
        self._looked = now
        if time.process_time() > self._until:
            raise Undecided("the enclosure took longer than its time limit")

    def _equation(self, eqn: JaxprEqn, values: list[Any]) -> list[Any]:
        self._look_at_time()
        name = eqn.primitive.name
        for kind in map(dtype_of, eqn.outvars):
            if jax.dtypes.issubdtype(kind, np.complexfloating):
                raise NotSupported(
                    f"primitive={name!r} computes complex numbers, dtype={kind}, and balls "
                    f"(interval enclosures) enclose real numbers only. Try real and imaginary parts"
                )
            if is_narrow(kind) and name != "convert_element_type" and not is_exact(name):
                raise NotSupported(
                    f"primitive={name!r} computes in dtype={kind}, and balls (interval enclosures) "
                    "do not enclose the rounding errors of this type. Try float64"
                )
        rule = self.rules.get(name)
        if "callback" in name:
            raise NotSupported(
                f"primitive={name!r} calls a function that is not part of the program. Try JAX "
                "operations"
            )
        if name not in _ALWAYS and not any(map(is_soft, values)):
            return concrete(eqn, values, self)
        if rule is None:
            raise NotSupported(
                f"no rule for primitive={name!r}. Try other operations (`jaxbounds primitives`)"
            )
        try:
            return rule(eqn, values, self)
        except (Undecided, NotSupported):
            raise
        except UnknownParametersError as problem:
            raise NotSupported(str(problem)) from problem
        except (ValueError, TypeError, IndexError, OverflowError) as problem:
            raise NotSupported(f"primitive={name!r}: {problem}. Try other operations") from problem


def traced(function: Callable[..., Any], /, *arguments: Any) -> tuple[ClosedJaxpr, Any]:
    """Trace a function with JAX; return the program and the pytree structure of the results."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    return closed, jax.tree.structure(shape)


class Enclosed(NamedTuple):
    """The enclosed results of a program.

    Attributes:
        ways: the result of every path through the program; one of the results encloses the true
            value.
        computed: whether the program holds constants that look as if Python computed them before
            the trace (see `Interpreter`).
        whole: whether the trace holds the whole program; if False, Python ran a part outside the
            trace.
    """

    ways: list[Any]
    computed: bool
    whole: bool = True

    def taken(self, host: bool) -> bool:
        """Tell whether the result relies on numbers that Python computed outside the trace."""
        return not self.whole or (host and self.computed)


def enclose(
    function: Callable[..., Any],
    /,
    *arguments: Any,
    reading: Reading = "exact",
    bits: int = 192,
    seconds: float | None = None,
    rules: dict[str, Any] | None = None,
) -> Enclosed:
    """Enclose the value of a JAX function at concrete arguments, on every path through it.

    Args:
        function: any function that `jax.make_jaxpr` can trace.
        arguments: trees of arrays; each float is taken as an exact number. To enclose the function
            on a box, take leaves that are arrays of `flint.arb` (intervals), made by
            `jaxbounds.programs.balls.values.reals`.
        reading: the meaning of a float constant in the program. Under "exact" a float constant
            means exactly its own value. Under "ulp" a float with many binary digits
            (`math.sqrt(2)`, 1/3) stands for every real within some units in the last place.
        bits: the precision of the balls in bits.
        seconds: the processor time in seconds after which the enclosure stops; None sets no limit.
        rules: a dict from each primitive's name to the function that encloses its results; all
            known rules by default.

    Returns:
        The enclosed results in the field `ways`: one tree for each path through the program. The
        leaves of a tree are arrays of `flint.arb` (for floats), integers, and booleans or `Flags`.

    Raises:
        Undecided: if a choice stays undecided although the interpreter tried each outcome, or if
            the time limit is over.
        NotSupported: if a primitive has no rule; the message names the primitive.
    """
    program = Program.of(function, *arguments)
    return program.enclosed(*arguments, reading=reading, bits=bits, seconds=seconds, rules=rules)


class Program(NamedTuple):
    """A function traced once, whose method `enclose` can enclose the value at many arguments."""

    closed: ClosedJaxpr
    result: Any

    @classmethod
    def of(cls, function: Callable[..., Any], /, *arguments: Any) -> "Program":
        """Trace a function for the shapes of `arguments`; leaves may be arrays of balls."""
        like = lambda x: np.zeros(x.shape) if is_soft(x) else x
        return cls(*traced(function, *jax.tree.map(like, arguments, is_leaf=is_soft)))

    def enclosed(
        self,
        /,
        *arguments: Any,
        reading: Reading = "exact",
        bits: int = 192,
        seconds: float | None = None,
        rules: dict[str, Any] | None = None,
    ) -> Enclosed:
        """Enclose the traced function's value at arguments of the traced shapes; see `enclose`."""
        run = Interpreter(reading, rules=rules, seconds=seconds)
        with precision(bits):
            outs = list(run.ways(self.closed, *map(enclosed, jax.tree.leaves(arguments))))
        return Enclosed([jax.tree.unflatten(self.result, out) for out in outs], run.computed)


class precision:
    """A context manager that sets the precision of ball arithmetic, in bits, for a `with` block."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __enter__(self) -> None:
        self._before, ctx.prec = ctx.prec, self.bits

    def __exit__(self, *exc: object) -> None:
        ctx.prec = self._before
