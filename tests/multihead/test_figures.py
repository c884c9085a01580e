"""Figures 2 to 5: the curves against the plain model, the samplers, the claims, the files."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.experiments import EXPERIMENTS, ordering, planted, sparse_context, student
from jaxbounds.multihead.experiments.curves import Panel
from jaxbounds.multihead.experiments.planted_claims import finds_the_teacher
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.model import attention_scores
from jaxbounds.networks.training import optimizer, trajectory

GD = Panel(rule="gd", step_size=1.0)
ROOT = Panel(rule="gd", step_size=1.0, exponent=0.5)
ADAM = Panel(rule="adam", step_size=0.06)
TOY = sparse_context.SparseContextCurves(
    panels=(ROOT,), heads=(1, 3), trials=2, steps=8, every=4, opening=2, n=6, test=5, tokens=4
)
WIDE = replace(TOY, dtype="float64")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder that keeps the toy curves."""
    return tmp_path_factory.mktemp("toy")


@pytest.fixture(scope="module")
def toy(folder):
    """The toy curves in float64."""
    return sparse_context.run(WIDE, jax.random.key(0), folder=folder)


def _relabelled(dataset, *panels):
    """The same numbers under the names of other optimisers."""
    coords = {
        "panel": [panel.name for panel in panels],
        "rule": ("panel", [panel.rule for panel in panels]),
        "exponent": ("panel", [panel.exponent for panel in panels]),
    }
    return xr.concat([dataset] * len(panels), dim="panel").assign_coords(coords)


def _data_of(key, config, trial):
    """The training data of a trial, samples first."""
    trial_key = jax.random.split(key, config.trials)[trial]
    draw = jax.jit(sparse_context.draw, static_argnums=(0, 2))
    drawn = draw(config, trial_key, config.n + config.test)
    drawn = {name: np.asarray(leaf)[..., : config.n] for name, leaf in drawn.items()}
    tokens = np.moveaxis(np.asarray(drawn["X"], float), -1, 0)
    return {"X": tokens, "y": np.asarray(drawn["y"], int)}, np.asarray(drawn["relevant"])


def test_curves_are_those_of_all_heads_written_out(x64, key, toy):
    """Independent: the plain model has a leading axis of heads and knows no copies.

    The tolerance is that of the data, drawn once compiled and once not, in float32.
    """
    with enable_x64(False):
        data, relevant = _data_of(key, TOY, 1)
    assert toy.step.values.tolist() == [1, 2, 4, 8]
    data = {"X": jnp.asarray(data["X"]), "y": jnp.asarray(data["y"])}
    H = 3
    zero, rule = {"U": np.zeros((H, 4, 4)), "W": np.zeros((H, 4, 4))}, optimizer("gd", H**0.5)
    descend = jax.jit(lambda zero: trajectory(lambda p: empirical_risk(p, data), zero, rule, 8))
    path = jax.tree.map(np.asarray, descend(zero))
    risk = jax.jit(empirical_risk)
    every_score = jax.jit(jax.vmap(attention_scores, (None, 0)))
    for step in (2, 8):
        heads = jax.tree.map(lambda leaf, step=step: leaf[step], path)
        got = toy.isel(panel=0, trial=1).sel(H=H, step=step)
        loss = float(risk(heads, data))
        assert 10 ** float(got.log10_train_loss) == pytest.approx(loss, rel=1e-6)
        norms = np.sqrt(np.sum(np.square(heads["U"]), (1, 2)))
        assert float(got.norm_U) == pytest.approx(np.sum(norms) / H**0.5, rel=1e-6)
        scores = every_score(heads["W"][0], data["X"])
        mass = np.mean(np.sum(np.asarray(scores) * relevant.T[:, None], -1))
        assert float(got.attention) == pytest.approx(mass, rel=1e-6)


def test_all_heads_written_out_give_the_same_figure(key, toy):
    """The way of a user's network, with the paper's model in it."""
    written = sparse_context.run(replace(WIDE, student="all-heads"), key)
    assert written.step.values.tolist() == toy.step.values.tolist()
    for name in written:
        np.testing.assert_allclose(written[name], toy[name], rtol=1e-9, atol=1e-12)
    assert set(toy) - set(written) == {"attention", "margin", "norm_U", "norm_W"}


@pytest.mark.slow
def test_float32_follows_float64_where_the_step_is_not_chaotic(key):
    """One lane of Figure 2 at its size; the spread of the trials is above 1e-2."""
    config = replace(
        sparse_context.FIGURE_2, heads=(16,), trials=1, steps=100, every=50, opening=0, test=20
    )
    single = sparse_context.run(config, key)
    double = sparse_context.run(replace(config, dtype="float64"), key)
    assert single.margin.dtype == np.float32 and double.margin.dtype == np.float64
    for name in ("log10_train_loss", "log10_test_loss", "margin", "attention", "norm_W"):
        np.testing.assert_allclose(single[name], double[name], rtol=2e-4, err_msg=name)


def test_losses_are_known_below_the_range_of_floats():
    z = np.asarray([-30.0, 0.0, 14.9, 15.1, 60.0], np.float32)
    exact = np.log10(np.log1p(np.exp(-np.asarray(z, float))))
    got = jax.jit(jax.vmap(lambda value: student.log10_risk(value[None])))(z)
    np.testing.assert_allclose(got, exact, rtol=2e-6, atol=1e-7)
    far = jax.jit(student.log10_risk)(np.asarray([1000.0, 2000.0], np.float32))
    assert float(far) == pytest.approx(-(1000 + np.log(2)) / np.log(10), rel=1e-6)


def test_sparse_context_has_noise_on_irrelevant_tokens_only(key):
    config = sparse_context.FIGURE_2
    draw = jax.jit(sparse_context.draw, static_argnums=(0, 2))
    drawn = draw(config, key, 4000)
    tokens, labels = np.asarray(drawn["X"]), np.asarray(drawn["y"])
    want = np.where(labels > 0, 2.0, 0.0), np.where(labels > 0, 0.0, 2.0)
    np.testing.assert_array_equal(tokens[0, :2], np.stack(want))
    assert not np.any(tokens[0, 2:]) and abs(labels.mean()) < 0.06
    others = tokens[1:]
    noise = others - 2 * np.eye(4)[[2, 3]][np.argmax(others[:, 2:], 1)].transpose(0, 2, 1)
    assert np.std(noise) == pytest.approx(0.1, rel=0.01) and np.max(np.abs(noise)) > 0.35
    random = draw(replace(config, positions="random"), key, 4000)
    share = np.asarray(random["relevant"]).mean(1)
    np.testing.assert_allclose(share, 0.1, atol=0.03)
    chosen = np.moveaxis(np.asarray(random["X"]), 1, 2)[np.asarray(random["relevant"]) > 0]
    np.testing.assert_array_equal(np.sort(chosen, 1), np.tile([0.0, 0, 0, 2], (4000, 1)))


def test_hypotheses_by_hand():
    """Independent: eqs. (7) and (132) in plain arithmetic at the figures' setting."""
    found = sparse_context.hypotheses(sparse_context.FIGURE_2)
    lin = 2 * 5**0.5 * (0.1 - 1.8 * 0.6 / 4)
    main = 0.9 / (4 * 6**0.5) * (1.6 - 7 * 1.2 * 4 - 12 * 1.44 - 4 * 1.2**3)
    assert found["gamma_lin"] == pytest.approx(lin)
    assert found["gamma*"] == pytest.approx(main + lin)
    assert found["gamma_attn"] == pytest.approx(20**0.5)


def test_alignment_is_that_of_the_concatenated_heads():
    rng = np.random.default_rng(0)
    U, W, A, B = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 3), (3, 3)) * 2)
    alignments = jax.jit(planted.alignments)
    got = alignments({"U": U, "W": W}, {"U": A[None], "W": B[None]})
    for name, planted_part, trained in (("U", U, A), ("W", W, B)):
        one, other = (np.tile(np.ravel(leaf), 5) for leaf in (planted_part, trained))
        cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert float(got[f"alignment_{name}"]) == pytest.approx(float(cosine), rel=1e-5)
    nothing = alignments({"U": U, "W": W}, {"U": A[None], "W": 0 * B[None]})
    assert float(nothing["alignment_W"]) == 0


def _ordered(*means, log10=False):
    rng = np.random.default_rng(1)
    values = np.asarray(means)[:, None] + 0.01 * rng.normal(size=(len(means), 5))
    name = "log10_train_loss" if log10 else "margin"
    sizes = [4**i for i in range(len(means))]
    dims = ("panel", "H", "trial", "step")
    return xr.Dataset({name: (dims, values[None, :, :, None])}, {"H": sizes, "step": [20]}), name


def test_orders_are_decided_only_outside_the_interval():
    ask = {"panel": 0, "steps": [20, 999], "rising": False}
    for means, verdict in (((3.0, 2, 1), True), ((3.0, 2, 2), None), ((3.0, 1, 2), False)):
        dataset, name = _ordered(*means)
        assert ordering.along_heads(dataset, name, "t", **ask).reproduced is verdict
        dataset = dataset.isel(trial=[0])
        assert ordering.along_heads(dataset, name, "t", **ask).reproduced is None
    dataset, name = _ordered(-2.0, -400.0, log10=True)
    claim = ordering.along_heads(dataset, name, "t", **ask)
    assert claim.reproduced and ", 1e-400;" in claim.number
    assert ordering.along_heads(dataset, name, "t", **ask, heads=(4, 9)) is None


def test_a_claim_that_is_not_shown_says_why_and_what_would_decide():
    ask = {"panel": 0, "steps": [20], "rising": False}
    dataset, name = _ordered(3.0, 1, 2)
    assert "reversed from H = 4 to 16 at step 20: paired change +0.996" in (
        ordering.along_heads(dataset, name, "t", **ask).number
    )
    one = ordering.along_heads(dataset.isel(trial=[0]), name, "t", **ask).number
    assert "one trial" in one and "two trials or more are needed" in one
    # A change of 1 +- 3 (one standard deviation): by hand, t(36) 3 / sqrt(37) = 1.0003 is not
    # enough, t(37) 3 / sqrt(38) = 0.986 is.
    change = np.asarray([1 - 3 / 2**0.5, 1 + 3 / 2**0.5])
    assert ordering.what_would_decide(change) == "about 38 trials like these would decide"
    assert "more than 10000" in ordering.what_would_decide(np.asarray([-1.0, 1.0]))


def test_trials_that_lie_decades_apart_are_told_by_their_ends():
    rows = np.asarray([[-2.0, -2.1, -2.2], [-1.0, -60.0, -120.0]])
    assert ordering.spread(rows, log10=True).endswith("at most from 1.00e-120 to 1.00e-01")
    assert ordering.spread(rows[:1], log10=True).endswith("a factor of 1.26")


def test_thick_lines_are_the_means_that_decide(toy):
    """Geometric means of losses, arithmetic ones of the margin, at the same points."""
    import matplotlib

    matplotlib.use("Agg")
    (figure,) = [e.figure for e in EXPERIMENTS if e.id == "multihead.fig2"]
    drawn = figure(_relabelled(toy, GD))
    for title, name in (("train loss", "log10_train_loss"), ("margin / average", "margin")):
        (axis,) = [a for a in drawn.axes if a.get_title(loc="left").startswith(title)
                   or a.get_title().startswith(title)]  # fmt: skip
        thick = [line for line in axis.lines if line.get_linewidth() > 1.5]
        means = toy[name].isel(panel=0).mean("trial").transpose("H", "step").values
        wanted = 10.0**means if name.startswith("log10") else means
        np.testing.assert_allclose([line.get_ydata() for line in thick], wanted, rtol=1e-12)
    words = drawn.legends[0].get_title().get_text()
    assert "mean of 2 trials, geometric for losses" in words and "n = 6, 5 test samples" in words
    matplotlib.pyplot.close(drawn)


def test_losses_far_below_the_axis_are_drawn(toy):
    import matplotlib

    matplotlib.use("Agg")
    (figure,) = [e.figure for e in EXPERIMENTS if e.id == "multihead.fig2"]
    deep = _relabelled(toy, GD)
    deep["log10_train_loss"] = deep.log10_train_loss - 200.0 * (deep.step > 4)
    drawn = figure(deep)
    axis = drawn.axes[0]
    low = axis.get_ylim()[0]
    assert axis.get_yscale() == "symlog" and low < float(deep.log10_train_loss.min())
    assert "$10^{-100}$" in [label.get_text() for label in axis.get_yticklabels()]
    matplotlib.pyplot.close(drawn)


def test_runs_resume_and_refuse_another_configuration(key, toy, folder):
    state = next(folder.rglob("curve/state.npz"))
    state.unlink()
    assert toy.identical(sparse_context.run(WIDE, key, folder=folder, resume=True))
    assert state.is_file()
    with pytest.raises(ValueError, match="belongs to another run"):
        sparse_context.run(replace(WIDE, signal=3.0), key, folder=folder, resume=True)


def test_every_figure_is_decided_and_drawn(key, toy):
    import matplotlib

    matplotlib.use("Agg")
    figures = {e.id: e for e in EXPERIMENTS if ".fig" in e.id}
    assert list(figures) == [f"multihead.fig{number}" for number in (2, 3, 4, 5, 6)]
    small = planted.PlantedCurves(
        panels=(ROOT,), heads=(1, 4), trials=2, steps=2, every=1, opening=0, n=8, test=4
    )
    momentum = Panel(rule="momentum", exponent=0.5)
    datasets = {
        "multihead.fig2": _relabelled(toy, GD),
        "multihead.fig3": _relabelled(toy, ROOT, ADAM),
        "multihead.fig5": _relabelled(figures["multihead.fig5"].run(small, key), ROOT, momentum),
    }
    for name, dataset in datasets.items():
        claims = figures[name].claims(dataset)
        assert claims and all(claim.number for claim in claims)
        assert all(np.isfinite(dataset[part]).all() for part in dataset)
        figure = figures[name].figure(dataset)
        assert len(figure.axes) == 6 * dataset.panel.size
        matplotlib.pyplot.close(figure)


def test_presets_are_named_alike():
    """The figures' defaults are the published settings; the open question published none."""
    by_id = {e.id: e for e in EXPERIMENTS}
    for number in (2, 3, 4, 5):
        experiment = by_id[f"multihead.fig{number}"]
        assert experiment.presets["published"] == experiment.config
        assert experiment.presets["quick"].steps < experiment.config.steps
    assert by_id["multihead.ntk"].presets["quick"].seeds == 1


def test_a_run_that_misses_the_teacher_is_counted():
    """Settled elsewhere refutes; on its way, more steps would tell; beyond H = 64 is not asked."""
    dims = ("panel", "H", "trial", "step")

    def claim(*curves, heads=(4,)):
        values = np.asarray(curves, float).reshape(1, len(heads), -1, 3)
        data = dict.fromkeys(("alignment_W", "alignment_U"), (dims, values))
        coords = {"panel": ["Adam, eta = 0.06"], "H": list(heads), "step": [200, 300, 600]}
        return finds_the_teacher(xr.Dataset(data, coords), 0)

    near, stuck, moving = (0.5, 0.9, 0.99), (-0.9, -0.93, -0.93), (0.2, 0.4, 0.7)
    refuted = claim(near, near, stuck)
    assert refuted.reproduced is False and refuted.number.startswith("1 of 3 runs miss it")
    assert "1 have settled elsewhere" in refuted.number and "still move" not in refuted.number
    waiting = claim(near, moving, near)
    assert waiting.reproduced is None and "1 still move: more steps" in waiting.number
    assert claim(near, near, heads=(4, 16)).reproduced is True
    beyond = claim(near, stuck, heads=(4, 1024))
    assert beyond.reproduced is True and "0 of 1 runs" in beyond.number
    assert claim(near, heads=(1024,)).reproduced is None


def test_bad_settings_are_refused(unannotated):
    with pytest.raises(ValueError, match="positive increasing"):
        replace(TOY, heads=(4, 1))
    with pytest.raises(ValueError, match="multiple of every"):
        replace(TOY, steps=7)
    with pytest.raises(ValueError, match="trials=0, expected a positive"):
        replace(TOY, trials=0)
    with pytest.raises(ValueError, match=r"rule='.*' is unknown"):
        Panel(rule="sgd")
