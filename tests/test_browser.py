"""The page of all four papers, with verdicts in their recorded words, in a real browser."""

import re
from dataclasses import replace

import numpy as np
import pytest

from jaxbounds.falsification import unmeasured
from jaxbounds.papers import load_papers
from jaxbounds.report import html_page

PAPERS = load_papers()
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


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("papers")
    every = [v for paper in PAPERS for s in paper.statements for v in _measured(s)]
    path = out / "report.html"
    path.write_text(html_page(every, PAPERS, {"seed": 0}, out), encoding="utf8")
    return path


# What is wider than the part of the page it stands in; formulas scroll in theirs.
TOO_WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((part) => !part.closest(".formula, .quoted, svg") && part.clientWidth > 0
    && getComputedStyle(part).visibility === "visible"
    && part.scrollWidth > part.clientWidth + 1)
  .map((part) => [part.tagName, part.className, part.textContent.slice(0, 60)]).slice(0, 5)"""
OPEN = "() => { for (const part of document.querySelectorAll('details')) part.open = true; }"


def test_nothing_is_wider_than_its_place(page, visit):
    with visit(page) as tab:
        for step, widths in (("() => {}", (360, 800, 1000, 1300)), (OPEN, (360, 1300))):
            tab.evaluate(step)
            for width in widths:
                tab.set_viewport_size({"width": width, "height": 900})
                assert tab.evaluate(TOO_WIDE) == []
                assert tab.evaluate("document.documentElement.scrollWidth") == width


def test_every_verdict_stands_in_the_window(page, visit):
    words = """() => [...document.querySelectorAll(".judged .badge")].filter((part) => {
      const box = part.getBoundingClientRect();
      return box.width > 0 && box.left >= 0 && box.right <= innerWidth;
    }).length"""
    forms = sum(len(s.forms) for paper in PAPERS for s in paper.statements)
    with visit(page) as tab:
        for width in (360, 1300):
            tab.set_viewport_size({"width": width, "height": 900})
            assert tab.evaluate(words) == forms


def test_every_formula_is_drawn(page, visit):
    # One whose LaTeX a browser does not know has no height, or leaves a command in its text.
    drawn = """() => [...document.querySelectorAll(".formula math")].map((part) =>
      [part.closest("tbody").id, part.getBoundingClientRect().height, part.textContent])"""
    with visit(page) as tab:
        found = tab.evaluate(drawn)
    assert len(found) == sum(len(paper.statements) for paper in PAPERS)
    assert [name for name, height, text in found if height < 8 or "\\" in text] == []


def test_a_finger_meets_what_it_aims_at(page, visit):
    small = """() => [...document.querySelectorAll("a, button, summary, input, select")]
      .filter((part) => part.getClientRects().length && !part.matches(".skip"))
      .filter((part) => {
        const { width, height } = part.getBoundingClientRect();
        return width < 24 || height < 24;
      }).map((part) => part.outerHTML.slice(0, 80))"""
    with visit(page, width=390, height=844) as tab:
        tab.evaluate(OPEN)
        assert tab.evaluate(small) == []


def test_an_anchor_is_there_at_once(page, visit):
    # Asked in the event that follows the click, before another picture could be drawn.
    follow = """(id) => new Promise((done) => {
      addEventListener("hashchange", () => {
        const { top } = document.getElementById(id).getBoundingClientRect();
        done([top >= 0 && top < innerHeight, document.getElementById(id).matches(":target")]);
      }, { once: true });
      location.hash = id;
    })"""
    with visit(page) as tab:
        for name in ("qstr.lem41", "multihead.prop1.2", "erratum.smapprox.E1", "reading"):
            assert tab.evaluate(follow, name) == [True, True], name
        assert tab.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def _pages(pdf):
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def test_printing_prints_what_is_open(page, visit):
    with visit(page, "#multihead.prop1.2", scheme="dark") as tab:
        opened = _pages(tab.pdf(format="A4"))
        rows = tab.locator("#verdicts tr").count()
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
    # A page has about 28 rows in a wide serif, and far fewer if what is shut were printed.
    assert rows / 60 < closed < rows / 20 and closed <= opened <= closed + 3
