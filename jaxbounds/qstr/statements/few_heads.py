"""Statements about Theorem 1's number of heads: tasks that fewer than q heads can solve."""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
    stacked,
)
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr import data, few_heads, heads, two_heads
from jaxbounds.qstr import encodings as encodings_module
from jaxbounds.qstr.encodings import greedy_signs
from jaxbounds.qstr.statements.common import cases_on_host, encodings, gauss_hermite, signs
from jaxbounds.qstr.transformer import attention


def _late_prompts(size: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    N, q, d = size["N"], size["q"], size["d"]
    grid, mass = gauss_hermite(q * d, nodes=8 if q * d <= 3 else 3)
    x = jnp.zeros((len(grid), N, d)).at[:, :q].set(grid.reshape(-1, q, d))
    t = jnp.broadcast_to(jnp.arange(q, dtype=jnp.int32), (N, q))
    return x, t, jnp.asarray(mass)


def _selective(key: Array, size: Size) -> Instance:
    drawn = jax.random.uniform(key, minval=44.0, maxval=46.0)
    return {"selectivity": drawn, "signs": jnp.asarray(signs(size["N"], size["de"]))}


def _enough_heads(i: Instance, size: Size) -> Sides:
    N, q, d = size["N"], size["q"], size["d"]
    omega = encodings(i["signs"])
    direction, margin = few_heads.least_direction(omega, q)
    x, t, mass = _late_prompts(size)
    tilt = {"beta": i["beta"], "selectivity": i["selectivity"] / margin}
    read = lambda x: few_heads.revealed_tokens(x, t, omega, direction, **tilt)
    tokens = jax.vmap(read)(x)
    label = lambda x: (jnp.sum(x**2, axis=(1, 2)) - q * d) / math.sqrt(q * d)
    missed = mass * (label(tokens) - label(x[:, :q])) ** 2
    risk = jnp.sum(missed)  # risk (2.1): all positions share t, label, prediction
    error = jnp.max(jnp.abs(tokens - x[:, :q]))
    bound = heads.decoupled_head_bound(N=N, q=q, H=d).value
    return Sides.pairs(
        {
            "derived q > d": (bound, risk),
            "derived every token": (error, 1e-9),
            "control": (error, 3e-13),
        }
    )


def _meets_theorem_1(i: Instance, size: Size) -> dict[str, ArrayLike]:
    N, q, d, de = (size[name] for name in ("N", "q", "d", "de"))
    omega = encodings(jnp.asarray(i["signs"]))
    orders = (1.0, 1.5, 2.0, 4.0, 16.0, 64.0)
    moments = [data.gaussian_moment_ratio(d, r) for r in orders]
    deviation = math.sqrt(2 * (q * d) / (q * d))  # Var chi^2_k = 2 k, y = (chi^2_k - k) / sqrt(k)
    r_x = math.sqrt(3 * math.e * d * math.log(N))
    slope = 2 * math.sqrt(q) * r_x / math.sqrt(q * d)
    drawn = np.random.default_rng(0).standard_normal((2, 200, q, d))
    u, v = (r_x * drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)).reshape(2, 200, q * d)
    u = u * np.linspace(0.0, 1.0, 200)[:, None]
    moved = np.abs(np.sum(u**2, axis=1) - np.sum(v**2, axis=1)) / math.sqrt(q * d)
    return {
        "q < N (Section 2)": q < N,
        "y_i = g(x_t) with t_i in [N]^q (Definition 2), the label and law of Proposition 3": (
            q <= N // 2 - 1 and N % 2 == 0
        ),
        "(E|x|^r)^(1/r) <= sqrt(C_x d r), C_x = 1 (Assumption 1)": max(moments) <= 1,
        "(E|y|^r)^(1/r) <= sqrt(C_y r^s), s = 2, C_y = 2 (Assumption 1): |y|_r <= (r - 1) |y|_2": (
            all(deviation * max(r - 1, 1.0) <= math.sqrt(2) * r for r in orders)
        ),
        "g within sqrt(eps_2NN) of a two-layer network on the ball (Assumption 2): a quadratic "
        "form is Lipschitz there": bool(np.all(moved <= slope * np.linalg.norm(u - v, axis=1))),
        "|<w_i, w_j>| <= 1/2, |w_i| = 1 (Assumption 3)": encodings_module.satisfies_assumption_3(
            omega
        ),
        "d_e = Theta(log N), vertices of the hypercube (after Assumption 3)": de <= 6 * math.log(N),
        "fewer heads than q (Theorem 1): H = d": d < q,
    }


ENOUGH_HEADS = Statement(
    id="qstr.thm1.heads",
    label="Theorem 1 (heads)",
    formula="H = d < q heads have risk >= 1 - H/q for the t = (1, .., q) of the proofs of "
    "Propositions 3 and 21 (any W_QK)",
    tex=r"t_i = (1, \ldots, q) \; \forall i \implies \inf_{\Theta : H = d < q} "
    r"R^{\mathrm{TR}}(\Theta) \ge 1 - \frac{H}{q}",
    kind="inequality",
    judges=(
        heads.decoupled_head_bound,
        few_heads.revealing_weights,
        few_heads.revealed_tokens,
        few_heads.decode_tokens,
        attention,
    ),
    over={"beta": Box(0.3, 1)},
    sample=_selective,
    evaluate=_enough_heads,
    project=lambda i, size: {**i, "selectivity": jnp.clip(i["selectivity"], 44.0, 46.0)},
    hypotheses=lambda i, size: {
        "encodings separable": few_heads.least_direction(encodings(i["signs"]), size["q"])[1] > 0
    },
    forms=(
        Form(
            name="derived q > d",
            erratum="E1",
            reading="for every q and d",
            counterexample=Counterexample(
                instance={"beta": 0.5, "selectivity": 6.0, "signs": signs(8, 12).tolist()},
                size={"N": 8, "q": 3, "d": 2, "de": 12},
                ratio=5836.262042776946,
                meets=_meets_theorem_1,
            ),
            note=(
                "This version of the claim reads 'cannot learn qSTR when H < q' for every q and "
                "d. The bound is the one that Proposition 21 proves for H < q and a "
                "block-diagonal W_QK. If W_QK may be any matrix, d heads reveal all q tokens, so "
                "their risk is zero up to rounding. The check approximates the expectation by "
                "Gauss-Hermite quadrature over the q tokens, and uses the paper's softmax "
                "attention. For d >= q the reading is true, since qstr.prop3 (sharpened) is "
                "positive for H < min(q, d). Both propositions claim the existence of some law "
                "of t, and the check refutes the reading for one law only."
            ),
        ),
        Form(
            name="derived every token",
            hypotheses=lambda i, size: {
                "44 <= selectivity <= 46: the softmax is as sharp as float64 tells": (
                    (i["selectivity"] >= 44.0) & (i["selectivity"] <= 46.0)
                )
            },
            note="The d heads decode each coordinate of each of the q tokens. The d heads "
            "therefore learn any link, and not only the link of Proposition 3.",
        ),
    ),
    control="each token up to 3e-13",
    sizes=({"N": 8, "q": 3, "d": 1, "de": 12}, {"N": 8, "q": 3, "d": 2, "de": 12}),
    search="random",
    budget=Budget(samples=6, restarts=2, steps=6, batch=6),
    assumptions="all positions share one fixed t with distinct entries, as in the proofs of "
    "Propositions 3 and 21; the q encodings are independent (q <= de) and separable from the "
    "other encodings; the check decodes by logarithms and a pseudo-inverse in place of the "
    "paper's readout a^T sigma(W h + b), a two-layer network; as its width grows, the readout "
    "comes as near to this decoding in mean square as one likes; risk (2.1) is the average over "
    "all N positions",
    source="Abstract, Theorem 1 (informal); Section 3.1, Appendix A.2",
)


def _drawn_signs(size: Size) -> Instance:
    drawn = [greedy_signs(np.random.default_rng(k), size["N"], size["de"]) for k in range(4)]
    pairs = itertools.product((1, 2, 3), drawn)
    return stacked({"q": q, "signs": own} for q, own in pairs)


@functools.partial(jax.jit, static_argnums=1)
def _shortest(omega: Array, q: int) -> tuple[Array, Array]:
    return few_heads.least_direction(omega, q)


def _direction(i: Instance, size: Size) -> Sides:
    q, omega = int(i["q"]), np.asarray(jax.jit(encodings)(i["signs"]))
    found = {
        "derived": two_heads.separating_direction(omega, q),
        "derived shortest": jax.device_get(_shortest(omega, q)),
    }
    pairs = {}
    for name, (v, margin) in found.items():
        along = omega @ np.asarray(v)
        got = np.append(along[:q], along[q:].max())
        pairs[name] = got, np.append(np.ones(q), 1 - margin)
    return Sides.pairs({**pairs, "control": (pairs["derived"][0], np.ones(q + 1))})


DIRECTION = cases_on_host(
    id="qstr.thm1.direction",
    label="Theorem 1 (the direction that selects)",
    formula="<v, w_j> = 1 for j <= q, at most 1 - margin beyond",
    tex=r"\langle v, \omega_j \rangle = 1 \; (j \le q), \quad "
    r"\max_{j > q} \langle v, \omega_j \rangle = 1 - \text{margin}",
    kind="construction",
    judges=(two_heads.separating_direction, few_heads.least_direction),
    cases=_drawn_signs,
    evaluate=_direction,
    forms=(
        Form(
            name="derived",
            note="A linear program finds a vector v with <v, w_j> = 1 for j <= q. The margin "
            "between v and the other encodings is exactly the margin that the program reports.",
        ),
        Form(
            name="derived shortest",
            note="A pseudo-inverse finds the shortest v with <v, w_j> = 1 for j <= q.",
        ),
    ),
    control="margin zero",
    sizes=({"N": 8, "de": 12},),
    tolerance=1e-8,
    source="library: E1 with coherent encodings",
)


def _two_heads(i: Instance, size: Size) -> Sides:
    N, q = size["N"], size["q"]
    x, t, mass = _late_prompts({**size, "d": 1})
    omega = jnp.eye(N)
    select = jnp.sum(omega[:q], axis=0)
    every = jnp.broadcast_to(t, (len(x), N, q))
    tilt = {"beta": i["beta"], "selectivity": 60.0}
    got = two_heads.two_head_prediction(x, every, omega, select, **tilt)[:, -1]
    y = (jnp.sum(x[:, :, 0] ** 2, axis=1) - q) / math.sqrt(q)
    risk = jnp.sum(mass * (got - y) ** 2)
    # The third derivative of a tilted mean is a fourth cumulant, at most 2 range^4 in absolute
    # value.
    spread = jnp.max(x[:, :q, 0], axis=1) - jnp.min(x[:, :q, 0], axis=1)
    bound = jnp.sum(mass * (math.sqrt(q) * i["beta"] ** 2 * spread**4 / 3) ** 2)
    return Sides(lhs=risk, rhs={"derived": bound, "control": bound / 2000}, error=1e-18)


TWO_HEADS = Statement(
    id="qstr.thm1.two",
    label="Theorem 1 (two heads, polynomial readout)",
    formula="two heads tilted by +-beta x have risk <= E (sqrt(q) beta^2 range^4 / 3)^2, d = 1",
    tex=r"\mathbb{E}(\hat y - y)^2 \le "
    r"\mathbb{E}\left(\frac{\sqrt{q}\, \beta^2 (\max_j x_j - \min_j x_j)^4}{3}\right)^2",
    kind="inequality",
    judges=(
        two_heads.two_head_prediction,
        two_heads.two_head_weights,
        two_heads.decode_sum_of_squares,
    ),
    over={"beta": Box(0.01, 0.5)},
    cases=lambda size: {"beta": np.geomspace(0.01, 0.5, 10)},
    evaluate=_two_heads,
    forms=(
        Form(
            name="derived",
            note="The two heads tilt the logits by +beta x and -beta x. Half the difference of the "
            "two weighted means, divided by beta, is the variance up to beta^2/6 times a fourth "
            "cumulant. Half the sum of these means is the mean up to beta^2/2 times a third "
            "cumulant.",
        ),
    ),
    control="the bound / 2000",
    sizes=({"N": 8, "q": 3},),
    budget=Budget(samples=10, restarts=2, steps=10, batch=10),
    source="library: a readout without logarithms for E1",
)


def _averaging(i: Instance, size: Size) -> Sides:
    x, t, alpha, N, q, d = i["x"], i["t"], i["alpha"], size["N"], size["q"], size["d"]
    z = data.encode(x, t, jnp.eye(N))
    W = few_heads.averaging_weights(alpha, q=q, d=d, de=N)
    gap = attention(z, W)[:, :d] - jnp.mean(x[t], axis=1)
    bound = few_heads.averaging_error_bound(x, alpha, q=q)
    error = jnp.max(vector_norm(gap))
    shorter = jnp.exp(-alpha * (d / (q - 1) - d / q))
    rounding = 1e-14 * jnp.max(jnp.abs(x))
    return Sides(lhs=error, rhs={"derived": bound, "control": bound * shorter}, error=rounding)


AVERAGING = Statement(
    id="qstr.prop3.averaging",
    label="Remark after Proposition 3 (averaging)",
    formula="one head averages the q tokens within 2 max|x| (N - q)/q exp(-alpha d/q)",
    tex=r"\left\| f_{\mathrm{Attn}}(p; W)_i - \frac{1}{q} \sum_{l=1}^q x_{t_{il}} \right\|_2 \le "
    r"2 \max_j \|x_j\|_2 \frac{N - q}{q} e^{-\alpha d / q}",
    kind="inequality",
    judges=(few_heads.averaging_weights, few_heads.averaging_error_bound, attention),
    over={"x": Reals(("N", "d")), "alpha": Box(0.5, 9)},
    sample=lambda key, size: {
        "t": data.sample_positions(key, (), size["N"], size["q"], distinct=True)
    },
    evaluate=_averaging,
    forms=(
        Form(
            name="derived",
            note="A single head computes an average of the q tokens, so the bounds of "
            "Propositions 3 and 21 need a link that is not linear.",
        ),
    ),
    control="q - 1 in place of q in the exponent",
    sizes=({"N": 6, "q": 3, "d": 2},),
    budget=Budget(samples=128, restarts=2, steps=30),
    assumptions="orthonormal encodings, the q positions distinct",
    source="Remark after Proposition 3, Section 3.1",
)

STATEMENTS = (ENOUGH_HEADS, DIRECTION, TWO_HEADS)
REMARKS = (AVERAGING,)
