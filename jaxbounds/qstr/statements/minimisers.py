"""Statements about Theorem 9 as a whole: computed networks of least norm, and their risk.

Prompt i has one labelled position j^(i). A memorising network can compute a prompt's label from the
token at the labelled position alone.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Sphere
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr import interpolator, memorisers, rnn_bounds
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.relu_networks import evaluate

RISK = 0.1
"""The risk c_3 that the learner of Theorem 9 has at least, in units of the label's variance. A
larger value makes the claim stronger.
"""


@functools.partial(jax.jit, static_argnums=1)
def _training_set(key: Array, size: Size) -> Instance:
    normal, uniform = jax.random.split(key)
    n, d = size["n"], size["d"]
    tokens = jax.random.normal(normal, (2 * n + 2, d))
    x, other, (u, v) = tokens[:n], tokens[n : 2 * n], tokens[2 * n :]
    u, v = u / vector_norm(u), v / vector_norm(v)
    j, t, fresh = jax.random.randint(uniform, (3, n), 0, size["N"])
    y = jnp.where((j == t)[:, None], x, other) @ u
    return {"x": x, "y": y, "u": u, "v": v, "fresh": fresh[0]}


def _minimiser(i: Instance, units: int = 32, rounds: int = 3) -> TwoLayer:
    return memorisers.least_variation(i["x"], i["y"], units=units, rounds=rounds).network


@functools.partial(jax.jit, static_argnames="depth")
def _printed(i: Instance, depth: int) -> tuple[TwoLayer, ArrayLike]:
    network = interpolator.interpolate(i["x"] @ i["v"], i["y"])
    layers = interpolator.embed_in_rnn(network, i["v"], depth)
    total = sum(jnp.sum(jnp.asarray(leaf) ** 2) for leaf in jax.tree.leaves(layers))
    units = TwoLayer(network.a, jnp.outer(network.w, i["v"]), network.b)
    return units, (total / depth) ** depth


def _allowed(network: TwoLayer, depth: int) -> float:
    return memorisers.memorising_product(float(memorisers.variation(network)), depth)


@functools.partial(jax.jit, static_argnames=("width", "depth"))
def _in_the_family(network: TwoLayer, i: Instance, width: int, depth: int) -> Array:
    """Return the largest L^2 |U|_F^2 of networks with `width` units and the norm of `network`.

    The result is infinite if the network does not pass through the samples.
    """
    more = width - len(network.a)
    a, W, b = (jnp.pad(part, [(0, more)] + [(0, 0)] * (part.ndim - 1)) for part in network)
    layers = memorisers.deep_readout(TwoLayer(a, W, b), depth)
    missed = jnp.max(jnp.abs(evaluate(layers, i["x"])[..., 0] - i["y"]))
    total = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(layers))
    return jnp.where(missed < 1e-6, (total / depth) ** depth, jnp.inf)


def _theorem(i: Instance, size: Size) -> Sides:
    network, depth = _minimiser(i, units=96, rounds=8), size["depth"]
    product = _allowed(network, depth)
    least = lambda product, N=size["N"]: rnn_bounds.unlearned_risk(product, N=N)
    widths = size["n"], 3 * size["n"]
    family = min(float(_in_the_family(network, dict(i), width, depth)) for width in widths)
    return Sides(
        lhs=RISK,
        rhs={
            "printed families": least(family),
            "sharpened": least(product),
            "control": least(product, size["N"] // 100),
        },
    )


THEOREM_9 = Statement(
    id="qstr.thm9",
    label="Theorem 9",
    formula="P(every min-norm eps-ERM has risk >= 1/10) >= 1/2, for every eps > 0 and d_h >= n",
    tex=r"\mathbb{P}\left(\tfrac1N \mathbb{E}\left[\|\hat y_{\mathrm{RNN}}(p; "
    r"\hat\Theta_\varepsilon) - y\|_2^2\right] \ge \tfrac{1}{10}\right) \ge \tfrac12",
    kind="probability",
    level=0.5,
    host=True,
    judges=(
        memorisers.least_variation,
        memorisers.variation,
        memorisers.memorising_product,
        memorisers.deep_readout,
        rnn_bounds.unlearned_risk,
    ),
    sample=_training_set,
    evaluate=_theorem,
    forms=(
        Form(
            name="printed families",
            cites="the remark after Theorem 9: 'possible to remove the subexponential bound on "
            "|vec(Theta_RNN)| by allowing the learner to search over families of RNN architectures "
            "with arbitrary d_h <= e^{N^c} rather than fixing a single d_h'",
            note="This version of the claim needs no bound on |vec Theta|, and holds for every "
            "width d_h, even above e^{N^c}. The check builds networks of n or more units that fit "
            "all samples and belong to the learner's family. So the least norm in the family is at "
            "most the norm of these networks, whatever d_h is. The bound `unlearned_risk` does not "
            "depend on d_h. Theorem 9 needs its bounds on d_h only if d_h < n, because then "
            "perhaps no network of small norm fits the samples.",
        ),
        Form(
            name="sharpened",
            note="Some network of n units has |vec Theta|^2 <= L_y (2^{L_y - 2} V^2)^{1/L_y} and "
            "fits all samples. Linear programs find a network of variation V, so this bound is an "
            "upper estimate of the least |vec Theta|^2. A min-norm eps-ERM has no larger norm, so "
            "the AM-GM inequality bounds its L^2 |U|_F^2 by 2^{L_y - 2} V^2. Every RNN within this "
            "bound on L^2 |U|_F^2 has at least the risk `unlearned_risk`.",
        ),
    ),
    control="prompts of N/100 tokens",
    sizes=({"N": 8192, "n": 27, "d": 10, "depth": 2}, {"N": 131072, "n": 12, "d": 3, "depth": 3}),
    budget=Budget(samples=48),
    assumptions="c_3 = 1/10, c_2 = 1/2; any transitions, any |h| <= r_h = 1, f_y of L_y ReLU layers"
    " on x_j, a bias and any encoding; d_h >= n units (for n <= d two are enough, and no condition "
    "on |vec Theta|). Which minimiser the learner returns is not computed: all of them fail",
    source="Theorem 9",
)


@functools.partial(jax.jit, static_argnames="N")
def _risks(network: TwoLayer, fresh: Array, u: Array, N: int) -> memorisers.Draws:
    return memorisers.stateless_risk(network(fresh[:, None, :]), fresh @ u, N=N)


def _computed(i: Instance, size: Size) -> Sides:
    N, depth = size["N"], size["depth"]
    fresh = np.random.default_rng(int(i["fresh"])).standard_normal((1000, size["d"]))
    printed, allowed = jax.device_get(_printed(i, depth))
    best, found, error = _minimiser(i), {}, {}
    for name, network, product in (
        ("derived", printed, allowed),
        ("sharpened", best, _allowed(best, depth)),
    ):
        risk = np.asarray(_risks(network, fresh, i["u"], N))
        found[name] = 1 - risk.mean(), 1 - rnn_bounds.unlearned_risk(float(product), N=N)
        error[name] = 4 * risk.std() / math.sqrt(len(risk))
    found["control"] = 1.0, found["sharpened"][1]
    return Sides.pairs(found, error={**error, "control": 0.0}, trivial=1.0)


COMPUTED = Statement(
    id="qstr.thm9.minimiser",
    label="Theorem 9 (a computed minimiser)",
    formula="1 - risk of the computed least-norm network <= 1 - the least risk at its norm, N = "
    "8192, n = 12, d = 10",
    tex=r"1 - R(\hat\Theta) \le 1 - R_{\min}(\|\mathrm{vec}(\hat\Theta)\|_2)",
    kind="inequality",
    host=True,
    search="random",
    judges=(
        memorisers.least_variation,
        memorisers.stateless_risk,
        rnn_bounds.unlearned_risk,
        interpolator.embed_in_rnn,
    ),
    over={"u": Sphere(1, "d"), "v": Sphere(1, "d")},
    sample=_training_set,
    hypotheses=lambda i, size: {
        "projections v^T x apart": np.min(np.diff(np.sort(i["x"] @ i["v"]))) > 1e-6
    },
    evaluate=_computed,
    forms=(
        Form(
            name="derived",
            expected="vacuous",
            note="This version of the claim combines the paper's steps. Lemma 38 interpolates the "
            "samples along one direction. The RNN that contains this interpolator has the squared "
            "norm 2|a|^2 + |w|^2 + |b|^2 + 2 L_y - 4. The bound is informative only for N of order "
            "n^9 or larger, as qstr.thm9.length shows.",
        ),
        Form(
            name="sharpened",
            note="If linear programs find the network and all its layers have equal norms, the "
            "bound on the risk is positive for N of order n^6, or already for smaller N.",
        ),
    ),
    control="risk 0",
    sizes=({"N": 8192, "n": 12, "d": 10, "depth": 3},),
    budget=Budget(samples=10, restarts=2, steps=6),
    assumptions="L_y = 3; the network does not use its states, so that its own risk is at least "
    "1 - 1/N^2; that other minimisers of that norm fail too is qstr.thm9",
    source="Theorem 9",
)


def _lengths(i: Instance, size: Size) -> Sides:
    n, d, depth = int(i["n"]), size["d"], size["depth"]
    rng = np.random.default_rng([n, int(i["seed"])])
    data = {"x": rng.standard_normal((n, d)), "y": rng.standard_normal(n)}
    data["v"] = (v := rng.standard_normal(d)) / np.linalg.norm(v)
    printed, allowed = jax.device_get(_printed(data, depth))
    needed = lambda product: float(rnn_bounds.shortest_length(float(product), risk=RISK))
    power = lambda depth: float(n) ** (1 / rnn_bounds.sample_exponent(depth=depth))
    computed = needed(_allowed(_minimiser(data), depth))
    return Sides.pairs(
        {
            "derived": (needed(allowed), power(depth)),
            "sharpened": (needed(_allowed(printed, depth)), power(2)),
            "sharpened computed": (computed, power(2)),
            "control": (computed, math.sqrt(n)),
        }
    )


LENGTHS = Statement(
    id="qstr.thm9.length",
    label="Theorem 9 (lengths)",
    formula="n samples are too few from N = O(n^{3 L_y}) on, or n^6 with balanced layers",
    tex=r"n \le O(N^{c_1}), \quad c_1 = \frac{1}{3 L_y}, \; \text{or } \frac16",
    kind="rate",
    host=True,
    judges=(
        rnn_bounds.shortest_length,
        rnn_bounds.sample_exponent,
        memorisers.least_variation,
        memorisers.memorising_product,
    ),
    cases=lambda size: {"n": np.repeat([4, 16], 16), "seed": np.tile(np.arange(16), 2)},
    evaluate=_lengths,
    forms=(
        Form(
            name="derived",
            sense="at most",
            exponent=(0.4, 1.0),
            note=(
                "At L_y = 3 the bound that the norm of the paper's network gives becomes "
                "informative only at N of order n^9."
            ),
        ),
        Form(
            name="sharpened",
            sense="at most",
            exponent=(0.4, 1.0),
            note=(
                "If the layers of the paper's network have equal norms, the bound on the risk "
                "becomes positive at N of order n^6, at every depth."
            ),
        ),
        Form(
            name="sharpened computed",
            sense="at most",
            exponent=(0.3, 0.7),
            note=(
                "At d = 2, linear programs find the networks. Their norms prove that n samples are "
                "too few at lengths N from about n^4 on, for n from 4 to 16."
            ),
        ),
    ),
    control="the root of n",
    sizes=({"d": 2, "depth": 3},),
    assumptions="risk 1/10, d = 2, L_y = 3; labels of other tokens than x_j",
    source="Theorem 9",
)

STATEMENTS = (THEOREM_9, COMPUTED, LENGTHS)
