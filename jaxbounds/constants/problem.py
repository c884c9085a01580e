"""Express lhs/rhs of an inequality, for instances of one size, as a function of a real vector."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import CONTROL, Instance, Sides, Size, Statement
from jaxbounds.falsification import UNKEPT
from jaxbounds.falsification.bench import Bench
from jaxbounds.falsification.evaluation import NO_SLOPES, in_order, pick
from jaxbounds.falsification.measure import counts_for, measure
from jaxbounds.falsification.programs import compiled

NUDGES = (0.0, 1e-15, 1e-13)
"""The relative lengths of the moves from a point where lhs/rhs has no finite slope to nearby
points."""
REFUSALS = (ValueError, ArithmeticError, LookupError)
"""The exceptions with which a statement in plain Python may refuse an instance.

The search ignores a refused instance.
"""
MOVED = 1e-6
"""If the projection onto the hypotheses changes an instance's entries by at most this share of
their array's largest entry, the change counts as rounding. A larger share overlooks larger changes.
"""
CALLS = 1000
"""The library expects about this many measurements of lhs/rhs in one search.

If this number is larger, the library compiles more programs.
"""
UNCOUNTED = 50.0
"""The loss of an instance that violates a hypothesis. The search minimises the loss, which is
-log(lhs/rhs) for all other instances. If this loss is larger, the search stays farther from
instances that violate a hypothesis.
"""


def with_one_form(statement: Statement, form: str, size: Size, /) -> Statement:
    """Return the statement with only one of its forms (inequalities), at one size.

    The form's right side also replaces the right side of the control (the false variant). A form
    with `>=` becomes a form with `<=` and exchanged sides.
    """

    def evaluate(instance: Instance, size: Size) -> Sides:
        both = in_order(statement, statement.evaluate(instance, size))
        lhs, rhs, error = (
            pick(side, form, which, statement)
            for side, which in ((both.lhs, "lhs"), (both.rhs, "rhs"), (both.error, "error"))
        )
        return Sides(lhs=lhs, rhs={form: rhs, CONTROL: rhs}, error=error)

    evaluate.__wrapped__ = statement.evaluate  # type: ignore[attr-defined] # where it is written
    return replace(
        statement, evaluate=evaluate, forms=(statement.form(form),), sizes=(size,), relation="<="
    )


def is_float(leaf: Any, /) -> bool:
    """Tell whether a leaf of an instance holds floats, or balls that stand for floats."""
    return leaf.dtype == object or jax.dtypes.issubdtype(leaf.dtype, np.floating)


def floats_of(instance: Instance, /) -> list[Any]:
    """Return the leaves of an instance that hold floats; the search moves only these leaves."""
    return [leaf for leaf in jax.tree.leaves(instance) if is_float(leaf)]


def filled(instance: Instance, leaves: Sequence[Any], /) -> Instance:
    """Return a copy of an instance whose float arrays are replaced by the given arrays."""
    given, rest = jax.tree.flatten(instance), iter(leaves)
    return jax.tree.unflatten(given[1], [next(rest) if is_float(x) else x for x in given[0]])


def flat(instance: Instance, /) -> Any:
    """Return all floats of an instance as one vector."""
    leaves = [np.asarray(leaf).ravel() for leaf in floats_of(instance)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def unflat(instance: Instance, vector: Any, /) -> Instance:
    """Return a copy of an instance whose floats are the entries of a vector of floats or balls."""
    leaves, start = [], 0
    for leaf in floats_of(instance):
        leaves.append(vector[start : start + leaf.size].reshape(leaf.shape))
        start += leaf.size
    return filled(instance, leaves)


class Problem:
    """The log of lhs/rhs of one inequality at one size, as a function of free coordinates.

    The dict `rounding` maps an instance's bits to lhs/rhs from ball arithmetic, for instances with
    a float ratio that proved too large.
    """

    def __init__(self, statement: Statement, form: str, size: Mapping[str, float], /) -> None:
        self.form, self.size = form, Size(size)
        self.rounding: dict[bytes, float] = {}
        self.statement = with_one_form(statement, form, self.size)
        self.bench = Bench(self.statement, statement.budget.batch, UNKEPT, calls=CALLS)
        self._back = compiled(self.projected)
        self._slope = compiled(self._with_slope)
        self._careful = jax.jit(self._with_slope)
        self._scores = compiled(jax.vmap(self._score, (0, None, None)))

    def projected(self, instance: Instance) -> Instance:
        """Return an instance projected onto the hypotheses, or unchanged without a projection."""
        project = self.statement.project
        return instance if project is None else project(instance, self.size)

    def back(self, instance: Instance) -> Instance:
        """Project an instance onto the hypotheses, by a compiled program if JAX can compile it."""
        run = self.projected if self.statement.host else self._back
        return jax.tree.map(np.asarray, run(instance))

    def put(self, instance: Instance) -> Instance:
        """Return an instance, projected onto its set if the statement has no hypotheses."""
        by_project = self.statement.project is not None and self.statement.hypotheses is None
        return self.back(instance) if by_project else instance

    def outside(self, instance: Instance) -> bool:
        """Tell whether `project` would change an instance.

        An instance that `project` would change may nevertheless meet the hypotheses.
        """
        if self.statement.project is None or self.statement.hypotheses is None:
            return False
        there = floats_of(self.back(instance))
        return not all(
            np.allclose(a, b, rtol=0, atol=MOVED * np.max(np.abs(a), initial=0.0))
            for a, b in zip(floats_of(instance), there)
        )

    def ratios(self, instances: Sequence[Instance]) -> np.ndarray:
        """Return lhs/rhs of each instance, of shape (instances,); -inf if an instance is invalid.

        An instance is invalid if it violates a hypothesis, or if a function on the host raises.
        """
        instances = [self.put(one) for one in instances]
        if not self.statement.host or len(instances) == 1:
            return self._ratios(instances)
        return np.concatenate([self._ratios([one]) for one in instances])

    def _ratios(self, instances: Sequence[Instance]) -> np.ndarray:
        refused = REFUSALS if self.statement.host else ()
        batch = jax.tree.map(lambda *leaves: np.stack(leaves), *instances)
        try:
            reading = self.bench.reading(batch, self.size)
        except refused:
            return np.full(len(instances), -np.inf)
        counts, lhs, rhs = counts_for(self.statement, reading, batch, np.zeros(len(instances), int))
        with np.errstate(all="ignore"):
            value = lhs / rhs
        return np.where(counts & np.isfinite(value) & (rhs > 0), value, -np.inf)

    def _score(self, values: Any, ties: Any, instance: Instance) -> Any:
        moved = self.projected(unflat(instance, ties.expand(values)))
        measured = measure(self.statement, self.size)(moved).column(0)
        positive = measured.counted & (measured.value > 0) & (measured.rhs > 0)
        return jnp.where(positive, jnp.log(jnp.where(positive, measured.value, 1.0)), 0.0), positive

    def _with_slope(self, values: Any, ties: Any, instance: Instance) -> Any:
        (score, counted), slope = jax.value_and_grad(self._score, has_aux=True)(
            values, ties, instance
        )
        return jnp.concatenate([jnp.stack([score, counted.astype(score.dtype)]), slope])

    def slope(self, values: np.ndarray, ties: Any, instance: Instance) -> tuple[float, np.ndarray]:
        """Return log(lhs/rhs) at given values of the free coordinates, and its gradient."""
        padded = np.zeros(len(ties.labels))
        padded[: len(values)] = values
        try:
            found = np.asarray(self._slope(padded, ties, instance))
        except NO_SLOPES:
            return float(self.scores(padded[None], ties, instance)[0]), np.zeros(len(values))
        score = float(found[0])
        if not found[1]:
            return -UNCOUNTED, np.zeros(len(values))
        for nudge in NUDGES:
            if np.isfinite(found[2:]).all():
                return score, found[2 : 2 + len(values)]
            # A quickly compiled program may compute a maximum twice, with different rounding. The
            # slope is then 0/0. A carefully compiled program, or a nearby point, gives a slope.
            moved = padded * (1 + nudge * np.cos(np.arange(len(padded))))
            found = np.asarray(self._careful(moved, ties, instance))
        return score, np.nan_to_num(found[2 : 2 + len(values)])

    def scores(self, values: np.ndarray, ties: Any, instance: Instance) -> np.ndarray:
        """Return log(lhs/rhs) at many points, given as rows of shape (m, n).

        The log ratio is -`UNCOUNTED` if the point violates a hypothesis.
        """
        score, counted = self._scores(values, ties, instance)
        return np.where(np.isfinite(score) & counted, score, -UNCOUNTED)
