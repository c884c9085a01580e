"""The equations of traced programs, and those that round more coarsely than others.

The functions here run no program.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.ground.jax_internals import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    as_function,
    constants_inside,
    is_call,
    place_of,
    programs_inside,
    scan_of,
    without_dead_code,
)
from jaxbounds.programs.primitives import is_exact, unknown_parameters


def equations(program: Jaxpr, /) -> Iterator[JaxprEqn]:
    """Yield all equations of a program and of the programs inside it, in order."""
    for eqn in program.eqns:
        yield eqn
        for inner in programs_inside(eqn):
            yield from equations(inner)


STEP = 2000
"""Numbers that take as long as one call of NumPy for an equation; a larger number calls more
programs short.
"""


def _numbers(eqn: JaxprEqn) -> float:
    """Count the numbers that an equation computes.

    For a product of matrices, the multiplications.
    """
    found = sum(math.prod(v.aval.shape) for v in _arrays(eqn.outvars))
    if eqn.primitive.name == "dot_general":
        (axes, _), _ = eqn.params["dimension_numbers"]
        found *= math.prod(_arrays(eqn.invars)[0].aval.shape[axis] for axis in axes)
    return found


def executed(program: Jaxpr, /) -> float:
    """Count the equations that run: those of a loop at each step, infinitely many of a `while`.

    An equation with unknown parameters counts as infinitely many. An equation with many numbers
    counts as several, see `STEP`.
    """
    total = 0.0
    for eqn in program.eqns:
        if eqn.primitive.name == "while" or unknown_parameters(eqn):
            return math.inf
        inside = [executed(inner) for inner in programs_inside(eqn)]
        if eqn.primitive.name == "scan":
            total += scan_of(eqn).length * sum(inside)
        else:
            total += sum(inside) or 1 + _numbers(eqn) // STEP
    return total


def _digits(dtype: Any) -> Any:
    """The binary digits of a type of floats."""
    return int(jnp.finfo(dtype).nmant) if jax.dtypes.issubdtype(dtype, jnp.floating) else None


def _arrays(variables: Any) -> Any:
    """All of them are arrays, which their types do not say."""
    return variables


def _narrowest(eqn: JaxprEqn) -> Any:
    """The type to which an equation rounds; None where it does not round."""
    if is_exact(eqn.primitive.name):
        return None
    if eqn.primitive.name == "reduce_precision":
        bits = eqn.params.get("mantissa_bits", 0)
        return next(
            (t for t in (jnp.bfloat16, jnp.float16, jnp.float32) if _digits(t) >= bits), None
        )
    kinds = [v.aval.dtype for v in _arrays(eqn.outvars) if _digits(v.aval.dtype) is not None]
    if eqn.primitive.name == "convert_element_type":
        # From integers, or from coarser floats, nothing is lost that this type had not lost before.
        old = _digits(_arrays(eqn.invars)[0].aval.dtype)
        kinds = [k for k in kinds if old is not None and _digits(k) < old]
    return min(kinds, key=_digits, default=None)


def narrow_operations(program: Jaxpr, wanted: Any, /) -> tuple[str, ...]:
    """The operations that round to fewer digits than the type wanted: name, type and place.

    Only those on which a result depends: not an initialiser whose values are replaced.

    Args:
        program: what was traced.
        wanted: the type in which the results are meant to be computed.
    """
    least = _digits(wanted)
    found: dict[str, None] = {}
    for eqn in equations(without_dead_code(program)):
        kind = _narrowest(eqn)
        if kind is not None and least is not None and _digits(kind) < least:
            found[f"{eqn.primitive.name} in {jnp.dtype(kind).name} ({place_of(eqn)})"] = None
    return tuple(found)


def coarseness(operation: str, /) -> float:
    """The unit of rounding of what `narrow_operations` named."""
    return float(jnp.finfo(operation.split(" in ")[1].split(" ")[0]).eps)


def nested_constants(program: Jaxpr, /) -> Iterator[Any]:
    """The constants of the programs inside of a program."""
    for eqn in equations(program):
        yield from constants_inside(eqn)


_DRAWS = frozenset(("random_bits", "random_gamma", "threefry2x32", "rng_bit_generator"))
"""Primitives that draw from a key."""


def draws(program: Jaxpr, held: list[bool], /) -> bool:
    """Whether random numbers are drawn from keys that come from certain inputs.

    Args:
        program: what was traced.
        held: of its constants and then its inputs, which ones.
    """
    found, _ = _followed(program, held)
    return found


def _followed(program: Jaxpr, held: list[bool]) -> tuple[bool, list[bool]]:
    """Whether held keys are drawn from, and which results depend on held inputs."""
    marked = {v for v, mark in zip([*program.constvars, *program.invars], held) if mark}
    reads = lambda atom: not isinstance(atom, Literal) and atom in marked
    drawn = False
    for eqn in program.eqns:
        marks = [reads(v) for v in eqn.invars]
        if eqn.primitive.name in _DRAWS:
            # Random numbers depend on nothing but their key, which has been looked at.
            drawn = drawn or marks[0]
            continue
        outs = [any(marks)] * len(eqn.outvars)
        for inner in programs_inside(eqn):
            name = eqn.primitive.name
            aligned = (is_call(name) or name == "scan") and len(inner.invars) == len(marks)
            given = marks if aligned else [any(marks)] * len(inner.invars)
            again, results = _followed(inner, [True] * len(inner.constvars) + given)
            drawn = drawn or again
            if aligned and name != "scan":
                outs = results
        marked.update(v for v, mark in zip(eqn.outvars, outs) if mark)
    return drawn, [reads(v) for v in program.outvars]


_ADDRESS = re.compile(r"0x[0-9a-f]+")


def bytes_of(constant: Any, /) -> bytes:
    """A constant of a program, bit for bit."""
    if hasattr(constant, "dtype") and jnp.issubdtype(constant.dtype, jax.dtypes.prng_key):
        constant = jax.random.key_data(constant)
    return np.asarray(constant).tobytes() if hasattr(constant, "dtype") else repr(constant).encode()


def program_text(closed: ClosedJaxpr, /) -> str:
    """A text that tells a program from others, without its own constants."""
    inner = hashlib.sha256()
    for constant in nested_constants(closed.jaxpr):
        inner.update(bytes_of(constant))
    return f"{_ADDRESS.sub('', str(closed))} {inner.hexdigest()}"


SAME = 1e-6
"""Relative difference of the results of two programs that are one function; rounding leaves less. A
larger value takes more functions that change for one.
"""


def _agree(one: ClosedJaxpr, other: ClosedJaxpr, arguments: tuple[Any, ...]) -> bool:
    """Tell whether two programs give equal numbers at the arguments, up to rounding.

    The longer program may have results between the common ones: JAX hides a call of a judged
    function, whose result is noted, where it keeps the trace of a caller.
    """
    leaves = jax.tree.leaves(arguments)
    run = lambda closed: [np.asarray(x) for x in jax.jit(as_function(closed))(*leaves)]
    fewer, more = sorted((run(one), run(other)), key=len)
    same = lambda a, b: (
        a.shape == b.shape and np.allclose(a, b, rtol=SAME, atol=1e-12, equal_nan=True)
    )
    left = iter(more)
    return all(any(same(a, b) for b in left) for a in fewer)


def is_fixed(function: Callable, /, *arguments: Any, before: ClosedJaxpr) -> bool:
    """Whether another trace of a function is the program of `before`, with the same constants.

    A later trace may hold constants and equations that an earlier trace has computed or merged,
    because JAX keeps parts of traces. Two more traces must then agree, and give the numbers of
    `before` at the arguments.
    """
    # A new function: what was traced once is not traced again.
    trace = lambda: jax.make_jaxpr(lambda *a: function(*a))(*arguments)
    exact = lambda closed: [program_text(closed), *map(bytes_of, closed.consts)]
    again = trace()
    if exact(before) == exact(again):
        return True
    return _agree(before, again, arguments) and exact(again) == exact(trace())
