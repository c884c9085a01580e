"""Kept programs: used again, never where they could be stale, and no reason to fail."""

import os
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds import falsify
from jaxbounds.claims.statements import Budget, Form, Sides, Statement
from jaxbounds.falsification import UNKEPT, Programs, float64_on_cpu
from jaxbounds.papers import load_paper
from jaxbounds.runs import cache

ALWAYS = 10**6
"""Calls for which anything is compiled."""
BATCH = {"x": np.linspace(0.1, 1.0, 12).reshape(4, 3)}


def counting(factor=1.0):
    """A function of one instance that counts how often it is traced."""
    traced = []

    def function(instance):
        traced.append(1)
        return {"sum": factor * jnp.sum(jnp.sin(instance["x"])), "same": instance["x"]}

    return function, traced


def test_a_second_process_would_not_trace(tmp_path):
    first, traced_first = counting()
    second, traced_second = counting()
    with float64_on_cpu():
        before = Programs(tmp_path)(first, "mine", 1, calls=ALWAYS)(BATCH)
        after = Programs(tmp_path)(second, "mine", 1, calls=ALWAYS)(BATCH)
        plain = Programs()(second, "mine", 1, calls=ALWAYS)(BATCH)
    assert len(traced_first) == 1
    assert len(traced_second) == 1  # by the plain one alone
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])
        np.testing.assert_array_equal(before[name], plain[name])


@pytest.mark.parametrize("change", ["name", "shape", "type"])
def test_another_name_shape_or_type_is_another_program(tmp_path, change):
    function, traced = counting()
    with float64_on_cpu():
        Programs(tmp_path)(function, "mine", calls=ALWAYS)(BATCH)
        name = "other" if change == "name" else "mine"
        x = {"name": BATCH["x"], "shape": BATCH["x"][:2], "type": np.float32(BATCH["x"])}[change]
        result = Programs(tmp_path)(function, name, calls=ALWAYS)({"x": x})
    assert len(traced) == 2
    assert result["same"].shape == x.shape


@pytest.mark.parametrize("damage", [b"", b"short", b"0" * 500])
def test_a_damaged_file_is_made_again(tmp_path, damage):
    function, traced = counting()
    with float64_on_cpu():
        before = Programs(tmp_path)(function, "mine", calls=ALWAYS)(BATCH)
        (file,) = tmp_path.glob("[!.]*")
        whole = file.read_bytes()
        file.write_bytes(damage or whole[:-1])
        after = Programs(tmp_path)(function, "mine", calls=ALWAYS)(BATCH)
        assert len(traced) == 2
        Programs(tmp_path)(function, "mine", calls=ALWAYS)(BATCH)
    assert len(traced) == 2  # the file is whole again
    np.testing.assert_array_equal(before["sum"], after["sum"])


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    function, traced = counting()
    with float64_on_cpu():
        result = Programs(blocked)(function, "mine", calls=ALWAYS)(BATCH)
    assert len(traced) == 1
    assert np.all(np.isfinite(result["sum"]))


def test_verdicts_do_not_depend_on_what_was_kept(tmp_path):
    def sample(key, size):
        return {"x": jax.random.normal(key, (size["d"],))}

    def evaluate(instance, size):
        x = instance["x"]
        bound = jnp.sqrt(len(x)) * jnp.linalg.norm(x)
        return Sides(lhs=jnp.sum(jnp.abs(x)), rhs={"printed": bound, "control": 0.9 * bound})

    statement = Statement(
        id="mine.norms", label="Lemma 1", formula="|x|_1 <= sqrt(d) |x|_2", kind="inequality",
        sample=sample, evaluate=evaluate, sizes=({"d": 3},), control="times 0.9",
        forms=(Form(name="printed", equality="entries of one size"),),
        budget=Budget(samples=16, restarts=2, steps=20, batch=16),
    )  # fmt: skip
    verdicts = [
        falsify(statement, programs=programs)[0]
        for programs in (UNKEPT, Programs(tmp_path), Programs(tmp_path))
    ]
    without, cold, warm = ({**v.to_json(), "seconds": 0.0} for v in verdicts)
    assert cold == warm
    assert without["status"] == warm["status"] == "holds"
    assert without["worst_ratio"] == pytest.approx(warm["worst_ratio"], rel=1e-12)


def test_a_program_that_cannot_be_run_is_made_again(tmp_path, monkeypatch):
    function, traced = counting()
    with float64_on_cpu():
        before = Programs(tmp_path)(function, "mine", calls=ALWAYS)(BATCH)

        def broken(*arguments):
            raise jax.errors.JaxRuntimeError("NOT_FOUND: Function not found")

        monkeypatch.setattr("jaxbounds.falsification.programs.load_program", lambda *kept: broken)
        run = Programs(tmp_path)(function, "mine", calls=ALWAYS)
        for _ in range(2):
            np.testing.assert_array_equal(run(BATCH)["sum"], before["sum"])
    assert len(traced) == 2


@pytest.mark.parametrize("damage", [False, True])
def test_instances_are_drawn_once_for_a_name(tmp_path, damage):
    made = []

    def draw():
        made.append(1)
        return {"x": np.arange(3.0), "of": {"n": np.array([len(made)])}}

    first = Programs(tmp_path).cached_draw(draw, "mine.claim", "sample", (("d", 3),), 64, 0)
    if damage:
        (file,) = tmp_path.glob("[!.]*")
        file.write_bytes(file.read_bytes()[:-9])
    again = Programs(tmp_path).cached_draw(draw, "mine.claim", "sample", (("d", 3),), 64, 0)
    assert len(made) == 1 + damage and again["x"].tolist() == first["x"].tolist() == [0, 1, 2]
    assert again["of"]["n"].tolist() == [1 + damage] and again["x"].dtype == np.float64
    # Another seed, number or size is another name.
    Programs(tmp_path).cached_draw(draw, "mine.claim", "sample", (("d", 3),), 64, 1)
    assert len(made) == 2 + damage


@pytest.mark.parametrize("kept", [np.zeros(2**20), np.zeros(2**20 + 1), [np.zeros(1)]])
def test_small_dicts_of_arrays_are_kept(tmp_path, kept):
    Programs(tmp_path).cached_draw(lambda: {"x": kept}, "mine")
    assert len(list(tmp_path.iterdir())) == (np.size(kept) == 2**20)
    Programs().cached_draw(lambda: {"x": kept}, "mine")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert Programs(blocked).cached_draw(lambda: {"x": kept}, "mine")["x"] is kept


def test_only_shipped_statements_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    cache._program_store.cache_clear()
    shipped = load_paper("multihead").statements[0]
    changed = replace(shipped, tolerance=5e-4)
    assert cache.programs_for(changed) is UNKEPT
    assert cache.programs_for(shipped) is not UNKEPT
    (folder,) = (tmp_path / "jaxbounds-programs").iterdir()
    # Another state of the source, the versions or JAX's settings has a folder of its own.
    monkeypatch.setattr(cache, "versions", lambda: {"jax": "another"})
    cache._program_store.cache_clear()
    cache.programs_for(shipped)
    assert len(list((tmp_path / "jaxbounds-programs").iterdir())) == 2
    # A folder that was not used for long goes.
    os.utime(folder, (0, 0))
    cache._program_store.cache_clear()
    cache.programs_for(shipped)
    assert not folder.exists()
    cache._program_store.cache_clear()


def test_old_programs_go_unless_the_folder_is_the_users(tmp_path, monkeypatch):
    shipped = load_paper("multihead").statements[0]
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = tmp_path / "jaxbounds" / "xla"
    place.mkdir(parents=True)
    old, new = place / "jit_old-0-cache", place / "jit_new-0-cache"
    for users in (True, False):
        for file in (old, new):
            file.write_bytes(b"program")
        os.utime(old, (0, 0))
        if users:
            monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(place))
        else:
            monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
        cache._program_store.cache_clear()
        cache.programs_for(shipped)
        assert old.exists() == users and new.exists()
    cache._program_store.cache_clear()
