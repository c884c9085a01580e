"""A folder of one's own, and the guide on how to go on: each command does what it says."""

import functools
import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from jaxbounds import cli
from jaxbounds.claims.statements import Budget
from jaxbounds.cli import COMMANDS, main
from jaxbounds.cli.guide import TOPICS, topic_text
from jaxbounds.falsification import verdicts_on
from jaxbounds.runs import statement_run

FOLDER = Path(cli.__file__).parents[1] / "guide"
START = topic_text("start")
README = (FOLDER.parents[1] / "README.md").read_text(encoding="utf8")
SMALL = Budget(samples=32, restarts=0)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder where statements are tried a little."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    few = lambda s, **given: verdicts_on(s, **given | {"budget": SMALL})
    monkeypatch.setattr(statement_run, "verdicts_on", few)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield Path()
    for name in [name for name in sys.modules if re.match(r"(mine|fresh)\b", name)]:
        del sys.modules[name]


def test_a_new_folder_passes_as_it_is(place, capsys):
    assert main(["new", "fresh"]) == 0
    assert "next: jaxbounds verify fresh --import fresh" in capsys.readouterr().out
    readme = Path("fresh/README.md").read_text()
    assert len(readme.splitlines()) == 12 and "jaxbounds verify fresh" in readme
    assert not re.search(r"\broom\b", "".join(file.read_text() for file in Path("fresh").iterdir()))
    assert main(["verify", "fresh", "--import", "fresh", "--jobs", "1"]) == 0
    assert "3 statements, 5 forms: 4 holds, 1 fails; all as recorded" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, message",
    [
        ("there", "exists already"),
        ("file", "exists already"),
        ("My-Paper", "lower-case letters"),
        ("json", "another module or paper"),
        ("multihead", "another module or paper"),
        ("numpy", "another module or paper"),
    ],
)
def test_a_folder_that_cannot_be_started_is_one_sentence(name, message, place, capsys):
    Path("there").mkdir()
    Path("there/notes.txt").write_text("mine")
    Path("file").write_text("")
    assert main(["new", name]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["file", "there"]
    assert [path.name for path in Path("there").iterdir()] == ["notes.txt"]


def test_the_guide_lists_its_topics(capsys):
    assert main(["guide"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split() for line in lines if line.startswith("  ")]
    assert [words[0] for words in listed] == list(TOPICS)
    assert min(map(len, listed)) > 4 and max(map(len, lines)) <= 80
    assert sorted(TOPICS) == sorted(file.stem for file in FOLDER.iterdir())
    assert all(f"`{topic}`" in README for topic in TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_fits_a_terminal(topic, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["guide", topic]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == (FOLDER / f"{topic}.md").read_text(encoding="utf8").splitlines()
    assert lines[0].startswith(f"# {topic}: ")
    assert len(lines) <= 190 and max(map(len, lines)) <= 100
    for other in re.findall(r"`jaxbounds guide (\w+)`", " ".join(lines)):
        assert other in TOPICS


def test_a_topic_that_is_none_is_one_sentence(capsys):
    assert main(["guide", "verdict"]) == 2
    said = capsys.readouterr().err
    assert f"topic='verdict' has no page. Try one of: {', '.join([*TOPICS][:5])}" in said


def _blocks(text, *kinds):
    fences = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [code for kind, code in fences if kind in kinds]


def _commands(text):
    """The words after `jaxbounds` of each line in a shell's block that calls it."""
    lines = "".join(_blocks(text, "sh", "")).splitlines()
    found = [re.match(r"(?:\$ |srun .*?)?jaxbounds (.*)", line) for line in lines]
    return [shlex.split(m[1].split(" > ")[0], comments=True) for m in found if m]


@pytest.mark.parametrize("text", [README, *map(topic_text, TOPICS)], ids=["README", *TOPICS])
def test_every_command_of_the_guide_is_one(text, capsys, monkeypatch):
    """The commands' own signatures decide, without running them."""
    given = []

    def parsed(name):
        _, function, _ = COMMANDS[name]
        module = importlib.import_module(f"jaxbounds.cli.{COMMANDS[name][0]}")

        @functools.wraps(getattr(module, function))
        def command(*arguments, **options):
            given.append(name)
            return 0

        return command

    monkeypatch.setattr(cli, "_command", parsed)
    monkeypatch.setattr(cli.printed, "COMMANDS", ())  # nothing is recalled, and nothing kept
    commands = [words for words in _commands(text) if words != ["run"]]
    assert all(main(words) == 0 for words in commands)
    assert given == [words[0] for words in commands]


def test_there_are_commands_to_try():
    assert len(_commands(START)) > 12 and len(_commands(README)) >= 3


def _write_the_claims():
    """What the topic says to add to the folder `mine`, where it says so."""
    formula, *claims = _blocks(START, "python")
    with open("mine/model.py", "a") as file:
        file.write(f"\n\n{formula}")
    path = Path("mine/statements.py")
    above, paper = path.read_text().split("PAPER = ")
    paper = paper.replace("statements=(", "statements=(HOELDER, HALF, ")
    paper = paper.replace("errata=(", "errata=(E2, ")
    path.write_text("\n\n".join([above, *claims, f"PAPER = {paper}"]))


def test_the_claims_of_the_start_are_judged(place, capsys):
    """One that holds, and one that fails as its erratum says."""
    assert main(["new", "mine"]) == 0
    _write_the_claims()
    ours = ["mine.hoelder", "mine.half", "--import", "mine"]
    assert main(["verify", *ours, "--jobs", "1"]) == 0
    assert "1 holds, 1 fails; all as recorded" in capsys.readouterr().out
    assert main(["errata", "mine", "--import", "mine"]) == 0
    assert "The factor one half is wrong." in capsys.readouterr().out


@pytest.mark.slow
def test_every_command_of_the_start_runs(place, capsys, monkeypatch):
    """In its order, the additions made where it says; each has the exit status that it names."""
    monkeypatch.setattr(
        statement_run, "verdicts_on", verdicts_on
    )  # an equality case takes a search
    for words in _commands(START):
        line = " ".join(words)
        if "--watch" in words:  # it does not end: tests/test_loop.py
            continue
        judges = words[0] in ("verify", "audit")
        status = main([*words, *["--jobs", "1"] * judges])
        assert status == (1 if words[0] == "diff" else 0), line
        if words[0] == "new":
            _write_the_claims()
        printed = capsys.readouterr()
        if words == ["verify", "mine.hoelder", "--import", "mine"]:
            assert "attained" in printed.out
    assert "|<x, y>| <= max" in Path("audit/audit.md").read_text()


BY_HAND = {
    "curvature": (3, "tests/test_readme.py runs them"),
    "engines": (1, "tests/test_engines.py starts such a pool"),
    "evidence": (1, "tests/test_readme.py runs it"),
    "figures": (4, "tests/test_readme.py runs the last; the others name a network of the reader"),
    "limits": (1, "tests/test_readme.py runs it"),
    "programs": (2, "tests/test_readme.py runs them"),
    "questions": (1, "a search of five seconds"),
    "say": (2, "tests/test_readme.py runs them"),
    "source": (1, "the file of a reader's paper, with dots"),
    "start": (3, "another test of this file loads them as one paper"),
}
"""The number of Python blocks of a page that the test below does not run, and the reason. The test
runs every block of another page alone."""


@pytest.mark.parametrize("topic", TOPICS)
def test_each_python_block_of_a_page_runs(topic, tmp_path, monkeypatch):
    text = (FOLDER / f"{topic}.md").read_text(encoding="utf8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    if topic in BY_HAND:
        assert len(blocks) == BY_HAND[topic][0]
        return
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(block, {"__name__": topic})
