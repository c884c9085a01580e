"""A column of the verdicts is declared once: `report.columns.COLUMNS`."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements import ON_AVERAGE, Kind
from jaxbounds.falsification import Verdict
from jaxbounds.report import columns
from jaxbounds.report.columns import BRIEF, COLUMNS, closeness

PAPER = """
import jax
from jaxbounds import Form, Paper, Sides, Statement

def evaluate(instance, size):
    x = instance["x"]
    return Sides(x, {"printed": 2 * x, "control": x / 2, "sharpened": x})

PAPER = Paper(id="columned", title="Columns", statements=(Statement(
    id="columned.one", label="Lemma 1", formula="x <= 2 x", kind="inequality",
    evaluate=evaluate, sample=lambda key, size: {"x": jax.random.uniform(key)}, sizes=({},),
    forms=(Form(name="printed"), Form(name="sharpened", equality="every x")), control="half"),))
"""
PROGRAM = """
import sys
from jaxbounds.report import columns
added = columns.Column(name="planted", text=lambda v: f"<{v.form}!", width=11, brief=True)
import jaxbounds as jb
from jaxbounds.report import audit, page, rows, terminal, verdict_table
for module in (columns, audit, page, rows, terminal):
    for name in {"COLUMNS", "BRIEF"} & vars(module).keys():
        setattr(module, name, (*getattr(module, name), added))
from rich.console import Console
found = jb.verify("columned.py", out="here", jobs=1)
print("--- terminal")
Console(width=150).print(verdict_table(found, width=150))
print("--- notebook")
print(found._repr_html_())
print("--- audit")
print(jb.audit("columned.py", certify=False, out="audited"))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "columned.py").write_text(PAPER)
    return tmp_path


def test_a_new_column_is_everywhere(folder):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    page = (folder / "here" / "report.html").read_text()
    places = dict(part.split("\n", 1) for part in done.stdout.split("--- ")[1:])
    for name, text in places.items() | {("page", page)}:
        assert "planted" in text.lower(), name
        assert re.search(r"(<|&lt;)printed!", text), name


DISTINCT = Verdict(
    id="mine.id", paper="mine", label="Label", kind="inequality", relation="<=", form="printed one",
    expected="fails", status="holds", reason="reason", worst_ratio=0.25, instances=101,
    searches=102, recorded=True, evidence="searched", accepted=103, distinct=104,
    by_size={"n=105": 0.106, "n=107": 0.108}, sensitivity=0.109, horizon=110,
    enumerates="enumerates", drawn=0.111, counterexample_ratio=0.112, worst_file="worst",
    shrunk_ratio=0.113, shrunk_file="shrunk", size={"n": 114}, sides=(1.15, 4.6), tolerance=0.116,
    seconds=117.5, seed=118, source="source", quantiles=(0.119,), checked=("checked",),
)  # fmt: skip
"""A verdict whose fields all differ, so that a column that shows another field is seen."""
MAKERS = ("Verdict", "replace", "_replace")
"""The functions that give fields of a verdict their values."""
CELLS = {
    "statement": "mine.id",
    "kind": "inequality",
    "form": "printed one",
    "verdict": "holds (recorded: fails)",
    "how close": "x4 loose",
    "evidence": "searched",
    "draws": "",
    "samples": "101",
    "largest size": "n=107",
}
"""The text of each column for the verdict `DISTINCT`; `draws` is a picture of the page."""


NO_NUMBER_OR_TEXT = {"out_of_time", "near", "certificate", "precision", "witness_file"}
"""Fields whose values in `DISTINCT` need not differ from the default: flags, and a few words."""


def test_the_fields_of_the_distinct_verdict_are_set():
    plain = [
        f.name for f in dataclasses.fields(Verdict)
        if f.default is not dataclasses.MISSING and getattr(DISTINCT, f.name) == f.default
    ]  # fmt: skip
    assert set(plain) <= NO_NUMBER_OR_TEXT


def test_each_field_of_a_verdict_is_given_a_value_somewhere_and_documented():
    given = set()
    for path in Path(jb.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] in MAKERS:
                given |= {word.arg for word in call.keywords}
    said = re.findall(r"^ {4}(\w+):", inspect.getdoc(Verdict), re.MULTILINE)
    for field in dataclasses.fields(Verdict):
        constant = field.name == "precision"  # checks run in float64
        assert constant or field.name in given, f"no call gives {field.name}= a value"
        assert field.name in said, f"`Attributes` of `Verdict` lacks {field.name}"


def test_each_column_shows_its_field():
    assert {column.name: column.text(DISTINCT) for column in COLUMNS} == CELLS


def test_each_row_of_the_page_has_as_many_cells_as_there_are_heads(folder):
    found = jb.verify(str(folder / "columned.py"), out=folder / "out", jobs=1)
    page = (folder / "out" / "report.html").read_text()
    table = page.split('id="verdicts"')[1]
    heads = re.findall(r"<th[ >]", table.split("</thead>")[0])
    assert len(heads) == len(COLUMNS)
    rows = re.findall(r'<tr class="judged".*?</tr>', table, re.DOTALL)
    spanned = 0
    for row in rows:
        own = re.sub(r"<svg.*?</svg>", "", row, flags=re.DOTALL)
        assert len(re.findall(r"<t[hd][ >]", own)) + spanned == len(COLUMNS)
        spanned = len(re.findall("rowspan", own)) or spanned
    assert len(rows) == 2
    assert f'colspan="{len(COLUMNS)}"' in table
    script = (Path(columns.__file__).with_name("page.js")).read_text(encoding="utf8")
    sorted_by = re.findall(r"Number\(dataset\.(\w+)\)", script)
    assert "samples" in sorted_by
    for name in sorted_by:
        texts = [re.search(rf'data-{name}="(.*?)"', row)[1] for row in rows]
        assert all(float(text) >= 0 for text in texts), "the page sorts these as numbers"
        (column,) = (column for column in COLUMNS if column.sort == name)
        assert texts == [column.text(verdict) for verdict in found]


def test_the_page_sorts_by_each_key_that_a_column_names():
    """A key that the page lacks would be an error of the script at the first click."""
    folder = Path(columns.__file__).parent
    script = (folder / "page.js").read_text(encoding="utf8")
    keys = re.search(r"const keys = \{\n(.*?)\n  \};", script, re.DOTALL)[1]
    assert {*re.findall(r"^ +(\w+):", keys, re.MULTILINE)} == {c.sort for c in COLUMNS} - {""}
    rows = (folder / "rows.py").read_text(encoding="utf8")
    for name, field in re.findall(r"(\w+): .*dataset\.(\w+)", keys):
        assert field == name, "the key reads another column"
    read = re.findall(r"dataset\.(\w+)", keys)
    assert read and [name for name in read if f"data_{name}=" not in rows] == []


def test_notebooks_and_audits_have_the_brief_columns(folder):
    found = jb.verify(str(folder / "columned.py"), jobs=1)
    heads = re.findall("<th>(.*?)</th>", found._repr_html_())
    assert heads == [column.name for column in BRIEF]


BY_KIND = {
    "probability": "0.500 of the level",
    "expectation": "x2 loose",
    "rate": "exponent 0.50",
    "limit": "0.500 apart",
}
"""The words for the ratio 0.5 of a claim that no single instance decides."""


@pytest.mark.parametrize("kind", ON_AVERAGE)
def test_each_kind_without_a_deciding_instance_has_words_of_its_own(kind):
    verdict = dataclasses.replace(DISTINCT, kind=kind, worst_ratio=0.5, status="consistent")
    assert closeness(verdict) == BY_KIND[kind]


def test_a_strict_claim_that_fails_by_equal_sides_is_not_called_loose():
    verdict = dataclasses.replace(DISTINCT, status="fails", worst_ratio=0.98)
    assert closeness(verdict) == "equal sides"


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_guide_names_each_kind(kind):
    start = Path(jb.__file__).with_name("guide").joinpath("start.md").read_text(encoding="utf8")
    assert kind in start.replace("limits", "limit")


MEET = {  # both sides are zero as two points meet, and the ratio tends to one
    "linear": (lambda x, y: jnp.abs(jnp.tanh(x) - jnp.tanh(y)), lambda x, y: jnp.abs(x - y)),
    "quadratic": (lambda x, y: jnp.log(jnp.cosh(x - y)), lambda x, y: (x - y) ** 2 / 2),
}


@pytest.mark.parametrize("name", MEET)
def test_the_words_for_a_ratio_of_one_are_in_the_guide(name):
    lhs, rhs = MEET[name]
    over = {"x": jb.Box(-3, 3, ()), "y": jb.Box(-3, 3, ())}
    (found,) = jb.falsify(jb.claim("t.meet", lhs, "<=", rhs, over=over))
    words = re.sub(r"[\d.]+e-\d+", "9e-10", f"{closeness(found)}, {found.evidence}")
    assert found.status == "holds"
    assert (
        f"| {words} |" in Path(jb.__file__).with_name("guide").joinpath("verdicts.md").read_text()
    )
    if name == "linear":
        assert words == "approached, approached"


U, V = {"k": jb.Box(0, 1)}, {"k": jb.Box(-1, 1)}


@pytest.mark.parametrize("lhs, relation, rhs, over, words", [
    (lambda k: -1.0 - 0 * k, "<=", lambda k: -2.0 + 0 * k, U, "over by 1"),
    (lambda k: -100.0 - k, "<=", -1.0, U, "loose by 99"),
    (lambda k: -5.0 - k, "<=", 3.0, U, "loose by 8"),
    (lambda k: k, "<=", 0.0, U, "over by 1"),
    (lambda k: k, ">=", 0.0, V, "short by 1"),
    (lambda k: k - 2, "<=", 0.0, U, "loose by 1"),
    (lambda k: k**2, ">=", 0.1, V, "short by 0.1"),
    (lambda k: 1 - k, "<=", lambda k: jnp.sin(jnp.pi * (1 + 0 * k)), U, "over by 1"),
    (lambda k: -1.0 + 0 * k, ">=", lambda k: -3.0 + k, U, "loose by 1"),
    (lambda k: -1.0 + 0 * k, ">=", lambda k: 3.0 + k, U, "short by 5"),
    (lambda k: k, "<=", lambda k: 4.0 + 0 * k, U, "x4 loose"),
])  # fmt: skip
def test_sides_that_are_not_positive_are_compared_by_their_difference(
    lhs, relation, rhs, over, words, tmp_path
):
    small = jb.Budget(samples=32, restarts=4, steps=60)
    one = jb.claim("t.sides", lhs, relation, rhs, over=over, budget=small)
    (found,) = jb.falsify(one, store=tmp_path)
    assert closeness(found) == words
    assert ("sides there" in repr(found)) == any(side <= 0 for side in found.sides)
    assert Verdict.from_json(found.to_json()).sides == found.sides
    meta = jb.load_instance(tmp_path / found.worst_file).meta
    if found.sides[relation == "<="] <= 0:
        assert (meta["lhs"], meta["rhs"]) == found.sides
    unsure = dataclasses.replace(found, status="inconclusive")
    if words.startswith(("over", "short")):
        assert closeness(unsure) == f"{words.split()[-1]} undecided"


WITHOUT_WIDTH = {"form", "largest size"}
"""Columns of the page that share the width that the other columns leave."""


def test_the_page_gives_each_column_its_width_and_its_side():
    css = (Path(columns.__file__).parent / "page.css").read_text()
    words = {one.name: one.name.rpartition(" ")[2] for one in COLUMNS}
    wide = set(re.findall(r"^\.column-(\w+) \{ width:", css, re.MULTILINE))
    assert wide == {word for name, word in words.items() if name not in WITHOUT_WIDTH}
    (right,) = re.findall(r"([^}]*)\{\s*text-align: right; font-variant-numeric", css)
    assert {one.css for one in COLUMNS if one.right} <= set(re.findall(r"\.([\w-]+)", right))


def test_the_page_hides_a_narrow_column_with_its_head():
    css = (Path(columns.__file__).parent / "page.css").read_text()
    words = {one.name: one.name.rpartition(" ")[2] for one in COLUMNS}
    for rule in re.findall(r"([^{}]*\.column-\w[^{}]*)\{", css):
        for one in (one for one in COLUMNS if f".{one.css}," in rule):
            assert f".column-{words[one.name]}" in rule, "the head lacks this style"
    (narrow,) = re.findall(r"th:is\(:not\(:has\(button\)\), (.*)\)", css)
    counts = {one.name for one in COLUMNS if one.css == "count" and one.sort}
    assert {*narrow.split(", ")} == {f".column-{words[name]}" for name in counts}


def test_the_least_screen_of_each_column_has_room_for_it():
    for screen in {80} | {one.screen for one in COLUMNS if one.screen}:
        shown = [one for one in COLUMNS if one.width is not None and one.screen <= screen]
        assert sum(one.width or 9 for one in shown) + 3 * (len(shown) - 1) <= screen
