"""`jaxbounds certify`: disprove failing forms, and write witnesses that other programs check.

A form is one version of a claim: printed, corrected or sharpened.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from jaxbounds.certification.crosscheck import Crosscheck
from jaxbounds.certification.rocq import OPERATIONS
from jaxbounds.cli.answers import answer
from jaxbounds.cli.common import Imports, Patterns, console_for_output
from jaxbounds.cli.streams import say
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import try_to_write
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.to_json import to_json
from jaxbounds.papers import Selection, selected
from jaxbounds.report.certificates import certificates_table, counted
from jaxbounds.report.codes import pointer
from jaxbounds.runs.certify import (
    SECONDS,
    Certificates,
    Certified,
    certifying,
    crosschecking,
    in_order,
    place_for,
    worth_certifying,
    write_certificates,
    write_crosschecks,
    write_theorems,
)
from jaxbounds.runs.engines import HERE, On


def certify(
    patterns: Patterns = (),
    /,
    *,
    out: Path = Path("results/certify"),
    seconds: float = SECONDS,
    slack: str = "",
    jobs: int = 0,
    crosscheck: bool = False,
    rocq: Path | None = None,
    operations: int = OPERATIONS,
    imports: Imports = (),
    on: On = HERE,
) -> int:
    """Disprove the failing forms in ball arithmetic, and write a witness for each disproof.

    A form is one version of a claim (printed, corrected or sharpened). Ball arithmetic encloses all
    rounding errors. Other programs can check a disproof with the data in its witness file.

    If a form names domains (boxes of instances), the command also proves the form on each domain,
    by branch and bound. Without ids, the command certifies every form that stores a counterexample
    or names domains. If a named statement, or a statement of your own, stores no counterexample,
    the command first searches for one. The command needs the extra `certify` (python-flint).

    The exit status is 0 when every form is disproved (a disproof of its code alone counts) or
    proved. The exit status is 1 when a form is undecided or the run was interrupted. The exit
    status is 2 on bad usage, 3 when the command cannot write, and 130 when the run was interrupted
    before the command began to certify.

    Args:
        patterns: ids, the beginning of ids ("multihead"), shell patterns ("*.cor1.*"), or Python
            files that hold a PAPER.
        out: the folder for certificates.json and witnesses/; entries of other forms stay there.
        seconds: seconds of processor time for a form, after which the form is undecided.
        slack: the slack that replaces the stated slack of each domain: 1e-9, or "1e-9 relative". A
            proof shows lhs <= rhs + slack.
        jobs: the number of processes; 0 means one for each core.
        crosscheck: instead of certifying, compare measurements in float64 with ball arithmetic, on
            random instances of every form that holds; `seconds` then limits each statement.
        rocq: the folder for files that the kernel of the proof assistant Rocq checks, one for each
            disproof or proof that has a translation. If a form has no translation, the command
            prints the reason (`jaxbounds guide kernel`).
        operations: the largest number of scalar operations of a form that gets a file for Rocq.
        imports: the Python modules or files that define PAPER, if PAPER is your own paper.
        on: the engine that certifies the statements.
    """
    selection = selected(patterns, imports=imports)
    if crosscheck:
        return _crosscheck(selection, out, seconds, jobs, on)
    selection = worth_certifying(selection)
    held = place_for(out, imports)
    out = held.path
    if operations < 1:
        raise Refused(f"--operations must be at least 1, got {operations}. Try --operations 5000")
    if rocq is not None:
        try_to_write(rocq)
    made, interrupted = list[Certified](), False
    try:
        most = operations if rocq is not None else 0
        given: Any = {
            "on": on,
            "jobs": jobs,
            "folder": _jobs(out),
            "operations": most,
            "slack": slack,
        }
        for found in certifying(selection, seconds=seconds, **given):
            made += found
            for certificate, *_ in found:
                say(f"{certificate.id} ({certificate.form}): {certificate.word}")
    except KeyboardInterrupt:
        interrupted = True
    made = in_order(made, selection)
    console, certificates = console_for_output(), Certificates(made)
    console.print(certificates_table(certificates, console.width))
    console.print(counted(certificates), markup=False)
    if line := pointer(((one.id, one.form) for one in certificates), selection.papers):
        console.print(line)
    write_certificates(made, selection, out)
    held.release()
    answer(folder=str(out), certificates=[to_json(one) for one in certificates])
    console.print(f"written to {out}: certificates.json, witnesses/", markup=False)
    if rocq is not None:
        for line in write_theorems(made, selection, rocq):
            console.print(line, markup=False, soft_wrap=True)
    if interrupted:
        console.print("interrupted: the certificates found so far are written", markup=False)
    return int(interrupted or certificates.status)


def _jobs(out: Path) -> Path:
    return Marked(out).scratch("jobs")


def _crosscheck(selection: Selection, out: Path, seconds: float, jobs: int, on: On) -> int:
    try_to_write(out)
    found: list[Crosscheck] = []
    given = {"seconds": seconds, "on": on, "jobs": jobs, "folder": _jobs(out)}
    for name, checks in crosschecking(selection, **given):  # type: ignore[arg-type]
        found += checks
        words = ", ".join(sorted({one.finding for one in checks}))
        say(f"{name}: {words or 'nothing to compare'}")
    console = console_for_output()
    for one in found:
        if one.finding != "agrees":
            amount = f" by {one.amount:.2g}" if one.amount else ""
            words = f"{one.id} ({one.form}): {one.finding}{amount}: {one.reason}"
            console.print(words, markup=False)
    count = Counter(one.finding for one in found).most_common()
    console.print(", ".join(f"{many} {word}" for word, many in count))
    write_crosschecks(found, out)
    console.print(f"written to {out}: crosscheck.json", markup=False)
    wrong = ("violated", "hypothesis missed", "error too small", "apart")
    return int(any(one.finding in wrong for one in found))
