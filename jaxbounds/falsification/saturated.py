"""Notice that a claim of existence (`there_is`) holds only because floats saturate, as tanh(40).

In floats tanh(y) is one from y = 20 on, so floats satisfy "there is a y with tanh(y) >= 1".
"""

from dataclasses import replace
from typing import Any, cast

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Size
from jaxbounds.falsification.bench import Bench, Column, Pool, batch_of, take
from jaxbounds.falsification.found_equality import (
    NO_TOLERANCE,
    beside,
    has_rounded_constants,
    is_exact,
)
from jaxbounds.falsification.second_opinion import Asked, fails_by_less
from jaxbounds.falsification.wording import in_words

SMALL = 16.0
"""Found entries of at most this absolute value do not saturate so far that 113 bits cannot tell the
sides apart. A larger value accepts more saturated entries."""
LOOKED, FAR = 512, 2
"""Among LOOKED instances with equal sides, the engine tests the FAR instances with the largest
found entries. Larger numbers find more saturated entries and take longer."""


def _largest(value: Any) -> float:
    return max(float(np.max(np.abs(x), initial=0.0)) for x in jax.tree.leaves(value))


def saturated(
    bench: Bench, pool: Pool, column: Column, index: int, form: Form, referee: Asked, /
) -> str:
    """Return a reason if the sides agree only by saturation at the entries that a search found.

    At saturation, floats find equal sides at all moved entries, and ball arithmetic does not. At a
    true equality, floats find different sides at moved entries.
    """
    statement, m = bench.statement, column.measured
    if statement.host:
        return ""
    target = 1.0 if statement.is_bound else 0.0
    with np.errstate(invalid="ignore"):
        apart = np.where(m.counted, np.abs(m.value - target), np.inf)
        equal = np.flatnonzero(apart <= statement.tolerance)
    promised = statement.there_is or {}
    exact = replace(statement.as_given(), tolerance=NO_TOLERANCE, judges=())
    worst = equal[np.argsort(-apart[equal], kind="stable")]
    largest = lambda row: max(_largest(pool.instance(int(row))[name]) for name in promised)
    far = sorted(equal[:LOOKED], key=largest)[-FAR:] if promised else []
    for row in dict.fromkeys([*worst[:1], *equal[:1], *equal[-1:], *far]):
        size = Size(statement.sizes[column.sizes[row]])
        promises = bench.promises(size)
        filled = take(promises.filled(batch_of(pool.instance(int(row))), index), 0)
        if promises.points is not None:  # the engine tried all points of finite sets
            given_sets = replace(statement.as_given(), judges=())
            sure = is_exact(statement) and not has_rounded_constants(
                cast(Bench, promises.given), filled, size
            )
            if sure and fails_by_less(given_sets, form, filled, size, referee):
                entries = in_words({name: filled[name] for name in promised})
                return (
                    f"floats find both sides equal at {entries}, and ball arithmetic finds the "
                    "claim false there by less than rounding. Try other points in there_is"
                )
            continue
        given = cast(Bench, promises.given)
        near = beside(given, filled, size, index, moving=promised)
        if not len(near) or np.any(np.abs(near - target) > statement.tolerance):
            continue
        said = referee(exact, form, filled, size)  # short enclosures overlap at saturation, too
        small = max(map(_largest, (filled[name] for name in promised))) <= SMALL
        agree = said.is_true if statement.is_bound else said.meeting and small
        is_true = said.equal or agree
        if not (is_true or said.word == "absent"):
            entries = in_words({name: filled[name] for name in promised})
            return (
                f"both sides agree at {entries} in floats, which may saturate there, and "
                "ball arithmetic does not find them equal. Try there_is with a smaller set"
            )
    return ""
