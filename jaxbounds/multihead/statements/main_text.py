"""Theorems 1 and 2, Corollary 2: the main text with constants, and Theorem 1 along runs."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead import descent
from jaxbounds.multihead.certificate import GoodInitialisation, realized_distance, realized_size
from jaxbounds.multihead.main_text import (
    corollary2_rho,
    corollary2_root_heads,
    theorem1_rho,
    theorem1_root_heads,
)
from jaxbounds.multihead.runs import (
    average_over,
    descend,
    distances,
    horizon,
    largest_until,
    setting,
    start_of,
)
from jaxbounds.multihead.statements.common import token_radius
from jaxbounds.multihead.statements.instances import radius_at_least_one, sparse_context
from jaxbounds.multihead.statements.run_instances import BELOW, on_runs


def _large_enough(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    return {
        "B_2 <= g_0": instance["B"] <= instance["g"],
        "T <= d R^2": size["T"] <= size["d"] * instance["R"] ** 2,
    }


def _constants(instance: Instance, size: Size) -> Sides:
    T, d, R = size["T"], size["d"], instance["R"]
    shape = {"radius": R, "T": T, "d": d}
    s = descent.Setting.bounded(distance=instance["D"], size=instance["s"], **shape)
    s = s._replace(heads=theorem1_root_heads(s) ** 2)
    # Corollary 5 at K = 1: g_0 = 2 B_Phi / gamma with B_Phi = 1, as printed.
    one = jnp.ones(())
    good = GoodInitialisation(instance["B"], one, 2.0 / instance["g"])
    at: dict[str, Any] = {"T": T, "d": d, "corrected": False}
    distance = realized_distance(good, 1.0, corrected=False)
    c = descent.Setting.bounded(distance=distance, size=realized_size(good, distance), **shape)
    c = c._replace(heads=corollary2_root_heads(good, R, 1.0, **at) ** 2)
    needed = descent.root_heads(s)
    pairs = {
        "derived, (3)": (needed, theorem1_root_heads(s)),
        "derived, (3) for Theorem 2": (
            descent.root_heads(s, stability=True),
            theorem1_root_heads(s, stability=True),
        ),
        "derived, rho": (descent.rho(s), theorem1_rho(s)),
        "derived, Corollary 2": (
            good.head_bound * descent.root_heads(c, stability=True),
            jnp.sqrt(c.heads),
        ),
        "derived, rho(K)": (descent.rho(c), corollary2_rho(good, R, 1.0, **at)),
        "control": (needed, 0.98 * theorem1_root_heads(s)),
    }
    return Sides.pairs(pairs)


ALL_ONE = "T = d = 1 and R, D, s, B_2, g_0 all 1"

CONSTANTS = Statement(
    id="multihead.thm1.constants",
    label="Theorems 1 and 2, Corollary 2: the constants",
    formula="(74), (84) and rho of Theorem 3, H and rho(K) of Corollary 5 are at most 468 and 3328 "
    "times (3), 448.6 (dT)^{3/2} R^13 s^2 D^2, 4096 d sqrt(T) R^5 B_2^2 g_0^3 and 651.6 (dT)^{3/2} "
    "R^13 g_0^4",
    tex=r"36 \sqrt{T d} R^3 \left( 3 \sqrt{d} R^2 (3 D + s) + 1 \right) D^2 \le 468 \, d \sqrt{T} "
    r"R^5 s D^3, \quad \rho \le 448.6 \, (d T)^{3/2} R^{13} s^2 D^2",
    kind="inequality",
    over=dict.fromkeys("RDsBg", Box(1, math.inf)),
    cases=lambda size: dict.fromkeys("RDsBg", jnp.ones(1)),
    hypotheses=_large_enough,
    evaluate=_constants,
    judges=(
        *(theorem1_root_heads, theorem1_rho, corollary2_root_heads, corollary2_rho),
        *(descent.root_heads, descent.rho, descent.alpha),
    ),
    sizes=({"T": 1, "d": 1}, {"T": 4, "d": 3}),
    forms=(
        Form(
            name="derived, (3)",
            note="The proof uses 9 D + 3 s + 1 <= 13 s D, with s = ||theta||_{2,inf}. The module "
            "`jaxbounds.multihead.main_text` gives the proof.",
            equality=ALL_ONE,
        ),
        Form(
            name="derived, (3) for Theorem 2",
            note="The sqrt(H) in this version of the claim has the factor 256 of (84) in place of "
            "the factor 36 of (74).",
            equality=ALL_ONE,
        ),
        Form(
            name="derived, rho",
            note="The proof uses alpha <= 42 sqrt(d T) R^5 s D. The bound on rho holds if H "
            "satisfies (3).",
            equality=ALL_ONE,
        ),
        Form(
            name="derived, Corollary 2",
            note="The proof uses 12 g_0 + 3 B_2 + 1 <= 16 B_2 g_0, true for g_0 >= B_2 >= 1.",
            equality=ALL_ONE,
        ),
        Form(
            name="derived, rho(K)",
            note="The proof uses 12 g_0 + 3 B_2 + 2 <= 17 g_0, true for g_0 >= B_2 >= 1.",
            equality=ALL_ONE,
        ),
    ),
    control="0.98 of (3) with its constant",
    assumptions="R, D, s = ||theta||_{2,inf}, B_2 >= 1, g_0 >= B_2, T <= d R^2: without these the "
    "printed orders are not those of the appendix (E11)",
    search="none",
    budget=Budget(samples=192, restarts=0, steps=0),
    source="Section 4.1, eq. (3); Sections 4.2 and 4.3, against Appendices B.4, C.1 and C.4",
)


def _main_text_run(key: jax.Array, size: Size) -> Instance:
    data_key, head_key, number_key = jax.random.split(key, 3)
    T, d, numbers = size["T"], size["d"], jax.random.uniform(number_key, (4,))
    data = sparse_context(size, signal=1.0, noise=0.2).sample(data_key, size["n"])
    data = {**data, "X": (1.0 + 0.5 * numbers[2]) * data["X"]}
    length = 0.5 + 2.5 * numbers[0]
    s = descent.Setting.bounded(
        distance=jnp.sqrt(1.0 + length**2), size=1.0, radius=token_radius(data), T=T, d=d
    )
    heads = jnp.ceil(theorem1_root_heads(s) ** 2 * (1 + 1e-9))
    alone = jax.random.normal(head_key, (d * (T + d),))
    alone = alone / jnp.linalg.norm(alone) * (1 + 1e-12)
    classes = jnp.zeros(d).at[0].set(1.0).at[1].set(-1.0) / jnp.sqrt(2.0 * T)
    shared = jnp.broadcast_to(classes, (T, d)) * length / jnp.sqrt(heads - 1.0)
    zero = {"U": jnp.zeros((2, T, d)), "W": jnp.zeros((2, d, d))}
    problem = {
        **data,
        "K": 1 + jnp.floor(size["steps"] * numbers[3]).astype(int),
        **{f"{name}0": leaf for name, leaf in zero.items()},
        "U": jnp.stack([alone[: T * d].reshape(T, d), shared]),
        "W": zero["W"].at[0].set(alone[T * d :].reshape(d, d)),
        "copies": jnp.stack([jnp.ones(()), heads - 1.0]),
    }
    largest = _largest_step(setting(problem), horizon(problem))
    return {**problem, "step": BELOW * (0.3 + 0.7 * numbers[1]) * largest}


def _largest_step(s: descent.Setting, K: ArrayLike) -> ArrayLike:
    by_loss = s.distance**2 / jnp.maximum(K * s.loss_target, s.loss_start)
    return jnp.minimum(jnp.minimum(1 / theorem1_rho(s), by_loss), 1.0)


def _theorem1(instance: Instance, size: Size) -> Sides:
    run, s, step, K = descend(instance), setting(instance), instance["step"], horizon(instance)
    average = average_over(run.losses, instance, first=1)
    moved = distances(run, start_of(instance), instance["copies"])
    return Sides.pairs(
        {
            "derived": (average, descent.loss_bound(s, step, K)),
            "derived, distance": (
                largest_until(moved, instance, last=1),
                descent.distance_bound(s),
            ),
            "derived, (74)": (descent.root_heads(s), jnp.sqrt(s.heads)),
            "derived, eta": (step, descent.largest_step(s, K)),
            "control": (average, 2 * s.loss_target),
        }
    )


def _main_text(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    s = setting(instance)
    return {
        **radius_at_least_one(instance, size),
        "D, ||theta||_{2,inf} >= 1": jnp.minimum(s.distance, s.size) >= 1 - 1e-12,
        "T <= d R^2": s.d * jnp.asarray(s.radius) ** 2 >= s.T,
        "(3) with 468": jnp.sqrt(s.heads) >= theorem1_root_heads(s),
        "eta of Theorem 1": instance["step"] <= _largest_step(s, horizon(instance)),
    }


THEOREM_1 = on_runs(
    id="multihead.thm1",
    label="Theorem 1",
    formula="sqrt(H) >= 468 d sqrt(T) R^5 ||theta||_{2,inf} D^3, eta <= 1/(448.6 (dT)^{3/2} R^13 "
    "||theta||^2_{2,inf} D^2): (1/K) sum L(theta_k) <= 2 L(theta) + 5 D^2 / (4 eta K)",
    tex=r"\sqrt{H} \ge 468 \, d T^{1/2} R^5 \|\theta\|_{2,\infty} \|\theta - \theta_0\|^3 \implies "
    r"\frac{1}{K} \sum_{k=1}^K \hat L(\theta_k) \le 2 \hat L(\theta) + \frac{5 \|\theta - "
    r"\theta_0\|^2}{4 \eta K}",
    evaluate=_theorem1,
    judges=(theorem1_root_heads, theorem1_rho, descent.loss_bound, descent.distance_bound),
    forms=(
        Form(
            name="derived",
            note="The check's runs have the least number H of heads that (3) allows with the "
            "constant 468. Theorem 3 then gives the bound on the mean loss.",
        ),
        Form(
            name="derived, distance",
            note="This version of the claim bounds the distance of the iterates from the start: "
            "||theta_k - theta_0|| <= 4 D.",
        ),
        Form(
            name="derived, (74)",
            note="The head count of Theorem 1 is at least the head count that Theorem 3 requires.",
        ),
        Form(name="derived, eta", note="Theorem 3 allows the step size of Theorem 1."),
    ),
    control="the term in ||theta - theta_0||^2 is dropped",
    source="Section 4.1, Theorem 1, eqs. (3), (4)",
    sample={"DM1 from zero": _main_text_run},
    hypotheses=_main_text,
    sizes=({"n": 3, "T": 3, "d": 3, "steps": 60},),
    budget=Budget(samples=64, restarts=0, steps=0, batch=64),
    assumptions="Assumption 1; D, ||theta||_{2,inf} >= 1 and T <= d R^2 (E11)",
)

STATEMENTS = (CONSTANTS, THEOREM_1)
