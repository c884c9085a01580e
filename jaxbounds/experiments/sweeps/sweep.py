"""Run a sweep: many independent runs (lanes) that repeat one pure step function.

One program advances a group of a fixed number of vmapped lanes by any number of steps. The program
does not depend on the numbers of lanes, devices, shares or processes, or on the steps at which a
run was interrupted. A lane keeps its slot, its position within its group. The results of a lane
therefore have equal bits on all machines of one kind.
"""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.experiments.sweeps import compiled, shares
from jaxbounds.experiments.sweeps.checkpoint import with_leaves
from jaxbounds.experiments.sweeps.grouping import available, fitting, needed
from jaxbounds.experiments.sweeps.groups import largest
from jaxbounds.experiments.sweeps.identity import identity_of
from jaxbounds.experiments.sweeps.inputs import (
    by_path,
    canonical,
    count_of,
    refuse_numbers,
    refuse_types,
)
from jaxbounds.experiments.sweeps.logs import OnRecord, logger_of, tell
from jaxbounds.experiments.sweeps.programs import advancing, named, starting
from jaxbounds.experiments.sweeps.reporting import Report, progress
from jaxbounds.experiments.sweeps.resuming import Kept, opened, stored_group
from jaxbounds.experiments.sweeps.swept import Swept, among, nothing, swept_of
from jaxbounds.experiments.sweeps.work import ONE, Work, like
from jaxbounds.ground import stopping
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place
from jaxbounds.ground.memory import shown_bytes

Lane = Any
State = Any
Metrics = Mapping[str, jax.Array]

ROUND = 1.0
"""The seconds between two checks for a request to stop. If this number of seconds is larger, a
sweep reacts to an interruption later.

The sweep checks for a request only between two recorded steps.
"""


def sweep(
    start: Callable[..., State],
    step: Callable[..., State],
    measure: Callable[..., Metrics],
    lanes: Lane,
    steps: int,
    *,
    every: int = 1,
    chunk: int = 200,
    group: int | None = None,
    finished: Callable[[State], jax.Array] | None = None,
    enough: Callable[[Metrics], jax.Array] | None = None,
    shared: Any = None,
    folder: str | Place | None = None,
    fingerprint: str = "",
    resume: bool = False,
    fresh: bool = False,
    memory_limit: float | None = None,
    devices: Any = None,
    show: str | None = None,
    on_record: OnRecord | str | Path | None = None,
    share: str | None = None,
) -> Swept:
    """Run every lane for `steps` steps.

    A lane is one of the sweep's independent runs. Inside `shares.only`, the sweep runs only this
    process's share of the lanes, and the results of the other lanes are zeros. The guide's page
    `sweeps` has an example.

    Args:
        start: `start(lane) -> state`, the initial state of a lane.
        step: `step(lane, state) -> state`, one step of a lane. The function `step` must be pure.
            Put learning rates and other numbers that vary into the lane, so that one program serves
            all lanes.
        measure: `measure(lane, state)`, a dict of numbers or small arrays. The sweep calls
            `measure` every `every` steps.
        lanes: a pytree with a leading axis of lanes (see `lanes_of`).
        steps: the number of all steps, a multiple of `every`.
        every: the number of steps of a lane (run) between two records.
        chunk: the number of steps between checkpoints, and between checks for finished lanes. The
            sweep rounds the number up to a multiple of `every`.
        group: the number of lanes vmapped together. The default on a CPU is 4 lanes, or an eighth
            of the lanes if there are more than 32. Use four or more if a lane's matrices are tiny,
            because XLA's code for one lane at a time can be ten times slower. Use group=1 if the
            matrices of one lane keep a core busy (`benchmarks/roberta_lanes.py` measures both
            cases). The default on an accelerator is the largest number of lanes that `memory_limit`
            allows, up to 256.
        finished: `finished(state)`, whether a lane in this state needs no more steps. The sweep
            freezes a finished lane, and ends when all lanes are finished. Between chunks the sweep
            moves the unfinished lanes into few groups. The sweep still measures the lanes of
            finished groups, but makes no more steps with them.
        enough: `enough(record)`, whether a record (the metrics of one lane at one step) is good
            enough; the sweep then freezes the lane from this record on.
        shared: data that all lanes share, the last argument of `start`, `step` and `measure`. Data
            that `start`, `step` and `measure` close over become part of the program, and slow its
            compilation.
        folder: the folder of the checkpoints; None keeps no checkpoints. The folder belongs to one
            program on one set of lanes, and may also hold files of the user.
        fingerprint: a text that identifies dependencies of the results that no trace shows, such as
            functions on the host.
        resume: whether to continue from the folder's checkpoints.
        fresh: whether to rename the folder's files of an earlier sweep, and begin again.
        memory_limit: the bytes that the program may need on one device. The default limit is 8 GiB
            on a CPU and four fifths of an accelerator's memory.
        devices: the devices of the sweep; by default all devices.
        show: the name of a metric of the sweep. The sweep shows this metric with the progress and
            the memory need; None shows nothing.
        on_record: a function that the sweep calls as on_record(step, metrics) for each record, or
            the name of a CSV file; metrics maps each name to an array of shape (lanes, ...). A
            resumed sweep calls the function only for new records, and writes the whole CSV file.
        share: "I/N" computes the I-th of N shares of the lanes, for machines without a common disk;
            the other lanes are zeros. `jaxbounds merge FOLDERS --out FOLDER` joins the folders of
            all shares.

    Raises:
        Refused: if an argument is out of its range, or if the program needs more memory than the
            limit; in both cases the sweep makes no step. The sweep refuses a folder with an
            unfinished sweep unless `resume` or `fresh` is given. The sweep also refuses a folder
            with a damaged sweep, or with a sweep of another program, other lanes, another kind of
            device or another version. The error message names the difference between the two
            sweeps.
        KeyboardInterrupt: if the user stops a sweep that has a folder; the sweep first writes a
            checkpoint.
    """
    one = contextlib.nullcontext() if share is None else shares.only(shares.Share.read(share))
    # The sweep compiles programs and moves arrays even if the caller's settings forbid it.
    with one, jax.disable_jit(False), jax.transfer_guard("allow"):
        return _sweep(
            start, step, measure, lanes, steps, every=every, chunk=chunk, group=group,
            finished=finished, enough=enough, shared=shared, folder=folder,
            fingerprint=fingerprint, resume=resume, fresh=fresh, memory_limit=memory_limit,
            devices=devices, show=show, log=logger_of(on_record),
            again=not callable(on_record),
        )  # fmt: skip


def _sweep(
    start: Callable[..., State],
    step: Callable[..., State],
    measure: Callable[..., Metrics],
    lanes: Lane,
    steps: int,
    *,
    every: int,
    chunk: int,
    group: int | None,
    finished: Callable[[State], jax.Array] | None,
    enough: Callable[[Metrics], jax.Array] | None,
    shared: Any,
    folder: str | Place | None,
    fingerprint: str,
    resume: bool,
    fresh: bool,
    memory_limit: float | None,
    devices: Any,
    show: str | None,
    log: OnRecord | None,
    again: bool,
) -> Swept:
    if not isinstance(steps, int | np.integer) or steps < 1 or every < 1 or steps % every:
        raise Refused(
            f"steps={steps} and every={every}, expected steps to be a positive multiple of every. "
            "Try every=1"
        )
    refuse_numbers(every=every, chunk=chunk, group=group)
    if shares.dealt() and jax.process_count() > 1:
        raise Refused(
            f"processes={jax.process_count()} run this sweep together, but each share= needs a "
            f"single process. Try it without jax.distributed.initialize(), or without share"
        )
    if resume and fresh:
        raise Refused("resume=True and fresh=True exclude each other. Try one of them")
    count = count_of(lanes)
    lanes = jax.tree.map(canonical, lanes)
    common: tuple = () if shared is None else (jax.tree.map(_array, shared),)
    state, metrics = _shapes(start, measure, lanes, common, stored=folder is not None)
    if show is not None and show not in metrics:
        raise Refused(
            f"show={show!r}, expected one of the metrics: {', '.join(metrics)}. Try "
            f"show={next(iter(metrics), None)!r}"
        )
    own = shares.own(count)
    if not own:
        alone = lambda function: lambda *lane: function(*lane, *common)
        freezes = finished is not None or enough is not None
        return nothing(alone(start), alone(measure), lanes, steps, every, freezes)
    used = list(np.ravel(np.asarray(jax.devices() if devices is None else devices)))
    chunk = min(-(-chunk // every) * every, steps)
    limit = available(used[0]) if memory_limit is None else memory_limit
    begin = starting(start, finished, enough)
    advance = advancing(step, measure, finished, every, chunk // every, enough)

    def need(group: int) -> int:
        some = like(lanes, group)
        program = jax.jit(advance, donate_argnums=1)
        first = jax.eval_shape(begin, some, common)
        return needed(program.lower(some, first, ONE, common).compile())

    looked = lambda lane, state, *shared: named(measure(lane, state, *shared))
    identity, mark = identity_of(
        start, step, looked, lanes, common,
        deciding={"finished": finished, "enough": enough}, device=used[0],
        about={"every": every, "fingerprint": fingerprint},
    )  # fmt: skip
    if group is None and folder is not None and not fresh:
        group = stored_group(folder)
    if group is None:  # an accelerator compiles a program to know its memory, once
        about = mark, count, limit, chunk // every
        group = compiled.kept(about, "group", lambda: fitting(count, limit, used[0], need))
    identity |= {"lanes in a group": json.dumps(group)}
    kept: Kept | None = None
    if folder is not None:
        part = (own.start, own.stop, count) if shares.dealt() else None
        kept = opened(folder, identity, part, group, steps, resume=resume, fresh=fresh)
    work = Work(begin, advance, lanes, own, group, used, common, (mark, chunk // every))
    done, saved = 0, list[dict[str, np.ndarray]]()
    if kept is not None and kept.state is not None:
        done, saved = kept.done, kept.records
        if done < steps or not kept.ended:
            work.restore(kept.state, saved[-1])
        if again:
            first = 0
            for metrics in saved:
                tell(log, metrics, first, every)
                first += next(iter(metrics.values())).shape[1] * every

    def need_said(report: Report, done: int, need: int | None) -> None:
        if show is not None and need:
            report(done, f"a device needs {shown_bytes(need)}")

    def carried() -> list[np.ndarray]:
        if kept is not None and kept.state is not None and done == kept.done:
            return kept.state
        return jax.tree.leaves(work.carries())

    freezes = finished is not None or enough is not None
    new: list[dict[str, np.ndarray]] = []
    since = done
    pace, ready, stop = 1 if kept is not None else chunk // every, False, 0.0
    with (
        progress(steps, "steps", begun=done, at_most=freezes, show=show is not None) as report,
        contextlib.ExitStack() as while_running,
    ):
        while done < steps:
            if not ready and not done:
                need_said(report, done, work.compile(limit))
            if freezes and (not ready or done % chunk == 0) and work.all_over():
                break
            if not ready:
                if done:
                    need_said(report, done, work.compile(limit))
                ready = True
                if kept is not None:
                    while_running.enter_context(stopping.listening())
            until = min(done - done % chunk + chunk, steps)
            began = time.perf_counter()
            records = min(pace, (until - done) // every)
            new.append(work.advance(records))
            tell(log, new[-1], done, every)
            done += records * every
            each = (time.perf_counter() - began) / records
            if kept is not None:  # all processes wait for the slowest one, and stop together
                stop, each = largest(stopping.asked(), each)
                pace = max(1, min(int(ROUND / each), chunk // every))
            if done == until or stop:
                metrics = {n: np.concatenate([r[n] for r in new], axis=1) for n in new[0]}
                if kept is not None:
                    kept.save(done, work.carries(), since, metrics, steps)
                saved.append(metrics)
                new, since = [], done
            if stop:
                largest(0.0)  # waits until the first process has written
                stopping.answer()
            if show is not None:
                last = (new or saved)[-1][show][:, -1]
                report(done, f"mean {show} {np.nanmean(last):.4g}")
    leaves = carried()[: len(jax.tree.leaves(state))]
    swept = swept_of(with_leaves(state, leaves), saved, every, done)
    if kept is not None:
        kept.release()
    return among(swept, own, count) if shares.dealt() else swept


def _array(leaf: Any) -> Any:
    return leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf)


def _shapes(
    start: Callable, measure: Callable, lanes: Lane, common: tuple, *, stored: bool
) -> tuple[Any, dict[str, Any]]:
    def first(lane: Any, shared: tuple) -> tuple[Any, dict]:
        state = start(lane, *shared)
        return state, named(measure(lane, state, *shared))

    state, metrics = jax.eval_shape(jax.vmap(first, in_axes=(0, None)), lanes, common)
    refuse_types("lanes", by_path(lanes).items(), stored=False)
    refuse_types("the state ", by_path(state).items(), stored=stored)
    refuse_types("the metric ", metrics.items(), stored=stored)
    return state, metrics
