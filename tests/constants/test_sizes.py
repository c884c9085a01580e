"""Which shapes are looked at: words, grids, refusals, and memory counted by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.constants import sizes
from jaxbounds.constants.sizes import _largest, check, grid, grown, parse
from jaxbounds.ground.exceptions import Refused


@pytest.mark.parametrize(
    "word, numbers",
    [
        ("T=2", (2,)), ("T= 2 , 4,4", (2, 4)), ("T=.5,1.", (0.5, 1.0)),
        ("T=1e-3,2.5E2", (1e-3, 250.0)),
        ("T=-1,+1", (-1.0, 1.0)), ("T=2,", (2,)),
    ],
)  # fmt: skip
def test_axes_from_words(word, numbers):
    found = parse([word])["T"]
    assert found == numbers and list(map(type, found)) == list(map(type, numbers))


@pytest.mark.parametrize(
    "words", [["T"], ["=2"], ["T="], ["T=2,x"], ["T=inf"], ["T=1e999"], ["T=²"], ["T=2", "T=2"]]
)
def test_words_that_are_no_axes(words):
    with pytest.raises(ValueError, match="--sizes"):
        parse(words)


def test_sizes_by_axes(claim):
    own = claim(sizes=({"T": 2, "r": 1.0}, {"T": 8, "r": 2.0}))
    assert grid(own, {}) == ({"T": 2, "r": 1.0}, {"T": 8, "r": 2.0})
    assert grid(own, {"T": (4.0, 3)}) == ({"T": 4, "r": 1.0}, {"T": 3, "r": 1.0})
    assert all(isinstance(size["T"], int) for size in grid(own, {"T": (4.0, 3)}))
    found = grid(own, {"T": (1, 2), "r": (3, 0.5)})
    assert found == tuple({"T": t, "r": r} for t in (1, 2) for r in (3.0, 0.5))
    assert all(isinstance(size["r"], float) for size in found)
    assert grid(own, [{"T": 5, "r": 0.1}]) == ({"T": 5, "r": 0.1},)
    # What some size gives as a float is continuous; whole numbers stay whole where the first is.
    mixed = claim(sizes=({"T": 2}, {"T": 2.5}))
    assert [type(size["T"]) for size in grid(mixed, {"T": (3, 0.5)})] == [int, float]


@pytest.mark.parametrize(
    "axes, words",
    [
        ({"T": ()}, "finite numbers"), ({"T": (True,)}, "finite numbers"),
        ({"T": (math.inf,)}, "finite numbers"), ({"T": (2, math.nan)}, "finite numbers"),
        ({"T": (0,)}, "whole numbers from 1"), ({"T": (2.5,)}, "whole numbers from 1"),
        ({"Q": (1,)}, "no axis 'Q'.*its axes: T, r"), ([{"T": 1}], "must have a value for T, r"),
        ({"T": tuple(range(1, 14)), "r": (1, 2, 3, 4, 5)}, "sizes=65 combinations"),
    ],
)  # fmt: skip
def test_sizes_that_make_no_sense(axes, words, claim):
    with pytest.raises(ValueError, match=words):
        grid(claim(sizes=({"T": 2, "r": 1.0},)), axes)


def test_one_and_sixty_four_sizes_are_none_too_many(claim):
    own = claim(sizes=({"T": 2, "r": 1.0},))
    assert len(grid(own, {"T": range(1, 17), "r": (-1, 0, 1, 2)})) == 64


@pytest.mark.parametrize(
    "program, count",
    [
        (lambda x: jnp.sum(jnp.outer(x, x)), 4 * 100),
        (lambda x: jnp.sum(jnp.outer(x, x).astype(bool)), 4 * 100),
        (lambda x: x[0] + 1, 4),
        (jax.jit(lambda x: jnp.sum(jnp.outer(x, x))), 4 * 100),
        (lambda x: jax.lax.scan(lambda c, _: (c + jnp.sum(jnp.outer(x, x)), None), 0.0, None, 2),
         4 * 100),
        (lambda x: jax.lax.cond(x[0] > 0, lambda: jnp.sum(jnp.outer(x, x)), lambda: 0.0), 4 * 100),
        (jax.checkpoint(lambda x: jnp.sum(jnp.outer(x, x))), 4 * 100),
        (lambda x: jax.random.split(jax.random.key(0), 50), 8 * 50),
    ],
)  # fmt: skip
def test_the_largest_array_of_a_program(program, count):
    jaxpr = jax.make_jaxpr(program)(np.ones(10, np.float32)).jaxpr
    assert _largest(jaxpr) == count
    assert _largest(jax.make_jaxpr(lambda x: x)(1.0).jaxpr) == 0


def test_what_does_not_fit_is_refused_unless_nothing_is_drawn(claim, monkeypatch):
    monkeypatch.setattr(sizes, "_memory", lambda: 1.0)
    new, declared = Size({"d": 3}), Size({"d": 2})
    own = claim(sizes=({"d": 2},))
    with pytest.raises(ValueError, match="does not fit"):
        check(own, "printed", new)
    check(own, "printed", declared)  # which was measured before
    check(claim(sizes=({"d": 2},), host=True), "printed", new)
    cases = lambda size: {"x": np.ones((1, 2))}
    check(claim(sizes=({"d": 2},), sample={}, cases=cases), "printed", new)


def test_what_is_said_of_an_error_without_words(claim):
    def silent(instance, size):
        raise NotImplementedError

    with pytest.raises(ValueError, match="at d=3; its program raised: NotImplementedError"):
        check(claim(sizes=({"d": 2},), evaluate=silent), "printed", Size({"d": 3}))


def test_the_memory_of_a_machine(monkeypatch):
    monkeypatch.setattr(sizes.os, "sysconf_names", {"SC_PHYS_PAGES": 1}, raising=False)
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 512}
    monkeypatch.setattr(sizes.os, "sysconf", pages.get, raising=False)
    assert sizes._memory() == 512_000
    monkeypatch.setattr(sizes.os, "sysconf_names", {}, raising=False)
    assert sizes._memory() == math.inf


def test_each_axis_doubled_where_that_can_be_measured(claim, monkeypatch):
    def refused(statement, form, size):
        if size["T"] == 6:
            raise Refused("too large")

    monkeypatch.setattr(sizes, "check", refused)
    own = claim(sizes=({"d": 2, "T": 3}, {"d": 4, "T": 3}, {"d": 5, "T": 5}))
    wanted = [{"d": 2, "T": 3}, {"d": 4, "T": 3}, {"d": 5, "T": 5}]
    assert list(grown(own, "printed")) == wanted
    monkeypatch.setattr(sizes, "check", lambda *_: None)
    assert list(grown(own, "printed")) == [*wanted[:2], {"d": 2, "T": 6}, wanted[2]]
    none = claim(sizes=({"d": 2}, {"d": 3}), search="none")
    assert list(grown(none, "printed")) == [{"d": 2}, {"d": 3}]
