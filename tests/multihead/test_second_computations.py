"""Statements on the main text's remarks, each by a computation that shares no code with it.

Fractions, plain floats, NumPy and a linear program, written from the paper's text; the theory
modules are called on the judged side only.
"""

import math
from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from jaxbounds.claims.statements import Sides, Size
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.multihead.certificate import GoodInitialisation, realizing_heads
from jaxbounds.multihead.first_phase import printed_centre
from jaxbounds.multihead.statements.contexts import sequence, unfold
from jaxbounds.multihead.statements.realizable_starts import (
    enough_for_proposition_7,
    good_start_of,
)
from jaxbounds.papers import load_paper

STATEMENTS = {s.id.removeprefix("multihead."): s for s in load_paper("multihead").statements}


def _sides(name, instance, **size):
    """What a statement compares; by one program, if it is one."""
    statement = STATEMENTS[name]

    def compared(given):
        sides = statement.evaluate(given, Size(size))
        return sides.lhs, sides.rhs

    with float64_on_cpu():
        given = jax.tree.map(jnp.asarray, instance, is_leaf=lambda leaf: isinstance(leaf, list))
        return Sides(*(compared if statement.host else jax.jit(compared))(given))


def _stored(name, form):
    return STATEMENTS[name].form(form).counterexample


@pytest.mark.parametrize("r", [-0.4, 0.0, 0.25, 0.5, 1 / math.sqrt(3), 0.8])
def test_the_third_moment_at_a_given_share(r):
    """S3's sketch: the largest E[(A - EA)(B - EB)^2], A = +-1, by an LP over laws of B in [-1, 1].

    At given P(A = 1) and EB = m it is linear in the two conditional laws: nothing of the sketch
    (extreme points, the best m) is used.
    """
    P, Q = (1 - r) / 2, (1 + r) / 2
    places = np.linspace(-1, 1, 41)
    best = 0.0
    for m in [*np.linspace(-1, 1, 81), -r]:  # -r is the mean of A
        gain = np.concatenate([2 * Q * (places - m) ** 2, -2 * P * (places - m) ** 2])
        ones, none = np.ones(41), np.zeros(41)
        equal = np.stack([np.append(ones, none), np.append(none, ones), np.append(places, places)])
        found = linprog(-gain, A_eq=equal, b_eq=[P, Q, m])
        best = max(best, -found.fun) if found.status == 0 else best
    most = (1 - r**2) / 2 if r <= 0 else (1 + r) / 2 if r <= 0.5 else 2 * r * (1 - r**2)
    assert most - 2e-3 <= best <= most + 1e-9
    # What the sketch had for every r is too small below 1/2.
    assert (best > 2 * r * (1 - r**2) + 1e-2) == (r < 0.5)


@pytest.mark.parametrize("T, d", [(1, 1), (3, 2), (2, 5)])
def test_the_heads_of_98_by_hand(T, d):
    """(98) in plain floats, the right side and the hypothesis on both sides of it."""
    for B, phi, gamma, R, eps in product((1.0, 2.5), (1.0, 3.0), (0.7, 40.0), (1.0, 1.5), (0.3, 1)):
        G = (2 * phi + math.log(1 / eps)) / gamma
        root = 5 * math.sqrt(T * d) * R**3 * B / phi * (3 * math.sqrt(d) * R**2 + 1)
        heads = (root * G**2 * max(1, G)) ** 2
        with float64_on_cpu():
            good = GoodInitialisation(*map(jnp.asarray, (B, phi, gamma)))
            found = float(realizing_heads(good, eps, R, T=T, d=d))
            size = Size({"T": T, "d": d})
            enough = [
                bool(next(iter(enough_for_proposition_7(good, eps, R, h, size).values())))
                for h in (0.999 * heads, 1.001 * heads)
            ]
        assert found == pytest.approx(heads, rel=1e-12) and enough == [False, True]


def test_the_step_of_116_after_a_first_phase():
    """E3 in rationals: two noise-free samples, T = 2, S = 1, M = 1; the powers of 2 are floats."""
    T, M, z, S = 2, 1, Fraction(1, 2), 1
    first, second = [[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1]]
    mean = [Fraction(sum(a[j] - b[j] for a, b in zip(first, second)), 2 * 2 * 2) for j in range(3)]
    p = [m - c * z / 2 for m, c in zip(mean, (1, -1, 0))]
    stored = _stored("eq116", "printed, alpha = +-1")
    assert [float(x) for x in p] + [0.0] == list(stored.instance["p"])
    assert not np.any(stored.instance["z"])
    P = math.sqrt(sum(x**2 for x in p))
    assert pytest.approx(float(z) * S * math.sqrt(2) / 4) == P
    brace = float(T * (1 - z) * z / 2 * z * S**6) - 2 * math.sqrt(2 * (M + 1)) * P * T**2.5
    norm = S**2 * math.sqrt(2 * (M + 1))
    last = float(T * (1 - z) * z * z * S**4) / (4 * math.sqrt(2 * (M + 1))) - P * T**2.5
    assert round(brace / norm, 2) == -1.94 and round(last, 2) == -0.97
    # On [-1, 1] the step is an equality, for signs it is false: the last line is above.
    assert last == pytest.approx(brace / norm / 2) and last > brace / norm
    found = _sides("eq116", dict(stored.instance), T=2, d=4)
    assert float(found.lhs["printed, alpha = +-1"]) == pytest.approx(last)
    assert float(found.rhs["printed, alpha = +-1"]) == pytest.approx(brace / norm)
    # The margin itself: alpha sum_t x_t u^T X^T R_0 X along W*, u = (zeta/2) u* + p, in rationals.
    X, u = first, mean
    R0 = [[Fraction(int(i == j), T) - Fraction(1, T**2) for j in range(T)] for i in range(T)]
    W = [[1, 0, 0], [0, 1, 0], [1, 1, 0]]
    logits = [sum(a * x for a, x in zip(u, row)) for row in X]
    scores = [
        sum(t[i] * W[i][j] * row[j] for t in X for i, j in product(range(3), repeat=2)) for row in X
    ]
    margin = sum(logits[a] * R0[a][b] * scores[b] for a, b in product(range(T), repeat=2))
    assert float(found.rhs["printed, alpha = +-1, mu"]) == pytest.approx(float(margin) / norm)
    assert float(found.rhs["printed, mu"]) == pytest.approx(float(margin) / norm / 2)


def test_the_brace_is_negative_at_the_deviation_of_the_printed_centre():
    """E3 with E2: P = zeta S sqrt(2) / 4 makes the brace of (115) negative, by plain floats."""
    for z, T, M, S in product((0.1, 0.5, 0.9), (2, 10, 50), (1, 5), (1.0, 10.0, 1e3)):
        P = z * S * math.sqrt(2) / 4
        brace = T * (1 - z) * z / 2 * z * S**6
        assert brace < 2 * math.sqrt(2 * (M + 1)) * P * T**2.5 * S**5


def test_the_gaps_and_the_sparsity_in_rationals():
    """E18's clause: gamma* - gamma_lin over sqrt(6) and the other gaps, at T = 10, M = 2, S = 1."""
    T, levels = 10, (Fraction(1, 10), Fraction(1, 2))
    gain = [T * (1 - z) * z**2 / 4 for z in levels]  # times 1 / sqrt(2 (M + 1))
    assert gain[1] / gain[0] == Fraction(125, 9) and [
        float(f"{float(g) / math.sqrt(6):.2g}") for g in gain
    ] == [0.0092, 0.13]
    stored = _stored("sec5.3.sparsity", "derived, gamma* - gamma_lin")
    assert stored.ratio == pytest.approx(125 / 9)
    # gamma_attn - gamma_lin = sqrt(5) (1 - zeta) falls in zeta, and the order holds at both.
    for z, g in zip(levels, gain):
        assert 0 < float(g) / math.sqrt(6) < math.sqrt(5) * float(1 - z)
    found = _sides("sec5.3.sparsity", dict(stored.instance), C=1)
    assert float(found.lhs["printed"]) == pytest.approx(math.sqrt(5) / 2)
    assert float(found.rhs["printed"]) == pytest.approx(math.sqrt(5) * 0.9)


def test_no_projection_separates_relevant_tokens_better_than_the_oracle():
    """Duality: the margin of any U of norm one is at most ||sum_i q_i y_i e_t mu_y^T||."""
    T, d, S = 4, 4, 1.7
    atoms = [
        y * np.outer(np.eye(T)[t], S * np.eye(d)[k]) for t in range(T) for k, y in ((0, 1), (1, -1))
    ]
    bound = np.linalg.norm(sum(atoms) / len(atoms))
    U = np.outer(np.ones(T), [S, -S, 0, 0])
    margin = min(np.sum(U * a) for a in atoms) / np.linalg.norm(U)
    assert margin == pytest.approx(bound) == pytest.approx(S / math.sqrt(2 * T))
    given = {"S": S, "U": np.random.default_rng(0).normal(size=(T, d))}
    found = _sides("sec5.2.classifier", given, T=T, d=d)
    assert float(found.rhs["printed"]) == pytest.approx(bound * np.linalg.norm(given["U"]))
    assert float(found.lhs) == pytest.approx(min(np.sum(given["U"] * a) for a in atoms))


def test_the_gradient_of_section_5_2_by_differences():
    """(alpha zeta / 2) sum_t x_t u*^T X^T phi'(0) X + ... against differences of the model."""

    @jax.jit
    def drawn(key):
        instance = {**sequence(key, Size({"T": 5, "d": 5})), "alpha": jnp.asarray(-0.6)}
        c = unfold(instance)
        return instance, c.X, printed_centre(c.classifier, c.zeta) + instance["p"]

    with float64_on_cpu():
        instance, X, row = jax.tree.map(np.asarray, drawn(jax.random.key(3)))
    found = _sides("sec5.2.gradient", instance, T=5, d=5)
    alpha, h = -0.6, 1e-5

    def model(W):
        logits = X @ W @ X.T
        rows = np.exp(logits) / np.sum(np.exp(logits), axis=1, keepdims=True)
        return alpha * np.sum(rows @ X @ row)

    slope = np.zeros((5, 5))
    for i, j in product(range(5), repeat=2):
        step = np.zeros((5, 5))
        step[i, j] = h
        slope[i, j] = (model(step) - model(-step)) / (2 * h)
    np.testing.assert_allclose(found.rhs["printed"], slope, rtol=1e-5, atol=1e-6)


def test_the_smoothness_of_section_6_1_in_floats():
    """alpha >= 3 beta_1 and >= 6, so a step is below one and beta_2 of both iterates below rho."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        T, d = rng.integers(1, 9, 2)
        R = math.exp(rng.uniform(0, 2)) if rng.random() < 0.8 else 1.0
        D, s, H = np.exp(rng.uniform(-6, 3, 3))
        H = math.ceil(H * 1e3)
        alpha = 3 * math.sqrt(d) * R**2
        alpha *= 3 * math.sqrt(T) * R**3 * (3 * D + s) + 2 * math.sqrt(T) * R
        rho = (2 * math.sqrt(T * d) * R**3 / math.sqrt(H) + T * R**2 / 4) * alpha**2
        moved = math.sqrt(T) * R * (2 * R**2 * (3 * D + s) + 1) / rho
        assert moved < 1
        after = 3 * D + s + moved
        beta1 = math.sqrt(T) * R * (2 * R**2 * after + 1)
        beta3 = 2 * math.sqrt(T * d) * R**3 * (3 * math.sqrt(d) * R**2 * after + 1)
        assert beta3 / math.sqrt(H) + beta1**2 / 4 <= rho


def test_the_heads_of_corollary_2_by_hand():
    """E11: (101) and the printed order with d = 1, T = R, gamma = sqrt(2 T) R, K = 10, B_2 = 1.

    Gamma is that of one sequence of T equal tokens: at zero the gradient in U is X / T-averaged,
    all rows R e_1, so that its norm is sqrt(T) R, and ||theta*|| = sqrt(2).
    """
    R = 2.0**12
    gradient = np.full((int(R), 1), R)
    gamma = math.sqrt(2) * np.linalg.norm(gradient)
    g0 = (2 + math.log(10)) / gamma
    root = 256 * math.sqrt(R) * R**3 * (3 * R**2 * (4 * g0 + 1) + 1) * g0**2
    found = _sides("cor2.heads", {"R": R}, C=1)
    assert float(found.lhs["derived"]) == pytest.approx(root, rel=1e-9)
    assert float(found.rhs["derived"]) == pytest.approx(R**5.5 * g0**3)
    assert root / (R**5.5 * g0**3) > 1e5 * 16


def test_what_corollary_2_guarantees_by_hand():
    """Corollary 5 at K = 10^200, T = 3, d = 2 and all constants one, in plain floats."""
    K, T, d = 1e200, 3, 2
    log = math.log(K)
    g0 = 2 + log
    root = 256 * math.sqrt(T * d) * (3 * math.sqrt(d) * (4 * g0 + 1) + 1) * g0**2
    alpha = 3 * math.sqrt(d) * (3 * math.sqrt(T) * (4 * g0 + 1) + 2 * math.sqrt(T))
    step = 1 / ((2 * math.sqrt(T * d) / root + T / 4) * alpha**2)
    train = 2 + 5 * g0**2 / (4 * step)
    found = _sides("cor2.rates", {"K": K}, C=1)
    expected = {
        "printed, H": (root**2, log**6),
        "printed, eta": (1 / step, log**2),
        "printed, train loss": (train, log**4),
        "printed, test loss": (train + 17 * g0**2 / step, log**4),
    }
    for name, (lhs, rhs) in expected.items():
        assert float(found.lhs[name]) == pytest.approx(lhs, rel=1e-6), name
        assert float(found.rhs[name]) == pytest.approx(rhs, rel=1e-9), name
    # Section 5.1: S = 1, T = 2, d = 3, M = 1, zeta = 1/2, P = 0, delta = 1/10.
    star = 2 / 8 / (4 * 2) + 1 / 2
    phi = 2 * math.sqrt(2 * math.log(2 * K / 0.1))
    good, B = (2 * phi + log) / (star / 2), 1.0
    root = 256 * math.sqrt(6) * B * (3 * math.sqrt(3) * (4 * good + B) + 1) * good**2
    alpha = 3 * math.sqrt(3) * (3 * math.sqrt(2) * (4 * good + B) + 2 * math.sqrt(2))
    step = 1 / ((2 * math.sqrt(6) / root + 2 / 4) * alpha**2)
    both = 2 + (5 / 4 + 17) * good**2 / step
    name = "printed, Section 5.1"
    assert float(found.lhs[name]) == pytest.approx(both * step * star**2, rel=1e-6)


def test_gamma_lin_and_the_deviation_at_a_large_signal():
    S, d = 1e4, 4
    found = _sides("sec5.1.signal", {"S": S}, C=1)
    linear = S * math.sqrt(2) * (0.5 - S / S**2)
    P = 3 * S * (math.sqrt(d) + math.sqrt(math.log(10))) / math.sqrt(2 * S**2 * d)
    assert float(found.lhs["printed, gamma_lin"]) == pytest.approx(linear)
    assert float(found.lhs["printed, P"]) == pytest.approx(S * P) and P < 4


def test_an_unbalanced_start_has_the_output_it_should():
    """B_Phi of a start with b sqrt(H) more heads of one sign: b times one head's, whatever H is."""
    statement = STATEMENTS["cor5.unbalanced"]
    size = Size(statement.sizes[0])

    @jax.jit
    def drawn(key):
        instance = statement.sample["sample"](key, size)
        start, c = good_start_of(instance), unfold(instance)
        good = start.good
        constants = good.head_bound, good.model_bound, good.margin, start.radius
        return instance, constants, c.X, c.zeta / 4 * c.classifier + instance["p"]

    with float64_on_cpu():
        instance, constants, X, row = jax.tree.map(np.asarray, drawn(jax.random.key(5)))
    (B, phi, gamma, R), b = map(float, constants), float(instance["excess"])
    outputs = np.abs(b * np.sum(X @ row, axis=1))  # T rows, each the mean token
    assert phi == pytest.approx(max(1, outputs.max()))
    # H heads written out, (H + b sqrt(H)) / 2 of them with alpha = +1.
    H = 10_000
    signs = np.where(np.arange(H) < round((H + b * math.sqrt(H)) / 2), 1.0, -1.0)
    written_out = np.sum(signs) / math.sqrt(H) * np.sum(X @ row, axis=1)
    np.testing.assert_allclose(np.abs(written_out), outputs, rtol=2 / (abs(b) * math.sqrt(H)))
    # The printed bound with its own step, and H of (101).
    K, T, d = size["K"], size["T"], size["d"]
    G = (2 * phi + math.log(K)) / gamma
    root = 256 * math.sqrt(T * d) * R**3 * B * (3 * math.sqrt(d) * R**2 * (4 * G + B) + 1) * G**2
    alpha = 3 * math.sqrt(T) * R**3 * (4 * G + B) + 2 * math.sqrt(T) * R
    alpha *= 3 * math.sqrt(d) * R**2
    rho = (2 * math.sqrt(T * d) * R**3 / root + T * R**2 / 4) * alpha**2
    unit = 4 * phi**2 / gamma**2
    step = min(1, 1 / rho, unit / math.log1p(math.exp(phi)))
    bound = 2 / K + 5 * G**2 / (4 * step * K)
    sides = _sides("cor5.unbalanced", instance, **size)
    assert float(sides.rhs["printed"]) == pytest.approx(bound, rel=1e-6)


def test_the_display_above_113_needs_the_missing_factor():
    """E34 in rationals: the second part of Term I, written out, is the display with z_t'^T mu_-."""
    rng, T, relevant, S = np.random.default_rng(2), 5, 2, 2
    mu, other, nu = (S * np.eye(3, dtype=int)[j] for j in range(3))
    z = [[Fraction(int(v), 4) for v in rng.integers(-3, 4, 3)] for _ in range(T)]
    dot = lambda a, b: sum(Fraction(x) * y for x, y in zip(a, b))
    add = lambda a, b: [x + y for x, y in zip(a, b)]
    X = [[*map(Fraction, mu)] if t < relevant else add(nu, z[t]) for t in range(T)]
    W = lambda x, v: (  # x^T W* v
        dot(x, mu) * dot(mu, v) + dot(x, other) * dot(other, v)
        + dot(x, nu) * (dot(mu, v) + dot(other, v))
    )  # fmt: skip
    classes = sum(dot(x, mu) - dot(x, other) for x in X)
    found = -classes * sum(W(x, v) for x in X for v in X) / T**2
    on, off = range(relevant), range(relevant, T)

    def display(factor):
        outer = relevant * S**2 + sum(dot(z[t], mu) - dot(z[t], other) for t in off)
        inner = relevant * (relevant * S**4 + sum(S**2 * dot(z[t], mu) for t in off))
        for t in off:
            inner += relevant * (S**4 + S**2 * dot(z[t], mu) + S**2 * dot(nu, z[t]))
            for s in off:
                inner += dot(z[t], mu) * dot(z[s], mu) + dot(z[t], other) * factor(s)
                inner += dot(nu, z[t]) * (dot(z[s], mu) + dot(z[s], other))
                inner += S**2 * (dot(z[s], mu) + dot(z[s], other))
        return -outer * inner / T**2

    assert len(on) == relevant and found == display(lambda s: dot(z[s], other))
    assert found != display(lambda s: 1)
