"""Measure whether a real network is self-bounded weakly convex, and how the constant depends on H.

The paper proves lambda_min(Hess L) >= -kappa L / sqrt(H) for its model. This experiment measures
-lambda_min / L on a pre-LN Transformer, at initialisation and along training. All ratios are lower
estimates, since Lanczos gives upper estimates of lambda_min.

If the output is linear in the heads (preset "linear"), the Hessian contains the heads' second
derivatives divided by sqrt(H). Layers after the attention add J^T (Hess of the later layers) J to
the Hessian, where J is the Jacobian of the heads' sum. J J^T does not shrink as H grows, so the
ratio -lambda_min / L stays above a positive constant.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.experiments.controls import scaled
from jaxbounds.experiments.experiment import Control, Experiment, Finding
from jaxbounds.experiments.provenance import fingerprint
from jaxbounds.experiments.settings import default_settings
from jaxbounds.experiments.sweeps import progress, shares
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, load_arrays, locate, write_arrays
from jaxbounds.ground.folders import Marked
from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.experiments.weakconvexity_network import Arm, Encoder
from jaxbounds.multihead.loss import Data, logistic
from jaxbounds.networks.curvature import weak_convexity
from jaxbounds.networks.training import Params, Training, begin, optimizer, train_step

if TYPE_CHECKING:  # slow to import
    import matplotlib.figure

BLOCKS = {"network": None, "attention": "attention"}
"""The parameters in which the Hessian is measured: all, or those with "attention" in their path."""

_SIZES = {"heads": 64, "dimension": 64, "n": 64, "seeds": 4}
_OTHERS = (
    "The paper proves the exponent for its own model. The question about a Transformer is ours, "
    "and asked of the default's network, with or without nonlinear layers, or larger."
)
AT_THE_START = default_settings(least=_SIZES, others=_OTHERS)
ALONG_TRAINING = default_settings(least=_SIZES | {"records": 300}, others=_OTHERS)
"""The settings (network and steps) at which the experiment decides the claims."""

_BAND = (-0.65, -0.35)
_NAMES = ("ratio", "minimum", "maximum", "residual", "loss")


@dataclass(frozen=True, kw_only=True)
class WeakConvexityCurves:
    """The settings of the experiment: network, data and training.

    Attributes:
        heads: the numbers of heads H, divisors of the dimension.
        arms: the ways to vary the number of heads, "split" (the width divided by H) and "fixed" (a
            fixed width).
        dimension: d, the width of the network.
        layers: the number of Transformer blocks.
        nonlinear: whether the network has GELU layers, and a final layer norm after the attention.
        tokens: T, the number of tokens of the data (DM1).
        distractors: M, the number of distractors of the data.
        n: the number of samples; each step and each Hessian uses all of them.
        step_size: the step size of Adam.
        records: the steps at which the experiment measures the curvature, increasing from 0.
        iterations: the largest number of Lanczos products.
        seeds: the number of repetitions, each with its own data and start.
    """

    heads: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    arms: tuple[Arm, ...] = ("split", "fixed")
    dimension: int = 64
    layers: int = 1
    nonlinear: bool = True
    tokens: int = 8
    distractors: int = 6
    n: int = 64
    step_size: float = 1e-3
    records: tuple[int, ...] = (0, 30, 100, 300)
    iterations: int = 60
    seeds: int = 4


def _one_arm(config: WeakConvexityCurves, arm: Arm, heads: int, key: jax.Array) -> np.ndarray:
    encoder = Encoder(heads, arm, config.dimension, config.layers, nonlinear=config.nonlinear)
    model = SparseContext(
        tokens=config.tokens,
        dimension=config.distractors + 2,
        relevant=max(1, config.tokens // 4),
        distractors=config.distractors,
    )

    def loss(params: Params, batch: Data) -> Array:
        output: Any = encoder.apply({"params": params}, batch["X"])
        return jnp.mean(logistic(batch["y"].astype(output.dtype) * output))

    rule = optimizer("adam", config.step_size)

    @jax.jit
    def advance(state: Training, batch: Data, steps: ArrayLike) -> Training:
        step = lambda _, state: train_step(lambda p: loss(p, batch), rule, state)
        return jax.lax.fori_loop(0, steps, step, state)

    table = np.zeros((config.seeds, len(config.records), len(BLOCKS), len(_NAMES)))
    for seed in range(config.seeds):
        # All arms and H have equal data and seeds.
        data_key, start_key = jax.random.split(jax.random.fold_in(key, seed))
        batch = model.sample(data_key, config.n)
        state, done = begin(encoder.init(start_key, batch["X"])["params"], rule), 0
        for i, record in enumerate(config.records):
            state, done = advance(state, batch, record - done), record
            for j, block in enumerate(BLOCKS.values()):
                found = weak_convexity(
                    loss, state.params, batch, heads=heads, filter=block, dense_limit=0,
                    iterations=config.iterations,
                )  # fmt: skip
                numbers = (found.ratio_at_least, found.minimum, found.extremes.maximum)
                table[seed, i, j] = [*map(float, (*numbers, found.residual, found.loss))]
    return table


def run(
    config: WeakConvexityCurves,
    key: jax.Array,
    /,
    *,
    folder: str | Place | None = None,
    resume: bool = False,
) -> xr.Dataset:
    """Compute -lambda_min(Hess L) / L for each (arm, H, seed, step, block of parameters).

    An arm is one way to vary the number of heads. `folder` stores the result of each finished pair
    (arm, H).

    Raises:
        Refused: if the step numbers `config.records` do not increase from 0 or more, or a stored
            file is damaged or from another run.
    """
    if list(config.records) != sorted(set(config.records)) or config.records[0] < 0:
        raise Refused(
            f"records={config.records}, expected increasing numbers of steps, at least 0. Try "
            f"--records 0 10 100"
        )
    mark = f"weakconvexity {fingerprint(config, key)}"
    table = np.zeros(
        (len(config.arms), len(config.heads), config.seeds, len(config.records), 2, len(_NAMES))
    )
    cells = [(a, h) for a in range(len(config.arms)) for h in range(len(config.heads))]
    with progress(len(cells), "networks") as report:
        for done, (a, h) in enumerate(cells):
            arm, heads = config.arms[a], config.heads[h]
            if not shares.mine():
                continue
            report(done, f"{arm}, H = {heads}")
            path = None if folder is None else locate(folder) / f"{arm}-{heads}.npz"
            if path is not None and resume and path.is_file():
                table[a, h] = load_arrays(path, form=mark)[0]["table"]
                continue
            table[a, h] = _one_arm(config, arm, heads, key)
            if path is not None:
                with Marked(path.parent).writing(path.name) as file:
                    write_arrays(file, {"table": table[a, h]}, form=mark)
    shares.whole()
    dims = ("arm", "H", "seed", "step", "block")
    variables: dict[str, Any] = {n: (dims, table[..., i]) for i, n in enumerate(_NAMES[:-1])}
    variables["loss"] = (dims[:-1], table[..., 0, -1])
    coords = {
        "arm": list(config.arms),
        "H": list(config.heads),
        "seed": range(config.seeds),
        "step": list(config.records),
        "block": list(BLOCKS),
    }
    attrs = {
        "precision": "float32",
        "estimate": "ratio: a lower estimate of -lambda_min / L (Lanczos: Rayleigh quotients)",
    }
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def exponents(dataset: xr.Dataset, arm: str, block: str, /, *, record: int = 0) -> np.ndarray:
    """Compute, for each seed, the slope of log(-lambda_min / L) against log H at one recorded step.

    `record` is the index of a recorded step; by default 0, the first recorded step.
    """
    ratio = dataset.ratio.sel(arm=arm, block=block).isel(step=record).transpose("seed", "H").values
    x = np.log(dataset.H.values.astype(float))
    x = x - x.mean()
    return np.log(np.maximum(ratio, 1e-30)) @ x / (x @ x)


def _exponent_claim(dataset: xr.Dataset, arm: str, inside: bool) -> Finding:
    verb = "is" if inside else "is not"
    text = (
        f"arm {arm!r}: the exponent in H of -lambda_min / L of the attention at initialisation "
        f"{verb} -1/2 +- .15"
    )
    if dataset.H.size < 3:
        return Finding(text, None, "fewer than three H")
    words, last = [], dataset.step.size - 1
    measured = [("attention", 0), ("network", 0), ("attention", last)]
    for block, record in measured if last else measured[:2]:
        slopes = exponents(dataset, arm, block, record=record)
        spread = float(slopes.std(ddof=1)) if len(slopes) > 1 else 0.0
        when = f" after {int(dataset.step[record])} steps" if record else ""
        words.append(
            f"{block}{when} {float(slopes.mean()):.2f} (standard deviation over seeds {spread:.2f})"
        )
    mean = float(exponents(dataset, arm, "attention").mean())
    return Finding(text, (_BAND[0] <= mean <= _BAND[1]) == inside, "; ".join(words))


def _bounded_claim(dataset: xr.Dataset) -> Finding:
    text = "-lambda_min / L of the network stays within a factor 30 while L falls 100 times"
    ratio = dataset.ratio.sel(block="network").stack(run=("arm", "H", "seed"))
    loss = dataset.loss.stack(run=("arm", "H", "seed"))
    fallen = (loss.isel(step=0) / loss.min("step")).values >= 100
    if not fallen.any():
        most = float((loss.isel(step=0) / loss.min("step")).max())
        return Finding(text, None, f"no loss fell 100 times, at most {most:.3g} times")
    spread = (ratio.max("step") / np.maximum(ratio.min("step"), 1e-30)).values
    worst = int(np.argmax(np.where(fallen, spread, 0)))
    arm, heads, seed = ratio.run.values[worst]
    within = int((spread[fallen] <= 30).sum())
    number = (
        f"{within} of {int(fallen.sum())} runs ({int((~fallen).sum())} fell less); worst factor "
        f"{spread[worst]:.3g} at {arm}, H = {heads}, seed {seed}; ratios "
        f"{float(ratio.min()):.3g} to {float(ratio.max()):.3g}"
    )
    return Finding(text, bool(within == fallen.sum()), number)


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide the claims on the exponents in H at the start, and on a ratio during training.

    An arm is one way to vary the number of heads: "split" or "fixed".
    """
    found = [_exponent_claim(dataset, arm, arm == "fixed") for arm in dataset.arm.values.tolist()]
    bounded = (_bounded_claim(dataset),)
    return (*AT_THE_START.judged(dataset, found), *ALONG_TRAINING.judged(dataset, bounded))


def _law(power: float) -> Control:
    def control(dataset: xr.Dataset) -> xr.Dataset:
        ratio = (0 * dataset.ratio + 1) * dataset.H.astype(float) ** power
        return dataset.assign(ratio=ratio.transpose(*dataset.ratio.dims))

    return control


CONTROLS: dict[str, Control] = {
    "arm 'split'": _law(-0.5),
    "arm 'fixed'": _law(0.0),
    "stays within a factor 30": scaled(100, "ratio", step=lambda step: step == step.max()),
}
"""For each claim, a function that changes the experiment's data so that the claim is false."""


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Plot the ratio -lambda_min / L against H (attention at the start) and against L (network)."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for arm in dataset.arm.values.tolist():
        part = dataset.ratio.sel(arm=arm, block="attention").isel(step=0)
        (line,) = axes[0].plot(part.H, part.mean("seed"), marker="o", label=f"heads {arm}")
        axes[0].plot(part.H, part.transpose("H", "seed"), ".", color=line.get_color(), alpha=0.4)
        if arm == "fixed":
            guide = float(part.isel(H=0).mean()) * (part.H / part.H[0]) ** -0.5
            axes[0].plot(part.H, guide, ":", color="black", label=r"$\propto 1 / \sqrt{H}$")
        for H in dataset.H.values.tolist():
            one = dataset.sel(arm=arm, H=H).mean("seed")
            axes[1].plot(
                one.loss, one.ratio.sel(block="network"), marker=".", color=line.get_color(),
                alpha=0.6,
            )  # fmt: skip
    axes[0].set(xscale="log", yscale="log", xlabel="heads H", title="attention, at the start")
    axes[0].set_ylabel(r"$-\lambda_{\min} / L$, at least")
    axes[0].legend()
    axes[1].set(xscale="log", yscale="log", xlabel="loss L (falls to the right)")
    axes[1].set_title("whole network, along training")
    axes[1].invert_xaxis()
    return fig


EXPERIMENT = Experiment(
    id="multihead.weakconvexity",
    label="Corollary 1 (3), on a Transformer",
    title="Self-bounded weak convexity of a pre-LN Transformer, against the number of heads H "
    "and along training",
    config=WeakConvexityCurves(),
    presets={
        "quick": WeakConvexityCurves(
            heads=(1, 4, 16), dimension=16, n=32, records=(0, 30, 300), iterations=40, seeds=2
        ),
        "long": WeakConvexityCurves(
            records=(0, 10, 30, 100, 300, 1000, 3000, 10000), iterations=100, seeds=8
        ),
        "linear": WeakConvexityCurves(nonlinear=False, records=(0,)),
    },
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
    resumable=True,
)
