"""`jaxbounds verify`: judge statements, with one verdict for each form.

A form is one version of a claim: printed, corrected or sharpened.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import tyro

from jaxbounds.cli.common import Imports, Kinds, Patterns, console_for_output, print_json
from jaxbounds.cli.screen import show
from jaxbounds.cli.streams import say
from jaxbounds.falsification import load_instance
from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers import selected
from jaxbounds.report.accept import accepted, write_accepted
from jaxbounds.runs.engines import HERE, On
from jaxbounds.runs.statement_run import Options, Verification

OUT, USUAL = Path("results/verify"), Options()


def verify(
    patterns: Patterns = (),
    /,
    *,
    out: Path = OUT,
    judging: Annotated[Options, tyro.conf.OmitArgPrefixes] = USUAL,
    jobs: int = 0,
    record: bool = False,
    accept: bool = False,
    kind: Kinds = (),
    exitfirst: Annotated[bool, tyro.conf.arg(aliases=["-x"])] = False,
    last_failed: bool = False,
    durations: int = 0,
    every: Annotated[bool, tyro.conf.arg(name="all")] = False,
    verbose: Annotated[bool, tyro.conf.arg(aliases=["-v"])] = False,
    json: bool = False,
    watch: bool = False,
    imports: Imports = (),
    on: On = HERE,
) -> int:
    """Judge all statements, or the statements with a matching id; give one verdict for each form.

    A form is one version of a claim: printed, corrected or sharpened.

    The command prints each form whose verdict differs from the record, then a line for each paper,
    and the number of errata. A run of at most 20 forms prints every form. The file report.html
    always lists every form.

    The exit status is 0 when every verdict is as recorded, errata and values included. The exit
    status is 1 when a verdict is not as recorded, or the run was interrupted. The exit status is 2
    on bad usage, and 130 when the run was interrupted before the first verdict. The exit status is
    3 when the command could not measure, write or print something, or a statement with a recorded
    verdict ran out of time. A statement without a recorded verdict must hold, and its twin (a
    deliberately false claim) must fail; otherwise the exit status is 1.

    Args:
        patterns: ids, the beginning of ids ("multihead"), shell patterns ("*.cor1.*"), or Python
            files that define your own paper as PAPER. To name a statement of your own file, a part
            of its id is enough: "one" for "mine.one".
        out: the folder for verdicts.json, report.html, worst instances and counterexamples.
        judging: the options with which the run judges statements.
        jobs: the number of processes; 0 means one for each core.
        record: write the worst ratios, and the values of all judged functions, into the papers'
            records/, for comparison with later runs; the output names the changes.
        accept: for each form that fails without a record, write its counterexample and an erratum
            to fill in, as Python declarations, into accepted.py in the folder of the paper's
            records. Review the declarations before use; the command never replaces an earlier file.
        kind: judge only statements of this kind, such as "inequality"; the option may be repeated.
        exitfirst: stop at the first verdict that differs from the recorded verdict.
        last_failed: judge only the statements whose verdicts in the last run differed from the
            record, and the statements without a verdict. If no such statement exists, judge all
            statements.
        durations: how many of the slowest statements to name at the end.
        every: print the row of every form; a run of at most 20 forms always prints every row.
        verbose: also print notes that change no verdict: random instances that were left out, and
            ratios that differ from the record.
        json: print the verdicts as JSON (see `jaxbounds schema verdicts`), and other text on
            standard error.
        watch: judge statements again after each change of your files, until Ctrl-C.
        imports: the Python modules or files that define PAPER, if PAPER is your own paper.
        on: the engine that judges the statements.
    """
    if judging.certify:
        import jaxbounds.certification  # noqa: F401 - names a missing package at once
    if record:
        judging.refuse_to_record()
    judging.check()
    if watch:
        if record or last_failed or json or accept:
            raise Refused(
                f"--watch excludes record={record}, last_failed={last_failed}, json={json}, "
                f"accept={accept}. Try to leave --record, --last-failed, --json, --accept out"
            )
        from jaxbounds.cli.watch import Watched, keep_watching

        place = out.with_name(f"{out.name}-watch") if out == OUT else out
        given = Watched(patterns, kind, imports, place, jobs, exitfirst, durations, judging)
        return keep_watching(given)
    console = console_for_output(errors=json)
    selection = selected(patterns, imports=imports, kinds=kind)
    run = Verification(
        selection, judging, out, on=on, jobs=jobs, exitfirst=exitfirst, last_failed=last_failed
    )
    show(run, console, every=every, verbose=verbose, record=record, durations=durations)
    if accept:
        for file in _accepted(run):
            say(f"for review: {file}")
    if json:
        print_json([v.to_json() for v in run.verdicts])
    return run.status


def _accepted(run: Verification) -> Iterator[Path]:
    wrong = [v for v in run.verdicts if v.status == "fails" and not v.as_expected and v.shrunk_file]
    for paper in run.selection.papers:
        found = [(v, load_instance(run.folder.place_of(v.shrunk_file)))
                 for v in wrong if v.paper == paper.id]  # fmt: skip
        if found:
            yield write_accepted(paper, accepted(paper, found))
