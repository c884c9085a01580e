"""`jaxbounds audit`: what was found about a paper, for its authors."""

import importlib
import sys
from pathlib import Path
from typing import Annotated

import tyro

from jaxbounds.cli.common import Imports
from jaxbounds.cli.folder import Folder, judged_in
from jaxbounds.cli.verify import Task, judge_into, settings_of
from jaxbounds.files import write_text
from jaxbounds.papers import load_papers
from jaxbounds.report.audit import Audit, markdown
from jaxbounds.report.markdown import to_html
from jaxbounds.report.markup import element
from jaxbounds.report.page import document
from jaxbounds.statements import Paper


def _paper(name: str, imports: tuple[str, ...]) -> Paper:
    known = {paper.id: paper for paper in load_papers(imports, patterns=[name])}
    if name not in known:
        own = "" if imports else " (a paper of your own needs --import FOLDER)"
        raise ValueError(f"no paper {name!r}; there are: {', '.join(known)}{own}")
    return known[name]


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
    checked and why; versions, seed and digest. What the folder holds of the same version, source
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
    chosen = _paper(paper, imports)
    if jobs < 0 or not 0 <= seed < 2**32:
        raise ValueError(f"--jobs or --seed cannot be negative or above 2^32 - 1: {jobs}, {seed}")
    if certify:
        try:
            importlib.import_module("jaxbounds.certify")
        except ModuleNotFoundError as problem:
            raise ValueError(f"{problem}; or leave certificates out: --no-certify") from problem
    task = Task((), imports, seed, 1.0, "", False, certify=certify)
    place = out or Path("results") / f"audit-{paper}"
    folder = Folder(place, settings_of(task))
    strangers = {v.paper for found in judged_in(place).values() for v in found} - {paper}
    if strangers:
        raise ValueError(f"{place} holds verdicts on {', '.join(sorted(strangers))}: another --out")
    before = {v.id for v in folder.published() or ()}
    status = 0
    if before != {s.id for s in chosen.statements}:
        status, done = judge_into(folder, [chosen], chosen.statements, task, jobs=jobs)
        if len(done) < len(chosen.statements):
            return status
    verdicts = folder.published() or ()
    about = Audit(chosen, verdicts, folder.settings, place, imports)
    source = markdown(about)
    page = document(
        f"{chosen.title}: audit", element("main", to_html(source)), "page.css", "audit.css"
    )
    write_text(place / "audit.md", source)
    write_text(place / "audit.html", page)
    print(f"written to {place}: audit.md, audit.html; digest {about.digest[:16]}")
    if not all(v.as_expected for v in verdicts):
        print("some verdicts are not as recorded: look into these before sending", file=sys.stderr)
        return 3 if any(v.status == "error" for v in verdicts) else 1
    return status
