"""The documentation site: links, names and questions are checked; a fault ends the command by 1."""

import importlib
import re
import runpy
import sys
from pathlib import Path

import pytest

import jaxbounds as jb
from jaxbounds.cli.guide import TOPICS, topic_text
from jaxbounds.papers import load_papers

ROOT = Path(__file__).parents[1]
SITE = ROOT / ".github" / "site"
QUESTIONS = re.findall(r"^## (.+)$", topic_text("questions"), re.MULTILINE)


@pytest.fixture(scope="module")
def part():
    """Imports a module of the site's folder, which is no package; afterwards it is gone."""
    before = set(sys.modules)
    sys.path.insert(0, str(SITE))
    yield importlib.import_module
    sys.path.remove(str(SITE))
    for name in set(sys.modules) - before:
        if str(SITE) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture(scope="module")
def links(part):
    ids = frozenset(s.id for paper in load_papers() for s in paper.statements)
    return part("crosslinks").Links(
        frozenset(dir(jb)), ids, frozenset(TOPICS), frozenset(("03_sweeps",))
    )


@pytest.fixture(scope="module")
def papers(part, links, tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    part("papers").write_papers(load_papers(), folder, links)
    return folder


def test_each_public_name_has_its_place_in_the_reference(part, links, tmp_path):
    themes = part("reference").themes()
    names = [name for theme in themes for name in theme.names]
    assert sorted(names) == sorted(name for name in dir(jb) if not name.startswith("_"))
    assert len({theme.name for theme in themes}) == len(themes)
    part("reference").write_reference(tmp_path, links)
    text = "".join(file.read_text() for file in tmp_path.iterdir())
    assert all(re.search(rf":: jaxbounds\.{name}\n", text) for name in names)


def test_each_judged_function_has_its_place_once(part, tmp_path):
    papers = load_papers()
    part("formulas").write_formulas(papers, tmp_path)
    text = "".join(file.read_text() for file in tmp_path.iterdir())
    judged = {name for paper in papers for s in paper.statements for name in s.judged}
    made = re.findall(r":: (jaxbounds\.\S+)\n", text)
    assert judged <= {*made} and len(made) == len({*made})
    assert {file.stem for file in tmp_path.iterdir()} == {*part("formulas").pages(papers)}
    assert re.search(r"automethod:: jaxbounds\.qstr\.layers\.FeedForward\.__call__\n", text)


@pytest.mark.parametrize(
    "code, link",
    [
        ("`jaxbounds guide sweeps`", "[`jaxbounds guide sweeps`](#guide-sweeps)"),
        ("`verdicts`", "[`verdicts`](#guide-verdicts)"),
        ("`jb.sweep(...)`", "{py:obj}`jb.sweep(...) <jaxbounds.sweep>`"),
        ("`multihead.cor1.3`", "[`multihead.cor1.3`](#multihead.cor1.3)"),
        ("`colab/03_sweeps.py`", "[`colab/03_sweeps.py`](#book-03_sweeps)"),
        ("`jb.nothing`", "`jb.nothing`"),
        ("`jaxbounds guide nothing`", "`jaxbounds guide nothing`"),
        ("```sh\njaxbounds guide `sweeps`\n```", "```sh\njaxbounds guide `sweeps`\n```"),
        ("# a heading of `verdicts`", "# a heading of `verdicts`"),
    ],
)
def test_code_that_names_something_is_a_link(code, link, links):
    assert links.linked(code) == link


def test_a_dead_link_is_found_with_its_reason(part, tmp_path):
    page = """<a href="{}">x</a><script src="{}"></script><p id="here"></p>"""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "a.html").write_text(page.format("inner/b.html#here", "inner/a.js"))
    (tmp_path / "inner" / "b.html").write_text(page.format("../a.html#there", "https://x.org/a.js"))
    (tmp_path / "c.html").write_text(page.format("https://x.org/", "none.js"))
    (tmp_path / "d.html").write_text(page.format("../outside.html", "inner/a.js"))
    (tmp_path / "inner" / "a.js").write_text("")
    (tmp_path.parent / "outside.html").write_text("")
    assert list(part("links").dead_links(tmp_path)) == [
        "c.html: none.js: no such file",
        "d.html: ../outside.html: no such file",
        "inner/b.html: ../a.html#there: no such anchor",
        "inner/b.html: https://x.org/a.js: the page loads it from another site",
    ]


def test_the_page_of_a_paper_has_each_statement_with_verdict_and_ratio(papers):
    for paper in load_papers():
        page = (papers / f"{paper.id}.md").read_text()
        assert all(f"\n({s.id})=\n\n## {s.id}: " in page for s in paper.statements)
        assert page.count("\n| form | verdict |") == len(paper.statements)
    section = (papers / "multihead.md").read_text().split("(multihead.cor1.3)=")[1].split("\n(")[0]
    assert re.search(r"\| printed \| holds \| x3\.92 loose \| 0\.255 \|", section)
    assert (
        "<math" in section
        and "beta3" in section
        and "- S6: The constant beta_3 bounds the norm of each head" in section
    )


def test_the_page_of_errata_has_each_erratum_with_quote_and_evidence(papers):
    for paper in load_papers():
        page = (papers / f"{paper.id}-errata.md").read_text()
        assert all(f"({paper.id}.{e.id})=" in page for e in paper.errata)
        assert page.count('class="quoted"') == len(paper.errata) == page.count("\nEvidence: ")


def test_a_question_has_a_page_and_names_where_the_rest_is(part, links, tmp_path):
    made = part("questions").write_questions(topic_text("questions"), tmp_path, links)
    assert len(QUESTIONS) >= 10 and len(list(tmp_path.iterdir())) == len(QUESTIONS)
    for file in tmp_path.iterdir():
        text = file.read_text()
        assert text.splitlines()[0][2:] in QUESTIONS and text.splitlines()[0].endswith("?")
        assert re.search(r"See[^#]+\(#guide-\w+\)", " ".join(text.split()))
        assert f"/{tmp_path.name}/{file.stem}\n" in made
    assert "## " not in made


def test_the_first_code_of_a_notebook_is_shut_and_nothing_else_changes(part, tmp_path):
    import json

    names = part("notebooks").write_notebooks(ROOT / "colab", tmp_path)
    assert names == sorted(file.stem for file in (ROOT / "colab").glob("*.ipynb"))
    for name in names:
        made = json.loads((tmp_path / f"{name}.ipynb").read_text())["cells"]
        there = json.loads((ROOT / "colab" / f"{name}.ipynb").read_text())["cells"]
        tags = [cell["metadata"].get("tags", []) for cell in made if cell["cell_type"] == "code"]
        assert tags[0] == ["hide-input"] and not any(tags[1:])
        same = lambda cells: ["".join(cell["source"]) for cell in cells[1:]]
        assert same(made) == same(there)


def test_what_scrolls_takes_the_focus(part, tmp_path):
    (tmp_path / "a.html").write_text('<pre>x</pre><p class="caption" role="heading">y</p>')
    part("access").complete(tmp_path)
    text = (tmp_path / "a.html").read_text()
    assert '<pre tabindex="0">' in text and 'role="heading" aria-level="2">' in text


def test_the_workflow_publishes_what_the_command_makes():
    flow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    pages = flow.split("\n  pages:")[1].split("\n\n")[0]
    assert "python .github/site " in pages and "deploy-pages" in pages and "docs" in pages
    said = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
    assert ".venv/bin/python .github/site FOLDER" in said


@pytest.fixture
def command():
    """The names of the command, which needs the extra `docs`."""
    for module in ("sphinx", "furo", "myst_nb"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not here: extra docs")
    before = set(sys.modules)
    yield runpy.run_path(str(SITE), run_name="command")
    for name in set(sys.modules) - before:
        if str(SITE) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def test_a_folder_with_other_files_is_left_alone(command, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"out=.* holds other files\. Try a new folder"):
        command["build"](tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "said, lines",
    [
        ("expected", ["a docstring of `x`"]),
        (r"norms \|\|x\|\| and c\* of a\_", ["norms ||x|| and c* of a_"]),
        ("`|x|` stays", ["`|x|` stays"]),
    ],
)
def test_signs_of_a_docstring_are_shown_as_they_are(said, lines, command, monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))
    made = importlib.import_module("extension").restructured(lines)
    assert made == ([said] if said != "expected" else lines)


def test_code_and_lists_of_a_docstring_are_code_and_lists(command, monkeypatch):
    monkeypatch.syspath_prepend(str(SITE))
    lines = ["Text:", "- one", "- two", "", "```python", "x = |y|", "```", "End."]
    made = importlib.import_module("extension").restructured(lines)
    assert made == [
        *("Text:", "", "- one", "- two", "", "", ".. code-block:: python", ""),
        *("   x = |y|", "", "End."),
    ]


def _build(out, source, *more):
    """The exit status, and standard error, of a build whose pages are given."""
    import subprocess

    code = "import runpy, sys, pathlib; made = runpy.run_path(sys.argv[1], run_name='command')\n"
    code += "text = sys.argv[3]\n"
    code += "def write(folder):\n    folder.mkdir()\n    (folder / 'index.md').write_text(text)\n"
    code += "if text: made['build'].__globals__['write_sources'] = write\n"
    code += "sys.exit(made['build'](pathlib.Path(sys.argv[2])))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(SITE), str(out), source],
        capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_a_name_without_reference_and_a_link_to_nothing_are_errors(command, tmp_path):
    text = '# Front\n\n[gone](nowhere.md)\n\n<p><a href="none.html">none</a></p>\n'
    status, error = _build(tmp_path / "out", text)
    assert status == 1
    assert "public name without reference: jaxbounds.verify" in error
    assert "nowhere.md" in error
    assert "dead link: index.html: none.html: no such file" in error


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_site_is_made_and_answers_each_question_by_one_search(command, tmp_path):
    status, error = _build(tmp_path / "out", "")
    assert (status, error) == (0, "")
    # Made again in its place, and searched without any network.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = next((p for p in ("/usr/bin/chromium", "/usr/bin/google-chrome")
                        if Path(p).exists()), None)  # fmt: skip
        if program is None:
            pytest.skip("no Chromium or Chrome on this machine")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_context(offline=True).new_page()
        for question in QUESTIONS:
            asked = re.sub(r"[^\w. ]", " ", question)
            tab.goto(f"{(tmp_path / 'out/search.html').as_uri()}?q={asked}")
            tab.wait_for_selector("#search-results li a")
            first = tab.locator("#search-results li a").all_text_contents()[:3]
            assert question in first, question
        browser.close()
