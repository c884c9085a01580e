"""Find a formula for a sharp constant in terms of the sizes, from closed forms and exponents."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from jaxbounds.constants.closed_form import closed_form
from jaxbounds.constants.dependence import Exponent, halves
from jaxbounds.constants.relations import HIGHEST, polynomial_text, product_text
from jaxbounds.constants.result import AtSize

WRITTEN = 28
"""The number of decimal digits that `_over` trusts in `AtSize.low`, the certified lower bound of
the ratio.

Later digits are rounded, so a larger number would trust wrong digits.
"""


def _over(found: AtSize, powers: Mapping[str, Fraction]) -> str:
    assert found.closed is not None
    with localcontext(prec=50):
        value = Decimal(found.low)
        for axis, power in powers.items():
            value /= Decimal(found.size[axis]) ** (Decimal(power.numerator) / power.denominator)
    closed = closed_form(str(value), min(found.closed.digits, WRITTEN))
    return closed.text if closed else ""


def _rational(found: Sequence[AtSize], exponents: Sequence[Exponent]) -> str:
    """Return the constant as a quotient of polynomials in the varying axis (T), or in its log.

    The formula is an empty text if no formula fits. A formula counts only if it has fewer free
    coefficients than there are sizes.
    """
    if len(exponents) != 1:
        return ""
    axis = exponents[0].axis
    at = [f.size[axis] for f in found]
    texts = [f.closed.text if f.closed else "" for f in found]
    if len(at) > 1 and all(text == f"log({n})" for text, n in zip(texts, at)):
        return f"log({axis})"
    try:
        values = [Fraction(text) for text in texts]
    except ValueError:
        return ""
    for top, bottom in ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2)):
        if len(found) > top + bottom + 2 - 1 and (law := _fitted(at, values, top, bottom)):
            words = [polynomial_text(part, axis) for part in law]
            words = [f"({w})" if " " in w and law[1] != [1] else w for w in words]
            return words[0] if law[1] == [1] else "/".join(words)
    return ""


def _fitted(
    at: Sequence[float], values: Sequence[Fraction], top: int, bottom: int
) -> tuple[list[int], list[int]] | None:
    """Return integer coefficients (highest first) of P and Q with P(n) = value Q(n), or None."""
    rows = [
        [Fraction(n) ** k for k in range(top, -1, -1)]
        + [-v * Fraction(n) ** k for k in range(bottom, -1, -1)]
        for n, v in zip(at, values)
    ]
    kernel = _kernel(rows)
    if kernel is None:
        return None
    common = math.lcm(*(c.denominator for c in kernel))
    whole = [int(c * common) for c in kernel]
    shared = math.gcd(*whole)
    sign = next(-1 if c < 0 else 1 for c in whole[top + 1 :] if c) if any(whole[top + 1 :]) else 1
    p, q = ([sign * c // shared for c in part] for part in (whole[: top + 1], whole[top + 1 :]))
    defined = any(q) and all(sum(c * n ** (bottom - i) for i, c in enumerate(q)) for n in at)
    return (p, q) if defined and max(map(abs, [*p, *q])) <= HIGHEST else None


def _kernel(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """Return a nonzero vector orthogonal to every row; None unless such vectors form a line."""
    rows, pivots, columns = [row[:] for row in rows], list[int](), len(rows[0])
    for column in range(columns):
        rank = len(pivots)
        chosen = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if chosen is None:
            continue
        rows[rank], rows[chosen] = rows[chosen], rows[rank]
        rows[rank] = [x / rows[rank][column] for x in rows[rank]]
        for r in range(len(rows)):
            if r != rank and rows[r][column]:
                rows[r] = [a - rows[r][column] * b for a, b in zip(rows[r], rows[rank])]
        pivots.append(column)
    free = [c for c in range(columns) if c not in pivots]
    if len(free) != 1:
        return None
    vector = [Fraction(0)] * columns
    vector[free[0]] = Fraction(1)
    for r, column in enumerate(pivots):
        vector[column] = -rows[r][free[0]]
    return vector


def law(found: Sequence[AtSize], exponents: Sequence[Exponent], /) -> str:
    """Return a formula for the constant in the axes ("sqrt(T d)"); empty if no formula fits."""
    if not all(f.closed for f in found):
        return ""
    powers = halves(exponents)
    if powers is None:
        return _rational(found, exponents)
    factors = {_over(f, powers) for f in found}
    axes = product_text([(axis, power) for axis, power in powers.items() if power])
    if len(factors) > 1 or "" in factors:
        return ""
    (factor,) = factors
    return factor if axes == "1" else axes if factor == "1" else f"{factor} {axes}"
