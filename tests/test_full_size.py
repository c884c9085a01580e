"""Runs at full size: their records belong to the presets, and the guide shows their numbers."""

import json
import re
import runpy
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import jaxbounds
from jaxbounds.cli.guide import topic_text
from jaxbounds.papers import experiments, find_experiment
from jaxbounds.papers.full_size import EARLIER, PRESET, records, small_preset

GUIDE = (Path(jaxbounds.__file__).parent / "guide" / "figures.md").read_text(encoding="utf8")
COMMAND = runpy.run_path(str(Path(__file__).parents[1] / ".github" / "full_size.py"))
plain = COMMAND["plain"]


def _rows():
    """The rows of the guide's table, by figure: (CPU s, claims, the numbers of ours)."""
    found, last = {}, ""
    for line in GUIDE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 5:
            continue
        last = cells[0].strip("`") or last
        found.setdefault(last, []).append(cells[1:])
    return {name: rows for name, rows in found.items() if name.startswith("multihead.fig")}


def test_each_record_is_of_the_preset_as_it_is_now():
    assert set(records()) >= {f"multihead.fig{number}" for number in (2, 3, 4, 5)}
    for name, one in records().items():
        assert one.config == plain(find_experiment(name).presets[PRESET]), name
        assert one.claims and {claim.answer for claim in one.claims} <= {"yes", "NO", "open"}
        assert one.seed == 0 and one.cpu_seconds > 0 and one.machine.endswith("CPU cores")


def test_each_quick_record_is_of_the_preset_as_it_is_now():
    assert records("quick")
    for name, one in records("quick").items():
        experiment = find_experiment(name)
        settings = COMMAND["settings_of"](experiment, small_preset(experiment))
        assert one.config == plain(settings), name
        assert one.claims and {claim.answer for claim in one.claims} <= {"yes", "NO", "open"}
        assert one.cpu_seconds > 0 and one.machine.endswith("CPU cores")


def test_the_guide_shows_the_quick_records_claim_by_claim(monkeypatch):
    shown = topic_text("results")
    assert shown == COMMAND["page"](), "run: python .github/full_size.py"
    for name, one in records("quick").items():
        assert f"{name}: {small_preset(find_experiment(name))}, {one.cpu_seconds} CPU s" in shown
    kept = dict(records("quick"))
    name, one = kept.popitem()
    monkeypatch.setitem(COMMAND["page"].__globals__, "records", lambda kind: kept)
    without = COMMAND["page"]()
    assert f"{name}: " not in without and name in without.rpartition("No record yet:")[2]
    first = one.claims[0]
    other = "NO" if first.answer == "yes" else "yes"
    changed = replace(one, claims=(first._replace(answer=other), *one.claims[1:]))
    kept[name] = changed
    assert COMMAND["page"]() != shown


def test_no_figure_is_listed_twice():
    known = {e.id for e in experiments().values() if PRESET in e.presets}
    assert set(records()) | set(EARLIER) <= known and not set(records()) & set(EARLIER)


@pytest.mark.parametrize("name", sorted(records()))
def test_the_guide_shows_the_numbers_on_record(name):
    one, rows = records()[name], _rows()[name]
    assert int(rows[0][0]) == one.cpu_seconds
    said = Counter(claim.answer for claim in one.claims)
    assert rows[0][1] == ", ".join(
        f"{said[word]} {word}" for word in ("yes", "NO", "open") if said[word]
    )
    kept = " ".join(claim.claim + " " + claim.number for claim in one.claims)
    on_record = set(re.findall(r"\d[\d.e+-]*\d|\d", kept))
    for *_, ours in rows:
        shown = re.findall(r"\d[\d.e+-]*\d|\d", ours.replace("10^", ""))
        assert shown and set(shown) <= on_record, (ours, set(shown) - on_record)


def test_a_run_with_other_settings_is_not_put_on_record(tmp_path, monkeypatch):
    experiment = find_experiment("multihead.fig2")
    config = plain(asdict(replace(experiment.presets[PRESET], trials=2)))
    attrs = {"experiment": experiment.id, "config": config}
    dataset = type("Loaded", (), {"attrs": attrs})()
    monkeypatch.setitem(COMMAND["record"].__globals__, "load", lambda path: dataset)
    with pytest.raises(ValueError, match="differs from the presets 'published' and 'quick'"):
        COMMAND["record"](tmp_path, 1.0, "2 CPU cores")
    assert COMMAND["preset_of"](experiment, config) == ""
    assert COMMAND["preset_of"](experiment, plain(experiment.presets["quick"])) == "quick"


def test_a_record_is_written_as_it_is_read(tmp_path, monkeypatch):
    place = lambda paper, kind: tmp_path / f"{kind}.json"
    monkeypatch.setitem(COMMAND["keep"].__globals__, "place", place)
    for kind in ("full_size", "quick"):
        for name, one in records(kind).items():
            COMMAND["keep"](kind, name, one)
        kept = json.loads(place("", kind).read_text())
        assert kept == {name: plain(asdict(one)) for name, one in records(kind).items()}


def test_a_run_goes_on_record_by_its_settings():
    kind_of = COMMAND["kind_of"]
    fig2, comparison = find_experiment("multihead.fig2"), find_experiment("seqlength.comparison")
    assert kind_of(fig2, plain(fig2.presets["published"])) == "full_size"
    assert kind_of(fig2, plain(fig2.presets["quick"])) == "quick"
    assert kind_of(comparison, plain(comparison.config)) == "quick"
