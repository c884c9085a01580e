"""Programs run entry by entry on intervals of fractions, an algebra that stands here.

Python's fractions do the arithmetic: no ball and no jet is in it, so that what is tested is only
which element meets which.
"""

import itertools
from dataclasses import dataclass
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax
from oracle import draws

from jaxbounds.certification import NotSupported, Undecided, precision
from jaxbounds.programs.balls.interpreter import Program
from jaxbounds.programs.balls.scalars import Algebra, Scalars
from jaxbounds.programs.balls.values import as_flags, reals

pytestmark = pytest.mark.usefixtures("x64")


@dataclass(frozen=True)
class Between:
    """A number between two fractions; `finite` where it is surely one."""

    low: Fraction
    high: Fraction
    finite: int = 1


def B(low, high=None, finite=1):
    return Between(Fraction(low), Fraction(low if high is None else high), finite)


class Intervals:
    """The algebra; it never forks."""

    def lift(self, ball):
        return B(draws.exactly(ball.lower()), draws.exactly(ball.upper()))

    def apply(self, name, *entries):
        if name == "neg":
            return B(-entries[0].high, -entries[0].low)
        if name == "sin":  # stands for any function of one argument
            return B(entries[0].low + 100, entries[0].high + 100)
        if name == "div" and entries[1].low <= 0 <= entries[1].high:
            raise ZeroDivisionError("by zero")
        a, b = entries
        acts = {
            "add": lambda u, v: u + v, "sub": lambda u, v: u - v, "mul": lambda u, v: u * v,
            "div": lambda u, v: u / v, "pow": lambda u, v: u ** int(v),
            "atan2": lambda u, v: 1000 * u + v, "add_any": lambda u, v: u + v,
        }  # fmt: skip
        ends = [acts[name](u, v) for u in (a.low, a.high) for v in (b.low, b.high)]
        return B(min(ends), max(ends))

    def power(self, x, n):
        return B(min(x.low**n, x.high**n), max(x.low**n, x.high**n))

    def compare(self, name, a, b, fork):
        holds = {"lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__", "eq": "__eq__",
                 "ne": "__ne__"}[name]  # fmt: skip
        pairs = itertools.product({a.low, a.high}, {b.low, b.high})
        found = {getattr(u, holds)(v) for u, v in pairs}
        sure = name not in ("eq", "ne") or a.low > b.high or b.low > a.high or a == b
        return int(found.pop()) if len(found) == 1 and sure else 2

    def larger(self, a, b, fork):
        return B(max(a.low, b.low), max(a.high, b.high))

    def join(self, cases):
        return B(min(c.low for c in cases), max(c.high for c in cases))

    def finite(self, x):
        return x.finite

    def hull(self, x):
        low, high = (arb(v.numerator) / v.denominator for v in (x.low, x.high))
        return low.union(high) if low != high else low


def array(*entries):
    return reals((len(entries),), [e if isinstance(e, Between) else B(e) for e in entries])


def results(function, *arguments, like=None):
    shapes = like or [np.zeros(x.shape) if x.dtype == object else x for x in arguments]
    closed = Program.of(function, *shapes).closed
    with precision(128):
        (found,) = Scalars(Intervals()).ways(closed, *arguments)
    return found


def result(function, *arguments, **options):
    (found,) = results(function, *arguments, **options)
    return found


def shown(found):
    """Numbers where both ends are one, else the ends."""
    one = lambda v: int(v.low) if v.low == v.high else (v.low, v.high)
    return np.vectorize(one, otypes=[object])(found).tolist()


NUMBERS = np.array([[[3, -1, 4], [1, -5, 9]], [[-2, 6, 5], [3, 5, -8]]])
TABLE = reals(NUMBERS.shape, (B(int(v)) for v in NUMBERS.ravel()))
OPEN = B(-1, 2)


def test_it_is_an_algebra():
    assert isinstance(Intervals(), Algebra)


FOLDS = {lax.reduce_sum_p: np.sum, lax.reduce_prod_p: np.prod, lax.reduce_max_p: np.max,
         lax.reduce_min_p: np.min}  # fmt: skip


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("fold", FOLDS, ids=str)
def test_folds(fold, axes):
    found = result(lambda x: fold.bind(x, axes=axes, out_sharding=None), TABLE)
    assert shown(found) == FOLDS[fold](NUMBERS, axis=axes).tolist()


@pytest.mark.parametrize(("fold", "value"), [(lax.reduce_sum_p, 0), (lax.reduce_prod_p, 1)])
def test_folds_of_nothing(fold, value):
    nothing = reals((2, 0), ())
    assert (
        shown(result(lambda x: fold.bind(x, axes=(1,), out_sharding=None), nothing)) == [value] * 2
    )
    with pytest.raises(NotSupported, match="primitive='reduce_max' needs at least one number"):
        result(lambda x: lax.reduce_max_p.bind(x, axes=(1,), out_sharding=None), nothing)
    with pytest.raises(NotSupported, match="primitive='reduce_min' needs at least one number"):
        result(lambda x: lax.reduce_min_p.bind(x, axes=(1,), out_sharding=None), nothing)


RUNNING = {lax.cumsum: np.cumsum, lax.cumprod: np.cumprod, lax.cummax: np.maximum.accumulate,
           lax.cummin: np.minimum.accumulate}  # fmt: skip


@pytest.mark.parametrize("fold", RUNNING, ids=lambda f: f.__name__)
def test_running_folds(fold):
    for axis in (0, 1, 2):
        found = result(lambda x, axis=axis: fold(x, axis), TABLE)
        assert shown(found) == RUNNING[fold](NUMBERS, axis=axis).tolist()
        found = result(lambda x, axis=axis: fold(x, axis, reverse=True), TABLE)
        back = np.flip(RUNNING[fold](np.flip(NUMBERS, axis), axis=axis), axis)
        assert shown(found) == back.tolist()
    assert shown(TABLE) == NUMBERS.tolist()  # it is not written over


def test_products():
    a, b = NUMBERS[0], NUMBERS[1].T
    found = result(lambda x, y: x @ y, TABLE[0], TABLE[1].T)
    assert shown(found) == (a @ b).tolist()
    batch = lambda x, y: lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,))))
    assert (
        shown(result(batch, TABLE, TABLE)) == np.einsum("bik,bjk->bij", NUMBERS, NUMBERS).tolist()
    )
    assert shown(result(lambda x: x @ jnp.array([1.0, 2.0, 0.0]), TABLE[0])) == [1, -9]
    nothing = result(lambda x, y: x @ y, reals((2, 0), ()), reals((0, 1), ()))
    assert shown(nothing) == [[0], [0]]


BINARY = {
    "add": (lax.add, 13), "sub": (lax.sub, 7), "mul": (lax.mul, 30),
    "div": (lax.div, Fraction(10, 3)),
    "max": (lax.max, 10), "min": (lax.min, 3), "pow": (lax.pow, 1000), "atan2": (lax.atan2, 10003),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_two_entries(name):
    act, value = BINARY[name]
    (found,) = result(act, array(10), array(3))
    assert found == B(value)
    (found,) = result(lambda x: act(x, 3.0), array(10))
    assert found == B(value)
    (found,) = result(lambda x: act(10.0, x), array(3))
    assert found == B(value)


def test_extrema_of_intervals():
    most, least = results(lambda x, y: (lax.max(x, y), lax.min(x, y)), array(OPEN), array(1))
    assert shown(most) == [(1, 2)] and shown(least) == [(-1, 1)]
    assert shown(result(jnp.abs, array(B(-3), B(2), B(-3, -1)))) == [3, 2, (1, 3)]
    clamp = lambda x: lax.clamp(0.0, x, 1.0)
    found = result(clamp, array(-4, 9, OPEN))
    assert shown(found) == [0, 1, (0, 1)]


def test_one_entry():
    assert shown(result(jnp.sin, array(1, OPEN))) == [101, (99, 102)]
    assert shown(result(lambda x: lax.integer_pow(x, 3), array(-2, B(1, 2)))) == [-8, (1, 8)]
    assert as_flags(result(lax.is_finite, array(1, B(1, 1, 2), B(1, 1, 0)))).tolist() == [1, 2, 0]


COMPARED = {
    lax.lt: (1, 0, 0, 2), lax.le: (1, 1, 0, 2), lax.gt: (0, 0, 1, 2), lax.ge: (0, 1, 1, 2),
    lax.eq: (0, 1, 0, 2), lax.ne: (1, 0, 1, 2),
}  # fmt: skip


@pytest.mark.parametrize("act", COMPARED, ids=lambda f: f.__name__)
def test_comparisons(act):
    x = array(0, 1, 2, OPEN)
    assert as_flags(result(lambda x: act(x, 1.0), x)).tolist() == [*COMPARED[act]]
    back = {lax.lt: lax.gt, lax.le: lax.ge, lax.gt: lax.lt, lax.ge: lax.le}.get(act, act)
    assert as_flags(result(lambda x: back(1.0, x), x)).tolist() == [*COMPARED[act]]
    same = int(act in (lax.le, lax.ge, lax.eq))
    alone = result(lambda x: act(x, x), array(0, OPEN, B(0, 0, 2), B(0, 0, 0)))
    assert as_flags(alone).tolist() == [same, same, 2, 2]


def test_choices():
    pick = lambda w, x, y: lax.select_n(w > 0, x, y)
    found = result(pick, array(-1, 1, OPEN), array(1, 2, 3), array(4, 5, 6))
    assert shown(found) == [1, 5, (3, 6)]
    found = result(
        lambda x, w: lax.select_n(w, x, x + 1, x + 2), array(1, 2, 3), np.array([2, 0, 1])
    )
    assert shown(found) == [3, 2, 4]
    found = result(lambda x, w: lax.select_n(w, x, 2 * x), array(1, 2), np.array(True))
    assert shown(found) == [2, 4]
    found = result(lambda x, w: lax.select_n(w, x, jnp.array([7.0, 8.0])), array(1, OPEN),
                   np.array([True, False]))  # fmt: skip
    assert shown(found) == [7, (-1, 2)]


def test_conversions():
    to = lambda dtype: lambda x: lax.convert_element_type(x, dtype)
    found = result(to(np.int32), array(Fraction(5, 2), Fraction(-5, 2)))
    assert found.tolist() == [2, -2] and found.dtype == np.int32
    found = results(lambda x, n: (to(float)(n) + x, to(float)(n)), array(1, 2), np.array([5, 6]))
    assert shown(found[0]) == [6, 8] and shown(found[1]) == [5, 6]
    with pytest.raises(NotSupported, match=r"floats narrower|rounds"):
        result(to(np.float32), array(1))
    assert as_flags(result(to(bool), array(0, 3, OPEN))).tolist() == [0, 1, 2]


def test_a_conversion_to_the_same_floats_changes_nothing():
    same = lambda x: lax.convert_element_type_p.bind(
        x, new_dtype=np.dtype(float), weak_type=False, sharding=None
    )
    assert shown(result(same, array(1, OPEN))) == [1, (-1, 2)]
    assert shown(result(lambda x: (x > 0).astype(float), array(1, -1))) == [1, 0]


def test_steps():
    x = array(Fraction(5, 4), Fraction(-5, 4), B(Fraction(9, 8), Fraction(5, 4)))
    assert shown(result(jnp.floor, x)) == [1, -2, 1] and shown(result(jnp.ceil, x)) == [2, -1, 2]
    assert shown(result(jnp.sign, x)) == [1, -1, 1]
    assert shown(result(lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), x)) == [
        1,
        -1,
        1,
    ]
    assert result(jnp.argmax, array(1, 5, 3)) == 1 and result(jnp.argmin, array(3, 5, OPEN)) == 2
    for act in (jnp.floor, jnp.ceil, jnp.sign):
        with pytest.raises(Undecided, match="on either side of a jump"):
            result(act, array(1, OPEN))


def test_sorting():
    assert shown(result(lax.sort, array(3, -1, 2, 5, 0))) == [-1, 0, 2, 3, 5]
    assert shown(result(lax.sort, array(B(0, 3), B(1, 2), -1))) == [-1, (0, 2), (1, 3)]
    for axis in (0, 1, 2):
        found = result(lambda x, axis=axis: lax.sort(x, axis), TABLE)
        assert shown(found) == np.sort(NUMBERS, axis=axis).tolist()
    assert shown(TABLE) == NUMBERS.tolist()
    with pytest.raises(NotSupported, match="arrays together has no rule"):
        results(lambda x, y: lax.sort((x, y)), array(1, 2), array(3, 4))


def test_what_has_no_rule_is_refused():
    with pytest.raises(NotSupported, match="arithmetic has no rule"):
        result(lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"), array(1, 2))
    with pytest.raises(NotSupported, match="arithmetic has no rule for primitive='lt_to'"):
        result(lax.lt_to_p.bind, array(1), array(2))
    with pytest.raises(NotSupported, match="primitive='div': by zero"):
        result(lambda x: 1 / x, array(OPEN))
    with pytest.raises(NotSupported, match="floats narrower"):
        result(lambda x: x + np.float32(1), array(1), like=[np.zeros(1, np.float32)])


def test_data_are_moved_and_numbers_of_the_program_are_lifted():
    assert shown(result(lambda x: x[::-1, 1].T, TABLE)) == NUMBERS[::-1, 1].T.tolist()
    found = result(lambda x: lax.concatenate([x, jnp.array([7.0])], 0), array(OPEN))
    assert shown(found) == [(-1, 2), 7]
    found = result(lambda x: lax.pad(x, 7.0, ((1, 0, 0),)), array(1))
    assert shown(found) == [7, 1]
    found = result(lambda x: x[jnp.array([1, 0])], array(1, 2))
    assert shown(found) == [2, 1]
    assert shown(result(lambda x: x + jnp.arange(2.0), array(1, 2))) == [1, 3]


def test_programs_inside_of_programs():
    found = result(lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, x), array(1, 2))
    assert shown(found) == [4, 8]
    solve = lambda x: lax.custom_linear_solve(
        lambda v: v * 2, x, lambda _, v: v / 2, symmetric=True
    )
    assert shown(result(solve, array(4, 6))) == [2, 3]


def test_the_smaller_and_the_zero():
    run = Scalars(Intervals())
    assert run.smaller(B(1, 4), B(2, 3)) == B(1, 3) and run.larger(B(1, 4), B(2, 3)) == B(2, 4)
    assert run.zero == B(0) and run.add(B(1), B(2)) == B(3) and run.mul(B(2), B(3)) == B(6)
    known = np.array([1, 2])
    assert run.lifted(known) is known
    assert run.lifted(reals((2,), [arb(3), B(1, 2)])).tolist() == [B(3), B(1, 2)]
