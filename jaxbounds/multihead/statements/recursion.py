"""Section 6.2: eqs. (19) to (22), how far two runs drift apart in one step."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import beta1, beta1_sharp, beta3, beta3_sharp
from jaxbounds.multihead.instances import keep_radius
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.runs import data_of, descend, head_sizes, sizes_along, within
from jaxbounds.multihead.stability import (
    deviations,
    growth,
    kept,
    leave_one_out,
    leave_one_out_risk,
    misparenthesised_growth,
    sample_losses,
)
from jaxbounds.multihead.statements.descent_shared import run_statement, worst_step
from jaxbounds.multihead.statements.segments import PAIRS, SEGMENT_SIZES
from jaxbounds.multihead.statements.stability_shared import (
    CONDITIONS,
    SHARP,
    printed_conditions,
    sharp_conditions,
    uniform_constants,
)
from jaxbounds.multihead.tied import tied_distance
from jaxbounds.statements import Budget, Form, Instance, Sides

GRID = 5
"""Points on a segment where a maximum is taken: a lower estimate, so that the right sides of (19)
and (20) are judged by less than they claim."""

PARTS = (0.05, 0.5, 1.0, 2.0, 10.0)
"""Steps tried in (19), relative to one over the smoothness bound."""


def _curvatures(params, copies, radius, *, T, d):
    """(beta_3 / sqrt(H), beta_2), printed and sharpened, for one point."""
    size, largest, squares = head_sizes(params, copies)
    root = jnp.sqrt(jnp.sum(copies))
    printed = beta3(size, radius, T=T, d=d) / root
    sharp = beta3_sharp(largest, radius, T=T) / root
    return {
        "printed": (printed, printed + beta1(size, radius, T=T) ** 2 / 4),
        "sharpened S2, S6": (sharp, sharp + beta1_sharp(squares, radius, T=T) ** 2 / 4),
    }


def _along(first, second):
    """The points of a segment, on a grid."""
    mix = lambda a, b: jax.vmap(lambda t: (1 - t) * a + t * b)(jnp.linspace(0.0, 1.0, GRID))
    return jax.tree.map(mix, first, second)


def _expansion(instance: Instance) -> Sides:
    first = {"U": instance["U"], "W": instance["W"]}
    second = {"U": instance["U"] + instance["dU"], "W": instance["W"] + instance["dW"]}
    data, copies = data_of(instance), jnp.ones(instance["U"].shape[0])
    shape = {"T": instance["X"].shape[1], "d": instance["X"].shape[2]}
    radius = jnp.max(jnp.linalg.norm(instance["X"], axis=-1))
    points = _along(first, second)
    loss = jax.vmap(empirical_risk, in_axes=(0, None))(points, data)
    betas = jax.vmap(lambda p: _curvatures(p, copies, radius, **shape))(points)
    slope = jax.grad(empirical_risk)
    slopes = jax.tree.map(jnp.subtract, slope(first, data), slope(second, data))
    apart = jax.tree.map(jnp.subtract, first, second)
    zero = jax.tree.map(jnp.zeros_like, apart)
    length = tied_distance(apart, zero, copies)
    steps = jnp.asarray(PARTS) / jnp.max(betas["sharpened S2, S6"][1])

    def moved(step):
        after = jax.tree.map(lambda a, g: a - step * g, apart, slopes)
        return tied_distance(after, zero, copies)

    def bound(weak, smooth, part):
        expands = jnp.maximum(1 + part * weak * loss, part * smooth)
        return jnp.max(expands) * length

    lhs = jax.vmap(moved)(steps)
    rhs = {
        name: jax.vmap(lambda part, w=weak, s=smooth: bound(w, s, part))(steps)
        for name, (weak, smooth) in betas.items()
    }
    _, smooth = betas["sharpened S2, S6"]
    rhs["control"] = jnp.maximum(1.0, steps * jnp.max(smooth)) * length
    everywhere = jnp.ones(len(PARTS), bool)
    pairs = {name: worst_step(lhs, side, everywhere) for name, side in rhs.items()}
    return Sides(
        lhs={name: pair[0] for name, pair in pairs.items()},
        rhs={name: pair[1] for name, pair in pairs.items()},
    )


@jax.jit
def _compared(instance: Instance):
    """Both runs, their distance, and the losses that enter the recursion; axes (n, STEPS + 1)."""
    full, without = descend(instance), leave_one_out(instance)
    data, copies = data_of(instance), instance["copies"]
    apart = deviations(full, without, copies)
    alone = jax.vmap(sample_losses, in_axes=(0, None, None))(full.params, copies, data).T
    risk = lambda params, keep: leave_one_out_risk(params, copies, data, keep)
    shared = jax.vmap(jax.vmap(risk, (0, None)), (None, 0))(full.params, kept(data))
    return full, without, apart, alone, shared


def _on_segments(instance: Instance, full, without):
    """L^{-i} on a grid of every [theta_k, theta_k^{-i}]; axes (GRID, n, STEPS + 1)."""
    data, copies = data_of(instance), instance["copies"]
    risk = lambda params, keep: leave_one_out_risk(params, copies, data, keep)

    def at(t):
        mixed = jax.tree.map(lambda a, b: (1 - t) * a[None] + t * b, full.params, without.params)
        return jax.vmap(jax.vmap(risk, (0, None)))(mixed, kept(data))

    return jax.lax.map(at, jnp.linspace(0.0, 1.0, GRID))


def _worst_entry(lhs, rhs, mask):
    """`worst_step` over samples and steps."""
    return worst_step(lhs.ravel(), rhs.ravel(), jnp.broadcast_to(mask, lhs.shape).ravel())


def _judge(instance: Instance, apart, rhs: dict) -> Sides:
    """||theta_{k+1} - theta_{k+1}^{-i}|| against each right side, at the worst k < K and i."""
    before = within(instance, last=0)[None, :-1]
    pairs = {name: _worst_entry(apart[:, 1:], side[:, :-1], before) for name, side in rhs.items()}
    return Sides(
        lhs={name: pair[0] for name, pair in pairs.items()},
        rhs={name: pair[1] for name, pair in pairs.items()},
    )


def _expansions(instance: Instance, full, without):
    """Max over [theta_k, theta_k^{-i}] of (1 + eta beta_3 L^{-i} / sqrt(H)) v eta beta_2, by form.

    Axes (n, STEPS + 1).
    """
    data, copies, step = data_of(instance), instance["copies"], instance["step"]
    radius = jnp.max(jnp.linalg.norm(instance["X"], axis=-1))
    shape = {"T": instance["X"].shape[1], "d": instance["X"].shape[2]}

    def factor(params, keep):
        loss = leave_one_out_risk(params, copies, data, keep)
        betas = _curvatures(params, copies, radius, **shape)
        return {name: jnp.maximum(1 + step * w * loss, step * b) for name, (w, b) in betas.items()}

    def at(t):
        mixed = jax.tree.map(lambda a, b: (1 - t) * a[None] + t * b, full.params, without.params)
        return jax.vmap(jax.vmap(factor, (0, None)))(mixed, kept(data))

    found = jax.lax.map(at, jnp.linspace(0.0, 1.0, GRID))
    return jax.tree.map(lambda leaf: jnp.max(leaf, axis=0), found)


def _gradients(instance: Instance, full):
    """beta_1(theta_k), printed and sharpened; axis (STEPS + 1,)."""
    size, _, squares = sizes_along(full, instance["copies"])
    radius, T = jnp.max(jnp.linalg.norm(instance["X"], axis=-1)), instance["X"].shape[1]
    return {
        "printed": beta1(size, radius, T=T),
        "sharpened S2, S6": beta1_sharp(squares, radius, T=T),
    }


def _recursion(instance: Instance) -> Sides:
    full, without, apart, alone, _ = _compared(instance)
    n, step, gradients = apart.shape[0], instance["step"], _gradients(instance, full)
    expands = _expansions(instance, full, without)
    rhs = {
        name: factor * apart + step * gradients[name][None] * alone / n
        for name, factor in expands.items()
    }
    rhs["control"] = expands["sharpened S2, S6"] * apart
    return _judge(instance, apart, rhs)


def _loss_recursion(instance: Instance) -> Sides:
    full, without, apart, alone, shared = _compared(instance)
    n, step = apart.shape[0], instance["step"]
    highest = jnp.max(_on_segments(instance, full, without), axis=0)
    _, weak = uniform_constants(instance)["printed"]
    added = step * _gradients(instance, full)["printed"][None] * alone / n
    both = shared + without.losses
    return _judge(
        instance,
        apart,
        {
            "printed": misparenthesised_growth(apart, step * weak, highest, added),
            "printed, (89)": misparenthesised_growth(apart, 4 / 3 * step * weak, both, added),
            "corrected": growth(apart, step * weak * highest, added),
            "control": growth(apart, step * weak * highest, 0 * added),
        },
    )


def _final_recursion(instance: Instance) -> Sides:
    _, without, apart, alone, shared = _compared(instance)
    n, step = apart.shape[0], instance["step"]
    both = shared + without.losses
    uniform = uniform_constants(instance)
    rhs = {
        name: growth(apart, 4 / 3 * step * weak * both, step * gradient * alone / n)
        for name, (gradient, weak) in uniform.items()
    }
    _, weak = uniform["printed"]
    rhs["control"] = growth(apart, 4 / 3 * step * weak * both, 0 * alone)
    return _judge(instance, apart, rhs)


_PROPER = "1 + eta beta_3 L / sqrt(H) is meant, as in (20) and (22)."

_SCALAR = {
    "X": [[[1.0]], [[1.0]]],
    "y": [1, 1],
    "U0": [[[0.0]], [[0.0]]],
    "W0": [[[0.0]], [[0.0]]],
    "U": [[[0.018]], [[0.018]]],
    "W": [[[0.0]], [[0.0]]],
    "copies": [15.0, 15.0],
    "step": 0.001,
    "K": 10,
}

STATEMENTS = (
    run_statement(
        "eq19",
        "eq. (19)",
        "||(theta - eta grad L(theta)) - (theta' - eta grad L(theta'))|| <= max over "
        "[theta, theta'] of (1 + eta beta_3 L / sqrt(H)) v eta beta_2, times ||theta - theta'||",
        _expansion,
        (
            Form(name="printed", equality="the limit of large margins"),
            Form(
                name="sharpened S2, S6",
                equality="the limit of large margins",
                note="The same with beta_2# and beta_3#.",
            ),
        ),
        "the term in beta_3 is dropped",
        "Section 6.2, eq. (19); restated as (85), Appendix C",
        kind="inequality",
        sample={"generic": PAIRS["generic"]},
        project=keep_radius,
        sizes=SEGMENT_SIZES,
        budget=Budget(samples=512, restarts=0, steps=0, batch=128),
        search="none",
        assumptions="Assumption 1 with R = max ||x_t||; any eta > 0 (five are tried)",
    ),
    run_statement(
        "eq20",
        "eq. (20)",
        "||theta_{k+1} - theta_{k+1}^{-i}|| <= max over [theta_k, theta_k^{-i}] of "
        "((1 + eta beta_3 L^{-i} / sqrt(H)) v eta beta_2) ||theta_k - theta_k^{-i}|| "
        "+ eta beta_1(theta_k) l_i(theta_k) / n",
        _recursion,
        (
            Form(name="printed"),
            Form(name="sharpened S2, S6", note="The same with beta_1#, beta_2#, beta_3#."),
        ),
        "the term in l_i is dropped",
        "Section 6.2, eq. (20); restated as (86), Appendix C",
    ),
    run_statement(
        "eq21",
        "eq. (21)",
        "||theta_{k+1} - theta_{k+1}^{-i}|| <= ((1 + eta beta~_3 / sqrt(H)) max L^{-i}) "
        "||theta_k - theta_k^{-i}|| + eta beta_1(theta_k) l_i(theta_k) / n",
        _loss_recursion,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E8",
                hypotheses=printed_conditions,
                note=_PROPER + " Scalar logistic regression, two equal samples, ten steps.",
                counterexample=_SCALAR,
            ),
            Form(
                name="printed, (89)",
                expected="fails",
                erratum="E8",
                hypotheses=printed_conditions,
                note="(89) repeats the misplaced bracket of (21), which is hidden while "
                "L^{-i}(theta_k) + L^{-i}(theta_k^{-i}) exceeds one.",
                counterexample=_SCALAR,
            ),
            Form(
                name="corrected",
                hypotheses=printed_conditions,
                note="(1 + (eta beta~_3 / sqrt(H)) max L^{-i}).",
            ),
        ),
        "the corrected form without its term in l_i",
        "Section 6.2, eq. (21); also the display before (89), Appendix C",
        assumptions="Assumption 1; (84); eta of Theorem 3",
        budget=Budget(samples=192, restarts=0, steps=0, batch=48),
    ),
    run_statement(
        "eq22",
        "eq. (22)",
        "||theta_{k+1} - theta_{k+1}^{-i}|| <= (1 + alpha_{k,i}) ||theta_k - theta_k^{-i}|| "
        "+ eta beta~_1 l_i(theta_k) / n, alpha_{k,i} = 4 eta beta~_3 / (3 sqrt(H)) "
        "(L^{-i}(theta_k) + L^{-i}(theta_k^{-i}))",
        _final_recursion,
        (
            Form(name="printed", hypotheses=printed_conditions),
            Form(
                name=SHARP,
                hypotheses=sharp_conditions,
                note="beta~_1#, beta~_3# on the ball of radius sqrt(13/3) D around theta.",
            ),
        ),
        "the term in l_i is dropped",
        "Section 6.2, eq. (22); Appendix C, eqs. (89), (90)",
        assumptions=CONDITIONS,
    ),
)
