"""Compiled networks that learn from accept bits (not in the paper).

The n accept bits tell whether a machine accepts each of n random words. In the first part, gradient
descent starts from random logits and learns the next states in a machine's transition table. In the
second part, gradient descent starts from the compiled weights plus noise and learns all weights.
Test errors are exact, over every word up to the training length.
"""

from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

from jaxbounds.experiments.controls import scaled, valued
from jaxbounds.experiments.experiment import Control, Experiment, Finding
from jaxbounds.experiments.plotting import grid_ticks
from jaxbounds.experiments.settings import default_settings
from jaxbounds.smapprox.certified_machine import machine_margin_lower
from jaxbounds.smapprox.experiments.at_once import Count, at_once, counted
from jaxbounds.smapprox.experiments.learn_runs import (
    Learn,
    compiled_for,
    learned_tables,
    table_plan,
    trained_weights,
    weights_plan,
)
from jaxbounds.smapprox.feedforward import l1_norm, parameter_count
from jaxbounds.smapprox.sample_complexity import sample_complexity

EPSILON = 0.1
"""The error of Lemma 2.4's sample sizes, as a fraction of the words; a larger error needs fewer
samples."""


SETTINGS = default_settings(
    least={
        "length": 4,
        "samples": 64,
        "restarts": 4,
        "table_steps": 60,
        "weight_samples": 64,
        "weight_steps": 40,
    },
    others="The experiment is not in the paper. Standard errors over the samples decide, so that "
    "few seeds leave a claim open; claims name their machines and norms.",
)
"""The settings at which a run can decide the claims."""

_FIRST = lambda sizes: sizes == sizes.min()


def _better_straight_through(dataset: xr.Dataset) -> xr.Dataset:
    """Return false data, in which straight-through derivatives learn tables better than softmax."""
    soft = dataset["error"].isel(machine=0, n=-1)
    return dataset.assign(straight_through_error=("seed", soft.values - 0.2))


CONTROLS: dict[str, Control] = {
    "soft tables learn": valued(0.5, "error"),
    "their error falls": valued(0.5, "error"),
    "constants one": valued(1e3, "calculator"),
    "learn less than soft": _better_straight_through,
    "changes no answer": valued(0.3, "noise_error", stage="before", radius=_FIRST),
    "uncorrected weights does": scaled(0.0, "bare_noise_error"),
    "does not mend": scaled(0.0, "noise_error", "bare_noise_error", stage="after"),
}
"""False data that the claims must reject: training does not learn the tables, or noise changes the
test errors differently."""


def run(config: Learn, key: PRNGKeyArray, /) -> xr.Dataset:
    """Learn the transition tables of all machines, and all network weights of the first machine."""
    table_key, weight_key = jax.random.split(key)
    kinds = ((config.radii, True), (config.bare_radii, False))
    plans = [table_plan(config)] * len(config.machines)
    total = sum(plan.counted for plan in plans + [weights_plan(config, kind[0]) for kind in kinds])
    with counted(100.0, "percent") as add, at_once() as submit:
        count: Count = lambda work, words: add(100.0 * work / total, words)
        learning = [
            submit(learned_tables, config, name, table_key, count) for name in config.machines
        ]
        training = [submit(trained_weights, config, weight_key, *kind, count) for kind in kinds]
        tables = [each.result() for each in learning]
        weights, bare = (each.result() for each in training)
    calculators = [_calculator(config, name) for name in config.machines]
    each = ("n", "seed")
    of_weights = ("weight_n", "seed")
    return xr.Dataset(
        {
            "error": (("machine", *each), np.stack([error[:-1] for error, _ in tables])),
            "longer_error": (("machine", *each), np.stack([error[:-1] for _, error in tables])),
            "straight_through_error": (("seed",), tables[0][0][-1]),
            "noise_error": (("stage", "radius", *of_weights), weights),
            "bare_noise_error": (("stage", "bare_radius", *of_weights), bare),
            "calculator": (("machine",), np.array(calculators)),
        },
        coords={
            "machine": list(config.machines),
            "n": list(config.samples),
            "radius": list(config.radii),
            "bare_radius": list(config.bare_radii),
            "weight_n": list(config.weight_samples),
            "stage": ["before", "after"],
        },
        attrs={
            "length": config.length,
            "longer": config.longer,
            "epsilon": EPSILON,
            "settings": f"words up to length {config.length}; {config.seeds} samples of each n; "
            f"tables: best of {config.restarts} starts, {config.table_steps} steps of Adam; "
            f"all weights: {config.weight_steps} steps",
        },
    )


def _calculator(config: Learn, name: str) -> float:
    compiled = compiled_for(config, name, corrected=True)
    alpha, p = l1_norm(compiled.params), parameter_count(compiled.params)
    return sample_complexity(alpha, p, machine_margin_lower(compiled), EPSILON)


def _below(values: np.ndarray, limit: float) -> tuple[bool | None, str]:
    """Decide whether a mean over samples is below a limit; return also a text about the decision.

    The claim stays open within two standard errors of the limit, or for fewer than three samples.
    """
    count, mean = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / count**0.5 if count > 1 else float("inf")
    if count >= 3 and abs(mean - limit) >= 2 * error:
        return mean < limit, f" (standard error {error:.2g})"
    apart = abs(mean - limit)
    needed = max(3, int(np.ceil((2 * error * count**0.5 / apart) ** 2))) if apart > 0 else 0
    enough = needed if np.isfinite(error) and needed > count else 3
    return None, f" ({count} seeds; about {enough} would decide, at this spread)"


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide which machines the training learned; too few samples leave a machine's claim open."""
    n = dataset["n"].values.astype(float)
    mean = dataset["error"].mean("seed")
    found = []
    for name in dataset["machine"].values:
        errors = ", ".join(
            f"n = {m:.0f}: {e:.3f}" for m, e in zip(n, mean.sel(machine=name).values)
        )
        decided, why = _below(dataset["error"].sel(machine=name).values[-1], 0.15)
        text = f"soft tables learn {name} from {n[-1]:.0f} accept bits (mean error < 0.15)"
        found.append(Finding(text, decided, errors + why))
    overall = mean.mean("machine").values
    positive = overall > 0
    if positive.sum() > 1:
        fit = lambda errors: float(np.polyfit(np.log(n[positive]), np.log(errors[positive]), 1)[0])
        slope, each = fit(overall), dataset["error"].mean("machine")
        left = [each.drop_isel(seed=i).mean("seed").values for i in range(each.sizes["seed"])]
        fits = [fit(errors) for errors in left if (errors[positive] > 0).all()]
        # The jackknife over samples needs an error above zero if any one sample is left out.
        sure = len(fits) == each.sizes["seed"] >= 3
        error = float(np.std(fits) * np.sqrt(len(fits) - 1)) if sure else float("inf")
        decided = abs(slope + 0.5) >= 2 * error
        text = "their error falls at least like Lemma 2.4's n^-1/2 (exponent <= -0.5)"
        number = f"exponent {slope:.2f}"
        number += f" (standard error {error:.2g})" if sure else ""
        number += "" if decided else f"; more than {each.sizes['seed']} seeds would decide"
        found.append(Finding(text, slope <= -0.5 if decided else None, number))
    calculated = dataset["calculator"].values
    through, soft = float(dataset["straight_through_error"].mean()), float(mean[0, -1])
    # Both trainings use the same samples, so the differences for each sample decide.
    less, why = _below(dataset["error"].values[0, -1] - dataset["straight_through_error"].values, 0)
    kept = dataset["noise_error"].sel(stage="before").values
    bare = dataset["bare_noise_error"].sel(stage="before").values
    pair = lambda name, axis: dataset[name].isel({axis: -1}).mean(("weight_n", "seed")).values
    broken = {
        "corrected": pair("noise_error", "radius"),
        "uncorrected": pair("bare_noise_error", "bare_radius"),
    }
    all_broken = all(before > 0 for before, _ in broken.values())
    smallest, largest = float(dataset["radius"][0]), float(dataset["bare_radius"][-1])
    findings = (
        *found,
        Finding(
            "Lemma 2.4 with constants one asks for over 10^6 times the largest n",
            bool((calculated > 1e6 * n[-1]).all()),
            ", ".join(f"{value:.2g}" for value in calculated) + f" at error {EPSILON}",
        ),
        Finding(
            "straight-through tables learn less than soft ones (larger mean error)",
            less,
            f"{through:.3f} against {soft:.3f} at n = {n[-1]:.0f}{why}",
        ),
        Finding(
            f"noise of norm {smallest:g} on all corrected weights changes no answer",
            bool((kept[0] == 0).all()),
            f"largest error {kept[0].max():.3f}",
        ),
        Finding(
            f"noise of norm {largest:g} on all uncorrected weights does",
            bool((bare[-1] > 0).any()),
            f"largest error {bare[-1].max():.3f}",
        ),
        Finding(
            "training all weights does not mend the largest noise (error stays above half)",
            all(bool(a > b / 2) for b, a in broken.values()) if all_broken else None,
            ", ".join(f"{kind} {b:.3f} to {a:.3f}" for kind, (b, a) in broken.items())
            + ("" if all_broken else "; larger norms, that break both, would decide"),
        ),
    )
    return SETTINGS.judged(dataset, findings)


def figure(dataset: xr.Dataset, /) -> Any:
    """Plot learned tables' errors against n, and noisy networks' errors against the noise."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = picture.subplots(1, 2)
    n = dataset["n"].values
    for name, mark in zip(dataset["machine"].values, "os^dv"):
        error = dataset["error"].sel(machine=name)
        (line,) = left.plot(n, error.mean("seed"), f"{mark}-", label=f"{name}: soft table")
        left.plot(n, error, ".", color=line.get_color(), alpha=0.4, markersize=4)
    through = float(dataset["straight_through_error"].mean())
    left.plot(n[-1:], [through], "x", label=f"{dataset['machine'].values[0]}: straight-through")
    left.plot(n, 0.5 * (n / n[0]) ** -0.5, "k:", label="$n^{-1/2}$")
    left.set_xscale("log")
    grid_ticks(left.xaxis, n)
    left.set(xlabel="accept bits n", ylabel="error on all words", title="next states learned")
    for colour, (name, axis, kind, mark) in enumerate(
        (
            ("noise_error", "radius", "corrected", "s"),
            ("bare_noise_error", "bare_radius", "uncorrected", "o"),
        )
    ):
        mean = dataset[name].mean(("weight_n", "seed"))
        for stage, line, size in (("before", "--", 9), ("after", "-", 4)):
            look: Any = {"color": f"C{colour}", "mfc": "none" if stage == "before" else None}
            label, values = f"{kind}, {stage} training", mean.sel(stage=stage)
            right.plot(dataset[axis], values, mark + line, label=label, markersize=size, **look)
    right.set_xscale("log")
    grid_ticks(right.xaxis, [*dataset["bare_radius"].values, *dataset["radius"].values])
    right.set(xlabel="norm of the noise on all weights", ylabel="error on all words")
    right.set(title="all weights: means")
    for axis in (left, right):
        axis.set_ylim(-0.03, 1.04)
        axis.legend(fontsize=8)
    words = dataset.attrs.get("settings", "")
    picture.suptitle(f"{words}\ndots: samples; lines: their means" if words else "", fontsize=8)
    return picture


EXPERIMENT = Experiment(
    id="smapprox.learn",
    label="after Section 4 (not in the paper)",
    title="a transition table, or all weights, learned from which words a machine accepts",
    config=Learn(),
    presets={
        "quick": Learn(
            machines=("parity",),
            length=2,
            longer=3,
            samples=(2, 7),
            seeds=2,
            restarts=2,
            table_steps=2,
            radii=(0.1,),
            bare_radii=(3.0,),
            weight_samples=(7,),
            weight_steps=2,
        ),
        "more": Learn(seeds=16, restarts=12, table_steps=200, weight_steps=400),
    },
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
)
