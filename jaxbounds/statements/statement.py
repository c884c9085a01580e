"""One numbered claim as data: its forms, and what one measurement of it returns.

A `Statement` says how to draw instances that meet its hypotheses, which public functions it judges,
and how to measure both of its sides on one instance by calling them; `jaxbounds.falsify` turns that
into a `Verdict`. Nothing here computes anything: this is the vocabulary, and the check that a
statement is well formed.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
from jax.typing import ArrayLike

Kind = Literal[
    "identity", "inequality", "probability", "expectation", "construction", "trajectory", "rate"
]
Status = Literal["holds", "fails", "vacuous", "inconclusive", "consistent", "inconsistent", "error"]
Relation = Literal["=", "<="]
Search = Literal["gradient", "random", "none"]
Sense = Literal["at most", "at least", "exactly"]

Instance = Mapping[str, Any]
"""A nested dict of arrays that satisfies a statement's hypotheses: what a person would be given
(data, weights, a seed, an index into a named family), never an outcome. Integer and boolean leaves
are held fixed by the gradient search; float leaves are moved by it."""


@jax.tree_util.register_static
class Size(Mapping[str, int]):
    """The static part of an instance, by name: shapes and other integers, as Python numbers.

    Hashable, and static wherever JAX traces a function that takes one.
    """

    def __init__(self, entries: Mapping[str, int]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> int:
        """The integer of that name.

        Raises:
            KeyError: if there is none; the message lists those there are.
        """
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(self._entries) or "nothing"
            raise KeyError(f"no size {name!r}: this statement's sizes give {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(tuple(self._entries.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._entries == dict(other)

    def __repr__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._entries.items())


Sampler = Callable[[jax.Array, Size], Instance]
Hypotheses = Callable[[Instance, Size], Mapping[str, ArrayLike]]
Judged = Callable[..., Any]
"""A public function that a statement calls and whose values its verdict is about."""

_BY_KIND: Any = None
"""The default of a field that depends on the statement's kind."""

CONTROL = "control"
"""The key under which `Sides.rhs` holds the deliberately false variant."""


class Sides(NamedTuple):
    """Both sides of a statement on one instance.

    Attributes:
        lhs: the measured side; a mapping from form names (and `"control"`) to values where the
            forms measure different things. Scalar for `<=`, of any shape for `=`.
        rhs: for each form, and for `"control"`, what the form says about the measured side.
        error: absolute uncertainty of `lhs - rhs` (rounding after cancellation, a Lanczos
            residual, a Monte Carlo half-width), for each form where they differ. Sides that are
            both smaller than it tell nothing.
        trivial: a bound on `lhs` that needs no theory; a form that never beats it is vacuous.
    """

    lhs: ArrayLike | Mapping[str, ArrayLike]
    rhs: Mapping[str, ArrayLike]
    error: ArrayLike | Mapping[str, ArrayLike] = 0.0
    trivial: ArrayLike | None = None

    @classmethod
    def pairs(
        cls,
        pairs: Mapping[str, tuple[ArrayLike, ArrayLike]],
        /,
        *,
        error: ArrayLike | Mapping[str, ArrayLike] = 0.0,
        trivial: ArrayLike | None = None,
    ) -> "Sides":
        """Sides of forms that each compare two things of their own: {form: (lhs, rhs)}."""
        lhs = {name: left for name, (left, _) in pairs.items()}
        rhs = {name: right for name, (_, right) in pairs.items()}
        return cls(lhs=lhs, rhs=rhs, error=error, trivial=trivial)


def stacked(instances: Iterable[Instance], /) -> dict[str, Any]:
    """Instances given one by one, as `cases` wants them: leaves with a leading axis."""
    rows = [jax.tree.map(np.asarray, dict(instance)) for instance in instances]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """An instance, small enough for a person, on which a form fails.

    Attributes:
        instance: inputs, as nested dicts of numbers, lists or arrays.
        size: its static part; it need not be among the statement's sizes.
        ratio: what the form's ratio is there (for `=` the relative difference). Another one means a
            slip in the instance or in the formula, and the form is then inconclusive.
        meets: `meets(instance, size) -> {hypothesis: bool}`: everything that the paper assumes
            anywhere about such an instance, each with its source in print; all must hold.
    """

    instance: Instance
    size: Mapping[str, int]
    ratio: float
    meets: Callable[[Instance, Size], Mapping[str, ArrayLike]] | None = None


@dataclass(frozen=True, kw_only=True)
class Form:
    """One right-hand side: as printed, corrected, or sharpened.

    Attributes:
        name: "printed", "corrected" or "sharpened", optionally followed by a tag ("sharpened S5").
        expected: the status that the form should get; "holds" (for rates "consistent") unless
            given. An erratum is a form with `expected="fails"`.
        note: a proof sketch, or the text of the erratum.
        cites: for printed forms: the display or sentence it comes from.
        equality: the instance at which both sides agree, in words. Only with it may a worst ratio
            within the numerical error of one be called `holds`.
        erratum: the id of the paper's erratum that the form exhibits ("E1").
        hypotheses: what this form requires beyond the statement's own hypotheses.
        counterexample: where it fails, an instance that shows it, with its ratio.
        sense: for rates, and needed there: whether the exponent of lhs against rhs is claimed "at
            most", "at least" or "exactly" one. "lhs = O(rhs)" means at most one where rhs grows and
            at least one where it shrinks.
    """

    name: str
    expected: Status = _BY_KIND
    note: str = ""
    cites: str = ""
    equality: str = ""
    erratum: str = ""
    hypotheses: Hypotheses | None = None
    counterexample: Counterexample | None = None
    sense: Sense | None = None

    @property
    def file_name(self) -> str:
        """The name in the names of files: letters, digits, points and dashes."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.name)


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

    def scaled(self, factor: float, /) -> "Budget":
        """The same budget with `factor` times the samples and restarts (at least one of each)."""
        return Budget(
            samples=max(1, round(self.samples * factor)),
            restarts=max(1, round(self.restarts * factor)) if self.restarts else 0,
            steps=self.steps,
            batch=self.batch,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Statement:
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
            one of them were slightly wrong, some verdict would change.
        host: `evaluate` compiles a machine, enumerates a class or loops in Python: it gets NumPy
            arrays and is run as it is, one instance at a time.
        sample: `sample(key, size) -> Instance`, or several of them by name; the verdict reports
            the worst ratio of each. May be empty where `cases` is given.
        cases: `cases(size) -> Instance` with a leading axis: named or exhaustive instances.
        sizes: the static shapes to try, smallest first.
        forms: the right-hand sides to compare.
        control: in words, the deliberately false variant that `evaluate` returns as
            `rhs["control"]`; a statement whose control is not rejected never `holds`.
        hypotheses: `hypotheses(instance, size) -> {name: bool}`; an instance that misses one of
            them never counts.
        assumptions: the hypotheses in words.
        project: `project(instance, size) -> Instance`, back onto the hypotheses, for the search.
        search: how instances are searched: "gradient" ascent on log(lhs/rhs), "random" moves, or
            "none". The default is "gradient" for inequalities and "none" for the other kinds.
        relation: "<=" or "="; the default is "=" for identities and constructions.
        tolerance: relative; 1e-9 for `<=` and 1e-10 for `=` unless given.
        level: the probability delta allowed to fail, for kind "probability".
        budget: how hard to try; `Budget()`, with 2000 samples for probabilities and expectations,
            unless given.
        source: where in the paper; appendix numbers that restate it.
        horizon: for trajectories: the entry of the sizes that counts the steps.
        enumerates: where the cases are all there are: of what ("all words of length up to 6").
    """

    id: str
    label: str
    formula: str
    kind: Kind
    evaluate: Callable[[Instance, Size], Sides]
    forms: tuple[Form, ...]
    control: str
    sizes: tuple[Mapping[str, int], ...]
    judges: tuple[Judged, ...] = ()
    host: bool = False
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

    def __post_init__(self) -> None:
        """Fill the defaults that depend on the kind, and refuse a statement that is ill formed."""
        fill = lambda name, value: object.__setattr__(self, name, value)
        if callable(self.sample):
            fill("sample", {"sample": self.sample})
        fill("sample", MappingProxyType(self.samplers))
        containers = list(_container_problems(self))
        if containers:
            raise ValueError(f"statement {self.id!r} is ill formed: " + "; ".join(containers))
        usual = "consistent" if self.kind == "rate" else "holds"
        fill("forms", tuple(replace(f, expected=f.expected or usual) for f in self.forms))
        fill("sizes", tuple(map(Size, self.sizes)))
        if self.budget is None:
            many = self.kind in ("probability", "expectation")
            fill("budget", Budget(samples=2000) if many else Budget())
        if self.search is None:
            searched = self.kind == "inequality" and not self.host
            fill("search", "gradient" if searched else "none")
        if self.relation is None:
            fill("relation", "=" if self.kind in ("identity", "construction") else "<=")
        if self.tolerance is None:
            fill("tolerance", 1e-10 if self.relation == "=" else 1e-9)
        problems = list(_problems(self))
        if problems:
            raise ValueError(f"statement {self.id!r} is ill formed: " + "; ".join(problems))

    @property
    def paper(self) -> str:
        """The part of the id before the first dot."""
        return self.id.split(".", 1)[0]

    @property
    def samplers(self) -> dict[str, Sampler]:
        """The samplers by name."""
        return {"sample": self.sample} if callable(self.sample) else dict(self.sample)

    @property
    def judged(self) -> tuple[str, ...]:
        """The full names of the functions that it judges."""
        return tuple(map(full_name, self.judges))

    def form(self, name: str, /) -> Form:
        """The form of that name.

        Raises:
            KeyError: if there is none; the message lists those there are.
        """
        for form in self.forms:
            if form.name == name:
                return form
        names = ", ".join(form.name for form in self.forms)
        raise KeyError(f"{self.id} has no form {name!r}; it has: {names}")


def full_name(function: Judged, /) -> str:
    """Module and name of a function, as one would import it."""
    return f"{function.__module__}.{function.__qualname__}"


def owner_of(function: Judged, /) -> tuple[Any, str]:
    """The module or class that holds a function, and the name it has there.

    Raises:
        ValueError: if it cannot be found under its own name: a lambda, a nested function, a partial
            application.
    """
    try:
        owner: Any = sys.modules[function.__module__]
        *path, name = function.__qualname__.split(".")
        for part in path:
            owner = getattr(owner, part)
        if getattr(owner, name) == function:  # classmethods are made anew at each look
            return owner, name
    except (AttributeError, KeyError):
        pass
    raise ValueError(f"{function!r} is not found under its own name: judge a module's function")


def _container_problems(s: Statement) -> Iterable[str]:
    if isinstance(s.forms, Form) or not all(isinstance(form, Form) for form in s.forms):
        yield "forms must be a tuple of Form; a single one needs a comma: (Form(...),)"
    if isinstance(s.sizes, Mapping) or not all(isinstance(size, Mapping) for size in s.sizes):
        yield "sizes must be a tuple of dicts; a single one needs a comma: ({'d': 2},)"
    if callable(s.judges) or not all(callable(function) for function in s.judges):
        yield "judges must be a tuple of functions; a single one needs a comma: (bound,)"


def _problems(s: Statement) -> Iterable[str]:
    if not re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z0-9_\-]+)+", s.id):
        yield "the id must look like 'paper.name' in lower case"
    if s.kind not in get_args(Kind):
        yield f"kind must be one of {', '.join(get_args(Kind))}, got {s.kind!r}"
    if s.search not in get_args(Search):
        yield f"search must be one of {', '.join(get_args(Search))}, got {s.search!r}"
    if s.relation not in get_args(Relation):
        yield f"relation must be '=' or '<=', got {s.relation!r}"
    if not s.sizes:
        yield "sizes is empty: give at least one, as ({'T': 2, 'd': 2},)"
    if not s.sample and s.cases is None:
        yield "it has neither sample nor cases, so no instance could ever be drawn"
    if s.horizon and any(s.horizon not in size for size in s.sizes):
        yield f"horizon names {s.horizon!r}, which is not in every size"
    if s.enumerates and (s.cases is None or s.sample):
        yield "enumerates says that the cases are all there are: give cases, and no sample"
    if s.host and s.search == "gradient":
        yield "a statement that is run on the host has no gradient: search='random'"
    if s.search == "random" and not s.host and not s.sample:
        yield "search='random' draws its moves from `sample`: give one"
    for function in s.judges:
        try:
            owner_of(function)
        except ValueError as problem:
            yield str(problem)
    if not s.control.strip():
        yield "control is empty: say which false variant evaluate returns as rhs['control']"
    if (s.kind == "probability") != (s.level is not None):
        yield "level is needed for kind 'probability' and only for it"
    names = [form.name for form in s.forms]
    if not names:
        yield "it has no form"
    if len(set(names)) < len(names) or CONTROL in names:
        yield f"form names must be distinct and none may be {CONTROL!r}, got {names}"
    if len({form.file_name for form in s.forms}) < len(set(names)):
        yield f"form names must differ in their letters and digits, for files, got {names}"
    for form in s.forms:
        allowed = ("consistent", "inconsistent") if s.kind == "rate" else ("holds", "fails")
        if form.expected not in (*allowed, "vacuous", "inconclusive"):
            yield f"form {form.name!r} of kind {s.kind!r} cannot be expected {form.expected!r}"
        if not re.match(r"(printed|corrected|sharpened|derived)\b", form.name):
            yield f"form {form.name!r} must start with printed, derived, corrected or sharpened"
        if (s.kind == "rate") != (form.sense is not None):
            yield f"form {form.name!r}: sense is needed for kind 'rate' and only for it"
        if form.expected == "fails" and not (form.note or form.erratum):
            yield f"form {form.name!r} is expected to fail but no note says why"
        exact = s.kind in ("identity", "inequality", "construction")
        if form.expected == "fails" and exact and form.counterexample is None:
            yield f"form {form.name!r} is expected to fail but stores no counterexample"
