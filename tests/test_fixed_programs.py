"""Two traces of one function: JAX may write one program in two ways; a changing function shows."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.programs.traces import is_fixed

TABLE = np.arange(6.0)


def fixed(function):
    x = jnp.ones(6)
    return is_fixed(function, x, before=jax.make_jaxpr(function)(x))


def test_a_function_with_one_program_is_fixed():
    assert fixed(lambda x: x @ TABLE)


def test_a_constant_that_a_later_trace_repeats_is_no_change():
    """As the two parts of a table: JAX merges one object, and keeps two copies apart."""
    first = [True]

    def twice(x):
        one = jnp.asarray(TABLE)
        other = one if first.pop() else jnp.asarray(TABLE.copy())
        first.append(False)
        return x @ one + x @ other

    assert fixed(twice)


@pytest.mark.parametrize("kind", ["float", "array", "after the first call"])
def test_a_function_that_changes_is_not_fixed(kind):
    count = itertools.count(1)

    def changing(x):
        n = next(count)
        if kind == "float":
            return x * (0.37 + n)
        if kind == "array":
            return x + jnp.asarray(np.full(6, 0.5 * n))
        return x * (0.37 if n == 1 else 0.38)

    assert not fixed(changing)


@pytest.mark.parametrize("first", [jnp.sin, lambda x: x, lambda x: jnp.cos(x) + TABLE])
def test_a_function_whose_first_trace_is_another_one_changes(first):
    count = itertools.count(1)
    assert not fixed(lambda x: first(x) if next(count) == 1 else jnp.cos(x))
