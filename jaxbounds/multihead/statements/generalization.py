"""Section 4.2 and Appendix C: Lemmas 3 and 11, Theorem 4, Corollary 4."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.descent import (
    PRINTED_WEIGHT,
    STABILITY,
    generalization_gap,
    gradient_sharp,
    reach,
    root_heads,
    stability,
    stability_sharp,
)
from jaxbounds.multihead.realizable import REALIZABLE_RUNS, distance_function, realized
from jaxbounds.multihead.runs import descend, printed_step, setting, sizes_along
from jaxbounds.multihead.stability import leave_one_out, on_average_stability
from jaxbounds.multihead.statements.descent_shared import assumption1, run_statement
from jaxbounds.multihead.statements.stability_shared import (
    CONDITIONS,
    SHARP,
    printed_conditions,
    sharp_conditions,
    uniform_constants,
)
from jaxbounds.multihead.tied import tied_risk
from jaxbounds.statements import Budget, Form, Instance, Sides


def _sharp_stability(instance: Instance):
    s = setting(instance)
    return stability_sharp(
        s.loss_target,
        s.loss_start,
        s.distance,
        s.largest,
        s.squares,
        s.radius,
        s.heads,
        instance["step"],
        instance["K"].astype(s.heads.dtype),
        instance["X"].shape[0],
        T=s.shape["T"],
    )


def _average_stability(instance: Instance):
    full, without = descend(instance), leave_one_out(instance)
    return on_average_stability(full, without, instance["copies"])[instance["K"]]


def _lemma11(instance: Instance) -> Sides:
    s, n = setting(instance), instance["X"].shape[0]
    step, K = instance["step"], instance["K"].astype(s.heads.dtype)
    gradient, _ = uniform_constants(instance)[SHARP]
    return Sides(
        lhs=_average_stability(instance),
        rhs={
            "printed": stability(
                s.loss_target, s.distance, s.size, s.radius, step, K, n, **_tokens(s)
            ),
            SHARP: _sharp_stability(instance),
            "control": step * gradient / n * s.loss_start,
        },
    )


def _tokens(s):
    return {"T": s.shape["T"]}


def _gap(instance: Instance):
    """Loss on fresh data minus training loss, at theta_K: the generalization gap on average."""
    run, K = descend(instance), instance["K"]
    last = jax.tree.map(lambda leaf: leaf[K], run.params)
    fresh = {"X": instance["X_test"], "y": instance["y_test"]}
    return tied_risk(last, instance["copies"], fresh) - run.losses[K]


def _lipschitz(s):
    """beta_1# on the ball that (75) guarantees: every l_i is that Lipschitz there."""
    far = reach(PRINTED_WEIGHT)
    return gradient_sharp(s.distance, s.squares, s.radius, s.heads, T=s.shape["T"], far=far)


def _lemma3(instance: Instance) -> Sides:
    s = setting(instance)
    rhs = 2 * _lipschitz(s) * _average_stability(instance)
    return Sides(lhs=_gap(instance), rhs={"printed": rhs, "control": 0.0 * rhs})


@jax.jit
def _visited(instance: Instance) -> dict:
    """The iterates of all runs are where G is a Lipschitz constant."""
    s, copies = setting(instance), instance["copies"]
    full, without = descend(instance), leave_one_out(instance)
    root = lambda run: jnp.max(jnp.sqrt(sizes_along(run, copies)[2]))
    furthest = jnp.maximum(root(full), jnp.max(jax.vmap(root)(without)))
    limit = jnp.sqrt(s.squares) + reach(PRINTED_WEIGHT) * s.distance / jnp.sqrt(s.heads)
    return assumption1(instance) | {"G on the visited region": furthest <= limit}


def _theorem4(instance: Instance) -> Sides:
    s, n = setting(instance), instance["X"].shape[0]
    step, K = instance["step"], instance["K"].astype(s.heads.dtype)
    return Sides(
        lhs=_gap(instance),
        rhs={
            "printed": generalization_gap(s.loss_target, s.distance, step, K, n),
            SHARP: 2 * _lipschitz(s) * _sharp_stability(instance),
            "control": 0.0 * step,
        },
    )


def _corollary4(instance: Instance) -> Sides:
    s, n = setting(instance), instance["X"].shape[0]
    step, K = instance["step"], instance["K"].astype(s.heads.dtype)
    distance = distance_function(instance, 1 / K)
    wider = s._replace(distance=distance)
    sharp = stability_sharp(
        1 / K,
        s.loss_start,
        distance,
        s.largest,
        s.squares,
        s.radius,
        s.heads,
        step,
        K,
        n,
        T=s.shape["T"],
    )
    return Sides(
        lhs=_gap(instance),
        rhs={
            "printed": 17 * distance**2 / (step * n),
            SHARP: 2 * _lipschitz(wider) * sharp,
            "control": 0.0 * step,
        },
    )


@jax.jit
def _corollary4_conditions(instance: Instance) -> dict:
    """(95) and the step size of Corollary 4, with g_0(1/K) and g(1/K)."""
    s = setting(instance)
    K = instance["K"].astype(s.heads.dtype)
    distance = distance_function(instance, 1 / K)
    bounds = s._replace(distance=distance, size=distance / jnp.sqrt(s.heads), loss_target=1 / K)
    root = root_heads(bounds.distance, bounds.size, s.radius, factor=STABILITY, **s.shape)
    unit = distance_function(instance, jnp.ones(())) ** 2
    by_unit = jnp.minimum(unit, unit / s.loss_start)
    allowed = jnp.minimum(printed_step(bounds, K), by_unit)
    return {"(95)": s.heads >= root**2, "eta of Corollary 4": instance["step"] <= allowed}


_POPULATION = {
    "kind": "expectation",
    "sample": REALIZABLE_RUNS,
    "budget": Budget(samples=768, restarts=0, steps=0, batch=128),
}

STATEMENTS = (
    run_statement(
        "lem11",
        "Lemma 11",
        "(1/n) sum_i ||theta_K - theta_K^{-i}|| <= (2 eta beta~_1 / n) (2 K L(theta) "
        "+ 9 ||theta - theta_0||^2 / (4 eta))",
        _lemma11,
        (
            Form(name="printed", hypotheses=printed_conditions),
            Form(
                name=SHARP,
                hypotheses=sharp_conditions,
                note="Both runs stay within sqrt(13/3) D of theta, so (104/3) beta_3# D^2 <= "
                "sqrt(H) replaces 128 beta~_3 D^2; exp(sum alpha) <= exp(1/4) replaces 2.",
            ),
        ),
        "the sum of the losses along the run is replaced by its first term",
        "Appendix C, eq. (84)",
        assumptions=CONDITIONS,
    ),
    run_statement(
        "lem3",
        "Lemma 3",
        "E[L(theta_K) - L^(theta_K)] <= 2 G E[(1/n) sum_i ||theta_K - theta_K^{-i}||]",
        _lemma3,
        (Form(name="printed", note="G = beta_1# on the ball of (75), checked on all runs."),),
        "no generalization gap",
        "Section 6.2; Lei and Ying (2020), Theorem 2",
        hypotheses=_visited,
        assumptions="every l_i is G-Lipschitz where the runs go; a fresh test set estimates L",
        **_POPULATION,
    ),
    run_statement(
        "thm4",
        "Theorem 4",
        "E[L(theta_K) - L^(theta_K)] <= (4/n) E[2 K L^(theta) + 9 ||theta - theta_0||^2 / (4 eta)]",
        _theorem4,
        (
            Form(name="printed", hypotheses=printed_conditions),
            Form(
                name=SHARP,
                hypotheses=sharp_conditions,
                note="2 beta_1# times the sharpened Lemma 11.",
            ),
        ),
        "no generalization gap",
        "Appendix C.1, eq. (93); Theorem 2, eq. (5)",
        assumptions=CONDITIONS,
        **_POPULATION,
    ),
    run_statement(
        "cor4",
        "Corollary 4",
        "E[L(theta_K) - L^(theta_K)] <= 17 g_0(1/K)^2 / (eta n)",
        _corollary4,
        (
            Form(name="printed", hypotheses=_corollary4_conditions),
            Form(
                name=SHARP,
                hypotheses=sharp_conditions,
                note="2 beta_1# times the sharpened Lemma 11 with L(theta) = 1/K, D = g_0(1/K).",
            ),
        ),
        "no generalization gap",
        "Appendix C.2, eq. (96)",
        hypotheses=lambda instance: assumption1(instance) | realized(instance),
        assumptions="Assumption 1; Assumption 2 almost surely; (95); eta of Corollary 3. "
        "Sharpened form: its own H and eta",
        **_POPULATION,
    ),
)
