"""Small claims and measurements for the tests here: what is not said is the plainest there is."""

import math
from typing import Any

import numpy as np

from jaxbounds.claims.statements import Budget, Form, Sides, Statement
from jaxbounds.falsification.bench import Column
from jaxbounds.falsification.measure import Measured

TENTH = 2.0**-10
"""A tolerance near 1e-3 for which 1 + tolerance is a float, so that borders are exact."""


def measured(value: Any, **given: Any) -> Measured:
    """Of these values, without an error, all of which count; lhs / 1. Numbers stand for columns."""
    shape = np.broadcast_shapes(np.shape(value), *map(np.shape, given.values()))
    take = lambda name, usual, kind: np.array(
        np.broadcast_to(np.asarray(given.get(name, usual), kind), shape)
    )
    value, counted = np.broadcast_to(np.asarray(value, float), shape), given.get("counted", True)
    return Measured(
        value=value, low=take("low", value, float), high=take("high", value, float),
        counted=take("counted", True, bool), lhs=take("lhs", value, float),
        rhs=take("rhs", 1.0, float), trivial=take("trivial", False, bool),
        met=take("met", counted, bool), error=take("error", 0.0, float),
    )  # fmt: skip


def column(value: Any, *, sizes: Any = 0, sources: Any = "draws", labels: Any = None,
           reach: tuple[float, float] = (np.nan, np.nan), **given: Any) -> Column:  # fmt: skip
    """A column of measurements of different draws of the first size."""
    m = measured(value, **given)
    rows = len(m.value)
    return Column(
        m, np.broadcast_to(np.asarray(sizes), rows).copy(),
        np.broadcast_to(np.asarray(sources), rows).copy(),
        np.arange(rows) if labels is None else np.asarray(labels), reach,
    )  # fmt: skip


def plain(instance, size):
    """x <= 2, of which the control is x <= -9."""
    return Sides(instance["x"], {"printed": 2.0, "control": -9.0})


def statement(evaluate: Any = plain, **options: Any) -> Statement:
    """A claim on the host about one number, of an inequality unless said otherwise."""
    usual: dict[str, Any] = {
        "id": "mine.claim", "label": "1", "formula": "f <= g", "kind": "inequality", "host": True,
        "forms": (Form(name="printed"),), "control": "far off", "sizes": ({"d": 1},),
        "cases": lambda size: {"x": np.linspace(0.0, 1.0, 5)}, "search": "none",
        "budget": Budget(samples=8, restarts=0, steps=0, batch=8),
    }  # fmt: skip
    return Statement(evaluate=evaluate, **(usual | options))


def pareto(index: float, rows: int = 1000) -> np.ndarray:
    """Quantiles of P(x > t) = t^-index, whose mean is index / (index - 1)."""
    return (1 - (np.arange(rows) + 0.5) / rows) ** (-1 / index)


def hill(values: np.ndarray, count: int) -> float:
    """Hill's estimate as in his paper: one over the mean of log(x_i / x_(count + 1))."""
    size = sorted(values - np.median(values), reverse=True)
    return 1 / float(np.mean([math.log(x / size[count]) for x in size[:count]]))


class Dice(np.random.Generator):
    """Answers in this order, and keeps what was asked."""

    def __init__(self, *answers):
        super().__init__(np.random.PCG64(0))
        self.answers, self.asked = list(answers), []

    def _answer(self, name, *given, **named):
        self.asked.append((name, *given, *named.values()))
        answer = self.answers.pop(0)
        return np.asarray(answer) if isinstance(answer, list) else answer

    def integers(self, *given, **named):
        return self._answer("integers", *given, **named)

    def choice(self, *given, **named):
        return self._answer("choice", *given, **named)

    def random(self, *given, **named):
        return self._answer("random", *given, **named)

    def uniform(self, *given, **named):
        return self._answer("uniform", *given, **named)

    def normal(self, *given, **named):
        return self._answer("normal", *given, **named)
