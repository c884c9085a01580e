"""Prove a claim around a point of equality, where the margin M is zero and nonnegative nearby.

Let x* be the point of equality and N a box around x*. Taylor's theorem says for every x* + h in N

    M(x* + h) = sum_{|a| < m} M_a(x*) h^a + sum_{|a| = m} M_a(z) h^a,   z between x* and x* + h,

Here M_a is the a-th partial derivative of M, divided by a!. Exact arithmetic decides which M_a(x*)
are zero; a small ball around zero cannot decide it. Let w be weights, h_j = r^{w_j} u_j and max
|u_j| = 1. Every nonzero term has a power r^d or higher, so M = r^d Q(r, u). If Q >= 0 for 0 <= r <=
R and all directions u that point into the box, then M >= 0 on the box. For d = 2 and w = (1, .., 1)
the condition on Q is a positive definite interval Hessian at a point of zero gradient. At a kink
the program forks, and the proof tests each branch where the branch's conditions hold.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq

from jaxbounds.ground.jax_internals import ClosedJaxpr
from jaxbounds.programs.balls.exact import Exact, Field, Finer, GivenUp
from jaxbounds.programs.balls.functions import integer_power
from jaxbounds.programs.balls.jets import Coefficient, Jet, JetRun, Jets
from jaxbounds.programs.balls.values import Reading, as_flags, reals

ORDERS = {0: (2,), 1: (2, 4, 6, 8, 10), 2: (2, 4, 6)}
"""For each number of coordinates, the degrees of the Taylor polynomials that a proof tries.
Larger degrees prove more claims and take more time.
"""
RADII = (2.0**-3, 2.0**-5, 2.0**-8, 2.0**-12)
CELLS = 4000
"""A proof around a point of equality cuts the set of directions into at most this many parts.

A larger number proves more claims and takes more time.
"""
RESTARTS, SECONDS = 12, 5.0
"""RESTARTS is the largest number of restarts; each restart writes the numbers with finer irrational
constants, such as e^(u/2) in place of e^u. SECONDS is the time limit of one attempt.

Larger numbers prove more claims and take more time.
"""


class Number(NamedTuple):
    """A coordinate of a point, as an exact number.

    Attributes:
        kind: "rational" (q), "root" (q^(1/n)), "log" (log q), "pi" (q pi), "exp" (e^q).
        sign: 1 or -1; the coordinate is `sign` times the formula of `kind`.
    """

    kind: str
    q: Fraction
    n: int = 1
    sign: int = 1

    @property
    def as_float(self) -> float:
        """Return the number as a float."""
        q = float(self.q)
        back = {"rational": lambda: q, "pi": lambda: q * math.pi, "log": lambda: math.log(q),
                "exp": lambda: math.exp(q), "root": lambda: q ** (1 / self.n)}  # fmt: skip
        return self.sign * back[self.kind]()

    def exact(self, field: Field) -> Exact | None:
        """Return the number as an element of `field`; None if `field` cannot hold the number."""
        q = field.rational(self.q)
        if self.kind == "rational":
            return q
        if self.kind == "pi":
            return field.pi() * q
        found = {
            "root": lambda: q.power(fmpq(1, self.n)), "log": q.log, "exp": q.exp
        }[self.kind]()  # fmt: skip
        return None if found is None else found * field.rational(self.sign)


class Region(NamedTuple):
    """A box on which the claim is proved."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def holds(self, lower: Sequence[float], upper: Sequence[float]) -> bool:
        """Tell whether the region contains the box with the given lower and upper ends."""
        ends = zip(self.lower, self.upper, lower, upper)
        return all(a <= c and d <= b for a, b, c, d in ends)


Term = tuple[tuple[int, ...], arb]


def _terms(jet: Jet, jets: Jets) -> list[Term] | None:
    """Return the Taylor terms that are not proved zero; None if a coefficient is unknown."""
    found = []
    for powers, value in zip(jets.monomials, jet.of):
        if value is None:
            continue
        if sum(powers) < jets.order and value.at is not None:
            if value.at.is_zero():
                continue
            ball = value.at.ball
            ball = ball if ball.is_finite() else value.over
        else:
            ball = value.over
        if not ball.is_finite():
            return None
        found.append((powers, ball))
    return found


def _defined(jet: Jet) -> bool:
    return all(v is None or v.over.is_finite() for v in jet.of)


def weights_of(terms: list[Term], count: int) -> tuple[tuple[int, ...], int] | None:
    """Return weights that give all least pure powers x_j^k one degree, and return this degree.

    The result is None if another term has a lower degree, or a coordinate has no pure power.
    """
    lowest = []
    for j in range(count):
        pure = [p[j] for p, _ in terms if p[j] and sum(p) == p[j]]
        if not pure:
            return None
        lowest.append(min(pure))
    degree = math.lcm(*lowest)
    weights = tuple(degree // e for e in lowest)
    weigh = lambda p: sum(w * e for w, e in zip(weights, p))
    return (weights, degree) if all(weigh(p) >= degree for p, _ in terms) else None


def _at(terms: list[Term], weights: Sequence[int], degree: int, r: arb, u: Sequence[arb]) -> arb:
    """Return Q(r, u): the sum of Taylor terms at radius r in direction u, over r^degree."""
    total = arb(0)
    for powers, c in terms:
        extra = sum(w * e for w, e in zip(weights, powers)) - degree
        term = c * integer_power(r, extra)
        for v, e in zip(u, powers):
            term = term * integer_power(v, e)
        total = total + term
    return total


def _between(a: float, b: float) -> arb:
    return arb(a) if a == b else arb((a + b) / 2, (b - a) / 2)


def _directions(sides: Sequence[int]) -> Iterator[list[tuple[float, float]]]:
    whole = [(0.0, 1.0) if s > 0 else (-1.0, 0.0) if s < 0 else (-1.0, 1.0) for s in sides]
    for j, side in enumerate(sides):
        for end in (1.0, -1.0):
            if side * end >= 0:
                yield [*whole[:j], (end, end), *whole[j + 1 :]]


def not_negative(
    terms: list[Term],
    conditions: list[list[Term]],
    weights: Sequence[int],
    degree: int,
    reach: float,
    sides: Sequence[int],
) -> bool:
    """Tell whether a polynomial is proved to be >= 0 in each direction u that points into the box.

    The proof skips a direction in which a condition is certainly negative, because the program
    takes another branch in this direction.
    """
    r = _between(0.0, reach)
    least = [min((sum(w * e for w, e in zip(weights, p)) for p, _ in c), default=0)
             for c in conditions]  # fmt: skip
    cells = list(_directions(sides))
    for _ in range(CELLS):
        if not cells:
            return True
        cell = cells.pop()
        u = [_between(a, b) for a, b in cell]
        if _at(terms, weights, degree, r, u) >= 0:
            continue
        if any(c and _at(c, weights, d, r, u) < 0 for c, d in zip(conditions, least)):
            continue
        wide = max(range(len(cell)), key=lambda j: cell[j][1] - cell[j][0])
        a, b = cell[wide]
        if b - a < 2.0**-8:
            return False
        for part in ((a, (a + b) / 2), ((a + b) / 2, b)):
            cells.append([*cell[:wide], part, *cell[wide + 1 :]])
    return False


class Place(NamedTuple):
    """A candidate for a point of equality in a box, or in a face of the box.

    Attributes:
        free: the indices of the coordinates that vary in the box or face.
        sides: for each free coordinate: 0 if the point lies inside the box, 1 if it lies at the
            box's lower end, -1 if it lies at the upper end.
    """

    numbers: tuple[Number, ...]
    free: tuple[int, ...]
    sides: tuple[int, ...]


class _Way(NamedTuple):
    margin: Jet
    conditions: list[Jet]


def _ways(
    program: ClosedJaxpr, place: Place, jets: Jets, reach: Sequence[float], reading: Reading
) -> list[_Way] | None:
    entries = []
    for j, number in enumerate(place.numbers):
        at = number.exact(jets.field)
        if at is None:
            return None
        if j in place.free:
            k = place.free.index(j)
            half, side = arb(reach[k]) / 2, place.sides[k]
            around = arb(0, reach[k]) if side == 0 else side * half + arb(0, half.upper())
            value = Coefficient(at, at.ball + around)
            entries.append(jets.variable(k, value))
        else:
            entries.append(jets.constant(Coefficient(at, at.ball)))
    run, found = JetRun(jets, reading, SECONDS), []
    for margin, needed in run.ways(program, reals((len(entries),), entries)):
        if np.all(as_flags(needed)):  # otherwise this continuation violates a hypothesis
            found.append(_Way(margin.item(), jets.conditions))
        jets.conditions = []
    return found


def _holds(
    way: _Way, jets: Jets, place: Place, reach: Sequence[float], fits: list[tuple[int, ...]]
) -> bool:
    terms = _terms(way.margin, jets)
    conditions = [_terms(c, jets) for c in way.conditions]
    if terms is None or not _defined(way.margin) or any(c is None for c in conditions):
        return False
    if not terms:
        return True  # the margin vanishes identically
    weighed = weights_of(terms, len(place.free))
    if weighed is None:
        return False
    weights, degree = weighed
    fits.append(weights)
    # `far` bounds r on the box. The test also covers points beyond the box; a negative value there
    # only loses the proof.
    far = max(x ** (1 / w) for x, w in zip(reach, weights))
    kept = [c for c in conditions if c is not None]
    return not_negative(terms, kept, weights, degree, far * (1 + 1e-9), place.sides)


def _around(
    program: ClosedJaxpr,
    place: Place,
    order: int,
    radius: float,
    reading: Reading,
    fine: dict[Any, int],
) -> tuple[float, ...] | None:
    """Try equal half-widths, then powers of `radius` with exponents proportional to the weights."""
    reach = (radius,) * len(place.free)
    for _ in range(2):
        jets = Jets(Field(fine), len(place.free), order)
        ways = _ways(program, place, jets, reach, reading)
        fits: list[tuple[int, ...]] = []
        if ways is None:
            return None
        if all(_holds(way, jets, place, reach, fits) for way in ways):
            return reach
        if not fits:
            return None
        least = min(fits[0])
        fitted = tuple(radius ** (w / least) for w in fits[0])
        if fitted == reach:
            return None
        reach = fitted
    return None


def touching(program: ClosedJaxpr, place: Place, reading: Reading) -> Region | None:
    """Return a box around a point of equality on which the claim is proved, or None.

    The program takes a point, and returns the margin and whether the point meets the hypotheses.
    The reading "exact" takes each float constant as exactly its value, "ulp" as any nearby real
    number.

    Raises:
        NotSupported: if the program has an operation without a Taylor series.
        Undecided: if the program may jump (be discontinuous) at the point.
    """
    fine: dict[Any, int] = {}
    if not _again(lambda: _vanishes(program, place, reading, fine)):
        return None
    for order in ORDERS.get(len(place.free), (2, 4)):
        for radius in RADII:
            near = functools.partial(_around, program, place, order, radius, reading, fine)
            half = _again(near)
            if half is not None:
                return _again(functools.partial(_inside, place, half, fine))
    return None


def _vanishes(program: ClosedJaxpr, place: Place, reading: Reading, fine: dict[Any, int]) -> bool:
    jets = Jets(Field(fine), 0, 1)
    alone = Place(place.numbers, (), ())
    ways = _ways(program, alone, jets, (), reading) or []
    heads = [way.margin.of[0] for way in ways]
    return any(h is None or (h.at is not None and h.at.is_zero()) for h in heads)


def _again(work: Callable[[], Any]) -> Any:
    for _ in range(RESTARTS):
        try:
            return work()
        except Finer:
            continue
        except GivenUp:
            return None
    return None


def _inside(place: Place, half: Sequence[float], fine: dict[Any, int]) -> Region:
    """Return a box around a point; the corners are floats, rounded towards the point."""
    lower, upper = [], []
    for j, number in enumerate(place.numbers):
        at = number.exact(Field(fine))
        assert at is not None
        side = place.sides[place.free.index(j)] if j in place.free else 2
        end = float(at.ball.mid())
        reach = half[place.free.index(j)] if j in place.free else 0.0
        low = np.nextafter(float((at.ball - reach).upper()), np.inf)
        high = np.nextafter(float((at.ball + reach).lower()), -np.inf)
        lower.append(end if side in (1, 2) else float(low))
        upper.append(end if side in (-1, 2) else float(high))
    return Region(tuple(lower), tuple(upper))


def rational(x: float, /) -> Number:
    """Return a float as an exact number."""
    return Number("rational", Fraction(x))


def _close(x: float, value: float, within: float) -> bool:
    return abs(x - value) <= within * max(1.0, abs(x))


def candidates(x: float, within: float, /) -> Iterator[Number]:
    """Yield exact numbers at a distance of at most `within` from a float, the simplest first."""
    seen = set()
    for bound in (1, 2, 4, 12, 120, 5000):
        q = Fraction(x).limit_denominator(bound)
        tight = min(within, 0.1 / bound**2)
        if q not in seen and abs(x - float(q)) <= tight * max(1.0, abs(x)):
            seen.add(q)
            yield Number("rational", q)
    if within > 1e-5:
        return
    tries: list[tuple[str, float, int, Callable[[float], float]]] = [
        ("root", x * x, 2, math.sqrt), ("pi", x / math.pi, 1, lambda q: q * math.pi),
        ("root", abs(x) ** 3, 3, lambda q: q ** (1 / 3)), ("log", _exp(x), 1, math.log),
    ]  # fmt: skip
    if x > 0:
        tries.append(("exp", math.log(x), 1, math.exp))
    for kind, value, n, back in tries:
        q = Fraction(value).limit_denominator(60)
        if q == 0 or (kind in ("root", "log") and q <= 0):
            continue
        sign = -1 if kind == "root" and x < 0 else 1
        if _close(x, sign * back(float(q)), within) and (kind, q) not in seen:
            yield Number(kind, q, n, sign)


def _exp(x: float) -> float:
    return math.exp(x) if x < 30 else 0.0
