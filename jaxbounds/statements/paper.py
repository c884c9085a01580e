"""A paper as data: its statements, its errata, and what is not checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from jaxbounds.statements.statement import Statement


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """A place where the paper's text is wrong, inconsistent, or does not say what it needs.

    Attributes:
        id: "E1", unique within the paper.
        where: the place in the paper.
        kind: "false", "proof", "inconsistent", "typo", "underspecified" or "not reproduced".
        text: what is wrong and what is right.
        consequence: what it changes downstream.
        evidence: the id of the statement whose failing form shows it, or how it was found.
    """

    id: str
    where: str
    kind: Literal["false", "proof", "inconsistent", "typo", "underspecified", "not reproduced"]
    text: str
    consequence: str
    evidence: str


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper.

    Attributes:
        id: the part of its statements' ids before the first dot.
        title: as printed.
        citation: authors and venue.
        statements: in the paper's order.
        errata: what is wrong in it.
        unchecked: what is not checked, by its label in print, each with the reason.
    """

    id: str
    title: str
    citation: str = ""
    statements: tuple[Statement, ...]
    errata: tuple[Erratum, ...] = ()
    unchecked: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse statements of another paper, repeated ids and errata that nothing explains."""
        if isinstance(self.statements, Statement):
            raise ValueError("statements must be a tuple; a single one needs a comma: (STATEMENT,)")
        kinds = get_args(Erratum.__annotations__["kind"])
        for erratum in self.errata:
            if erratum.kind not in kinds:
                raise ValueError(f"erratum {erratum.id}: kind must be one of {', '.join(kinds)}")
        ids = [s.id for s in self.statements]
        repeated = sorted({i for i in ids if ids.count(i) > 1})
        if repeated:
            raise ValueError(f"paper {self.id!r} has more than one statement {', '.join(repeated)}")
        strangers = [i for i in ids if i.split(".", 1)[0] != self.id]
        if strangers:
            raise ValueError(f"ids in paper {self.id!r} must start with it: {', '.join(strangers)}")
        known = {e.id for e in self.errata}
        for s in self.statements:
            for form in s.forms:
                if form.erratum and form.erratum not in known:
                    raise ValueError(f"{s.id} ({form.name}) cites unknown erratum {form.erratum}")
