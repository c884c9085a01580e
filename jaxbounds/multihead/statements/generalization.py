"""The statements for Section 4.2 and Appendix C: Lemmas 3 and 11, Theorem 4, Corollary 4."""

import functools

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead import descent
from jaxbounds.multihead.runs import (
    Run,
    descend,
    horizon,
    setting,
    sizes_along,
    training_set,
    within,
)
from jaxbounds.multihead.stability import (
    deviations,
    leave_one_out,
    on_average_stability,
    sample_losses,
)
from jaxbounds.multihead.statements.gradient_descent import at_level, corollary_conditions
from jaxbounds.multihead.statements.instances import radius_at_least_one
from jaxbounds.multihead.statements.run_instances import (
    CONDITIONS,
    FROM_ZERO,
    RUN_ASSUMED,
    RUN_SIZES,
    SHARP,
    certified,
    on_runs,
    realized,
)
from jaxbounds.multihead.tied import tied_risk

on_population = functools.partial(
    Statement,
    kind="expectation",
    sample=FROM_ZERO,
    sizes=RUN_SIZES,
    horizon="steps",
    hypotheses=radius_at_least_one,
    assumptions=RUN_ASSUMED,
    budget=Budget(samples=768, restarts=0, steps=0, batch=128),
)
"""Settings of statements about expectations over training sets."""


ALMOST_NOTHING = (
    "At these H and eta the printed bound is over 1e11 times any gap, so its truth says almost "
    "nothing"
)


def _worst_sample(instance: Instance) -> tuple[Array, Array]:
    full, copies = descend(instance), instance["copies"]
    apart = deviations(full, leave_one_out(instance), copies)[:, instance["K"]]
    alone = jax.vmap(sample_losses, in_axes=(0, None, None))(
        full.params, copies, training_set(instance)
    )
    total = jnp.sum(jnp.where(within(instance, last=0)[:, None], alone, 0.0), axis=0)
    worst = jnp.argmax(apart / total)
    return apart[worst], total[worst]


def _average_stability(instance: Instance) -> Array:
    full, without = descend(instance), leave_one_out(instance)
    return on_average_stability(full, without, instance["copies"])[instance["K"]]


def _lemma11(instance: Instance, size: Size) -> Sides:
    s, n, step, K = setting(instance), size["n"], instance["step"], horizon(instance)
    gradient, _ = descent.ball_constants(s, descent.MEAN_SQUARE)
    printed, _ = descent.ball_constants(s)
    apart, total = _worst_sample(instance)
    rhs = {
        "printed": descent.stability(s, step, K, n),
        SHARP: descent.stability(s, step, K, n, descent.MEAN_SQUARE),
        "control": step * gradient / n * s.loss_start,
    }
    average = _average_stability(instance)
    pairs = {name: (average, bound) for name, bound in rhs.items()}
    return Sides.pairs(pairs | {"printed, (92)": (apart, 2 * step * printed / n * total)})


LEMMA_11 = on_runs(
    id="multihead.lem11",
    label="Lemma 11",
    formula="(1/n) sum_i ||theta_K - theta_K^{-i}|| <= (2 eta beta~_1 / n) (2 K L(theta) "
    "+ 9 ||theta - theta_0||^2 / (4 eta))",
    tex=r"\frac{1}{n} \sum_{i} \|\theta_K - \theta_K^{\neg i}\| \le \frac{2 \eta "
    r"\tilde\beta_1(\theta)}{n} \left( 2 K \hat L(\theta) + \frac{9 \|\theta - "
    r"\theta_0\|^2}{4 \eta} \right)",
    evaluate=_lemma11,
    judges=(descent.stability, on_average_stability, leave_one_out),
    forms=(
        Form(
            name="printed",
            cites="Lemma 11, Appendix C",
            hypotheses=certified(descent.PRINTED, "(84)"),
        ),
        Form(
            name="printed, (92)",
            cites="eq. (92), Appendix C",
            hypotheses=certified(descent.PRINTED, "(84)"),
            note="The bound holds for every sample i: ||theta_K - theta_K^{-i}|| <= (2 eta "
            "beta~_1 / n) sum_{k < K} l_i(theta_k).",
        ),
        Form(
            name=SHARP,
            hypotheses=certified(descent.MEAN_SQUARE, "(84)"),
            note="The run on all samples and the run without sample i stay within sqrt(13/3) D of "
            "theta. The condition (104/3) beta_3# D^2 <= sqrt(H) therefore replaces the condition "
            "128 beta~_3 D^2 <= sqrt(H). The bound exp(sum alpha) <= exp(1/4) replaces the bound "
            "exp(sum alpha) <= 2.",
        ),
    ),
    control="the sum of the losses along the run is replaced by its first term",
    source="Appendix C, eq. (84)",
    assumptions=CONDITIONS,
)


def _gap_within(instance: Instance, rhs: dict[str, ArrayLike]) -> Sides:
    run, K = descend(instance), instance["K"]
    last = jax.tree.map(lambda leaf: leaf[K], run.params)
    fresh = tied_risk(last, instance["copies"], {"X": instance["X_test"], "y": instance["y_test"]})
    return Sides(fresh - run.losses[K], {**rhs, "control": 0.0 * run.losses[K]}, trivial=fresh)


def _lemma3(instance: Instance, size: Size) -> Sides:
    # Every l_i is beta_1#-Lipschitz on the ball that (75) guarantees.
    gradient, _ = descent.ball_constants(setting(instance), descent.MEAN_SQUARE)
    bound = descent.gap_from_stability(gradient, _average_stability(instance))
    return _gap_within(instance, {"printed": bound})


@jax.jit
def _visited(instance: Instance, size: Size) -> dict[str, Array]:
    s, copies = setting(instance), instance["copies"]

    def furthest(run: Run) -> Array:
        return jnp.max(jnp.sqrt(sizes_along(run, copies)[2]))

    all_runs = jnp.max(jax.vmap(furthest)(leave_one_out(instance)))
    limit = jnp.sqrt(s.squares) + descent.MEAN_SQUARE.reach * s.distance / jnp.sqrt(s.heads)
    inside = jnp.maximum(furthest(descend(instance)), all_runs) <= limit
    return radius_at_least_one(instance, size) | {"G on the visited region": inside}


LEMMA_3 = on_population(
    id="multihead.lem3",
    label="Lemma 3",
    formula="E[L(theta_K) - L^(theta_K)] <= 2 G E[(1/n) sum_i ||theta_K - theta_K^{-i}||]",
    tex=r"\mathbb{E}[L(\theta_K) - \hat L(\theta_K)] \le 2 G \, \mathbb{E}\left[ \frac{1}{n} "
    r"\sum_{i} \|\theta_K - \theta_K^{\neg i}\| \right]",
    evaluate=_lemma3,
    judges=(descent.gap_from_stability, descent.ball_constants, on_average_stability),
    forms=(
        Form(
            name="printed",
            cites="Lemma 3, Section 6.2",
            note="The Lipschitz constant is G = beta_1#, the sharpened beta_1 on the ball of (75) "
            "around theta. The check tests that gradient descent stays in the ball of (75), on all "
            "samples and without any one sample.",
        ),
    ),
    control="no generalization gap",
    source="Section 6.2; Lei and Ying (2020), Theorem 2",
    hypotheses=_visited,
    assumptions="every l_i is G-Lipschitz where the runs go; a fresh test set estimates L",
)


def _theorem4(instance: Instance, size: Size) -> Sides:
    s, n, step, K = setting(instance), size["n"], instance["step"], horizon(instance)
    printed = descent.generalization_gap(s, step, K, n)
    sharp = descent.generalization_gap(s, step, K, n, descent.MEAN_SQUARE)
    return _gap_within(instance, {"printed": printed, SHARP: sharp})


THEOREM_4 = on_population(
    id="multihead.thm4",
    label="Theorem 4",
    formula="E[L(theta_K) - L^(theta_K)] <= (4/n) E[2 K L^(theta) "
    "+ 9 ||theta - theta_0||^2 / (4 eta)]",
    tex=r"\mathbb{E}[L(\theta_K) - \hat L(\theta_K)] \le \frac{4}{n} \mathbb{E}\left[ 2 K "
    r"\hat L(\theta) + \frac{9 \|\theta - \theta_0\|^2}{4 \eta} \right]",
    evaluate=_theorem4,
    judges=(descent.generalization_gap,),
    forms=(
        Form(
            name="printed",
            cites="Theorem 4, eq. (93), Appendix C.1",
            hypotheses=certified(descent.PRINTED, "(84)"),
            expected="vacuous",
        ),
        Form(
            name=SHARP,
            expected="vacuous",
            hypotheses=certified(descent.MEAN_SQUARE, "(84)"),
            note="The bound on the generalization gap is 2 beta_1# times the bound of the "
            "sharpened Lemma 11. The sign # marks a sharpened constant.",
        ),
    ),
    control="no generalization gap",
    source="Appendix C.1, eq. (93); Theorem 2, eq. (5)",
    assumptions=f"{CONDITIONS}. {ALMOST_NOTHING}",
)


def _corollary4(instance: Instance, size: Size) -> Sides:
    measured, s, n = setting(instance), at_level(instance), size["n"]
    step, K = instance["step"], horizon(instance)
    # Here theta(1/K) itself is known, so the setting replaces only D and L(theta).
    wider = measured._replace(distance=s.distance, loss_target=s.loss_target)
    printed = descent.corollary4_gap(s.distance, step, n)
    sharp = descent.generalization_gap(wider, step, K, n, descent.MEAN_SQUARE)
    return _gap_within(instance, {"printed": printed, SHARP: sharp})


COROLLARY_4 = on_population(
    id="multihead.cor4",
    label="Corollary 4",
    formula="E[L(theta_K) - L^(theta_K)] <= 17 g_0(1/K)^2 / (eta n)",
    tex=r"\mathbb{E}[L(\theta_K) - \hat L(\theta_K)] \le \frac{17 g_0(1/K)^2}{\eta n}",
    evaluate=_corollary4,
    judges=(descent.corollary4_gap, descent.generalization_gap),
    forms=(
        Form(
            name="printed",
            cites="Corollary 4, eq. (96), Appendix C.2",
            hypotheses=corollary_conditions(4, "(95)"),
            expected="vacuous",
        ),
        Form(
            name=SHARP,
            expected="vacuous",
            hypotheses=certified(descent.MEAN_SQUARE, "(84)"),
            note="The bound on the generalization gap is 2 beta_1# times the bound of the "
            "sharpened Lemma 11 with "
            "L(theta) = 1/K and D = g_0(1/K). The sign # marks a sharpened constant.",
        ),
    ),
    control="no generalization gap",
    source="Appendix C.2, eq. (96)",
    hypotheses=realized,
    assumptions="Assumption 1; Assumption 2 almost surely; (95); eta of Corollary 3. "
    f"Sharpened form: its own H and eta. {ALMOST_NOTHING}",
)

STATEMENTS = (LEMMA_11, LEMMA_3, THEOREM_4, COROLLARY_4)
