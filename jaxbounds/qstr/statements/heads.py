"""Section 3.1 and Appendix A.2: how many heads are needed."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.qstr import data, heads, two_heads
from jaxbounds.qstr.statements.common import CASES_ON_HOST, encodings, gauss_hermite, signs
from jaxbounds.qstr.transformer import attention
from jaxbounds.statements import Budget, Counterexample, Form, Sides, Statement

RANDOM_WEIGHTS: dict[str, Any] = {
    "kind": "inequality",
    "search": "none",
    "budget": Budget(samples=64),
    "assumptions": "tokens before N/2 normal, the others 0; the risk of the best readout, exactly",
}


def _heads_sample(key, size):
    N, q, d, H, de = (size[name] for name in ("N", "q", "d", "H", "de"))
    key_w, key_x = jax.random.split(key)
    De = d + (q + 1) * de
    prompts = heads.lower_bound_prompts(key_x, shape=(), N=N, q=q, d=d)
    scale = 0.3 / np.sqrt(d)  # keeps every attention weight well above rounding
    return {
        "W": scale * jax.random.normal(key_w, (H, De, De)),
        "x": prompts.x,
        "t": prompts.t,
        "signs": jnp.asarray(signs(N, de)),
    }


def _proposition_3(i, size):
    q, d = size["q"], size["d"]
    z = data.encode(i["x"], i["t"], encodings(i["signs"]))
    V = heads.revealed_images(i["W"], z[-1], z[:q], d=d)
    risk = heads.oracle_risk(V, N=size["N"])
    few = {name: size[name] for name in ("N", "q", "H")}
    return Sides.pairs(
        {
            "printed": (heads.coupled_head_bound(**few, d=d).value, risk),
            "sharpened": (heads.sharpened_head_bound(**few, d=d, exact=True).value, risk),
            "control": (heads.decoupled_head_bound(**few, exact=True).value, risk),
        }
    )


PROPOSITION_3 = Statement(
    id="qstr.prop3",
    label="Proposition 3",
    formula="1 - H (q + d)/(q d) <= least risk of H heads",
    judges=(
        heads.coupled_head_bound,
        heads.sharpened_head_bound,
        heads.oracle_risk,
        heads.hidden_variance,
    ),
    sample=_heads_sample,
    evaluate=_proposition_3,
    forms=(
        Form(name="printed", note="H (q + d) linear images of (x_1; ..; x_q) are revealed."),
        Form(
            name="sharpened",
            equality="W_QK in general position",
            note="(1 + 2/N)(1 - H/q)(1 - H/d). The logits reveal S x R^q, with S the span of the "
            "H slopes. Given them, so are the H attention vectors, whose span is A: the outputs "
            "reveal R^d x A, of which S x A is known already. Of the (x_1; ..; x_q) the component "
            "in S' x A', the complements, of dimension at least (d - H)(q - H), stays standard "
            "normal and adds 2 (d - H)(q - H)/(q d) to the label's variance; N/2 + 1 positions "
            "count. Not vacuous for any H < min(q, d).",
        ),
    ),
    control="the logits reveal nothing: (1 + 2/N)(1 - H/q)",
    sizes=(
        {"N": 16, "q": 4, "d": 6, "H": 1, "de": 16},
        {"N": 16, "q": 4, "d": 6, "H": 2, "de": 16},
    ),
    source="Proposition 3, Appendix A.2",
    **RANDOM_WEIGHTS,
)


def _proposition_21(i, size):
    d, N = size["d"], size["N"]
    W = i["W"].at[:, :d, d:].set(0.0).at[:, d:, :d].set(0.0)
    z = data.encode(i["x"], i["t"], encodings(i["signs"]))
    slopes = jnp.einsum("d,hde->he", z[-1], W)
    A = jax.nn.softmax(slopes @ z[: size["q"]].T, axis=-1)
    risk = heads.oracle_risk(A, N=N)
    bound = lambda exact: heads.decoupled_head_bound(N=N, q=size["q"], H=size["H"], exact=exact)
    return Sides.pairs(
        {
            "printed": (bound(False).value, risk),
            "sharpened": (bound(True).value, risk),
            "control": (1 + 2 / N, risk),
        }
    )


PROPOSITION_21 = Statement(
    id="qstr.prop21",
    label="Proposition 21",
    formula="1 - H/q <= least risk of H heads with block-diagonal W_QK, d = 1",
    judges=(heads.decoupled_head_bound, heads.oracle_risk),
    sample=_heads_sample,
    evaluate=_proposition_21,
    forms=(
        Form(name="printed", note="The attention vectors do not depend on x: H images."),
        Form(
            name="sharpened",
            equality="W_QK in general position",
            note="(1 + 2/N)(1 - H/q): N/2 + 1 of the N positions count.",
        ),
    ),
    control="the heads reveal nothing: 1 + 2/N",
    sizes=({"N": 16, "q": 4, "d": 1, "H": 3, "de": 16},),
    source="Proposition 21, Appendix A.2",
    **RANDOM_WEIGHTS,
)


def _enough_heads(i, size):
    N, q = size["N"], size["q"]
    omega, beta = jnp.eye(N), i["beta"]
    grid, mass = (jnp.asarray(v) for v in gauss_hermite(q, nodes=8))
    x = jnp.zeros((len(grid), N, 1)).at[:, :q, 0].set(grid)
    t = jnp.broadcast_to(jnp.arange(q, dtype=jnp.int32), (len(grid), N, q))
    select = jnp.sum(omega[:q], axis=0)
    got = two_heads.two_head_prediction(x, t, omega, select, beta=beta, selectivity=60.0)[:, -1]
    y = (jnp.sum(x[:, :, 0] ** 2, axis=1) - q) / math.sqrt(q)
    risk = (1 + 2 / N) / 2 * jnp.sum(mass * (got - y) ** 2)
    bound = heads.decoupled_head_bound(N=N, q=q, H=2).value
    return Sides(lhs={"printed": bound, "control": 1.0}, rhs={"printed": risk, "control": risk})


ENOUGH_HEADS = Statement(
    id="qstr.thm1.heads",
    label="Theorem 1 and Section 3.1 (heads)",
    formula="H = 2 < q heads have risk >= 1 - H/q (d = 1, any W_QK)",
    kind="inequality",
    judges=(
        heads.decoupled_head_bound,
        two_heads.two_head_prediction,
        two_heads.two_head_weights,
        two_heads.decode_sum_of_squares,
        attention,
    ),
    cases=lambda size: {"beta": np.array([0.1, 0.01, 0.001])},
    evaluate=_enough_heads,
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E1",
            counterexample=Counterexample(
                instance={"beta": 0.01}, size={"N": 8, "q": 3}, ratio=40013333.13511877
            ),
            note="Two heads whose logits tilt by +-beta x_j reveal mean and variance of the "
            "relevant tokens. Exact expectation by Gauss-Hermite quadrature over the q tokens; "
            "orthonormal encodings, a full W_QK, the paper's own softmax attention. What is left, "
            "(1 - H/q)(1 - H/d) for H < min(q, d), claims nothing at d = 1: qstr.prop3.",
        ),
    ),
    control="risk at least 1",
    sizes=({"N": 8, "q": 3},),
    search="none",
    source="Abstract, Theorem 1, Section 3.1",
)


def _direction(i, size):
    q, omega = int(i["q"]), encodings(jnp.asarray(signs(size["N"], size["de"])))
    v, margin = two_heads.separating_direction(omega, q)
    along = np.asarray(omega @ v)
    got = np.append(along[:q], along[q:].max())
    want = np.append(np.ones(q), 1 - margin)
    return Sides(lhs=got, rhs={"derived": want, "control": np.ones(q + 1)})


DIRECTION = Statement(
    id="qstr.thm1.direction",
    label="Section 3.1 (two heads' direction)",
    formula="<v, w_j> = 1 for j <= q, at most 1 - margin beyond",
    kind="construction",
    judges=(two_heads.separating_direction,),
    cases=lambda size: {"q": np.array([1, 2, 3])},
    evaluate=_direction,
    forms=(Form(name="derived", note="A linear program, whose margin is attained."),),
    control="margin zero",
    sizes=({"N": 8, "de": 12},),
    tolerance=1e-8,
    source="library: the two-head counterexample of E1 with coherent encodings",
    **CASES_ON_HOST,
)


def _tilts(i, size):
    q, d, beta = size["q"], size["d"], i["beta"]
    label = (jnp.sum(i["x"] ** 2) - q * d) / math.sqrt(q * d)
    error = jnp.abs(two_heads.tilted_heads(i["x"], beta=beta) - label)
    bound = two_heads.tilt_error_bound(i["x"], beta=beta)
    return Sides(lhs=error, rhs={"derived": bound, "control": bound / 100}, error=1e-12 / beta)


TILTS = Statement(
    id="qstr.thm1.tilted",
    label="Section 3.1 (d + 1 heads)",
    formula="|d + 1 tilted heads - label| <= beta sqrt(q/d) sum_k range_k^3 / (12 sqrt 3)",
    kind="inequality",
    judges=(two_heads.tilted_heads, two_heads.tilt_error_bound),
    sample=lambda key, size: {
        "x": jax.random.normal(key, (size["q"], size["d"])),
        "beta": jnp.asarray(0.01),
    },
    evaluate=_tilts,
    forms=(
        Form(
            name="derived",
            note="A tilted mean's second derivative in beta is a third central moment, at most "
            "range^3 / (6 sqrt 3).",
        ),
    ),
    control="the bound / 100",
    sizes=({"q": 5, "d": 2},),
    search="none",
    budget=Budget(samples=64),
    source="library: d + 1 heads are enough in R^d (E1)",
)

STATEMENTS = (ENOUGH_HEADS, DIRECTION, TILTS, PROPOSITION_3)
APPENDIX = (PROPOSITION_21,)
