"""The statements for Section 4.1 and Appendix B: Theorems 1 and 3, Assumption 2, Corollary 3."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Form, Hypotheses, Instance, Sides, Size, Statement
from jaxbounds.multihead import descent
from jaxbounds.multihead.descent_certificate import least_root
from jaxbounds.multihead.model import head_norm
from jaxbounds.multihead.realizable import (
    class_direction,
    realizer,
    realizing_distance,
    realizing_size,
)
from jaxbounds.multihead.runs import (
    average_over,
    descend,
    distances,
    horizon,
    largest_until,
    setting,
    start_of,
    training_set,
)
from jaxbounds.multihead.statements.descent_lemmas import rounding_of_losses
from jaxbounds.multihead.statements.run_instances import (
    FROM_ZERO,
    certified,
    enough_heads,
    on_runs,
    realized,
    short_enough,
)
from jaxbounds.multihead.tied import tied_distance, tied_risk

LARGEST, MEAN = "sharpened S6, S9, S10", "sharpened S2, S6, S8, S10"
THREE = {"printed": descent.PRINTED, LARGEST: descent.LARGEST_HEAD, MEAN: descent.SHARPEST}
"""A dictionary from each version of Theorem 3 to the constants that it uses."""


def _theorem3(instance: Instance, size: Size) -> Sides:
    run, s, step, K = descend(instance), setting(instance), instance["step"], horizon(instance)
    average = average_over(run.losses, instance, first=1)
    moved = distances(run, start_of(instance), instance["copies"])
    furthest = largest_until(moved, instance, last=1)
    start, last = run.losses[0], run.losses[instance["K"]]
    sides = {
        # Both numbers are subtracted from L(theta_0), because their difference is small beside
        # L(theta_0).
        "printed, last iterate": (start - average, start - last),
        "printed, (80)": (average, descent.averaged_loss(s, step, K)),
        "control": (average, 2 * s.loss_target),
    }
    for name, constants in THREE.items():
        sides[name] = average, descent.loss_bound(s, step, K, constants)
        sides[f"{name}, distance"] = furthest, descent.distance_bound(s, constants)
    error = dict.fromkeys(sides, jnp.zeros(()))
    error["printed, last iterate"] = 2 * jnp.max(rounding_of_losses(instance, run))
    return Sides.pairs(sides, error=error)


def _several_steps(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    run = descend(instance)
    fallen = run.losses[0] - run.losses[instance["K"]]
    return {
        **certified(descent.PRINTED)(instance, size),
        "K >= 2": instance["K"] >= 2,
        "the loss falls by more than rounding": fallen
        >= 1e5 * jnp.max(rounding_of_losses(instance, run)),
    }


def _guaranteed(
    name: str, constants: descent.Constants, note: str, moved: str
) -> tuple[Form, Form]:
    kept = certified(constants)
    cites = "Theorem 3, eq. (79), Appendix B.4" if constants.printed else ""
    distance = Form(name=f"{name}, distance", cites=cites, hypotheses=kept, note=moved)
    return Form(name=name, cites=cites, hypotheses=kept, note=note), distance


THEOREM_3 = on_runs(
    id="multihead.thm3",
    label="Theorem 3",
    formula="L(theta_K) <= (1/K) sum_{k=1}^K L(theta_k) <= 2 L(theta) + 5 ||theta - theta_0||^2 / "
    "(4 eta K), ||theta_K - theta_0|| <= 4 ||theta - theta_0||",
    tex=r"\hat L(\theta_K) \le \frac{1}{K} \sum_{k=1}^{K} \hat L(\theta_k) \le 2 \hat "
    r"L(\theta) + \frac{5 \|\theta - \theta_0\|^2}{4 \eta K}, \quad \|\theta_K - "
    r"\theta_0\| \le 4 \|\theta - \theta_0\|",
    evaluate=_theorem3,
    judges=(
        descent.loss_bound,
        descent.distance_bound,
        descent.averaged_loss,
        descent.root_heads,
        descent.rho,
        descent.alpha,
    ),
    forms=(
        *_guaranteed(
            "printed",
            descent.PRINTED,
            "",
            "||theta_k - theta_0|| <= 4 ||theta - theta_0|| for all k <= K.",
        ),
        Form(
            name="printed, last iterate",
            cites="Theorem 3, eq. (79), Appendix B.4",
            hypotheses=_several_steps,
            note="This version of the claim is L(theta_K) <= (1/K) sum_k L(theta_k), the first "
            "part of (79). The check subtracts both sides from L(theta_0). The check uses K >= 2, "
            "because both sides are equal at K = 1.",
        ),
        Form(
            name="printed, (80)",
            cites="eq. (80), Appendix B.4",
            hypotheses=certified(descent.PRINTED),
            note="The bound on the mean loss is 2 L(theta) + 3 D^2 / (4 eta K) + L(theta_0) / (2 "
            "K), with D = ||theta - theta_0||.",
        ),
        *_guaranteed(
            LARGEST,
            descent.LARGEST_HEAD,
            "The conditions are sqrt(H) >= (26/3) beta_3#(B) D^2 with B = sqrt(13/3) D + max_h "
            "||U_h||_F, and eta <= 1/rho#. A step has length at most 4 / (sqrt(T) R), so rho# "
            "bounds beta_2# only within B + 4 / (sqrt(T) R). The bound on the loss is Lemma 9's.",
            "The bound on the distance is 3.09 D, not 4 D.",
        ),
        *_guaranteed(
            MEAN,
            descent.SHARPEST,
            "The factor q = sec(sqrt(1/2)/2) / 2 replaces 2/3. The constant beta_1# contains the "
            "root mean square over heads, which changes by at most D / sqrt(H). So rho# tends to T "
            "R^2 / 4 as H grows.",
            "The bound on the distance is (1 + sqrt(3 + 2 q)) D = 3.02 D, not 4 D.",
        ),
    ),
    control="the term in ||theta - theta_0||^2 is dropped",
    source="Appendix B.4, eq. (79); Theorem 1, eq. (4)",
    assumptions="Assumption 1; (74); eta of Theorem 3. Sharpened forms: their own H and eta",
)


LEVELS = (2.0, 1.0, 0.1, 1e-3, 1e-6)
"""The values of eps at which the check tests Assumption 2."""


def _assumption2(instance: Instance, size: Size) -> Sides:
    copies = instance["copies"]
    heads, data = jnp.sum(copies), training_set(instance)

    def worst(level: Array) -> Array:
        params = realizer(level, copies)
        away = tied_distance(params, start_of(instance), copies)
        norm = head_norm(params) / realizing_size(level, heads, instance["slack"])
        away = away / realizing_distance(level, instance["slack"])
        return jnp.stack([tied_risk(params, copies, data) / level, away, norm])

    _, away, norm = worsts = jnp.max(jax.vmap(worst)(jnp.asarray(LEVELS)), axis=0)
    return Sides(
        lhs={"printed": jnp.max(worsts), "printed, g_0": away, "printed, g": norm, "control": away},
        rhs={"printed": 1.0, "printed, g_0": 1.0, "printed, g": 1.0, "control": 0.5},
    )


ASSUMPTION_2 = on_runs(
    id="multihead.asn2",
    label="Assumption 2",
    formula="for all eps > 0 some theta has L(theta) <= eps, ||theta - theta_0|| <= g_0(eps) and "
    "||theta||_{2,inf} <= g(eps)",
    tex=r"\forall \epsilon > 0 \; \exists \theta(\epsilon): \quad \hat L(\theta(\epsilon)) "
    r"\le \epsilon, \quad \|\theta(\epsilon) - \theta_0\| \le g_0(\epsilon), \quad "
    r"\|\theta(\epsilon)\|_{2,\infty} \le g(\epsilon)",
    evaluate=_assumption2,
    judges=(realizer, class_direction, realizing_distance, realizing_size),
    forms=(
        Form(
            name="printed",
            cites="Assumption 2, Section 4.2",
            equality="||theta(eps) - theta_0|| = g_0(eps), where the instance has no slack",
            note=(
                "The data have two relevant tokens of three, and the third token is pure noise "
                "(the data model DM1, except that M = 0). The start theta_0 is zero. The target "
                "theta(eps) is the class direction, spread over the H heads, of length g_0 = log(1 "
                "+ 1/eps) / gamma. Each head of the target has the norm g = g_0 / sqrt(H)."
            ),
        ),
        Form(name="printed, g_0", cites="Assumption 2, Section 4.2", equality="as above"),
        Form(name="printed, g", cites="Assumption 2, Section 4.2", equality="as above"),
    ),
    control="g_0 and g halved",
    source="Section 4.2, Assumption 2",
    relation="<=",
    sample=FROM_ZERO,
    kind="construction",
    assumptions="zero initialisation; the class direction has margin gamma > 0 on every "
    "sequence; five values of eps",
)


def at_level(instance: Instance) -> descent.Setting:
    """Return the quantities (`Setting`) with which Corollaries 3 and 4 apply Theorems 3 and 4.

    This setting has D = g_0(1/K), ||theta||_{2,infinity} = g(1/K) and L(theta) = 1/K, with the
    functions g_0 and g of Assumption 2.
    """
    s, level, slack = setting(instance), 1 / horizon(instance), instance["slack"]
    distance = realizing_distance(level, slack)
    size = realizing_size(level, s.heads, slack)
    return s.of_size(size, distance=distance, loss_target=level)


def corollary_conditions(number: int, equation: str) -> Hypotheses:
    """Return the hypotheses of Corollary 3 or 4: equation (81) or (95), and a small step size.

    The step size is also at most g_0(1)^2 and g_0(1)^2 / L(theta_0).
    """

    def hypotheses(instance: Instance, size: Size) -> dict[str, ArrayLike]:
        s, unit = at_level(instance), realizing_distance(1.0, instance["slack"]) ** 2
        (short,) = short_enough(s, instance, descent.PRINTED).values()
        short &= instance["step"] <= jnp.minimum(unit, unit / s.loss_start)
        return enough_heads(s, descent.PRINTED, equation) | {f"eta of Corollary {number}": short}

    return hypotheses


def _sharp_conditions(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    s = at_level(instance)
    return enough_heads(s, descent.SHARPEST, "(81)") | short_enough(s, instance, descent.SHARPEST)


def _corollary3(instance: Instance, size: Size) -> Sides:
    run, s, step, K = descend(instance), at_level(instance), instance["step"], horizon(instance)
    loss = run.losses[instance["K"]]
    moved = distances(run, start_of(instance), instance["copies"])[instance["K"]]
    return Sides.pairs(
        {
            "printed": (loss, descent.loss_bound(s, step, K)),
            "printed, distance": (moved, descent.distance_bound(s)),
            MEAN: (loss, descent.loss_bound(s, step, K, descent.SHARPEST)),
            "control": (loss, 2 / K),
        }
    )


COROLLARY_3 = on_runs(
    id="multihead.cor3",
    label="Corollary 3",
    formula="L(theta_K) <= 2/K + 5 g_0(1/K)^2 / (4 eta K), ||theta_K - theta_0|| <= 4 g_0(1/K)",
    tex=r"\hat L(\theta_K) \le \frac{2}{K} + \frac{5 g_0(1/K)^2}{4 \eta K}, \quad \|\theta_K "
    r"- \theta_0\| \le 4 g_0(1/K)",
    evaluate=_corollary3,
    judges=(descent.loss_bound, descent.distance_bound),
    forms=(
        Form(
            name="printed",
            cites="Corollary 3, eq. (82), Appendix B.5",
            hypotheses=corollary_conditions(3, "(81)"),
            note="The proof assumes ||theta(eps) - theta_0|| = g_0(eps) (erratum E12). The check "
            "also covers ||theta(eps) - theta_0|| < g_0(eps).",
        ),
        Form(
            name="printed, distance",
            cites="Corollary 3, eq. (82), Appendix B.5",
            hypotheses=corollary_conditions(3, "(81)"),
        ),
        Form(
            name=MEAN,
            hypotheses=_sharp_conditions,
            note=(
                "The bound on the loss is Lemma 9's bound with a smaller factor q (sharpening S8). "
                "The target theta has loss L(theta) = 1/K and distance D = g_0(1/K) from the "
                "start. The sharpened constants beta_2# and beta_3# limit the number H of heads "
                "and the step size eta that the check chooses."
            ),
        ),
    ),
    control="the term in g_0(1/K)^2 is dropped",
    source="Appendix B.5, eqs. (81), (82)",
    sample=FROM_ZERO,
    hypotheses=realized,
    assumptions="Assumptions 1 and 2; (81); eta of Corollary 3. The sharpened version has its own "
    "limits for H and eta",
)


LEAST = {"derived": descent.PRINTED, LARGEST: descent.LARGEST_HEAD, MEAN: descent.SHARPEST}
"""A dictionary from each version of the least number of heads, (74) or sharpened, to its constants.
The paper states no formula for this number.
"""


def _least_heads(instance: Instance, size: Size) -> Sides:
    D, base, spread, R = (instance[name] for name in ("D", "size", "spread", "R"))
    s = descent.Setting.bounded(distance=D, size=base, radius=R, T=size["T"], d=size["d"])
    pairs = {}
    for name, constants in LEAST.items():
        root = least_root(s, constants, spread)
        pairs[name] = root, descent.root_heads(s.of_size(base + spread / root), constants)
    root, _ = pairs["derived"]
    return Sides.pairs(pairs | {"control": (root, descent.root_heads(s.of_size(base)))})


LEAST_HEADS = Statement(
    id="multihead.eq74.least",
    label="eq. (74), the least H",
    formula="the least x with x >= the right side of (74) at ||theta||_{2,inf} = size + spread / x",
    tex=r"\min \left\{ x : x \ge 36 \sqrt{T d} R^3 \left( 3 \sqrt{d} R^2 \left( 3 D + s + "
    r"\frac{r}{x} \right) + 1 \right) D^2 \right\}, \quad \|\theta\|_{2,\infty} = s + "
    r"\frac{r}{x}, \; x = \sqrt{H}",
    kind="identity",
    over=dict.fromkeys(("size", "spread"), Box(0, math.inf))
    | {"D": Box(1e-3, math.inf), "R": Box(1, math.inf)},
    evaluate=_least_heads,
    judges=(least_root, descent.root_heads_spread),
    sizes=({"T": 3, "d": 2},),
    forms=tuple(Form(name=name) for name in LEAST),
    control="the target's spread part is left out",
    budget=Budget(samples=64),
    source="library: the closed form behind every certified head count, as a fixed point",
)


STATEMENTS = (THEOREM_3, LEAST_HEADS, ASSUMPTION_2, COROLLARY_3)
