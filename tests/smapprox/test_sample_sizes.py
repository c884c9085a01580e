"""Calculators and finite classes; the oracles are enumeration and hand-written sums."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.smapprox import finite_classes as finite
from jaxbounds.smapprox import sample_complexity as samples
from jaxbounds.smapprox.statements import PAPER


def test_sample_complexity_scales_as_stated():
    n = samples.sample_complexity(30.0, 1000, 0.01, 0.1)
    assert n == pytest.approx((30**2 * math.log(1000) / 0.01**2 + 1) / 0.01)
    assert samples.sample_complexity(90.0, 1000, 0.03, 0.1) == pytest.approx(n)
    assert samples.sample_complexity(30.0, 1000, 0.01, 0.05) == pytest.approx(4 * n)
    assert samples.sample_complexity(30.0, 1000, 0.02, 0.1) < n
    assert samples.sample_complexity(30.0, 10**6, 0.01, 0.1) == pytest.approx(2 * n, rel=1e-6)
    assert samples.sample_complexity(30.0, 1000, 0.01, 0.1, log_power=2.0) > n


def test_values_by_hand():
    # 4 log 8 / (1/8)^2 = 532.3; 2 (2 log 10) sqrt(log 8) / 5; 4 log 8 / (1/2)^2 = 33.271.
    assert samples.log_covering_number(2.0, 8, 0.5, 0.25) == 532.0
    assert samples.log_covering_number(2.0, 8, 0.5, 0.25, constant=3.0) == 1596.0
    assert samples.rademacher_bound(2.0, 8, 0.5, 100.0) == pytest.approx(2.6563116902270467)
    assert samples.sample_complexity(2.0, 8, 0.5, 0.25) == pytest.approx(548.337034670038)
    with_log = samples.sample_complexity(2.0, 8, 0.5, 0.25, log_power=1.0)
    assert with_log == pytest.approx(3442.0633532054326)
    assert samples.vc_sample_complexity(1000, 5, 0.1) == pytest.approx(3453877.639491068)
    by_norms = samples.norm_product_sample_complexity([2.0, 3.0, 4.0], 0.1)
    assert by_norms == pytest.approx(2 * math.log(24) + 2 * math.log(10))
    assert finite.massart_bound(6, 50) == pytest.approx(0.267713345)


def test_solving_for_n_inverts_the_rademacher_bound():
    n = samples.solve_sample_complexity(5.0, 1000, 0.1, 0.05)
    assert samples.rademacher_bound(5.0, 1000, 0.1, n) == pytest.approx(0.05, rel=1e-9)
    assert samples.solve_sample_complexity(50.0, 1000, 1.0, 0.05) == pytest.approx(n)
    assert samples.solve_sample_complexity(1e-6, 1000, 0.1, 0.05) == pytest.approx(math.e**2)
    assert samples.log_covering_number(1.0, 3, 0.5, 0.4) == math.floor(math.log(3) / 0.04)
    assert samples.log_covering_number(0.1, 3, 1.0, 0.4) == 0


def test_generalization_bound_is_scale_free(x64):
    margins = jnp.array([0.1, 0.2, 0.4])
    bound = samples.margin_generalization_bound(3.0, 50, margins)
    by_hand = 3 * math.sqrt(math.log(50) / 3) * math.sqrt((100 + 25 + 6.25) / 3)
    by_hand += (math.log(100) + math.log(3)) / math.sqrt(3)
    assert bound == pytest.approx(by_hand)
    assert samples.margin_generalization_bound(6.0, 50, 2 * margins) == pytest.approx(by_hand)
    assert samples.margin_generalization_bound(3.0, 50, margins / 2) > bound


def test_alternatives_and_messages():
    assert samples.vc_sample_complexity(1000, 5, 0.1) > samples.vc_sample_complexity(1000, 4, 0.1)
    assert samples.norm_product_sample_complexity([2.0] * 4, 0.1) == pytest.approx(
        math.log(16**2 / 0.01)
    )
    with pytest.raises(ValueError, match=r"gamma=0\.0, expected positive numbers\. Try 1"):
        samples.sample_complexity(1.0, 10, 0.0, 0.1)


LOSSES = np.random.default_rng(0).uniform(size=(5, 3))
POINTS = np.array([0.5, 0.3, 0.2])


def test_classical_error(x64):
    want = min(sum(p * l for p, l in zip(POINTS, row)) for row in LOSSES)
    assert finite.classical_error(jnp.asarray(LOSSES), jnp.asarray(POINTS)) == pytest.approx(want)


def test_empirical_rademacher_by_enumeration(x64):
    sample = np.array([0, 2, 2, 1])
    total = 0.0
    for signs in itertools.product((-1, 1), repeat=4):
        total += max(sum(s * row[i] for s, i in zip(signs, sample)) for row in LOSSES) / 4
    got = finite.empirical_rademacher(jnp.asarray(LOSSES), jnp.asarray(sample))
    assert got == pytest.approx(total / 16)
    with pytest.raises(ValueError, match=r"n=17 gives 2\^17 signs, expected n <= 16 to"):
        finite.empirical_rademacher(jnp.asarray(LOSSES), jnp.zeros(17, int))


def test_exact_rademacher_averages_over_all_samples(x64):
    total = 0.0
    for sample in itertools.product(range(3), repeat=3):
        weight = np.prod(POINTS[list(sample)])
        total += weight * float(
            finite.empirical_rademacher(jnp.asarray(LOSSES), jnp.asarray(sample))
        )
    assert finite.exact_rademacher(LOSSES, POINTS, 3) == pytest.approx(total)
    with pytest.raises(ValueError, match=r"n=8 and X=30 give 17\^30 sums of signs,"):
        finite.exact_rademacher(np.ones((2, 30)), np.ones(30) / 30, 8)


def test_exact_rademacher_by_counting_signs_at_two_points():
    # By hand, without the walk's Fourier transform: (k, l) signs +-1 at two points, of n = 12.
    n, mass, losses = 12, (0.35, 0.65), ((0.0, 1.0), (0.7, 0.2), (1.0, 0.0))
    total = 0.0
    for at_first in range(n + 1):
        for k, l in itertools.product(range(at_first + 1), range(n - at_first + 1)):
            rest = n - at_first
            ways = math.comb(n, at_first) * math.comb(at_first, k) * math.comb(rest, l) / 2**n
            sums = 2 * k - at_first, 2 * l - rest
            largest = max(row[0] * sums[0] + row[1] * sums[1] for row in losses)
            total += ways * mass[0] ** at_first * mass[1] ** rest * largest / n
    assert finite.exact_rademacher(np.array(losses), np.array(mass), n) == pytest.approx(total)


def test_what_is_measured_of_a1_and_proposition_23_can_fail(x64):
    # Below what any sample and any model give, or the verdicts would say nothing.
    deviation, minimiser = (
        next(s for s in PAPER.statements if s.id == f"smapprox.{name}")
        for name in ("eqa.1", "prop2.3")
    )
    for statement, largest in ((deviation, 0.8), (minimiser, 0.65)):
        for size in statement.sizes:

            @jax.jit
            def asked(key, statement=statement, size=size):
                sides = statement.evaluate(statement.sample["sample"](key, size), size)
                return sides.trivial, sides.rhs["printed"]

            trivial, printed = map(float, asked(jax.random.key(0)))
            assert trivial == pytest.approx(largest) and printed < 0.98 * largest


def test_erm_keeps_its_promise_as_often_as_it_should(x64, key):
    losses, points = jnp.asarray(LOSSES), jnp.asarray(POINTS)
    n, delta = 10, 0.2
    rademacher = finite.exact_rademacher(LOSSES, POINTS, n)
    best = float(finite.classical_error(losses, points))
    bound = finite.erm_bound(best, rademacher, n, delta)
    run = jax.jit(
        jax.vmap(lambda k: finite.erm_risk(losses, losses, points, finite.draw(k, points, n)))
    )
    risks = np.asarray(run(jax.random.split(key, 500)))
    assert (risks <= bound).mean() >= 1 - delta
    assert risks.min() >= best - 1e-12
    sharper = finite.uniform_deviation_bound_sharpened(rademacher, n, delta)
    assert sharper < finite.uniform_deviation_bound(rademacher, n, delta)


def test_erm_picks_the_least_empirical_loss(x64):
    sample = jnp.array([1, 1, 0])
    means = LOSSES[:, [1, 1, 0]].mean(axis=1)
    assert finite.empirical_risk_minimiser(jnp.asarray(LOSSES), sample) == means.argmin()


def test_points_are_drawn_by_their_law(x64):
    # The oracle is NumPy's search in the distribution function, at the same uniform numbers.
    weights = np.array([0.0, 3.0, 0.0, 5.0, 2.0, 0.0])
    key = jax.random.key(3)
    found = np.asarray(finite.draw(key, jnp.asarray(weights), 4000))
    uniform = np.asarray(jax.random.uniform(key, (4000, 1))).ravel()
    assert found.tolist() == np.searchsorted(np.cumsum(weights), 10 * uniform, "right").tolist()
    often = np.bincount(found, minlength=6)
    assert often[[0, 2, 5]].tolist() == [0, 0, 0]
    assert np.abs(often / 4000 - weights / 10).max() < 5 * 0.5 / math.sqrt(4000)
