"""Section 7's first open question: are random starts NTK separable, and with which margin?

The experiment encloses the best NTK margin on the data model DM1. The starts are zero, theta^(1)
(after the first gradient step), and random parameters of several scales and head counts. A head has
T d + d^2 parameters and may memorise n samples, so the experiment also tests the best direction on
held-out samples, and the margin at growing n. Margins grow with the norm of the start, so margins
are comparable only at equal `head_norm`.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from jaxbounds.experiments.experiment import Experiment
from jaxbounds.experiments.sweeps import progress
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.experiments.ntk_shown import CONTROLS, claims, figure
from jaxbounds.multihead.first_phase import balanced_signs, first_step
from jaxbounds.multihead.model import head_norm
from jaxbounds.multihead.ntk import best_ntk_margin, held_out_margins, ntk_gram
from jaxbounds.multihead.oracle import Assumption3
from jaxbounds.multihead.oracle_bounds import gamma_attention, gamma_linear


@dataclass(frozen=True, kw_only=True)
class NTK:
    """The settings of the experiment: data, starts and sample sizes.

    Attributes:
        tokens: T, the number of tokens.
        relevant: zeta T, the number of relevant tokens.
        distractors: M, the number of distractors; the dimension is d = M + 2.
        signal: S, the norm of every pattern.
        noise: the bound b on every noise coordinate; a coordinate is uniform on [-b, b].
        samples: the numbers of samples n; a smaller data set consists of the first samples of a
            larger one.
        heads: the numbers of heads H of the random starts.
        scales: the standard deviations of the entries of the random starts.
        first_samples: n1, the number of samples of the first phase.
        held_out: the number of fresh samples, which test the directions found from the other
            samples.
        seeds: the number of repetitions with fresh data and starts.
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
    """Compute NTK margins and shares of separated held-out samples, for each (start, n, seed)."""
    with enable_x64(True):
        return _run(config, key)


def _one_seed(
    key: jax.Array, config: NTK, model: SparseContext
) -> Iterator[tuple[str, list[tuple]]]:
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
            "settings": (
                f"DM1: T = {config.tokens}, {config.relevant} relevant, M = {config.distractors}, "
                f"S = {config.signal:g}, uniform noise within {config.noise:g}; theta^(1) from "
                f"{config.first_samples} samples"
            ),
        },
    )


EXPERIMENT = Experiment(
    id="multihead.ntk",
    label="Section 7, first open question",
    title="NTK margin of random initialisation against the numbers of samples n and heads H",
    config=NTK(),
    # The paper asks the question and publishes no setting.
    presets={
        "quick": NTK(samples=(25, 50, 100), heads=(1, 8), held_out=500, seeds=1),
        "dense": NTK(relevant=5, signal=3.0, noise=0.05),
    },
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
)
