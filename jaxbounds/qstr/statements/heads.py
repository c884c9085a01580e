"""Statements of Section 3.1 and Appendix A.2 about the number of heads that a task needs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import data, heads
from jaxbounds.qstr.statements.common import encodings, signs


def _heads_sample(key: Array, size: Size) -> dict[str, Array]:
    N, q, d, H, de = (size[name] for name in ("N", "q", "d", "H", "de"))
    key_w, key_x, key_h = jax.random.split(key, 3)
    De = d + (q + 1) * de
    prompts = heads.lower_bound_prompts(key_x, shape=(), N=N, q=q, d=d)
    scale = 0.3 / np.sqrt(d)  # this scale keeps every attention weight far above rounding
    W = scale * jax.random.normal(key_w, (H, De, De))
    different = jax.random.randint(key_h, (), 1, H + 1)  # the other heads repeat the last one
    return {
        "W": W[jnp.minimum(jnp.arange(H), different - 1)],
        "x": prompts.x,
        "t": prompts.t,
        "signs": jnp.asarray(signs(N, de)),
    }


def _blind_heads(key: Array, size: Size) -> Instance:
    drawn = _heads_sample(key, size)
    W = jnp.broadcast_to(drawn["W"][:1], drawn["W"].shape)
    return {**drawn, "W": W.at[:, :, : size["d"]].set(0.0)}


def _project(i: Instance, size: Size) -> Instance:
    varies = jnp.arange(size["N"]) < size["N"] // 2 - 1
    x = jnp.where(jnp.broadcast_to(varies[:, None], i["x"].shape), i["x"], jnp.zeros_like(i["x"]))
    return {**i, "x": x}


random_weights = functools.partial(
    Statement,
    kind="inequality",
    search="random",
    host=True,
    sample={"heads": _heads_sample, "blind": _blind_heads},
    project=_project,
    budget=Budget(samples=24, restarts=4, steps=8),
    assumptions="tokens before N/2 normal, the others 0, t = (1, .., q) from N/2 on; the risk "
    "of the best readout of what the heads reveal, exactly, for W_QK drawn",
)


@functools.partial(jax.jit, static_argnames="size")
def _least_risk(i: Instance, size: Size) -> Array:
    z = data.encode(i["x"], i["t"], encodings(i["signs"]))
    V = heads.revealed_images(i["W"], z[-1], z[: size["q"]], d=size["d"])
    return heads.oracle_risk(V, N=size["N"])


def _proposition_3(i: Instance, size: Size) -> Sides:
    d, risk = size["d"], _least_risk(dict(i), size)
    few = {name: size[name] for name in ("N", "q", "H")}
    return Sides.pairs(
        {
            "printed": (heads.coupled_head_bound(**few, d=d).value, risk),
            "sharpened": (heads.sharpened_head_bound(**few, d=d, exact=True).value, risk),
            "control": (heads.decoupled_head_bound(**few, exact=True).value, risk),
        }
    )


PROPOSITION_3 = random_weights(
    id="qstr.prop3",
    label="Proposition 3",
    formula="1 - H (q + d)/(q d) <= least risk of H heads",
    tex=r"\frac{1}{N} \mathbb{E}\left[\|y - \hat y_{\mathrm{TR}}(p; \Theta_{\mathrm{TR}})\|_2^2"
    r"\right] \ge 1 - \frac{(q + d) H}{q d}",
    judges=(
        heads.coupled_head_bound,
        heads.sharpened_head_bound,
        heads.oracle_risk,
        heads.hidden_variance,
    ),
    evaluate=_proposition_3,
    forms=(
        Form(
            name="printed",
            cites="Proposition 3, Section 3.1",
            note="The heads reveal H (q + d) linear images of (x_1; ..; x_q). The printed "
            "denominator is illegible in the text at hand. The check uses the stronger version "
            "that the proof gives.",
        ),
        Form(
            name="sharpened",
            equality="W_QK in general position",
            note="The lower bound on the risk is (1 + 2/N)(1 - H/q)(1 - H/d). Each head's logits "
            "are linear in the tokens; the H slopes span a space S, and the logits reveal S x R^q. "
            "Given the logits, the H attention vectors are known; let A be their span. The outputs "
            "then reveal R^d x A, of which the logits have already revealed S x A. Let S' and A' "
            "be the complements of S and A. The part of (x_1; ..; x_q) in S' x "
            "A' has dimension at least (d - H)(q - H), and remains standard normal. It adds 2 (d "
            "- H)(q - H)/(q d) to the label's variance, at N/2 + 1 of the N positions. The bound "
            "is positive for every H < min(q, d).",
        ),
    ),
    control="the logits reveal nothing: (1 + 2/N)(1 - H/q)",
    sizes=(
        {"N": 16, "q": 4, "d": 6, "H": 1, "de": 16},
        {"N": 16, "q": 4, "d": 6, "H": 2, "de": 16},
    ),
    source="Proposition 3, Appendix A.2",
)


@functools.partial(jax.jit, static_argnames="size")
def _least_decoupled_risk(i: Instance, size: Size) -> Array:
    """Return the least risk of heads whose W_QK is block-diagonal in data and position.

    At a position whose own token is zero, the heads' attention weights A do not depend on x.
    Therefore the heads' outputs depend on x only through A x, for each coordinate of the tokens.
    """
    d = size["d"]
    W = i["W"].at[:, :d, d:].set(0.0).at[:, d:, :d].set(0.0)
    z = data.encode(i["x"], i["t"], encodings(i["signs"]))
    slopes = jnp.einsum("d,hde->he", z[-1], W)
    A = jax.nn.softmax(slopes @ z[: size["q"]].T, axis=-1)
    return heads.oracle_risk(jnp.kron(A, jnp.eye(d)), N=size["N"])


def _proposition_21(i: Instance, size: Size) -> Sides:
    N, risk = size["N"], _least_decoupled_risk(dict(i), size)
    bound = lambda exact: heads.decoupled_head_bound(N=N, q=size["q"], H=size["H"], exact=exact)
    return Sides.pairs(
        {
            "printed": (bound(False).value, risk),
            "sharpened": (bound(True).value, risk),
            "control": (1 + 2 / N, risk),
        }
    )


PROPOSITION_21 = random_weights(
    id="qstr.prop21",
    label="Proposition 21",
    formula="1 - H/q <= least risk of H heads with block-diagonal W_QK, d = 1",
    tex=r"\frac{1}{N} \mathbb{E}\left[\|y - \hat y_{\mathrm{TR}}(p; \Theta_{\mathrm{TR}})\|_2^2"
    r"\right] \ge 1 - \frac{H}{q}",
    judges=(heads.decoupled_head_bound, heads.oracle_risk),
    evaluate=_proposition_21,
    forms=(
        Form(
            name="printed",
            cites="Proposition 21, Appendix A.2; (A.4)",
            note="The attention vectors do not depend on x, so the heads reveal H linear images "
            "of x.",
        ),
        Form(
            name="sharpened",
            equality="W_QK in general position",
            note="The lower bound on the risk is (1 + 2/N)(1 - H/q). The factor 1 + 2/N is there "
            "because N/2 + 1 of the N positions contribute to the risk.",
        ),
    ),
    control="the heads reveal nothing: 1 + 2/N",
    sizes=(
        {"N": 16, "q": 4, "d": 1, "H": 1, "de": 16},
        {"N": 16, "q": 4, "d": 1, "H": 3, "de": 16},
    ),
    source="Proposition 21, Appendix A.2",
)


ALL_DIMENSIONS = random_weights(
    id="qstr.prop21.dimensions",
    label="Proposition 21 for d > 1",
    formula="1 - H/q <= least risk of H heads with block-diagonal W_QK, for all d",
    tex=r"\frac{1}{N} \mathbb{E}\left[\|y - \hat y_{\mathrm{TR}}(p; \Theta_{\mathrm{TR}})\|_2^2"
    r"\right] \ge 1 - \frac{H}{q}, \quad d \ge 1",
    judges=(heads.decoupled_head_bound, heads.oracle_risk),
    evaluate=_proposition_21,
    forms=(
        Form(
            name="printed",
            cites="Section 3.1, below Proposition 3: 'an exact lower bound H >= q for all d >= 1'; "
            "Appendix A.2 says it of Proposition 21, which states d = 1",
            erratum="E16",
            note="The attention vectors do not depend on x, so the heads reveal H d linear "
            "images of the q d coordinates.",
        ),
        Form(
            name="sharpened",
            equality="W_QK in general position",
            note="The lower bound on the risk is (1 + 2/N)(1 - H/q). The factor 1 + 2/N is there "
            "because N/2 + 1 of the N positions contribute to the risk.",
        ),
    ),
    control="the heads reveal nothing: 1 + 2/N",
    sizes=(
        {"N": 16, "q": 4, "d": 2, "H": 1, "de": 16},
        {"N": 16, "q": 4, "d": 3, "H": 3, "de": 16},
    ),
    source="Section 3.1, Appendix A.2",
)


STATEMENTS = (PROPOSITION_3,)
APPENDIX = (PROPOSITION_21, ALL_DIMENSIONS)
