"""Section 6.2: equations (19) to (22), the growth of the distance of two runs in one step."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
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
from jaxbounds.multihead import stability
from jaxbounds.multihead.bounds import beta1, beta1_sharp, beta2, beta2_sharp, beta3, beta3_sharp
from jaxbounds.multihead.derivatives import network_risk
from jaxbounds.multihead.descent import MEAN_SQUARE, PRINTED, ball_constants
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.runs import (
    Run,
    descend,
    head_sizes,
    setting,
    sizes_along,
    training_set,
    within,
)
from jaxbounds.multihead.statements.common import on_data, params_of, token_radius
from jaxbounds.multihead.statements.instances import keep_radius, radius_at_least_one
from jaxbounds.multihead.statements.run_instances import (
    CONDITIONS,
    SHARP,
    certified,
    on_runs,
    worst_step,
)
from jaxbounds.multihead.statements.segments import PAIRS
from jaxbounds.multihead.tied import tied_norm

GRID = 5
"""The check estimates a function's maximum on a segment from this many points. More points make the
estimate more accurate. A low estimate makes the check stricter than (19) and (20).
"""

PARTS = (0.05, 0.5, 1.0, 2.0, 10.0)
"""The step sizes at which the check tests (19), as multiples of 1 / (smoothness bound)."""

SHARP_BETAS = "sharpened S2, S6"


def _curvatures(
    params: Params, copies: Array, radius: Array, size: Size
) -> dict[str, tuple[Array, Array]]:
    norm, largest, squares = head_sizes(params, copies)
    T, d, H = size["T"], size["d"], jnp.sum(copies)
    weak = beta3(norm, radius, T=T, d=d), beta3_sharp(largest, radius, T=T)
    smooth = beta2(norm, radius, T=T, d=d, H=H), beta2_sharp(largest, squares, radius, T=T, H=H)
    pairs = [(jnp.asarray(w / jnp.sqrt(H)), jnp.asarray(b)) for w, b in zip(weak, smooth)]
    return {"printed": pairs[0], SHARP_BETAS: pairs[1]}


def _expands(instance: Instance, size: Size) -> Sides:
    first = params_of(instance)
    apart = {"U": -instance["dU"], "W": -instance["dW"]}
    second = jax.tree.map(jnp.subtract, first, apart)
    data, copies, radius = training_set(instance), jnp.ones(size["H"]), token_radius(instance)
    mix = lambda a, b: jax.vmap(lambda t: (1 - t) * a + t * b)(jnp.linspace(0.0, 1.0, GRID))
    points = jax.tree.map(mix, first, second)
    loss = jax.vmap(empirical_risk, in_axes=(0, None))(points, data)
    betas = jax.vmap(lambda params: _curvatures(params, copies, radius, size))(points)
    slope = jax.grad(network_risk)
    slopes = jax.tree.map(jnp.subtract, slope(first, data), slope(second, data))
    length = tied_norm(apart, copies)
    largest = jnp.max(betas[SHARP_BETAS][1])
    steps = jnp.asarray(PARTS) / largest

    def moved(step: Array) -> Array:
        return tied_norm(jax.tree.map(lambda a, g: a - step * g, apart, slopes), copies)

    def bound(weak: Array, smooth: Array) -> Array:
        factors = stability.expansion(steps[:, None], weak[None], smooth[None], loss[None])
        return jnp.max(factors, axis=1) * length

    rhs = {name: bound(*pair) for name, pair in betas.items()}
    rhs["control"] = jnp.maximum(1.0, steps * largest) * length
    lhs, every = jax.vmap(moved)(steps), jnp.ones(len(PARTS), bool)
    return Sides.pairs({name: worst_step(lhs, side, every) for name, side in rhs.items()})


def _not_fitted(instance: Instance, size: Size) -> dict[str, Array]:
    loss = empirical_risk(params_of(instance), training_set(instance))
    return radius_at_least_one(instance, size) | {"L(theta) >= 1e-3": loss >= 1e-3}


def _curved(size: Size) -> Instance:
    """Return instances at which a gradient ascent step expands distances more than (19) allows.

    All tokens are e_1, W = 0, every row of U is (c, 0, ...), and theta' differs from theta along U.
    At these weights, L has the curvature T L'', which exceeds beta_3 L / sqrt(H) if H is large
    enough. At these weights, a descent step reduces the distance between theta and theta'.
    """
    n, T, d, H = (size[name] for name in ("n", "T", "d", "H"))
    margin = jnp.asarray([0.0, 1.0, 2.0])
    along = jnp.broadcast_to(jnp.eye(1, d), (3, H, T, d)) / (H**0.5 * T)
    flat = jnp.zeros((3, H, d, d))
    return {
        "X": jnp.broadcast_to(jnp.eye(1, d), (3, n, T, d)),
        "y": jnp.ones((3, n), int),
        "U": margin[:, None, None, None] * along,
        "W": flat,
        "dU": 0.1 * along,
        "dW": flat,
    }


EQ_19 = Statement(
    id="multihead.eq19",
    label="eq. (19)",
    formula="||(theta - eta grad L(theta)) - (theta' - eta grad L(theta'))|| <= max over "
    "[theta, theta'] of (1 + eta beta_3 L / sqrt(H)) v eta beta_2, times ||theta - theta'||",
    tex=r"\|(\theta - \eta \nabla \hat L(\theta)) - (\theta' - \eta \nabla \hat "
    r"L(\theta'))\| \le \max_{\alpha} \max\left( 1 + \frac{\eta "
    r"\beta_3(\theta_\alpha)}{\sqrt{H}} \hat L(\theta_\alpha), \, \eta "
    r"\beta_2(\theta_\alpha) \right) \|\theta - \theta'\|",
    kind="inequality",
    sample={"generic": PAIRS["generic"]},
    cases=_curved,
    project=keep_radius,
    evaluate=_expands,
    judges=(stability.expansion, beta2, beta2_sharp),
    sizes=({"n": 4, "T": 3, "d": 2, "H": 2},),
    hypotheses=_not_fitted,
    forms=(
        Form(name="printed", cites="eq. (19), Section 6.2; eq. (85), Appendix C"),
        Form(
            name=SHARP_BETAS,
            note="The bound is (19) with the sharpened constants beta_2# and beta_3#.",
        ),
    ),
    control="the term in beta_3 is dropped",
    assumptions="Assumption 1 with R = max ||x_t||; any eta > 0 (five tried); L(theta) >= 1e-3: "
    "as the ratio tends to one for large margins",
    search="random",
    budget=Budget(samples=256, restarts=2, steps=30, batch=64),
    source="Section 6.2, eq. (19); restated as (85), Appendix C",
)


class _Compared(NamedTuple):
    """The run on all samples, and for each i the run without sample i.

    Arrays have the axes (n, STEPS + 1): the omitted sample i and the step k. `apart` is ||theta_k -
    theta_k^{-i}||, and `alone` is l_i(theta_k). `both` is L^{-i}(theta_k) + L^{-i}(theta_k^{-i}).
    `gradients` holds the printed and the sharpened beta_1(theta_k), of shape (1, STEPS + 1).
    """

    full: Run
    without: Run
    apart: Array
    alone: Array
    both: Array
    gradients: dict[str, ArrayLike]

    def added(self, instance: Instance, gradient: ArrayLike) -> Array:
        return instance["step"] * gradient * self.alone / len(self.alone)


@jax.jit
def _compared(instance: Instance) -> _Compared:
    full, without = descend(instance), stability.leave_one_out(instance)
    data, copies, radius = training_set(instance), instance["copies"], token_radius(instance)
    risk = lambda params, keep: stability.leave_one_out_risk(params, copies, data, keep)
    shared = jax.vmap(jax.vmap(risk, (0, None)), (None, 0))(
        full.params, stability.leave_one_out_masks(data)
    )
    norm, _, squares = jax.tree.map(lambda leaf: leaf[None], sizes_along(full, copies))
    T = data["X"].shape[1]
    return _Compared(
        full,
        without,
        stability.deviations(full, without, copies),
        jax.vmap(stability.sample_losses, in_axes=(0, None, None))(full.params, copies, data).T,
        shared + without.losses,
        {"printed": beta1(norm, radius, T=T), SHARP_BETAS: beta1_sharp(squares, radius, T=T)},
    )


def _over_segments(instance: Instance, size: Size, c: _Compared) -> tuple[Array, dict[str, Array]]:
    data, copies, radius = training_set(instance), instance["copies"], token_radius(instance)

    def at_point(params: Params, keep: Array) -> tuple[Array, dict[str, Array]]:
        loss = stability.leave_one_out_risk(params, copies, data, keep)
        betas = _curvatures(params, copies, radius, size)
        factors = {
            name: stability.expansion(instance["step"], weak, smooth, loss)
            for name, (weak, smooth) in betas.items()
        }
        return loss, factors

    def at(t: Array) -> tuple[Array, dict[str, Array]]:
        mix = lambda a, b: (1 - t) * a[None] + t * b
        mixed = jax.tree.map(mix, c.full.params, c.without.params)
        return jax.vmap(jax.vmap(at_point, (0, None)))(mixed, stability.leave_one_out_masks(data))

    found = jax.lax.map(at, jnp.linspace(0.0, 1.0, GRID))
    return jax.tree.map(lambda leaf: jnp.max(leaf, axis=0), found)


def _judge(instance: Instance, c: _Compared, rhs: Mapping[str, Array]) -> Sides:
    before = within(instance, last=0)[None, :-1]
    lhs = c.apart[:, 1:]
    return Sides.pairs({name: worst_step(lhs, side[:, :-1], before) for name, side in rhs.items()})


def _recursion(instance: Instance, size: Size) -> Sides:
    c = _compared(instance)
    _, factors = _over_segments(instance, size, c)
    rhs = {
        name: stability.growth(c.apart, factor - 1, c.added(instance, c.gradients[name]))
        for name, factor in factors.items()
    }
    return _judge(instance, c, rhs | {"control": factors[SHARP_BETAS] * c.apart})


EQ_20 = on_runs(
    id="multihead.eq20",
    label="eq. (20)",
    formula="||theta_{k+1} - theta_{k+1}^{-i}|| <= max over [theta_k, theta_k^{-i}] of "
    "((1 + eta beta_3 L^{-i} / sqrt(H)) v eta beta_2) ||theta_k - theta_k^{-i}|| "
    "+ eta beta_1(theta_k) l_i(theta_k) / n",
    tex=r"\|\theta_{k+1} - \theta_{k+1}^{\neg i}\| \le \max_{\alpha} \max\left( 1 + "
    r"\frac{\eta \beta_3(\theta_{k \alpha}^{\neg i})}{\sqrt{H}} \hat L^{\neg "
    r"i}(\theta_{k \alpha}^{\neg i}), \, \eta \beta_2(\theta_{k \alpha}^{\neg i}) "
    r"\right) \|\theta_k - \theta_k^{\neg i}\| + \frac{\eta \beta_1(\theta_k)}{n} "
    r"\ell_i(\theta_k)",
    evaluate=_recursion,
    judges=(stability.expansion, stability.growth, stability.deviations, stability.sample_losses),
    forms=(
        Form(name="printed", cites="eq. (20), Section 6.2; eq. (86), Appendix C"),
        Form(
            name=SHARP_BETAS,
            note="The bound is (20) with the sharpened constants beta_1#, beta_2# and beta_3#.",
        ),
    ),
    control="the term in l_i is dropped",
    source="Section 6.2, eq. (20); restated as (86), Appendix C",
)


def _loss_recursion(instance: Instance, size: Size) -> Sides:
    c, step = _compared(instance), instance["step"]
    highest, _ = _over_segments(instance, size, c)
    _, weak = ball_constants(setting(instance), PRINTED)
    added = c.added(instance, c.gradients["printed"])
    rate = stability.growth_rate(step, weak, jnp.ones(()))
    rhs = {
        "printed": stability.misparenthesised_growth(c.apart, step * weak, highest, added),
        "printed, (89)": stability.misparenthesised_growth(c.apart, rate, c.both, added),
        "corrected": stability.growth(c.apart, step * weak * highest, added),
        "control": stability.growth(c.apart, step * weak * highest, 0 * added),
    }
    return _judge(instance, c, rhs)


def _certified(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    asked = certified(PRINTED, "(84)")(instance, size)
    return on_data(instance, size) | {
        f"{name} (Lemma 11, Appendix C; Theorem 1)": value for name, value in asked.items()
    }


def _scalar(ratio: float) -> Counterexample:
    instance = {
        "X": [[[1.0]]] * 2,
        "y": [1, 1],
        "U0": [[[0.0]]] * 2,
        "W0": [[[0.0]]] * 2,
        "U": [[[0.018]]] * 2,
        "W": [[[0.0]]] * 2,
        "copies": [15.0, 15.0],
        "step": 0.001,
        "K": 10,
    }
    size = {"n": 2, "T": 1, "d": 1}
    return Counterexample(instance=instance, size=size, ratio=ratio, meets=_certified)


EQ_21 = on_runs(
    id="multihead.eq21",
    label="eq. (21)",
    formula="||theta_{k+1} - theta_{k+1}^{-i}|| <= ((1 + eta beta~_3 / sqrt(H)) max L^{-i}) "
    "||theta_k - theta_k^{-i}|| + eta beta_1(theta_k) l_i(theta_k) / n",
    tex=r"\|\theta_{k+1} - \theta_{k+1}^{\neg i}\| \le \left( \left( 1 + \frac{\eta "
    r"\tilde\beta_3(\theta)}{\sqrt{H}} \right) \max_{\alpha} \hat L^{\neg i}(\theta_{k "
    r"\alpha}^{\neg i}) \right) \|\theta_k - \theta_k^{\neg i}\| + \frac{\eta "
    r"\beta_1(\theta_k)}{n} \ell_i(\theta_k)",
    evaluate=_loss_recursion,
    judges=(
        stability.misparenthesised_growth,
        stability.growth,
        ball_constants,
        stability.leave_one_out_risk,
    ),
    forms=(
        Form(
            name="printed",
            cites="eq. (21), Section 6.2; the display above eq. (89), Appendix C",
            erratum="E8",
            hypotheses=certified(PRINTED, "(84)"),
            note="The factor should be 1 + eta beta_3 L / sqrt(H), as in (20) and (22). The "
            "counterexample is scalar logistic regression on two equal samples, with ten "
            "steps.",
            counterexample=_scalar(2.2205903455853626),
        ),
        Form(
            name="printed, (89)",
            cites="eq. (89), Appendix C",
            erratum="E8",
            hypotheses=certified(PRINTED, "(84)"),
            note="Formula (89) repeats the misplaced bracket of (21). The inequality (89) still "
            "holds if L^{-i}(theta_k) + L^{-i}(theta_k^{-i}) exceeds one.",
            counterexample=_scalar(1.312917662887567),
        ),
        Form(
            name="corrected",
            hypotheses=certified(PRINTED, "(84)"),
            note="The corrected factor is (1 + (eta beta~_3 / sqrt(H)) max L^{-i}), where L^{-i} "
            "is the loss without sample i.",
        ),
    ),
    control="the corrected form without its term in l_i",
    source="Section 6.2, eq. (21); also the display before (89), Appendix C",
    assumptions="Assumption 1; (84); eta of Theorem 3",
    budget=Budget(samples=192, restarts=0, steps=0, batch=48),
)


def _final_recursion(instance: Instance, size: Size) -> Sides:
    c, step, rhs = _compared(instance), instance["step"], {}
    for name, constants in (("printed", PRINTED), (SHARP, MEAN_SQUARE)):
        gradient, weak = ball_constants(setting(instance), constants)
        rate, added = stability.growth_rate(step, weak, c.both), c.added(instance, gradient)
        rhs[name] = stability.growth(c.apart, rate, added)
        if constants.printed:
            rhs["control"] = stability.growth(c.apart, rate, 0 * added)
    return _judge(instance, c, rhs)


EQ_22 = on_runs(
    id="multihead.eq22",
    label="eq. (22)",
    formula="||theta_{k+1} - theta_{k+1}^{-i}|| <= (1 + alpha_{k,i}) ||theta_k - theta_k^{-i}|| "
    "+ eta beta~_1 l_i(theta_k) / n, alpha_{k,i} = 4 eta beta~_3 / (3 sqrt(H)) "
    "(L^{-i}(theta_k) + L^{-i}(theta_k^{-i}))",
    tex=r"\|\theta_{k+1} - \theta_{k+1}^{\neg i}\| \le (1 + \alpha_{k,i}) \|\theta_k - "
    r"\theta_k^{\neg i}\| + \frac{\eta \tilde\beta_1(\theta)}{n} \ell_i(\theta_k), \quad "
    r"\alpha_{k,i} = \frac{4 \eta \tilde\beta_3(\theta)}{3 \sqrt{H}} \left( \hat L^{\neg "
    r"i}(\theta_k) + \hat L^{\neg i}(\theta_k^{\neg i}) \right)",
    evaluate=_final_recursion,
    judges=(stability.growth, stability.growth_rate, ball_constants),
    forms=(
        Form(name="printed", cites="eq. (22), Section 6.2", hypotheses=certified(PRINTED, "(84)")),
        Form(
            name=SHARP,
            hypotheses=certified(MEAN_SQUARE, "(84)"),
            note="The constants beta~_1# and beta~_3# are valid in the ball of radius sqrt(13/3) "
            "D around theta; # marks sharpened constants.",
        ),
    ),
    control="the term in l_i is dropped",
    source="Section 6.2, eq. (22); Appendix C, eqs. (89), (90)",
    assumptions=CONDITIONS,
)

STATEMENTS = (EQ_19, EQ_20, EQ_21, EQ_22)
