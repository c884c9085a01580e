"""Checkpoints of a sweep: npz files and a fingerprint; written whole or not at all."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.files import Place, is_there, load_arrays, locate, reaching, save_arrays

FORMAT = "jaxbounds-checkpoint-3"


def is_key(leaf: Any) -> bool:
    """Whether it is an array of typed PRNG keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def plain(leaf: Any) -> Any:
    """The data of typed keys; any other array as it is."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def leaves_of(state: Any, /) -> list[np.ndarray]:
    """The leaves of a pytree as they are stored: on the host, keys as their data."""
    return [np.asarray(plain(leaf)) for leaf in jax.tree.leaves(state)]


def with_leaves(like: Any, leaves: Sequence[np.ndarray], /) -> Any:
    """The pytree that `leaves_of` took apart, of the structure and key types of `like`."""
    old, structure = jax.tree.flatten(like)

    def one(old, data):
        if is_key(old):
            return jax.random.wrap_key_data(jnp.asarray(data), impl=jax.random.key_impl(old))
        return data

    return jax.tree.unflatten(structure, [one(*pair) for pair in zip(old, leaves, strict=True)])


class Checkpoints:
    """The folder of one sweep: `state.npz` (the latest) and `chunk-<first step>.npz` (metrics).

    A chunk's metrics are written before the state that follows it, each by renaming a finished
    file, so that a process killed at any moment leaves a folder that can be resumed.

    Args:
        folder: created when first written to.
        fingerprint: of everything the numbers depend on; a folder with another one is refused.
        part: (first lane, end, lanes of the sweep) where only these lanes are kept.
    """

    def __init__(
        self, folder: str | Place, fingerprint: str, part: tuple[int, int, int] | None = None
    ) -> None:
        self.folder = locate(folder)
        self.fingerprint, self.part = fingerprint, part

    def _write(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        save_arrays(self.folder / name, arrays, form=FORMAT, about=self.fingerprint)

    def _read(self, name: str) -> dict[str, np.ndarray]:
        path = self.folder / name
        try:
            arrays, fingerprint = load_arrays(path, form=FORMAT)
        except ValueError as problem:
            cure = "remove its folder, or choose another"
            raise ValueError(f"checkpoint {problem}: {cure}") from problem
        if fingerprint != self.fingerprint:
            raise ValueError(
                f"checkpoint {path} belongs to another run (its configuration, network, seed or "
                "version differ): choose another folder, or remove this one"
            )
        return arrays

    def clear(self) -> None:
        """Remove the files of an earlier sweep; of several processes the first does."""
        if jax.process_index() > 0:
            return
        with reaching(self.folder):
            for path in self.folder.glob("*.npz*"):
                path.unlink()

    def save(self, step: int, state: Sequence[np.ndarray], first: int, metrics: dict) -> None:
        """Store the metrics of steps `first` to `step`, then the state at `step`.

        Of several processes the first does.
        """
        if jax.process_index() > 0:
            return
        self._write(f"chunk-{first:09d}.npz", {k: np.asarray(v) for k, v in metrics.items()})
        leaves = {f"leaf{i:04d}": np.asarray(leaf) for i, leaf in enumerate(state)}
        part = {} if self.part is None else {"part": np.asarray(self.part)}
        self._write("state.npz", leaves | part | {"step": np.asarray(step)})

    def load(self) -> tuple[int, list[np.ndarray], list[dict[str, np.ndarray]]] | None:
        """(step, leaves of the state, metrics of the chunks before it), or None if there is none.

        Raises:
            ValueError: if a file is damaged, missing or of another run.
            Unreachable: if they are on an object store that did not answer.
        """
        if not is_there(self.folder / "state.npz"):
            return None
        stored = self._read("state.npz")
        step, part = int(stored.pop("step")), stored.pop("part", None)
        if (None if part is None else tuple(part.tolist())) != self.part:
            raise ValueError(
                f"{self.folder} holds other lanes than these (of another share): choose another "
                "folder, or remove this one"
            )
        chunks, reached = [], 0
        with reaching(self.folder):
            found = sorted(self.folder.glob("chunk-*.npz"))
        for path in found:
            first = int(path.stem.removeprefix("chunk-"))
            if first >= step:
                continue
            if first != reached:
                raise ValueError(f"the metrics from step {reached} on are missing in {self.folder}")
            metrics = self._read(path.name)
            reached = int(metrics["until"])
            chunks.append(metrics)
        if reached != step:
            raise ValueError(f"the metrics from step {reached} to {step} are missing")
        return step, [stored[name] for name in sorted(stored)], chunks
