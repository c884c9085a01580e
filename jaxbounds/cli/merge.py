"""`jaxbounds merge`: the shards of a run, put together as one run."""

from typing import Annotated

import tyro

from jaxbounds.cli.common import Imports
from jaxbounds.cli.run import finish
from jaxbounds.ground.files import locate
from jaxbounds.runs.experiment import merged


def merge(
    folders: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    /,
    *,
    out: str,
    imports: Imports = (),
) -> int:
    """Put the shards of a run together: the result, and its bits, are those of one run.

    Args:
        folders: what `jaxbounds run --shard` was given as `--out`, or folders of single shards.
        out: folder of the results of the whole run.
        imports: modules or files of your own that the run needs, as `jaxbounds run` was given them;
            the shards name no code to run.
    """
    if not folders:
        raise ValueError("no folder of shards given")
    place = locate(out)
    return finish(merged(folders, place, imports=imports), place, resume=True)
