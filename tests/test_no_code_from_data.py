"""No file of results runs code: imports come from the command line only."""

import importlib
import json
import sys

import pytest

import jaxbounds as jb
from jaxbounds.claims.sets.reading import sets_in
from jaxbounds.claims.sets.words import declared
from jaxbounds.cli import main
from jaxbounds.cli import new as new_command

OWN = """
from pathlib import Path

Path({mark!r}).write_text("ran")
"""


def _one_shard(folder, flags, experiment="multihead.fig2"):
    """A folder with the only shard of a run, as anybody could write it."""
    folder.mkdir()
    stored = {"experiment": experiment, "flags": flags, "index": 1, "count": 1, "about": {}}
    (folder / "shard.json").write_text(
        json.dumps(stored | {"done": True, "format": "jaxbounds-shard-1"})
    )
    return folder


def _refused(capsys, *words):
    assert main(["merge", *map(str, words)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    return said[0]


@pytest.mark.parametrize("before", [[], ["--preset", "default"], ["--seed", "3"]])
def test_merge_imports_no_file_that_a_shard_names(before, tmp_path, capsys):
    evil, mark = tmp_path / "evil.py", tmp_path / "ran"
    evil.write_text(OWN.format(mark=str(mark)))
    shard = _one_shard(tmp_path / "shard", [*before, "--import", str(evil)])
    said = _refused(capsys, shard, "--out", tmp_path / "out")
    assert str(shard / "shard.json") in said and f"--import {evil}" in said
    assert not mark.exists() and not (tmp_path / "out").exists()


def test_merge_imports_the_file_that_the_command_names(tmp_path, capsys):
    """The file is then the user's code; the file of the shard is still not."""
    own, mark = tmp_path / "own.py", tmp_path / "ran"
    own.write_text(OWN.format(mark=str(mark)))
    evil, bad = tmp_path / "evil.py", tmp_path / "evil_ran"
    evil.write_text(OWN.format(mark=str(bad)))
    shard = _one_shard(tmp_path / "shard", ["--import", str(evil)])
    _refused(capsys, shard, "--out", tmp_path / "out", "--import", own)  # of another run
    assert mark.exists() and not bad.exists()


@pytest.mark.parametrize("flag", ["--tyro-write-completion", "--tyro_write_completion"])
def test_merge_obeys_no_command_that_a_shard_hides_among_its_flags(flag, tmp_path, capsys):
    written = tmp_path / "written"
    shard = _one_shard(tmp_path / "shard", [flag, "bash", str(written)])
    assert flag in _refused(capsys, shard, "--out", tmp_path / "out")
    assert not written.exists()


@pytest.mark.parametrize(
    "flags",
    [
        ["--help"],
        ["--no-field", "1"],
        ["--seed", "x"],
        ["--seed"],
        [1],
        ["--preset", None],
    ],
)
def test_flags_that_are_no_fields_end_in_a_sentence(flags, tmp_path, capsys):
    shard = _one_shard(tmp_path / "shard", flags)
    assert main(["merge", str(shard), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert "shard.json" in said.err and not said.out


LINE = {
    "code": "import jax.numpy as jnp\n\n\ndef left_side(x):\n    return x\n\n\n"
    "def right_side(d):\n    return 0.5 * d\n",
    "lhs": ["x"],
    "rhs": ["d"],
    "over": "{'x': jb.Box(0, 1)}",
    "sizes": [{"d": 1}],
    "relation": "<=",
    "error": None,
}
SAVED = {"ratio": 2.0, "instance": {"x": 1.0}, "instance_ratio": 2.0, "size": {"d": 1}}
CALL = "__import__('pathlib').Path('ran').touch()"


def _new_from(folder, monkeypatch, name, changed, **line):
    monkeypatch.chdir(folder)
    (folder / "line.json").write_text(json.dumps(SAVED | changed | {"line": LINE | line}))
    return main(["new", name, "--from", "line.json"])


@pytest.mark.parametrize("line", [
    {"over": f"{{'x': {CALL}}}"},
    {"over": f"{{'x': jb.Box({CALL}, 1)}}"},
    {"over": f"{{'x': jb.Box(0, 1, shape={CALL})}}"},
    {"over": f"{{{CALL}: jb.Box(0, 1)}}"},
    {"over": "{'x': jb.verify('multihead')}"},
    {"over": "{'x': jb.Box(*[0, 1])}"},
    {"over": "{**{}}"},
    {"over": "{'x': jb.Box(0, 1)}" + f", judges=({CALL},)"},
    {"over": "{'x': jb.Box('__import__', 1)} if " + CALL + " else {}"},
    {"over": "(" * 5000},
    {"over": 3},
    {"lhs": [f'x"]) + {CALL} + model.left_side(instance["x']},
    {"rhs": [CALL]},
    {"error": [CALL]},
    {"error": 3},
    {"sizes": [{CALL: 1}]},
    {"sizes": [{"d": float("nan")}]},
    {"sizes": 3},
    {"relation": f'<=", evaluate={CALL}, relation="<='},
    {"code": LINE["code"] + f"\n\n{CALL}\n"},
    {"code": LINE["code"] + f"\n\nz = {CALL}\n"},
    {"code": LINE["code"] + "\n\nif True:\n    pass\n"},
    {"code": "def left_side(:"},
    {"code": 3},
])  # fmt: skip
def test_a_line_with_more_than_names_numbers_and_sets_is_refused(
    line, tmp_path, monkeypatch, capsys
):
    assert _new_from(tmp_path, monkeypatch, "fresh11", {}, **line) == 2
    said = capsys.readouterr()
    assert "line.json" in said.err and "Try" in said.err and not said.out
    assert sorted(file.name for file in tmp_path.iterdir()) == ["line.json"]


@pytest.mark.parametrize("changed", [
    {"size": {CALL: 1}},
    {"size": {"d": float("inf")}},
    {"instance": {"x": float("nan")}},
    {"instance_ratio": CALL},
    {"instance_ratio": "inf"},
    {"instance": None, "ratio": None, "instance_ratio": None},
    {"sizes": []},
    {"sizes": [CALL]},
])  # fmt: skip
def test_a_line_with_other_findings_than_numbers_is_refused(changed, tmp_path, monkeypatch, capsys):
    assert _new_from(tmp_path, monkeypatch, "fresh11", changed) == 2
    assert "line.json" in capsys.readouterr().err
    assert not (tmp_path / "fresh11").exists()


@pytest.mark.parametrize("name", ['x"', "x\\", "x\n", "{CALL}", "\u2028"])
def test_words_of_an_instance_stay_words(name, tmp_path, monkeypatch):
    """Beside the equality case, which a name of the instance would end early."""
    best = {"where": "attained", "ratio": 1.0, "instance_ratio": 1.0, "instance": {name: 1.0}}
    assert _new_from(tmp_path, monkeypatch, "fresh12", best) == 0
    text = (tmp_path / "fresh12" / "statements.py").read_text()
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        module = importlib.import_module("fresh12.statements")
    finally:
        for loaded in [one for one in sys.modules if one.split(".")[0] == "fresh12"]:
            del sys.modules[loaded]
    assert module.CLAIM.forms[0].equality.startswith("at ") and "evaluate=_claim" in text
    assert not (tmp_path / "ran").exists()


def test_the_code_is_printed_before_it_is_written(tmp_path, monkeypatch, capsys):
    """With all that a terminal would hide."""
    code = LINE["code"] + "# \x1b[2K\x1b[1A \u202e\n"
    seen = []
    usual = new_command.say

    def noted(text, /, *, errors):
        usual(text, errors=errors)
        there = (tmp_path / "fresh13").exists() or (tmp_path / ".fresh13.partial").exists()
        seen.append((capsys.readouterr().out, there))

    monkeypatch.setattr(new_command, "say", noted)
    assert _new_from(tmp_path, monkeypatch, "fresh13", {}, code=code) == 0
    shown = [text for text, there in seen if not there]
    assert any("def left_side(x):" in text and r"\x1b[2K" in text for text in shown)
    assert any("jb.Box(0)" in text for text in shown)
    assert not any("\x1b" in text or "\u202e" in text for text, _ in seen)


@pytest.mark.parametrize("one", [
    jb.Ball(1, "d"), jb.Ball("R", ("n", "d"), p=1), jb.Ball(1, "d", p=float("inf")),
    jb.Sphere(2, 3), jb.Box(-1.5, float("inf"), "d"), jb.Box(float("-inf"), 0), jb.Reals("d"),
    jb.Simplex("d", total=2), jb.Orthogonal(("n", "d")), jb.OperatorNorm("R", "d"),
    jb.Matrices(norm="row sum", at_most=2), jb.PSD("d", norm="trace", at_most=1), jb.Signs(4),
    jb.Each(jb.Sphere(1, "d"), 3), jb.Each(jb.Matrices("d", norm="nuclear")), jb.SubSimplex("n", 2),
    jb.Integers(0, "d"), jb.OneOf([1.0, -2.0], [3.0, 4.0]), jb.OneOf(0, 1),
], ids=repr)  # fmt: skip
def test_every_set_that_is_written_is_read_back(one):
    assert sets_in(declared({"x": one, "y": {"z": one}})) == {"x": one, "y": {"z": one}}
