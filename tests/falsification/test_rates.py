"""What is said of an exponent: borders of the band, of what settles, and of the last step.

Right sides are powers of two or four, so that a change per doubling is worked out by hand.
"""

import math

import numpy as np
import pytest
from stubs import measured

from jaxbounds.claims.statements import Form
from jaxbounds.falsification.rates import _decays, by_size, judged_rate

LOG2 = math.log(2)


def test_a_size_is_one_geometric_mean():
    m = measured(0, lhs=[2.0, 8.0, 3.0, 27.0], rhs=[1.0, 4.0, 9.0, 1.0])
    x, q = by_size(m, np.array([1, 1, 0, 0]))
    np.testing.assert_allclose(x, [math.log(3), LOG2])
    np.testing.assert_allclose(q, [math.log(3), LOG2])


def _changing(factors, per=2.0, first=0.1):
    """log(lhs / rhs) at right sides that grow `per`-fold, changing by these factors per step."""
    changes = first * np.cumprod([1.0, *factors])
    return math.log(per) * np.arange(len(changes) + 1), np.append(0.0, np.cumsum(changes))


@pytest.mark.parametrize("factors, ends", [
    ([0.59, 0.59], True), ([0.61, 0.59], False), ([0.59, 0.61], False),
    ([0.61, 0.61], False),  # not three of them yet
    ([0.99, 0.59, 0.59], True),  # what was before the last two is of no weight
    # Slowly: three factors of at most .9, the last at most the one before and the first of them.
    ([0.89, 0.89, 0.89], True), ([0.91, 0.89, 0.89], False), ([0.89, 0.91, 0.89], False),
    ([0.89, 0.89, 0.91], False), ([0.8, 0.7, 0.65], True), ([0.65, 0.7, 0.69], False),
    ([0.7, 0.8, 0.7 * 1.0009], True), ([0.7, 0.8, 0.7 * 1.0011], False),
    ([0.8, 0.65, 0.7], False), ([0.99, 0.8, 0.7, 0.65], True), ([0.2, 0.8, 0.7, 0.65], True),
    ([0.8, 0.7, 0.7 * 1.0009], True), ([0.8, 0.7, 0.7 * 1.0011], False),
])  # fmt: skip
@pytest.mark.parametrize("per", [2.0, 4.0, 0.5])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_change_that_falls_fast_enough_per_doubling_ends(factors, ends, per, sign):
    doublings = abs(math.log2(per))
    x, q = _changing([factor**doublings for factor in factors], per)
    assert _decays(x, sign * q) == ends


N = 2.0 ** np.arange(2, 9)


def _rate(lhs, sense="exactly", rhs=N, **form):
    m = measured(0, lhs=lhs, rhs=rhs)
    return judged_rate(Form(name="printed", sense=sense, **form), sense, m, np.arange(len(N)))


def _noisy(slope, half):
    """A power of N whose 99% interval has that half-width: noise 1, -1, 0, .. without a slope."""
    x = np.log(N) - np.mean(np.log(N))
    shape = np.array([1.0, -1.0, -1.0, 0.0, 1.0, 1.0, -1.0]) * 1.0
    shape -= np.mean(shape) + x * (shape @ x) / (x @ x)
    student = 4.032142983557536  # the two-sided 99% point with five degrees of freedom
    width = student * math.sqrt((shape @ shape) / 5 / (x @ x))
    return np.exp(slope * np.log(N) + shape * half / width)


@pytest.mark.parametrize("sense, slope, half, word", [
    ("at most", 1.2, 0.21, "consistent"), ("at most", 1.2, 0.19, "inconsistent"),
    ("at most", 0.8, 0.1, "consistent"), ("at least", 1.2, 0.1, "consistent"),
    ("at least", 0.8, 0.21, "consistent"), ("at least", 0.8, 0.19, "inconsistent"),
    ("exactly", 1.2, 0.21, "consistent"), ("exactly", 0.8, 0.21, "consistent"),
    ("exactly", 1.2, 0.19, "inconsistent"), ("exactly", 0.8, 0.19, "inconsistent"),
])  # fmt: skip
def test_an_interval_that_has_one_in_it_agrees(sense, slope, half, word):
    found = _rate(_noisy(slope, half), sense)
    assert found.exponent == pytest.approx(slope)
    # Noise also moves the last step, so that larger sizes might tell.
    assert (found.status == "consistent") == (word == "consistent")
    assert f"99% interval {slope - half:.3f} to {slope + half:.3f}" in found.reason


@pytest.mark.parametrize("slope, word", [
    (1.0, "consistent"), (0.76, "consistent"), (0.74, "inconclusive"), (1.24, "inconsistent"),
    (1.26, "inconclusive"),
])  # fmt: skip
def test_outside_its_band_an_exponent_is_no_news_of_the_claim(slope, word):
    found = _rate(N**slope, "at most", exponent=(0.75, 1.25))
    assert found.status == word and found.exponent == pytest.approx(slope)
    assert ("outside its band" in found.reason) == (word == "inconclusive")
    # The control has no band.
    m = measured(0, lhs=N**slope, rhs=N)
    assert judged_rate(None, "at least", m, np.arange(7)).status == (
        "consistent" if slope >= 1 else "inconsistent"
    )


@pytest.mark.parametrize("lhs, rhs, wrong", [
    (np.append(N[1:], 0.0), N, 1), (N, np.append(-1.0, N[1:]), 1),
    (np.append(N[1:], math.nan), np.append(0.0, N[1:]), 2),
    (np.append(0.0, N[1:]), np.append(0.0, N[1:]), 1),
])  # fmt: skip
def test_sides_that_are_not_positive_have_no_exponent(lhs, rhs, wrong):
    found = _rate(lhs / 1e3, rhs=rhs / 1e3)
    assert found.status == "inconclusive" and math.isnan(found.exponent)
    assert f"({wrong} of 7 instances" in found.reason


def test_lower_order_terms_are_named():
    lhs = 2 * N**2 + 30 * N
    for sense, named in (("exactly", True), ("at least", True), ("at most", False)):
        found = _rate(lhs, sense, rhs=N**2)
        assert found.status == "consistent" and ("lower-order terms" in found.reason) == named


@pytest.mark.parametrize("last, word", [(0.76, "inconsistent"), (0.74, "inconclusive")])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_last_local_exponent_must_not_turn_to_one(last, word, sign):
    # log2 lhs grows by 1 + e at each step but the last, of size z: a fit of seven points gives the
    # step k between points k and k + 1 the weight (k + 1)(6 - k) / 56 (the sum of 1..28's squares).
    weights = np.array([(k + 1) * (6 - k) / 56 for k in range(6)])
    assert np.sum(weights) == pytest.approx(1.0)
    # The exponent's distance from one is e (1 - w) + z w with w = 6/56; z is to be `last` of that.
    w, e = weights[-1], 0.3 * sign
    z = last * e * (1 - w) / (1 - last * w)
    steps = np.append(np.full(5, 1 + e), 1 + z)
    found = _rate(2.0 ** np.append(0.0, np.cumsum(steps)), "at most" if sign > 0 else "at least")
    assert found.exponent - 1 == pytest.approx(e * (1 - w) + z * w)
    assert found.status == word
    if word == "inconclusive":
        assert f"but at the largest sizes it is {1 + z:.3f}" in found.reason
