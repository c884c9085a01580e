"""Write the numbers of a file for Rocq: exact fractions, and decimal bounds rounded outward."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from flint import arb, fmpq

from jaxbounds.programs.balls.certificate import as_fraction
from jaxbounds.programs.balls.values import NotSupported, known_nonnegative, nonnegative

LARGEST, SMALLEST = 1000, 300
"""The exponents of ten of the largest and the smallest number in a file for Rocq. The file holds no
number above 10^LARGEST.

A bound below 10^-SMALLEST is rounded outward, to zero or to 10^-SMALLEST. Larger exponents allow
longer numbers in the file.
"""


def exact_ball(x: Fraction, /) -> arb:
    """Return a fraction as a ball, rounded to the present precision."""
    return arb(fmpq(x.numerator, x.denominator))


def _rounded(x: Fraction, digits: int, rounding: str) -> Decimal:
    """Round an interval's end outward, then move the end outward by one unit of its last digit.

    Because of this extra unit, the interval that Rocq computes again lies inside the widened
    interval.
    """
    if x == 0:
        return Decimal(0)
    with localcontext(
        Context(prec=digits, rounding=rounding, Emax=10**6, Emin=-(10**6))
    ) as context:
        near = Decimal(x.numerator) / Decimal(x.denominator)
        far = near.next_minus(context) if rounding == ROUND_FLOOR else near.next_plus(context)
    if far.adjusted() > LARGEST:
        raise NotSupported(
            f"a number of size 10^{far.adjusted()} exceeds limit=10^{LARGEST}. Try smaller numbers"
        )
    if far.adjusted() < -SMALLEST:  # a tiny number would need too many digits
        least = Decimal(1).scaleb(-SMALLEST)
        inwards = (rounding == ROUND_FLOOR) == (x > 0)
        return Decimal(0) if inwards else least.copy_sign(far)
    return far


def outward(x: arb, digits: int, /) -> tuple[Decimal, Decimal]:
    """Return a lower and an upper bound of a ball, decimal numbers of `digits` digits.

    Raises:
        NotSupported: if the ball is not finite, or a bound is too large for the file.
    """
    if not x.is_finite():
        raise NotSupported(
            f"the enclosure ball={x} may be infinite or undefined. Try another instance"
        )
    low = _rounded(as_fraction(x.lower()), digits, ROUND_FLOOR)
    high = _rounded(as_fraction(x.upper()), digits, ROUND_CEILING)
    return (max(low, Decimal(0)) if nonnegative(x) else low), high


def ball_between(low: Decimal, high: Decimal, /) -> arb:
    """Return a ball that contains all numbers between two decimal numbers."""
    ball = exact_ball(Fraction(low)).union(exact_ball(Fraction(high)))
    return known_nonnegative(ball) if low >= 0 else ball


def decimal_text(x: Decimal, /) -> str:
    """Return a decimal number as text, without an exponent if the plain text is short."""
    if x == 0:
        return "0"
    plain = format(x, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    if len(plain) <= len(x.as_tuple().digits) + 6:
        return plain
    return str(x.normalize()).lower().replace("e+", "e")


def fraction_text(x: Fraction, /) -> str:
    """Return a fraction as text without parentheses, such as "1 / 3"."""
    return str(x.numerator) if x.denominator == 1 else f"{x.numerator} / {x.denominator}"


def root_of(x: Fraction, /) -> Fraction | None:
    """Return the square root of a fraction if the root is a fraction; else None."""
    if x < 0:
        return None
    a, b = math.isqrt(x.numerator), math.isqrt(x.denominator)
    return Fraction(a, b) if a * a == x.numerator and b * b == x.denominator else None
