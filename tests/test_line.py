"""A claim in a line: two functions and their sets, and the paper that is written from it."""

import importlib.util
import sys

import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.claims.sets.words import declared
from jaxbounds.claims.statements.line import sizes_of
from jaxbounds.cli import main

SMALL = jb.Budget(samples=64, restarts=4, steps=60)


def length(x):
    """The l_2 norm."""
    return jnp.sqrt(jnp.sum(x**2))


def test_a_violation_in_a_line():
    """|x|_1 <= c |x|_2 needs c = sqrt(d)."""
    found = jb.find_violation(
        lambda x: jnp.sum(jnp.abs(x)), lambda x: 1.5 * length(x),
        over={"x": jb.Ball(1, "d")}, sizes={"d": (2, 4)}, budget=SMALL,
    )  # fmt: skip
    assert found and found.ratio > 1.3 and found.size == {"d": 4}
    assert "violated" in repr(found) and set(found.by_size) == {"d=2", "d=4"}
    true = jb.find_violation(
        lambda x: jnp.sum(jnp.abs(x)), lambda x, d: d**0.5 * length(x),
        over={"x": jb.Ball(1, "d")}, sizes={"d": 2}, budget=SMALL,
    )  # fmt: skip
    assert not true and "proves nothing" in repr(true) and true.ratio == pytest.approx(1)
    least = jb.find_violation(lambda x: x, 0.25, over={"x": jb.Box(0, 1)}, relation=">=",
                              budget=SMALL)  # fmt: skip
    assert least and least.instance["x"] < 0.25


def test_a_violation_is_more_than_the_stated_error(tmp_path, monkeypatch, unannotated):
    # x <= .9 on [0, 1] is off by .1 at most.
    about = {"over": {"x": jb.Box(0, 1)}, "budget": SMALL}
    for error in (0.11, lambda x: 0.06 + 0.05 * x):
        within = jb.find_violation(lambda x: x, 0.9, error=error, **about)
        assert not within and within.ratio == pytest.approx(1 / 0.9)
    beyond = jb.find_violation(lambda x: x, 0.9, error=lambda x: 0.05 * x, **about)
    assert beyond and beyond.instance["x"] * 0.95 > 0.9
    with pytest.raises(TypeError, match=r"error='0\.1' is neither a function"):
        jb.find_violation(lambda x: x, 0.9, error="0.1", **about)
    with pytest.raises(ValueError, match="the function error takes argument='y', expected a name"):
        jb.find_violation(lambda x: x, 0.9, error=lambda y: 0.1, **about)
    # It is written with the claim.
    monkeypatch.chdir(tmp_path)
    assert main(["new", "fresh9", "--from", str(beyond.save(tmp_path / "line.json"))]) == 0
    assert "0.05 * x" in (tmp_path / "fresh9/model.py").read_text()
    told = (tmp_path / "fresh9/statements.py").read_text()
    assert 'error=model.uncertainty(instance["x"]))' in told


def test_a_constant_in_a_line_and_its_paper(tmp_path, monkeypatch, capsys):
    pytest.importorskip("flint")
    monkeypatch.chdir(tmp_path)
    found = jb.sharp_constant(
        lambda x: jnp.sum(jnp.abs(x)), length, over={"x": jb.Ball(1, "d")},
        sizes={"d": (2,)}, seconds=4, budget=SMALL,
    )  # fmt: skip
    assert found.largest.ratio == pytest.approx(2**0.5, rel=1e-9)
    file = found.save(tmp_path / "line.json")
    # The functions' code is read back; `length` is a module's, so it is imported from there.
    assert found.line["over"] == "{'x': jb.Ball(1, 'd')}"
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["new", "fresh8", "--from", str(file)]) == 0
    text = (tmp_path / "fresh8/statements.py").read_text()
    assert 'expected="fails"' in text and len(text.splitlines()) < 40
    assert "jnp.sum(jnp.abs(x))" in (tmp_path / "fresh8/model.py").read_text()
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    try:
        assert main(["verify", "fresh8", "--import", "fresh8", "--jobs", "1"]) == 0
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "fresh8"]:
            del sys.modules[name]
    assert "1 fails; all as recorded" in capsys.readouterr().out


def test_a_violation_is_written_with_its_counterexample(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scale = 2.0
    found = jb.find_violation(
        lambda x, y: x @ y, lambda x: scale * length(x),
        over={"x": jb.Ball(1, "d"), "y": jb.Ball(3, "d")}, sizes={"d": 2}, budget=SMALL,
    )  # fmt: skip
    found.save("found.json")
    assert main(["new", "fresh9", "--from", "found.json"]) == 0
    model = (tmp_path / "fresh9/model.py").read_text()
    assert "scale = 2.0" in model and "def right_side(x):" in model
    assert (
        importlib.util.find_spec("numpy")
        and "jb.Counterexample(" in (tmp_path / "fresh9/statements.py").read_text()
    )
    (tmp_path / "other.json").write_text("{}")
    assert main(["new", "fresh10", "--from", "other.json"]) == 2
    assert "is no saved claim" in capsys.readouterr().err


@pytest.mark.parametrize("make, says", [
    (lambda: jb.find_violation(lambda z: z, 1.0, over={"x": jb.Box(0, 1)}), "argument='z'"),
    (lambda: jb.find_violation("x", 1.0, over={"x": jb.Box(0, 1)}), "neither a function nor"),
    (lambda: jb.find_violation(lambda x: x, 1.0, over={"x": jb.Box(0, 1, "d")}, sizes=()),
     "gives no size"),
    (lambda: jb.find_violation(lambda x: x, 1.0, over={"x": jb.Box(0, 1)}, relation="="),
     "expected '<=' or '>='"),
    (lambda: jb.sharp_constant(lambda x: x, 1.0), "needs sets"),
])  # fmt: skip
def test_what_is_no_line_is_one_sentence(make, says):
    with pytest.raises((ValueError, TypeError)) as said:
        make()
    assert says in str(said.value) or "typechecking" in str(said.value)


@pytest.mark.parametrize("one", [
    jb.Ball(1, "d"), jb.Ball("R", ("n", "d"), p=1), jb.Sphere(2, 3), jb.Box(0, float("inf"), "d"),
    jb.Reals("d"), jb.Simplex("d", total=2), jb.Orthogonal(("n", "d")), jb.OperatorNorm("R", "d"),
    jb.Matrices(norm="row sum", at_most=2), jb.PSD("d", norm="trace", at_most=1), jb.Signs(4),
    jb.Each(jb.Sphere(1, "d"), 3), jb.Each(jb.Matrices("d", norm="nuclear")), jb.SubSimplex("n", 2),
    jb.Integers(0, "d"), jb.OneOf([1.0, 2.0], [3.0, 4.0]),
], ids=repr)  # fmt: skip
def test_a_set_is_written_as_it_is_declared(one):
    assert eval(declared(one), {"jb": jb}) == one


def test_sizes_are_combined():
    assert sizes_of({"d": (2, 4), "R": 0.5}) == ({"d": 2, "R": 0.5}, {"d": 4, "R": 0.5})
    assert sizes_of([{"d": 2}]) == ({"d": 2},) and sizes_of(None) == ({},)
