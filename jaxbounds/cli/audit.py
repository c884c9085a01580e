"""`jaxbounds audit`: what was found about a paper, for its authors."""

from pathlib import Path
from typing import Annotated

import tyro

from jaxbounds.cli.common import Imports, console_for_output
from jaxbounds.cli.screen import show
from jaxbounds.cli.streams import say
from jaxbounds.runs.audit import audited, the_paper, write_audit
from jaxbounds.runs.statement_run import Options


def audit(
    paper: Annotated[str, tyro.conf.Positional],
    /,
    *,
    out: Path | None = None,
    seed: int = 0,
    jobs: int = 0,
    certify: bool = True,
    imports: Imports = (),
) -> int:
    """Judge all statements of a paper; write audit.md and audit.html, for its authors.

    Each claim with its verdict, evidence and command; errata with their consequences; what was not
    checked and why; versions, seed and digest. A verdict in the folder of the same version, source
    and seed is not judged again. Exit status as that of `verify`.

    Args:
        paper: its id.
        out: folder for audit.md, audit.html and all that `verify` leaves; "results/audit-PAPER"
            unless given.
        seed: of all draws.
        jobs: processes; 0 means one for each core.
        certify: disprove what fails in ball arithmetic; needs the extra `certify`.
        imports: modules or files that hold a PAPER of your own.
    """
    selection = the_paper(paper, imports)
    if certify:
        try:
            import jaxbounds.certification  # noqa: F401 - says what is missing
        except ModuleNotFoundError as problem:
            raise ValueError(f"{problem}; or leave certificates out: --no-certify") from problem
    place = out or Path("results") / f"audit-{selection.papers[0].id}"
    run = audited(selection, Options(seed, certify=certify), place, jobs=jobs)
    if set(run.kept) != {s.id for s in selection.statements}:
        show(run, console_for_output())
        if run.stopped:
            return run.status
    else:
        run.take_kept()
        run.publish()
    written = write_audit(run)
    words = f"audit.md, audit.html; digest {written.digest[:16]}"
    say(f"written to {place}: {words}", errors=False)
    if run.status:
        say("some verdicts are not as recorded: look into these before sending")
    return run.status
