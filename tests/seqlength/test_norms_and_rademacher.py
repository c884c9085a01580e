"""Norms in both orientations and Rademacher complexities, against loops written here."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.numerics.norms import induced_norm
from jaxbounds.seqlength import norms
from jaxbounds.seqlength.generalization import deviation, generalization_gap
from jaxbounds.seqlength.rademacher import (
    empirical_rademacher,
    linear_support,
    massart_linear,
    rademacher_monte_carlo,
    sign_vectors,
    support_rademacher,
    with_negation,
)


def test_both_orientations_on_a_rectangular_matrix():
    W = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    # Column l_2 norms sqrt 17, sqrt 29, sqrt 45; row l_2 norms sqrt 14, sqrt 77.
    columns = math.sqrt(17) + math.sqrt(29) + math.sqrt(45)
    rows = math.sqrt(14) + math.sqrt(77)

    @jax.jit
    def asked(W):
        both = norms.column_norm, norms.row_norm
        of = lambda q, p: jnp.stack([norm(W, q, p) for norm in both])
        return of(2, 1), of(1, math.inf), norms.literal_norm(W, 2)

    with enable_x64(True):
        sums, most, literal = map(np.asarray, asked(W))
    np.testing.assert_allclose(sums, [columns, rows], rtol=1e-14)
    # Sums of small whole numbers are exact in any order.
    assert most.tolist() == [9.0, 15.0]
    # The literal reading of Section 2.1 (erratum E14) differs.
    np.testing.assert_allclose(literal, math.sqrt(17 + 29 + 45), rtol=1e-14)


@pytest.mark.parametrize("q, p", [(1, 3), (4, math.inf), (2, 2), (math.inf, 1.5)])
def test_operator_norm_search_stays_below_and_reaches_the_closed_form(q, p, key):
    with enable_x64(True):
        W = jax.random.normal(key, (4, 3))
        exact = float(induced_norm(W, float(q), float(p)))
        found = float(norms.operator_norm_lower(jax.random.key(1), W, q, p))
    assert found <= exact * (1 + 1e-12)
    assert found >= exact * (1 - 1e-6)


def test_operator_norm_search_refuses_a_quasi_norm():
    with pytest.raises(ValueError, match="at least 1"):
        norms.operator_norm_lower(jax.random.key(0), jnp.ones((2, 2)), 0.5, 2)


def test_projection_lands_on_the_ball_and_is_nearest(key):
    measure = lambda W: np.abs(W).sum()
    with enable_x64(True):
        W = 3.0 * jax.random.normal(key, (3, 4))
        P = np.asarray(norms.project_entries_l1(W, 1.5))
        again = np.asarray(norms.project_entries_l1(jnp.asarray(P), 1.5))
    np.testing.assert_allclose(measure(P), 1.5, rtol=1e-12)
    np.testing.assert_allclose(again, P, atol=1e-12)
    # P is nearest in a convex ball iff (W - P).(Y - P) <= 0 for every Y in it.
    rng = np.random.default_rng(0)
    for _ in range(50):
        Y = rng.normal(size=P.shape)
        Y *= 1.5 / measure(Y)
        assert np.sum((np.asarray(W) - P) * (Y - P)) <= 1e-10


def test_enumeration_against_python_loops(key):
    with enable_x64(True):
        values = jax.random.normal(key, (5, 6))
        exact = float(empirical_rademacher(values))
    table = np.asarray(values)
    total = 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=6):
        total += max(sum(s * v for s, v in zip(signs, row)) for row in table)
    assert exact == pytest.approx(total / 2**6 / 6, rel=1e-12)


def test_monte_carlo_brackets_the_enumeration(key):
    X = jax.random.normal(key, (8, 3))

    @jax.jit
    def both(X, draws_key):
        support = linear_support(X, 1.0)
        drawn = rademacher_monte_carlo(draws_key, support, 8, draws=4000)
        return support_rademacher(support, 8), drawn

    exact, found = both(X, jax.random.key(3))
    assert abs(float(found.mean - exact)) < 5 * float(found.standard_error)


def test_linear_class_against_its_vertices(key):
    with enable_x64(True):
        X = jax.random.normal(key, (7, 3))
        by_support = float(jax.jit(lambda X: support_rademacher(linear_support(X, 2.0), 7))(X))
        # The l_1 ball is the hull of its vertices +-2 e_j: a finite class.
        vertices = with_negation(2.0 * X.T)
        assert by_support == pytest.approx(float(empirical_rademacher(vertices)), rel=1e-12)
        assert by_support <= float(massart_linear(X, 2.0))
        # 3 max(5, sqrt 8) sqrt(2 ln 4) / 2, by hand.
        square = jnp.array([[3.0, 2.0], [4.0, 2.0]])
        assert float(massart_linear(square, 3.0)) == pytest.approx(12.488319, abs=1e-6)


@pytest.mark.parametrize("m", [0, 19])
def test_enumeration_refuses_impossible_sizes(m):
    with pytest.raises(ValueError, match="1 <= m <= 18"):
        sign_vectors(m)


def test_sharp_tail_is_smaller_for_every_delta():
    for delta in np.linspace(1e-6, 0.999, 50):
        assert deviation(1.0, 100, delta) < deviation(1.0, 100, delta, sharp=False)
    # 2 * .05 + 3 sqrt(2 ln 60 / 1000) and 2 * .5 * .05 + 2 * 4 sqrt(2 ln 80 / 1000), by hand.
    value = generalization_gap(0.05, c=1.0, m=1000, delta=0.05)
    assert float(value) == pytest.approx(0.371474, abs=1e-6)
    value = generalization_gap(0.05, c=2.0, m=1000, delta=0.05, lipschitz=0.5, sharp=False)
    assert float(value) == pytest.approx(0.798932, abs=1e-6)


@pytest.mark.parametrize("m, delta", [(0, 0.1), (5, 0.0), (5, 1.0), (5, math.nan)])
def test_tails_refuse_bad_input(m, delta):
    with pytest.raises(ValueError):
        deviation(1.0, m, delta)


@pytest.mark.slow_cases("tanh-1.0")
@pytest.mark.parametrize("activation, lipschitz", [(jax.nn.relu, 1.0), (jnp.tanh, 1.0)])
def test_contraction_and_sign_removal_on_random_classes(activation, lipschitz, key):
    with enable_x64(True):
        drawn = jax.random.normal(key, (20, 4, 5))
        values = jnp.concatenate([jnp.zeros((20, 1, 5)), drawn], axis=1)
        rad = jax.jit(jax.vmap(empirical_rademacher))
        plain = rad(values)
        assert (rad(activation(values)) <= lipschitz * plain + 1e-12).all()
        assert (rad(jax.vmap(with_negation)(values)) <= 2 * plain + 1e-12).all()
