"""`jaxbounds certify`: what fails is disproved, and witnesses for other programs are written."""

import functools
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from jaxbounds.certify import Certificate, Proof, disprove, proofs, witness_of
from jaxbounds.certify.audit import Audited
from jaxbounds.certify.audit import audit as audit_of
from jaxbounds.certify.failing import failing_forms, stored
from jaxbounds.cli.cache import prepare_jax
from jaxbounds.cli.common import Imports, Patterns, console_for_output, with_earlier
from jaxbounds.cli.engines import HERE, On, in_this_process, opened
from jaxbounds.cli.interruption import look
from jaxbounds.cli.pieces import Died, absolute, each
from jaxbounds.cli.workers import at_most
from jaxbounds.files import try_to_write, write_text
from jaxbounds.papers import PAPERS, find_statement, load_papers, origin, paper_of, select
from jaxbounds.report.certificates import certificates_table, counted
from jaxbounds.statements import Statement

Made = tuple[Certificate | Proof, dict[str, Any] | None]
"""A certificate with its witness, or a proof."""


SETTLED = ("disproved", "disproved as coded", "proved on D")


class Task(NamedTuple):
    """A statement that one process certifies."""

    id: str
    imports: tuple[str, ...]
    seconds: float


def _certify_one(statement: Statement, task: Task) -> list[Made]:
    made: list[Made] = []
    title = paper_of(statement, imports=task.imports).title
    known = any(form.domains for form in statement.forms)
    for failing in stored(statement) if known else failing_forms(statement):
        try:
            certificate = disprove(statement, *failing, seconds=task.seconds)
        except Exception as problem:  # one broken statement must not cost the others
            made.append((_without(statement.id, failing.form, origin(problem)), None))
            continue
        proved = certificate.word != "undecided"
        witness = witness_of(statement, failing.instance, certificate, title)
        made.append((certificate, witness if proved else None))
    return made + [(proof, None) for proof in proofs(statement, seconds=task.seconds)]


def _without(name: str, form: str, reason: str) -> Certificate:
    return Certificate(id=name, form=form, word="undecided", reason=reason)


def _by_id(task: Task) -> list[Made]:
    return _certify_one(find_statement(task.id, imports=task.imports), task)


def _for_anywhere(tasks: Sequence[Task]) -> list[Task]:
    return [task._replace(imports=absolute(task.imports)) for task in tasks]


def _in_turn(
    statements: Sequence[Statement], tasks: Sequence[Task], jobs: int, on: On, out: Path
) -> Iterator[list[Made]]:
    if in_this_process(on, jobs, len(tasks)):
        prepare_jax()
        for statement, task in zip(statements, tasks):
            look()
            yield _certify_one(statement, task)
        return
    with opened(on, count=min(at_most(jobs), len(tasks)), folder=out) as executor:
        for task, made in each(executor, _by_id, _for_anywhere(tasks)):
            if isinstance(made, Died):
                yield [(_without(task.id, "", str(made)), None)]
            else:
                yield made


def _audit_one(task: Task) -> list[Audited]:
    statement = find_statement(task.id, imports=task.imports)
    try:
        return audit_of(statement, seconds=task.seconds)
    except Exception as problem:  # one broken statement must not cost the others
        return [Audited(id=task.id, form="", finding="not run", reason=origin(problem))]


def _audit(tasks: Sequence[Task], out: Path, jobs: int, on: On) -> int:
    """What the float verdicts rest on, against ball arithmetic."""
    try_to_write(out)
    found: list[Audited] = []
    with opened(on, count=jobs, folder=out) as executor:
        for task, audited in each(executor, _audit_one, _for_anywhere(tasks)):
            if isinstance(audited, Died):
                audited = [Audited(id=task.id, form="", finding="not run", reason=str(audited))]
            found += audited
            words = ", ".join(sorted({a.finding for a in found if a.id == task.id}))
            print(f"{task.id}: {words or 'nothing to audit'}", file=sys.stderr)
    console = console_for_output()
    for a in found:
        if a.finding != "agrees":
            amount = f" by {a.amount:.2g}" if a.amount else ""
            console.print(f"{a.id} ({a.form}): {a.finding}{amount}: {a.reason}", markup=False)
    count = Counter(a.finding for a in found).most_common()
    console.print(", ".join(f"{many} {word}" for word, many in count))
    write_text(out / "audit.json", json.dumps([asdict(a) for a in found], indent=1))
    console.print(f"written to {out}: audit.json", markup=False)
    wrong = ("violated", "hypothesis missed", "error too small", "apart")
    return int(any(a.finding in wrong for a in found))


def certify(
    patterns: Patterns = (),
    /,
    *,
    out: Path = Path("results/certify"),
    seconds: float = 120.0,
    jobs: int = 0,
    audit: bool = False,
    imports: Imports = (),
    on: On = HERE,
) -> int:
    """Disprove the forms that fail, in ball arithmetic, and write a witness for each.

    Forms that name domains are proved on them, by branch and bound. Without ids: every form that
    stores a counterexample or names domains. A statement that is named, or is your own,
    and stores none is searched first. Needs the extra `certify` (python-flint).

    Exit status 0 when everything is disproved (also where only as coded) or proved; 1 when
    something is undecided or the run was interrupted; 2 on bad usage; 3 when nothing can be
    written.

    Args:
        patterns: ids, the beginning of ids ("multihead"), or shell patterns ("*.cor1.*").
        out: folder for certificates.json and witnesses/; what they hold of other forms stays.
        seconds: after which a form is undecided.
        jobs: processes; 0 means one for each core.
        audit: instead, compare what float64 measures with ball arithmetic, on draws of every form
            that holds; `seconds` is then for a statement.
        imports: modules or files that hold a PAPER of your own.
        on: where the statements are certified.
    """
    if jobs < 0 or not 0 < seconds < 1e6:
        raise ValueError(f"--jobs or --seconds make no sense: {jobs}, {seconds}")
    papers = load_papers(imports, patterns=patterns)
    chosen = select((s for paper in papers for s in paper.statements), patterns)
    tasks = [Task(s.id, imports, seconds) for s in chosen]
    if audit:
        return _audit(tasks, out, min(at_most(jobs), len(chosen)), on)
    if not patterns:
        own = {s.id for p in papers if p.id not in PAPERS for s in p.statements}
        domains = lambda s: any(form.domains for form in s.forms)
        chosen = tuple(s for s in chosen if stored(s) or domains(s) or s.id in own)
    try_to_write(out)
    console, made = console_for_output(), []
    tasks = [task for task in tasks if task.id in {s.id for s in chosen}]
    run = functools.partial(_in_turn, chosen, tasks, jobs, on, out)
    interrupted = False
    try:
        for found in run():
            made += found
            for certificate, _ in found:
                print(f"{certificate.id} ({certificate.form}): {certificate.word}", file=sys.stderr)
    except KeyboardInterrupt:
        interrupted = True
    order = {s.id: i for i, s in enumerate(chosen)}
    made.sort(key=lambda pair: order[pair[0].id])
    certificates = [certificate for certificate, _ in made]
    console.print(certificates_table(certificates, console.width))
    console.print(counted(certificates), markup=False)
    for certificate, witness in made:
        if witness is not None:
            form = next(s for s in chosen if s.id == certificate.id).form(certificate.form)
            name = f"{certificate.id}.{form.file_name}.json"
            write_text(out / "witnesses" / name, json.dumps(witness, indent=1) + "\n")
    done = [c.to_json() for c in certificates]
    merged = with_earlier(out / "certificates.json", done, instead={s.id for s in chosen})
    write_text(out / "certificates.json", merged)
    console.print(f"written to {out}: certificates.json, witnesses/", markup=False)
    if interrupted:
        console.print("interrupted: what was certified is written", markup=False)
    return int(interrupted or any(c.word not in SETTLED for c in certificates))
