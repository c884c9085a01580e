"""Section 7's first open question: is random initialisation NTK separable, and with what margin?

On DM1 the best NTK margin is computed, with a certificate, at random starts of several scales and
head counts, at theta^(1) and at zero, for growing n. A margin on n samples may be memorisation (a
head has T d + d^2 parameters); so the direction that attains it is tried on held-out samples, and
what counts is whether the margin levels off. Margins grow with the size of the start, which
Definition 1 charges for in B_2: compare them at equal `head_norm`.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from jaxbounds.experiments import Claim, Experiment
from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.first_phase import balanced_signs, first_step
from jaxbounds.multihead.model import head_norm
from jaxbounds.multihead.ntk import best_ntk_margin, held_out_margins, ntk_gram
from jaxbounds.multihead.oracle import Assumption3
from jaxbounds.multihead.oracle_bounds import gamma_attention, gamma_linear
from jaxbounds.plotting import grid_ticks
from jaxbounds.sweeps import progress


@dataclass(frozen=True, kw_only=True)
class NTK:
    """Data, starts and sample sizes.

    Attributes:
        tokens: T.
        relevant: zeta T.
        distractors: M; d = M + 2.
        signal: S.
        noise: bound of every noise coordinate, uniform.
        samples: n, nested in each other.
        heads: H of the random starts.
        scales: standard deviations of all entries of the random starts.
        first_samples: n1 of the first phase.
        held_out: fresh samples.
        seeds: repetitions.
    """

    tokens: int = 10
    relevant: int = 1
    distractors: int = 2
    signal: float = 2.0
    noise: float = 0.1
    samples: tuple[int, ...] = (25, 50, 100, 200, 400)
    heads: tuple[int, ...] = (1, 8, 64)
    scales: tuple[float, ...] = (0.1, 1.0)
    first_samples: int = 1000
    held_out: int = 2000
    seeds: int = 2


def _model(config: NTK) -> SparseContext:
    along = config.noise * config.signal
    return SparseContext(
        tokens=config.tokens,
        dimension=config.distractors + 2,
        relevant=config.relevant,
        distractors=config.distractors,
        signal=config.signal,
        noise_mu=along,
        noise_nu=along * max(config.distractors, 1),
    )


def _random(key: jax.Array, config: NTK, heads: int, scale: float) -> dict:
    outer, inner = jax.random.split(key)
    d = config.distractors + 2
    return {
        "U": scale * jax.random.normal(outer, (heads, config.tokens, d)),
        "W": scale * jax.random.normal(inner, (heads, d, d)),
    }


def _starts(key: jax.Array, config: NTK, model: SparseContext) -> dict:
    first_key, random_key = jax.random.split(key)
    first = first_step(model.sample(first_key, config.first_samples), balanced_signs(2))
    starts = {"zero": jax.tree.map(jnp.zeros_like, first), "first step": first}
    for i, (scale, heads) in enumerate(itertools.product(config.scales, config.heads)):
        name = f"random, H = {heads}, std {scale:g}"
        starts[name] = _random(jax.random.fold_in(random_key, i), config, heads, scale)
    return starts


def run(config: NTK, key: jax.Array, /) -> xr.Dataset:
    """Margins and held-out fractions over (start, n, seed)."""
    with jax.enable_x64(True):
        return _run(config, key)


def _one_seed(
    key: jax.Array, config: NTK, model: SparseContext
) -> Iterator[tuple[str, list[tuple]]]:
    """For each start the rows (margin, its upper end, held out share and least, norm) over n."""
    data_key, test_key, start_key = jax.random.split(key, 3)
    data = model.sample(data_key, max(config.samples))
    test = model.sample(test_key, config.held_out)
    labels, fresh = np.asarray(data["y"]), np.asarray(test["y"])
    for name, params in _starts(start_key, config, model).items():
        kernel = np.asarray(ntk_gram(params, data["X"], data["X"]))
        cross = np.asarray(ntk_gram(params, test["X"], data["X"]))
        entries = []
        for n in config.samples:
            margin = best_ntk_margin(kernel[:n, :n], labels[:n])
            other = held_out_margins(cross[:, :n], labels[:n], fresh, margin)
            share, worst = np.mean(other > 0), np.min(other)
            entries.append((margin.lower, margin.upper, share, worst, float(head_norm(params))))
        yield name, entries


def _run(config: NTK, key: jax.Array) -> xr.Dataset:
    model = _model(config)
    rows: dict[str, list] = {}
    with progress(config.seeds, "seeds") as report:
        for seed in range(config.seeds):
            report(seed, "")
            for name, entries in _one_seed(jax.random.fold_in(key, seed), config, model):
                rows.setdefault(name, []).extend(entries)
    shape = (len(rows), config.seeds, len(config.samples), 5)
    table = np.asarray(list(rows.values())).reshape(shape)
    names = ("margin", "margin_upper", "held_out_positive", "held_out_least", "head_norm")
    dims = ("start", "seed", "n")
    dm1 = Assumption3.of(model)
    return xr.Dataset(
        {name: (dims, table[..., i]) for i, name in enumerate(names)},
        coords={"start": list(rows), "seed": range(config.seeds), "n": list(config.samples)},
        attrs={
            "precision": "float64",
            "gamma_linear": float(gamma_linear(dm1)),
            "gamma_attention": float(gamma_attention(dm1, 0.0)),
            "held_out": config.held_out,
        },
    )


def _heads(name: str) -> int:
    return int(name.split("H = ")[1].split(",")[0])


def claims(dataset: xr.Dataset, /) -> tuple[Claim, ...]:
    """Separability of random starts, its persistence in n, and comparisons."""
    is_random = [name for name in dataset.start.values.tolist() if name.startswith("random")]
    part = dataset.sel(start=is_random)
    least = float(part.margin.min())
    gap = float(((dataset.margin_upper - dataset.margin) / dataset.margin_upper).max())
    found = [
        Claim(
            "random initialisation satisfies NTK separability (P3): the certified margin is "
            "positive for every scale, H, n and seed",
            least > 0,
            f"least margin {least:.3g}; largest duality gap {gap:.1e}",
        )
    ]
    sizes = sorted(dataset.n.values.tolist())
    heads = sorted({_heads(name) for name in is_random})
    largest = part.sel(n=sizes[-1])
    for H in (heads[0], heads[-1]):
        those = [name for name in is_random if _heads(name) == H]
        if len(sizes) > 2 and least > 0:
            kept = (largest.margin / part.sel(n=sizes[-3]).margin).sel(start=those)
            text = f"H = {H}: margin at n = {sizes[-1]} at least 3/4 of that at n = {sizes[-3]}"
            worst = float(kept.min())
            found.append(Claim(text, worst >= 0.75, f"least share {worst:.3f}"))
        worst = float(largest.held_out_positive.sel(start=those).min())
        text = f"H = {H}: theta* of n = {sizes[-1]} separates at least 99.9% of held-out samples"
        found.append(Claim(text, worst >= 0.999, f"least share {worst:.4f} of {dataset.held_out}"))
    starts = set(dataset.start.values.tolist())
    if {"first step", "zero"} <= starts:
        for other in ("first step", "zero"):
            reference = dataset.margin.sel(start=other, n=sizes[-1])
            ratio = largest.margin / reference
            text = f"every random start has a larger NTK margin than {other!r} at n = {sizes[-1]}"
            span = f"ratios {float(ratio.min()):.3g} to {float(ratio.max()):.3g}"
            found.append(Claim(text, bool(ratio.min() > 1), span))
    linear = dataset.gamma_linear
    numbers = f"least margin {float(largest.margin.min()):.3g}, sqrt(2) gamma_lin "
    found.append(
        Claim(
            f"random starts beat the linear oracle, sqrt(2) gamma_lin, at n = {sizes[-1]}",
            bool(largest.margin.min() > 2**0.5 * linear),
            numbers + f"{2**0.5 * linear:.3g}, gamma_attn {dataset.gamma_attention:.3g}",
        )
    )
    return tuple(found)


def figure(dataset: xr.Dataset, /):
    """The margin and the held-out share against n."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for name in dataset.start.values.tolist():
        part = dataset.sel(start=name).mean("seed")
        style = "-" if name.startswith("random") else "--"
        axes[0].plot(part.n, part.margin, style, marker="o", label=name)
        axes[1].plot(part.n, 1 - part.held_out_positive, style, marker="o")
    axes[0].set(xscale="log", yscale="log", xlabel="samples n", ylabel="best NTK margin")
    axes[1].set(xscale="log", xlabel="samples n", ylabel="held-out samples not separated")
    axes[1].yaxis.set_major_formatter("{x:.1%}")
    for axis in axes:
        grid_ticks(axis.xaxis, dataset.n.values)
    axes[0].legend(fontsize="small")
    return fig


EXPERIMENT = Experiment(
    id="multihead.ntk",
    label="Section 7, first open question",
    title="NTK margin of random initialisation against n and H",
    config=NTK(),
    # Nothing was published: the paper asks the question.
    presets={
        "quick": NTK(samples=(25, 50, 100), heads=(1, 8), held_out=500, seeds=1),
        "dense": NTK(relevant=5, signal=3.0, noise=0.05),
    },
    run=run,
    figure=figure,
    claims=claims,
)
