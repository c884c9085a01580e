"""The first minute: each first screen says the purpose, what to type next, and what comes out."""

import pydoc
import re
import shlex
from pathlib import Path

import jupytext
import pytest

import jaxbounds
from jaxbounds.cli import COMMANDS, main

BOOKS = sorted((Path(__file__).parents[1] / "colab").glob("*.py"))


def test_the_command_alone_names_three_commands(capsys):
    assert main([]) == 0
    out, error = capsys.readouterr()
    tries = re.findall(r"^  jaxbounds (.+)#", out, re.MULTILINE)
    assert error == "" and len(tries) == 3
    assert all(shlex.split(line)[0] in COMMANDS for line in tries)
    assert max(map(len, out.splitlines())) <= 80 and len(out.splitlines()) <= 15


@pytest.mark.parametrize("command", [["show", "multihead.cor1.3"], ["guide", "start"]])
def test_the_commands_that_it_names_run(command, capsys):
    main([])
    assert f"jaxbounds {' '.join(command)} " in capsys.readouterr().out
    assert main(command) == 0


def test_the_guide_alone_begins_with_the_purpose(capsys):
    main([])
    purpose = capsys.readouterr().out.partition("\n\n")[0]
    assert main(["guide"]) == 0
    assert capsys.readouterr().out.startswith(f"{purpose}\nType jaxbounds guide TOPIC")


def test_help_on_the_package_has_an_example_that_runs(capsys):
    said = pydoc.plain(pydoc.render_doc(jaxbounds)).partition("PACKAGE CONTENTS")[0]
    for words in ("Try it", "The code prints", "jaxbounds guide"):
        assert words in said
    code = re.search(r"\n\n((?:    .*\n|\n)+)", jaxbounds.__doc__)[1]
    exec("\n".join(line.removeprefix("    ") for line in code.splitlines()), {})
    assert "2" in capsys.readouterr().out


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_the_first_cell_of_a_notebook_says_purpose_next_step_and_outcome(book):
    first = jupytext.read(book).cells[0].source
    title, _, said = first.partition("\n\n")
    assert title.startswith("# ") and said.startswith("This notebook ")
    assert "Choose *Run all*" in " ".join(said.split()) and "You get " in " ".join(said.split())
