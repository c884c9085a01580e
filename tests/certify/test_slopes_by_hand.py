"""Slopes of small programs on boxes, each by the rules of school at the ends of the box.

Every interval of slopes here was written down by hand.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.interpreter import precision, traced
from jaxbounds.programs.balls.slopes import Sloped, sloped
from jaxbounds.programs.balls.values import NotSupported, reals


@pytest.fixture(autouse=True)
def arithmetic():
    with float64_on_cpu(), precision(128):
        yield


def between(low, high):
    return arb(low) if low == high else arb((low + high) / 2, (high - low) / 2)


def on(function, *boxes):
    """The result on boxes, each a list of (low, high); the function is of one box's point."""
    count = len(boxes[0])
    closed = traced(jax.vmap(function), jnp.zeros((len(boxes), count)))[0]
    entries = [between(*end) for box in boxes for end in box]
    (found,) = sloped(closed, reals((len(boxes), count), entries))
    return found


def check(ball, ends, loose=1.1):
    """A ball that has both ends and is not much wider; None says that nothing may be known."""
    if ends is None:
        assert ball.is_nan()
        return
    low, high = ends if isinstance(ends, tuple) else (ends, ends)
    assert ball.is_finite() and ball.contains(arb(low)) and ball.contains(arb(high)), (ball, ends)
    assert float(ball.rad()) <= loose * (high - low) / 2 + 1e-9, (ball, ends)


UNIT, WIDE = [(0, 1), (0, 1)], [(-1, 2), (0.5, 1)]
A, B, C = (1, 2), (3, 5), (-1, 1)
KERNEL = np.array([2.0, 3.0])
TABLE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
THREE = np.array([1.0, 10.0, 100.0])
window = lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID")
convolve = lambda x, k: lax.conv_general_dilated(x[None, None], k[None, None], (1,), "VALID")

RULES = {
    # name: (function, box, slopes along both coordinates, a number or interval for each entry)
    "sum": (lambda x: x[0] + 2 * x[1], [A, B], [1], [2]),
    "difference": (lambda x: x[0] - x[1], [A, B], [1], [-1]),
    "product": (lambda x: x[0] * x[1], [A, B], [(3, 5)], [(1, 2)]),
    "of itself": (lambda x: x[0] * x[0], [A, B], [(2, 4)], [0]),
    "nothing": (lambda x: x[0] * 0.0 + x[1], [A, B], [0], [1]),
    "quotient": (lambda x: x[0] / x[1], [A, (2, 4)], [(0.25, 0.5)], [(-0.5, -0.0625)]),
    "over a number": (lambda x: x[0] / 4, [A, B], [0.25], [0]),
    "a number over": (lambda x: 2 / x[0], [A, B], [(-2, -0.5)], [0]),
    "over zero": (lambda x: x[0] / x[1], [A, C], [None], [None]),
    "over zero of another": (lambda x: 1 / x[1], [A, C], [0], [None]),
    "root": (lambda x: jnp.sqrt(x[0]), [(0.25, 0.36), B], [(1 / 1.2, 1.0)], [0]),
    "log gamma": (lambda x: lax.lgamma(x[0]), [(0.5, 0.5 + 2**-20), B],
                  [(-1.96351002, -1.96350600)], [0]),
    "cube": (lambda x: x[0] ** 3, [A, B], [(3, 12)], [0]),
    "cube around zero": (lambda x: x[0] ** 3, [C, B], [(0, 3)], [0]),
    "inverse square": (lambda x: x[0] ** -2, [(1.5, 2), B], [(-2 / 1.5**3, -0.25)], [0]),
    "rational power": (lambda x: x[0] ** 1.5, [(1, 4), B], [(1.5, 3)], [0]),
    "exp": (lambda x: jnp.exp(3 * x[1]), [A, (0, 0)], [0], [3]),
    "dot": (lambda x: TABLE.T @ x, [A, B], [1, 2, 3], [4, 5, 6]),
    "its square": (lambda x: x @ x, [A, B], [(2, 4)], [(6, 10)]),
    "cumulated": (lambda x: jnp.cumsum(x), [A, B], [1, 1], [0, 1]),
    "summed": (lambda x: jnp.sum(x[:, None] * THREE[None, :2], axis=0), [A, B], [1, 10], [1, 10]),
    "stacked": (lambda x: jnp.stack([x[1], 7 * x[0]]), [A, B], [0, 7], [1, 0]),
    "moved": (lambda x: jnp.pad(x[::-1], (1, 0)), [A, B], [0, 0, 1], [0, 1, 0]),
    "windows": (lambda x: window(jnp.concatenate([x, x])), [A, B], [1, 1, 1], [1, 1, 1]),
    "taken": (lambda x: jnp.take(x, jnp.array([1, 5]), mode="fill", fill_value=9.0),
              [A, B], [0, 0], [1, 0]),
    "added at": (lambda x: jnp.zeros(2).at[jnp.array([1, 1])].add(x), [A, B], [0, 1], [0, 1]),
    "convolved": (lambda x: convolve(jnp.concatenate([x, x]), KERNEL)[0, 0],
                  [A, B], [2, 3, 2], [3, 2, 3]),
    "by what varies": (lambda x: convolve(jnp.asarray(THREE), x)[0, 0],
                       [A, B], [1, 10], [10, 100]),
    "product of all": (lambda x: jnp.prod(jnp.concatenate([x, jnp.array([2.0])])),
                       [A, B], [(6, 10)], [(2, 4)]),
    "products of rows": (lambda x: jnp.prod(x[:, None] * TABLE, axis=0), [A, B],
                         [(12, 20), (30, 50), (54, 90)], [(4, 8), (10, 20), (18, 36)]),
    "product with zero": (lambda x: jnp.prod(jnp.stack([x[0], x[1], x[0] * 0])),
                          [A, B], [0], [0]),
    # Kinks.
    "larger decided": (lambda x: jnp.maximum(x[0], 5 * x[1]), [A, B], [0], [5]),
    "larger decided too": (lambda x: jnp.maximum(7 * x[1], x[0]), [A, B], [0], [7]),
    "larger open": (lambda x: jnp.maximum(2 * x[0], x[1]), [A, B], [(0, 2)], [(0, 1)]),
    "smaller decided": (lambda x: jnp.minimum(x[0], 5 * x[1]), [A, B], [1], [0]),
    "smaller open": (lambda x: jnp.minimum(2 * x[0], 3 * x[1]), [A, (0, 1)], [(0, 2)], [(0, 3)]),
    "relu": (lambda x: jnp.maximum(x[0], 0.0), [C, B], [(0, 1)], [0]),
    "absolute": (lambda x: jnp.abs(x), [C, (-5, -3)], [(-1, 1), 0], [0, -1]),
    "largest": (lambda x: jnp.max(jnp.stack([2 * x[0], 3 * x[1], 0 * x[0] - 9])), [A, (1, 2)],
                [(0, 2)], [(0, 3)]),
    "largest at a point": (lambda x: jnp.max(x), [(1, 1), (2, 2)], [0], [1]),
    "two largest at a point": (lambda x: jnp.max(x), [(2, 2), (2, 2)], [(0, 1)], [(0, 1)]),
    "largest decided": (lambda x: jnp.max(jnp.stack([2 * x[0], 3 * x[1], x[0] - 9])), [A, B],
                        [0], [3]),
    "largest by columns": (lambda x: jnp.max(x[:, None] * jnp.array([[1.0, 9.0], [1.0, 1.0]]), 0),
                           [A, B], [0, 9], [1, 0]),
    "least": (lambda x: jnp.min(jnp.stack([2 * x[0], 3 * x[1], x[0] + 9])), [A, (1, 2)],
              [(0, 2)], [(0, 3)]),
    "least decided": (lambda x: jnp.min(jnp.stack([2 * x[0], 3 * x[1], x[0] - 9])), [A, B],
                      [1], [0]),
    "clamped inside": (lambda x: jnp.clip(3 * x[0], 0.0, 10.0), [A, B], [3], [0]),
    "clamped below": (lambda x: lax.clamp(4.0, x[0], 10.0), [A, B], [0], [0]),
    "clamped above": (lambda x: lax.clamp(-9.0, 3 * x[0], 2.0), [A, B], [0], [0]),
    "clamped across": (lambda x: lax.clamp(0.0, 3 * x[0], 10.0), [C, B], [(0, 3)], [0]),
    "clamped across above": (lambda x: lax.clamp(-9.0, 3 * x[0], 2.0), [C, B], [(0, 3)], [0]),
    "clamped by what varies": (lambda x: lax.clamp(x[1], x[0], 9 * x[1]), [A, B], [0], [1]),
    "clamped by it above": (lambda x: lax.clamp(0 * x[1], 9 * x[1], 5 * x[0]), [A, B], [5], [0]),
    "floor": (lambda x: jnp.floor(x), [(0, 2), B], [None, 0], [0, None]),
    "floor of one number": (lambda x: jnp.floor(x), [(1.5, 1.75), (3, 3)], [0, 0], [0, 0]),
    "in single precision": (lambda x: x.astype(jnp.float32), [(0, 2), B],
                            [None, None], [None, None]),
    "stopped": (lambda x: lax.stop_gradient(3 * x[0]), [A, B], [3], [0]),
    "called": (lambda x: jax.jit(lambda v: 3 * v)(x[0]), [A, B], [3], [0]),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_slopes_by_hand(name):
    function, box, *slopes = RULES[name]
    found = on(function, box)
    assert len(found.slopes) == 2
    for j, ends in enumerate(slopes):
        balls = found.slopes[j].ravel()
        assert len(balls) == len(ends) and found.slopes[j].shape == found.shape
        loose = (
            15.0
            if name in ("log gamma", "quotient", "inverse square", "cube", "cube around zero")
            else 1.1
        )
        for ball, end in zip(balls, ends):
            check(ball, end, loose)


# Choices.


@pytest.mark.parametrize("box, slope", [((0.6, 1.0), 3), ((0.0, 0.4), 5), ((0.4, 0.6), None)])
def test_a_choice_of_two(box, slope):
    """3 x above a half and 5 x below: at the half the value jumps."""
    found = on(lambda x: jnp.where(x[0] > 0.5, 3 * x[0], 5 * x[0]), [box])
    check(found.slopes[0].item(), slope)
    for x in box:
        true = 3 * x if x > 0.5 else 5 * x
        assert found.value.item().overlaps(arb(true, 1e-12))


def test_a_choice_of_rows_of_which_some_are_open():
    """One flag chooses two entries; of three boxes one is open."""
    pairs = lambda x: (jnp.stack([3 * x[0], x[1]]), jnp.stack([5 * x[0], 7 * x[1]]))
    choose = lambda x: jnp.where(x[0] > 0.5, *pairs(x))
    found = on(choose, [(0.6, 1), A], [(0.4, 0.6), A], [(0, 0.4), A])
    assert found.shape == (3, 2)
    expected = [[3, 0, 0, 1], [None] * 4, [5, 0, 0, 7]]
    for row, ends in enumerate(expected):
        balls = [found.slopes[j][row, i] for i in range(2) for j in range(2)]
        for ball, end in zip(balls, ends):
            check(ball, end)


def test_a_choice_for_each_entry():
    choose = lambda x: jnp.where(x > 0.5, 3 * x, 5 * x)
    found = on(choose, [(0.6, 1), (0.4, 0.6)], [(0, 0.4), (0.7, 0.8)])
    expected = [[3, None], [5, 3]]
    for row in range(2):
        for i in range(2):
            check(found.slopes[i][row, i], expected[row][i])
            check(found.slopes[1 - i][row, i], 0 if expected[row][i] else None)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_choice_of_three(which):
    cases = lambda x: [k * x + x[::-1] for k in (2.0, 3.0, 5.0)]
    for index in (jnp.int32(which), jnp.array([which, (which + 1) % 3], jnp.int32)):
        found = on(lambda x, i=index: lax.select_n(i, *cases(x)), [A, B])
        rows = np.broadcast_to(np.asarray(index), 2)
        for i, k in enumerate(rows):
            check(found.slopes[i][0, i], (2, 3, 5)[k])
            check(found.slopes[1 - i][0, i], 1)


def test_a_choice_between_constants_jumps():
    """Where it is open nothing is known of its slope; where it is decided it has none."""
    choose = lambda x: jnp.where(x[0] > 0.5, 1.0, 2.0)
    found = on(choose, [(0.4, 0.6)])
    assert isinstance(found, Sloped) and found.slopes[0].item().is_nan()
    added = on(lambda x: choose(x) + x[0], [(0.4, 0.6)])
    check(added.slopes[0].item(), None)
    check(on(lambda x: choose(x) + x[0], [(0.6, 0.7)]).slopes[0].item(), 1)
    both = on(lambda x: choose(x) + x[0], [(0.4, 0.6)], [(0.0, 0.1)])
    check(both.slopes[0][0], None)
    assert not both.slopes[0][1].is_zero()  # of constants chosen together it may say less


def test_a_choice_of_flags_and_of_positions_has_no_slope():
    found = on(lambda x: jnp.where(x[0] > 0.5, x[0] > 0.7, x[0] > 0.2), [(0.8, 0.9)])
    assert not isinstance(found, Sloped) and bool(np.all(found))
    # Whole numbers that are chosen, decided, times what varies.
    found = on(lambda x: jnp.where(x[0] > 0.5, 3, 4) * x[0], [(0.8, 0.9)])
    check(found.slopes[0].item(), 3)


def test_what_has_no_slopes_is_refused():
    for function in (
        lambda x: x[0] ** x[1],
        lambda x: jnp.arctan2(x[0], x[1]),
        lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * 2), (0, x[0]))[1],
        lambda x: x[0] * jnp.argmax(x).astype(float),  # which forks
    ):
        with pytest.raises(NotSupported):
            on(function, [(1, 2), (1, 2)])


def test_what_does_not_depend_on_the_box():
    found = on(lambda x: jnp.exp(x[0]) + jnp.exp(jnp.array(1.0)), [(0, 0), A])
    check(found.slopes[0].item(), 1)
    check(found.slopes[1].item(), 0)
    assert not isinstance(on(lambda x: jnp.array([1.0, 2.0]), [A, B]), Sloped)


def test_an_unknown_value_has_no_slope():
    """log on [-1, 1] is undefined; what it is multiplied with zero is known."""
    found = on(lambda x: jnp.log(x[0]) * x[1], [C, A])
    assert found.slopes[0].item().is_nan() and found.slopes[1].item().is_nan()
    found = on(lambda x: jnp.sqrt(x[0]), [(0, 1), A])
    assert found.slopes[0].item().is_nan() and found.slopes[1].item().is_zero()
    assert on(lambda x: x[1] * float("nan"), [A, B]).slopes[0].item().is_zero()


def test_units():
    """Of x itself along each coordinate of each box."""
    found = on(lambda x: x, [A, B], [C, C])
    for j in range(2):
        for row in range(2):
            for i in range(2):
                assert found.slopes[j][row, i] == int(i == j)
