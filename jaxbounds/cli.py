"""The command line: `jaxbounds verify`, `list`, `show`, `errata`, `replay`."""

import concurrent.futures
import importlib.metadata
import json
import multiprocessing
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jaxbounds import report
from jaxbounds.falsify import Verdict, falsify, load_instance, replay
from jaxbounds.statements import Statement, load_papers, select

Patterns = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATTERN")]
Imports = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="import", metavar="MODULE")
]

THOROUGH = 10.0
"""Factor on samples and restarts of `--thorough`."""


def _console() -> Console:
    # A file or a pipe gets the width that the table is made for.
    width = None if sys.stdout.isatty() else 100
    return Console(width=width, highlight=False)


def _use_compilation_cache() -> None:
    """Keep compiled programs between runs, unless the user's environment already says where."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        jax.config.update("jax_compilation_cache_dir", str(root / "jaxbounds" / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _statements(imports: tuple[str, ...]) -> tuple[Statement, ...]:
    return tuple(s for paper in load_papers(imports) for s in paper.statements)


def _find(imports: tuple[str, ...], name: str) -> Statement:
    return select(_statements(imports), (name,))[0]


def _verify_one(name: str, imports: tuple[str, ...], seed: int, factor: float, out: str):
    statement = _find(imports, name)
    return falsify(statement, seed=seed, budget=statement.budget.scaled(factor), store=out)


def _in_turn(names, jobs, *arguments) -> Iterator[tuple[str, tuple[Verdict, ...]]]:
    """Verdicts as they come, from this process or from several."""
    if jobs == 1:
        _use_compilation_cache()
        for name in names:
            yield name, _verify_one(name, *arguments)
        return
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_use_compilation_cache
    ) as pool:
        waiting = {pool.submit(_verify_one, name, *arguments): name for name in names}
        try:
            for done in concurrent.futures.as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def provenance(**settings: Any) -> dict[str, Any]:
    """Versions and settings that a run depends on."""
    versions = {
        name: importlib.metadata.version(name)
        for name in ("jaxbounds", "jax", "jaxlib", "numpy", "scipy")
    }
    return (
        versions
        | {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "device": "cpu",
            "precision": "float64",
            "prng": str(jax.config.jax_default_prng_impl),
        }
        | settings
    )


def verify(
    patterns: Patterns = (),
    /,
    *,
    out: Path = Path("results/verify"),
    seed: int = 0,
    jobs: int = 0,
    thorough: bool = False,
    imports: Imports = (),
) -> int:
    """Check the statements, all or those whose id matches, and print a verdict for each form.

    Exit status 0 when every verdict is as expected, errata included; 1 when one is not; 2 on bad
    usage.

    Args:
        patterns: ids, the beginning of ids ("multihead"), or shell patterns ("*.cor1.*").
        out: folder for verdicts.json, report.html, worst instances and counterexamples.
        seed: of all draws.
        jobs: processes; 0 means one for each core.
        thorough: ten times the samples and searches.
        imports: modules or files that hold a PAPER of your own.
    """
    console = _console()
    everything = _statements(imports)
    chosen = select(everything, patterns)
    if jobs < 0 or seed < 0:
        raise ValueError(f"--jobs and --seed cannot be negative, got {jobs} and {seed}")
    jobs = min(jobs or os.cpu_count() or 1, len(chosen))
    names = [s.id for s in chosen]
    done: dict[str, tuple[Verdict, ...]] = {}
    interrupted = False
    columns = (
        TextColumn("{task.description:<28.28}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    factor = THOROUGH if thorough else 1.0
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=len(names))
        try:
            for name, verdicts in _in_turn(names, jobs, imports, seed, factor, str(out)):
                done[name] = verdicts
                progress.update(task, advance=1, description=name)
        except KeyboardInterrupt:
            interrupted = True
    verdicts = tuple(v for name in names for v in done.get(name, ()))
    run = provenance(seed=seed, thorough=thorough, patterns=list(patterns))
    _write(out, "verdicts.json", json.dumps([v.to_json() for v in verdicts], indent=1))
    _write(out, "run.json", json.dumps(run, indent=1))
    _write(out, "report.html", report.html_page(verdicts, everything, run))
    console.print(report.verdict_table(verdicts))
    console.print(report.summary(verdicts))
    for verdict in verdicts:
        if not verdict.as_expected:
            console.print(f"[bold red]{verdict.id}[/] ({verdict.form}): {verdict.reason}")
    console.print(f"written to {out}: verdicts.json, report.html, worst/, counterexamples/")
    if interrupted:
        console.print(f"interrupted: {len(names) - len(done)} statements were not tried")
        return 1
    return int(not all(v.as_expected for v in verdicts))


def _write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{name}.partial"
    partial.write_text(text + "\n", encoding="utf8")
    os.replace(partial, folder / name)


def list_statements(patterns: Patterns = (), /, *, imports: Imports = ()) -> int:
    """List the statements: id, label in the paper, kind, forms.

    Args:
        patterns: ids, the beginning of ids, or shell patterns.
        imports: modules or files that hold a PAPER of your own.
    """
    _console().print(report.statement_table(select(_statements(imports), patterns)))
    return 0


def show(name: Annotated[str, tyro.conf.Positional], /, *, imports: Imports = ()) -> int:
    """Show one statement: claim, hypotheses, forms with their proofs or errata, source.

    Args:
        name: its id, or a pattern.
        imports: modules or files that hold a PAPER of your own.
    """
    for statement in select(_statements(imports), (name,)):
        _console().print(report.describe(statement))
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
                _console().print(report.describe_erratum(erratum, paper))
            for label, reason in paper.unchecked.items():
                _console().print(f"{paper.id}: not checked: {label}: {reason}", style="dim")
    return 0


def replay_file(file: Annotated[Path, tyro.conf.Positional], /, *, imports: Imports = ()) -> int:
    """Measure a stored instance again and compare with the ratio stored in it.

    Exit status 0 when the ratio is the stored one, 1 when it is not.

    Args:
        file: a .npz file from worst/ or counterexamples/.
        imports: modules or files that hold a PAPER of your own.
    """
    _use_compilation_cache()
    console, stored = _console(), load_instance(file)
    statement, ratios, before = replay(lambda name: _find(imports, name), stored)
    console.print(f"{statement.id}  {statement.label}: {statement.formula}")
    for name, value in ratios.items():
        console.print(f"  {name:<24} {value!r}")
    now = ratios[stored.meta["form"]]
    same = now == before or abs(now - before) <= 1e-12 * abs(before)
    console.print(
        f"stored for {stored.meta['form']}: {before!r}: {'same' if same else 'DIFFERENT'}"
    )
    return int(not same)


COMMANDS = {
    "verify": verify,
    "list": list_statements,
    "show": show,
    "errata": errata,
    "replay": replay_file,
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; bad input gives one line on standard error and exit status 2."""
    try:
        return tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="jaxbounds",
            description="Learning theory on Transformers that runs.",
            args=arguments,
        )
    except ValueError as problem:
        print(f"jaxbounds: {problem}", file=sys.stderr)
        return 2
