"""Many independent runs (lanes) of one pure step: one program, called for each group of lanes.

The program is that of a group of a fixed number of vmapped lanes and of any number of steps. It
depends on the job alone: not on how many lanes, devices, shares or processes there are, nor on
where a run was cut. A lane keeps its slot in whatever group it is in. Its bits are therefore the
same wherever it is computed on machines of one kind.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from jaxbounds import stopping
from jaxbounds.files import Place
from jaxbounds.provenance import products_used
from jaxbounds.sweeps import shares
from jaxbounds.sweeps.checkpoint import Checkpoints
from jaxbounds.sweeps.grouping import available, fitting, needed
from jaxbounds.sweeps.groups import largest
from jaxbounds.sweeps.programs import advancing, starting
from jaxbounds.sweeps.reporting import progress
from jaxbounds.sweeps.swept import Swept, among, joined, nothing, swept_of
from jaxbounds.sweeps.work import ONE, Work, like

Lane = Any
State = Any
Metrics = Mapping[str, jax.Array]

ROUND = 1.0
"""Seconds between two looks at whether the sweep was asked to stop, as far as a record allows."""


def sweep(
    start: Callable[[Lane], State],
    step: Callable[[Lane, State], State],
    measure: Callable[[Lane, State], Metrics],
    lanes: Lane,
    steps: int,
    *,
    every: int = 1,
    chunk: int = 200,
    group: int | None = None,
    finished: Callable[[State], jax.Array] | None = None,
    folder: str | Place | None = None,
    fingerprint: str = "",
    resume: bool = False,
    memory_limit: float | None = None,
    devices: Any = None,
    show: str | None = None,
) -> Swept:
    """Run every lane for `steps` steps; within `shares.only`, the lanes of that share.

    The lanes of other shares are zeros then.

    Args:
        start: the initial state of a lane.
        step: one step of a lane. Pure; learning rates and other numbers that vary belong into the
            lane, so that one program serves all.
        measure: a dict of scalars or small arrays, taken every `every` steps.
        lanes: a pytree with a leading axis of lanes (see `lanes_of`).
        steps: in all; a multiple of `every`.
        every: steps between records.
        chunk: steps between checkpoints, and between looks at which lanes are finished. Rounded up
            to a multiple of `every`.
        group: lanes vmapped together. On a CPU (8 unless given): four or more where a lane's
            matrices are tiny, as XLA's code for one lane at a time can be ten times slower; one
            where the matrices of a lane keep a core busy (`benchmarks/roberta_lanes.py` measures
            both). On an accelerator, unless given: as many as `memory_limit` allows, up to 256.
        finished: whether a state needs no more steps; it is then frozen, and the sweep ends when
            all are. Between chunks the unfinished lanes are moved together, and groups whose lanes
            are all finished are measured but not stepped.
        folder: where to keep checkpoints; none without it.
        fingerprint: of what the numbers depend on besides the shapes (configuration and key).
        resume: continue what the folder holds; without it the folder is cleared.
        memory_limit: bytes that the program may need on one device: 8 GiB on a CPU, four fifths of
            an accelerator's memory unless given.
        devices: to spread over; all unless given.
        show: the metric shown with the progress; no progress without it.

    Raises:
        ValueError: if steps is no multiple of every, the memory is over the limit (nothing has
            been run then), or a checkpoint is damaged or of another sweep.
        KeyboardInterrupt: after a checkpoint, if the sweep has a folder and was asked to stop.
    """
    if steps < 1 or every < 1 or steps % every:
        raise ValueError(f"steps must be a positive multiple of every, got {steps} and {every}")
    count = len(jax.tree.leaves(lanes)[0])
    own = shares.own(count)
    if not own:
        return nothing(start, measure, lanes, steps, every)
    used = list(np.ravel(np.asarray(jax.devices() if devices is None else devices)))
    chunk = min(-(-chunk // every) * every, steps)
    limit = available(used[0]) if memory_limit is None else memory_limit
    begin = starting(start, finished)
    advance = advancing(step, measure, finished, every, chunk // every)

    def need(group: int) -> int:
        some = like(lanes, group)
        program = jax.jit(advance, donate_argnums=1)
        return needed(program.lower(some, jax.eval_shape(begin, some), ONE).compile())

    if group is None:
        group = fitting(count, limit, used[0], need)
    work = Work(begin, advance, lanes, own, group, used)
    checkpoints, done = None, 0
    saved: list[dict[str, np.ndarray]] = []
    if folder is not None:
        part = (own.start, own.stop, count) if shares.dealt() else None
        mark = f"{fingerprint}/{count}/{every}/{products_used()}/{_signature(start, lanes)}"
        checkpoints = Checkpoints(folder, mark, part)
        if not resume:
            checkpoints.clear()
        elif stored := checkpoints.load():
            done, leaves, saved = stored
            work.restore(leaves, saved[-1])

    new: list[dict[str, np.ndarray]] = []
    pace, ready, stop = 1 if folder is not None else chunk // every, False, 0.0
    with (
        progress(steps, "steps", show=show is not None) as report,
        contextlib.ExitStack() as while_running,
    ):
        while done < steps:
            at_look = not ready or done % chunk == 0
            if finished is not None and at_look and work.all_over():
                break
            if not ready:
                work.compile(limit)
                ready = True
                if folder is not None:
                    while_running.enter_context(stopping.listening())
            until = min(done - done % chunk + chunk, steps)
            began = time.perf_counter()
            records = min(pace, (until - done) // every)
            new.append(work.advance(records))
            done += records * every
            new[-1]["until"] = np.asarray(done)
            each = (time.perf_counter() - began) / records
            if folder is not None:  # all processes go at the pace of the slowest, and stop together
                stop, each = largest(stopping.asked(), each)
                pace = max(1, min(int(ROUND / each), chunk // every))
            if done == until or stop:
                metrics = joined(new) | {"until": np.asarray(done)}
                if checkpoints is not None:
                    first = int(saved[-1]["until"]) if saved else 0
                    checkpoints.save(done, jax.tree.leaves(work.carries()), first, metrics)
                saved.append(metrics)
                new = []
            if stop:
                largest(0.0)  # the first process has written
                stopping.answer()
            if show is not None:
                last = (new or saved)[-1][show][:, -1]
                report(done, f"mean {show} {np.nanmean(last):.4g}")
    swept = swept_of(work.carries()[0], saved, every)
    return among(swept, own, count) if shares.dealt() else swept


def _signature(start: Callable, lanes: Any) -> str:
    """The shapes and types of a lane and its state: another program refuses the checkpoint."""
    trees = lanes, jax.eval_shape(jax.vmap(start), lanes)
    return str(jax.tree.map(lambda x: f"{x.shape[1:]}{x.dtype}", jax.tree.leaves(trees)))
