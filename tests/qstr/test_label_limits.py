"""The limit after Theorem 4, by hand, by least squares, and by learners that are not linear."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr import label_limits


def test_two_labels_in_the_plane_and_in_space_by_hand(x64):
    tokens, u = jnp.array([[2.0, 0.0, 0.0], [1.0, 3.0, 0.0]]), jnp.array([0.6, 0.0, 0.8])
    assert label_limits.mirrored_direction(tokens, u) == pytest.approx([0.6, 0.0, -0.8])
    assert float(label_limits.hidden_risk(tokens, u)) == pytest.approx(0.64)
    assert label_limits.label_limit(2, q=1, d=3) == pytest.approx(1 / 3)
    assert label_limits.label_limit(7, q=2, d=3) == 0.0
    for n, q, d in ((-1, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="labels"):
            label_limits.label_limit(n, q=q, d=d)


def test_no_learner_beats_the_limit_on_average(x64):
    """Shares no code: risks over draws of u of learners that see labels alone, by NumPy.

    The least-norm solution attains the limit; the others are as good at best.
    """
    rng, n, q, d, draws = np.random.default_rng(0), 7, 2, 5, 20_000
    tokens = rng.normal(size=(n, q * d))
    u = rng.normal(size=(draws, q * d))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    least = u @ tokens.T @ np.linalg.pinv(tokens).T
    learners = {
        "least norm": least,
        "ridge": u @ tokens.T @ np.linalg.solve(tokens @ tokens.T + 2 * np.eye(n), tokens),
        "onto the sphere": least / np.linalg.norm(least, axis=1, keepdims=True),
        "sparse": np.sign(least) * np.maximum(np.abs(least) - 0.05, 0),
        "nothing": 0 * least,
    }
    limit = label_limits.label_limit(n, q=q, d=d)
    assert limit == pytest.approx(0.3)
    risks = {name: np.sum((u - v) ** 2, axis=1) for name, v in learners.items()}
    error = 4 * np.std(risks["least norm"]) / np.sqrt(draws)
    assert np.mean(risks["least norm"]) == pytest.approx(limit, abs=error)
    assert all(np.mean(risk) >= limit - error for risk in risks.values())
    risk = jax.jit(label_limits.hidden_risk)
    hidden = [float(risk(tokens, v)) for v in u[:20]]
    assert risks["least norm"][:20] == pytest.approx(hidden)
