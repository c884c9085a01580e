"""Draws that do not fit into memory together: a part of them, a batch at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import psutil
import pytest

import jaxbounds as jb
from jaxbounds.falsification import bench

ENTRIES = 200_000


def sample(key, size):
    return {"x": jax.random.normal(key, (size["n"],))}


def evaluate(instance, size):
    x = jnp.abs(instance["x"])
    sides = {"printed": size["n"] * jnp.max(x), "control": jnp.max(x)}
    return jb.Sides(lhs=jnp.sum(x), rhs=sides)


def claim(entries, **budget):
    return jb.Statement(
        id="mine.room", label="1", formula="|x|_1 <= n |x|_oo", kind="inequality", judges=(),
        sample=sample, evaluate=evaluate, search="none", sizes=({"n": entries},),
        forms=(jb.Form(name="printed"),), control="|x|_oo alone",
        budget=jb.Budget(**{"samples": 256, "restarts": 0, "steps": 0} | budget),
    )  # fmt: skip


def test_draws_that_do_not_fit_are_fewer_and_the_verdict_says_so(monkeypatch):
    monkeypatch.setattr(bench, "ROOM", 10 * 8 * ENTRIES)
    (verdict,) = jb.falsify(claim(ENTRIES, batch=4))
    assert verdict.status == "holds" and verdict.instances == 10
    assert verdict.excluded == {"room in memory": 246}


def test_all_draws_would_fill_the_memory(monkeypatch):
    """256 draws of 1.6 MB are 410 MB; a part of them, and what is made of them, stays below 150."""
    room = 16 * 8 * ENTRIES
    monkeypatch.setattr(bench, "ROOM", room)
    seen, process = [], psutil.Process()
    usual = bench.Pool.add

    def add(pool, *given):
        seen.append(process.memory_info().rss)
        usual(pool, *given)

    monkeypatch.setattr(bench.Pool, "add", add)
    jb.falsify(claim(10, batch=4))
    before = seen[-1]
    jb.falsify(claim(ENTRIES, batch=4))
    assert seen[-1] - before < 150 * 2**20


def test_the_draws_are_the_first_of_all(monkeypatch):
    """Fewer draws are the same draws, and a batch of any length draws them."""
    whole = jb.falsify(claim(5000, samples=20))[0]
    monkeypatch.setattr(bench, "ROOM", 20 * 8 * 5000 - 1)
    for batch in (1, 3, 64):
        part = jb.falsify(claim(5000, samples=20, batch=batch))[0]
        assert part.instances == 19 and part.worst_ratio <= whole.worst_ratio * (1 + 1e-12)
        assert part.worst_ratio == pytest.approx(whole.worst_ratio, rel=0.05)


def test_small_draws_are_made_together():
    assert np.isclose(jb.falsify(claim(3))[0].instances, 256)
