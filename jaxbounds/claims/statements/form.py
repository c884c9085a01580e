"""The right-hand sides of a claim: as printed, derived, corrected or sharpened."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jax.typing import ArrayLike

from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.domain import Domain
from jaxbounds.claims.statements.instance import Hypotheses, Instance, Size
from jaxbounds.claims.statements.refused import Careful
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.text import shortened

LONGEST = 100
"""Bytes of the name of a form, and of an id, in the name of a file, which has room for 255."""
Status = Literal["holds", "fails", "vacuous", "inconclusive", "consistent", "inconsistent", "error"]
REJECTED: tuple[Status, ...] = ("fails", "inconsistent")
"""The statuses that a control, and a false twin, must get."""
Sense = Literal["at most", "at least", "exactly"]

_BY_KIND: Any = None
"""The default of a field that depends on the statement's kind."""
_BY_STATEMENT: Any = None
"""That of one that depends on the statement."""


@dataclass(frozen=True, kw_only=True)
class Counterexample(metaclass=Careful):
    """An instance, small enough for a person, on which a form fails.

    Attributes:
        instance: inputs, as nested dicts of numbers, lists or arrays.
        size: its static part, the first of the statement's sizes unless given; it need not be
            among them.
        ratio: what the form's ratio is there (for `=` the relative difference). Another one means a
            slip in the instance or in the formula, and the form is then inconclusive.
        meets: `meets(instance, size) -> {hypothesis: bool}`: everything that the paper assumes
            anywhere about such an instance, each with its source in print; all must hold.
    """

    instance: Instance
    size: Mapping[str, float] = _BY_STATEMENT
    ratio: float
    meets: Callable[[Instance, Size], Mapping[str, ArrayLike]] | None = None

    refused: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse fields of other types."""
        refuse_other_types(self, "a counterexample")

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> "Counterexample":
        """The placeholder of a refused declaration, while a file is loaded."""
        made = cls(instance={}, ratio=0.0)
        object.__setattr__(made, "refused", str(problem))
        return made


@dataclass(frozen=True, kw_only=True)
class Form(metaclass=Careful):
    """One right-hand side: as printed, corrected, or sharpened.

    Attributes:
        name: "printed", "derived", "corrected" or "sharpened", optionally followed by a tag
            ("sharpened S5"). "false ..." is a false twin: the library must refute it.
        expected: the status that the form should get; unless given, "fails" where it stores a
            counterexample, else "holds" (for rates "consistent").
        note: a proof sketch, or the text of the erratum.
        cites: for printed forms: the display or sentence it comes from.
        equality: the instance at which both sides agree, in words. Only with it may a worst ratio
            within the numerical error of one be called `holds`.
        erratum: the id of the paper's erratum that the form exhibits ("E1").
        reading: where that erratum has two readings, words that stand in the one that the form
            takes, and not in the other; empty where it takes neither.
        hypotheses: what this form requires beyond the statement's own hypotheses.
        counterexample: where it fails, an instance that shows it, with its ratio.
        sense: for rates, and needed there: whether the exponent of lhs against rhs is claimed "at
            most", "at least" or "exactly" one. "lhs = O(rhs)" means at most one where rhs grows and
            at least one where it shrinks.
        exponent: for rates: the least and the largest exponent that may be fitted. A claim "at
            most" is also met by a formula that is wrong by a power; outside the band the form is
            inconclusive.
        domains: boxes on which `jaxbounds certify` proves the form.
    """

    name: str
    expected: Status = _BY_KIND
    note: str = ""
    cites: str = ""
    equality: str = ""
    erratum: str = ""
    reading: str = ""
    hypotheses: Hypotheses | None = None
    counterexample: Counterexample | None = None
    sense: Sense | None = None
    exponent: tuple[float, float] | None = None
    domains: tuple[Domain, ...] = ()

    refused: str = field(default="", init=False, repr=False)
    recorded: bool = field(default=False, init=False, repr=False)
    """Whether the declaration says what is expected; its statement fills it."""
    filled: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse fields of other types."""
        if isinstance(self.counterexample, Counterexample) and self.counterexample.refused:
            raise Refused(f"form {self.name!r}: {self.counterexample.refused}")
        refuse_other_types(self, f"form {self.name!r}")

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> "Form":
        """The placeholder of a refused declaration, while a file is loaded."""
        made = cls(name="printed")
        object.__setattr__(made, "refused", str(problem))
        return made

    @property
    def is_twin(self) -> bool:
        """Whether the form is a false twin of the claim, which no paper prints."""
        return re.match(r"false\b", self.name) is not None

    @property
    def file_name(self) -> str:
        """Return the form's name for files: letters, digits, points and dashes, cut if long."""
        return shortened(re.sub(r"[^A-Za-z0-9.]+", "-", self.name), LONGEST)
