"""Head counts, step sizes and bounds of Section 4 against oracles that share no code with them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.multihead.descent import (
    averaged_loss,
    reach,
    rho_sharp,
    rho_sharp_largest,
    root_heads,
    root_heads_sharp,
    sharp_weight,
    stability_sharp,
)
from jaxbounds.multihead.descent_certificate import descent_certificate
from jaxbounds.multihead.realizable import realizable, realizer
from jaxbounds.multihead.runs import descend, target_of
from jaxbounds.multihead.stability import leave_one_out


def _instance(step):
    """Three heads in two groups, written down rather than drawn: compiling a sampler is slow."""
    entries = lambda *shape: jnp.sin(jnp.arange(1.0, math.prod(shape) + 1.0)).reshape(shape)
    return {
        "X": entries(3, 3, 2),
        "y": jnp.asarray([1, -1, 1]),
        "U0": entries(2, 3, 2),
        "W0": 2 * entries(2, 2, 2),
        "copies": jnp.asarray([2.0, 1.0]),
        "step": jnp.asarray(step),
    }


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
    radius = [
        float(rho_sharp_largest(D, D / c["printed"].heads ** 0.5, 1.0, c["printed"].heads, T=3))
        for D, c in zip((0.5, 1.0, 2.0), heads)
    ]
    np.testing.assert_allclose(radius, [17.4, 29.9, 65.0], rtol=2e-3)


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
    with pytest.raises(ValueError, match=r"R >= 1, got 0\.5"):
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
        allowed = averaged_loss(target, losses[0], distance, step, K, weight=weight)
        assert np.mean(losses[1:]) <= allowed * (1 + 1e-12)
        assert math.sqrt(max(path)) <= reach(weight) * distance * (1 + 1e-12)


def test_a_run_is_gradient_descent_on_all_heads_written_out(x64):
    # Oracle: plain numpy, every head separately, gradients by central differences.
    instance = _instance(0.3)
    run = descend(instance)
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
                float(jnp.sum((run.params[name][2, g] - run.params[name][1, g]) ** 2))
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
    instance = jax.jit(lambda key: realizable(key, {"n": 8}))(key)
    for level in (1.0, 0.01):
        params = realizer(instance, jnp.asarray(level))
        # Zero attention weights average the tokens: a linear classifier, evaluated by hand.
        root = math.sqrt(float(jnp.sum(instance["copies"])))
        outputs = np.einsum("td,nsd->n", params["U"][0], instance["X"]) / 3 * root
        losses = np.logaddexp(0.0, -np.asarray(instance["y"]) * outputs)
        assert np.max(losses) <= level
    np.testing.assert_allclose(
        np.asarray(target_of(instance)["U"]),
        np.asarray(realizer(instance, 1 / instance["K"].astype(float))["U"]),
    )


def test_sharpened_constants_grow_where_they_must(x64):
    # Monotone in D, size and R, and never above the printed threshold.
    for distance, size, radius in ((0.5, 0.1, 1.0), (1.0, 2.0, 1.5), (3.0, 0.0, 2.0)):
        printed = float(root_heads(distance, size, radius, T=4, d=3))
        sharp = float(root_heads_sharp(distance, size, radius, T=4))
        assert sharp < printed / 6
        wider = float(root_heads_sharp(2 * distance, size, radius, T=4))
        assert wider > 4 * sharp
    limit = float(rho_sharp(1.0, 0.0, 0.0, 1.0, 1e16, T=4))
    np.testing.assert_allclose(limit, 1.0, rtol=1e-6)
    few, many = (
        float(stability_sharp(0.1, 0.69, 1.0, 0.1, 0.01, 1.0, H, 0.5, 50, 5, T=3))
        for H in (1e4, 1e8)
    )
    assert many < few
