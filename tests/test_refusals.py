"""`jb.Refused`: the one exception of a refused input, on the face and in the command line."""

import ast
import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements import Size
from jaxbounds.cli import main
from jaxbounds.ground.readers import Damaged
from jaxbounds.programs.balls.interpreter import RULES

PACKAGE = Path(jb.__file__).parent
MODULES = {
    file.relative_to(PACKAGE).as_posix(): file
    for file in sorted(PACKAGE.rglob("*.py"))
    if file.relative_to(PACKAGE).parts[0] != "template"  # a user's paper
}

FOREIGN = {
    "certification/failing.py": "Python refuses to print an integer of more than 4300 digits",
    "certification/referee.py": "the user's evaluate",
    "claims/sets/finite.py": "NumPy refuses lists of several lengths",
    "cli/__init__.py": "experiments of a user's paper raise ValueError",
    "cli/constant.py": "the user's evaluate; raised again",
    "constants/law.py": "Fraction",
    "falsification/evaluation.py": "NumPy's read-only arrays, and the user's evaluate",
    "falsification/search.py": "the user's evaluate",
    "falsification/storage.py": "json",
    "papers/loading.py": "the user's module",
    "runs/certify.py": "Python refuses to print an integer of more than 4300 digits",
    "runs/request.py": "configurations of a user's paper raise ValueError",
    "seqlength/fold.py": "NumPy refuses a user's arrays whose shapes differ",
}
"""Modules that catch every ValueError, with the code besides the library's that raises it."""

SUM = lambda x: jnp.sum(x)
SQUARE = lambda p: jnp.sum(p**2)
KEY = jax.random.key(0)
BALL, SIZES, POINT = {"x": jb.Ball(1, "d")}, {"d": (2,)}, jnp.ones(3)
UNIT = jb.Domain(name="unit", size={"d": 1}, lower=(0.0,), upper=(1.0,), chart=lambda t: {"x": t})
ONE = "multihead.eq42"


def _reals(**given):
    return jb.claim("refusals.one", SUM, "<=", 1.0, over=BALL, sizes=SIZES, **given)


REFUSED = {
    "audit": [lambda: jb.audit("nobody", out="x"), lambda: jb.audit("qstr", out="x", timeout=0)],
    "bounds_for": [lambda: jb.bounds_for({"a": np.eye(2)}, delta=2.0)],
    "certify": [lambda: jb.certify("nobody"), lambda: jb.certify(ONE, seconds=0)],
    "claim": [lambda: jb.claim("No Id", SUM, "<=", 1.0, over=BALL, sizes=SIZES),
              lambda: jb.claim("a.b", SUM, "!=", 1.0, over=BALL, sizes=SIZES),
              lambda: jb.claim("a.b", lambda y: y, "<=", 1.0, over=BALL, sizes=SIZES)],
    "constants_of": [lambda: jb.constants_of("nobody"), lambda: jb.constants_of(ONE, form="no"),
                     lambda: jb.constants_of(ONE, seconds=0),
                     lambda: jb.constants_of(ONE, seed=-1)],
    "disprove": [lambda: jb.disprove("nobody"), lambda: jb.disprove(ONE, "no")],
    "enclose": [lambda: jb.enclose(jax.lax.bessel_i0e, np.float64(3))],
    "falsify": [lambda: jb.falsify("nobody"), lambda: jb.falsify(ONE, timeout=-1),
                lambda: jb.falsify(ONE, seed=-1), lambda: jb.falsify(ONE, seed=2**32)],
    "find_experiment": [lambda: jb.find_experiment("nobody")],
    "find_statement": [lambda: jb.find_statement("nobody")],
    "find_violation": [lambda: jb.find_violation(SUM, 1.0, over=BALL, sizes={}),
                       lambda: jb.find_violation(SUM, 1.0, over=BALL, sizes=SIZES, relation="<"),
                       lambda: jb.find_violation(SUM, 1.0, over=BALL, sizes=SIZES, seed=0.5)],
    "hessian_extremes": [lambda: jb.hessian_extremes(3, POINT),
                         lambda: jb.hessian_extremes(SQUARE, POINT, iterations=0)],
    "is_bound_to": [lambda: jb.is_bound_to("nobody", SUM)],
    "lanes_of": [lambda: jb.lanes_of(KEY)],
    "load_instance": [lambda: jb.load_instance("nobody.npz")],
    "load_paper": [lambda: jb.load_paper("nobody"), lambda: jb.load_paper("nobody.py")],
    "OperatorNorm": [lambda: jb.OperatorNorm(1, ("d",) * 3).draw(KEY, Size({"d": 2}))],
    "prove": [lambda: jb.prove("nobody", "printed", UNIT), lambda: jb.prove(ONE, "no", UNIT)],
    "replay": [lambda: jb.replay("nobody.npz")],
    "run": [lambda: jb.run("nobody"), lambda: jb.run("smapprox.machine", preset="no"),
            lambda: jb.run("smapprox.machine", colour=1),
            lambda: jb.run("smapprox.machine", seed=-1)],
    "sharp_constant": [lambda: jb.sharp_constant(SUM, 1.0), lambda: jb.sharp_constant(ONE, "no"),
                       lambda: jb.sharp_constant(ONE, seed=-1)],
    "spectrum": [lambda: jb.spectrum(SQUARE, POINT, key=3)],
    "sweep": [lambda: jb.sweep(abs, abs, abs, {"a": jnp.ones(2)}, 3, every=2)],
    "trace": [lambda: jb.trace(SQUARE, POINT, method="no")],
    "verify": [lambda: jb.verify("nobody"), lambda: jb.verify(ONE, seed=-1),
               lambda: jb.verify(ONE, jobs=-1), lambda: jb.verify(ONE, timeout=0),
               lambda: jb.verify(ONE, on=3), lambda: jb.verify(ONE, record=True, seed=1)],
    "weak_convexity": [lambda: jb.weak_convexity(SQUARE, POINT, kappa=-1.0)],
    # Classes.
    "Ball": [lambda: jb.Ball(1, "d", p=0.5)],
    "Curvature": [lambda: jb.Curvature(SQUARE, {})],
    "CurvatureMonitor": [lambda: jb.CurvatureMonitor(3)],
    "Domain": [lambda: jb.Domain(name="a", size={}, lower=(0.0,), upper=(),
                                 chart=None),
               lambda: UNIT.with_slack("no"), lambda: UNIT.with_slack("1 absolute")],
    "Form": [lambda: jb.Form(name="printed", expected="no")],
    "Matrices": [lambda: jb.Matrices("d", norm="no")],
    "OneOf": [lambda: jb.OneOf([1.0, [1.0]]), lambda: jb.OneOf([[1.0, [2.0]]]),
              lambda: jb.OneOf()],
    "Paper": [lambda: jb.Paper(id="t", title="t", statements=(_reals(),))],
    "Reals": [lambda: jb.Reals("import os")],
    "Statement": [lambda: _reals().form("no")],
}  # fmt: skip
"""Inputs that public functions and classes refuse before they compute anything."""
TAKES_ALL = {
    "float64_on_cpu": "it has no argument",
    "infimum": "its arguments are sets and functions, which refuse by themselves",
    "problems_of": "it returns the faults of a paper",
    "supremum": "its arguments are sets and functions, which refuse by themselves",
}
"""Public functions that refuse no input, with the reason."""


def test_each_public_function_has_its_refusals_here():
    functions = {name for name in dir(jb) if inspect.isfunction(getattr(jb, name))}
    assert functions == {*filter(functions.__contains__, REFUSED)} | {*TAKES_ALL}
    assert {*REFUSED} <= {*dir(jb)}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_input_raises_refused(name, unannotated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ask in REFUSED[name]:
        with pytest.raises(jb.Refused) as found:
            ask()
        assert str(found.value).strip()


def test_users_who_catch_value_errors_catch_all_kinds():
    assert issubclass(jb.Refused, ValueError)
    for kind in (jb.Undecided, jb.NotSupported, Damaged):
        assert issubclass(kind, jb.Refused)


def _calls(tree):
    return (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))


def test_the_library_makes_no_bare_value_error():
    made = [
        f"{name}:{node.lineno}"
        for name, file in MODULES.items()
        for tree in [ast.parse(file.read_text(encoding="utf8"))]
        for node in [*_calls(tree), *(n.exc for n in ast.walk(tree) if isinstance(n, ast.Raise))]
        if isinstance(node, ast.Name) and node.id == "ValueError"
    ]
    assert made == [], "raise jaxbounds.ground.exceptions.Refused"


def _caught(tree):
    """The names in each `except` clause and each `suppress`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            names = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            names = node.args
        else:
            continue
        yield [ast.unparse(name) for name in names]


def test_who_catches_every_value_error_runs_the_code_of_others():
    """A module that asks the library alone catches `Refused`: a mistake of the code stays loud."""
    catching = {
        name
        for name, file in MODULES.items()
        if ["ValueError"] in _caught(ast.parse(file.read_text(encoding="utf8")))
    }
    assert catching == {*FOREIGN}


@pytest.mark.parametrize("asked", [jax.lax.sin, jax.jit(jax.lax.sin)])
@pytest.mark.parametrize("kind", [jb.Undecided, jb.NotSupported])
def test_a_refusal_of_a_rule_passes_the_interpreter_as_it_is(asked, kind):
    """Other ValueErrors of a rule become `NotSupported`, with the name of the primitive."""

    def refusing(eqn, values, run):
        raise kind("x > 0 is open")

    def failing(eqn, values, run):
        raise ValueError("no number")

    given = lambda rule: {"rules": RULES | {"sin": rule}}
    with jb.float64_on_cpu():
        with pytest.raises(kind, match=r"^x > 0 is open$"):
            jb.enclose(asked, np.float64(0.5), **given(refusing))
        with pytest.raises(jb.NotSupported, match="primitive='sin': no number"):
            jb.enclose(asked, np.float64(0.5), **given(failing))


@pytest.mark.parametrize("kind", [jb.Refused, jb.Undecided, jb.NotSupported, Damaged])
def test_the_command_line_prints_one_sentence(kind, capsys, monkeypatch):
    def refusing(topic: str = "") -> int:
        """Refuse."""
        raise kind("topic=3 is no word. Try a word")

    monkeypatch.setattr("jaxbounds.cli.guide.guide", refusing)
    assert main(["guide"]) == 2
    said = capsys.readouterr()
    assert said.err == "jaxbounds: topic=3 is no word. Try a word\n" and not said.out
