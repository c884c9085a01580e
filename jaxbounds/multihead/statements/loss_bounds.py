"""Corollary 1 / Lemma 6 and Section 6: bounds on the loss, and what they give along a segment."""

import math

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import (
    beta1,
    beta1_sharp,
    beta2,
    beta2_sharp,
    beta3,
    beta3_sharp,
    convexity_horizon,
)
from jaxbounds.multihead.calculus import loss_hessian
from jaxbounds.multihead.instances import LOSS, keep_radius, radius_at_least_one
from jaxbounds.multihead.loss import (
    empirical_risk,
    logistic,
    logistic_curvature,
    logistic_slope,
    margins,
)
from jaxbounds.multihead.model import head_norm
from jaxbounds.norms import max_row_norm
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement

SIZES = ({"n": 1, "T": 2, "d": 2, "H": 1}, {"n": 4, "T": 3, "d": 2, "H": 4})
SEGMENT_SIZES = ({"n": 4, "T": 3, "d": 2, "H": 2},)
GRID = 17
"""Points on a segment where its extremes are taken: lower estimates of the maxima."""


def _params(instance: Instance):
    return {"U": instance["U"], "W": instance["W"]}


def _data(instance: Instance):
    return {"X": instance["X"], "y": instance["y"]}


def _sizes(params, tokens):
    """R, ||theta||_{2,inf}, max_h ||U_h||_F and the mean of ||U_h||_F^2."""
    squares = jnp.sum(params["U"] ** 2, axis=(1, 2))
    largest = jnp.sqrt(jnp.max(squares) + 1e-300)
    radius = max_row_norm(tokens.reshape(-1, tokens.shape[-1]))
    return radius, head_norm(params), largest, jnp.mean(squares)


def _shape(instance: Instance) -> dict[str, int]:
    return {"T": instance["X"].shape[1], "d": instance["X"].shape[2]}


def _slope_bound(instance: Instance) -> Sides:
    margin = margins(_params(instance), _data(instance))
    loss, slope = jnp.mean(logistic(margin)), jnp.mean(logistic_slope(margin))
    return Sides(lhs=slope, rhs={"printed": loss, "control": loss**2})


def _loss_bound(instance: Instance) -> Sides:
    margin = margins(_params(instance), _data(instance))
    loss, slope = jnp.mean(logistic(margin)), jnp.mean(logistic_slope(margin))
    return Sides(
        lhs={"printed": loss, "corrected": slope, "control": slope},
        rhs={"printed": 1.0, "corrected": jnp.minimum(loss, 1.0), "control": 0.5},
    )


def _curvature_bound(instance: Instance) -> Sides:
    margin = margins(_params(instance), _data(instance))
    slope, curvature = jnp.mean(logistic_slope(margin)), jnp.mean(logistic_curvature(margin))
    return Sides(
        lhs=curvature,
        rhs={"printed": 0.25, "sharpened": jnp.minimum(slope, 0.25), "control": slope / 2},
    )


def _gradient_bound(instance: Instance) -> Sides:
    params, T = _params(instance), instance["X"].shape[1]
    loss, slope = jax.value_and_grad(empirical_risk)(params, _data(instance))
    radius, size, largest, squares = _sizes(params, instance["X"])
    return Sides(
        lhs=jnp.sqrt(jnp.sum(slope["U"] ** 2) + jnp.sum(slope["W"] ** 2)),
        rhs={
            "printed": beta1(size, radius, T=T) * loss,
            "printed, Lemma 6": beta1(largest, radius, T=T) * loss,
            "sharpened S2": beta1_sharp(squares, radius, T=T) * loss,
            "control": beta1_sharp(squares, radius, T=T) * loss**2,
        },
    )


def _eigenvalues(params, data):
    return jnp.linalg.eigvalsh(loss_hessian(params, data))


def _smoothness_bound(instance: Instance) -> Sides:
    params, data, shape = _params(instance), _data(instance), _shape(instance)
    heads, T = instance["U"].shape[0], shape["T"]
    values = _eigenvalues(params, data)
    radius, size, largest, squares = _sizes(params, instance["X"])
    root, sharp_1 = math.sqrt(heads), beta1_sharp(squares, radius, T=T)
    sharp_3 = beta3_sharp(largest, radius, T=T)
    loss = empirical_risk(params, data)
    return Sides(
        lhs=jnp.max(jnp.abs(values)),
        rhs={
            "printed": beta2(size, radius, H=heads, **shape),
            "printed, Lemma 6": beta2(largest, radius, H=heads, **shape),
            "sharpened S6": beta2_sharp(largest, squares, radius, T=T, H=heads),
            "sharpened S6, self-bounded": (sharp_3 / root + sharp_1**2) * loss,
            "control": sharp_3 / root,
        },
    )


def _weak_convexity(instance: Instance) -> Sides:
    params, data, shape = _params(instance), _data(instance), _shape(instance)
    root = math.sqrt(instance["U"].shape[0])
    values, loss = _eigenvalues(params, data), empirical_risk(params, data)
    radius, size, largest, _ = _sizes(params, instance["X"])
    sharp = beta3_sharp(largest, radius, T=shape["T"]) / root
    return Sides(
        lhs=-values[0],
        rhs={
            "printed": beta3(size, radius, **shape) * loss / root,
            "printed, Lemma 6": beta3(largest, radius, **shape) * loss / root,
            "sharpened S6": sharp * loss,
            "control": sharp * loss**2,
        },
        # Rounding of a symmetric eigenvalue problem.
        error=1e-14 * jnp.max(jnp.abs(values)),
    )


def _segment(instance: Instance):
    """theta_1, theta_2 = theta_1 + d, the points between, ||d||, and both ends' sizes."""
    first = _params(instance)
    step = {"U": instance["dU"], "W": instance["dW"]}
    second = jax.tree.map(jnp.add, first, step)
    along = jnp.linspace(0.0, 1.0, GRID)
    point = lambda a: jax.tree.map(lambda x, dx: x + a * dx, first, step)
    distance = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(step)) + 1e-300)
    return first, second, step, jax.vmap(point)(along), distance


def _end_betas(first, second, instance: Instance):
    """The larger beta_3 of both ends, as printed and sharpened."""
    shape = _shape(instance)
    pairs = []
    for params in (first, second):
        radius, size, largest, _ = _sizes(params, instance["X"])
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
    data = _data(instance)
    least = jax.vmap(lambda params: _eigenvalues(params, data)[0])(points)
    gap, error = _taylor_gap(first, second, step, data)
    bound = -jnp.min(least) * distance**2 / 2
    return Sides(
        lhs={"printed": gap, "printed, early version": bound, "control": gap},
        rhs={"printed": bound, "printed, early version": gap, "control": 0.25 * bound},
        error=error,
    )


def _segment_convexity(instance: Instance) -> Sides:
    first, second, _, points, _ = _segment(instance)
    data, root = _data(instance), math.sqrt(instance["U"].shape[0])
    values = jax.vmap(lambda params: _eigenvalues(params, data))(points)
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
    data, root = _data(instance), math.sqrt(instance["U"].shape[0])
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
    data, root = _data(instance), math.sqrt(instance["U"].shape[0])
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


def _statement(name, label, formula, evaluate, forms, control, source, **options) -> Statement:
    defaults = {
        "sample": LOSS,
        "sizes": SIZES,
        "project": keep_radius,
        "hypotheses": radius_at_least_one,
        "assumptions": "Assumption 1 with R = max ||x_t|| >= 1; labels in {-1, +1}",
        "budget": Budget(samples=192, restarts=8, steps=200),
    }
    return Statement(
        id=f"multihead.{name}",
        label=label,
        formula=formula,
        kind="inequality",
        evaluate=evaluate,
        forms=forms,
        control=control,
        source=source,
        **(defaults | options),
    )


_MISFIT = {
    "X": [[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]],
    "y": [-1],
    "U": [[[10.0, 0.0], [10.0, 0.0], [10.0, 0.0]]],
    "W": [[[0.0, 0.0], [0.0, 0.0]]],
}
_STATIC = {name: LOSS[name] for name in ("generic", "extremal")}
_SMALL = Budget(samples=128, restarts=4, steps=100)

STATEMENTS = (
    _statement(
        "eq24.slope",
        "eq. (24), first part",
        "L' := mean |l'(y Phi)| <= L",
        _slope_bound,
        (Form(name="printed", equality="the limit of large margins", note="log(1+x) >= x/(1+x)."),),
        "L is replaced by L^2",
        "Appendix A, eq. (24)",
        sample=_STATIC,
        sizes=SIZES[:1],
        budget=_SMALL,
    ),
    _statement(
        "eq24.loss",
        "eq. (24), second part",
        "L' <= L <= 1",
        _loss_bound,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E1",
                note="L is unbounded: three equal tokens, rows of U equal to (10, 0), y = -1.",
                counterexample=_MISFIT,
            ),
            Form(
                name="corrected",
                equality="the limits of large margins of either sign",
                note="L' <= min(L, 1), which is all that (66) and Theorem 3 use.",
            ),
        ),
        "L' <= 1/2",
        "Appendix A, eq. (24)",
        sample=_STATIC,
        sizes=SIZES[:1],
        budget=_SMALL,
    ),
    _statement(
        "eq24.curvature",
        "eq. (24), third part",
        "L'' := mean |l''(y Phi)| <= 1/4",
        _curvature_bound,
        (
            Form(name="printed", equality="Phi = 0"),
            Form(
                name="sharpened",
                equality="Phi = 0, and the limit of large margins",
                note="l'' = |l'| (1 - |l'|), so L'' <= min(L', 1/4).",
            ),
        ),
        "half of L'",
        "Appendix A, eq. (24)",
        sample=_STATIC,
        sizes=SIZES[:1],
        budget=_SMALL,
    ),
    _statement(
        "cor1.1",
        "Corollary 1 (1)",
        "||grad L|| <= beta_1 L, beta_1 = sqrt(T) R (2 R^2 ||theta||_{2,inf} + 1)",
        _gradient_bound,
        (
            Form(name="printed"),
            Form(name="printed, Lemma 6", note="max_h ||U_h||_F for ||theta||_{2,inf}."),
            Form(
                name="sharpened S2",
                equality="the limit of large margins at equality of the model's gradient",
                note="sqrt(T) R sqrt(1 + R^4 mean_h ||U_h||_F^2).",
            ),
        ),
        "L is replaced by L^2",
        "Section 3; restated as Lemma 6 (1), eq. (64)",
    ),
    _statement(
        "cor1.2",
        "Corollary 1 (2)",
        "||Hess L|| <= beta_2 = beta_3 / sqrt(H) + beta_1^2 / 4",
        _smoothness_bound,
        (
            Form(name="printed"),
            Form(name="printed, Lemma 6", note="max_h ||U_h||_F for ||theta||_{2,inf}."),
            Form(name="sharpened S6", note="beta_3# / sqrt(H) + beta_1#^2 / 4."),
            Form(
                name="sharpened S6, self-bounded",
                note="l'' <= |l'| <= l gives (beta_3# / sqrt(H) + beta_1#^2) L.",
            ),
        ),
        "the term in beta_1 is dropped",
        "Section 3; restated as Lemma 6 (2), eq. (66)",
    ),
    _statement(
        "cor1.3",
        "Corollary 1 (3)",
        "lambda_min(Hess L) >= -beta_3 L / sqrt(H), "
        "beta_3 = 2 sqrt(T d) R^3 (3 sqrt(d) R^2 ||theta||_{2,inf} + 1)",
        _weak_convexity,
        (
            Form(name="printed"),
            Form(name="printed, Lemma 6", note="max_h ||U_h||_F for ||theta||_{2,inf}."),
            Form(
                name="sharpened S6",
                equality="the limit of large margins at equality of the model's Hessian",
                note="sqrt(T) R^3 (c* R^2 max_h ||U_h||_F + 1): smaller by 2 sqrt(d) and 7.8 d.",
            ),
        ),
        "L is replaced by L^2",
        "Section 3; restated as Lemma 6 (3)",
        budget=Budget(samples=192, restarts=16, steps=300),
    ),
    _statement(
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
        "a quarter of the bound",
        "Section 6.1, eq. (14)",
        sample=PAIRS,
        sizes=SEGMENT_SIZES,
        budget=SEGMENT_BUDGET,
        search="none",
    ),
    _statement(
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
    _statement(
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
    _statement(
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
