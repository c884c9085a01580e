"""Entropy integrals, Theorems 4.1 and 4.2 and their steps, against scipy and direct numpy."""

import inspect
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.numerics.chaining import chaining
from jaxbounds.seqlength import dudley, multi_layer, single_layer
from jaxbounds.seqlength.covering_numbers import covering_staircase, sup_distances
from jaxbounds.seqlength.linear_bounds import at_scale, lemma_3_6, lemma_3_6_sharp
from jaxbounds.seqlength.rademacher import empirical_rademacher


def test_entropy_integrals_by_hand():
    # Two functions at distance 1/2, m = 100: 12 (1/2) sqrt(ln 2 / 100) below 4 (1/2).
    steps = covering_staircase(np.array([[0.0, 0.5], [0.5, 0.0]]))
    expected = 0.6 * math.sqrt(math.log(2))
    assert dudley.staircase_dudley(steps, 100, 4.0, near=4.0, far=12.0) == pytest.approx(expected)
    # ln N = 4 up to 1/4 and 0 beyond: 2 sqrt(4 / m) / 4 for the integral up to B, m = 64.
    covering = lambda epsilon: np.where(epsilon <= 0.25, 4.0, 0.0)
    found = dudley.dudley(covering, 64, 1.0, near=1.0, far=1.0, points=4000)
    assert 0.0625 <= found <= 0.0625 * 1.01
    # One scale: delta + sqrt(2 ln N / m) is least just above 1/4, where nothing is left.
    assert 0.25 < dudley.one_scale(covering, 64, 1.0, points=4000) <= 0.2525
    with enable_x64(True):
        # b = sqrt(4 / 100) = 1/5 in [0, 1]: 1/5 + ln 5 / 5; with a = 1/2 it is 1/2 less b ln 2.
        assert float(dudley.inverse_square(4.0, 100, 1.0)) == pytest.approx(0.2 + math.log(5) / 5)
        offset = float(dudley.with_offset(0.5, 0.2, 1.0))
        assert offset == pytest.approx(0.7 + 0.2 * math.log(2.5), rel=1e-12)
        assert float(dudley.best_delta(0.5, 0.2, 1.0)) == pytest.approx(0.4, rel=1e-12)
        assert float(dudley.best_delta(0.5, 0.6, 1.0)) == 1.0


def test_staircase_integral_against_a_fine_grid_and_rad():
    rng = np.random.default_rng(0)
    for _ in range(10):
        values = rng.normal(size=(8, 10))
        B = float(np.abs(values).max())
        steps = covering_staircase(sup_distances(values[:, :, None], 2.0))
        exact = dudley.staircase_dudley(steps, 10, B)
        grid = np.linspace(0, B, 20001)
        middle = (grid[1:] + grid[:-1]) / 2
        counts = steps.counts[np.searchsorted(steps.radii, middle, side="right") - 1]
        pieces = np.sqrt(np.log(counts) / 10) * np.diff(grid)
        tails = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])
        assert exact == pytest.approx((grid + tails).min(), rel=1e-3)
        with enable_x64(True):
            rad = float(empirical_rademacher(jnp.asarray(values)))
        assert rad <= dudley.staircase_dudley(steps, 10, B, near=4.0, far=12.0)


def test_offset_integral_against_scipy_on_both_branches():
    rng = np.random.default_rng(1)
    inside = 0
    with enable_x64(True):
        for _ in range(40):
            a, b, B = rng.uniform(0, 1.3), np.exp(rng.uniform(-4, 1)), np.exp(rng.uniform(-1, 1))
            objective = lambda x, a=a, b=b, B=B: x + (B - x) * a + b * math.log(B / x)
            found = optimize.minimize_scalar(
                objective, bounds=(1e-12, B), method="bounded", options={"xatol": 1e-12}
            ).fun
            found = min(found, objective(B))
            assert float(dudley.with_offset(a, b, B)) == pytest.approx(found, rel=1e-9)
            inside += found < B * (1 - 1e-9)
    assert 5 < inside < 35


def test_grid_bounds_lie_above_the_closed_form_and_close():
    A, m, B = 3.0, 10_000, 1.0
    with enable_x64(True):
        closed = float(dudley.inverse_square(A, m, B))
    covering = lambda epsilon: A / epsilon**2
    upper = dudley.dudley(covering, m, B, near=1.0, far=1.0)
    assert closed <= upper <= 1.05 * closed
    assert chaining(covering, m, B) < 12 * closed
    assert dudley.one_scale(covering, m, B) <= B


def test_chaining_and_one_scale_bound_a_finite_class():
    rng = np.random.default_rng(2)
    values = rng.uniform(-1, 1, size=(10, 12))
    values[0] = 0.0
    steps = covering_staircase(sup_distances(values[:, :, None], 2.0))

    def covering(epsilon):
        where = np.searchsorted(steps.radii, epsilon, side="left") - 1
        return np.log(steps.counts[np.maximum(where, 0)])

    with enable_x64(True):
        rad = float(empirical_rademacher(jnp.asarray(values)))
    B = float(np.abs(values).max())
    assert rad <= chaining(covering, 12, B)
    assert rad <= dudley.one_scale(covering, 12, B)


@pytest.mark.parametrize("call", [dudley.dudley, dudley.chaining, dudley.one_scale])
def test_integrals_refuse_empty_samples_and_ranges(call):
    with pytest.raises(ValueError, match="at least one sample"):
        call(lambda e: 1 / e, 0, 1.0)
    with pytest.raises(ValueError, match="not negative"):
        call(lambda e: 1 / e, 10, math.nan)


def test_printed_theorem_4_1_can_be_negative_and_the_corrected_is_clipped():
    with enable_x64(True):
        printed = float(single_layer.theorem_4_1(1.0, 1.0, 1000.0, 100, 10))
        corrected = float(single_layer.theorem_4_1_corrected(1.0, 1.0, 1000.0, 100, 10))
    assert printed == pytest.approx(-5.1676, abs=1e-4)
    assert corrected == 2.0


def test_residual_range_and_tails_by_hand():
    # 2 * 3 tanh(1/2).
    assert single_layer.residual_range(3.0, 0.5, 2.0) == pytest.approx(2.772703, abs=1e-6)
    assert single_layer.attention_lipschitz(3.0) == 18.0
    assert single_layer.attention_lipschitz(3.0, 0.5, softmax_constant=1.0) == 1.5


def test_corollary_4_1_1_is_theorem_4_1_only_with_the_corrected_alpha():
    d, m, B_x, B_QK = 16, 100_000, 1.0, 1.0
    C = B_x**2 * B_QK**2 * math.log(2 * d * d + 1)
    with enable_x64(True):
        theorem = float(single_layer.theorem_4_1(1.0, B_x, C, m, d))
        right, wrong = (
            float(single_layer.corollary(1.0, B_x, alpha, m, d, exact_argument=False))
            for alpha in (
                single_layer.alpha_4_1_1_corrected(B_QK, d),
                single_layer.alpha_4_1_1(1, d),
            )
        )
    assert right == pytest.approx(theorem, rel=1e-12)
    assert wrong == pytest.approx(0.0672, abs=1e-4)
    assert theorem == pytest.approx(0.0872, abs=1e-4)


def test_no_bound_knows_the_sequence_length():
    for function in (
        single_layer.single_layer_bound,
        single_layer.theorem_4_1_corrected,
        single_layer.attention_bound,
        multi_layer.terms_corrected,
        multi_layer.rademacher_multi_layer,
    ):
        assert not {"T", "length", "sequence_length"} & set(inspect.signature(function).parameters)


def test_single_layer_bound_never_exceeds_the_trivial_value_and_falls_with_m():
    outer = single_layer.OuterNorms(B_w=2.0, B_Wc=1.5)
    covering = at_scale(lemma_3_6_sharp, 1.0, k=4, d=4)
    values = [
        single_layer.single_layer_bound(covering, m, 4, outer=outer, B_x=1.0, heads=2)
        for m in (1, 100, 10**4, 10**6)
    ]
    assert values[0] == pytest.approx(6.0)
    assert all(np.diff(values) <= 0) and values[-1] < 1.0
    odd = single_layer.OuterNorms(odd=True)
    one = single_layer.single_layer_bound(covering, 10**6, 4, outer=odd, B_x=1.0)
    two = single_layer.single_layer_bound(
        covering, 10**6, 4, outer=single_layer.OuterNorms(), B_x=1.0
    )
    assert two == pytest.approx(2 * one)


def test_sharpened_token_norms_and_softmax_constant_help():
    covering = at_scale(lemma_3_6, 1.0, k=8, d=8)
    plain = single_layer.attention_bound(covering, 10**5, 8, B_x=1.0, softmax_constant=2.0)
    sharp = single_layer.attention_bound(covering, 10**5, 8, B_x=1.0, B_inf=0.5)
    assert sharp < 0.5 * plain


def test_single_layer_refuses_bad_norms():
    with pytest.raises(ValueError, match="B_Wc=nan, expected a finite"):
        single_layer.OuterNorms(B_Wc=math.nan)
    covering = at_scale(lemma_3_6, 1.0, k=2, d=2)
    with pytest.raises(ValueError, match="token norms"):
        single_layer.attention_bound(covering, 10, 2, B_x=-1.0)
    with pytest.raises(ValueError, match="heads=0, expected at least 1"):
        single_layer.single_layer_bound(
            covering, 10, 2, outer=single_layer.OuterNorms(), B_x=1.0, heads=0
        )


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_lemma_e_1_against_scipy(n):
    rng = np.random.default_rng(n)
    C, beta, epsilon = np.exp(rng.normal(size=n)), np.exp(rng.normal(size=n)), 0.7

    # Minimise over log-ratios, then scale onto the constraint: no Lagrange multipliers.
    def objective(logs):
        shape = np.exp(np.append(logs, 0.0))
        scales = shape * epsilon / (beta @ shape)
        return np.log(np.sum(C / scales**2))

    found = np.exp(optimize.minimize(objective, np.zeros(n - 1), tol=1e-14).fun)
    with enable_x64(True):
        budget = multi_layer.divide_scale(jnp.asarray(C), jnp.asarray(beta), epsilon)
        scales = np.asarray(budget.scales)
        assert float(budget.log_covering) == pytest.approx(found, rel=1e-8)
        assert beta @ scales == pytest.approx(epsilon, rel=1e-12)
        assert np.sum(C / scales**2) == pytest.approx(float(budget.log_covering), rel=1e-12)
        np.testing.assert_allclose(np.asarray(budget.shares), beta * scales / epsilon, rtol=1e-12)


def test_lemma_e_1_drops_empty_terms_with_finite_gradients():
    with enable_x64(True):
        C, beta = jnp.array([1.0, 0.0, 2.0]), jnp.array([1.0, 3.0, 0.0])
        budget = multi_layer.divide_scale(C, beta, 1.0)
        slopes = jax.grad(multi_layer.covering_constant, argnums=(0, 1))(C, beta)
    np.testing.assert_array_equal(budget.scales, [1.0, 0.0, np.inf])
    assert float(budget.log_covering) == 1.0
    assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize(
    "layers, values, C_1, C_Bx, printed, derived",
    [
        (1, (1, 1, 1, 1, 1, 1), 1.0, 1.0, 46.168, 96.538),
        (2, (1, 1, 1, 1, 1, 3), 1.0, 9.0, 3541.2, 8108.9),
        (3, (1, 2, 0.5, 1, 1, 2), 1.0, 4.0, 45880.0, 227520.7),
        (2, (1, 0.5, 1, 0.1, 0.5, 1), 1.0, 1.0, 74.2335, 65.6173),
    ],
)
def test_theorem_4_2_printed_is_not_its_own_proof(layers, values, C_1, C_Bx, printed, derived):
    with enable_x64(True):
        norms = multi_layer.NetworkNorms(*map(float, values))
        found = float(multi_layer.theorem_4_2(norms, C_1, C_Bx, layers))
        terms = multi_layer.terms_derived(norms, C_1, C_Bx, layers)
        proof = float(multi_layer.covering_constant(terms.C, terms.beta))
    assert found == pytest.approx(printed, rel=1e-4)
    assert proof == pytest.approx(derived, rel=1e-4)
    # Each term contributes C^{1/3} beta^{2/3}: summed here without the library's cube roots.
    direct = sum(float(c) ** (1 / 3) * float(b) ** (2 / 3) for c, b in zip(terms.C, terms.beta))
    assert proof == pytest.approx(direct**3, rel=1e-12)


def test_corrected_terms_for_unit_norms_are_the_derived_ones():
    with enable_x64(True):
        norms = multi_layer.NetworkNorms(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
        constants = multi_layer.Constants(1.0, 1.0, 1.0, 1.0)
        corrected = multi_layer.terms_corrected(norms, constants, 2)
        derived = multi_layer.terms_derived(norms, 1.0, 1.0, 2)
        np.testing.assert_allclose(corrected.C, derived.C)
        np.testing.assert_allclose(corrected.beta, derived.beta)
        assert corrected.names == derived.names
        # H equal heads multiply the last layer's terms of gamma by H, its cube by H^3.
        lone = multi_layer.Constants(0.0, 1.0, 1.0, 1.0)
        one, three = (multi_layer.terms_corrected(norms, lone, 1, heads=h) for h in (1, 3))
        ratio = multi_layer.covering_constant(three.C, three.beta)
        assert float(ratio / multi_layer.covering_constant(one.C, one.beta)) == pytest.approx(27)


def test_per_matrix_constants_are_those_of_each_shape():
    # d = 5, k = 2, B^2 = 2.25; maps W^T x: w is 1 x 5, W_c^T 5 x 2, W_v^T 2 x 5, W_QK 5 x 5.
    expected = {
        "constants_4_2_1_corrected": [np.log(11), np.log(21), np.log(21), np.log(51)],
        "constants_F_0_1_corrected": [5 * np.log(3), 2 * np.log(11), 5 * np.log(5), 5 * np.log(11)],
        "constants_F_0_2_corrected_leading": [np.log(5), np.log(10), np.log(10), np.log(25)],
    }
    for name, values in expected.items():
        found = getattr(multi_layer, name)(1.5, 5, 2)
        np.testing.assert_allclose(np.array(found), 2.25 * np.array(values), rtol=1e-12)
    assert multi_layer.constants_4_2_1_corrected(1.5, 5, 2, B_w_1=2.0).w == pytest.approx(
        4 * np.log(11)
    )


def test_multi_layer_rademacher_is_clipped_and_shrinks():
    with enable_x64(True):
        assert float(multi_layer.rademacher_multi_layer(1e9, 10, 2.0)) == 2.0
        assert float(multi_layer.rademacher_multi_layer(1.0, 10**10, 2.0)) < 2e-3


def test_multi_layer_refuses_empty_networks():
    norms = multi_layer.NetworkNorms(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="layers=0, expected at least 1"):
        multi_layer.downstream_factors(norms, 0)
    with pytest.raises(ValueError, match="heads=0, expected at least 1"):
        multi_layer.terms_corrected(norms, multi_layer.Constants(1.0, 1.0, 1.0, 1.0), 1, heads=0)
