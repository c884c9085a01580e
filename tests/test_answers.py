"""Every command has --json, whose schema describes it, and prints nothing else."""

import json
from pathlib import Path

import pytest

from jaxbounds.cli import COMMANDS, main
from jaxbounds.cli import answers as asking

jsonschema = pytest.importorskip("jsonschema")
HEAD = """
import jaxbounds as jb

BOX = {"x": jb.Box(-1, 1, ())}
PAPER = jb.Paper(id="ans", title="Answers", statements=(
    jb.claim("ans.good", lambda x: x**2, "<=", 2.0, over=BOX),
))
"""


def told(capsys, *words, status=0):
    """Answers of commands to programs, checked against their schema."""
    capsys.readouterr()
    assert main([*words, "--json"]) == status, capsys.readouterr().err
    out = capsys.readouterr().out
    found = json.loads(out)
    jsonschema.validate(found, asking.answers_schema())
    assert found["command"] == words[0] and found["status"] == status
    return found


def test_every_command_has_json():
    """The commands that answer with an object; the others have a list, or are JSON themselves."""
    lists = {"verify", "list", "show", "errata", "constant", "diff", "primitives"}
    assert {*COMMANDS} == {*asking.COMMANDS, *lists, "schema"}


def test_new_replay_audit_and_guide_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("ans.py").write_text(HEAD)
    assert main(["verify", "ans.py", "--out", "out", "--jobs", "1"]) == 0
    again = told(capsys, "replay", "out/worst/ans.good.printed.npz", "--import", "ans.py")
    assert again["id"] == "ans.good" and again["ratios"]["printed"] == again["stored"] == 0.5
    sent = told(capsys, "audit", "ans", "--import", "ans.py", "--no-certify", "--out", "sent")
    assert [v["status"] for v in sent["verdicts"]] == ["holds"] and len(sent["digest"]) == 64
    made = told(capsys, "new", "fresh")
    assert made["folder"] == "fresh" and "statements.py" in made["files"]
    page = told(capsys, "guide", "programs")
    assert page["text"].startswith("# programs: ")
    assert "programs" in told(capsys, "guide")["topics"]
    assert len(told(capsys, "run")["experiments"]) > 10


def test_a_source_answers_with_its_items(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pylatexenc")
    monkeypatch.chdir(tmp_path)
    paper = Path(__file__).parent / "latex" / "paper"
    made = told(capsys, "new", "texed", "--from", str(paper))
    assert len(made["items"]) == 40
    assert {"id", "kind", "number", "label", "tex", "section", "place"} <= set(made["items"][0])
    proved = next(item for item in made["items"] if item["kind"] in ("Theorem", "Lemma"))
    told_first = f"ITEMS[{proved['id'].partition('.')[2]!r}].claim("
    assert told_first in (tmp_path / "texed" / "statements.py").read_text()


def test_certify_answers(tmp_path, monkeypatch, capsys):
    pytest.importorskip("flint")
    monkeypatch.chdir(tmp_path)
    false = HEAD.replace("2.0", "0.5")
    Path("ans.py").write_text(false)
    found = told(capsys, "certify", "ans.py", "--out", "out", "--jobs", "1")
    assert [c["form"] for c in found["certificates"]] == ["printed"]


def test_a_refusal_prints_no_json(tmp_path, capsys):
    assert main(["guide", "nothing", "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "topic='nothing' has no page" in said.err


def test_the_schema_is_printed(capsys):
    assert main(["schema", "answers"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["title"] == "answers" and set(found["properties"]) == set(asking.FIELDS)
