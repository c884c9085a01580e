"""`jaxbounds.run`: an experiment computed here, in shards anywhere, or merged from them."""

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
    """Whether checkpoints are there that no result, and no finished shard, has followed."""
    with reaching(folder):
        # Where a sweep is, and pieces that a run keeps whole.
        kept = [*folder.glob("checkpoints/**/state.npz"), *folder.glob("checkpoints/*.npz")]
        states = [file.stat().st_mtime for file in kept]
        ends = [folder / "result.nc", folder / shard_files.NAME]
        ended = [end.stat().st_mtime for end in ends if is_there(end)]
    return bool(states) and not (ended and max(ended) >= max(states))


def _discard(checkpoints: Place) -> None:
    """Remove the checkpoints of a run that came to its end; what no run wrote stays."""
    with reaching(checkpoints):
        found = {file.parent for file in checkpoints.glob("**/state.npz")}
    for folder in found:
        Checkpoints(folder, "").clear()


def refuse_to_lose(folder: Place, resume: bool, /) -> None:
    """Refuse to start again where a run was cut.

    Raises:
        Refused: then.
    """
    if not resume and _unfinished(folder):
        raise Refused(
            f"{folder} holds a run that was cut. Try to add --resume to continue it, give another "
            "--out, or remove that folder to start again"
        )


NAMES = ("result.nc", "figure.svg", "figure.png", ledger.LEDGER)
"""Names of the files that a run writes into its folder, besides checkpoints."""


def taken(request: Request, out: Place, names: Sequence[str], /, *, resume: bool = False) -> Held:
    """Take a folder for a run alone; take another folder beside it if the first holds another run.

    An address on an object store is nobody's alone.

    Raises:
        Refused: if the run is to be continued, and another one has the folder.
        OSError: if nothing can be written there.
    """
    if "://" in str(out):
        held = Held(out)
    else:
        identity = request.identity() | {"experiment": request.experiment.id}
        held = take(out, identity, names, look=look, only=resume)
    try_to_write(held.path)
    return held


def compute(request: Request, folder: Place, /, *, resume: bool = False) -> "xarray.Dataset":
    """Compute the data set of a run, or of a share of one; the folder keeps the progress.

    Raises:
        Refused: if the folder holds a run that was cut, and is not to be continued; or if a file
            or module changed since that the run to be continued rests on.
        KeyboardInterrupt: saying how to continue, where it can be.
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
        raise TypeError(f"{chosen.id} is resumable but its run lacks {', '.join(unknown)}")
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
            words = f"{folder} can be continued: add --resume{kept}"
            raise KeyboardInterrupt(words) from None
        raise


def compute_share(request: Request, out: Place, share: Share, /, *, resume: bool = False) -> Place:
    """Compute one share, for `merge`; the folder that holds it."""
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
    """Compute a share on any machine, and return the shard's files."""
    with tempfile.TemporaryDirectory() as place:
        compute_share(requests.again(experiment, flags), Path(place), share)
        return packed(Path(place))


def _is_done(folder: Place) -> bool:
    if not is_there(folder / shard_files.NAME) or not shard_files.read(folder).done:
        return False
    ledger.refuse_mixture([folder])
    return True


def compute_shards(request: Request, out: Place, count: int, /, *, on: On = HERE) -> None:
    """Compute all shards of a run; what was done before is not done again.

    Args:
        request: the run.
        out: each shard is in a folder there as soon as it is done.
        count: how many.
        on: where they are computed.

    Raises:
        Refused: if a shard was lost twice.
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
        raise Refused(f"shard {share}: {death}; the same command continues")


def merged(
    folders: Iterable[str | Place], out: Place, /, *, imports: Iterable[str] = ()
) -> Request:
    """Put the shards of a run together; the request that, resumed in `out`, gives its result.

    Args:
        folders: of the shards.
        out: of the whole run.
        imports: modules or files of the user's that the run needs; the shards name no code to run.

    Raises:
        Refused: if shards are missing, overlap, or are of different runs, or of another version.
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
    """Run an experiment, as `jaxbounds run` does: a figure or table of a paper as labelled data.

    `jaxbounds.find_experiment(id)` has what draws it, `.figure(dataset)`, and decides what the
    paper says about it, `.claims(dataset)`.

    Args:
        experiment: its id, as "multihead.fig2".
        preset: a named configuration to start from.
        seed: of all draws.
        precision: of products of matrices, "highest", "high" or "default" as JAX names them; unless
            given, what the experiment chooses ("highest"), or JAX's default.
        out: folder for result.nc and the progress; nothing is kept unless given.
        resume: continue the run that the folder holds.
        shards: cut the run into so many pieces, computed where `on` says, and merge them.
        on: where those are computed, as for `verify`.
        imports: modules or files of your own that define EXPERIMENTS.
        **fields: of the experiment's configuration, in place of the preset's.

    Raises:
        Refused: if there is no such experiment, preset or field value, the run cannot be cut, or
            `out` holds one that was.
    """
    request = requests.with_fields(
        experiment, fields, preset=preset, seed=seed, precision=precision, imports=imports
    )
    if (resume or shards) and not request.experiment.resumable:
        raise Refused(
            f"{experiment} cannot be resumed or cut into shards, got {resume=}, {shards=}. Try it "
            "without the two"
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
