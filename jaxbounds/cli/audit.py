"""`jaxbounds audit`: the findings about a paper, for its authors."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from jaxbounds.cli.answers import answer
from jaxbounds.cli.common import Imports, console_for_output
from jaxbounds.cli.screen import show
from jaxbounds.cli.streams import say
from jaxbounds.ground.exceptions import Refused
from jaxbounds.report.headline import plural
from jaxbounds.report.items import coverage
from jaxbounds.runs.audit import audited, the_paper, write_audit
from jaxbounds.runs.statement_run import Options


def audit(
    paper: Annotated[str, tyro.conf.Positional],
    /,
    *,
    out: Path | None = None,
    seed: int = Options.seed,
    timeout: float = Options.timeout,
    jobs: int = 0,
    certify: bool = True,
    imports: Imports = (),
) -> int:
    """Judge all statements of a paper; write audit.md and audit.html, for its authors.

    The audit lists each claim with its verdict, its evidence and a command that repeats the
    verdict. The audit also lists the errata with their consequences, the unchecked items with the
    reasons, the versions, the seed and the digest of the findings. The command does not judge a
    statement again if the folder holds the statement's verdict from a run with equal library
    version, source code and seed. After Ctrl-C the command writes an audit of the verdicts so far,
    and the same command judges the other statements. The exit status is that of `verify`: 0 if
    every verdict agrees with the record.

    Args:
        paper: the id of the paper.
        out: the folder for audit.md, audit.html and all files of `verify`; "results/audit-PAPER"
            unless given.
        seed: the seed of all random instances.
        timeout: the time limit for each statement, in seconds; a claim not refuted by then is
            inconclusive.
        jobs: the number of processes; 0 means one for each core.
        certify: disprove each failing form (a version of a claim) in ball arithmetic, which
            encloses rounding errors; needs the extra `certify`.
        imports: the Python modules or files that define PAPER, if PAPER is your own paper.
    """
    options = Options(seed=seed, certify=certify, timeout=timeout)
    options.check()
    selection = the_paper(paper, imports)
    if certify:
        try:
            import jaxbounds.certification  # noqa: F401 - names a missing package
        except ModuleNotFoundError as problem:
            raise Refused(
                f"{problem}, for certify={certify}. Try --no-certify, which omits the certificates"
            ) from problem
    place = out or Path("results") / f"audit-{selection.papers[0].id}"
    run = audited(selection, options, place, jobs=jobs)
    if set(run.kept) != {s.id for s in selection.statements}:
        show(run, console_for_output())
        if run.stopped and run.folder.published() is None:  # the folder holds another run
            return run.status
    else:
        run.take_kept()
        run.publish()
    written = write_audit(run)
    items = [
        {**dataclasses.asdict(one.item), "verdict": one.words}
        for one in coverage(written.paper, written.verdicts)
    ]
    answer(folder=str(place), digest=written.digest, items=items,
           verdicts=[v.to_json() for v in written.verdicts])  # fmt: skip
    words = f"audit.md, audit.html; digest {written.digest[:16]}"
    say(f"written to {place}: {words}", errors=False)
    if left := len(selection.statements) - len(run.done):
        missing = plural(left, "statement")
        say(f"audit.md is incomplete: the run did not judge {missing}. Try the same command again")
    elif run.status:
        say(
            "some verdicts differ from the recorded verdicts or from the claims: check them before "
            "you send the audit"
        )
    return run.status
