"""A paper as data: its statements, its errata, and what is not checked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.item import Items
from jaxbounds.claims.statements.refused import alone, is_collecting
from jaxbounds.claims.statements.statement import Statement
from jaxbounds.ground.exceptions import Refused

Weight = Literal["false", "gap", "reading", "typo", "undecidable"]
"""How heavy an erratum is, the heaviest first: false as printed, under all hypotheses that the
paper makes anywhere and on no charitable reading; a step of a proof that does not follow while the
statement may stand; false on one reading and true on another; a slip of the pen; resting on a glyph
of the text at hand. What is none of these is a remark."""


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """False sentence or formula of a paper, with its correction.

    Attributes:
        id: "E1", unique within the paper.
        where: the sentence or display that is wrong: where it stands, not the theorem near it.
        kind: its weight.
        quote: the words or the formula, as the text has them.
        text: three sentences: what the text prints, why it is false, what is right.
        detail: numbers, constructions and lesser slips behind it; may be empty.
        readings: for kind "reading": the reading that is false, then the one that is true.
        consequence: what it changes downstream.
        main: what becomes of the paper's main theorems: "survive", or "changed to ...".
        evidence: the id of the statement whose failing form shows it, or how it was found.
    """

    id: str
    where: str
    kind: Weight
    quote: str
    text: str
    detail: str = ""
    readings: tuple[str, ...] = ()
    consequence: str
    main: str
    evidence: str

    def __post_init__(self) -> None:
        """Refuse other types, words that are not quoted, and readings that do not fit."""
        refuse_other_types(self, f"erratum {self.id}")
        if not self.quote.strip():
            raise Refused(f"erratum {self.id} quotes nothing: give the paper's own words")
        if not self.main.startswith(("survive", "changed to ")):
            raise Refused(f"erratum {self.id}: main must be 'survive...' or 'changed to ...'")
        if (self.kind == "reading") != (len(self.readings) == 2):
            raise Refused(f"erratum {self.id}: two readings are needed for kind 'reading' alone")

    @property
    def changes_main(self) -> bool:
        """Whether it changes a main theorem of the paper."""
        return self.main.startswith("changed to ")


def _each_alone(paper: "Paper") -> Iterator[Statement]:
    """The statements; one that does not fit into the paper is refused, under an id of its own."""
    taken, known = set[str](), {erratum.id for erratum in paper.errata}
    for number, s in enumerate(paper.statements, 1):
        said, name = s.refused, s.id
        cited = [f"form {f.name!r} cites unknown erratum {f.erratum}" for f in s.forms
                 if f.erratum and f.erratum not in known]  # fmt: skip
        if name.split(".", 1)[0] != paper.id:
            said = said or f"statement {name!r}: the id must start with {paper.id!r} and a point"
            name = f"{paper.id}.refused-{number}"
        elif name in taken:
            said = said or f"statement {name!r}: the paper has another statement of that id"
            name = f"{paper.id}.refused-{number}"
        elif cited:
            said = said or f"statement {name!r}: {cited[0]}"
        taken.add(name)
        if said and (name != s.id or not s.refused):
            about = {"id": name, "label": s.label, "formula": s.formula, "source": s.source}
            with alone():
                s = Statement.refused_as(Refused(said), about)
            object.__setattr__(s, "refused", said)
        yield s


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper: what a module names PAPER, for `jaxbounds verify FILE` and `jaxbounds.verify`.

    ```python
    PAPER = jb.Paper(id="mine", title="My paper", statements=(jb.Statement(
        id="mine.cs", label="Lemma 1", formula="|x.y| <= |x| |y|", kind="inequality",
        sample=draw_pair, evaluate=both_sides, sizes=({"d": 2},), judges=(product_of_norms,),
        forms=(jb.Form(name="printed", equality="y = x"),), control="half the right side"),))
    ```

    `jaxbounds new FOLDER` starts one with all its parts, `jaxbounds guide` explains them.

    Attributes:
        id: the part of its statements' ids before the first dot.
        title: as printed.
        citation: authors and venue.
        statements: in the paper's order.
        errata: what is wrong in it.
        survives: one paragraph: what of the paper stands, whatever the errata say.
        remarks: what is no erratum and yet worth knowing, by its place.
        items: every numbered item and display: the statements, errata or functions about it, or why
            there is none.
        contents: the numbered items of the source, as `jaxbounds new FOLDER --from paper.tex` lists
            them; a statement with the id of an item, or an entry of `items`, covers it.
        unchecked: what is not checked, by its label in print, each with the reason.
        unjudged: public functions of the paper's modules that no statement judges: for each reason
            their full names within the paper ("model.head_norm").
        codes: a sentence or two for each short name in names of forms and in notes ("S6", "DM1");
            `jaxbounds show <paper>.S6` prints them. Errata explain their own ids.
        edition: the text that was read, as errata rest on words ("AISTATS 2024").
        links: where it can be read, by name ("arXiv", "DOI").
        bibtex: an entry, to cite it.
        folder: where its records are kept; found by whoever loads it from a file.
        depends: what all its verdicts depend on and no run can see; see `Statement`.
    """

    id: str
    title: str
    citation: str = ""
    statements: tuple[Statement, ...]
    errata: tuple[Erratum, ...] = ()
    survives: str = ""
    remarks: Mapping[str, str] = field(default_factory=dict)
    items: Mapping[str, str] = field(default_factory=dict)
    contents: Items = field(default_factory=Items)
    unchecked: Mapping[str, str] = field(default_factory=dict)
    unjudged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    edition: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    bibtex: str = ""
    folder: Path | None = None
    depends: tuple[str | Path, ...] = ()

    def __post_init__(self) -> None:
        """Refuse statements of another paper, repeated ids and errata that nothing explains."""
        refuse_other_types(self, f"paper {self.id!r}")
        if self.errata and not self.survives.strip():
            raise Refused(f"paper {self.id!r} has errata: say in `survives` what stands")
        if is_collecting():
            object.__setattr__(self, "statements", tuple(_each_alone(self)))
        ids = [s.id for s in self.statements]
        repeated = sorted({i for i in ids if ids.count(i) > 1})
        if repeated:
            raise Refused(f"paper {self.id!r} has more than one statement {', '.join(repeated)}")
        ids += [item.id for item in self.contents]
        strangers = [i for i in dict.fromkeys(ids) if i.split(".", 1)[0] != self.id]
        if strangers:
            raise Refused(f"ids in paper {self.id!r} must start with it: {', '.join(strangers)}")
        known = {e.id for e in self.errata}
        if len(known) < len(self.errata):
            raise Refused(f"paper {self.id!r} has more than one erratum of an id")
        for s in self.statements:
            for form in s.forms:
                if form.erratum and form.erratum not in known:
                    raise Refused(f"{s.id} ({form.name}) cites unknown erratum {form.erratum}")

    @property
    def refused(self) -> tuple[str, ...]:
        """Why statements are ill formed, each with its id; empty unless a file was loaded."""
        return tuple(s.refused for s in self.statements if s.refused)

    @property
    def by_weight(self) -> tuple[Erratum, ...]:
        """The errata, the heaviest first; of one weight as they stand."""
        weights = get_args(Weight)
        return tuple(sorted(self.errata, key=lambda erratum: weights.index(erratum.kind)))
