"""Forms of a claim: right-hand sides as printed, derived, corrected or sharpened."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jax.typing import ArrayLike

from jaxbounds.claims.refused import Careful
from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.domain import Domain
from jaxbounds.claims.statements.instance import Hypotheses, Instance, Size
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.text import shortened

LONGEST = 100
"""In file names, an id or the name of a form (version of a claim) has at most this many characters.
Longer names may exceed a limit of the file system."""
Status = Literal["holds", "fails", "vacuous", "inconclusive", "consistent", "inconsistent", "error"]
REJECTED: tuple[Status, ...] = ("fails", "inconsistent")
"""A verdict with one of these statuses rejects a deliberately false variant of a claim."""
Sense = Literal["at most", "at least", "exactly"]

_BY_KIND: Any = None
"""A placeholder for the default of a field that `Statement` fills according to its kind."""
_BY_STATEMENT: Any = None
"""A placeholder for the default of a field that `Statement` fills from its other fields."""


@dataclass(frozen=True, kw_only=True)
class Counterexample(metaclass=Careful):
    """An instance, small enough to check by hand, on which a form (version of a claim) fails.

    Attributes:
        instance: the inputs, as nested dicts of numbers, lists or arrays.
        size: the static part of the instance: shapes and other numbers, by name. The default is the
            statement's first size; another size need not be among the statement's sizes.
        ratio: the form's ratio on the instance (for `=` the relative difference). If the library
            measures a different ratio on the instance, the instance or the formula contains a
            mistake, and the form is inconclusive.
        meets: `meets(instance, size) -> {hypothesis: bool}` tests the instance against every
            assumption that the paper makes about such inputs, in any section. Each name in the dict
            tells where the paper states the assumption. Every value in the dict must be True.
    """

    instance: Instance
    size: Mapping[str, float] = _BY_STATEMENT
    ratio: float
    meets: Callable[[Instance, Size], Mapping[str, ArrayLike]] | None = None

    refused: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        refuse_other_types(self, "a counterexample")

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> "Counterexample":
        """Return a placeholder for a counterexample that was refused while a file was loaded."""
        made = cls(instance={}, ratio=0.0)
        object.__setattr__(made, "refused", str(problem))
        return made


@dataclass(frozen=True, kw_only=True)
class Form(metaclass=Careful):
    """One right-hand side of a claim: as printed, corrected, or sharpened.

    Attributes:
        name: the name of the form: "printed", "derived", "corrected" or "sharpened", optionally
            followed by a tag ("sharpened S5"). A name that begins with "false" marks a false twin,
            which is a false variant of the claim: the library must refute the twin.
        expected: the status that the verdict on the form should have. The default is "fails" if the
            form stores a counterexample, else "holds" (for rates and limits "consistent").
        note: a proof sketch, or the text of the erratum.
        cites: for a printed form: the display or the sentence of the paper that prints the form.
        equality: a description in words of an instance at which both sides are equal. A form with a
            worst ratio of one, up to the numerical error, holds only if the form names its equality
            case.
        erratum: the id of the paper's erratum that makes the form false ("E1").
        reading: if the erratum has two readings, words that only the form's reading contains. The
            text is empty if the form belongs to neither of the two readings.
        hypotheses: the hypotheses that this form adds to the statement's own hypotheses.
        counterexample: for a form that fails, an instance on which the form fails, with the form's
            ratio on the instance.
        sense: the claim about the exponent of lhs as a power of rhs, which kind "rate" needs: the
            exponent is "at most", "at least" or "exactly" one. For the claim lhs = O(rhs), choose
            "at most" if rhs grows, and "at least" if rhs shrinks.
        exponent: for a rate, the least and the largest fitted exponent that the form accepts. A
            formula that is wrong by a power may still satisfy a claim of the sense "at most". If
            the fitted exponent lies outside the two given exponents, the form is inconclusive.
        domains: the boxes on which `jaxbounds certify` proves the form.
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
    """Whether the paper's file declares the form's status or counterexample."""
    filled: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.counterexample, Counterexample) and self.counterexample.refused:
            raise Refused(f"form {self.name!r}: {self.counterexample.refused}")
        refuse_other_types(self, f"form {self.name!r}")

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> "Form":
        """Return a placeholder for a form that the library refused while a file was loaded."""
        made = cls(name="printed")
        object.__setattr__(made, "refused", str(problem))
        return made

    @property
    def is_twin(self) -> bool:
        """Whether the form is a false twin: a false variant of the claim that no paper prints."""
        return re.match(r"false\b", self.name) is not None

    @property
    def file_name(self) -> str:
        """Return the form's name for files: letters, digits, points and dashes, cut if long."""
        return shortened(re.sub(r"[^A-Za-z0-9.]+", "-", self.name), LONGEST)
