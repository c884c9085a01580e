"""Comparisons between bounds, and certificates for trained Flax networks."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.seqlength import certificate, comparisons, extract_norms, network_bound

PATH = "MultiHeadDotProductAttention_0"
DENSE = (("Dense_0", "relu"), ("Dense_1", "tanh"))


class Network(nn.Module):
    bias: bool = True
    normalise: bool = False

    @nn.compact
    def __call__(self, x):
        y = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=6, use_bias=self.bias)(x, x)
        y = nn.LayerNorm()(y) if self.normalise else y
        y = nn.Dense(5)(nn.relu(y[:, -1]))
        return nn.Dense(2)(jnp.tanh(y))


def _trained(net, x):
    """Parameters of the right shapes, biases not zero."""
    shapes = jax.eval_shape(net.init, jax.random.key(1), x)["params"]
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda s: jnp.asarray(0.4 * rng.normal(size=s.shape), s.dtype), shapes)


@pytest.mark.parametrize("bias", [True, False])
def test_folded_network_computes_what_flax_computes(bias, key):
    x = jax.random.normal(key, (7, 5, 4))
    net = Network(bias=bias)
    params = _trained(net, x)
    folded = extract_norms.extract_network(params, attention=PATH, dense=DENSE, cls=-1)
    np.testing.assert_allclose(
        folded(np.asarray(x)), jax.jit(net.apply)({"params": params}, x), atol=2e-6
    )


def test_nnx_parameters_give_the_same_network(key):
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.attention = nnx.MultiHeadAttention(2, 4, 6, decode=False, rngs=rngs)
            self.out = nnx.Linear(4, 1, rngs=rngs)

        def __call__(self, x):
            return self.out(self.attention(x)[:, 0])

    x = jax.random.normal(key, (3, 5, 4))
    # Filled with numbers of our own: nnx draws every kernel in a program of its own.
    graph, shapes = nnx.split(nnx.eval_shape(lambda: Model(nnx.Rngs(0))))
    rng = np.random.default_rng(0)
    fill = lambda s: jnp.asarray(0.4 * rng.normal(size=s.shape), s.dtype)
    net = nnx.merge(graph, jax.tree.map(fill, shapes))
    folded = extract_norms.extract_network(
        extract_norms.from_nnx(net), attention="attention", dense=[("out", "identity")]
    )
    np.testing.assert_allclose(folded(np.asarray(x)), nnx.jit(net)(x), atol=2e-6)


def test_nnx_state_that_is_no_parameter_is_named():
    from flax import nnx

    with pytest.raises(ValueError, match="state=mean, var has no place in the bounds,"):
        extract_norms.from_nnx(nnx.BatchNorm(3, rngs=nnx.Rngs(0)))


def test_what_cannot_be_mapped_is_named(key):
    x = jax.random.normal(key, (2, 3, 4))
    params = _trained(Network(normalise=True), x)
    with pytest.raises(ValueError, match="LayerNorm_0/bias, LayerNorm_0/scale"):
        extract_norms.extract_network(params, attention=PATH, dense=DENSE)
    with pytest.raises(ValueError, match="no parameter Attention/query/kernel"):
        extract_norms.extract_network(params, attention="Attention", dense=DENSE)
    with pytest.raises(ValueError, match="activation='gelu' is unknown"):
        extract_norms.extract_network(params, attention=PATH, dense=[("Dense_0", "gelu")])
    broken = jax.tree.map(lambda leaf: leaf * jnp.nan, params)
    with pytest.raises(ValueError, match="NaN or infinity"):
        extract_norms.extract_network(broken, attention=PATH, dense=DENSE)


@pytest.fixture(scope="module")
def small():
    """A network with small weights, whose bound says something at a large sample."""
    x = np.asarray(jax.random.normal(jax.random.key(3), (400, 4, 2)), np.float64)
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    rng = np.random.default_rng(0)
    network = extract_norms.AttentionNetwork(
        maps=0.2 * rng.normal(size=(1, 2, 3)),
        values=0.1 * rng.normal(size=(1, 2, 2)),
        offset=np.zeros(2),
        dense=(extract_norms.Dense(0.2 * rng.normal(size=(2, 2)), np.zeros(2), "tanh"),),
        cls=0,
    )
    return network, x


def test_certificate_pays_for_the_union_and_the_diagnostic_does_not(small):
    network, x = small
    arguments = {"readout": np.array([-1.0, 1.0]), "loss_range": 1.0}
    sure = certificate.generalization_certificate(network, x, **arguments)
    loose = certificate.generalization_certificate(network, x, union=False, **arguments)
    assert sure.certified and not loose.certified
    assert loose.bound < sure.bound and loose.tail < sure.tail
    assert all(loose.norms[name] <= sure.norms[name] for name in loose.norms)
    assert sure.gap == min(sure.bound, 1.0)
    text = certificate.certificate_text(sure)
    assert "certified (norms rounded up, union paid)" in text and "m*, where it beats" in text
    assert "trivial value" in text and "norm: map 0 (1,1)" in text
    assert "diagnostic, not certified" in certificate.certificate_text(loose)
    assert sure.ratio == pytest.approx(sure.bound / sure.trivial)
    assert loose.smallest_sample < sure.smallest_sample
    # The complexity bounds what random signs can correlate with, here with the network itself.
    readout = network_bound.with_readout(network, np.array([-1.0, 1.0]))
    outputs = readout(x)[:, 0]
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(200, len(x)))
    assert np.abs(signs @ outputs).mean() / len(x) <= loose.rademacher


def test_constant_cls_token_gives_a_smaller_bound(small):
    network, x = small
    constant = x.copy()
    constant[:, 0] = x[0, 0]
    norms = network_bound.map_norms(network, constant)
    assert "map 0 of CLS l1" in norms
    assert "map 0 of CLS l1" not in network_bound.map_norms(network, x)
    tokens = network_bound.token_norms(constant, 0)
    with_it = network_bound.network_rademacher(network, norms, tokens, 10**6)
    without = {name: value for name, value in norms.items() if "CLS" not in name}
    assert with_it < network_bound.network_rademacher(network, without, tokens, 10**6)


def test_rounding_goes_up_to_the_grid():
    assert certificate.round_up(0.3, 1.0) == (1.0, 0)
    assert certificate.round_up(1.0, 1.0) == (1.0, 0)
    assert certificate.round_up(8.0, 1.0) == (8.0, 3)
    assert certificate.round_up(8.1, 1.0) == (16.0, 4)
    with pytest.raises(ValueError, match="finite norm"):
        certificate.round_up(np.inf, 1.0)


def test_certificates_refuse_bad_input(small):
    network, x = small
    with pytest.raises(ValueError, match="one entry for each of 2"):
        certificate.generalization_certificate(network, x, readout=np.ones(3), loss_range=1.0)
    with pytest.raises(ValueError, match="loss_range"):
        certificate.generalization_certificate(network, x, readout=np.ones(2), loss_range=0.0)
    with pytest.raises(ValueError, match="holds no sample"):
        certificate.generalization_certificate(network, x[:0], readout=np.ones(2), loss_range=1.0)


def test_every_norm_is_that_of_numpy():
    W = np.array([[1.0, -2.0], [0.0, 2.0], [3.0, 0.0]])
    found = extract_norms.matrix_norms(W)
    assert found.entries_1 == 8.0 and found.columns_1_inf == 4.0 and found.rows_1_inf == 3.0
    assert found.columns_2_1 == pytest.approx(np.sqrt(10) + np.sqrt(8))
    assert found.rows_2_1 == pytest.approx(np.sqrt(5) + 2 + 3)
    assert found.spectral <= found.frobenius == pytest.approx(np.sqrt(18))


def test_only_the_log_length_bound_grows_with_the_sequence():
    lengths = [1, 100, 10**4, 10**6]
    setting = comparisons.Setting(d=8, m=10**6)
    data = comparisons.compare(setting, over="T", values=lengths)
    for name in comparisons.BOUNDS:
        growth = np.diff(data[name].values)
        assert (growth > 0).all() if name == "log_length" else (growth == 0).all()
    assert data.log_length.attrs["certified"] == 0 and data.sharpened.attrs["certified"] == 1
    assert (data.sharpened <= data.theorem_4_1_corrected).all()
    assert (data.winner == "sharpened").all()


def test_trivial_value_wins_for_small_samples():
    data = comparisons.compare(
        comparisons.Setting(d=8), over="m", values=[2, 10**6], bounds=["lemma_3_6"]
    )
    assert data.winner.values.tolist() == ["trivial", "lemma_3_6"]
    assert data.trivial.values.tolist() == [1.0, 1.0]


def test_crossover_solves_its_equation_and_sizes_switch_there():
    for n in (1, 16, 4096):
        x = comparisons.covering_crossover(n)
        assert x**2 * np.log(2 * n + 1) == pytest.approx(n * np.log1p(2 * x), rel=1e-9)
    assert comparisons.covering_crossover(256) == pytest.approx(11.40, abs=0.01)


def test_first_informative_sample_by_hand():
    bound = lambda m: 100.0 / m**0.5
    assert comparisons.first_informative(bound, 1.0) == pytest.approx(10**4, rel=2e-3)
    assert comparisons.first_informative(lambda m: 2.0, 1.0) is None
    with pytest.raises(ValueError, match="positive"):
        comparisons.first_informative(bound, 0.0)


def test_comparisons_refuse_unknown_names():
    with pytest.raises(ValueError, match="over='width' is unknown, expected m, T, d,"):
        comparisons.compare(comparisons.Setting(), over="width", values=[1])
    with pytest.raises(ValueError, match="bounds=vc are unknown"):
        comparisons.compare(comparisons.Setting(), over="T", values=[1], bounds=["vc"])
