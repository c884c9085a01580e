"""A folder of one's own, and the two pages on how to go on: each command does what they say."""

import functools
import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from jaxbounds import cli
from jaxbounds.cli import COMMANDS, main
from jaxbounds.falsification import verdicts_on
from jaxbounds.runs import verification
from jaxbounds.statements import Budget

GUIDE = Path(cli.__file__).with_name("guide.md").read_text(encoding="utf8")
SMALL = Budget(samples=32, restarts=0)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder where statements are tried a little."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    few = lambda s, **given: verdicts_on(s, **given | {"budget": SMALL})
    monkeypatch.setattr(verification, "verdicts_on", few)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield Path()
    for name in [name for name in sys.modules if re.match(r"(mine|fresh)\b", name)]:
        del sys.modules[name]


def test_a_new_folder_passes_as_it_is(place, capsys):
    assert main(["new", "fresh"]) == 0
    assert "next: jaxbounds verify fresh --import fresh" in capsys.readouterr().out
    readme = Path("fresh/README.md").read_text()
    assert len(readme.splitlines()) == 10 and "jaxbounds verify fresh" in readme
    assert not re.search(r"\broom\b", "".join(file.read_text() for file in Path("fresh").iterdir()))
    assert main(["verify", "fresh", "--import", "fresh", "--jobs", "1"]) == 0
    assert "3 statements, 5 forms: 4 holds, 1 fails; all as recorded" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, message",
    [
        ("there", "is there already"),
        ("file", "is there already"),
        ("My-Paper", "lower-case letters"),
        ("json", "already: choose another"),
        ("multihead", "already: choose another"),
        ("numpy", "already: choose another"),
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


def test_the_guide_is_two_pages(capsys):
    assert main(["guide"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == GUIDE.splitlines()
    assert len(lines) <= 125 and max(map(len, lines)) <= 100


def _commands(guide):
    lines = "".join(re.findall(r"```sh\n(.*?)```", guide, re.DOTALL)).splitlines()
    return [shlex.split(line.split(">")[0], comments=True) for line in lines]


def test_every_command_of_the_guide_is_one(capsys, monkeypatch):
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
    commands = _commands(GUIDE)
    assert all(words[0] == "jaxbounds" and main(words[1:]) == 0 for words in commands)
    assert given == [words[1] for words in commands] and len(given) > 12


@pytest.mark.slow
def test_every_command_of_the_guide_runs(place, capsys):
    """In its order, the additions made where it says; each has the exit status that it names."""
    formula, claim = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    for words in _commands(GUIDE):
        line = " ".join(words)
        if "--watch" in words:  # it does not end: tests/test_loop.py
            continue
        judges = words[1] in ("verify", "audit")
        status = main([*words[1:], *["--jobs", "1"] * judges])
        assert status == (1 if words[1] == "diff" else 0), line
        if words[1] == "new":
            with open("mine/model.py", "a") as file:
                file.write(f"\n\n{formula}")
            path = Path("mine/statements.py")
            above, rest = path.read_text().split("PAPER = ")
            rest = rest.replace("statements=(", "statements=(HOELDER, ")
            path.write_text(f"{above}{claim}\n\nPAPER = {rest}")
        printed = capsys.readouterr()
        if words[1:] == ["verify", "mine.hoelder", "--import", "mine"]:
            assert "attained" in printed.out
    assert "|<x, y>| <= max" in Path("audit/audit.md").read_text()
