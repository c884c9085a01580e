"""Ratios that are known by hand, in the place of a statement's: nothing is compiled for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from jaxbounds.claims.statements import Form, Sides, Size, Statement
from jaxbounds.constants.enclosure import BITS, Ratio
from jaxbounds.constants.problem import UNCOUNTED, Problem, flat
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.values import Undecided


def a_claim(**more):
    """x_1 <= 1, of vectors of two entries, by itself."""

    def evaluate(instance, size):
        one = jnp.ones(())
        return Sides(lhs=instance["x"][0], rhs={"printed": one, "control": one / 2})

    given = {
        "sizes": ({},), "sample": lambda key, size: {"x": jax.random.normal(key, (2,))},
        "id": "own.known", "label": "known", "formula": "f(x) <= 1", "kind": "inequality",
        "evaluate": evaluate, "forms": (Form(name="printed"),), "control": "half of it",
    }  # fmt: skip
    return Statement(**given | more)


class Known(Problem):
    """A problem by its ratio, a function of all coordinates, and the slope of its logarithm."""

    def __init__(self, ratio, slope=None, statement=None, back=None, size=None):
        self.form, self.size = "printed", Size(size or {})
        self.statement = statement or a_claim()
        self.ratio_at, self.slope_at, self.back_to = ratio, slope, back
        self.asked, self.rounding = [], {}

    def ratios(self, instances):
        self.asked.append(len(instances))
        return np.array([self.ratio_at(flat(i)) for i in instances], float)

    def back(self, instance):
        return instance if self.back_to is None else self.back_to(instance)

    def slope(self, values, ties, instance):
        x = ties.expand(np.asarray(values, float))
        ratio = self.ratio_at(x)
        if not ratio > 0:
            return -UNCOUNTED, np.zeros(len(values))
        columns = [ties.expand(e) for e in np.eye(len(values))]
        return float(np.log(ratio)), np.array([c @ self.slope_at(x) for c in columns])

    def scores(self, values, ties, instance):
        found = np.array([self.ratio_at(ties.expand(row)) for row in values])
        return np.where(found > 0, np.log(np.where(found > 0, found, 1)), -UNCOUNTED)


class KnownRatio(Ratio):
    """The ratio in ball arithmetic, by a function of a list of balls."""

    def __init__(self, function, ulp=0.0):
        self.function, self.ulp, self.asked = function, ulp, []

    def __call__(self, instance, reading="exact"):
        with precision(BITS):
            x = [v if isinstance(v, arb) else arb(float(v)) for v in flat(instance)]
            self.asked.append((x, reading))
            found = self.function(x)
            if found is None:
                raise Undecided("nothing is known there")
            return found * (1 + arb(0, self.ulp)) if reading == "ulp" and self.ulp else found


@pytest.fixture
def claim():
    return a_claim


@pytest.fixture
def known():
    return Known


@pytest.fixture
def known_ratio():
    return KnownRatio
