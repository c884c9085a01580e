"""Section 5.1 and Appendix D.3: the first gradient step, where it lands and how far off."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.first_phase import centre, deviation, deviation_bound, first_step
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.statements.contexts import DATA_SIZES, Context, sequences, unfold
from jaxbounds.multihead.statements.phase_shared import DRAWS, euclidean, phase_statement
from jaxbounds.statements import Budget, Form, Instance, Sides, Size

COUNTS = (8, 32, 128, 512)
"""The n1 over which the rate of the first phase is fitted."""


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
        lhs=euclidean(deviation(_data(c, instance), c.classifier, c.zeta)),
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
        lhs={"printed": euclidean(p - about), "corrected": euclidean(p), "control": euclidean(p)},
        rhs={"printed": rate, "corrected": rate, "control": rate**2 / c.S},
    )


STATEMENTS = (
    phase_statement(
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
        budget=DRAWS,
    ),
    phase_statement(
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
    phase_statement(
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
)
