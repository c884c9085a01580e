"""`jaxbounds.verify`: statements judged, from Python as by the command."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxbounds.papers import Named, Selection, selected
from jaxbounds.runs import drift
from jaxbounds.runs.engines import HERE, On, engine_of
from jaxbounds.runs.folder import failed_before, folder_for, remember_failed
from jaxbounds.runs.verdicts import Scratch, Verdicts
from jaxbounds.runs.verification import INTERRUPTED, Options, Verification


def prepared(
    selection: Selection,
    options: Options,
    out: Path,
    /,
    *,
    last_failed: bool = False,
    **given: Any,
) -> Verification:
    """What is to be judged, and where it goes.

    Args:
        selection: the statements.
        options: with what they are judged.
        out: folder; another beside it, where it holds other statements of another run.
        last_failed: only what was not as recorded when it was judged last; all if there is none.
        **given: of `Verification`.
    """
    if last_failed:
        failed = failed_before(out)
        chosen = tuple(s for s in selection.statements if s.id in failed)
        if not chosen:
            print(f"nothing failed in {out} before: all are judged", file=sys.stderr)
        parts = (*selection.parts, "last-failed")
        selection = selection._replace(statements=chosen or selection.statements, parts=parts)
    folder = folder_for(out, selection.parts, options.settings(selection.catalogue))
    return Verification(selection, folder, options, **given)


def finish(run: Verification, out: Path, /, *, record: bool = False) -> bool:
    """Publish a verification, and remember what failed; whether it was published.

    Args:
        run: that was iterated.
        out: the folder that was asked for.
        record: keep the ratios as those to compare with, if all was judged.

    Raises:
        ValueError: if they are to be recorded, and a paper of the user's is in no file.
    """
    published = run.publish()
    if record and len(run.done) == len(run.selection.statements):
        drift.record(run.verdicts, run.selection.papers, others=bool(run.selection.parts))
    remember_failed(out, run.done)
    return published


def verify(
    what: Named | Iterable[Named] = (),
    *,
    imports: Iterable[str] = (),
    kinds: Sequence[str] = (),
    out: str | Path | None = None,
    seed: int = 0,
    thorough: bool = False,
    certify: bool = False,
    record: bool = False,
    on: str | On = HERE,
    jobs: int = 0,
) -> Verdicts:
    """Check statements, as `jaxbounds verify` does: one verdict for each form.

    Args:
        what: ids, the beginning of ids ("multihead"), shell patterns ("*.cor1.*"), Python files or
            folders that hold a PAPER, papers or statements; one or several. Everything shipped
            unless given.
        imports: further modules or files that hold a PAPER of your own.
        kinds: only statements of these kinds.
        out: folder for verdicts.json, report.html and the instances; a temporary one, which lives
            as long as the result, unless given.
        seed: of all draws.
        thorough: ten times the samples and searches.
        certify: disprove what fails in ball arithmetic; needs the extra `certify`.
        record: keep the worst ratios in the papers' `records/`, as those to compare with.
        on: where: "processes" of this machine, "dask://HOST:PORT", "slurm", or any
            `concurrent.futures.Executor`.
        jobs: processes, where it is those; 0 means one for each core, 1 this one.

    Raises:
        ValueError: if a pattern matches nothing, a file holds no paper, or there is no such engine.
        KeyboardInterrupt: after what was judged is put into `out`.
    """
    if record and (seed or thorough):
        raise ValueError("record keeps what seed 0 gives: leave seed and thorough out")
    if certify:
        import jaxbounds.certification  # noqa: F401 - says what is missing, before anything runs
    from jaxbounds.sweeps.reporting import progress

    scratch = Scratch() if out is None else None
    place = scratch.path if scratch else Path(str(out))
    options = Options(seed, thorough, certify)
    run = prepared(
        selected(what, imports=imports, kinds=kinds), options, place, on=engine_of(on), jobs=jobs
    )
    with progress(len(run.selection.statements), "statements") as report:
        try:
            for done, found in enumerate(run, 1):
                report(done, found[0].id)
        except KeyboardInterrupt:
            run.stopped = INTERRUPTED
            raise
        finally:
            finish(run, place, record=record)
    settings = dict(run.folder.settings)
    return Verdicts(run.verdicts, folder=run.folder.path, settings=settings, scratch=scratch)
