"""Head counts, step sizes and bounds of Section 4 against oracles that share no code with them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.multihead import bounds
from jaxbounds.multihead.certificate import (
    GoodInitialisation,
    corollary5,
    good_initialisation,
    realized_distance,
    realized_size,
    realized_step,
    realizing_heads,
    realizing_heads_sharp,
    target_scale,
)
from jaxbounds.multihead.descent import (
    LARGEST_HEAD,
    MEAN_SQUARE,
    SHARPEST,
    Setting,
    alpha,
    averaged_loss,
    ball_constants,
    corollary4_gap,
    distance_bound,
    generalization_gap,
    largest_step,
    loss_bound,
    reach,
    rho,
    root_heads,
    sharp_weight,
    stability,
)
from jaxbounds.multihead.descent_certificate import descent_certificate
from jaxbounds.multihead.realizable import realizer
from jaxbounds.multihead.runs import descend, target_of
from jaxbounds.multihead.stability import leave_one_out
from jaxbounds.multihead.statements.run_instances import realizable

C = 4 / (3 * math.sqrt(3))


def _instance(step):
    """Three heads in two groups, written down rather than drawn: compiling a sampler is slow."""
    entries = lambda *shape: np.sin(np.arange(1.0, math.prod(shape) + 1.0)).reshape(shape)
    problem = {
        "X": entries(3, 3, 2),
        "y": np.asarray([1, -1, 1]),
        "U0": entries(2, 3, 2),
        "W0": 2 * entries(2, 2, 2),
        "copies": np.asarray([2.0, 1.0]),
        "step": np.asarray(step),
    }
    return jax.tree.map(jnp.asarray, problem)


def _certificates(distance, **changed):
    """Three tokens, d = 2, R = 1, from zero to a target spread over the heads, 300 steps."""
    given = {
        "T": 3,
        "d": 2,
        "radius": 1.0,
        "distance": distance,
        "K": 300,
        "loss_target": 0.5,
        "loss_start": math.log(2),
        "spread": distance,
    }
    return descent_certificate(**(given | changed))


@pytest.mark.parametrize("distance", [0.5, 1.0, 2.0])
def test_certified_heads_are_the_least_that_meet_the_written_out_threshold(distance):
    # Written out from the paper, and searched by bisection: the library solves a quadratic.
    def printed(heads):
        size = distance / math.sqrt(heads)
        bound = 36 * math.sqrt(6) * (3 * math.sqrt(2) * (3 * distance + size) + 1) * distance**2
        return math.sqrt(heads) >= bound

    def sharpened(heads):
        far = math.sqrt(13 / 3) * distance
        beta = math.sqrt(3) * (4 / (3 * math.sqrt(3)) * (far + distance / math.sqrt(heads)) + 1)
        return math.sqrt(heads) >= 2 * beta * far**2

    for name, enough in (("printed", printed), ("sharpened", sharpened)):
        low, high = 1, 10**12
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        assert _certificates(distance)[name].heads == low


def test_smoothness_and_heads_of_the_worked_example():
    # Hand-checked to three digits: H and rho at D = 1/2, 1, 2.
    heads = [_certificates(D) for D in (0.5, 1.0, 2.0)]
    np.testing.assert_allclose(
        [c["printed"].heads for c in heads], [2.64e4, 1.47e6, 8.71e7], rtol=5e-3
    )
    np.testing.assert_allclose([c["sharpened"].heads for c in heads], [49, 1550, 63933], rtol=1e-3)
    np.testing.assert_allclose(
        [c["printed"].smoothness for c in heads], [1785, 4929, 16212], rtol=1e-3
    )
    # sqrt(3) (c* B + 1) / sqrt(H) + 3 (B + 1)^2 / 4 with B = sqrt(13/3) D + D / sqrt(H)
    # + 4 / sqrt(3) at R = 1.
    np.testing.assert_allclose(
        [c["sharpened"].smoothness for c in heads], [15.5625, 22.1972, 42.0110], rtol=1e-5
    )


def test_section_3_by_hand():
    # R = 2, max |X_tj| = 3/2, sum_t ||X u_t||_inf = 3, T = 4, d = 9.
    found = {
        "(37)": (bounds.outer_gradient_bound(2.0, T=4), 4.0),
        "(37), pooling": (bounds.outer_gradient_bound(2.0, T=4, readout="pooling"), 8.0),
        "(37), last": (bounds.outer_gradient_bound(2.0, T=4, readout="last"), 2.0),
        "(43)": (bounds.inner_gradient_bound(2.0, 3.0), 24.0),
        "S1": (bounds.inner_gradient_sharp(2.0, 3.0), 12.0),
        "(44)": (bounds.gradient_bound(2.0, 3.0, T=4), 28.0),
        "S2": (bounds.gradient_sharp(2.0, 3.0, T=4), math.sqrt(160)),
        "(58)": (bounds.hessian_bound(2.0, 1.5, 3.0, T=4, d=9), 1458.0 + 72.0),
        "S4": (bounds.inner_hessian_sharp(2.0, 3.0), 48 * C),
        "beta_1": (bounds.beta1(3.0, 2.0, T=4), 100.0),
        "beta_3": (bounds.beta3(3.0, 2.0, T=4, d=9), 96 * 109.0),
        "beta_2": (bounds.beta2(3.0, 2.0, T=4, d=9, H=16), 24 * 109.0 + 2500.0),
        "beta_1#": (bounds.beta1_sharp(3.0, 2.0, T=4), 28.0),
        "beta_3#": (bounds.beta3_sharp(3.0, 2.0, T=4), 16 * (12 * C + 1)),
        "beta_2#": (bounds.beta2_sharp(3.0, 3.0, 2.0, T=4, H=16), 4 * (12 * C + 1) + 196),
        "S6": (bounds.self_bounded_smoothness(3.0, 3.0, 2.0, T=4, H=16), 4 * (12 * C + 1) + 784),
    }
    for name, (value, expected) in found.items():
        assert float(value) == pytest.approx(expected, rel=1e-6), name


def test_section_4_by_hand(x64):
    # D = 2, size = 3, R = 1, T = 4, d = 1, H = 16, L(theta) = 1/2, L(theta_0) = 8; K = 5.
    s = Setting.bounded(
        distance=2.0, size=3.0, radius=1.0, T=4, d=1, heads=16.0, loss_target=0.5, loss_start=8.0
    )
    far = math.sqrt(13 / 3) * 2
    mean = math.sqrt(1 + (3 + far / 4) ** 2)
    regret = (4 / 3 * 0.5 + 4 / (2 * 0.1 * 5) + 8 / 15) * 3 / 2
    found = {
        "(74)": (root_heads(s), 18 * 4 * (3 * 9 + 1) * 4.0),
        "(84)": (root_heads(s, stability=True), 128 * 4 * 28 * 4.0),
        "(74) with S6": (root_heads(s, LARGEST_HEAD), 2 * far**2 * 2 * (C * (far + 3) + 1)),
        "(84) with S6": (
            root_heads(s, MEAN_SQUARE, stability=True), 8 * far**2 * 2 * (C * (far + 3) + 1),
        ),
        "alpha": (alpha(s), 3 * (6 * 9 + 4.0)),
        "rho": (rho(s), 2 * 174.0**2),
        "rho, S10": (rho(s, LARGEST_HEAD), (C * (far + 5) + 1) / 2 + (far + 6) ** 2),
        "rho, S2": (
            rho(s, MEAN_SQUARE),
            (C * (far + 5) + 1) / 2 + 1 + (3 + (far + 2) / 4) ** 2,
        ),
        "eta": (largest_step(s, 5), 1 / (2 * 174.0**2)),
        "eta, D^2 / L_0": (largest_step(s._replace(loss_start=8e6), 5), 5e-7),
        "eta, D^2 / (K L)": (largest_step(s._replace(loss_target=8e6), 5), 1e-7),
        "(79)": (loss_bound(s, 0.1, 5), 1 + 5 * 4 / 2.0),
        "Lemma 9": (averaged_loss(s, 0.1, 5), 1 + 3 * 4 / 2.0 + 0.8),
        "Lemma 9, again": (averaged_loss(s, 0.1, 5), regret),
        "4 D": (distance_bound(s), 8.0),
        "3.09 D": (distance_bound(s, LARGEST_HEAD), 2 + far),
        "beta~_1": (ball_constants(s)[0], 2 * (2 * 9 + 1.0)),
        "beta~_3": (ball_constants(s)[1], 4 * (3 * 9 + 1.0) / 4),
        "beta~_1#": (ball_constants(s, MEAN_SQUARE)[0], 2 * mean),
        "Lemma 11": (stability(s, 0.1, 5, 10), 2 * 0.1 * 38 / 10 * (5 + 90.0)),
        "(93)": (generalization_gap(s, 0.1, 5, 10), 0.4 * (5 + 90.0)),
        "(96)": (corollary4_gap(2.0, 0.1, 10), 68.0),
    }  # fmt: skip
    for name, (value, expected) in found.items():
        assert float(value) == pytest.approx(expected, rel=1e-9), name
    assert float(SHARPEST.weight) == pytest.approx(0.5 / math.cos(math.sqrt(0.5) / 2))
    assert float(SHARPEST.reach) == pytest.approx(2.016415, rel=1e-6)


def test_definition_1_and_proposition_7_by_hand(x64):
    # One token, so that Phi(X; U_h, W_h) = U_h x; heads (3, 4) and (1, 0), the second three times.
    column = lambda *values: jnp.asarray(values)[:, None, None]
    params, copies = {"U": column(3.0, 1.0), "W": column(4.0, 0.0)}, jnp.asarray([1.0, 3.0])
    data = {"X": column(2.0, 1.0), "y": jnp.asarray([1, -1])}
    direction = {"U": column(1.0, -2.0), "W": column(7.0, 7.0)}
    good = good_initialisation(params, copies, data, direction)
    # B_2 = |(3, 4)|, B_Phi = (3 + 3) 2 / 2; the margins are (1 - 6) 2 / 2 and (6 - 1) / 2.
    np.testing.assert_allclose(good, [5.0, 6.0, -5.0])
    # B_2 = 2, B_Phi = 3/2, gamma = 1, epsilon = 1/e: G = 4.
    good, eps = GoodInitialisation(*map(jnp.asarray, (2.0, 1.5, 1.0))), math.exp(-1)
    assert float(target_scale(good, eps)) == pytest.approx(4.0)
    assert float(realized_distance(good, eps, corrected=False)) == pytest.approx(4.0)
    assert float(realized_distance(good, eps)) == pytest.approx(4 * 2**0.5)
    assert float(realized_size(good, 4.0)) == 6.0
    third = 9 / math.log1p(math.exp(1.5))
    assert float(realized_step(good, corrected=False)) == pytest.approx(third)
    assert float(realized_step(good)) == pytest.approx(2 * third)
    # 5 sqrt(T d) R^3 (B_2 / B_Phi) (3 sqrt(d) R^2 + 1) G^2 (1 v G) at T = 4, d = 1, R = 1.
    root = 5 * 2 * (2 / 1.5) * 4 * 64
    assert float(realizing_heads(good, eps, 1.0, T=4, d=1)) == pytest.approx(root**2)
    sharp = 2 * (C * (2 + 4 * 2**0.5) + 1) * 16 / 1.5
    assert float(realizing_heads_sharp(good, eps, 1.0, T=4)) == pytest.approx(sharp**2)


@pytest.mark.parametrize("corrected, distance", [(False, 4.0), (True, 4 * math.sqrt(2))])
def test_corollary_5_by_hand(x64, corrected, distance):
    good = GoodInitialisation(*map(jnp.asarray, (2.0, 1.5, 1.0)))
    found = corollary5(good, 1.0, math.e, T=4, d=1, corrected=corrected)
    reach = 4 * distance + 2
    heads = math.ceil((256 * 2 * 2 * (3 * reach + 1) * distance**2) ** 2)
    slope = 3 * (6 * reach + 4)
    smoothness = (4 / math.sqrt(heads) + 1) * slope**2
    assert found.heads == pytest.approx(heads, rel=1e-12)
    assert found.size == pytest.approx(2 + distance)
    assert found.smoothness == pytest.approx(smoothness)
    assert found.step_size == pytest.approx(1 / smoothness)
    assert found.loss_bound == pytest.approx(2 / math.e + 5 * distance**2 * smoothness / 4 / math.e)
    assert found.distance_bound == pytest.approx(4 * distance)
    # A large margin makes the third term of the step size the least one.
    wide = good._replace(margin=jnp.asarray(1000.0))
    third = 4 * 1.5**2 / 1e6 / math.log1p(math.exp(1.5)) * (2 if corrected else 1)
    fixed = corollary5(wide, 1.0, math.e, T=4, d=1, corrected=corrected, heads=9.0)
    assert fixed.step_size == pytest.approx(third) and fixed.heads == 9.0


def test_every_sharpening_lowers_the_certified_head_count_and_the_bound():
    for distance in (0.5, 1.0, 4.0):
        printed, sharpened, best = _certificates(distance).values()
        assert printed.heads > sharpened.heads > best.heads
        assert printed.step_size < sharpened.step_size <= best.step_size
        assert printed.loss_bound > sharpened.loss_bound > best.loss_bound
        assert printed.distance_bound > sharpened.distance_bound > best.distance_bound


def test_more_heads_than_needed_are_kept_and_too_few_are_raised():
    least = _certificates(1.0)["printed"].heads
    assert _certificates(1.0, heads=10 * least)["printed"].heads == 10 * least
    assert _certificates(1.0, heads=1.0)["printed"].heads == least


def test_bad_certificates_are_refused():
    with pytest.raises(ValueError, match=r"radius=0\.5, expected R >= 1 \(Assumption 1\)\."):
        _certificates(1.0, radius=0.5)
    with pytest.raises(ValueError, match="loss_target = 0"):
        _certificates(1.0, loss_target=0.0)


def test_regret_recursion_simulated_at_its_worst(x64):
    # Oracle: play the two inequalities of the proofs with equality against random monotone
    # losses; neither average nor distance may then exceed the closed forms.
    rng = np.random.default_rng(0)
    for _ in range(200):
        K, step, kappa = rng.integers(1, 40), rng.uniform(0.01, 1.0), rng.uniform(0, 1.5)
        weight = float(sharp_weight(kappa))
        target, losses = rng.uniform(0, 0.3), np.sort(rng.uniform(0, 1, K + 1))[::-1]
        squared = max(step * K * target, step * losses[0])
        distance, path = math.sqrt(squared), [squared]
        for k in range(K):
            gain = 2 * (target - losses[k + 1]) + weight * (losses[k] + target)
            path.append(path[-1] + step * gain)
        if min(path) < 0:
            continue  # no run has these losses
        s = Setting.bounded(
            distance=distance, size=0.0, radius=1.0, T=1, d=1,
            loss_target=target, loss_start=losses[0],
        )  # fmt: skip
        allowed = averaged_loss(s, step, K, weight=weight)
        assert np.mean(losses[1:]) <= allowed * (1 + 1e-12)
        assert math.sqrt(max(path)) <= reach(weight) * distance * (1 + 1e-12)


def test_a_run_is_gradient_descent_on_all_heads_written_out(x64):
    # Oracle: plain numpy, every head separately, gradients by central differences.
    instance = _instance(0.3)
    run = jax.tree.map(np.asarray, descend(instance))
    tokens, labels = np.asarray(instance["X"]), np.asarray(instance["y"])
    group = [0, 0, 1]

    def risk(vector):
        heads = vector.reshape(3, -1)
        U, W = heads[:, :6].reshape(3, 3, 2), heads[:, 6:].reshape(3, 2, 2)
        total = 0.0
        for x, y in zip(tokens, labels):
            scores = [np.exp(x @ w @ x.T) for w in W]
            output = sum(
                np.sum(u * (s / s.sum(1, keepdims=True) @ x)) for u, s in zip(U, scores)
            ) / math.sqrt(3)
            total += math.log1p(math.exp(-y * output))
        return total / len(labels)

    U0, W0 = np.asarray(instance["U0"]), np.asarray(instance["W0"])
    vector = np.concatenate([np.r_[U0[g].ravel(), W0[g].ravel()] for g in group])
    for _ in range(2):
        basis = 1e-5 * np.eye(len(vector))
        slope = np.array([(risk(vector + e) - risk(vector - e)) / 2e-5 for e in basis])
        vector = vector - 0.3 * slope
    expected = vector.reshape(3, -1)
    for h, g in enumerate(group):
        found = np.r_[np.ravel(run.params["U"][2, g]), np.ravel(run.params["W"][2, g])]
        np.testing.assert_allclose(found, expected[h], atol=1e-8)
    np.testing.assert_allclose(run.losses[2], risk(vector), rtol=1e-8)
    np.testing.assert_allclose(
        run.slopes[1] * 0.3,
        math.sqrt(
            sum(
                np.sum((run.params[name][2, g] - run.params[name][1, g]) ** 2)
                for name in ("U", "W")
                for g in group
            )
        ),
        rtol=1e-9,
    )


def test_leaving_one_out_is_a_run_on_fewer_samples_with_a_shorter_step(x64):
    # (1/n) sum over j != i is (n - 1)/n times the mean of the others: rescale eta instead.
    instance = _instance(0.5)
    without = leave_one_out(instance)
    others = {"X": instance["X"][1:], "y": instance["y"][1:]}
    fewer = descend(instance | others | {"step": jnp.asarray(0.5 * 2 / 3)})
    for name in ("U", "W"):
        np.testing.assert_allclose(without.params[name][0], fewer.params[name], atol=1e-12)
    np.testing.assert_allclose(without.losses[0], fewer.losses * 2 / 3, rtol=1e-12)


def test_the_class_direction_realizes_every_level(x64, key):
    instance = jax.jit(lambda key: realizable(key, Size({"n": 8})))(key)
    realize = jax.jit(realizer)
    for level in (1.0, 0.01):
        params = realize(level, instance["copies"])
        # Zero attention weights average the tokens: a linear classifier, evaluated by hand.
        root = math.sqrt(np.sum(np.asarray(instance["copies"])))
        outputs = np.einsum("td,nsd->n", params["U"][0], instance["X"]) / 3 * root
        losses = np.logaddexp(0.0, -np.asarray(instance["y"]) * outputs)
        assert np.max(losses) <= level
    np.testing.assert_allclose(
        np.asarray(target_of(instance)["U"]),
        np.asarray(realize(1 / float(instance["K"]), instance["copies"])["U"]),
    )


def test_sharpened_heads_are_far_fewer_and_stability_needs_a_flat_bottom(x64):
    for distance, size, radius in ((0.5, 0.1, 1.0), (1.0, 2.0, 1.5), (3.0, 0.0, 2.0)):
        s = Setting.bounded(distance=distance, size=size, radius=radius, T=4, d=3)
        assert root_heads(s, SHARPEST) < root_heads(s) / 6
        assert root_heads(s._replace(distance=2 * distance), SHARPEST) > 4 * root_heads(s, SHARPEST)
    # rho# tends to T R^2 / 4 as H grows.
    flat = Setting.bounded(distance=1.0, size=0.0, radius=1.0, T=4, d=3, heads=1e16)
    np.testing.assert_allclose(rho(flat, SHARPEST), 1.0, rtol=1e-6)
    s = Setting(1.0, 0.1, 0.1, 0.01, 1.0, 1e4, 0.1, 0.69, 3, 2)
    assert stability(s._replace(heads=1e8), 0.5, 50, 5, MEAN_SQUARE) < stability(
        s, 0.5, 50, 5, MEAN_SQUARE
    )
