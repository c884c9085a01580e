"""Record the values of a paper's statements, and compare later values with the records.

`records/values.json` of a paper holds the values of each form, that is, of each version of a claim
(`Verdict.values`). Each value has a bar: the amount by which rounding may change the value.
`jaxbounds verify --record` writes the file with seed 0. A later value that differs from its record
by more than the bar counts as "NOT as recorded", even if no verdict changed.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jaxbounds.claims.records import VALUES, place_of_records, read_records, write_records
from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.falsification import Verdict
from jaxbounds.falsification.noted_values import Numbers
from jaxbounds.falsification.rounding_bars import Bars, noted_with_bars
from jaxbounds.papers import PAPERS
from jaxbounds.runs.cache import programs_for

USUAL = 1e-12
"""The relative amount by which a value may change if its record states no bar (rounding error).
Rounding changes most values by less than 256 units in the last place (relatively 6e-14), which
USUAL allows. A larger tolerance overlooks more changes of a value."""
SIDES = ("lhs", "rhs")
"""Every run measures the values with these names. Values with other names may be missing in a run,
because an earlier statement may have stored the results of their functions in a table."""
Values = Mapping[str, Mapping[str, Numbers]]
"""The values of one form (a version of a claim), as in `Verdict.values`. The first key is the name
of an instance, and the second key is the name of a value."""
Texts = Mapping[str, Mapping[str, str]]
"""The values of one form (a version of a claim), written as text. The first key is the name of an
instance, and the second key is the name of a value."""
Recorded = Mapping[str, Mapping[str, Texts]]
"""A dictionary from a statement's id, then the name of a form (a version of the claim), to the
values of the form, written as text."""


class Value(NamedTuple):
    """A recorded number, and the amount by which rounding may change the number."""

    number: float
    bar: float


def written(numbers: Numbers, bars: Numbers, /) -> str:
    """Return numbers with their bars (rounding errors) as text, such as "0.5, 12.25 +-3e-09".

    The text omits a bar that is at most `USUAL` times the number.
    """

    def one(number: float, bar: float) -> str:
        usual = not math.isfinite(number) or bar <= USUAL * abs(number)
        return f"{number:.13g}" + ("" if usual else f" +-{1.05 * bar:.1e}")

    return ", ".join(map(one, numbers, bars))


def read_back(text: str, /) -> tuple[Value, ...]:
    """Return the numbers in a text, each with its rounding error; `written` made the text.

    Raises:
        Refused: if the text does not have the form that `written` gives.
    """

    def one(part: str) -> Value:
        word, _, bar = part.partition(" +-")
        number = float(word)
        usual = USUAL * abs(number) if math.isfinite(number) else 0.0
        return Value(number, float(bar) if bar else usual)

    return tuple(map(one, text.split(", ")))


def _agrees(now: float, before: Value) -> bool:
    if math.isinf(before.bar) or now == before.number:
        return True
    if math.isnan(now) or math.isnan(before.number):
        return math.isnan(now) and math.isnan(before.number)
    return abs(now - before.number) <= before.bar


def _difference(name: str, now: Numbers | None, text: str | None) -> str:
    if now is None or text is None:
        if name not in SIDES:
            return ""
        there = f"on record as {text}, but not measured" if now is None else "not on record"
        return f"{name} is {there}"
    before = read_back(text)
    if len(before) != len(now):
        return f"{name} has {len(now)} numbers, and {len(before)} on record"
    for one, known in zip(now, before):
        if not _agrees(one, known):
            off = f" (rounding moves it by at most {known.bar:.1e})" if known.bar else ""
            return f"{name} is {one:.13g}, on record {known.number:.13g}{off}"
    return ""


def differences_of_values(values: Values, before: Texts, /) -> Iterator[str]:
    """Yield a line for each value of a form (version of a claim) that differs from the record."""
    for place in dict.fromkeys([*before, *values]):
        now, known = values.get(place, {}), before.get(place, {})
        for name in dict.fromkeys([*known, *now]):
            if found := _difference(name, now.get(name), known.get(name)):
                yield f"{found}, at {place}"


def not_as_recorded(verdicts: Sequence[Verdict], recorded: Recorded, /) -> Iterator[str]:
    """Return a line for each form (version of a claim) whose values differ from the record.

    The verdicts must come from a run with seed 0.
    """
    name = verdicts[0].id
    if any(verdict.status == "error" for verdict in verdicts):
        return  # another line says that nothing was measured
    if name not in recorded:
        yield f"{name}: no values are on record. Try jaxbounds verify {name} --record"
        return
    for verdict in verdicts:
        found = list(differences_of_values(verdict.values, recorded[name].get(verdict.form, {})))
        if found:
            more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
            yield f"{name} ({verdict.form}): {found[0]}{more}"


class Expected:
    """The recorded values of some papers' statements; a user's paper may lack a file of values.

    Raises:
        Refused: if a file of recorded values is damaged.
    """

    def __init__(self, papers: Iterable[Paper], /) -> None:
        self._papers = {paper.id: paper for paper in papers}
        self._of = {name: read_records(paper, VALUES) for name, paper in self._papers.items()}

    def changed(self, verdicts: Sequence[Verdict], /) -> tuple[str, ...]:
        """Return a line for each form (version) of a statement whose values differ from the record.

        For a shipped paper without a file of values, the result is one line, which names the
        missing file.
        """
        paper = verdicts[0].paper
        recorded = self._of.get(paper, {})
        if recorded:
            return tuple(not_as_recorded(verdicts, recorded))
        if paper not in PAPERS or self._papers.get(paper) is None:
            return ()
        file = place_of_records(self._papers[paper], VALUES)
        how = f"Try jaxbounds verify {paper} --record"
        return (f"{paper}: {file} is missing, which holds the values on record. {how}",)


def _texts(verdict: Verdict, bars: Bars) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for place, named in verdict.values.items():
        allowed = bars.bars.get(place, {})
        for name, numbers in named.items():
            zero = tuple(0.0 for _ in numbers)
            found.setdefault(place, {})[name] = written(numbers, allowed.get(name, zero))
    return found


Bounds = Callable[[Statement], Sequence[Bars]]


def _with_bars(statement: Statement) -> Sequence[Bars]:
    return noted_with_bars(statement, programs=programs_for(statement))


def record_values(
    verdicts: Sequence[Verdict],
    papers: Iterable[Paper],
    /,
    *,
    others: bool,
    bounds: Bounds = _with_bars,
) -> tuple[str, ...]:
    """Write the values of the given verdicts, from a run with seed 0, into the papers' records.

    If recorded values agree with the new values, the text of the record stays unchanged. If
    `others` is true, the file keeps its entries of the papers' other statements. The function
    `bounds` returns how far rounding may change the values of a statement.

    The result has a line for each form (version of a claim) whose values changed, and for each
    added or removed statement.

    Raises:
        Refused: if a paper is defined in no file.
    """
    of = {name: list(found) for name, found in itertools.groupby(verdicts, lambda v: v.id)}
    said: list[str] = []
    for paper in papers:
        judged = [s for s in paper.statements if s.id in of]
        if not judged:
            continue
        before: dict[str, Mapping[str, Texts]] = read_records(paper, VALUES)
        ids = [s.id for s in paper.statements]
        kept = {name: forms for name, forms in before.items() if others or name in of}
        said += [f"{name}: taken off the record" for name in before if name not in ids]
        for statement in judged:
            name, found = statement.id, of[statement.id]
            if any(verdict.status == "error" for verdict in found):
                continue
            known = name in before and _same_names(found, before[name])
            if known and not list(not_as_recorded(found, before)):
                continue
            said += not_as_recorded(found, before) if name in before else [f"{name}: new"]
            texts = map(_texts, found, bounds(statement))
            kept[name] = {v.form: text for v, text in zip(found, texts)}
        write_records(paper, VALUES, {name: kept[name] for name in ids if name in kept}, depth=3)
    return tuple(said)


def _same_names(verdicts: Sequence[Verdict], before: Mapping[str, Texts]) -> bool:
    names = lambda forms: {
        (form, place, name)
        for form, places in forms.items()
        for place, named in places.items()
        for name in named
    }
    return bool(names({v.form: v.values for v in verdicts}) <= names(before))
