"""Define `jaxbounds.constants_of`, which finds sharp constants as `jaxbounds constant` does.

The sharp constant of a form (one version of a claim) is the largest lhs/rhs over all instances.
"""

import functools
import importlib.util
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxbounds.claims.statements import Form, Statement
from jaxbounds.constants import SharpConstant
from jaxbounds.constants.result import SECONDS
from jaxbounds.constants.sizes import grown
from jaxbounds.falsification import ON_AVERAGE
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place
from jaxbounds.ground.seeds import refuse_other_seeds
from jaxbounds.ground.states import Depends
from jaxbounds.papers import Catalogue, Named, Selection, origin, selected
from jaxbounds.runs.cache import examples, restoring
from jaxbounds.runs.driver import drive
from jaxbounds.runs.engines import On, Where, engine_of
from jaxbounds.runs.watched import watched
from jaxbounds.runs.workers import Died

MISSING = "constants need python-flint and mpmath: pip install 'jaxbounds[constants]'"
OfForm = tuple[str, str]
"""The pair of a statement's id and the name of one of its forms (versions of a claim)."""


class Search(NamedTuple):
    """The settings of a search for sharp constants.

    Attributes:
        axes: the values of each size, such as {"d": (2, 4)}. An empty dictionary means the sizes
            that the statement declares.
        seconds: the limit, in seconds of processor time, for the search at each size.
        grow: whether to search also at the statement's first size with each axis doubled in turn.
        single: whether the user named exactly one statement. For a single named statement the
            search raises errors instead of returning them as reasons.
    """

    axes: Mapping[str, tuple[float, ...]]
    seed: int = 0
    seconds: float = SECONDS
    grow: bool = False
    single: bool = False


def forms_named(statement: Statement, name: str, /) -> tuple[Form, ...]:
    """Return the forms (versions of a claim) with the given name.

    The forms with a longer name that begins with the given name come last.
    """
    exact = tuple(form for form in statement.forms if form.name == name)
    word = tuple(f for f in statement.forms if f.name.startswith((f"{name},", f"{name} ")))
    return (*exact, *word)


def _decided_by_instances(statement: Statement) -> bool:
    searched = statement.there_is is not None or statement.unrefutable
    return statement.is_bound and statement.kind not in ON_AVERAGE and not searched


def with_constants(selection: Selection, form: str, /) -> list[tuple[Statement, str]]:
    """Return the forms (versions of claims) that can have a sharp constant, with their statements.

    Raises:
        Refused: if the user named only one statement, and no form of the statement has the name
            `form`.
    """
    chosen = selection.statements
    if len(chosen) > 1:
        chosen = tuple(s for s in chosen if _decided_by_instances(s) and forms_named(s, form))
    for statement in chosen:
        if not forms_named(statement, form):
            names = ", ".join(f.name for f in statement.forms)
            raise Refused(f"{statement.id} has no form={form!r}. Try one of: {names}")
    return [(s, f.name) for s in chosen for f in forms_named(s, form)]


class Found(NamedTuple):
    """The sharp constant of a form (version of a claim), or the reason why it is missing.

    The field `depends` lists the files and modules that the user's code read; None if unknown.
    """

    constant: SharpConstant | str
    depends: Depends | None = None


def _found_somewhere(search: Search, catalogue: Catalogue, what: OfForm) -> Found:
    work = functools.partial(_found, search, catalogue, what)
    found, depends = watched(work, own=bool(catalogue.imports))
    return Found(found, None if catalogue.own else depends)


def _found(search: Search, catalogue: Catalogue, what: OfForm) -> SharpConstant | str:
    """Return the sharp constant, or the reason for its absence; an error of a form is a reason."""
    from jaxbounds.constants.constant import sharp_constant  # needs the extra

    try:
        statement = catalogue.statement(what[0])
        sizes = grown(statement, what[1]) if search.grow and not search.axes else search.axes
        return sharp_constant(
            statement, what[1], sizes=sizes, seed=search.seed, seconds=search.seconds,
            examples=examples(True),
        )  # fmt: skip
    except (ValueError, ModuleNotFoundError) as problem:
        if search.single:
            raise
        return origin(problem)
    except Exception as problem:
        return origin(problem)


def finding(
    forms: Iterable[OfForm],
    search: Search,
    catalogue: Catalogue,
    /,
    *,
    on: On,
    jobs: int,
    folder: Place | Path,
) -> Iterator[tuple[OfForm, Found]]:
    """Yield each form (version of a claim) with its constant, or with the reason for its absence.

    Raises:
        Refused: if an optional dependency (extra) is missing, `jobs` is negative, or `seconds` is
            not positive.
    """
    if any(importlib.util.find_spec(name) is None for name in ("flint", "mpmath")):
        raise Refused(MISSING)
    refuse_other_seeds(search.seed)
    if jobs < 0 or not 0 < search.seconds < 1e6:
        raise Refused(
            f"jobs={jobs}, seconds={search.seconds}, expected jobs >= 0 and 0 < seconds < 1e6. "
            "Try without these two options"
        )
    if catalogue.own:
        jobs = 1
    else:
        catalogue = catalogue.absolute()
    work = functools.partial(_found_somewhere, search, catalogue)
    for what, found in drive(work, forms, on=on, jobs=jobs, folder=folder):
        yield what, Found(str(found)) if isinstance(found, Died) else found


@restoring
def constants_of(
    what: Named | Iterable[Named],
    *,
    form: str = "printed",
    sizes: Mapping[str, Sequence[float]] | None = None,
    imports: Iterable[str] = (),
    seed: int = 0,
    seconds: float = SECONDS,
    grow: bool = False,
    on: Where | None = None,
    jobs: int = 1,
) -> dict[OfForm, SharpConstant | str]:
    """Return a dictionary from (id, form) to the sharp constant, or to the reason for its absence.

    The sharp constant of a form (one version of a claim) is the largest lhs/rhs over all instances.

    Args:
        what: the statements, as for `verify`.
        form: the name of the form, or the name's beginning: "printed" also means "printed,
            Lemma 6".
        sizes: a dictionary from the name of a size to its values, such as {"d": (2, 4)}. The search
            runs at each combination of the sizes' values. If no sizes are given, the search runs at
            the sizes that the statement declares.
        imports: further modules or files that define `PAPER`, a `jb.Paper` of your own.
        seed: the seed of the random instances.
        seconds: the limit, in seconds of processor time, for the search at each size. The search at
            a size ends earlier if climbs from enough starting instances end at the same constant.
        grow: whether to search also at the statement's first size with each axis doubled in turn.
        on: the engine that does the work, as for `verify`.
        jobs: the number of processes, as for `verify`; 1 is the default.

    Raises:
        Refused: in the cases that `verify` lists, and if an optional dependency (extra) is missing.
    """
    selection = selected(what, imports=imports)
    forms = [(s.id, name) for s, name in with_constants(selection, form)]
    axes = {name: tuple(values) for name, values in (sizes or {}).items()}
    search = Search(axes, seed, seconds, grow, len(selection.statements) == 1)
    given: dict[str, Any] = {"on": engine_of(on), "jobs": jobs}
    with tempfile.TemporaryDirectory() as scratch:
        found = finding(forms, search, selection.catalogue, folder=Path(scratch), **given)
        return {what: one.constant for what, one in found}
