"""Terms of a file for Rocq: numbers with their bounds, and true comparisons."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb

from jaxbounds.programs.balls.rocq.numbers import fraction_text

ATOM, APPLIED, POWER, MINUS, TIMES, PLUS = 0, 10, 30, 35, 40, 50
"""How tightly texts bind, as in Rocq's scope of the reals."""


@dataclass(eq=False)
class Real:
    """A real number: a literal, or a definition.

    Attributes:
        ball: encloses it; that of a definition holds its decimal bounds.
        exact: the fraction that it is, where that is known.
        name: of the definition; none for a literal.
        operation: what is done to its arguments; none for literals, instances and variables.
        arguments: its terms, each the factors of a product; other operations have one for each
            argument.
        bounds: decimal, where it is not exact.
        order: its place among all that was recorded.
        place: the line of the program that it comes from.
        why: of what is undefined, or may be infinite, the reason; nothing may rest on it.
        below: what it is known not to exceed.
        samples: where there are parameters: its values at some of their points.
    """

    ball: arb
    exact: Fraction | None = None
    name: str = ""
    operation: Any = None
    arguments: tuple[tuple["Real", ...], ...] = ()
    bounds: tuple[Decimal, Decimal] | None = None
    order: int = -1
    place: "Place | None" = None
    why: str = ""
    below: "Real | None" = None
    samples: tuple[arb, ...] = field(default=(), repr=False)

    @property
    def is_literal(self) -> bool:
        """Whether it is written as a number wherever it is used."""
        return not self.name

    def parts(self) -> Iterator["Real"]:
        """The numbers it is made of, each once, in order."""
        yield from {id(x): x for term in self.arguments for x in term}.values()

    def shown(self, level: int = PLUS) -> str:
        """Its name or number, in parentheses where the level asks for them."""
        if self.name:
            return self.name
        assert self.exact is not None
        binds = TIMES if self.exact.denominator > 1 else MINUS if self.exact < 0 else ATOM
        words = fraction_text(self.exact)
        return f"({words})" if binds > level else words


class Place(NamedTuple):
    """A line of the program.

    Attributes:
        file: relative to the package, or the name of one's own file.
        line: its number.
        function: the function it stands in.
        code: the line as it stands.
    """

    file: str
    line: int
    function: str
    code: str


class Comparison(NamedTuple):
    """A comparison that is true: of two numbers, one of < <= = <> > >=."""

    left: Real
    sign: str
    right: Real

    def __str__(self) -> str:
        return f"{self.left.shown()} {self.sign} {self.right.shown()}"


@dataclass(eq=False)
class Fact:
    """A boolean of the program: its value, and the true comparisons that make it so."""

    truth: bool
    because: tuple[Comparison, ...] = ()
    ledger: Any = field(default=None, repr=False)

    def __bool__(self) -> bool:
        """Its value; what it rests on is then part of the program's path."""
        if self.ledger is not None and self.because:
            self.ledger.choose(self)
        return self.truth

    def __int__(self) -> int:
        return int(bool(self))

    def negated(self) -> "Fact":
        """The opposite, for the same reasons."""
        return Fact(not self.truth, self.because, self.ledger)


class Choice(NamedTuple):
    """A comparison that decides which way the program goes."""

    comparison: Comparison
    order: int
    place: Place | None
