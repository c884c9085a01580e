"""The committed witnesses are those of today's statements; `tests/witnesses` checks their truth."""

import json
from pathlib import Path

import pytest

from jaxbounds.certification import disprove, load_witness, witness_of
from jaxbounds.certification.failing import stored
from jaxbounds.papers import load_papers

FILES = Path(__file__).parents[1] / "witnesses" / "files"
FAILING = [(s, failing) for p in load_papers() for s in p.statements for failing in stored(s)]
SHORT = {"multihead.eq51", "multihead.sec5.2.phi0", "seqlength.appc.holder", "qstr.lem38.bias"}
TITLES = {s.id: paper.title for paper in load_papers() for s in paper.statements}
WORDS = ("paper", "citation", "label", "formula", "note", "cites", "relation", "assumptions")


def file_of(statement, failing):
    return FILES / f"{statement.id}.{statement.form(failing.form).file_name}.json"


def test_there_is_one_for_every_failing_form():
    assert {file_of(*each).name for each in FAILING} == {path.name for path in FILES.glob("*")}


@pytest.mark.parametrize(
    ("statement", "failing"), [pytest.param(s, f, id=f"{s.id}-{f.form}") for s, f in FAILING]
)
def test_its_words_are_those_of_the_statement(statement, failing):
    """New words: `jaxbounds certify ID --out FOLDER`, then copy FOLDER/witnesses here.

    The checker holds the words as well: `tests/witnesses/test_claims.py` says what to change there.
    """
    kept, _ = load_witness(file_of(statement, failing))
    form = statement.form(failing.form)
    assert {name: kept[name] for name in WORDS} == {
        "paper": statement.paper,
        "citation": TITLES[statement.id],
        "label": statement.label,
        "formula": statement.formula,
        "note": form.note,
        "cites": form.cites,
        "relation": statement.relation,
        "assumptions": statement.assumptions,
    }


@pytest.mark.parametrize(
    ("statement", "failing"),
    [
        pytest.param(s, f, id=f"{s.id}-{f.form}", marks=[pytest.mark.slow] * (s.id not in SHORT))
        for s, f in FAILING
    ],
)
def test_it_is_what_certify_writes(statement, failing):
    """Run again: `jaxbounds certify --out FOLDER`, then copy FOLDER/witnesses here."""
    path = file_of(statement, failing)
    kept, _ = load_witness(path)
    certificate = disprove(statement, *failing)
    fresh = witness_of(statement, failing.instance, certificate, TITLES[statement.id])
    moved = ("digest", "lhs", "rhs")
    rest = lambda witness: {name: entry for name, entry in witness.items() if name not in moved}
    assert rest(kept) == rest(json.loads(json.dumps(fresh)))
    for side in ("lhs", "rhs"):
        (a, b), (c, d) = (map(float, witness[side]) for witness in (kept, fresh))
        assert max(a, c) <= min(b, d) * (1 + 1e-15) + 1e-300 or min(b, d) < 0
