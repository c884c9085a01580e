"""Define the certificate: the result of ball arithmetic for one claim on one fixed input."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal

from flint import arb

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.programs.balls.values import INF

Word = Literal["disproved", "disproved as coded", "undecided"]
DIGITS, LARGEST = 30, 4000
"""DIGITS is the number of digits of an interval's ends in texts. LARGEST is the largest exponent of
ten that the text writes out in digits.

Larger numbers of digits make longer texts.
"""


@with_table
@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The result of ball arithmetic for one inequality of a statement on one fixed input.

    Attributes:
        id: the id of the statement.
        form: the name of the form (version of the statement's claim).
        word: the finding. "disproved": every hypothesis certainly holds, and the sides violate the
            claim by a relative 1e-6 or more. The word "disproved" is true on every path through the
            program, and for every rounding of the program's constants. "disproved as coded": the
            violation is certain only if the floats in the program, or numbers that the host
            computed outside the program, are exact. "undecided": ball arithmetic decides neither
            way.
        reason: the reason why the finding is "undecided"; otherwise empty.
        relation: the relation between the sides that the claim states: "<=", ">=" or "=".
        lhs: a lower and an upper bound of the left side, as decimal numbers.
        rhs: a lower and an upper bound of the right side, as decimal numbers.
        entry: if `relation` is "=", the index of the compared entry in the flattened sides.
        gap: a certain lower bound of the relative difference of the sides.
        hypotheses: the finding about each named hypothesis: "certain" (it holds), "open"
            (undecided) or "missed" (it may fail).
        size: the static inputs of the instance, such as dimensions.
        bits: the precision of the balls in bits.
        ways: the number of paths through the program (combinations of branches) that the
            interpreter ran.
        seconds: the processor time that the enclosure took, in seconds.
        theorem: the function that writes the file for Rocq; None if the statement's input is
            unavailable.
    """

    id: str
    form: str
    word: Word
    reason: str = ""
    relation: str = "<="
    lhs: tuple[str, str] | None = None
    rhs: tuple[str, str] | None = None
    entry: int | None = None
    gap: float = 0.0
    hypotheses: dict[str, str] = field(default_factory=dict)
    size: dict[str, float] = field(default_factory=dict)
    bits: int = 0
    ways: int = 0
    seconds: float = 0.0
    theorem: Callable[[int | None, str], str] | None = field(
        default=None, repr=False, compare=False
    )

    def rocq(self, *, operations: int | None = None, citation: str = "") -> str:
        """Return the text of a file that lets Rocq's kernel check the disproof (guide: `kernel`).

        Args:
            operations: the largest number of scalar operations that the file may hold; 5000 unless
                given.
            citation: the paper's title, which the file's first comment quotes.

        Raises:
            Refused: if the claim is not disproved, if this certificate came from another process or
                a file, if an operation has no translation, or if there are too many operations.
        """
        if self.word == "undecided":
            raise Refused(
                f"{self.id} ({self.form}) has the certificate word={self.word!r} ({self.reason}), "
                f"expected 'disproved'. Try another instance"
            )
        if self.theorem is None:
            raise Refused(
                f"{self.id} ({self.form}): this certificate contains no instance, "
                f"theorem={self.theorem}. Try to make it by jaxbounds.disprove, or run "
                "`jaxbounds certify --rocq FOLDER`"
            )
        return self.theorem(operations, citation)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields to pickle: all but `theorem`, as pickle may refuse its functions."""
        return self.__dict__ | {"theorem": None}

    def _table(self) -> Table:
        between = lambda ends: f"{ends[0]:.24} to {ends[1]:.24}" if ends else ""
        about = {
            "because": self.reason,
            "left side": between(self.lhs),
            "right side": between(self.rhs),
            "apart, relatively": number(self.gap) if self.gap else "",
            "hypotheses": ", ".join(f"{name}: {word}" for name, word in self.hypotheses.items()),
        }
        rows = [(name, value) for name, value in about.items() if value]
        return Table(f"{self.id} ({self.form}): {self.word}", ("", ""), rows)

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as a dict that `json.dumps` accepts."""
        about = asdict(replace(self, theorem=None))
        del about["theorem"]
        return about


def _power_of_ten(x: arb) -> int:
    mantissa, exponent = (int(v) for v in x.man_exp())
    return round((mantissa.bit_length() + exponent) * 0.30102999566) if mantissa else 0


def as_fraction(x: arb, /) -> Fraction:
    """Return a ball of radius zero as a fraction."""
    mantissa, exponent = (int(v) for v in x.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def decimal_bounds(x: arb, /) -> tuple[str, str]:
    """Return two decimal numbers of 30 digits around a ball, rounded outward."""
    if not x.is_finite():
        word = "inf" if x == INF else "-inf" if x == -INF else "nan"
        return word, word
    least, most = (_power_of_ten(end) for end in (x.abs_lower(), x.abs_upper()))
    if most > LARGEST or (least < -LARGEST and not x.contains(0)):
        # Fractions of this size would fill the memory: return the powers of ten around the ball.
        ends = [f"1e{least - 1}", f"1e{most + 1}"]
        return (ends[0], ends[1]) if x > 0 else (f"-{ends[1]}", f"-{ends[0]}" if x < 0 else ends[1])
    ends = []
    for end, rounding in ((x.lower(), ROUND_FLOOR), (x.upper(), ROUND_CEILING)):
        exact = as_fraction(end)
        with localcontext(prec=DIGITS, rounding=rounding):
            ends.append(str(Decimal(exact.numerator) / Decimal(exact.denominator)))
    return ends[0], ends[1]
