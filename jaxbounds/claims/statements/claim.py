"""`jaxbounds.claim` declares a claim of a paper in one call."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from jaxbounds.claims.refused import REFUSALS, careful
from jaxbounds.claims.sets import Over, Set
from jaxbounds.claims.sets.over import refuse_other_sets
from jaxbounds.claims.statements.form import Counterexample, Form, Status
from jaxbounds.claims.statements.instance import Hypotheses
from jaxbounds.claims.statements.judged import Judged
from jaxbounds.claims.statements.kinds import Estimate, Kind
from jaxbounds.claims.statements.line import Axes, sizes_of
from jaxbounds.claims.statements.statement import Budget, Statement, Witness
from jaxbounds.claims.statements.two_sides import (
    PRINTED,
    ByName,
    Side,
    TwoSides,
    by_name,
    entries_of,
    owned,
    refuse_other_arguments,
    refuse_other_relation,
    refuse_other_side,
)
from jaxbounds.claims.statements.written import in_words
from jaxbounds.ground.exceptions import Refused

Twin = Side | tuple[Side, Side]
"""A twin: a right side that makes the claim false, or a pair of a left and a right side."""
Twins = Sequence[Twin] | Mapping[str, Twin]
_KINDS: Mapping[str, Kind] = {
    "<=": "inequality",
    ">=": "inequality",
    "=": "identity",
    "->": "limit",
    "<": "inequality",
    ">": "inequality",
}
_LOOSE: Mapping[str, Any] = {"<": "<=", ">": ">="}
_BY_KIND: Any = None
"""The default of a field that `Statement` or `Form` fills later."""
LONGEST_NAME = 40
"""The name of a twin (a false variant of a claim) has at most this many characters; the library
cuts longer names. If this number of characters is larger, printed tables are wider."""


def _refused(problem: Exception, *given: Any, **named: Any) -> Statement:
    name = given[0] if given else named.get("id")
    twins = _twins_of(named.get("false", ()))
    return Statement.refused_as(problem, {**named, "id": name, "forms": twins})


def _twins_of(false: Any) -> tuple[Form, ...]:
    with contextlib.suppress(*REFUSALS):
        return tuple(Form(name=name) for name, _ in _named(false))
    return ()


@careful(_refused)
def claim(
    id: str,
    lhs: Side,
    relation: Literal["<=", ">=", "=", "->", "<", ">"],
    rhs: Side,
    *,
    over: Over | Mapping[str, Set | Mapping[str, Any]],
    sizes: Axes | None = None,
    false: Twins = (),
    judges: tuple[Judged, ...] = (),
    label: str = "",
    formula: str = "",
    tex: str = "",
    source: str = "",
    equality: str = "",
    assumptions: str = "",
    hypotheses: Hypotheses | None = None,
    there_is: Over | Mapping[str, Set | Mapping[str, Any]] | None = None,
    witness: Witness | None = None,
    estimates: Mapping[Literal["lhs", "rhs"], Estimate] | None = None,
    towards: Mapping[str, float] | None = None,
    error: Side = 0.0,
    tolerance: float = _BY_KIND,
    budget: Budget = _BY_KIND,
    expected: Status = _BY_KIND,
    counterexample: Counterexample | None = None,
    erratum: str = "",
    note: str = "",
) -> Statement:
    """Declare a claim lhs <= rhs (or >=, =) for all points of some sets as a statement of a paper.

    ```python
    PAPER = jb.Paper(id="mine", title="My notes", statements=(
        jb.claim("mine.cs", product, "<=", bound, over={"x": jb.Reals("d"), "y": jb.Reals("d")},
                 sizes={"d": (2, 5)}, false=[half_the_bound]),))
    ```

    If a side is a named function of a module, the verdict also judges this function. The argument
    `false` lists twins, which are false variants of the claim. The library must refute each twin,
    and reports on each twin in a separate row. The engine makes a further false variant: it scales
    the right side until the worst instance's left side exceeds the right side by 1%.

    Args:
        id: the id of the statement, "<paper>.<name>", in lower case.
        lhs: the left side: a number, or a function whose arguments have the names of entries of
            `over`, of entries of `there_is`, or of sizes.
        relation: "<=", ">=", "=", "<", ">", or "->" for a limit: `lhs` tends to `rhs` along a size.
            A strict inequality (< or >) fails if ball arithmetic finds an instance whose left and
            right side are equal.
        rhs: the right side of the claim, given like `lhs`.
        over: the sets of the entries, as in `Statement`; {} for a claim about sizes alone.
        sizes: values for each size, {"d": (2, 4)}, which are combined in all ways; or a list of
            sizes. If `sizes` is not given, the claim names no sizes.
        false: the twins, which are right sides that make the claim false, or pairs of a left and a
            right side. A dict gives names to the twins; otherwise each twin has the name of its
            function.
        judges: further public functions that the sides call and that the verdict is also about, as
            in `Statement`.
        label: the label of the claim in the paper, as "Lemma 1"; the default is the last part of
            the id.
        formula: the claim in a line of plain text; the default joins the names of both sides.
        tex: the claim as LaTeX.
        source: the place of the claim in the paper.
        equality: a description in words of an instance at which both sides are equal.
        assumptions: the hypotheses of the claim in words.
        hypotheses: a function `hypotheses(instance, size)` as in `Statement`, or a function whose
            arguments have the names of entries and sizes.
        there_is: the sets of the entries whose existence the claim asserts, as in `Statement`.
        witness: the start of the search for the entries of `there_is`: their value, or a function
            whose arguments have the names of entries of `over` and of sizes. For several entries of
            `there_is`, the start is a dict from their names to values.
        estimates: the sides that a search only estimates, as in `Statement`.
        towards: for a limit, a dict from the size that tends to a limit to this limit: {"n":
            math.inf} or {"h": 0}. A single size tends by default to infinity if its values rise
            along `sizes`, or if its only value is at least 1. Otherwise the size tends to 0.
        error: the absolute rounding error of lhs - rhs: a number, or a function like the sides.
        tolerance: the relative tolerance for rounding, as in `Statement`.
        budget: the numbers of random instances and of search steps, as in `Statement`.
        expected: the status that the printed form (the claim itself) should get, as in `Form`.
        counterexample: an instance on which the printed form fails, as in `Form`.
        erratum: the id of the paper's erratum that makes the printed form false, as in `Form`.
        note: a proof sketch of the printed form, or the text of its erratum.

    Raises:
        TypeError: if a side is neither a function nor a number, or an argument has a wrong type.
        Refused: if a side has an argument that is neither an entry nor a size, or the statement is
            ill formed; the message names the statement and the field.
    """
    try:
        refuse_other_relation(relation, tuple(_KINDS))
        found = sizes_of(sizes)
        if not found:
            raise Refused(f"sizes={sizes!r}, expected at least one size. Try sizes={{'d': (2, 4)}}")
        pairs: dict[str, tuple[Side, Side]] = {PRINTED: (lhs, rhs)}
        for name, twin in _named(false):
            pairs[name] = twin if isinstance(twin, tuple) else (lhs, twin)
        refuse_other_sets("over", over, entries_of(filter(callable, (lhs, rhs)), found[0]))
        if there_is is not None:
            known = {*found[0], *over}
            refuse_other_sets("there_is", there_is, entries_of(filter(callable, (lhs, rhs)), known))
        named = [sets for sets in (over, there_is) if sets is not None]
        _refuse_sides(pairs, error, {*found[0], *(name for sets in named for name in sets)})
        if callable(witness):
            refuse_other_arguments("witness", witness, {*found[0], *over})
        printed = Form(
            name=PRINTED, expected=expected, cites=source, equality=equality, note=note,
            erratum=erratum, counterexample=counterexample,
        )  # fmt: skip
        twins = [Form(name=name) for name in pairs if name != PRINTED]
        if printed.refused:
            raise Refused(printed.refused)
    except REFUSALS as problem:
        raise type(problem)(f"statement {id!r}: {problem}") from problem
    own = [side for pair in pairs.values() for side in pair if owned(side)]
    every: Any = (*own, *judges) if isinstance(judges, tuple | list) else judges
    return Statement(
        id=id,
        label=label or str(id).rpartition(".")[2],
        formula=formula or f"{in_words(lhs)} {relation} {in_words(rhs)}",
        tex=tex,
        kind=_KINDS[relation],
        relation=_LOOSE.get(relation, relation),
        strict=relation in ("<", ">"),
        evaluate=TwoSides(pairs, error, str(id)),
        judges=every if callable(every) else tuple(dict.fromkeys(every)),
        over=over,
        there_is=there_is,
        witness=ByName(witness) if callable(witness) else witness,
        estimates={} if estimates is None else estimates,
        towards=_end(found) if relation == "->" and towards is None else dict(towards or {}),
        sizes=found,
        assumptions=assumptions,
        hypotheses=by_name(hypotheses, {*found[0], *(n for sets in named for n in sets)}),
        source=source,
        forms=(printed, *twins),
        tolerance=tolerance,
        budget=budget,
    )


def _end(sizes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name for size in sizes for name in size}
    if len(names) != 1:
        return {}
    (name,) = names
    first, last = (float(size.get(name, 0)) for size in (sizes[0], sizes[-1]))
    rises = last > first if last != first else first >= 1
    return {name: math.inf if rises else 0}


def _named(false: Twins) -> list[tuple[str, Twin]]:
    if callable(false) or not isinstance(false, Sequence | Mapping) or isinstance(false, str):
        raise TypeError(
            f"false={false!r:.60}: expected a list of wrong right sides of the claim. Try "
            f"false=[{false!r:.40}]"
        )
    twins = false.values() if isinstance(false, Mapping) else false
    if any(twin is ... for twin in twins):
        raise Refused(
            f"false={false!r:.60}: expected a wrong right side of the claim in place of the dots. "
            "Try a number, or a function such as lambda x: 0.9 * bound(x)"
        )
    if isinstance(false, Mapping):
        named = [(str(name), twin) for name, twin in false.items()]
    else:
        named = [(_name_of(twin), twin) for twin in false]
    found: dict[str, Twin] = {}
    for name, twin in named:
        words = f"false {name}"[:LONGEST_NAME]
        same = {Form(name=known).file_name for known in found}
        number = 2
        chosen = words
        while Form(name=chosen).file_name in same:
            chosen, number = f"{words} ({number})", number + 1
        found[chosen] = twin
    return list(found.items())


def _name_of(twin: Twin) -> str:
    if isinstance(twin, tuple):
        return " and ".join(map(in_words, twin))
    return in_words(twin)


def _refuse_sides(pairs: Mapping[str, tuple[Any, Any]], error: Any, known: set[str]) -> None:
    refuse_other_side("error", error)
    refuse_other_arguments("error", error, known)
    for name, pair in pairs.items():
        of = "" if name == PRINTED else f" of {name!r}"
        if len(pair) != len(("lhs", "rhs")):
            raise TypeError(
                f"the false variant{of} (false=) has sides={len(pair)}, expected 1 or 2. Try (lhs, "
                f"rhs), or rhs alone"
            )
        for which, side in zip(("lhs", "rhs"), pair):
            refuse_other_side(f"{which}{of}", side)
            refuse_other_arguments(f"{which}{of}", side, known)
