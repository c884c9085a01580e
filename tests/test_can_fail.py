"""Statements that cannot fail: large mistakes in what they judge leave every verdict as it is."""

import jax
import numpy as np
import pytest

from jaxbounds.claims.statements import Budget, Form, Sides, Statement
from jaxbounds.falsification import can_fail
from jaxbounds.papers import load_papers

STATEMENTS = [statement for paper in load_papers() for statement in paper.statements]
FEW = Budget(samples=12, restarts=0, steps=0, batch=12)

CANNOT_MOVE: dict[str, str] = {
    "seqlength.lemma3.2": "both sides are covering numbers by one function, so that "
    "a mistake in it stands on both sides; the printed form fails at q = 1/2, and the control does",
}
"""The statements of which no form can fail, each with the reason."""


def length(x):
    """A function for the statements below."""
    return (x @ x) ** 0.5


def width(N):
    """Eight units a token, by design."""
    return 8.0 * N


def _mine(**options):
    return Statement(
        id="mine.one", label="1", formula="-", control="half", judges=(length,), **options,
        sample=lambda key, size: {"x": jax.random.normal(key, (size["N"],))},
        forms=(Form(name="printed", **({"sense": "at least", "exponent": (0.9, 1.1)}
               if options["kind"] == "rate" else {})),),
    )  # fmt: skip


def test_a_lower_bound_on_a_width_that_is_chosen_above_it_cannot_fail():
    """As qstr.prop8 had it: the network's width is 8 N, whatever its other parts are."""

    def evaluate(instance, size):
        moved = 1.0 + 1e-9 * np.tanh(length(instance["x"]))
        return Sides(width(size["N"]) * moved, {"printed": size["N"], "control": size["N"] ** 2})

    sizes = tuple({"N": N} for N in (2, 4, 8, 16))
    statement = _mine(kind="rate", evaluate=evaluate, sizes=sizes)
    assert can_fail(statement, budget=FEW) == ""


def test_a_measured_length_can_fail():
    def evaluate(instance, size):
        x = instance["x"]
        return Sides((x @ x) ** 0.5, {"printed": 2 * length(x), "control": length(x) / 2})

    statement = _mine(kind="inequality", evaluate=evaluate, sizes=({"N": 3},))
    assert can_fail(statement, budget=FEW).endswith("length a thousandth: printed")


QUICK = ("qstr.prop8.width", "qstr.lem42.disc", "qstr.thm10.order", "qstr.prop17.order",
         "qstr.cor31.order", "qstr.lem20.order", "qstr.prop21.dimensions")  # fmt: skip


def _all():
    for statement in STATEMENTS:
        marks = () if statement.id in QUICK else (pytest.mark.slow,)
        yield pytest.param(statement, id=statement.id, marks=marks)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("statement", [*_all()])
def test_some_form_of_every_statement_can_fail(statement):
    found = can_fail(statement, budget=FEW)
    assert bool(found) != (statement.id in CANNOT_MOVE), found
