"""Appendix D: correction functions (Definition D.1) and conditions on layers (D.2, D.3)."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from jaxbounds.claims.sets import Ball, Box, Integers, Over, Reals
from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Domain,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.smapprox.correction import THIRDS, Correction
from jaxbounds.smapprox.layers import find_last_visit
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.machines import TuringMachine, halting_time, simulate
from jaxbounds.smapprox.transformer import attend, keys_and_values

in_appendix_d = functools.partial(Statement, kind="inequality", source="Appendix D")


def _restored(i: Instance, size: Size) -> Sides:
    h = i["h"].astype(float)
    radius = THIRDS.radius - 1e-15
    moved = {"printed": h + radius * i["noise"], "control": h + 1.5 * radius * i["noise"]}
    return Sides.pairs({name: (THIRDS(z), h) for name, z in moved.items()}, error=1e-14)


DEFINITION_D1 = Statement(
    id="smapprox.defd.1",
    label="Definition D.1 for rounding",
    formula="zeta(h + e) = h for h in {0,1}^w and |e_j| <= 1/3",
    tex=r"\zeta_i(\hat h, \xi_i) = h_i(x, \theta) \quad \text{if } "
    r"\|\hat h - h_i(x, \theta)\|_2 \le \sigma_\zeta = \frac{1}{3}",
    kind="identity",
    evaluate=_restored,
    judges=(Correction.__call__,),
    over={"h": Integers(0, 1, "w"), "noise": Box(-1, 1, "w")},
    sizes=({"w": 6},),
    forms=(
        Form(
            name="printed",
            cites="Definition D.1 with the radius of Section 3.1: |h' - h|_2 <= 1/3",
            note="The check allows an error of 1/3 in every coordinate of h. The definition "
            "allows less, an l_2 norm of 1/3 for the whole error.",
            domains=(
                Domain(
                    name="h = (0, 1), errors within 1/3",
                    chart=lambda point, size: {"h": jnp.array([0, 1]), "noise": point},
                    size={"w": 2},
                    lower=(-1 / 3, -1 / 3),
                    upper=(1 / 3, 1 / 3),
                    slack=1e-12,
                    beyond="every coordinate is rounded by itself",
                ),
            ),
        ),
    ),
    control="errors 1.5 times as large",
    tolerance=1e-11,
    source="Appendix D",
)


def _rounding_lipschitz(i: Instance, size: Size) -> Sides:
    xi, unravel = ravel_pytree(jax.tree.map(jnp.asarray, THIRDS.weights(size["w"], size["w"])))
    r = i["radius"]
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


ROUNDING_LIPSCHITZ = in_appendix_d(
    id="smapprox.condd.3.rounding",
    label="Condition D.3, kappa_xi of rounding",
    formula="|zeta(h, xi') - zeta(h, xi)| <= kappa_xi max(|h|, 1) |xi' - xi|",
    tex=r"\|\zeta_i(h, \xi_i) - \zeta_i(h, \hat\xi)\|_2 \le \kappa_\xi \max\{\|h\|_2, 1\} "
    r"\|\xi_i - \hat\xi\|_2",
    evaluate=_rounding_lipschitz,
    judges=(Correction.parameter_lipschitz, Correction.weights),
    over={"h": Reals("w"), "direction": Reals("4*w**2 + 3*w"), "radius": Box(0.01, 10)},
    hypotheses=lambda i, size: {"direction != 0": jnp.any(i["direction"] != 0)},
    sizes=({"w": 3},),
    budget=Budget(restarts=3, steps=40),
    forms=(
        Form(
            name="derived",
            note=(
                "The constant kappa_xi of the bound satisfies kappa_xi^2 = 4 slope^2 + 2 (1 + "
                "r)^2 + 1, where r = |xi' - xi|."
            ),
        ),
    ),
    control="kappa_xi = 3/2",
)


MACHINE = TuringMachine(
    states=("a", "b", "accept"),
    alphabet=("0", "1", "_"),
    blank="_",
    transitions={
        ("a", "_"): ("b", "0", 1),
        ("b", "_"): ("a", "0", -1),
        ("a", "0"): ("b", "1", 1),
        ("b", "0"): ("a", "1", -1),
        ("a", "1"): ("accept", "1", 1),
        ("b", "1"): ("accept", "1", 1),
    },
    start="a",
    reject=(),
)
"""A machine that moves between cells 1 and 2 of the empty tape and halts at step 5."""

LONGEST = 7
"""The number T of steps that the network simulates, with 3 position bits; a larger T allows longer
runs."""

HEADS = np.array([1, 2, 1, 2, 1])
"""The cells l_0 .. l_4 of the head; at step 4 it is on cell 1, where steps 1 and 3 wrote."""

STEPS = (("b", "0"), ("a", "0"), ("b", "1"), ("a", "1"))
"""The pairs (z_t, u_t) for t = 1 .. 4: the machine's state, and the symbol that it writes."""

FILLED = ("pos1", "pos2", "pos3", "st", "sym2")
"""The names of the groups of coordinates that have nonzero entries in a hidden state of the form
(C.5)."""


@functools.cache
def _claim_c4() -> tuple[Layout, Any]:
    """Return the layout, the attention of Claim C.4, and states h_1 .. h_4 of the form in (C.5)."""
    layout = Layout(tuple(MACHINE.states), tuple(MACHINE.alphabet), 3)
    H = np.zeros((4, layout.width))
    for t in range(1, 5):
        for name, position in (("pos1", t), ("pos2", HEADS[t - 1]), ("pos3", HEADS[t])):
            H[t - 1, list(layout.groups[name])] = layout.binary(position)
        state, written = STEPS[t - 1]
        H[t - 1, [layout.at("st", state), layout.at("sym2", written)]] = 1.0
    return layout, (find_last_visit(layout)[0].dec, H)


def _attention(key: Any, value: Any, move: Any) -> tuple[Array, Array, Array]:
    """Run the layer with perturbed weights on the state h_1.

    The perturbed key weight is that of the bit of pos1 that distinguishes step 3 from step 1. The
    value map's bias and its weights of the three bits of pos1 are perturbed too.
    """
    layout, (weights, H) = _claim_c4()
    bit = layout.low_bit("pos1", 1)
    p = jax.tree.map(jnp.asarray, weights)
    p["Wk"] = p["Wk"].at[0, bit].add(key)
    target, position = layout.at("scr4", "left"), np.array(layout.groups["pos1"])
    p["Wv"] = p["Wv"].at[target, position].add(value[:3])
    p["bv"] = p["bv"].at[target].add(value[3])
    near = jnp.asarray(H).at[0, layout.at("pos2", 0)].add(move)
    memory = jax.vmap(keys_and_values, (None, 0))(p, near)
    out, (scores, kept) = attend(p, near[3], memory, jnp.ones(4, bool))
    return out, scores, kept


MOVED = Over({"value": Ball("exp(-5)", 4), "epsilon": Box("exp(-27)", "exp(-23)")})
"""The sets from which the search draws perturbed values; the paper's claim is about all small
perturbations.
"""


def _tied_layer(i: Instance, size: Size) -> Sides:
    layout, (_, H) = _claim_c4()
    length = lambda v: jnp.sqrt(jnp.maximum(v @ v, 1e-300))
    e, eps = i["value"], i["epsilon"]
    still = jnp.zeros(4)
    base, _, kept = _attention(0.0, still, 0.0)
    _, _, moved = _attention(eps, still, 0.0)
    changed = ((kept > 0) != (moved > 0)).sum().astype(float)
    jump = length(_attention(0.0, e, eps)[0] - _attention(0.0, e, 0.0)[0])
    from_base = length(_attention(eps, e, eps)[0] - base)
    largest = float(np.linalg.norm(H, axis=1).max())
    off = jnp.sqrt(e @ e + eps * eps)
    bound = math.sqrt(2) * off * (largest + eps) + eps
    mu = float(len(layout.states) * len(layout.symbols) * layout.bits) ** 3
    return Sides.pairs(
        {
            "printed": (1 + changed, jnp.ones(())),
            "printed condition": (jump, mu * eps),
            "corrected": (from_base, bound),
            "control": (from_base, bound / 4),
        },
        error=1e-14,
    )


def _valid(i: Instance, size: Size) -> dict[str, Any]:
    layout, (weights, H) = _claim_c4()
    coded = lambda name, t: H[t - 1, list(layout.groups[name])]
    right = [
        (coded("pos1", t) == layout.binary(t)).all()
        and (coded("pos2", t) == layout.binary(HEADS[t - 1])).all()
        for t in range(1, 5)
    ]
    whole = [
        (coded("pos3", t) == layout.binary(HEADS[t])).all()
        and np.count_nonzero(H[t - 1]) == sum(np.count_nonzero(coded(name, t)) for name in FILLED)
        for t in range(1, 5)
    ]
    run, names = simulate(MACHINE, "", 4), (MACHINE.states, MACHINE.alphabet)
    by_machine = [
        (coded("st", t) == np.eye(len(names[0]))[run.states[t]]).all()
        and (coded("sym2", t) == np.eye(len(names[1]))[run.written[t - 1]]).all()
        for t in range(1, 5)
    ]
    _, scores, kept = _attention(0.0, jnp.zeros(4), 0.0)
    rest = jnp.where(kept > 0, -jnp.inf, scores)
    least = 1.0 / (len(layout.states) * len(layout.symbols) * layout.bits) ** 2
    return {
        "h_t has Bin(t) and Bin(l_{t-1}), as (C.7) asks (Claim C.4)": all(right),
        "h_t, h_4 too, is of the form (C.5): pos3 = Bin(l_t), all else 0 (Claim C.4)": all(whole),
        "H is that of a machine of the class: S is a function (Section 4)": all(by_machine)
        and (run.heads == HEADS).all(),
        "S moves by -1 or +1 (Section 4)": {move for _, _, move in MACHINE.transitions.values()}
        == {-1, 1},
        "l_0 = 1, the head never left of cell 1 (Section 4; E5)": HEADS[0] == 1
        and HEADS.min() >= 1,
        "halts within T, w_pos = ceil(log_2 T) (Theorem 4.1, Appendix C.1)": halting_time(
            MACHINE, "", LONGEST
        )
        <= LONGEST
        and math.ceil(math.log2(LONGEST)) == layout.bits,
        "largest score greater than the second largest by 1 (proof of Theorem 4.1)": scores.max()
        - rest.max()
        >= 1,
        "tied positions have the same values (proof of Theorem 4.1)": not weights["Wv"].any(),
        "parameters and inputs perturbed by less than 1/poly (proof of Theorem 4.1)": (
            (jnp.abs(i["epsilon"]) < least) & (jnp.linalg.norm(jnp.asarray(i["value"])) < least)
        ),
    }


def _stored(ratio: float) -> Counterexample:
    instance = {"value": [0.0, 1e-3, 0.0, 0.0], "epsilon": 1e-11}
    return Counterexample(instance=instance, ratio=ratio, meets=_valid)


TIES = in_appendix_d(
    id="smapprox.condd.3.ties",
    label='Proof of Theorem 4.1, "the positions attended to by the layer will not change"',
    formula="the positions attended to at (theta-hat, H-hat) are those at (theta, H); "
    "|f(H, theta-hat) - f(H-hat, theta-hat)| <= mu |H - H-hat|",
    tex=r"\mathcal{J}(\hat H, \hat\theta) = \mathcal{J}(H, \theta), \quad "
    r"\|f(H, \hat\theta) - f(\hat H, \hat\theta)\|_2 \le \mu \max_j \|h_j - \hat h_j\|_2",
    evaluate=_tied_layer,
    judges=(find_last_visit, attend, keys_and_values),
    sample=MOVED.draw,
    project=MOVED.project,
    sizes=({"keys": 4},),
    budget=Budget(restarts=2, steps=40),
    forms=(
        Form(
            name="printed",
            cites='Appendix C.2, proof of Theorem 4.1: "the positions attended to by the layer '
            'will not change unless we perturb the parameters and inputs by" 1/poly',
            erratum="E11",
            note="The head is on cell 1 after steps 0, 2 and 4, so keys 1 and 3 tie. Every change "
            "of the key weight on the second bit of pos1, however small, breaks the tie.",
            counterexample=_stored(2.0),
        ),
        Form(
            name="printed condition",
            cites='Appendix C.2, proof of Theorem 4.1: "Condition D.3 with Lipschitz constants '
            'poly ... holds"',
            erratum="E11",
            note="At the perturbed parameters theta-hat the values of the two tied keys differ by "
            "some e. An arbitrarily small change of the states H selects one of these keys, so the "
            "output jumps by e/2. For every constant mu, a small enough change of H makes e/2 "
            "larger than mu |H - H-hat|. The check sets mu = (|Z||A| w_pos)^3.",
            counterexample=_stored(2540.2631712642633),
        ),
        Form(
            name="corrected",
            note="The inequality |f(H-hat, theta-hat) - f(H, theta)| <= kappa |theta-hat - theta| "
            "max(|H|, 1) + mu |H - H-hat| holds with kappa = sqrt 2 and mu = 1. All tied keys "
            "have equal values at the unperturbed theta, so it does not matter which key the "
            "perturbed attention selects. The proof of Lemma D.8 uses only this inequality.",
        ),
    ),
    control="a quarter of the corrected right side",
    assumptions="the check uses the attention of Claim C.4 on a walk that returns twice to a cell",
    source="Appendix C.2; Definition D.2, Condition D.3",
)

STATEMENTS = (DEFINITION_D1, ROUNDING_LIPSCHITZ, TIES)
