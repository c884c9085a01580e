"""`jaxbounds constant`: the sharp constants of inequalities, and those of the papers on record."""

import importlib.util
import json as json_module
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from jaxbounds import plotting
from jaxbounds.cli.cache import prepare_jax
from jaxbounds.cli.common import (
    Imports,
    Patterns,
    console_for_output,
    statements_of,
    with_earlier,
)
from jaxbounds.cli.engines import HERE, On, in_this_process, opened
from jaxbounds.cli.interruption import look
from jaxbounds.cli.pieces import Died, absolute, each
from jaxbounds.cli.workers import at_most
from jaxbounds.constants import SharpConstant, parse
from jaxbounds.constants.recorded import FILE, recorded
from jaxbounds.constants.sizes import grown
from jaxbounds.files import try_to_write, whole, write_text
from jaxbounds.papers import PAPERS, find_statement, origin
from jaxbounds.report.constants import constant_figure, constant_table, constant_text
from jaxbounds.report.schemas import plain
from jaxbounds.statements import Form, Statement

MISSING = "constants need python-flint and mpmath: pip install 'jaxbounds[constants]'"
SMALL = 400
"""Characters of an extremal instance that is kept on record."""


def _forms(statement: Statement, name: str) -> tuple[Form, ...]:
    """The form of that name, or those that begin with it."""
    exact = tuple(form for form in statement.forms if form.name == name)
    word = tuple(f for f in statement.forms if f.name.startswith((f"{name},", f"{name} ")))
    return (*exact, *word)


def _decided_by_instances(statement: Statement) -> bool:
    averaged = statement.kind in ("rate", "probability", "expectation")
    return statement.relation == "<=" and not averaged


class Task(NamedTuple):
    """A form whose constant one process looks for; whether its statement is all that was named."""

    id: str
    form: str
    imports: tuple[str, ...]
    axes: dict[str, tuple[int, ...]]
    seed: int
    seconds: float
    grow: bool
    single: bool


def _by_id(task: Task) -> SharpConstant | str:
    """The constant, or why there is none: one broken statement must not cost the others."""
    from jaxbounds.constants.constant import sharp_constant  # needs the extra

    try:
        statement = find_statement(task.id, imports=task.imports)
        sizes = grown(statement, task.form) if task.grow and not task.axes else task.axes
        return sharp_constant(
            statement, task.form, sizes=sizes, seed=task.seed, seconds=task.seconds
        )
    except (ValueError, ModuleNotFoundError) as problem:
        if task.single:
            raise
        return origin(problem)
    except Exception as problem:
        return origin(problem)


def _in_turn(
    tasks: Sequence[Task], jobs: int, on: On, out: Path
) -> Iterator[tuple[Task, SharpConstant | str]]:
    if in_this_process(on, jobs, len(tasks)):
        for task in tasks:
            look()
            yield task, _by_id(task)
        return
    with opened(on, count=min(at_most(jobs), len(tasks)), folder=out) as executor:
        away = [task._replace(imports=absolute(task.imports)) for task in tasks]
        for task, outcome in each(executor, _by_id, away):
            yield task, str(outcome) if isinstance(outcome, Died) else outcome


def _draw(constant: SharpConstant, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    with plotting.style(), whole(file) as to:
        figure = constant_figure(constant)
        figure.savefig(to, format="svg")
    importlib.import_module("matplotlib.pyplot").close(figure)


def constant(
    patterns: Patterns = (),
    /,
    *,
    sizes: tuple[str, ...] = (),
    form: str = "printed",
    seed: int = 0,
    seconds: float = 30.0,
    out: Path = Path("results/constant"),
    json: bool = False,
    grow: bool = False,
    record: bool = False,
    jobs: int = 1,
    imports: Imports = (),
    on: On = HERE,
) -> int:
    """The sharp constant of a form: the largest lhs/rhs, size by size, and how it grows.

    What is found is a lower estimate of the supremum. Digits are certified where ball arithmetic
    can enclose the ratio at the extremal instance; closed forms rest on those alone. Needs the
    extra `constants` (python-flint, mpmath).

    Exit status 0; 1 when a form could not be measured or the run was interrupted; 2 on bad usage;
    3 when nothing can be written.

    Args:
        patterns: ids, the beginning of ids, or shell patterns.
        sizes: axes with their values, as T=2,4,8 d=2,4: all combinations; axes that are not named
            are as in the first of the statement's sizes. Its own sizes unless given.
        form: its name, or how it begins ("printed": also "printed, Lemma 6").
        seed: of the draws.
        seconds: of processor time for each size; half of it polishes starts.
        out: folder for constants.json, which keeps what it holds of other forms, and a figure of
            each constant (with matplotlib).
        json: print the JSON instead of tables (see `jaxbounds schema constants`).
        grow: besides the statement's own sizes, its first with each axis doubled in turn.
        record: of shipped papers: keep what is found on record, for the page.
        jobs: processes; 0 means one for each core.
        imports: modules or files that hold a PAPER of your own.
        on: where the forms are worked on.
    """
    if not patterns and not record:
        raise ValueError("name a statement, as in `jaxbounds constant multihead.eq42`")
    if any(importlib.util.find_spec(name) is None for name in ("flint", "mpmath")):
        raise ValueError(MISSING)
    if jobs < 0 or not 0 < seconds < 1e6:
        raise ValueError(f"--jobs or --seconds make no sense: {jobs}, {seconds}")
    chosen = statements_of(imports, patterns)
    if record:
        chosen = tuple(s for s in chosen if s.paper in PAPERS)
    single = len(chosen) == 1
    if not single:
        chosen = tuple(s for s in chosen if _decided_by_instances(s) and _forms(s, form))
    for statement in chosen:
        if not _forms(statement, form):
            names = ", ".join(f.name for f in statement.forms)
            raise ValueError(f"{statement.id} has no form {form!r}; it has: {names}")
    axes = parse(sizes)
    try_to_write(out)
    prepare_jax()
    console, found, broken = console_for_output(), list[SharpConstant](), 0
    pairs = [(s, f.name) for s in chosen for f in _forms(s, form)]
    tasks = [Task(s.id, name, imports, axes, seed, seconds, grow, single) for s, name in pairs]
    try:
        for task, one in _in_turn(tasks, jobs, on, out):
            if isinstance(one, str):
                print(f"{task.id} ({task.form}): {one}", file=sys.stderr)
                broken += 1
                continue
            found.append(one)
            best = one.largest
            print(f"{one.id} ({one.form}): {best.ratio:.6g}, {best.where}", file=sys.stderr)
            if record:
                _keep(one)
            if not json:
                console.print(f"\n{one.id}  {one.label}  {one.form}: {one.formula}", markup=False)
                console.print(constant_table(one, width=console.width))
                console.print(constant_text(one), markup=False)
    except KeyboardInterrupt:
        broken += 1
        print("interrupted: what was found is written", file=sys.stderr)
    if json:
        print(json_module.dumps(plain(found), indent=1))
    merged = with_earlier(out / "constants.json", plain(found))
    written = list(_written(out, found, merged))
    print(f"written to {out}: {', '.join(written)}", file=sys.stderr)
    return int(bool(broken))


def _keep(constant: SharpConstant) -> None:
    """Put a constant on record, in place of that of the same form."""
    fits = lambda instance: len(json_module.dumps(instance)) <= SMALL
    # Seconds are of no interest, and never twice the same.
    sizes = (
        replace(s, instance=s.instance if fits(s.instance) else {}, seconds=0.0)
        for s in constant.sizes
    )
    kept = {(c.id, c.form): c for c in recorded()}
    kept[constant.id, constant.form] = replace(constant, sizes=tuple(sizes))
    order = lambda c: (list(PAPERS).index(c.id.split(".")[0]), c.id, c.form)
    lines = (f" {json_module.dumps(plain(c))}" for c in sorted(kept.values(), key=order))
    write_text(FILE, "[\n" + ",\n".join(lines) + "\n]\n")


def _written(out: Path, found: Sequence[SharpConstant], text: str) -> Iterator[str]:
    write_text(out / "constants.json", text + "\n")
    yield "constants.json"
    if importlib.util.find_spec("matplotlib") is None:
        return
    for one in found:
        if len(one.sizes) > 1 and one.largest.ratio > 0:
            words = one.form.replace(", ", "-").replace(" ", "-").replace("/", "-")
            name = f"{one.id}.{words}.svg"
            _draw(one, out / name)
            yield name
