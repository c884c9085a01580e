"""The page of all four papers, with verdicts in their recorded words, in a real browser."""

import re
from dataclasses import replace

import numpy as np
import pytest

from jaxbounds.falsification import unmeasured
from jaxbounds.papers import load_papers
from jaxbounds.report import html_page

PAPERS = load_papers()
STATEMENTS = [statement for paper in PAPERS for statement in paper.statements]
NAMED = ("qstr.lem41", "multihead.prop1.2")
FEW = [s for i, s in enumerate(STATEMENTS) if i % 7 == 0 or s.id in NAMED]
FAR = {"probability": 0.2, "inequality": 2.2e54, "rate": 0.46, "identity": 1.9e-15}


def _measured(statement):
    """Verdicts as recorded, with text as long as a run gives it."""
    for blank in unmeasured(statement, "every ratio stays below one"):
        yield replace(
            blank,
            status=blank.expected,
            worst_ratio=FAR.get(statement.kind, 1.58e3),
            instances=4000,
            searches=12,
            evidence="attained",
            quantiles=tuple(np.geomspace(1e-9, 1e9, 21)),
            sources={name: {"instances": 4000, "worst_ratio": 0.5} for name in statement.samplers},
            control={"status": "fails", "worst_ratio": 1.111},
            checked=("a hypothesis",),
        )


def _page(out, statements):
    path = out / "report.html"
    every = [verdict for statement in statements for verdict in _measured(statement)]
    path.write_text(html_page(every, PAPERS, {"seed": 0}, out), encoding="utf8")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return _page(tmp_path_factory.mktemp("papers"), STATEMENTS)


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """The page of a seventh of the statements: a browser takes a seventh of the time."""
    return _page(tmp_path_factory.mktemp("few"), FEW)


# What is wider than the part of the page it stands in; formulas scroll in theirs.
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((part) => !part.closest(".formula, .quoted, svg") && part.clientWidth > 0
    && getComputedStyle(part).visibility === "visible"
    && part.scrollWidth > part.clientWidth + 1)
  .map((part) => [part.tagName, part.className, part.textContent.slice(0, 60)]).slice(0, 5)"""
OPEN = "() => { for (const part of document.querySelectorAll('details')) part.open = true; }"
IN_WINDOW = """() => [...document.querySelectorAll(".judged .badge")].filter((part) => {
  const box = part.getBoundingClientRect();
  return box.width > 0 && box.left >= 0 && box.right <= innerWidth;
}).length"""
# A formula whose LaTeX a browser does not know has no height, or leaves a command in its text.
DRAWN = """() => [...document.querySelectorAll(".formula math")].map((part) =>
  [part.closest("tbody").id, part.getBoundingClientRect().height, part.textContent])"""
# What a finger misses.
SMALL = """() => [...document.querySelectorAll("a, button, summary, input, select")]
  .filter((part) => part.getClientRects().length && !part.matches(".skip"))
  .filter((part) => {
    const { width, height } = part.getBoundingClientRect();
    return width < 24 || height < 24;
  }).map((part) => part.outerHTML.slice(0, 80))"""


def _fits(tab, width):
    tab.set_viewport_size({"width": width, "height": 900})
    assert tab.evaluate(TOO_WIDE) == []
    assert tab.evaluate("document.documentElement.scrollWidth") == width


def test_every_verdict_and_formula_is_in_sight(page, visit):
    with visit(page) as tab:
        _fits(tab, 1300)
        assert tab.evaluate(IN_WINDOW) == sum(len(s.forms) for s in STATEMENTS)
        found = tab.evaluate(DRAWN)
        assert len(found) == len(STATEMENTS)
        assert [name for name, height, text in found if height < 8 or "\\" in text] == []


def _narrow(tab, statements):
    """A page with all parts open, as wide as a telephone."""
    tab.evaluate(OPEN)
    _fits(tab, 360)
    assert tab.evaluate(IN_WINDOW) == sum(len(s.forms) for s in statements)
    assert tab.evaluate(SMALL) == []


@pytest.mark.slow
def test_every_verdict_is_in_sight_on_a_telephone(page, visit):
    with visit(page) as tab:
        _narrow(tab, STATEMENTS)


def test_nothing_is_wider_than_its_place(short, visit):
    with visit(short) as tab:
        for step, widths in (("() => {}", (360, 800, 1000)), (OPEN, (800, 1300))):
            tab.evaluate(step)
            for width in widths:
                _fits(tab, width)
        _narrow(tab, FEW)


def test_an_anchor_is_there_at_once(short, visit):
    # Asked in the event that follows the click, before another picture could be drawn.
    follow = """(id) => new Promise((done) => {
      addEventListener("hashchange", () => {
        const { top } = document.getElementById(id).getBoundingClientRect();
        done([top >= 0 && top < innerHeight, document.getElementById(id).matches(":target")]);
      }, { once: true });
      location.hash = id;
    })"""
    with visit(short) as tab:
        for name in (*NAMED, "erratum.smapprox.E1", "reading"):
            assert tab.evaluate(follow, name) == [True, True], name
        assert tab.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def _pages(pdf):
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def test_printing_prints_what_is_open(short, visit):
    with visit(short, "#multihead.prop1.2", scheme="dark") as tab:
        opened = _pages(tab.pdf(format="A4"))
        assert tab.locator("details[open]").count() == 1
        tab.emulate_media(media="print")
        # A table, dark on white, without what only a screen can use.
        assert (
            tab.evaluate("getComputedStyle(document.querySelector('#verdicts')).display") == "table"
        )
        assert tab.evaluate("getComputedStyle(document.body).color") == "rgb(28, 30, 33)"
        for name in ("#controls", "nav", "#theme"):
            assert not tab.locator(name).is_visible()
        tab.evaluate("document.querySelector('details[open]').open = false")
        closed = _pages(tab.pdf(format="A4"))
        tab.evaluate(OPEN)
        everything = _pages(tab.pdf(format="A4"))
    assert closed <= opened <= closed + 3 and 2 * closed < everything
