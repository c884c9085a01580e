"""Tables and descriptions for the terminal."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from jaxbounds.falsify import Verdict, hypothesis_names
from jaxbounds.statements import Erratum, Paper, Statement

STYLES = {
    "holds": "green",
    "consistent": "green",
    "fails": "yellow",
    "inconsistent": "yellow",
    "vacuous": "blue",
    "inconclusive": "magenta",
}


def number(value: float, /) -> str:
    """A ratio in at most eight characters, never rounded to one when it is not one."""
    if value is None or math.isnan(value):
        return "-"
    if 0 < abs(value) < 1e-3 or abs(value) >= 1e4:
        return f"{value:.2g}"
    if value != 1 and abs(value - 1) < 5e-4:
        return f"1{value - 1:+.0e}"
    return f"{value:.3f}"


def grouped(verdicts: Iterable[Verdict], /) -> dict[str, list[Verdict]]:
    """Verdicts by statement, in the order given."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.id, []).append(verdict)
    return groups


def verdict_table(verdicts: Sequence[Verdict], /) -> Table:
    """One row a statement, one line a form; what is not as expected is marked."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=False)
    table.add_column("statement", no_wrap=True)
    for name in ("kind", "form", "verdict"):
        table.add_column(name)
    for name in ("worst ratio", "samples"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, group in grouped(verdicts).items():
        for line, verdict in enumerate(group):
            first, second = Text(""), Text("")
            if line == 0:
                first, second = Text(name), Text(verdict.kind)
            elif line == 1:
                first = Text(verdict.label, style="dim")
            status = Text(verdict.status, style=STYLES[verdict.status])
            if not verdict.as_expected:
                status.append(f" (expected {verdict.expected})", style="bold red")
            table.add_row(
                first,
                second,
                verdict.form,
                status,
                number(verdict.worst_ratio),
                str(verdict.instances),
            )
    return table


def summary(verdicts: Sequence[Verdict], /) -> str:
    """How many statements and forms, by status, and how many are not as expected."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.status] = counts.get(verdict.status, 0) + 1
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    unexpected = sum(not verdict.as_expected for verdict in verdicts)
    ending = "all as expected" if not unexpected else f"{unexpected} NOT as expected"
    count = lambda n, word: f"{n} {word}" + ("" if n == 1 else "s")
    things = f"{count(len(grouped(verdicts)), 'statement')}, {count(len(verdicts), 'form')}"
    return f"{things}: {statuses}; {ending}"


def statement_table(statements: Iterable[Statement], /) -> Table:
    """What there is: id, label, kind, forms and the formula."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("statement", no_wrap=True)
    for name in ("label", "kind", "forms"):
        table.add_column(name)
    for s in statements:
        forms = "; ".join(
            f.name + ("" if f.expected in ("holds", "consistent") else f" [{f.expected}]")
            for f in s.forms
        )
        table.add_row(Text(s.id), Text(s.label), s.kind, Text(forms))
    return table


def describe(statement: Statement, /) -> Text:
    """Everything the library knows about a statement before measuring it."""
    text = Text()

    def line(name: str, value: str) -> None:
        if value:
            text.append(f"{name:<12}", style="bold").append(f"{value}\n")

    text.append(f"{statement.id}  {statement.label}\n", style="bold cyan")
    line("claim", statement.formula)
    line("kind", statement.kind)
    line("assumes", statement.assumptions)
    line("hypotheses", ", ".join(hypothesis_names(statement)))
    line("source", statement.source)
    line("sizes", "; ".join(", ".join(f"{k}={v}" for k, v in s.items()) for s in statement.sizes))
    line("samplers", ", ".join([*statement.sample, *(["cases"] if statement.cases else [])]))
    line("search", statement.search)
    line("tolerance", f"{statement.tolerance:g} relative")
    if statement.level is not None:
        line("level", f"{statement.level:g}")
    line("control", statement.control)
    for form in statement.forms:
        text.append(f"\n{form.name}", style="bold").append(f"  expected: {form.expected}")
        text.append(f"  erratum {form.erratum}\n" if form.erratum else "\n")
        for name, value in (("", form.note), ("equality: ", form.equality)):
            if value:
                text.append(f"  {name}{' '.join(value.split())}\n")
        if form.counterexample is not None:
            text.append(f"  counterexample: {instance_text(form.counterexample)}\n")
    return text


def instance_text(instance: object, /) -> str:
    """An instance as Python, ready to be pasted as a counterexample; long ones are cut."""

    def plain(value: object) -> object:
        if isinstance(value, Mapping):
            return {name: plain(entry) for name, entry in value.items()}
        # Adding zero turns -0.0 into 0.0.
        return (np.asarray(value) + 0).tolist()

    words = str(plain(instance))
    return words if len(words) < 600 else words[:600] + " ..."


def describe_erratum(erratum: Erratum, paper: Paper, /) -> Text:
    """An erratum with its evidence and consequence."""
    text = Text()
    text.append(f"{paper.id} {erratum.id}", style="bold cyan")
    text.append(f"  {erratum.where}  [{erratum.kind}]\n")
    for name, value in (("", erratum.text), ("so: ", erratum.consequence)):
        if value:
            text.append(f"  {name}{' '.join(value.split())}\n")
    text.append(f"  evidence: {erratum.evidence}\n", style="dim")
    return text
