"""`jaxbounds certify` and `verify --certify`, as a user calls them."""

import json
import sys

import pytest

from jaxbounds.cli import main

MINE = """
import jax, jax.numpy as jnp
from jaxbounds.claims.statements import Domain, Form, Paper, Sides, Statement

def evaluate(i, size):
    moved = jnp.sum(jnp.abs(jax.nn.softmax(i["a"]) - jax.nn.softmax(i["b"])))
    far = jnp.max(jnp.abs(i["a"] - i["b"]))
    return Sides(moved, {"printed": 0.3 * far, "sharpened": far, "control": 0.01 * far})

def sample(key, size):
    a, b = jax.random.normal(key, (2, size["n"]))
    return {"a": a, "b": b}

WITH_ONE = Domain(
    name="a = (t, 0), b = 0", size={"n": 2}, lower=(0.25,), upper=(4.0,),
    chart=lambda p, size: {"a": jnp.append(p, 0.0), "b": jnp.zeros(2)},
)
PAPER = Paper(id="mine", title="Mine", statements=(Statement(
    id="mine.softmax", label="Lemma 1", formula="|softmax a - softmax b|_1 <= .3 |a - b|_inf",
    kind="inequality", evaluate=evaluate, sample=sample, sizes=({"n": 3},),
    forms=(Form(name="printed"), Form(name="sharpened", equality="b to a", domains=(WITH_ONE,))),
    control="a hundredth",
),))
"""


@pytest.fixture
def mine(tmp_path):
    """A file with a statement that is false as printed; nothing in it is about certificates."""
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_a_false_statement_of_ones_own_is_disproved(mine, tmp_path, capsys):
    plain = MINE.replace(", domains=(WITH_ONE,)", "")
    mine.write_text(plain)
    out = tmp_path / "out"
    options = ["--import", str(mine), "--out", str(out), "--jobs", "1"]
    assert main(["certify", "mine.softmax", *options]) == 0
    assert "disproved" in capsys.readouterr().out
    (certificate,) = json.loads((out / "certificates.json").read_text())
    assert certificate["word"] == "disproved"
    assert certificate["gap"] > 0.1
    witness = json.loads((out / "witnesses" / "mine.softmax.printed.json").read_text())
    assert witness["statement"] == "mine.softmax"
    # Both sides by hand at the instance that was found.
    numbers = {n: [eval(v) for v in leaf["exact"]] for n, leaf in witness["instance"].items()}
    import math

    exp = {n: [math.exp(v) for v in leaf] for n, leaf in numbers.items()}
    law = {n: [v / sum(leaf) for v in leaf] for n, leaf in exp.items()}
    moved = sum(abs(u - v) for u, v in zip(law["a"], law["b"]))
    low, high = map(float, witness["lhs"])
    assert low - 1e-14 <= moved <= high + 1e-14


def test_a_domain_of_ones_own_is_proved(mine, tmp_path, capsys):
    out = tmp_path / "out"
    options = ["--import", str(mine), "--out", str(out), "--jobs", "1"]
    assert main(["certify", "mine", *options]) == 0
    assert "proved on D" in capsys.readouterr().out


def test_verify_takes_certificates_along(mine, tmp_path, capsys):
    out = tmp_path / "out"
    options = ["--import", str(mine), "--out", str(out), "--jobs", "1", "--certify"]
    assert main(["verify", "mine", *options]) == 1  # it is not recorded to fail
    capsys.readouterr()
    folder = next(p.parent for p in tmp_path.rglob("verdicts.json"))
    printed, sharpened = json.loads((folder / "verdicts.json").read_text())
    assert printed["evidence"] == "disproved"
    assert printed["certificate"]["hypotheses"] == {}
    assert (folder / printed["witness_file"]).is_file()
    assert sharpened["evidence"] == "proved on D"
    page = (folder / "report.html").read_text()
    assert "disproved" in page
    assert "a = (t, 0), b = 0" in page


def test_without_flint_one_sentence_says_what_to_install(monkeypatch, capsys):
    for name in [
        n
        for n in sys.modules
        if n.startswith(("jaxbounds.certification", "jaxbounds.programs.balls"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("runs", "cli"):
        monkeypatch.delitem(sys.modules, f"jaxbounds.{name}.certify", raising=False)
    monkeypatch.setitem(sys.modules, "flint", None)
    assert main(["certify", "multihead.eq51"]) == 2
    assert "pip install 'jaxbounds[certify]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seconds", "0"], "seconds=0"),
        (["multihead.eq5"], "Try multihead.eq"),
        (["multihead.eq51", "--out", "/dev/null/x"], "/dev/null"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, words, capsys):
    assert main(["certify", *arguments]) in (2, 3)
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_audit_contradicts_no_verdict(tmp_path):
    """Ball arithmetic on draws of every shipped statement that holds."""
    assert main(["certify", "--crosscheck", "--seconds", "20", "--out", str(tmp_path)]) == 0
