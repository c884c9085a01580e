"""Statements about Lipschitz constants in the parameters (Proposition 17, Corollary 31)."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr import covers
from jaxbounds.qstr.recurrent import exclusive_states
from jaxbounds.qstr.statements.common import reals, zeros
from jaxbounds.qstr.statements.recurrent import bounded
from jaxbounds.qstr.transformer import SparseTransformer

WEIGHTS = reals("W_QK: H De De, W: m H*De, b: m, a: m")
"""A dictionary from the name of each weight of a Transformer to its set of arrays."""
_MOVED = reals("z: N De") | WEIGHTS | {f"d_{name}": one for name, one in WEIGHTS.items()}


def predict(params: Mapping[str, Array], z: Array, size: Mapping[str, Any]) -> Array:
    """Return the predictions of a Transformer with H heads and width m on encoded prompts."""
    network = SparseTransformer(heads=size["H"], width=size["m"])
    return cast(Array, network.apply({"params": params}, z))


def length(tree: Array | Mapping[str, Array] | Sequence[Array]) -> Array:
    """Return the Euclidean norm of all parameters as one vector."""
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def _aligned_pair(size: Size) -> Instance:
    case = zeros(_MOVED, size, cases=2)
    case["z"][..., 0] = case["W"][:, 0, :: size["De"]] = [[1.0], [0.3]]
    case["b"][:, 0] = 1.0
    case["a"][:, 0] = [1.0, 0.01]
    case["d_a"][:, 0] = [0.1, 0.001]
    return case


def _moved(i: Instance, size: Size) -> Sides:
    params = {name: i[name] for name in WEIGHTS}
    other = {name: i[name] + i[f"d_{name}"] for name in WEIGHTS}
    z = i["z"]
    r_z = jnp.max(vector_norm(z))
    inner = lambda p: length([p["W"], p["b"]])
    f = covers.TransformerClass(
        m=size["m"], H=size["H"], De=size["De"], r_z=r_z, r_QK=0.0,
        r_a=jnp.maximum(vector_norm(params["a"]), vector_norm(other["a"])),
        R_w=jnp.maximum(inner(params), inner(other)),
    )  # fmt: skip
    change = {name: i[f"d_{name}"] for name in WEIGHTS}
    of_two = f.reach * (f.R_w * vector_norm(change["a"]) + f.r_a * inner(change))
    whole = of_two + f.r_a * f.R_w * r_z**3 * length(change["W_QK"])
    R = jnp.maximum(length(params), length(other))
    ball = covers.transformer_lipschitz(R, H=size["H"], r_z=r_z) * length(change)
    alike = {**other, "W_QK": params["W_QK"]}
    gap = lambda one, two: jnp.max(jnp.abs(predict(one, z, size) - predict(two, z, size)))
    largest = jnp.maximum(*(jnp.max(jnp.abs(predict(p, z, size))) for p in (params, other)))
    return Sides.pairs(
        {
            "derived Lemma 14": (gap(params, alike), of_two),
            "derived": (gap(params, other), whole),
            "derived ball": (gap(params, other), ball),
            "derived prediction": (largest, f.largest_prediction),
            "control": (gap(params, other), 0.05 * ball),
        },
        error=1e-14 * f.largest_prediction,
    )


_ALIGNED = "equal tokens, one unit aligned with (h, 1), and a moves"
LIPSCHITZ = Statement(
    id="qstr.prop17.lipschitz",
    label="Lemma 14, Proposition 17 (in parameters)",
    formula="|yhat - yhat'| <= s (R_w |a - a'| + r_a |(W, b) - (W', b')|_F) + r_a R_w r_z^3 "
    "|Theta - Theta'|_F, s^2 = H r_z^2 + 1",
    tex=r"|\hat y - \hat y'| \le s \left( R_w \|a - a'\|_2 + r_a \|(W, b) - (W', b')\|_F \right) "
    r"+ r_a R_w r_z^3 \|\Theta_{\mathrm{QK}} - \Theta_{\mathrm{QK}}'\|_F, \quad s^2 = H r_z^2 + 1",
    judges=(covers.transformer_lipschitz, SparseTransformer.__call__),
    over=_MOVED,
    cases=_aligned_pair,
    evaluate=_moved,
    forms=(
        Form(
            name="derived Lemma 14",
            equality=_ALIGNED,
            note="The bound on |yhat - yhat'| is for the two-layer network alone, for fixed "
            "outputs of the attention.",
        ),
        Form(
            name="derived",
            equality=_ALIGNED,
            note="The proof combines Lemmas 13, 14 and 15, with the constant 1 that qstr.lem15 "
            "proves.",
        ),
        Form(
            name="derived ball",
            note="The networks are in the class of Theorem 4. The bound follows from the "
            "derivatives of yhat with respect to a, (W, b) and Theta, and from |a| |W| <= R^2/2.",
        ),
        Form(
            name="derived prediction",
            equality=_ALIGNED,
            note="The prediction is at most r_a R_w sqrt(H r_z^2 + 1) in absolute value, for |a| "
            "<= r_a and |(W, b)|_F <= R_w.",
        ),
    ),
    control="a twentieth of the bound of the form 'derived ball'",
    sizes=({"N": 3, "De": 3, "H": 2, "m": 2},),
    source="Lemmas 13 to 15, Proposition 17",
    kind="inequality",
    search="random",
    budget=Budget(samples=128, restarts=2, steps=20, batch=128),
)


_RECURRENT = reals("A1: 2 m dh, A2: 2 dh m, B: 2 m De, c: 2 m, V: n 2*dh+De, e: n, a: n")
"""A dictionary from the name of each weight of the RNN to its set of arrays. The first axis of a
transition's weights is the direction, forward or backward."""
_PAIR = reals("z: N De") | _RECURRENT | {f"d_{name}": one for name, one in _RECURRENT.items()}


def _readouts_apart(size: Size) -> Instance:
    case = zeros(_PAIR, size)
    case["z"][..., 0] = 1e3
    for name, weight in (("", 0.01), ("d_", 1e-4)):
        case[f"{name}V"][..., 0, -size["De"]] = case[f"{name}a"][..., 0] = weight
    return case


def _contracting(p: Mapping[str, Array], N: int) -> dict[str, Array]:
    """Scale the transitions so that |A1| |A2| <= 1/N, which makes them 1/N-Lipschitz."""
    return {**p, "A1": bounded(p["A1"], 1.0 / N), "A2": bounded(p["A2"], 1.0)}


def _run(p: Mapping[str, Array], z: Array, dh: int, r_h: float) -> Array:
    step = lambda k: (
        lambda h, token: p["A2"][k] @ jax.nn.relu(p["A1"][k] @ h + p["B"][k] @ token + p["c"][k])
    )
    forward = exclusive_states(step(0), z, dh, radius=r_h)
    backward = exclusive_states(step(1), z, dh, radius=r_h, reverse=True)
    seen = jnp.concatenate([forward, backward, z], axis=1) @ p["V"].T
    return jax.nn.relu(seen + jnp.broadcast_to(p["e"], seen.shape)) @ p["a"]


def _recurrent(i: Instance, size: Size) -> Sides:
    N, z, r_h = size["N"], i["z"], 1.5
    one = _contracting({name: i[name] for name in _RECURRENT}, N)
    two = _contracting({name: i[name] + i[f"d_{name}"] for name in _RECURRENT}, N)
    gap = jnp.max(jnp.abs(_run(one, z, size["dh"], r_h) - _run(two, z, size["dh"], r_h)))
    R = jnp.maximum(length(one), length(two))
    apart = length({name: one[name] - two[name] for name in _RECURRENT})
    bound = lambda R: (
        apart
        * covers.recurrent_lipschitz(
            R, N=N, r_z=jnp.max(vector_norm(z)), r_h=jnp.asarray(r_h), depth_y=2, depth_h=2
        )
    )
    return Sides(gap, {"derived": bound(R), "control": bound(R / 2)})


RECURRENT = Statement(
    id="qstr.cor31",
    label="Corollary 31 (in parameters)",
    formula="|yhat - yhat'| <= sqrt(D_y^2 + 2 (R^{L_y} N ((1 + 1/N)^N - 1) D_h)^2) |vec Theta - "
    "vec Theta'|, log C <= p log(1 + 2 R L/eps)",
    tex=r"|\hat y - \hat y'| \le \sqrt{D_y^2 + 2 \left(R^{L_y} N ((1 + 1/N)^N - 1) D_h\right)^2} "
    r"\, \|\mathrm{vec}(\Theta) - \mathrm{vec}(\Theta')\|_2",
    judges=(covers.recurrent_lipschitz, exclusive_states),
    over=_PAIR,
    cases=_readouts_apart,
    evaluate=_recurrent,
    forms=(
        Form(
            name="derived",
            note="The bound combines Lemmas 29 and 30 with explicit polynomials, for networks of "
            "depth 2. The norm of all parameters bounds the norm of each layer. For long tokens "
            "and small weights, |yhat - yhat'| comes as near as 1/sqrt 2 times the bound.",
        ),
    ),
    control="half of the radius R",
    sizes=({"N": 6, "De": 2, "dh": 2, "m": 2, "n": 3},),
    assumptions="|W_2| |W_1h| <= 1/N, states projected onto the ball of radius 1.5",
    source="Lemmas 29 and 30, Corollary 31",
    kind="inequality",
    search="random",
    budget=Budget(samples=256, restarts=2, steps=20, batch=256),
)


STATEMENTS = (LIPSCHITZ, RECURRENT)
