"""Section 6: consequences of weak convexity along a segment, (14) to (16) and Proposition 4."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.multihead.bounds import beta3, beta3_sharp, convexity_horizon
from jaxbounds.multihead.derivatives import network_risk, risk_hessian
from jaxbounds.multihead.loss import Data, empirical_risk
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.runs import training_set
from jaxbounds.multihead.statements.common import (
    LOSS_ASSUMED,
    on_data,
    params_of,
    sizes_of,
    token_radius,
)
from jaxbounds.multihead.statements.instances import (
    STARTS,
    keep_radius,
    paired,
    radius_at_least_one,
)

GRID = 17
"""The number of points of a segment at which the check looks for a function's extremes. More points
give better estimates; the largest value at the points is at most the true maximum.
"""
QUASI_CONVEXITY = 4 / 3
"""The factor 4/3 between the sides of Proposition 4; a larger factor gives a weaker bound."""


class Segment(NamedTuple):
    """The segment [theta_1, theta_2], with its length, and with the losses at some of its points.

    `printed` and `sharp` are the printed and the sharpened beta_3 / sqrt(H), at the end of the
    segment where they are larger.
    """

    first: Params
    second: Params
    step: Params
    points: Params
    length: Array
    risks: Array
    printed: Array
    sharp: Array
    data: Data


def _segment(instance: Instance, size: Size) -> Segment:
    first, data = params_of(instance), training_set(instance)
    step = {"U": instance["dU"], "W": instance["dW"]}
    point = lambda a: jax.tree.map(lambda x, dx: x + a * dx, first, step)
    points, second = jax.vmap(point)(jnp.linspace(0.0, 1.0, GRID)), point(1.0)
    norms, largest, _ = zip(sizes_of(first), sizes_of(second))
    radius, T, root = token_radius(instance), size["T"], size["H"] ** 0.5
    return Segment(
        first,
        second,
        step,
        points,
        jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in step.values()) + 1e-300),
        jax.vmap(lambda params: empirical_risk(params, data))(points),
        beta3(jnp.maximum(*norms), radius, T=T, d=size["d"]) / root,
        beta3_sharp(jnp.maximum(*largest), radius, T=T) / root,
        data,
    )


def _eigenvalues(s: Segment) -> Array:
    return jax.vmap(lambda params: jnp.linalg.eigvalsh(risk_hessian(params, s.data)))(s.points)


def _taylor_gap(s: Segment) -> tuple[Array, Array]:
    start, slope = jax.value_and_grad(network_risk)(s.first, s.data)
    end = empirical_risk(s.second, s.data)
    linear = sum(jnp.sum(slope[name] * s.step[name]) for name in s.step)
    return start + linear - end, 1e-14 * (start + end + jnp.abs(linear))


PAIRS = {name: paired(sampler) for name, sampler in STARTS.items()}
on_segments = functools.partial(
    Statement,
    kind="inequality",
    sample=PAIRS,
    sizes=({"n": 4, "T": 3, "d": 2, "H": 2},),
    project=keep_radius,
    hypotheses=radius_at_least_one,
    assumptions=LOSS_ASSUMED,
    budget=Budget(samples=128, restarts=6, steps=80, batch=32),
)
"""Shared fields of the statements about the loss on the segment from theta_1 to theta_2."""
FEW_MOVES = Budget(samples=96, restarts=2, steps=40, batch=32)
"""The search budget (numbers of draws and of starting points) of bounds on eigenvalues along a
segment. The budget is small, since the gradients of such bounds take long to compile.
"""


def _second_order(instance: Instance, size: Size) -> Sides:
    s = _segment(instance, size)
    gap, error = _taylor_gap(s)
    bound = -jnp.min(_eigenvalues(s)) * s.length**2 / 2
    return Sides.pairs(
        {
            "printed": (gap, bound),
            "printed, early version": (bound, gap),
            "control": (gap, 0.1 * bound),
        },
        error=error,
    )


def _resolved(instance: Instance, size: Size) -> dict[str, Array]:
    """Check that logits change by at most 4 between grid points; a sudden change may be missed."""
    moved = jnp.max(jnp.sqrt(jnp.sum(instance["dW"] ** 2, axis=(1, 2))))
    change = token_radius(instance) ** 2 * moved
    return {"the points resolve the segment": change <= 4.0 * (GRID - 1)}


EQ_14 = on_segments(
    id="multihead.eq14",
    label="eq. (14)",
    formula="L(theta) >= L(theta_k) + <grad L(theta_k), theta - theta_k> "
    "+ (1/2) min lambda_min ||theta - theta_k||^2",
    tex=r"\hat L(\theta) \ge \hat L(\theta_k) + \langle \nabla \hat L(\theta_k), \theta - "
    r"\theta_k \rangle + \frac{1}{2} \min_{\alpha} \lambda_{\min}(\nabla^2 \hat "
    r"L(\theta_{k \alpha})) \|\theta - \theta_k\|^2",
    evaluate=_second_order,
    judges=(empirical_risk,),
    forms=(
        Form(name="printed", cites="eq. (14), Section 6.1", hypotheses=_resolved),
        Form(
            name="printed, early version",
            cites="eq. (14), Section 6.1 of the early version",
            note="The early version of the paper prints eq. (14) with <= in place of >=.",
            counterexample=Counterexample(
                instance={
                    "X": [[[1.0, 0.0], [0.0, 1.0]]],
                    "y": [1],
                    "U": [[[1.0, 0.0], [0.0, 1.0]]],
                    "W": [[[0.0, 0.0]] * 2],
                    "dU": [[[1.0, 0.0], [0.0, 1.0]]],
                    "dW": [[[0.0, 0.0]] * 2],
                },
                size={"n": 1, "T": 2, "d": 2, "H": 1},
                ratio=2.0,
                meets=on_data,
            ),
        ),
    ),
    control="a tenth of the bound",
    source="Section 6.1, eq. (14)",
    search="random",
    budget=FEW_MOVES,
)


def _segment_convexity(instance: Instance, size: Size) -> Sides:
    s = _segment(instance, size)
    values, loss = _eigenvalues(s), jnp.max(s.risks)
    return Sides(
        lhs=-jnp.min(values),
        rhs={
            "printed": s.printed * loss,
            "sharpened S6": s.sharp * loss,
            "control": s.sharp * loss / 50,
        },
        error=1e-14 * jnp.max(jnp.abs(values)),
    )


EQ_15 = on_segments(
    id="multihead.eq15",
    label="eq. (15)",
    formula="min over [theta_1, theta_2] of lambda_min >= -(beta_3(theta_1) v beta_3(theta_2)) "
    "/ sqrt(H) max L",
    tex=r"\min_{\theta \in [\theta_1, \theta_2]} \lambda_{\min}(\nabla^2 \hat L(\theta)) \ge "
    r"-\frac{\max(\beta_3(\theta_1), \beta_3(\theta_2))}{\sqrt{H}} \max_{\theta \in "
    r"[\theta_1, \theta_2]} \hat L(\theta)",
    evaluate=_segment_convexity,
    judges=(beta3, beta3_sharp),
    forms=(
        Form(
            name="printed",
            cites="eq. (15), Section 6.1",
            note="On a segment, beta_3 is largest at an endpoint, because beta_3 is an increasing "
            "function of a norm, and a norm is convex.",
        ),
        Form(name="sharpened S6"),
    ),
    control="the sharpened bound over 50",
    source="Section 6.1, eq. (15); eq. (67) lacks the maximum over the segment",
    search="random",
    budget=FEW_MOVES,
    assumptions="Assumption 1 with R = max ||x_t|| >= 1; labels in {-1, +1}. lambda_min and "
    "L are taken at 17 points of the segment: lower estimates of both sides",
)


def _first_order(instance: Instance, size: Size) -> Sides:
    s = _segment(instance, size)
    gap, error = _taylor_gap(s)
    half = jnp.max(s.risks) * s.length**2 / 2
    return Sides(
        lhs=gap,
        rhs={
            "printed": s.printed * half,
            "sharpened S6": s.sharp * half,
            "control": -s.sharp * half,
        },
        error=error,
    )


EQ_16 = on_segments(
    id="multihead.eq16",
    label="eq. (16)",
    formula="L(theta) >= L(theta_k) + <grad L(theta_k), theta - theta_k> "
    "- (1/2) (beta_3 v beta_3) / sqrt(H) max L ||theta - theta_k||^2",
    tex=r"\hat L(\theta) \ge \hat L(\theta_k) + \langle \nabla \hat L(\theta_k), \theta - "
    r"\theta_k \rangle - \frac{\max(\beta_3(\theta), \beta_3(\theta_k))}{2 \sqrt{H}} "
    r"\max_{\alpha} \hat L(\theta_{k \alpha}) \|\theta - \theta_k\|^2",
    evaluate=_first_order,
    judges=(beta3, beta3_sharp),
    forms=(
        Form(
            name="printed",
            cites="eq. (16), Section 6.1",
            note="The right side of (16) prints theta_1, theta_2 in place of theta, theta_k "
            "(erratum E22).",
        ),
        Form(name="sharpened S6"),
    ),
    control="plus in place of minus",
    source="Section 6.1, eq. (16)",
)


def _quasi_convexity(instance: Instance, size: Size) -> Sides:
    s = _segment(instance, size)
    ends = jnp.maximum(s.risks[0], s.risks[-1])
    return Sides(
        lhs=jnp.max(s.risks),
        rhs={
            "printed": QUASI_CONVEXITY * ends,
            "sharpened S8": convexity_horizon(s.printed * s.length**2) * ends,
            "sharpened S6, S8": convexity_horizon(s.sharp * s.length**2) * ends,
            "control": jnp.minimum(s.risks[0], s.risks[-1]),
        },
    )


def close_enough(instance: Instance, size: Size) -> dict[str, Array]:
    """Check the condition (18): 2 b ||theta_1 - theta_2||^2 <= sqrt(H).

    The number b is the larger of beta_3(theta_1) and beta_3(theta_2).
    """
    s = _segment(instance, size)
    near = {"eq. (18)": 2 * s.printed * s.length**2 <= 1}
    return radius_at_least_one(instance, size) | near


def _apart(instance: Instance, size: Size) -> dict[str, Array]:
    """Check that theta_1 and theta_2 differ; if they are equal, every bound holds trivially."""
    s = _segment(instance, size)
    return {"beta_3# ||theta_1 - theta_2||^2 >= 1e-4 sqrt(H)": s.sharp * s.length**2 >= 1e-4}


def _shorten(instance: Instance, size: Size) -> Instance:
    """Multiply theta_2 - theta_1 by a factor below one, so that equation (18) holds.

    Shrinking once is enough, because beta_3 at theta_2 does not grow when theta_2 - theta_1
    shrinks.
    """
    instance = keep_radius(instance, size)
    s = _segment(instance, size)
    factor = jnp.minimum(1.0, 0.999999 * jnp.sqrt(1 / (2 * s.printed)) / s.length)
    return {**instance, "dU": factor * instance["dU"], "dW": factor * instance["dW"]}


def _too_long(size: Size) -> Instance:
    """Return a segment from zero that slightly violates (18): ||dU_h|| = .1985 in each head.

    For two heads, equation (18) allows ||dU_h|| up to .19805.
    """
    n, T, d, H = (size[name] for name in ("n", "T", "d", "H"))
    zero = {"U": jnp.zeros((1, H, T, d)), "W": jnp.zeros((1, H, d, d))}
    tokens = jnp.broadcast_to(jnp.eye(1, d), (1, n, T, d))
    move = {"dU": zero["U"].at[:, :, 0, 0].set(0.1985), "dW": zero["W"]}
    return {"X": tokens, "y": jnp.ones((1, n), int), **zero, **move}


PROPOSITION_4 = on_segments(
    id="multihead.prop4",
    label="Proposition 4",
    formula="2 (beta_3 v beta_3) ||theta_1 - theta_2||^2 <= sqrt(H) implies "
    "max over [theta_1, theta_2] of L <= (4/3) max(L(theta_1), L(theta_2))",
    tex=r"2 \max(\beta_3(\theta_1), \beta_3(\theta_2)) \|\theta_1 - \theta_2\|^2 \le "
    r"\sqrt{H} \implies \max_{\theta \in [\theta_1, \theta_2]} \hat L(\theta) \le "
    r"\frac{4}{3} \max(\hat L(\theta_1), \hat L(\theta_2))",
    evaluate=_quasi_convexity,
    judges=(convexity_horizon, beta3, beta3_sharp),
    cases=_too_long,
    forms=(
        Form(name="printed", cites="Proposition 4, Section 6.1; Proposition 6, Appendix B.2"),
        Form(
            name="sharpened S8",
            hypotheses=_apart,
            note="Let g(s) be the loss along the segment, s in [0, 1]. Then g'' >= -k g gives g "
            "<= sec(sqrt(k)/2) max(g(0), g(1)) by Sturm comparison. Here k = "
            "max(beta_3(theta_1), beta_3(theta_2)) ||theta_1 - theta_2||^2 / sqrt(H) <= 1/2, so "
            "the factor is 1.0659.",
        ),
        Form(
            name="sharpened S6, S8",
            hypotheses=_apart,
            note=(
                "The bound on the largest loss along the segment is the bound of sharpening S8 "
                "with beta_3# in place of beta_3. The number k in the bound is then smaller by a "
                "factor of at least 2 sqrt(d)."
            ),
        ),
    ),
    control="the smaller end in place of the larger",
    source="Section 6.1, eq. (18); restated as Proposition 6, Appendix B.2",
    sample={name: paired(sampler, _shorten) for name, sampler in STARTS.items()},
    project=_shorten,
    hypotheses=close_enough,
    assumptions="eq. (18); Assumption 1 with R = max ||x_t|| >= 1. The maximum over the "
    "segment is that of 17 points: a lower estimate of what is bounded. Sharpened: theta_1, "
    "theta_2 not next to one another",
)

STATEMENTS = (EQ_14, EQ_15, EQ_16, PROPOSITION_4)
