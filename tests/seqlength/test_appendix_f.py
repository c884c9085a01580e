"""Corollaries F.0.1 and F.0.2 refuted once more, without the library's code.

Networks are written out in all d coordinates from Section 2.6 with softmax and projections by hand,
the printed numbers from Appendix F's displays, and scores that cancel in fractions; only the stored
instances and ratios come from the library, which computes in four coordinates, by JAX.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.seqlength.statements import PAPER, orientation

BY_ID = {s.id: s for s in PAPER.statements}


def _stored(name, form):
    return BY_ID[f"seqlength.{name}"].form(form).counterexample


def _network(X, W_QK, W_v, W_c, w, p):
    """w.g^(2) at token 0, sigma linear; rows go onto the unit ball of l_p by scaling, p = 1, 2."""
    scores = X @ W_QK.T @ X[0]
    weights = np.exp(scores - scores.max())
    mixed = (weights / weights.sum()) @ X @ W_v
    hidden = mixed / max(1.0, np.linalg.norm(mixed, p)) @ W_c
    return hidden / max(1.0, np.linalg.norm(hidden, p)) @ w


def _printed(C, B_x):
    """(gamma + eta)^3 for L = 1: alpha_1 = B_c2 = B_w = L_sigma = 1, B_v2 = 1 / B_x, eta = 0.

    C is what Appendix F has before B_x^2 in gamma's first term, and in its second.
    """
    first = (C * B_x**2) ** (1 / 3) * (2 / B_x) ** (2 / 3)
    return (first + C ** (1 / 3) * (1 + (1 / B_x) ** (2 / 3))) ** 3


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("d", [6, 1000])
def test_signs_of_one_row_refute_corollary_f_0_2(d, p):
    e, B_x, eps = np.eye(d), 100 * math.sqrt(d), 0.49
    rng, functions = np.random.default_rng(d), []
    every = list(itertools.product((-1.0, 1.0), repeat=d - 2)) if d == 6 else []
    for signs in every or rng.choice([-1.0, 1.0], size=(2, d - 2)):
        W_QK = np.zeros((d, d))
        W_QK[0, 2:] = np.asarray(signs) / (d - 2)
        # ||W_QK||_{2,1} over columns, and over rows.
        assert np.linalg.norm(W_QK, axis=0).sum() == pytest.approx(1.0)
        assert np.linalg.norm(W_QK, axis=1).sum() <= 1.0
        values = []
        for i in range(2, min(d, 12)):
            pair = B_x * (e[1] + e[i]) / 2
            X = np.stack([B_x * e[0], pair, -pair])
            assert np.abs(X).sum(axis=1).max() <= B_x
            values.append(_network(X, W_QK, e[:, 1:2] / B_x, e[1:2], e[1], p))
        np.testing.assert_allclose(values, np.asarray(signs)[: len(values)] / 2, rtol=1e-12)
        functions.append(values)
    apart = [np.abs(np.subtract(a, b)).max() for a, b in itertools.combinations(functions, 2)]
    assert min(apart) >= 2 * eps and len(functions) == (2 ** (d - 2) if d == 6 else 2)


def test_the_numbers_of_corollary_f_0_2():
    # k = 1: ln(dk) = ln d. The words of E9: 691.8 against 501.0, and 69,313 against 832.
    printed = lambda d: _printed(math.log(d), 100 * math.sqrt(d)) / 0.49**2
    for d, least, number in ((1000, 691.8, 501.0), (10**5, 69313, 831.5)):
        assert (d - 2) * math.log(2) == pytest.approx(least, abs=0.5)
        assert printed(d) == pytest.approx(number, abs=0.1)
    for d, factor, form in ((1000, 1, "printed"), (10**6, 100, "printed, constant 100")):
        ratio = (d - 2) * math.log(2) / (factor * printed(d))
        assert _stored("corf.0.2.packing", form).ratio == pytest.approx(ratio, rel=1e-9)
        assert ratio > 1
    # The proof's list for all ones but B_v2: w, W_c and W_v with 1, W_QK with 4^{1/3}; ln(d^2).
    ratio = (10**5 - 2) * math.log(2) * 0.49**2 / (2 * math.log(10**5) * (3 + 4 ** (1 / 3)) ** 3)
    assert _stored("corf.0.2.packing", "derived").ratio == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_levels_of_one_row_refute_corollary_f_0_1(p):
    # All 5^2 functions on all 2 * 4 inputs, d = 5, tokens and thresholds in all coordinates.
    d, M, B_x, eps = 5, 5, 200.0, 0.93
    e, levels = np.eye(d), np.linspace(-1.0, 1.0, M)
    inputs = []
    for i, t in itertools.product((3, 4), (levels[1:] + levels[:-1]) / 2):
        pair = B_x * (15 * e[1] + (e[i] - t * e[2]) / 2) / 16
        inputs.append(np.stack([B_x * e[0], pair, -pair]))
        assert np.abs(inputs[-1]).sum(axis=1).max() <= B_x * (1 + 1e-12)
    functions = []
    for chosen in itertools.product(levels, repeat=d - 3):
        W_QK = np.zeros((d, d))
        W_QK[0, 2:] = np.array([1.0, *chosen]) / d
        # ||W_QK||_{1,inf} over columns, and over rows.
        assert np.abs(W_QK).sum(axis=0).max() <= 1 and np.abs(W_QK).sum(axis=1).max() <= 1
        given = W_QK, e[:, 1:2] / B_x, e[1:2], e[1], p
        functions.append([_network(X, *given) for X in inputs])
    apart = [np.abs(np.subtract(a, b)).max() for a, b in itertools.combinations(functions, 2)]
    assert len(functions) == M ** (d - 3) and min(apart) >= 2 * eps


@pytest.mark.parametrize("form", ["printed", "printed, constant 10", "derived"])
def test_the_numbers_of_corollary_f_0_1(form):
    stored = _stored("corf.0.1.packing", form)
    d, M, B_x = (int(stored.instance[name]) for name in ("d", "M", "B_x"))
    # Neighbouring levels are 2 / (M - 1) apart: the score of the upper one at the lowest, the
    # middle and the highest threshold, in fractions, so that nothing is lost where they cancel.
    for j in (0, (M - 1) // 2, M - 2):
        lower, upper = (Fraction(-1) + Fraction(2 * n, M - 1) for n in (j, j + 1))
        t = (lower + upper) / 2
        score = Fraction(B_x) * B_x * Fraction(1, 32) * (upper - t) / d
        # Weights of the tokens e^score, e^-score and e^0, read out at 15 / 16.
        up, down = math.exp(float(score)), math.exp(-float(score))
        assert 2 * 15 / 16 * (up - down) / (up + down + 1) >= 2 * stored.instance["epsilon"]
        assert (lower - t) == -(upper - t)
    least, C = (d - 3) * math.log(M), d * math.log(3)
    number = _printed(C, float(B_x)) * (10 if "10" in form else 1)
    if form == "derived":
        number = C * (3 + 4 ** (1 / 3)) ** 3
    ratio = least / (number / 0.93**2)
    assert stored.ratio == pytest.approx(ratio, rel=1e-9) and ratio > 1
    if form == "printed":  # the words of E9
        assert least == pytest.approx(29844, abs=0.5)
        assert number / 0.93**2 == pytest.approx(22002, abs=0.5)


def test_maps_with_columns_of_units_are_far_apart():
    # All (2d)^k of them for d = 2, k = 3, on the inputs e_j.
    units = [s * v for s in (1, -1) for v in np.eye(2)]
    maps = [np.stack(columns, axis=1) for columns in itertools.product(units, repeat=3)]
    apart = [
        max(np.linalg.norm((a - b) @ x) for x in np.eye(3))
        for a, b in itertools.combinations(maps, 2)
    ]
    assert len(maps) == 4**3 and min(apart) == pytest.approx(math.sqrt(2))


def test_the_numbers_of_one_constant_for_all_matrices():
    # The words of E11, at eps = 1/2: k ln(2d) against d x^2 ln(2k + 1), x = 2.
    least, printed = 1000 * math.log(4), 2 * 4 * math.log(2001)
    assert least == pytest.approx(1386, abs=0.5) and printed == pytest.approx(60.8, abs=0.05)
    ratio = lambda form: _stored("corf.0.1.constant", form).ratio
    assert ratio("derived, W_c^T x") == pytest.approx(least / printed)
    assert ratio("derived, W_c^T x, constant 10") == pytest.approx(least / (10 * printed))
    one = 4 * math.log(3)  # for each of d = 1024 columns, k = 1
    assert ratio("derived, W_QK x") == pytest.approx(math.log(2048) / one)
    # The ball of radius sqrt(d) / 4 in R^1024, and the cube [-1, 1]^1024, by a factorial.
    ball = 512 * math.log(math.pi) - math.log(math.factorial(512)) + 1024 * math.log(8)
    cube = 1024 * math.log(2) - ball
    assert ratio("derived, W_c^T x, rows") == pytest.approx(cube / (16 * math.log(3)))


def test_on_the_l2_ball_the_factor_is_the_dimension_of_the_inputs():
    # W_c^T = u^T from R^256 to R^1, |u_i| <= 1: d = 1 times Lemma 3.3's k x^2 ln(2d + 1) is below
    # the volume, k times it is not.
    k, x = 256, 4 / 16
    ball = 128 * math.log(math.pi) - math.log(math.factorial(128))
    cube, own = k * math.log(2 * x) - ball, k * x**2 * math.log(3)
    assert 1 * own < cube < k * own
    assert _stored("corf.0.1", "derived, W_c^T x").ratio == pytest.approx(cube / own)
    sides = orientation.COROLLARY_F_0_1.evaluate({"n": np.int64(k)}, Size({"largest": k}))
    assert float(sides.rhs["corrected, W_c^T x"]) == pytest.approx(k * own)
