"""`jaxbounds merge`: the shards of a run, put together as one run."""

from collections.abc import Iterator
from typing import Annotated

import tyro

from jaxbounds.cli import shard
from jaxbounds.cli.asked import asked
from jaxbounds.cli.run import run
from jaxbounds.files import Place, locate, try_to_write
from jaxbounds.sweeps import Share, merge_parts


def _found(folders: tuple[Place, ...]) -> Iterator[Place]:
    for folder in folders:
        inside = sorted(file.parent for file in folder.glob(f"*/{shard.NAME}"))
        here = [folder] * (folder / shard.NAME).is_file()
        if not inside and not here:
            raise ValueError(
                f"{folder} holds no shards: compute them by `jaxbounds run EXPERIMENT --shard I/N`"
            )
        yield from (*here, *inside)


def _complete(folders: tuple[Place, ...]) -> dict[Share, tuple[Place, shard.Shard]]:
    """All shards of one run.

    Raises:
        ValueError: if they are of different runs, one is there twice, or some are missing.
    """
    shards: dict[Share, tuple[Place, shard.Shard]] = {}
    for folder in dict.fromkeys(_found(folders)):
        one = shard.read(folder)
        first_folder, first = next(iter(shards.values()), (folder, one))
        shard.refuse_unless_same(one, first, f"{first_folder} was", f"{folder} was")
        if one.count != first.count:
            raise ValueError(
                f"shards that overlap: {folder} is {one.share} and {first_folder} is {first.share}"
            )
        if one.share in shards:
            twice = shards[one.share][0]
            raise ValueError(f"shards that overlap: {folder} and {twice} both are {one.share}")
        shards[one.share] = folder, one
    count, out = first.count, first_folder.parent
    missing = [share for i in range(1, count + 1) if (share := Share(i, count)) not in shards]
    cut = [share for share, (_, one) in shards.items() if not one.done]
    if missing or cut:
        names = lambda shares: ", ".join(map(str, sorted(shares)))
        words = [f"missing: {names(missing)}"] * bool(missing)
        words += [f"not finished: {names(cut)}"] * bool(cut)
        again = first.command(min([*missing, *cut]), out)
        raise ValueError(f"shards {'; '.join(words)}. Each by its number, as `{again}`")
    return shards


def merge(
    folders: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    /,
    *,
    out: str,
) -> int:
    """Put the shards of a run together: the result, and its bits, are those of one run.

    Args:
        folders: what `jaxbounds run --shard` was given as `--out`, or folders of single shards.
        out: folder of the results of the whole run.
    """
    if not folders:
        raise ValueError("no folder of shards given")
    shards = _complete(tuple(map(locate, folders)))
    one = next(iter(shards.values()))[1]
    here = asked(one.experiment, one.flags)
    about = shard.identity(here.config, here.key, here.options.imports)
    now = shard.Shard(
        experiment=one.experiment, flags=one.flags, index=1, count=one.count, about=about
    )
    shard.refuse_unless_same(now, one, "they were", "this would be")
    try_to_write(locate(out))
    parts = [folder / "checkpoints" for folder, _ in shards.values()]
    merge_parts(parts, locate(out) / "checkpoints")
    return run(one.experiment, (*one.flags, "--resume", "--out", out))
