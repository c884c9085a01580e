"""Output of `verify` about the question asked; a limit of time; suggestions that run."""

import json
import re
import time

import pytest

import jaxbounds as jb
from jaxbounds.cli import main
from jaxbounds.cli.screen import LINES
from jaxbounds.falsification.deadline import LEAST_GRACE, OutOfTime, limited, look, looking

HEAD = """
import time

import jax.numpy as jnp
import numpy as np

import jaxbounds as jb

def square(x):
    return x**2

def total(x):
    return jnp.sum(x**2)

BOX = {"x": jb.Box(-1, 1, ())}
LONG = {"x": jb.Box(-1, 1, "d")}
FEW = jb.Budget(samples=32, restarts=1, steps=5)

def slow(instance, size):
    time.sleep(0.05)
    return jb.Sides(lhs=np.float64(instance["x"]) ** 2, rhs={"printed": 2.0})

def lazy(**more):
    return jb.Statement(
        label="slow", formula="x^2 <= 2", kind="inequality", host=True, search="none",
        evaluate=slow, over=BOX, sizes=({},), forms=(jb.Form(name="printed", **more),),
        id="own.lazy",
    )
"""


def file_of(folder, *declared, more=""):
    file = folder / "own.py"
    inner = "".join(f"    {words},\n" for words in declared)
    file.write_text(
        f"{HEAD}\nPAPER = jb.Paper(id='own', title='Own', statements=(\n{inner}){more})\n"
    )
    return str(file)


TRUE = "jb.claim('own.true', square, '<=', 2.0, over=BOX, false=[0.5])"
FALSE = "jb.claim('own.false', square, '<=', 0.5, over=BOX)"
OPEN = "jb.claim('own.open', square, '<=', 2.0, over=BOX, false={'no twin': 3.0})"
KNOWN = (
    "jb.claim('own.known', square, '<=', 0.5, over=BOX, expected='fails', note='n', "
    "counterexample=jb.Counterexample(instance={'x': 1.0}, size={}, ratio=2.0))"
)
LOST = "jb.claim('own.lost', square, '<=', 2.0, over=BOX, expected='inconclusive')"


def verified(folder, capsys, *declared, more="", flags=()):
    file = file_of(folder, *declared, more=more)
    status = main(["verify", file, "--out", str(folder / "out"), "--jobs", "1", *flags])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize(
    ("declared", "status", "words"),
    [
        ((TRUE,), 0, "every false twin refuted"),
        ((FALSE,), 1, "1 form NOT shown to hold"),
        ((OPEN,), 1, "1 of 1 false twin NOT refuted"),
        ((TRUE, OPEN), 1, "1 of 2 false twins NOT refuted"),
    ],
)
def test_without_a_record_nothing_is_called_recorded(tmp_path, capsys, declared, status, words):
    found, out, err = verified(tmp_path, capsys, *declared)
    assert found == status and words in out
    assert "recorded" not in out + err and "errata" not in out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "recorded holds" not in page and "recorded fails" not in page


def test_with_a_record_it_is(tmp_path, capsys):
    status, out, _ = verified(tmp_path, capsys, KNOWN)
    assert status == 0 and "all as recorded" in out
    status, out, _ = verified(tmp_path, capsys, KNOWN, LOST)
    assert status == 1 and "1 NOT as recorded" in out and "(recorded:" in out


def test_ratios_on_record_are_a_record(tmp_path, capsys):
    assert verified(tmp_path, capsys, TRUE, flags=["--record"])[0] == 0
    status, out, _ = verified(tmp_path, capsys, TRUE.replace("2.0", "0.9"))
    assert status == 1 and "1 NOT as recorded" in out and "(recorded:" in out


def test_what_other_statements_show_is_not_counted(capsys, tmp_path):
    out = ["--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main(["verify", "qstr.asm1", *out]) == 0
    said = capsys.readouterr().out
    assert "errat" not in said and "median looseness" not in said
    assert main(["verify", "qstr.lem38.bias", *out]) == 0
    assert re.search(r"^\d+ errat", capsys.readouterr().out, re.MULTILINE)


def test_progress_without_a_terminal_is_a_few_lines(tmp_path, capsys):
    many = [f"jb.claim('own.c{i}', {i}.0, '<=', {i + 1}.0, over={{}})" for i in range(40)]
    status, _, err = verified(tmp_path, capsys, *many)
    lines = [line for line in err.splitlines() if re.match(r"\d+/40 ", line)]
    assert status == 0 and 1 <= len(lines) <= LINES and lines[-1].startswith("40/40")
    assert "about" in lines[0] and "in all" in lines[-1]


def test_what_is_suggested_can_be_pasted_whole(tmp_path, capsys):
    claims = (
        "jb.claim('own.long', total, '<=', 1.0, over=LONG, sizes={'d': 100}, budget=FEW)",
        "jb.claim('own.sizes', lambda d: d * 1.0, '<=', 2.0, over={}, sizes={'d': (1, 3)})",
    )
    _, out, _ = verified(tmp_path, capsys, *claims)
    assert "..." not in out and "alone" not in out
    code = re.findall(
        r"counterexample=(jb\.Counterexample\(.*?ratio=[\d.einf]+\))", out.replace("\n", "")
    )
    assert len(code) == 2
    stored = [eval(words, {"jb": jb}) for words in code]
    given = [words.replace("over=", f"expected='fails', note='n', counterexample={found}, over=")
             for words, found in zip(claims, code)]  # fmt: skip
    assert all(isinstance(one, jb.Counterexample) for one in stored)
    status, out, _ = verified(tmp_path / "out", capsys, *given)
    assert status == 0 and "all as recorded" in out, out
    assert stored[1].instance == {}
    found = jb.find_violation(lambda d: d * 1.0, 2.0, over={}, sizes={"d": (1, 3)})
    assert found and found.instance == {}


def test_a_statement_out_of_time_is_inconclusive_and_the_others_run(tmp_path, capsys):
    started = time.monotonic()
    prompt = "jb.claim('own.true', lambda d: d * 1.0, '<=', 2.0, over={}, sizes={'d': 1})"
    flags = ["--timeout", "1", "--json"]
    status, out, _ = verified(tmp_path, capsys, "lazy()", prompt, flags=flags)
    spent = time.monotonic() - started
    found = {(v["id"], v["form"]): v for v in json.loads(out)}
    late = found["own.lazy", "printed"]
    assert late["status"] == "inconclusive" and late["out_of_time"]
    assert "time limit" in late["reason"] and 0 < late["instances"] < 256
    assert late["worst_ratio"] is not None
    assert found["own.true", "printed"]["status"] == "holds" and status == 1
    assert spent < 256 * 0.05


def test_with_a_record_out_of_time_is_three(tmp_path, capsys):
    lazy = "lazy(expected='holds')"
    assert verified(tmp_path, capsys, lazy, flags=["--timeout", "0.3"])[0] == 3
    # The next run does not take over what was not done.
    status, _, err = verified(tmp_path, capsys, lazy, flags=["--timeout", "0.3"])
    assert status == 3 and "judged in the unfinished run" not in err


def test_functions_take_the_limit(tmp_path):
    file = file_of(tmp_path, "lazy()")
    (verdict,) = jb.falsify(jb.load_paper(file).statements[0], timeout=0.3)
    assert verdict.out_of_time and verdict.status == "inconclusive"
    assert jb.verify(file, timeout=0.3)[0].out_of_time
    found = jb.find_violation(lambda x: x, 2.0, over={"x": jb.Box(0, 1, ())}, timeout=0.001)
    assert not found
    for wrong in (0, -1, "1", float("nan")):
        with pytest.raises(ValueError, match="timeout="):
            jb.verify(file, timeout=wrong)


def test_a_violation_in_time_fails():
    false = jb.Statement(
        id="own.false", label="", formula="", kind="inequality", host=True, search="none",
        evaluate=lambda i, s: jb.Sides(lhs=1.0 + i["x"] ** 2, rhs={"printed": 0.5}),
        over={"x": jb.Box(-1, 1, ())}, sizes=({},), forms=(jb.Form(name="printed"),),
    )  # fmt: skip
    (verdict,) = jb.falsify(false, timeout=1)
    assert verdict.status == "fails" and not verdict.out_of_time


def test_the_clock_is_looked_at_between_calls():
    with limited(None):
        look()
    with limited(0.0), pytest.raises(OutOfTime):
        looking(lambda: None)()
    look()
    assert LEAST_GRACE > 0


def test_bad_limits_are_refused(tmp_path, capsys):
    for command in (["verify", "multihead.cor1.3"], ["audit", "multihead"]):
        assert main([*command, "--timeout", "0", "--out", str(tmp_path / "o")]) == 2
        assert "timeout=0" in capsys.readouterr().err
