"""Section 6: what weak convexity gives along a segment, eqs. (14)-(16) and Proposition 4."""

import math

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import beta3, beta3_sharp, convexity_horizon
from jaxbounds.multihead.calculus import loss_hessian
from jaxbounds.multihead.instances import LOSS, keep_radius, radius_at_least_one
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.statements.common import (
    data_of,
    loss_statement,
    params_of,
    shape_of,
    sizes_of,
)
from jaxbounds.statements import Budget, Form, Instance, Sides, Size

SEGMENT_SIZES = ({"n": 4, "T": 3, "d": 2, "H": 2},)
GRID = 17
"""Points on a segment where its extremes are taken: lower estimates of the maxima."""


def _segment(instance: Instance):
    """theta_1, theta_2 = theta_1 + d, the points between, ||d||, and both ends' sizes."""
    first = params_of(instance)
    step = {"U": instance["dU"], "W": instance["dW"]}
    second = jax.tree.map(jnp.add, first, step)
    along = jnp.linspace(0.0, 1.0, GRID)
    point = lambda a: jax.tree.map(lambda x, dx: x + a * dx, first, step)
    distance = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(step)) + 1e-300)
    return first, second, step, jax.vmap(point)(along), distance


def _end_betas(first, second, instance: Instance):
    """The larger beta_3 of both ends, as printed and sharpened."""
    shape = shape_of(instance)
    pairs = []
    for params in (first, second):
        radius, size, largest, _ = sizes_of(params, instance["X"])
        printed = beta3(size, radius, **shape)
        pairs.append((printed, beta3_sharp(largest, radius, T=shape["T"])))
    return jnp.maximum(pairs[0][0], pairs[1][0]), jnp.maximum(pairs[0][1], pairs[1][1])


def _taylor_gap(first, second, step, data):
    """L(theta_k) + <grad, theta - theta_k> - L(theta), and the rounding error of it."""
    start, slope = jax.value_and_grad(empirical_risk)(first, data)
    end = empirical_risk(second, data)
    linear = sum(jnp.sum(slope[name] * step[name]) for name in step)
    error = 1e-14 * (start + end + jnp.abs(linear))
    return start + linear - end, error


def _second_order(instance: Instance) -> Sides:
    first, second, step, points, distance = _segment(instance)
    data = data_of(instance)
    least = jax.vmap(lambda params: jnp.linalg.eigvalsh(loss_hessian(params, data))[0])(points)
    gap, error = _taylor_gap(first, second, step, data)
    bound = -jnp.min(least) * distance**2 / 2
    return Sides(
        lhs={"printed": gap, "printed, early version": bound, "control": gap},
        rhs={"printed": bound, "printed, early version": gap, "control": 0.1 * bound},
        error=error,
    )


def _segment_convexity(instance: Instance) -> Sides:
    first, second, _, points, _ = _segment(instance)
    data, root = data_of(instance), math.sqrt(instance["U"].shape[0])
    values = jax.vmap(lambda params: jnp.linalg.eigvalsh(loss_hessian(params, data)))(points)
    loss = jnp.max(jax.vmap(lambda params: empirical_risk(params, data))(points))
    printed, sharp = _end_betas(first, second, instance)
    return Sides(
        lhs=-jnp.min(values),
        rhs={
            "printed": printed * loss / root,
            "sharpened S6": sharp * loss / root,
            "control": sharp * loss**2 / root,
        },
        error=1e-14 * jnp.max(jnp.abs(values)),
    )


def _first_order(instance: Instance) -> Sides:
    first, second, step, points, distance = _segment(instance)
    data, root = data_of(instance), math.sqrt(instance["U"].shape[0])
    loss = jnp.max(jax.vmap(lambda params: empirical_risk(params, data))(points))
    printed, sharp = _end_betas(first, second, instance)
    gap, error = _taylor_gap(first, second, step, data)
    half = loss * distance**2 / (2 * root)
    return Sides(
        lhs=gap,
        rhs={"printed": printed * half, "sharpened S6": sharp * half, "control": -sharp * half},
        error=error,
    )


def _quasi_convexity(instance: Instance) -> Sides:
    first, second, _, points, distance = _segment(instance)
    data, root = data_of(instance), math.sqrt(instance["U"].shape[0])
    risks = jax.vmap(lambda params: empirical_risk(params, data))(points)
    ends = jnp.maximum(risks[0], risks[-1])
    printed, sharp = _end_betas(first, second, instance)
    horizon = lambda beta: convexity_horizon(beta * distance**2 / root)
    return Sides(
        lhs=jnp.max(risks),
        rhs={
            "printed": 4 / 3 * ends,
            "sharpened S8": horizon(printed) * ends,
            "sharpened S6, S8": horizon(sharp) * ends,
            "control": jnp.minimum(risks[0], risks[-1]),
        },
    )


def _close_enough(instance: Instance) -> dict:
    """Eq. (18): 2 (beta_3 v beta_3) ||theta_1 - theta_2||^2 <= sqrt(H)."""
    first, second, _, _, distance = _segment(instance)
    printed, _ = _end_betas(first, second, instance)
    root = math.sqrt(instance["U"].shape[0])
    return radius_at_least_one(instance) | {"eq. (18)": 2 * printed * distance**2 <= root}


def _shorten(instance: Instance) -> Instance:
    """Shrink theta_2 - theta_1 until (18) holds: beta_3 grows with it, so one factor suffices."""
    instance = keep_radius(instance)
    first, second, _, _, distance = _segment(instance)
    printed, _ = _end_betas(first, second, instance)
    root = math.sqrt(instance["U"].shape[0])
    factor = jnp.minimum(1.0, 0.999999 * jnp.sqrt(root / (2 * printed)) / distance)
    return {**instance, "dU": factor * instance["dU"], "dW": factor * instance["dW"]}


def _paired(sampler, finish):
    """Samplers of theta_1 turned into samplers of a segment in a random direction."""

    def sample(key: jax.Array, size: Size) -> Instance:
        point_key, outer_key, inner_key, scale_key = jax.random.split(key, 4)
        instance = sampler(point_key, size)
        scale = jnp.exp(jax.random.uniform(scale_key, (), minval=-4.0, maxval=1.0))
        return finish(
            instance
            | {
                "dU": scale * jax.random.normal(outer_key, instance["U"].shape),
                "dW": scale * jax.random.normal(inner_key, instance["W"].shape),
            }
        )

    return sample


_STARTS = ("generic", "GD on DM1", "Adam on DM2")

PAIRS = {name: _paired(LOSS[name], keep_radius) for name in _STARTS}

CLOSE_PAIRS = {name: _paired(LOSS[name], _shorten) for name in _STARTS}

SEGMENT_BUDGET = Budget(samples=128, restarts=6, steps=80, batch=32)

STATEMENTS = (
    loss_statement(
        "eq14",
        "eq. (14)",
        "L(theta) >= L(theta_k) + <grad L(theta_k), theta - theta_k> "
        "+ (1/2) min lambda_min ||theta - theta_k||^2",
        _second_order,
        (
            Form(name="printed", equality="theta = theta_k"),
            Form(
                name="printed, early version",
                expected="fails",
                erratum="E23",
                note="The early version prints <= for >=.",
                counterexample={
                    "X": [[[1.0, 0.0], [0.0, 1.0]]],
                    "y": [1],
                    "U": [[[1.0, 0.0], [0.0, 1.0]]],
                    "W": [[[0.0, 0.0], [0.0, 0.0]]],
                    "dU": [[[1.0, 0.0], [0.0, 1.0]]],
                    "dW": [[[0.0, 0.0], [0.0, 0.0]]],
                },
            ),
        ),
        "a tenth of the bound",
        "Section 6.1, eq. (14)",
        sample=PAIRS,
        sizes=SEGMENT_SIZES,
        budget=SEGMENT_BUDGET,
        search="none",
    ),
    loss_statement(
        "eq15",
        "eq. (15)",
        "min over [theta_1, theta_2] of lambda_min >= -(beta_3(theta_1) v beta_3(theta_2)) "
        "/ sqrt(H) max L",
        _segment_convexity,
        (
            Form(name="printed", note="beta_3 is largest at an end: a norm is convex."),
            Form(name="sharpened S6"),
        ),
        "L is replaced by L^2",
        "Section 6.1, eq. (15); eq. (67) lacks the maximum over the segment",
        sample=PAIRS,
        sizes=SEGMENT_SIZES,
        budget=SEGMENT_BUDGET,
        search="none",
    ),
    loss_statement(
        "eq16",
        "eq. (16)",
        "L(theta) >= L(theta_k) + <grad L(theta_k), theta - theta_k> "
        "- (1/2) (beta_3 v beta_3) / sqrt(H) max L ||theta - theta_k||^2",
        _first_order,
        (Form(name="printed"), Form(name="sharpened S6")),
        "plus in place of minus",
        "Section 6.1, eq. (16)",
        sample=PAIRS,
        sizes=SEGMENT_SIZES,
        budget=SEGMENT_BUDGET,
    ),
    loss_statement(
        "prop4",
        "Proposition 4",
        "2 (beta_3 v beta_3) ||theta_1 - theta_2||^2 <= sqrt(H) implies "
        "max over [theta_1, theta_2] of L <= (4/3) max(L(theta_1), L(theta_2))",
        _quasi_convexity,
        (
            Form(name="printed"),
            Form(
                name="sharpened S8",
                equality="the maximum at an end, as theta_1 -> theta_2",
                note="g'' >= -k g on [0, 1] gives g <= sec(sqrt(k)/2) max(g(0), g(1)) by Sturm "
                "comparison; k = (beta_3 v beta_3) ||.||^2 / sqrt(H) <= 1/2 gives 1.0659.",
            ),
            Form(
                name="sharpened S6, S8",
                equality="the maximum at an end, as theta_1 -> theta_2",
                note="The same with beta_3#, whose k is smaller by at least 2 sqrt(d).",
            ),
        ),
        "the smaller end in place of the larger",
        "Section 6.1, eq. (18); restated as Proposition 6, Appendix B.2",
        sample=CLOSE_PAIRS,
        sizes=SEGMENT_SIZES,
        project=_shorten,
        hypotheses=_close_enough,
        assumptions="eq. (18); Assumption 1 with R = max ||x_t|| >= 1",
        budget=SEGMENT_BUDGET,
    ),
)
