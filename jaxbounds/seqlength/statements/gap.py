"""Sections 2.2 and 2.3: bounds on the generalization gap from Rademacher complexities."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.seqlength.generalization import deviation, generalization_gap
from jaxbounds.seqlength.rademacher import rademacher_monte_carlo
from jaxbounds.seqlength.statements import instances as draw

THRESHOLDS, DELTA = 16, 0.05


def _gap_sample(key: Array, size: Size) -> Instance:
    x_key, flip_key, sign_key, fair_key = jax.random.split(key, 4)
    m = size["m"]
    return {
        "x": jax.random.uniform(x_key, (m,)),
        "flip": jax.random.bernoulli(flip_key, 0.2, (m,)),
        "seed": jax.random.key_data(sign_key),
        "signs": jax.random.rademacher(fair_key, (m,), float),
    }


def _gap(instance: Instance, size: Size) -> Sides:
    x, m, key = instance["x"], size["m"], jax.random.wrap_key_data(instance["seed"])
    grid = (jnp.arange(THRESHOLDS).astype(x.dtype) + 0.5) / THRESHOLDS
    truth = (x > 0.5) ^ instance["flip"]
    loss = ((x[None] > grid[:, None]) != truth[None]).astype(x.dtype)
    # A threshold t errs if x is between t and 1/2, except if the label was flipped.
    population = 0.2 + 0.6 * jnp.abs(grid - 0.5)
    rad = rademacher_monte_carlo(key, lambda signs: jnp.max(loss @ signs), m, draws=32).mean
    bound = lambda sharp: generalization_gap(rad, c=1.0, m=m, delta=DELTA, sharp=sharp)
    gap = jnp.max(jnp.abs(population - jnp.mean(loss, axis=1)))
    # The printed tail divides delta among four events; here one event has the whole delta.
    one_event = deviation(1.0, m, 4.0 * DELTA, sharp=False) / 4.0
    return Sides.pairs(
        {
            "printed": (gap, bound(False)),
            "sharpened S10": (gap, bound(True)),
            "derived": (jnp.mean(instance["signs"]), one_event),
            "control": (gap, deviation(1.0, m, DELTA) / 20.0),
        },
        trivial=1.0,
    )


GENERALIZATION = Statement(
    id="seqlength.sec2.3.gap",
    label="Section 2.3, generalization from Rademacher complexity",
    tex=r"\left| \mathbb{E} \, \ell(h(x), y) - \frac{1}{m} \sum_{i=1}^m \ell(h(x_i), y_i) "
    r"\right| \le 2 \, \mathrm{Rad}_m(\ell \circ \mathcal{H}, S) + 4 c \sqrt{\frac{2 "
    r"\ln(4 / \delta)}{m}}",
    formula="|L_D - L_S| <= 2 Rad(l o H, S) + 4 c sqrt(2 ln(4/delta) / m), all h, w.p. 1 - delta",
    kind="probability",
    level=DELTA,
    sample=_gap_sample,
    evaluate=_gap,
    judges=(generalization_gap, deviation),
    sizes=({"m": 400},),
    assumptions="one class of 16 thresholds on one distribution, 0-1 loss, c = 1, m = 400, delta "
    "= 0.05; 32 draws of signs estimate Rad",
    forms=(
        Form(
            name="printed",
            cites="Section 2.3, the last display",
            note="The paper prints m for the sample size n. The check estimates Rad from 32 draws "
            "of signs.",
        ),
        Form(
            name="sharpened S10",
            note="For losses in [-c, c] the tail is 3 c sqrt(2 ln(3/delta)/m). The proof uses "
            "McDiarmid's inequality three times at delta/3.",
        ),
        Form(
            name="derived",
            note="The printed tail divides delta among four events. For one event with all of "
            "delta, a quarter of this tail is McDiarmid's bound on the mean of fair signs. On some "
            "samples the mean exceeds McDiarmid's bound.",
        ),
    ),
    control="a twentieth of the tail and no complexity",
    budget=Budget(samples=512, restarts=0, steps=0, batch=128),
)


def _tail(instance: Instance, size: Size) -> Sides:
    """Check that a mean exceeds its expectation by t with probability <= exp(-m t^2 / (2 c^2))."""
    c, m, delta, rad, lipschitz = draw.numbers(instance, "c", "m", "delta", "rad", "lipschitz")
    given = {"c": c, "m": m, "delta": delta, "lipschitz": lipschitz}
    fails = lambda t: math.exp(-m * t**2 / (2.0 * c**2))
    spent = {}
    for form, parts, sharp in (("derived", 4, False), ("sharpened S10", 3, True)):
        tail = float(generalization_gap(rad, **given, sharp=sharp)) - 2.0 * lipschitz * rad
        spent[form] = (parts * fails(tail / parts), delta)
    return Sides.pairs({**spent, "control": (spent["derived"][0], delta / 2.0)})


TAIL = draw.identity_on_host(
    id="seqlength.sec2.3.tail",
    label="Section 2.3, the tail",
    tex=r"\exp\left( - \frac{m t^2}{2 c^2} \right) = \frac{\delta}{4}, \quad t = c "
    r"\sqrt{\frac{2 \ln(4 / \delta)}{m}}",
    formula="McDiarmid at a quarter of the printed tail has probability delta / 4",
    cases=draw.grid(c=(0.5, 1, 3), m=(1, 7, 10**4), delta=(1e-4, 0.5), rad=(2,), lipschitz=(1, 2)),
    evaluate=_tail,
    judges=(deviation, generalization_gap),
    sizes=({},),
    forms=(
        Form(
            name="derived",
            cites="Section 2.3, the last display, its second term",
            note=(
                "The proof divides delta among four events. For losses in [-c, c] this gives the "
                "tail 4 c sqrt(2 ln(4/delta) / m)."
            ),
        ),
        Form(
            name="sharpened S10",
            note="The proof divides delta among three events: the two signs of the gap, and the "
            "deviation of the empirical Rademacher complexity Rad. The deviation of Rad enters the "
            "bound twice.",
        ),
    ),
    control="half of delta",
)

STATEMENTS = (GENERALIZATION, TAIL)
