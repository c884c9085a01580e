"""Figure 1: samples until the test risk is low, against the length of the prompt.

Preset `published` is the public code's protocol: one link and one set of encodings shared by all
runs, and simple test data. `check` repeats it at two lengths over several draws of that shared
task, whose luck moves the feedforward mean by 10%; `honest` tests on the training law with a task
for each run, and `reduced` does so in minutes.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.qstr.architectures import ARCHITECTURES
from jaxbounds.qstr.experiments.figure1_claims import claims
from jaxbounds.qstr.online import Protocol, samples_to_threshold
from jaxbounds.results import Experiment, fingerprint
from jaxbounds.sweeps import Checkpoints


@dataclass(frozen=True, kw_only=True)
class Figure1:
    """A grid of cells.

    Attributes:
        protocol: what is trained and how.
        architectures: names from `jaxbounds.qstr.architectures`.
        lengths: N, increasing.
        longest_gru: leave out gated networks at lengths above this one; 0 leaves out none.
        seeds: runs of each cell, sharing one task if the protocol says so.
        draws: how often each cell is repeated, with other keys.
    """

    protocol: Protocol = field(default_factory=Protocol)
    architectures: tuple[str, ...] = ("transformer", "feedforward", "gru500")
    lengths: tuple[int, ...] = (2, 4, 6, 8, 10, 12)
    longest_gru: int = 0
    seeds: int = 5
    draws: int = 1

    def __post_init__(self) -> None:
        """Refuse a grid without cells, unordered lengths and unknown architectures.

        Raises:
            ValueError: naming what is wrong.
        """
        if min(self.seeds, self.draws) < 1 or not self.architectures or not self.lengths:
            raise ValueError("seeds and draws must be positive, architectures, lengths not empty")
        if list(self.lengths) != sorted(set(self.lengths)):
            raise ValueError(f"lengths must increase, got {self.lengths}")
        strange = [name for name in self.architectures if name not in ARCHITECTURES]
        if strange or len(set(self.architectures)) < len(self.architectures):
            raise ValueError(
                f"architectures must be different ones of {', '.join(ARCHITECTURES)}, "
                f"got {', '.join(self.architectures)}"
            )

    def cells(self) -> tuple[tuple[str, int], ...]:
        """The (architecture, N) to train, in order."""
        skip = lambda name, N: name.startswith("gru") and 0 < self.longest_gru < N
        pairs = [(name, N) for name in self.architectures for N in self.lengths]
        return tuple(pair for pair in pairs if not skip(*pair))


_SIMPLE = Protocol(simple=True, threshold=0.02, check_every=100)
_SMALL_1B = replace(_SIMPLE, d=5, threshold=0.05, check_every=50, test_prompts=500)
_PUBLISHED_1A = Protocol(test_on="simple", shared_task=True)
_PUBLISHED_1B = replace(_SIMPLE, shared_task=True)
_PANELS = {_PUBLISHED_1A: "1a", _PUBLISHED_1B: "1b"}

PRESETS_1A: dict[str, Figure1] = {
    "reduced": Figure1(
        protocol=Protocol(check_every=20, test_prompts=1000, max_samples=400_000),
        architectures=("transformer", "feedforward", "gru128"),
        lengths=(4, 8, 12),
        longest_gru=8,
    ),
    "published": Figure1(protocol=_PUBLISHED_1A),
    "check": Figure1(
        protocol=_PUBLISHED_1A,
        architectures=("transformer", "feedforward"),
        lengths=(8, 12),
        draws=5,
    ),
    "honest": Figure1(),
}
"""Figure 1(a): prompts of the training law."""

PRESETS_1B: dict[str, Figure1] = {
    "reduced": Figure1(
        protocol=replace(_SMALL_1B, max_samples=300_000),
        architectures=("transformer", "feedforward256"),
        lengths=(8, 16, 24),
        seeds=3,
    ),
    "published": Figure1(protocol=replace(_SIMPLE, shared_task=True), lengths=(25, 27, 29, 31, 33)),
}
"""Figure 1(b): simple prompts."""


def _store(folder: Path | str, job: tuple, config: Figure1, key: Array) -> Checkpoints:
    """The place of one cell; its fingerprint leaves out the rest of the grid."""
    name, N, draw = job
    mark = fingerprint((name, N, config.protocol, config.seeds), key)
    return Checkpoints(Path(folder) / f"{name}-{N}-{draw}", mark)


def _cell(name: str, N: int, config: Figure1, key: Array, store: Checkpoints | None) -> dict:
    """The stored cell, or else the trained and now stored one."""
    found = None if store is None else store.load()
    if found is not None:
        return found[2][0]
    got = samples_to_threshold(name, N, config.protocol, key, seeds=config.seeds)
    cell = {"samples": got.samples, "risk": got.risk, "budget": got.budget}
    if store is not None:
        store.save(1, [], 0, cell | {"until": 1})
    return cell


def run(
    config: Figure1, key: Array, /, *, folder: Path | str | None = None, resume: bool = False
) -> xr.Dataset:
    """Train every cell.

    The result has `samples` (inf where censored) and `risk` over (architecture, N, seed), the runs
    of all draws along the last, with the coordinate `task`, and `budget` over (architecture, N);
    NaN where a cell is not part of the grid.

    Args:
        config: the grid.
        key: of all draws; a cell's depends on its draw and N only.
        folder: where every finished cell is stored, each in a folder of its own: a grid with more
            architectures, lengths or draws resumes from the cells of the smaller one.
        resume: take the finished cells from there, instead of clearing them.

    Raises:
        ValueError: if a cell to resume from is damaged or of another protocol, seeds or key.
    """
    runs = config.draws * config.seeds
    shape = (len(config.architectures), len(config.lengths), runs)
    samples, risk = np.full(shape, np.nan), np.full(shape, np.nan)
    budget = np.full(shape[:2], np.nan)
    jobs = [(name, N, draw) for name, N in config.cells() for draw in range(config.draws)]
    keys = {job: jax.random.fold_in(jax.random.fold_in(key, job[2]), job[1]) for job in jobs}
    stores = {} if folder is None else {j: _store(folder, j, config, keys[j]) for j in jobs}
    if not resume:
        for store in stores.values():
            store.clear()
    for name, N, draw in jobs:
        cell = _cell(name, N, config, keys[name, N, draw], stores.get((name, N, draw)))
        at = config.architectures.index(name), config.lengths.index(N)
        part = slice(draw * config.seeds, (draw + 1) * config.seeds)
        samples[*at, part], risk[*at, part] = cell["samples"], cell["risk"]
        budget[at] = np.fmax(budget[at], cell["budget"])
    shared = config.protocol.shared_task
    dims = ("architecture", "N", "seed")
    return xr.Dataset(
        {"samples": (dims, samples), "risk": (dims, risk), "budget": (dims[:2], budget)},
        coords={
            "architecture": list(config.architectures),
            "N": list(config.lengths),
            "seed": np.arange(runs),
            "task": ("seed", np.arange(runs) // config.seeds if shared else np.arange(runs)),
        },
        attrs={
            "precision": "float32",
            "published": _PANELS.get(config.protocol, "") if config.seeds == 5 else "",
        },
    )


def figure(dataset: xr.Dataset, /):
    """Samples against N in log-log, means over seeds, crosses at the budget where censored."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    for name in dataset.architecture.values.tolist():
        part = dataset.sel(architecture=name).dropna("N", how="all", subset=["samples"])
        values = part.samples.values
        shown = np.where(np.isfinite(values), values, part.budget.values[:, None])
        (line,) = axes.plot(part.N, shown.mean(axis=1), marker="o", label=name)
        place = np.broadcast_to(part.N.values[:, None], values.shape)
        axes.scatter(place, shown, s=8, color=line.get_color(), alpha=0.5)
        late = ~np.isfinite(values)
        axes.scatter(place[late], shown[late], marker="x", color=line.get_color())
    axes.set(xscale="log", yscale="log", xlabel="N", ylabel="samples to threshold")
    axes.set_xticks(dataset.N.values, [str(N) for N in dataset.N.values])
    axes.xaxis.minorticks_off()
    axes.set_title("crosses: not learned within the budget", fontsize=9)
    axes.legend()
    return fig


EXPERIMENTS = tuple(
    Experiment(
        id=f"qstr.fig1{panel}",
        label=f"Figure 1({panel})",
        title=f"samples until the test risk is low, against the length N, {law}",
        config=presets["reduced"],
        presets=presets,
        run=run,
        figure=figure,
        claims=claims,
        resumable=True,
    )
    for panel, law, presets in (("a", "1STR", PRESETS_1A), ("b", "simple-1STR", PRESETS_1B))
)
"""Both panels."""
