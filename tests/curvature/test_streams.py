"""Data as users have them: read again at each product, one batch at a time."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(10, 3)), RNG.normal(size=(10,))
W = RNG.normal(size=(3,))
CUTS = [slice(0, 4), slice(4, 8), slice(8, 10)]


def loss(w, batch):
    return jnp.mean((jnp.tanh(batch[0] @ w) - batch[1]) ** 2)


class Loader:
    """Yields lists, as loaders of PyTorch do; the last batch is shorter."""

    def __init__(self):
        self.passes = 0

    def __iter__(self):
        self.passes += 1
        for cut in CUTS:
            yield [X[cut], Y[cut]]


@pytest.mark.parametrize(
    "data",
    [Loader(), lambda: iter([(X[c], Y[c]) for c in CUTS]), lambda: ((X[c], Y[c]) for c in CUTS)],
)
def test_a_stream_is_the_mean_over_its_examples(data, x64):
    w = jnp.asarray(W)
    H, whole = jb.Curvature(loss, w, data), jb.Curvature(loss, w, (X, Y))
    expected = np.linalg.eigvalsh(whole.dense())
    found = H.extremes()
    np.testing.assert_allclose([found.minimum, found.maximum], expected[[0, -1]], rtol=1e-9)
    if not isinstance(data, Loader):
        return
    np.testing.assert_allclose(H @ w, whole.dense() @ w, rtol=1e-9)
    np.testing.assert_allclose(H.top(2).values, expected[::-1][:2], rtol=1e-6)
    np.testing.assert_allclose(H.spectrum().moment(1)[0], np.mean(expected), rtol=0.5)
    assert float(H.weak_convexity().loss) == pytest.approx(float(loss(w, (X, Y))))
    assert "over a stream" in repr(H)
    with pytest.raises(ValueError, match="batches in memory"):
        H.dense()


def test_streams_that_are_none(x64):
    w, once = jnp.asarray(W), iter([(X, Y)])
    with pytest.raises(ValueError, match="in a second pass"):
        jb.Curvature(loss, w, lambda: once).extremes()
    with pytest.raises(ValueError, match="yields no batch"):
        jb.Curvature(loss, w, lambda: iter([]))
    with pytest.raises(ValueError, match="got type=int"):
        jb.Curvature(loss, w, lambda: 3)
    with pytest.raises(ValueError, match="batch_size only cuts arrays"):
        jb.Curvature(loss, w, Loader(), batch_size=2)
    noise = np.random.default_rng(1)
    with pytest.raises(ValueError, match="same batches in every pass"):
        jb.Curvature(loss, w, lambda: iter([(X, Y + noise.normal())])).extremes()


def test_a_monitor_on_a_stream():
    monitor = jb.CurvatureMonitor(loss, data=Loader(), every=1)
    assert monitor(0, jnp.asarray(W, jnp.float32)) and monitor.last["converged"] == 1
