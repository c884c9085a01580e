"""The text of a lambda in formulas and written modules, beside other lambdas on its line."""

import functools
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements.written import in_words, written

AB = {"a": jb.Box(0.1, 1), "b": jb.Box(0.1, 1)}


def test_two_lambdas_on_one_line_have_their_own_words():
    one = jb.claim("t.w", lambda a, b: a * b, "<=", lambda a, b: a + b, over=AB)
    assert one.formula == "a * b <= a + b"
    twins = jb.claim("t.w", lambda a: a, "<=", 1, over=AB, false=[lambda a: a - 1, lambda a: a / 2])
    assert [form.name for form in twins.forms[1:]] == ["false a - 1", "false a / 2"]


def sides(c):
    """Return lambdas that differ in their operators alone."""
    return lambda a: a * c, lambda a: a + c, lambda a: (lambda b: b - c)(a), lambda a: lambda b: b


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ((lambda a: a < 1, lambda a: a > 1, lambda a: a <= 1), ["a < 1", "a > 1", "a <= 1"]),
        ((lambda a: a[0], lambda a: a[1], lambda a: a + 1.0), ["a[0]", "a[1]", "a + 1.0"]),
        ((lambda a: a + 1, lambda a: a + True, lambda a: a + 1.0),
         ["a + 1", "a + True", "a + 1.0"]),
        ((lambda a: jnp.sum(jnp.abs(a)), lambda a: jnp.abs(jnp.sum(a))),
         ["jnp.sum(jnp.abs(a))", "jnp.abs(jnp.sum(a))"]),
        ((lambda: -0.0, lambda: 0.0), ["-0.0", "0.0"]),
        ((lambda a, c={1: 2}: a * c, lambda a, d=lambda x: x: d(a)), ["a * c", "d(a)"]),
        (sides(2), ["a * c", "a + c", "(lambda b: b - c)(a)", "lambda b: b"]),
        (([lambda a: [b * a for b in a], lambda a: [b + a for b in a]]),
         ["[b * a for b in a]", "[b + a for b in a]"]),
    ],
)  # fmt: skip
def test_lambdas_are_told_apart_by_their_code(made, words):
    assert [in_words(one) for one in made] == words


def test_a_wrapped_lambda_has_the_words_of_the_lambda_only_if_both_agree():
    assert in_words(jax.jit(lambda a: a + 1)) == "a + 1"
    for changed in (jax.vmap(lambda a: a + 1), jax.grad(lambda a: a**2), eval("lambda a: a + 1")):
        assert in_words(changed) == "a lambda"
    assert in_words(functools.partial(max, 1)) == "partial"
    assert [in_words(value) for value in (2, 2.5, jnp.float32(0.5).item())] == ["2", "2.5", "0.5"]


def test_a_file_that_changed_after_its_import_gives_no_other_words(tmp_path, monkeypatch):
    file = tmp_path / "changing_sides.py"
    file.write_text("SIDE = lambda a, b: a * b\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import changing_sides

    assert in_words(changing_sides.SIDE) == "a * b"
    file.write_text("SIDE = lambda a, b: a + b  # changed\n")
    assert in_words(changing_sides.SIDE) == "a lambda"
    del sys.modules["changing_sides"]


def test_without_positions_equal_code_alone_decides(monkeypatch):
    from jaxbounds.claims.statements import lambdas

    monkeypatch.setattr(lambdas, "_spans", lambda code: ())
    assert [in_words(one) for one in (lambda a: a * 2, lambda a: a + 2)] == ["a * 2", "a + 2"]
    # Both lambdas have equal code and different texts.
    assert [in_words(one) for one in (lambda a: a + 2, lambda a: a +  2)] == ["a lambda"] * 2  # fmt: skip # noqa: E501


def test_the_written_module_has_the_code_of_each_lambda(monkeypatch):
    text = written({"left": lambda a, b: a * b, "right": lambda a, b: a + b})
    made = {}
    exec(textwrap.dedent(text), made)
    assert (made["left"](2, 5), made["right"](2, 5)) == (10, 7)
    # The text of a wrapped function lacks the wrapper.
    assert written({"left": jax.vmap(lambda a: a + 1)}) == written({"left": jax.vmap(sides)}) == ""
