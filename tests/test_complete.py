"""Completeness: a thing that is exported, declared or documented in one place is there in all."""

import importlib
import inspect
import pkgutil
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import jaxbounds as jb
from jaxbounds.claims.records import VALUES, read_records
from jaxbounds.claims.statements.kinds import BY_INSTANCE, ON_AVERAGE, TRAITS, Kind
from jaxbounds.cli.guide import TOPICS
from jaxbounds.falsification import Verdict
from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers import load_papers
from jaxbounds.programs.balls.coverage import coverage
from jaxbounds.programs.primitives import PRIMITIVES
from jaxbounds.report import rows
from jaxbounds.report.terminal import PAPER_COLUMNS, paper_rows
from jaxbounds.runs import engines

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "jaxbounds"
GUIDE = PACKAGE / "guide"
PAGES = [*sorted(GUIDE.glob("*.md")), ROOT / "README.md", ROOT / ".github" / "CONTRIBUTING.md"]
WRITTEN_BY_RUNS = {"claims.py", "mine.py", "verdicts.json"}
"""Files that CONTRIBUTING names and a contributor or a run writes."""
WITHOUT_A_RULE = {
    "bessel_i0e", "bessel_i1e", "complex", "conj", "empty", "empty2", "igamma_grad_a",
    "imag", "polygamma", "random_seed", "real", "reduce_precision",
    "regularized_incomplete_beta", "scatter-sub", "zeta",
}  # fmt: skip
"""Primitives in the table that neither NumPy nor ball arithmetic runs; the set may only shrink."""


def test_the_parameters_of_public_functions_stand_under_args():
    unsaid = []
    for name in dir(jb):
        found = getattr(jb, name)
        if not inspect.isfunction(found):
            continue
        said = re.findall(r"^ {4,}\**(\w+(?:, \w+)*):", inspect.getdoc(found) or "", re.MULTILINE)
        names = {one for line in said for one in line.split(", ")}
        unsaid += [f"{name}({p})" for p in inspect.signature(found).parameters if p not in names]
    assert unsaid == []


def test_args_name_parameters_that_exist():
    invented = []
    for name in dir(jb):
        found = getattr(jb, name)
        if not inspect.isfunction(found):
            continue
        args = re.search(r"\nArgs:\n(.*?)(\n\w+:|\Z)", inspect.getdoc(found) or "", re.DOTALL)
        said = re.findall(r"^ {4}\**(\w+):", args[1], re.MULTILINE) if args else []
        there = inspect.signature(found).parameters
        invented += [f"{name}({p})" for p in said if p not in there]
    assert invented == []


def test_each_primitive_of_the_table_has_a_rule():
    rules = {row.name: row.numpy or row.balls or row.slopes for row in coverage()}
    lacking = {name for name in PRIMITIVES if not rules.get(name, False)}
    assert lacking == WITHOUT_A_RULE


def test_each_option_of_a_sweep_is_in_its_page():
    page = (GUIDE / "sweeps.md").read_text()
    for name, parameter in inspect.signature(jb.sweep).parameters.items():
        own = rf"`{name}`|\b{name}=" if parameter.kind is parameter.KEYWORD_ONLY else rf"\b{name}\b"
        assert re.search(own, page), f"{name}: a word of the text is not the option"


@pytest.mark.parametrize("engine", engines.KINDS.replace(" or ", ", ").split(", "))
def test_each_engine_is_opened_and_said(engine, tmp_path, monkeypatch):
    """An engine that `check` lets pass and `opened` does not know would be local processes."""
    name = engine.split(":")[0]
    named = rf"`{name}`|--engine {name}\b"
    assert re.search(named, (GUIDE / "engines.md").read_text()), "guide/engines.md"
    assert f'"{engine}"' in inspect.getdoc(jb.verify), "Args of jb.verify"
    assert f'"{engine}"' in inspect.getdoc(engines.Engine), "docstring of Engine, for --engine"
    monkeypatch.setattr(engines, "_dask", lambda address, closing: ThreadPoolExecutor(1))
    on = engines.Engine(engine=engine.replace("PORT", "1"))
    try:
        with engines.opened(on, count=1, folder=tmp_path) as executor:
            assert isinstance(executor, engines.Processes) == (name == "processes")
    except Refused as refused:
        assert name == "slurm", refused


@pytest.mark.parametrize("paper", load_papers(), ids=lambda p: p.id)
def test_each_statement_has_values_on_record(paper):
    assert {s.id for s in paper.statements} == {*read_records(paper, VALUES)}


def test_each_kind_has_its_traits():
    assert sorted(TRAITS) == sorted(get_args(Kind)), "TRAITS of claims/statements/kinds.py"
    assert sorted((*BY_INSTANCE, *ON_AVERAGE)) == sorted(get_args(Kind))


EQUALITIES = {"identity", "construction"}
"""The kinds whose usual claim is that both sides are equal."""


@pytest.mark.parametrize("kind, traits", TRAITS.items())
def test_a_bound_on_each_instance_or_run_may_be_strict(kind, traits):
    assert (traits.relation == "=") == (kind in EQUALITIES), "relation of TRAITS"
    if kind in BY_INSTANCE and kind not in EQUALITIES:
        one = next(s for s in jb.load_paper("qstr").statements if s.kind == "inequality")
        bare = tuple(replace(form, equality="") for form in one.forms)
        assert replace(one, kind=kind, strict=True, forms=bare).strict, "claims/statements/problems"


@pytest.mark.parametrize("kind, traits", TRAITS.items())
def test_the_page_on_verdicts_says_what_decides_a_kind(kind, traits):
    rows = re.findall(r"^\| (\w+) \| .* \| (.*) \|$", (GUIDE / "verdicts.md").read_text(), re.M)
    assert dict(rows).get(kind) == traits.decider, "guide/verdicts.md, How it decides"


def test_each_kind_that_is_an_average_says_its_words_on_the_page():
    from jaxbounds.report.rows import _WORDS

    assert {*_WORDS} == {*ON_AVERAGE}, "report/rows.py: the words of a kind that is an average"


def test_each_kind_that_is_an_average_has_its_own_words_and_ratio():
    words = [rows._WORDS[kind] for kind in sorted(rows._WORDS)]
    assert len(set(map(str, words))) == len(words)
    said = inspect.getdoc(Verdict)
    ratio = said[said.index("worst_ratio:") :].split("\n    instances:")[0]
    assert [kind for kind in ON_AVERAGE if kind not in ratio] == []


def test_the_readme_lists_each_topic_where_it_says_how_to_read_on():
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    section = re.search(r"\n## Where to read on\n(.*?)(\n## |\Z)", readme, re.DOTALL)[1]
    assert [topic for topic in TOPICS if f"`{topic}`" not in section] == []


def test_each_page_of_the_guide_is_a_topic():
    assert sorted(TOPICS) == sorted(file.stem for file in GUIDE.glob("*.md"))


def _cells(line):
    inner = re.sub(r"`[^`]*`", "code", line).strip()
    return len(re.split(r"(?<!\\)\|", inner.strip("|")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_pages_have_as_many_cells_as_heads(page):
    heads = None
    for number, line in enumerate(page.read_text(encoding="utf8").splitlines(), 1):
        if not line.startswith("|"):
            heads = None
            continue
        heads = _cells(line) if heads is None else heads
        assert _cells(line) == heads, f"{page.name}:{number}"


def test_the_row_of_a_paper_has_as_many_cells_as_heads():
    from jaxbounds.falsification import unmeasured

    paper = jb.load_paper("smapprox")
    verdicts = unmeasured(paper.statements[0], "not tried")
    assert [len(row) for row in paper_rows([paper], verdicts)] == [len(PAPER_COLUMNS)]


def test_contributing_names_files_that_exist():
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:[\w.<>-]+/)*[\w<>.-]+\.(?:py|md|json|toml|css|js|pyi|txt))`", text)
    rooms = [ROOT, PACKAGE, ROOT / "tests", *(path for path in PACKAGE.iterdir() if path.is_dir())]
    given = [name for name in named if "<" not in name and name not in WRITTEN_BY_RUNS]
    lost = [name for name in given if not any((room / name).exists() for room in rooms)]
    assert given and lost == []


def _declared(module):
    """The statements that a module names, alone or within a tuple, a list or a dictionary."""
    for name, value in vars(module).items():
        inner = value.values() if isinstance(value, dict) else value
        for one in inner if isinstance(value, tuple | list | dict) else [value]:
            if isinstance(one, jb.Statement):
                yield name, one


@pytest.mark.parametrize("paper", load_papers(), ids=lambda p: p.id)
def test_each_statement_of_a_module_stands_in_its_paper(paper):
    """A statement that no tuple names, or a tuple that `SECTIONS` lacks, would judge nothing."""
    package = importlib.import_module(f"jaxbounds.{paper.id}.statements")
    known, found = {id(one) for one in paper.statements}, set()
    for file in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, one in _declared(importlib.import_module(file.name)):
            assert id(one) in known, f"{file.name}.{name} ({one.id}): STATEMENTS, SECTIONS"
            found.add(id(one))
    assert found == known


@pytest.mark.parametrize("paper", load_papers(), ids=lambda p: p.id)
def test_each_statement_stands_beside_an_item_of_its_paper(paper):
    """`jaxbounds show "PAPER ITEM"` finds a statement by the item that names it."""
    named = set(re.findall(r"[\w.-]*\w", " ".join(paper.items.values())))
    unnamed = {one.id for one in paper.statements} - named
    assert unnamed == set(), "statements/items.py"
