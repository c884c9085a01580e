"""Write and read the checkpoints of a sweep. Each checkpoint is an npz file, complete or absent.

A sweep replaces and removes only files that it wrote; `jaxbounds.ground.folders` recognises these
files.
"""

import contextlib
import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.experiments.sweeps.inputs import impl_of, is_key
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, is_there, load_arrays, locate, reaching, write_arrays
from jaxbounds.ground.folders import Marked, set_aside

FORMAT = "jaxbounds-checkpoint-4"
STATE, ABOUT = "state.npz", "sweep.json"
METRIC = "metric/"
"""The prefix that marks a metric's name among the names of a file's entries."""
NAMES = re.compile(r"state\.npz|chunk-\d{9,}\.npz|sweep\.json")
"""The names of files that a sweep writes into its folder."""


def plain(leaf: Any) -> Any:
    """Return the raw data of an array of typed random keys; return other arrays unchanged."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def leaves_of(state: Any, /) -> list[np.ndarray]:
    """Return the leaves of a pytree as NumPy arrays, with random keys as their raw data."""
    return [np.asarray(plain(leaf)) for leaf in jax.tree.leaves(state)]


def with_leaves(like: Any, leaves: Sequence[np.ndarray], /) -> Any:
    """Rebuild a pytree like `like`, with its types of keys, from the leaves of `leaves_of`."""
    old, structure = jax.tree.flatten(like)

    def one(old: Any, data: np.ndarray) -> Any:
        if is_key(old):
            return jax.random.wrap_key_data(jnp.asarray(data), impl=impl_of(old))
        return data

    return jax.tree.unflatten(structure, [one(*pair) for pair in zip(old, leaves, strict=True)])


class Checkpoints:
    """The checkpoints of one sweep: the latest state (`state.npz`) and metrics (`chunk-*.npz`).

    The sweep first writes the metrics of a chunk (steps between two checkpoints), then the state at
    the end of the chunk. The sweep writes each file under a temporary name and then renames the
    file. A process killed at any moment therefore leaves a folder that can be resumed.

    The class refuses checkpoints with another `fingerprint`, a hash of everything that the numbers
    depend on. If the folder holds only a share of the lanes (runs), `part` is the triple (first
    lane, end, number of all lanes).
    """

    def __init__(
        self, folder: str | Place, fingerprint: str, part: tuple[int, int, int] | None = None
    ) -> None:
        self.folder = locate(folder)
        self.fingerprint, self.part = fingerprint, part
        self.marked = Marked(self.folder)

    def _write(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        with self.marked.writing(name) as file:
            write_arrays(file, arrays, form=FORMAT, about=self.fingerprint)

    def _read(self, name: str) -> dict[str, np.ndarray]:
        path = self.marked.place(name)
        try:
            arrays, fingerprint = load_arrays(path, form=FORMAT)
        except Refused as problem:
            raise Refused(
                f"checkpoint {problem}. Try fresh=True, which renames the files, or another folder"
            ) from problem
        if fingerprint != self.fingerprint:
            raise Refused(
                f"checkpoint={path} belongs to another run (its configuration, network, seed or "
                "version differ). Try another folder"
            )
        return arrays

    def _there(self) -> list[str]:
        with reaching(self.folder):
            found = [path.name for path in self.folder.glob("*") if NAMES.fullmatch(path.name)]
        return sorted(found)

    def refuse_foreign(self) -> None:
        """Refuse a folder in which the user has files with the names of a sweep's files.

        Raises:
            Refused: if the user has files with these names in the folder; the message names the
                files.
        """
        if strangers := self.marked.foreign(self._there()):
            raise Refused(
                f"folder={self.folder} holds {', '.join(strangers)}, which no sweep wrote. Try "
                "another folder"
            )

    def clear(self) -> None:
        """Remove an earlier sweep's files; only the first of several processes removes them."""
        if jax.process_index() > 0:
            return
        for name in self._there():
            self.marked.remove(name)
        with contextlib.suppress(OSError):
            self.marked.tidy()

    def put_aside(self) -> None:
        """Rename an earlier sweep's files; only the first of several processes renames them."""
        if jax.process_index() > 0:
            return
        self.refuse_foreign()
        for name in self._there():
            set_aside(self.marked.place(name), "belongs to an earlier sweep")

    def save(
        self,
        step: int,
        state: Sequence[np.ndarray],
        first: int,
        metrics: dict,
        ended: bool = True,
        /,
    ) -> None:
        """Store the metrics of steps `first` to `step`, then the state at `step`.

        Only the first of several processes writes the files. If `ended` is true, the sweep makes no
        more steps.
        """
        if jax.process_index() > 0:
            return
        found = {METRIC + name: np.asarray(values) for name, values in metrics.items()}
        self._write(f"chunk-{first:09d}.npz", found | {"until": np.asarray(step)})
        leaves = {f"leaf{i:06d}": np.asarray(leaf) for i, leaf in enumerate(state)}
        part = {} if self.part is None else {"part": np.asarray(self.part)}
        ends = {"step": np.asarray(step), "ended": np.asarray(ended)}
        self._write(STATE, leaves | part | ends)

    def reached(self) -> tuple[int, bool] | None:
        """Return the latest state's step, and whether the sweep has ended; None without a state.

        Raises:
            Refused: if a file of the checkpoint is damaged (see `load`).
        """
        if not is_there(self.marked.place(STATE)):
            return None
        stored = self._read(STATE)
        return int(stored["step"]), bool(stored["ended"])

    def load(self) -> tuple[int, list[np.ndarray], list[dict[str, np.ndarray]]] | None:
        """Return the checkpoint's step, state leaves and metrics; None if no state is stored.

        Raises:
            Refused: if a file is damaged, missing or from another run.
            Unreachable: if the files are on an object store that did not answer.
        """
        if not is_there(self.marked.place(STATE)):
            return None
        stored = self._read(STATE)
        step, part = int(stored.pop("step")), stored.pop("part", None)
        del stored["ended"]
        if (None if part is None else tuple(part.tolist())) != self.part:
            raise Refused(
                f"folder={self.folder} holds a checkpoint of other lanes (runs), from another "
                f"shard. Try another folder, or remove this one"
            )
        chunks, reached = [], 0
        for name in self._there():
            if not name.startswith("chunk-"):
                continue
            first = int(name.removesuffix(".npz").removeprefix("chunk-"))
            if first >= step:
                continue
            if first != reached:
                raise Refused(
                    f"folder={self.folder} lacks the metrics from step {reached} on. Try "
                    "fresh=True, which renames the files, or another folder"
                )
            metrics = self._read(name)
            reached = int(metrics.pop("until"))
            chunks.append({k.removeprefix(METRIC): values for k, values in metrics.items()})
        if reached != step:
            raise Refused(
                f"folder={self.folder} lacks the metrics from step {reached} to {step}. Try "
                "fresh=True, which renames the files, or another folder"
            )
        return step, [stored[name] for name in sorted(stored)], chunks


def records_in(folder: str | Place, /) -> tuple[int, dict[str, np.ndarray]]:
    """Read the records of a sweep from its folder, even if the sweep cannot be resumed.

    Returns:
        The step of the latest state, and a dict from each metric's name to an array (lanes,
        records, ...).

    Raises:
        Refused: if there is no sweep, or a file is damaged.
    """
    place = locate(folder)
    if not is_there(place / STATE):
        raise Refused(f"folder={place} holds no sweep. Try the folder= of the call of sweep")
    arrays, mark = load_arrays(place / STATE, form=FORMAT)
    part = arrays.get("part")
    lanes = None if part is None else tuple(part.tolist())
    stored = Checkpoints(place, mark, lanes).load()  # type: ignore[arg-type]
    assert stored is not None
    names = list(stored[2][0]) if stored[2] else []
    return stored[0], {n: np.concatenate([c[n] for c in stored[2]], axis=1) for n in names}
