"""One numbered claim as data, and the check that it is well formed.

A statement says how to draw instances that meet its hypotheses, which public functions it judges,
and how to measure both of its sides by calling them; `jaxbounds.falsify` turns that into a
`Verdict`. Nothing here computes anything.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from jaxbounds.claims.sets import Over, Set
from jaxbounds.claims.statements.declared import refuse_other_types
from jaxbounds.claims.statements.form import LONGEST, REJECTED, Form
from jaxbounds.claims.statements.instance import Hypotheses, Instance, Sampler, Size
from jaxbounds.claims.statements.judged import Judged, full_name, owner_of
from jaxbounds.claims.statements.over import Drawn, Projected, Within
from jaxbounds.claims.statements.refused import Careful
from jaxbounds.claims.statements.sides import CONTROL, Sides
from jaxbounds.ground.exceptions import Refused

Kind = Literal[
    "identity", "inequality", "probability", "expectation", "construction", "trajectory", "rate",
    "limit",
]  # fmt: skip
Relation = Literal["=", "<=", ">=", "->"]
Estimate = Literal["below", "above"]
FEWEST = 3
"""Values of the parameter that a limit needs."""
Search = Literal["gradient", "random", "none"]
Witness = Callable[..., Any] | Mapping[str, Any] | float
"""Entries that a claim promises, or a function that gives them."""

FITTED = ("rate", "limit")
"""Kinds of which a trend over sizes is looked at: they never hold."""
SCALED = ("inequality", "identity", "construction", "trajectory")
"""Kinds of which the engine makes a control where a statement names none."""
ENGINES_CONTROL = {
    True: "the right side, scaled until the worst instance exceeds it by 1%",
    False: "the right side, scaled by 1%",
}
"""The engine's control in words: of a bound, and of an equality."""
WIDEST = 1e-3
"""The largest tolerance: more than that no rounding needs."""
TYPED = (
    "id", "label", "formula", "kind", "evaluate", "control", "hypotheses", "cases", "project",
    "search", "relation", "level", "tolerance", "budget", "host", "estimates", "towards",
    "assumptions", "source", "tex", "horizon", "enumerates", "depends", "witness",
)  # fmt: skip
"""Fields whose types are checked as they are declared; the other fields have words of their own."""
ID = r"[a-z][a-z0-9_]*(\.[a-z0-9_\-]+)+"
NO_ID = "refused.statement"
"""The id of a statement that is refused and whose id is none; its paper gives it another one."""
ALONE = "alone"
"""The entry of the one instance of a claim about its sizes; a counterexample leaves it out."""
_BY_KIND: Any = None
"""The default of a field that depends on the statement's kind."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How hard a statement is tried, for each of its sizes.

    Attributes:
        samples: instances drawn from each sampler.
        restarts: starting points of the search, for each form.
        steps: steps of the search.
        batch: instances evaluated at once; lower it where one instance needs much memory.
    """

    samples: int = 256
    restarts: int = 12
    steps: int = 250
    batch: int = 64

    def scaled(self, factor: float) -> "Budget":
        """The same budget with `factor` times the samples and restarts (at least one of each)."""
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
        id: "<paper>.<name>", lower case ("multihead.cor1.3").
        label: as printed in the published version ("Corollary 1 (3)").
        formula: one line of plain text.
        tex: the same in LaTeX, without dollar signs, for pages.
        kind: decides how a verdict is reached (see `jaxbounds.falsify`).
        evaluate: `evaluate(instance, size) -> Sides`, pure, `jit`- and `vmap`-able unless `host`.
            It computes everything that is compared.
        judges: the public functions whose values the verdict is about, which `evaluate` calls: if
            one of them were slightly wrong, some verdict would change. Functions of a module or
            class, found there under their own names: no lambda, no partial application.
        host: `evaluate` compiles a machine, enumerates a class or loops in Python: it gets NumPy
            arrays and is run as it is, one instance at a time.
        over: sets by the name of an instance's entry, {"x": jb.Ball(1, "d")}: they draw instances,
            project, and are hypotheses. `sample`, `project` and `hypotheses` say what no set says:
            what `sample` draws replaces the sets' draws, the others come on top. `over={}`: the
            claim is about its sizes alone, one instance each.
        there_is: sets of the entries that a claim only promises: "for each instance of `over`
            there is ... such that". Whatever is drawn, an inner search looks for the best such
            entries, for each form; they are stored with the instance. If it finds none the form
            is inconclusive, unless the sets are finite and small, and all of them were tried. An
            `=` compares its control at the entries that were found.
        witness: where that inner search starts, beside starts of its own: a function
            `witness(instance, size)`, or the entries themselves. It gives entries of `there_is` by
            name; of a single one the value will do. A witness that is wrong costs no more than its
            trial.
        estimates: sides that `jb.supremum` or `jb.infimum` (or another search) only estimates:
            {"rhs": "below"}, "lhs" or "rhs", from "below" or "above". What an estimate could not
            refute is never said to fail.
        towards: for limits, and needed there: the entry of the sizes that moves, and where to:
            {"n": math.inf} or {"eps": 0}.
        sample: `sample(key, size) -> Instance`, or several of them by name; the verdict reports
            the worst ratio of each. May be empty where `cases` or `over` is given.
        cases: `cases(size) -> Instance` with a leading axis: named or exhaustive instances.
        sizes: the static part to try, smallest first: shapes, and other numbers by name.
        forms: the right-hand sides to compare.
        control: in words, the deliberately false variant that `evaluate` returns as
            `rhs["control"]`; a statement whose control is not rejected never `holds`. Without it
            the engine scales the right side until the worst instance exceeds it by 1%.
        hypotheses: `hypotheses(instance, size) -> {name: bool}`; an instance that misses one of
            them never counts.
        assumptions: the hypotheses in words.
        project: `project(instance, size) -> Instance`, back onto the hypotheses, for the search.
        search: how instances are searched: "gradient" ascent on log(lhs/rhs), "random" moves, or
            "none". The default is "gradient" for inequalities and "none" for the other kinds.
        relation: "<=", ">=" or "="; the default is "=" for identities and constructions, and
            "->" is that of limits.
        tolerance: relative, at most 1e-3; 1e-9 for `<=` and 1e-10 for `=` unless given.
        level: the probability delta allowed to fail, for kind "probability".
        budget: how hard to try; `Budget()`, with 2000 samples for probabilities and expectations,
            unless given.
        source: where in the paper; appendix numbers that restate it.
        horizon: for trajectories: the entry of the sizes that counts the steps.
        enumerates: where the cases are all there are: of what ("all words of length up to 6").
        depends: what the verdict depends on and no run can see: files or folders by their paths
            (one that C code opens, as HDF5), or texts (the version of a program). The statement is
            measured again when the content of a file or a text changes.
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
    tolerance: float = _BY_KIND
    level: float | None = None
    budget: Budget = _BY_KIND
    source: str = ""
    tex: str = ""
    horizon: str = ""
    enumerates: str = ""
    depends: tuple[str | Path, ...] = ()
    refused: str = field(default="", init=False, repr=False)
    """Why it is ill formed; only while a file is loaded, whose other statements are judged."""

    @classmethod
    def refused_as(cls, problem: Exception, given: Mapping[str, Any], /) -> "Statement":
        """The placeholder of a refused statement: its id, and the reason."""
        words = {name: given.get(name) for name in ("id", "label", "formula", "source")}
        texts = {name: value for name, value in words.items() if isinstance(value, str)}
        name = texts.get("id", "")
        known = re.fullmatch(ID, name) is not None and len(name) <= LONGEST
        made = cls(
            id=name if known else NO_ID, label=texts.get("label", ""), kind="identity",
            formula=texts.get("formula", ""), source=texts.get("source", ""), evaluate=_never,
            cases=lambda size: {ALONE: np.zeros(1, int)}, sizes=({},),
            forms=(Form(name="printed"),),
        )  # fmt: skip
        said = str(problem) if repr(name) in str(problem) else f"statement {name!r}: {problem}"
        object.__setattr__(made, "refused", said)
        return made

    def __post_init__(self) -> None:
        """Fill the defaults that depend on the kind, and refuse a statement that is ill formed."""
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
            many = self.kind in ("probability", "expectation")
            fill("budget", Budget(samples=2000) if many else Budget())
        if self.search is None:
            searched = self.kind == "inequality" and not self.host and not self.enumerates
            fill("search", "gradient" if searched else "none")
        if self.relation is None:
            usual_for = {"identity": "=", "construction": "=", "limit": "->"}
            fill("relation", usual_for.get(self.kind, "<="))
        if self.tolerance is None:
            fill("tolerance", 1e-9 if self.is_bound else 1e-10)
        problems = list(_problems(self))
        if problems:
            raise Refused(f"statement {self.id!r} is ill formed: " + "; ".join(problems))

    @property
    def paper(self) -> str:
        """The part of the id before the first dot."""
        return self.id.split(".", 1)[0]

    @property
    def samplers(self) -> dict[str, Sampler]:
        """The samplers by name."""
        return {"sample": self.sample} if callable(self.sample) else dict(self.sample)

    @property
    def control_in_words(self) -> str:
        """The statement's own control, or how the engine makes one."""
        return self.control.strip() or ENGINES_CONTROL[self.is_bound]

    @property
    def is_bound(self) -> bool:
        """Whether one side is claimed to be at most the other."""
        return self.relation in ("<=", ">=")

    @property
    def unrefutable(self) -> bool:
        """Whether an estimate makes the larger side too small, or the smaller too large.

        A violation may then be the estimate's.
        """
        larger = "rhs" if self.relation == "<=" else "lhs"
        return any(
            word == ("below" if side == larger else "above")
            for side, word in self.estimates.items()
        )

    def as_given(self) -> "Statement":
        """The claim about an instance that has the promised entries already: nothing is sought."""
        if self.there_is is None:
            return self
        sets = {**(self.over or {}), **self.there_is}
        return replace(self, over=sets, there_is=None, witness=None)

    @property
    def judged(self) -> tuple[str, ...]:
        """The full names of the functions that it judges."""
        return tuple(map(full_name, self.judges))

    def form(self, name: str) -> Form:
        """The form of that name.

        Raises:
            Refused: if there is none; the message lists those there are.
        """
        for form in self.forms:
            if form.name == name:
                return form
        names = ", ".join(form.name for form in self.forms)
        raise Refused(f"{self.id} has no form={name!r}. Try one of: {names}")


def _never(instance: Instance, size: Size) -> Sides:
    raise Refused("the statement is refused: nothing is measured")


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
    """Fill sampler, projection and hypotheses from the sets, once."""
    fill = lambda name, value: object.__setattr__(s, name, value)
    if s.over is not None and not s.over:
        _take_nothing(s)
    for name in ("over", "there_is"):
        sets = getattr(s, name)
        if sets is not None and not isinstance(sets, Mapping):
            raise TypeError(
                f"{name} must be sets by name, as {{'x': jb.Ball(1, 'd')}}, got {sets!r:.60}"
            )
        if sets is not None:
            fill(name, Over(sets))
    parts = [part for part in (s.over, s.there_is) if part]
    if not parts:
        return
    sets = Over({name: one for part in parts for name, one in part.items()})
    law = s.kind in ("probability", "expectation")
    # Of a copy (`dataclasses.replace`) they are filled already, perhaps from other sets.
    bare: Callable[[Any], Any] = lambda own: (
        own.own if isinstance(own, Drawn | Within | Projected) else own
    )
    samplers: dict[str, Any] = s.samplers or ({} if law else {"over": None})
    fill("sample", {name: Drawn(sets, bare(own), law) for name, own in samplers.items()})
    fill("hypotheses", Within(sets, bare(s.hypotheses)))
    fill("project", Projected(sets, bare(s.project)))


def _take_nothing(s: Statement) -> None:
    """Over nothing, a claim is about its sizes alone: of each there is one instance."""
    fill = lambda name, value: object.__setattr__(s, name, value)
    fill("over", None)
    if not s.samplers and s.cases is None and s.there_is is None:
        fill("cases", lambda size: {ALONE: np.zeros(1, int)})
        fill("enumerates", s.enumerates or "of each size the one instance")


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
        yield "the id must look like 'paper.name' in lower case"
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
        yield "sizes is empty: give at least one, as ({'T': 2, 'd': 2},)"
    if not s.sample and s.cases is None:
        law = s.kind in ("probability", "expectation") and s.over
        why = "a set has no law, of which a frequency is: give sample" if law else (
            "it has neither sample nor cases nor over, so no instance could ever be drawn (a claim "
            "about its sizes alone: over={})"
        )  # fmt: skip
        yield why
    if s.horizon and any(s.horizon not in size for size in s.sizes):
        yield f"horizon names {s.horizon!r}, which is not in every size"
    if s.enumerates and (s.cases is None or s.sample):
        yield "enumerates says that the cases are all there are: give cases, and no sample"
    if s.enumerates and s.search != "none":
        yield "enumerates says that the cases are all there are: a search would leave them"
    if s.host and s.search == "gradient":
        yield "a statement that is run on the host has no gradient: search='random'"
    if s.search == "random" and not s.host and not s.sample:
        yield "search='random' draws its moves from `sample`: give one"
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
    if (s.kind == "probability") != (s.level is not None):
        yield "level is needed for kind 'probability' and only for it"
    elif s.level is not None and not 0 < s.level < 1:
        yield f"level is the probability allowed to fail, between 0 and 1, got {s.level}"
    if not 0 <= s.tolerance <= WIDEST:
        yield (
            f"tolerance is relative, for rounding, and at most {WIDEST:g}, got {s.tolerance}; "
            "a larger uncertainty belongs in Sides(..., error=...)"
        )
    names = [form.name for form in s.forms]
    if not names:
        yield "it has no form"
    if len(set(names)) < len(names) or CONTROL in names:
        yield f"form names must be distinct and none may be {CONTROL!r}, got {names}"
    if len({form.file_name for form in s.forms}) < len(set(names)):
        yield f"form names must differ in their letters and digits, for files, got {names}"
    for form in s.forms:
        fitted = s.kind in FITTED
        allowed = ("consistent", "inconsistent") if fitted else ("holds", "fails")
        if form.expected not in (*allowed, "vacuous", "inconclusive"):
            yield f"form {form.name!r} of kind {s.kind!r} cannot be expected {form.expected!r}"
        if not re.match(r"(printed|corrected|sharpened|derived|false)\b", form.name):
            words = "printed, derived, corrected, sharpened or false"
            yield f"form {form.name!r} must start with {words}"
        if form.is_twin and form.expected not in REJECTED:
            yield f"form {form.name!r} is a false twin, which cannot be expected {form.expected!r}"
        if (s.kind == "rate") != (form.sense is not None):
            yield f"form {form.name!r}: sense is needed for kind 'rate' and only for it"
        if form.exponent and (s.kind != "rate" or not form.exponent[0] < form.exponent[1]):
            yield f"form {form.name!r}: exponent is a band (low, high), for kind 'rate' only"
        if form.is_twin:  # a search must refute it: nothing is stored
            continue
        if form.expected == "fails" and not (form.note or form.erratum):
            yield f"form {form.name!r} is expected to fail but no note says why"
        exact = s.kind in ("identity", "inequality", "construction")
        if form.expected == "fails" and exact and form.counterexample is None:
            yield f"form {form.name!r} is expected to fail but stores no counterexample"


def _quantifier_problems(s: Statement) -> Iterable[str]:
    if (s.kind == "limit") != (s.relation == "->"):
        yield "a limit is of kind 'limit' and relation '->', which nothing else is"
    if (s.kind == "limit") != bool(s.towards):
        yield "towards is needed for kind 'limit' and only for it, as {'n': math.inf}"
    elif s.towards:
        yield from _limit_problems(s)
    if s.relation == ">=" and s.kind == "rate":
        yield "a rate is compared by its sense: relation '>=' is that of other kinds"
    bound = s.is_bound and s.kind in ("inequality", "trajectory")
    if s.estimates and not bound:
        yield (
            "a supremum and an infimum are for inequalities, since a search supports one side "
            "only: of an = declare <= and >= by themselves"
        )
    if s.there_is and not bound and s.kind != "identity":
        yield f"there_is promises entries of inequalities and identities, and kind is {s.kind!r}"
    if s.witness is not None and not s.there_is:
        yield "witness is where the search for the entries of there_is starts. Try there_is={...}"
    if s.there_is and s.host:
        yield "there_is looks for entries along slopes: evaluate must be JAX's, not the host's"
    if set(s.estimates) - {"lhs", "rhs"} or set(s.estimates.values()) - set(get_args(Estimate)):
        yield f"estimates are as {{'rhs': 'below'}}, got {dict(s.estimates)}"
    both = sorted(set(s.over or ()) & set(s.there_is or ()))
    if both:
        yield f"over and there_is both name {', '.join(both)}"


def _limit_problems(s: Statement) -> Iterable[str]:
    (axis, end), *more = s.towards.items()
    if more or end not in (math.inf, 0):
        yield f"towards names one entry of the sizes and infinity or 0, got {dict(s.towards)}"
    elif any(not size.get(axis, 0) > 0 for size in s.sizes):
        yield f"towards names {axis!r}, which must be a positive number in every size"
    else:
        rest = lambda size: tuple((k, v) for k, v in size.items() if k != axis)
        values: dict[Any, set[float]] = {}
        for size in s.sizes:
            values.setdefault(rest(size), set()).add(size[axis])
        if any(len(found) < FEWEST for found in values.values()):
            yield f"a limit needs at least {FEWEST} values of {axis!r} at the same other sizes"
