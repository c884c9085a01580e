"""`jaxbounds run`: the figures of the papers as experiments."""

import contextlib
import functools
import inspect
import sys
from typing import Annotated, Any

import jax
import tyro
from rich import box
from rich.table import Table

from jaxbounds.cli import shard
from jaxbounds.cli.asked import Asked, asked
from jaxbounds.cli.cache import prepare_jax
from jaxbounds.cli.common import console_for_output
from jaxbounds.cli.gang import Gang, supervised
from jaxbounds.cli.plot import draw_result, print_result
from jaxbounds.files import Place, try_to_write
from jaxbounds.papers import experiments
from jaxbounds.provenance import provenance
from jaxbounds.results import save
from jaxbounds.sweeps import OnlyAShare, Share, shares

USAGE = """usage: jaxbounds run EXPERIMENT [--preset NAME] [--seed INT] [--out FOLDER] [OPTIONS]

Run an experiment: its data, its figure, and what it says about the paper's claims.
`jaxbounds run EXPERIMENT --help` lists its presets and the fields of its configuration.
"""


def list_experiments() -> int:
    """Print how `run` is used, and what can be run."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("experiment", no_wrap=True)
    for name in ("in the paper", "what it does"):
        table.add_column(name)
    for experiment in experiments().values():
        table.add_row(experiment.id, experiment.label, experiment.title)
    console = console_for_output()
    console.print(USAGE, markup=False)
    console.print(table)
    return 0


def _unfinished(folder: Place) -> bool:
    """Whether checkpoints are there that no result, and no finished shard, has followed."""
    states = [file.stat().st_mtime for file in folder.glob("checkpoints/**/state.npz")]
    ends = [folder / "result.nc", folder / shard.NAME]
    ended = [end.stat().st_mtime for end in ends if end.is_file()]
    return bool(states) and not (ended and max(ended) >= max(states))


def _refuse_to_lose(folder: Place, resume: bool) -> None:
    if not resume and _unfinished(folder):
        raise ValueError(
            f"{folder} holds a run that was cut: add --resume to continue it, give another --out, "
            "or remove that folder to start again"
        )


def run(
    experiment: Annotated[str, tyro.conf.Positional],
    flags: Annotated[tuple[str, ...], tyro.conf.Suppress] = (),
    /,
) -> int:
    """Run an experiment: its data, its figure, and what it says about the paper's claims.

    `jaxbounds run EXPERIMENT --help` lists the fields of its configuration.

    Args:
        experiment: its id, as "multihead.fig2".
        flags: --preset, --seed, --out, --resume, --import, and fields of the configuration.
    """
    given = asked(experiment, flags)
    options = given.options
    if options.shard:
        return _run_share(given, Share.read(options.shard))
    if options.shards:
        from jaxbounds.cli.spread import spread

        return spread(given, options.shards, options.on)
    if options.gang.distributed:
        again = ("jaxbounds", "run", experiment, *flags, "--resume")
        return supervised(functools.partial(_run_in_gang, options.gang, experiment, flags), again)
    return _run_whole(given)


def _run_in_gang(gang: Gang, experiment: str, flags: tuple[str, ...]) -> int:
    gang.join()  # before anything that starts JAX, as a key does
    return _run_whole(asked(experiment, flags))


def _run_whole(given: Asked) -> int:
    """Compute everything; of several processes the first alone writes."""
    prepare_jax()
    out, first = given.out, jax.process_index() == 0
    if first:
        try_to_write(out)
    about = provenance(given.config, given.key) | {"experiment": given.experiment.id}
    dataset = _computed(given, out)
    if not first:
        return 0
    # First: what was computed is not lost with a full disk.
    print_result(given.experiment, dataset, verbose=given.options.verbose)
    save(dataset, out / "result.nc", **about)
    return draw_result(given.experiment, out)


def _computed(given: Asked, folder: Place) -> Any:
    """The data set of a run, or of a share of one."""
    chosen, more = given.experiment, {}
    if chosen.resumable:
        more = {"folder": folder / "checkpoints", "resume": given.options.resume}
        _refuse_to_lose(folder, given.options.resume)
    unknown = set(more) - set(inspect.signature(chosen.run).parameters)
    if unknown:
        raise TypeError(f"{chosen.id} is resumable but its run lacks {', '.join(unknown)}")
    try:
        return chosen.run(given.config, given.key, **more)
    except KeyboardInterrupt:
        if _unfinished(folder):
            raise KeyboardInterrupt(f"{folder} can be continued: add --resume") from None
        raise


def _run_share(given: Asked, share: Share) -> int:
    """Compute one share, for `jaxbounds merge`."""
    out, folder = given.out, shard.folder_of(given.out, share)
    try_to_write(folder)
    prepare_jax()
    about = shard.identity(given.config, given.key, given.options.imports)
    one = shard.Shard(
        experiment=given.experiment.id,
        flags=given.flags,
        about=about,
        index=share.index,
        count=share.count,
    )
    _refuse_to_lose(folder, given.options.resume)
    one.write(folder, done=False)
    with shares.only(share), contextlib.suppress(OnlyAShare):
        _computed(given, folder)
    one.write(folder, done=True)
    words = "written; when all are there: jaxbounds merge"
    print(f"{folder}: shard {share} is {words} {out} --out {out}", file=sys.stderr)
    return 0
