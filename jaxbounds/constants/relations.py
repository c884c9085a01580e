"""Integer relations between a number and named numbers such as pi, and their formulas as text.

The algorithm PSLQ looks for a relation in one basis after another. A relation gives a formula for
the number, and a function that computes the formula's value to any number of digits.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

BASIS = ("2", "3", "5", "7", "pi", "e", "log(2)")
"""`relations` tries products of powers of these numbers as formulas. The exponents are rational
numbers with denominators of at most 4."""
ADDED = ("pi", "1/pi", "pi^2", "e", "1/e", "log(2)", "log(3)")
"""The constants c that `relations` tries in formulas a + b c; `relations` also tries the logarithms
of the sizes.
"""
HIGHEST = 100
"""The largest absolute coefficient of an integer relation that PSLQ may find.

If this number is larger, PSLQ finds more relations, and more of them are coincidences.
"""
DEGREES = (3, 4, 5, 6)
"""The degrees of algebraic numbers that `relations` tries after degrees 1 and 2."""


class Relation(NamedTuple):
    """An integer relation between a number x and named numbers.

    Attributes:
        basis: the basis (the named numbers) of the relation.
        value: a function that takes an mpmath context and returns the formula's value.
    """

    text: str
    numbers: tuple[int, ...]
    basis: str
    value: Callable[[Any], Any]


def named(name: str, mp: Any, /) -> Any:
    """Return the number that a name means ("pi", "log(3)", "5", "1/e")."""
    if name.startswith("1/"):
        return 1 / named(name[2:], mp)
    if name.startswith("log("):
        return mp.log(int(name[4:-1]))
    if name.endswith("^2"):
        return named(name[:-2], mp) ** 2
    return {"pi": +mp.pi, "e": +mp.e}[name] if name in ("pi", "e") else mp.mpf(int(name))


def _side(powers: Sequence[tuple[str, Fraction]]) -> list[str]:
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
    """Return a product of rational powers as text ("4/(3 sqrt(3))", "sqrt(T d)")."""
    top = _side([(base, power) for base, power in powers if power > 0])
    bottom = _side([(base, -power) for base, power in powers if power < 0])
    over, under = " ".join(top) or "1", " ".join(bottom)
    if not bottom:
        return over
    return f"{over}/({under})" if len(bottom) > 1 else f"{over}/{under}"


def sum_text(terms: Sequence[tuple[int, str]], under: int = 1, /) -> str:
    """Return as text a sum of integer multiples, divided by an integer ("(1 + 2 pi)/4").

    The empty name stands for the number 1.
    """
    words = ""
    for times, name in terms:
        if not times:
            continue
        one = name or "1"
        if abs(times) != 1:
            # Write 3/pi, not 3 1/pi.
            joined = f"{abs(times)}{one[1:]}" if one.startswith("1/") else f"{abs(times)} {one}"
            one = joined if name else str(abs(times))
        sign = " - " if times < 0 else " + "
        words = f"{words}{sign}{one}" if words else ("-" if times < 0 else "") + one
    if under == 1:
        return words
    simple = sum(bool(times) for times, _ in terms) == 1 and "/" not in words
    return f"{words}/{under}" if simple else f"({words})/{under}"


def polynomial_text(coefficients: Sequence[int], x: str = "x", /) -> str:
    """Return a polynomial as text ("x^3 - 3 x + 1") from its coefficients, highest power first."""
    degree = len(coefficients) - 1
    names = [f"{x}^{degree - i}" if degree - i > 1 else x * (degree - i) for i in range(degree + 1)]
    return sum_text(list(zip(coefficients, names)))


def _quadratic_text(relation: Sequence[int], x: Any) -> str:
    a, b, c = relation
    square, sign = b * b - 4 * a * c, "+" if 2 * a * x + b > 0 else "-"
    root = max(k for k in range(1, 200) if square % (k * k) == 0)
    if a < 0:
        a, b, sign = -a, -b, "-" if sign == "+" else "+"
    common = math.gcd(b, root, 2 * a)
    shift, times, under = -b // common, root // common, 2 * a // common
    words = f"{'' if times == 1 else f'{times} '}sqrt({square // root**2})"
    top = f"{shift} {sign} {words}" if shift else f"{'-' if sign == '-' else ''}{words}"
    if shift:
        top = f"({top})" if under > 1 else top
    return f"{top}/{under}" if under > 1 else top


def _root(coefficients: Sequence[int], near: Any) -> Callable[[Any], Any]:
    def value(mp: Any) -> Any:
        at = mp.mpf(near)
        for _ in range(8):
            height, slope = mp.polyval(list(coefficients), at, derivative=True)
            if not slope:
                return mp.nan
            at -= height / slope
        return at

    return value


def _sum(names: Sequence[str], relation: Sequence[int]) -> Relation | None:
    """Solve a relation c_0 x + c_1 + c_2 c = 0 for x = a + b c; None if c_0 or c_2 is zero."""
    first, *rest = relation
    if not first or sum(bool(r) for r in rest[1:]) == 0:
        return None
    rest = [-r if first > 0 else r for r in rest]
    text = sum_text(list(zip(rest, ("", *names))), abs(first))

    def value(mp: Any) -> Any:
        return (rest[0] + sum(r * named(n, mp) for r, n in zip(rest[1:], names))) / abs(first)

    return Relation(text, tuple(relation), f"a + b times {', '.join(names)}", value)


def relations(x: Any, known: int, numbers: Sequence[int], mp: Any, /) -> Iterator[Relation | None]:
    """Yield for each basis (list of named numbers) the formula for x that PSLQ finds, or None.

    The number x has `known` certain decimal digits. The bases also contain the logarithms of
    `numbers`.
    """
    limits = {"tol": mp.mpf(10) ** (2 - known), "maxcoeff": HIGHEST, "maxsteps": 20_000}
    found = mp.pslq([x, mp.mpf(1)], **limits)
    if found:
        ratio = Fraction(-found[1], found[0])
        value = lambda mp: mp.mpf(ratio.numerator) / ratio.denominator
        yield Relation(str(ratio), tuple(found), "rational numbers", value)
        return  # every further relation follows from this relation
    logs = tuple(f"log({n})" for n in numbers)
    for names in (BASIS[:4], BASIS, (*BASIS[:3], "log(3)"), *((*BASIS[:3], log) for log in logs)):
        yield _product(x, names, limits, mp)
    for name in (*ADDED, *logs):
        found = mp.pslq([x, mp.mpf(1), named(name, mp)], **limits)
        yield _sum((name,), found) if found else None
    for pair in (("log(2)", "log(3)"), *((log, "log(2)") for log in logs if log != "log(4)")):
        found = mp.pslq([x, mp.mpf(1), *(named(name, mp) for name in pair)], **limits)
        yield _sum(pair, found) if found else None
    found = mp.pslq([x * x, x, mp.mpf(1)], **limits)
    square = found[1] ** 2 - 4 * found[0] * found[2] if found else 0
    if found and found[0] and square > 0 and math.isqrt(square) ** 2 != square:
        text = _quadratic_text(found, x)
        yield Relation(text, tuple(found), "roots of quadratics", _root(found, x))
        return
    yield None
    for degree in DEGREES:
        found = mp.pslq([x**k for k in range(degree, -1, -1)], **limits)
        if not found:
            yield None
            continue
        # No relation of lower degree exists, so the polynomial is irreducible or has the factor x.
        while found and not found[0]:
            found = found[1:]
        whole = tuple(-c for c in found) if found[0] < 0 else tuple(found)
        near = mp.nstr(x, 4)
        text = f"the root near {near} of {polynomial_text(whole)}"
        yield Relation(text, whole, f"algebraic numbers of degree {degree}", _root(whole, x))
        return


def _product(x: Any, names: Sequence[str], limits: dict[str, Any], mp: Any) -> Relation | None:
    if not mp.log(x):
        return None
    found = mp.pslq([mp.log(x), *(mp.log(named(name, mp)) for name in names)], **limits)
    if not found or not 1 <= abs(found[0]) <= 4:
        return None
    powers = [(name, Fraction(-c, found[0])) for name, c in zip(names, found[1:])]

    def value(mp: Any) -> Any:
        logs = (p.numerator * mp.log(named(n, mp)) / p.denominator for n, p in powers)
        return mp.exp(sum(logs))

    where = f"products of powers of {', '.join(names)}"
    return Relation(product_text(powers), tuple(found), where, value)
