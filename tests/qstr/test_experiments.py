"""Online training, exponents with censoring, and the experiments at toy size."""

from dataclasses import asdict, replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from jaxbounds.experiments.sweeps import Checkpoints
from jaxbounds.qstr.experiments import (
    EXPERIMENTS,
    constructions,
    exponents,
    figure1,
    figure2,
    online,
    phase,
    threshold,
)
from jaxbounds.qstr.experiments.threshold import samples_to_threshold

TOY = online.Protocol(d=2, check_every=5, test_prompts=64, max_samples=960, threshold=0.5)


def test_first_hits_are_the_first_looks_below_the_threshold(key):
    """Independent: the recorded history of test risks, searched by hand."""
    cell = samples_to_threshold("transformer", 4, replace(TOY, threshold=0.9), key, seeds=2)
    for s in range(2):
        below = np.flatnonzero(cell.history[:, s] < 0.9)
        want = (below[0] + 1) * 5 * 64 if len(below) else np.inf
        assert cell.samples[s] == want
    never = samples_to_threshold("transformer", 4, replace(TOY, threshold=0.0), key, seeds=2)
    assert np.all(np.isinf(never.samples)) and never.seen == 960
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
    begin = lambda name, protocol: jax.jit(
        lambda: online.start(key, shared, name, 4, protocol)._replace(training=None)
    )()
    a, b = begin("transformer", TOY), begin("feedforward", TOY)
    simple = begin("transformer", replace(TOY, test_on="simple"))
    chex.assert_trees_all_equal((a.task, a.test), (b.task, b.test))
    wanted = simple.test[0][:, :, 2 + 6 :]
    assert jnp.all(wanted == wanted[:, :1])


def test_bad_protocols_are_refused(key):
    with pytest.raises(ValueError, match="test_on"):
        online.Protocol(test_on="both")
    with pytest.raises(ValueError, match="batch=0"):
        online.Protocol(batch=0)
    with pytest.raises(ValueError, match="less than one chunk"):
        samples_to_threshold("transformer", 4, replace(TOY, max_samples=10), key, seeds=1)
    with pytest.raises(ValueError, match="N=1, expected at least 2"):
        samples_to_threshold("transformer", 1, TOY, key, seeds=1)


def test_exponents_recover_a_power_law_and_use_censored_runs():
    rng = np.random.default_rng(0)
    lengths = np.array([4.0, 8.0, 16.0])
    samples = 10 * lengths[:, None] ** 2 * np.exp(0.1 * rng.normal(size=(3, 8)))
    budgets = np.full(3, np.inf)
    full = exponents.fit_exponent(lengths, samples, budgets, resamples=40)
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
    with pytest.raises(ValueError, match="no run reached the threshold"):
        exponents.fit_exponent(lengths, np.full((3, 2), np.inf), np.ones(3))


@pytest.fixture
def quick(monkeypatch):
    """Training without a network: risks fall at a rate drawn from each seed's key.

    The list starts with the number of the chunk in which the program is cut, and grows by the
    number of runs of each chunk.
    """
    chunks = []
    draw = jax.vmap(lambda key: (jax.random.uniform(key), jax.random.fold_in(key, 1)))
    drawn = jax.jit(draw)

    def side_by_side(name, N, protocol):
        def advance(run):
            chunks.append(len(run.key))
            if len(chunks) == chunks[0]:
                raise KeyboardInterrupt
            rate, key = drawn(run.key)
            late = 0.2 if protocol.test_on == "same" else 0.0
            after = run.training + 0.1 * np.asarray(rate)
            return run._replace(key=key, training=after), 1.0 + late - after

        first = lambda keys, shared: online.Run(keys, np.zeros(len(keys)), None, None)
        return first, advance

    monkeypatch.setattr(threshold, "side_by_side", side_by_side)
    return chunks


def test_a_cell_cut_in_the_middle_ends_with_the_same_bits(key, tmp_path, monkeypatch):
    protocol = replace(TOY, threshold=0.0)
    whole = samples_to_threshold("transformer", 4, protocol, key, seeds=2)
    real = threshold.side_by_side
    monkeypatch.setattr(threshold, "SECONDS", 0.0)

    def cut(*arguments):
        first, advance = real(*arguments)
        looks = iter([advance, advance])
        return first, lambda runs: next(looks)(runs)

    store = Checkpoints(tmp_path, "cell")
    monkeypatch.setattr(threshold, "side_by_side", cut)
    with pytest.raises(StopIteration):
        samples_to_threshold("transformer", 4, protocol, key, seeds=2, store=store)
    assert store.load()[0] == 2 < len(whole.history)
    monkeypatch.setattr(threshold, "side_by_side", real)
    ended = samples_to_threshold("transformer", 4, protocol, key, seeds=2, store=store)
    np.testing.assert_array_equal(ended.history, whole.history)


def test_figure1_resumes_within_cells_and_on_a_larger_grid(key, tmp_path, quick, monkeypatch):
    monkeypatch.setattr(threshold, "SECONDS", 0.0)
    config = figure1.Figure1(
        protocol=replace(TOY, threshold=0.5, shared_task=True, max_samples=32_000),
        architectures=("transformer",),
        lengths=(2, 4),
        seeds=2,
    )
    quick.append(0)
    whole = figure1.run(config, key)
    assert whole.samples.dims == ("architecture", "N", "seed") and np.isfinite(whole.samples).all()
    chunks = len(quick) - 1
    quick[:] = [chunks - 1]  # in the middle of the second cell
    with pytest.raises(KeyboardInterrupt):
        figure1.run(config, key, folder=tmp_path)
    quick[:] = [0]
    assert whole.identical(figure1.run(config, key, folder=tmp_path, resume=True))
    assert len(quick) - 1 == 3  # the chunk that was cut, and the two after it
    assert whole.identical(figure1.run(config, key, folder=tmp_path, resume=True))
    assert len(quick) - 1 == 3
    more = figure1.run(replace(config, draws=2), key, folder=tmp_path, resume=True)
    assert more.task.values.tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(more.samples[..., :2], whole.samples)
    with pytest.raises(ValueError, match="belongs to another run"):
        figure1.run(replace(config, seeds=1), key, folder=tmp_path, resume=True)


def test_figure1_beside_trains_the_same_cells_against_an_honest_test(key, tmp_path, quick):
    protocol = replace(TOY, test_on="simple", shared_task=True, max_samples=32_000)
    config = figure1.Figure1(
        protocol=protocol, architectures=("transformer",), lengths=(2, 4), seeds=2, beside=True
    )
    quick.append(0)
    found = figure1.run(config, key, folder=tmp_path)
    assert (found.samples_honest > found.samples).all()
    same_keys = replace(config, protocol=replace(protocol, test_on="same"), beside=False)
    np.testing.assert_array_equal(figure1.run(same_keys, key).samples, found.samples_honest)
    trained = len(quick)
    assert found.identical(figure1.run(config, key, folder=tmp_path, resume=True))
    assert len(quick) == trained
    alone = figure1.run(replace(config, beside=False), key)
    assert alone.samples.identical(found.samples) and "samples_honest" not in alone
    with pytest.raises(ValueError, match="already tests on this law"):
        replace(config, protocol=replace(protocol, test_on="same"))
    published = asdict(figure1.PRESETS_1A["published"])
    found = found.assign_attrs(config=published)
    apart = [c for c in figure1.claims(found) if "honest" in c.text]
    more = found.samples_honest.mean("seed") / found.samples.mean("seed") - 1
    for claim, change in zip(apart, more.values.ravel(), strict=True):
        assert claim.reproduced == (change < 0.15) and f"({change:+.0%})" in claim.number


@pytest.mark.parametrize("count", [3, 8, 11])
def test_the_test_risk_is_the_mean_over_all_prompts(count):
    z, y = np.arange(3.0 * count).reshape(count, 3), np.arange(1.0 * count)
    error = lambda z, y: jnp.mean((jnp.sum(z, axis=1) - y) ** 2)
    got = online._mean_over(error, (jnp.asarray(z), jnp.asarray(y)), 4)
    assert float(got) == pytest.approx(np.mean((z.sum(axis=1) - y) ** 2), rel=1e-6)


def cells(samples, *, lengths, tasks, published="", budget=500.0):
    """A data set of one architecture."""
    values = np.asarray(samples, float)[None]
    return xr.Dataset(
        {
            "samples": (("architecture", "N", "seed"), values),
            "seen": (("architecture", "N"), np.full(values.shape[:2], budget)),
        },
        coords={
            "architecture": ["transformer"],
            "N": lengths,
            "seed": np.arange(values.shape[2]),
            "task": ("seed", tasks),
        },
        attrs={"published": published, "config": asdict(figure1.PRESETS_1A["published"])},
    )


def test_figure1_claims_know_censoring():
    full = cells([[100.0, 120.0], [np.inf, 200.0]], lengths=[4, 12], tasks=[0, 1], budget=300.0)
    growth = figure1.claims(full)[0]
    assert growth.text == "Transformer grows less than linearly from N = 4 to 12 (ratio < 2.41)"
    assert growth.number.startswith("ratio 2.27, censored: a larger max_samples")
    assert growth.reproduced is None
    late = full.assign(samples=full.samples.where(full.samples != 200.0, 2000.0))
    assert figure1.claims(late)[0].reproduced is False


def test_figure1_says_what_was_left_out_and_what_too_few_runs_leave_open():
    names, few = ["transformer", "feedforward", "gru128"], {}
    rows = np.array([[[1e3, 1.1e3, 1.2e3], [2e3, 2.1e3, 2.2e3]], [[1e3] * 3, [9e3] * 3]])
    rows = np.concatenate([rows, [[[2e3] * 3, [np.nan] * 3]]])
    for runs in (3, 2):
        data = xr.Dataset(
            {
                "samples": (("architecture", "N", "seed"), rows[..., :runs]),
                "seen": (("architecture", "N"), np.full((3, 2), 1e4)),
            },
            coords={
                "architecture": names,
                "N": [4, 8],
                "seed": np.arange(runs),
                "task": ("seed", np.arange(runs)),
            },
            attrs={"config": asdict(figure1.PRESETS_1A["published"])},
        )
        few[runs] = {claim.text: claim for claim in figure1.claims(data)}
    text = "FFN's exponent above the Transformer's, intervals apart"
    assert few[3][text].reproduced is True and few[2][text].reproduced is None
    assert few[2][text].number == "more than 2 run(s), or three lengths, would decide"
    assert figure1.table(data).endswith(
        "gru128: not run above N = 4; longest_gru = 0 runs it there"
    )
    axes = figure1.figure(data).axes[0]
    assert "left out by the setting longest_gru" in axes.get_title()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "RNN (gru128) (not run above N = 4)" in labels


def test_figure2_decides_nothing_against_the_paper_elsewhere_than_in_its_setting():
    def decided(risk, N, share):
        of = {"risk": risk, "block_energy": 0.99, "diagonal_energy": share, "margin": 1.0}
        data = xr.Dataset({name: ("seed", [value]) for name, value in of.items()})
        config = asdict(replace(figure2.PRESETS["published"], N=N))
        return [c.reproduced for c in figure2.claims(data.assign_attrs(config=config))]

    assert decided(0.01, 100, 0.95) == [True, True, True, True]
    assert decided(0.01, 100, 0.5) == [True, True, False, True]
    assert decided(0.01, 32, 0.5) == [None] * 4
    assert decided(0.3, 100, 0.5) == [False, True, None, True]


def test_figure2_names_its_data_and_resumes(key, tmp_path, monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    protocol = replace(TOY, simple=True)
    config = figure2.Figure2(protocol=protocol, N=4, samples=960, seeds=2)
    whole = figure2.run(config, key)
    title = figure2.figure(whole).axes[0].get_title()
    assert "simple-1STR prompts, N = 4" in title
    plain = figure2.figure(whole.assign_attrs(law="1STR")).axes[0].get_title()
    assert "simple" not in plain
    real = figure2.online.side_by_side
    monkeypatch.setattr(figure2, "SECONDS", 0.0)

    def cut(*arguments):
        first, advance = real(*arguments)
        looks = iter([advance, advance])
        return first, lambda runs: next(looks)(runs)

    with monkeypatch.context() as patch, pytest.raises(StopIteration):
        patch.setattr(figure2.online, "side_by_side", cut)
        figure2.run(config, key, folder=tmp_path)
    resumed = figure2.run(config, key, folder=tmp_path, resume=True)
    assert whole.identical(resumed)
    again = figure2.run(config, key, folder=tmp_path, resume=True)
    assert whole.identical(again)
    with pytest.raises(ValueError, match="belongs to another run"):
        figure2.run(replace(config, samples=640), key, folder=tmp_path, resume=True)


def test_figure1_says_which_means_are_lower_bounds():
    data = cells([[100.0, 120.0], [np.inf, 200.0]], lengths=[4, 12], tasks=[0, 1], budget=300.0)
    lines = figure1.table(data.assign_attrs(protocol="qSTR")).splitlines()
    assert lines == [
        "qSTR",
        "transformer, N = 4: 110 (100 to 120)",
        "transformer, N = 12: more than 250 (200 to 300): 1 of 2 not learned",
    ]
    assert "triangles" in figure1.figure(data).axes[0].get_title()
    assert "triangles" not in figure1.figure(data.sel(N=[4])).axes[0].get_title()


@pytest.mark.parametrize(
    "field, words",
    [
        ({"learning_rate": -1.0}, "learning_rate > 0"),
        ({"learning_rate": float("nan")}, "learning_rate > 0"),
        ({"threshold": float("nan")}, "threshold"),
        ({"link": "liner"}, "liner"),
    ],
)
def test_protocols_that_mean_nothing_are_refused(field, words):
    with pytest.raises(ValueError, match=words):
        replace(TOY, **field)


def test_published_means_are_decided_over_tasks():
    """14.7k is published at N = 8: near a spread-out mean, far from a tight one.

    On one task or two, means decide alone: near is near, and no luck of a task explains twice.
    """
    decide = lambda *values: [
        c.reproduced
        for c in figure1.claims(
            cells([values], lengths=[8], tasks=np.arange(len(values)), published="1a")
        )
        if "published" in c.text
    ]
    spread = decide(12e3, 13e3, 14e3, 15e3, 16e3)
    tight = decide(13e3, 13e3, 13.1e3, 13e3, 13e3)
    assert (spread, tight) == ([True, True], [True, False])
    assert [decide(v) for v in (14.7e3, 19e3, 31e3, 6e3)] == [[True], [None], [False], [False]]


def test_figure1_grids_are_checked():
    config = figure1.Figure1(architectures=("transformer", "gru128"), lengths=(2, 8), longest_gru=4)
    assert config.cells() == (("transformer", 2), ("transformer", 8), ("gru128", 2))
    with pytest.raises(ValueError, match="expected positive increasing"):
        figure1.Figure1(lengths=(4, 2))
    with pytest.raises(ValueError, match="architecture='perceptron' is unknown"):
        figure1.Figure1(architectures=("perceptron",))
    with pytest.raises(ValueError, match="seeds=0, expected a positive number"):
        figure1.Figure1(seeds=0)


def test_block_metrics_on_the_construction_itself():
    d, de, N = 2, 4, 3
    matrix = np.zeros((d + 2 * de, d + 2 * de))
    matrix[d + de :, d : d + de] = 3.0 * np.eye(de)
    got = figure2.block_metrics(matrix, np.eye(N, de), d=d)
    assert got["block_energy"] == pytest.approx(1.0)
    assert got["diagonal_energy"] == pytest.approx(1.0)
    assert got["effective_alpha"] == pytest.approx(3 / np.sqrt(10))
    assert got["margin"] == pytest.approx(3 / np.sqrt(10))
    matrix[0, 0] = 6.0
    assert figure2.block_metrics(matrix, np.eye(N, de), d=d)["block_energy"] == pytest.approx(0.5)


def test_phase_at_toy_size_respects_the_masks_and_claims(key):
    config = phase.Phase(sparsities=(3,), heads=(1, 2), width=4, batch=16, steps=3, restarts=1)
    got = phase.run(config, key)
    assert got.risk.shape == (2, 2, 1) and bool(np.isfinite(got.risk).all())
    np.testing.assert_allclose(got.bound.sel(attention="decoupled", q=3), [1.25 * 2 / 3, 1.25 / 3])
    np.testing.assert_allclose(got.bound.sel(attention="coupled", q=3), 0.0)
    got = got.assign_attrs(config=asdict(phase.Phase()))
    below, above = got.assign(risk=got.bound - 0.5), got.assign(risk=got.bound + 0.5)
    assert [c.reproduced for c in phase.claims(below)] == [False, True]
    assert [c.reproduced for c in phase.claims(above)] == [True, None]


def test_every_experiment_has_a_configuration_and_a_plot():
    import matplotlib

    matplotlib.use("Agg")
    names = ["fig1a", "fig1b", "fig2", "phase", "constructions"]
    assert [experiment.id for experiment in EXPERIMENTS] == [f"qstr.{name}" for name in names]
    assert all(experiment.presets["quick"] == experiment.config for experiment in EXPERIMENTS)
    grid = cells([[100.0, np.inf]], lengths=[4], tasks=[0, 1])
    dims = ("attention", "H", "q")
    risks = xr.Dataset(
        {name: (dims, np.full((2, 2, 1), 0.5)) for name in ("risk", "bound")},
        coords={"attention": ["coupled", "decoupled"], "H": [1, 2], "q": [3]},
    )
    for module, dataset, panels in ((phase, risks, 2), (figure1, grid, 1)):
        figure = module.figure(dataset)
        assert len(figure.axes) == panels
        matplotlib.pyplot.close(figure)


def test_constructions_at_toy_size_and_a_false_variant(key):
    import matplotlib

    matplotlib.use("Agg")
    config = constructions.Constructions(
        attention_length=8, coherences=(0.5,), logits=(4.0, 16.0), lengths=(8, 32), points=(10,),
        draws=20, sparsities=(3,), tilts=(1e-2,), prompts=200, code_lengths=(2, 4, 5),
    )  # fmt: skip
    got = constructions.run(config, key)
    toy = [True, True, False, None, None, None, None, None]
    assert [claim.reproduced for claim in constructions.claims(got)] == toy
    got = got.assign_attrs(config=asdict(constructions.Constructions()))
    want = [True, True, False, True, True, True, False, True]
    assert [claim.reproduced for claim in constructions.claims(got)] == want
    figure = constructions.figure(got)
    assert len(figure.axes) == 5
    matplotlib.pyplot.close(figure)
    wrong = got.assign(
        retrieval_error=2 * got.retrieval_bound, recurrent_error=xr.ones_like(got.recurrent_error)
    )
    decided = [claim.reproduced for claim in constructions.claims(wrong)]
    assert decided[:2] == [False, False] and decided[3] is False
