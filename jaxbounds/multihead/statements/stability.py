"""Section 4.2 and Appendix C: stability of gradient descent and the generalization gap."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import beta1, beta1_sharp, beta3, beta3_sharp
from jaxbounds.multihead.descent import (
    PRINTED_WEIGHT,
    STABILITY,
    generalization_gap,
    gradient_sharp,
    reach,
    root_heads,
    root_heads_sharp,
    stability,
    stability_sharp,
)
from jaxbounds.multihead.instances import keep_radius
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.realizable import REALIZABLE_RUNS, distance_function, realized
from jaxbounds.multihead.runs import (
    RUNS,
    data_of,
    descend,
    head_sizes,
    printed_step,
    setting,
    sharp_step,
    sizes_along,
    within,
)
from jaxbounds.multihead.stability import (
    deviations,
    growth,
    kept,
    leave_one_out,
    leave_one_out_risk,
    misparenthesised_growth,
    on_average_stability,
    sample_losses,
)
from jaxbounds.multihead.statements.descent import RUN_BUDGET, SIZES, assumption1, worst_step
from jaxbounds.multihead.statements.segments import PAIRS, SEGMENT_SIZES
from jaxbounds.multihead.tied import tied_distance, tied_risk
from jaxbounds.statements import Budget, Form, Instance, Sides, Statement

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


def _uniform(instance: Instance):
    """beta~_1, beta~_3 / sqrt(H) of (87), (90): with 3 D + size, and sharpened with S9."""
    s, T = setting(instance), instance["X"].shape[1]
    root, far = jnp.sqrt(s.heads), reach(PRINTED_WEIGHT)
    ball = 3 * s.distance + s.size
    return {
        "printed": (
            beta1(ball, s.radius, T=T),
            beta3(ball, s.radius, **s.shape) / root,
        ),
        _SHARP: (
            gradient_sharp(s.distance, s.squares, s.radius, s.heads, T=T, far=far),
            beta3_sharp(far * s.distance + s.largest, s.radius, T=T) / root,
        ),
    }


_SHARP = "sharpened S2, S6, S9, S10"


def _loss_recursion(instance: Instance) -> Sides:
    full, without, apart, alone, shared = _compared(instance)
    n, step = apart.shape[0], instance["step"]
    highest = jnp.max(_on_segments(instance, full, without), axis=0)
    _, weak = _uniform(instance)["printed"]
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
    uniform = _uniform(instance)
    rhs = {
        name: growth(apart, 4 / 3 * step * weak * both, step * gradient * alone / n)
        for name, (gradient, weak) in uniform.items()
    }
    _, weak = uniform["printed"]
    rhs["control"] = growth(apart, 4 / 3 * step * weak * both, 0 * alone)
    return _judge(instance, apart, rhs)


@jax.jit
def printed_conditions(instance: Instance) -> dict:
    """The head count (84) and the step size of Theorem 3."""
    s = setting(instance)
    root = root_heads(s.distance, s.size, s.radius, factor=STABILITY, **s.shape)
    allowed = instance["step"] <= printed_step(s, instance["K"].astype(s.heads.dtype))
    return {"(84)": s.heads >= root**2, "eta of Theorem 3": allowed}


@jax.jit
def sharp_conditions(instance: Instance) -> dict:
    """(84) with 104/3 beta_3# in place of 128 beta~_3, and the step size of S10."""
    s = setting(instance)
    T, K = s.shape["T"], instance["K"].astype(s.heads.dtype)
    root = root_heads_sharp(
        s.distance, s.largest, s.radius, T=T, weight=PRINTED_WEIGHT, stability=True
    )
    allowed = instance["step"] <= sharp_step(s, K, largest_head=False, weight=PRINTED_WEIGHT)
    return {"(84) with beta_3#": s.heads >= root**2, "eta <= 1 / rho# and (73)": allowed}


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
    gradient, _ = _uniform(instance)[_SHARP]
    return Sides(
        lhs=_average_stability(instance),
        rhs={
            "printed": stability(
                s.loss_target, s.distance, s.size, s.radius, step, K, n, **_tokens(s)
            ),
            _SHARP: _sharp_stability(instance),
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
            _SHARP: 2 * _lipschitz(s) * _sharp_stability(instance),
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
            _SHARP: 2 * _lipschitz(wider) * sharp,
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


def _statement(name, label, formula, evaluate, forms, control, source, **options) -> Statement:
    defaults = {
        "sample": RUNS,
        "sizes": SIZES,
        "hypotheses": assumption1,
        "assumptions": "Assumption 1 with R = max ||x_t||",
        "budget": RUN_BUDGET,
        "kind": "trajectory",
    }
    return Statement(
        id=f"multihead.{name}",
        label=label,
        formula=formula,
        evaluate=evaluate,
        forms=forms,
        control=control,
        source=source,
        **(defaults | options),
    )


_POPULATION = {
    "kind": "expectation",
    "sample": REALIZABLE_RUNS,
    "budget": Budget(samples=768, restarts=0, steps=0, batch=128),
}
_CONDITIONS = "Assumption 1; (84); eta of Theorem 3. Sharpened form: its own H and eta"

STATEMENTS = (
    _statement(
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
    _statement(
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
    _statement(
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
    _statement(
        "eq22",
        "eq. (22)",
        "||theta_{k+1} - theta_{k+1}^{-i}|| <= (1 + alpha_{k,i}) ||theta_k - theta_k^{-i}|| "
        "+ eta beta~_1 l_i(theta_k) / n, alpha_{k,i} = 4 eta beta~_3 / (3 sqrt(H)) "
        "(L^{-i}(theta_k) + L^{-i}(theta_k^{-i}))",
        _final_recursion,
        (
            Form(name="printed", hypotheses=printed_conditions),
            Form(
                name=_SHARP,
                hypotheses=sharp_conditions,
                note="beta~_1#, beta~_3# on the ball of radius sqrt(13/3) D around theta.",
            ),
        ),
        "the term in l_i is dropped",
        "Section 6.2, eq. (22); Appendix C, eqs. (89), (90)",
        assumptions=_CONDITIONS,
    ),
    _statement(
        "lem11",
        "Lemma 11",
        "(1/n) sum_i ||theta_K - theta_K^{-i}|| <= (2 eta beta~_1 / n) (2 K L(theta) "
        "+ 9 ||theta - theta_0||^2 / (4 eta))",
        _lemma11,
        (
            Form(name="printed", hypotheses=printed_conditions),
            Form(
                name=_SHARP,
                hypotheses=sharp_conditions,
                note="Both runs stay within sqrt(13/3) D of theta, so (104/3) beta_3# D^2 <= "
                "sqrt(H) replaces 128 beta~_3 D^2; exp(sum alpha) <= exp(1/4) replaces 2.",
            ),
        ),
        "the sum of the losses along the run is replaced by its first term",
        "Appendix C, eq. (84)",
        assumptions=_CONDITIONS,
    ),
    _statement(
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
    _statement(
        "thm4",
        "Theorem 4",
        "E[L(theta_K) - L^(theta_K)] <= (4/n) E[2 K L^(theta) + 9 ||theta - theta_0||^2 / (4 eta)]",
        _theorem4,
        (
            Form(name="printed", hypotheses=printed_conditions),
            Form(
                name=_SHARP,
                hypotheses=sharp_conditions,
                note="2 beta_1# times the sharpened Lemma 11.",
            ),
        ),
        "no generalization gap",
        "Appendix C.1, eq. (93); Theorem 2, eq. (5)",
        assumptions=_CONDITIONS,
        **_POPULATION,
    ),
    _statement(
        "cor4",
        "Corollary 4",
        "E[L(theta_K) - L^(theta_K)] <= 17 g_0(1/K)^2 / (eta n)",
        _corollary4,
        (
            Form(name="printed", hypotheses=_corollary4_conditions),
            Form(
                name=_SHARP,
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
