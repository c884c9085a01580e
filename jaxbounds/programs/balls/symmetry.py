"""Find scalings and shifts of a box's coordinates that keep a claim unchanged (homogeneity).

A flow with weights w moves each coordinate x_j to e^(w_j t) x_j, or to x_j + w_j t, at time t. The
law of a value in the program states how the flow changes the value: multiplied by e^(a t), or
shifted by b t. The laws of all results give linear equations for the weights w. Suppose the flow
only multiplies the margin by positive factors, and changes no hypothesis. Then the claim holds at a
point if and only if the claim holds on the point's whole orbit. It suffices to prove the claim on
the faces that the flow crosses outward, and at the points that the flow does not move.
"""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from jaxbounds.ground.jax_internals import ClosedJaxpr
from jaxbounds.programs.balls import functions
from jaxbounds.programs.balls.boxes import Box
from jaxbounds.programs.balls.scalars import Scalars
from jaxbounds.programs.balls.values import OPEN, NotSupported, Reading, Undecided, reals

Form = tuple[Fraction, ...]
"""The coefficients of a linear form in a scaling flow's weights; each coordinate has one weight."""


class Law(NamedTuple):
    """The flow's effect on an entry until time t: a factor e^(degree t), or a summand shift * t.

    Attributes:
        degree: a linear form in the weights; zero if the flow shifts the entry.
        shift: a linear form in the weights; zero if the flow scales the entry.
        value: the ball of a constant entry, which the flow does not change; else None.
        finite: whether the entry of the program is certainly a finite number.
    """

    degree: Form
    shift: Form
    value: arb | None = None
    finite: bool = False


class Laws:
    """An algebra that computes with laws, which state how a flow changes entries.

    Attributes:
        equations: linear expressions in the flow's weights that must be zero, so that the laws of a
            program agree.
    """

    def __init__(self, count: int) -> None:
        self.zero = (Fraction(0),) * count
        self.equations: list[Form] = []

    def _same(self, a: Form, b: Form) -> None:
        if a != b:
            self.equations.append(tuple(u - v for u, v in zip(a, b)))

    def _fixed(self, x: Law) -> None:
        self._same(x.degree, self.zero)
        self._same(x.shift, self.zero)

    def _alike(self, a: Law, b: Law) -> Law:
        """Treat zero as unchanged by every scaling, and an infinity as unchanged by every flow."""
        for one, other in ((a, b), (b, a)):
            if one.value is not None and (one.value == arb("inf") or one.value == -arb("inf")):
                return other._replace(value=None, finite=False)
            if one.value is not None and one.value.is_zero():
                self._same(other.shift, self.zero)
                return Law(other.degree, self.zero, finite=a.finite and b.finite)
        self._same(a.degree, b.degree)
        self._same(a.shift, b.shift)
        return Law(a.degree, a.shift, finite=a.finite and b.finite)

    def lift(self, ball: arb) -> Law:
        """Return the law of a constant (a ball or interval), which no flow changes."""
        return Law(self.zero, self.zero, ball, bool(ball.is_finite()))

    def _added(self, a: Law, b: Law, sign: int) -> Law:
        for one, other in ((b, a), (a, b)):
            if one.value is not None and one.value.is_zero():
                flip = sign if one is a else 1
                return other._replace(shift=tuple(flip * v for v in other.shift))
        self._same(a.degree, b.degree)
        shift = tuple(u + sign * v for u, v in zip(a.shift, b.shift))
        if any(a.shift) or any(b.shift):
            self._same(a.degree, self.zero)
        return Law(a.degree, shift, finite=a.finite and b.finite)

    def scales(self, *entries: Law) -> None:
        """Require (by equations for the weights) that the flow does not shift the given entries."""
        for x in entries:
            self._same(x.shift, self.zero)

    def power(self, x: Law, n: int) -> Law:
        """Return the law of x^n: how a flow of the coordinates changes x^n."""
        self.scales(x)
        return Law(tuple(n * v for v in x.degree), self.zero)

    def apply(self, name: str, *entries: Law) -> Law:
        """Return the law of a primitive's result: how a flow of the coordinates changes it."""
        x = entries[0]
        values = [entry.value for entry in entries]
        if all(v is not None for v in values) and name in _FUNCTIONS:
            return self.lift(_FUNCTIONS[name](*values))
        if name in ("add", "sub"):
            return self._added(entries[0], entries[1], 1 if name == "add" else -1)
        if name == "neg":
            value = None if x.value is None else -x.value
            return Law(x.degree, tuple(-v for v in x.shift), value, x.finite)
        if name in ("mul", "div"):
            return self._product(entries[0], entries[1], 1 if name == "mul" else -1)
        if name in _DEGREES:
            self.scales(x)
            return Law(tuple(_DEGREES[name] * v for v in x.degree), self.zero)
        if name == "exp":
            self._same(x.degree, self.zero)
            return Law(x.shift, self.zero)
        if name == "log":
            self.scales(x)
            return Law(self.zero, x.degree)
        if name == "pow":
            self.scales(x)
            exponent = entries[1].value
            if exponent is not None and exponent.is_exact() and exponent.is_finite():
                q = exponent.fmpq()
                return Law(tuple(Fraction(int(q.p), int(q.q)) * v for v in x.degree), self.zero)
        for entry in entries:  # a function of constants is a constant
            self._fixed(entry)
        return Law(self.zero, self.zero)

    def _product(self, a: Law, b: Law, sign: int) -> Law:
        number = b if b.value is not None else a if sign > 0 and a.value is not None else None
        if number is not None and number.value is not None and number.value.is_exact():
            other, c = (a if number is b else b), number.value.fmpq()
            if c != 0 or sign > 0:
                by = Fraction(int(c.p), int(c.q))
                by = by if sign > 0 else 1 / by
                if c == 0:
                    return self.lift(arb(0))
                return Law(other.degree, tuple(by * v for v in other.shift))
        self.scales(a, b)
        return Law(tuple(u + sign * v for u, v in zip(a.degree, b.degree)), self.zero)

    def compare(self, name: str, a: Law, b: Law, fork: Callable[[int, str], int]) -> int:
        """Compare two constant entries by their enclosures (balls).

        If an entry is not constant, return 2 (undecided), and require that the flow changes both
        entries equally.
        """
        if a.value is not None and b.value is not None:
            return functions.COMPARISONS[name](a.value, b.value)
        self._alike(a, b)
        return OPEN

    def larger(self, a: Law, b: Law, fork: Callable[[int, str], int]) -> Law:
        """Return the law of the larger of two entries: how a flow of the coordinates changes it.

        The flow must change both entries alike, unless one entry is minus infinity.
        """
        for one, other in ((a, b), (b, a)):
            if one.value is not None and one.value == -arb("inf"):
                return other
        if a.value is not None and b.value is not None:
            return self.lift(functions.greater(a.value, b.value))
        return self._alike(a, b)

    def join(self, cases: list[Law]) -> Law:
        """Return the law (change along the flow) that all possible results of a choice share."""
        return self._alike(*cases)

    def finite(self, x: Law) -> int:
        """Return 1 if the entry certainly stays finite along the flow, else 2 (undecided)."""
        return 1 if x.finite else OPEN

    def hull(self, x: Law) -> arb:
        """Return the enclosure of an entry that scalings and shifts (the flow) do not change.

        Raises:
            NotSupported: if the entry is not constant, because its value is then unknown.
        """
        if x.value is None:
            raise NotSupported(
                f"a step function needs an operand that the flow (a scaling or shift) does not "
                f"change, got law={x}. Try a constant operand"
            )
        return x.value


_FUNCTIONS: dict[str, Callable[..., arb]] = functions.UNARY | functions.BINARY
_DEGREES = {
    "abs": Fraction(1),
    "square": Fraction(2),
    "sqrt": Fraction(1, 2),
    "cbrt": Fraction(1, 3),
    "rsqrt": Fraction(-1, 2),
}


def kernel(equations: list[Form], count: int, /) -> list[list[Fraction]]:
    """Return a basis of the weights that satisfy all equations."""
    rows, pivots = [list(e) for e in equations], list[int]()
    for column in range(count):
        at = len(pivots)
        best = next((i for i in range(at, len(rows)) if rows[i][column]), None)
        if best is None:
            continue
        rows[at], rows[best] = rows[best], rows[at]
        rows[at] = [v / rows[at][column] for v in rows[at]]
        for i, row in enumerate(rows):
            if i != at and row[column]:
                rows[i] = [u - row[column] * v for u, v in zip(row, rows[at])]
        pivots.append(column)
    basis = []
    for free in (j for j in range(count) if j not in pivots):
        weights = [Fraction(0)] * count
        weights[free] = Fraction(1)
        for i, column in enumerate(pivots):
            weights[column] = -rows[i][free]
        basis.append(weights)
    return basis


class Flow(NamedTuple):
    """A flow: each coordinate's weight w, and whether the flow scales it by e^(w t) or adds w t."""

    scaled: tuple[bool, ...]
    weights: tuple[Fraction, ...]


def flows(
    program: ClosedJaxpr, count: int, reading: Reading = "exact", /
) -> Iterator[tuple[tuple[bool, ...], list]]:
    """Yield each choice of the coordinates that a flow scales, with a basis of the flow's weights.

    A flow (motion of a box's points) shifts the coordinates that it does not scale.
    """
    ways = sorted(itertools.product((True, False), repeat=count), key=lambda w: -sum(w))
    for scaled in ways:
        laws = Laws(count)
        units = [tuple(Fraction(int(i == j)) for i in range(count)) for j in range(count)]
        entries = [
            Law(unit, laws.zero, finite=True) if s else Law(laws.zero, unit, finite=True)
            for unit, s in zip(units, scaled)
        ]
        run = Scalars(laws, reading=reading)
        try:
            for margin, _ in run.ways(program, reals((count,), entries)):
                laws.scales(margin.item())
        except (NotSupported, Undecided):
            continue
        basis = kernel(laws.equations, count)
        if basis:
            yield scaled, basis


def _outward(box: Box, flow: Flow) -> list[Box] | None:
    """Return the faces through which moving points leave the box, and the flow's fixed points.

    The result is None if a moving point may stay in the box for ever.
    """
    lower, upper = list(box.lower), list(box.upper)
    faces: list[tuple[int, float]] = []
    still = []
    for j, (w, scaled) in enumerate(zip(flow.weights, flow.scaled)):
        if not w or lower[j] == upper[j]:
            if w and (not scaled or lower[j] != 0):
                return None  # every point would leave the box at once
            continue
        if not scaled:
            faces.append((j, upper[j] if w > 0 else lower[j]))
            continue
        if w < 0 and lower[j] <= 0 <= upper[j]:
            return None  # the coordinate tends to zero, and may stay in the box for ever
        if w > 0:
            faces += [(j, end) for end, out in ((upper[j], upper[j] > 0), (lower[j], lower[j] < 0))
                      if out]  # fmt: skip
            if lower[j] <= 0 <= upper[j]:
                still.append(j)
        else:
            faces.append((j, lower[j] if lower[j] > 0 else upper[j]))
    movers = [j for j, w in enumerate(flow.weights) if w and lower[j] < upper[j]]
    if not movers:
        return None
    out = [_fixed(box, {j: end}) for j, end in faces]
    if len(still) == len(movers):  # a point rests where all moving coordinates are zero
        out.append(_fixed(box, dict.fromkeys(still, 0.0)))
    return out


def _fixed(box: Box, values: dict[int, float]) -> Box:
    put = lambda ends: tuple(values.get(j, v) for j, v in enumerate(ends))
    return Box(put(box.lower), put(box.upper))


def _combined(basis: list) -> Iterator[tuple[Fraction, ...]]:
    """Yield candidate weight vectors: combinations of basis vectors with factors from -2 to 2.

    Vectors with the fewest negative weights come first.
    """
    found = set()
    for factors in itertools.product((0, 1, -1, 2, -2), repeat=len(basis)):
        weights = [sum((f * b[j] for f, b in zip(factors, basis)), Fraction(0))
                   for j in range(len(basis[0]))]  # fmt: skip
        if any(weights):
            found.add(tuple(weights))
    return iter(sorted(found, key=lambda w: (sum(v < 0 for v in w), -sum(v > 0 for v in w), w)))


def reduced(program: ClosedJaxpr, box: Box, reading: Reading = "exact", /) -> list[Box]:
    """Return boxes with fewer coordinates; if the claim holds on all of them, it holds on `box`.

    The program takes a point, and returns the margin and whether the point meets the hypotheses.
    The reading "exact" takes each float constant as exactly its value, "ulp" as any nearby real
    number.
    """
    for scaled, basis in flows(program, len(box.lower), reading):
        found = _by(box, scaled, basis)
        if found is not None:
            return found
    return [box]


def _by(box: Box, scaled: tuple[bool, ...], basis: list) -> list[Box] | None:
    for weights in _combined(basis):
        faces = _outward(box, Flow(scaled, weights))
        if faces is None:
            continue
        out = []
        for face in faces:
            fixed = [tuple(Fraction(int(i == j)) for i in range(len(scaled)))
                     for j in range(len(scaled)) if face.lower[j] == face.upper[j] != 0
                     or (face.lower[j] == face.upper[j] and not scaled[j])]  # fmt: skip
            rest = _within(basis, fixed)
            out += (_by(face, scaled, rest) if rest else None) or [face]
        return out
    return None


def _within(basis: list, equations: list[Form]) -> list:
    inner = [tuple(sum((e * v for e, v in zip(equation, b)), Fraction(0)) for b in basis)
             for equation in equations]  # fmt: skip
    combos = kernel(inner, len(basis))
    return [[sum((c * b[j] for c, b in zip(combo, basis)), Fraction(0))
             for j in range(len(basis[0]))] for combo in combos]  # fmt: skip
