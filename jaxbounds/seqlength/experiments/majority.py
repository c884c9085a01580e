"""Figures 1 to 3: the sparse majority experiment of Section 6, for several sequence lengths."""

from dataclasses import asdict
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.experiment import Experiment
from jaxbounds.experiments.sweeps import Checkpoints, each_part, shares
from jaxbounds.ground.files import Place, locate
from jaxbounds.seqlength.certificate import generalization_bound
from jaxbounds.seqlength.experiments.config import PRESETS, REDUCED, SparseMajority
from jaxbounds.seqlength.experiments.majority_claims import CONTROLS, claims
from jaxbounds.seqlength.experiments.majority_figure import figure
from jaxbounds.seqlength.experiments.training import Trained, train_length
from jaxbounds.seqlength.extract_norms import AttentionNetwork, extract_network
from jaxbounds.seqlength.network_bound import (
    TokenNorms,
    map_norms,
    norm_product,
    token_norms,
    with_readout,
)
from jaxbounds.seqlength.sparse_majority import embed

LEARNED = 0.6
"""The training loss of the best epoch, in nats, below which a run has learned; guessing has the
loss ln 2. A larger loss counts more runs as learned."""

DELTA = 0.05
"""The failure probability of the diagnostic bounds; a larger probability gives smaller bounds."""


def _network(
    trained: Trained, seed: int, config: SparseMajority
) -> tuple[AttentionNetwork, dict[str, float], TokenNorms]:
    pick = lambda tree: jax.tree.map(lambda leaf: leaf[seed], tree)
    dense = [("hidden", "relu")] if config.hidden else []
    dense.append(("readout", "identity"))
    params = pick(trained.runs.best.params)
    network = extract_network(params, attention="attention", dense=dense, cls=-1)
    network = with_readout(network, np.array([-1.0, 1.0]))
    data = pick(trained.data)
    X = np.asarray(embed(data.task, data.bits), np.float64)
    return network, map_norms(network, X), token_norms(X, -1)


def row(trained: Trained) -> dict[str, Any]:
    """Return the quantities of Figures 1 to 3 for one sequence length, each of shape (seeds,)."""
    runs, best = trained.runs, trained.runs.best
    return {
        "gap": best.validation_loss - best.train_loss,
        "validation_loss": best.validation_loss,
        "train_loss": best.train_loss,
        "accuracy": best.accuracy,
        "l1": best.l1,
        "l1_increase": best.l1 - runs.initial_l1,
        "epoch": best.epoch,
        "epochs_run": runs.epoch,
        "train_accuracy": runs.train_accuracy,
        "diverged": trained.diverged,
        "learned": best.train_loss < LEARNED,
    }


def run(
    config: SparseMajority,
    key: Array,
    /,
    *,
    folder: Place | str | None = None,
    resume: bool = False,
) -> xr.Dataset:
    """Train at every length.

    These variables have the axes (T, seed). At the epoch of least validation loss: gap (validation
    minus training loss), validation_loss, train_loss, accuracy, l1, l1_increase (since the start),
    epoch, and `learned` (training loss below 0.6). At the last epoch: epochs_run, train_accuracy,
    and diverged (the epoch of the divergence, or -1).

    Three variables have the axis T and describe the run with the largest gap. `bound` bounds the
    gap of the cross entropy with the run's own norms and delta = 0.05, clipped to [0, 1]. It is no
    valid bound, because the norms are measured after training. `bound_fixed` uses the norms of the
    run at the first length instead. `norm_product` is the product of the norms of the value maps
    (summed over the heads) and of the dense layers.

    Args:
        config: the settings of the experiment.
        key: the random key; each run's own key depends only on its length and number.
        folder: the folder of the checkpoints.
        resume: whether to continue from the checkpoints in `folder`; if not, they are deleted.

    Raises:
        Refused: if a length does not exceed the number of hidden indices, or if the folder to
            resume from is damaged or belongs to another configuration or key.
    """
    folder = None if folder is None else locate(folder)
    if folder is not None and not resume:
        for old in folder.glob("T*"):
            Checkpoints(old, "").clear()
    rows, bounds, first = [], [], None
    for T in each_part(config.lengths, cost=lambda T: 100 + T):
        place = None if folder is None else folder / f"T{T}"
        trained = train_length(config, key, T, folder=place, resume=resume)
        if shares.dealt():
            continue
        rows.append(row(trained))
        worst = int(np.nanargmax(np.abs(rows[-1]["gap"])))
        network, norms, tokens = _network(trained, worst, config)
        first = first or (norms, tokens)
        on_gap = lambda norms, tokens, network=network: generalization_bound(
            network, norms, tokens, config.train, loss_range=1.0, delta=DELTA
        )
        bounds.append((on_gap(norms, tokens), on_gap(*first), norm_product(network, norms)))
    shares.whole()
    table = {name: (("T", "seed"), np.stack([r[name] for r in rows])) for name in rows[0]}
    columns = zip(("bound", "bound_fixed", "norm_product"), np.array(bounds).T)
    return xr.Dataset(
        {**table, **{name: ("T", column) for name, column in columns}},
        coords={"T": list(config.lengths), "seed": list(range(config.seeds))},
        attrs={"precision": "float32", "config": asdict(config)},
    )


MAJORITY = Experiment(
    id="seqlength.majority",
    label="Figures 1 to 3",
    title="sparse majority: weights, generalisation gap and accuracy against the length",
    config=REDUCED,
    presets=PRESETS,
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
    resumable=True,
)
