"""Declare one numbered claim as data, and check that the declaration is well formed.

A statement defines how to draw instances that satisfy its hypotheses, and names the public
functions that it judges.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from jaxbounds.claims.refused import Careful
from jaxbounds.claims.sets import Over, Set
from jaxbounds.claims.sets.over import refuse_other_sets
from jaxbounds.claims.statements.caller import Line, caller
from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.form import LONGEST, Form
from jaxbounds.claims.statements.instance import Hypotheses, Instance, Sampler, Size
from jaxbounds.claims.statements.judged import Judged, full_name
from jaxbounds.claims.statements.kinds import (
    DRAWN,
    FITTED,
    TRAITS,
    Estimate,
    Kind,
    Relation,
    Search,
)
from jaxbounds.claims.statements.over import Drawn, Projected, Within
from jaxbounds.claims.statements.problems import ID, NAMED, container_problems, problems
from jaxbounds.claims.statements.sides import Sides
from jaxbounds.ground.exceptions import Refused

Witness = Callable[..., Any] | Mapping[str, Any] | float
"""Values for the entries whose existence a claim asserts (`there_is`), or a function that returns
these values."""

ENGINES_CONTROL: Mapping[bool | str, str] = {
    True: "the right side, scaled until the worst instance exceeds it by 1%",
    False: "the right side, scaled by 1%",
    "limit": "the right side, moved by twice the largest distance of the sides",
    "rate": "the right side to the power that puts the fitted exponent at two, or at one half",
}
"""A dictionary with descriptions of the engine's control, a deliberately false variant of the
claim. The keys are True for a bound, False for an equality, "limit" and "rate"."""
TYPED = (
    "id", "label", "formula", "kind", "evaluate", "control", "hypotheses", "cases", "project",
    "search", "relation", "level", "tolerance", "budget", "host", "estimates", "towards",
    "assumptions", "source", "tex", "horizon", "enumerates", "depends", "witness",
)  # fmt: skip
"""The fields with annotated types that `refuse_other_types` checks; the other fields have their own
checks."""
NO_ID = "refused.statement"
"""The id of a placeholder whose own id is unusable; the paper then gives the placeholder another
id.
"""
ALONE = "alone"
"""The name of the only entry of an instance, for a claim about sizes alone; a counterexample omits
this entry."""
_BY_KIND: Any = None
"""A placeholder for the default of a field that `Statement.__post_init__` fills, depending on the
kind of the claim."""


@dataclass(frozen=True, kw_only=True)
class Budget(metaclass=Careful):
    """The numbers of random instances and search steps for each size of a statement.

    Attributes:
        samples: the number of random instances drawn from each sampler.
        restarts: the number of starting points of the search for each form (version of the claim).
        steps: the number of steps of the search from each starting point.
        batch: the number of instances evaluated at once; a smaller number needs less memory.
    """

    samples: int = 256
    restarts: int = 12
    steps: int = 250
    batch: int = 64

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> Any:
        """Return the exception, so that the statement with this budget can name it."""
        return problem

    def scaled(self, factor: float) -> "Budget":
        """Return a budget with `factor` times the samples and restarts, at least one of each."""
        return Budget(
            samples=max(1, round(self.samples * factor)),
            restarts=max(1, round(self.restarts * factor)) if self.restarts else 0,
            steps=self.steps,
            batch=self.batch,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Statement(metaclass=Careful):
    """One numbered claim of a paper.

    Attributes:
        id: the name of the statement, "<paper>.<name>", in lower case ("multihead.cor1.3").
        label: the label in print, from the published version ("Corollary 1 (3)").
        formula: the statement's claim in one line of plain text.
        tex: the claim in LaTeX, without dollar signs, for pages.
        kind: the kind of claim, which decides how the engine reaches a verdict (see
            `jaxbounds.falsify`).
        evaluate: `evaluate(instance, size) -> Sides`, pure; JAX can `jit` and `vmap` it unless
            `host` is set. `evaluate` computes both compared sides.
        judges: the public functions that `evaluate` calls and that the verdict is about: if one of
            them were slightly wrong, some verdict would change. A judged function has a name in a
            module or class; a lambda or a partial application has none.
        host: whether `evaluate` must run as plain Python on the host, for example because it loops
            in Python or enumerates a class. If True, the engine calls `evaluate` with NumPy arrays,
            one instance at a time.
        over: the sets, keyed by the names of the entries of an instance: {"x": jb.Ball(1, "d")}.
            The engine draws each entry from its set, projects the entry onto the set, and treats
            membership in the set as a hypothesis. Entries that `sample` draws replace the entries
            drawn from sets. The engine uses `project` and `hypotheses` in addition to the sets. For
            a claim about sizes alone, with one instance for each size, set `over={}`.
        there_is: the sets of the entries whose existence the claim asserts: "for each instance of
            `over` there is ... such that". An inner search looks for the best entries, for each
            form (version of the claim) and instance, and stores them with the instance. If the
            search finds no entries that satisfy the claim, the form is inconclusive. The form fails
            only if the sets are finite and the search tried all points. If the relation is `=`, the
            engine evaluates the control (the false variant) at the form's best entries.
        witness: a start of the inner search, in addition to the search's own starts: a dict of the
            entries of `there_is`, or a function `witness(instance, size)` that returns the dict. An
            instance with a single entry needs no name for the entry. A wrong witness costs time,
            but cannot change the verdict.
        estimates: the sides that a search like `jb.supremum` or `jb.infimum` only estimates, from
            "below" or "above": {"rhs": "below"}. A form never fails if an error of the estimate
            could explain the violation.
        towards: for kind "limit", a dict from the size that tends to a limit to this limit: {"n":
            math.inf} or {"eps": 0}.
        sample: `sample(key, size) -> Instance`, or a dict from names to samplers; the verdict
            reports the worst ratio of each sampler. `sample` may be empty if `cases` or `over` is
            given.
        cases: a function `cases(size) -> Instance`, which returns chosen instances, or all
            instances of a finite class, stacked along a leading axis.
        sizes: the sizes to try, smallest first; each size is a dict from names to shapes and other
            static numbers.
        forms: the forms (versions of the claim), each with a right-hand side for the same left
            side.
        control: the deliberately false variant in words, which `evaluate` returns as
            `rhs["control"]`. The verdict on a statement is never `holds` unless the engine rejects
            the control. The default control scales the right side until the worst instance's left
            side exceeds the right side by 1%. For a limit, the default control shifts the right
            side; for a rate, it raises the right side to a power.
        hypotheses: `hypotheses(instance, size) -> {name: bool}`; an instance is evidence only if
            all values are True.
        assumptions: the hypotheses of the claim in words.
        project: `project(instance, size) -> Instance` maps an instance to a nearby instance that
            satisfies the hypotheses, after a step of the search.
        search: the way to search instances: "gradient" ascent on log(lhs/rhs), "random" moves, or
            "none". The default of `search` is "gradient" for inequalities and "none" for other
            kinds.
        relation: the relation between the sides: "<=", ">=", "=" or "->". The default is "=" for
            identities and constructions, "->" for limits, and "<=" for other kinds.
        strict: whether the claimed inequality is strict. A strict inequality does not hold if both
            sides are equal at some instance.
        tolerance: the relative tolerance of the comparison of both sides, at most 1e-3. The default
            is 1e-9 for `<=` and `>=`, and 1e-10 for `=`.
        level: the probability delta with which the claim may fail, for kind "probability".
        budget: the numbers of random draws, of restarts and of steps of the search. The default
            budget is `Budget()`, with 2000 samples for probabilities and expectations.
        source: the claim's place in the paper, with the numbers of appendix items that restate the
            claim.
        horizon: the name of the size that is the number of steps of a trajectory.
        enumerates: the name of the finite class whose members `cases` returns completely ("all
            words of length up to 6"); empty if `cases` returns examples only.
        depends: files, folders or texts on which the verdict depends and which the run does not see
            being read. A file may be one that C code opens, such as HDF5; a text may be the version
            of a program. The run measures the statement again if a file or a text changes.
    """

    id: str
    label: str
    formula: str
    kind: Kind
    evaluate: Callable[[Instance, Size], Sides]
    forms: tuple[Form, ...]
    sizes: tuple[Mapping[str, float], ...]
    control: str = ""
    judges: tuple[Judged, ...] = ()
    host: bool = False
    over: Over | Mapping[str, Set | Mapping[str, Any]] | None = None
    there_is: Over | Mapping[str, Set | Mapping[str, Any]] | None = None
    witness: Witness | None = None
    estimates: Mapping[Literal["lhs", "rhs"], Estimate] = field(default_factory=dict)
    towards: Mapping[str, float] = field(default_factory=dict)
    sample: Sampler | Mapping[str, Sampler] = field(default_factory=dict)
    cases: Callable[[Size], Instance] | None = None
    hypotheses: Hypotheses | None = None
    assumptions: str = ""
    project: Callable[[Instance, Size], Instance] | None = None
    search: Search = _BY_KIND
    relation: Relation = _BY_KIND
    strict: bool = False
    tolerance: float = _BY_KIND
    level: float | None = None
    budget: Budget = _BY_KIND
    source: str = ""
    tex: str = ""
    horizon: str = ""
    enumerates: str = ""
    depends: tuple[str | Path, ...] = ()
    refused: str = field(default="", init=False, repr=False)
    """The reason of the refusal, in a placeholder for a refused statement; else empty."""
    written_at: ClassVar[Line | None] = None
    """The line of the user's code that declares the statement; None if the line is unknown."""

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> "Statement":
        """Return a placeholder with a refused statement's id, forms (claim versions) and reason."""
        words = {name: given.get(name) for name in ("id", "label", "formula", "source")}
        texts = {name: value for name, value in words.items() if isinstance(value, str)}
        name = texts.get("id", "")
        known = re.fullmatch(ID, name) is not None and len(name) <= LONGEST
        made = cls(
            id=name if known else NO_ID, label=texts.get("label", ""), kind="identity",
            formula=texts.get("formula", ""), source=texts.get("source", ""), evaluate=_never,
            cases=lambda size: {ALONE: np.zeros(1, int)}, sizes=({},),
            forms=_blank_forms(given.get("forms")),
        )  # fmt: skip
        said = str(problem) if repr(name) in str(problem) else f"statement {name!r}: {problem}"
        object.__setattr__(made, "refused", said)
        return made

    def __post_init__(self) -> None:
        object.__setattr__(self, "written_at", caller())
        refuse_other_types(self, f"statement {self.id!r}", *TYPED)
        for form in self.forms if isinstance(self.forms, tuple) else ():
            if isinstance(form, Form) and form.refused:
                raise Refused(f"statement {self.id!r}: {form.refused}")
        fill = lambda name, value: object.__setattr__(self, name, value)
        if callable(self.sample):
            fill("sample", {"sample": self.sample})
        try:
            _take_sets(self)
        except (TypeError, ValueError) as problem:
            kind = TypeError if isinstance(problem, TypeError) else Refused
            raise kind(f"statement {self.id!r}: {problem}") from problem
        fill("sample", MappingProxyType(self.samplers))
        containers = list(container_problems(self))
        if containers:
            raise Refused(f"statement {self.id!r} is ill formed: " + "; ".join(containers))
        usual = "consistent" if self.kind in FITTED else "holds"
        fill("sizes", tuple(map(Size, self.sizes)))
        fill("forms", tuple(_filled(form, usual, self.sizes) for form in self.forms))
        if self.budget is None:
            fill("budget", Budget(samples=2000) if self.kind in DRAWN else Budget())
        if self.search is None:
            searched = self.kind == "inequality" and not self.host and not self.enumerates
            fill("search", "gradient" if searched else "none")
        if self.relation is None:
            fill("relation", TRAITS[self.kind].relation if self.kind in TRAITS else "<=")
        if self.tolerance is None:
            fill("tolerance", 1e-9 if self.is_bound else 1e-10)
        found = list(problems(self))
        if found:
            raise Refused(f"statement {self.id!r} is ill formed: " + "; ".join(found))

    @property
    def paper(self) -> str:
        """The paper's id, which is the part of the statement's id before the first dot."""
        return self.id.split(".", 1)[0]

    @property
    def samplers(self) -> dict[str, Sampler]:
        """A dict from names to samplers; a single sampler has the name "sample"."""
        return {"sample": self.sample} if callable(self.sample) else dict(self.sample)

    @property
    def control_in_words(self) -> str:
        """A description of the control (a deliberately false variant of the claim)."""
        own = ENGINES_CONTROL.get(self.kind, ENGINES_CONTROL[self.is_bound])
        return self.control.strip() or own

    @property
    def is_bound(self) -> bool:
        """Whether the claim is a bound: one side is at most the other."""
        return self.relation in ("<=", ">=")

    @property
    def unrefutable(self) -> bool:
        """Whether an estimated side may be wrong in the direction that causes a violation.

        A violation then does not refute the claim.
        """
        larger = "rhs" if self.relation == "<=" else "lhs"
        return any(
            word == ("below" if side == larger else "above")
            for side, word in self.estimates.items()
        )

    def as_given(self) -> "Statement":
        """Return the claim with the sets of `there_is` moved into `over`; `there_is` is None."""
        if self.there_is is None:
            return self
        sets = {**(self.over or {}), **self.there_is}
        return replace(self, over=sets, there_is=None, witness=None)

    @property
    def judged(self) -> tuple[str, ...]:
        """The full names of the functions that the statement judges."""
        return tuple(map(full_name, self.judges))

    def form(self, name: str) -> Form:
        """Return the form with the name `name`.

        Raises:
            Refused: if no form has the name `name`; the message lists all forms.
        """
        for form in self.forms:
            if form.name == name:
                return form
        names = ", ".join(form.name for form in self.forms)
        raise Refused(f"{self.id} has no form={name!r}. Try one of: {names}")


def _blank_forms(given: Any) -> tuple[Form, ...]:
    forms = [f for f in given if isinstance(f, Form)] if isinstance(given, tuple | list) else []
    named = {f.file_name: Form(name=f.name) for f in forms if re.match(NAMED, f.name)}
    if all(form.is_twin for form in named.values()):
        named = {"printed": Form(name="printed")} | named
    return tuple(named.values())


def _never(instance: Instance, size: Size) -> Sides:
    raise Refused(
        f"size={size!r}: the statement is ill formed, so the library cannot "
        f"measure it. Try to mend the declaration"
    )


def _filled(form: Form, usual: str, sizes: Sequence[Mapping[str, float]]) -> Form:
    stored = form.counterexample
    if stored is not None and stored.size is None and sizes:
        stored = replace(stored, size=sizes[0])
    refuted = "inconsistent" if usual == "consistent" else "fails"
    expected: Any = form.expected or (refuted if stored or form.is_twin else usual)
    made = replace(form, expected=expected, counterexample=stored)
    said = form.recorded if form.filled else bool(form.expected or stored) and not form.is_twin
    object.__setattr__(made, "recorded", said)
    object.__setattr__(made, "filled", True)
    return made


def _take_sets(s: Statement) -> None:
    fill = lambda name, value: object.__setattr__(s, name, value)
    if s.over is not None and not s.over:
        _take_nothing(s)
    for name in ("over", "there_is"):
        sets = getattr(s, name)
        if sets is not None:
            refuse_other_sets(name, sets)
            fill(name, Over(sets))
    parts = [part for part in (s.over, s.there_is) if part]
    if not parts:
        return
    sets = Over({name: one for part in parts for name, one in part.items()})
    law = s.kind in DRAWN
    # In a copy (`dataclasses.replace`) the fields are filled already, perhaps from other sets.
    bare: Callable[[Any], Any] = lambda own: (
        own.own if isinstance(own, Drawn | Within | Projected) else own
    )
    samplers: dict[str, Any] = s.samplers or ({} if law else {"over": None})
    fill("sample", {name: Drawn(sets, bare(own), law) for name, own in samplers.items()})
    fill("hypotheses", Within(sets, bare(s.hypotheses)))
    fill("project", Projected(sets, bare(s.project)))


def _take_nothing(s: Statement) -> None:
    fill = lambda name, value: object.__setattr__(s, name, value)
    fill("over", None)
    if not s.samplers and s.cases is None and s.there_is is None:
        fill("cases", lambda size: {ALONE: np.zeros(1, int)})
        fill("enumerates", s.enumerates or "the one instance of each size")
