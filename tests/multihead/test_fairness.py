"""The errata and new statements of the paper, each by a computation that shares no code with them.

Fractions, plain floats, NumPy and SciPy, written from the paper's formulas; nothing of the theory
modules is called on the checking side.
"""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

from jaxbounds.claims.statements import Size
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.multihead.oracle import Assumption3
from jaxbounds.multihead.oracle_bounds import gamma_linear, gamma_star, target_slacks
from jaxbounds.multihead.self_bounded import loss_weighted_curvature, slope_weighted_curvature
from jaxbounds.multihead.statements.good_start import _interval_sum_tail, _sign_sum_law
from jaxbounds.papers import load_paper

PAPER = load_paper("multihead")
STATEMENTS = {s.id: s for s in PAPER.statements}
FAILING = [
    (s, form) for s in PAPER.statements for form in s.forms if form.counterexample is not None
]


def _stored(name, form):
    example = STATEMENTS[f"multihead.{name}"].form(form).counterexample
    return example, {key: np.asarray(value, float) for key, value in example.instance.items()}


def test_errata_say_everything():
    assert all(e.quote and e.text and e.where and e.consequence for e in PAPER.errata)
    cited = set(" ".join(PAPER.items.values()).replace(",", " ").split())
    # About a remark on names, which nothing else is said of.
    assert {e.id for e in PAPER.errata} - cited == {"E21"}


def test_every_display_has_an_item():
    assert {f"eq. ({n})" for n in range(1, 133)} <= set(PAPER.items)


def _noise_free(T, relevant, d, S, label):
    """DM1 without noise in NumPy: patterns S e_j, the first tokens relevant, then nu_1, nu_2..."""
    X = np.zeros((T, d))
    X[:relevant, 0 if label > 0 else 1] = S
    for t in range(relevant, T):
        X[t, 2 + t % (d - 2)] = S
    return X


def test_the_section_5_3_target_meets_the_condition_3_and_has_small_loss():
    # E27, independently: every constant of Proposition 3 and of (3), in floats.
    T, relevant, M, d, n = 10, 1, 2, 4, 100
    ratios = []
    for S in (1e6, 1e10, 1e14):
        root, eps, zeta = S, 1 / n, relevant / T
        scale = 8 * math.sqrt(2 * (M + 1)) / (3 * S**2) * math.log((1 / zeta - 1) / eps)
        gamma = math.sqrt(T) / (math.sqrt(2) * S) * S**2 * (1 - eps)
        outer = math.log(n) / gamma / root
        head = math.sqrt(outer**2 + scale**2)
        right = d * math.sqrt(T) * S**5 * head * (root * head) ** 3
        ratios.append(root / right)
        # The conclusion as per (12) stands: its right side has ||theta|| for ||theta||_{2,inf}.
        assert root < d * math.sqrt(T) * S**5 * (root * head) ** 3
    assert ratios[-1] > 1000 and ratios[1] / ratios[0] == pytest.approx(1e4, rel=1e-6)
    # Its loss is small: the margin of the saturated head in plain NumPy, at S = 3.
    S, eps, labels = 3.0, 1 / n, (1, -1)
    W = S**2 * np.diag([1.0, 1.0, 0, 0]) + S**2 * np.array([[0.0] * 4] * 2 + [[1, 1, 0, 0]] * 2)
    W /= np.linalg.norm(W)
    U = np.ones((T, 1)) * np.array([[S, -S, 0, 0]])
    U /= np.linalg.norm(U)
    scale = 8 * math.sqrt(2 * (M + 1)) / (3 * S**2) * math.log((T / relevant - 1) / eps)
    for y in labels:
        X = _noise_free(T, relevant, d, S, y)
        margin = y * np.sum(U * (softmax(scale * X @ W @ X.T, axis=1) @ X))
        assert margin >= math.sqrt(T / 2) * S * (1 - eps) - 1e-12


def test_no_normalization_of_the_model_admits_the_target_as_per_12():
    # Section 5.3's "no such value of c": with ||U|| or ||W|| alone for ||theta|| both conditions
    # are linear in the logarithms of S, H, C at fixed p, c and log log n; LP says infeasible.
    for c in np.linspace(0.1, 3.0, 9):
        for p in np.linspace(0.1, 4.0, 9):
            for log_log in (0.1, 1.0, 2.0):
                # Unknowns log S, log H >= 0 and log C; rows are <= right sides.
                rows = [[-2.0, p, -1.0]]
                right = [0.0]
                # H^c >= S^5 ||U||^3, ||U|| = log n H^{c - 1/2} / S.
                rows.append([5.0 - 3.0, 3 * (c - 0.5) - c, 0.0])
                right.append(-3 * log_log)
                # H^c >= S^5 ||W||^3, ||W|| = C H^{1/2 - p}.
                rows.append([5.0, 3 * (0.5 - p) - c, 3.0])
                right.append(0.0)
                bounds = [(0, None), (0, None), (None, None)]
                found = linprog([0, 0, 0], A_ub=rows, b_ub=right, bounds=bounds)
                assert found.status == 2, (c, p, log_log, found.message)


def test_target_slacks_against_norms_written_out():
    S, H, C, p, n, c = 7.0, 50.0, 3.0, 0.7, 20.0, 0.8
    outer = math.log(n) * H ** (c - 1) / S
    inner = C * H**-p
    head = math.hypot(outer, inner)
    length = math.sqrt(H) * head
    with float64_on_cpu():
        slacks = jax.jit(lambda *logs: target_slacks(*logs, p, math.log(n), scaling=c))
        found = slacks(*(math.log(v) for v in (S, H, C)))
    expected = (
        S**2 * C / H**p,
        H**c / (S**5 * length**3),
        H**c / (S**3 * length**2),
        H**c / (S**5 * head * length**3),
    )
    np.testing.assert_allclose(np.exp(np.asarray(found)), expected, rtol=1e-12)


def test_proposition_7_has_no_theta_within_its_distance():
    # E5, by brute force over the sphere: T = n = 1, x = 1, so Phi = H^{-1/2} sum_h u_h whatever W.
    example, stored = _stored("prop7.exists", "printed")
    eps = math.exp(float(stored["log_eps"]))
    distance = (2 + math.log(1 / eps)) / math.sqrt(2)
    rng = np.random.default_rng(0)
    for heads in (1, 2, 5):
        points = rng.normal(size=(4000, 2 * heads))
        points = np.concatenate([points, [[1.0] * heads + [0.0] * heads]])
        points *= distance / np.linalg.norm(points, axis=1, keepdims=True)
        margins = np.sum(points[:, :heads], axis=1) / math.sqrt(heads)
        least = np.min(np.log1p(np.exp(-margins)))
        assert least == pytest.approx(math.log1p(math.exp(-distance)), rel=1e-9)
        assert least / eps == pytest.approx(example.ratio, rel=1e-9)
    assert math.log1p(math.exp(-math.sqrt(2) * distance)) < eps


def test_lemma_12_fails_at_a_first_phase_of_two_samples():
    # E9 with fractions: one sample of each label, T = 2, one relevant token, S = 1, H = 1.
    example, stored = _stored("lem12", "printed")
    samples = {1: [[1, 0, 0, 0], [0, 0, 1, 0]], -1: [[0, 1, 0, 0], [0, 0, 1, 0]]}
    mean = [
        sum(Fraction(y * row[j], 2) for y, X in samples.items() for row in X) / 2 / 2
        for j in range(4)
    ]
    assert mean == [Fraction(1, 8), Fraction(-1, 8), 0, 0]
    p = [m - Fraction(c, 4) for m, c in zip(mean, (1, -1, 0, 0))]
    assert [float(x) for x in p] == stored["p"].tolist()
    output = sum(m * sum(row[j] for row in samples[1]) for j, m in enumerate(mean))
    delta, size = float(stored["delta"]), math.sqrt(sum(float(x) ** 2 for x in p))
    bound = lambda delta: 2 * 1 * (1 + size) * math.sqrt(2 * math.log(1 / delta))
    assert float(abs(output)) > bound(delta) and example.ratio == pytest.approx(1 / delta)
    assert bound(0.9985) > float(output) > bound(0.9987)
    # With P of (6) at C = 1 and delta = 1/2 as well: n1 = 2, d = 4, S = 1, Z = 0.
    wide = 2 * (math.sqrt(4 / 2) + math.sqrt(math.log(2) / 2))
    assert size < wide and float(output) > 2 * (1 + wide) * math.sqrt(2 * math.log(1 / delta))


def test_the_order_of_the_margins_by_hand():
    # E18 in rationals times sqrt(5), sqrt(6).
    T, M, zeta, Z = 10, 2, Fraction(1, 2), Fraction(1, 10)
    first = T * (1 - zeta) * zeta * (zeta - 7 * Z - 12 * Z**2 - 16 * Z**3)
    linear = float(zeta - 2 * (1 - zeta) * Z) * math.sqrt(T / 2)
    star = float(first) / (4 * math.sqrt(2 * (M + 1))) + linear
    assert round(star, 3) == 0.809 and round(linear, 3) == 0.894
    form = "printed, gamma* >= gamma_lin"
    ratio = STATEMENTS["multihead.sec5.3.order"].form(form).counterexample.ratio
    assert linear / star == pytest.approx(ratio, rel=1e-12)


def test_the_deviation_of_a_first_phase_leaves_the_violation():
    # E18 at S = 10, no noise: gamma* less P T^{5/2} S^3 with (6) at C = 1, n1 = 10^12, delta = .1.
    T, M, S, d = 10, 2, 10.0, 4
    P = 2 * S * (math.sqrt(d) + math.sqrt(math.log(10))) / 10**6
    star = T / 4 * (S**4 / 2) / (4 * math.sqrt(2 * (M + 1))) + S * math.sqrt(T / 2) / 2
    full = S * math.sqrt(T / 2)
    assert star / full == pytest.approx(
        STATEMENTS["multihead.sec5.3.order"].form("printed").counterexample.ratio, rel=1e-12
    )
    assert round(star - P * T**2.5 * S**3) == 1265 and round(P, 6) == 7e-5


def test_eq_115_adds_up_to_less_and_turns_for_negative_alpha():
    # E33: the brackets of (112) and (113) in rationals, over 1 - zeta, against the one printed.
    noise = [Fraction(k, 4) for k in range(5)]
    for z in (Fraction(k, 7) for k in range(1, 7)):
        off = 1 - z
        for m in noise:
            for v in noise:
                first = 1 * z - z * off * (m + v) - 2 * off * (z + 2 * off) * m**2
                first -= 4 * off**2 * m**2 * (m + v)
                second = -(z**2) - z * off * (4 * m + z * v)
                second -= 2 * off**2 * ((2 + z) * m + 2 * z * v) * m + 4 * off**3 * m**2 * (m + v)
                rest = z - z * (5 * m + (1 + z) * v) - 4 * off * (2 - z) * (m + v) * m**2
                printed = rest - 2 * ((4 - z**2) * m + 2 * z * off * v) * m
                right = rest - 2 * ((4 - 2 * z - z**2) * m + 2 * z * off * v) * m
                assert (first + second) / off == right == printed + 4 * z * m**2
    # alpha = -1, y = 1, p = 0, one relevant token of two, noise -1/2 along mu_+: by (107).
    S, zeta, T = 2.0, 0.5, 2
    mu, other, nu = S * np.eye(4)[:3]
    X = np.stack([mu, nu - 0.5 * mu / S**2])
    W = np.outer(mu, mu) + np.outer(other, other) + np.outer(nu, mu + other)
    R0 = np.eye(T) / T - np.ones((T, T)) / T**2
    found = -zeta / 2 * sum((mu - other) @ X.T @ R0 @ X @ W.T @ x for x in X)
    m, off = 0.5, 1 - zeta
    brace = zeta * S**6 - 5 * zeta * m * S**4 - 2 * (4 - zeta**2) * m**2 * S**2
    brace -= 4 * off * (2 - zeta) * m**3
    bound = -T * off * zeta / 2 * brace
    assert found < bound - 1 and -found >= -bound


def test_eq_123_has_norm_root_two_for_patterns_that_dm1_allows():
    # E6 by counting entries: U of (123) with 1_T has 2 T entries of size 1 / sqrt(T) at S = 1.
    example, stored = _stored("eq9", "printed, eq. (123)")
    T, patterns = example.size["T"], stored["patterns"]
    assert patterns.shape == (3, 3) and np.array_equal(patterns @ patterns.T, np.eye(3))
    U = np.ones((T, 1)) * (patterns[0] - patterns[1]) / math.sqrt(T)
    assert np.sum(U**2) == pytest.approx(2) and np.sum(U**2) + 1 == pytest.approx(3)
    # The largest relative difference among the entries: ||theta_opt||^2, 3 against 2.
    assert example.ratio == pytest.approx((3 - 2) / 3)


def test_the_exponent_below_12_in_powers():
    # E10 in plain floats: H^{1/2} = log(n)^5 C^{-2} H^{2 p - 1} solved for C, at the stored H, n.
    example, stored = _stored("sec5.3.exponent", "printed")
    H, n, p, C = 10**12, 20, 1, math.exp(16)
    assert math.exp(stored["log_H"]) == pytest.approx(H) and math.exp(stored["log_n"]) == (
        pytest.approx(n)
    )
    solved = math.sqrt(math.log(n) ** 5 * H ** (2 * p - 1) / math.sqrt(H))
    assert solved == pytest.approx(math.log(n) ** 2.5 * H ** (p - 0.75))
    printed = math.log(n) ** 2.5 * H ** (p - 0.25)
    assert example.ratio == pytest.approx(math.log(printed / solved) / math.log(printed))
    S = math.exp(float(stored["log_S"]))
    assert H**p / C <= S**2 and math.log(n) * H ** (p - 0.5) / C <= S
    # The iff: its left side is true with e^12 to spare, its printed right side false by e^7.
    assert math.sqrt(H) > math.exp(12) * math.log(n) ** 5 / C**2 * H ** (2 * p - 1)
    assert math.exp(6) < C / solved and C / printed < math.exp(-7)


def test_the_slips_of_103_and_of_the_last_display_of_appendix_e():
    # E31: U has the factor alpha, so that alpha times <U, .> is alpha^2; W = 0, one head.
    alpha, rng = Fraction(1, 3), np.random.default_rng(3)
    X, row = (rng.integers(-3, 4, shape).tolist() for shape in ((3, 2), (2,)))
    mean = [Fraction(sum(x[j] for x in X), 3) for j in range(2)]
    output = sum(3 * alpha * r * m for r, m in zip(row, mean))
    printed = sum(alpha / 3 * alpha * r * sum(x[j] for x in X) * 3 for j, r in enumerate(row))
    assert output != 0 and printed == alpha * output
    # E32: y = -1, mass a on R above 1 - eps, an irrelevant token without noise.
    S, eps, a, Z, y = 2, Fraction(1, 10), Fraction(95, 100), Fraction(0), -1
    psi = a * y * S**2
    assert psi >= y * S**2 * a - 2 * Z * (1 - a)
    assert not y * S**2 * a - 2 * Z * (1 - a) >= y * S**2 * (1 - eps) - 2 * eps * Z
    assert y * psi >= S**2 * (1 - eps) - 2 * eps * Z


def test_proposition_7_starts_good_in_plain_floats():
    # E5: every hypothesis at the stored instance x = 1, theta_0 = 0, theta* = sqrt(2/H) in each U.
    _, stored = _stored("prop7.exists", "printed")
    assert stored["x"].tolist() == [1.0] and float(stored["offset"]) == 0
    gamma, B2, BPhi, log_eps = math.sqrt(2), 1.0, 1.0, float(stored["log_eps"])
    G = (2 * BPhi - log_eps) / gamma
    H = math.ceil((5 * B2 / BPhi * (3 + 1) * G**2 * max(1, G)) ** 2)
    direction = math.sqrt(2 / H)
    assert math.sqrt(H) * direction == pytest.approx(math.sqrt(2))
    # d Phi / d u_h = x / sqrt(H), so that the margin of theta* is H sqrt(2/H) / sqrt(H).
    assert H * direction / math.sqrt(H) == pytest.approx(gamma)


def test_lemma_18_fails_for_negative_scores():
    example, stored = _stored("lem18", "printed")
    weights = [math.e**-1] * 2 + [math.e**-2] * 2  # Gamma = 1
    mass = sum(weights[2:]) / sum(weights)
    assert mass > 0.1 and mass / 0.1 == pytest.approx(example.ratio)
    least = 2 / -1 * math.log((4 / 2 - 1) / 0.1)
    assert least + float(stored["extra"]) == pytest.approx(1.0) and least < 1


def test_the_gain_over_the_linear_model_in_rationals():
    # Section 5.1: gamma* - gamma_lin, term by term at zeta = 1/2, T = 4, M = 2, P = 1.
    for S in (10**5, 10**7):
        first = Fraction(S**4, 2) - 7 * S**3 - 12 * S**2 - 16 * S
        gain = float(first) / (4 * math.sqrt(6)) - 32 * (2 * S) ** 3
        with float64_on_cpu():
            dm1 = Assumption3(S=1.0 * S, zeta=0.5, Z_mu=S, Z_nu=S, Z=S, T=4.0, M=2.0)
            found = float(gamma_star(dm1, 1.0) - gamma_linear(dm1))
        assert found == pytest.approx(gain, rel=1e-9) and gain > 0


def test_the_law_of_a_sum_of_uniforms_against_convolution():
    # `_interval_sum_tail` by convolving densities on a grid of 4000 cells.
    cells, heads = 4000, 5
    step = 2 / cells
    density = np.full(cells, 0.5)
    total = density
    for _ in range(heads - 1):
        total = np.convolve(total, density) * step
    places = -heads + step * (np.arange(len(total)) + heads / 2)
    with float64_on_cpu():
        for least in (0.3, 1.7, 3.9):
            tail = np.sum(total[np.abs(places) > least]) * step
            found = float(_interval_sum_tail(jnp.asarray(5.0), jnp.asarray(least)))
            assert found == pytest.approx(tail, abs=2e-3)
        sums, probability = map(np.asarray, _sign_sum_law(jnp.asarray(5.0)))
    assert np.sum(probability) == pytest.approx(1.0) and np.max(sums[:6]) == 5


def test_the_other_loss_is_what_the_footnote_asks_for():
    # l(z) = sqrt(1 + z^2) - z by central differences: convex, smooth, 2-Lipschitz, |l'| <= l.
    z, h = np.linspace(-20, 20, 401), 1e-3
    loss = lambda z: np.sqrt(1 + z**2) - z
    slope = (loss(z + h) - loss(z - h)) / (2 * h)
    curvature = (loss(z + h) - 2 * loss(z) + loss(z - h)) / h**2
    assert np.all((slope > -2) & (slope < 0)) and np.all((curvature > 0) & (curvature < 1 + 1e-5))
    assert np.all(-slope <= loss(z) * (1 + 1e-6))


def test_the_self_bounded_curvatures_are_means():
    # Three samples in plain floats: a sum in place of a mean is three times as much.
    values, norms = (-1.0, 0.0, 2.0), (3.0, 1.0, 5.0)
    slopes = [1 / (1 + math.exp(m)) for m in values]
    with float64_on_cpu():
        given = jnp.asarray(values), jnp.asarray(norms)
        found = float(slope_weighted_curvature(*given)), float(loss_weighted_curvature(*given))
    loss = sum(math.log1p(math.exp(-m)) for m in values) / 3
    assert found[0] == pytest.approx(sum(s * c for s, c in zip(slopes, norms)) / 3)
    assert found[1] == pytest.approx(5 * loss)


def test_the_repaired_quadratic_form_is_the_hessian():
    # E13: <v, Hess_WW v> = sum_ij Q_ij <M_ij, Q>, M_ij = grad_W [grad_W Phi]_ij by differences of
    # Lemma 1's gradient in NumPy, and both are within (54)-(56)'s bound.
    rng = np.random.default_rng(1)
    T, d, h = 3, 2, 1e-5
    X, U, W, Q = (rng.normal(size=s) for s in ((T, d), (T, d), (d, d), (d, d)))

    def gradient(W):
        total = np.zeros((d, d))
        for x, u in zip(X, U):
            a = softmax(X @ W.T @ x)
            total += np.outer(x, u @ X.T @ (np.diag(a) - np.outer(a, a)) @ X)
        return total

    value = lambda W: sum(u @ X.T @ softmax(X @ W.T @ x) for x, u in zip(X, U))
    second = (value(W + h * Q) - 2 * value(W) + value(W - h * Q)) / h**2
    form = 0.0
    for i in range(d):
        for j in range(d):
            M = np.zeros((d, d))
            for k in range(d):
                for l in range(d):
                    E = np.zeros((d, d))
                    E[k, l] = h
                    M[k, l] = (gradient(W + E) - gradient(W - E))[i, j] / (2 * h)
            form += Q[i, j] * np.sum(M * Q)
    assert form == pytest.approx(second, rel=1e-4, abs=1e-4)
    scores = np.sum(np.max(np.abs(X @ U.T), axis=0))
    radius, entry = np.max(np.linalg.norm(X, axis=1)), np.max(np.abs(X))
    assert abs(form) <= 6 * d * radius**2 * entry**2 * scores * np.sum(Q**2)


def test_the_heads_of_corollary_5_written_out():
    # Section 7's order: the printed condition with plain floats, at d = T = 64.
    d, K = 64, 10
    R, gamma = math.sqrt(d), 1 / d
    g0 = (2 + math.log(K)) / gamma
    root = 256 * d * R**3 * (3 * math.sqrt(d) * R**2 * (4 * g0 + 1) + 1) * g0**2
    statement = STATEMENTS["multihead.sec7.heads"]
    with float64_on_cpu():
        found = statement.evaluate({"D": np.asarray(64.0)}, Size({"d": 64, "D": 64}))
    assert float(found.lhs) == pytest.approx(root**2, rel=1e-9)
    assert float(found.rhs["printed"]) == pytest.approx(d**3 * R**10 / gamma**6, rel=1e-12)


def test_loss_of_one_token_by_logsumexp():
    # prop7.exists evaluates tied heads; here the same margin by hand, with another start.
    statement = STATEMENTS["multihead.prop7.exists"]
    instance = {"x": [2.0, 0.0, 0.0], "offset": 1.5, "part": 0.5, "log_eps": -3.0}
    with float64_on_cpu():
        given = {name: np.asarray(value) for name, value in instance.items()}
        sides = jax.jit(lambda given: statement.evaluate(given, Size({"d": 3})).lhs)
        found = sides(given)
    G = (2 * 1.5 + 3) / (0.5 * math.sqrt(2) * 2)
    for name, distance in (("printed", G), ("corrected", math.sqrt(2) * G)):
        expected = logsumexp([0.0, -(2 * distance - 1.5)])
        assert float(found[name]) == pytest.approx(expected, rel=1e-6)
