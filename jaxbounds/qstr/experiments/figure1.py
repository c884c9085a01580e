"""Figure 1: samples until the test risk is low, against the length of the prompt.

Preset `published` is the public code's protocol: one link and one set of encodings shared by all
runs, and simple test data. `check` repeats it at two lengths over several draws of that shared
task, whose luck moves the feedforward mean by 10%, and beside it with a test set of the training
law; `honest` tests on that law with a task for each run, and `quick` does so in minutes.
"""

import itertools
from dataclasses import dataclass, field, replace

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.experiment import (
    Experiment,
    refuse_unless_increasing,
    refuse_unless_positive,
)
from jaxbounds.experiments.provenance import fingerprint
from jaxbounds.experiments.sweeps import Checkpoints, each_part, shares
from jaxbounds.ground.files import Place, locate
from jaxbounds.qstr.architectures import outline, refuse_unknown
from jaxbounds.qstr.experiments.figure1_claims import HONEST, claims
from jaxbounds.qstr.experiments.figure1_controls import CONTROLS
from jaxbounds.qstr.experiments.figure1_shown import figure, in_words, table
from jaxbounds.qstr.experiments.online import Protocol, encoded_dimension
from jaxbounds.qstr.experiments.threshold import samples_to_threshold


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
        beside: each cell a second time, from the same keys, with a test set of the training law.
    """

    protocol: Protocol = field(default_factory=Protocol)
    architectures: tuple[str, ...] = ("transformer", "feedforward", "gru500")
    lengths: tuple[int, ...] = (2, 4, 6, 8, 10, 12)
    longest_gru: int = 0
    seeds: int = 5
    draws: int = 1
    beside: bool = False

    def __post_init__(self) -> None:
        """Refuse a grid without cells, unordered lengths and unknown architectures.

        Raises:
            ValueError: naming what is wrong.
        """
        refuse_unless_positive(self, "seeds", "draws")
        if not self.architectures:
            raise ValueError("architectures=() is empty, expected at least one. Try naming one")
        refuse_unless_increasing(self, "lengths")
        if self.beside and self.protocol.test_on == "same":
            raise ValueError(
                f"beside={self.beside} adds a test on the training law, but test_on='same' tests"
                " on it already. Try beside=False"
            )
        refuse_unknown(*self.architectures)
        if len(set(self.architectures)) < len(self.architectures):
            raise ValueError(
                f"architectures={', '.join(self.architectures)}, expected each name once. Try to"
                " remove the repeated name"
            )

    def cells(self) -> tuple[tuple[str, int], ...]:
        """The (architecture, N) to train, in order."""
        skip = lambda name, N: name.startswith("gru") and 0 < self.longest_gru < N
        pairs = [(name, N) for name in self.architectures for N in self.lengths]
        return tuple(pair for pair in pairs if not skip(*pair))

    def protocols(self) -> dict[str, Protocol]:
        """Return the training protocols, by the ending of their variables' names."""
        honest = replace(self.protocol, test_on="same")
        return {"": self.protocol} | ({HONEST: honest} if self.beside else {})


_SIMPLE = Protocol(simple=True, threshold=0.02, check_every=100)
_SMALL_1B = replace(_SIMPLE, d=5, threshold=0.05, check_every=50, test_prompts=500)
_PUBLISHED_1A = Protocol(test_on="simple", shared_task=True)
_PUBLISHED_1B = replace(_SIMPLE, shared_task=True)
_PANELS = {_PUBLISHED_1A: "1a", _PUBLISHED_1B: "1b"}

PRESETS_1A: dict[str, Figure1] = {
    "quick": Figure1(
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
        beside=True,
    ),
    "honest": Figure1(),
}
"""Figure 1(a): prompts of the training law."""

PRESETS_1B: dict[str, Figure1] = {
    "quick": Figure1(
        protocol=replace(_SMALL_1B, max_samples=300_000),
        architectures=("transformer", "feedforward256"),
        lengths=(8, 16, 24),
        seeds=3,
    ),
    "published": Figure1(protocol=replace(_SIMPLE, shared_task=True), lengths=(25, 27, 29, 31, 33)),
}
"""Figure 1(b): simple prompts."""


def _jobs(config: Figure1, ending: str, key: Array, folder: Place | str | None):
    """Each (architecture, N, draw) with its key and the place where it is stored, if any."""
    protocol, seeds = config.protocols()[ending], config.seeds
    for (name, N), draw in itertools.product(config.cells(), range(config.draws)):
        own, store = jax.random.fold_in(jax.random.fold_in(key, draw), N), None
        if folder is not None:  # the fingerprint leaves out the rest of the grid
            # A user's architecture may change under its name.
            shapes = outline(name, N=N, d=protocol.d, De=encoded_dimension(N, protocol))
            mark = fingerprint((name, shapes, N, protocol, seeds), own)
            store = Checkpoints(locate(folder) / f"{name}-{N}-{draw}{ending}", mark)
        yield name, N, draw, own, store


def _grid(config: Figure1, ending: str, key: Array, folder: Place | str | None) -> dict[str, tuple]:
    """One protocol on every cell, as the variables of the result."""
    protocol, seeds = config.protocols()[ending], config.seeds
    shape = (len(config.architectures), len(config.lengths), config.draws * seeds)
    samples, risk = np.full(shape, np.nan), np.full(shape, np.nan)
    seen = np.full(shape[:2], np.nan)
    jobs = _jobs(config, ending, key, folder)
    for name, N, draw, own, store in each_part(jobs, cost=lambda job: job[1]):
        if not shares.mine():
            continue
        cell = samples_to_threshold(name, N, protocol, own, seeds=seeds, store=store)
        at = config.architectures.index(name), config.lengths.index(N)
        part = slice(draw * seeds, (draw + 1) * seeds)
        samples[*at, part], risk[*at, part] = cell.samples, cell.risk
        seen[at] = np.fmax(seen[at], cell.seen)
    dims = ("architecture", "N", "seed")
    found = {"samples": (dims, samples), "risk": (dims, risk), "seen": (dims[:2], seen)}
    return {name + ending: variable for name, variable in found.items()}


def run(
    config: Figure1, key: Array, /, *, folder: Place | str | None = None, resume: bool = False
) -> xr.Dataset:
    """Train every cell.

    The result has `samples` (inf where censored) and `risk` over (architecture, N, seed), the runs
    of all draws along the last, with the coordinate `task`, and `seen` over (architecture, N), the
    samples that the cell's runs saw; NaN where a cell is not part of the grid. With `beside`, the
    same again ending in "_honest".

    Args:
        config: the grid.
        key: of all draws; a cell's depends on its draw and N only.
        folder: where every cell is kept, each in a folder of its own, once a minute and when it is
            finished: a grid with more architectures, lengths or draws resumes from the cells of the
            smaller one.
        resume: continue the cells there, instead of clearing them.

    Raises:
        ValueError: if a cell to resume from is damaged or of another protocol, seeds or key.
    """
    for ending in config.protocols():
        for *_, store in _jobs(config, ending, key, folder):
            if store is not None and not resume:
                store.clear()
    variables: dict[str, tuple] = {}
    for ending in each_part(config.protocols()):
        variables |= _grid(config, ending, key, folder)
    shares.whole()
    runs, shared = np.arange(config.draws * config.seeds), config.protocol.shared_task
    dataset = xr.Dataset(
        variables,
        coords={
            "architecture": list(config.architectures),
            "N": list(config.lengths),
            "seed": runs,
            "task": ("seed", runs // config.seeds if shared else runs),
        },
        attrs={
            "precision": "float32",
            "published": _PANELS.get(config.protocol, "") if config.seeds == 5 else "",
            "protocol": in_words(config.protocol),
        },
    )
    return dataset.assign_attrs(text=table(dataset))


EXPERIMENTS = tuple(
    Experiment(
        id=f"qstr.fig1{panel}",
        label=f"Figure 1({panel})",
        title=f"samples until the test risk is low, against the length N, {law}",
        config=presets["quick"],
        presets=presets,
        run=run,
        figure=figure,
        claims=claims,
        controls=CONTROLS,
        resumable=True,
    )
    for panel, law, presets in (("a", "1STR", PRESETS_1A), ("b", "simple-1STR", PRESETS_1B))
)
"""Both panels."""
