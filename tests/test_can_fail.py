"""Statements that cannot fail: large mistakes in what they judge leave every verdict as it is.

`python tests/test_can_fail.py FILE [PATTERN ...]` asks all statements, or those of the patterns,
and appends a line for each to the file. The command leaves out what the file has already, so that a
pass that was cut off goes on.
"""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from jaxbounds.claims.statements import Budget, Form, Sides, Statement
from jaxbounds.falsification import can_fail, forms_that_cannot_fail
from jaxbounds.falsification.mistakes import off
from jaxbounds.papers import load_papers, select

STATEMENTS = [statement for paper in load_papers() for statement in paper.statements]
FEW = Budget(samples=12, restarts=0, steps=0, batch=12)
MANY = Budget(samples=64, restarts=0, steps=0, batch=64)
"""Draws of a claim about a probability; fewer than 64 cannot show that 5/6 is exceeded."""


def budget_of(statement):
    return MANY if statement.kind == "probability" else FEW


CANNOT_MOVE: dict[str, str] = {}
"""The statements of which no form can fail, each with the reason."""
ANY_NETWORK = (
    "The claim is about any network or cover: no function of the library enters, and another form "
    "judges the one that uses the claim."
)
FIXED: dict[str, dict[str, str]] = {
    "multihead.sec5.2.phi0": {
        "corrected": "The softmax is JAX's own, and the other side is a matrix of T alone."
    },
    "seqlength.lemma3.1.count": {
        "corrected": "No change of the listed tuples makes more of them; `sharpened` can fail."
    },
    "seqlength.lemma3.2": {
        "corrected": "Both sides are covering numbers by one function, and a mistake moves them "
        "alike; `corrected, two maps` can fail."
    },
    "seqlength.appa": {"printed": ANY_NETWORK},
    "seqlength.lemmac.1": {
        "printed": "The softmax is JAX's own; `sharpened S4 tanh` judges the closed form.",
        "sharpened S4": "The softmax is JAX's own; `sharpened S4 tanh` judges the closed form.",
    },
    "smapprox.lemmad.9": {"printed": ANY_NETWORK, "printed shared": ANY_NETWORK},
    "smapprox.thm4.1.width": {
        "printed": "The width is a whole number well below its bound, and no mistake by one or by "
        "half passes the bound."
    },
    "qstr.def2": {
        "derived Assumption 2": "The links and their networks stand in a table; neither is judged.",
        "derived radii": "The links and their networks stand in a table; neither is judged.",
    },
    "qstr.asm2": {
        "derived xor": "The network is drawn, and the link stands in a table; neither is judged."
    },
    "qstr.eqc2": {
        "derived C.1": "(C.1) speaks of the error before `shrink_output`, the one judged function."
    },
}
"""The forms whose sides no judged function moves, each with the reason."""


def length(x):
    """A function for the statements below."""
    return (x @ x) ** 0.5


def width(N):
    """Eight units a token, by design."""
    return 8.0 * N


def fewest(N):
    """The least count that is enough."""
    return 8 * N


def _mine(judges=(length,), **options):
    return Statement(
        id="mine.one", label="1", formula="-", control="half", judges=judges,
        cases=lambda size: {"x": np.random.default_rng(0).normal(size=(12, size["N"]))},
        forms=(Form(name="printed", **({"sense": "at least", "exponent": (0.9, 1.1)}
               if options["kind"] == "rate" else {})),), **{"host": True, **options},
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

    statement = _mine(kind="inequality", evaluate=evaluate, sizes=({"N": 3},), host=False)
    assert can_fail(statement, budget=FEW).endswith("length a thousandth: printed")


FORMS = ("qstr.prop28", "qstr.lem42", "qstr.lem22.norms", "qstr.prop17.assembly",
         "smapprox.lemma2.4.cover.l1", "seqlength.onset",
         "seqlength.lemma3.6.size", "multihead.lemma1.2.ww")  # fmt: skip
"""Statements with a form that could not fail, or whose ratio is one number on all draws."""
QUICK = ("qstr.prop8.width", "qstr.lem42.disc", "qstr.thm10.order", "qstr.prop17.order",
         "qstr.cor31.order", "qstr.lem20.order", "qstr.prop21.dimensions", "seqlength.lemma3.2",
         "smapprox.sec2.1.positive", "qstr.lem36")  # fmt: skip


def _bound_when_imported():
    """Programs of modules of statements that hold a judged function itself, and not its name."""
    judged = {id(function) for statement in STATEMENTS for function in statement.judges}
    for name, module in list(sys.modules.items()):
        if ".statements" not in name or not name.startswith("jaxbounds."):
            continue
        for key, held in vars(module).items():
            inner = held if id(held) not in judged else None
            while (inner := getattr(inner, "__wrapped__", None)) is not None:
                if id(inner) in judged:
                    yield f"{name}.{key}"


def test_no_program_holds_a_judged_function_from_before_a_mistake_is_planted():
    """As qstr.lem13 had it: `jax.jit(jax.vmap(f))` at import, which no mistake in f reaches."""
    assert [*_bound_when_imported()] == []


def test_a_mistake_in_an_object_that_is_called_is_no_function_of_its_own():
    """As qstr.lem36 had it: a network is a named tuple with `__call__`, and its weights move."""

    class Scaled(NamedTuple):
        factor: float

        def __call__(self, x):
            return self.factor * x

    assert off(Scaled(2.0), 3.0) == Scaled(6.0)


def test_a_form_that_no_judged_function_moves_is_named():
    def evaluate(instance, size):
        x = instance["x"]
        bound = 2 * length(x)
        return Sides.pairs({"printed": ((x @ x) ** 0.5, bound), "derived": (1.0, 4.0 + 0 * bound),
                            "control": (bound, bound / 4)})  # fmt: skip

    statement = _mine(kind="inequality", evaluate=evaluate, sizes=({"N": 3},))
    both = dataclasses.replace(statement, forms=(*statement.forms, Form(name="derived")))
    assert forms_that_cannot_fail(both, budget=FEW) == ("derived",)


def test_a_count_that_is_enough_can_fail_where_it_is_too_small():
    """As seqlength.onset had it: a larger count is enough, too, and breaks nothing."""

    def evaluate(instance, size):
        share = 1.0 if fewest(size["N"]) >= 8 * size["N"] else 2.0
        return Sides(share * (instance["x"] @ instance["x"]) ** 0, {"printed": 1.0, "control": 0.5})

    statement = _mine(kind="inequality", judges=(fewest,), evaluate=evaluate, sizes=({"N": 3},))
    assert can_fail(statement, budget=FEW).endswith(
        "fewest integers halved, truths negated: printed"
    )


def test_a_statement_that_moves_at_its_second_size_alone_can_fail():
    """The first size is tried alone, and no verdict rests on the first size."""

    def evaluate(instance, size):
        x = instance["x"]
        moved = length(x) if size["N"] > 1 else (x @ x) ** 0.5
        return Sides((x @ x) ** 0.5, {"printed": 2 * moved, "control": moved / 2})

    statement = _mine(kind="inequality", evaluate=evaluate, sizes=({"N": 1}, {"N": 3}))
    assert can_fail(statement, budget=FEW).endswith("length a thousandth: printed")


def test_a_pass_that_was_cut_off_goes_on(tmp_path, capsys):
    file = tmp_path / "found.jsonl"
    file.write_text(json.dumps({"id": "multihead.eq1", "found": "before", "seconds": 1.0}) + "\n")
    ask(file, ["multihead.eq1", "smapprox.prop3.4"])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["id"], bool(line["found"])) for line in lines] == [
        ("multihead.eq1", True), ("smapprox.prop3.4", True),
    ]  # fmt: skip
    assert lines[0]["found"] == "before"
    assert "2 asked, 0 cannot fail" in capsys.readouterr().out


def _all():
    for statement in STATEMENTS:
        marks = () if statement.id in QUICK else (pytest.mark.slow,)
        yield pytest.param(statement, id=statement.id, marks=marks)


@pytest.mark.slow_cases("smapprox.sec2.1.positive", "qstr.lem42.disc")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("statement", [*_all()])
def test_some_form_of_every_statement_can_fail(statement, unannotated):
    found = can_fail(statement, budget=budget_of(statement))
    assert bool(found) != (statement.id in CANNOT_MOVE), found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("id", [*FORMS, *FIXED])
def test_every_form_but_those_of_the_list_can_fail(id, unannotated):
    assert forms_that_cannot_fail(id, budget=FEW) == (*FIXED.get(id, ()),)


def ask(file: Path, patterns: list[str]) -> None:
    """Ask each statement whether it can fail, and append a line for each to the file."""
    file.touch()
    known = {line["id"]: line for line in map(json.loads, file.read_text().splitlines())}
    chosen = select(STATEMENTS, patterns) if patterns else STATEMENTS
    for statement in chosen:
        if statement.id in known:
            continue
        began = time.perf_counter()
        found = can_fail(statement, budget=budget_of(statement))
        line = {"id": statement.id, "found": found}
        line["seconds"] = round(time.perf_counter() - began, 1)
        known[statement.id] = line
        with file.open("a") as lines:
            lines.write(json.dumps(line) + "\n")
        print(f"{statement.id}: {found or 'CANNOT FAIL'} ({line['seconds']} s)", flush=True)
    still = [s.id for s in chosen if not known[s.id]["found"]]
    print(f"{len(chosen)} asked, {len(still)} cannot fail: {', '.join(still) or 'no statement'}")


if __name__ == "__main__":
    ask(Path(sys.argv[1]), sys.argv[2:])
