"""The two figures that work in threads tell the time that is left, as the others do."""

import re
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.experiments.sweeps import reporting
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.smapprox.attack import UpperEstimate, margin_upper
from jaxbounds.smapprox.experiments import learn, margin_curves, margins
from jaxbounds.smapprox.experiments.at_once import counted
from jaxbounds.smapprox.experiments.learn_runs import Plan, table_plan, weights_plan


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    return now


def _told(capsys):
    return capsys.readouterr().err.splitlines()


def test_the_second_part_of_all_calls_tells_the_time_that_is_left(clock, capsys):
    with counted(100, "rays") as count:
        clock[0] = 10.0  # compiling
        for _ in range(10):
            count(1, "machine")
            clock[0] += 5.0
    assert _told(capsys) == ["10/100 rays  machine; about 8 min left"]


@pytest.mark.parametrize("steps, chunk", [(1, 1), (3, 1), (41, 5), (61, 7), (60, 6)])
def test_a_sweep_counts_its_work_after_the_first_chunk(steps, chunk):
    plan, counts = Plan(steps, chunk, each=2.0), []
    told = plan.telling(lambda work, words: counts.append(work), "weights")
    for step in range(1, steps + 1):
        told(step, {})
    assert sum(counts) == plan.counted == 2.0 * (steps - chunk)
    assert len(counts) == -(-steps // chunk) - 1


def test_learning_tells_its_cost(clock, capsys, monkeypatch):
    def work(plan, count):
        told = plan.telling(count, "stub")
        for step in range(1, plan.steps + 1):
            clock[0] += 2.0
            told(step, {})

    def tables(config, name, key, count):
        work(table_plan(config), count)
        return np.zeros((len(config.samples) + 1, config.seeds)), np.zeros(
            (len(config.samples) + 1, config.seeds)
        )

    def weights(config, key, radii, corrected, count):
        work(weights_plan(config, radii), count)
        return np.zeros((2, len(radii), len(config.weight_samples), config.seeds))

    monkeypatch.setattr(learn, "learned_tables", tables)
    monkeypatch.setattr(learn, "trained_weights", weights)
    monkeypatch.setattr(learn, "_calculator", lambda config, name: 1.0)
    done = []
    monkeypatch.setattr(
        reporting.Pace,
        "left",
        lambda self, amount, left=reporting.Pace.left: done.append(amount) or left(self, amount),
    )
    learn.run(learn.Learn(), jax.random.key(0))
    assert any(re.search(r"/100\.0 percent  stub; about .* left", line) for line in _told(capsys))
    assert 95.0 <= done[-1] <= 100.0


def test_margins_tell_their_cost(clock, capsys, monkeypatch):
    def search(output, surrogate, params, blocks, *, data, starts, refinements, tried):
        for _ in range(len(blocks) + len(list(starts)) + 5 * refinements):
            clock[0] += 1.0
            tried()
        return UpperEstimate(0.1, jax.tree.map(jnp.zeros_like, params), -1.0, 1)

    monkeypatch.setattr(margin_curves, "margin_upper", search)
    monkeypatch.setattr(margin_curves, "recertify", lambda *arguments, data: float("inf"))
    quick = margins.EXPERIMENT.presets["quick"]
    margins.run(replace(quick, refinements=1), jax.random.key(0))
    told = _told(capsys)
    for part in ("machine", "identity chains"):
        assert any(re.search(rf"rays  {part}; about .* left", line) for line in told), told


@pytest.mark.parametrize("refinements, starts", [(0, 0), (2, 1)])
def test_the_rays_of_a_search_are_known_before_it_begins(refinements, starts):
    output, count = lambda params: params["w"].sum() + params["b"], []
    with enable_x64(True):
        params = {"w": jnp.ones(3), "b": jnp.asarray(1.0)}
        blocks = [jax.tree.map(np.ones_like, params)] * 2
        search = partial(margin_upper, output, output, params, blocks)
        attack = margin_curves.Attack(search, len(blocks), refinements)
        found = attack.search(
            starts=[jax.tree.map(lambda leaf: -leaf, params)] * starts,
            refinements=refinements,
            tried=lambda: count.append(1),
        )
    assert np.isfinite(found.radius)
    assert attack.rays(starts) == found.evaluations == len(count)
