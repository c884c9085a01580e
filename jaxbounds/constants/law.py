"""A constant as a function of the shapes, where closed forms and exponents say one thing."""

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from jaxbounds.constants.closed_form import closed_form
from jaxbounds.constants.dependence import Exponent, halves
from jaxbounds.constants.relations import product_text
from jaxbounds.constants.result import AtSize

WRITTEN = 28
"""Digits of `AtSize.low` that are those of the ratio."""


def _over(found: AtSize, powers: Mapping[str, Fraction]) -> str:
    """What is left of a size's constant over powers of its axes, in closed form."""
    assert found.closed is not None
    with localcontext(prec=50):
        value = Decimal(found.low)
        for axis, power in powers.items():
            value /= Decimal(found.size[axis]) ** (Decimal(power.numerator) / power.denominator)
    closed = closed_form(str(value), min(found.closed.digits, WRITTEN))
    return closed.text if closed else ""


def law(found: Sequence[AtSize], exponents: Sequence[Exponent], /) -> str:
    """The formula of the constant in the axes ("sqrt(T d)"); empty where there is none.

    Args:
        found: at each size.
        exponents: of the axes; each within a millionth of a multiple of 1/2.
    """
    powers = halves(exponents)
    if powers is None or not all(f.closed for f in found):
        return ""
    factors = {_over(f, powers) for f in found}
    axes = product_text([(axis, power) for axis, power in powers.items() if power])
    if len(factors) > 1 or "" in factors:
        return ""
    (factor,) = factors
    return factor if axes == "1" else axes if factor == "1" else f"{factor} {axes}"
