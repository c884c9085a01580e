"""Collect all uses of parts of JAX that a new version of JAX may change or remove.

Between minor releases JAX changes the classes of its programs, the parameters of loops and calls,
and its experimental modules. Other modules of the library import these parts from this module.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils, serialize_executable
from jax.experimental.compilation_cache import compilation_cache
from jax.extend import core as extended
from jax.extend import source_info_util
from jax.extend.core import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    jaxpr_as_fun,
    primitives,
)
from jax.interpreters import partial_eval

__all__ = [
    "ClosedJaxpr",
    "IntegerPower",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "Scan",
    "UnknownParametersError",
    "While",
    "as_function",
    "branches_of",
    "called_names",
    "called_program",
    "constants_inside",
    "current_trace",
    "enable_x64",
    "ensure_compile_time_eval",
    "forget_compilation_cache",
    "integer_powers",
    "is_call",
    "known_primitives",
    "place_of",
    "process_allgather",
    "programs_inside",
    "scan_of",
    "serialize_executable",
    "while_of",
    "with_constants",
    "with_outputs",
    "without_dead_code",
]

if hasattr(jax, "enable_x64"):
    enable_x64 = jax.enable_x64
else:  # before JAX 0.8
    from jax.experimental import enable_x64  # type: ignore[attr-defined, no-redef]

if jax.__version_info__ >= (0, 8):
    ensure_compile_time_eval = jax.ensure_compile_time_eval
else:

    def ensure_compile_time_eval() -> Any:
        """Return a context manager in which JAX evaluates operations on constants inside a trace.

        The function replaces JAX's own function of this purpose. JAX 0.7's own function breaks
        programs that are compiled inside the `with` block, because the loops of these programs lose
        their lowering rule.
        """
        from jax._src import core  # type: ignore[attr-defined]

        return core.set_current_trace(core.eval_trace)


def current_trace() -> Any:
    """Return an object that identifies the running trace; two traces give different objects."""
    if ask := getattr(extended, "get_opaque_trace_state", None):  # from JAX 0.10 on
        return ask(convention="flax")
    from flax.core import tracers  # slow to import; Flax adapts it to each release of JAX

    return tracers.current_trace()


def process_allgather(tree: Any, /) -> Any:
    """Gather arrays from all processes; each result has a new first axis over the processes."""
    return multihost_utils.process_allgather(tree)


class UnknownParametersError(Exception):
    """Raised when an equation has parameters that the library does not know."""


class Scan(NamedTuple):
    """The parameters of JAX's loop primitive `scan`.

    Attributes:
        body: the program of one step; it takes the constants, the carry, and one slice of the
            inputs.
        consts: the number of operands that are constants of the loop.
        carry: the number of operands that each step of the loop replaces.
        reverse: whether the scan begins with the last slice of its inputs.
    """

    body: ClosedJaxpr
    consts: int
    carry: int
    length: int
    reverse: bool


class While(NamedTuple):
    """The parameters of JAX's loop primitive `while`.

    Attributes:
        condition: the program that returns whether the loop makes another step.
        condition_consts: the number of operands that only the loop's condition reads.
        body: the program that makes one step of the loop.
        body_consts: the number of operands that only the loop's body reads.
    """

    condition: ClosedJaxpr
    condition_consts: int
    body: ClosedJaxpr
    body_consts: int


def _missing(eqn: JaxprEqn) -> UnknownParametersError:
    names = ", ".join(sorted(eqn.params))
    return UnknownParametersError(
        f"{eqn.primitive.name} has unknown parameters={names}. Try another version of JAX"
    )


def scan_of(eqn: JaxprEqn, /) -> Scan:
    """Return the parameters of a `scan` equation, from any supported version of JAX.

    Raises:
        UnknownParametersError: if the equation stores its parameters in an unknown way.
    """
    p = eqn.params
    try:
        if "num_consts" in p:
            consts, carry = p["num_consts"], p["num_carry"]
        else:  # JAX >= 0.11 has trees with a leaf for each operand
            consts, carry, _ = map(len, p["ft_in"].unpack())
        return Scan(p["jaxpr"], consts, carry, p["length"], p["reverse"])
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise _missing(eqn) from problem


def while_of(eqn: JaxprEqn, /) -> While:
    """Return the parameters of a `while` equation.

    Raises:
        UnknownParametersError: if the equation stores its parameters in an unknown way.
    """
    names = ("cond_jaxpr", "cond_nconsts", "body_jaxpr", "body_nconsts")
    try:
        return While(*(eqn.params[name] for name in names))
    except KeyError as problem:
        raise _missing(eqn) from problem


def branches_of(eqn: JaxprEqn, /) -> Sequence[ClosedJaxpr]:
    """Return the branches of a `cond` equation.

    Raises:
        UnknownParametersError: if the equation stores the programs in an unknown way.
    """
    try:
        return eqn.params["branches"]
    except KeyError as problem:
        raise _missing(eqn) from problem


def solver_of(eqn: JaxprEqn, values: Sequence[Any], /) -> tuple[ClosedJaxpr, list[Any]]:
    """Return the program that solves the system of a `custom_linear_solve`, and its operands.

    Raises:
        UnknownParametersError: if the equation stores the program in an unknown way.
    """
    try:
        lengths, program = eqn.params["const_lengths"], eqn.params["jaxprs"].solve
        before = lengths.matvec + lengths.vecmat
        own = values[before : before + lengths.solve]
        return program, [*own, *values[sum(lengths) :]]
    except (AttributeError, KeyError, TypeError) as problem:
        raise _missing(eqn) from problem


_CALLED = {
    **dict.fromkeys(("jit", "pjit", "remat", "remat2", "checkpoint"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "eval_jaxpr", "custom_jvp_call", "custom_vjp_call"),
        "call_jaxpr",
    ),
}
"""A dict from each primitive that runs another program once to the parameter that holds the
program."""


def _polynomial(x: Any, *coefficients: Any) -> Any:
    return functools.reduce(lambda found, c: found * x + c, reversed(coefficients))


_WRITTEN_OUT: dict[str, Callable[..., Any]] = {
    "log2": lambda x: jnp.log(x) / jnp.log(jnp.full((), 2, x.dtype)),
    "one_minus_square": lambda x: (1 + x) * (1 - x),
    "polynomial": _polynomial,
}
"""A dict from primitives of JAX 0.12 to functions that use only primitives of older versions."""
_DESCRIBED = "call_hi_primitive"
"""The primitive of a call whose program JAX stores inside an object of its own. `nonzero` and
`searchsorted` of JAX >= 0.12 use this primitive.
"""


def is_call(name: str, /) -> bool:
    """Tell whether the named primitive runs another program exactly once."""
    return name in _CALLED or name in _WRITTEN_OUT or name == _DESCRIBED


def called_names() -> tuple[str, ...]:
    """Return the names of the primitives for which `is_call` is true."""
    return (*_CALLED, *_WRITTEN_OUT, _DESCRIBED)


@functools.lru_cache(512)
def _traced(name: str, described: Any, kinds: tuple[Any, ...]) -> ClosedJaxpr:
    """Trace a program that computes the same as a primitive whose equation holds no program."""

    def run(*leaves: Any) -> list[Any]:
        if described is None:
            return [_WRITTEN_OUT[name](*leaves)]
        return jax.tree.leaves(described.expand(*jax.tree.unflatten(described.in_tree, leaves)))

    return jax.make_jaxpr(run)(*(jax.ShapeDtypeStruct(*kind) for kind in kinds))


def _without_program(eqn: JaxprEqn) -> ClosedJaxpr:
    kinds = tuple((v.aval.shape, v.aval.dtype) for v in eqn.invars)  # type: ignore[attr-defined]
    return _traced(eqn.primitive.name, eqn.params.get("_prim"), kinds)


def called_program(eqn: JaxprEqn, /) -> ClosedJaxpr | Jaxpr:
    """Return the program that a call equation runs.

    Raises:
        UnknownParametersError: if the equation stores the program in an unknown way.
    """
    try:
        name = eqn.primitive.name
        return eqn.params[_CALLED[name]] if name in _CALLED else _without_program(eqn)
    except (AttributeError, KeyError, TypeError) as problem:
        raise _missing(eqn) from problem


def _held(eqn: JaxprEqn) -> Iterator[ClosedJaxpr | Jaxpr]:
    if is_call(eqn.primitive.name) and eqn.primitive.name not in _CALLED:
        yield called_program(eqn)
    held = list(eqn.params.values())
    while held:
        value = held.pop(0)
        if isinstance(value, ClosedJaxpr | Jaxpr):
            yield value
        elif isinstance(value, tuple | list):
            held[:0] = value


def programs_inside(eqn: JaxprEqn, /) -> Iterator[Jaxpr]:
    """Yield the inner programs of an equation, such as the body of a loop or a branch."""
    for held in _held(eqn):
        yield held.jaxpr if isinstance(held, ClosedJaxpr) else held


def constants_inside(eqn: JaxprEqn, /) -> Iterator[Any]:
    """Yield the constants of the programs that the parameters of an equation hold."""
    for held in _held(eqn):
        yield from getattr(held, "consts", ())


class IntegerPower(NamedTuple):
    """A power of integers that JAX writes out as a fixed number of squarings.

    JAX reads only the lowest `bits` bits of the exponent: 6 bits in JAX 0.7 to 0.12.

    Attributes:
        of_base: the broadcasts that bring the base to the rank of the power, in order.
        of_exponent: the broadcasts that bring the exponent to the rank of the power, in order.
        bits: the number of bits that JAX reads.
    """

    base: Any
    exponent: Any
    of_base: tuple[JaxprEqn, ...]
    of_exponent: tuple[JaxprEqn, ...]
    bits: int


_SPREAD = ("broadcast_in_dim", "reshape", "expand_dims", "squeeze")
"""The primitives that change only the shape of a power's operand, and none of its numbers."""


class _Maker:
    """A program's equations, each found by a variable that it computes."""

    def __init__(self, program: Jaxpr) -> None:
        self._made = {v: eqn for eqn in program.eqns for v in eqn.outvars}

    def of(self, atom: Any, *names: str) -> JaxprEqn | None:
        eqn = None if isinstance(atom, Literal) else self._made.get(atom)
        return eqn if eqn is not None and (not names or eqn.primitive.name in names) else None

    def source(self, atom: Any) -> tuple[Any, tuple[JaxprEqn, ...]]:
        """Undo changes of an array's shape; return the original array and the changes in order."""
        moves: list[JaxprEqn] = []
        while (eqn := self.of(atom, *_SPREAD)) is not None:
            moves.insert(0, eqn)
            atom = eqn.invars[0]
        return atom, tuple(moves)

    def chosen(self, atom: Any) -> tuple[Any, Any, Any] | None:
        """Return the condition and both cases of the `jnp.where` that gives a variable, or None."""
        eqn = self.of(atom)
        if eqn is None or len(eqn.invars) != 3:
            return None
        which, first, second = eqn.invars
        if eqn.primitive.name == "select_n":
            unlike = self.of(self.source(which)[0], "ne")
            return (which if unlike is None else unlike.invars[0]), second, first
        named = eqn.params.get("name") if eqn.primitive.name in ("jit", "pjit") else None
        return (which, first, second) if named == "_where" else None

    def step(self, atom: Any) -> tuple[Any, Any, Any] | None:
        """Return a squaring step's inputs: the power so far, the factor, the exponent left."""
        if (chosen := self.chosen(atom)) is None:
            return None
        which, times, before = chosen
        odd, product = self.of(self.source(which)[0], "and"), self.of(times, "mul")
        if odd is None or product is None or not _is_number(odd.invars[1], 1):
            return None
        if not _same(product.invars[0], before):
            return None
        return before, self.source(product.invars[1])[0], odd.invars[0]


def _is_number(atom: Any, number: int) -> bool:
    return isinstance(atom, Literal) and bool(np.all(np.asarray(atom.val) == number))


def _same(one: Any, other: Any) -> bool:
    both = isinstance(one, Literal) and isinstance(other, Literal)
    return bool(np.array_equal(one.val, other.val)) if both else one is other


def _power_ending(atom: Any, maker: _Maker) -> tuple[IntegerPower, list[Any]] | None:
    steps, before = list[tuple[Any, Any]](), list[Any]()
    while (step := maker.step(atom)) is not None:
        atom = step[0]
        before.append(atom)
        steps.insert(0, step[1:])
    start = maker.chosen(atom)  # 0 for a power of zero, else 1
    if not steps or start is None or not (_is_number(start[1], 0) and _is_number(start[2], 1)):
        return None
    if (both := maker.of(start[0], "and")) is None:
        return None
    (first, of_base), (second, of_exponent) = map(maker.source, both.invars)
    zero, positive = maker.of(first, "eq"), maker.of(second, "ne")
    if zero is None or positive is None:
        return None
    factor, left = zero.invars[0], positive.invars[0]
    power = IntegerPower(factor, left, of_base, of_exponent, len(steps))
    for i, (own, rest) in enumerate(steps):
        if i:
            square, shift = maker.of(own, "mul"), maker.of(rest, "shift_right_logical")
            if square is None or shift is None or not _is_number(shift.invars[1], 1):
                return None
            squared = all(_same(maker.source(v)[0], factor) for v in square.invars)
            if not squared or not _same(shift.invars[0], left):
                return None
        elif not (_same(own, maker.source(factor)[0]) and _same(rest, left)):
            return None
        factor, left = own, rest
    return power, before


@functools.lru_cache(512)
def integer_powers(program: Jaxpr, /) -> dict[Any, IntegerPower]:
    """Return a dict from each variable of a program that holds an integer power to this power.

    JAX has no primitive for a power of integers with an exponent that the trace does not know. The
    function ignores powers in bodies of loops and branches.
    """
    if not any(eqn.primitive.name == "shift_right_logical" for eqn in program.eqns):
        return {}
    maker, found, inside = _Maker(program), dict[Any, IntegerPower](), set[Any]()
    for eqn in program.eqns:
        if len(eqn.outvars) == 1 and (power := _power_ending(eqn.outvars[0], maker)):
            found[eqn.outvars[0]] = power[0]
            inside.update(power[1])
    return {v: power for v, power in found.items() if v not in inside}


def without_dead_code(program: Jaxpr, /) -> Jaxpr:
    """Return the program without the equations on which no result depends."""
    return partial_eval.dce_jaxpr(program, [True] * len(program.outvars))[0]


def as_function(closed: ClosedJaxpr, /) -> Any:
    """Return a function that runs a program on its inputs and returns the list of its outputs."""
    return jaxpr_as_fun(closed)


def with_constants(closed: ClosedJaxpr, constants: Sequence[Any], /) -> ClosedJaxpr:
    """Return the program with other values of its constants."""
    return ClosedJaxpr(closed.jaxpr, list(constants))


def with_outputs(closed: ClosedJaxpr, variables: Sequence[Any], /) -> ClosedJaxpr:
    """Return a copy of a program that returns the values of the given variables of the program."""
    names = closed.jaxpr.debug_info._replace(result_paths=("",) * len(variables))
    program = closed.jaxpr.replace(outvars=list(variables), debug_info=names)
    return closed.replace(jaxpr=program)


def place_of(eqn: JaxprEqn, /) -> str:
    """Return the innermost line of user code that made an equation: `file:line (function)`."""
    return source_info_util.summarize(eqn.source_info)


def known_primitives() -> tuple[str, ...]:
    """Return the sorted names of the primitives in the installed version of JAX."""
    found = (getattr(value, "name", None) for value in vars(primitives).values())
    return tuple(sorted({name for name in found if isinstance(name, str)}))


def forget_compilation_cache() -> None:
    """Make JAX read the settings of its compilation cache again at the next compilation."""
    compilation_cache.reset_cache()
