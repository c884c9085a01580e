"""Figure 2: where the large entries of the trained attention matrix W_Q^T W_K are.

In the paper's construction (A.2), the matrix is alpha I in one de x de block and zero elsewhere.
The experiment measures two shares of the matrix's sum of squares: in this block, and on the block's
diagonal. The experiment also measures the margin by which each encoding's score with itself exceeds
its scores with other encodings. For comparison, the experiment measures the diagonal's share of
sum_i omega_i omega_i^T, under which each encoding also has its largest score with itself.
"""

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.controls import valued
from jaxbounds.experiments.experiment import Control, Experiment, Finding
from jaxbounds.experiments.provenance import fingerprint
from jaxbounds.experiments.settings import Settings
from jaxbounds.experiments.sweeps import Checkpoints, leaves_of, progress, with_leaves
from jaxbounds.ground import stopping
from jaxbounds.ground.files import Place, locate
from jaxbounds.qstr.encodings import published_encoding_dimension
from jaxbounds.qstr.experiments import online
from jaxbounds.qstr.transformer import attention_map

if TYPE_CHECKING:  # slow to import
    import matplotlib.figure


@dataclass(frozen=True, kw_only=True)
class Figure2:
    """The settings for online training of the public code's Transformer on simple-1STR.

    The public code trains up to 20 epochs on 50,000 prompts with weight decay 0.2. This experiment
    draws fresh prompts in every step, unlike the public code.

    Attributes:
        protocol: the training protocol: data, network and the criterion of learning.
        N: the number N of tokens in a prompt.
        samples: the number of prompts on which each run is trained.
        seeds: the number of runs, each with its own random seed.
    """

    protocol: online.Protocol
    N: int = 32
    samples: int = 128_000
    seeds: int = 1


PRESETS: dict[str, Figure2] = {
    "quick": Figure2(protocol=online.Protocol(simple=True, test_prompts=1000)),
    "published": Figure2(
        protocol=online.Protocol(simple=True, weight_decay=0.2), N=100, samples=1_000_000
    ),
}
"""A dictionary from the name of each preset to its settings."""


def block_metrics(matrix: np.ndarray, omega: np.ndarray, /, *, d: int) -> dict[str, float]:
    """Measure how close an attention matrix is to the construction (A.2).

    Args:
        matrix: the trained matrix W_Q^T W_K, of shape (De, De), for q = 1.
        omega: the positional encodings of the tokens, as rows.
        d: the dimension of a token.
    """
    de = omega.shape[1]
    block = matrix[d + de : d + 2 * de, d : d + de]
    energy, own = float(np.sum(matrix**2)), omega.T @ omega
    scores = omega @ block @ omega.T / np.sqrt(matrix.shape[0])
    best_other = np.where(np.eye(len(omega), dtype=bool), -np.inf, scores).max(axis=1)
    return {
        "block_energy": float(np.sum(block**2)) / energy,
        "diagonal_energy": float(np.sum(np.diag(block) ** 2)) / energy,
        "encodings_diagonal": float(np.sum(np.diag(own) ** 2) / np.sum(own**2)),
        "effective_alpha": float(np.mean(np.diag(block))) / np.sqrt(matrix.shape[0]),
        "margin": float(np.min(np.diag(scores) - best_other)),
    }


SECONDS = 60.0
"""The seconds between two checkpoints of the training; a larger number stores fewer checkpoints."""


def _trained(
    config: Figure2, key: Array, store: Checkpoints | None
) -> tuple[online.Run, np.ndarray, int]:
    protocol = config.protocol
    keys, shared = jax.random.split(key, config.seeds), jax.random.fold_in(key, 0)
    chunk = protocol.batch * protocol.check_every
    chunks = max(1, config.samples // chunk)
    begin, advance = online.side_by_side("transformer", config.N, protocol)
    runs = begin(keys, shared)
    done, leaves, kept = (store and store.load()) or (0, None, [])
    risks = [risk for part in kept for risk in part["risk"]]
    if leaves is not None:
        own, training = with_leaves((runs.key, runs.training), leaves)
        runs = runs._replace(key=own, training=training)
    last, stored = time.monotonic(), done
    heard = contextlib.nullcontext() if store is None else stopping.listening()
    with progress(chunks * chunk, "samples", begun=done * chunk) as report, heard:
        while done < chunks:
            runs, risk = advance(runs)
            risks.append(np.asarray(risk))
            done += 1
            stop = store is not None and stopping.asked()
            late = stop or done == chunks or time.monotonic() - last >= SECONDS
            if store is not None and late:
                part = {"risk": np.stack(risks[stored:])}
                store.save(done, leaves_of((runs.key, runs.training)), stored, part)
                last, stored = time.monotonic(), done
            if stop and done < chunks:
                stopping.answer()
            report(done * chunk, f"test risk {np.max(risk):.3g}")
    return runs, risks[-1], chunks


def run(
    config: Figure2, key: Array, /, *, folder: Place | str | None = None, resume: bool = False
) -> xr.Dataset:
    """Train all seeds, and return each seed's attention matrix with the measured shares.

    The function stores the training in `folder` once a minute. If `resume` is False, the function
    clears the folder first.

    Raises:
        Refused: if the stored training is damaged, or has another configuration or key.
    """
    protocol, N = config.protocol, config.N
    store = None
    if folder is not None:
        store = Checkpoints(locate(folder) / "training", fingerprint(config, key))
        if not resume:
            store.clear()
    runs, risk, chunks = _trained(config, key, store)
    chunk = protocol.batch * protocol.check_every
    matrices = np.asarray(jax.vmap(attention_map)(runs.training.params))
    omega = np.asarray(runs.task.omega)
    metrics = [block_metrics(m, w, d=protocol.d) for m, w in zip(matrices, omega)]
    data = {name: ("seed", np.array([m[name] for m in metrics])) for name in metrics[0]}
    return xr.Dataset(
        {
            "matrix": (("seed", "query", "key"), matrices),
            "risk": ("seed", risk),
            **data,
        },
        attrs={
            "precision": "float32",
            "d": protocol.d,
            "de": published_encoding_dimension(N),
            "N": N,
            "samples": chunks * chunk,
            "law": "simple-" * protocol.simple + f"{protocol.q}STR",
        },
    )


LEARNED = 0.05
"""A run counts as learned if its test risk is below this number; a larger number accepts worse
runs."""

SETTINGS = Settings(
    exact={"N": 100, "protocol.d": 10, "protocol.q": 1, "protocol.link": "linear"},
    least={"samples": 1_000_000},
    others="The text says 1STR, the public code trains on simple-1STR: the picture names its law. "
    "The public code sees 50,000 prompts up to 20 times, which fresh prompts stand for.",
)
"""The settings of the published Figure 2."""

CONTROLS: dict[str, Control] = {
    "the run has learned": valued(1.0, "risk"),
    "in the block": valued(0.5, "block_energy"),
    "the block's diagonal": valued(0.4, "diagonal_energy"),
    "its own token highest": valued(-1.0, "margin"),
}
"""Functions that make the results false, to test that the claims can fail."""


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide whether the large entries of the trained matrix are in the block alpha I of (A.2).

    If the run has not learned, a negative result leaves the claim undecided.
    """
    risk, N = float(dataset.risk.max()), int(dataset.attrs.get("N", 0))
    samples = int(dataset.attrs.get("samples", 0))
    settings = f"{dataset.sizes['seed']} run(s), N = {N}, {samples:,} prompts"
    why = "" if risk < LEARNED else f"; not learned ({risk:.3g}): more samples would decide"

    def above(text: str, name: str, least: float, beside: str = "") -> Finding:
        worst = float(dataset[name].min())
        holds, number = worst > least, f"{worst:.3g}{beside} ({settings})"
        return Finding(text, None if why and not holds else holds, number + why * (not holds))

    own = ""
    if "encodings_diagonal" in dataset:
        share = float(dataset.encodings_diagonal.min())
        own = f", that of the encodings' sum_i w_i w_i^T {share:.3g}"
    text = f"the run has learned: test risk < {LEARNED}"
    found = (
        Finding(text, risk < LEARNED, f"{risk:.3g} ({settings})"),
        above("> 95% of the energy in the block of (A.2)", "block_energy", 0.95),
        above("> 90% of the energy on the block's diagonal", "diagonal_energy", 0.9, own),
        above("every query scores its own token highest (margin > 0)", "margin", 0.0),
    )
    return SETTINGS.judged(dataset, found)


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Draw the first seed's |W_Q^T W_K| on a linear colour scale; frame the block of (A.2)."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    fig, axes = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
    image = axes.imshow(np.abs(dataset.matrix[0]))
    axes.grid(False)
    fig.colorbar(image, ax=axes, label="|entry|")
    d, de = dataset.attrs["d"], dataset.attrs["de"]
    corner = (d - 0.5, d + de - 0.5)
    axes.add_patch(Rectangle(corner, de, de, fill=False, color="white", linestyle=":"))
    first = dataset.isel(seed=0)
    law = dataset.attrs.get("law", "law not recorded")
    seen = f"{dataset.attrs.get('samples', 0):,} seen"
    about = f"{law} prompts, N = {dataset.attrs.get('N', '?')}, {seen}, "
    about += f"run 1 of {dataset.sizes['seed']}, test risk {float(first.risk):.2g}\n"
    about += f"energy in the block of (A.2), dotted: {float(first.block_energy):.0%}; "
    about += f"on its diagonal: {float(first.diagonal_energy):.0%}"
    if "encodings_diagonal" in first:
        about += f"\n(of sum_i w_i w_i^T, the encodings': {float(first.encodings_diagonal):.0%})"
    axes.set(xlabel="key coordinate", ylabel="query coordinate")
    axes.set_title(r"$|W_Q^\top W_K|$, " + about, fontsize=8)
    return fig


EXPERIMENT = Experiment(
    id="qstr.fig2",
    label="Figure 2",
    title="where the large entries of the trained attention matrix are",
    config=PRESETS["quick"],
    presets=PRESETS,
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
    resumable=True,
)
