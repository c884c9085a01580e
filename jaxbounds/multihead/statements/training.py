"""Section 4.1 and Appendix B: Theorems 1 and 3, Assumption 2, Corollary 3."""

import math

import jax
import jax.numpy as jnp

from jaxbounds.multihead.descent import (
    PRINTED_WEIGHT,
    averaged_loss,
    reach,
    rho,
    root_heads,
    root_heads_sharp,
    root_heads_spread,
    theorem3_loss,
)
from jaxbounds.multihead.model import head_norm
from jaxbounds.multihead.realizable import REALIZABLE_RUNS, distance_function, realized, realizer
from jaxbounds.multihead.runs import (
    averaged,
    data_of,
    descend,
    distances,
    printed_step,
    setting,
    sharp_step,
    start_of,
    within,
)
from jaxbounds.multihead.statements.descent_shared import (
    assumption1,
    many_heads,
    many_sharp_heads,
    run_statement,
)
from jaxbounds.multihead.tied import tied_distance, tied_risk
from jaxbounds.statements import Budget, Form, Instance, Sides

S8_WEIGHT = float(0.5 / math.cos(math.sqrt(0.5) / 2))
"""q at kappa = 1/2."""


@jax.jit
def printed_conditions(instance: Instance) -> dict:
    """The head count and the step size of Theorem 3."""
    s = setting(instance)
    allowed = instance["step"] <= printed_step(s, instance["K"].astype(s.heads.dtype))
    return many_heads(instance) | {"eta of Theorem 3": allowed}


def sharp_conditions(*, largest_head: bool):
    """The head count and the step size of the sharpened Theorem 3."""
    enough = many_sharp_heads(PRINTED_WEIGHT if largest_head else S8_WEIGHT)

    def hypotheses(instance: Instance) -> dict:
        s = setting(instance)
        K = instance["K"].astype(s.heads.dtype)
        allowed = instance["step"] <= sharp_step(s, K, largest_head=largest_head)
        return enough(instance) | {"eta <= 1 / rho# and (73)": allowed}

    return hypotheses


_LARGEST, _MEAN = "sharpened S6, S9, S10", "sharpened S2, S6, S8, S10"


def _theorem3(instance: Instance) -> Sides:
    run, s, step = descend(instance), setting(instance), instance["step"]
    K = instance["K"].astype(step.dtype)
    average = averaged(run.losses, instance)
    moved = distances(run, start_of(instance), instance["copies"])
    furthest = jnp.max(jnp.where(within(instance, last=1), moved, 0.0))
    regret = lambda weight: averaged_loss(
        s.loss_target, s.loss_start, s.distance, step, K, weight=weight
    )
    sides = {
        "printed": (average, theorem3_loss(s.loss_target, s.distance, step, K)),
        "printed, last iterate": (run.losses[instance["K"]], average),
        "printed, distance": (furthest, 4 * s.distance),
        _LARGEST: (average, regret(PRINTED_WEIGHT)),
        f"{_LARGEST}, distance": (furthest, (1 + reach(PRINTED_WEIGHT)) * s.distance),
        _MEAN: (average, regret(S8_WEIGHT)),
        f"{_MEAN}, distance": (furthest, (1 + reach(S8_WEIGHT)) * s.distance),
        "control": (average, 2 * s.loss_target),
    }
    return Sides(
        lhs={name: pair[0] for name, pair in sides.items()},
        rhs={name: pair[1] for name, pair in sides.items()},
    )


_THEOREM3_FORMS = (
    Form(name="printed", hypotheses=printed_conditions),
    Form(
        name="printed, last iterate",
        hypotheses=printed_conditions,
        equality="K = 1",
        note="L(theta_K) <= (1/K) sum_k L(theta_k), the first part of (79).",
    ),
    Form(
        name="printed, distance",
        hypotheses=printed_conditions,
        note="||theta_k - theta_0|| <= 4 ||theta - theta_0|| for all k <= K.",
    ),
    Form(
        name=_LARGEST,
        hypotheses=sharp_conditions(largest_head=True),
        note="sqrt(H) >= (26/3) beta_3#(B) D^2 with B = sqrt(13/3) D + max_h ||U_h||_F, and "
        "eta <= 1/rho#: a step is at most 4 / (sqrt(T) R), so beta_2# is needed within "
        "B + 4 / (sqrt(T) R) only. The bound is Lemma 9's.",
    ),
    Form(
        name=f"{_LARGEST}, distance",
        hypotheses=sharp_conditions(largest_head=True),
        note="3.09 D for 4 D.",
    ),
    Form(
        name=_MEAN,
        hypotheses=sharp_conditions(largest_head=False),
        note="With q = sec(sqrt(1/2)/2) / 2 for 2/3, and with the root mean square over heads "
        "in beta_1#, which moves by D / sqrt(H) only: rho# tends to T R^2 / 4 as H grows.",
    ),
    Form(
        name=f"{_MEAN}, distance",
        hypotheses=sharp_conditions(largest_head=False),
        note="(1 + sqrt(3 + 2 q)) D = 3.02 D for 4 D.",
    ),
)


def _assumption2(instance: Instance) -> Sides:
    def worst(level):
        params, copies = realizer(instance, level), instance["copies"]
        allowed = distance_function(instance, level)
        risk = tied_risk(params, copies, data_of(instance)) / level
        away = tied_distance(params, start_of(instance), copies) / allowed
        size = head_norm(params) * jnp.sqrt(jnp.sum(copies)) / allowed
        return risk, jnp.maximum(away, size)

    risk, norms = jax.vmap(worst)(jnp.asarray([2.0, 1.0, 0.1, 1e-3, 1e-6]))
    return Sides(
        lhs={
            "printed": jnp.maximum(jnp.max(risk), jnp.max(norms)),
            "control": jnp.max(norms),
        },
        rhs={"printed": 1.0, "control": 0.5},
    )


def _widened(instance: Instance):
    """The setting of Corollary 3: g_0(1/K), g(1/K) and 1/K for D, ||theta|| and L(theta)."""
    s = setting(instance)
    K = instance["K"].astype(s.heads.dtype)
    distance = distance_function(instance, 1 / K)
    size = distance / jnp.sqrt(s.heads)
    wide = {"size": size, "largest": size, "squares": size**2, "loss_target": 1 / K}
    return s._replace(distance=distance, **wide), K


def _corollary3_steps(instance: Instance, s):
    """Eta <= g_0(1)^2 ^ g_0(1)^2 / L(theta_0)."""
    unit = distance_function(instance, jnp.ones(())) ** 2
    return instance["step"] <= jnp.minimum(unit, unit / s.loss_start)


@jax.jit
def _corollary3_conditions(instance: Instance) -> dict:
    s, K = _widened(instance)
    enough = s.heads >= root_heads(s.distance, s.size, s.radius, **s.shape) ** 2
    allowed = instance["step"] <= printed_step(s, K)
    return {"(81)": enough, "eta of Corollary 3": allowed & _corollary3_steps(instance, s)}


@jax.jit
def _corollary3_sharp_conditions(instance: Instance) -> dict:
    s, K = _widened(instance)
    root = root_heads_sharp(s.distance, s.largest, s.radius, T=s.shape["T"], weight=S8_WEIGHT)
    allowed = instance["step"] <= sharp_step(s, K, largest_head=False)
    return {"(81) with beta_3#": s.heads >= root**2, "eta <= 1 / rho# and (73)": allowed}


def _corollary3(instance: Instance) -> Sides:
    run, (s, K) = descend(instance), _widened(instance)
    loss, step = run.losses[instance["K"]], instance["step"]
    moved = distances(run, start_of(instance), instance["copies"])[instance["K"]]
    return Sides(
        lhs={
            "printed": loss,
            "printed, distance": moved,
            _MEAN: loss,
            "control": loss,
        },
        rhs={
            "printed": theorem3_loss(1 / K, s.distance, step, K),
            "printed, distance": 4 * s.distance,
            _MEAN: averaged_loss(1 / K, s.loss_start, s.distance, step, K, weight=S8_WEIGHT),
            "control": 2 / K,
        },
    )


def _growing_target(key: jax.Array, size) -> Instance:
    """D between 1 and 100 for a target spread over the heads; T tokens."""
    del key
    return {"tokens": jnp.zeros(size["T"]), "D": jnp.asarray(float(size["D"]))}


def _head_rate(instance: Instance) -> Sides:
    T, D = instance["tokens"].shape[0], instance["D"]
    threshold = lambda extra: root_heads(D, extra, 1.0, T=T, d=2)
    heads = root_heads_spread(threshold, D) ** 2
    # sqrt(H) = d sqrt(T) R^5 (D / sqrt(H)) D^3, with the constant one.
    return Sides(lhs=heads, rhs={"printed": 2 * math.sqrt(T) * D**4, "control": D**2})


def _smoothness_rate(instance: Instance) -> Sides:
    T, D = instance["tokens"].shape[0], instance["D"]
    smoothness = rho(D, 1.0, 1.0, 1e12, T=T, d=2)
    return Sides(lhs=smoothness, rhs={"printed": (2.0 * T) ** 1.5 * D**2, "control": T * D**2})


_RATE_BUDGET = Budget(samples=1, restarts=0, steps=0, batch=1)

STATEMENTS = (
    run_statement(
        "thm3",
        "Theorem 3",
        "L(theta_K) <= (1/K) sum_{k=1}^K L(theta_k) <= 2 L(theta) "
        "+ 5 ||theta - theta_0||^2 / (4 eta K), ||theta_K - theta_0|| <= 4 ||theta - theta_0||",
        _theorem3,
        _THEOREM3_FORMS,
        "the term in ||theta - theta_0||^2 is dropped",
        "Appendix B.4, eq. (79); Theorem 1, eq. (4)",
        assumptions="Assumption 1; (74); eta of Theorem 3. Sharpened forms: their own H and eta",
    ),
    run_statement(
        "asn2",
        "Assumption 2",
        "for all eps > 0 some theta has L(theta) <= eps, ||theta - theta_0|| <= g_0(eps) and "
        "||theta||_{2,inf} <= g(eps)",
        _assumption2,
        (
            Form(
                name="printed",
                equality="||theta(eps) - theta_0|| = g_0(eps), where the instance has no slack",
                note="DM1 from zero: the class direction, spread over the heads, at the length "
                "log(1 + 1/eps) / gamma; g_0 is that, g = g_0 / sqrt(H).",
            ),
        ),
        "g_0 and g halved",
        "Section 4.2, Assumption 2",
        kind="construction",
        relation="<=",
        sample=REALIZABLE_RUNS,
        assumptions="zero initialisation; the class direction has margin gamma > 0 on every "
        "sequence; five values of eps",
    ),
    run_statement(
        "cor3",
        "Corollary 3",
        "L(theta_K) <= 2/K + 5 g_0(1/K)^2 / (4 eta K), ||theta_K - theta_0|| <= 4 g_0(1/K)",
        _corollary3,
        (
            Form(
                name="printed",
                hypotheses=_corollary3_conditions,
                note="The proof takes ||theta(eps) - theta_0|| = g_0(eps) (E12); it is checked "
                "with strict inequality as well.",
            ),
            Form(name="printed, distance", hypotheses=_corollary3_conditions),
            Form(
                name=_MEAN,
                hypotheses=_corollary3_sharp_conditions,
                note="Lemma 9 with q of S8 at L(theta) = 1/K, D = g_0(1/K), and its own H, eta.",
            ),
        ),
        "the term in g_0(1/K)^2 is dropped",
        "Appendix B.5, eqs. (81), (82)",
        sample=REALIZABLE_RUNS,
        hypotheses=lambda instance: assumption1(instance) | realized(instance),
        assumptions="Assumptions 1 and 2; (81); eta of Corollary 3. Sharpened form: its own",
    ),
    run_statement(
        "eq3",
        "Theorem 1, eq. (3)",
        "the heads needed by (74) are O(those of sqrt(H) >= d sqrt(T) R^5 ||theta||_{2,inf} D^3)",
        _head_rate,
        (
            Form(
                name="printed",
                expected="inconsistent",
                erratum="E11",
                sense="at most",
                note="For a target spread over the heads, ||theta||_{2,inf} = D / sqrt(H): (3) "
                "asks for H >~ D^4, Theorem 3 for H >~ D^6.",
            ),
        ),
        "H = O(D^2)",
        "Section 4.1, eq. (3) against Appendix B.4",
        kind="rate",
        sample=_growing_target,
        sizes=tuple({"T": 3, "d": 2, "D": D} for D in (4, 8, 16, 32, 64)),
        hypotheses=None,
        assumptions="theta_0 = 0, a target spread evenly over the heads, D -> infinity",
        budget=_RATE_BUDGET,
    ),
    run_statement(
        "thm1.rho",
        "Theorem 1, rho",
        "rho of Theorem 3 is O(d^{3/2} T^{3/2} R^13 ||theta||_{2,inf}^2 D^2)",
        _smoothness_rate,
        (
            Form(
                name="printed",
                expected="inconsistent",
                erratum="E11",
                sense="at most",
                note="The term T R^2 / 4 alpha^2 grows as T^2, with no 1 / sqrt(H).",
            ),
        ),
        "rho = O(T)",
        "Section 4.1, Theorem 1, against Appendix B.4",
        kind="rate",
        sample=_growing_target,
        sizes=tuple({"T": T, "d": 2, "D": 1} for T in (64, 256, 1024, 4096, 16384)),
        hypotheses=None,
        assumptions="d = 2, R = 1, ||theta||_{2,inf} = D = 1, T -> infinity at H = 10^12",
        budget=_RATE_BUDGET,
    ),
)
