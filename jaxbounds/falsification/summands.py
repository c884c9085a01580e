"""Compute the size of the terms that a program sums, and its results under other roundings.

NumPy runs the program several times, equation by equation. Each run but the first perturbs all
numbers that may be rounded by a relative amount, so results change by this amount times the size of
the summed terms.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.falsification.evaluation import is_floating
from jaxbounds.falsification.measure import UNITS
from jaxbounds.ground.jax_internals import (
    ClosedJaxpr,
    JaxprEqn,
    Literal,
    UnknownParametersError,
    branches_of,
    called_program,
    is_call,
    scan_of,
    solver_of,
    while_of,
    without_dead_code,
)
from jaxbounds.programs.interpreted import NotInterpreted, as_said, as_value, refuse, ruled
from jaxbounds.programs.interpreted.linear_algebra import eliminated
from jaxbounds.programs.primitives import is_exact
from jaxbounds.programs.traces import equations

MOVED = 2.0**-30
"""Relative perturbation that measures the sizes of terms. A larger value adds second-order effects;
rounding hides the effect of a smaller value."""
SHAKEN = 2.0**-50
"""Relative perturbation that imitates other roundings: eight units in the last place. A larger
value counts more changes as rounding."""
PAIRS = 2
"""Pairs of runs with opposite perturbations; the largest change estimates the size of the terms.
More pairs give a more reliable estimate."""
TIED = 2.0**-45
"""Two numbers may be equal up to rounding if their relative difference is at most this value. A
larger value counts more equalities as decided by rounding.
"""
TABLE = 16
"""A perturbed run changes an argument's entry like an equal constant of an array with at most this
many numbers. A larger number compares the entries with more constants."""
ADDED = 64
"""A perturbed run tests whether sums of at most this many numbers are exact. A larger number finds
more exact sums and takes longer."""
GRID, LARGEST = 2.0**10, 2.0**12
"""Floats represent sums and products of multiples of 1 / `GRID` below `LARGEST` exactly. If a value
were larger, some products would round."""
_JUMPS = frozenset(("floor", "ceil", "round", "sign", "rem", "nextafter"))
_SUMS = frozenset(("reduce_sum", "cumsum", "dot_general", "conv_general_dilated", "scatter-add"))
_OF_MATRICES = frozenset(
    ("cholesky", "eig", "eigh", "svd", "qr", "lu", "householder_product", "triangular_solve",
     "schur", "tridiagonal", "tridiagonal_solve", "hessenberg")
)  # fmt: skip
"""JAX primitives with a rounding error relative to the largest entry of a matrix, such as
factorisations."""
_POWERS = frozenset(("integer_pow", "pow", "square", "reduce_prod", "cumprod"))
_AT = {"exp": 0.0, "cos": 0.0, "cosh": 0.0, "exp2": 0.0, "logistic": 0.0, "log": 1.0}
"""For each elementary function, the points at which its value is exact and nonzero."""
_DOMAINS = {
    "sqrt": [(0.0, 1.0)], "acos": [(-1.0, 1.0), (1.0, -1.0)], "asin": [(-1.0, 1.0), (1.0, -1.0)],
    "acosh": [(1.0, 1.0)],
}  # fmt: skip
"""For each function that varies like a root near the ends of its domain, the ends, each with the
direction into the domain."""

Runs = list[Any]
"""The values of one variable in all runs of a program; the unperturbed first run decides the
branches."""
Mover = Callable[[np.ndarray], np.ndarray]
"""A function that perturbs an array of floats in one of the `Runs`, but not in the first run."""
After = Callable[[JaxprEqn, list[Any], list[Any], Mover], list[Any]]
"""A function that perturbs an equation's results; it takes the equation, the operands, the results
and a `Mover`."""


def _floats(x: Any) -> bool:
    return is_floating(np.asarray(x).dtype)


def _jumps(eqn: JaxprEqn) -> bool:
    """Return whether the results of an equation may jump if its float operands move a little.

    The pivots of an LU factorisation may jump, but no result that uses the pivots jumps. A test for
    infinities does not jump at finite numbers.
    """
    if eqn.primitive.name in ("lu", "is_finite"):
        return False
    floats = any(is_floating(v.aval.dtype) for v in _arrays(eqn.invars))
    other = any(not is_floating(v.aval.dtype) for v in _arrays(eqn.outvars))
    return floats and (other or eqn.primitive.name in _JUMPS)


def _arrays(variables: Any) -> Any:
    return variables


def has_jumps(program: ClosedJaxpr, /) -> bool:
    """Return whether a program has a discontinuous operation, or branches on floats."""
    return any(map(_jumps, equations(without_dead_code(program.jaxpr))))


def _short(x: np.ndarray) -> bool:
    """Return whether rounding cannot have changed `x`, because all its numbers have few digits."""
    return bool(np.all(~np.isfinite(x) | (x * GRID == np.round(x * GRID))))


Before = Callable[[JaxprEqn, list[Any], Mover], list[Any]]
"""A function that replaces an equation's operands in one of several parallel runs."""


class _Walk:
    """Computes several runs of one program side by side, equation by equation."""

    def __init__(
        self, movers: Sequence[Mover], before: Before, after: After, tied: Mover | None = None
    ) -> None:
        self._movers, self._before, self._after = movers, before, after
        self._runs = len(movers)
        self._of_constants = movers if tied is None else [tied] * len(movers)

    def _constant(self, x: Any) -> Runs:
        value = as_value(x)
        if not _floats(value) or _short(value):
            return [value] * self._runs
        return [move(value) for move in self._of_constants]

    def closed(self, program: ClosedJaxpr, values: Sequence[Runs]) -> list[Runs]:
        return self.jaxpr(program.jaxpr, list(map(self._constant, program.consts)), values)

    def jaxpr(self, program: Any, consts: Sequence[Runs], values: Sequence[Runs]) -> list[Runs]:
        known: dict[Any, Runs] = dict(zip(program.constvars, consts))
        known |= dict(zip(program.invars, values))
        reads = lambda atoms: [v for v in atoms if not isinstance(v, Literal)]
        last = {v: i for i, eqn in enumerate(program.eqns) for v in reads(eqn.invars)}
        kept = set(reads(program.outvars))

        def value_of(atom: Any) -> Runs:
            if isinstance(atom, Literal):
                kind: Any = atom.aval
                return self._constant(np.asarray(atom.val, kind.dtype))
            return known[atom]

        for i, eqn in enumerate(program.eqns):
            found = self._equation(eqn, [value_of(v) for v in eqn.invars])
            for variable, runs in zip(eqn.outvars, found, strict=True):
                known[variable] = runs
            for v in reads(eqn.invars):
                if last[v] == i and v not in kept:
                    known.pop(v, None)
        return [value_of(v) for v in program.outvars]

    def _equation(self, eqn: JaxprEqn, values: list[Runs]) -> list[Runs]:
        name = eqn.primitive.name
        try:
            if name == "cond":
                branches = branches_of(eqn)
                chosen = int(np.clip(int(values[0][0]), 0, len(branches) - 1))
                return self.closed(branches[chosen], values[1:])
            if name == "scan":
                return self._scanned(eqn, values)
            if name == "while":
                return self._while(eqn, values)
            if name == "custom_linear_solve":
                return self.closed(*solver_of(eqn, values))
            if is_call(name):
                inner = called_program(eqn)
                if isinstance(inner, ClosedJaxpr):
                    return self.closed(inner, values)
                return self.jaxpr(inner, (), values)
        except UnknownParametersError as unknown:
            raise NotInterpreted(str(unknown)) from unknown
        apart = [len({id(v) for v in runs}) > 1 for runs in values]
        many = self._runs if any(apart) or name in _SUMS else 1
        ins = [[runs[k] for runs in values] for k in range(many)]
        ins = [self._before(eqn, given, move) for given, move in zip(ins, self._movers)]
        said = [v.aval for v in _arrays(eqn.outvars)]
        typed = lambda outs: [as_said(out, kind, name) for out, kind in zip(outs, said)]
        if many > 1 and name == "lu":  # other pivots give other factors of the same matrix
            outs = [typed(ruled(eqn, ins[0]))]
            outs += [typed(eliminated(given[0], outs[0][1])) for given in ins[1:]]
        elif many > 1 and _jumps(eqn):
            outs = [typed(ruled(eqn, ins[0]))] * self._runs
        else:
            outs = [typed(ruled(eqn, given)) for given in ins]
            outs, ins = (part * (self._runs // many) for part in (outs, ins))
        taken = [self._after(eqn, *one) for one in zip(ins, outs, self._movers)]
        return [list(runs) for runs in zip(*taken)]

    def _scanned(self, eqn: JaxprEqn, values: list[Runs]) -> list[Runs]:
        loop = scan_of(eqn)
        if not loop.length:
            raise NotInterpreted(
                f"a loop of length={loop.length!r} has no steps. Try a loop of one step or more"
            )
        consts, rest = values[: loop.consts], values[loop.consts :]
        carry, along = rest[: loop.carry], rest[loop.carry :]
        rows: list[Any] = [None] * loop.length
        for i in reversed(range(loop.length)) if loop.reverse else range(loop.length):
            outs = self.closed(loop.body, [*consts, *carry, *([x[i] for x in r] for r in along)])
            carry, rows[i] = outs[: loop.carry], outs[loop.carry :]
        stacked = ([np.stack(parts) for parts in zip(*column)] for column in zip(*rows))
        return [*carry, *stacked]

    def _while(self, eqn: JaxprEqn, values: list[Runs]) -> list[Runs]:
        loop = while_of(eqn)
        of_cond, rest = values[: loop.condition_consts], values[loop.condition_consts :]
        of_body, carry = rest[: loop.body_consts], rest[loop.body_consts :]
        goes = lambda: np.asarray(self.closed(loop.condition, [*of_cond, *carry])[0][0])
        while np.any(going := goes()):
            new = self.closed(loop.body, [*of_body, *carry])
            along = lambda x, going=going: going.reshape(
                going.shape + (1,) * (np.ndim(x) - going.ndim)
            )
            carry = [
                [np.where(along(after), after, before) for before, after in zip(*pair)]
                for pair in zip(carry, new)
            ]
        return carry


class _OnDomains(_Walk):
    """Moves an operand onto the domain of its function if rounding put the operand outside.

    A root has no slope at the end of its domain. The perturbed runs change a root near this end by
    the rounding error of the root.
    """

    def __init__(
        self, movers: Sequence[Mover], before: Before, after: After, amount: float
    ) -> None:
        super().__init__(movers, before, after)
        self._amount = amount

    def _equation(self, eqn: JaxprEqn, values: list[Runs]) -> list[Runs]:
        name = eqn.primitive.name
        if name in _DOMAINS and _floats(values[0][0]):
            for end, inward in _DOMAINS[name]:
                values = [self._at(values[0], end, inward), *values[1:]]
        elif name == "pow" and _floats(values[1][0]):
            power = values[1][0]
            if np.all((power > 0) & (power != np.round(power))):
                values = [self._at(values[0], 0.0, 1.0), *values[1:]]
        return super()._equation(eqn, values)

    def _at(self, runs: Runs, end: float, inward: float) -> Runs:
        first, size = np.asarray(runs[0]), _size(runs, self._amount)
        near = np.abs(first - end) <= UNITS * size
        if not np.any(near):
            return runs
        there = end + inward * self._amount**2 / UNITS * size
        outside = near & (inward * (first - end) < 0)
        moved = [np.where(near, there, run).astype(first.dtype) for run in runs[1:]]
        return [np.where(outside, end, first).astype(first.dtype), *moved]


class Terms(NamedTuple):
    """The results of a program, and the sizes of its terms.

    Attributes:
        values: the results of the traced program; an operand that rounding puts outside the domain
            of its function, such as sqrt(-1e-17), counts as an end of the domain.
        sizes: for each entry of a float result, the size of the terms that the entry sums, at least
            its absolute value; NaN if the program gave NaN.
    """

    values: Any
    sizes: Any


def _mover(seed: int, amount: float) -> Mover:
    rng = np.random.default_rng(seed)

    def moved(x: np.ndarray) -> np.ndarray:
        part = rng.uniform(0.5, 1.0, x.shape) * rng.choice((-1.0, 1.0), x.shape)
        return (x * (1.0 + amount * part)).astype(x.dtype)

    return moved


def _tied_mover(seed: int, amount: float) -> Mover:
    """Return a function that perturbs equal absolute values by equal relative amounts."""

    def moved(x: np.ndarray) -> np.ndarray:
        bits = np.atleast_1d(np.abs(np.asarray(x, float))).view(np.uint64)
        for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):  # Knuth's, and of SplitMix64
            bits = (bits ^ (bits >> np.uint64(31)) ^ np.uint64(seed)) * np.uint64(factor)
        part = (bits >> np.uint64(11)).astype(float) / 2.0**52 - 1.0
        return (x * (1.0 + amount * part.reshape(np.shape(x)))).astype(x.dtype)

    return moved


@functools.lru_cache(16)
def long_constants(program: ClosedJaxpr) -> np.ndarray:
    """Return the absolute values of a program's constants with many digits."""
    atoms = (v for eqn in equations(program.jaxpr) for v in eqn.invars)
    literals = [v.val for v in atoms if isinstance(v, Literal)]
    tables = (x for x in (*program.consts, *literals) if np.size(x) <= TABLE)
    held = [x for x in tables if is_floating(getattr(x, "dtype", np.dtype(float)))]
    values = np.abs(np.concatenate([np.zeros(0), *(np.ravel(np.asarray(x, float)) for x in held)]))
    return np.unique(values[np.isfinite(values) & (values * GRID != np.round(values * GRID))])


def _still(x: np.ndarray) -> np.ndarray:
    return x


def _beside(x: Any, moved: Mover) -> Any:
    """Perturb the entries of matrices by a share of the largest entry of each matrix."""
    if not _floats(x) or np.ndim(x) < 2:
        return x
    largest = np.max(np.abs(x), axis=(-2, -1), keepdims=True, initial=0.0)
    whole = np.broadcast_to(largest, np.shape(x))
    return x + (moved(whole) - whole)


def _read_part(eqn: JaxprEqn, a: Any) -> Any:
    """Return the matrix of a triangular system without the entries that the system ignores."""
    unit = bool(eqn.params["unit_diagonal"])
    part = np.tril(a, -unit) if eqn.params["lower"] else np.triu(a, unit)
    return np.where(np.eye(np.shape(a)[-1], dtype=bool), np.ones_like(a), part) if unit else part


def terms(traced: Any, given: Any, amount: float = MOVED, /) -> Terms:
    """Return the results of a traced program, and the sizes of the terms that it sums.

    The first run decides which branch each jump or `cond` takes; all other runs take the same
    branch. Arguments count as terms, so the perturbed runs perturb the arguments, too.

    Args:
        traced: the result of `jax.jit(function).trace`.
        given: the argument at which the traced function is run.
        amount: the relative perturbation of each term; it must exceed the program's rounding.

    Raises:
        NotInterpreted: if NumPy cannot run the traced program.
    """
    refuse(traced.jaxpr)
    movers = [_still, *(_mover(pair, way * amount) for pair in range(PAIRS) for way in (1, -1))]

    def before(eqn: JaxprEqn, given: list, moved: Mover) -> list:
        name = eqn.primitive.name
        if name in _SUMS:
            return [moved(x) if _floats(x) else x for x in given]
        if name == "triangular_solve":
            given = [_read_part(eqn, given[0]), *given[1:]]
        return [_beside(x, moved) for x in given] if name in _OF_MATRICES else given

    def after(eqn: JaxprEqn, ins: list, outs: list, moved: Mover) -> list:
        if is_exact(eqn.primitive.name) and not _jumps(eqn):
            return outs
        return [moved(out) if _floats(out) else out for out in outs]

    walk = _OnDomains(movers, before, after, amount)
    leaves = [as_value(x) for x in jax.tree.leaves(given)]
    off = lambda x: [move(x) for move in movers] if _floats(x) else [x] * len(movers)
    with np.errstate(all="ignore"):
        found = walk.closed(traced.jaxpr, list(map(off, leaves)))
        sizes = [_size(runs, amount) if _floats(runs[0]) else runs[0] for runs in found]
    structure = jax.tree.structure(traced.out_info)
    back = lambda flat: jax.tree.unflatten(structure, flat)
    return Terms(back([runs[0] for runs in found]), back(sizes))


def _size(runs: Runs, amount: float) -> np.ndarray:
    first = np.asarray(runs[0], float)
    far = np.max([np.abs(np.asarray(run, float) - first) for run in runs[1:]], axis=0) / amount
    return np.maximum(far, np.abs(first))


def _grid(x: Any) -> bool:
    x = np.asarray(x)
    return not is_floating(x.dtype) or bool(np.all((x * GRID == np.round(x * GRID))
                                                   & (np.abs(x) < LARGEST)))  # fmt: skip


def _is_sum(a: Any, b: Any, total: np.ndarray) -> np.ndarray:
    """Return a mask of the sums a + b that `total` represents exactly (Knuth's TwoSum)."""
    back = total - a
    return (a - (total - back)) + (b - back) == 0


def _is_long_sum(x: np.ndarray, eqn: JaxprEqn, total: np.ndarray) -> np.ndarray | None:
    """Return a mask of the sums without rounding; None for sums of many numbers."""
    axes: Any = eqn.params["axes"]
    moved = np.moveaxis(x, axes, range(len(axes)))
    terms_of = moved.reshape(-1, *moved.shape[len(axes) :])
    if len(terms_of) > ADDED:
        return None
    partial, exact = np.zeros_like(total), np.ones(total.shape, bool)
    for term in terms_of:
        exact = exact & _is_sum(partial, term, partial + term)
        partial = partial + term
    return exact & (partial == total)


def _is_product(a: Any, b: Any, product: np.ndarray) -> np.ndarray:
    """Return a mask of the products that floats represent exactly (Dekker's product)."""

    def halves(x: Any) -> tuple[Any, Any]:
        high = x * (2.0**27 + 1)
        high = high - (high - x)
        return high, x - high

    (a1, a2), (b1, b2) = halves(a), halves(b)
    rest = a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)
    return (rest == 0) & np.isfinite(rest) & ((product != 0) | (a == 0) | (b == 0))


def _unrounded(eqn: JaxprEqn, ins: list[Any], out: np.ndarray) -> Any:
    name = eqn.primitive.name
    if is_exact(name) or not any(map(_floats, ins)):
        return True
    if name == "convert_element_type":
        return np.asarray(ins[0]).dtype.itemsize <= out.dtype.itemsize
    if name in ("add", "add_any", "sub"):
        return _is_sum(ins[0], -ins[1] if name == "sub" else ins[1], out)
    if name == "mul":
        return _is_product(ins[0], ins[1], out)
    if name == "div":
        return _is_product(out, ins[1], np.asarray(ins[0]))
    if name == "sqrt":
        return _is_product(out, out, np.asarray(ins[0]))
    if name == "reduce_sum" and (exact := _is_long_sum(np.asarray(ins[0]), eqn, out)) is not None:
        return exact
    if name in _SUMS:
        return all(map(_grid, ins))
    if name in _POWERS:
        whole = all(np.all(np.asarray(x) == np.round(x)) for x in ins)
        return (np.abs(out) < 2.0**53) & (out == np.round(out)) & whole
    return np.asarray(ins[0]) == _AT[name] if name in _AT else False


def shaken(traced: Any, given: Any, seed: int, /) -> Any:
    """Return the results of a traced program under other roundings of its numbers.

    Exact results stay unchanged, such as 3 + 1/2 and floor(3 + 1/2). The argument's entries that
    equal a constant of the program change as the constant does. An odd seed turns the result of
    `==` around if its operands differ only by rounding.

    Args:
        traced: the result of `jax.jit(function).trace`.
        given: the argument of the traced function.
        seed: the seed of the random roundings.

    Raises:
        NotInterpreted: if NumPy cannot run the program.
    """
    refuse(traced.jaxpr)
    constants, tied = long_constants(traced.jaxpr), _tied_mover(seed, SHAKEN)

    def off(leaf: Any) -> Any:
        x = as_value(leaf)
        if not _floats(x):
            return x
        return np.where(np.isin(np.abs(x), constants), tied(x), x)

    def after(eqn: JaxprEqn, ins: list, outs: list, moved: Mover) -> list:
        if eqn.primitive.name in ("eq", "ne") and _floats(ins[0]):
            a, b = ins
            largest = np.maximum(np.abs(a), np.abs(b))
            near = (a != b) & (np.abs(a - b) <= TIED * largest) & np.isfinite(largest)
            return [np.where(near & bool(seed % 2), ~outs[0], outs[0])]
        at = lambda out: np.where(_unrounded(eqn, ins, out), out, moved(out)).astype(out.dtype)
        return [at(out) if _floats(out) else out for out in outs]

    with np.errstate(all="ignore"):
        walk = _Walk([_mover(seed, SHAKEN)], lambda eqn, given, moved: given, after, tied)
        found = walk.closed(traced.jaxpr, [[off(x)] for x in jax.tree.leaves(given)])
    flat = [runs[0] for runs in found]
    return jax.tree.unflatten(jax.tree.structure(traced.out_info), flat)
