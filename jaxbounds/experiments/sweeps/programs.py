"""Make the two programs of a sweep for one group of lanes (runs): the start, and the steps.

The programs carry `(states, over)`; the flags `over` tell which lanes are finished. If the lanes of
a sweep never finish, `over` is the empty tuple. The data that all lanes share are a tuple of one
value, or the empty tuple.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.ground.exceptions import Refused

Carry = tuple[Any, Any]
OVER = " over"
"""The name of a record's entry that tells which lanes (runs) are finished.

No metric of a sweep may have the name `OVER`.
"""


def starting(
    start: Callable, finished: Callable | None, enough: Callable | None = None, /
) -> Callable[..., Carry]:
    """Return the program that maps lanes (runs) and shared data to the carry before the first step.

    The carry is the pair of the lanes' states and of flags that tell which lanes are finished.
    """

    def one(lane: Any, shared: tuple) -> Carry:
        state = start(lane, *shared)
        if finished is not None:
            return state, finished(state)
        return state, () if enough is None else jnp.zeros((), bool)

    return lambda lanes, shared=(): jax.vmap(one, in_axes=(0, None))(lanes, shared)


def advancing(
    step: Callable,
    measure: Callable,
    finished: Callable | None,
    every: int,
    most: int,
    /,
    enough: Callable | None = None,
) -> Callable[..., tuple[Carry, dict[str, jax.Array]]]:
    """Return a program that advances runs: (lanes, carry, records, shared) -> (carry, metrics).

    The carry is a pair: the states of the lanes (runs), and flags that mark finished lanes. The
    program freezes a lane if `finished(state)` or `enough(record)` is true. The program records
    metrics after each `every` steps. The number of records is an argument of the program, so that
    one program serves chunks (sequences of steps) of any length. The second axis of the metrics has
    the length `most`, the largest number of records in one call.
    """
    freezes = finished is not None or enough is not None

    def guarded(lane: Any, carry: Carry, shared: tuple) -> Carry:
        state, over = carry
        new = step(lane, state, *shared)
        if not freezes:
            return new, ()
        new = jax.tree.map(lambda old, fresh: jnp.where(over, old, fresh), state, new)
        return new, over if finished is None else over | finished(new)

    def steps(lanes: Any, carry: Carry, shared: tuple) -> Carry:
        lane = jax.vmap(guarded, in_axes=(0, 0, None))
        one = lambda carry, _: (lane(lanes, carry, shared), None)
        return jax.lax.scan(one, carry, length=every)[0]

    def record(lanes: Any, carry: Carry, shared: tuple) -> tuple[Carry, dict[str, jax.Array]]:
        if not freezes:
            carry = steps(lanes, carry, shared)
        else:
            rest = lambda lanes, carry, shared: carry
            carry = jax.lax.cond(jnp.all(carry[1]), rest, steps, lanes, carry, shared)
        lane = lambda lane, state: named(measure(lane, state, *shared))
        found = jax.vmap(lane)(lanes, carry[0])
        if enough is not None:
            carry = carry[0], carry[1] | jax.vmap(enough)(found)
        return carry, found | ({OVER: carry[1]} if freezes else {})

    def many(
        lanes: Any, carry: Carry, records: Any, shared: tuple = ()
    ) -> tuple[Carry, dict[str, jax.Array]]:
        shapes = jax.eval_shape(record, lanes, carry, shared)[1]
        room = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), shapes)

        def one(i: Any, both: Any) -> Any:
            carry, kept = both
            carry, found = record(lanes, carry, shared)
            return carry, jax.tree.map(lambda all_, new: all_.at[i].set(new), kept, found)

        carry, kept = jax.lax.fori_loop(0, records, one, (carry, room))
        return carry, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), kept)

    return many


def named(metrics: Any, /) -> dict[str, jax.Array]:
    """Return a flat dict of metrics; a nested dict becomes names such as "outer/inner".

    Raises:
        Refused: if the metrics are not a dict, or hold anything but numbers and arrays.
    """
    if not hasattr(metrics, "items"):
        raise Refused(
            f"measure returns type={type(metrics).__name__}, expected a dict of arrays by name. "
            'Try returning {"loss": ...}'
        )
    found: dict[str, jax.Array] = {}
    for name, value in metrics.items():
        if not isinstance(name, str) or name == OVER:
            raise Refused(
                f"the function measure returns the metric name={name!r}, expected a string other "
                f"than {OVER!r}. Try another name"
            )
        if hasattr(value, "items"):
            inner = {f"{name}/{part}": one for part, one in named(value).items()}
        elif isinstance(value, list | tuple | str) or value is None:
            raise Refused(
                f"measure returns type={type(value).__name__} for {name!r}, expected an array. "
                "Try jnp.stack"
            )
        else:
            inner = {name: jnp.asarray(value)}
        if clash := found.keys() & inner.keys():
            raise Refused(
                f"the function measure returns the metric name={min(clash)!r} twice. Try another "
                f"name"
            )
        found |= inner
    return found
