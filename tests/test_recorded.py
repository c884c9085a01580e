"""Worst ratios that move are said, and the file of recorded ones is whole."""

import dataclasses
import math

import pytest

from jaxbounds.claims.records import RATIOS, read_records
from jaxbounds.claims.statements.kinds import BY_INSTANCE
from jaxbounds.cli import main
from jaxbounds.falsification import Verdict
from jaxbounds.papers import load_paper, load_papers
from jaxbounds.runs import drift

VERDICT = Verdict(
    id="qstr.lem12", paper="qstr", label="Lemma 12", kind="inequality", relation="<=",
    form="printed", expected="holds", status="holds", reason="", worst_ratio=0.5, instances=1,
    searches=0,
)  # fmt: skip


@pytest.mark.parametrize(
    "change, said",
    [
        ({}, False),
        ({"worst_ratio": 0.5 * (1 + 1e-8)}, False),
        ({"worst_ratio": 0.51}, True),
        ({"worst_ratio": 0.51, "accepted": 3}, False),
        ({"worst_ratio": 0.53, "accepted": 3}, True),
        ({"worst_ratio": 0.51, "relation": "="}, False),
        ({"worst_ratio": float("nan")}, False),
        ({"form": "sharpened"}, True),
    ],
)
def test_what_moved_is_said(change, said):
    verdict = dataclasses.replace(VERDICT, **change)
    lines = list(drift.moved([verdict], {"qstr.lem12": {"printed": {"worst": 0.5}}}))
    assert bool(lines) == said
    if change == {"worst_ratio": 0.51}:
        assert lines == ["qstr.lem12 (printed): worst 0.51, on record 0.5"]


def test_a_size_or_the_mean_of_the_draws_that_moves_is_said():
    """The worst ratio is at the smallest size; a factor n that is lost shows at the others only."""
    before = {"worst": 0.5, "drawn": 0.25, "n=1": 0.5, "n=4": 0.5}
    sizes = {"n=1": 0.5, "n=4": 0.5}
    same = dataclasses.replace(VERDICT, drawn=0.25, by_size=sizes, accepted=3)
    assert list(drift.differences(same, before)) == []
    lost = dataclasses.replace(same, by_size=sizes | {"n=4": 0.125})
    assert list(drift.differences(lost, before)) == ["n=4"]
    assert list(drift.differences(dataclasses.replace(same, drawn=0.2501), before)) == ["drawn"]


@pytest.mark.parametrize("paper", load_papers(), ids=lambda p: p.id)
def test_the_records_are_about_the_statements(paper):
    ratios = read_records(paper, RATIOS)
    forms = {s.id: {f.name for f in s.forms} for s in paper.statements}
    assert set(ratios) <= set(forms)
    assert all(set(known) <= forms[name] for name, known in ratios.items())
    # Identities that hold are compared with their tolerance, and have none.
    bound = lambda s: s.is_bound and s.kind in BY_INSTANCE
    unrecorded = [
        f"{s.id} ({f.name})"
        for s in paper.statements
        for f in s.forms
        if (f.expected == "fails" or (f.expected == "holds" and bound(s)))
        and f.name not in ratios.get(s.id, {})
    ]
    assert unrecorded == []
    for s in filter(bound, paper.statements):
        for f in s.forms:
            known = ratios[s.id].get(f.name, {})
            assert f.expected != "holds" or known["worst"] <= 1 + s.tolerance, (s.id, f.name)
            of_sizes = [value for key, value in known.items() if key not in ("worst", "drawn")]
            if of_sizes and f.expected == "holds":
                assert known["worst"] == max(of_sizes), (s.id, f.name)


def test_a_part_replaces_its_own_ratios(tmp_path):
    paper = dataclasses.replace(load_paper("qstr"), folder=tmp_path)
    now = lambda: read_records(paper, RATIOS)
    other = dataclasses.replace(VERDICT, id="qstr.lem13", worst_ratio=0.25)
    drift.record([VERDICT, other], [paper], others=False)
    drift.record([dataclasses.replace(VERDICT, form="sharpened")], [paper], others=True)
    assert now() == {
        "qstr.lem12": {"sharpened": {"worst": 0.5}},
        "qstr.lem13": {"printed": {"worst": 0.25}},
    }
    drift.record([dataclasses.replace(VERDICT, worst_ratio=float("nan"))], [paper], others=True)
    assert list(now()) == ["qstr.lem13"]
    (tmp_path / RATIOS).write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        now()


def test_a_ratio_to_a_side_that_vanishes_keeps_what_is_finite(tmp_path):
    """A search may reach a right side of 0; the draws and the other sizes are still known."""
    paper = dataclasses.replace(load_paper("qstr"), folder=tmp_path)
    sizes = {"n=1": math.inf, "n=4": 2.0}
    infinite = dataclasses.replace(
        VERDICT, status="fails", worst_ratio=math.inf, drawn=1.0, by_size=sizes
    )
    drift.record([infinite], [paper], others=False)
    assert read_records(paper, RATIOS) == {"qstr.lem12": {"printed": {"drawn": 1.0, "n=4": 2.0}}}


def test_a_paper_in_no_file_has_no_records():
    with pytest.raises(ValueError, match="was not loaded from a file"):
        drift.record([VERDICT], [dataclasses.replace(load_paper("qstr"), folder=None)], others=True)


def test_only_what_seed_0_gives_is_recorded(capsys):
    assert main(["verify", "qstr.lem12", "--record", "--seed", "1"]) == 2
    assert "expected seed=0 and thorough=False" in capsys.readouterr().err
