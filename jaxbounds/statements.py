"""What a paper claims, as data: statements, their forms, and what one measurement of them returns.

A `Statement` says how to draw instances that meet its hypotheses and how to measure both of its
sides on one instance; `jaxbounds.falsify` turns that into a `Verdict`. Nothing in this module
computes anything: it holds the vocabulary, checks that a statement is well formed, and finds the
statements of the papers.
"""

import difflib
import fnmatch
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, NamedTuple, get_args

import jax
from jax.typing import ArrayLike

PAPERS = ("multihead", "seqlength", "smapprox", "qstr")
"""The papers shipped with the library: subpackages that hold `statements.PAPER`."""

Kind = Literal[
    "identity", "inequality", "probability", "expectation", "construction", "trajectory", "rate"
]
Status = Literal["holds", "fails", "vacuous", "inconclusive", "consistent", "inconsistent"]
Relation = Literal["=", "<="]
Search = Literal["gradient", "random", "none"]
Sense = Literal["at most", "at least", "exactly"]

Instance = Mapping[str, Any]
"""A nested dict of arrays that satisfies a statement's hypotheses. Integer and boolean leaves are
held fixed by the search; float leaves are moved by it."""
Size = Mapping[str, int]
"""The static part of an instance: the shapes, by name."""
Sampler = Callable[[jax.Array, Size], Instance]
Hypotheses = Callable[[Instance], Mapping[str, ArrayLike]]

CONTROL = "control"
"""The key under which `Sides.rhs` holds the deliberately false variant."""


class Sides(NamedTuple):
    """Both sides of a statement on one instance.

    Attributes:
        lhs: the measured side; a mapping from form names (and `"control"`) to values where the
            forms measure different things. Scalar for `<=`, of any shape for `=`.
        rhs: for each form, and for `"control"`, what the form says about the measured side.
        error: absolute uncertainty of `lhs - rhs` (rounding after cancellation, a Lanczos
            residual, a Monte Carlo half-width). Sides that are both smaller than it tell nothing.
        trivial: a bound on `lhs` that needs no theory; a form that never beats it is vacuous.
    """

    lhs: ArrayLike | Mapping[str, ArrayLike]
    rhs: Mapping[str, ArrayLike]
    error: ArrayLike = 0.0
    trivial: ArrayLike | None = None


@dataclass(frozen=True, kw_only=True)
class Form:
    """One right-hand side: as printed, corrected, or sharpened.

    Attributes:
        name: "printed", "corrected" or "sharpened", optionally followed by a tag ("sharpened S5").
        expected: the status that the form should get; "holds" (for rates "consistent") unless
            given. An erratum is a form with `expected="fails"`.
        note: a proof sketch, or the text of the erratum.
        equality: the instance at which both sides agree, in words. Only with it may a worst ratio
            within the numerical error of one be called `holds`.
        erratum: the id of the paper's erratum that the form exhibits ("E1").
        hypotheses: what this form requires beyond the statement's own hypotheses.
        counterexample: an instance, small enough for a person, on which the form fails.
        sense: for rates, and needed there: whether the exponent of lhs against rhs is claimed "at
            most", "at least" or "exactly" one. "lhs = O(rhs)" means at most one where rhs grows and
            at least one where it shrinks.
    """

    name: str
    expected: Status | None = None
    note: str = ""
    equality: str = ""
    erratum: str = ""
    hypotheses: Hypotheses | None = None
    counterexample: Instance | None = None
    sense: Sense | None = None


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


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One numbered claim of a paper.

    Attributes:
        id: "<paper>.<name>", lower case ("multihead.cor1.3").
        label: as printed in the published version ("Corollary 1 (3)").
        formula: one line of plain text.
        kind: decides how a verdict is reached (see `jaxbounds.falsify`).
        evaluate: `evaluate(instance) -> Sides`, pure, `jit`- and `vmap`-able.
        sample: `sample(key, size) -> Instance`, or several of them by name; the verdict reports
            the worst ratio of each. May be empty where `cases` is given.
        cases: `cases(size) -> Instance` with a leading axis: named or exhaustive instances.
        sizes: the static shapes to try, smallest first.
        forms: the right-hand sides to compare.
        control: in words, the deliberately false variant that `evaluate` returns as
            `rhs["control"]`; a statement whose control is not rejected never `holds`.
        hypotheses: `hypotheses(instance) -> {name: bool}`; an instance that misses one of them
            never counts.
        assumptions: the hypotheses in words.
        project: `project(instance) -> Instance`, back onto the hypotheses, used by the search.
        search: how instances are searched: "gradient" ascent on log(lhs/rhs), "random" moves, or
            "none". The default is "gradient" for inequalities and "none" for the other kinds.
        relation: "<=" or "="; the default is "=" for identities and constructions.
        tolerance: relative; 1e-9 for `<=` and 1e-10 for `=` unless given.
        level: the probability delta allowed to fail, for kind "probability".
        budget: how hard to try; `Budget()`, with 2000 samples for probabilities and expectations,
            unless given.
        source: where in the paper; appendix numbers that restate it.
    """

    id: str
    label: str
    formula: str
    kind: Kind
    evaluate: Callable[[Instance], Sides]
    forms: tuple[Form, ...]
    control: str
    sizes: tuple[Size, ...]
    sample: Sampler | Mapping[str, Sampler] = field(default_factory=dict)
    cases: Callable[[Size], Instance] | None = None
    hypotheses: Hypotheses | None = None
    assumptions: str = ""
    project: Callable[[Instance], Instance] | None = None
    search: Search | None = None
    relation: Relation | None = None
    tolerance: float | None = None
    level: float | None = None
    budget: Budget | None = None
    source: str = ""

    def __post_init__(self) -> None:
        """Fill the defaults that depend on the kind, and refuse a statement that is ill formed."""
        fill = lambda name, value: object.__setattr__(self, name, value)
        if callable(self.sample):
            fill("sample", {"sample": self.sample})
        fill("sample", MappingProxyType(dict(self.sample)))
        containers = list(_container_problems(self))
        if containers:
            raise ValueError(f"statement {self.id!r} is ill formed: " + "; ".join(containers))
        usual = "consistent" if self.kind == "rate" else "holds"
        fill("forms", tuple(replace(f, expected=f.expected or usual) for f in self.forms))
        fill("sizes", tuple(MappingProxyType(dict(size)) for size in self.sizes))
        if self.budget is None:
            many = self.kind in ("probability", "expectation")
            fill("budget", Budget(samples=2000) if many else Budget())
        if self.search is None:
            fill("search", "gradient" if self.kind == "inequality" else "none")
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


def _container_problems(s: Statement) -> Iterable[str]:
    if isinstance(s.forms, Form) or not all(isinstance(form, Form) for form in s.forms):
        yield "forms must be a tuple of Form; a single one needs a comma: (Form(...),)"
    if isinstance(s.sizes, Mapping) or not all(isinstance(size, Mapping) for size in s.sizes):
        yield "sizes must be a tuple of dicts; a single one needs a comma: ({'d': 2},)"


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
    if not s.control.strip():
        yield "control is empty: say which false variant evaluate returns as rhs['control']"
    if (s.kind == "probability") != (s.level is not None):
        yield "level is needed for kind 'probability' and only for it"
    names = [form.name for form in s.forms]
    if not names:
        yield "it has no form"
    if len(set(names)) < len(names) or CONTROL in names:
        yield f"form names must be distinct and none may be {CONTROL!r}, got {names}"
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


def _import(where: str) -> ModuleType:
    """A module by name, file or folder; the working folder and a file's own folder are searched."""
    path = Path(where)
    if path.is_dir():
        path, where = path.resolve(), path.name
        folder = path.parent
    elif where.endswith(".py"):
        if not path.is_file():
            raise ValueError(f"no file {where}: give a Python file, a folder or a module")
        path = path.resolve()
        folder, where = path.parent, path.stem
        while (folder / "__init__.py").is_file():
            folder, where = folder.parent, f"{folder.name}.{where}"
        where = where.removesuffix(".__init__")
    else:
        folder = Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(where)
        if not hasattr(module, "PAPER") and hasattr(module, "__path__"):
            module = importlib.import_module(f"{where}.statements")
    except ModuleNotFoundError as error:
        if error.name and (where == error.name or where.startswith(error.name + ".")):
            near = difflib.get_close_matches(where, PAPERS, 1)
            hint = (
                f"did you mean {near[0]}?" if near else "give a Python file, a folder or a module"
            )
            raise ValueError(f"no module {where!r}: {hint}") from error
        if error.name == f"{where}.statements":
            return module
        raise
    return module


def load_paper(where: str, /) -> Paper:
    """The `PAPER` of a module.

    Args:
        where: a shipped paper ("multihead"), a module name ("mypackage.claims"), a Python file
            ("claims.py"), or a folder that is a package whose `statements` module has it.

    Raises:
        ValueError: if there is no such module, it cannot be executed, or it defines no `PAPER`.
    """
    name = f"jaxbounds.{where}.statements" if where in PAPERS else where
    try:
        module = _import(name)
    except ValueError as problem:
        raise ValueError(f"{where}: {problem}") from problem
    except (TypeError, NameError, AttributeError, ImportError, SyntaxError, KeyError) as problem:
        raise ValueError(f"{where} cannot be loaded: {origin(problem)}") from problem
    paper = getattr(module, "PAPER", None)
    if not isinstance(paper, Paper):
        raise ValueError(
            f"{where} defines no PAPER: add "
            "PAPER = Paper(id=..., title=..., statements=(...,)) at module level"
        )
    return paper


def origin(problem: BaseException, /) -> str:
    """An exception in one line: its type, its message, and the user's line that raised it."""
    library = Path(__file__).parent
    frames = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if library not in Path(frame.filename).parents
        and "site-packages" not in frame.filename
        and "importlib" not in frame.filename
    ]
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    text = f"{type(problem).__name__}: {lines[0] if lines else ''}"
    if frames:
        text += f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name})"
    if "Tracer" in type(problem).__name__:
        text += "; samplers and evaluate are traced by JAX: use jnp, and jnp.where for if"
    return text


def load_papers(extra: Iterable[str] = ()) -> tuple[Paper, ...]:
    """The shipped papers, then those of the modules or files in `extra`.

    Raises:
        ValueError: if two papers share an id, or a module in `extra` cannot be loaded.
    """
    papers = tuple(load_paper(where) for where in (*PAPERS, *extra))
    ids = [paper.id for paper in papers]
    repeated = sorted({i for i in ids if ids.count(i) > 1})
    if repeated:
        raise ValueError(f"more than one paper is called {', '.join(repeated)}: rename yours")
    return papers


def select(statements: Iterable[Statement], patterns: Iterable[str] = ()) -> tuple[Statement, ...]:
    """The statements whose id equals, starts with or (as a shell pattern) matches one pattern.

    Raises:
        ValueError: if a pattern matches nothing; the message names the nearest ids.
    """
    statements, patterns = tuple(statements), tuple(patterns)
    if not patterns:
        return statements

    def matches(s: Statement, pattern: str) -> bool:
        return s.id.startswith(pattern + ".") or fnmatch.fnmatchcase(s.id, pattern)

    for pattern in patterns:
        if not any(matches(s, pattern) for s in statements):
            names = dict.fromkeys([s.paper for s in statements] + [s.id for s in statements])
            near = difflib.get_close_matches(pattern, names, 3, 0.4)
            hint = f"did you mean {', '.join(near)}?" if near else "see `jaxbounds list`"
            if pattern.split(".")[0] not in names:
                hint += " (statements of your own need --import FILE)"
            raise ValueError(f"no statement matches {pattern!r}; {hint}")
    return tuple(s for s in statements if any(matches(s, p) for p in patterns))
