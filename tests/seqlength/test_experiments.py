"""The sparse majority experiment: a smoke run, its independence of chunking, and the trends."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import xarray as xr

from jaxbounds.seqlength import experiments, trends
from jaxbounds.seqlength.sparse_majority import Embedding

TINY = experiments.SparseMajority(
    lengths=(5,),
    seeds=2,
    sparsity=1,
    train=40,
    validation=60,
    epochs=60,
    every=5,
    chunk=12,
    batch=16,
    rate=0.02,
    stop=True,
    hidden=8,
    embedding=Embedding(d=8, symbols="l2", symbol_scale=3.0, position_scale=0.5),
)


@pytest.fixture(scope="module")
def tiny():
    return experiments.run(TINY, jax.random.key(0))


def test_smoke_run_learns_an_easy_task(tiny):
    assert dict(tiny.sizes) == {"T": 1, "seed": 2}
    assert tiny.learned.values.all() and float(tiny.accuracy.min()) > 0.8
    np.testing.assert_allclose(tiny.gap, tiny.validation_loss - tiny.train_loss, atol=1e-6)
    # At 40 samples no bound is below the range of the clipped loss.
    assert float(tiny.bound.min()) > 1.0
    learned, *figures = trends.claims(tiny)
    assert learned.reproduced and learned.number == "100%"
    assert [claim.reproduced for claim in figures] == [None] * 3


def test_a_run_depends_neither_on_chunking_nor_on_its_neighbours(tiny):
    lone = replace(TINY, seeds=1, chunk=3)
    runs, _, _ = experiments.train_length(lone, jax.random.key(0), 5)
    np.testing.assert_allclose(runs.best.l1, tiny.l1.values[0, :1], rtol=1e-5)
    np.testing.assert_array_equal(runs.epoch, tiny.epochs_run.values[0, :1])


def test_a_finished_run_is_frozen():
    runs, _, _ = experiments.train_length(TINY, jax.random.key(0), 5)
    stopped = np.asarray(runs.done)
    assert stopped.any()
    assert (np.asarray(runs.epoch)[stopped] < 60).all()
    assert (np.asarray(runs.train_accuracy)[stopped] == 1.0).all()


def test_settings_that_no_run_could_have_are_refused():
    with pytest.raises(ValueError, match="got 'hinge'"):
        replace(TINY, loss="hinge")
    with pytest.raises(ValueError, match="must be positive: epochs"):
        replace(TINY, epochs=0)
    with pytest.raises(ValueError, match="must be positive: lengths"):
        replace(TINY, lengths=())


def test_trend_against_polyfit_and_a_known_p_value():
    rng = np.random.default_rng(0)
    lengths = np.array([20.0, 40.0, 80.0, 160.0])
    flat = rng.normal(size=(4, 5))
    everything = np.ones((4, 5), bool)
    found = trends.trend(lengths, flat, everything, kind="mean")
    assert found.slope == pytest.approx(100 * np.polyfit(lengths, flat.mean(axis=1), 1)[0])
    rising = flat + 0.05 * lengths[:, None]
    assert trends.trend(lengths, rising, everything, kind="max").p_value < 0.01
    # Runs that did not learn are left out, whatever they show.
    spoiled, keep = rising.copy(), everything.copy()
    spoiled[3, 0], keep[3, 0] = 1e6, False
    assert trends.trend(lengths, spoiled, keep, kind="max").slope < 100
    with pytest.raises(ValueError, match="two lengths"):
        trends.trend(lengths, flat, np.zeros((4, 5), bool), kind="mean")


def _dataset(l1):
    shape = l1.shape
    return xr.Dataset(
        {
            "l1": (("T", "seed"), l1),
            "l1_increase": (("T", "seed"), l1),
            "gap": (("T", "seed"), np.random.default_rng(1).uniform(0.0, 0.1, shape)),
            "accuracy": (("T", "seed"), np.random.default_rng(2).uniform(0.8, 0.9, shape)),
            "learned": (("T", "seed"), np.ones(shape, bool)),
            "bound": ("T", np.full(shape[0], 0.5)),
        },
        coords={"T": [20, 60, 100, 140, 180], "seed": list(range(shape[1]))},
    )


def test_claims_follow_the_data_and_the_figure_shows_every_run():
    noise = np.random.default_rng(0).normal(size=(5, 6))
    flat = trends.claims(_dataset(noise))
    rising = trends.claims(_dataset(noise + np.arange(5)[:, None] * 5.0))
    assert flat[1].text.startswith("Figure 1: no increasing trend")
    assert flat[1].reproduced and not rising[1].reproduced
    assert flat[4].text.startswith("Figure 3: a plateau") and flat[4].reproduced
    assert flat[-1].reproduced and flat[-1].number.startswith("least bound 0.5,")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    fig = trends.figure(_dataset(noise))
    assert [len(axes.collections) for axes in fig.axes] == [6, 6, 6]
