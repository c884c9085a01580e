"""Appendix C: the size of the cover S, its entropy integral, and the minimum over delta."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.numerics.arrays import array_module, number, traced
from jaxbounds.seqlength.dudley import best_delta, interior_value, with_offset
from jaxbounds.seqlength.linear_bounds import at_scale, lemma_3_6
from jaxbounds.seqlength.single_layer import (
    attention_expectation_corrected,
    attention_lipschitz,
    attention_log_covering,
    entropy_terms,
)
from jaxbounds.seqlength.statements import instances as draw


def _cover_size(instance: Instance, size: Size) -> Sides:
    B_x, B_QK, d, epsilon = draw.numbers(instance, "B_x", "B_QK", "d", "epsilon")
    C = float(lemma_3_6(B_QK * B_x, k=d, d=d))
    covering = at_scale(lemma_3_6, B_QK * B_x, k=d, d=d)
    found = float(attention_log_covering(covering, attention_lipschitz(B_x), d)(epsilon))
    size_of = lambda power: math.log(2 * d) + 4.0 * B_x**power * C / epsilon**2
    return Sides(found, {"printed": size_of(4), "control": size_of(4) - math.log(2.0)})


COVER_SIZE = draw.identity_on_host(
    id="seqlength.appc.cover.size",
    label="Appendix C, the size of the cover S",
    tex=r"\ln |\mathcal{S}| = \ln(2d) + \frac{4 B_x^4 C}{\epsilon^2}",
    formula="ln |S| = ln(2d) + 4 B_x^4 C / eps^2, for ln N = C / eps^2 of x -> W_QK x",
    cases=draw.grid(B_x=(0.2, 1.0, 3.0), B_QK=(0.5, 1.0, 4.0), d=(2, 7, 64), epsilon=(0.3,)),
    evaluate=_cover_size,
    judges=(attention_log_covering, attention_lipschitz),
    sizes=({},),
    assumptions="the check uses only the constant C of Lemma 3.6",
    forms=(
        Form(
            name="printed",
            cites="Appendix C, 'the log covering number of S is ln(2d) + 4 B_x^4 C / eps^2'",
            note="A cover of the attention class S combines the 2d signed coordinates with a cover "
            "of the maps x -> W_QK^T x at scale eps / (2 B_x^2).",
        ),
    ),
    control="without the signs",
)


def _objective(delta: Any, a: Any, b: Any, B: Any) -> Any:
    return delta + (B - delta) * a + b * array_module(delta, a, b, B).log(B / delta)


def _least(a: Any, b: Any, B: Any) -> Any:
    """Minimise delta + (B - delta) a + b ln(B / delta) over 0 < delta <= B.

    Under a JAX trace, delta is min(b / (1 - a), B), the minimum of the convex bound for b >= 0 and
    a < 1.
    """
    if traced(a, b, B):
        return _objective(jnp.minimum(b / (1.0 - a), B), a, b, B)
    inner = scipy.optimize.minimize_scalar(
        _objective, args=(a, b, B), bounds=(1e-9, B), method="bounded", options={"xatol": 1e-12}
    )
    return min(inner.fun, B)


def _optimum(instance: Instance, size: Size) -> Sides:
    a, b, B = map(number, entropy_terms(*draw.numbers(instance, "B_x", "C", "m", "d")))
    return Sides(
        _least(a, b, B),
        {
            "printed": interior_value(a, b, B),
            "corrected": with_offset(a, b, B),
            "corrected delta": _objective(number(best_delta(a, b, B)), a, b, B),
            "control": with_offset(a, 2 * b, B),
        },
    )


def _theorem_4_1_hypotheses(instance: Instance, size: Size) -> dict[str, Any]:
    m, d = instance["m"], instance["d"]
    return {
        "m > d (Theorem 4.1)": m > d,
        "m > ln(2d) (Theorem 4.1)": m > array_module(d).log(2.0 * d),
        "B_x, C > 0 (Theorem 4.1)": (instance["B_x"] > 0) & (instance["C"] > 0),
    }


OPTIMUM = draw.identity_on_host(
    id="seqlength.appc.optimum",
    label="Appendix C, the minimum over delta",
    tex=r"\inf_{0 < \delta \le B_x} \left( \delta + (B_x - \delta) \sqrt{\frac{\ln(2d)}{m}} + "
    r"\frac{2 B_x^2 \sqrt{C}}{\sqrt{m}} \ln \frac{B_x}{\delta} \right) = \frac{2 B_x^2 "
    r"\sqrt{C}}{\sqrt{m}} + B_x \sqrt{\frac{\ln(2d)}{m}} + \frac{2 B_x^2 "
    r"\sqrt{C}}{\sqrt{m}} \ln \frac{\sqrt{m} - \sqrt{\ln(2d)}}{2 B_x \sqrt{C}}",
    formula="min over 0 < delta <= B of delta + (B-delta) a + b ln(B/delta) = b + B a +"
    " b ln(B (1-a)/b), a = sqrt(ln 2d / m), b = 2 B_x^2 sqrt(C / m), B = B_x",
    budget=draw.FEW,
    over={"B_x": Box(0.1, 10), "C": Box(0.1, 1000), "m": Box(2, 1e5), "d": Integers(1, 200)},
    evaluate=_optimum,
    hypotheses=_theorem_4_1_hypotheses,
    judges=(with_offset, interior_value, best_delta, entropy_terms),
    tolerance=1e-9,
    sizes=({},),
    forms=(
        Form(
            name="printed",
            cites="Appendix C, the display of delta and the last display",
            erratum="E5",
            reading="for every m > d",
            note="The check takes the minimum over delta <= B_x, the range of the integral. Over "
            "all delta > 0 the display is the true minimum of Dudley's expression, but this "
            "minimum does not bound the complexity. The display is right only for b < B (1 - a). "
            "For C = 1000, m = 100, d = 10 and B_x = 1 the display gives -6.4, and Theorem 4.1's "
            "display gives -5.17.",
            counterexample=Counterexample(
                instance={"B_x": 1.0, "C": 1000.0, "m": 100.0, "d": 10.0},
                ratio=1.1569956606325502,
                meets=_theorem_4_1_hypotheses,
            ),
        ),
        Form(
            name="corrected",
            note="If b >= B (1 - a), Dudley's expression delta + (B - delta) a + b ln(B / delta) "
            "on 0 < delta <= B is least at delta = B. The least value is B = B_x.",
        ),
        Form(
            name="corrected delta",
            note="Dudley's bound delta + (B - delta) a + b ln(B / delta) is smallest at delta = b "
            "/ (1 - a), or at delta = B = B_x if b / (1 - a) is larger.",
        ),
    ),
    control="b doubled",
    source="Appendix C; behind Theorem 4.1",
)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def _integral_of(height: Callable[[Any], Any], low: float, high: float) -> float:
    """Integrate by Gauss's rule on each octave [x, 2x], on which powers of epsilon are smooth."""
    octaves = high * 2.0 ** -np.arange(24.0)
    ends = np.append(octaves[octaves > low], low)
    half, middle = (ends[:-1] - ends[1:])[:, None] / 2.0, (ends[:-1] + ends[1:])[:, None] / 2.0
    return float(np.sum(half * WEIGHTS * height(middle + half * NODES)))


def _integral(instance: Instance, size: Size) -> Sides:
    m, d, B_x, C = draw.numbers(instance, "m", "d", "B_x", "C")
    factor, one = attention_lipschitz(B_x), float(lemma_3_6(1.0, k=1, d=1))

    def least(C: float, shortest: float) -> float:
        # A map of one entry, at a scale at which Lemma 3.6's log size is C / eps^2.
        map_covering = at_scale(lemma_3_6, math.sqrt(C / one), k=1, d=1)
        covering = attention_log_covering(map_covering, factor, int(d))
        height = lambda e: np.sqrt(covering(e) / m)
        area = lambda x: x + _integral_of(height, x, B_x)
        bounds = (shortest * B_x, B_x)
        inner = scipy.optimize.minimize_scalar(area, bounds=bounds, method="bounded")
        return min(inner.fun, area(bounds[0]), B_x)

    a, b, B = entropy_terms(B_x, C, m, d)
    alone = least(0.0, 0.0) / attention_expectation_corrected(B_x, 0.0, m, d)
    both = least(C, 1e-6)
    return Sides.pairs(
        {
            "corrected": (both, attention_expectation_corrected(B_x, C, m, d)),
            "corrected, C = 0": (max(alone, 1.0 / alone), 1.0),
            "control": (both, with_offset(a / 4.0, b / 4.0, B)),
        }
    )


INTEGRAL = draw.on_host(
    id="seqlength.appc.dudley",
    label="Appendix C, splitting Dudley's integral",
    tex=r"\inf_\delta \left( \delta + \int_\delta^{B_x} \sqrt{\frac{\ln(2d)}{m} + \frac{4 "
    r"B_x^4 C}{m \epsilon^2}} \, d\epsilon \right) \le b + B_x a + b \ln \frac{B_x (1 - "
    r"a)}{b}, \quad a = \sqrt{\frac{\ln(2d)}{m}}, \ b = \frac{2 B_x^2 \sqrt{C}}{\sqrt{m}}",
    formula="min_delta delta + int_delta^{B_x} sqrt((ln 2d + 4 B_x^4 C/eps^2)/m) d eps"
    " <= the closed form",
    over={"m": Box(100, 1e7), "d": Integers(1, 200), "B_x": Box(0.3, 3), "C": Box(1, 150)},
    evaluate=_integral,
    judges=(
        attention_expectation_corrected,
        attention_log_covering,
        attention_lipschitz,
        entropy_terms,
    ),
    sizes=({},),
    forms=(
        Form(
            name="corrected",
            note="Both terms under the root of Dudley's integral have the factor 1/m (erratum E6), "
            "and the bound is at most B_x (erratum E5).",
            equality="delta = B_x, both sides B_x",
        ),
        Form(
            name="corrected, C = 0",
            note="For the covering constant C = 0 both sides of the claim are minimal at delta = "
            "0, where both sides equal B_x sqrt(ln 2d / m).",
            equality="always",
        ),
    ),
    control="a quarter of a and b",
)

STATEMENTS = (COVER_SIZE, OPTIMUM, INTEGRAL)
