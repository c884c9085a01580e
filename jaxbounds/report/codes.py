"""Explain codes (short names such as S6 and E3), and find the forms with a code.

A form is one version of a claim: printed, corrected or sharpened.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.text import Text

from jaxbounds.claims.statements import Form, Paper, Statement
from jaxbounds.ground.exceptions import Refused
from jaxbounds.report.describe import describe_erratum

NAMED = 3
"""The largest number of codes (short names such as S6) that one line names. If this number is
larger, a line may exceed the screen's width."""


def explained(paper: Paper, /) -> dict[str, str]:
    """Return a dictionary from each short name of a paper (such as S6 or E5) to its explanation."""
    errata = {e.id: f"Erratum ({e.kind}) at {e.where}." for e in paper.errata}
    return {**paper.codes, **errata}


def codes_in(words: str, known: Iterable[str], /) -> tuple[str, ...]:
    """Return the codes (such as S6) that occur in a text, each once, in the order of the text."""
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    found = re.findall(rf"(?<![\w.])(?:{names})(?![\w#])", words) if names else ()
    return tuple(dict.fromkeys(found))


def legend(words: str, paper: Paper, /) -> Text:
    """Explain each code (short name such as S6) in a text on its own line; empty without codes."""
    known, text = explained(paper), Text()
    for code in codes_in(words, known):
        text.append(f"{code:<12}", style="bold").append(f"{known[code]}\n")
    return text


def pointer(forms: Iterable[tuple[str, str]], papers: Sequence[Paper], /) -> str:
    """Return a line for the end of a table: the command that explains the codes of its forms.

    A form is a version of a claim. The result is "" if no form has a code (short name such as S6).
    """
    known = {paper.id: explained(paper) for paper in papers}
    found: dict[str, None] = {}
    for name, form in forms:
        paper = name.partition(".")[0]
        found |= dict.fromkeys(f"{paper}.{c}" for c in codes_in(form, known.get(paper, ())))
    if not found:
        return ""
    first, *others = found
    more = ", ".join(code.partition(".")[2] for code in others[: NAMED - 1])
    more += ", ..." if len(others) >= NAMED else ""
    return f"codes: `jaxbounds show {first}` explains {first.partition('.')[2]}" + (
        f", and so for {more}" if more else ""
    )


def carrying(paper: Paper, code: str, /) -> Iterator[tuple[Statement, Form]]:
    """Yield the forms (versions of claims) with the code in their name or as their erratum."""
    for statement in paper.statements:
        for form in statement.forms:
            if form.erratum == code or codes_in(form.name, (code,)):
                yield statement, form


def describe_code(paper: Paper, code: str, /) -> Text:
    """Return a code's explanation, the forms (versions of claims) with the code, and a command."""
    errata = {erratum.id: erratum for erratum in paper.errata}
    text = Text()
    if code in paper.codes:
        text.append(f"{paper.id} {code}", style="bold cyan").append("\n")
        text.append(f"  {paper.codes[code]}\n")
    elif code in errata:
        text.append_text(describe_erratum(errata[code], paper))
    forms = dict[str, list[str]]()
    labels = {statement.id: statement.label for statement in paper.statements}
    for statement, form in carrying(paper, code):
        forms.setdefault(statement.id, []).append(form.name)
    for name, names in forms.items():
        words = names[0] if len(names) == 1 else f"{len(names)} forms"
        text.append(f"  {name}  {labels[name]}: {words}\n", style="dim")
    if forms:
        text.append(f"  try: jaxbounds show {next(iter(forms))}\n")
    return text


def papers_with(name: str, papers: Iterable[Paper], /) -> list[tuple[Paper, str]]:
    """Return the papers that explain a code (short name such as S6), each with the code.

    The name is "multihead.S6", "multihead S6", or "S6" for all papers that have the code.

    Raises:
        Refused: if the name has the form of a code, such as S77, and no paper has this code.
    """
    first, _, rest = name.strip().replace(" ", ".", 1).partition(".")
    among = [p for p in papers if p.id == first] if rest else list(papers)
    code = rest or first
    found = [(paper, one) for paper in among for one in explained(paper) if one == code]
    if found or not among or not re.fullmatch(r"[A-Z]{1,3}\d{1,3}", code):
        return found
    known: Mapping[str, str] = {c: text for paper in among for c, text in explained(paper).items()}
    near = difflib.get_close_matches(code, known, 3, 0.4) or list(known)[:3]
    also = "".join(f"{one}, or " for one in near[:1])
    raise Refused(f"code={name!r} is in no paper. Try {also}jaxbounds guide codes")
