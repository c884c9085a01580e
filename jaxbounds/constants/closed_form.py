"""A closed form of a constant by integer relations (PSLQ), only on digits that are certified.

What is tried is listed in `relations`: rational numbers; products of rational powers of small
primes, pi, e and logarithms; a + b c with c = pi, e, a logarithm; algebraic numbers up to degree 6.
The odds are those of the digits: how likely a relation so simple meets a number that has none. They
say nothing of whether the number is the supremum.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxbounds.constants.relations import relations

LEAST_DIGITS = 12
MOST_CHANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class ClosedForm:
    """A formula that agrees with all digits that are known.

    Attributes:
        text: the formula ("4/(3 sqrt(3))").
        digits: decimal digits that it rests on.
        height: the largest coefficient of its relation.
        chance: how many relations of that height and that many terms there are, in as many bases
            as were tried, over what the digits tell apart: the expected number of coincidences.
        basis: in which relations were sought.
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
    """The simplest formula that agrees with a number as far as it is known.

    Args:
        digits: the number in decimals.
        known: how many digits of it are to be trusted.
        axes: whole numbers whose logarithms may occur (the size at which it was found).
        between: two decimal numbers; a formula whose value is not between them is none.

    Raises:
        ModuleNotFoundError: without mpmath, saying how to get it.
    """
    try:
        import mpmath
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "closed forms need mpmath: pip install 'jaxbounds[constants]'", name="mpmath"
        ) from problem
    known = min(known, 60)
    if known < LEAST_DIGITS:
        return None
    # A context of its own: the precision of others is theirs.
    mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.MPContext()
    mp.dps = max(known, 17)  # which is the least that relations are sought with
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
    """Whether the value has the digits, and lies in the enclosure where there is one."""
    if between is not None:
        # Decimals of an enclosure end where they were rounded outward.
        return bool(mp.mpf(between[0]) <= value <= mp.mpf(between[1]))
    return bool(abs(value - x) <= abs(x) * mp.mpf(10) ** (2 - known))
