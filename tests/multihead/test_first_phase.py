"""How often the first phase misses its levels, against exact distributions of sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

from jaxbounds.falsification import float64_on_cpu, measure
from jaxbounds.multihead.first_phase import deviation_bound_sharp, margin_loss_sharp
from jaxbounds.multihead.oracle import Assumption3
from jaxbounds.multihead.statements.first_step import LEMMA_2, LEMMA_17
from jaxbounds.multihead.statements.separability import LEMMA_14


def _measured(statement, size, sampler, draws):
    """The instances that a sampler gives at a size, and what is measured on them, by form."""
    with float64_on_cpu():
        keys = jax.random.split(jax.random.key(0), draws)
        drawn = jax.jit(jax.vmap(lambda key: sampler(key, size)))(keys)
        found = jax.jit(jax.vmap(measure(statement, size)))(drawn)
        drawn, found = jax.tree.map(np.asarray, (drawn, found))
    names = [form.name for form in statement.forms]
    return drawn, {name: found.column(i) for i, name in enumerate(names)}


def test_the_sharp_levels_by_hand(x64):
    dm1 = Assumption3(S=2.0, zeta=0.5, Z_mu=0.0, Z_nu=0.0, Z=0.0, T=4, M=1)
    # 1/4 of T (1 - zeta) zeta zeta S^4 / sqrt(4), times sqrt(2 log(e^6) / (3 * 4)) = 1.
    assert float(margin_loss_sharp(dm1, np.exp(-6.0), 4)) == pytest.approx(1.0, rel=1e-12)
    # 3 sqrt(2 / (2 * 16)): log(2 / delta) = 2.
    assert float(deviation_bound_sharp(3.0, 16, 2 * np.exp(-2.0))) == pytest.approx(0.75, rel=1e-12)


def test_pinelis_covers_every_sum_of_signs(x64):
    # Oracle: exact binomial tails. On one line, signs times R are such vectors.
    deltas = np.geomspace(1e-3, 0.99, 200)
    worst = 0.0
    for n in range(1, 41):
        long = 2 * n * np.asarray(deviation_bound_sharp(1.0, n, jnp.asarray(deltas)))
        least = np.floor((n + long) / 2) + 1  # so many +1 make a sum beyond `long`
        worst = max(worst, np.max(2 * scipy.stats.binom.sf(least - 1, n, 0.5) / deltas))
    assert 0.6 < worst <= 1


def test_lemma_17_fails_as_often_as_a_sum_of_signs():
    # Without noise and with one distractor, p is a fixed vector times the sum of the labels: the
    # frequency is a binomial tail, and each ||p|| a product of three numbers.
    size = LEMMA_17.sizes[1]
    n, T = size["n"], size["T"]
    drawn, found = _measured(LEMMA_17, size, LEMMA_17.samplers["sample"], 1000)
    m = found["sharpened S15"]
    sums, S = np.abs(np.sum(drawn["y"], axis=1)), drawn["S"]
    length = np.sqrt(1 / (2 * T**2) + (1 - 1 / T) ** 2)
    np.testing.assert_allclose(m.lhs, S * length * sums / (2 * n), rtol=1e-9, atol=1e-12)
    failures = int(np.sum(m.value > 1))
    # length * sum > sqrt(2 * 30 * log 20) = 13.4 from sums of 14 on: 22 labels alike, or more.
    exact = 2 * scipy.stats.binom.sf(21, n, 0.5)
    assert failures > 10 and exact < 0.1 / 5
    assert scipy.stats.binomtest(failures, 1000, exact).pvalue > 1e-3


def test_lemma_14_fails_as_often_as_a_sum_of_uniforms():
    # Oracle: Irwin and Hall's distribution, on 4 u = sum |alpha_h| below one: (4 u)^4 / 4!.
    (size,) = (size for size in LEMMA_14.sizes if size["H"] == 4)
    drawn, found = _measured(LEMMA_14, size, LEMMA_14.samplers["no noise"], 2000)
    lowest = 0.5 - np.sqrt(np.log(10) / (6 * 4))
    below = np.mean(np.abs(drawn["alpha"]), axis=1) < lowest
    np.testing.assert_array_equal(found["sharpened S16"].value > 1 + 1e-9, below)
    assert np.sum(below) > 10
    exact = (4 * lowest) ** 4 / 24
    assert scipy.stats.binomtest(int(np.sum(below)), 2000, exact).pvalue > 1e-3


def test_lemma_2_over_all_data_sets_is_the_variance_of_one_sequence():
    # By hand at S = 1: y xbar / 2 - (mu_+ - mu_-) / 8 has the entries 1/8, 1/8, 1/4, 0 and +-.025
    # beside each, so the square of its norm is .09625 on average; the printed centre is sqrt(2) / 8
    # further off. Data sets are drawn nowhere: means of n independent vectors of mean zero.
    for size in LEMMA_2.sizes:
        with float64_on_cpu():
            case = jax.tree.map(lambda leaf: leaf[0], LEMMA_2.cases(size))
            m = measure(LEMMA_2, size)(case)
        variance = 0.09625 / size["n"]
        lhs = [np.sqrt(variance + 1 / 32), *[np.sqrt(variance)] * 2]
        np.testing.assert_allclose(np.asarray(m.lhs), lhs, rtol=1e-9)
        np.testing.assert_allclose(np.asarray(m.rhs)[:2], size["n"] ** -0.5)
