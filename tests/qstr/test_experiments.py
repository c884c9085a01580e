"""Online training, exponents with censoring, and the experiments at toy size."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr import exponents, online
from jaxbounds.qstr.experiments import EXPERIMENTS, figure1, figure2, phase

TOY = online.Protocol(d=2, check_every=5, test_prompts=64, max_samples=960, threshold=0.5)


def test_first_hits_are_the_first_looks_below_the_threshold(key):
    """Independent: the recorded history of test risks, searched by hand."""
    cell = online.samples_to_threshold("transformer", 4, replace(TOY, threshold=0.9), key, seeds=3)
    for s in range(3):
        below = np.flatnonzero(cell.history[:, s] < 0.9)
        want = (below[0] + 1) * 5 * 64 if len(below) else np.inf
        assert cell.samples[s] == want
    never = online.samples_to_threshold("transformer", 4, replace(TOY, threshold=0.0), key, seeds=3)
    assert np.all(np.isinf(never.samples)) and never.budget == 960
    # Same key, same draws: more looks only add to the history.
    np.testing.assert_array_equal(never.history[: len(cell.history)], cell.history)


def test_adamw_is_pytorchs_update(key, x64):
    """Independent: PyTorch's documented formula in numpy, step by step."""
    params, gradient = np.array([1.0, -2.0]), np.array([0.3, -0.1])
    transform = online.optimiser(TOY)
    with jax.numpy_dtype_promotion("standard"):
        state, got = transform.init(jnp.asarray(params)), jnp.asarray(params)
        m = v = np.zeros(2)
        for t in range(1, 6):
            updates, state = transform.update(jnp.asarray(t * gradient), state, got)
            got = got + updates
            m, v = 0.9 * m + 0.1 * t * gradient, 0.999 * v + 0.001 * (t * gradient) ** 2
            params = params * (1 - 1e-3 * 0.01)
            step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            params = params - 1e-3 * step
            np.testing.assert_allclose(got, params, rtol=1e-12)


def test_tasks_do_not_depend_on_the_architecture(key):
    shared = jax.random.key(9)
    begin = lambda name, protocol: online.start(key, shared, name, 4, protocol)
    with jax.numpy_dtype_promotion("standard"):
        a, b = begin("transformer", TOY), begin("feedforward", TOY)
        simple = begin("transformer", replace(TOY, test_on="simple"))
    for one, other in zip(jax.tree.leaves((a.task, a.test)), jax.tree.leaves((b.task, b.test))):
        np.testing.assert_array_equal(one, other)
    wanted = simple.test[0][:, :, 2 + 6 :]
    assert jnp.all(wanted == wanted[:, :1])


def test_bad_protocols_are_refused(key):
    with pytest.raises(ValueError, match="test_on"):
        online.Protocol(test_on="both")
    with pytest.raises(ValueError, match="batch=0"):
        online.Protocol(batch=0)
    with pytest.raises(ValueError, match="below one chunk"):
        online.samples_to_threshold("transformer", 4, replace(TOY, max_samples=10), key, seeds=1)
    with pytest.raises(ValueError, match="N >= 2"):
        online.samples_to_threshold("transformer", 1, TOY, key, seeds=1)


def test_exponents_recover_a_power_law_and_use_censored_runs():
    rng = np.random.default_rng(0)
    lengths = np.array([4.0, 8.0, 16.0])
    samples = 10 * lengths[:, None] ** 2 * np.exp(0.1 * rng.normal(size=(3, 8)))
    budgets = np.full(3, np.inf)
    full = exponents.fit_exponent(lengths, samples, budgets)
    assert full.low < 2 < full.high and full.censored == 0
    slope = np.polyfit(np.log(np.repeat(lengths, 8)), np.log(samples).ravel(), 1)[0]
    assert full.slope == pytest.approx(slope)
    cut = np.where(samples > 2600, np.inf, samples)
    censored = exponents.fit_exponent(lengths, cut, np.full(3, 2600.0), resamples=20)
    assert censored.censored > 0
    dropped = np.log(np.where(np.isfinite(cut), cut, 2600.0)).ravel()
    naive = np.polyfit(np.log(np.repeat(lengths, 8)), dropped, 1)[0]
    assert abs(censored.slope - 2) < abs(naive - 2)
    with pytest.raises(ValueError, match="two different lengths"):
        exponents.fit_exponent(np.array([4.0]), samples[:1], budgets[:1])
    with pytest.raises(ValueError, match="every run is censored"):
        exponents.fit_exponent(lengths, np.full((3, 2), np.inf), np.ones(3))


def test_figure1_resumes_and_claims_know_censoring(key, tmp_path, monkeypatch):
    config = figure1.Figure1(
        protocol=replace(TOY, threshold=0.9),
        architectures=("transformer",),
        lengths=(2, 4),
        seeds=2,
    )
    first = figure1.run(config, key, folder=tmp_path)
    assert first.samples.dims == ("architecture", "N", "seed")
    (tmp_path / "state.npz").unlink()
    figure1.run(replace(config, lengths=(2,)), key, folder=tmp_path / "short")
    with pytest.raises(ValueError, match="belongs to another run"):
        figure1.run(config, key, folder=tmp_path / "short", resume=True)
    trained = []

    def train(name, N, *others, **named):
        trained.append(N)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return online.samples_to_threshold(name, N, *others, **named)

    monkeypatch.setattr(figure1, "samples_to_threshold", train)
    with pytest.raises(KeyboardInterrupt):
        figure1.run(config, key, folder=tmp_path)
    second = figure1.run(config, key, folder=tmp_path, resume=True)
    assert trained == [2, 4, 4]  # the cell that was finished is not trained again
    assert first.identical(second)


def test_figure1_claims_know_censoring():
    full = figure1.xr.Dataset(
        {
            "samples": (("architecture", "N", "seed"), [[[100.0, 120.0], [np.inf, 200.0]]]),
            "budget": (("architecture", "N"), [[500.0, 300.0]]),
        },
        coords={"architecture": ["transformer"], "N": [4, 12], "seed": [0, 1]},
    )
    growth = figure1.claims(full)[0]
    assert growth.number == "ratio 2.27, censored" and growth.reproduced is None
    late = full.assign(samples=full.samples.where(full.samples != 200.0, 2000.0))
    assert figure1.claims(late)[0].reproduced is False


def test_figure1_grids_are_checked():
    config = figure1.Figure1(architectures=("transformer", "gru128"), lengths=(2, 8), longest_gru=4)
    assert config.cells() == (("transformer", 2), ("transformer", 8), ("gru128", 2))
    with pytest.raises(ValueError, match="lengths must increase"):
        figure1.Figure1(lengths=(4, 2))
    with pytest.raises(ValueError, match="different ones of transformer"):
        figure1.Figure1(architectures=("perceptron",))
    with pytest.raises(ValueError, match="seeds must be positive"):
        figure1.Figure1(seeds=0)


def test_block_metrics_on_the_construction_itself():
    d, de, N = 2, 4, 3
    matrix = np.zeros((d + 2 * de, d + 2 * de))
    matrix[d + de :, d : d + de] = 3.0 * np.eye(de)
    got = figure2.block_metrics(matrix, np.eye(N, de), d=d)
    assert got["block_energy"] == got["diagonal_energy"] == 1.0
    assert got["effective_alpha"] == pytest.approx(3 / np.sqrt(10))
    assert got["margin"] == pytest.approx(3 / np.sqrt(10))
    matrix[0, 0] = 6.0
    assert figure2.block_metrics(matrix, np.eye(N, de), d=d)["block_energy"] == 0.5


def test_phase_at_toy_size_respects_the_masks_and_claims(key):
    config = phase.Phase(sparsities=(3,), heads=(1, 2), width=4, batch=16, steps=3, restarts=1)
    got = phase.run(config, key)
    assert got.risk.shape == (2, 2, 1) and bool(np.isfinite(got.risk).all())
    np.testing.assert_allclose(got.bound.sel(attention="decoupled", q=3), [1.25 * 2 / 3, 1.25 / 3])
    np.testing.assert_allclose(got.bound.sel(attention="coupled", q=3), 0.0)
    below = got.assign(risk=got.bound - 0.5)
    assert [c.reproduced for c in phase.claims(below)] == [False, True]


def test_every_experiment_has_a_configuration_and_a_plot(key):
    import matplotlib

    matplotlib.use("Agg")
    names = ["qstr.fig1a", "qstr.fig1b", "qstr.fig2", "qstr.phase"]
    assert [experiment.id for experiment in EXPERIMENTS] == names
    assert all(experiment.presets["reduced"] == experiment.config for experiment in EXPERIMENTS)
    config = phase.Phase(sparsities=(2,), heads=(1,), width=2, batch=4, steps=1, restarts=1)
    figure = phase.figure(phase.run(config, key))
    assert len(figure.axes) == 2
    matplotlib.pyplot.close(figure)
