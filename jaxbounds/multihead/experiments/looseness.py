"""The looseness of Section 3's bounds as a function of H, T, d, R and training time.

From a base point, the experiment varies one of H, T, d and R at a time. Autograd measures the left
sides of the bounds. A bound needs one of its factors if the measured quantity of one family of
networks grows like this factor. A bound does not need a factor if a sharpened bound without the
factor holds.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from jaxbounds.experiments.experiment import Experiment, refuse_unless_increasing
from jaxbounds.experiments.sweeps import progress
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.experiments.lessons import equal_heads
from jaxbounds.multihead.experiments.looseness_measured import QUANTITIES, Measured, measured
from jaxbounds.multihead.experiments.looseness_networks import (
    FAMILIES,
    Family,
    aligned_network,
    random_network,
)
from jaxbounds.multihead.experiments.looseness_shown import CONTROLS, claims, figure, table
from jaxbounds.multihead.experiments.sparse_context import FIGURE_2, draw
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.tied import untie

AXES = ("H", "T", "d", "R")


@dataclass(frozen=True, kw_only=True)
class Looseness:
    """The settings of the experiment, which varies H, T, d or R from a base point.

    Attributes:
        heads: the numbers of heads H, even and at least 4. While T, d or R varies, H is the second
            value.
        tokens: the numbers of tokens T, even. While H, d or R varies, T is the second value.
        dimensions: the token dimensions d. While H, T or R varies, d is the second value.
        radii: the values of R, the norm of every token. While H, T or d varies, R is the second
            value.
        size: the norm ||U_h|| of every head; in random networks also the norm ||W_h||.
        n: the number of samples in the data of a random network and of a run of Figure 2.
        samples: the number of samples, the first ones of the data, at which the model's Hessian is
            measured.
        seeds: the number of random networks at each point; the run of Figure 2 is repeated equally
            often.
        steps: the steps at which a run of Figure 2 (GD, eta = 1, T = 10, d = 4, start at zero) is
            measured; 0 is the start.
        run_heads: the number of heads H of the run of Figure 2.
    """

    heads: tuple[int, ...] = (4, 16, 64, 256)
    tokens: tuple[int, ...] = (4, 10, 24, 40)
    dimensions: tuple[int, ...] = (2, 4, 8, 12)
    radii: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    size: float = 1.0
    n: int = 32
    samples: int = 4
    seeds: int = 3
    steps: tuple[int, ...] = (0, 10, 30, 100, 300, 1000, 3000)
    run_heads: int = 16

    def __post_init__(self) -> None:
        refuse_unless_increasing(self, "heads", "tokens", "dimensions", "radii")
        short = [n for n in ("heads", "tokens", "dimensions", "radii") if len(getattr(self, n)) < 3]
        if short:
            raise Refused(
                f"sizes={', '.join(short)}: fewer than 3 values, expected 3 or more for each size. "
                f"Try heads=(4, 16, 64)"
            )
        odd = [size for size in (*self.heads, *self.tokens) if size % 2]
        if odd or self.heads[0] < 4:
            raise Refused(
                f"heads={self.heads}, tokens={self.tokens}, expected even numbers and H >= 4, as "
                "aligned networks have two kinds of heads and of tokens. Try --heads 4 8 16"
            )
        if list(self.steps) != sorted(set(self.steps)) or not self.steps or self.steps[0] < 0:
            raise Refused(f"steps={self.steps}, expected increasing steps. Try --steps 0 100")
        if not 1 <= self.samples <= self.n or self.seeds < 1 or not self.size > 0:
            raise Refused(
                f"samples={self.samples}, n={self.n}, seeds={self.seeds}, size={self.size}, "
                "expected 1 <= samples <= n, a seed and a positive size. Try the defaults"
            )

    def points(self) -> list[tuple[str, dict[str, Any]]]:
        """Return pairs of an axis ("H", "T", "d" or "R") and the sizes of one network.

        Along an axis, the other three sizes keep their base values.
        """
        grids = (self.heads, self.tokens, self.dimensions, self.radii)
        base = {axis: grid[1] for axis, grid in zip(AXES, grids)}
        return [(axis, base | {axis: size}) for axis, grid in zip(AXES, grids) for size in grid]


def _network(
    config: Looseness, family: Family, at: dict[str, Any], key: jax.Array
) -> tuple[Params, Data]:
    sizes = {"H": at["H"], "T": at["T"], "d": at["d"], "n": config.n}
    radius = jnp.asarray(float(at["R"]))
    if family == "aligned":
        return aligned_network(radius, config.size, **sizes)
    return random_network(key, radius, config.size, **sizes)


def _run_of_figure_2(config: Looseness, key: jax.Array) -> list[tuple[Any, Any]]:
    with enable_x64(False):  # the figure's data are float32
        drawn = draw(FIGURE_2, key, config.n)
    part = {name: jnp.asarray(np.asarray(leaf), float) for name, leaf in drawn.items()}
    lane = {"train": part, "heads": jnp.asarray(float(config.run_heads))}
    lane["step_size"] = jnp.ones(())
    lesson = equal_heads("gd", lane, lambda lane, params: {})
    advance = jax.jit(
        lambda state, steps: jax.lax.fori_loop(0, steps, lambda _, s: lesson.step(lane, s), state)
    )
    state, done, found = lesson.begin(lane), 0, []
    data = {"X": jnp.moveaxis(part["X"], -1, 0), "y": jnp.where(part["y"] > 0, 1, -1)}
    for step in config.steps:
        state, done = advance(state, step - done), step
        found.append((untie(state.params, (config.run_heads,)), data))
    return found


def run(config: Looseness, key: jax.Array, /) -> xr.Dataset:
    """Measure both sides of each bound on random and aligned networks and along a training run.

    The measurements on networks have the axes (family of networks, point, seed, quantity); those
    along the run have the axes (step, seed, quantity). All measurements use float64.
    """
    with enable_x64(True), jax.default_matmul_precision("highest"):
        return _run(config, key)


def _run(config: Looseness, key: jax.Array) -> xr.Dataset:
    look = jax.jit(measured, static_argnums=2)
    numbers = lambda found: jax.tree.map(np.asarray, look(*found, config.samples))
    points, rows, along = config.points(), list[list[list[Measured]]](), list[list[Measured]]()
    kept = dict[tuple, Measured]()
    with progress(len(points) + 1, "points") as report:
        for family in FAMILIES:
            rows.append([])
            for done, (axis, at) in enumerate(points):
                report(done, f"{family} networks, {axis} = {at[axis]:g}")
                rows[-1].append([])
                for seed in range(config.seeds):
                    # An aligned network has no seed, and the base point is on each axis.
                    name = (family, *at.values(), 0 if family == "aligned" else seed)
                    if name not in kept:
                        own = jax.random.fold_in(key, seed)
                        kept[name] = numbers(_network(config, family, at, own))
                    rows[-1][-1].append(kept[name])
        report(len(points), "the run of Figure 2")
        for seed in range(config.seeds):
            own = jax.random.fold_in(jax.random.fold_in(key, len(points)), seed)
            along.append([numbers(found) for found in _run_of_figure_2(config, own)])
    dataset = _labelled(config, points, rows, along)
    return dataset.assign_attrs(text=table(dataset))


def _labelled(config: Looseness, points: list, rows: list, along: list) -> xr.Dataset:
    data: dict[str, Any] = {}
    names = ("left", "printed", "sharp", "error")
    for name in names:
        values = [[[getattr(one, name) for one in seeds] for seeds in part] for part in rows]
        data[name] = (("family", "point", "seed", "quantity"), np.asarray(values))
        values = [[getattr(one, name) for one in seed] for seed in along]
        data[f"run_{name}"] = (("seed", "step", "quantity"), np.asarray(values))
    data["run_loss"] = (("seed", "step"), np.asarray([[o.loss for o in seed] for seed in along]))
    found = [one for part in rows for seeds in part for one in seeds]
    found += [one for seed in along for one in seed]
    every = {id(one): one for one in found}.values()  # the base point is on each axis
    coords = {
        "family": list(FAMILIES),
        "quantity": list(QUANTITIES),
        "seed": range(config.seeds),
        "step": list(config.steps),
        "axis": ("point", [axis for axis, _ in points]),
        "value": ("point", [float(at[axis]) for axis, at in points]),
    }
    base = config.points()[1][1]
    settings = (
        f"base point {', '.join(f'{axis} = {base[axis]:g}' for axis in AXES)}; ||U_h|| = "
        f"{config.size:g}, n = {config.n}; the run: Figure 2, GD with eta = 1, H = "
        f"{config.run_heads}, n = {config.n}"
    )
    attrs = {
        "precision": "float64",
        "settings": settings,
        "certified": int(sum(bool(one.certified) for one in every)),
        "networks": len(every),
    }
    return xr.Dataset(data, coords=coords, attrs=attrs)


EXPERIMENT = Experiment(
    id="multihead.looseness",
    label="Lemma 6 and Corollary 1, their looseness",
    title="Ratio of Section 3's bounds to the measured values, as a function of H, T, d, R and "
    "training time",
    config=Looseness(),
    presets={
        "quick": Looseness(
            heads=(4, 8, 32), tokens=(4, 8, 24), dimensions=(2, 4, 8), radii=(1.0, 2.0, 4.0, 8.0),
            n=8, samples=2, seeds=2, steps=(0, 10, 100, 1000),
        ),
    },
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
)  # fmt: skip
"""The experiment that measures how loose the bounds are; the paper contains no such experiment."""
