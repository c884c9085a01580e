"""The process belongs to the user: a call of the face leaves it as it found it."""

import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import os, sys, threading
from pathlib import Path

import jax
jax.config.update("jax_compilation_cache_dir", "own-cache")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import jax.numpy as jnp
import numpy as np
jax.jit(lambda x: x * 3 + 1)(1.0)  # now JAX has looked at its folder
kept = set(os.listdir("own-cache"))
assert kept
import jaxbounds as jb
from jaxbounds.papers import experiments

def state():
    threads = sorted(t.name for t in threading.enumerate())
    return dict(jax.config.values), dict(os.environ), threads

def judged(broken=False):
    def evaluate(instance, size):
        if broken:
            raise KeyboardInterrupt
        x = instance["x"]
        return jb.Sides(lhs=jnp.sum(x), rhs={"printed": jnp.sum(x), "control": 0.9 * jnp.sum(x)})
    sample = lambda key, size: {"x": jax.random.uniform(key, (size["d"],))}
    return jb.Statement(
        id="mine.one", label="1", formula="s = s", kind="identity", evaluate=evaluate, judges=(),
        sample=sample, sizes=({"d": 2},), forms=(jb.Form(name="printed"),), control="a tenth less",
        budget=jb.Budget(samples=8, restarts=1, steps=2),
    )

def verify(broken):
    jb.verify(judged(broken))

def certify(broken):
    if broken:
        jb.certify("no.such.statement")
    jb.certify("multihead.eq1")

def run(broken):
    fields = dict(heads=(1,), trials=1, steps=-1 if broken else 4, opening=2, n=6, test=6, every=2)
    jb.run("multihead.fig2", out="run", **fields)

def sweep(broken):
    def step(lane, state):
        if broken:
            raise RuntimeError
        return state + lane["a"]
    jb.sweep(lambda lane: lane["a"], step, lambda lane, state: {"s": state},
             {"a": np.ones(3, np.float32)}, 4, folder="sweep", on_record="a.csv")

calls = {"verify": verify, "certify": certify, "run": run, "sweep": sweep}
for name in sys.argv[1:]:
    what = calls[name]
    what(False)  # imports, and pools of XLA, stay
    before = state()
    for broken in (False, True):
        try:
            what(broken)
        except BaseException as problem:
            assert broken and not isinstance(problem, AssertionError), problem
        else:
            assert not broken
        after = state()
        for one, other in zip(before, after):
            if isinstance(one, dict):
                assert one == other, (name, {k: (one.get(k), other.get(k)) for k in one | other
                                             if one.get(k) != other.get(k)})
            assert one == other, (name, one, other)
    if name != "sweep":  # which compiles as its caller does
        assert set(os.listdir("own-cache")) == kept, name
jax.jit(lambda x: x * 5 + 2)(1.0)
assert len(os.listdir("own-cache")) > len(kept), "what is compiled afterwards goes where it went"
"""


@pytest.mark.slow_cases("verify run")
@pytest.mark.parametrize("calls", ["verify certify sweep", "verify run"])
def test_settings_environment_threads_and_cache_are_as_before(calls, tmp_path):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XLA_FLAGS": ""}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, "script.py", *calls.split()], cwd=tmp_path, env=environment, text=True,
        capture_output=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def test_calls_in_two_threads_restore_what_was_before_both(monkeypatch):
    import jax

    from jaxbounds.runs.cache import prepare_jax, process_restored

    name = "jax_persistent_cache_min_compile_time_secs"
    before, environment = dict(jax.config.values), dict(os.environ)
    first, second = process_restored(), process_restored()
    first.__enter__()
    prepare_jax()
    second.__enter__()
    os.environ["OF_THE_LIBRARY"] = "1"
    first.__exit__(None, None, None)
    assert jax.config.values[name] == 0  # the second call still runs
    second.__exit__(None, None, None)
    assert dict(jax.config.values) == before and dict(os.environ) == environment
