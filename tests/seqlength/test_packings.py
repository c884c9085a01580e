"""What refutes printed numbers, and what spares them, computed again without the library's code.

Everything on the left of a comparison below is NumPy or `math` written out from the paper's
definitions; only the stored instances and the ratios under test come from the library.
"""

import itertools
import math

import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.seqlength.linear_bounds import volumetric_lower_cube
from jaxbounds.seqlength.statements import PAPER, orientation, packings, single_layer

BY_ID = {s.id: s for s in PAPER.statements}


def _stored(name, form):
    return BY_ID[f"seqlength.{name}"].form(form).counterexample


def _network(X, W_QK, W_v, W_c, w):
    """w.g^(2) at token 0, by Section 2.6, sigma linear: softmax and projections by hand."""
    scores = X @ W_QK.T @ X[0]
    weights = np.exp(scores - scores.max())
    mixed = (weights / weights.sum()) @ X @ W_v
    hidden = mixed / max(1.0, np.linalg.norm(mixed)) @ W_c
    return hidden / max(1.0, np.linalg.norm(hidden)) @ w


def _printed_4_2(C_1, C_Bx, B_w, B_c, B_v):
    """(gamma + eta)^3 of Theorem 4.2 for L = 1 and L_sigma = 1: alpha_1 = 1, eta = 0."""
    gamma = math.cbrt(C_Bx * (2 * B_c * B_v * B_w) ** 2)
    gamma += math.cbrt(C_1) * (1 + math.cbrt((B_w * B_v) ** 2))
    return gamma**3


def test_four_networks_refute_theorem_4_2():
    B_x, c = 100.0, 0.01
    outputs = []
    for j, sign in itertools.product((0, 1), (1.0, -1.0)):
        W_c = np.zeros((2, 2))
        W_c[j, 0] = sign * c
        sequences = [np.array([[0.0, 0.0], B_x * np.eye(2)[i]]) for i in (0, 1)]
        W_v = np.eye(2) / 50.0
        outputs.append(
            [_network(X, np.zeros((2, 2)), W_v, W_c, np.array([100.0, 0.0])) for X in sequences]
        )
    apart = [np.max(np.abs(np.subtract(a, b))) for a, b in itertools.combinations(outputs, 2)]
    assert min(apart) == pytest.approx(1.0, rel=1e-12)
    C = c**2 * math.log(2 * 2 * 2 + 1)
    printed = 4.0 * _printed_4_2(C, B_x**2 * C, 100.0, c, 0.02)
    assert printed < 0.12 < math.log(4)
    # The proof's own terms, sum C^{1/3} beta^{2/3}: w, W_c, W_v with C, and W_QK.
    proof = sum(math.cbrt(C * beta**2) for beta in (1.0, 100.0, 1.0))
    proof += math.cbrt(B_x**2 * C * (2 * 100.0 * c * 0.02) ** 2)
    assert 4 * proof**3 == pytest.approx(15.6, abs=0.05) and 4 * proof**3 > math.log(4)
    # The bounds grow as 1/epsilon^2; the stored instance stands at .49, off the tie at .5.
    stored = _stored("thm4.2.packing", "printed").ratio
    assert stored == pytest.approx(math.log(4) / printed * (0.49 / 0.5) ** 2)


@pytest.mark.parametrize("d", [12, 600])
def test_signs_of_one_row_refute_corollary_4_2_1(d):
    # In all d coordinates; the statement computes in the three that matter.
    B_x, rng = 1e4, np.random.default_rng(d)
    e, functions = np.eye(d), []
    for _ in range(2 if d == 600 else 8):
        signs = rng.choice([-1.0, 1.0], size=d - 2)
        W_QK = np.zeros((d, d))
        W_QK[0, 2:] = signs / (d - 2)
        assert np.abs(W_QK).sum() == pytest.approx(1.0)
        values = []
        for i in range(2, 12):
            pair = B_x * (e[1] + e[i]) / math.sqrt(2.0)
            X = np.stack([B_x * e[0], pair, -pair])
            values.append(_network(X, W_QK, e[:, 1:2] / B_x, e[1:2], e[1]))
        np.testing.assert_allclose(values, signs[: len(values)] / math.sqrt(2.0), rtol=1e-9)
        functions.append(values)
    assert np.max(np.abs(np.subtract(*functions[:2]))) == pytest.approx(math.sqrt(2.0))
    assert math.sqrt(2.0) >= 2 * 0.7


def test_the_numbers_of_corollary_4_2_1():
    B_x, eps = 1e4, 0.7
    for d, C, form in (
        (600, math.log(2 * 600 + 1), "printed"),
        (800, math.log(2 * 800**2 + 1), "derived"),
        (10**6, 100 * math.log(2 * 10**6 + 1), "printed, constant 100"),
    ):
        number = _printed_4_2(C, B_x**2 * C, 1.0, 1.0, 1.0 / B_x) / eps**2
        ratio = _stored("cor4.2.1.packing", form).ratio
        assert ratio == pytest.approx((d - 2) * math.log(2) / number, rel=1e-9) and ratio > 1
    # The printed number at d = 600, to four digits.
    assert _printed_4_2(math.log(1201), 1e8 * math.log(1201), 1, 1, 1e-4) / 0.49 == pytest.approx(
        251.3, abs=0.05
    )


def test_volume_of_a_cube_and_what_it_refutes():
    # Even dimensions: the ball has volume pi^(k/2) / (k/2)!, an integer's logarithm.
    for k in (2, 4, 100, 256):
        ball = k / 2 * math.log(math.pi) - math.log(math.factorial(k // 2))
        expected = k * math.log(8 / math.sqrt(k)) - ball
        assert volumetric_lower_cube(4 / math.sqrt(k), k=k) == pytest.approx(expected, rel=1e-10)
    cube = float(volumetric_lower_cube(0.4, k=100))
    printed = 0.4**2 * math.log(201)
    assert cube == pytest.approx(68.9, abs=0.05) and printed == pytest.approx(0.85, abs=0.005)
    assert _stored("corf.0.1", "derived, W_v^T x").ratio == pytest.approx(cube / printed)
    # d = 256, x = 1/4: d x^2 ln(2d + 1) = 16 ln 513, for D.0.1 and F.0.1 alike.
    ratio = float(volumetric_lower_cube(0.25, k=256)) / (16 * math.log(513))
    assert _stored("corf.0.1", "derived").ratio == pytest.approx(ratio)
    assert _stored("cord.0.orientation", "derived (D.0.1), W_QK^T x").ratio == pytest.approx(ratio)
    # D.0.2 for the map W_QK x: k ln 2 points of a ball against 4 ln(d^2).
    ratio = 1024 * math.log(2) / (4 * math.log(1024**2))
    assert _stored("cord.0.orientation", "derived (D.0.2), W_QK x").ratio == pytest.approx(ratio)
    ratio = 10**6 * math.log(2) / (400 * math.log(10**12))
    form = "derived (D.0.2), W_QK x, constant 100"
    assert _stored("cord.0.orientation", form).ratio == pytest.approx(ratio)
    # Lemma 3.5 at d = 2 and n = 3 points: k ln 2 points of a ball against 4 ln(dn).
    for k, constant, form in ((100, 1, "printed"), (10**6, 100, "printed, constant 100")):
        ratio = k * math.log(2) / (constant * 4 * math.log(6))
        assert _stored("lemma3.5", form).ratio == pytest.approx(ratio)


def test_lemma_3_5_needs_the_number_of_outputs_over_rows_too():
    # Matrices +-e_j e_1^T: one row, of norm 1; their images of e_1 are more than 1 apart.
    d, k = 2, 8
    matrices = [s * np.outer(np.eye(k)[j], np.eye(d)[0]) for s in (1, -1) for j in range(k)]
    assert all(np.linalg.norm(W, axis=1).sum() == 1 for W in matrices)
    images = [W @ np.eye(d)[0] for W in matrices]
    apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(images, 2)]
    assert min(apart) == pytest.approx(math.sqrt(2)) and len(images) == 2 * k


def test_the_l2_ball_tells_the_corners_of_the_cube_apart():
    # Rows u, u' of e_1 u^T: the inputs e_i see max |u_i - u'_i|, the unit ball ||u - u'||_2.
    n = 256
    u = np.ones(n)
    x = u / np.linalg.norm(u)
    assert (2 * u) @ x == pytest.approx(2 * math.sqrt(n)) and np.max(2 * u @ np.eye(n)) == 2
    # With the inputs e_i alone the whole cube lies in one ball of radius sqrt(n) / 4.
    assert np.max(np.abs(u)) < math.sqrt(n) / 4 < math.sqrt(n)


def test_nine_matrices_cover_where_one_C_for_all_is_too_small():
    # Why E11 is a gap: d = 4, k = 1, B = B_x = eps = 1; only +-e_i e_j^T have spectral norm 1.
    cover = [np.zeros((4, 4))]
    cover += [s / 4 * np.outer(np.ones(4), np.eye(4)[j]) for s in (1, -1) for j in range(4)]
    assert all(np.abs(M).sum() <= 1 for M in cover)
    assert math.log(len(cover)) == pytest.approx(math.log(2 * 4 * 1 + 1))
    rng = np.random.default_rng(0)
    vertices = [s * np.outer(a, b) for s in (1, -1) for a in np.eye(4) for b in np.eye(4)]
    inside = [W.reshape(4, 4) for W in rng.dirichlet(np.full(16, 0.1), size=500)]
    for W in [*vertices, *inside]:
        assert min(np.linalg.norm(W - M, ord=2) for M in cover) < 1


def test_corollary_4_1_1_is_true_as_the_order_that_it_is():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        B_x, B_QK, d = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-1, 1), rng.integers(1, 500)
        m = d + 10 ** rng.uniform(1, 8)
        logs = math.log(2 * d**2 + 1)
        massart = B_x * math.sqrt(math.log(2 * d) / m)
        root = B_x * B_QK * math.sqrt(logs)
        b = 2 * B_x**2 * root / math.sqrt(m)
        theorem = b * (1 + math.log(math.sqrt(m) / (2 * B_x * root))) + massart
        alpha = B_QK * math.sqrt(2 * logs)
        first = B_x**3 * alpha / math.sqrt(m)
        printed = first * (1 + math.log(math.sqrt(m) / (B_x**2 * alpha))) + massart
        assert math.sqrt(2) * printed >= theorem - 1e-12


@pytest.mark.parametrize("d", [16, 1024])
def test_sums_of_signs_grow_with_the_root_of_d(d):
    # E |N(0, s^2)| = s sqrt(2 / pi) in each of d coordinates of 2000 halves of unit vectors.
    with enable_x64(True):
        sides = single_layer.TRANSPOSED.evaluate({"d": np.int64(d)}, Size({"m": 2000}))
    expected = math.sqrt(2 * d / (math.pi * 2000)) / 2
    assert float(sides.lhs["printed"]) == pytest.approx(expected, rel=0.1)


def test_the_class_of_theorem_4_1_in_plain_numpy():
    rng = np.random.default_rng(5)
    X, copies = rng.normal(size=(16, 4, 2)), 2**16
    with enable_x64(True):
        sides = single_layer.THEOREM_4_1_CLASS.evaluate({"X": X, "seed": 7}, Size({"d": 2}))
    maps = [np.zeros((2, 2))]
    for i, j, s in itertools.product((0, 1), (0, 1), (1.0, -1.0)):
        maps.append(s * np.outer(np.eye(2)[i], np.eye(2)[j]))
    columns = []
    for W in maps:
        scores = np.einsum("ntd,nd->nt", X, X[:, 0] @ W)
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        z = np.einsum("nt,ntd->nd", weights, X)
        for v in (z[:, 0], z[:, 1], -z[:, 0], -z[:, 1]):
            columns += [np.maximum(v, 0), -np.maximum(v, 0)]
    signs = 2.0 * np.random.default_rng(7).binomial(copies, 0.5, size=(32, 16)) - copies
    expected = (signs @ np.array(columns).T).max(axis=1).mean() / (16 * copies)
    assert float(sides.lhs) == pytest.approx(expected, rel=1e-9)


def test_counterexamples_meet_what_is_listed_and_the_list_can_fail():
    one = packings.SIGNS
    met = packings._meets_4_2_1({k: np.asarray(v) for k, v in one.items()}, Size({"L": 1}))
    assert all(map(bool, met.values())) and len(met) >= 8
    assert not all(packings._meets_4_2({**packings.FOUR, "epsilon": -1.0}, Size({"L": 1})).values())
    assert all(map(bool, orientation._in_the_class({"d": 16}, Size({"largest": 16})).values()))


def test_one_value_map_breaks_the_cover_of_appendix_e():
    """Equal tokens stay as they are under attention; tanh and matrices are written out here."""
    tokens, c = 4.0, 0.005
    moved = math.tanh(c * tokens) - math.tanh(-c * tokens)
    # The proof's list: beta = B_w alpha_1 L_sigma B_c2 = 1 times the cover at norm 1, |2 c|.
    assert _stored("appe.cover", "derived").ratio == pytest.approx(moved / (2 * c), rel=1e-12)
