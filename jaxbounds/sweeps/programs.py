"""The two programs of a sweep, for one group of lanes: how it starts, and how it goes on.

What they carry is `(states, over)`: whether each lane is finished is asked once after a step, and
the answer goes with the state; `over` is () in a sweep whose lanes are never finished.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Carry = tuple[Any, Any]


def starting(start: Callable, finished: Callable | None, /) -> Callable[[Any], Carry]:
    """Lanes of a group to what they carry before the first step."""

    def one(lane: Any) -> Carry:
        state = start(lane)
        return state, () if finished is None else finished(state)

    return jax.vmap(one)


def advancing(
    step: Callable, measure: Callable, finished: Callable | None, every: int, most: int, /
) -> Callable[[Any, Carry, Any], tuple[Carry, dict[str, jax.Array]]]:
    """(lanes of a group, carry, records) -> (carry, metrics) after so many records.

    How many is data, so that one program serves whatever is left or fits into a second.

    Args:
        step: of one lane.
        measure: of one lane.
        finished: of one state; such a lane is frozen.
        every: steps before each record.
        most: records in one call; metrics have room for so many along their second axis.
    """

    def guarded(lane: Any, carry: Carry) -> Carry:
        state, over = carry
        new = step(lane, state)
        if finished is None:
            return new, ()
        new = jax.tree.map(lambda old, fresh: jnp.where(over, old, fresh), state, new)
        return new, over | finished(new)

    def steps(lanes: Any, carry: Carry) -> Carry:
        one = lambda carry, _: (jax.vmap(guarded)(lanes, carry), None)
        return jax.lax.scan(one, carry, length=every)[0]

    def record(lanes: Any, carry: Carry) -> tuple[Carry, dict[str, jax.Array]]:
        if finished is None:
            carry = steps(lanes, carry)
        else:
            rest = lambda lanes, carry: carry
            carry = jax.lax.cond(jnp.all(carry[1]), rest, steps, lanes, carry)
        return carry, dict(jax.vmap(measure)(lanes, carry[0]))

    def many(lanes: Any, carry: Carry, records: Any) -> tuple[Carry, dict[str, jax.Array]]:
        shapes = jax.eval_shape(record, lanes, carry)[1]
        room = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), shapes)

        def one(i: Any, both: Any) -> Any:
            carry, kept = both
            carry, found = record(lanes, carry)
            return carry, jax.tree.map(lambda all_, new: all_.at[i].set(new), kept, found)

        carry, kept = jax.lax.fori_loop(0, records, one, (carry, room))
        return carry, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), kept)

    return many
