"""`jaxbounds verify`: the statements, one verdict for each form."""

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
    """Check the statements, all or those whose id matches: a verdict for each form.

    The command prints the forms that are not as recorded, then a line for each paper, and the
    number of errata. A run of few forms prints all of them; report.html has every form.

    The exit status is 0 when every verdict is as recorded, errata and values included. It is 1 when
    a verdict is not as recorded, or the run was interrupted. It is 2 on bad usage. It is 3 when the
    command could not measure, write or print something, or a statement with a record is out of
    time. It is 130 when the run was interrupted before the first verdict. A statement without a
    record must hold, and its false twin must fail; otherwise the exit status is 1.

    Args:
        patterns: ids, the beginning of ids ("multihead"), shell patterns ("*.cor1.*"), or Python
            files that hold a PAPER.
        out: folder for verdicts.json, report.html, worst instances and counterexamples.
        judging: how the statements are judged.
        jobs: processes; 0 means one for each core.
        record: keep the worst ratios, and values of all judged functions, in the papers' records/,
            as those to compare with; the output names what changed.
        accept: where a form fails and is not recorded so, write its counterexample, ready to be
            declared, with an erratum to fill in, into accepted.py of the paper's records, for
            review; an earlier one is never replaced.
        kind: only statements of this kind; may be repeated.
        exitfirst: stop at the first verdict that is not as recorded.
        last_failed: only what was not as recorded when it was judged last; all if there is none.
        durations: name the statements that took longest, so many.
        every: print every row; up to 20 forms are printed in any case.
        verbose: print also what changes no verdict: draws that do not count, ratios that moved.
        json: print the verdicts as JSON (see `jaxbounds schema verdicts`), the rest on standard
            error.
        watch: judge again whatever a change of your files changed, until Ctrl-C.
        imports: modules or files that hold a PAPER of your own.
        on: where the statements are judged.
    """
    if judging.certify:
        import jaxbounds.certification  # noqa: F401 - says at once what is missing
    if record:
        judging.refuse_to_record()
    judging.check()
    if watch:
        if record or last_failed or json or accept:
            raise Refused(
                f"--watch judges what changed, got record={record}, "
                f"last_failed={last_failed}, json={json}, accept={accept}. Try to leave "
                "--record, --last-failed, --json, --accept out"
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
    """Write the findings that are not recorded beside their papers, and yield the files."""
    wrong = [v for v in run.verdicts if v.status == "fails" and not v.as_expected and v.shrunk_file]
    for paper in run.selection.papers:
        found = [(v, load_instance(run.folder.place_of(v.shrunk_file)))
                 for v in wrong if v.paper == paper.id]  # fmt: skip
        if found:
            yield write_accepted(paper, accepted(paper, found))
