"""The cost of a run, told after its first chunk on this machine."""

import contextlib
import importlib.util

import pytest

from jaxbounds.experiments.sweeps import each_part, reporting
from jaxbounds.papers import experiments
from jaxbounds.papers.full_size import full_size


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    return now


def _told(capsys):
    return capsys.readouterr().err.splitlines()


def test_the_first_chunk_tells_the_time_that_is_left(clock, capsys):
    with reporting.progress(100, "steps") as report:
        clock[0] = 50.0  # compiling
        report(0, "a device needs 1 MiB")
        clock[0] = 70.0
        report(10, "loss 1")
        clock[0] = 75.0
        report(20, "loss 0.9")  # less than a minute after the last line
    assert _told(capsys) == ["10/100 steps  loss 1; about 3 min left"]


def test_a_chunk_that_holds_the_compiling_is_not_measured(clock, capsys):
    with reporting.progress(100, "steps") as report:
        clock[0] = 55.0
        report(10, "compiled")
        clock[0] = 59.0
        report(20, "loss 1")
    assert _told(capsys) == ["20/100 steps  loss 1; about 32 s left"]


def test_a_short_run_says_nothing(clock, capsys):
    with reporting.progress(100, "steps") as report:
        report(0, "")
        clock[0] = 1.0
        report(10, "loss 1")
    assert _told(capsys) == []


def test_a_run_that_is_continued_counts_only_its_own_steps(clock, capsys):
    with reporting.progress(100, "samples", begun=80, at_most=True) as report:
        report(80, "")
        clock[0] = 60.0
        report(90, "loss 1")
    assert _told(capsys) == ["90/100 samples  loss 1; at most 60 s left"]


def test_later_parts_count_with_their_cost(clock, capsys):
    for _ in each_part("ab"):
        for size in each_part((10, 30), cost=float):
            with reporting.progress(size, "steps") as report:
                report(0, "")
                for done in (size // 2, size):  # six seconds a step
                    clock[0] += 6.0 * size / 2
                    report(done, "")
    # Parts of 60 and 180 s, twice, each told at its half.
    said = [
        line.split("; ")[1] for line in _told(capsys) if not line.startswith(("10/10", "30/30"))
    ]
    assert said == [f"about {minutes} min left" for minutes in (8, 6, 4, 2)]
    with reporting.progress(10, "steps") as report:  # after the parts nothing is left over
        report(0, "")
        clock[0] += 30.0
        report(5, "")
    assert _told(capsys) == ["5/10 steps  ; about 30 s left"]


@pytest.mark.parametrize("seconds, words", [(12.4, "12 s"), (600, "10 min"), (36_000, "10.0 h")])
def test_times_are_said_in_their_units(seconds, words):
    assert reporting.duration(seconds) == words


def test_a_figure_says_whether_it_ever_ran_at_full_size(capsys):
    from jaxbounds.cli import main

    said = {name: full_size(e) for name, e in experiments().items()}
    assert said["qstr.fig1a"].startswith("ran at full size: 2026-")
    assert said["multihead.fig2"].startswith("ran at full size: 2026-11-27, version 0.3.0, seed 0")
    assert said["seqlength.majority"].startswith("never ran at full size")
    assert said["multihead.ntk"] == ""  # the paper has no such settings
    assert main(["run"]) == 0
    assert "never ran at full size" in capsys.readouterr().out


@pytest.mark.parametrize("widgets", [False, True])
def test_a_notebook_without_widgets_gets_lines_on_standard_error(
    clock, capsys, monkeypatch, widgets
):
    shown = []
    there = importlib.util.find_spec("rich") if widgets else None
    find = importlib.util.find_spec
    monkeypatch.setattr(
        reporting.importlib.util,
        "find_spec",
        lambda name, *more: there if name == "ipywidgets" else find(name, *more),
    )
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(reporting, "Progress", lambda *columns, **how: shown.append(how) or 1 / 0)
    with contextlib.suppress(ZeroDivisionError), reporting.progress(100, "steps") as report:
        report(0, "")
        clock[0] = 60.0
        report(10, "loss 1")
    assert bool(shown) == widgets
    assert _told(capsys) == ([] if widgets else ["10/100 steps  loss 1; about 9 min left"])


def test_a_run_that_was_cut_leaves_no_later_parts(clock, capsys):
    cut = []
    with pytest.raises(KeyboardInterrupt) as kept:
        for part in each_part("abc"):
            cut.append(part)
            raise KeyboardInterrupt
    assert cut == ["a"] and kept.traceback  # the traceback keeps the loop alive
    assert reporting.Pace(10.0).later == 0.0
