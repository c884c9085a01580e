"""`jaxbounds.verify`: statements judged, from Python as by the command."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from jaxbounds.papers import Named, selected
from jaxbounds.runs.cache import restoring
from jaxbounds.runs.drift import drifted
from jaxbounds.runs.engines import Where, engine_of
from jaxbounds.runs.statement_run import INTERRUPTED, Options, Verification
from jaxbounds.runs.verdicts import Scratch, Verdicts


@restoring
def verify(
    what: Named | Iterable[Named] = (),
    *,
    imports: Iterable[str] = (),
    kinds: Sequence[str] = (),
    out: str | Path | None = None,
    seed: int = Options.seed,
    timeout: float = Options.timeout,
    thorough: bool = Options.thorough,
    fresh: bool = Options.fresh,
    certify: bool = Options.certify,
    record: bool = False,
    on: Where | None = None,
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
        timeout: seconds for each statement, looked at between two batches of instances; a claim
            that is not refuted by then is inconclusive.
        thorough: ten times the samples and searches, which also start from the worst instances that
            earlier runs found.
        fresh: do without what earlier runs found, and keep nothing for later ones.
        certify: disprove what fails in ball arithmetic, and write witnesses beside the
            counterexamples; needs the extra `certify`.
        record: keep ratios and values on record, in `records/` beside the papers' statements (of a
            file `claims.py` in `claims-records/`); later runs compare with them, see
            `Verdicts.moved` and `Verdicts.changed`.
        on: where: "processes" of this machine, "dask://HOST:PORT", "slurm", or any
            `concurrent.futures.Executor`; one of processes with the context "spawn", and, as all
            such, in a script behind `if __name__ == "__main__"`.
        jobs: processes, where it is those; 0 means one for each core, 1 this one.

    Raises:
        Refused: if a pattern matches nothing, a file holds no paper, or there is no such engine.
        KeyboardInterrupt: after what was judged is put into `out`.
    """
    options = Options(
        seed=seed, thorough=thorough, certify=certify, fresh=fresh, timeout=timeout
    )  # fmt: skip
    if record:
        options.refuse_to_record()
    options.check()
    if certify:
        import jaxbounds.certification  # noqa: F401 - says what is missing, before anything runs
    from jaxbounds.experiments.sweeps.reporting import progress

    scratch = Scratch() if out is None else None
    place = scratch.path if scratch else Path(str(out))
    selection = selected(what, imports=imports, kinds=kinds)
    run = Verification(selection, options, place, on=engine_of(on), jobs=jobs)
    with progress(len(run.selection.statements), "statements") as report:
        try:
            for done, found in enumerate(run, 1):
                report(done, found[0].id)
        except KeyboardInterrupt:
            run.stopped = INTERRUPTED
            run.publish()
            raise
    run.publish(record=record)
    settings = dict(run.folder.settings)
    usual = not seed and not thorough
    moved = drifted(run.verdicts, run.selection.papers) if usual else ()
    continued = {name: kept.when for name, kept in run.kept.items()}
    return Verdicts(
        run.verdicts, folder=run.folder.path, settings=settings, moved=moved,
        changed=run.changed, recorded=run.recorded, continued=continued, scratch=scratch,
    )  # fmt: skip
