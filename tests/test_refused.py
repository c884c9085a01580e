"""One ill-formed statement costs only itself; a refusal names the statement and the field."""

import json

import pytest

import jaxbounds as jb
from jaxbounds.cli import main
from jaxbounds.papers.loading import load_paper

HEAD = """
import jaxbounds as jb

def left(x):
    return x**2

def right(x):
    return 2 + x**2

BOX = {"x": jb.Box(-1, 1, ())}
FEW = jb.Budget(samples=32, restarts=1, steps=5)
EVALUATE = lambda i, s: jb.Sides(lhs=left(i["x"]), rhs={"printed": right(i["x"])})
GIVEN = dict(label="L", formula="f", kind="inequality", evaluate=EVALUATE, over=BOX,
             sizes=({"d": 1},), forms=(jb.Form(name="printed"),))
"""
BAD = {
    "level": ("jb.Statement(id='bad.level', **{**GIVEN, 'kind': 'probability'}, level='t')",
              "'bad.level'", "level must be float or None, got 't'"),
    "form": ("jb.Statement(id='bad.form', **{**GIVEN, "
             "'forms': (jb.Form(name='printed', note=3),)})",
             "'bad.form'", "form 'printed': note must be str, got 3"),
    "stored": ("jb.Statement(id='bad.stored', **{**GIVEN, 'forms': (jb.Form(name='printed', "
               "counterexample=jb.Counterexample(instance={}, ratio='r')),)})",
               "'bad.stored'", "ratio must be float, got 'r'"),
    "unknown": ("jb.Statement(id='bad.unknown', lable='L', **GIVEN)", "'bad.unknown'", "'lable'"),
    "missing": ("jb.Statement(id='bad.missing')", "'bad.missing'", "'formula'"),
    "sets": ("jb.Statement(id='bad.sets', **{**GIVEN, 'over': {'x': 1}})",
             "'bad.sets'", "over['x']=1 is not a set"),
    "claim": ("jb.claim('bad.claim', left, '<=', 2.0, over=BOX, tolerence=1)",
              "'bad.claim'", "'tolerence'"),
    "side": ("jb.claim('bad.side', lambda y: y, '<=', 2.0, over=BOX)", "'bad.side'", "nt='y'"),
    "relation": ("jb.claim('bad.relation', left, '!=', 2.0, over=BOX)", "'bad.relation'",
                 "relation='!=': expected"),
    "id": ("jb.claim('No Id', left, '<=', 2.0, over=BOX)", "'No Id'", "expected lower case"),
    "stranger": ("jb.claim('other.x', left, '<=', 2.0, over=BOX)", "'other.x'", "must start with"),
    "twice": ("jb.claim('bad.good', left, '<=', 2.0, over=BOX)", "'bad.good'", "another statement"),
    "set": ("jb.claim('bad.set', left, '<=', 2.0, over={'x': jb.Box(1, -1, 2.5)})",
            "'bad.set'", "over['x']: shape=2.5"),
    "stack": ("jb.claim('bad.stack', left, '<=', 2.0, over={'x': jb.Each(jb.Reals(2.5), 'n')})",
              "'bad.stack'", "over['x']: shape=2.5"),
    "norm": ("jb.claim('bad.norm', left, '<=', 2.0, over={'x': jb.Matrices(norm='big')})",
             "'bad.norm'", "norm='big' is unknown"),
    "radius": ("jb.claim('bad.radius', left, '<=', 2.0, over={'x': jb.OperatorNorm(R=None)})",
               "'bad.radius'", "None"),
    "erratum": ("jb.claim('bad.erratum', left, '<=', 2.0, over=BOX, erratum='E9')",
                "'bad.erratum'", "unknown erratum"),
}  # fmt: skip
GOOD = "jb.claim('bad.good', left, '<=', right, over=BOX, budget=FEW)"


def file_of(folder, *declared):
    file = folder / "bad.py"
    inner = "".join(f"    {words},\n" for words in declared)
    text = f"{HEAD}\nPAPER = jb.Paper(id='bad', title='Bad', statements=(\n{inner}))\n"
    file.write_text(text)
    return file


@pytest.mark.parametrize("name", BAD)
def test_a_refusal_names_the_statement_and_the_field(tmp_path, name):
    words, statement, field = BAD[name]
    paper = load_paper(str(file_of(tmp_path, GOOD, words)))
    good, bad = paper.statements
    assert not good.refused and statement in bad.refused and field in bad.refused
    assert paper.refused == (bad.refused,) and bad.id.startswith("bad.") and bad.id != good.id


NOT_JUDGED = {
    "a list": ("jb.claim('bad.side', lambda y: y, '<=', 2.0, over=BOX, false=[0.5, right])",
               ["printed", "false 0.5", "false right"]),
    "names": ("jb.claim('bad.side', left, '!=', 2.0, over=BOX, false={'half': 0.5})",
              ["printed", "false half"]),
    "ill formed": ("jb.claim('bad.side', left, '<=', 2.0, over=BOX, false=0.5)", ["printed"]),
    "another statement": ("jb.claim('bad.good', left, '<=', 2.0, over=BOX, false=[0.5])",
                          ["printed", "false 0.5"]),
    "forms": ("jb.Statement(id='bad.forms', lable='L', **{**GIVEN, 'forms': ("
              "jb.Form(name='printed'), jb.Form(name='sharpened'))})", ["printed", "sharpened"]),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_JUDGED)
def test_a_refused_claim_names_its_twins_as_not_judged(tmp_path, name):
    words, forms = NOT_JUDGED[name]
    found = jb.verify(file_of(tmp_path, GOOD, words), out=tmp_path / "out", jobs=1)
    assert [v.form for v in found if v.status == "error"] == forms


def test_all_others_run(tmp_path, capsys):
    file = file_of(tmp_path, *(words for words, *_ in BAD.values()), GOOD)
    found = jb.verify(file, out=tmp_path / "out", jobs=1)
    statuses = [v.status for v in found]
    assert statuses.count("error") == len(BAD) and statuses.count("holds") == 1
    assert found.status == 3
    alone = ["verify", str(file), "bad.refused-*", "--out", str(tmp_path / "ids"), "--jobs", "1"]
    assert main(alone) == 3
    capsys.readouterr()
    named = ["verify", str(file), "bad.side", "--out", str(tmp_path / "side"), "--json"]
    assert main(named) == 3
    (one,) = json.loads(capsys.readouterr().out)
    assert "argument='y'" in one["reason"] and one["id"] == "bad.side"


TWINS = {
    "claim": "jb.claim('bad.twins', left, '!=', 2.0, over=BOX, false={'half': 0.5, 'third': 0.3})",
    "statement": (
        "jb.Statement(id='bad.twins', **{**GIVEN, 'over': {'x': 1}, 'forms': tuple("
        "jb.Form(name=name) for name in ('printed', 'false half', 'false third'))})"
    ),
    "paper": (
        "jb.claim('bad.twins', left, '<=', 2.0, over=BOX, erratum='E9', "
        "false={'half': 0.5, 'third': 0.3})"
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_the_twins_of_a_refused_statement_are_named_and_counted(tmp_path, capsys, name):
    more = "jb.claim('bad.more', left, '<=', 2.0, over=BOX, false=[0.5], budget=FEW)"
    file = file_of(tmp_path, TWINS[name], more)
    assert main(["verify", str(file), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 3
    said = capsys.readouterr().out
    assert "2 of 3 false twins NOT judged" in said and "NOT refuted" not in said
    verdicts = json.loads((tmp_path / "out" / "verdicts.json").read_text())
    assert [(v["form"], v["status"]) for v in verdicts if v["id"] == "bad.twins"] == [
        ("printed", "error"), ("false half", "error"), ("false third", "error"),
    ]  # fmt: skip


def test_ill_formed_twins_are_no_forms_of_their_placeholder(tmp_path):
    words = "jb.claim('bad.twins', left, '<=', 2.0, over=BOX, false=0.5)"
    (bad,) = load_paper(str(file_of(tmp_path, words))).statements
    assert bad.refused and [form.name for form in bad.forms] == ["printed"]


def test_naming_others_is_enough_to_be_spared(tmp_path):
    file = file_of(tmp_path, *(words for name, (words, *_) in BAD.items() if name != "twice"), GOOD)
    out = str(tmp_path / "out")
    assert main(["verify", str(file), "bad.good", "--out", out, "--jobs", "1"]) == 0


def test_outside_of_files_constructors_raise():
    with pytest.raises(TypeError, match=r"'t\.x'.*level must be float or None, got 't'"):
        jb.Statement(
            id="t.x", label="", formula="", kind="probability", level="t", forms=(), sizes=(),
            evaluate=lambda instance, size: None,
        )  # fmt: skip
    with pytest.raises(TypeError, match="note must be str"):
        jb.Form(name="printed", note=3)
    with pytest.raises(ValueError, match="several statements of id"):
        one = jb.claim("t.x", 1.0, "<=", 2.0, over={}, sizes={"d": 1})
        jb.Paper(id="t", title="t", statements=(one, one))
