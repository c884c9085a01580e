"""`jaxbounds diff`: print the differences between two runs of `verify`, for each form.

A form is one version of a claim: printed, corrected or sharpened.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich import box
from rich.table import Table
from rich.text import Text

from jaxbounds.cli.common import console_for_output, print_json
from jaxbounds.cli.streams import say
from jaxbounds.falsification import Verdict
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.readers import json_in
from jaxbounds.ground.to_json import to_json
from jaxbounds.papers import PAPERS, load_paper
from jaxbounds.report.codes import pointer
from jaxbounds.runs.drift import differences, ratios_of
from jaxbounds.runs.folder import UNREADABLE, verdicts_in

What = Literal["verdict", "evidence", "ratio", "only in A", "only in B"]
MEASURED: tuple[What, ...] = ("evidence", "ratio")
"""Words for differences of two runs that do not change a verdict: other evidence, another ratio."""
FRESHNESS = ("files", "judged", "records")
"""Entries of run.json other than settings of the run: digests, times and dependencies."""
Forms = dict[tuple[str, str], Verdict]


@dataclass(frozen=True, kw_only=True)
class Change:
    """The heaviest difference between two runs in one form (one version of a claim).

    Attributes:
        id: the id of the statement.
        form: the name of the form (version of the claim).
        what: the kind of the heaviest difference: of verdicts, else of their evidence, else of
            ratios. Ratios differ if one moved by more than 3% (1e-6 for random instances alone).
            The kinds "only in A" and "only in B" mean that only one run has the form.
        before: the verdict, evidence or ratio in run A, as text.
        after: the verdict, evidence or ratio in run B, as text.
        as_expected: whether the verdict of run B (of run A if only A has the form) is the recorded
            one.
    """

    id: str
    form: str
    what: What
    before: str
    after: str
    as_expected: bool


def changes(before: Forms, after: Forms, /) -> Iterator[Change]:
    """Yield the differences between run A and run B, in the order of run B's verdicts.

    A form is one version of a claim: printed, corrected or sharpened.

    Each argument maps (id of a statement, name of a form) to a verdict.
    """
    for key in [*after, *(key for key in before if key not in after)]:
        a, b = before.get(key), after.get(key)
        one = b or a
        assert one is not None
        if found := _change(a, b):
            what, was, now = found
            yield Change(
                id=key[0],
                form=key[1],
                what=what,
                before=was,
                after=now,
                as_expected=one.as_expected,
            )


def _change(a: Verdict | None, b: Verdict | None) -> tuple[What, str, str] | None:
    if a is None or b is None:
        return ("only in A", a.status, "") if a else ("only in B", "", b.status if b else "")
    if (a.status, a.as_expected) != (b.status, b.as_expected):
        say = lambda v: v.status + (f", {v.aside}" if v.aside else "")
        return "verdict", say(a), say(b)
    if a.evidence != b.evidence:
        return "evidence", a.evidence, b.evidence
    rounding = a.relation == "=" and a.status == b.status == "holds"
    moved = [] if rounding else list(differences(b, ratios_of(a)))
    say_ratio = lambda v: f"{moved[0]} {ratios_of(v).get(moved[0], float('nan')):.6g}"
    return ("ratio", say_ratio(a), say_ratio(b)) if moved else None


def _run_of(path: Path) -> tuple[Forms, dict[str, Any]]:
    forms = {(v.id, v.form): v for found in verdicts_in(path).values() for v in found}
    if not forms:
        raise Refused(
            f"path={str(path)!r} holds no verdicts. Try a folder that `jaxbounds verify` wrote"
        )
    try:
        settings = Marked(path).read("run.json", lambda file: json_in(file, of=dict)) or {}
    except (OSError, *UNREADABLE) as problem:
        say(f"jaxbounds: {problem}; the settings of {path} are ignored")
        settings = {}
    return forms, {name: value for name, value in settings.items() if name not in FRESHNESS}


def diff(
    a: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="A")],
    b: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="B")],
    /,
    *,
    verdicts: bool = False,
    json: bool = False,
) -> int:
    """Print how two runs of `verify` differ in verdicts, evidence and ratios, for each form.

    A form is one version of a claim: printed, corrected or sharpened.

    The exit status is 0 if the runs do not differ, and 1 if they differ.

    Args:
        a: the folder of run A, the first run.
        b: the folder of run B, the second run.
        verdicts: print only changed verdicts, and forms that only one run has. Use this flag for
            runs with different seeds, since their ratios differ.
        json: print JSON (see `jaxbounds schema changes`).
    """
    (before, about_a), (after, about_b) = _run_of(a), _run_of(b)
    found = [c for c in changes(before, after) if not verdicts or c.what not in MEASURED]
    if json:
        print_json([to_json(change) for change in found])
        return int(bool(found))
    console = console_for_output()
    said = lambda about, name: str(about.get(name))[:20]
    settings = [n for n in {**about_a, **about_b} if about_a.get(n) != about_b.get(n)]
    other = [f"{n}: {said(about_a, n)} -> {said(about_b, n)}" for n in settings]
    if other:
        console.print("; ".join(other), markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("statement", "form", "what", "A", "B"):
        table.add_column(name, overflow="fold")
    for c in found:
        style = "" if c.as_expected else "bold red"
        table.add_row(*map(Text, (c.id, c.form, c.what, c.before)), Text(c.after, style))
    if found:
        console.print(table)
        named = {c.id.partition(".")[0] for c in found}
        papers = [load_paper(name) for name in PAPERS if name in named]
        if line := pointer(((c.id, c.form) for c in found), papers):
            console.print(line)
    both = len(before.keys() & after.keys())
    counts = {w: sum(c.what == w for c in found) for w in dict.fromkeys(c.what for c in found)}
    words = ", ".join(f"{count} {what}" for what, count in counts.items()) or "no change"
    console.print(f"{both} forms in both: {words}", markup=False)
    return int(bool(found))
