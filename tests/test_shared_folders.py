"""`verify`, `certify` and `constant` in folders that others use too: files of the user's, links, a
second command, damage."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jaxbounds.cli import main
from jaxbounds.runs.folder import JOURNAL, Folder, Kept, verdicts_in

CLAIMS = """
import jax
import jax.numpy as jnp
from jaxbounds import Form, Paper, Sides, Statement
from jaxbounds.claims.statements import Budget

def product(x, y):
    return jnp.sqrt(x @ x) * jnp.sqrt(y @ y)

def sample(key, size):
    x, y = jax.random.normal(key, (2, size["d"]))
    return {"x": x, "y": y}

def evaluate(instance, size):
    x, y = instance["x"], instance["y"]
    bound = product(x, y)
    return Sides(lhs=jnp.abs(x @ y), rhs={"printed": 0.5 * bound, "control": 0.4 * bound})

def claim(name):
    return Statement(
        id=name, label=name, formula="|<x, y>| <= |x| |y| / 2", kind="inequality",
        judges=(product,), sample=sample, evaluate=evaluate, sizes=({"d": 2},),
        forms=(Form(name="printed"),), control="a factor 0.4",
        search="none", budget=Budget(samples=8),
    )

PAPER = Paper(id="mine", title="Mine", statements=(claim("mine.a"), claim("mine.b")))
"""

FOREIGN = [
    "unfinished/notes.txt", "unfinished/worst/mine.npz", "unfinished/jobs/log",
    "worst/mine.npz", "worst/notes.txt", "worst/deep/x.npz", "counterexamples/mine.npz",
    "counterexamples/mine.json", "witnesses/mine.json", "slack/mine.svg", "my_dataset.npz",
    "precious.npz.bak", ".probe", "notes.md", "jobs/log", "T8/state.txt", "state.npz",
    "checkpoints/mine.npz", "figure.pdf", "raw/chunk-000000000.npz",
]  # fmt: skip


@pytest.fixture
def claims(tmp_path, monkeypatch):
    """A file of claims that fail, and a private place for compiled programs."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(CLAIMS)
    return ["--import", str(tmp_path / "mine.py"), "--out", "out"]


def planted(folder, names=FOREIGN):
    """Files of the user's, each with its own content."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(f"mine: {name}".encode())
    return {folder / name: f"mine: {name}".encode() for name in names}


def test_files_of_the_user_survive_each_command(claims):
    before = planted(Path("out"))
    for _ in range(2):
        assert main(["verify", "mine", "--jobs", "1", *claims]) == 1
        assert main(["verify", "mine.a", "--jobs", "1", *claims]) == 1
        assert main(["certify", "mine.a", "--jobs", "1", *claims]) == 0
        assert main(["constant", "mine.a", "--seconds", "0.2", "--jobs", "1", *claims]) in (0, 1)
    assert main(["plot", "out", "mine", *claims[:2]]) == 0
    assert {path: path.read_bytes() for path in before} == before
    assert json.loads(Path("out/verdicts.json").read_text())


@pytest.mark.parametrize(
    "name",
    [
        "verdicts.json",
        "run.json",
        "report.html",
        JOURNAL,
        "unfinished",
        "unfinished/worst/mine.a.printed.npz",
        "counterexamples/mine.a.printed.npz",
    ],
)
def test_a_file_of_the_user_at_a_name_of_the_run(name, claims, capsys):
    before = planted(Path("out"), [name])
    assert main(["verify", "mine.a", "--jobs", "1", *claims]) == 1
    assert "out-2" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in before} == before
    assert [p.name for p in Path("out").rglob("*") if p.is_file() and p.name[0] != "."] == [
        Path(name).name
    ]
    assert json.loads(Path("out-2/verdicts.json").read_text())


def test_certificates_of_the_user_stay(claims, capsys):
    before = planted(Path("out"), ["certificates.json", "constants.json"])
    assert main(["certify", "mine.a", "--jobs", "1", *claims]) == 0
    assert main(["constant", "mine.a", "--seconds", "0.2", "--jobs", "1", *claims]) in (0, 1)
    assert {path: path.read_bytes() for path in before} == before
    assert "out-2" in capsys.readouterr().err
    for name in ("certificates.json", "constants.json"):
        assert json.loads(Path("out-2", name).read_text())


@pytest.mark.default_cases("null")
@pytest.mark.parametrize("damaged", ["", "[", '[{"id": "mine.b"}]', "null", "[" * 10**5, "\0"])
def test_certificates_never_vanish(damaged, claims, capsys):
    assert main(["certify", "mine.b", "--jobs", "1", *claims]) == 0
    assert main(["certify", "mine.a", "--jobs", "1", *claims]) == 0
    file = Path("out/certificates.json")
    assert [one["id"] for one in json.loads(file.read_text())] == ["mine.b", "mine.a"]
    file.write_text(damaged)
    assert main(["certify", "mine.a", "--jobs", "1", *claims]) == 0
    assert Path("out/certificates.aside-1.json").read_text() == damaged
    said = capsys.readouterr().err
    assert "out/certificates.json is damaged" in said and "certificates.aside-1.json" in said
    assert [one["id"] for one in json.loads(file.read_text())] == ["mine.a"]


@pytest.mark.default_cases("-certify", "NAME-certify", "helper.py-certify")
@pytest.mark.parametrize("command", ["certify", "constant"])
@pytest.mark.parametrize("change", ["", "helper.py", "NAME"])
def test_entries_of_an_earlier_state_stand_aside(command, change, claims, monkeypatch, capsys):
    """As a claim's helper, or a variable, was another one when they were made."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("helper.py").write_text("C = 2\n")
    Path("mine.py").write_text("import helper\n" + Path("mine.py").read_text())
    name = {"certify": "certificates", "constant": "constants"}[command]
    more = ["--jobs", "1", *claims, "--seconds", "1"]
    assert main([command, "mine.b", *more]) in (0, 1)
    before = Path(f"out/{name}.json").read_text()
    if change == "NAME":
        monkeypatch.setenv(change, "1")
    elif change:
        Path(change).write_text("C = 3\n")
    capsys.readouterr()
    assert main([command, "mine.a", *more]) in (0, 1)
    ids = [one["id"] for one in json.loads(Path(f"out/{name}.json").read_text())]
    said, aside = capsys.readouterr().err, Path(f"out/{name}.aside-1.json")
    if not change:
        assert ids == ["mine.b", "mine.a"] and not aside.exists()
        return
    assert ids == ["mine.a"] and aside.read_text() == before
    why = {"NAME": "an environment variable changed", "helper.py": "the file {}/helper.py changed"}
    words = f"holds outdated entries, such as mine.b printed ({why[change].format(Path.cwd())}"
    assert words in said and aside.name in said


def test_links_lead_nowhere(claims, tmp_path, capsys):
    far = tmp_path / "far"
    before = planted(far, ["a.npz", "b/c.npz", "probe"])
    Path("out").mkdir()
    Path("out/.probe").symlink_to(far / "probe")
    Path("out/worst").symlink_to(far)
    assert main(["verify", "mine.a", "--jobs", "1", *claims]) in (1, 2)
    for name in ("unfinished", "verdicts.json", ".jaxbounds"):
        Path("linked").mkdir(exist_ok=True)
        Path("linked", name).symlink_to(far / "a.npz" if "." in name else far)
        assert main(["verify", "mine.a", "--jobs", "1", *claims[:2], "--out", "linked"]) == 2
        assert "is a link" in capsys.readouterr().err
        Path("linked", name).unlink()
    assert {path: path.read_bytes() for path in before} == before
    assert {path for path in far.rglob("*") if path.is_file()} == set(before)


def command(*words):
    program = "import sys; from jaxbounds.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_commands_at_once_on_one_folder_both_succeed(claims):
    same = ["verify", "mine", "--jobs", "1", *claims]
    running = [command(*same), command(*same), command(*same, "--seed", "1")]
    ended = [one.communicate(timeout=250) for one in running]
    assert [one.returncode for one in running] == [1, 1, 1], ended
    found = {
        path.parent.name: json.loads(path.read_text()) for path in Path().glob("*/verdicts.json")
    }
    assert sorted(found) == ["out", "out-2"]
    for folder, verdicts in found.items():
        assert [v["id"] for v in verdicts] == ["mine.a", "mine.b"]
        assert len({v["seed"] for v in verdicts}) == 1
        for v in verdicts:
            assert (
                Path(folder, v["worst_file"]).is_file() and Path(folder, v["shrunk_file"]).is_file()
            )
    assert {v["seed"] for verdicts in found.values() for v in verdicts} == {0, 1}
    assert any("out-2" in err for _, err in ended)


@pytest.fixture
def judged(claims):
    """A folder of verdicts."""
    assert main(["verify", "mine", "--jobs", "1", *claims]) == 1
    return claims


@pytest.mark.default_cases(
    '{"a": {"b": []}}-verdicts.json',
    "text6-failed.json",
    "3-run.json",
)
@pytest.mark.parametrize("name", ["verdicts.json", "run.json", "failed.json"])
@pytest.mark.parametrize("text", ["", "{", "[1]", "[[]]", "3", '{"a": {"b": []}}', "[" * 10**5])
def test_damage_is_set_aside_and_named(name, text, judged, capsys):
    Path("out", name).write_text(text)
    for _ in range(2):
        assert main(["verify", "mine", "--jobs", "1", "--last-failed", *judged]) == 1
        verdicts = json.loads(Path("out/verdicts.json").read_text())
        assert [v["id"] for v in verdicts] == ["mine.a", "mine.b"]
    kept = [path.read_text() for path in Path("out").glob("*.aside-*")]
    assert kept == [text] or (name == "run.json" and text == "3")
    if kept:
        assert f"out/{name}" in capsys.readouterr().err


def test_a_verdict_that_was_edited_is_not_believed(judged, capsys):
    file = Path("out/verdicts.json")
    text = file.read_text()
    file.write_text(text.replace('"fails"', '"holds"', 1))
    assert main(["verify", "mine.b", "--jobs", "1", *judged]) == 1
    assert "somebody changed the file" in capsys.readouterr().err
    assert {v["status"] for v in json.loads(file.read_text())} == {"fails"}


def test_a_comparison_leaves_out_verdicts_that_were_edited(judged, capsys):
    shutil.copytree("out", "other")
    assert main(["diff", "out", "other"]) == 0
    file = Path("other/verdicts.json")
    file.write_text(file.read_text().replace('"fails"', '"holds"', 1))
    capsys.readouterr()
    assert main(["diff", "out", "other"]) == 2
    said = capsys.readouterr()
    assert "somebody changed the file" in said.err and "holds" not in said.out
    Path("other/.jaxbounds").write_text("?")
    shutil.copy("out/verdicts.json", "other/verdicts.json")
    assert main(["diff", "out", "other"]) == 0
    assert "the settings of other are ignored" in capsys.readouterr().err
    Path("other/.jaxbounds").unlink()
    file.write_text(file.read_text().replace('"fails"', '"holds"', 1))
    about = json.loads(Path("other/run.json").read_text())
    del about["files"]  # as an earlier version left it
    Path("other/run.json").write_text(json.dumps(about))
    assert main(["diff", "out", "other"]) == 1


@pytest.mark.parametrize(
    "change, words",
    [
        (["--seed", "1"], "seed was 0 and is 1"),
        (["--thorough", "--seed", "2"], "seed was 0 and is 2, and 1 more"),
        (["NAME"], "an environment variable changed"),
        (["helper.py"], "the file {here}/helper.py changed"),
        (["mine.py"], "the file {here}/mine.py changed, and "),
    ],
)
def test_another_run_is_told_by_what_differs(change, words, claims, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("helper.py").write_text("C = 2\n")
    file = Path("mine.py")
    file.write_text("import helper\n" + file.read_text())
    assert main(["verify", "mine", "--jobs", "1", *claims]) == 1
    if change == ["NAME"]:
        monkeypatch.setenv("NAME", "2")
    elif change[0].endswith(".py"):
        with open(change[0], "a") as one:
            one.write("D = 3\n")
    flags = change if change[0].startswith("--") else []
    assert main(["verify", "mine.b", "--jobs", "1", *claims, *flags]) == 1
    words = words.format(here=Path.cwd())
    said = capsys.readouterr().err
    assert f"out holds another run, since {words}" in said
    assert "; the results go to out-mine.b" in said


def test_wrong_types_are_no_verdicts(judged):
    stored = json.loads(Path("out/verdicts.json").read_text())
    for name in stored[0]:
        for wrong in ({"a": [1]}, [[1]], True, 1e400, "\0", None):
            stored[0][name], before = wrong, stored[0][name]
            Path("other").mkdir(exist_ok=True)
            Path("other/verdicts.json").write_text(json.dumps(stored))
            for found in verdicts_in(Path("other")).values():
                assert all(isinstance(v.id, str) for v in found)
            stored[0][name] = before
    stored[0]["worst_file"] = "../../x.npz"
    Path("other/verdicts.json").write_text(json.dumps(stored))
    assert verdicts_in(Path("other")) == {}


def test_a_journal_that_was_edited_is_judged_again(tmp_path, judged, capsys):
    verdicts = verdicts_in(Path("out"))
    folder = Folder(tmp_path / "new", {"seed": 0})
    assert folder.begin() == {}
    for found in verdicts.values():
        folder.keep(Kept(found, "2026-01-01 00:00:00", {}))
    assert set(Folder(tmp_path / "new", {"seed": 0}).begin()) == {"mine.a", "mine.b"}
    journal = tmp_path / "new" / JOURNAL
    text = journal.read_text()
    with journal.open("a") as file:
        file.write('{"sha256": "torn')  # as a kill leaves it: no damage
    assert set(Folder(tmp_path / "new", {"seed": 0}).begin()) == {"mine.a", "mine.b"}
    assert capsys.readouterr().err == ""
    edited = re.sub('"status": "fails"', '"status": "vacuous"', text, count=1)
    for damaged, kept in ((edited, {"mine.b"}), (text[: len(text) // 2] + "\n", set())):
        journal.write_text(damaged)
        found = Folder(tmp_path / "new", {"seed": 0}).begin()
        assert set(found) <= {"mine.a", "mine.b"} and kept <= set(found)
        assert all(v.status == "fails" for one in found.values() for v in one.verdicts)
        assert f"{journal} is damaged" in capsys.readouterr().err
        assert any(p.read_text() == damaged for p in journal.parent.glob("*.aside-*"))
    assert Folder(tmp_path / "new", {"seed": 1}).begin() == {}
