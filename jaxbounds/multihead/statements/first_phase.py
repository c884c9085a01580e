"""Section 5.1 and Appendix D: the first step, and why it makes a good initialisation."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from jaxbounds.multihead.first_phase import (
    centre,
    deviation,
    deviation_bound,
    first_step,
    heads_for_margin,
    model_bound,
)
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.model import head_output, model_output
from jaxbounds.multihead.oracle import (
    deviation_part,
    deviation_part_sharp,
    gamma_linear,
    gamma_star,
    oracle_weights,
    relevance_formula,
    relevance_scores,
)
from jaxbounds.multihead.statements.contexts import (
    DATA_SIZES,
    SIZES,
    Context,
    keep_context,
    sequence,
    sequences,
    unfold,
)
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement

MOST_HEADS = 12
"""Up to this H the law of sum_h alpha_h is summed exactly."""

COUNTS = (8, 32, 128, 512)
"""The n1 over which the rate of the first phase is fitted."""


def _norm(vector):
    return jnp.sqrt(jnp.sum(vector**2) + 1e-300)


def _rows(vector, length):
    return jnp.broadcast_to(vector[None, :], (length, vector.shape[0]))


def _margin_parts(c: Context, vector):
    """The NTK margins of U* and of W* at U = 1_T vector^T, W = 0, by forward differentiation."""
    rows, zero = _rows(vector, c.T), jnp.zeros_like(c.direction["W"])

    def of_sequence(tokens, label):
        # The model is linear in U, so that its derivative along U* is itself.
        outer = head_output(c.direction["U"], zero, tokens)
        moved = lambda weights: head_output(rows, weights, tokens)
        _, inner = jax.jvp(moved, (zero,), (c.direction["W"],))
        return label * outer, label * inner

    if c.X.ndim == 2:
        return of_sequence(c.X, c.y)
    return jax.vmap(of_sequence)(c.X, c.y)


def _scale(c: Context):
    """The size of the terms that cancel in a margin of W at zero."""
    return c.T * (c.S + c.Z) ** 6 / c.S**2


# --- the first step -------------------------------------------------------------------------------


def _data(c: Context, instance: Instance):
    return {"X": c.X, "y": instance["y"]}


def _with_steps(key: jax.Array, size: Size) -> Instance:
    data_key, step_key = jax.random.split(key)
    steps = jax.random.uniform(step_key, (2,), minval=-2.0, maxval=2.0)
    return sequences(data_key, size) | {"alpha": steps}


def _first_step(instance: Instance) -> Sides:
    c = unfold(instance)
    data, alpha = _data(c, instance), instance["alpha"]
    closed = first_step(data, alpha)
    zero = jax.tree.map(jnp.zeros_like, closed)
    slope = jax.grad(empirical_risk)(zero, data)
    root = jnp.sqrt(1.0 * alpha.shape[0])
    step = jax.tree.map(lambda g: -alpha[:, None, None] * root * g, slope)
    flat = lambda tree: jnp.concatenate([tree["U"].ravel(), tree["W"].ravel()])
    # Eq. (120), term by term, with n1 for n.
    signed = c.y[:, None] * jnp.where(c.y[:, None] > 0, c.patterns[0], c.patterns[1])
    others = jnp.where(instance["relevant"][..., None], 0.0, c.X)
    rest = jnp.mean(c.y[:, None] * jnp.sum(others, axis=1), axis=0) / (2 * c.T)
    half = c.zeta / 2 * c.classifier
    row = half + c.zeta / 2 * (jnp.mean(signed, axis=0) - c.classifier) + rest
    shape = closed["U"].shape
    printed = closed | {"U": alpha[:, None, None] * jnp.broadcast_to(row[None, None, :], shape)}
    return Sides(
        lhs=flat(step),
        rhs={
            "printed": flat(printed),
            "printed, l'(0) = 1/2": -flat(printed),
            "derived": flat(closed),
            "control": 2 * flat(closed),
        },
    )


def _two_labels(S, T, alpha):
    """Two noiseless sequences, one of each label, whose first token is relevant; M = 1."""
    first = [True] + [False] * (T - 1)
    return {
        "S": S,
        "y": [1, -1],
        "relevant": [first, first],
        "choice": [[0] * T] * 2,
        "z": [[[0.0] * 4] * T] * 2,
        "p": [0.0] * 4,
        "alpha": alpha,
    }


def _many(key: jax.Array, size: Size) -> Instance:
    return sequences(key, size) | {"delta": 0.1 * jnp.ones(())}


def _deviation(instance: Instance) -> Sides:
    c = unfold(instance)
    samples = instance["y"].shape[0]
    bound = deviation_bound(c.R, samples, instance["delta"])
    return Sides(
        lhs=_norm(deviation(_data(c, instance), c.classifier, c.zeta)),
        rhs={"sharpened S13": bound, "control": bound / samples**0.5},
    )


def _growing(key: jax.Array, size: Size) -> Instance:
    """Data of which the first `count` sequences are used, with noise at +-S/10."""
    data_key, count_key, sign_key = jax.random.split(key, 3)
    which = jax.random.randint(count_key, (), 0, len(COUNTS))
    instance = sequences(data_key, size)
    # Signs as integers: there is nothing in them to search or to shrink.
    signs = jax.random.rademacher(sign_key, instance["z"].shape, dtype=int)
    return instance | {"count": jnp.asarray(COUNTS)[which], "z": signs}


def _deviation_rate(instance: Instance) -> Sides:
    c = unfold(instance | {"z": 0.1 * instance["S"] * instance["z"].astype(float)})
    total, count = instance["y"].shape[0], instance["count"].astype(c.X.dtype)
    used = (jnp.arange(total) < instance["count"]).astype(c.X.dtype)
    weighted = {"X": (used * total / count)[:, None, None] * c.X, "y": instance["y"]}
    p = deviation(weighted, c.classifier, c.zeta)
    about = centre(c.classifier, c.zeta)
    rate = c.S / jnp.sqrt(count)
    return Sides(
        lhs={"printed": _norm(p - about), "corrected": _norm(p), "control": _norm(p)},
        rhs={"printed": rate, "corrected": rate, "control": rate**2 / c.S},
    )


# --- properties P1 and P2 -------------------------------------------------------------------------


def _head_size(instance: Instance) -> Sides:
    c = unfold(instance)
    p, root = instance["p"], c.T**0.5
    size = lambda vector: _norm(_rows(vector, c.T))
    printed = root * (c.S + _norm(p))
    return Sides(
        lhs={
            "printed": size(c.zeta / 2 * c.classifier + p),
            "corrected": size(centre(c.classifier, c.zeta) + p),
            "sharpened": size(centre(c.classifier, c.zeta) + p),
            "control": size(centre(c.classifier, c.zeta) + p),
        },
        rhs={
            "printed": printed,
            "corrected": printed,
            "sharpened": root * (c.zeta * c.S / 8**0.5 + _norm(p)),
            "control": root * jnp.maximum(c.zeta * c.S / 8**0.5, _norm(p)),
        },
    )


def _sign_sum_law(heads):
    """|sum_h alpha_h| and its probability, for k = 0, ..., MOST_HEADS plus signs."""
    k = jnp.arange(MOST_HEADS + 1).astype(float)
    logs = gammaln(heads + 1.0) - gammaln(k + 1.0) - gammaln(jnp.maximum(heads - k, 0.0) + 1.0)
    probability = jnp.where(k <= heads, jnp.exp(logs - heads * jnp.log(2.0)), 0.0)
    return jnp.abs(2 * k - heads), probability


def _exceeds(heads, size, threshold):
    """P(size |sum_h alpha_h| / sqrt(H) > threshold)."""
    sums, probability = _sign_sum_law(heads)
    return jnp.sum(jnp.where(size * sums / jnp.sqrt(heads) > threshold, probability, 0.0))


def _with_heads(sampler):
    def sample(key: jax.Array, size: Size) -> Instance:
        data_key, head_key, level_key, scale_key = jax.random.split(key, 4)
        instance = sampler(data_key, size)
        scale = jnp.exp(jax.random.uniform(scale_key, (), minval=0.0, maxval=9.0))
        return instance | {
            "p": scale * instance["p"],
            "H": jax.random.randint(head_key, (), 1, MOST_HEADS + 1),
            "delta": jax.random.uniform(level_key, (), minval=1e-3, maxval=1.0),
        }

    return sample


def _output_size(c: Context, p):
    """|<U, mean_t x_t>| summed over rows, for alpha = 1: Phi is this times sum alpha / sqrt(H)."""
    vector = centre(c.classifier, c.zeta) + p
    return jnp.max(jnp.abs(jnp.sum(c.X, axis=-2) @ vector))


def _model_size(instance: Instance) -> Sides:
    c = unfold(instance)
    heads, delta = instance["H"].astype(float), instance["delta"]
    size, P = _output_size(c, instance["p"]), _norm(instance["p"])
    n = 1 if c.X.ndim == 2 else c.X.shape[0]
    printed = c.T * c.R * (c.S + P) * jnp.sqrt(2 * jnp.log(n / delta))
    corrected = model_bound(c.R, c.S, P, delta, T=c.T)
    exceeds = lambda threshold: _exceeds(heads, size, threshold)
    return Sides(
        lhs={
            "printed": exceeds(printed),
            "corrected": exceeds(corrected),
            "sharpened": exceeds(size * jnp.sqrt(2 * jnp.log(2 / delta))),
            "control": exceeds(size * jnp.sqrt(2 * jnp.log(1 / delta)) / 2),
        },
        rhs={"printed": delta, "corrected": delta, "sharpened": delta, "control": delta},
    )


def _balanced(instance: Instance) -> Sides:
    """The output at theta^(1) with one head of each sign, and with both of the same sign."""
    c = unfold(instance)
    rows = _rows(centre(c.classifier, c.zeta) + instance["p"], c.T)
    zero = jnp.zeros((2, *c.direction["W"].shape))
    output = lambda signs: model_output({"U": signs[:, None, None] * rows[None], "W": zero}, c.X)
    scale = jnp.sum(jnp.abs(rows)) * c.R
    both = lambda value: jnp.stack([value, scale])
    return Sides(
        lhs=both(output(jnp.asarray([1.0, -1.0]))),
        rhs={"sharpened S12": both(0.0), "control": both(output(jnp.asarray([1.0, 1.0])))},
    )


def _hoeffding_cases(size: Size) -> Instance:
    heads, plus = zip(*[(H, k) for H in range(1, MOST_HEADS + 1) for k in range(H // 2 + 1, H + 1)])
    return {"H": np.asarray(heads), "plus": np.asarray(plus)}


def _hoeffding(instance: Instance) -> Sides:
    heads = instance["H"].astype(float)
    # Just below the mean of `plus` signs +1, where the tail is largest against the bound.
    t = (1 - 1e-9) * (2 * instance["plus"].astype(float) - heads) / heads
    sums, probability = _sign_sum_law(heads)
    beyond = jnp.sum(jnp.where(sums / heads > t, probability, 0.0))
    delta = jnp.exp(-heads * t**2 / 2)
    return Sides(
        lhs={
            "printed": beyond,
            "corrected": beyond,
            "derived, one-sided": beyond / 2,
            "control": beyond,
        },
        rhs={
            "printed": delta,
            "corrected": 2 * delta,
            "derived, one-sided": delta,
            "control": delta**2,
        },
    )


# --- property P3 ----------------------------------------------------------------------------------


def _projection_margin(instance: Instance) -> Sides:
    c = unfold(instance)
    # At W = 0 the gradient in U is the same for every U.
    outer, _ = _margin_parts(c, instance["p"])
    bound = gamma_linear(c.S, c.zeta, c.Z_mu, T=c.T)
    wrong = gamma_linear(c.S, c.zeta, c.Z_mu / 2, T=c.T)
    return Sides(
        lhs={"printed": bound, "control": wrong},
        rhs={"printed": outer, "control": outer},
        error=1e-14 * c.T * (c.S + c.Z),
    )


def _linear_margin(instance: Instance) -> Sides:
    c = unfold(instance)
    margin = c.y * jnp.sum(c.direction["U"] * c.X)
    bound = gamma_linear(c.S, c.zeta, c.Z_mu, T=c.T)
    wrong = gamma_linear(c.S, c.zeta, c.Z_mu / 2, T=c.T)
    return Sides(
        lhs={"printed": bound, "control": wrong},
        rhs={"printed": margin, "control": margin},
        error=1e-14 * c.T * (c.S + c.Z),
    )


def _zero_start(instance: Instance) -> Sides:
    c = unfold(instance)
    outer, _ = _margin_parts(c, 0.0 * instance["p"])
    margin = 2**0.5 * jnp.min(outer)
    bound = 2**0.5 * gamma_linear(c.S, c.zeta, c.Z_mu, T=c.T)
    return Sides(
        lhs={"derived": bound, "control": 2**0.5 * bound},
        rhs={"derived": margin, "control": margin},
        error=1e-14 * c.T * (c.S + c.Z),
    )


def _scores(instance: Instance) -> Sides:
    c = unfold(instance)
    weights = oracle_weights(c.patterns)
    formula = relevance_formula(c.patterns, instance["relevant"], instance["z"], c.y)
    return Sides(
        lhs=relevance_scores(c.X, weights),
        rhs={"printed": formula, "control": formula.T},
        error=1e-14 * (c.S + c.Z) ** 4,
    )


def _term_one(c: Context):
    """The two parts of Term I in (107), each with its lower bound (112), (113)."""
    scores = jnp.sum(relevance_scores(c.X, oracle_weights(c.patterns)), axis=0)
    classes = c.X @ c.classifier
    first = c.y / c.T * jnp.sum(classes * scores)
    second = -c.y / c.T**2 * jnp.sum(classes) * jnp.sum(scores)
    S, z, m, v, _ = c.arguments
    off = 1 - z
    first_bound = c.T * (
        z * S**6
        - z * off * (m + v) * S**4
        - 2 * off * (z + 2 * off) * m**2 * S**2
        - 4 * off**2 * m**2 * (m + v)
    )
    second_bound = c.T * (
        -(z**2) * S**6
        - z * off * (4 * m + z * v) * S**4
        - 2 * off**2 * ((2 + z) * m + 2 * z * v) * m * S**2
        - 4 * off**3 * m**2 * (m + v)
    )
    return (first, first_bound), (second, second_bound)


def _term_one_part(which: int):
    def evaluate(instance: Instance) -> Sides:
        c = unfold(instance)
        measured, bound = _term_one(c)[which]
        wrong = bound + c.T * c.zeta * (1 - c.zeta) * c.Z_mu * c.S**4
        return Sides(
            lhs={"printed": bound, "control": wrong},
            rhs={"printed": measured, "control": measured},
            error=1e-14 * c.T * (c.S + c.Z) ** 6,
        )

    return evaluate


def _term_two(instance: Instance) -> Sides:
    c = unfold(instance)
    p, S, z, weights = instance["p"], c.S, c.zeta, oracle_weights(c.patterns)
    centred = c.X - jnp.mean(c.X, axis=0)[None, :]
    covariance = c.X.T @ centred / c.T
    measured = jnp.abs(p @ covariance @ weights.T @ jnp.sum(c.X, axis=0))
    longest, P = S + (1 - z) * c.Z, _norm(p)
    squares = z * S**2 + (1 - z) * (S + c.Z) ** 2
    shared = (2 * (c.M + 1)) ** 0.5 * S**2 * P * longest * squares
    norm = (2 * (c.M + 1)) ** 0.5 * S**2
    sharp = norm * deviation_part_sharp(P, c.R, T=c.T, M=c.M)
    return Sides(
        lhs=measured,
        rhs={
            "printed": shared * c.T**2.5,
            "sharpened E4": shared * c.T * (c.T - 1) ** 0.5,
            "sharpened S13": sharp,
            "control": sharp / c.T**2,
        },
        error=1e-14 * _scale(c) * _norm(p),
    )


def _ntk_margin(instance: Instance) -> Sides:
    c = unfold(instance)
    p = instance["p"]
    outer, inner = _margin_parts(c, centre(c.classifier, c.zeta) + p)
    _, at_half = _margin_parts(c, c.zeta / 2 * c.classifier + p)
    P = _norm(p)
    printed = gamma_star(*c.arguments, P, T=c.T, M=c.M)
    sharper = deviation_part(P, c.S, c.Z, T=c.T) - deviation_part_sharp(P, c.R, T=c.T, M=c.M)
    return Sides(
        lhs={
            "printed": printed,
            "printed, alpha in [-1, 1], recentred": printed,
            "corrected": printed,
            "sharpened S13": printed + sharper,
            "control": printed + c.T * (1 - c.zeta) * c.S**2 * c.Z_mu,
        },
        rhs={
            "printed": outer + at_half / 2,
            "printed, alpha in [-1, 1], recentred": outer + inner / 2,
            "corrected": outer + inner,
            "sharpened S13": outer + inner,
            "control": outer + inner,
        },
        error=1e-14 * _scale(c),
    )


HEADS = 4


def _with_signs(key: jax.Array, size: Size) -> Instance:
    """A quiet sequence: gamma* is positive and its first term dominates."""
    data_key, sign_key = jax.random.split(key)
    instance = sequence(data_key, size)
    signs = jax.random.rademacher(sign_key, (HEADS,)).astype(float)
    quiet = {"z": 1e-3 * instance["z"], "p": 1e-4 * instance["p"], "S": 2 + 0 * instance["S"]}
    return instance | quiet | {"alpha": signs, "delta": 0.1 * jnp.ones(())}


def _separability(instance: Instance) -> Sides:
    c = unfold(instance)
    p, alpha, delta = instance["p"], instance["alpha"], instance["delta"]
    heads, P = alpha.shape[0], _norm(instance["p"])
    row = _rows(centre(c.classifier, c.zeta) + p, c.T)
    params = {
        "U": alpha[:, None, None] * row[None],
        "W": jnp.zeros((heads, *c.direction["W"].shape)),
    }
    slope = jax.grad(model_output)(params, c.X)

    def margin(signs):
        along = jnp.sum(slope["U"] * c.direction["U"][None])
        along = along + jnp.sum(slope["W"] * signs[:, None, None] * c.direction["W"][None])
        return c.y * along / heads**0.5

    star = gamma_star(*c.arguments, P, T=c.T, M=c.M)
    slack = 2 * (2 * c.R**3 * c.T * (c.S + P) + c.T**0.5 * c.R)
    found = margin(jnp.sign(alpha))
    return Sides(
        lhs={
            "printed": star - slack * jnp.sqrt(2 * jnp.log(1 / delta) / heads),
            "sharpened S12": star,
            "control": star,
        },
        rhs={"printed": found, "sharpened S12": found, "control": margin(jnp.ones(heads))},
        error=1e-14 * _scale(c),
    )


def _with_groups(key: jax.Array, size: Size) -> Instance:
    """Quiet data, and the share of heads with alpha = +1."""
    data_key, share_key = jax.random.split(key)
    instance = sequences(data_key, size)
    quiet = {"z": 0.05 * instance["z"], "p": 1e-3 * instance["p"]}
    return instance | quiet | {"share": jax.random.uniform(share_key)}


def _positive_margin(instance: Instance) -> dict:
    c = unfold(instance)
    return {"gamma* > 0": gamma_star(*c.arguments, _norm(instance["p"]), T=c.T, M=c.M) > 0}


def _margin_lemma(instance: Instance) -> Sides:
    c = unfold(instance)
    p, share = instance["p"], instance["share"]
    vector = centre(c.classifier, c.zeta) + p
    P = _norm(p)
    star = gamma_star(*c.arguments, P, T=c.T, M=c.M)
    heads = heads_for_margin(c.R, c.S, P, star, 0.1, T=c.T, n=c.X.shape[0])
    plus = jnp.round(share * heads)
    # Groups alpha = +1 and alpha = -1; theta* takes sign(alpha) W*.
    (up, up_inner), (down, down_inner) = _margin_parts(c, vector), _margin_parts(c, -vector)
    found = plus * (up + up_inner) + (jnp.ceil(heads) - plus) * (down - down_inner)
    margin = jnp.min(found) / jnp.ceil(heads)
    return Sides(
        lhs={"printed": star / 2, "sharpened S12": star, "control": 1.5 * star},
        rhs={"printed": margin, "sharpened S12": margin, "control": margin},
        error=1e-13 * _scale(c),
    )


# --- the statements -------------------------------------------------------------------------------


def _statement(name, label, formula, kind, evaluate, forms, control, source, **options):
    defaults = {"sizes": SIZES, "sample": sequence, "assumptions": "DM1, Assumption 3"}
    if kind == "inequality":
        defaults |= {
            "project": keep_context,
            "budget": Budget(samples=128, restarts=4, steps=80),
        }
    return Statement(
        id=f"multihead.{name}",
        label=label,
        formula=formula,
        kind=kind,
        evaluate=evaluate,
        forms=forms,
        control=control,
        source=source,
        **(defaults | options),
    )


QUIET = "no noise"
_DRAWS = Budget(samples=256, restarts=0)

_ONE_TOKEN = {
    "S": 1.0,
    "y": 1,
    "relevant": [True, False],
    "choice": [0, 0],
    "z": [[0.0] * 4] * 2,
    "p": [10.0, 0.0, 10.0, 0.0],
    "H": 1,
    "delta": 0.85,
}
_HALF_SIGNAL = {
    "S": 1.0,
    "y": 1,
    "relevant": [True, False],
    "choice": [0, 0],
    "z": [[0.0] * 4] * 2,
    "p": [0.0] * 4,
}

STATEMENTS = (
    _statement(
        "lem16",
        "Lemma 16, eq. (120)",
        "after one step from zero W = 0 and every row of U is alpha (zeta/2 u* + p1 + p2)",
        "identity",
        _first_step,
        (
            Form(name="printed", note="With n1 for n, and rows for columns."),
            Form(
                name="printed, l'(0) = 1/2",
                expected="fails",
                erratum="E16",
                note="l'(0) = -1/2; descent turns the sign, so (120) is right.",
                counterexample=_two_labels(1.0, 2, [1.0, 1.0]),
            ),
            Form(name="derived", note="alpha 1_T ((1 / 2 n1) sum_i y_i mean_t x_it)^T."),
        ),
        "twice the step",
        "Appendix D.3; Lemma 2",
        sample=_with_steps,
        sizes=DATA_SIZES,
        budget=_DRAWS,
    ),
    _statement(
        "lem2.rate",
        "Lemma 2",
        "||U_h^(1) - (zeta alpha / 2) 1_T u*^T||_F = O(1 / sqrt(n1))",
        "rate",
        _deviation_rate,
        (
            Form(
                name="printed",
                expected="inconsistent",
                erratum="E2",
                sense="at least",
                note="E[y mu_y] = u*/2, not u*: the distance tends to zeta S sqrt(2) / 4 per row.",
            ),
            Form(
                name="corrected",
                sense="at least",
                note="The centre is (zeta / 4) u*. The distance falls with n1: at least this fast.",
            ),
        ),
        "the rate 1 / n1",
        "Section 5.1, eq. (6); Lemmas 16 and 17",
        sample=_growing,
        sizes=({"n": COUNTS[-1], "T": 4, "d": 4},),
        budget=Budget(samples=96, restarts=0, batch=32),
    ),
    _statement(
        "lem17",
        "Lemma 17",
        "||p|| <= P with probability 1 - delta; in print the constant is unspecified",
        "probability",
        _deviation,
        (
            Form(
                name="sharpened S13",
                note="P# = (R/2)(1 + sqrt(2 log(1/delta))) / sqrt(n1), p about (zeta/4) u*: the "
                "mean of the norm is at most R / (2 sqrt(n1)), then McDiarmid.",
            ),
        ),
        "1 / n1 in place of 1 / sqrt(n1)",
        "Appendix D.3, eqs. (6), (121), (122)",
        sample=_many,
        sizes=({"n": 32, "T": 4, "d": 4},),
        level=0.1,
        budget=Budget(samples=1000, restarts=0),
    ),
    _statement(
        "fact2",
        "Fact 2",
        "|mean_h X_h - mu| <= 2 B sqrt(log(1/delta) / (2 H)) with probability 1 - delta",
        "inequality",
        _hoeffding,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E9",
                note="Two-sided, so log(2/delta). Three signs, t just below 1: 1/4 > .2232.",
                counterexample={"H": 3, "plus": 3},
            ),
            Form(name="corrected", note="Hoeffding with log(2/delta)."),
            Form(name="derived, one-sided", note="What Lemma 14 uses: log(1/delta) suffices."),
        ),
        "delta^2 for delta",
        "Appendix D.1; exact binomial tails of Rademacher means, H <= 12",
        sample={},
        cases=_hoeffding_cases,
        sizes=({"H": MOST_HEADS},),
        search="none",
        assumptions="IID signs, B = 1",
    ),
    _statement(
        "prop2.p1",
        "Proposition 2, P1",
        "||theta_h^(1)|| <= B_2 = sqrt(T) (S + P)",
        "inequality",
        _head_size,
        (
            Form(name="printed", note="About (zeta / 2) u*, as printed."),
            Form(name="corrected", note="About (zeta / 4) u*."),
            Form(
                name="sharpened",
                equality="p parallel to u*, or p = 0",
                note="sqrt(T) (zeta S / (2 sqrt 2) + P).",
            ),
        ),
        "the larger of both terms in place of their sum",
        "Section 5.1; Appendix D.2.1",
        search="none",
    ),
    _statement(
        "lem12",
        "Lemma 12",
        "|Phi(X; theta^(1))| <= T R (S + P) sqrt(2 log(1/delta)) with probability 1 - delta",
        "inequality",
        _model_size,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E9",
                note="Inherits Fact 2. One head, T = 2, S = 1, p = (10, 0, 10, 0): surely "
                "|Phi| = 20.1 > 15.1 * sqrt(2) * .57 at delta = .85.",
                counterexample=_ONE_TOKEN,
            ),
            Form(name="corrected", note="log(2/delta)."),
            Form(name="sharpened", note="<(zeta/4) u* + p, sum_t x_t> for T R (S + P)."),
        ),
        "half the sharpened bound with log(1/delta)",
        "Appendix D.2.2; the exact law of the signs' sum, H <= 12",
        sample=_with_heads(sequence),
        search="none",
        budget=Budget(samples=512, restarts=0),
    ),
    _statement(
        "prop2.p2",
        "Proposition 2, P2",
        "|Phi(X_i; theta^(1))| <= T R (S + P) sqrt(2 log(n/delta)) for all i <= n "
        "with probability 1 - delta",
        "inequality",
        _model_size,
        (
            Form(name="printed", note="True for n >= 2 although Lemma 12 is not, since n >= 2."),
            Form(
                name="corrected",
                note="log(2/delta) for every n: W^(1) = 0 makes each output a multiple of the same "
                "sum of signs, so no union bound is needed.",
            ),
            Form(name="sharpened", note="max_i |<(zeta/4) u* + p, sum_t x_it>| for T R (S + P)."),
        ),
        "half the sharpened bound with log(1/delta)",
        "Section 5.1; Lemma 12; the exact law of the signs' sum, H <= 12",
        sample=_with_heads(sequences),
        sizes=DATA_SIZES,
        search="none",
        budget=Budget(samples=512, restarts=0),
    ),
    _statement(
        "prop2.balanced",
        "Proposition 2, P2 with balanced signs",
        "Phi(X; theta^(1)) = 0 if as many alpha_h are +1 as -1",
        "identity",
        _balanced,
        (Form(name="sharpened S12", note="So P2 holds surely, with the least B_Phi = 1."),),
        "both signs equal",
        "Section 5.1",
        budget=Budget(samples=64, restarts=0),
    ),
    _statement(
        "eq106",
        "eq. (106)",
        "y <grad_U Phi(X; U, 0), U*> >= S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu / S^2)",
        "inequality",
        _projection_margin,
        (Form(name="printed", equality="every irrelevant token at -y Z_mu, +y Z_mu, or no noise"),),
        "half of Z_mu",
        "Appendix D.2.3; the first half of Section 5.2",
    ),
    _statement(
        "eq132",
        "eq. (132)",
        "y <U*, X> >= gamma_lin = S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu / S^2)",
        "inequality",
        _linear_margin,
        (
            Form(
                name="printed",
                equality="every irrelevant token at -y Z_mu, +y Z_mu, or no noise",
                note="The margin of the oracle U*, not the largest of a linear classifier.",
            ),
        ),
        "half of Z_mu",
        "Appendix F",
        search="none",
    ),
    _statement(
        "sec5.1-zero",
        "Section 5.1, theta^(0) = 0",
        "zero is a good initialisation: B_2 = B_Phi = 1 and NTK margin sqrt(2) gamma_lin",
        "inequality",
        _zero_start,
        (
            Form(
                name="derived",
                erratum="E19",
                equality="as eq. (106)",
                note="'We cannot directly show that 0 is good', yet (106) holds at U = W = 0: "
                "theta* = sqrt(2/H) (U*, 0) on every head. It is good where gamma_lin > 0.",
            ),
        ),
        "2 gamma_lin",
        "Section 5.1, first paragraph",
        sample=sequences,
        sizes=DATA_SIZES,
        search="none",
    ),
    _statement(
        "eq110",
        "eqs. (108), (110)",
        "the relevance scores X W*^T x_t in terms of the noise",
        "identity",
        _scores,
        (Form(name="printed"),),
        "queries and tokens exchanged",
        "Appendix D.2.3; again in Appendix E.1",
        budget=_DRAWS,
    ),
    _statement(
        "eq112",
        "eq. (112)",
        "(y/T) sum_t u*^T X^T r_t >= T (zeta S^6 - zeta (1-zeta) (Z_mu + Z_nu) S^4 - ...)",
        "inequality",
        _term_one_part(0),
        (Form(name="printed", equality=QUIET),),
        "Z_mu counted once less in the second term",
        "Appendix D.2.3",
    ),
    _statement(
        "eq113",
        "eq. (113)",
        "-(y/T^2) sum_t u*^T X^T 1 1^T r_t >= -T (zeta^2 S^6 + ...)",
        "inequality",
        _term_one_part(1),
        (Form(name="printed", equality=QUIET),),
        "Z_mu counted once less in the second term",
        "Appendix D.2.3",
    ),
    _statement(
        "eq114",
        "eq. (114)",
        "|<sum_t x_t p^T X^T R_0 X, W*>| <= sqrt(2 (M+1)) S^2 P T^{5/2} "
        "(zeta S + (1-zeta)(S+Z)) (zeta S^2 + (1-zeta)(S+Z)^2)",
        "inequality",
        _term_two,
        (
            Form(name="printed"),
            Form(name="sharpened E4", note="||R_0||_F = sqrt(T-1) / T: T^{3/2} for T^{5/2}."),
            Form(
                name="sharpened S13",
                note="||X^T R_0 X|| <= R^2, ||sum_t x_t|| <= T R and ||W*|| = S^2 sqrt(2 M + 1).",
            ),
        ),
        "the sharpened bound over T^2",
        "Appendix D.2.3",
    ),
    _statement(
        "lem13",
        "Lemma 13, eqs. (7), (119)",
        "E_alpha y <grad Phi(X; theta^(1)), theta*> >= gamma*",
        "inequality",
        _ntk_margin,
        (
            Form(
                name="printed",
                equality="no noise and p = 0",
                note="Read as (116) divides: alpha uniform on [-1, 1], U^(1) = alpha 1_T "
                "((zeta/2) u* + p)^T. But by E2 this p is at least zeta S sqrt(2) / 4, and then "
                "gamma* < gamma_lin.",
            ),
            Form(
                name="printed, alpha in [-1, 1], recentred",
                expected="fails",
                erratum="E3",
                note="With the true centre (zeta/4) u* and E|alpha| = 1/2 the first term of gamma* "
                "is twice too large.",
                counterexample=_HALF_SIGNAL,
            ),
            Form(
                name="corrected",
                equality="no noise and p = 0",
                note="alpha = +-1 and the centre (zeta/4) u*: both factors of two cancel.",
            ),
            Form(
                name="sharpened S13",
                equality="no noise and p = 0",
                note="P T R^3 ||W*|| / ||W*||_F for P T^{5/2} (S + Z)^3.",
            ),
        ),
        "the noise Z_mu counted in the wrong direction",
        "Section 5.1, Proposition 2; Appendix D.2.3",
        budget=Budget(samples=256, restarts=4, steps=80),
    ),
    _statement(
        "lem14",
        "Lemma 14",
        "y <grad Phi, theta*> >= gamma* - 2 (2 R^3 T (S+P) + sqrt(T) R) sqrt(2 log(1/delta)/H) "
        "with probability 1 - delta",
        "probability",
        _separability,
        (
            Form(name="printed"),
            Form(
                name="sharpened S12",
                note="alpha = +-1: sign(alpha) grad_W does not depend on alpha, so gamma* is "
                "reached surely, for every H.",
            ),
        ),
        "theta* without sign(alpha)",
        "Appendix D.2.3",
        sample=_with_signs,
        level=0.1,
        budget=Budget(samples=1000, restarts=0),
    ),
    _statement(
        "lem15",
        "Lemma 15",
        "P3 holds with gamma*/2 if sqrt(H) >= 4 (2 R^3 T (S+P) + sqrt(T) R) / gamma* "
        "sqrt(2 log(n/delta))",
        "inequality",
        _margin_lemma,
        (
            Form(name="printed", note="At the least H; Proposition 2 prints R^4 for R^3."),
            Form(
                name="sharpened S12",
                equality="no noise and p = 0",
                note="gamma*, surely and for every H.",
            ),
        ),
        "3/2 gamma*",
        "Section 5.1, Proposition 2; Appendix D.2.3",
        sample=_with_groups,
        sizes=DATA_SIZES,
        hypotheses=_positive_margin,
        assumptions="DM1, Assumption 3; gamma* > 0",
        search="none",
    ),
)
