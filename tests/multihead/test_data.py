"""DM1 and DM2 meet their definitions; bad data are refused with a reason."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.multihead.data import PlantedAttention, SparseContext, validate_data
from jaxbounds.multihead.model import head_output


def test_sparse_context_meets_assumption_3(key, x64):
    model = SparseContext(
        tokens=6, dimension=5, relevant=2, distractors=3, signal=2.0, noise_mu=0.3, noise_nu=0.6
    )
    patterns = np.asarray(model.patterns())
    np.testing.assert_allclose(patterns @ patterns.T, 4 * np.eye(5))
    data = jax.jit(model.sample, static_argnums=1)(key, 200)
    tokens, labels = np.asarray(data["X"]), np.asarray(data["y"])
    assert set(labels) == {-1, 1} and model.sparsity == pytest.approx(1 / 3)
    for sequence, label in zip(tokens, labels):
        pattern = patterns[0 if label > 0 else 1]
        relevant = np.all(sequence == pattern, axis=1)
        assert relevant.sum() == 2
        rest = sequence[~relevant]
        nearest = patterns[2:][np.argmax(rest @ patterns[2:].T, axis=1)]
        noise = rest - nearest
        assert np.max(np.abs(noise @ patterns[:2].T)) <= 0.3 + 1e-12
        assert np.max(np.abs(noise @ patterns[2:].T)) <= 0.6 / 3 + 1e-12


def test_planted_attention_keeps_clear_labels(key, x64):
    model = PlantedAttention(tokens=4, dimension=3)

    @jax.jit
    def drawn(key):
        teacher = model.teacher(key)
        data = model.sample(key, teacher, 100)
        own = jax.vmap(lambda x: head_output(teacher["U"], teacher["W"], x))
        return data, own(data["X"])

    data, outputs = drawn(key)
    assert np.min(np.abs(outputs)) > 0.2
    np.testing.assert_array_equal(np.sign(outputs), data["y"])


@pytest.mark.parametrize(
    "change, message",
    [({"relevant": 0}, "integer from 1 to tokens"), ({"distractors": 3}, "at least distractors"),
     ({"relevant": 9}, "integer from 1 to tokens")],
)  # fmt: skip
def test_contradicting_sizes(change, message):
    good = {"tokens": 4, "dimension": 4, "relevant": 1, "distractors": 2}
    with pytest.raises(ValueError, match=message):
        SparseContext(**(good | change))


@pytest.mark.parametrize(
    "data, radius, message",
    [
        ({"X": jnp.ones((3, 2)), "y": jnp.ones(3)}, None, r"Try X\[None\]"),
        ({"X": jnp.ones((3, 2, 2)), "y": jnp.ones(2)}, None, "shape"),
        ({"X": jnp.full((1, 2, 2), jnp.nan), "y": jnp.ones(1)}, None, "NaN"),
        ({"X": jnp.ones((2, 2, 2)), "y": jnp.asarray([0, 1])}, None, r"expected -1 and \+1"),
        ({"X": jnp.ones((1, 2, 2)), "y": jnp.ones(1)}, 1.0, r"norm=1\.41421"),
    ],
)
def test_bad_data(data, radius, message):
    with pytest.raises(ValueError, match=message):
        validate_data(data, radius=radius)


def test_good_data_pass():
    validate_data({"X": jnp.ones((2, 3, 2)), "y": jnp.asarray([-1, 1])}, radius=1.5)
