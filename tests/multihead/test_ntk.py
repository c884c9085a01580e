"""The NTK margin is certified; its kernel and its optimum agree with code that shares nothing."""

from dataclasses import asdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.experiments.ntk import NTK, claims, figure, run
from jaxbounds.multihead.first_phase import balanced_signs, first_step
from jaxbounds.multihead.model import model_output
from jaxbounds.multihead.ntk import (
    best_ntk_margin,
    held_out_margins,
    ntk_gram,
    ntk_margins,
    separator,
)

MODEL = SparseContext(tokens=4, dimension=3, relevant=2, distractors=1, signal=1.5)
SAMPLE = jax.jit(MODEL.sample, static_argnums=1)


@jax.jit
def _random(key):
    """Three heads."""
    outer, inner = jax.random.split(key)
    return {"U": jax.random.normal(outer, (3, 4, 3)), "W": jax.random.normal(inner, (3, 3, 3))}


def _features(params, tokens):
    """Gradients by reverse differentiation of the model, flattened: no closed form, no kernel."""
    slopes = jax.jit(jax.vmap(jax.grad(model_output), in_axes=(None, 0)))(params, tokens)
    n = tokens.shape[0]
    return np.concatenate([np.asarray(slopes[k]).reshape(n, -1) for k in ("U", "W")], axis=1)


def test_kernel_and_best_margin(key, x64):
    data, params = SAMPLE(key, 12), _random(key)
    gram = np.asarray(ntk_gram(params, data["X"], data["X"]))
    features, y = _features(params, data["X"]), np.asarray(data["y"], float)
    np.testing.assert_allclose(gram, features @ features.T, rtol=1e-11)
    margin = best_ntk_margin(gram, y)
    assert 0 < margin.lower <= margin.upper * (1 + 1e-12) and margin.gap < 1e-9
    # The primal problem, max t with y_i g_i . v >= t and ||v||^2 <= 2, by a general solver.
    signed = y[:, None] * features
    start = np.append(signed.mean(axis=0) * 0.1, 0.0)
    found = minimize(
        lambda x: -x[-1],
        start,
        jac=lambda x: -np.eye(len(x))[-1],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
        constraints=[
            {"type": "ineq", "fun": lambda x: signed @ x[:-1] - x[-1],
             "jac": lambda x: np.column_stack([signed, -np.ones(len(y))])},
            {"type": "ineq", "fun": lambda x: 2 - x[:-1] @ x[:-1],
             "jac": lambda x: np.append(-2 * x[:-1], 0.0)},
        ],
    )  # fmt: skip
    assert -found.fun == pytest.approx(margin.lower, rel=1e-5)


def test_separator_attains_the_margin_and_predicts_held_out_ones(key, x64):
    data, fresh, params = SAMPLE(key, 12), SAMPLE(jax.random.key(1), 12), _random(key)
    margin = best_ntk_margin(ntk_gram(params, data["X"], data["X"]), data["y"])
    direction = separator(params, data, margin)
    norm = sum(np.sum(np.asarray(leaf) ** 2) for leaf in direction.values())
    assert norm == pytest.approx(2)
    least = np.min(np.asarray(ntk_margins(params, data, direction)))
    assert least == pytest.approx(margin.lower)
    cross = ntk_gram(params, fresh["X"], data["X"])
    other = held_out_margins(cross, data["y"], fresh["y"], margin)
    np.testing.assert_allclose(other, ntk_margins(params, fresh, direction), rtol=1e-9)


def test_two_points_by_hand():
    # Signed gradients (3, 0) and (0, 4): the segment between them is 12/5 from the origin.
    margin = best_ntk_margin(np.diag([9.0, 16.0]), np.array([1, -1]))
    assert margin.upper == pytest.approx(2**0.5 * 2.4)
    np.testing.assert_allclose(margin.weights, [16 / 25, 9 / 25])


def test_contradicting_labels_have_no_margin(key, x64):
    tokens, y = np.asarray(SAMPLE(key, 12)["X"])[:6], np.asarray([1, 1, -1, -1, 1, -1])
    twice, labels = jnp.asarray(np.concatenate([tokens, tokens])), np.concatenate([y, -y])
    margin = best_ntk_margin(ntk_gram(_random(key), twice, twice), labels)
    assert margin.lower <= 1e-6 and margin.upper < 1e-5


def test_the_kernel_after_the_first_phase_does_not_depend_on_the_heads(key, x64):
    data = SAMPLE(key, 12)
    grams = [
        np.asarray(ntk_gram(first_step(data, balanced_signs(heads)), data["X"], data["X"]))
        for heads in (2, 6)
    ]
    np.testing.assert_allclose(grams[0], grams[1], rtol=1e-12)


def test_a_kernel_of_other_samples_is_refused(unannotated):
    with pytest.raises(ValueError, match="with one sample in X for each label in y"):
        best_ntk_margin(np.ones((2, 3)), np.array([1, -1]))
    with pytest.raises(ValueError, match="finite"):
        best_ntk_margin(np.full((2, 2), np.nan), np.array([1, -1]))


def test_the_experiment_decides_its_claims(key):
    # Two heads and as many held-out samples as others: all starts share one compiled kernel.
    config = NTK(
        tokens=4, samples=(6, 12, 24), heads=(2,), scales=(1.0,), held_out=24, seeds=1,
        first_samples=24,
    )  # fmt: skip
    dataset = run(config, key)
    assert dict(dataset.margin.sizes) == {"start": 3, "seed": 1, "n": 3}
    # Samples are nested, so that the best margin cannot grow with n.
    assert float(dataset.margin.diff("n").max()) <= 1e-9
    assert float((dataset.margin_upper - dataset.margin).max()) <= 1e-8
    assert all(claim.reproduced is None for claim in claims(dataset))
    dataset = dataset.assign_attrs(config=asdict(NTK()))
    decided = claims(dataset)
    assert decided[0].reproduced is True and all(isinstance(c.reproduced, bool) for c in decided)
    broken = dataset.copy(deep=True)
    broken["margin"] = -broken.margin
    assert claims(broken)[0].reproduced is False
    assert len(figure(dataset).axes) == 2
