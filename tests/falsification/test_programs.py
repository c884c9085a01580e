"""What is run in NumPy and what is compiled, with which options, and who is told what was seen.

`tests/test_programs.py` has that kept programs are used again, and never where they could be stale.
"""

import inspect
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import statement

from jaxbounds.falsification.overheard import Listener, overheard
from jaxbounds.falsification.programs import UNKEPT, Programs, compiled
from jaxbounds.falsification.trace_watch import TraceWatch

MODULE = sys.modules[compiled.__module__]
ALWAYS = 10**6
"""Calls for which anything is compiled."""
pytestmark = pytest.mark.usefixtures("x64")


def used(x):
    """A judged function."""
    return 2 * x


def test_options_that_the_compiler_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setattr(MODULE._Options, "known", None)
    some = {"xla_backend_optimization_level": 0, "no_such_option": True}
    monkeypatch.setattr(MODULE, "CHEAP", some)
    assert MODULE._supported() == {"xla_backend_optimization_level": 0}
    monkeypatch.setattr(MODULE._Options, "known", None)


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = UNKEPT(lambda x: {"twice": 2 * x}, "twice", calls=ALWAYS)
    assert np.asarray(run(np.arange(3.0))["twice"]).tolist() == [0, 2, 4]
    assert list(tmp_path.iterdir()) == []
    assert float(compiled(lambda x: x + 1)(1.0)) == 2.0


@pytest.mark.parametrize("folder", [False, True])
def test_who_watches_is_told_what_ran_and_whether_it_is_fixed(folder, tmp_path):
    claim = statement(judges=(used,))
    name = f"{used.__module__}.used"
    for turn in range(2):
        watch = TraceWatch(claim)
        programs = Programs(tmp_path if folder else None)
        run = programs(lambda x: used(x), "one", calls=ALWAYS, watch=watch)
        assert np.asarray(run(np.arange(2.0))).tolist() == [0, 2]
        assert watch.called == {name} and watch.never == ()
        # Where programs are kept nobody looks for another program: the code is the key.
        assert watch.fixed is (None if folder else True)
        assert len(list(tmp_path.glob("[!.]*"))) == folder, turn


def test_a_program_is_made_once_for_arguments_of_one_shape():
    traced = []

    def twice(x):
        traced.append(x.shape)
        return 2 * x

    run = Programs()(twice, "twice")
    for length in (3, 3, 4):
        run(np.ones((2, length)))
    assert traced == [(3,), (4,)]


SLOW = {
    "short": (lambda x: jnp.sin(x) + x, True),
    "a long loop": (lambda x: jax.lax.fori_loop(0, 2000, lambda i, c: c + x / 9, x), False),
    "a loop without an end": (
        lambda x: jax.lax.while_loop(lambda c: c < 9, lambda c: c + x, x), False
    ),
    "no rule": (lambda x: jnp.abs(jnp.fft.fft(x[None]))[0], False),
    "no rule for such numbers": (lambda x: (1e30 * x).astype(int), False),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_for_a_few_calls_what_is_short_is_not_compiled(name, monkeypatch):
    function, in_numpy = SLOW[name]
    made = []
    real = jax.stages.Lowered.compile

    def compile_it(lowered, compiler_options=None):
        made.append(1)
        return real(lowered, compiler_options)

    x = np.array([0.5, 2.0, 3.0])
    wanted = np.asarray(jax.jit(jax.vmap(function))(x))
    MODULE._supported()
    monkeypatch.setattr(jax.stages.Lowered, "compile", compile_it)
    run = Programs()(function, "one", calls=3)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(run(x)), wanted, rtol=1e-12)
    assert len(made) == (not in_numpy)
    Programs()(function, "one", calls=ALWAYS)(x)
    assert len(made) == 1 + (not in_numpy)


def test_who_watches_a_few_calls_is_told_the_same():
    claim = statement(judges=(used,))
    turns = iter((1.0, 2.0))
    watch = TraceWatch(claim)
    run = Programs()(lambda x: used(x) * next(turns), "one", calls=1, watch=watch)
    assert np.asarray(run(np.arange(2.0))).tolist() == [0, 2] and watch.fixed is False
    assert watch.called == {f"{used.__module__}.used"} and watch.narrow == ()
    watch = TraceWatch(claim)
    coarse = lambda x: used(x.astype(np.float32) * np.float32(3))
    run = Programs()(coarse, "one", calls=1, watch=watch)
    run(np.arange(2.0))
    assert watch.fixed and "convert_element_type in float32" in watch.narrow[0]
    assert watch.constants == ()
    watch = TraceWatch(claim)
    held = jnp.ones((4, 3), jnp.float32)
    run = Programs()(
        lambda x: used(x) * jnp.mean(held).astype(x.dtype), "one", calls=1, watch=watch
    )
    run(np.arange(2.0))
    assert watch.constants == ("float32 of shape (4, 3)",)
    again = TraceWatch(claim)
    again.recall(watch.seen())
    assert (again.narrow, again.constants) == (watch.narrow, watch.constants)


def test_who_watches_is_told_what_ran_while_another_profiles(tmp_path):
    watch, profiler = TraceWatch(statement(judges=(used,))), lambda *_: None
    before, held = sys.getprofile(), used.__code__
    sys.setprofile(profiler)
    try:
        run = Programs(tmp_path)(lambda x: used(x), "one", calls=ALWAYS, watch=watch)
        assert np.asarray(run(np.arange(2.0))).tolist() == [0, 2]
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert watch.never == () and watch.returned and used.__code__ is held


@pytest.mark.parametrize("own", [True, False])
def test_only_the_thread_that_watches_is_told(own):
    watch = TraceWatch(statement(judges=(used,)))
    run = (lambda f: f()) if own else (lambda f: ThreadPoolExecutor().submit(f).result())
    assert watch.calls(lambda: run(lambda: used(3)))() == 6
    assert watch.called == ({f"{used.__module__}.used"} if own else set())


def _closing_over(factor):
    def scaled(x, /, *rest, by=1, **named):
        return (x + sum(rest) + named.get("more", 0)) * by * factor

    return scaled


def test_functions_with_any_parameters_are_overheard():
    told = []
    listener = Listener(told.append, lambda function, value: told.append(value))
    scaled, held = _closing_over(3), _closing_over(3).__code__
    with overheard([scaled], listener), overheard([scaled], listener):
        assert scaled(1, 2, by=2, more=4) == 42
        assert list(inspect.signature(scaled).parameters) == ["x", "rest", "by", "named"]
    assert told == [scaled, scaled, 42, 42]
    assert scaled.__code__ == held and scaled(1) == 3 and not vars(scaled)
    with pytest.raises(TypeError, match="unsupported"), overheard([scaled], listener):
        scaled(1, by=None)
    assert scaled.__code__ == held
