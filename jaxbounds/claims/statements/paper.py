"""A paper as data: its statements, its errata, and the list of unchecked items."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from jaxbounds.claims.refused import alone, is_collecting
from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.item import Items
from jaxbounds.claims.statements.statement import Statement
from jaxbounds.ground.exceptions import Refused

Weight = Literal["false", "gap", "reading", "typo", "undecidable"]
"""The classes of errata, the most serious class first. The library calls a finding outside of these
classes a remark.

- `false`: the claim is false as printed, under every hypothesis of the paper and every reading.
- `gap`: a step of a proof does not follow from the steps before, and the claim may still be true.
- `reading`: the claim has two readings; it is false on one and true on the other.
- `typo`: a misprint, such as a wrong sign or index.
- `undecidable`: the finding depends on a single character that is unclear in the text that we read.
"""


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """A false sentence or formula of a paper, with its correction.

    Attributes:
        id: the name of the erratum, such as "E1", unique within the paper.
        where: the place of the wrong sentence or display itself, not of a theorem near it.
        kind: the class of the erratum, such as "false" or "typo".
        quote: the wrong words or the wrong formula, as the paper prints them.
        text: three sentences: the printed claim, the reason why it is false, and the right claim.
        detail: numbers, constructions and smaller mistakes that belong to the erratum; may be
            empty.
        readings: for kind "reading", two texts: the reading on which the claim is false, then the
            reading on which it is true.
        consequence: the changes that the erratum causes in later results of the paper.
        main: the effect on the paper's main theorems: "survive", or "changed to ...".
        evidence: the id of the statement whose failing form (version of the claim) shows the error,
            or the way in which we found the error.
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
        refuse_other_types(self, f"erratum {self.id}")
        if not self.quote.strip():
            raise Refused(
                f"erratum {self.id} has quote={self.quote!r}, expected a nonempty text. Try the "
                "paper's own words"
            )
        if not self.main.startswith(("survive", "changed to ")):
            raise Refused(
                f"erratum {self.id} has main={self.main!r}, expected the effect on the main "
                "theorems. Try 'survive' or 'changed to ...'"
            )
        if (self.kind == "reading") != (len(self.readings) == 2):
            raise Refused(
                f"erratum {self.id} has kind={self.kind!r}, readings={self.readings}: kind "
                f"'reading' needs two readings, and every other kind none. Try readings=(false, "
                f"true)"
            )

    @property
    def changes_main(self) -> bool:
        """Whether the erratum changes a main theorem of the paper."""
        return self.main.startswith("changed to ")


def _each_alone(paper: "Paper") -> Iterator[Statement]:
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
            about = {"id": name, "label": s.label, "formula": s.formula, "source": s.source,
                     "forms": s.forms}  # fmt: skip
            with alone():
                s = Statement.refused_as(Refused(said), about)
            object.__setattr__(s, "refused", said)
        yield s


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper; `jaxbounds verify FILE` and `jaxbounds.verify` read the module's variable PAPER.

    ```python
    PAPER = jb.Paper(id="mine", title="My paper", statements=(jb.Statement(
        id="mine.cs", label="Lemma 1", formula="|x.y| <= |x| |y|", kind="inequality",
        sample=draw_pair, evaluate=both_sides, sizes=({"d": 2},), judges=(product_of_norms,),
        forms=(jb.Form(name="printed", equality="y = x"),), control="half the right side"),))
    ```

    `jaxbounds new FOLDER` starts a paper with all its parts; `jaxbounds guide` explains the parts.

    Attributes:
        id: the paper's name, which is the part of its statements' ids before the first dot.
        title: the title of the paper as printed.
        citation: the authors and the venue of the paper.
        statements: the statements of the paper, in the paper's order.
        errata: the errata, that is, the errors of the paper.
        survives: one paragraph that says which results remain true in spite of the errata.
        remarks: a dictionary from a place in the paper to a finding about this place that is not an
            error of the paper.
        items: a dictionary from each numbered item or display to the statements, errata or
            functions about it, or to the reason why the library has no statement.
        contents: the numbered items of the source, as `jaxbounds new FOLDER --from paper.tex` lists
            them. An item counts as checked if a statement has its id, or if `items` has an entry
            for it.
        unchecked: a dict from an item's label in print to the reason why no statement checks the
            item.
        unjudged: a dictionary from each reason to names of public functions of the paper's modules
            that no statement judges for this reason. A function's name begins with the name of its
            module ("model.head_norm").
        codes: an explanation of each short name in forms (versions of claims) and notes ("S6",
            "DM1"), in a sentence or two; `jaxbounds show <paper>.S6` prints it. Ids of errata need
            no entry, because the erratum's text explains the id.
        edition: the edition of the paper ("AISTATS 2024") in which the errata occur.
        links: a dictionary from a name ("arXiv", "DOI") to the address of the paper's text.
        bibtex: a BibTeX entry that cites the paper.
        folder: the folder of the paper's records; the loader of the paper's file sets it.
        depends: files, folders or texts on which every verdict depends, although a run cannot
            notice it; see `Statement`.
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
        refuse_other_types(self, f"paper {self.id!r}")
        if self.errata and not self.survives.strip():
            raise Refused(
                f"paper={self.id!r} has errata, but an empty survives={self.survives!r}. Try "
                f"survives= with a paragraph on the results that remain true"
            )
        if is_collecting():
            object.__setattr__(self, "statements", tuple(_each_alone(self)))
        ids = [s.id for s in self.statements]
        repeated = sorted({i for i in ids if ids.count(i) > 1})
        if repeated:
            raise Refused(
                f"paper={self.id!r} has several statements of id={', '.join(repeated)}. "
                "Try a different id for each"
            )
        ids += [item.id for item in self.contents]
        strangers = [i for i in dict.fromkeys(ids) if i.split(".", 1)[0] != self.id]
        if strangers:
            raise Refused(
                f"paper={self.id!r} has statements of another paper: {', '.join(strangers)}. "
                f"Try ids that start with '{self.id}.'"
            )
        known = {e.id for e in self.errata}
        if len(known) < len(self.errata):
            raise Refused(
                f"paper={self.id!r} has two errata with one id. Try a different id for each erratum"
            )
        for s in self.statements:
            for form in s.forms:
                if form.erratum and form.erratum not in known:
                    raise Refused(
                        f"{s.id} ({form.name}) cites unknown erratum={form.erratum}. "
                        "Try an id of the paper's errata"
                    )

    @property
    def refused(self) -> tuple[str, ...]:
        """Return a sentence for each refused statement; empty for a paper that was not loaded."""
        return tuple(s.refused for s in self.statements if s.refused)

    @property
    def by_weight(self) -> tuple[Erratum, ...]:
        """Return the errata, the most serious class first; errata of one class keep their order."""
        weights = get_args(Weight)
        return tuple(sorted(self.errata, key=lambda erratum: weights.index(erratum.kind)))
