"""Examine traced programs: their equations, coarse roundings and random draws; compare programs.

Only `is_fixed` may run a program.
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
"""The number of array entries that NumPy computes in the time of one operation on a scalar.

If this number is larger, `executed` counts an operation on a large array as fewer operations.
"""


def _numbers(eqn: JaxprEqn) -> float:
    found = sum(math.prod(v.aval.shape) for v in _arrays(eqn.outvars))
    if eqn.primitive.name == "dot_general":
        (axes, _), _ = eqn.params["dimension_numbers"]
        found *= math.prod(_arrays(eqn.invars)[0].aval.shape[axis] for axis in axes)
    return found


def executed(program: Jaxpr, /) -> float:
    """Count the equations that one run of a program executes.

    An equation inside a `scan` counts once for each step. A `while`, or an equation with unknown
    parameters, counts as infinitely many equations. An equation that computes many numbers counts
    as several equations (see `STEP`).
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
    return int(jnp.finfo(dtype).nmant) if jax.dtypes.issubdtype(dtype, jnp.floating) else None


def _arrays(variables: Any) -> Any:
    """Return the variables unchanged, so that the type checker accepts them as arrays."""
    return variables


def _narrowest(eqn: JaxprEqn) -> Any:
    if is_exact(eqn.primitive.name):
        return None
    if eqn.primitive.name == "reduce_precision":
        bits = eqn.params.get("mantissa_bits", 0)
        return next(
            (t for t in (jnp.bfloat16, jnp.float16, jnp.float32) if _digits(t) >= bits), None
        )
    kinds = [v.aval.dtype for v in _arrays(eqn.outvars) if _digits(v.aval.dtype) is not None]
    if eqn.primitive.name == "convert_element_type":
        # A conversion from integers, or from floats that are no finer, does not count.
        old = _digits(_arrays(eqn.invars)[0].aval.dtype)
        kinds = [k for k in kinds if old is not None and _digits(k) < old]
    return min(kinds, key=_digits, default=None)


def narrow_operations(program: Jaxpr, wanted: Any, /) -> tuple[str, ...]:
    """Return the operations that round to fewer digits than the type `wanted`.

    The text for an operation gives its name, its type and its line. The function omits an operation
    on which no result depends, such as an initialiser of values that the program replaces.
    """
    least = _digits(wanted)
    found: dict[str, None] = {}
    for eqn in equations(without_dead_code(program)):
        kind = _narrowest(eqn)
        if kind is not None and least is not None and _digits(kind) < least:
            found[f"{eqn.primitive.name} in {jnp.dtype(kind).name} ({place_of(eqn)})"] = None
    return tuple(found)


APPROXIMATE = {"expm": 1e-7}
"""A dict from the name of each JAX function that is less accurate than float64 to the function's
relative error. A larger error leaves more violations of claims about the function undecided. For
example, `expm` of the 1 x 1 matrix 10 has a relative error of 2e-8, because JAX scales the matrix
too little.
"""


def approximations(program: Jaxpr, /) -> tuple[str, ...]:
    """Return the names of the functions in `APPROXIMATE` that a program calls, each once."""
    calls = (eqn.params.get("name") for eqn in equations(program))
    return tuple(dict.fromkeys(name for name in calls if name in APPROXIMATE))


def coarseness(operation: str, /) -> float:
    """Return the rounding unit eps of the float type that a text such as "exp in float16" names."""
    return float(jnp.finfo(operation.split(" in ")[1].split(" ")[0]).eps)


def nested_constants(program: Jaxpr, /) -> Iterator[Any]:
    """Yield the constants of all programs that the equations of a program hold."""
    for eqn in equations(program):
        yield from constants_inside(eqn)


def narrow_constants(closed: ClosedJaxpr, wanted: Any, /) -> tuple[str, ...]:
    """Return the type and shape of each constant that has fewer digits than the type `wanted`."""
    least, found = _digits(wanted), dict[str, None]()
    for value in (*closed.consts, *nested_constants(closed.jaxpr)):
        kind = getattr(value, "dtype", None)
        digits = None if kind is None else _digits(kind)
        if digits is not None and least is not None and digits < least:
            found[f"{jnp.dtype(kind).name} of shape {tuple(value.shape)}"] = None
    return tuple(found)


_DRAWS = frozenset(("random_bits", "random_gamma", "threefry2x32", "rng_bit_generator"))
"""Primitives that draw random numbers from a key."""


def draws(program: Jaxpr, held: list[bool], /) -> bool:
    """Tell whether a program draws random numbers from a key that depends on a marked input.

    `held` has a boolean for each constant, then for each input, of the program; True marks the
    input.
    """
    found, _ = _followed(program, held)
    return found


def _followed(program: Jaxpr, held: list[bool]) -> tuple[bool, list[bool]]:
    marked = {v for v, mark in zip([*program.constvars, *program.invars], held) if mark}
    reads = lambda atom: not isinstance(atom, Literal) and atom in marked
    drawn = False
    for eqn in program.eqns:
        marks = [reads(v) for v in eqn.invars]
        if eqn.primitive.name in _DRAWS:
            # The results get no mark, because `drawn` already records the draw from their key.
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
    """Return the bytes of a program's constant; for a random key, the bytes of its data."""
    if hasattr(constant, "dtype") and jnp.issubdtype(constant.dtype, jax.dtypes.prng_key):
        constant = jax.random.key_data(constant)
    return np.asarray(constant).tobytes() if hasattr(constant, "dtype") else repr(constant).encode()


def program_text(closed: ClosedJaxpr, /) -> str:
    """Return a text that identifies a program; it omits the constants outside inner programs."""
    inner = hashlib.sha256()
    for constant in nested_constants(closed.jaxpr):
        inner.update(bytes_of(constant))
    return f"{_ADDRESS.sub('', str(closed))} {inner.hexdigest()}"


SAME = 1e-6
"""The largest relative difference at which the results of two traces count as equal.

Differences that only rounding causes are smaller than this value. A larger value accepts more
functions that change from trace to trace.
"""


def _agree(one: ClosedJaxpr, other: ClosedJaxpr, arguments: tuple[Any, ...]) -> bool:
    """Compare the results at the arguments up to rounding; one program may have additional results.

    JAX omits results of inner functions if it took the outer function's trace from its cache.
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
    """Tell whether a new trace of a function gives the program `before`, with equal constants.

    The new trace may differ from `before`, because JAX caches parts of traces. If the new trace
    differs, it must equal a third trace, and its results at the arguments must equal the results of
    `before`.
    """
    # A new lambda, because JAX does not trace the same function object again.
    trace = lambda: jax.make_jaxpr(lambda *a: function(*a))(*arguments)
    exact = lambda closed: [program_text(closed), *map(bytes_of, closed.consts)]
    again = trace()
    if exact(before) == exact(again):
        return True
    return _agree(before, again, arguments) and exact(again) == exact(trace())
