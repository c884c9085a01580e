"""The line of code that declares a statement, through the helpers of the library and of users."""

import importlib
import sys

import pytest

from jaxbounds.cli import main
from jaxbounds.papers import load_papers

source = importlib.import_module("jaxbounds.report.source")
FILES = {
    "__init__.py": "from .statements import PAPER\n",
    "items.py": """import jaxbounds as jb

ITEMS = jb.Items(
    jb.Item(id="whence.lem1", kind="Lemma", number="1", label="lem:one"),
    jb.Item(id="whence.lem2", kind="Lemma", number="2", label="lem:two"),
)
""",
    "helpers.py": """import jaxbounds as jb

BOX = {"x": jb.Box(0, 1)}


def bounded(name, bound):
    return jb.claim(f"whence.{name}", square, "<=", bound, over=BOX)


def square(x):
    return x**2
""",
    "statements.py": """import dataclasses
import jaxbounds as jb
from .helpers import BOX, bounded, square
from .items import ITEMS

ONE = ITEMS["lem:one"].claim(square, "<=", 2.0, over=BOX)
TWO = ITEMS["lem:two"].claim(
    square, "<=",
    lambda x: 1.5 * x,
    over=BOX,
)
MORE = (
    jb.claim("whence.three", square, "<=", 3.0, over=BOX),
    bounded("four", 4.0),
)
FIVE = dataclasses.replace(ONE, id="whence.five")
PAPER = jb.Paper(id="whence", title="Whence", statements=(ONE, TWO, *MORE, FIVE))
""",
}
LINES = {"lem1": 6, "lem2": 7, "three": 13, "four": 14, "five": 16}


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "whence").mkdir()
    for name, text in FILES.items():
        (tmp_path / "whence" / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "whence"]:
        del sys.modules[name]


def test_each_helper_reports_the_line_of_its_caller(own, capsys):
    for name, line in LINES.items():
        assert main(["show", f"whence.{name}", "--import", "whence"]) == 0
        out = capsys.readouterr().out
        plain = "".join(out.split())  # a long path takes two lines
        assert f"whence/statements.py:{line}judges" in plain, (name, out)
    statements = {s.id: s for s in sys.modules["whence"].PAPER.statements}
    code = "\n".join(piece.text for piece in source.behind(statements["whence.lem2"]))
    assert "lambda x: 1.5 * x" in code
    helped = "\n".join(piece.text for piece in source.behind(statements["whence.four"]))
    assert 'bounded("four", 4.0)' in helped and "def bounded" in helped


def test_shipped_statements_keep_their_place():
    for paper in load_papers():
        for statement in paper.statements[:20]:
            known = source._by_id(statement)
            assert known is None or known.place.split(":")[0] in source.declaration(statement)
