"""Appendix A: radii and Lipschitz bounds of the Transformer."""

import math

import jax
import jax.numpy as jnp

from jaxbounds.norms import frobenius_norm, vector_norm
from jaxbounds.qstr import bounds
from jaxbounds.qstr.links import sphere
from jaxbounds.qstr.statements.common import DRAWS, QUICK
from jaxbounds.qstr.transformer import attention
from jaxbounds.statements import Budget, Form, Sides, Statement

_DELTA = 0.1


def _radius_sample(key, size):
    return {"x": jax.random.normal(key, (size["nN"], size["d"]))}


def _radius(i):
    nN, d = i["x"].shape
    r = math.sqrt(2 * math.e * d * math.log(nN / _DELTA))
    return Sides(
        lhs=jnp.max(vector_norm(i["x"])),
        rhs={"printed": jnp.asarray(r), "control": jnp.asarray(math.sqrt(d))},
    )


TOKEN_TAIL = Statement(
    id="qstr.lem12",
    label="Lemma 12",
    formula="P(max |x_j| >= r) <= nN exp(-r^2/(2 C_x e d))",
    kind="probability",
    level=_DELTA,
    sample=_radius_sample,
    evaluate=_radius,
    forms=(Form(name="printed", note="At the r for which the bound is 1/10; very loose."),),
    control="r = sqrt(d)",
    sizes=({"nN": 4, "d": 2}, {"nN": 100, "d": 5}),
    budget=DRAWS,
    assumptions="Gaussian tokens, C_x = 1",
    source="Lemma 12",
)

_SMALL = math.exp(-(0.99**2) / (2 * math.e))


def _sphere_sample(key, size):
    return {"x": math.sqrt(size["d"]) * sphere(key, size["d"])}


def _small_radius(i):
    d = i["x"].shape[0]
    r = 0.99 * math.sqrt(d)
    radii = {"printed": r, "corrected": math.sqrt(math.e * d), "control": 0.5 * r}
    return Sides(
        lhs=vector_norm(i["x"]), rhs={name: jnp.asarray(radius) for name, radius in radii.items()}
    )


SMALL_RADIUS = Statement(
    id="qstr.lem12.small",
    label="Lemma 12 (any r > 0)",
    formula="P(|x| >= r) <= exp(-r^2/(2 C_x e d)) at r = 0.99 sqrt(C_x d), nN = 1",
    kind="probability",
    level=_SMALL,
    sample=_sphere_sample,
    evaluate=_small_radius,
    hypotheses=lambda i: {"|x| = sqrt(d)": jnp.abs(jnp.mean(i["x"] ** 2) - 1) < 1e-9},
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E6",
            note="x uniform on the sphere of radius sqrt(d) meets Assumption 1 with C_x = 1, and "
            "|x| > r surely, while the bound is exp(-0.99^2/(2e)) = 0.835.",
        ),
        Form(
            name="corrected",
            note="r^2 >= C_x e d, so that the moment order is at least 1; here r^2 = C_x e d, "
            "where the bound is exp(-1/2) = 0.607.",
        ),
    ),
    control="half the radius",
    sizes=({"d": 3},),
    budget=Budget(samples=300, restarts=0, batch=300),
    source="Lemma 12; used at nN = 1 in Lemma 34",
)


def _composition_sample(key, size):
    keys = jax.random.split(key, 8)
    k, m = size["k"], size["m"]
    draw = lambda j, *shape: jax.random.normal(keys[j], shape)
    return {
        "a": draw(0, m), "W": draw(1, m, k), "b": draw(2, m), "h": draw(3, k),
        "a2": draw(4, m), "W2": draw(5, m, k), "b2": draw(6, m), "h2": draw(7, k),
    }  # fmt: skip


def _composition(i):
    net = lambda a, W, b, h: a @ jax.nn.relu(W @ h + b)
    first = net(i["a"], i["W"], i["b"], i["h"])
    second = net(i["a2"], i["W2"], i["b2"], i["h2"])
    gap = jnp.abs(net(i["a"], i["W"], i["b"], i["h2"]) - second)
    moved, a = vector_norm(i["h"] - i["h2"]), vector_norm(i["a"])
    return Sides(
        lhs=jnp.abs(first - second),
        rhs={
            "printed": gap + a * frobenius_norm(i["W"]) * moved,
            "sharpened": gap + a * jnp.linalg.norm(i["W"], ord=2) * moved,
            "control": gap,
        },
    )


COMPOSITION = Statement(
    id="qstr.lem13",
    label="Lemma 13 (pointwise)",
    formula="|f(h) - f'(h')| <= |f(h') - f'(h')| + L_f |h - h'|",
    kind="inequality",
    sample=_composition_sample,
    evaluate=_composition,
    forms=(
        Form(
            name="printed",
            note="L_f = |a| |W|_F.",
            equality="one active unit along which h - h' lies",
        ),
        Form(
            name="sharpened",
            note="L_f = |a| |W|_op.",
            equality="one active unit along which h - h' lies",
        ),
    ),
    control="L_f = 0",
    sizes=({"k": 3, "m": 3},),
    budget=QUICK,
    source="Lemma 13; the covering numbers are sums over it",
)


def _lipschitz_sample(key, size):
    keys = jax.random.split(key, 3)
    N, De, H = size["N"], size["De"], size["H"]
    W = jax.random.normal(keys[1], (H, De, De))
    return {
        "z": 2.0 * jax.random.normal(keys[0], (N, De)),
        "W": W,
        "moved": W + 0.2 * jax.random.normal(keys[2], (H, De, De)),
    }


def _pair_case(size):
    """Two opposite tokens that share the attention, weights an infinitesimal step apart."""
    H, De, N = size["H"], size["De"], size["N"]
    z = jnp.zeros((N, De)).at[:, 0].set(jnp.where(jnp.arange(N) % 2 == 0, 2.0, -2.0))
    step = jnp.zeros((H, De, De)).at[:, 0, 0].set(1e-4)
    return {"z": z[None], "W": jnp.zeros((1, H, De, De)), "moved": step[None]}


def _attention_lipschitz(i):
    z, W, moved = i["z"], i["W"], i["moved"]
    H, De, _ = W.shape
    change = [attention(z, W[h]) - attention(z, moved[h]) for h in range(H)]
    lhs = jnp.max(vector_norm(jnp.concatenate(change, axis=1)))
    stacked = jnp.moveaxis(W - moved, 0, 1).reshape(De, H * De)
    bound = bounds.attention_lipschitz(stacked, z)
    return Sides(lhs=lhs, rhs={"printed": 2 * bound, "sharpened": bound, "control": 0.1 * bound})


ATTENTION_LIPSCHITZ = Statement(
    id="qstr.lem15",
    label="Lemma 15",
    formula="sup |f(p; Th) - f(p; Th')| <= 2 r_z^2 sup_j |(Th - Th')^T z_j|",
    kind="inequality",
    sample=_lipschitz_sample,
    cases=_pair_case,
    evaluate=_attention_lipschitz,
    forms=(
        Form(name="printed", note="|softmax(u) - softmax(v)|_1 <= 2 |u - v|_inf."),
        Form(
            name="sharpened",
            equality="infinitesimally close weights, two opposite tokens sharing the attention",
            note="Factor 1: diag(p) - p p^T maps s in [-1, 1]^N to l_1 norm at most "
            "4 a (1 - a) <= 1, with a the mass where s = 1.",
        ),
    ),
    control="factor 1/10",
    sizes=({"N": 4, "De": 3, "H": 2},),
    budget=QUICK,
    source="Lemma 15; [EGKZ22, Corollary A.7]",
)


def _prediction_sample(key, size):
    keys = jax.random.split(key, 5)
    N, De, H, m = size["N"], size["De"], size["H"], size["m"]
    return {
        "z": jax.random.normal(keys[0], (N, De)),
        "W_QK": jax.random.normal(keys[1], (H, De, De)),
        "W": jax.random.normal(keys[2], (m, H * De)),
        "b": jax.random.normal(keys[3], (m,)),
        "a": jax.random.normal(keys[4], (m,)),
    }


def _aligned_case(size):
    N, De, H, m = size["N"], size["De"], size["H"], size["m"]
    z = jnp.zeros((N, De)).at[:, 0].set(1.0)
    W = jnp.zeros((m, H, De)).at[0, :, 0].set(1.0).reshape(m, H * De)
    first = jnp.zeros(m).at[0].set(1.0)
    case = {"z": z, "W_QK": jnp.zeros((H, De, De)), "W": W, "b": 0.0 * first, "a": first}
    return {name: value[None] for name, value in case.items()}


def _prediction(i):
    z, H = i["z"], i["W_QK"].shape[0]
    f = jnp.concatenate([attention(z, i["W_QK"][h]) for h in range(H)], axis=1)
    hidden = jax.nn.relu(f @ i["W"].T + jnp.broadcast_to(i["b"], (z.shape[0], i["b"].shape[0])))
    radius, a, b = jnp.max(vector_norm(z)), vector_norm(i["a"]), vector_norm(i["b"])
    F, op = frobenius_norm(i["W"]), jnp.linalg.norm(i["W"], ord=2)
    return Sides(
        lhs=jnp.max(jnp.abs(hidden @ i["a"])),
        rhs={
            "printed": bounds.prediction_bound(i["a"], i["W"], i["b"], z, heads=H),
            "sharpened": a * (op * math.sqrt(H) * radius + b),
            "control": a * (F * radius + b),
        },
    )


PREDICTION = Statement(
    id="qstr.lem20.value",
    label="Lemma 20 (size of a prediction)",
    formula="|yhat_i| <= |a| (|W|_F sqrt(H) max|z_l| + |b|)",
    kind="inequality",
    sample=_prediction_sample,
    cases=_aligned_case,
    evaluate=_prediction,
    forms=(
        Form(name="printed", equality="one unit, all tokens equal and aligned with its weights"),
        Form(
            name="sharpened",
            equality="one unit, all tokens equal and aligned with its weights",
            note="The operator norm in place of Frobenius'.",
        ),
    ),
    control="sqrt(H) dropped",
    sizes=({"N": 3, "De": 3, "H": 4, "m": 2},),
    budget=QUICK,
    source="Lemma 20, proof",
)


STATEMENTS = (
    TOKEN_TAIL,
    SMALL_RADIUS,
    COMPOSITION,
    ATTENTION_LIPSCHITZ,
    PREDICTION,
)
