"""Define `jaxbounds.run`, which computes an experiment whole or in shards, and merges shards.

An experiment computes a figure or table of a paper. A shard is a share of an experiment's training
runs.
"""

import contextlib
import functools
import inspect
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from jaxbounds.experiments.provenance import asked_for, products_used
from jaxbounds.experiments.results import save
from jaxbounds.experiments.sweeps import Checkpoints, OnlyAShare, Share, merge_parts, shares
from jaxbounds.ground import recording
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, is_there, locate, reaching, try_to_write
from jaxbounds.ground.folders import say
from jaxbounds.ground.occupied import Held, take
from jaxbounds.ground.stopping import Stopped
from jaxbounds.runs import ledger
from jaxbounds.runs import request as requests
from jaxbounds.runs import shards as shard_files
from jaxbounds.runs.cache import prepare_jax, restoring
from jaxbounds.runs.driver import drive, packed, unpack
from jaxbounds.runs.engines import HERE, On, Where, engine_of
from jaxbounds.runs.interruption import look
from jaxbounds.runs.request import Request
from jaxbounds.runs.workers import Died

if TYPE_CHECKING:  # slow to import
    import xarray


def _unfinished(folder: Place) -> bool:
    with reaching(folder):
        # The state of a sweep, and pieces that a run stores whole.
        kept = [*folder.glob("checkpoints/**/state.npz"), *folder.glob("checkpoints/*.npz")]
        states = [file.stat().st_mtime for file in kept]
        ends = [folder / "result.nc", folder / shard_files.NAME]
        ended = [end.stat().st_mtime for end in ends if is_there(end)]
    return bool(states) and not (ended and max(ended) >= max(states))


def _discard(checkpoints: Place) -> None:
    with reaching(checkpoints):
        found = {file.parent for file in checkpoints.glob("**/state.npz")}
    for folder in found:
        Checkpoints(folder, "").clear()


def refuse_to_lose(folder: Place, resume: bool, /) -> None:
    """Refuse to start a new run in a folder that holds an unfinished run.

    Raises:
        Refused: if the folder holds an unfinished run and `resume` is False.
    """
    if not resume and _unfinished(folder):
        raise Refused(
            f"{folder} holds an unfinished run, got resume={resume}. Try --resume to continue the "
            "run, another folder (--out), or remove this folder to start again"
        )


NAMES = ("result.nc", "figure.svg", "figure.png", ledger.LEDGER)
"""The names of the files, other than checkpoints, that a run writes into its folder."""


def taken(request: Request, out: Place, names: Sequence[str], /, *, resume: bool = False) -> Held:
    """Lock a folder for a run; if the folder holds another run, lock a folder beside it.

    An address on an object store cannot be locked.

    Raises:
        Refused: if `resume` is True, and another run has locked the folder.
        OSError: if the run's folder cannot be written.
    """
    if "://" in str(out):
        held = Held(out)
    else:
        identity = request.identity() | {"experiment": request.experiment.id}
        held = take(out, identity, names, look=look, only=resume)
    try_to_write(held.path)
    return held


def compute(request: Request, folder: Place, /, *, resume: bool = False) -> "xarray.Dataset":
    """Compute the data set of a run or of a shard, and keep checkpoints in the folder.

    Raises:
        Refused: if the folder holds an unfinished run and `resume` is False; if `resume` is True
            and a file or module that the run depends on has changed.
        KeyboardInterrupt: if the user stops the run before its end. The message of the interruption
            says how to continue.
    """
    prepare_jax()
    chosen, more = request.experiment, dict[str, Any]()
    own, first = bool(request.imports) and chosen.resumable, jax.process_index() == 0
    if chosen.resumable:
        more = {"folder": folder / "checkpoints", "resume": resume}
        refuse_to_lose(folder, resume)
        if resume:
            ledger.refuse_changes(folder)
        elif first:
            _discard(folder / "checkpoints")
    unknown = set(more) - set(inspect.signature(chosen.run).parameters)
    if unknown:
        raise TypeError(
            f"the experiment {chosen.id} has resumable=True, but its function `run` has no "
            f"argument {', '.join(sorted(unknown))}. Try to add the argument, or resumable=False"
        )
    try:
        with (
            asked_for(request.precision),
            ledger.recorded(folder, resume=resume) if own and first else contextlib.nullcontext(),
            recording.watching(compute.__code__) if own else contextlib.nullcontext(),
        ):
            dataset = chosen.run(request.config, request.key, **more)
            about = {"matmul_precision_used": products_used(), "config": asdict(request.config)}
            return dataset.assign_attrs(about | dict(dataset.attrs))
    except KeyboardInterrupt as stop:
        if _unfinished(folder):
            kept = f"; {stop}" if isinstance(stop, Stopped) else ""
            words = f"{folder} can be continued. Try to add --resume{kept}"
            raise KeyboardInterrupt(words) from None
        raise


def compute_share(request: Request, out: Place, share: Share, /, *, resume: bool = False) -> Place:
    """Compute a shard (share of the training runs) in a folder of its own; return the folder."""
    folder = shard_files.folder_of(out, share)
    held = taken(request, folder, (ledger.LEDGER,), resume=True)
    prepare_jax()
    one = shard_files.shard_of(request, share)
    refuse_to_lose(folder, resume)
    one.write(folder, done=False)
    with shares.only(share), contextlib.suppress(OnlyAShare):
        compute(request, folder, resume=resume)
    one.write(folder, done=True)
    held.release()
    return folder


def _share_somewhere(experiment: str, flags: tuple[str, ...], share: Share) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        compute_share(requests.again(experiment, flags), Path(place), share)
        return packed(Path(place))


def _is_done(folder: Place) -> bool:
    if not is_there(folder / shard_files.NAME) or not shard_files.read(folder).done:
        return False
    ledger.refuse_mixture([folder])
    return True


def compute_shards(request: Request, out: Place, count: int, /, *, on: On = HERE) -> None:
    """Compute all unfinished shards of a run, each in a folder of its own in `out`.

    A shard is a share of the run's training runs.

    Raises:
        Refused: if the worker of a shard died twice.
    """
    every = [Share(index, count) for index in range(1, count + 1)]
    left = [share for share in every if not _is_done(shard_files.folder_of(out, share))]
    flags, name = request.absolute_flags(), request.experiment.id
    work = functools.partial(_share_somewhere, name, flags)
    lost: dict[Share, Died] = {}
    for share, files in drive(work, left, on=on, folder=out):
        if isinstance(files, Died):
            lost[share] = files
        else:
            unpack(files, out)
            say(f"shard {share} is done")
    for share, death in sorted(lost.items()):
        raise Refused(
            f"shard={share} was not computed, because {death}. Try the same command again"
        )


def merged(
    folders: Iterable[str | Place], out: Place, /, *, imports: Iterable[str] = ()
) -> Request:
    """Merge a run's shards (shares of its training runs) into `out`; return the run's `Request`.

    If the caller runs the returned request in `out` with `resume`, the run uses the shards'
    results. The function reads each shard's file without executing code.

    Raises:
        Refused: if shards are missing, overlap, or belong to different runs or versions.
    """
    shards = shard_files.complete(tuple(map(locate, folders)))
    ledger.refuse_mixture([place for place, _ in shards.values()])
    folder, one = next(iter(shards.values()))
    file = folder / shard_files.NAME
    request = requests.from_file(one.experiment, one.flags, imports=imports, file=file)
    now = shard_files.shard_of(request, Share(1, one.count))
    shard_files.refuse_unless_same(now, one, "they were", "this would be")
    try_to_write(out)
    merge_parts([folder / "checkpoints" for folder, _ in shards.values()], out / "checkpoints")
    return request


@restoring
def run(
    experiment: str,
    *,
    preset: str = "default",
    seed: int = 0,
    precision: str = "",
    out: str | Path | None = None,
    resume: bool = False,
    shards: int = 0,
    on: Where | None = None,
    imports: Iterable[str] = (),
    **fields: Any,
) -> "xarray.Dataset":
    """Run an experiment, as `jaxbounds run` does; return the data of a figure or table.

    `jaxbounds.find_experiment(id).figure(dataset)` draws the result, and `.claims(dataset)` tests
    the paper's claims on it.

    Args:
        experiment: the id of the experiment, for example "multihead.fig2".
        preset: the named configuration to start from.
        seed: the seed of all random numbers.
        precision: JAX's precision of matrix products, "highest", "high" or "default". Without
            `precision`, an experiment with its own precision uses "highest"; other experiments use
            JAX's default.
        out: the folder for result.nc and the checkpoints; without `out`, `run` writes no file.
        resume: whether to continue the run that the folder already holds.
        shards: the number of shards (shares of the training runs). If `shards` is positive, the
            engine `on` computes the shards, and `run` merges their results.
        on: the engine that computes the shards, such as "slurm"; see `jaxbounds.verify`.
        imports: modules or files of your own that define EXPERIMENTS.
        **fields: fields of the experiment's configuration, which replace the preset's fields.

    Raises:
        Refused: if the experiment, the preset or a field's value is unknown, if the run cannot be
            cut into shards, or if `out` holds an unfinished run.
    """
    request = requests.with_fields(
        experiment, fields, preset=preset, seed=seed, precision=precision, imports=imports
    )
    if (resume or shards) and not request.experiment.resumable:
        raise Refused(
            f"the experiment {experiment} cannot be resumed or be cut into shards (parts for "
            f"separate processes), got {resume=}, {shards=}. Try resume=False, shards=0"
        )
    with tempfile.TemporaryDirectory() as scratch:
        place, held = locate(scratch if out is None else str(out)), None
        if out is not None and jax.process_index() == 0:
            held = taken(request, place, NAMES, resume=resume or jax.process_count() > 1)
            place = held.path
        if shards:
            compute_shards(request, place, shards, on=engine_of(on))
            request, resume = merged([place], place, imports=request.imports), True
        dataset = compute(request, place, resume=resume)
        if out is not None and jax.process_index() == 0:
            save(dataset, place / "result.nc", **request.about)
        if held is not None:
            held.release()
    return dataset
