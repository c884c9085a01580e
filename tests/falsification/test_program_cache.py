"""Compiled programs in files: read back as they were, or made again."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import measured

from jaxbounds.falsification import program_cache
from jaxbounds.falsification.evaluation import Reading
from jaxbounds.falsification.program_cache import (
    StoredProgram,
    described,
    load_program,
    read_program,
    rebuilt,
    store_program,
    without_jax_cache,
)
from jaxbounds.ground.private import key_of

pytestmark = pytest.mark.usefixtures("x64")


def test_what_is_kept_is_read_back_unless_it_was_damaged(tmp_path):
    one = StoredProgram(
        {"called": ["a.b"], "narrow": []}, {"tuple": [0, None]}, b"a\nprogram\nof lines"
    )
    file = tmp_path / "file"
    assert read_program(file) is None
    content = one.written(file, key_of(tmp_path))
    file.write_bytes(content)
    assert read_program(file) == one
    for at in (0, 31, 32, 40, len(content) - 1):  # of the digest, and of what it is of
        bad = bytearray(content)
        bad[at] ^= 1
        file.write_bytes(bad)
        assert read_program(file) is None
    file.write_bytes(b"")
    assert read_program(file) is None


TREES = {
    "a leaf": 1.0, "nothing": None, "dicts": {"b": 1, "a": {"c": (2, [3, None])}}, "empty": {},
    "no entries": [(), [], {}],
    "a reading": Reading((1.0,), (1.0, 2.0), (0.0,), None, ({"x > 0": True}, {}), {"f": 1.0}),
    "a measurement": (measured(np.ones(2)), [1.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_the_containers_of_a_result_are_described(name):
    tree = TREES[name]
    again = rebuilt(described(tree))
    assert jax.tree.structure(again) == jax.tree.structure(tree)
    assert not any(jax.tree.leaves(again))


@pytest.mark.parametrize("tree", [{1: 2.0}, [{(1, 2): 3.0}], jnp.finfo, ({"a": range(2)},)])
def test_other_containers_are_none(tree):
    if isinstance(tree, list | dict):
        with pytest.raises(TypeError, match="must be strings"):
            described(tree)
    else:  # whatever is no container is a leaf
        assert described(tree) in (0, {"tuple": [{"dict": {"a": 0}}]})
    with pytest.raises(TypeError, match="type=Named, which JSON cannot"):
        described(_named()(1.0))


def _named():
    from typing import NamedTuple

    class Named(NamedTuple):
        x: float

    return Named


def _program(x):
    return Reading((jnp.sum(x, axis=1),), (x[:, 0], x[:, 1]), (jnp.zeros(3),), None, ({},), {})


def test_a_program_gives_the_same_bits_when_it_is_loaded(tmp_path):
    x, file = np.arange(6.0).reshape(3, 2) / 7, tmp_path / "file"
    compiled = jax.jit(_program).trace(x).lower().compile()
    store_program(file, compiled, {"called": ["f"]})
    found = read_program(file)
    assert found.seen == {"called": ["f"]}
    run = load_program(found, (x,))
    jax.tree.map(np.testing.assert_array_equal, run(x), compiled(x))


READS = """
import sys
from pathlib import Path
import jax
import numpy as np
from jaxbounds.falsification.program_cache import load_program, read_program
jax.config.update("jax_enable_x64", True)
a = np.array([[2.0, 1.0], [1.0, 2.0]])
print(load_program(read_program(Path(sys.argv[1])), (a,))(a)["values"].tolist())
"""


def test_another_process_runs_what_calls_lapack(tmp_path):
    a, file = np.array([[2.0, 1.0], [1.0, 2.0]]), tmp_path / "file"
    store_program(
        file, jax.jit(lambda a: {"values": jnp.linalg.eigvalsh(a)}).lower(a).compile(), {}
    )
    done = subprocess.run([sys.executable, "-c", READS, file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), [1, 3])


def test_what_cannot_be_loaded_or_written_costs_only_time(tmp_path, monkeypatch):
    x, file = np.ones((3, 2)), tmp_path / "file"
    compiled = jax.jit(_program).trace(x).lower().compile()
    store_program(tmp_path / "none" / "file", compiled, {})
    store_program(file, jax.jit(lambda x: _named()(x)).trace(x).lower().compile(), {})
    assert not file.exists()
    store_program(file, compiled, {})
    assert load_program(read_program(file)._replace(program=b"of another machine"), (x,)) is None
    assert load_program(read_program(file), (x, x)) is None


def test_jax_s_own_cache_is_not_asked():
    # A program that came out of it could be written, and not be run when it is read again.
    name = "jax_enable_compilation_cache"
    usual = jax.config.values[name]
    with pytest.raises(ZeroDivisionError), without_jax_cache():
        assert jax.config.values[name] is False
        raise ZeroDivisionError
    assert jax.config.values[name] == usual and program_cache.digest(b"") != program_cache.digest(
        b"0"
    )


@pytest.mark.usefixtures("kept_programs")
def test_what_jax_s_cache_has_is_kept_all_the_same(tmp_path):
    # Fused, so that there is a function that could be missing.
    x, file = np.arange(6.0).reshape(3, 2) / 7, tmp_path / "file"
    fused = jax.vmap(lambda row: {"sum": jnp.sum(jnp.sin(row)), "same": row})
    make = lambda: jax.jit(fused).trace(x).lower().compile()
    wanted = make()(x)
    jax.clear_caches()
    with without_jax_cache():
        store_program(file, make(), {})
    jax.tree.map(np.testing.assert_array_equal, load_program(read_program(file), (x,))(x), wanted)
