"""Three-valued logic: every table by going through all completions of what is open.

The oracle is Python's own logic on each completion. Where all of them agree the answer is theirs,
where they differ it is open: less would be unsound, more would be loose.
"""

import itertools
import operator
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax

from jaxbounds.certification import enclose
from jaxbounds.programs.balls.values import as_flags, reals

BALL = {0: arb(-1), 1: arb(1), 2: arb(0, 1)}
"""Whose sign is negative, positive, open."""


def tables(arity: int) -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1, 2), repeat=arity))


def completions(row: tuple[int, ...]) -> list[tuple[bool, ...]]:
    return list(itertools.product(*((False, True) if v == 2 else (bool(v),) for v in row)))


def answer(function: Callable[..., bool], row: tuple[int, ...]) -> int:
    possible = {bool(function(*values)) for values in completions(row)}
    return int(possible.pop()) if len(possible) == 1 else 2


def columns(arity: int) -> list[np.ndarray]:
    rows = tables(arity)
    return [reals((len(rows),), (BALL[row[k]] for row in rows)) for k in range(arity)]


TABLES: dict[str, tuple[int, Callable[..., Any], Callable[..., bool]]] = {
    "and": (2, lambda x, y: (x > 0) & (y > 0), lambda a, b: a and b),
    "or": (2, lambda x, y: (x > 0) | (y > 0), lambda a, b: a or b),
    "xor": (2, lambda x, y: (x > 0) ^ (y > 0), operator.ne),
    "not": (1, lambda x: ~(x > 0), operator.not_),
    "eq": (2, lambda x, y: (x > 0) == (y > 0), operator.eq),
    "ne": (2, lambda x, y: (x > 0) != (y > 0), operator.ne),
    "maximum": (2, lambda x, y: jnp.maximum(x > 0, y > 0), lambda a, b: a or b),
    "minimum": (2, lambda x, y: jnp.minimum(x > 0, y > 0), lambda a, b: a and b),
    "lt": (2, lambda x, y: lax.lt(x > 0, y > 0), operator.lt),
    "le": (2, lambda x, y: lax.le(x > 0, y > 0), operator.le),
    "gt": (2, lambda x, y: lax.gt(x > 0, y > 0), operator.gt),
    "ge": (2, lambda x, y: lax.ge(x > 0, y > 0), operator.ge),
    "select": (
        3,
        lambda x, y, z: jnp.where(x > 0, y > 0, z > 0),
        lambda which, yes, no: yes if which else no,
    ),
    "all": (
        3,
        lambda x, y, z: jnp.all(jnp.stack([x, y, z]) > 0, axis=0),
        lambda *row: all(row),
    ),
    "any": (
        3,
        lambda x, y, z: jnp.any(jnp.stack([x, y, z]) > 0, axis=0),
        lambda *row: any(row),
    ),
    "max": (
        3,
        lambda x, y, z: lax.reduce_max(jnp.stack([x, y, z]) > 0, (0,)),
        lambda *row: any(row),
    ),
    "min": (
        3,
        lambda x, y, z: lax.reduce_min(jnp.stack([x, y, z]) > 0, (0,)),
        lambda *row: all(row),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_all_completions_agree_on(name, x64):
    arity, program, function = TABLES[name]
    (found,) = enclose(program, *columns(arity)).ways
    expected = [answer(function, row) for row in tables(arity)]
    assert as_flags(found).tolist() == expected


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_a_variable_beside_itself_is_decided_unless_it_is_unknown(name, x64):
    compare = getattr(lax, name)
    (found,) = enclose(lambda x: compare(x, x), reals((2,), [arb(0, 1), arb("nan")])).ways
    assert as_flags(found).tolist() == [int(name in ("eq", "le", "ge")), 2]
