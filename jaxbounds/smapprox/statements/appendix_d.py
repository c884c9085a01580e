"""Appendix D: correction functions (D.1) and the conditions on layers (D.2, D.3)."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from jaxbounds.smapprox.correction import THIRDS, Correction
from jaxbounds.smapprox.straight_through import hard_attention
from jaxbounds.statements import Counterexample, Form, Instance, Sides, Size, Statement

IN_D: dict[str, Any] = {"kind": "inequality", "source": "Appendix D"}


def _noise(key: Array, size: Size) -> Instance:
    bits, noise = jax.random.split(key)
    w = size["w"]
    return {
        "h": jax.random.bernoulli(bits, shape=(w,)).astype(int),
        "noise": jax.random.uniform(noise, (w,), minval=-1.0, maxval=1.0),
    }


def _corners(key: Array, size: Size) -> Instance:
    sample = _noise(key, size)
    return {**sample, "noise": jnp.sign(sample["noise"])}


def _restored(i: Instance, size: Size) -> Sides:
    h = i["h"].astype(float)
    radius = THIRDS.radius - 1e-15
    moved = {"printed": h + radius * i["noise"], "control": h + 1.5 * radius * i["noise"]}
    return Sides.pairs({name: (THIRDS(z), h) for name, z in moved.items()}, error=1e-14)


DEFINITION_D1 = Statement(
    id="smapprox.defd.1",
    label="Definition D.1 for rounding",
    formula="zeta(h + e) = h for h in {0,1}^w and |e_j| <= 1/3",
    kind="identity",
    evaluate=_restored,
    judges=(Correction.__call__,),
    sample={"box": _noise, "corners": _corners},
    sizes=({"w": 6},),
    forms=(Form(name="printed", note="sigma_zeta = 1/3 in every coordinate."),),
    control="errors 1.5 times as large",
    tolerance=1e-11,
    source="Appendix D",
)


def _moved_rounding(key: Array, size: Size) -> Instance:
    keys = jax.random.split(key, 3)
    w = size["w"]
    return {
        "h": jax.random.normal(keys[0], (w,)),
        "direction": jax.random.normal(keys[1], (4 * w * w + 3 * w,)),
        "radius": jax.random.uniform(keys[2], (), minval=0.01, maxval=1.0),
    }


def _rounding_lipschitz(i: Instance, size: Size) -> Sides:
    xi, unravel = ravel_pytree(jax.tree.map(jnp.asarray, THIRDS.weights(size["w"], size["w"])))
    r = jnp.abs(i["radius"])
    moved = xi + r * i["direction"] / jnp.sqrt(i["direction"] @ i["direction"])
    h, relu = i["h"], lambda v: jnp.maximum(v, 0.0)
    zeta = lambda p: relu(p["W3"] @ relu(p["W2"] @ h + p["b2"]) + p["b3"])
    change = zeta(unravel(moved)) - zeta(unravel(xi))
    unit = jnp.sqrt(jnp.maximum(h @ h, 1.0)) * r
    return Sides(
        jnp.sqrt(change @ change),
        {"derived": THIRDS.parameter_lipschitz(r) * unit, "control": 1.5 * unit},
        error=1e-14,
    )


ROUNDING_LIPSCHITZ = Statement(
    id="smapprox.condd.3-rounding",
    label="Condition D.3, kappa_xi of rounding",
    formula="|zeta(h, xi') - zeta(h, xi)| <= kappa_xi max(|h|, 1) |xi' - xi|",
    evaluate=_rounding_lipschitz,
    judges=(Correction.parameter_lipschitz, Correction.weights),
    sample=_moved_rounding,
    sizes=({"w": 3},),
    search="none",
    forms=(Form(name="derived", note="kappa_xi^2 = 4 slope^2 + 2 (1 + r)^2 + 1, r = |xi' - xi|."),),
    control="kappa_xi = 3/2",
    **IN_D,
)


def _tie(key: Array, size: Size) -> Instance:
    keys = jax.random.split(key, 3)
    return {
        "b": jax.random.normal(keys[0], (size["keys"],)),
        "change": jax.random.uniform(keys[1], (2,), minval=-0.3, maxval=0.3),
        "epsilon": jnp.exp(jax.random.uniform(keys[2], (1,), minval=-20.0, maxval=-4.0)),
    }


def _tied_layer(i: Instance, size: Size) -> Sides:
    """Keys g_t = (1, b_t) tie; their values g_t[0] agree. The layer is h + mean of the values.

    At theta-hat the value map is (1, e) and, for the corrected form, the key map (1, f): the
    tied keys then differ.
    """
    e, f = i["change"][0], i["change"][1]
    eps = i["epsilon"][0]
    base = jnp.stack([jnp.ones(size["keys"]), i["b"]], axis=1)
    near = base.at[0, 0].add(eps)
    layer = lambda g, value, key: hard_attention(g[:, 0] + key * g[:, 1], g[:, 0] + value * g[:, 1])
    largest = jnp.maximum(jnp.sqrt((base**2).sum(axis=1)).max(), 1.0)
    mu = 2.0
    jump = jnp.abs(layer(base, e, 0.0) - layer(near, e, 0.0))
    from_base = jnp.abs(layer(near, e, f) - layer(base, 0.0, 0.0))
    bound = jnp.sqrt(e * e + f * f) * (largest + eps) + mu * eps
    return Sides.pairs(
        {
            "printed": (jump, mu * eps),
            "corrected": (from_base, bound),
            "control": (from_base, mu * eps),
        },
        error=1e-12,
    )


TIES = Statement(
    id="smapprox.condd.3-ties",
    label="Definition D.2 and Condition D.3 for hard-max attention",
    formula="|f(H, theta-hat) - f(H-hat, theta-hat)| <= mu |H - H-hat|",
    evaluate=_tied_layer,
    judges=(hard_attention,),
    sample=_tie,
    sizes=({"keys": 2},),
    search="none",
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E11",
            note="At theta-hat the tied keys have values 1 and 1.1; moving H by any epsilon "
            "picks one of them: a jump of 0.05.",
            counterexample=Counterexample(
                instance={"b": [0.0, 1.0], "change": [0.1, 0.0], "epsilon": [1e-6]},
                size={"keys": 2},
                ratio=24999.500000000065,
            ),
        ),
        Form(
            name="corrected",
            note="|f(H-hat, theta-hat) - f(H, theta)| <= kappa |theta-hat - theta| max(|H|, 1) "
            "+ mu |H - H-hat|: whichever tied key wins, its value was the same at the base "
            "point. Lemma D.8 uses nothing more.",
        ),
    ),
    control="the corrected form without its first term",
    assumptions="two tied keys with equal values at the base point",
    **IN_D,
)

STATEMENTS = (DEFINITION_D1, ROUNDING_LIPSCHITZ, TIES)
