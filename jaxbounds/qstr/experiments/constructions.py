"""Draw a figure of five explicit constructions; three are the paper's, two contradict the paper.

The first three panels show the error of the attention that retrieves the relevant tokens, the error
of the recurrent network, and the norm of the interpolating network. The fourth panel shows that two
heads suffice for scalar tokens (d = 1), although the paper's condition "H >= q" demands q heads.
The fifth panel shows that the random-code network violates Proposition 8's bound on the operator
norm.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from jaxbounds.experiments.controls import scaled, valued
from jaxbounds.experiments.experiment import Control, Experiment, Finding
from jaxbounds.experiments.plotting import grid_ticks
from jaxbounds.experiments.settings import default_settings
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.qstr import data, encodings, heads, interpolator, retrieval, rnn_construction
from jaxbounds.qstr.code_rnn import code_rnn
from jaxbounds.qstr.data import Prompts
from jaxbounds.qstr.links import sphere
from jaxbounds.qstr.recurrent import exclusive_sums
from jaxbounds.qstr.relu_networks import evaluate
from jaxbounds.qstr.two_heads import two_head_prediction

if TYPE_CHECKING:  # slow to import
    import matplotlib.figure


@dataclass(frozen=True, kw_only=True)
class Constructions:
    """The grids of the figure's five panels; all computations use float64.

    Attributes:
        attention_length: the length N of the prompts on which attention retrieves tokens.
        coherences: the largest coherences that the encodings in the attention's panel may have.
        logits: the values of alpha d / q, which is the largest logit of the attention.
        lengths: the lengths N of the prompts for the recurrent network.
        eps: the error that the biased recurrent network makes in each step.
        points: the numbers n of points that the interpolating network fits.
        draws: the number of times that the points of the interpolating network are drawn.
        sparsities: the numbers q of relevant tokens in the tasks that the network with two heads
            solves.
        tilts: the factors beta of the token in the logits of the two heads.
        prompts: the number of prompts from which the experiment estimates the risk of the two
            heads.
        code_lengths: the lengths N of the prompts for the random-code network, which stores 3 bits
            of each token.
    """

    attention_length: int = 64
    coherences: tuple[float, ...] = (0.25, 0.5, 0.75)
    logits: tuple[float, ...] = (4.0, 8.0, 16.0, 24.0, 32.0, 40.0)
    lengths: tuple[int, ...] = (8, 32, 128, 512)
    eps: float = 0.01
    points: tuple[int, ...] = (10, 20, 40, 80, 160)
    draws: int = 100
    sparsities: tuple[int, ...] = (3, 4, 8)
    tilts: tuple[float, ...] = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
    prompts: int = 4000
    code_lengths: tuple[int, ...] = (2, 3, 4, 5, 6)


def retrieval_errors(config: Constructions, key: Array, /, *, d: int = 10, q: int = 2) -> dict:
    """Measure the error of the attention (A.2) and its bound, for each coherence and logit.

    The result also contains the measured coherences of the encodings.
    """
    key_w, key_x, key_t = jax.random.split(key, 3)
    N = config.attention_length
    x = jax.random.normal(key_x, (N, d))
    t = data.sample_positions(key_t, (), N, q)
    alphas = jnp.array(config.logits) * (q / d)
    error, bound, drawn = [], [], []
    for target in config.coherences:
        de = math.ceil(3 / target**2) + 8
        omega = encodings.greedy_encodings(key_w, N, de, target=target)
        mu = encodings.coherence(omega)
        tail = lambda a, w=omega, mu=mu: retrieval.retrieval_error_bound(x, w, a, q=q, coherence=mu)
        measured = lambda a, w=omega: retrieval.retrieval_error(x, t, w, a)
        error.append(jax.lax.map(measured, alphas))
        bound.append(jax.lax.map(tail, alphas))
        drawn.append(mu)
    dims = ("target", "logit")
    return {
        "retrieval_error": (dims, np.stack(error)),
        "retrieval_bound": (dims, np.stack(bound)),
        "coherence": ("target", np.stack(drawn)),
    }


def recurrent_errors(config: Constructions, key: Array, /, *, d: int = 2, q: int = 2) -> dict:
    """Measure the RNN's largest error on a recovered token, for each variant and length N.

    The variants are the exact, the biased and the rectified transition.
    """
    found = np.zeros((3, len(config.lengths)))
    for column, N in enumerate(config.lengths):
        key_w, key_x, key_t, key_n = jax.random.split(jax.random.fold_in(key, N), 4)
        de = 8 + math.ceil(4 * math.log2(N))
        omega = encodings.greedy_encodings(key_w, N, de)
        x = jnp.clip(jax.random.normal(key_x, (N, d)), -4.0, 4.0)
        t = data.sample_positions(key_t, (), N, q, simple=True)
        z = data.encode(x, t, omega, scale=False)
        sizes: dict[str, Any] = {"q": q, "d": d, "de": de, "radius": 4.0}
        noise = config.eps * jax.random.uniform(key_n, (q * d,), minval=0.5, maxval=1.0)
        biased = [
            rnn_construction.biased_transition(noise, rectified=flag, eps=config.eps, **sizes)
            for flag in (False, True)
        ]
        for row, transition in enumerate((rnn_construction.exact_transition(**sizes), *biased)):
            steps = evaluate(transition, z)
            states = exclusive_sums(steps), exclusive_sums(steps, reverse=True)
            tokens = rnn_construction.recovered_tokens(*states, steps, q=q)
            found[row, column] = float(jnp.max(jnp.abs(tokens - x[t])))
    return {"recurrent_error": (("variant", "N"), found)}


def interpolator_norms(config: Constructions, key: Array, /, *, d: int = 5) -> dict:
    """Measure the interpolating network's squared norm divided by n^3, for each draw of points.

    The function scales the two layers against each other in two ways: by the paper's factor, and by
    the optimal factor.
    """

    def one(key: Array, n: int) -> Array:
        key_x, key_y, key_v = jax.random.split(key, 3)
        z = jax.random.normal(key_x, (n, d)) @ sphere(key_v, d)
        y = jax.random.normal(key_y, (n,))
        networks = (interpolator.interpolate(z, y, optimal=flag) for flag in (False, True))
        return jnp.stack([network.squared_norm() for network in networks]) / n**3

    found = []
    for n in config.points:
        keys = jax.random.split(jax.random.fold_in(key, n), config.draws)
        found.append(jax.jit(jax.vmap(lambda k, n=n: one(k, n)))(keys))
    norms = np.moveaxis(np.stack(found), 2, 0)
    return {"interpolator_norm": (("balance", "n", "draw"), norms)}


def two_head_risks(config: Constructions, key: Array, /) -> dict:
    """Measure the two heads' squared error over the label's variance, for each q and beta.

    The function measures the error at the last position of a prompt.
    """
    found = np.zeros((len(config.sparsities), len(config.tilts)))
    for row, q in enumerate(config.sparsities):
        N = 2 * q + 2
        prompts = heads.lower_bound_prompts(
            jax.random.fold_in(key, q), shape=(config.prompts,), N=N, q=q, d=1
        )
        omega = jnp.eye(N)
        direction = jnp.sum(omega[:q], axis=0)

        def risk(
            beta: Array,
            prompts: Prompts = prompts,
            omega: Array = omega,
            direction: Array = direction,
        ) -> Array:
            x, t = prompts.x, prompts.t
            got = two_head_prediction(x, t, omega, direction, beta=beta, selectivity=60.0)
            return jnp.mean((got[:, -1] - prompts.y[:, -1]) ** 2) / 2.0

        found[row] = jax.lax.map(risk, jnp.array(config.tilts))
    return {"two_head_risk": (("q", "tilt"), found)}


def code_norms(config: Constructions, key: Array, /) -> dict:
    """Measure L^2 |U|_op^2, L^2 |U|_F^2 and the width of the random-code network, for each N."""
    machines = [code_rnn(jax.random.fold_in(key, N), N) for N in config.code_lengths]
    column = lambda value: ("code_N", np.array([value(m) for m in machines]))
    return {
        "code_operator": column(lambda m: (m.lipschitz * m.operator_norm) ** 2),
        "code_frobenius": column(lambda m: (m.lipschitz * m.frobenius_norm) ** 2),
        "code_width": column(lambda m: m.width),
    }


def run(config: Constructions, key: Array, /) -> xr.Dataset:
    """Measure the errors and norms of every construction."""
    parts = retrieval_errors, recurrent_errors, interpolator_norms, two_head_risks, code_norms
    with enable_x64(True):
        keys = jax.random.split(key, len(parts))
        found = [part(config, k) for part, k in zip(parts, keys, strict=True)]
    return xr.Dataset(
        {name: value for part in found for name, value in part.items()},
        coords={
            "logit": list(config.logits),
            "N": list(config.lengths),
            "variant": ["exact", "biased", "rectified"],
            "n": list(config.points),
            "balance": ["printed", "optimal"],
            "q": list(config.sparsities),
            "tilt": list(config.tilts),
            "code_N": list(config.code_lengths),
        },
        attrs={
            "precision": "float64",
            "eps": config.eps,
            "settings": f"attention: one prompt, N = {config.attention_length}, each coherence; "
            f"recurrent: one prompt for each N, steps biased by up to {config.eps:g};\n"
            f"interpolator: {config.draws} draws, line: median, band: 10 to 90%; two heads: "
            f"{config.prompts:,} prompts for each q; random code: one for each N, 3 bits a token",
        },
    )


def _slope(x: xr.DataArray, y: xr.DataArray) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


SETTINGS = default_settings(
    least={"lengths": 512, "points": 160, "draws": 100, "code_lengths": 6},
    others="(A.2), Proposition 28 and Theorem 1 speak of every prompt, N and q > H: one size "
    "decides. Rates in N and n are asked of the default's lengths or larger ones.",
)
"""The least lengths N and numbers of points at which the experiment decides claims about rates."""


def _rectified_steps_add_up(dataset: xr.Dataset) -> xr.Dataset:
    error = dataset.recurrent_error
    grown = error.where(error.variant != "rectified", 0.01 * dataset.N)
    return dataset.assign(recurrent_error=grown.transpose(*error.dims))


def _vanishing(name: str) -> Control:
    return lambda dataset: dataset.assign({name: dataset.code_N.astype(float) ** -3})


CONTROLS: dict[str, Control] = {
    "(A.2) errs": lambda dataset: dataset.assign(retrieval_error=2 * dataset.retrieval_bound),
    "the exact RNN": valued(1e-6, "recurrent_error", variant="exact"),
    "(C.1)": valued(0.01, "recurrent_error", variant="biased"),
    "(C.2)": _rectified_steps_add_up,
    "Lemma 36": scaled(1e3, "interpolator_norm"),
    "H = 2 < q heads": scaled(0.0, "two_head_risk"),
    "|U|_op^2 keeps up": _vanishing("code_operator"),
    "|U|_F^2 keeps up": _vanishing("code_frobenius"),
}
"""Functions that make the results false, to test that the claims can fail."""


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Compare each network that the paper constructs with the paper's claim about it."""
    tail = float((dataset.retrieval_error / dataset.retrieval_bound).max())
    error = dataset.recurrent_error
    exact = float(error.sel(variant="exact").max())
    biased, flat = (_slope(dataset.N, error.sel(variant=v)) for v in ("biased", "rectified"))
    norm = float(dataset.interpolator_norm.sel(balance="printed").quantile(0.9, "draw").max())
    excess = dataset.two_head_risk.min("tilt") / (1 - 2 / dataset.q)
    promised = dataset.code_N / np.log1p(dataset.code_width)
    printed, repaired = dataset.code_operator / promised, dataset.code_frobenius / dataset.code_N
    ends = lambda v: f"{float(v[0]):.3g} to {float(v[-1]):.3g}"
    holds = lambda v: bool(v[-1] > 0.7 * v[0])
    at_every_size = (
        Finding(
            "(A.2) errs by at most its tail bound at the measured coherence (ratio <= 1)",
            tail <= 1,
            f"largest ratio {tail:.2g}",
        ),
        Finding("the exact RNN errs by < 1e-12 at every N", exact < 1e-12, f"{exact:.1g}"),
        Finding(
            "H = 2 < q heads have risk >= 1 - H/q",
            bool((excess >= 1).all()),
            f"risk / (1 - H/q) at most {float(excess.max()):.1g} (two tilted heads)",
        ),
    )
    rates = (
        Finding("(C.1): biased steps add up, slope in N > 0.9", biased > 0.9, f"{biased:.2f}"),
        Finding("(C.2): rectified steps do not, slope in N < 0.1", flat < 0.1, f"{flat:.2f}"),
        Finding(
            "Lemma 36: the interpolator's squared norm is O(n^3) (90% of draws < 20 n^3)",
            norm < 20,
            f"{norm:.3g} n^3",
        ),
        Finding(
            "L^2 |U|_op^2 keeps up with N / log(1 + dh) (loses < 30% over the range)",
            holds(printed),
            f"ratio {ends(printed)} (random code)",
        ),
        Finding(
            "repaired: L^2 |U|_F^2 keeps up with N (loses < 30%)",
            holds(repaired),
            f"ratio {ends(repaired)}",
        ),
    )
    return (*at_every_size, *SETTINGS.judged(dataset, rates))


def figure(dataset: xr.Dataset, /) -> "matplotlib.figure.Figure":
    """Plot the figure, with one panel for each construction."""
    import matplotlib.pyplot as plt

    fig = plt.figure(figsize=(11, 6.6), layout="constrained")
    cell = fig.add_gridspec(2, 6)
    places = [cell[0, 2 * i : 2 * i + 2] for i in range(3)] + [cell[1, :3], cell[1, 3:]]
    attend, recur, through, two, code = (fig.add_subplot(place) for place in places)
    for k in range(dataset.sizes["target"]):
        label = f"coherence {float(dataset.coherence[k]):.2f}"
        (line,) = attend.plot(dataset.logit, dataset.retrieval_error[k], marker="o", label=label)
        attend.plot(dataset.logit, dataset.retrieval_bound[k], "--", color=line.get_color())
    attend.set(yscale="log", xlabel=r"largest logit $\alpha d / q$", ylabel="error")
    attend.set_title("(A.2): attention; dashed: its bound")
    for name in dataset.variant.values.tolist():
        # An error of exactly 0 is drawn at the bottom.
        values = np.maximum(dataset.recurrent_error.sel(variant=name), 1e-17)
        recur.plot(dataset.N, values, marker="o", label=name)
    recur.set(xscale="log", yscale="log", xlabel=r"length $N$", ylabel="error of a token")
    recur.set_title("Proposition 28: recurrent network")
    for name in dataset.balance.values.tolist():
        norms = dataset.interpolator_norm.sel(balance=name)
        label = {"printed": "as printed", "optimal": "balanced optimally"}[name]
        (line,) = through.plot(dataset.n, norms.median("draw"), marker="o", label=label)
        low, high = norms.quantile(0.1, "draw"), norms.quantile(0.9, "draw")
        through.fill_between(dataset.n, low, high, color=line.get_color(), alpha=0.2)
    through.set(xscale="log", yscale="log", xlabel=r"points $n$", ylabel=r"squared norm $/\, n^3$")
    through.set_title("Lemma 36: interpolator")
    for q in dataset.q.values.tolist():
        risk = dataset.two_head_risk.sel(q=q)
        (line,) = two.plot(dataset.tilt, risk, "o-", label=f"$q = {q}$")
        two.axhline(1 - 2 / q, linestyle="--", color=line.get_color())
    two.set(xscale="log", yscale="log", xlabel=r"tilt $\beta$", ylabel="risk / variance")
    two.set_title("Two heads, $d = 1$; dashed: the lower bound $1 - H/q$")
    promised = dataset.code_N / np.log1p(dataset.code_width)
    for label, values, dashes in (
        (r"$L^2 \|U\|_{op}^2$", dataset.code_operator, "o-"),
        (r"$L^2 \|U\|_F^2$", dataset.code_frobenius, "s-"),
        (r"$N / \log(1 + d_h)$, up to a constant", promised, "--"),
    ):
        code.plot(dataset.code_N, values, dashes, label=label)
    code.set(yscale="log", xlabel=r"length $N$", ylabel="squared norm")
    code.set_ylim(top=100 * float(dataset.code_frobenius.max()))  # room for the legend
    code.set_title("Proposition 8: random-code network")
    for axis, grid in ((recur, dataset.N), (through, dataset.n), (code, dataset.code_N)):
        grid_ticks(axis.xaxis, grid.values)
    for axis in (attend, recur, through, two, code):
        axis.legend()
    fig.suptitle(dataset.attrs.get("settings", ""), fontsize=8)
    return fig


EXPERIMENT = Experiment(
    id="qstr.constructions",
    label="(A.2), Propositions 8, 28, Lemma 36, Theorem 1",
    title="the explicit weights against the claims about these weights",
    config=Constructions(),
    presets={"quick": Constructions()},
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
)
"""The experiment that draws all constructions in one figure."""
