"""A closed form of a constant by integer relations (PSLQ), only on digits that are certified.

Three kinds are tried: a rational number; a product of rational powers of 2, 3, 5, 7, pi, e and
log 2; a root of a quadratic with small coefficients.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

BASIS = ("2", "3", "5", "7", "pi", "e", "log(2)")
"""Of products; an exponent is a rational number with denominator up to 4."""
LEAST_DIGITS = 12
MOST_CHANCE = 1e-6
HIGHEST = 60
"""Of the coefficients of a relation."""


@dataclass(frozen=True, kw_only=True)
class ClosedForm:
    """A formula that agrees with all digits that are known.

    Attributes:
        text: the formula ("4/(3 sqrt(3))").
        digits: decimal digits that it rests on.
        height: the largest coefficient of its relation.
        chance: how many relations of that height and that many terms there are, over what the
            digits tell apart: the expected number of coincidences.
        basis: in which relations were sought.
    """

    text: str
    digits: int
    height: int
    chance: float
    basis: str


def _side(powers: Sequence[tuple[str, Fraction]]) -> list[str]:
    """The factors of a numerator: whole numbers multiplied out, all square roots under one."""
    number, root = 1, 1
    words, roots = list[str](), list[str]()
    for base, exponent in powers:
        whole, rest = divmod(exponent, 1)
        if base.isdigit():
            number *= int(base) ** whole
            root *= int(base) if rest == Fraction(1, 2) else 1
        elif whole:
            words.append(base if whole == 1 else f"{base}^{whole}")
        if rest == Fraction(1, 2):
            roots += [] if base.isdigit() else [base]
        elif rest:
            words.append(f"{base}^({rest})")
    under = [str(root)] * (root > 1) + roots
    square = [f"sqrt({' '.join(under)})"] if under else []
    return [str(number)] * (number > 1) + words + square


def product_text(powers: Sequence[tuple[str, Fraction]], /) -> str:
    """A product of rational powers in print ("4/(3 sqrt(3))", "sqrt(T d)")."""
    top = _side([(base, power) for base, power in powers if power > 0])
    bottom = _side([(base, -power) for base, power in powers if power < 0])
    over, under = " ".join(top) or "1", " ".join(bottom)
    if not bottom:
        return over
    return f"{over}/({under})" if len(bottom) > 1 else f"{over}/{under}"


def _quadratic(relation: Sequence[int], x: Any) -> str:
    """The root of a x^2 + b x + c near x."""
    a, b, c = relation
    square, sign = b * b - 4 * a * c, "+" if 2 * a * x + b > 0 else "-"
    root = max(k for k in range(1, 200) if square % (k * k) == 0)
    if a < 0:
        a, b, sign = -a, -b, "-" if sign == "+" else "+"
    common = math.gcd(math.gcd(-b, root), 2 * a)
    shift, times, under = -b // common, root // common, 2 * a // common
    words = f"{'' if times == 1 else f'{times} '}sqrt({square // root**2})"
    top = f"{shift} {sign} {words}" if shift else f"{'-' if sign == '-' else ''}{words}"
    if shift:
        top = f"({top})" if under > 1 else top
    return f"{top}/{under}" if under > 1 else top


def _relations(x: Any, known: int, mp: Any) -> Iterator[tuple[str, list[int], int, str]]:
    """Formulas with the relation each is from, its terms, and where it was sought."""
    limits = {"tol": mp.mpf(10) ** (2 - known), "maxcoeff": HIGHEST, "maxsteps": 20_000}
    found = mp.pslq([x, mp.mpf(1)], **limits)
    if found and found[0]:
        yield str(Fraction(-found[1], found[0])), found, 2, "rational numbers"
    named = {"pi": mp.pi, "e": mp.e, "log(2)": mp.log(2)}
    for names in (BASIS[:4], BASIS) if mp.log(x) else ():
        logs = [mp.log(named.get(name) or int(name)) for name in names]
        found = mp.pslq([mp.log(x), *logs], **limits)
        if found and 1 <= abs(found[0]) <= 4:
            powers = [(name, Fraction(-c, found[0])) for name, c in zip(names, found[1:])]
            where = f"products of powers of {', '.join(names)}"
            yield product_text(powers), found, len(found), where
    found = mp.pslq([x * x, x, mp.mpf(1)], **limits)
    square = found[1] ** 2 - 4 * found[0] * found[2] if found else 0
    if found and found[0] and square > 0 and math.isqrt(square) ** 2 != square:
        yield _quadratic(found, x), found, 3, "roots of quadratics"


def closed_form(digits: str, known: int, /) -> ClosedForm | None:
    """The simplest formula that agrees with a number as far as it is known.

    Args:
        digits: the number in decimals.
        known: how many digits of it are to be trusted.

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
    best = None
    for text, relation, terms, basis in _relations(x, known, mp):
        height = max(map(abs, relation))
        chance = (2 * height + 1.0) ** terms * 10.0 ** (2 - known)
        if chance < MOST_CHANCE and (best is None or chance < best.chance):
            best = ClosedForm(text=text, digits=known, height=height, chance=chance, basis=basis)
    return best
