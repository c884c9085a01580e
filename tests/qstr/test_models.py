"""Shapes of every architecture, the projection, exclusive states and the linear recurrence."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr import architectures, layers, recurrent, state_space
from jaxbounds.qstr.transformer import PublishedTransformer, SparseTransformer, attention_map

N, d, De = 5, 2, 8


@pytest.mark.slow_cases("rnn", "feedforward", "lstm128", "transformer")
@pytest.mark.parametrize("name", sorted(set(architectures.ARCHITECTURES) - {"gru500"}))
def test_every_architecture_maps_tokens_to_one_prediction_each(name, key):
    model = architectures.build(name, N=N, d=d)
    z = np.random.default_rng(0).normal(size=(3, N, De)).astype(np.float32)
    params = jax.jit(model.init)(key, z)

    @jax.jit
    def asked(p, z):
        slope = jax.grad(lambda p: jnp.mean(model.apply(p, z) ** 2))(p)
        return model.apply(p, z), model.apply(p, z[0]), slope

    out, alone, grad = jax.tree.map(np.asarray, asked(params, z))
    assert out.shape == (3, N)
    assert all(np.all(np.isfinite(g)) for g in jax.tree.leaves(grad))
    # Each prompt is predicted by itself: the batch only stacks them.
    np.testing.assert_allclose(alone, out[0], rtol=2e-4, atol=1e-5)


def test_your_own_architecture_can_be_registered():
    name = "tests_own_dense"
    architectures.register(name, lambda N, d: nn.Dense(N))
    try:
        assert isinstance(architectures.build(name, N=3, d=1), nn.Dense)
        with pytest.raises(ValueError, match="is taken"):
            architectures.register(name, lambda N, d: nn.Dense(N))
    finally:
        del architectures.ARCHITECTURES[name]
    with pytest.raises(ValueError, match="architecture='mamba' is unknown"):
        architectures.build("mamba", N=2, d=1)


def test_paper_transformer_by_a_loop(key, x64):
    """Independent: numpy, one query at a time, unstabilised exponentials."""
    model = SparseTransformer(heads=2, width=3)
    z = np.random.default_rng(0).normal(size=(N, De))
    params = jax.jit(model.init)(key, z)
    p = jax.tree.map(np.asarray, params["params"])
    found = jax.jit(model.apply)(params, z)
    for i in range(N):
        heads = []
        for W in p["W_QK"]:
            weight = np.exp([z[i] @ W @ z[j] for j in range(N)])
            heads.append(weight @ z / weight.sum())
        want = p["a"] @ np.maximum(p["W"] @ np.concatenate(heads) + p["b"], 0)
        np.testing.assert_allclose(np.asarray(found)[i], want, rtol=1e-11)


def test_heads_must_divide_the_token_dimension(key):
    with pytest.raises(ValueError, match="De=8 does not split into heads=3, expected a"):
        PublishedTransformer(heads=3).init(key, jnp.zeros((N, De)))


def test_attention_map_is_the_logit_form(key, x64):
    z = np.random.default_rng(0).normal(size=(N, De))
    params = jax.jit(PublishedTransformer().init)(key, z)
    W = np.asarray(params["params"]["in_proj_weight"])
    found = z @ np.asarray(jax.jit(attention_map)(params)) @ z.T
    np.testing.assert_allclose(found, (z @ W[:De].T) @ (z @ W[De : 2 * De].T).T, atol=1e-12)


def test_projection_is_one_lipschitz_with_a_gradient_at_zero(x64):
    a, b = 2 * np.random.default_rng(0).normal(size=(2, 500, 3))
    project = jax.jit(lambda v: recurrent.project_to_ball(v, 1.5))
    at_a, at_b = np.asarray(project(a)), np.asarray(project(b))
    moved = np.linalg.norm(at_a - at_b, axis=-1)
    assert np.all(moved <= np.linalg.norm(a - b, axis=-1) * (1 + 1e-12))
    assert np.all(np.linalg.norm(at_a, axis=-1) <= 1.5 + 1e-12)
    np.testing.assert_allclose(jax.jit(jax.jacobian(project))(jnp.zeros(3)), np.eye(3))


@pytest.mark.parametrize("reverse", [False, True])
def test_exclusive_states_by_hand_and_as_prefix_sums(reverse, x64):
    z = jnp.asarray(np.random.default_rng(0).normal(size=(N, 3)))
    step = lambda h, token: jnp.tanh(h + token)
    states = recurrent.exclusive_states(step, z, 3, radius=1.0, reverse=reverse)
    states = np.asarray(states)
    h = np.zeros(3)
    order = range(N - 1, -1, -1) if reverse else range(N)
    for i in order:
        np.testing.assert_allclose(states[i], h, atol=1e-13)  # token i is not in the state at i
        h = h + np.tanh(h + np.asarray(z)[i])
        h = h * min(1.0, 1.0 / np.linalg.norm(h))
    free = recurrent.exclusive_states(lambda h, token: token, z, 3, reverse=reverse)
    sums = recurrent.exclusive_sums(z, reverse=reverse)
    np.testing.assert_allclose(free, sums, atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_parallel_recurrence_is_the_sequential_one(reverse, x64):
    rng = np.random.default_rng(0)
    decay, inputs = rng.random(4), rng.normal(size=(2, N, 4))
    run = jax.jit(lambda *given: state_space.diagonal_recurrence(*given, reverse=reverse))
    got = np.asarray(run(decay, inputs))
    h = np.zeros((2, 4))
    for i in range(N - 1, -1, -1) if reverse else range(N):
        h = decay * h + inputs[:, i]
        np.testing.assert_allclose(got[:, i], h, rtol=1e-12, atol=1e-13)


class _Odd(nn.Module):
    """What an architecture must not be."""

    what: str

    @nn.compact
    def __call__(self, z):
        if self.what == "dropout":
            z = nn.Dropout(0.5, deterministic=False)(z)
        if self.what == "statistics":
            z = nn.BatchNorm(use_running_average=False)(z)
        out = nn.Dense(1)(z)
        return out if self.what == "shape" else out[..., 0]


@pytest.mark.parametrize(
    "factory, words",
    [
        (lambda N, d: _Odd("shape"), r"shape=\(2, 4, 1\)"),
        (lambda N, d: _Odd("dropout"), "Rng"),
        (lambda N, d: _Odd("statistics"), "variables=batch_stats"),
        (lambda N: _Odd(""), "factory of architecture='odd' fails"),
        (lambda N, d: "odd", "expected a Flax module"),
    ],
)
def test_what_is_no_architecture_is_said_in_a_line(factory, words, monkeypatch):
    monkeypatch.setitem(architectures.ARCHITECTURES, "odd", factory)
    with pytest.raises(ValueError, match=words) as refused:
        architectures.outline("odd", N=4, d=2, De=14)
    assert "\n" not in str(refused.value)


def test_an_outline_tells_two_networks_of_one_name_apart(monkeypatch):
    monkeypatch.setitem(
        architectures.ARCHITECTURES, "mine", lambda N, d: state_space.LinearStateSpace(8)
    )
    first = architectures.outline("mine", N=4, d=2, De=14)
    monkeypatch.setitem(
        architectures.ARCHITECTURES, "mine", lambda N, d: state_space.LinearStateSpace(9)
    )
    assert first != architectures.outline("mine", N=4, d=2, De=14)
    with pytest.raises(ValueError, match="did you mean transformer"):
        architectures.build("transfomer", N=4, d=2)


def test_the_published_start_is_uniform_within_one_over_the_root_of_the_fan_in():
    """The ends and the variance are those of the interval."""
    drawn = np.asarray(layers.uniform_fan_in(400)(jax.random.key(3), (400, 50)))
    bound = 1 / np.sqrt(400)
    assert 0.999 * bound < drawn.max() <= bound and -bound <= drawn.min() < -0.999 * bound
    assert drawn.var() == pytest.approx(bound**2 / 3, rel=0.03)
