"""What is no witness is refused in one sentence, whatever it is; and no number ends in a crash."""

import copy
import json
import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import checker
import pytest
from checker.__main__ import main
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored import FILES, KNOWN, QUICK, load, signed

WRONG: list[Any] = [
    *(None, True, False, -1, 0.5, 1.0, math.nan, math.inf, 10**400, -(10**30)),
    *("", "x", "nan", "1e9", " 1", "1/0", "2/4", "1/3", "0x1", "\ud800", "\n", "9" * 5000),
    *([], [[]], [None], [["1"], ["1", "2"]], {}, {"a": []}),
]
"""Values that are wrong wherever they stand, or are no other witness there."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
FEW = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
CHEAP = [p.values[0] for p in QUICK]


def places(value: Any) -> Iterator[list[Any]]:
    """Keys and indices that lead to each value inside; of a list to its ends only."""
    steps: list[Any] = []
    if isinstance(value, dict):
        steps = list(value)
    elif isinstance(value, list) and value:
        steps = sorted({0, len(value) - 1})
    for step in steps:
        yield [step]
        for rest in places(value[step]):
            yield [step, *rest]


def replaced(value: Any, place: list[Any], new: Any) -> Any:
    """A copy with another value at a place."""
    if not place:
        return new
    changed = copy.copy(value)
    changed[place[0]] = replaced(value[place[0]], place[1:], new)
    return changed


def renewed(document: Any) -> Any:
    """Signed, where that can be."""
    try:
        return signed(document)
    except ValueError:  # a number of more than 4300 digits
        return document


def refused(document: Any) -> bool:
    verdict = checker.check(document)
    assert "\n" not in verdict.reason
    assert 0 < len(verdict.reason) < 1000
    assert verdict.reason.isascii()
    return verdict.word == "refused"


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


@pytest.mark.default_cases(
    "multihead.prop3.mass.printed",
    "multihead.lem13.derived-alpha-in-1-1-recentred",
    "multihead.eq51.printed",
    "qstr.thm1.heads.derived-q-d",
    "qstr.lem41.printed",
    "seqlength.lemma3.2.printed",
    "seqlength.cor4.2.1.packing.derived",
    "smapprox.condd.3.ties.printed",
    "smapprox.thm4.1.positions.printed",
)
@pytest.mark.parametrize("document", KNOWN)
def test_a_wrong_value_at_any_place_is_refused(document):
    for place in places(document):
        there = document
        for step in place:
            there = there[step]
        for value in WRONG:
            harmless = place == ["entry"] and value is None and document["relation"] == "<="
            if same(there, value) or harmless:
                continue
            wrong = replaced(document, place, value)
            assert refused(wrong if place == ["digest"] else renewed(wrong)) or unknown(wrong), (
                place,
                value,
            )


def unknown(document: dict[str, Any]) -> bool:
    """Of a statement or form that has no claim."""
    found = (document["statement"], document["form"])
    return all(isinstance(name, str) for name in found) and found not in checker.CLAIMS


@pytest.mark.parametrize("document", KNOWN)
def test_a_key_that_is_missing_or_one_too_many_is_refused(document):
    for place in [
        [],
        ["size"],
        ["instance"],
        *(["instance", name] for name in document["instance"]),
    ]:
        node = document
        for step in place:
            node = node[step]
        others = [{k: v for k, v in node.items() if k != name} for name in node]
        for other in [*others, {**node, "more": 1}, {**node, "": None}]:
            changed = replaced(document, place, other)
            assert refused(signed(changed) if "digest" in changed else changed)


@given(JSON)
@FEW
def test_no_value_is_taken_for_a_witness(value):
    assert refused(value)


@given(st.sampled_from(CHEAP), st.data(), JSON)
@FEW
def test_no_value_inside_a_witness_is_a_crash(document, data, value):
    place = data.draw(st.sampled_from(list(places(document))))
    wrong = renewed(replaced(document, place, value))
    assert not checker.check(wrong).confirmed or wrong == document


NUMBERS = {
    "f": st.floats(allow_nan=False, allow_infinity=False).map(lambda x: str(Fraction(x))),
    "i": st.integers(-(2**63), 2**63 - 1).map(str) | st.integers(-3, 20).map(str),
    "b": st.sampled_from(["0", "1"]),
}


@given(st.sampled_from(CHEAP), st.data())
@FEW
def test_any_numbers_end_in_a_verdict(document, data):
    """Of the right types, up to 10^308: formulas may have no value there."""
    altered = copy.deepcopy(document)
    leaf = altered["instance"][data.draw(st.sampled_from(sorted(altered["instance"])))]
    for index in range(len(leaf["exact"])):
        if data.draw(st.booleans()):
            leaf["exact"][index] = data.draw(NUMBERS[leaf["type"]])
    assert checker.check(signed(altered)).word in ("confirmed", "rejected")


@given(st.binary(max_size=200))
@FEW
def test_any_bytes_are_refused(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.json"
        path.write_bytes(data)
        assert main([str(path)]) == 2


WITNESS = FILES[0].read_text()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"nope", "no JSON"),
        (b"\xff\xfe\x00", "no text in UTF-8"),
        (b"\xef\xbb\xbf{}", "no JSON"),
        (WITNESS.encode("utf16"), "no text in UTF-8"),
        (WITNESS.encode() + b"{}", "no JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"9" * 5000, "no JSON"),
        (b" " * (10**6 + 1), "more than 1000000 bytes"),
        (b"[]", "a witness is a list"),
        (b"null", "a witness is None"),
        (b"3", "a witness is 3"),
        (b'"text"', "a witness is 'text'"),
        (b"0.5", "0.5 is no number of a witness"),
        (b"NaN", "NaN is no number of a witness"),
        (b"-Infinity", "-Infinity is no number of a witness"),
        (b"{}", "a witness lacks"),
        (WITNESS.replace('"entry": null', '"entry": 0.0').encode(), "0.0 is no number"),
        (WITNESS.replace('"entry": null', '"entry": null, "entry": null').encode(), "comes twice"),
        (WITNESS.replace('"T": 2', '"T": 3, "T": 2').encode(), "comes twice"),
    ],
)
def test_files_that_are_no_witness(data, reason, tmp_path, capsys):
    path = tmp_path / "w.json"
    path.write_bytes(data)
    assert main([str(path)]) == 2
    first, second, last = capsys.readouterr().out.splitlines()
    assert (first, last) == ("w.json: refused", "0 of 1 confirmed")
    assert reason in second


def test_files_that_are_not_there(tmp_path, capsys):
    assert main([str(tmp_path), str(tmp_path / "absent.json")]) == 2
    assert capsys.readouterr().out.count("there is no such file") == 2


def test_the_exit_status(tmp_path, capsys):
    """All confirmed; one that is not; one that is no witness, whatever the others are."""
    altered = load(FILES[0])
    altered["instance"]["S"]["exact"] = ["2"]
    rejected, bad = tmp_path / "rejected.json", tmp_path / "bad.json"
    rejected.write_text(json.dumps(signed(altered)))
    bad.write_text("{}")
    good = str(FILES[0])
    assert main([good]) == 0
    assert main([good, str(rejected)]) == 1
    assert main([good, str(rejected), str(bad)]) == 2
    assert main([]) == 2
    assert "which witnesses?" in capsys.readouterr().err


def test_what_was_confirmed_is_printed(capsys):
    path = next(p for p in FILES if p.name.startswith("multihead.eq129"))
    assert main([str(path)]) == 0
    first, second, third, _ = capsys.readouterr().out.splitlines()
    document = load(path)
    assert first == f"{path.name}: confirmed"
    assert "<= 1.25 S^4 / 4; the sides are 0.625 and 0.3125" in second
    assert "at size T = 2, d = 4 with S = 1" in second
    assert third.endswith(f"{document['statement']}, '{document['form']}': {document['formula']}")
