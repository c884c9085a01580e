"""Measure all-layer margins with and without correction functions (Sections 3.1 and 4).

The margins are over the depth of a circuit and over the steps T of a machine. Each margin lies
between a certified lower bound and an upper estimate, the norm of a perturbation that flips the
decision.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

from jaxbounds.experiments.controls import scaled, valued
from jaxbounds.experiments.experiment import Control, Experiment, Finding
from jaxbounds.experiments.plotting import grid_ticks
from jaxbounds.experiments.settings import default_settings
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.smapprox.experiments.margin_curves import KINDS, chain_margins, machine_margins
from jaxbounds.smapprox.machine_library import LIBRARY


@dataclass(frozen=True)
class Margins:
    """The circuits and machine runs whose margins the experiment measures.

    Attributes:
        depths: the numbers of identity gates in the chains, in increasing order.
        words: the machine's inputs a^n b^n, sorted by increasing running time.
        times: for each word, the number of steps T, at least the machine's halting time.
        bits: the number of position bits, equal for all T, so that all T have the same parameters.
        refinements: the number of each search's moves along the decision boundary.
    """

    depths: tuple[int, ...] = (3, 9, 17, 33)
    words: tuple[str, ...] = ("ab", "aabb", "aaabbb")
    times: tuple[int, ...] = (5, 13, 25)
    bits: int = 6
    refinements: int = 2

    def __post_init__(self) -> None:
        if len(self.words) != len(self.times):
            raise Refused(
                f"words={len(self.words)} and times={len(self.times)}, expected one time for each"
                " word. Try lists of equal length"
            )
        for name in ("depths", "times"):
            if list(getattr(self, name)) != sorted(set(getattr(self, name))):
                raise Refused(
                    f"{name}={getattr(self, name)}, expected increasing values. Try to sort them"
                )


def run(config: Margins, key: PRNGKeyArray, /) -> xr.Dataset:
    """Compute upper estimates and certified lower bounds of margins, over depth and over T.

    The function ignores the argument `key`.
    """
    del key
    with enable_x64(True):
        # The machine takes nearly all of the time, so the machine's first rays give the cost of the
        # run.
        time_upper, time_lower = machine_margins(
            LIBRARY["equal_blocks"]().machine,
            config.words,
            config.times,
            config.bits,
            config.refinements,
        )
        depth_upper, depth_lower = chain_margins(config.depths, config.refinements)
    return xr.Dataset(
        {
            "depth_upper": (("correction", "depth"), depth_upper),
            "depth_lower": (("depth",), depth_lower),
            "time_upper": (("correction", "T"), time_upper),
            "time_lower": (("T",), time_lower),
        },
        coords={
            "correction": list(KINDS),
            "depth": list(config.depths),
            "T": list(config.times),
            "word": ("T", list(config.words)),
        },
        attrs={
            "precision": "float64",
            "correction": "thirds",
            "machine": "equal_blocks",
            "settings": f"attacks with {config.refinements} refinements bound margins from above; "
            f"w_pos = {config.bits} at every T; correction thirds; nothing is random",
        },
    )


_OTHERS = (
    "The paper draws no figure of margins. A run decides the claims about decay only at the "
    "default "
    "depths and times, or at larger ones. A certified bound lies below every attack, at any size."
)
DEPTH = default_settings(
    least={"depths": 33, "refinements": 2},
    others=_OTHERS,
)
TIME = default_settings(
    least={"times": 25, "refinements": 2},
    others=_OTHERS,
)
"""The settings at which a run can decide the claims about the decay of margins."""

_LAST = lambda sizes: sizes == sizes.max()
_BARE, _CORRECTED = {"correction": "uncorrected"}, {"correction": "corrected"}

CONTROLS: dict[str, Control] = {
    "uncorrected chain": valued(0.3, "depth_upper", **_BARE),
    "corrected chain: upper": scaled(0.1, "depth_upper", depth=_LAST, **_CORRECTED),
    "corrected chain: certified": scaled(0.5, "depth_lower", depth=_LAST),
    "uncorrected machine": valued(0.1, "time_upper", **_BARE),
    "corrected machine: upper": scaled(0.1, "time_upper", T=_LAST, **_CORRECTED),
    "below the attacks": scaled(1e3, "depth_lower"),
}
"""False data that the claims must reject: constant uncorrected margins, decaying corrected margins,
or a lower bound above the upper estimates."""


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide the paper's claims: the margin decays only without correction functions."""
    of = lambda name, kind: dataset[name].sel(correction=kind).values
    ratio = lambda values: float(values[-1] / values[0])
    depth, T = dataset["depth"].values.astype(float), dataset["T"].values.astype(float)
    upper = {over: of(f"{over}_upper", "corrected") for over in ("depth", "time")}
    gaps = [(upper[over] / dataset[f"{over}_lower"].values).min() for over in upper]
    found: list[Finding] = []
    if len(depth) > 1:
        slope = float(np.polyfit(np.log(depth), np.log(of("depth_upper", "uncorrected")), 1)[0])
        kept, lower = ratio(upper["depth"]), ratio(dataset["depth_lower"].values)
        last_first = f"at depth {depth[-1]:.0f} over depth {depth[0]:.0f}"
        of_chains = [
            Finding(
                "uncorrected chain: decays like depth^-1/2 or faster (exponent < -0.35)",
                slope < -0.35,
                f"exponent {slope:.3f}",
            ),
            Finding(
                "corrected chain: upper estimate does not decay (ratio > 0.5)",
                kept > 0.5,
                f"{kept:.3f}: {last_first}",
            ),
            Finding(
                "corrected chain: certified bound independent of depth (ratio > 0.99)",
                lower > 0.99,
                f"{lower:.6f}: {last_first}",
            ),
        ]
        found += DEPTH.judged(dataset, of_chains)
    if len(T) > 1:
        rate = float(np.polyfit(T, np.log(of("time_upper", "uncorrected")), 1)[0])
        kept = ratio(upper["time"])
        of_machines = [
            Finding(
                "uncorrected machine: exponential decay in T (rate < -0.4)",
                rate < -0.4,
                f"rate {rate:.3f} per step",
            ),
            Finding(
                "corrected machine: upper estimate does not decay (ratio > 0.3)",
                kept > 0.3,
                f"{kept:.3f}: at T = {T[-1]:.0f} over T = {T[0]:.0f}",
            ),
        ]
        found += TIME.judged(dataset, of_machines)
    least = float(min(gaps))
    text = "certified bounds are below the attacks (ratio >= 1)"
    return (*found, Finding(text, least >= 1, f"least ratio {least:.3g}"))


def figure(dataset: xr.Dataset, /) -> Any:
    """Plot the margins over depth and over T, on logarithmic axes."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9, 4), layout="constrained")
    left, right = picture.subplots(1, 2)
    for axis, name, over in ((left, "depth", "depth"), (right, "time", "T")):
        for kind, mark in zip(KINDS, ("o--", "s-")):
            values = dataset[f"{name}_upper"].sel(correction=kind)
            axis.plot(dataset[over], values, mark, label=f"{kind}: upper estimate")
        axis.plot(dataset[over], dataset[f"{name}_lower"], "k.:", label="corrected: certified")
        axis.set_yscale("log")
        axis.set_ylabel("all-layer margin")
    left.set_xscale("log")
    depths = dataset["depth"].values
    grid_ticks(left.xaxis, depths)
    shown = dataset[["depth_upper", "depth_lower"]].to_dataarray()
    left.set_ylim(*(10.0 ** np.array([np.floor(np.log10(shown.min())), 0.0])))
    left.set(xlabel="circuit depth", title="identity chain")
    right.set(
        xlabel="T, and the word that the machine runs on",
        title=f"machine {dataset.attrs.get('machine', '')}".strip(),
    )
    T = dataset["T"].values
    words = dataset.coords["word"].values if "word" in dataset.coords else [""] * len(T)
    right.set_xticks(T, [f"{t:g}\n{word}" for t, word in zip(T, words)])
    left.legend(fontsize=8)
    picture.suptitle(dataset.attrs.get("settings", ""), fontsize=8)
    return picture


EXPERIMENT = Experiment(
    id="smapprox.margins",
    label="Sections 3.1 and 4",
    title="all-layer margins with and without correction functions, over depth and over T",
    config=Margins(),
    presets={
        "quick": Margins(depths=(2, 6), words=("",), times=(1,), bits=3, refinements=0),
        "deep": Margins(depths=(3, 9, 17, 33, 65, 129), refinements=4),
    },
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
)
