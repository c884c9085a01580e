"""Descriptions of a statement, an erratum or an instance, in words."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from jaxbounds.claims.statements import Erratum, Paper, Size, Statement, full_name
from jaxbounds.claims.statements.statement import ALONE
from jaxbounds.falsification import hypothesis_names
from jaxbounds.report.columns import number
from jaxbounds.report.quantifiers import checked, in_one_line, quantifiers
from jaxbounds.report.source import declaration, place, summary
from jaxbounds.report.tex import plain


def describe(statement: Statement, /) -> Text:
    """Describe a statement as it is declared: claim, hypotheses, forms with their proofs.

    A form is one version of the claim: printed, corrected or sharpened.
    """
    text, common = Text(), hypothesis_names(statement)

    def line(name: str, value: str) -> None:
        if value:
            text.append(f"{name:<12}", style="bold").append(f"{value}\n")

    text.append(f"{statement.id}  {statement.label}\n", style="bold cyan")
    line("refused", statement.refused)
    line("claim", in_one_line(statement))
    line("kind", statement.kind)
    line("assumes", statement.assumptions)
    for title, found in checked(statement, common):
        line("hypotheses" if "every" in title else "promised", ", ".join(found))
    line("source", statement.source)
    line("written in", declaration(statement) or place(statement.evaluate))
    for function in statement.judges:
        line("judges", full_name(function))
        for words in filter(None, (summary(function), place(function))):
            text.append(f"{'':<12}  {words}\n", style="dim")
    for name, words in quantifiers(statement):
        line(name, words)
    line("sizes", "; ".join(map(repr, statement.sizes)))
    line("samplers", ", ".join([*statement.samplers, *(["cases"] if statement.cases else [])]))
    line("search", statement.search)
    line("tolerance", f"{statement.tolerance:g} relative")
    if statement.level is not None:
        line("level", f"{statement.level:g}")
    line("control", statement.control_in_words)
    for form in statement.forms:
        text.append(f"\n{form.name}", style="bold").append(f"  expected: {form.expected}")
        text.append(f"  erratum {form.erratum}\n" if form.erratum else "\n")
        named = hypothesis_names(statement, form) if form.hypotheses else ()
        own = [name for name in named if name not in common]
        parts = ("", form.note), ("if: ", ", ".join(own)), ("equality: ", form.equality)
        for name, value in parts:
            if value:
                text.append(f"  {name}{' '.join(value.split())}\n")
        if form.counterexample is not None:
            shown = form.counterexample
            text.append(f"  counterexample at {Size(shown.size)!r}, ratio {number(shown.ratio)}: ")
            text.append(f"{instance_text(shown.instance)}\n")
    return text


LONGEST = 600
"""The largest number of characters of an instance that the output shows. If this number is larger,
the output shows more of an instance."""


def _listed(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _listed(entry) for name, entry in value.items() if name != ALONE}
    # Adding zero turns -0.0 into 0.0.
    return (np.asarray(value) + 0).tolist()


def instance_text(instance: object, /) -> str:
    """Return an instance as readable text; a long text is cut."""
    words = str(_listed(instance))
    return words if len(words) < LONGEST else words[:LONGEST] + " ..."


def sides_text(relation: str, meta: Mapping[str, Any], /) -> str:
    """Return a text with both sides at a stored instance, if the reported ratio is not lhs/rhs.

    The reported ratio is not lhs/rhs if the bound is zero or negative. The text is empty if the
    ratio is lhs/rhs, or if a side is not stored.
    """
    lhs, rhs = (meta.get(side) for side in ("lhs", "rhs"))
    if not isinstance(lhs, int | float) or not isinstance(rhs, int | float):
        return ""
    left, right = (number(side) if side else "0" for side in (lhs, rhs))
    quotient = (lhs if relation == ">=" else rhs) > 0
    return "" if quotient else f"the left side {left} against the right side {right}"


def instance_code(instance: object, file: Path, /) -> str:
    """Return an instance as Python code: its numbers, or the call that loads its file."""
    words = str(_listed(instance))
    plain = len(words) < LONGEST and "inf" not in words and "nan" not in words
    return words if plain else f"jb.load_instance({str(file)!r}).instance"


def number_code(ratio: str, /) -> str:
    """Return a stored number as Python code, such as "1.5" or 'float("nan")'."""
    return ratio if math.isfinite(float(ratio)) else f'float("{ratio}")'


def describe_erratum(erratum: Erratum, paper: Paper, /) -> Text:
    """Describe an erratum: the quote, the error, the consequence, and the evidence."""
    text = Text()
    text.append(f"{paper.id} {erratum.id}", style="bold cyan")
    text.append(f"  {erratum.where}  [{erratum.kind}]\n")
    readings = zip(("false if read so: ", "true if read so: "), erratum.readings)
    parts = [
        ("the paper: ", plain(erratum.quote)),
        ("", erratum.text),
        ("", erratum.detail),
        *readings,
        ("so: ", erratum.consequence),
        ("main theorems: ", erratum.main),
    ]
    for name, value in parts:
        if value:
            text.append(f"  {name}{' '.join(value.split())}\n")
    text.append(f"  evidence: {erratum.evidence}\n", style="dim")
    return text
