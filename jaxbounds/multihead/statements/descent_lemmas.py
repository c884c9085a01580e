"""Section 6.1 and Appendix B.2: Lemmas 7 to 10, step by step along a run."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import beta1, beta1_sharp, beta3, beta3_sharp
from jaxbounds.multihead.descent import PRINTED_WEIGHT, averaged_loss, reach, sharp_weight
from jaxbounds.multihead.runs import (
    STEPS,
    averaged,
    data_of,
    descend,
    distances,
    setting,
    sizes_along,
    target_of,
    within,
)
from jaxbounds.multihead.statements.descent_shared import (
    assumption1,
    many_heads,
    many_sharp_heads,
    run_statement,
    worst_step,
)
from jaxbounds.multihead.tied import tied_risk
from jaxbounds.statements import Form, Instance, Sides

GRID = 5
"""Points on a segment where the maximum of the loss is taken: a lower estimate, so that the right
side of Lemma 8 is judged by less than it claims."""

MEASURABLE = 1e-9
"""Steps that lower the loss by less than this part of it are lost in rounding and not judged."""


@jax.jit
def _squeezed(instance: Instance):
    """For k < STEPS whether eta <= 1 / rho_k, printed and sharpened, and the step is measurable."""
    run, copies = descend(instance), instance["copies"]
    s, root = setting(instance), jnp.sqrt(jnp.sum(copies))
    size, largest, squares = sizes_along(run, copies)
    T = s.shape["T"]
    printed = beta3(size, s.radius, **s.shape) / root + beta1(size, s.radius, T=T) ** 2 / 4
    sharp = beta3_sharp(largest, s.radius, T=T) / root
    sharp = sharp + beta1_sharp(squares, s.radius, T=T) ** 2 / 4
    visible = instance["step"] / 2 * run.slopes**2 >= MEASURABLE * run.losses
    allowed = lambda b: (instance["step"] * jnp.maximum(b[:-1], b[1:]) <= 1) & visible[:-1]
    return run, {"printed": allowed(printed), "sharpened S2, S6": allowed(sharp)}


def _descent_lemma(instance: Instance) -> Sides:
    run, masks = _squeezed(instance)
    masks["control"] = masks["sharpened S2, S6"]
    promised = instance["step"] / 2 * run.slopes[:-1] ** 2
    drop = run.losses[:-1] - run.losses[1:]
    sides = {
        name: worst_step(promised * (2 if name == "control" else 1), drop, mask)
        for name, mask in masks.items()
    }
    return Sides(
        lhs={name: pair[0] for name, pair in sides.items()},
        rhs={name: pair[1] for name, pair in sides.items()},
        # Rounding of the difference of two losses, at the smallest step that is judged.
        error=1e-6 * jnp.min(jnp.stack([pair[0] for pair in sides.values()])),
    )


def _some_step(name):
    return lambda instance: {"eta <= 1 / rho_k for some k": jnp.any(_squeezed(instance)[1][name])}


@jax.jit
def descends(instance: Instance) -> dict:
    """Step-wise descent (68) for k = 0, ..., K - 1, as measured."""
    run = descend(instance)
    drop = run.losses[:-1] - run.losses[1:] + 1e-14 * run.losses[:-1]
    kept = drop >= instance["step"] / 2 * run.slopes[:-1] ** 2
    return {"(68)": jnp.all(kept | ~within(instance, last=0)[:-1])}


@jax.jit
def _penalties(instance: Instance):
    """For each k: (beta_3(theta) v beta_3(theta_k)) ||theta - theta_k||^2 / sqrt(H), both betas."""
    run, copies, target = descend(instance), instance["copies"], target_of(instance)
    s = setting(instance)
    size, largest, _ = sizes_along(run, copies)
    T, root = s.shape["T"], jnp.sqrt(jnp.sum(copies))
    scaled = distances(run, target, copies) ** 2 / root
    printed = beta3(jnp.maximum(size, s.size), s.radius, **s.shape) * scaled
    return printed, beta3_sharp(jnp.maximum(largest, s.largest), s.radius, T=T) * scaled


def _segment_maxima(instance: Instance):
    """For each k the largest loss on a grid of [theta_k, theta]."""
    run, target = descend(instance), target_of(instance)
    risk = lambda params: tied_risk(params, instance["copies"], data_of(instance))

    def at(a):
        mix = lambda leaf, end: (1 - a) * leaf + a * end[None]
        return jax.vmap(risk)(jax.tree.map(mix, run.params, target))

    return jnp.max(jax.lax.map(at, jnp.linspace(0.0, 1.0, GRID)), axis=0)


def _lemma8(instance: Instance) -> Sides:
    run, s = descend(instance), setting(instance)
    K = instance["K"].astype(run.losses.dtype)
    highest = _segment_maxima(instance)
    sums = [
        jnp.sum(jnp.where(within(instance, last=0), penalty * highest, 0.0)) / (2 * K)
        for penalty in _penalties(instance)
    ]
    linear = s.loss_target + s.distance**2 / (2 * instance["step"] * K)
    return Sides(
        lhs=averaged(run.losses, instance),
        rhs={
            "printed": linear + sums[0],
            "sharpened S6": linear + sums[1],
            "control": s.loss_target + sums[1],
        },
    )


def _lemma9(instance: Instance) -> Sides:
    run, s = descend(instance), setting(instance)
    K = instance["K"].astype(run.losses.dtype)
    regret = lambda weight: averaged_loss(
        s.loss_target, s.loss_start, s.distance, instance["step"], K, weight=weight
    )
    kappa = jnp.minimum(_largest_penalty(instance)[1], 1.5)
    return Sides(
        lhs=averaged(run.losses, instance),
        rhs={
            "printed": regret(PRINTED_WEIGHT),
            "sharpened S6": regret(PRINTED_WEIGHT),
            "sharpened S6, S8": regret(sharp_weight(kappa)),
            "control": 2 * s.loss_target + s.loss_start / (2 * K),
        },
    )


def _largest_penalty(instance: Instance):
    before = within(instance, last=0)
    return [jnp.max(jnp.where(before, p, 0.0)) for p in _penalties(instance)]


def _close(column, limit):
    return lambda instance: {
        f"beta_3 ||theta - theta_k||^2 <= {limit:g} sqrt(H)": _largest_penalty(instance)[column]
        <= limit
    }


@jax.jit
def _short_steps(instance: Instance) -> dict:
    """Eq. (73)."""
    s, step, K = setting(instance), instance["step"], instance["K"]
    squared = s.distance**2
    by_target = step * K.astype(squared.dtype) * s.loss_target <= squared
    return {"(73)": by_target & (step * s.loss_start <= squared)}


def _lemma10(instance: Instance) -> Sides:
    run, s, step = descend(instance), setting(instance), instance["step"]
    away = distances(run, target_of(instance), instance["copies"])
    time = jnp.arange(STEPS + 1, dtype=away.dtype)
    dropped = jnp.sqrt(8 / 3 * step * time * s.loss_target + 2 / 3 * step * s.loss_start)
    until = within(instance, last=1)
    furthest = jnp.max(jnp.where(until, away, 0.0))
    control = worst_step(away, dropped, until)
    return Sides(
        lhs={
            "printed": furthest,
            "sharpened S9": furthest,
            "sharpened S6, S9": furthest,
            "control": control[0],
        },
        rhs={
            "printed": 3 * s.distance,
            "sharpened S9": reach(PRINTED_WEIGHT) * s.distance,
            "sharpened S6, S9": reach(PRINTED_WEIGHT) * s.distance,
            "control": control[1],
        },
    )


def _with_descent(instance: Instance) -> dict:
    return assumption1(instance) | descends(instance)


def _with_short_steps(instance: Instance) -> dict:
    return _with_descent(instance) | _short_steps(instance)


STATEMENTS = (
    run_statement(
        "lem7",
        "Lemma 7",
        "eta <= 1 / rho_k, rho_k = beta_2(theta_k) v beta_2(theta_{k+1}), implies "
        "L(theta_{k+1}) <= L(theta_k) - (eta / 2) ||grad L(theta_k)||^2",
        _descent_lemma,
        (
            Form(name="printed", hypotheses=_some_step("printed")),
            Form(
                name="sharpened S2, S6",
                hypotheses=_some_step("sharpened S2, S6"),
                note="The same with beta_2# = beta_3# / sqrt(H) + beta_1#^2 / 4, smaller.",
            ),
        ),
        "eta in place of eta / 2",
        "Appendix B.3, eq. (68); eq. (13) in Section 6.1",
    ),
    run_statement(
        "lem8",
        "Lemma 8",
        "(1/K) sum_{k=1}^K L(theta_k) <= L(theta) + ||theta - theta_0||^2 / (2 eta K) "
        "+ (1/2K) sum_{k=0}^{K-1} tau_k ||theta - theta_k||^2",
        _lemma8,
        (
            Form(name="printed"),
            Form(name="sharpened S6", note="tau_k with beta_3#."),
        ),
        "the term ||theta - theta_0||^2 / (2 eta K) is dropped",
        "Appendix B.3, eq. (69); eq. (17) in Section 6.1",
        hypotheses=_with_descent,
        assumptions="Assumption 1; step-wise descent (68) for k = 0, ..., K - 1; any theta",
    ),
    run_statement(
        "lem9",
        "Lemma 9",
        "(1/K) sum_{k=1}^K L(theta_k) <= 2 L(theta) + 3 ||theta - theta_0||^2 / (4 eta K) "
        "+ L(theta_0) / (2K)",
        _lemma9,
        (
            Form(name="printed", hypotheses=_close(0, 0.5)),
            Form(name="sharpened S6", hypotheses=_close(1, 0.5), note="The same with beta_3#."),
            Form(
                name="sharpened S6, S8",
                hypotheses=_close(1, 1.5),
                note="With kappa = max_k beta_3# ||theta - theta_k||^2 / sqrt(H) and "
                "q = kappa sec(sqrt(kappa)/2) < 2 for 2/3: ((1 + q/2) L(theta) + D^2 / (2 eta K) "
                "+ q L(theta_0) / (2K)) / (1 - q/2), the convex bound as kappa -> 0.",
            ),
        ),
        "the term in ||theta - theta_0||^2 is dropped",
        "Appendix B.3, eq. (71)",
        hypotheses=_with_descent,
        assumptions="as in Lemma 8, and sqrt(H) >= 2 (beta_3(theta) v beta_3(theta_k)) "
        "||theta - theta_k||^2 for all k < K",
    ),
    run_statement(
        "lem10",
        "Lemma 10",
        "||theta_k - theta|| <= 3 ||theta - theta_0|| for k <= K",
        _lemma10,
        (
            Form(name="printed", hypotheses=many_heads),
            Form(
                name="sharpened S9",
                hypotheses=many_heads,
                note="(78) ends with 1 + 8/3 + 2/3 = 13/3 where the paper takes 9.",
            ),
            Form(
                name="sharpened S6, S9",
                hypotheses=many_sharp_heads(PRINTED_WEIGHT),
                note="With 13/3 and beta_3#, sqrt(H) >= (26/3) beta_3# D^2 suffices.",
            ),
        ),
        "the first term of (78) is dropped",
        "Appendix B.3, eq. (75)",
        hypotheses=_with_short_steps,
        assumptions="Assumption 1; descent (68) for k = 0, ..., K - 1; (73); (74)",
    ),
)
