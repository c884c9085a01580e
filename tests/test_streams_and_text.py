"""Closed and full streams, and the characters that reach a terminal or a page."""

import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.text import Text

from jaxbounds import Form, Statement
from jaxbounds.cli import main
from jaxbounds.cli.common import Plain
from jaxbounds.cli.streams import Stream, Streams, say
from jaxbounds.experiments.sweeps import reporting
from jaxbounds.ground import folders
from jaxbounds.ground.tables import Table
from jaxbounds.ground.text import printable, shortened
from jaxbounds.report.formula import mathml, without_links
from jaxbounds.report.markdown import block, link, quoted, to_html
from jaxbounds.report.markup import element, may_lead

ROOT = Path(__file__).parents[1] / "jaxbounds"
NASTY = ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\r", "\x08", "\x7f", "\u202e", "\u2066",
         "\u2028", "\ud800", "\x00", "\ufeff"]  # fmt: skip


@pytest.mark.parametrize("nasty", NASTY, ids=ascii)
def test_what_a_terminal_would_obey_is_written_out(nasty):
    shown = printable(f"a{nasty}b")
    assert shown.isprintable() and shown.isascii() and shown[0] == "a" and shown[-1] == "b"
    assert printable(shown) == shown and "\\" in shown
    assert printable("two\nlines\tand α ‖x‖ 🙂 é") == "two\nlines\tand α ‖x‖ 🙂 é"


@pytest.mark.parametrize("kind", [Text, str])
def test_a_console_shows_words_and_obeys_none(kind):
    out = io.StringIO()
    words = "".join(NASTY) + "[bold]b[/] [/x] :smile: [link=file:///etc]l[/link]"
    Plain(file=out, width=200, force_terminal=True, color_system="standard").print(kind(words))
    shown = out.getvalue()
    assert not any(nasty in shown for nasty in NASTY)
    assert "[bold]b[/] [/x] :smile: [link=file:///etc]l[/link]" in shown
    styled = io.StringIO()
    Plain(file=styled, force_terminal=True, color_system="standard").print(Text("r", "red"))
    assert styled.getvalue().startswith("\x1b[31m")  # what the library chose
    part = next(iter(Plain(file=out).render(Text("\x1b"))))
    assert isinstance(part, Segment) and part.text == "\\x1b"


def test_a_result_shows_words():
    shown = Table("\x1b[2Jtitle", ("a",), [("\x1b[31m",)]).text()
    assert "\x1b" not in shown and "\\x1b[2Jtitle" in shown
    assert Table("\x1b").text() == "\\x1b"


CLAIM = r'''
import jax.numpy as jnp
import jaxbounds as jb

E = "\x1b[31mE\x1b]0;t\x07\u202e"


def evaluate(i, size):
    """{E}"""
    return jb.Sides(lhs=i["x"], rhs={"printed \x1b[31m": 1.0, "control": 0.1})


evaluate.__doc__ = E
PAPER = jb.Paper(
    id="nasty", title=E, survives=E, remarks={E: E}, unchecked={E: E}, statements=(jb.Statement(
        id="nasty.s", label=E, formula=E, kind="inequality", evaluate=evaluate, judges=(),
        over={"x": jb.Box(0, 1)}, control=E, assumptions=E, source=E,
        forms=(jb.Form(name="printed \x1b[31m", note=E, equality="x = 1"),), sizes=({"d": 1},),
        budget=jb.Budget(samples=16, restarts=2, steps=10, batch=16),
    ),),
    errata=(jb.Erratum(id="E1", where=E, kind="typo", quote=E, text=E, consequence=E,
                       main="survive" + E, evidence=E),),
)
'''


@pytest.fixture
def nasty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "nasty.py").write_text(CLAIM, encoding="utf8")
    yield tmp_path
    sys.modules.pop("nasty", None)


def test_no_control_character_of_a_statement_or_file_is_printed(nasty, capsys):
    own = ["--import", "nasty.py"]
    for words in (["list", "nasty", *own], ["show", "nasty.s", "--code", *own],
                  ["errata", "nasty", *own], ["verify", "nasty.py", "--out", "o", "--jobs", "1"],
                  ["verify", "nasty.\x1b[31m", *own]):  # fmt: skip
        main(words)
    verdicts = json.loads((nasty / "o" / "verdicts.json").read_text())
    for verdict in verdicts:
        verdict |= {"id": "\x1b[2J\u202e.s", "form": "\x9b2J", "evidence": "\x1b"}
    (nasty / "foreign").mkdir()
    (nasty / "foreign" / "verdicts.json").write_text(json.dumps(verdicts))
    (nasty / "foreign" / "run.json").write_text(json.dumps({"\x1b[2J": "\x1b[2J"}))
    assert main(["diff", "o", "foreign"]) == 1
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert not [mark for mark in ("\x1b", "\x07", "\x9b", "\u202e") if mark in text]
    assert said.out.count("\\x1b[31m") > 10


ADDRESSES = [
    "javascript:alert(1)", "JavaScript:alert(1)", "java\tscript:alert(1)", " javascript:x",
    "\x01javascript:x", "&#106;avascript:x", "java&Tab;script:x", "data:text/html,x", "vbscript:x",
    "file:///etc/passwd", "ftp://a.b", "blob:x", "ms-office:x", "\u200bjavascript:x",
]  # fmt: skip


def test_an_attribute_may_be_zero():
    found = element("td", 0, data_samples=0, data_ratio=0.0, title="", hidden=False, lang=None)
    assert found == '<td data-samples="0" data-ratio="0.0">0</td>'


@pytest.mark.parametrize("address", ADDRESSES, ids=ascii)
def test_a_link_leads_to_web_pages_or_nowhere(address):
    assert not may_lead(address)
    assert element("a", "x", href=address) == "<a>x</a>" and link("x", address) == "x"
    assert "href" not in to_html(f"[x]({address})") and "href" not in to_html(f"[x](<{address}>)")
    assert "href" not in mathml(rf"\href{{{address}}}{{x}}")
    for tex in (rf"\href{{{address}}}{{x}}", rf"\href {{{address}}}{{x}}", rf"\href{{{address}"):
        assert "href" not in without_links(f"a {tex}") and address not in block(tex, "math")
    assert address not in quoted(rf"words and words and $\href{{{address}}}{{x}}$ \in")


@pytest.mark.parametrize("address", [
    "https://a.b/c?d=e:f#g", "HTTP://a.b", "#id", "worst/a.npz", "a b.json", "#a:b", "/a:b", "?a:b",
])  # fmt: skip
def test_web_pages_and_files_beside_the_page_stay_links(address):
    assert may_lead(address) and "href" in element("a", "x", href=address)


def test_links_of_formulas_to_web_pages_stay():
    tex = r"\href{https://a.b/{c}}{x} + \href{javascript:{}}{y}"
    assert without_links(tex) == r"\href{https://a.b/{c}}{x} + {y}"
    assert 'href="https://a.b"' in mathml(r"\href{https://a.b}{x}")


class Full(io.StringIO):
    """Takes some characters, then none."""

    def __init__(self, room, number=errno.ENOSPC):
        super().__init__()
        self.room, self.number = room, number

    def write(self, text):
        if len(text) > self.room:
            raise OSError(self.number, os.strerror(self.number))
        self.room -= len(text)
        return super().write(text)


def test_a_full_stream_loses_the_rest_and_says_so(monkeypatch, capsys):
    for number in (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EDQUOT):
        full = Full(5, number)
        monkeypatch.setattr(sys, "stdout", full)
        streams = Streams()
        for part in ("abc", "more than five", "x"):
            streams.out.write(part)
        assert full.getvalue() == "abc" and streams.out.problem.errno == number
        assert [streams.status(code) for code in (0, 1, 2, 3, 130)] == [3, 3, 2, 3, 130]
        assert os.strerror(number) in capsys.readouterr().err


def test_a_reader_that_went_away_ends_the_command(monkeypatch):
    with pytest.raises(BrokenPipeError):
        Stream(Full(0, errno.EPIPE)).write("x")
    quiet = Stream(Full(0, errno.EPIPE), ends=False)
    assert quiet.write("x") == 1 and quiet.problem is not None
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    say("\x1b", errors=False)
    assert sys.stdout.getvalue() == "\\x1b\n"


SHELL = [
    (">&-", 0, "standard output is closed"), ("2>&-", 0, ""), (">&- 2>&-", 0, ""),
    ("<&- >&- 2>&-", 0, ""), (">/dev/full", 3, "No space left on device"), ("2>/dev/full", 0, ""),
]  # fmt: skip


@pytest.mark.default_cases("<&- >&- 2>&-", ">/dev/full", "2>/dev/full")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("streams, status, says", SHELL, ids=[case[0] for case in SHELL])
def test_a_command_ends_well_whatever_its_streams_are(streams, status, says, tmp_path):
    """Its results are there; nothing that is printed goes into a file of theirs."""
    (tmp_path / "mine.py").write_text(CLAIM.replace("nasty", "mine"), encoding="utf8")
    words = f"-m jaxbounds verify mine.py --out o --jobs 1 {streams}"
    about = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} {words}"], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | about,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert says in done.stderr and "another --out" not in done.stderr
    assert {"verdicts.json", "report.html", "run.json"} <= set(os.listdir(tmp_path / "o"))
    assert json.loads((tmp_path / "o" / "verdicts.json").read_text())[0]["status"] == "holds"


@pytest.mark.slow_cases("schema", "list --help", "--help")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("words", ["--version", "--help", "list --help", "guide", "schema"])
def test_small_commands_say_that_a_stream_is_full(words):
    line = f"{sys.executable} -m jaxbounds {words} >/dev/full"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["a" * 240, "a" * 241, "a" * 5000, "é1" * 200, "a/b " * 100])
def test_a_long_name_of_a_form_is_a_name_of_a_file(name, tmp_path):
    name = f"printed {name}"
    form = Form(name=name)
    (tmp_path / f"{'i' * 100}.{form.file_name}.npz").touch()
    assert Form(name=name + "b").file_name != form.file_name
    assert shortened(name, 100) == shortened(name, 100) != shortened(name + "b", 100)
    assert len(shortened(name, 100).encode()) <= 100


def test_names_of_files_that_were_short_enough_are_what_they_were():
    assert Form(name="sharpened S5").file_name == "sharpened-S5"
    with pytest.raises(ValueError, match=r"has 101 characters\. Try at most 100"):
        Statement(
            id=f"a.{'i' * 99}", label="1", formula="f", kind="inequality", control="c",
            cases=lambda size: {}, evaluate=lambda i, size: None, sizes=({},),
            forms=(Form(name="printed"),),
        )  # fmt: skip


def test_what_runs_say_holds_no_control_characters(capsys):
    """Names of files and ids of statements reach these lines."""
    folders.say("file \x1b]0;evil\x07 is kept")
    assert capsys.readouterr().err == "jaxbounds: file \\x1b]0;evil\\x07 is kept\n"


def test_progress_shows_words_as_they_are(monkeypatch, capsys):
    monkeypatch.setattr(reporting, "BETWEEN_LINES", 0.0)
    with reporting.progress(2, "statements") as report:
        report(1, "mine.\x1b[31ma [bold]")
    assert "mine.\\x1b[31ma [bold]" in capsys.readouterr().err


def test_every_line_of_runs_goes_through_one_function():
    """No module of runs prints by itself, past the function that writes control characters out."""
    loose = {
        file.name
        for file in (ROOT / "runs").glob("*.py")
        if re.search(r"^\s*print\(", file.read_text(), re.MULTILINE)
    }
    assert loose == {"interruption.py"}  # which names nothing of a file or statement
