"""Section 3.1 and Appendix A.2: how many heads are needed."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.qstr import data, heads, two_heads
from jaxbounds.qstr.statements.common import encodings, signs, stacked
from jaxbounds.qstr.transformer import attention
from jaxbounds.statements import Budget, Form, Sides, Statement


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


def _hidden(i, W):
    """The variance that the heads' images hide, its share of positions, and the sizes."""
    (N, d), q = i["x"].shape, i["t"].shape[1]
    z = data.encode(i["x"], i["t"], encodings(i["signs"]))
    V = heads.revealed_images(W, z[-1], z[:q], d=d)
    return heads.oracle_risk(V, N=N), N, d, q


def _proposition_3(i):
    H = i["W"].shape[0]
    risk, N, d, q = _hidden(i, i["W"])
    share = 1 + 2 / N
    return Sides(
        lhs={
            "printed": 1 - H * (q + d) / (q * d),
            "sharpened": share * (1 - H / q) * (1 - H / d),
            "control": share * (1 - H / q),
        },
        rhs={"printed": risk, "sharpened": risk, "control": risk},
    )


PROPOSITION_3 = Statement(
    id="qstr.prop3",
    label="Proposition 3",
    formula="1 - H (q + d)/(q d) <= least risk of H heads",
    kind="inequality",
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
    search="none",
    budget=Budget(samples=64),
    assumptions="tokens before N/2 normal, the others 0; the risk of the best readout, exactly",
    source="Proposition 3, Appendix A.2",
)


def _proposition_21(i):
    H, d, q = i["W"].shape[0], 1, i["t"].shape[1]
    W = i["W"].at[:, :d, d:].set(0.0).at[:, d:, :d].set(0.0)
    N = i["x"].shape[0]
    z = data.encode(i["x"], i["t"], encodings(i["signs"]))
    slopes = jnp.einsum("d,hde->he", z[-1], W)
    A = jax.nn.softmax(slopes @ z[:q].T, axis=-1)
    risk = heads.oracle_risk(A, N=N)
    share = 1 + 2 / N
    return Sides(
        lhs={"printed": 1 - H / q, "sharpened": share * (1 - H / q), "control": share * 1.0},
        rhs={"printed": risk, "sharpened": risk, "control": risk},
    )


PROPOSITION_21 = Statement(
    id="qstr.prop21",
    label="Proposition 21",
    formula="1 - H/q <= least risk of H heads with block-diagonal W_QK, d = 1",
    kind="inequality",
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
    search="none",
    budget=Budget(samples=64),
    source="Proposition 21, Appendix A.2",
)


def _quadrature(q: int, nodes: int = 8):
    """All nodes and weights of the q-fold Gauss-Hermite rule for N(0, I_q)."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[points] * q, indexing="ij"), axis=-1).reshape(-1, q)
    mesh = np.stack(np.meshgrid(*[weights] * q, indexing="ij"), axis=-1).reshape(-1, q)
    mass = mesh.prod(axis=1)
    return grid, mass / mass.sum()


def _two_heads(N: int, q: int, digits: int) -> dict:
    """Encodings, the tokens to average and beta = 10^-digits; the expectation is exact."""
    return {
        "omega": np.eye(N, dtype=np.int8),
        "relevant": np.arange(q, dtype=np.int32),
        "digits": np.int32(digits),
    }


def _enough_heads(i):
    N, q = i["omega"].shape[0], i["relevant"].shape[0]
    omega, beta = i["omega"].astype(jnp.float64), 10.0 ** (-i["digits"].astype(jnp.float64))
    grid, mass = (jnp.asarray(v) for v in _quadrature(q))
    x = jnp.zeros((len(grid), N, 1)).at[:, :q, 0].set(grid)
    t = jnp.broadcast_to(i["relevant"], (len(grid), N, q))
    direction = jnp.sum(omega[i["relevant"]], axis=0)
    W = two_heads.two_head_weights(omega, direction, q=q, beta=beta, selectivity=60.0)
    z = data.encode(x, t, omega)
    plus, minus = (attention(z, W[h])[:, -1, 0] for h in range(2))
    got = two_heads.decode_sum_of_squares(plus, minus, q=q, beta=beta)
    y = (jnp.sum(x[:, :, 0] ** 2, axis=1) - q) / jnp.sqrt(jnp.asarray(float(q)))
    risk = (1 + 2 / N) / 2 * jnp.sum(mass * (got - y) ** 2)
    return Sides(
        lhs={"printed": 1 - 2 / q, "control": 1.0},
        rhs={"printed": risk, "control": risk},
    )


ENOUGH_HEADS = Statement(
    id="qstr.thm1.heads",
    label="Theorem 1 and Section 3.1 (heads)",
    formula="H = 2 < q heads have risk >= 1 - H/q (d = 1, any W_QK)",
    kind="inequality",
    cases=lambda size: stacked(*[_two_heads(size["N"], size["q"], b) for b in (1, 2, 3)]),
    evaluate=_enough_heads,
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E1",
            counterexample=_two_heads(8, 3, 2),
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

STATEMENTS = (ENOUGH_HEADS, PROPOSITION_3)
APPENDIX = (PROPOSITION_21,)
