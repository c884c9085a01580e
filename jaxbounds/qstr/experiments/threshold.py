"""Measure the number of samples until the test risk is below a threshold, as in Figure 1.

A run stops when every seed's test risk has been below the threshold after some chunk of training
steps, or when the budget of samples is spent.
"""

import contextlib
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.experiments.sweeps import Checkpoints, leaves_of, progress, with_leaves
from jaxbounds.ground import stopping
from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.architectures import outline
from jaxbounds.qstr.experiments.online import Protocol, encoded_dimension, side_by_side

SECONDS = 60.0
"""The run stores a cell (one architecture at one N) again after this many seconds. A larger number
stores less often, so an interruption loses more work.
"""


class Cell(NamedTuple):
    """The outcome of a cell (one architecture at one N), with one entry for each seed.

    Attributes:
        samples: the number of samples drawn up to the first chunk after which the test risk is
            below the threshold; inf if there is no such chunk.
        risk: the last test risk of each run.
        seen: the number of samples that each run of the cell drew; it is equal for all runs,
            because all runs stop together.
        history: the test risks after every chunk, of shape (chunks, seeds).
    """

    samples: Float[np.ndarray, "S"]
    risk: Float[np.ndarray, "S"]
    seen: int
    history: Float[np.ndarray, "looks S"]


def _cell(history: np.ndarray, protocol: Protocol) -> Cell:
    used = protocol.batch * protocol.check_every * np.arange(1, len(history) + 1)
    below = history < protocol.threshold
    samples = np.where(below.any(axis=0), used[np.argmax(below, axis=0)], np.inf)
    return Cell(samples, history[-1], int(used[-1]), history)


def samples_to_threshold(
    name: str,
    N: int,
    protocol: Protocol,
    key: Array,
    /,
    *,
    seeds: int,
    store: Checkpoints | None = None,
) -> Cell:
    """Train `seeds` runs in parallel until all have learned or the budget is spent.

    Run i uses the i-th split of `key`, for any number of runs. If `store` holds progress of an
    earlier call, training continues from there.

    Raises:
        Refused: if the architecture is unknown or unsuitable, N < 2, or the budget is below one
            chunk (the samples between two checks). The function also refuses stored progress that
            is damaged or belongs to another run.
    """
    outline(name, N=N, d=protocol.d, De=encoded_dimension(N, protocol))
    chunk = protocol.batch * protocol.check_every
    most = protocol.max_samples // chunk
    if most == 0:
        raise Refused(
            f"max_samples={protocol.max_samples} is less than one chunk of {chunk} samples."
            " Try a larger max_samples"
        )
    looks, leaves, kept = (store and store.load()) or (0, None, [])
    history = [risk for part in kept for risk in part["risk"]]
    learned = lambda: np.any(np.asarray(history) < protocol.threshold, axis=0)
    unfinished = lambda: len(history) < most and not (history and np.all(learned()))

    def keep(store: Checkpoints, state: Any) -> None:
        nonlocal looks
        part = {"risk": np.stack(history[looks:])}
        store.save(len(history), leaves_of(state), looks, part)
        looks = len(history)

    if unfinished():
        first, advance = side_by_side(name, N, protocol)
        runs = first(jax.random.split(key, seeds), jax.random.fold_in(key, 0))
        if leaves is not None:
            own, training = with_leaves((runs.key, runs.training), leaves)
            runs = runs._replace(key=own, training=training)
        last = time.monotonic()
        heard = contextlib.nullcontext() if store is None else stopping.listening()
        begun = looks * chunk
        with progress(most * chunk, "samples", begun=begun, at_most=True) as report, heard:
            while unfinished():
                runs, risk = advance(runs)
                history.append(np.asarray(risk))
                spread = f"test risk {np.min(risk):.3g} to {np.max(risk):.3g}"
                words = f"{name}, N = {N}: {spread}, {np.sum(learned())} of {seeds} learned"
                report(len(history) * chunk, words)
                stop = store is not None and stopping.asked()
                if store is not None and (stop or time.monotonic() - last >= SECONDS):
                    keep(store, (runs.key, runs.training))
                    last = time.monotonic()
                if stop:
                    stopping.answer()
        if store is not None and len(history) > looks:
            keep(store, ())
    return _cell(np.stack(history), protocol)
