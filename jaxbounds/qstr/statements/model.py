"""Sections 2 and 3: data, assumptions, encodings, and how many heads are needed."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from jaxbounds.qstr import data, heads, two_heads
from jaxbounds.qstr.statements.common import DRAWS, encodings, signs, stacked
from jaxbounds.qstr.transformer import attention
from jaxbounds.statements import Budget, Form, Sides, Statement


def _encoding_sample(key, size):
    key_x, key_t = jax.random.split(key)
    N, d, q = size["N"], size["d"], size["q"]
    return {
        "x": jax.random.normal(key_x, (N, d)),
        "t": data.sample_positions(key_t, (), N, q),
        "signs": jnp.asarray(signs(N, size["de"])),
    }


def _encoding(i):
    d, q = i["x"].shape[1], i["t"].shape[1]
    z = data.encode(i["x"], i["t"], encodings(i["signs"]))
    square = jnp.sum(z[:, d:] ** 2, axis=1)
    return Sides(
        lhs=square,
        rhs={
            "printed": jnp.full_like(square, d * (1 + 1 / q)),
            "control": jnp.full_like(square, 1 + q),
        },
    )


ENCODING = Statement(
    id="qstr.encoding",
    label="Section 3 (encoding)",
    formula="|enc(i, t_i)|^2 = d (1 + 1/q)",
    kind="identity",
    sample=_encoding_sample,
    evaluate=_encoding,
    forms=(Form(name="printed", note="q + 1 unit vectors, each scaled by sqrt(d/q)."),),
    control="1 + q: the factor sqrt(d/q) forgotten",
    sizes=({"N": 6, "d": 3, "q": 2, "de": 12},),
    budget=Budget(samples=32),
    source="Section 3, encoding of the positions",
)


def _moment_cases(size):
    pairs = [(d, r) for d in (1, 2, 3, 10, 100) for r in (1.0, 1.5, 2.0, 3.0, 8.0, 40.0, 300.0)]
    return stacked(*[{"d": float(d), "r": r} for d, r in pairs])


def _moments(i):
    d, r = i["d"], i["r"]
    log_moment = 0.5 * r * jnp.log(2.0) + gammaln((d + r) / 2) - gammaln(d / 2)
    return Sides(
        lhs=jnp.exp(log_moment / r),
        rhs={"derived C_x = 1": jnp.sqrt(d * r), "control": jnp.sqrt(0.5 * d * r)},
    )


ASSUMPTION_1 = Statement(
    id="qstr.asm1",
    label="Assumption 1 for Gaussian tokens",
    formula="(E|x|^r)^{1/r} <= sqrt(C_x d r), x ~ N(0, I_d)",
    kind="inequality",
    cases=_moment_cases,
    evaluate=_moments,
    forms=(Form(name="derived C_x = 1", note="Moments of the chi law in closed form."),),
    control="C_x = 1/2",
    sizes=({"d": 1},),
    search="none",
    source="Assumption 1; the constant C_x is the paper's",
)


def _coherence_sample(key, size):
    keys = jax.random.split(key)
    N = size["N"]
    draw = lambda k, de: jax.random.rademacher(k, (N, de), dtype=jnp.int8)
    return {"own": draw(keys[0], size["de"]), "wide": draw(keys[1], size["wide"])}


def _coherence(i):
    def largest(s):
        gram = jnp.abs(encodings(s) @ encodings(s).T)
        return jnp.max(jnp.where(jnp.eye(s.shape[0], dtype=bool), 0.0, gram))

    own, wide = largest(i["own"]), largest(i["wide"])
    half = jnp.asarray(0.5 + 1e-12)
    return Sides(
        lhs={"printed": own, "corrected": wide, "control": wide},
        rhs={"printed": half, "corrected": half, "control": half / 2},
    )


ASSUMPTION_3 = Statement(
    id="qstr.asm3",
    label="Assumption 3 for the experiments' encodings",
    formula="P(max_{i != j} |<w_i, w_j>| > 1/2) <= 1/5 for Rademacher w in R^de",
    kind="probability",
    level=0.2,
    sample=_coherence_sample,
    evaluate=_coherence,
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E5",
            note="de = int(5 log N), the dimension of the paper's experiments.",
        ),
        Form(
            name="corrected",
            note="de = 24 log N: the union bound N (N - 1) exp(-de/8) is N^{-1}.",
        ),
    ),
    control="coherence 1/4 at de = 24 log N",
    sizes=({"N": 12, "de": 12, "wide": 60}, {"N": 33, "de": 17, "wide": 84}),
    budget=DRAWS,
    source="Assumption 3 and the caption of Figure 1",
)


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
    return heads.hidden_variance(V) / (q * d) * (0.5 + 1 / N), N, d, q


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
    risk = heads.hidden_variance(A) / q * (0.5 + 1 / N)
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
        lhs={"printed": 1 - 2 / q, "corrected": 0.0, "control": 1.0},
        rhs={"printed": risk, "corrected": risk, "control": risk},
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
            "orthonormal encodings, a full W_QK, the paper's own softmax attention.",
        ),
        Form(
            name="corrected",
            note="(1 - H/q)(1 - H/d) for H < min(q, d), which at d = 1 is no claim for H >= 1.",
        ),
    ),
    control="risk at least 1",
    sizes=({"N": 8, "q": 3},),
    search="none",
    source="Abstract, Theorem 1, Section 3.1",
)

STATEMENTS = (ENCODING, ASSUMPTION_1, ASSUMPTION_3, ENOUGH_HEADS, PROPOSITION_3)
APPENDIX = (PROPOSITION_21,)
