"""Every claim of every figure has a control, and says no to it; each runs on data of a moment."""

from dataclasses import asdict, replace

import jax
import numpy as np
import pytest
import xarray as xr

from jaxbounds.experiments.controls import control_of, controlled, scaled, shifted, turned, valued
from jaxbounds.experiments.experiment import Finding
from jaxbounds.experiments.settings import Settings
from jaxbounds.multihead.experiments import fig6, looseness, ntk, planted, sparse_context
from jaxbounds.multihead.experiments.looseness_measured import QUANTITIES, Measured
from jaxbounds.multihead.experiments.weakconvexity import WeakConvexityCurves
from jaxbounds.papers import experiments
from jaxbounds.qstr.experiments import constructions, figure1, figure2, phase
from jaxbounds.qstr.experiments.figure1_claims import PUBLISHED
from jaxbounds.seqlength.experiments import comparison
from jaxbounds.seqlength.experiments.config import PUBLISHED as MAJORITY
from jaxbounds.smapprox.experiments import learn, machine, margins

BUILT = {}
"""For each experiment a data set on which its claims say yes."""


def builds(*names):
    """Register a function that makes the data set of experiments."""

    def register(function):
        BUILT.update(dict.fromkeys(names, function))
        return function

    return register


def _curves(name, config, steps, heads=(1, 16, 64, 1024), trials=5):
    """Curves that fall like 1 / k, with little scatter; and their labels."""
    noise = 1e-3 * np.random.default_rng(0).normal(size=(len(config.panels), len(heads), trials, 1))
    panel, H, k = np.ix_(range(len(config.panels)), heads, steps)
    dims = ("panel", "H", "trial", "step")
    flat = lambda values: (dims, np.broadcast_to(values[:, :, None], noise.shape[:3] + k.shape[2:]))
    coords = {
        "panel": [one.name for one in config.panels],
        "rule": ("panel", [one.rule for one in config.panels]),
        "exponent": ("panel", [one.exponent for one in config.panels]),
        "H": list(heads),
        "step": list(steps),
    }
    data = {"log10_train_loss": flat(-np.log10(k) + 0 * H + 0 * panel)}
    data["log10_train_loss"] = (dims, data["log10_train_loss"][1] + noise)
    return xr.Dataset(data, coords, {"config": asdict(config)}), flat, noise, (panel, H, k), dims


@builds("multihead.fig2", "multihead.fig3")
def _sparse_context(name):
    number = int(name[-1])
    config = {2: sparse_context.FIGURE_2, 3: sparse_context.FIGURE_3}[number]
    data, flat, noise, (panel, H, k), dims = _curves(name, config, (1, 20, 200, 400, 1000, 4000))
    # More heads slow Figure 2 down, and speed Figure 3 up, its second panel more.
    order = (0.5 if number == 2 else -0.5) * (1 + panel) * np.log10(H)
    data["log10_train_loss"] = data.log10_train_loss + xr.DataArray(
        flat(order + 0 * k)[1], dims=dims
    )
    data["log10_test_loss"] = data.log10_train_loss + 0.1
    falling = 0.95 * (1 - 0.05 * np.log10(H)) + 0 * k + 0 * panel
    data["margin"] = (dims, 4.0 * flat(falling)[1] + noise)
    data["attention"] = (dims, flat(falling)[1] + noise)
    return data.assign_attrs(hypotheses={"gamma_attn": 4.0})


@builds("multihead.fig4", "multihead.fig5")
def _planted(name):
    config = {4: planted.FIGURE_4, 5: planted.FIGURE_5}[int(name[-1])]
    data, flat, noise, (panel, H, k), dims = _curves(name, config, (1, 300, 600))
    order = -0.5 * np.log10(H) - 0.5 * panel
    data["log10_train_loss"] = data.log10_train_loss + xr.DataArray(
        flat(order + 0 * k)[1], dims=dims
    )
    for letter in "WU":
        data[f"alignment_{letter}"] = (dims, flat(0.95 + 0 * (panel + H + k))[1])
    data["margin"] = (dims, flat(1.0 + 0 * (panel + H + k))[1] + noise)
    data["least_output"], data["teacher_margin"] = (
        data.margin,
        0.8 * data.margin.mean() + 0 * data.margin,
    )
    return data.assign_attrs(threshold=0.2)


@builds("multihead.fig6")
def _head_counts(name):
    dims = ("panel", "H", "trial", "step")
    noise = 0.002 * np.linspace(-1, 1, 3)[None, None, :, None]
    falling = np.asarray([0.6, 0.5, 0.4])[None, :, None, None] + noise + np.zeros((1, 1, 1, 2))
    data = {"train_loss": falling, "test_loss": falling, "test_accuracy": 1.2 - falling}
    coords = {"panel": ["recut"], "H": [3, 12, 24], "epoch": ("step", [1.0, 2.0])}
    config = asdict(fig6.EXPERIMENT.presets["published"])
    about = {"config": config, "sentences": 67_349, "shape": [12, 768]}
    attrs = about | {"confounds": {"recut": "H = 12 is the pretrained function"}}
    return xr.Dataset({k: (dims, v) for k, v in data.items()}, coords, attrs)


@builds("multihead.looseness")
def _loose(name):
    config = looseness.Looseness(n=2, samples=1)

    def one(at, aligned, loose=1.0):
        sharp = at["H"] ** -0.5 * at["T"] ** 0.5 * float(at["R"]) ** 5
        every = lambda value: np.full(len(QUANTITIES), value)
        left = (0.9 if aligned else 0.09) * sharp / loose
        return Measured(every(left), every(8 * sharp * at["d"]), every(sharp), every(0.0),
                        np.bool_(True), np.float64(1.0))  # fmt: skip

    points = config.points()
    rows = [[[one(at, a)] * config.seeds for _, at in points] for a in (False, True)]
    along = [[one(points[1][1], True, 1.0 + k) for k in config.steps]] * config.seeds
    return looseness._labelled(config, points, rows, along).assign_attrs(config=asdict(config))


@builds("multihead.ntk")
def _kernel_margins(name):
    config, dims = ntk.NTK(), ("start", "seed", "n")
    starts = [f"random, H = {H}, deviation {s}" for H in config.heads for s in config.scales]
    starts += ["first step", "zero"]
    shape = len(starts), config.seeds, len(config.samples)
    values = np.ones(shape)
    values[-2:] = 0.1
    data = {"margin": values, "margin_upper": values, "held_out_positive": np.ones(shape)}
    coords = {"start": starts, "seed": range(config.seeds), "n": list(config.samples)}
    attrs = {"config": asdict(config), "gamma_linear": 0.1, "gamma_attention": 4.0, "held_out": 9}
    return xr.Dataset({k: (dims, v) for k, v in data.items()}, coords, attrs)


@builds("multihead.weakconvexity")
def _weakly_convex(name):
    config, dims = WeakConvexityCurves(), ("arm", "H", "seed", "step", "block")
    coords = {
        "arm": list(config.arms),
        "H": list(config.heads),
        "seed": range(config.seeds),
        "step": list(config.records),
        "block": ["network", "attention"],
    }
    shape = tuple(len(coords[name]) for name in dims)
    law = np.asarray(config.heads, float)[None, :] ** np.asarray([[0.0], [-0.5]])
    ratio = np.broadcast_to(law[:, :, None, None, None], shape)
    loss = np.broadcast_to(np.asarray([0.7, 0.1, 0.01, 0.001])[None, None, None, :], shape[:-1])
    data = {"ratio": (dims, ratio), "loss": (dims[:-1], loss)}
    return xr.Dataset(data, coords, {"config": asdict(config)})


@builds("qstr.fig1a", "qstr.fig1b")
def published_means(name):
    """The paper's own means, as digitised: one number for each cell, of one task."""
    panel = name[-2:]
    means = PUBLISHED[panel]
    rows = np.asarray([list(row.values()) for row in means.values()])[:, :, None]
    coords = {"architecture": list(means), "N": list(means["transformer"]), "seed": [0]}
    presets = {"1a": figure1.PRESETS_1A, "1b": figure1.PRESETS_1B}[panel]
    return xr.Dataset(
        {
            "samples": (("architecture", "N", "seed"), rows),
            "seen": (("architecture", "N"), np.full(rows.shape[:2], 1e6)),
        },
        coords | {"task": ("seed", [0])},
        {"published": panel, "config": asdict(presets["published"])},
    )


@builds("qstr.fig2")
def _attention_map(name):
    values = {"risk": 0.01, "block_energy": 0.99, "diagonal_energy": 0.95, "margin": 1.0}
    config = asdict(figure2.PRESETS["published"])
    data = {name: ("seed", [value]) for name, value in values.items()}
    return xr.Dataset(data, attrs={"config": config, "N": 100, "samples": 10**6})


@builds("qstr.phase")
def _phase(name):
    config, dims = phase.Phase(), ("attention", "H", "q")
    coords = {"attention": ["coupled", "decoupled"], "H": list(config.heads)}
    coords["q"] = list(config.sparsities)
    bound = np.maximum(1 - np.divide.outer(np.asarray(config.heads), np.asarray(coords["q"])), 0)
    data = {"bound": (dims, np.stack([0 * bound, bound]))}
    data["risk"] = (dims, np.stack([0.05 + 0 * bound, bound + 0.01]))
    return xr.Dataset(data, coords, {"config": asdict(config)})


@builds("qstr.constructions")
def _explicit_weights(name):
    config = constructions.Constructions()
    N, n, q = (np.asarray(v, float) for v in (config.lengths, config.points, config.sparsities))
    code = np.asarray(config.code_lengths, float)
    rows = np.stack([0 * N + 1e-15, 0.01 * N, 0 * N + 0.01])
    ones = np.ones((len(config.coherences), len(config.logits)))
    risk = 1.1 * (1 - 2 / q)[:, None] * np.ones((1, len(config.tilts)))
    return xr.Dataset(
        {
            "retrieval_error": (("target", "logit"), 0.5 * ones),
            "retrieval_bound": (("target", "logit"), ones),
            "recurrent_error": (("variant", "N"), rows),
            "interpolator_norm": (("balance", "n", "draw"), np.ones((2, len(n), config.draws))),
            "two_head_risk": (("q", "tilt"), risk),
            "code_operator": ("code_N", code),
            "code_frobenius": ("code_N", code),
            "code_width": ("code_N", 2.0**code),
        },
        {
            "variant": ["exact", "biased", "rectified"],
            "balance": ["printed", "optimal"],
            "N": N,
            "n": n,
            "q": q,
            "tilt": list(config.tilts),
            "code_N": code,
        },
        {"config": asdict(config)},
    )


@builds("seqlength.majority")
def _sparse_majority(name):
    T, rng = np.asarray(MAJORITY.lengths), np.random.default_rng(0)
    each = lambda mean, spread: (("T", "seed"), mean + spread * rng.normal(size=(len(T), 5)))
    flat = np.full(len(T), 0.5)
    return xr.Dataset(
        {
            "l1": each(20.0, 0.5),
            "gap": each(0.1, 0.005),
            "accuracy": each(0.85, 0.005),
            "learned": (("T", "seed"), np.ones((len(T), 5), bool)),
            "bound": ("T", flat),
            "bound_fixed": ("T", flat),
            "norm_product": ("T", 2 * flat),
        },
        {"T": T},
        {"config": asdict(MAJORITY)},
    )


@builds("seqlength.comparison")
def _beside_others(name):
    config = comparison.Comparison()
    return comparison.run(config, jax.random.key(0))


@builds("smapprox.machine")
def _simulated(name):
    both = ("source", "step")
    data = {name: (both, np.zeros((2, 6), int)) for name in ("state", "head", "symbol")}
    data |= {"decision": ("source", [1.0, 1.0]), "error": ((), 0.0)}
    coords = {"source": ["network", "machine"]}
    return xr.Dataset(data, coords, {"config": asdict(machine.Machine())})


@builds("smapprox.margins")
def _decaying_margins(name):
    config = margins.Margins()
    depth, T = np.asarray(config.depths, float), np.asarray(config.times, float)
    return xr.Dataset(
        {
            "depth_upper": (("correction", "depth"), [0.3 / np.sqrt(depth), 0 * depth + 0.08]),
            "depth_lower": ("depth", 0 * depth + 0.02),
            "time_upper": (("correction", "T"), [np.exp(-T), 0 * T + 0.08]),
            "time_lower": ("T", 0 * T + 1e-3),
        },
        {"correction": list(margins.KINDS), "depth": depth, "T": T},
        {"config": asdict(config)},
    )


@builds("smapprox.learn")
def _learned(name):
    config = learn.Learn()
    n = np.asarray(config.samples, float)
    stages = lambda dim, sizes, before: (
        ("stage", dim, "weight_n", "seed"),
        np.asarray(before, float)[None, :, None, None] * np.ones((2, 1, 1, config.seeds)),
    )
    error = np.broadcast_to(1 / n[None, :, None], (2, len(n), config.seeds))
    return xr.Dataset(
        {
            "error": (("machine", "n", "seed"), error),
            "straight_through_error": ("seed", np.full(config.seeds, 0.5)),
            "noise_error": stages("radius", config.radii, [0.0, 0.1, 0.4]),
            "bare_noise_error": stages("bare_radius", config.bare_radii, [0.1, 0.4]),
            "calculator": ("machine", [1e15, 1e15]),
        },
        {
            "machine": list(config.machines),
            "n": n,
            "radius": list(config.radii),
            "bare_radius": list(config.bare_radii),
            "stage": ["before", "after"],
        },
        {"config": asdict(config)},
    )


ANYWHERE = (
    "hold as printed at every network",
    "every left side is at most its sharpened bound",
    "(A.2) errs",
    "the exact RNN errs",
    "H = 2 < q heads have risk",
    "Section 4:",
    "Section 1:",
    "smaller cover at small scales",
    "agree at every step",
    "the outputs agree",
    "is binary",
    "certified bounds are below the attacks",
)
"""Words of claims about every network, prompt, machine or training: any settings decide them."""


@pytest.fixture(scope="module", params=sorted(BUILT))
def built(request):
    return experiments()[request.param], BUILT[request.param](request.param)


@pytest.mark.slow_cases("seqlength.majority")
def test_every_claim_says_yes_to_its_data_and_no_to_its_control(built):
    experiment, dataset = built
    found = controlled(experiment, dataset)
    assert found
    assert [one.finding for one in found if one.finding.reproduced is not True] == []
    assert [one.finding.text for one in found if not one.control] == []
    assert [(one.control, one.finding.text, one.after) for one in found if not one.rejected] == []


def test_every_claim_is_open_where_the_settings_are_not_recorded(built):
    experiment, dataset = built
    unknown = dataset.copy()
    unknown.attrs.pop("config")
    for finding in experiment.claims(unknown):
        if any(words in finding.text for words in ANYWHERE):
            assert finding.reproduced is True
        else:
            assert finding.reproduced is None and "settings not recorded" in finding.number


def test_every_experiment_has_data_for_its_claims():
    assert set(BUILT) == set(experiments())


def test_a_wrong_figure_1_is_noticed_on_the_papers_own_means():
    """One task, as published: means decide. The GRU's times 50, and a linear growth, say no."""
    for name, count in (("qstr.fig1a", 24), ("qstr.fig1b", 22)):
        experiment, data = experiments()[name], BUILT[name](name)
        before = experiment.claims(data)
        assert [c.reproduced for c in before] == [True] * count
        slow = data.samples.where(data.architecture != "gru500", 50 * data.samples)
        after = experiment.claims(data.assign(samples=slow))
        changed = [b.text for b, a in zip(before, after) if b.reproduced != a.reproduced]
        point = "FFN needs more than RNN" if name == "qstr.fig1a" else "RNN stays close"
        assert any(point in text for text in changed) and len(changed) > len(data.N)
        linear = data.samples.isel(N=0) * data.N / data.N[0]
        grown = data.samples.where(data.architecture != "transformer", linear)
        (growth,) = (
            c for c in experiment.claims(data.assign(samples=grown)) if "less than lin" in c.text
        )
        assert growth.reproduced is False


@pytest.mark.parametrize("name", ["qstr.fig1a", "qstr.fig1b"])
def test_a_grid_without_recurrent_networks_leaves_their_claims_open(name):
    """The quick preset of Figure 1(b) has no RNN, and says which run decides."""
    data = BUILT[name](name)
    without = data.sel(architecture=["transformer", "feedforward"])
    of_rnns = lambda data: [c for c in experiments()[name].claims(data) if "RNN" in c.text]
    assert of_rnns(data) and all(c.reproduced for c in of_rnns(data))
    left = of_rnns(without)
    assert len(left) == {"qstr.fig1a": 1, "qstr.fig1b": 2}[name]
    assert all(c.reproduced is None and "--preset published" in c.number for c in left)


def test_a_control_is_named_by_the_longest_words_of_a_text():
    controls = {"loss": scaled(2), "train loss": scaled(3)}
    assert control_of(controls, Finding("the train loss falls", True, "")) == "train loss"
    assert control_of(controls, Finding("the test loss falls", True, "")) == "loss"
    assert control_of(controls, Finding("the margin grows", True, "")) == ""


def test_controls_change_what_they_name_and_nothing_else():
    data = xr.Dataset({"a": (("x", "y"), np.arange(6.0).reshape(2, 3)), "b": ("x", [1.0, 2.0])},
                      {"x": [10, 20]})  # fmt: skip
    assert scaled(2, "a", x=20)(data).a.values.tolist() == [[0, 1, 2], [6, 8, 10]]
    assert shifted(1, "b")(data).b.values.tolist() == [2, 3]
    assert valued(7, "b", x=lambda x: x > 10)(data).b.values.tolist() == [1, 7]
    assert turned("x", "a", "b")(data).a.values.tolist() == [[3, 4, 5], [0, 1, 2]]
    assert turned("x", "b")(data).a.identical(data.a) and data.b.values.tolist() == [1, 2]


def test_a_finding_is_decided_at_the_settings_it_rests_on_alone():
    settings = Settings(exact={"n": 1000, "law.d": 5}, least={"lengths": 12}, others="none")
    data = xr.Dataset(attrs={"config": {"n": 1000, "law": {"d": 5}, "lengths": [4, 12]}})
    finding = Finding("t", False, "ratio 2")
    assert settings.judged(data, [finding]) == (finding,)
    small = {"n": 200, "law": {"d": 4}, "lengths": [4, 8]}
    (left,) = settings.judged(data.assign_attrs(config=small), [finding])
    assert left.reproduced is None
    assert left.number == (
        "n = 200, not the paper's 1000; law.d = 4, not the paper's 5; lengths = up to 8, below the "
        "paper's 12. --preset published would decide; here no: ratio 2"
    )


@pytest.mark.parametrize("name", ["multihead.fig4", "multihead.fig5"])
def test_quick_keeps_the_samples_on_which_the_teacher_is_found(name):
    """A head of 75 parameters overfits 200 samples: the NO of such a run accused the paper."""
    quick = experiments()[name].presets["quick"]
    assert quick.n == experiments()[name].presets["published"].n == 1000
    data = BUILT[name](name)
    missed = experiments()[name].controls["finds the planted model"](data)
    few = missed.assign_attrs(config=asdict(replace(quick, n=200)))
    claims = [c for c in experiments()[name].claims(few) if "finds the planted" in c.text]
    assert claims and all(c.reproduced is None and "n = 200" in c.number for c in claims)


def test_the_words_of_figure_2_follow_the_run():
    data = BUILT["multihead.fig2"]("multihead.fig2")
    cut = data.sel(step=data.step <= 400)
    claims = {c.text: c for c in experiments()["multihead.fig2"].claims(cut)}
    assert (
        "GD, constant eta: the larger H, the larger the train loss at steps 200 and 400" in claims
    )
    assert not any("1000" in text or "last" in text for text in claims)
    (rate,) = (c for text, c in claims.items() if text.startswith("O(1/t)"))
    assert rate.reproduced is None and "2000 steps would decide" in rate.number
