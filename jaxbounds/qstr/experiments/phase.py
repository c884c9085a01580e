"""Compare trained risks with the lower bounds of Propositions 3 and 21, for each H and q.

The number of heads is H and the sparsity is q. Prompts have the distribution of the propositions'
proofs, with scalar tokens (d = 1) and orthonormal encodings. Each head has one W_QK, either free
("coupled") or block-diagonal in token and position ("decoupled"). Training uses one position of the
prompt's second half, where all labels are equal.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.controls import shifted
from jaxbounds.experiments.experiment import Control, Experiment, Finding
from jaxbounds.experiments.plotting import grid_ticks
from jaxbounds.experiments.settings import default_settings
from jaxbounds.experiments.sweeps import progress
from jaxbounds.networks.training import begin, train_step
from jaxbounds.qstr import heads
from jaxbounds.qstr.data import encode

if TYPE_CHECKING:  # slow to import
    import matplotlib.figure


@dataclass(frozen=True, kw_only=True)
class Phase:
    """The grid and the training settings of the phase diagram.

    Attributes:
        sparsities: the sparsities q; the experiment compiles one program for each q.
        heads: the numbers of heads H; one program trains all H in parallel, and masks switch off
            unused heads.
        width: the width of the two-layer readout.
        batch: the number of fresh prompts in each training step.
        steps: the number of training steps of Adam.
        learning_rate: the largest learning rate; the learning rate then decays to zero as a cosine.
        test_prompts: the number of prompts from which the final risk is estimated.
        restarts: the number of independent runs; the experiment reports the smallest of their
            risks.
    """

    sparsities: tuple[int, ...] = (2, 3, 4)
    heads: tuple[int, ...] = (1, 2, 3, 4)
    width: int = 64
    batch: int = 128
    steps: int = 3000
    learning_rate: float = 5e-3
    test_prompts: int = 20_000
    restarts: int = 2


def _predict(params: dict, mask: dict, z: Array) -> Array:
    W = params["W_QK"] * mask["block"]
    logits = jnp.einsum("bd,hde,bje->bhj", z[:, -1], W, z)
    f = jnp.einsum("bhj,bje->bhe", jax.nn.softmax(logits, axis=-1), z)
    f = f * jnp.broadcast_to(mask["head"][None, :, None], f.shape)
    hidden = jnp.einsum("bhe,mhe->bm", f, params["W"])
    hidden = jax.nn.relu(hidden + jnp.broadcast_to(params["b"], hidden.shape))
    return hidden @ params["a"] + params["c"]


def _train(key: Array, mask: dict, q: int, config: Phase) -> Array:
    """Train one run, and return its final risk at the last position times 1/2 + 1/N.

    The factor 1/2 + 1/N is the share of positions whose label is the label of the last position.
    """
    N, H = 2 * q + 2, max(config.heads)
    De = 1 + (q + 1) * N
    omega = jnp.eye(N)
    key_w, key_m, key_s, key_t = jax.random.split(key, 4)
    schedule = optax.cosine_decay_schedule(config.learning_rate, config.steps)
    adam = optax.adam(schedule)
    params = {
        "W_QK": 0.1 * jax.random.normal(key_w, (H, De, De)),
        "W": jax.random.normal(key_m, (config.width, H, De)) / np.sqrt(H * De),
        "b": jnp.zeros(config.width),
        "a": jnp.zeros(config.width),
        "c": jnp.zeros(()),
    }

    def risk(params: dict[str, Array], key: Array, count: int) -> Array:
        prompts = heads.lower_bound_prompts(key, shape=(count,), N=N, q=q, d=1)
        z = encode(prompts.x, prompts.t, omega)
        return jnp.mean((_predict(params, mask, z) - prompts.y[:, -1]) ** 2)

    step = lambda state, key: (train_step(lambda p: risk(p, key, config.batch), adam, state), None)
    keys = jax.random.split(key_s, config.steps)
    trained = jax.lax.scan(step, begin(params, adam), keys)[0].params
    return (0.5 + 1 / N) * risk(trained, key_t, config.test_prompts)


def _masks(q: int, config: Phase) -> dict:
    De, H = 1 + (q + 1) * (2 * q + 2), max(config.heads)
    block = np.ones((2, De, De), dtype=np.float32)
    block[1, :1, 1:] = block[1, 1:, :1] = 0.0
    head = (np.arange(H)[None, :] < np.array(config.heads)[:, None]).astype(np.float32)
    cells = [(c, k) for c in range(2) for k in range(len(config.heads))]
    return {
        "block": jnp.asarray(np.stack([block[c][None] for c, _ in cells])),
        "head": jnp.asarray(np.stack([head[k] for _, k in cells])),
    }


def _column(q: int, config: Phase, key: Array) -> tuple[np.ndarray, np.ndarray]:
    shape = 2, len(config.heads)
    keys = jax.random.split(jax.random.fold_in(key, q), (config.restarts, shape[0] * shape[1]))
    train = lambda key, mask: _train(key, mask, q, config)
    both = jax.jit(jax.vmap(jax.vmap(train), in_axes=(0, None)))
    found = np.asarray(both(keys, _masks(q, config)))
    risk = found.min(axis=0).reshape(shape)
    bound = np.zeros(shape)
    for j, H in enumerate(config.heads):
        sizes: dict[str, Any] = {"N": 2 * q + 2, "q": q, "H": H, "exact": True}
        bound[0, j] = heads.sharpened_head_bound(d=1, **sizes).value
        bound[1, j] = heads.decoupled_head_bound(**sizes).value
    return risk, bound


def run(config: Phase, key: Array, /) -> xr.Dataset:
    """Return the trained risks and lower bounds, with axes (attention, H, q)."""
    columns = []
    with progress(len(config.sparsities), "sparsities") as report:
        for done, q in enumerate(config.sparsities):
            report(done, f"q = {q}")
            columns.append(_column(q, config, key))
    risk, bound = (np.stack(part, axis=-1) for part in zip(*columns))
    dims = ("attention", "H", "q")
    return xr.Dataset(
        {"risk": (dims, risk), "bound": (dims, bound)},
        coords={
            "attention": ["coupled", "decoupled"],
            "H": list(config.heads),
            "q": list(config.sparsities),
        },
        attrs={
            "precision": "float32",
            "settings": f"d = 1, N = 2q + 2, width {config.width}; {config.steps:,} steps of Adam, "
            f"batch {config.batch}; best of {config.restarts} run(s), "
            f"{config.test_prompts:,} test prompts",
        },
    )


SETTINGS = default_settings(
    least={"steps": 3000, "restarts": 2, "width": 64, "batch": 128, "test_prompts": 20_000},
    others="Propositions 3 and 21 speak of every q and H, and of every network. Less training "
    "shows less: a run that has not learned is below no bound.",
)
"""The least settings at which the experiment decides whether a risk falls below the bounds."""
TRAINS = 0.1
"""Training counts as successful if the network with the most heads has a risk below this number. A
larger number accepts worse runs.
"""


def _short_of_the_bound(dataset: xr.Dataset) -> xr.Dataset:
    coupled, H = dataset.attention == "coupled", dataset.H
    bound = dataset.bound.sel(attention="decoupled")
    risk = dataset.risk.where(~(coupled & (H == 2)), 1.2 * bound)
    risk = risk.where(~(coupled & (H.max() == H)), TRAINS / 2)
    return dataset.assign(risk=risk.transpose(*dataset.risk.dims))


CONTROLS: dict[str, Control] = {
    "no decoupled run": shifted(-0.5, "risk", attention="decoupled"),
    "coupled H = 2 < q": _short_of_the_bound,
}
"""Functions that make the results false, to test that the claims can fail."""


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide whether only networks with free ("coupled") W_QK reach risks below 1 - H/q."""
    apart = (dataset.risk - dataset.bound).sel(attention="decoupled").values.ravel()
    text = "no decoupled run is below (1 + 2/N)(1 - H/q) by more than 5% of the label's variance"
    least = float(apart.min())
    found = [Finding(text, least > -0.1, f"least difference {least:.3g}")]
    sparse = [q for q in dataset.q.values if q > 2]
    if 2 in dataset.H.values and sparse:
        part = dataset.sel(H=2, q=sparse)
        ratio = part.risk.sel(attention="coupled") / part.bound.sel(attention="decoupled")
        text = "coupled H = 2 < q: trained risk below the decoupled bound (ratio < 1)"
        least = float(ratio.min())
        # Training that ends above the bound may have failed, unless it works with enough heads.
        enough = dataset.sel(q=[q for q in sparse if q <= dataset.H.max()], attention="coupled")
        works = enough.q.size > 0 and float(enough.risk.isel(H=-1).max()) < TRAINS
        below = True if least < 1 else False if works else None
        open_ = ", more steps or restarts would decide" * (below is None)
        found.append(Finding(text, below, f"least ratio {least:.3g}{open_}"))
    return SETTINGS.judged(dataset, found)


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Draw the risk against H for every q, with the lower bounds as dashed lines."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(8, 3.5), sharey=True, layout="constrained")
    for axis, name in zip(axes, dataset.attention.values.tolist()):
        for q in dataset.q.values.tolist():
            part = dataset.sel(attention=name, q=q)
            (line,) = axis.plot(part.H, part.risk, marker="o", label=f"q = {q}")
            axis.plot(part.H, part.bound, "--", color=line.get_color())
        axis.set(title=name, xlabel="heads H")
        grid_ticks(axis.xaxis, dataset["H"].values)
    axes[0].set(ylabel="risk (dashed: lower bound)")
    axes[0].legend()
    fig.suptitle(dataset.attrs.get("settings", ""), fontsize=8)
    return fig


EXPERIMENT = Experiment(
    id="qstr.phase",
    label="Propositions 3 and 21",
    title="trained risk over heads and sparsity, against the lower bounds",
    config=Phase(),
    presets={"quick": Phase()},
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
)
