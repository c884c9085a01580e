"""`jaxbounds list`, `show`, `errata` and `replay`."""

import math
from pathlib import Path
from typing import Annotated

import tyro

from jaxbounds import report
from jaxbounds.cli.cache import prepare_jax
from jaxbounds.cli.common import (
    Imports,
    Patterns,
    console_for_output,
    statements_of,
)
from jaxbounds.falsify import load_instance, replay
from jaxbounds.papers import find_statement, load_papers, named_in_print
from jaxbounds.papers import judging as that_judge


def list_statements(patterns: Patterns = (), /, *, judging: str = "", imports: Imports = ()) -> int:
    """List the statements: id, label in the paper, kind, forms.

    Args:
        patterns: ids, the beginning of ids, or shell patterns.
        judging: a function's full name, or its end: only the statements that judge it.
        imports: modules or files that hold a PAPER of your own.
    """
    chosen = statements_of(imports, patterns)
    if judging:
        chosen = that_judge(chosen, judging)
    console = console_for_output()
    console.print(report.statement_table(chosen, width=console.width))
    return 0


def show(
    name: Annotated[str, tyro.conf.Positional],
    /,
    *,
    code: bool = False,
    imports: Imports = (),
) -> int:
    """Show one statement: claim, hypotheses, forms with their proofs or errata, source.

    Args:
        name: its id or a pattern, or an item as the papers number it ("seqlength Theorem 4.1").
        code: print the code behind it, too: the declaration, and what is run to judge it.
        imports: modules or files that hold a PAPER of your own.
    """
    chosen = statements_of(imports, named_in_print(name))
    for statement in chosen:
        console_for_output().print(report.describe(statement))
    if code:
        console_for_output().print(report.source(chosen), soft_wrap=True)
    return 0


def errata(
    papers: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PAPER")] = (),
    /,
    *,
    imports: Imports = (),
) -> int:
    """List the errata of the papers by weight, after what survives them; then remarks.

    Args:
        papers: ids of papers; all of them unless given.
        imports: modules or files that hold a PAPER of your own.
    """
    known = load_papers(imports, patterns=papers)
    unknown = set(papers) - {paper.id for paper in known}
    if unknown:
        names = ", ".join(paper.id for paper in known)
        raise ValueError(f"no paper {', '.join(sorted(unknown))}; there are: {names}")
    for paper in known:
        if not papers or paper.id in papers:
            if paper.survives:
                console_for_output().print(f"{paper.title}: {paper.survives}\n", markup=False)
            for erratum in paper.by_weight:
                console_for_output().print(report.describe_erratum(erratum, paper))
            for place, remark in paper.remarks.items():
                console_for_output().print(f"{paper.id}: remark: {place}: {remark}", markup=False)
            for label, reason in paper.unchecked.items():
                words = f"{paper.id}: not checked: {label}: {reason}"
                console_for_output().print(words, style="dim", markup=False)
    return 0


def replay_file(file: Annotated[Path, tyro.conf.Positional], /, *, imports: Imports = ()) -> int:
    """Measure a stored instance again and compare with the ratio stored in it.

    Exit status 0 when the ratio is the stored one, 1 when it is not.

    Args:
        file: a .npz file from worst/ or counterexamples/.
        imports: modules or files that hold a PAPER of your own.
    """
    prepare_jax()
    console, stored = console_for_output(), load_instance(file)
    statement, ratios, before = replay(lambda name: find_statement(name, imports=imports), stored)
    console.print(f"{statement.id}  {statement.label}: {statement.formula}", markup=False)
    for name, value in ratios.items():
        console.print(f"  {name:<24} {value!r}", markup=False)
    now = ratios[stored.meta["form"]]
    console.print(report.instance_text(stored.instance), markup=False)
    same = math.isclose(now, before, rel_tol=1e-12) or (math.isnan(now) and math.isnan(before))
    words = f"stored for {stored.meta['form']}: {before!r}: {'same' if same else 'DIFFERENT'}"
    console.print(words, markup=False)
    return int(not same)
