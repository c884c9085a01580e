"""The training of Figures 2 to 5 with recorded losses, margins and norms.

The paper's heads start at zero and therefore stay equal, so the module `EqualHeads` stores one head
for all H heads. One compiled program trains all trials at all H.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.experiment import refuse_unless_increasing, refuse_unless_positive
from jaxbounds.experiments.provenance import fingerprint, products_in, products_used
from jaxbounds.experiments.sweeps import Swept, each_part, lanes_of, shares, sweep
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, locate
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.experiments.lessons import Lesson, Measure, lessons
from jaxbounds.multihead.experiments.student import Lane
from jaxbounds.multihead.experiments.students import EQUAL_HEADS, refuse_unknown
from jaxbounds.networks.training import Rule

RULE_NAMES = {"gd": "GD", "momentum": "momentum", "adam": "Adam", "adamw": "AdamW"}

LIMITS = (
    "Losses are recorded as logarithms, computed without underflow. Training itself stops where "
    "a step is below the spacing of a parameter (6e-8 of it in float32) or a gradient underflows "
    "(1e-38): flat curves below a loss of about 1e-8 may be that."
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """An optimiser and its step size as a function of H.

    Attributes:
        rule: the optimiser: "gd", "momentum" (coefficient 0.9, which the paper does not state),
            "adam" or "adamw".
        step_size: the step size eta at H = 1.
        exponent: the power of H in the step size; eta is `step_size` H^exponent.
    """

    rule: Rule = "gd"
    step_size: float = 1.0
    exponent: float = 0.0

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise Refused(
                f"rule={self.rule!r} is unknown, expected one of {', '.join(RULE_NAMES)}. Try"
                f" rule={next(iter(RULE_NAMES))!r}"
            )

    @property
    def name(self) -> str:
        """The panel's name for axes and tables, for example "GD, eta = sqrt(H)"."""
        power = "sqrt(H)" if self.exponent == 0.5 else f"H^{self.exponent:g}"
        parts = [f"{self.step_size:g}"] * (self.step_size != 1 or not self.exponent)
        return f"{RULE_NAMES[self.rule]}, eta = {' '.join(parts + [power] * (self.exponent != 0))}"


@dataclass(frozen=True, kw_only=True)
class Curves:
    """The configuration of the curves: networks, data, length of training, and recorded steps.

    Attributes:
        panels: the optimisers; each has its own row of the figure.
        heads: the numbers of heads H, increasing. The paper does not state the values of H in its
            figures.
        trials: the number of runs, each with its own data (5 in the paper).
        steps: the number of steps of the optimiser. The paper does not state its number of steps.
        every: the number of steps between records; a divisor of `steps`.
        opening: the number of steps at the start of the run that are recorded one by one.
        n: the number of training samples.
        test: the number of test samples.
        dtype: "float32" or "float64", the precision of the training; the data are always drawn in
            float32.
        student: the network: "equal-heads" (the paper's model, from zero), "all-heads" (the paper's
            model with all heads written out), or a name from `students.register`.
    """

    panels: tuple[Panel, ...] = (Panel(),)
    heads: tuple[int, ...] = (1, 4, 16, 64, 256, 1024, 10_000)
    trials: int = 5
    steps: int = 4000
    every: int = 20
    opening: int = 40
    n: int = 100
    test: int = 300
    dtype: Literal["float32", "float64"] = "float32"
    student: str = EQUAL_HEADS

    def __post_init__(self) -> None:
        if not self.panels:
            raise Refused(
                "panels=() is empty, expected at least one optimiser. Try panels=(Panel(),)"
            )
        refuse_unless_increasing(self, "heads")
        refuse_unless_positive(self, "trials", "every", "n", "test")
        if self.steps < 1 or self.steps % self.every or self.opening < 0:
            raise Refused(
                f"steps={self.steps}, every={self.every}, opening={self.opening}: expected"
                " steps that are a positive multiple of every, and opening >= 0 (steps recorded "
                "one by one). Try"
                f" steps={max(1, round(self.steps / max(self.every, 1))) * max(self.every, 1)}"
            )
        refuse_unknown(self.student)

    def settings(self) -> str:
        """Return one line of text about the data's sizes, the training steps and the network."""
        trained = "from zero" if self.student == EQUAL_HEADS else f"of student {self.student}"
        sizes = f"n = {self.n}, {self.test} test samples"
        return f"{sizes}, {self.steps} steps {trained}, {self.dtype}"


def _group(lanes: Lane) -> int | None:
    """Return how many trials one call of the compiled program runs: 4 to 8 on a CPU, else None.

    None lets `sweep` decide. The code that XLA compiles for a single trial is slow on a CPU.
    """
    count = len(lanes["step_size"])
    few = min(range(8, 3, -1), key=lambda size: -count % size)
    return few if jax.default_backend() == "cpu" else None


def run_curves(
    config: Curves,
    key: Array,
    draw: Callable[[Array], Lane],
    measure: Measure,
    /,
    *,
    folder: Place | str | None = None,
    resume: bool = False,
) -> xr.Dataset:
    """Train a network for every panel (optimiser), H and trial, and return the recorded quantities.

    `draw` maps a trial's key to {"train": {"X": (T, d, n), "y": (n,)}, "test": {"X", "y"}} and
    further data for `measure`, in float32. `measure` maps one trial's inputs and the parameters of
    one head (leading axis 1) to further quantities to record; the run calls it only for the paper's
    model. A trial's data do not depend on H or the panel. If `resume` is False, the run clears
    `folder` first.

    Returns:
        A data set of the recorded quantities, with the axes (panel, H, trial, step).

    Raises:
        Refused: if the folder to resume is damaged, or contains a run with another configuration or
            key.
    """
    wide = config.dtype == "float64"
    parts = []
    heads = np.asarray(config.heads, np.float32)
    with products_in("highest"):
        grid, _ = lanes_of(jax.random.split(key, config.trials), heads=heads)
        data = jax.jit(jax.vmap(draw))(grid["key"])
    with products_in("highest"), enable_x64(wide):
        used = products_used()
        dtype = jnp.float64 if wide else jnp.float32
        cast = lambda leaf: jnp.asarray(np.asarray(leaf), dtype)
        lanes = jax.tree.map(cast, data | {"heads": grid["heads"]})
        for index, panel in each_part(enumerate(config.panels)):
            steps = panel.step_size * lanes["heads"] ** panel.exponent
            place = None if folder is None else locate(folder) / f"panel{index}"
            own, keys = lanes | {"step_size": steps}, grid["key"]
            taught = lessons(config.student, panel.rule, config.heads, own, keys, measure)
            parts.append(_recorded(config, panel, tuple(taught), place, key, resume))
    shares.whole()
    coords = {
        "panel": [panel.name for panel in config.panels],
        "rule": ("panel", [panel.rule for panel in config.panels]),
        "exponent": ("panel", [panel.exponent for panel in config.panels]),
    }
    about = {
        "precision": config.dtype,
        "matmul_precision_used": used,
        "limits": LIMITS,
        "settings": config.settings(),
        "student": config.student,
    }
    return xr.concat(parts, dim="panel").assign_coords(coords).assign_attrs(about)


def _recorded(
    config: Curves,
    panel: Panel,
    taught: tuple[Lesson, ...],
    folder: Place | None,
    key: Array,
    resume: bool,
) -> xr.Dataset:
    pieces = []
    runs = (
        ("opening", config.opening, 1, 0),
        ("curve", config.steps, config.every, config.opening),
    )
    for name, steps, every, after in each_part((r for r in runs if r[1]), cost=lambda r: r[1]):
        swept = [
            sweep(
                lesson.begin,
                lesson.step,
                lesson.record,
                lesson.lanes,
                steps,
                group=_group(lesson.lanes),
                every=every,
                chunk=max(every, config.steps // 20),
                folder=None if folder is None else folder / f"{name}{lesson.name}",
                fingerprint=f"{fingerprint(config, key)}/{panel.name}",
                resume=resume,
                show="log10_train_loss" if name == "curve" else None,
            )
            for lesson in each_part(taught)
        ]
        piece = _labelled(config, swept)
        pieces.append(piece.isel(step=piece.step > after))
    return xr.concat(pieces, dim="step")


def _labelled(config: Curves, swept: list[Swept]) -> xr.Dataset:
    shape, dims = (len(config.heads), config.trials, -1), ("H", "trial", "step")
    data = {
        name: (dims, np.concatenate([part.metrics[name] for part in swept]).reshape(shape))
        for name in swept[0].metrics
    }
    return xr.Dataset(data, coords={"H": list(config.heads), "step": swept[0].steps})
