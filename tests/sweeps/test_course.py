"""The course of a sweep: how many records at once, when it looks, keeps, resumes and stops.

In the place of the lanes on devices stands one that notes what it is asked; `Work` itself is driven
below with lanes that count by ones.
"""

import contextlib
import importlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.experiments.sweeps import reporting, shares, sweep
from jaxbounds.experiments.sweeps.programs import advancing, starting
from jaxbounds.experiments.sweeps.work import Work

module = importlib.import_module("jaxbounds.experiments.sweeps.sweep")
LANES = np.array([1, 2, 3], np.float32)
START, STEP = lambda lane: 0 * lane, lambda lane, state: state + lane
MEASURE = lambda lane, state: {"loss": state}


class Noted:
    """Lanes that count steps by records, and note what they are asked."""

    def __init__(self, begin, advance, lanes, own, group, devices, shared, mark):
        self.asked = [("group", group, own, len(devices))]
        self.done, self.over = 0, []
        Noted.latest = self

    def compile(self, limit):
        self.asked.append(("compile", limit))

    def all_over(self):
        self.asked.append("look")
        return bool(self.over) and self.over.pop(0)

    def advance(self, records):
        self.asked.append(records)
        at = self.done + 1.0 + np.arange(records)
        self.done += records
        return {"loss": np.outer([1, 2, 3], at)}

    def restore(self, leaves, records):
        self.asked.append(("restore", float(leaves[0][0]), records["loss"].shape[1]))
        self.done = int(leaves[0][0])

    def carries(self):
        return np.full(3, float(self.done)), ()


@pytest.fixture
def course(monkeypatch):
    """The sweep over those lanes, and what they were asked."""
    monkeypatch.setattr(module, "Work", Noted)

    def run(steps, over=(), **options):
        scripted = type("Scripted", (Noted,), {})
        init = Noted.__init__

        def begin(self, *args):
            init(self, *args)
            self.over = list(over)

        scripted.__init__ = begin
        monkeypatch.setattr(module, "Work", scripted)
        return sweep(START, STEP, MEASURE, LANES, steps, **options), Noted.latest.asked

    return run


def advances(asked):
    return [a for a in asked if isinstance(a, int)]


@pytest.mark.parametrize(
    "steps, options, records",
    [
        (14, {"every": 2, "chunk": 5}, [3, 3, 1]),  # five steps are rounded up to three records
        (14, {"every": 2, "chunk": 6}, [3, 3, 1]), (4, {"chunk": 100}, [4]), (4, {}, [4]),
        (3, {"chunk": 1}, [1, 1, 1]), (6, {"every": 3, "chunk": 1}, [1, 1]),
    ],
)  # fmt: skip
def test_as_many_records_as_a_chunk_holds(steps, options, records, course):
    found, asked = course(steps, **options)
    assert advances(asked) == records and "look" not in asked
    every = options.get("every", 1)
    assert found.steps.tolist() == list(range(every, steps + 1, every))
    assert found.metrics["loss"][0].tolist() == list(range(1, steps // every + 1))
    assert asked[0][:3] == ("group", 4, range(3))


@pytest.mark.parametrize("steps, every", [(0, 1), (5, 2), (4, 0), (-2, 1)])
def test_steps_that_make_no_records(steps, every, course):
    with pytest.raises(ValueError, match="positive multiple of every"):
        course(steps, every=every)
    assert course(1)[0].steps.tolist() == [1]


def test_it_looks_at_the_start_and_after_each_chunk_and_ends_when_all_are_over(course):
    ends = {"finished": lambda state: state > 9}
    found, asked = course(12, chunk=4, over=[False, False, True], **ends)
    assert asked[1:] == [("compile", 8 * 2**30), "look", 4, "look", 4, "look"]
    assert found.steps.tolist() == list(range(1, 9))
    nothing, asked = course(12, over=[True], **ends)
    assert asked[2:] == ["look"] and nothing.steps.tolist() == []


def test_what_it_may_need_and_where_it_goes(course):
    devices = jax.devices()[:3]
    _, asked = course(2, memory_limit=77.0, group=2, devices=devices)
    assert asked[:2] == [("group", 2, range(3), len(devices)), ("compile", 77.0)]


@pytest.fixture
def clock(monkeypatch):
    """Each look at the clock is so many seconds after the one before."""

    def ticks(seconds, asked=()):
        times = iter(np.cumsum(np.tile([0, seconds], 500)))
        fake = SimpleNamespace(perf_counter=lambda: float(next(times)))
        monkeypatch.setattr(module, "time", fake)
        answers = iter([*asked, *[0.0] * 500])

        def answer():
            raise KeyboardInterrupt

        stops = {"listening": contextlib.nullcontext, "asked": lambda: next(answers)}
        monkeypatch.setattr(module, "stopping", SimpleNamespace(answer=answer, **stops))

    return ticks


@pytest.mark.parametrize(
    "seconds, records",
    [
        # What each call takes: one record in 0.3 s, so three at once; these in 0.3 s, so ten, but
        # the chunk has room for eight.
        (0.3, [1, 3, 8, 12]), (5.0, [1] * 24), (0.01, [1, 11, 12]),
    ],
)  # fmt: skip
def test_with_a_folder_about_a_second_at_a_time(seconds, records, course, clock, tmp_path):
    clock(seconds)
    _, asked = course(24, chunk=12, folder=str(tmp_path))
    assert advances(asked) == records


def test_after_each_chunk_a_checkpoint(course, clock, tmp_path):
    clock(0.01)
    course(10, every=2, chunk=4, folder=str(tmp_path))
    names = sorted(path.stem for path in tmp_path.glob("*.npz"))
    assert names == ["chunk-000000000", "chunk-000000004", "chunk-000000008", "state"]
    again, asked = course(10, every=2, chunk=4, folder=str(tmp_path), resume=True)
    assert advances(asked) == [] and len(asked) == 1  # it is complete: not even compiled
    assert again.steps.tolist() == [2, 4, 6, 8, 10]
    assert again.metrics["loss"][1].tolist() == [2, 4, 6, 8, 10]
    # Without resuming a complete sweep begins anew; another fingerprint is another run.
    assert advances(course(10, every=2, chunk=4, folder=str(tmp_path))[1]) == [1, 1, 2, 1]
    for other in ({"fingerprint": "x"}, {"every": 1}):
        given = {"every": 2, "chunk": 4, "folder": str(tmp_path), "resume": True} | other
        with pytest.raises(ValueError, match="another run"):
            course(10, **given)


def test_who_is_asked_to_stop_keeps_what_there_is(course, clock, tmp_path):
    clock(5.0, asked=[0.0, 0.0, 1.0])
    with pytest.raises(KeyboardInterrupt):
        course(20, chunk=10, folder=str(tmp_path))
    clock(0.01)
    found, asked = course(20, chunk=10, folder=str(tmp_path), resume=True)
    # Three of ten were done; the chunk is then filled up.
    assert ("restore", 3.0, 3) in asked and advances(asked) == [1, 6, 10]
    assert found.metrics["loss"][0].tolist() == list(range(1, 21))


def test_within_a_share_its_lanes_alone(course, monkeypatch, tmp_path):
    one = {"advance": lambda self, n: {"loss": np.ones((1, n))},
           "carries": lambda self: (np.ones(1), ())}  # fmt: skip
    monkeypatch.setattr(module, "Work", type("One", (Noted,), one))
    with shares.only(shares.Share(2, 3)):
        found = sweep(START, STEP, MEASURE, LANES, 2, folder=str(tmp_path))
    assert found.state.tolist() == [0, 1, 0] and found.metrics["loss"][:, 0].tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="other lanes"):
        course(2, folder=str(tmp_path), resume=True)
    with shares.only(shares.Share(1, 5)):
        assert sweep(START, STEP, MEASURE, LANES, 4, every=2).steps.tolist() == [2, 4]


def test_the_mean_of_a_metric_is_shown(course, monkeypatch):
    said = []

    @contextlib.contextmanager
    def progress(total, unit, *, begun, at_most, show):
        said.append((total, unit, begun, at_most, show))
        yield lambda done, words: said.append((done, words))

    monkeypatch.setattr(module, "progress", progress)
    course(4, chunk=2, show="loss")
    # The last of each lane: 2, 4, 6, then 4, 8, 12.
    assert said == [(4, "steps", 0, False, True), (2, "mean loss 4"), (4, "mean loss 8")]
    said.clear()
    course(4, chunk=2)
    assert said == [(4, "steps", 0, False, False)]


def counting(count=5, group=2, devices=1, finished=None, own=None):
    """Lanes 1, 2, ... that count by themselves."""
    lanes = np.arange(1, count + 1, dtype=np.float32)
    measure = lambda lane, state: {"now": state, "lane": jnp.stack([lane, -lane])}
    work = Work(
        starting(START, finished), advancing(STEP, measure, finished, 1, 4), lanes,
        own or range(count), group, jax.devices()[:devices],
    )  # fmt: skip
    work.compile(1e9)
    return work


@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.devices(2))])
@pytest.mark.parametrize("own", [None, range(1, 4)])
def test_lanes_in_groups_count_as_alone(devices, own):
    work, mine = counting(devices=devices, own=own), own or range(5)
    lane = np.array([i + 1.0 for i in mine])
    found = work.advance(3)
    assert found["now"].tolist() == np.outer(lane, [1, 2, 3]).tolist()
    assert found["lane"][:, 0, 1].tolist() == (-lane).tolist()
    assert np.asarray(work.carries()[0]).tolist() == (3 * lane).tolist()
    assert work.advance(1)["now"][:, 0].tolist() == (4 * lane).tolist()


def test_lanes_go_on_from_what_was_kept():
    work = counting()
    kept = work.advance(2)
    state = [np.asarray(leaf) for leaf in jax.tree.leaves(work.carries())]
    other = counting(devices=2)
    other.restore(state, kept)
    assert other.advance(1)["now"][:, 0].tolist() == [3, 6, 9, 12, 15]


def test_finished_lanes_rest_and_their_order_stays():
    # At ten or beyond: lane 5 after 2 steps, 4 after 3, 3 after 4, 2 after 5, 1 after 10.
    work = counting(count=6, finished=lambda state: state >= 10)
    now = np.zeros(6)
    for step in range(1, 11):
        assert work.all_over() is False
        found = work.advance(1)
        lane = np.arange(1.0, 7)
        now = np.where(now >= 10, now, now + lane)
        assert found["now"][:, 0].tolist() == now.tolist(), step
        assert found["lane"][:, 0, 0].tolist() == lane.tolist()
    assert work.all_over() is True and np.asarray(work.carries()[0]).tolist() == now.tolist()
    more = counting(count=2, group=1, finished=lambda state: state >= 1)
    more.advance(1)
    more.all_over()
    assert more.advance(3)["now"].tolist() == [[1, 1, 1], [2, 2, 2]]


def test_memory_counts_what_stays_beside_the_group_that_runs(monkeypatch):
    work, seen = counting(count=5, group=2), []
    size = SimpleNamespace(argument_size_in_bytes=100, output_size_in_bytes=0,
                           alias_size_in_bytes=0, temp_size_in_bytes=7)  # fmt: skip
    program = SimpleNamespace(memory_analysis=lambda: size)
    compiled = lambda self, *a, **k: program
    monkeypatch.setattr(type(work._groups), "compiled", compiled)
    monkeypatch.setattr(importlib.import_module("jaxbounds.experiments.sweeps.work"), "refuse_over",
                        lambda need, limit, what, advice: seen.append((need, limit)))  # fmt: skip
    work.compile(50.0)
    # Three groups: one runs, and the arguments of two wait.
    assert seen == [(107 + 200, 50.0)]


@pytest.mark.parametrize("process", [0, 1])
def test_only_the_first_process_says_anything(process, monkeypatch, capsys):
    monkeypatch.setattr(reporting.jax, "process_index", lambda: process)
    monkeypatch.setattr(reporting, "BETWEEN_LINES", 0.0)
    with reporting.progress(10, "steps") as report:
        report(5, "half")
    assert ("5/10 steps  half" in capsys.readouterr().err) == (process == 0)
