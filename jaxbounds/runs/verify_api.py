"""Define `jaxbounds.verify`, which judges statements from Python, as the command does."""

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
    """Judge statements, as `jaxbounds verify` does; return one verdict for each form.

    A form is one version of a claim: printed, corrected or sharpened.

    Args:
        what: one or several of: ids, the beginning of ids ("multihead"), shell patterns
            ("*.cor1.*"), Python files or folders that define a `PAPER`, papers, statements. The
            default is all statements of the shipped papers.
        imports: further modules or files that define `PAPER`, a `jb.Paper` of your own.
        kinds: the kinds of the statements to judge, such as "inequality" or "identity"; by default
            all kinds.
        out: the folder for verdicts.json, report.html and the instances. The default is a temporary
            folder, which Python removes when the result is no longer in use.
        seed: the seed of all random instances.
        timeout: the time limit for each statement in seconds, which the run checks between two
            batches of instances. If the search refutes no claim in this time, the verdict is
            inconclusive.
        thorough: whether to use ten times as many random instances and searches. The searches of a
            thorough run also start from the worst instances that earlier runs found.
        fresh: whether to ignore instances of earlier runs, and to store no instances for later
            runs.
        certify: whether to disprove failing forms in ball arithmetic, which encloses rounding
            errors. For each disproof the run writes a witness, a file with which another program
            can check the disproof. The option `certify` needs the packages of the extra `certify`.
        record: whether to write ratios and values into `records/` beside the papers' statements
            (for a file `claims.py` into `claims-records/`). Later runs compare their ratios and
            values with the records; see `Verdicts.moved` and `Verdicts.changed`.
        on: the engine: "processes" of this machine, "dask://HOST:PORT", "slurm", or any
            `concurrent.futures.Executor`. An executor of processes needs the start method "spawn",
            and a script must then call `verify` under `if __name__ == "__main__":`.
        jobs: the number of processes; 0 means one for each core, and 1 means this process alone.
            Engines other than "processes" ignore `jobs`.

    Raises:
        Refused: if a pattern matches no statement, a file holds no paper, or the engine is unknown.
        KeyboardInterrupt: if the user stops the run; the verdicts so far are in `out`.
    """
    options = Options(
        seed=seed, thorough=thorough, certify=certify, fresh=fresh, timeout=timeout
    )  # fmt: skip
    if record:
        options.refuse_to_record()
    options.check()
    if certify:
        import jaxbounds.certification  # noqa: F401 - names a missing package before anything runs
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
