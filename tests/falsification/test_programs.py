"""What is kept of a trace, which options a program gets, and who is told what was seen.

`tests/test_programs.py` has that kept traces are used again, and never where they could be stale.
"""

import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import statement

from jaxbounds.falsification.programs import UNKEPT, Kept, Programs, _for, _read, compiled
from jaxbounds.falsification.watched import Watch

MODULE = sys.modules[_for.__module__]
pytestmark = pytest.mark.usefixtures("x64")


def used(x):
    """A judged function."""
    return 2 * x


def test_what_is_kept_is_read_back_unless_it_was_damaged(tmp_path):
    kept = Kept({"called": ["a.b"], "narrow": []}, bytearray(b"trace\nof\nlines"))
    file = tmp_path / "file"
    assert _read(file) is None
    file.write_bytes(kept.written())
    assert _read(file) == kept
    for at in (0, 31, 32, 40, len(kept.written()) - 1):  # of the digest, and of what it is of
        bad = bytearray(kept.written())
        bad[at] ^= 1
        file.write_bytes(bad)
        assert _read(file) is None
    file.write_bytes(b"")
    assert _read(file) is None


@pytest.mark.parametrize("shapes, level", [
    ([(2**11, 2**11)], 1), ([(2**11, 2**11 - 1)], 0), ([(2**21,), (2**21 - 1,)], 0),
    ([(2**21,), (2**21,)], 1), ([()], 0),
])  # fmt: skip
def test_large_results_are_worth_a_little_optimisation(shapes, level, monkeypatch):
    # From 2^22 numbers on, of all results together.
    cheap = {"xla_backend_optimization_level": 0, "other": True}
    monkeypatch.setattr(MODULE, "_supported", lambda: dict(cheap))
    traced = SimpleNamespace(out_info=[jax.ShapeDtypeStruct(shape, float) for shape in shapes])
    assert _for(traced) == cheap | {"xla_backend_optimization_level": level}


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = UNKEPT(lambda x: {"twice": 2 * x}, "twice")
    assert np.asarray(run(np.arange(3.0))["twice"]).tolist() == [0, 2, 4]
    assert list(tmp_path.iterdir()) == []
    assert float(compiled(lambda x: x + 1)(1.0)) == 2.0


@pytest.mark.profiles
@pytest.mark.parametrize("folder", [False, True])
def test_who_watches_is_told_what_ran_and_whether_it_is_fixed(folder, tmp_path):
    claim = statement(judges=(used,))
    name = f"{used.__module__}.used"
    for turn in range(2):
        watch = Watch(claim)
        run = Programs(tmp_path if folder else None)(lambda x: used(x), "one", watch=watch)
        assert np.asarray(run(np.arange(2.0))).tolist() == [0, 2]
        assert watch.called == {name} and watch.never == ()
        # Where traces are kept nobody looks for another program: the code is the key.
        assert watch.fixed is (None if folder else True)
        assert len(list(tmp_path.iterdir())) == folder, turn


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
    compiled_for = []
    usual = Programs.__call__

    def noted(self, function, /, *name, watch=None):
        run = usual(self, function, *name, watch=watch)
        return lambda *given: compiled_for.append(name) or run(*given)

    monkeypatch.setattr(Programs, "__call__", noted)
    x = np.array([0.5, 2.0, 3.0])
    run = Programs().few(function, "one", calls=3)
    wanted = np.asarray(jax.jit(jax.vmap(function))(x))
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(run(x)), wanted, rtol=1e-12)
    assert compiled_for == ([] if in_numpy else [("one",)] * 2)


@pytest.mark.profiles
def test_who_watches_a_few_calls_is_told_the_same():
    claim = statement(judges=(used,))
    turns = iter((1.0, 2.0))
    watch = Watch(claim)
    run = Programs().few(lambda x: used(x) * next(turns), "one", calls=1, watch=watch)
    assert np.asarray(run(np.arange(2.0))).tolist() == [0, 2] and watch.fixed is False
    assert watch.called == {f"{used.__module__}.used"} and watch.narrow == ()
    watch = Watch(claim)
    coarse = lambda x: used(x.astype(np.float32) * np.float32(3))
    run = Programs().few(coarse, "one", calls=1, watch=watch)
    run(np.arange(2.0))
    assert watch.fixed and "convert_element_type in float32" in watch.narrow[0]


@pytest.mark.profiles
def test_what_nobody_saw_is_not_kept(tmp_path):
    watch = Watch(statement(judges=(used,)))
    sys.setprofile(lambda *_: None)  # somebody else profiles
    try:
        run = Programs(tmp_path)(lambda x: used(x), "one", watch=watch)
        assert np.asarray(run(np.arange(2.0))).tolist() == [0, 2]
    finally:
        sys.setprofile(None)
    assert watch.blind and list(tmp_path.iterdir()) == []
