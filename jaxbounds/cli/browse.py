"""The commands `jaxbounds list`, `show`, `errata` and `replay`."""

import dataclasses
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.text import Text

from jaxbounds import report
from jaxbounds.claims.renamed import current_form
from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.claims.statements.paper import Weight
from jaxbounds.cli.answers import answer
from jaxbounds.cli.common import (
    Imports,
    Kinds,
    Patterns,
    console_for_output,
    print_json,
)
from jaxbounds.cli.figures import about_figure
from jaxbounds.falsification import hypothesis_names, load_instance, replay
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.to_json import to_json
from jaxbounds.papers import find_statement, judges_of, load_papers, named_in_print, selected
from jaxbounds.report.codes import carrying, describe_code, legend, papers_with, pointer
from jaxbounds.report.headline import in_brief
from jaxbounds.report.schemas import paper_json, statement_json
from jaxbounds.report.source import declaration
from jaxbounds.runs.cache import prepare_jax


def list_statements(
    patterns: Patterns = (),
    /,
    *,
    judging: str = "",
    kind: Kinds = (),
    json: bool = False,
    imports: Imports = (),
) -> int:
    """List the statements: id, label in the paper, kind, and forms (versions of the claim).

    Args:
        patterns: ids, the beginning of ids, or shell patterns.
        judging: list only the statements that judge this function of the library. Give the
            function's full name or the end of the name.
        kind: list only statements of this kind, such as "inequality"; the option may be repeated.
        json: print JSON (see `jaxbounds schema statements`).
        imports: the Python modules or files that define PAPER, if PAPER is your own paper.
    """
    selection = selected(patterns, imports=imports, kinds=kind)
    chosen = selection.statements
    if judging:
        chosen = judges_of(chosen, judging)
    if json:
        print_json([statement_json(statement) for statement in chosen])
        return 0
    console = console_for_output()
    console.print(report.statement_table(chosen, width=console.width))
    if line := pointer(((s.id, form.name) for s in chosen for form in s.forms), selection.papers):
        console.print(line)
    return 0


def show(
    words: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    /,
    *,
    code: bool = False,
    kind: Kinds = (),
    json: bool = False,
    imports: Imports = (),
) -> int:
    """Show one statement: claim, hypotheses, forms with their proofs or errata, source.

    A form is one version of the claim: printed, corrected or sharpened.

    For a code, a short name such as "multihead.S6", the command prints its explanation. For a
    figure ("multihead Figure 2"), the command prints how to draw the figure.

    Args:
        words: the id of the statement, a pattern, or an item as the papers number it ("seqlength
            Theorem 4.1"); or a code of a paper; or a figure. You may add Python files that define
            your own PAPER.
        code: also print the Python code of the statement: its declaration, and the functions that
            it judges.
        kind: show only statements of this kind, such as "inequality"; the option may be repeated.
        json: print JSON (see `jaxbounds schema statements`).
        imports: the Python modules or files that define PAPER, if PAPER is your own paper.
    """
    files = tuple(word for word in words if word.endswith(".py"))
    name, imports = " ".join(word for word in words if word not in files), (*imports, *files)
    if not name:
        raise Refused(
            f"{words=} contain no statement's name. Try jaxbounds show multihead.lemma1.hessian"
        )
    explained = papers_with(name, _papers(name, imports))
    figures = list(about_figure(name))
    chosen, papers = _statements(name, explained, figures, imports, kind)
    if json:
        print_json([statement_json(s) | _shown(s) for s in chosen])
        return 0
    for text in (*figures, *(describe_code(paper, one) for paper, one in explained)):
        console_for_output().print(text)
    for statement in () if explained else chosen:
        text = report.describe(statement)
        text.append_text(_legend(text, papers[statement.paper]))
        console_for_output().print(text)
    if code:
        console_for_output().print(report.source(chosen), soft_wrap=True)
    return 0


def _papers(name: str, imports: Imports) -> tuple[Paper, ...]:
    first = name.replace(" ", ".").partition(".")[0]
    return load_papers(imports, patterns=[first]) if re.search(r"[A-Z]", name) else ()


def _statements(
    name: str,
    explained: Sequence[tuple[Paper, str]],
    figures: Sequence[Text],
    imports: Imports,
    kind: Kinds,
) -> tuple[tuple[Statement, ...], dict[str, Paper]]:
    if explained:
        carriers = {s.id: s for paper, code in explained for s, _ in carrying(paper, code)}
        return tuple(carriers.values()), {}
    try:
        selection = selected(named_in_print(name), imports=imports, kinds=kind)
    except Refused:
        if figures:
            return (), {}
        raise
    return selection.statements, {paper.id: paper for paper in selection.papers}


def _legend(shown: Text, paper: Paper) -> Text:
    text = legend(shown.plain, paper)
    return Text("\n").append_text(text) if text else text


def _shown(statement: Statement) -> dict[str, Any]:
    names = {form.name: hypothesis_names(statement, form) for form in statement.forms}
    return {"hypotheses": to_json(names), "written_in": declaration(statement)}


def errata(
    papers: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PAPER")] = (),
    /,
    *,
    kind: Annotated[tuple[Weight, ...], tyro.conf.UseAppendAction] = (),
    brief: bool = False,
    json: bool = False,
    imports: Imports = (),
) -> int:
    """List each paper's results that remain true, its errata (the heaviest first), and remarks.

    Args:
        papers: the ids of papers; all papers unless given.
        brief: print a few lines: the number of errata, and the errata that change a main theorem.
        kind: list only errata of this class, such as "typo"; the option may be repeated.
        json: print JSON (see `jaxbounds schema errata`).
        imports: the Python modules or files that define PAPER, if PAPER is your own paper.
    """
    known = load_papers(imports, patterns=papers)
    unknown = set(papers) - {paper.id for paper in known}
    if unknown:
        names = ", ".join(paper.id for paper in known)
        raise Refused(
            f"no paper={', '.join(sorted(unknown))}. Try one of: {names} (a paper of your own "
            "needs --import FILE)"
        )
    chosen = [_of_weight(paper, kind) for paper in known if not papers or paper.id in papers]
    if json and brief:
        raise Refused(
            f"--brief and --json exclude each other, got brief={brief}, json={json}. Try --json "
            "alone"
        )
    if json:
        print_json([paper_json(paper) for paper in chosen])
        return 0
    console = console_for_output()
    if brief:
        for line in in_brief(chosen, console.width):
            console.print(line, markup=False)
        return 0
    for paper in chosen:
        if paper.survives:
            console.print(f"{paper.title}: {paper.survives}\n", markup=False)
        shown = [report.describe_erratum(erratum, paper) for erratum in paper.by_weight]
        for text in shown:
            console.print(text)
        for place, remark in paper.remarks.items() if not kind else ():
            console.print(f"{paper.id}: remark: {place}: {remark}", markup=False)
        for label, reason in paper.unchecked.items() if not kind else ():
            words = f"{paper.id}: not checked: {label}: {reason}"
            console.print(words, style="dim", markup=False)
        own = dataclasses.replace(paper, errata=())  # the codes of errata need no explanation
        if codes := legend("\n".join(text.plain for text in shown), own):
            console.print(Text(f"\n{paper.id}: its codes\n").append_text(codes))
    return 0


def _of_weight(paper: Paper, kinds: tuple[str, ...]) -> Paper:
    errata = tuple(e for e in paper.errata if not kinds or e.kind in kinds)
    return dataclasses.replace(paper, statements=(), errata=errata)


def replay_file(file: Annotated[Path, tyro.conf.Positional], /, *, imports: Imports = ()) -> int:
    """Measure a stored instance again, and compare its ratio lhs/rhs with the file's ratio.

    The exit status is 0 if the measured ratio equals the ratio in the file, and 1 otherwise.

    Args:
        file: a .npz file in worst/ or counterexamples/.
        imports: the Python modules or files that define PAPER, if PAPER is your own paper.
    """
    prepare_jax()
    console, stored = console_for_output(), load_instance(file)
    statement, ratios, before = replay(lambda name: find_statement(name, imports=imports), stored)
    console.print(
        f"{statement.id}  {statement.label}: {report.in_one_line(statement)}", markup=False
    )
    for name, value in ratios.items():
        console.print(f"  {name:<24} {value!r}", markup=False)
    now = ratios[current_form(statement.id, stored.meta["form"])]
    console.print(report.instance_text(stored.instance), markup=False)
    same = math.isclose(now, before, rel_tol=1e-12) or (math.isnan(now) and math.isnan(before))
    answer(id=statement.id, form=stored.meta["form"], ratios=ratios, stored=before)
    words = f"stored for {stored.meta['form']}: {before!r}: {'equal' if same else 'DIFFERENT'}"
    console.print(words, markup=False)
    return int(not same)
