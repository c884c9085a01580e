"""`jaxbounds merge`: join the parts of a run or sweep that ran separately."""

from typing import Annotated

import tyro

from jaxbounds.cli.common import Imports
from jaxbounds.cli.run import finish
from jaxbounds.experiments.sweeps import merge_sweeps
from jaxbounds.experiments.sweeps.checkpoint import ABOUT
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import is_there, locate
from jaxbounds.runs.experiment import merged


def merge(
    folders: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    /,
    *,
    out: str,
    imports: Imports = (),
) -> int:
    """Join the shards of a run, or the shares of a sweep.

    A shard or share holds some of the training runs. The joined result equals that of an undivided
    run, bit for bit.

    Args:
        folders: the folder that `jaxbounds run --shard` got as `--out`, or the folders of single
            shards, or the folders of all shares of a sweep.
        out: the folder of the whole run or sweep.
        imports: modules or files of your own that the run needs, as for `jaxbounds run`. Reading
            the files of a shard never executes code that the files name.
    """
    if not folders:
        raise Refused(
            f"expected at least one folder of shards, got folders={folders}. Try jaxbounds merge "
            "DIR --out DIR"
        )
    place = locate(out)
    if all(is_there(locate(folder) / ABOUT) for folder in folders):
        step = merge_sweeps(folders, place)
        print(
            f"written to {place}: the joined sweep, computed up to step {step}. Try sweep(..., "
            f"resume=True)"
        )
        return 0
    return finish(merged(folders, place, imports=imports), place, resume=True)
