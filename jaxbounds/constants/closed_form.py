"""Search for a closed form of a constant: formulas from PSLQ that fit its certified digits.

PSLQ is an algorithm that finds integer relations. The field `ClosedForm.chance` estimates how
likely an equally simple formula agrees with a random number. A small chance suggests that the
formula is right for the number, and not that the number is the supremum.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxbounds.constants.relations import relations

LEAST_DIGITS = 12
"""The least number of certified decimal digits that the search for a closed form needs.

A larger number accepts fewer formulas.
"""
MOST_CHANCE = 1e-6
"""The largest expected number of chance agreements (`ClosedForm.chance`) of an accepted formula. A
larger value accepts more formulas."""


@dataclass(frozen=True, kw_only=True)
class ClosedForm:
    """A formula that agrees with all known digits.

    Attributes:
        text: the text of the formula, for example "4/(3 sqrt(3))".
        digits: the number of decimal digits with which the formula agrees.
        height: the largest |coefficient| of the formula's integer relation.
        chance: the expected number of formulas that agree by coincidence. The chance is the number
            of relations of this height and length in all bases, divided by the number of values
            that the digits distinguish.
        basis: the basis (the named numbers) of the integer relation.
    """

    text: str
    digits: int
    height: int
    chance: float
    basis: str


def closed_form(
    digits: str,
    known: int,
    /,
    *,
    axes: Mapping[str, int] | None = None,
    between: tuple[str, str] | None = None,
) -> ClosedForm | None:
    """Return the simplest formula that agrees with all known digits of a number, or None.

    Args:
        digits: the number to explain by a formula, written in decimal digits.
        known: the number of leading digits of the ratio lhs/rhs that are certain.
        axes: the size (shapes) at which the constant was found; a formula may contain logarithms of
            the size's integers.
        between: two decimal numbers; the value of the formula must lie between them.

    Raises:
        ModuleNotFoundError: if mpmath is absent; the message has the command that installs mpmath.
    """
    try:
        import mpmath
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            f"the search for a closed form of known={known} digits needs mpmath. Try pip install "
            "'jaxbounds[constants]'",
            name="mpmath",
        ) from problem
    known = min(known, 60)
    if known < LEAST_DIGITS:
        return None
    # A separate context keeps the precision of other users of mpmath unchanged.
    mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.MPContext()
    mp.dps = max(known, 17)  # the least precision for a search of relations
    x = mp.mpf(digits)
    if not 1e-6 < x < 1e6:
        return None
    numbers = sorted({n for n in (axes or {}).values() if n > 3})
    tried, found = list(relations(x, known, numbers, mp)), list[tuple[Any, int, float]]()
    for relation in filter(None, tried):
        height = max(map(abs, relation.numbers))
        found.append((relation, height, (2 * height + 1.0) ** len(relation.numbers)))
    mp.dps = max(known, 40)
    for relation, height, simple in sorted(found, key=lambda f: f[2]):
        chance = len(tried) * simple * 10.0 ** (2 - known)
        if chance < MOST_CHANCE and _agrees(relation.value(mp), x, known, between, mp):
            return ClosedForm(
                text=relation.text, digits=known, height=height, chance=chance, basis=relation.basis
            )
    return None


def _agrees(value: Any, x: Any, known: int, between: tuple[str, str] | None, mp: Any) -> bool:
    if between is not None:
        # The decimals of an enclosure are rounded outward, so their last digits differ.
        return bool(mp.mpf(between[0]) <= value <= mp.mpf(between[1]))
    return bool(abs(value - x) <= abs(x) * mp.mpf(10) ** (2 - known))
