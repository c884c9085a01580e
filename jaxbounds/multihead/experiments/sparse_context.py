"""Figures 2 and 3: training on DM1 (sparse context) with the settings of Appendix G.

Gaussian noise, as in the figures, violates Assumption 3 (bounded noise). If a theorem needs a bound
on the noise, the run uses three standard deviations as the bound. This choice favours the theorem,
because Gaussian noise can exceed three standard deviations.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.experiment import Experiment
from jaxbounds.ground.files import Place
from jaxbounds.multihead.bounds import beta2
from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.experiments.curves import Curves, Panel, run_curves
from jaxbounds.multihead.experiments.drawing import Quantity, draw_curves
from jaxbounds.multihead.experiments.sparse_context_claims import CONTROLS, claims
from jaxbounds.multihead.experiments.student import attention_mass
from jaxbounds.multihead.oracle import Assumption3
from jaxbounds.multihead.oracle_bounds import gamma_attention, gamma_linear, gamma_star

if TYPE_CHECKING:  # slow to import
    import matplotlib.figure


@dataclass(frozen=True, kw_only=True)
class SparseContextCurves(Curves):
    """Settings of the curves on DM1: d = 4, M = 2, T = 10, zeta = 0.1, S = 2, noise N(0, 0.01 I).

    Attributes:
        tokens: T, the number of tokens.
        relevant: zeta T, the number of relevant tokens.
        signal: S, the norm of every pattern.
        deviation: the standard deviation of the noise on irrelevant tokens.
        positions: the positions of the relevant tokens: "fixed" (the first ones) or "random" in
            every sample. The paper does not state the positions of the relevant tokens.
    """

    tokens: int = 10
    relevant: int = 1
    signal: float = 2.0
    deviation: float = 0.1
    positions: Literal["fixed", "random"] = "fixed"

    def settings(self) -> str:
        """Return one line of text about the data model DM1, the sizes and the training."""
        return (
            f"DM1: T = {self.tokens}, {self.relevant} relevant ({self.positions} positions), "
            f"S = {self.signal:g}, Gaussian noise of deviation {self.deviation:g}; "
            + super().settings()
        )

    def model(self) -> SparseContext:
        """Build the data model DM1 from the settings, with noise of at most three deviations."""
        bound = 3 * self.deviation * self.signal
        return SparseContext(
            tokens=self.tokens,
            dimension=4,
            relevant=self.relevant,
            distractors=2,
            signal=self.signal,
            noise_mu=bound,
            noise_nu=2 * bound,
        )


def draw(config: SparseContextCurves, key: Array, n: int, /) -> dict[str, Array]:
    """Draw {"X": (T, d, n), "y": (n,), "relevant": (T, n)}: DM1 with Gaussian noise."""
    label_key, place_key, distractor_key, noise_key = jax.random.split(key, 4)
    patterns, shape = config.model().patterns(), (config.tokens, n)
    labels = jax.random.rademacher(label_key, (n,), dtype=jnp.float32)
    ranks = jnp.broadcast_to(jnp.arange(config.tokens)[:, None], shape)
    if config.positions == "random":
        ranks = jnp.argsort(jax.random.uniform(place_key, shape), axis=0)
    relevant = ranks < config.relevant
    which = 2 + jax.random.bernoulli(distractor_key, shape=shape).astype(int)
    noise = config.deviation * jax.random.normal(noise_key, (*shape, patterns.shape[1]))
    own = jnp.broadcast_to(patterns[jnp.where(labels > 0, 0, 1)][None], noise.shape)
    tokens = jnp.where(relevant[:, :, None], own, patterns[which] + noise)
    return {
        "X": jnp.moveaxis(tokens, 2, 1),
        "y": labels,
        "relevant": relevant.astype(jnp.float32),
    }


def hypotheses(config: SparseContextCurves, /) -> dict[str, float]:
    """Return a dict of the theory's quantities: noise, margins, and the bound on the step size.

    The bound on the noise is three standard deviations.
    """
    model = config.model()
    dm1 = Assumption3.of(model)
    smooth = beta2(0.0, model.radius, T=config.tokens, d=4, H=config.heads[-1])
    return {
        "Z_mu": model.noise_mu,
        "S^2/8": config.signal**2 / 8,
        "gamma_attn": float(gamma_attention(dm1, 0.0)),
        "gamma_lin": float(gamma_linear(dm1)),
        "gamma*": float(gamma_star(dm1, 0.0)),
        "1/beta2(0)": 1 / float(jnp.asarray(smooth)),
    }


def _status(found: dict[str, float]) -> str:
    bound = "met" if found["Z_mu"] <= found["S^2/8"] else "NOT met"
    sign = lambda name: "positive" if found[name] > 0 else "NOT positive: vacuous"
    return (
        "hypotheses, with the Gaussian noise cut at 3 standard deviations (Assumption 3 asks for "
        "bounded noise):\n"
        f"  Prop. 3: Z_mu = {found['Z_mu']:.2g} <= S^2/8 = {found['S^2/8']:.2g} {bound}\n"
        f"  Prop. 2: gamma* = {found['gamma*']:.2f} (even with P = 0) {sign('gamma*')}\n"
        f"  eq. (132): gamma_lin = {found['gamma_lin']:.2f} {sign('gamma_lin')}\n"
        f"  Lemma 7: steps of at most 1/beta_2(theta^(0)) = {found['1/beta2(0)']:.2g} (largest H)"
    )


def run(
    config: SparseContextCurves,
    key: Array,
    /,
    *,
    folder: Place | str | None = None,
    resume: bool = False,
) -> xr.Dataset:
    """Train a network for every panel (optimiser), H and trial.

    The recorded quantity `attention` is the softmax mass on the relevant tokens.
    """

    def draw_both(key: Array) -> dict:
        both = draw(config, key, config.n + config.test)
        cut = lambda part: {name: leaf[..., part] for name, leaf in both.items()}
        return {"train": cut(slice(config.n)), "test": cut(slice(config.n, None))}

    def measure(lane: dict, params: dict) -> dict[str, Array]:
        train = lane["train"]
        return {"attention": attention_mass(params["W"][0], train["X"], train["relevant"])}

    dataset = run_curves(config, key, draw_both, measure, folder=folder, resume=resume)
    found = hypotheses(config)
    return dataset.assign_attrs(hypotheses=found, text=f"{config.settings()}\n{_status(found)}")


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Draw losses, attention, norms and margin against the step, one colour for each H."""
    limit = dataset.attrs["hypotheses"]["gamma_attn"]
    guide = 0.02 if dataset.panel.size == 1 else 0.0
    quantities = (
        Quantity("log10_train_loss", "train loss", guide=guide),
        Quantity("log10_test_loss", "test loss"),
        Quantity("attention", "attention on relevant tokens"),
        Quantity("norm_W", r"average $\|W\|$", log=dataset.panel.size == 1),
        Quantity("norm_U", r"average $\|U\|$", log=True),
        Quantity("margin", r"margin / average $\|U\|$", limit, r"$\gamma_{attn}$"),
    )
    return draw_curves(dataset, quantities)


FIGURE_2 = SparseContextCurves(panels=(Panel(rule="gd", step_size=1.0),))
FIGURE_3 = SparseContextCurves(
    panels=(Panel(rule="gd", step_size=1.0, exponent=0.5), Panel(rule="adam", step_size=0.06))
)
_TITLES = {
    2: "GD with constant step size on sparse context (DM1), against the number of heads",
    3: "GD with step size ~ sqrt(H), and Adam, on sparse context (DM1)",
}

EXPERIMENTS = tuple(
    Experiment(
        id=f"multihead.fig{number}",
        label=f"Figure {number}",
        title=_TITLES[number],
        config=config,
        presets={
            "quick": replace(config, heads=(1, 16, 64), trials=2, steps=400),
            "published": config,
            "random-positions": replace(config, positions="random"),
        },
        run=run,
        figure=figure,
        claims=claims,
        controls=CONTROLS,
        resumable=True,
    )
    for number, config in ((2, FIGURE_2), (3, FIGURE_3))
)
"""The settings of Figures 2 and 3; the defaults are the settings that the paper states, if any."""
