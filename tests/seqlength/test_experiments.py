"""The experiments: a tiny run, resuming it, the trends, the claims, and the comparison."""

import functools
from dataclasses import asdict, replace

import jax
import numpy as np
import pytest
import xarray as xr

from jaxbounds.experiments.sweeps import Checkpoints
from jaxbounds.seqlength.experiments import comparison, deciding, majority, training
from jaxbounds.seqlength.experiments.config import PRESETS, PUBLISHED, SparseMajority
from jaxbounds.seqlength.experiments.deciding import decide
from jaxbounds.seqlength.experiments.majority_claims import claims, deviations
from jaxbounds.seqlength.experiments.majority_figure import figure
from jaxbounds.seqlength.sparse_majority import Embedding
from jaxbounds.seqlength.trends import trend

TINY = SparseMajority(
    lengths=(5,),
    seeds=2,
    sparsity=1,
    train=40,
    validation=60,
    epochs=60,
    every=5,
    chunk=6,
    group=2,
    batch=16,
    rate=0.02,
    hidden=8,
    embedding=Embedding(d=8, symbols="l2", symbol_scale=3.0, position_scale=0.5),
)


@pytest.fixture(scope="module", autouse=True)
def shared_cache(kept_programs):
    """Every run below is the same program: compile it once."""


@pytest.fixture(scope="module")
def tiny():
    return majority.run(TINY, jax.random.key(0))


@pytest.fixture
def few_permutations(monkeypatch):
    """A p-value of 99 permutations reaches 1/100, which is below each level asked for here."""
    monkeypatch.setattr(deciding, "trend", functools.partial(trend, permutations=99))


@pytest.mark.usefixtures("few_permutations")
def test_tiny_run_learns_stops_and_measures(tiny):
    assert dict(tiny.sizes) == {"T": 1, "seed": 2}
    assert tiny.learned.all() and float(tiny.accuracy.min()) > 0.8
    np.testing.assert_allclose(tiny.gap, tiny.validation_loss - tiny.train_loss, atol=1e-6)
    stopped = tiny.epochs_run.values < TINY.epochs
    assert stopped.any() and (tiny.train_accuracy.values[stopped] == 1.0).all()
    assert (tiny.epoch <= tiny.epochs_run).all() and (tiny.diverged == -1).all()
    # At 40 samples no bound is below the range of the clipped loss.
    assert float(tiny.bound.min()) > 1.0
    learned, *figures = claims(tiny)[:4]
    assert learned.number.endswith("--preset published would decide; here yes: 100% of 2")
    assert [claim.reproduced for claim in (learned, *figures)] == [None] * 4
    # A validation is that of the same epoch at any `every`: only fewer looks would be a difference.
    assert "epochs 60 for 200000; batch 16 for 128" in learned.number


def test_a_run_does_not_depend_on_how_many_there_are():
    """Its draws; that lanes do not depend on their neighbours is of the sweeps."""

    def drawn(seeds):
        lane = training.lanes(replace(TINY, seeds=seeds), jax.random.key(0), 5)
        return jax.tree.map(np.asarray, lane._replace(key=jax.random.key_data(lane.key)))

    lone, first = drawn(1), drawn(2)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[0], b[0]), lone, first)


def test_a_killed_run_resumes_to_the_same_bits(tiny, tmp_path, monkeypatch):
    save = Checkpoints.save

    def killed(self, *arguments):
        save(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Checkpoints, "save", killed)
        majority.run(TINY, jax.random.key(0), folder=tmp_path)
    assert (tmp_path / "T5" / "state.npz").exists()
    with pytest.raises(ValueError, match="belongs to another run"):
        other = replace(TINY, rate=0.01)
        majority.run(other, jax.random.key(0), folder=tmp_path, resume=True)
    resumed = majority.run(TINY, jax.random.key(0), folder=tmp_path, resume=True)
    assert resumed.identical(tiny)


@pytest.mark.slow_cases("False")
@pytest.mark.parametrize("stop", [True, False])
def test_fewer_validations_leave_the_numbers_of_the_epochs_that_stay(stop):
    """`every` is data of the program of the tiny run: each epoch that stays has the same bits."""
    found = {}
    for every in (1, 10):
        config = replace(TINY, every=every, stop=stop)
        found[every] = training.train_length(config, jax.random.key(0), 5).runs
    each, few = found[1], found[10]
    jax.tree.map(np.testing.assert_array_equal, few._replace(best=()), each._replace(best=()))
    assert (few.epoch < TINY.epochs).any() == stop and (few.validation_loss > 0).all()
    assert ((few.best.epoch % 10 == 0) | (few.best.epoch == few.epoch)).all()
    assert (each.best.validation_loss <= few.best.validation_loss).all()


def test_the_published_preset_validates_every_fiftieth_epoch():
    # 93 to 95% of an epoch of the published sizes went into its validation.
    assert PUBLISHED.every == 50 and PUBLISHED.epochs % PUBLISHED.every == 0
    assert deviations(asdict(replace(PUBLISHED, every=1))) == ()
    assert deviations(asdict(replace(PUBLISHED, every=500))) == ("every 500 for 50",)


def test_settings_that_no_run_could_have_are_refused(unannotated):
    with pytest.raises(ValueError, match="loss='hinge'"):
        replace(TINY, loss="hinge")
    with pytest.raises(ValueError, match="epochs=0, expected a positive"):
        replace(TINY, epochs=0)
    with pytest.raises(ValueError, match=r"lengths=\(\), expected"):
        replace(TINY, lengths=())
    with pytest.raises(ValueError, match="expected positive increasing"):
        replace(TINY, lengths=(7, 5))


def test_published_presets_are_the_published_numbers():
    published, text = PRESETS["published"], PRESETS["text"]
    for preset in (published, text):
        assert preset.lengths == tuple(range(20, 201, 20)) and preset.seeds == 5
        assert (preset.train, preset.validation, preset.epochs) == (300, 10_000, 200_000)
        assert preset.batch == 128 and preset.sparsity == 9 and preset.embedding.d == 64
    assert published.stop and not text.stop
    assert (published.loss, text.loss) == ("sigmoid", "softmax")


def test_trend_against_polyfit_and_a_known_p_value():
    rng = np.random.default_rng(0)
    lengths = np.array([20.0, 40.0, 80.0, 160.0])
    flat = rng.normal(size=(4, 5))
    everything = np.ones((4, 5), bool)
    found = trend(lengths, flat, everything, kind="mean")
    assert found.slope == pytest.approx(np.polyfit(lengths, flat.mean(axis=1), 1)[0])
    rising = flat + 0.05 * lengths[:, None]
    assert trend(lengths, rising, everything, kind="max").p_value < 0.01
    # Runs that did not learn are left out, whatever they show.
    spoiled, keep = rising.copy(), everything.copy()
    spoiled[3, 0], keep[3, 0] = 1e6, False
    assert trend(lengths, spoiled, keep, kind="max").slope < 1
    with pytest.raises(ValueError, match="at least 2 for a trend"):
        trend(lengths, flat, np.zeros((4, 5), bool), kind="mean")


def test_permutation_p_values_are_uniform_without_a_trend():
    # The test is exact: at most 5% of null data sets fall below 5%, up to sampling error.
    rng = np.random.default_rng(3)
    x, keep = np.arange(4.0), np.ones((4, 3), bool)
    null = lambda: trend(x, rng.normal(size=(4, 3)), keep, kind="max", permutations=99)
    p_values = np.array([null().p_value for _ in range(200)])
    assert np.mean(p_values <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert 0.4 < p_values.mean() < 0.6


def _dataset(l1):
    shape = l1.shape
    bound = np.full(shape[0], 0.5)
    return xr.Dataset(
        {
            "l1": (("T", "seed"), l1),
            "l1_increase": (("T", "seed"), l1),
            "gap": (("T", "seed"), np.random.default_rng(1).uniform(0.0, 0.1, shape)),
            "accuracy": (("T", "seed"), np.random.default_rng(2).uniform(0.8, 0.9, shape)),
            "learned": (("T", "seed"), np.ones(shape, bool)),
            "bound": ("T", bound),
            "bound_fixed": ("T", bound),
            "norm_product": ("T", 2.0 * bound),
        },
        coords={"T": [20, 60, 100, 140, 180], "seed": list(range(shape[1]))},
        attrs={"config": asdict(PUBLISHED)},
    )


@pytest.mark.usefixtures("few_permutations")
def test_claims_follow_the_data_and_the_figure_shows_every_run():
    noise = 20.0 + np.random.default_rng(0).normal(size=(5, 6))
    flat = claims(_dataset(noise))
    rising = claims(_dataset(noise + np.arange(5)[:, None] * 5.0))
    assert flat[1].text.startswith("Figure 1: no increasing trend")
    assert flat[1].reproduced is True and rising[1].reproduced is False
    assert flat[4].text.startswith("Figure 3: a plateau") and flat[4].reproduced
    below, constant, follows = flat[5:]
    assert below.reproduced and below.number.startswith("least bound 0.5,")
    assert constant.reproduced and follows.reproduced
    moved = _dataset(noise)
    moved["bound_fixed"][2] += 1e-12
    assert not claims(moved)[6].reproduced
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    fig = figure(_dataset(noise))
    # The six runs and the entry of the legend.
    assert [len(axes.collections) for axes in fig.axes] == [7, 7, 7]
    assert fig.axes[0].get_title(loc="left").startswith("Figure 1\nyes: no increasing trend")
    assert fig.get_suptitle() == "6 runs at each of 5 lengths. The paper's settings."
    other = _dataset(noise).assign_attrs(config=asdict(TINY))
    assert "open: no increasing trend of max sum |weight|\n   yes at these settings" in (
        figure(other).axes[0].get_title(loc="left")
    )
    # What is drawn is what decides: the largest of the runs that learned.
    unknown = _dataset(noise)
    unknown.attrs.clear()
    unknown["l1"][0, 0], unknown["learned"][0, 0] = 1e6, False
    drawn = figure(unknown)
    assert drawn.get_suptitle().endswith("Settings not recorded.")
    assert drawn.axes[0].lines[0].get_ydata().max() < 30.0


@pytest.mark.usefixtures("few_permutations")
def test_few_runs_leave_a_trend_open_and_say_how_many_would_decide():
    x, keep = np.arange(5.0), np.ones((5, 2), bool)
    about = {"kind": "max", "change": 1.0, "level": 0.05 / 4}
    noise = np.random.default_rng(0).normal(size=(5, 2))
    unsure = decide(x, noise, keep, **about)
    assert unsure.present is None and unsure.runs in (4, 8, 16, 32)
    assert decide(x, 0.01 * noise, keep, **about) == (False, 2)
    assert decide(x, 0.01 * noise + x[:, None], keep, **about) == (True, 2)
    # Two lengths with two runs each reach no p-value below 1 / 3, however large the rise.
    steep = np.array([[0.0, 0.1], [9.0, 9.2]])
    assert decide(x[:2], steep, keep[:2], **about).present is None
    wide = 0.125 * x[:, None] + np.array([-100.0, 100.0])  # half of the change, lost in scatter
    assert decide(x, wide, keep, **about | {"kind": "mean"}) == (None, None)
    shown = claims(_dataset(20.0 + 40.0 * np.abs(noise)))[1]
    assert shown.reproduced is None and shown.number.startswith("not decided by 2 runs a length: ")
    assert PRESETS["published"] == PUBLISHED and deviations(asdict(PUBLISHED)) == ()
    assert deviations(asdict(PRESETS["text"])) == ()


def test_comparison_says_what_depends_on_the_length_and_who_wins():
    setting = replace(comparison.Comparison().setting, m=20_000)
    config = comparison.Comparison(
        setting=setting, T=(1.0, 1e3, 1e6), m=(10.0, 1e4, 1e8), B_QK=(0.1, 10.0, 1e3)
    )
    data = comparison.run(config, jax.random.key(0))
    found = comparison.claims(data)
    # At m = 20000 Theorem 4.1 is clipped at the trivial value whatever T is: nothing shows.
    assert [claim.reproduced for claim in found] == [None] + [True] * (len(found) - 1)
    assert found[0].number.startswith("clipped at the trivial value: m >= ")
    assert found[0].number.endswith("samples would decide, here m = 2e+04")
    larger = replace(config, setting=replace(setting, m=10**7))
    whole = comparison.run(larger, jax.random.key(0))
    assert comparison.claims(whole)[0].reproduced is True
    over_T = data.over_T.to_pandas().T
    assert over_T.drop(columns="log_length").nunique().max() == 1
    assert over_T.log_length.is_monotonic_increasing and over_T.log_length.is_unique
    assert data.winner_over_m.values[0] == "trivial"
    assert found[-1].number == "sharpened, parameter counting from 10, trivial from 1e+03"
    # m* brackets the trivial value.
    name = "lemma_3_6"
    m, bound = int(data.first_m.sel(bound=name)), comparison.BOUNDS[name].value
    assert bound(replace(setting, m=m)) < setting.trivial
    assert bound(replace(setting, m=int(0.99 * m))) == setting.trivial
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    fig = comparison.figure(data)
    assert [len(axes.lines) for axes in fig.axes] == [2 * len(comparison.BOUNDS) + 1] * 3
    assert fig.axes[0].get_title(loc="left").startswith("faint, at the trivial value for every $T$")
    # The paper's theorem is in its panel: faint where it is clipped, and whole at the default's m.
    assert (fig.axes[0].lines[1].get_ydata() == setting.trivial).all()
    assert fig.get_suptitle().startswith("Lines through T = 128, m = 20,000")
    assert comparison.Comparison().setting.m == 10**7
    shown = comparison.figure(whole).axes[0]
    assert shown.lines[0].get_label() == "Theorem 4.1" and shown.get_title(loc="left") == ""
    assert (shown.lines[0].get_ydata() < setting.trivial).all()
    # Claims and legend name the rival alike.
    label = comparison.BOUNDS["log_length"].label
    assert label in [line.get_label() for line in shown.lines]
    assert any(label in claim.text for claim in found) and label.startswith("Edelman et al.")
    with pytest.raises(ValueError, match=r"m=.* positive increasing values"):
        comparison.Comparison(m=(10.0, 5.0))
