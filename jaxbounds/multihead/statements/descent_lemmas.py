"""The statements for Section 6.1 and Appendix B.2: Lemmas 7 to 10, step by step along a run."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import Form, Hypotheses, Instance, Sides, Size
from jaxbounds.multihead.bounds import beta2, beta2_sharp, beta3, beta3_sharp
from jaxbounds.multihead.descent import (
    LARGEST_HEAD,
    MEAN_SQUARE,
    PRINTED,
    averaged_loss,
    regret,
    sharp_weight,
    short_steps,
)
from jaxbounds.multihead.runs import (
    Run,
    average_over,
    descend,
    distances,
    horizon,
    largest_until,
    setting,
    sizes_along,
    target_of,
    training_set,
    within,
)
from jaxbounds.multihead.statements.instances import radius_at_least_one
from jaxbounds.multihead.statements.run_instances import head_count, on_runs, worst_step
from jaxbounds.multihead.tied import tied_risk

GRID = 5
"""The check estimates the largest loss on a segment from this many points. More points make the
estimate more accurate. A low estimate makes the check stricter than Lemma 8.
"""

MEASURABLE = 1e5
"""The check skips a step if the claimed decrease of the loss is below this factor times the
rounding error. The ratio lhs/rhs of a checked step then has a relative rounding error of at most
1e-4. A larger factor skips more steps.
"""


def rounding_of_losses(instance: Instance, run: Run) -> Array:
    """Return a bound on the rounding errors of L(theta_k) and of the next step, for every k.

    A margin is a sum over H heads divided by sqrt(H), and the outputs of different heads may
    cancel. The rounding error of the margin is therefore eps times sqrt(H) max_h sum_t |u_t| |x_t|
    and not eps times the margin.
    """
    _, largest, _ = sizes_along(run, instance["copies"])
    s = setting(instance)
    margin = jnp.sqrt(s.heads * s.T) * s.radius * (largest + instance["step"] * run.slopes)
    return 16 * jnp.finfo(margin.dtype).eps * (run.losses + margin)


@jax.jit
def _smooth_steps(instance: Instance) -> tuple[Run, dict[str, Array]]:
    run, s, step = descend(instance), setting(instance), instance["step"]
    norms, largest, squares = sizes_along(run, instance["copies"])
    visible = step / 2 * run.slopes**2 >= MEASURABLE * rounding_of_losses(instance, run)
    betas = {
        "printed": beta2(norms, s.radius, T=s.T, d=s.d, H=s.heads),
        "sharpened S2, S6": beta2_sharp(largest, squares, s.radius, T=s.T, H=s.heads),
    }
    allowed = lambda b: (step * jnp.maximum(b[:-1], b[1:]) <= 1) & visible[:-1]
    return run, {name: allowed(beta) for name, beta in betas.items()}


def _descent_lemma(instance: Instance, size: Size) -> Sides:
    run, masks = _smooth_steps(instance)
    promised = instance["step"] / 2 * run.slopes[:-1] ** 2
    drop = run.losses[:-1] - run.losses[1:]
    error = 2 * rounding_of_losses(instance, run)[:-1]
    found = {name: worst_step(promised, drop, mask, error) for name, mask in masks.items()}
    found["control"] = worst_step(2 * promised, drop, masks["sharpened S2, S6"], error)
    return Sides.pairs(
        {name: (lhs, rhs) for name, (lhs, rhs, _) in found.items()},
        error={name: error for name, (_, _, error) in found.items()},
    )


def _some_step(name: str) -> Hypotheses:
    return lambda instance, size: {
        "eta <= 1 / rho_k for some k": jnp.any(_smooth_steps(instance)[1][name])
    }


LEMMA_7 = on_runs(
    id="multihead.lem7",
    label="Lemma 7",
    formula="eta <= 1 / rho_k, rho_k = beta_2(theta_k) v beta_2(theta_{k+1}), implies "
    "L(theta_{k+1}) <= L(theta_k) - (eta / 2) ||grad L(theta_k)||^2",
    tex=r"\eta \le \frac{1}{\rho_k}, \; \rho_k = \max(\beta_2(\theta_k), "
    r"\beta_2(\theta_{k+1})) \implies \hat L(\theta_{k+1}) \le \hat L(\theta_k) - "
    r"\frac{\eta}{2} \|\nabla \hat L(\theta_k)\|^2",
    evaluate=_descent_lemma,
    judges=(beta2, beta2_sharp, descend),
    forms=(
        Form(
            name="printed",
            cites="Lemma 7, eq. (68), Appendix B.3; eq. (13)",
            hypotheses=_some_step("printed"),
        ),
        Form(
            name="sharpened S2, S6",
            hypotheses=_some_step("sharpened S2, S6"),
            note="The bound is that of Lemma 7 with the smaller constant beta_2# = beta_3# / "
            "sqrt(H) + beta_1#^2 / 4; # marks a sharpened constant.",
        ),
    ),
    control="eta in place of eta / 2",
    source="Appendix B.3, eq. (68); eq. (13) in Section 6.1",
)


@jax.jit
def descends(instance: Instance, size: Size) -> dict[str, Array]:
    """Check Assumption 1, and the measured step-wise descent (68) for k = 0, ..., K - 1."""
    run = descend(instance)
    drop = run.losses[:-1] - run.losses[1:] + 1e-14 * run.losses[:-1]
    kept = drop >= instance["step"] / 2 * run.slopes[:-1] ** 2
    every = jnp.all(kept | ~within(instance, last=0)[:-1])
    return radius_at_least_one(instance, size) | {"(68)": every}


@jax.jit
def _penalties(instance: Instance) -> dict[str, Array]:
    run, copies, s = descend(instance), instance["copies"], setting(instance)
    norms, largest, _ = sizes_along(run, copies)
    scaled = distances(run, target_of(instance), copies) ** 2 / jnp.sqrt(s.heads)
    return {
        "printed": scaled * beta3(jnp.maximum(norms, s.size), s.radius, T=s.T, d=s.d),
        "sharpened S6": scaled * beta3_sharp(jnp.maximum(largest, s.largest), s.radius, T=s.T),
    }


def _segment_maxima(instance: Instance) -> Array:
    run, target = descend(instance), target_of(instance)
    risk = lambda params: tied_risk(params, instance["copies"], training_set(instance))

    def at(a: Array) -> Array:
        mix = lambda leaf, end: (1 - a) * leaf + a * end[None]
        return jax.vmap(risk)(jax.tree.map(mix, run.params, target))

    return jnp.max(jax.lax.map(at, jnp.linspace(0.0, 1.0, GRID)), axis=0)


def _one_step(instance: Instance, penalty: Array) -> tuple[Array, Array]:
    """Return both sides of (70) at the worst k; a decrease of the distance counts on the right."""
    run, s, step = descend(instance), setting(instance), instance["step"]
    away = distances(run, target_of(instance), instance["copies"]) ** 2
    gone = (away[1:] - away[:-1]) / (2 * step)
    lhs = run.losses[1:] + jnp.maximum(gone, 0.0)
    rhs = s.loss_target + jnp.maximum(-gone, 0.0) + penalty[:-1] / 2
    return worst_step(lhs, jnp.asarray(rhs), within(instance, last=0)[:-1])


def _average_loss(instance: Instance, size: Size) -> Sides:
    s, step, K = setting(instance), instance["step"], horizon(instance)
    highest = _segment_maxima(instance)
    sums = {
        name: K * average_over(penalty * highest, instance, first=0)
        for name, penalty in _penalties(instance).items()
    }
    rhs = {name: regret(s, step, K, total) for name, total in sums.items()}
    rhs["control"] = s.loss_target + sums["sharpened S6"] / (2 * K)
    average = average_over(descend(instance).losses, instance, first=1)
    pairs = {name: (average, bound) for name, bound in rhs.items()}
    ends = 4 / 3 * (descend(instance).losses + s.loss_target)
    pairs["printed, (77)"] = worst_step(highest, ends, within(instance, last=0))
    pairs["printed, (70)"] = _one_step(instance, _penalties(instance)["printed"] * highest)
    return Sides.pairs(pairs)


def around_descent(size: Size) -> Instance:
    """Return two runs of one step from zero: the first satisfies (68), the second violates (68).

    The n sequences are equal, and one of the labels differs from the other labels. The step sizes
    of both runs are close to the largest one that (68) allows. Let x be the common token, and a =
    eta T ||x||^2. After the step, the loss is (2 l(z) + l(-z)) / 3 with the logistic loss l and z =
    a / 6. Inequality (68) says that this loss is at most log 2 - a / 72, which is true up to a =
    4.0760.
    """
    n, T, d = size["n"], size["T"], size["d"]
    twice = lambda leaf: jnp.broadcast_to(leaf, (2, *leaf.shape))
    zero = {"U": jnp.zeros((2, T, d)), "W": jnp.zeros((2, d, d))}
    tokens = jnp.broadcast_to(jnp.eye(1, d), (n, T, d))
    return {
        "X": twice(tokens),
        "y": twice(jnp.where(jnp.arange(n) == 0, -1, 1)),
        "U0": twice(zero["U"]),
        "W0": twice(zero["W"]),
        "U": twice(zero["U"] + 0.1 * tokens[:1]),
        "W": twice(zero["W"]),
        "copies": twice(jnp.ones(2)),
        "step": jnp.asarray([4.07, 4.08]) / T,
        "K": jnp.ones(2, int),
    }


def _with_short_steps(instance: Instance, size: Size) -> dict[str, Array]:
    short = short_steps(setting(instance), instance["step"], horizon(instance))
    return descends(instance, size) | {"(73)": short}


def _conditions_of_77(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    return {**_with_short_steps(instance, size), **head_count(PRINTED)(instance, size)}


LEMMA_8 = on_runs(
    id="multihead.lem8",
    label="Lemma 8",
    formula="(1/K) sum_{k=1}^K L(theta_k) <= L(theta) + ||theta - theta_0||^2 / (2 eta K) "
    "+ (1/2K) sum_{k=0}^{K-1} tau_k ||theta - theta_k||^2",
    tex=r"\frac{1}{K} \sum_{k=1}^{K} \hat L(\theta_k) \le \hat L(\theta) + \frac{\|\theta - "
    r"\theta_0\|^2}{2 \eta K} + \frac{1}{2 K} \sum_{k=0}^{K-1} \tau_k \|\theta - "
    r"\theta_k\|^2",
    evaluate=_average_loss,
    judges=(regret, beta3, beta3_sharp),
    cases=around_descent,
    forms=(
        Form(name="printed", cites="Lemma 8, eq. (69), Appendix B.3; eq. (17)"),
        Form(
            name="printed, (70)",
            cites="eq. (70), Appendix B.3; again (76)",
            note="The inequality holds for every k < K: L(theta_{k+1}) <= L(theta) + (||theta - "
            "theta_k||^2 - ||theta - theta_{k+1}||^2) / (2 eta) + (tau_k / 2) ||theta - "
            "theta_k||^2.",
        ),
        Form(
            name="printed, (77)",
            cites="eq. (77), Appendix B.3",
            hypotheses=_conditions_of_77,
            note="For k < K, the maximum of L over [theta_k, theta] is at most (4/3) (L(theta_k) "
            "+ L(theta)). The check computes the maximum over five points, which is a lower "
            "estimate of the true maximum.",
        ),
        Form(
            name="sharpened S6",
            note="The sharpened constant beta_3# (S6, see jaxbounds guide codes) replaces beta_3 "
            "in tau_k.",
        ),
    ),
    control="the term ||theta - theta_0||^2 / (2 eta K) is dropped",
    source="Appendix B.3, eq. (69); eq. (17) in Section 6.1",
    hypotheses=descends,
    assumptions="Assumption 1; step-wise descent (68) for k = 0, ..., K - 1; any theta. "
    "Maxima over segments are those of five points",
)


def _largest_penalty(instance: Instance, name: str) -> Array:
    return largest_until(_penalties(instance)[name], instance, last=0)


def _regret(instance: Instance, size: Size) -> Sides:
    s, step, K = setting(instance), instance["step"], horizon(instance)
    kappa = jnp.minimum(_largest_penalty(instance, "sharpened S6"), 1.5)
    printed = averaged_loss(s, step, K)
    return Sides(
        lhs=average_over(descend(instance).losses, instance, first=1),
        rhs={
            "printed": printed,
            "sharpened S6": printed,
            "sharpened S6, S8": averaged_loss(s, step, K, weight=sharp_weight(kappa)),
            "control": 2 * s.loss_target + s.loss_start / (2 * K),
        },
    )


def _close(name: str, limit: float) -> Hypotheses:
    return lambda instance, size: {
        f"beta_3 ||theta - theta_k||^2 <= {limit:g} sqrt(H)": _largest_penalty(instance, name)
        <= limit
    }


LEMMA_9 = on_runs(
    id="multihead.lem9",
    label="Lemma 9",
    formula="(1/K) sum_{k=1}^K L(theta_k) <= 2 L(theta) + 3 ||theta - theta_0||^2 / (4 eta K) "
    "+ L(theta_0) / (2K)",
    tex=r"\frac{1}{K} \sum_{k=1}^{K} \hat L(\theta_k) \le 2 \hat L(\theta) + \frac{3 "
    r"\|\theta - \theta_0\|^2}{4 \eta K} + \frac{\hat L(\theta_0)}{2 K}",
    evaluate=_regret,
    judges=(averaged_loss, sharp_weight),
    forms=(
        Form(
            name="printed",
            cites="Lemma 9, eq. (71), Appendix B.3",
            hypotheses=_close("printed", 0.5),
        ),
        Form(
            name="sharpened S6",
            hypotheses=_close("sharpened S6", 0.5),
            note="The bound on the loss is that of Lemma 9. The sharpened constant beta_3# "
            "replaces beta_3 in the condition on H.",
        ),
        Form(
            name="sharpened S6, S8",
            hypotheses=_close("sharpened S6", 1.5),
            note=(
                "Let kappa = max_k beta_3# ||theta - theta_k||^2 / sqrt(H) and q = kappa "
                "sec(sqrt(kappa)/2) < 2, with beta_3# of sharpening S6 (jaxbounds guide codes). "
                "This form bounds the left side by ((1 + q/2) L(theta) + D^2 / (2 eta K) + q "
                "L(theta_0) / (2K)) / (1 - q/2), with D = ||theta - theta_0||. At q = 2/3 this "
                "bound is the printed bound. As kappa -> 0, this bound tends to the bound for "
                "convex losses."
            ),
        ),
    ),
    control="the term in ||theta - theta_0||^2 is dropped",
    source="Appendix B.3, eq. (71)",
    hypotheses=descends,
    assumptions="as in Lemma 8, and sqrt(H) >= 2 (beta_3(theta) v beta_3(theta_k)) "
    "||theta - theta_k||^2 for all k < K",
)


def _furthest(instance: Instance, size: Size) -> Sides:
    s = setting(instance)
    away = distances(descend(instance), target_of(instance), instance["copies"])
    furthest = largest_until(away, instance, last=1)
    sharp = furthest, LARGEST_HEAD.reach * s.distance
    norms, _, _ = sizes_along(descend(instance), instance["copies"])
    far = PRINTED.reach * s.distance + s.size
    betas = beta2(norms, s.radius, T=s.T, d=s.d, H=s.heads)
    smoothest = largest_until(jnp.asarray(betas), instance, last=1)
    return Sides.pairs(
        {
            "printed": (furthest, PRINTED.reach * s.distance),
            "printed, (88)": (smoothest, beta2(far, s.radius, T=s.T, d=s.d, H=s.heads)),
            "sharpened S9": sharp,
            "sharpened S6, S9": sharp,
            "control": (furthest, s.distance),
        }
    )


LEMMA_10 = on_runs(
    id="multihead.lem10",
    label="Lemma 10",
    formula="||theta_k - theta|| <= 3 ||theta - theta_0|| for k <= K",
    tex=r"\|\theta_k - \theta\| \le 3 \|\theta - \theta_0\|, \quad k \le K",
    evaluate=_furthest,
    judges=(distances, beta2),
    forms=(
        Form(
            name="printed", cites="Lemma 10, eq. (75), Appendix B.3", hypotheses=head_count(PRINTED)
        ),
        Form(
            name="printed, (88)",
            cites="eq. (88), Appendix C; (87) and (90) alike",
            hypotheses=head_count(PRINTED),
            note=(
                "Inequality (88) is beta_2(theta_k) <= beta~_2. The constant beta~_2 has 3 D + "
                "||theta||_{2,inf} in place of ||theta_k||_{2,inf}."
            ),
        ),
        Form(
            name="sharpened S9",
            hypotheses=head_count(PRINTED),
            note="Inequality (78) bounds ||theta_k - theta||^2 by 1 + 8/3 + 2/3 = 13/3 times "
            "||theta - theta_0||^2, and the paper rounds 13/3 up to 9.",
        ),
        Form(
            name="sharpened S6, S9",
            hypotheses=head_count(MEAN_SQUARE),
            note="Let D = ||theta - theta_0||. A number H of heads suffices if sqrt(H) >= (26/3) "
            "beta_3# D^2. The proof uses ||theta_k - theta||^2 <= (13/3) D^2 and the sharpened "
            "constant beta_3#.",
        ),
    ),
    control="the distance from theta never grows",
    source="Appendix B.3, eq. (75)",
    hypotheses=_with_short_steps,
    assumptions="Assumption 1; descent (68) for k = 0, ..., K - 1; (73); (74). (88) at the "
    "iterates on all samples: the leave-one-out end of (87) and (88) is not evaluated",
)

STATEMENTS = (LEMMA_7, LEMMA_8, LEMMA_9, LEMMA_10)
