"""The run of Figure 6 over every arm (way to vary the number of heads), head count and trial."""

from dataclasses import replace

import xarray as xr
from jaxtyping import Array
from rich.console import Console

from jaxbounds.experiments.experiment import Experiment
from jaxbounds.experiments.provenance import products_in, products_used
from jaxbounds.experiments.sweeps import each_part, shares
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, locate
from jaxbounds.multihead.experiments.fig6.claims import CONTROLS, claims
from jaxbounds.multihead.experiments.fig6.config import PRETRAINED, PUBLISHED, SNIPPETS, Figure6
from jaxbounds.multihead.experiments.fig6.data import Prepared, batches_of, prepare
from jaxbounds.multihead.experiments.fig6.drawing import figure
from jaxbounds.multihead.experiments.fig6.runs import network, train_arm
from jaxbounds.multihead.experiments.fig6.words import about, cost
from jaxbounds.multihead.roberta import RobertaShape


def _refuse_what_cannot_run(config: Figure6, data: Prepared) -> None:
    for arm in config.arms:
        for heads in config.heads:
            network(config, arm, heads, data.vocabulary)


def run(
    config: Figure6, key: Array, /, *, folder: Place | str | None = None, resume: bool = False
) -> xr.Dataset:
    """Train a network for every arm, number of heads H and trial, and record losses and accuracies.

    A trial's data and order do not depend on the arm or H. If `resume` is False, the run clears
    `folder` first.

    Returns:
        A data set with `train_loss`, `test_loss`, `train_accuracy` and `test_accuracy`. The axes of
        these variables are (panel, H, trial, step), where a panel is an arm (a way to vary the
        number of heads). The training losses and accuracies are averages over a subset of the
        training sentences, as large as the test set. For each trial, the result also contains the
        test accuracies of simple rules that need no network.

    Raises:
        Refused: if data or weights are missing, damaged or do not match the settings, or if
            `folder` contains another run.
    """
    missing = [arm for arm in config.arms if arm in PRETRAINED and not config.weights]
    if missing:
        raise Refused(
            f"arm={missing[0]} (a way to vary the number of heads) starts from pretrained weights, "
            f"but no weights are given. Try --weights FOLDER, with config.json, model.safetensors "
            f"and tokenizer.json of roberta-base"
        )
    data = prepare(config, key)
    _refuse_what_cannot_run(config, data)
    n = data.lanes["data"]["tokens"].shape[1]
    batches = batches_of(config, n)
    shapes: dict[str, RobertaShape] = {
        arm: network(config, arm, config.heads[-1], data.vocabulary) for arm in config.arms
    }
    words = cost(config, shapes, batches)
    Console(stderr=True).print(words, highlight=False, soft_wrap=True)
    panels = []
    with products_in("highest"):
        used = products_used()
        for arm in each_part(config.arms):
            cells = []
            for heads in each_part(config.heads):
                place = None if folder is None else locate(folder) / arm / f"H{heads}"
                swept = train_arm(config, key, data, arm, heads, folder=place, resume=resume)
                values = {name: (("trial", "step"), v) for name, v in swept.metrics.items()}
                cell = xr.Dataset(values, coords={"step": swept.steps})
                cells.append(cell.assign(diverged=("trial", swept.diverged)))
            panels.append(xr.concat(cells, dim=xr.Variable("H", list(config.heads))))
    shares.whole()
    dataset = xr.concat(panels, dim=xr.Variable("panel", list(config.arms)))
    dataset = dataset.assign_coords(epoch=("step", dataset.step.values / batches))
    dataset = dataset.assign({name: (("trial",), v) for name, v in data.found.items()})
    words_of = about(config, data, shapes, n, words)
    return dataset.assign_attrs(words_of, matmul_precision_used=used)


EXPERIMENT = Experiment(
    id="multihead.fig6",
    label="Figure 6",
    title="Training with AdamW on sentences, against the number of heads: from scratch, or from "
    "pretrained weights",
    config=Figure6(),
    presets={
        "quick": Figure6(heads=(1, 4, 16), trials=3, epochs=2, n=1024, test=256, layers=1),
        "paper-scaling": replace(Figure6(), arms=("fixed",)),
        "snippets": SNIPPETS,
        "published": PUBLISHED,
    },
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
    resumable=True,
)
"""The experiment that `jaxbounds run` carries out for Figure 6."""
