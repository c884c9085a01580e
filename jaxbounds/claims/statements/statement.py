"""Declare one numbered claim as data, and check that the declaration is well formed.

A statement defines how to draw instances that satisfy its hypotheses, and names the public
functions that it judges. The statement's `evaluate` calls the judged functions to measure both
sides of the claim. `jaxbounds.falsify` turns a statement into a `Verdict`. This module stores and
checks the declaration of the statement, and judges nothing.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from jaxbounds.claims.refused import Careful
from jaxbounds.claims.sets import Over, Set
from jaxbounds.claims.sets.over import refuse_other_sets
from jaxbounds.claims.statements.caller import Line, caller
from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.form import LONGEST, REJECTED, Form, Sense
from jaxbounds.claims.statements.instance import Hypotheses, Instance, Sampler, Size
from jaxbounds.claims.statements.judged import Judged, full_name, owner_of
from jaxbounds.claims.statements.kinds import (
    DRAWN,
    EXACT,
    FITTED,
    SCALED,
    TRAITS,
    Kind,
    Relation,
)
from jaxbounds.claims.statements.over import Drawn, Projected, Within
from jaxbounds.claims.statements.sides import CONTROL, Sides
from jaxbounds.ground.exceptions import Refused

Estimate = Literal["below", "above"]
FEWEST = 3
"""A limit needs at least this many values of the parameter that tends to its limit. A larger number
makes the fitted limit more reliable, but a statement must then declare more sizes.
"""
Search = Literal["gradient", "random", "none"]
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
WIDEST = 1e-3
"""Largest relative tolerance that a statement may declare; rounding errors are smaller than this
value. If this value were larger, a statement could declare a tolerance that hides violations."""
TYPED = (
    "id", "label", "formula", "kind", "evaluate", "control", "hypotheses", "cases", "project",
    "search", "relation", "level", "tolerance", "budget", "host", "estimates", "towards",
    "assumptions", "source", "tex", "horizon", "enumerates", "depends", "witness",
)  # fmt: skip
"""The fields with annotated types that `refuse_other_types` checks; the other fields have their own
checks."""
ID = r"[a-z][a-z0-9_]*(\.[a-z0-9_\-]+)+"
NAMED = r"(printed|corrected|sharpened|derived|false)\b"
"""A pattern for the beginning of the name of a form (version of a claim)."""
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
            them were slightly wrong, some verdict would change. A judged function has its own name
            in a module or class, so it is neither a lambda nor a partial application.
        host: whether `evaluate` must run as plain Python on the host, for example because it loops
            in Python or enumerates a class. If True, the engine calls `evaluate` with NumPy arrays,
            one instance at a time.
        over: the sets, keyed by the names of the entries of an instance: {"x": jb.Ball(1, "d")}.
            The engine draws each entry from its set, projects the entry onto the set, and treats
            membership in the set as a hypothesis. If `sample` is also given, its entries replace
            the entries drawn from sets. If `project` or `hypotheses` is also given, the engine uses
            it in addition to the sets. For a claim about sizes alone, with one instance for each
            size, set `over={}`.
        there_is: the sets of the entries whose existence the claim asserts: "for each instance of
            `over` there is ... such that". An inner search looks for the best entries, for each
            form (version of the claim) and instance, and stores them with the instance. If the
            search finds no entries that satisfy the claim, the form is inconclusive. The form fails
            only if the sets are finite and the search tried all points. If the relation is `=`, the
            engine evaluates the control (the false variant) at the entries that the search found
            for the form.
        witness: a start of the inner search, beside the search's own starts: a dict of the entries
            of `there_is`, or a function `witness(instance, size)` that returns the dict. An
            instance with a single entry needs no name for the entry. A wrong witness cannot change
            the verdict; it only costs time.
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
        forms: the right-hand sides with which the left side is compared.
        control: the deliberately false variant in words, which `evaluate` returns as
            `rhs["control"]`. The verdict on a statement is never `holds` unless the engine rejects
            the control. The default control scales the right side until the worst instance's left
            side exceeds the right side by 1%. For a limit, the default control shifts the right
            side; for a rate, it raises the right side to a power.
        hypotheses: `hypotheses(instance, size) -> {name: bool}`; an instance counts only if it
            satisfies all hypotheses.
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
        horizon: the name of the size that counts the steps of a trajectory.
        enumerates: the name of the finite class whose members `cases` returns completely ("all
            words of length up to 6"); empty if `cases` returns examples only.
        depends: files, folders or texts on which the verdict depends, although a run cannot notice
            it. A file may be one that C code opens, such as HDF5; a text may be the version of a
            program. The run measures the statement again if a file or a text changes.
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
    """The reason of a refusal, in a placeholder made while a file is loaded; else empty."""
    written_at: ClassVar[Line | None] = None
    """The line that declares the statement, outside of the library; None if unknown."""

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> "Statement":
        """Return a placeholder with a refused statement's id, the names of its forms, and a reason.

        A form is one version of the claim.
        """
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
        """Fill the defaults that depend on the kind, and refuse an ill-formed statement."""
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
        containers = list(_container_problems(self))
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
        problems = list(_problems(self))
        if problems:
            raise Refused(f"statement {self.id!r} is ill formed: " + "; ".join(problems))

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
        """The control (a deliberately false variant) in words: the statement's or the engine's."""
        own = ENGINES_CONTROL.get(self.kind, ENGINES_CONTROL[self.is_bound])
        return self.control.strip() or own

    @property
    def is_bound(self) -> bool:
        """Whether the claim is a bound: one side is at most the other."""
        return self.relation in ("<=", ">=")

    @property
    def unrefutable(self) -> bool:
        """Whether an estimated side may be wrong in the direction that causes a violation.

        If the error of an estimated side can cause a violation, a violation does not refute the
        claim.
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
        """Return the form with this name.

        Raises:
            Refused: if no form has that name; the message lists the forms.
        """
        for form in self.forms:
            if form.name == name:
                return form
        names = ", ".join(form.name for form in self.forms)
        raise Refused(f"{self.id} has no form={name!r}. Try one of: {names}")


def _blank_forms(given: Any) -> tuple[Form, ...]:
    """Return forms (versions of the claim) that have only the names of a refused statement's forms.

    The verdict on each returned form says that the run did not judge it.
    """
    forms = [f for f in given if isinstance(f, Form)] if isinstance(given, tuple | list) else []
    named = {f.file_name: Form(name=f.name) for f in forms if re.match(NAMED, f.name)}
    if all(form.is_twin for form in named.values()):
        named = {"printed": Form(name="printed")} | named
    return tuple(named.values())


def two_claims(estimates: Mapping[Any, str], /) -> str:
    """Return advice as text: two claims to write in place of an identity with an estimated side."""
    side, word = next(iter(estimates.items()))
    relation = "<=" if (side == "lhs") == (word == "below") else ">="
    what = "supremum" if word == "below" else "infimum"
    return (
        f'two claims: jb.claim(..., lhs, "{relation}", rhs, estimates={{"{side}": "{word}"}}, '
        f'equality="where the sides agree"), and jb.claim(..., function, "=", value, there_is=..., '
        f"witness=...) for a point at which the function of the {what} has the value"
    )


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
    """Derive the statement's sampler, projection and hypotheses from the statement's sets."""
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
    """Add the instances of a claim about sizes alone: one instance for each size."""
    fill = lambda name, value: object.__setattr__(s, name, value)
    fill("over", None)
    if not s.samplers and s.cases is None and s.there_is is None:
        fill("cases", lambda size: {ALONE: np.zeros(1, int)})
        fill("enumerates", s.enumerates or "the one instance of each size")


def _container_problems(s: Statement) -> Iterable[str]:
    if isinstance(s.forms, Form) or not all(isinstance(form, Form) for form in s.forms):
        yield "forms must be a tuple of Form; a single one needs a comma: (Form(...),)"
    if isinstance(s.sizes, Mapping) or not all(isinstance(size, Mapping) for size in s.sizes):
        yield "sizes must be a tuple of dicts; a single one needs a comma: ({'d': 2},)"
    for size in s.sizes if not isinstance(s.sizes, Mapping) else ():
        for name, value in size.items() if isinstance(size, Mapping) else ():
            if isinstance(value, bool | str) or not hasattr(value, "__float__"):
                yield f"sizes give {name}={value!r:.40}, which must be a number"
    if callable(s.judges) or not all(callable(function) for function in s.judges):
        yield "judges must be a tuple of functions; a single one needs a comma: (bound,)"


def _problems(s: Statement) -> Iterable[str]:
    if not re.fullmatch(ID, s.id):
        small = re.sub(r"[^a-z0-9.]+", "", str(s.id).lower())
        cure = small if re.fullmatch(ID, small) else "paper.name"
        yield f"id={s.id!r}: expected lower case letters, digits and a dot. Try {cure!r}"
    if len(s.id) > LONGEST:
        yield f"the id names files, and has {len(s.id)} characters. Try at most {LONGEST}"
    if s.kind not in get_args(Kind):
        yield f"kind must be one of {', '.join(get_args(Kind))}, got {s.kind!r}"
    if s.search not in get_args(Search):
        yield f"search must be one of {', '.join(get_args(Search))}, got {s.search!r}"
    if s.relation not in get_args(Relation):
        yield f"relation must be '=', '<=' or '>=', got {s.relation!r}"
    yield from _quantifier_problems(s)
    if not s.sizes:
        yield "sizes is empty, expected at least one size. Try ({'T': 2, 'd': 2},)"
    if not s.sample and s.cases is None:
        law = s.kind in DRAWN and s.over
        why = (
            "sample={}: a set has no probability distribution, and this kind needs one. "
            "Try sample=..."
        ) if law else (
            "it has neither sample nor cases nor over, so it has no instance. Try over={...}, or "
            "over={} for a claim about its sizes alone"
        )  # fmt: skip
        yield why
    if s.horizon and any(s.horizon not in size for size in s.sizes):
        yield f"horizon={s.horizon!r} is not in every size. Try one of: {', '.join(s.sizes[0])}"
    if s.enumerates and (s.cases is None or s.sample):
        yield (
            f"enumerates={s.enumerates!r} says that cases returns all members of this class. "
            "Try cases=..., and no sample"
        )
    if s.enumerates and s.search != "none":
        yield (
            f"enumerates={s.enumerates!r} says that cases returns all members of this class, so "
            "no search is needed. Try search='none'"
        )
    if s.host and s.search == "gradient":
        yield "a statement with host=True has no gradient. Try search='random'"
    if s.search == "random" and not s.host and not s.sample:
        yield "search='random' draws its moves from an empty sample. Try sample=..."
    for function in s.judges:
        try:
            owner_of(function)
        except Refused as problem:
            yield str(problem)
    if not s.control.strip() and s.kind not in SCALED:
        yield (
            f"control={s.control!r}: the engine makes a control for the kinds {', '.join(SCALED)} "
            f"alone. Try control='...', the false variant that evaluate returns as rhs['control']"
        )
    if s.kind == "probability" and s.level is None:
        yield "level=None, expected the allowed probability of failure. Try level=0.1"
    elif s.kind != "probability" and s.level is not None:
        yield (
            f"level={s.level} with kind={s.kind!r}, but only a probability has a level. Try "
            "level=None, or kind='probability'"
        )
    elif s.level is not None and not 0 < s.level < 1:
        yield f"level={s.level}: expected a probability of failure between 0 and 1. Try 0.1"
    if not 0 <= s.tolerance <= WIDEST:
        yield (
            f"tolerance={s.tolerance}: expected a relative rounding error of at most {WIDEST:g}. "
            "Try error=... in jb.claim, or Sides(..., error=...), for a larger uncertainty"
        )
    names = [form.name for form in s.forms]
    if not names:
        yield "forms=() is empty. Try forms=(jb.Form(name='printed'),)"
    if len(set(names)) < len(names) or CONTROL in names:
        yield (
            f"form names={names}: expected distinct names other than {CONTROL!r}. "
            "Try tags, as in 'sharpened S5'"
        )
    if len({form.file_name for form in s.forms}) < len(set(names)):
        yield f"form names={names} must differ in letters and digits, because they name files"
    for form in s.forms:
        fitted = s.kind in FITTED
        allowed = ("consistent", "inconsistent") if fitted else ("holds", "fails")
        if form.expected not in (*allowed, "vacuous", "inconclusive"):
            yield f"form {form.name!r} of kind {s.kind!r} cannot have expected={form.expected!r}"
        if not re.match(NAMED, form.name):
            words = "printed, derived, corrected, sharpened or false"
            yield f"form {form.name!r} must start with {words}"
        if form.is_twin and form.expected not in REJECTED:
            yield f"form {form.name!r} is a false twin: it cannot have expected={form.expected!r}"
        senses = ", ".join(map(repr, get_args(Sense)))
        if s.kind == "rate" and form.sense is None:
            yield (
                f"form {form.name!r} of kind 'rate' has sense=None, expected one of {senses}. "
                f"Try jb.Form(name={form.name!r}, sense='at most')"
            )
        elif s.kind != "rate" and form.sense is not None:
            yield (
                f"form {form.name!r} of kind {s.kind!r} has sense={form.sense!r}, expected None, "
                "because only a rate has a sense. Try sense=None, or kind='rate'"
            )
        if form.exponent and (s.kind != "rate" or not form.exponent[0] < form.exponent[1]):
            yield f"form {form.name!r} has exponent={form.exponent}, expected (low, high) of a rate"
        if form.is_twin:  # a search must refute a twin, which stores no counterexample
            continue
        if form.expected == "fails" and not (form.note or form.erratum):
            yield f"form {form.name!r} is expected to fail but no note says why. Try note=..."
        if form.expected == "fails" and s.kind in EXACT and form.counterexample is None:
            yield f"form {form.name!r} is expected to fail but stores no counterexample"


def _quantifier_problems(s: Statement) -> Iterable[str]:
    if (s.kind == "limit") != (s.relation == "->"):
        yield f"kind={s.kind!r} with relation={s.relation!r}: kind 'limit' has relation '->'"
    if s.kind == "limit" and not s.towards:
        axis = next(iter(s.sizes[0] if s.sizes else ()), "n")
        yield (
            "towards={}, expected the size that tends to infinity or to 0. "
            f"Try towards={{{axis!r}: math.inf}}"
        )
    elif s.kind != "limit" and s.towards:
        yield (
            f"towards={dict(s.towards)} with kind={s.kind!r}, but only a limit tends to a value. "
            "Try towards={}, or kind='limit' with relation='->'"
        )
    elif s.towards:
        yield from _limit_problems(s)
    if s.relation == ">=" and s.kind == "rate":
        yield "relation='>=' is for other kinds than 'rate'. Try sense='at least' in the form"
    bound = s.is_bound and s.kind in ("inequality", "trajectory")
    if s.estimates and not bound:
        yield (
            f"estimates={dict(s.estimates)} with kind={s.kind!r}: a search bounds a side in one "
            f"direction only, so estimates need '<=' or '>='. Try {two_claims(s.estimates)}"
        )
    if s.strict and not bound:
        yield f"strict=True with relation={s.relation!r} and kind={s.kind!r}. Try relation='<='"
    for form in s.forms if s.strict else ():
        if form.equality:
            yield (
                f"form {form.name!r} has equality={form.equality!r}, but a strict inequality "
                "has no equality case. Try relation='<='"
            )
    if s.there_is and not bound and s.kind != "identity":
        yield f"there_is needs an inequality or an identity, got kind={s.kind!r}"
    if s.witness is not None and not s.there_is:
        yield (
            "witness is where the search for the entries of there_is starts, but there_is is "
            "missing. Try there_is={...}"
        )
    if s.there_is and s.host:
        yield "there_is needs gradients of evaluate, got host=True. Try an evaluate in JAX"
    if set(s.estimates) - {"lhs", "rhs"} or set(s.estimates.values()) - set(get_args(Estimate)):
        yield (
            f"estimates={dict(s.estimates)}: expected 'below' or 'above' for 'lhs' "
            f"or 'rhs'. Try {{'rhs': 'below'}}"
        )
    both = sorted(set(s.over or ()) & set(s.there_is or ()))
    if both:
        yield f"over and there_is both name {', '.join(both)}. Try another name in one of them"


def _limit_problems(s: Statement) -> Iterable[str]:
    (axis, end), *more = s.towards.items()
    if more or end not in (math.inf, 0):
        yield f"towards={dict(s.towards)}: expected a size, to 0 or infinity. Try {{'n': math.inf}}"
    elif any(not size.get(axis, 0) > 0 for size in s.sizes):
        yield f"towards names {axis!r}, which must be a positive number in every size"
    else:
        rest = lambda size: tuple((k, v) for k, v in size.items() if k != axis)
        values: dict[Any, set[float]] = {}
        for size in s.sizes:
            values.setdefault(rest(size), set()).add(size[axis])
        few = min(values, key=lambda others: len(values[others]))
        if len(values[few]) < FEWEST:
            others = "".join(f"{name!r}: {value!r}, " for name, value in few)
            along = "10, 100, 1000, 10000" if end else "0.1, 0.01, 0.001, 0.0001"
            same = " at the same other sizes" if few else ""
            yield (
                f"sizes has {axis}={', '.join(map(str, sorted(values[few])))}, expected at least "
                f"{FEWEST} values of {axis!r} for a limit{same}. "
                f"Try sizes=[{{{others}{axis!r}: {axis}}} for {axis} in ({along})]"
            )
