"""What one command found, the others start from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds import Budget, Form, Sides, Statement, falsify
from jaxbounds.claims.statements import Size
from jaxbounds.cli import main
from jaxbounds.constants.constant import sharp_constant
from jaxbounds.falsification import Examples, load_instance

DRAWS = Budget(samples=8, restarts=0, steps=0, batch=8)
SEARCHES = Budget(samples=8, restarts=4, steps=60, batch=8)


def _squared_sum(most):
    """(x + y)^2 <= most (x^2 + y^2), of which 2 is sharp; draws have y near -x."""

    def sample(key, size):
        x = jax.random.normal(key, (2,))
        return {"x": x * jnp.array([1.0, 0.01])}

    def evaluate(instance, size):
        x = instance["x"]
        return Sides(lhs=jnp.sum(x) ** 2, rhs={"printed": most * jnp.sum(x**2), "control": 0.1})

    return Statement(
        id="mine.sum",
        label="1",
        formula="(x + y)^2 <= c (x^2 + y^2)",
        kind="inequality",
        sample=sample,
        evaluate=evaluate,
        hypotheses=lambda instance, size: {"every pair": True},
        forms=(Form(name="printed"),),
        control="a right side of 0.1",
        sizes=({"d": 2},),
        budget=DRAWS,
        judges=(),
    )


def test_what_a_constant_found_is_what_verify_fails_by(tmp_path):
    """Certified above one: x = y gives 2 / 1.9, which no draw comes near."""
    statement, examples = _squared_sum(1.9), Examples(tmp_path)
    assert falsify(statement, examples=examples)[0].status != "fails"
    found = sharp_constant(statement, budget=SEARCHES, seconds=2, examples=examples)
    assert found.fails and float(found.largest.low) == pytest.approx(2 / 1.9, rel=1e-9)
    verdict = falsify(statement, examples=examples)[0]
    assert verdict.status == "fails" and verdict.worst_ratio == pytest.approx(2 / 1.9, rel=1e-9)
    assert verdict.sources["earlier"]["instances"] == 1


def test_what_was_found_at_a_size_stays_with_that_size(tmp_path):
    statement, examples = _squared_sum(2.5), Examples(tmp_path)
    form = statement.form("printed")
    sharp_constant(statement, budget=SEARCHES, seconds=2, examples=examples)
    file = examples.of(statement, form, statement.sizes[0])
    x, y = load_instance(file).instance["x"]
    assert [*tmp_path.glob("*/*")] == [file] and "d2" in file.name
    assert x == pytest.approx(y, rel=1e-6)
    assert examples.of(statement, form, Size({"d": 3})) != file


def test_a_constant_starts_from_it_and_needs_another_finding(tmp_path):
    """What is there again is no second start that ended there."""
    statement, examples = _squared_sum(2.5), Examples(tmp_path, every=True)
    sharp_constant(statement, budget=SEARCHES, seconds=2, examples=examples)
    again = sharp_constant(statement, budget=DRAWS, seconds=2, examples=examples).largest
    assert again.kinds["earlier"] == again.agreed["earlier"] == 1
    assert again.where == "attained" and again.agreeing > 2
    late = sharp_constant(statement, budget=DRAWS, seconds=1e-3, examples=examples).largest
    others = sum(late.agreed.values()) - late.agreed.get("earlier", 0)
    assert late.where == "rising" and others < 2


CLAIM = '''"""A claim that is false by a twentieth."""
import jax.numpy as jnp
import jaxbounds as jb


def evaluate(instance, size):
    x = instance["x"]
    return jb.Sides(lhs=jnp.sum(x) ** 2, rhs={"printed": 1.9 * jnp.sum(x**2), "control": 0.0})


PAPER = jb.Paper(
    id="one_store", title="t", statements=(
        jb.Statement(
            id="one_store.sum", label="1", formula="f", kind="inequality", evaluate=evaluate,
            over={"x": jb.Box(-1, 1, 2)}, forms=(jb.Form(name="printed"),), control="zero",
            sizes=({"d": 2},), judges=(),
        ),
    ),
)
'''


def test_a_constant_above_one_ends_as_verify_does(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "claim.py").write_text(CLAIM)
    assert main(["constant", "claim.py", "--seconds", "2", "--out", "out"]) == 1
    assert "fails, although it is declared to hold" in capsys.readouterr().err
    (kept,) = (tmp_path / "cache" / "jaxbounds-examples").glob("*/*.npz")
    assert np.isclose(float(load_instance(kept).meta["ratio"]), 2 / 1.9, rtol=1e-9)
