"""Decide whether a sweep may begin or continue in a folder, and read the state there."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbounds.experiments.sweeps.checkpoint import ABOUT, STATE, Checkpoints
from jaxbounds.experiments.sweeps.identity import (
    Identity,
    differences,
    digest_of,
    read_identity,
    write_identity,
)
from jaxbounds.experiments.sweeps.programs import OVER
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, is_there, locate
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.occupied import Held, take

CURE = "fresh=True, which renames the old files and begins anew, or another folder"
SHOWN = 5
"""The number of differences that a refusal names; a larger number makes longer messages."""


@dataclass
class Kept:
    """A sweep's folder, with the progress that is stored in the folder.

    Attributes:
        done: the step that the stored sweep has reached.
        ended: whether the sweep is complete and makes no more steps.
        state: the leaves of the carry at the step `done`; None before the first step. The carry
            holds, for each lane (run), its state and a flag that says whether the lane is finished.
        held: the lock on the folder; None on an object store, which has no lock.
    """

    checkpoints: Checkpoints
    done: int = 0
    ended: bool = False
    state: list[np.ndarray] | None = None
    records: list[dict[str, np.ndarray]] = field(default_factory=list)
    held: Held | None = None

    def release(self) -> None:
        """Release the lock on the folder, so that other sweeps can use the folder."""
        if self.held is not None:
            self.held.release()

    def save(self, done: int, carries: Any, since: int, metrics: dict, steps: int) -> None:
        """Store the runs' states at the step `done`, and the metrics from the step `since` on.

        The argument `carries` holds the state of each run, and whether the run is finished.
        """
        over = OVER in metrics and bool(metrics[OVER][:, -1].all())
        leaves = jax.tree.leaves(carries)
        self.checkpoints.save(done, leaves, since, metrics, done >= steps or over)


def stored_group(folder: str | Place, /) -> int | None:
    """Return the number of runs in each group of a folder's sweep; None if there is no sweep."""
    if not is_there(locate(folder) / STATE):
        return None
    found = read_identity(Marked(folder))
    return None if found is None else found[1]


def opened(
    folder: str | Place,
    identity: Identity,
    part: tuple[int, int, int] | None,
    group: int,
    steps: int,
    /,
    *,
    resume: bool,
    fresh: bool,
) -> Kept:
    """Open a folder in which this sweep may write, and read its checkpoints there.

    If the sweep computes only a share of the lanes (runs), `part` is the triple (first lane, end,
    number of all lanes). If `fresh` is true, the function renames the files of an earlier sweep,
    and the sweep starts again.

    Raises:
        Refused: if another process works in the folder, or files are damaged. The error also occurs
            if the folder holds another sweep, an unfinished sweep while `resume` is False, more
            steps than `steps`, or files of the user with a sweep's names.
    """
    kept = Kept(Checkpoints(folder, digest_of(identity), part))
    checkpoints, place = kept.checkpoints, kept.checkpoints.folder
    if jax.process_index() > 0 and not resume:  # the first process manages the folder
        return kept
    checkpoints.refuse_foreign()
    if "://" not in str(place) and jax.process_index() == 0:
        kept.held = take(Path(place), [identity, part], only=True)
    if fresh:
        checkpoints.put_aside()
    elif is_there(checkpoints.marked.place(STATE)):
        stored = read_identity(checkpoints.marked)
        if stored is None:
            raise Refused(f"folder={place} holds a sweep, but not its file {ABOUT}. Try {CURE}")
        if other := differences(stored[0], identity):
            more = f"; and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
            raise Refused(
                f"folder={place} belongs to another run: {'; '.join(other[:SHOWN])}{more}. "
                f"Try {CURE}"
            )
        done, ended = checkpoints.reached() or (0, True)
        if not (resume or ended):
            raise Refused(
                f"folder={place} holds an unfinished sweep, at step {done}. Try resume=True, which "
                "continues it, fresh=True, which renames its files and "
                "begins anew, or another folder"
            )
        if resume and done > steps:
            raise Refused(
                f"folder={place} holds a sweep of {done} steps, more than steps={steps}. Try "
                f"steps={done}"
            )
        if resume:
            found = checkpoints.load()
            assert found is not None
            kept.done, kept.state, kept.records = found
            kept.ended = ended
            return kept
        checkpoints.clear()
    else:
        checkpoints.clear()  # files of a sweep that was interrupted before its first state
    if jax.process_index() == 0:
        write_identity(checkpoints.marked, identity, group)
    return kept
