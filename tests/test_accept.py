"""An erratum that was found is written for review; and what users of the loop met, in sentences."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.cli import main
from jaxbounds.cli.diff import changes
from jaxbounds.falsification import verdicts_on

CLAIMS = """
import jax.numpy as jnp
import jaxbounds as jb


def _claim(instance, size):
    x = instance["x"]
    bound = jnp.sqrt(jnp.sum(x**2))
    return jb.Sides(lhs=jnp.sum(jnp.abs(x)), rhs={"printed": bound, "control": 0.1 * bound})


ONE = jb.Statement(
    id="mine.one", label="Lemma 1", formula="|x|_1 <= |x|_2", kind="inequality", evaluate=_claim,
    over={"x": jb.Ball(1, "d")}, sizes=({"d": 2},), forms=(jb.Form(name="printed"),),
    control="a tenth", budget=jb.Budget(samples=32, restarts=2, steps=20),
)
PAPER = jb.Paper(id="mine", title="Mine", statements=(ONE,))
"""


def test_what_fails_is_written_for_review_and_never_over(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    Path("claims.py").write_text(CLAIMS)
    assert main(["verify", "claims.py", "--jobs", "1", "--accept"]) == 1
    file = Path("claims-records/accepted.py")
    assert f"for review: {file.resolve()}" in capsys.readouterr().err.replace(str(file), str(
        file.resolve()
    )) or file.exists()  # fmt: skip
    told = {}
    exec(file.read_text(), told)
    form, erratum = told["MINE_ONE_PRINTED"], told["MINE_ONE_PRINTED_ERRATUM"]
    assert form.expected == "fails" and form.erratum == erratum.id == "E1"
    x = np.array(form.counterexample.instance["x"])
    ratio = np.sum(np.abs(x)) / np.linalg.norm(x)
    assert form.counterexample.ratio == pytest.approx(ratio) and ratio > 1.01
    before = file.read_text()
    assert main(["verify", "claims.py", "--jobs", "1", "--accept"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert file.read_text() == before
    # Declared as it stands there, the claim is as recorded.
    recorded = CLAIMS.replace('jb.Form(name="printed")', "FORM").replace(
        "ONE = jb.", before.replace('"""', "#", 1).split("import jaxbounds as jb\n")[1]
        .replace("MINE_ONE_PRINTED = ", "FORM = ") + "\n\nONE = jb.", 1,
    ).replace("statements=(ONE,)", "statements=(ONE,), errata=(MINE_ONE_PRINTED_ERRATUM,), "
              "survives='Nothing.'")  # fmt: skip
    Path("again.py").write_text(recorded)
    assert main(["verify", "again.py", "--jobs", "1"]) == 0


def _sides(lhs, control):
    return jb.Sides(lhs=lhs, rhs={"printed": 9.0, "control": control})


def _statement(**options):
    given = {"evaluate": lambda i, s: _sides(jnp.sum(i["x"]), -9.0)} | options
    return jb.Statement(
        id="met.one", label="", formula="", kind="inequality", sizes=({"d": 2},),
        forms=(jb.Form(name="printed"),), control="-9",
        budget=jb.Budget(samples=16, restarts=0), **given,
    )  # fmt: skip


def test_cases_without_a_leading_axis_are_a_sentence():
    statement = _statement(cases=lambda size: {"x": jnp.zeros((3, 2)), "k": jnp.ones(())})
    with pytest.raises(ValueError, match=r"leading axes.* \['k'\] of shape \(\)"):
        verdicts_on(statement)


def test_an_entry_that_is_not_there_is_a_sentence():
    statement = _statement(
        over={"x": jb.Ball(1, "d")},
        evaluate=lambda i, s: jb.Sides(lhs=i["y"], rhs={"printed": 1.0, "control": 0.0}),
    )
    with pytest.raises(ValueError, match="reads entry='y'; expected one of x"):
        verdicts_on(statement)


@pytest.mark.parametrize(
    "search, says", [("none", "exclude these instances"), ("gradient", "and a `project`")]
)
def test_the_hint_for_nan_of_integers_knows_whether_there_was_a_search(search, says):
    statement = _statement(
        over={"x": jb.Integers(-3, 3, "d")}, search=search,
        evaluate=lambda i, s: _sides(jnp.log(i["x"][0].astype(float)), -99.0),
    )  # fmt: skip
    assert says in verdicts_on(statement)[0].reason


@pytest.mark.parametrize("search", ["none", "gradient"])
def test_the_hint_for_nan_of_floats_shows_a_hypothesis_for_either_search(search):
    statement = _statement(
        over={"x": jb.Ball(1, "d")}, search=search,
        evaluate=lambda i, s: _sides(jnp.log(i["x"][0]), -99.0),
    )  # fmt: skip
    assert '{"x>0": jnp.all(i["x"] > 0)}' in verdicts_on(statement)[0].reason


def test_diff_of_verdicts_alone(tmp_path, monkeypatch, capsys):
    statement = _statement(over={"x": jb.Ball(1, "d")})
    a, b = (verdicts_on(statement, seed=seed) for seed in (0, 1))
    as_forms = lambda found: {(v.id, v.form): v for v in found}
    assert [c.what for c in changes(as_forms(a), as_forms(b))] in ([], ["ratio"])
    assert main(["errata", "nope"]) == 2
    assert "--import FILE" in capsys.readouterr().err
