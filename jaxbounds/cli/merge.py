"""`jaxbounds merge`: the shards of a run, put together as one run."""

from typing import Annotated

import tyro

from jaxbounds.cli.run import finish
from jaxbounds.ground.files import locate
from jaxbounds.runs.experiment import merged


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
    place = locate(out)
    return finish(merged(folders, place), place, resume=True)
