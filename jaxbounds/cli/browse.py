"""`jaxbounds list`, `show`, `errata` and `replay`."""

from pathlib import Path
from typing import Annotated

import tyro

from jaxbounds import report
from jaxbounds.cli.cache import use_compilation_cache
from jaxbounds.cli.common import (
    Imports,
    Patterns,
    all_statements,
    console_for_output,
    find_statement,
)
from jaxbounds.falsify import load_instance, replay
from jaxbounds.statements import load_papers, select


def list_statements(patterns: Patterns = (), /, *, imports: Imports = ()) -> int:
    """List the statements: id, label in the paper, kind, forms.

    Args:
        patterns: ids, the beginning of ids, or shell patterns.
        imports: modules or files that hold a PAPER of your own.
    """
    console_for_output().print(report.statement_table(select(all_statements(imports), patterns)))
    return 0


def show(name: Annotated[str, tyro.conf.Positional], /, *, imports: Imports = ()) -> int:
    """Show one statement: claim, hypotheses, forms with their proofs or errata, source.

    Args:
        name: its id, or a pattern.
        imports: modules or files that hold a PAPER of your own.
    """
    for statement in select(all_statements(imports), (name,)):
        console_for_output().print(report.describe(statement))
    return 0


def errata(
    papers: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PAPER")] = (),
    /,
    *,
    imports: Imports = (),
) -> int:
    """List the errata of the papers, with evidence and consequence.

    Args:
        papers: ids of papers; all of them unless given.
        imports: modules or files that hold a PAPER of your own.
    """
    known = load_papers(imports)
    unknown = set(papers) - {paper.id for paper in known}
    if unknown:
        names = ", ".join(paper.id for paper in known)
        raise ValueError(f"no paper {', '.join(sorted(unknown))}; there are: {names}")
    for paper in known:
        if not papers or paper.id in papers:
            for erratum in paper.errata:
                console_for_output().print(report.describe_erratum(erratum, paper))
            for label, reason in paper.unchecked.items():
                console_for_output().print(
                    f"{paper.id}: not checked: {label}: {reason}", style="dim"
                )
    return 0


def replay_file(file: Annotated[Path, tyro.conf.Positional], /, *, imports: Imports = ()) -> int:
    """Measure a stored instance again and compare with the ratio stored in it.

    Exit status 0 when the ratio is the stored one, 1 when it is not.

    Args:
        file: a .npz file from worst/ or counterexamples/.
        imports: modules or files that hold a PAPER of your own.
    """
    use_compilation_cache()
    console, stored = console_for_output(), load_instance(file)
    statement, ratios, before = replay(lambda name: find_statement(imports, name), stored)
    console.print(f"{statement.id}  {statement.label}: {statement.formula}")
    for name, value in ratios.items():
        console.print(f"  {name:<24} {value!r}")
    now = ratios[stored.meta["form"]]
    console.print(report.instance_text(stored.instance), markup=False)
    same = now == before or abs(now - before) <= 1e-12 * abs(before)
    console.print(
        f"stored for {stored.meta['form']}: {before!r}: {'same' if same else 'DIFFERENT'}"
    )
    return int(not same)
