"""Write and read states of a sweep as orbax checkpoints, as Flax and other tools do.

An installation of Flax includes orbax. A checkpoint stores typed keys as their raw data, which
every version of orbax can store.
"""

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbounds.experiments.sweeps.checkpoint import leaves_of, with_leaves
from jaxbounds.ground.exceptions import Refused


def write_state(folder: str | Path, state: Any, /) -> Path:
    """Write a state, or any pytree of arrays, as an orbax checkpoint.

    Args:
        folder: a folder that must not exist; orbax makes it.
        state: a state as in `Swept.state`; each leaf has the shape (lanes, ...), with one row for
            each run.

    Returns:
        The absolute path of the folder.

    Raises:
        Refused: if the folder exists, or orbax cannot store a leaf (an empty array).
    """
    place = Path(folder).absolute()
    if place.exists():
        raise Refused(f"folder={place} exists, but orbax must make the folder. Try another name")
    with _checkpointer() as checkpointer:
        checkpointer.save(place, _plain(state))
    return place


def read_state(folder: str | Path, like: Any, /) -> Any:
    """Read an orbax checkpoint that `write_state` or another tool wrote.

    Args:
        folder: the folder that holds the checkpoint.
        like: a state with the structure, shapes and types that the checkpoint must have.

    Returns:
        The state on the host; random keys have the same types as in `like`.

    Raises:
        Refused: if the folder holds no checkpoint, or the checkpoint's leaves have other paths,
            shapes or types than `like`.
    """
    place, wanted = Path(folder).absolute(), _plain(like)
    if not place.is_dir():
        raise Refused(f"folder={place} is no folder. Try the folder that write_state returned")
    with _checkpointer() as checkpointer:
        try:
            written = _kinds(checkpointer.restore(place))
            found = checkpointer.restore(place, wanted)  # casts to the types that are wanted
        except (OSError, KeyError, TypeError, ValueError) as problem:
            raise Refused(
                f"folder={place} holds no checkpoint with the structure of like= "
                f"({' '.join(str(problem).split())[:300]}). Try like= with the stored structure"
            ) from problem
    if more := written - _kinds(wanted):
        held = ", ".join(f"{dtype} of shape {shape}" for dtype, shape in sorted(more))
        raise Refused(
            f"folder={place} holds leaves that like= lacks: {held}. Try like= with all leaves of "
            "the stored state"
        )
    return with_leaves(like, jax.tree.leaves(found))


def _checkpointer() -> Any:
    return importlib.import_module("orbax.checkpoint").StandardCheckpointer()


def _kinds(tree: Any) -> Counter[tuple[str, tuple[int, ...]]]:
    """Count leaves by type and shape; ignore containers, because orbax may change their classes."""
    return Counter((str(leaf.dtype), tuple(leaf.shape)) for leaf in jax.tree.leaves(tree))


def _plain(state: Any) -> Any:
    return jax.tree.unflatten(jax.tree.structure(state), map(np.asarray, leaves_of(state)))
