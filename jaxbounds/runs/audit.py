"""Define `jaxbounds.audit`, which writes all findings about a paper into one text."""

from collections.abc import Iterable
from pathlib import Path

from jaxbounds.claims.statements import Paper
from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers import Selection, selected
from jaxbounds.report.audit import Audit, markdown
from jaxbounds.report.markdown import to_html
from jaxbounds.report.markup import element
from jaxbounds.report.page import document
from jaxbounds.runs.cache import restoring
from jaxbounds.runs.engines import Where, engine_of
from jaxbounds.runs.folder import verdicts_in
from jaxbounds.runs.statement_run import INTERRUPTED, Options, Verification


def the_paper(name: str | Path | Paper, imports: Iterable[str] = (), /) -> Selection:
    """Return a selection of all statements of one paper.

    Raises:
        Refused: if no paper has the given name.
    """
    imports = tuple(imports)
    try:
        selection = selected(name, imports=imports)
    except Refused as problem:
        raise Refused(
            f"no paper has id={str(name)!r}: {problem}. Try --import FOLDER too, if the paper is "
            "your own"
        ) from problem
    ids = {s.paper for s in selection.statements}
    whole = [p for p in selection.papers if p.id in ids]
    if not ids and len(selection.papers) == 1:  # a listed paper without statements so far
        whole = list(selection.papers)
    if len(whole) != 1 or len(whole[0].statements) != len(selection.statements):
        names = ", ".join(paper.id for paper in selection.papers)
        raise Refused(
            f"paper={str(name)!r} is no paper's id (the id of a statement is not valid here). "
            f"Try one of: {names}"
        )
    return selection._replace(papers=tuple(whole), parts=())


def audited(selection: Selection, options: Options, place: Path, **given: object) -> Verification:
    """Prepare a run that judges each statement of a paper without a verdict in the folder.

    Raises:
        Refused: if the folder holds verdicts on another paper.
    """
    (paper,) = selection.papers
    strangers = {v.paper for found in verdicts_in(place).values() for v in found} - {paper.id}
    if strangers:
        raise Refused(
            f"{place} holds verdicts on {', '.join(sorted(strangers))}, expected verdicts on "
            f"paper={paper.id} alone. Try another folder (--out)"
        )
    run = Verification(selection, options, place, **given)  # type: ignore[arg-type]
    published = run.folder.published() or {}
    if set(published) == {s.id for s in paper.statements}:
        run.kept = published
    return run


def write_audit(run: Verification, /) -> Audit:
    """Write audit.md and audit.html into the folder that holds the verdicts.

    If some statements have no verdict so far, both files say so in their first lines.
    """
    (paper,), folder = run.selection.papers, run.folder
    found = {name: kept.verdicts for name, kept in run.beside.items()} | run.done
    verdicts = tuple(v for s in paper.statements for v in found.get(s.id, ()))
    about = Audit(paper, verdicts, folder.settings, folder.path, run.selection.catalogue.imports)
    text = markdown(about)
    body = element("main", to_html(text))
    folder.write("audit.md", text)
    folder.write("audit.html", document(f"{paper.title}: audit", body, "page.css", "audit.css"))
    return about


@restoring
def audit(
    paper: str | Path | Paper,
    *,
    out: str | Path,
    imports: Iterable[str] = (),
    seed: int = Options.seed,
    timeout: float = Options.timeout,
    certify: bool = True,
    on: Where | None = None,
    jobs: int = 0,
) -> Audit:
    """Judge all statements of a paper; write audit.md and audit.html, as `jaxbounds audit` does.

    Args:
        paper: the id of the paper, the file or folder that holds the paper, or the `Paper` itself.
        out: the folder for audit.md, audit.html and all files that `verify` writes. The audit does
            not judge a statement again if the folder holds a verdict on the statement, from a run
            with equal library version, source code and seed.
        imports: further modules or files that define `PAPER`, a `jb.Paper` of your own.
        seed: the seed of all random instances.
        timeout: the time limit of each statement, in seconds. If the search refutes no claim in
            this time, the verdict is inconclusive.
        certify: whether to disprove each failing form (a version of a claim) in ball arithmetic,
            which encloses rounding errors. The option needs the optional packages
            `jaxbounds[certify]`.
        on: the engine that judges, as for `verify`.
        jobs: the number of processes, as for `verify`.

    Raises:
        Refused: if no paper has this name, or the folder holds verdicts on another paper.
        KeyboardInterrupt: if the user stops the run; the audit of the verdicts so far is in `out`.
    """
    selection, options = (
        the_paper(paper, imports),
        Options(seed=seed, certify=certify, timeout=timeout),
    )
    run = audited(selection, options, Path(out), on=engine_of(on), jobs=jobs)
    try:
        for _ in run:
            pass
    except KeyboardInterrupt:
        run.stopped = INTERRUPTED
        if run.publish():
            write_audit(run)
        raise
    run.publish()
    return write_audit(run)
