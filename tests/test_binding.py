"""Verdicts are about the functions that people call: plant a mistake in one, and a verdict changes.

The replaced function is the one that users import, wherever the package holds it.
"""

import importlib
import inspect
import pkgutil

import jax
import numpy as np
import pytest

from jaxbounds.claims.statements import Form, Sides, Statement, full_name
from jaxbounds.falsification import bindings, is_bound_to, planted
from jaxbounds.falsification.mistakes import off
from jaxbounds.papers import PAPERS, load_papers

STATEMENTS = [statement for paper in load_papers() for statement in paper.statements]


JUDGED = {full_name(f): f for statement in STATEMENTS for f in statement.judges}


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory):
    """Compiled programs on disk: planting drops those in memory, each time."""
    names = ("compilation_cache_dir", "persistent_cache_min_compile_time_secs")
    before = {f"jax_{name}": jax.config.values[f"jax_{name}"] for name in names}
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("programs")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # a statement with fits over long runs takes minutes for each function
@pytest.mark.parametrize("factor", [1.25, 0.8])
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_a_mistake_in_a_judged_function_is_noticed(statement, factor):
    """By the statement itself; a factor leaves a rate as it is, so another statement may see it."""
    answers = bindings(statement, statement.judges, factor=factor)
    for function in [f for f, seen in zip(statement.judges, answers) if not seen]:
        others = [s for s in STATEMENTS if s is not statement and function in s.judges]
        assert any(is_bound_to(s, function, factor=factor) for s in others), full_name(function)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_every_statement_judges_something(statement):
    assert statement.judges


def length(x):
    """A function of this module's own, for the statement below."""
    return np.sqrt(2.0) * 0.0 + (x @ x) ** 0.5


def other(x):
    """Of no consequence below."""
    return (x @ x) ** 0.5


def count(d):
    """A Python number."""
    return d - 1


def _mine(evaluate, **options):
    return Statement(
        id="mine.one", label="1", formula="|x| <= 2 |x|", kind="inequality", evaluate=evaluate,
        judges=(length,), sample=lambda key, size: {"x": jax.random.normal(key, (size["d"],))},
        sizes=({"d": 3},), forms=(Form(name="printed"),), control="half", **options,
    )  # fmt: skip


def test_a_statement_that_calls_its_function_notices_and_one_with_a_copy_does_not():
    def calls(instance, size):
        x = instance["x"]
        return Sides((x @ x) ** 0.5, {"printed": 2 * length(x), "control": length(x) / 2})

    def copies(instance, size):
        x = instance["x"]
        norm = (x @ x) ** 0.5
        return Sides(norm, {"printed": 2 * norm, "control": norm / 2})

    kept = length
    assert is_bound_to(_mine(calls), length) and is_bound_to(_mine(calls), length, factor=0.8)
    assert not is_bound_to(_mine(copies), length)
    assert length is kept
    with planted(length, 1.25):
        assert length is not kept and length(np.array([3.0, 4.0])) == 6.25
    assert length is kept


def test_functions_off_side_by_side_are_told_apart():
    def calls(instance, size):
        x = instance["x"]
        bound = length(x) * (2 + 0 * other(x))
        return Sides((x @ x) ** 0.5, {"printed": bound, "control": bound / 4})

    assert bindings(_mine(calls), [length, other]) == [True, False]


def test_a_function_whose_value_the_trace_needs_is_planted_alone():
    def calls(instance, size):
        x = instance["x"]
        bound = count(size["d"]) * length(x)
        return Sides((x @ x) ** 0.5, {"printed": bound, "control": bound / 10 ** len(range(2))})

    assert bindings(_mine(calls), [length, count]) == [True, True]


def test_on_the_host():
    def calls(instance, size):
        x = np.asarray(instance["x"])
        return Sides(length(x), {"printed": 2 * np.linalg.norm(x), "control": 0.0})

    assert is_bound_to(_mine(calls, host=True), length)


def test_what_is_off():
    assert off(2.0, 1.25) == 2.5 and off(3, 1.25) == 4 and off(True, 1.25) is False
    assert off({"a": 2.0, "n": 3}, 1.25) == {"a": 2.5, "n": 3}
    assert off(lambda x: 2.0 * x, 0.8)(5.0) == 8.0
    with pytest.raises(TypeError, match="type=str and holds no number"):
        off("words", 1.25)


def _public_functions():
    for paper in PAPERS:
        room = importlib.import_module(f"jaxbounds.{paper}")
        for found in pkgutil.walk_packages(room.__path__, f"jaxbounds.{paper}."):
            if found.name.split(".")[2] in ("statements", "experiments"):
                continue
            module = importlib.import_module(found.name)
            for name, function in vars(module).items():
                if name.startswith("_") or not callable(function) or inspect.isclass(function):
                    continue
                if getattr(function, "__module__", "") == module.__name__:
                    yield f"{module.__name__}.{name}"


def test_every_public_function_is_judged_or_says_why_not():
    free = {name for name in _public_functions() if name not in JUDGED}
    named = {
        f"jaxbounds.{p.id}.{n}" for p in load_papers() for ns in p.unjudged.values() for n in ns
    }
    assert sorted(free - named) == []
    assert sorted(named - free) == []
