"""Figure 2: where the trained attention matrix W_Q^T W_K puts its weight.

The construction (A.2) has alpha I in one de x de block and zeros elsewhere. What is measured is the
energy in that block, the share of it on the diagonal, and the margin of each token's own score.
Random encodings are not orthonormal: sum_i omega_i omega_i^T, which matches tokens with themselves
as alpha I does, is no multiple of I either, and its share on the diagonal is kept beside.
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.experiment import Experiment, Finding
from jaxbounds.experiments.sweeps import progress
from jaxbounds.qstr.encodings import published_encoding_dimension
from jaxbounds.qstr.experiments import online
from jaxbounds.qstr.transformer import attention_map


@dataclass(frozen=True, kw_only=True)
class Figure2:
    """Online training of the public Transformer on simple-1STR.

    The public code trains up to 20 epochs on 50,000 prompts with weight decay 0.2; fresh prompts
    take their place here.

    Attributes:
        protocol: what is trained and how.
        N: length of the prompts.
        samples: prompts seen in total.
        seeds: runs.
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
"""Ready-made configurations."""


def block_metrics(matrix: np.ndarray, omega: np.ndarray, /, *, d: int) -> dict[str, float]:
    """How close an attention matrix is to (A.2).

    Args:
        matrix: W_Q^T W_K, of shape (De, De) with q = 1.
        omega: the encodings.
        d: token dimension.
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


def run(config: Figure2, key: Array, /) -> xr.Dataset:
    """Train, and return the matrices with their metrics for each seed."""
    protocol, N = config.protocol, config.N
    keys, shared = jax.random.split(key, config.seeds), jax.random.fold_in(key, 0)
    chunk = protocol.batch * protocol.check_every
    chunks = max(1, config.samples // chunk)
    begin, advance = online.side_by_side("transformer", N, protocol)
    runs = begin(keys, shared)
    with progress(chunks * chunk, "samples") as report:
        for done in range(1, chunks + 1):
            runs, risk = advance(runs)
            report(done * chunk, f"test risk {np.max(risk):.3g}")
    matrices = np.asarray(jax.vmap(attention_map)(runs.training.params))
    omega = np.asarray(runs.task.omega)
    metrics = [block_metrics(m, w, d=protocol.d) for m, w in zip(matrices, omega)]
    data = {name: ("seed", np.array([m[name] for m in metrics])) for name in metrics[0]}
    return xr.Dataset(
        {
            "matrix": (("seed", "query", "key"), matrices),
            "risk": ("seed", np.asarray(risk)),
            **data,
        },
        attrs={
            "precision": "float32",
            "d": protocol.d,
            "de": published_encoding_dimension(N),
            "N": N,
            "samples": chunks * chunk,
        },
    )


PRINTED_LENGTH, LEARNED = 100, 0.05
"""N of the paper's picture, and the test risk below which a run counts as learned."""


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Whether the trained matrix is the construction's: where it sits, whether it is alpha I.

    That it is not decides nothing before the run has learned, or at another N than the picture's.
    """
    risk, N = float(dataset.risk.max()), int(dataset.attrs.get("N", 0))
    samples = int(dataset.attrs.get("samples", 0))
    settings = f"{dataset.sizes['seed']} run(s), N = {N}, {samples:,} prompts"
    late = "" if risk < LEARNED else "; more samples would decide"
    why = ""
    if late:
        why = f"; not learned ({risk:.3g}){late}"
    elif N < PRINTED_LENGTH:
        why = f"; the picture has N = {PRINTED_LENGTH}: preset published would decide"

    def above(text: str, name: str, least: float, beside: str = "") -> Finding:
        worst = float(dataset[name].min())
        holds, number = worst > least, f"{worst:.3g}{beside} ({settings})"
        return Finding(text, None if why and not holds else holds, number + why * (not holds))

    own = ""
    if "encodings_diagonal" in dataset:
        share = float(dataset.encodings_diagonal.min())
        own = f", that of the encodings' sum_i w_i w_i^T {share:.3g}"
    text = f"the run has learned: test risk < {LEARNED}"
    return (
        Finding(text, True if risk < LEARNED else None, f"{risk:.3g} ({settings}){late}"),
        above("> 95% of the energy in the block of (A.2)", "block_energy", 0.95),
        above("> 90% of the energy on the block's diagonal", "diagonal_energy", 0.9, own),
        above("every query scores its own token highest (margin > 0)", "margin", 0.0),
    )


def figure(dataset: xr.Dataset, /):
    """|W_Q^T W_K| of the first seed, with a linear colour scale; the block of (A.2) is outlined."""
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
    about = f"N = {dataset.attrs.get('N', '?')}, {dataset.attrs.get('samples', 0):,} prompts, "
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
    title="where the trained attention matrix puts its weight",
    config=PRESETS["quick"],
    presets=PRESETS,
    run=run,
    figure=figure,
    claims=claims,
)
