"""Figures 4 and 5: training on DM2 (a planted single-head teacher) with the settings of Appendix G.

The paper does not state its fixed teacher (W*, U*). Every trial therefore draws a standard normal
teacher, unless `shared_teacher` is set.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.experiment import Experiment
from jaxbounds.ground.files import Place
from jaxbounds.multihead.data import PlantedAttention
from jaxbounds.multihead.experiments.curves import Curves, Panel, run_curves
from jaxbounds.multihead.experiments.drawing import Quantity, draw_curves
from jaxbounds.multihead.experiments.planted_claims import CONTROLS, FOUND, claims, found_teacher
from jaxbounds.multihead.experiments.student import Params, last_axis

if TYPE_CHECKING:  # slow to import
    import matplotlib.figure


@dataclass(frozen=True, kw_only=True)
class PlantedCurves(Curves):
    """Settings of the curves on DM2: d = 5, T = 10, n = 1000, and 3000 test samples.

    Attributes:
        tokens: T, the number of tokens.
        dimension: d, the dimension of a token.
        threshold: the absolute value of the teacher's output at or below which a sample is dropped
            (gamma_attn = 0.2).
        shared_teacher: whether all trials have the same teacher.
    """

    heads: tuple[int, ...] = (1, 4, 16, 64, 1024)
    steps: int = 600
    n: int = 1000
    test: int = 3000
    tokens: int = 10
    dimension: int = 5
    threshold: float = 0.2
    shared_teacher: bool = False

    def settings(self) -> str:
        """Return one line of text about the data model, the sizes and the teachers."""
        whose = "one teacher" if self.shared_teacher else "a teacher for each trial"
        return (
            f"DM2: T = {self.tokens}, d = {self.dimension}, gamma_attn = {self.threshold:g}, "
            f"{whose}; " + super().settings()
        )


def _cosine(a: Array, b: Array) -> Array:
    squares = jnp.sum(a**2) * jnp.sum(b**2)
    return jnp.sum(a * b) / jnp.sqrt(jnp.where(squares > 0, squares, 1.0))


def alignments(teacher: Params, params: Params, /) -> dict[str, Array]:
    """Compute the cosines for W and U between the student's heads and H copies of the teacher.

    The caption of Figure 4 calls these cosines alignments. All heads are equal, so the function
    compares only the first head.
    """
    return {f"alignment_{name}": _cosine(params[name][0], teacher[name]) for name in ("W", "U")}


def run(
    config: PlantedCurves,
    key: Array,
    /,
    *,
    folder: Place | str | None = None,
    resume: bool = False,
) -> xr.Dataset:
    """Train a network for every panel (optimiser), H and trial.

    The records include the alignments with the teacher.
    """
    model = PlantedAttention(
        tokens=config.tokens, dimension=config.dimension, threshold=config.threshold
    )
    shared_key, key = jax.random.split(key)

    def draw(key: Array) -> dict:
        own_key, data_key = jax.random.split(key)
        teacher = model.teacher(shared_key if config.shared_teacher else own_key)
        both = last_axis(model.sample(data_key, teacher, config.n + config.test))
        cut = lambda part: {"X": both["X"][..., part], "y": both["y"][part]}
        train, test = cut(slice(config.n)), cut(slice(config.n, None))
        return {"train": train, "test": test, "teacher": teacher}

    def measure(lane: dict, params: Params) -> dict[str, Array]:
        size = jnp.sqrt(jnp.sum(lane["teacher"]["U"] ** 2))
        return alignments(lane["teacher"], params) | {"teacher_margin": config.threshold / size}

    dataset = run_curves(config, key, draw, measure, folder=folder, resume=resume)
    text = (
        f"{config.settings()}\n"
        "entries of W* and U* standard normal (their law is not stated, nor are the steps and the "
        "step sizes of Figure 5); normal tokens are unbounded, so Assumption 1 holds with no R "
        "given in advance\n"
        f"found: alignment of W with W* above {FOUND} at the last step"
    )
    return dataset.assign_attrs(text=text, threshold=config.threshold)


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Draw losses, alignments, norms and margin against the step, one colour for each H."""
    measured = "alignment_W" in dataset
    teacher = float(dataset.teacher_margin.mean()) if measured else float("nan")
    quantities = (
        Quantity("log10_train_loss", "train loss"),
        Quantity("log10_test_loss", "test loss"),
        Quantity("alignment_W", "alignment of W", 1.0, "teacher"),
        Quantity("alignment_U", "alignment of U", 1.0, "teacher"),
        Quantity("norm_W", r"average $\|W\|$"),
        Quantity("margin", r"margin / average $\|U\|$", teacher, "teacher"),
    )
    if not measured:
        return draw_curves(dataset, quantities)
    missed = np.stack([~found_teacher(dataset, panel) for panel in range(dataset.sizes["panel"])])
    return draw_curves(dataset, quantities, apart=missed, apart_label="misses the teacher")


FIGURE_4 = PlantedCurves(panels=(Panel(rule="gd", step_size=1.0, exponent=0.5),))
FIGURE_5 = PlantedCurves(
    panels=(
        Panel(rule="gd", step_size=1.0, exponent=0.5),
        *(Panel(rule="momentum", step_size=c, exponent=0.5) for c in (1.0, 0.1)),
        *(Panel(rule="adam", step_size=step_size) for step_size in (0.06, 0.01, 0.003)),
    )
)
_TITLES = {
    4: "GD with step size ~ sqrt(H) against a planted head (DM2)",
    5: "momentum and Adam at several step sizes against a planted head (DM2)",
}

EXPERIMENTS = tuple(
    Experiment(
        id=f"multihead.fig{number}",
        label=f"Figure {number}",
        title=_TITLES[number],
        config=config,
        presets={
            "quick": replace(config, heads=(1, 4, 16), trials=2, steps=200, test=300),
            "published": config,
            "shared-teacher": replace(config, shared_teacher=True),
        },
        run=run,
        figure=figure,
        claims=claims,
        controls=CONTROLS,
        resumable=True,
    )
    for number, config in ((4, FIGURE_4), (5, FIGURE_5))
)
"""Figures 4 and 5; the defaults are the published settings, as far as the paper states them.

Figure 5 trains with plain GD again, for comparison with momentum and Adam.
"""
