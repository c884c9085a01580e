"""A verdict as data: what is read back is what was written, and where its theorem stands."""

import dataclasses
import math

import pytest

from jaxbounds.falsification.verdict import Verdict, beside

PLAIN = {
    "id": "mine.claim", "paper": "mine", "label": "Lemma 1", "kind": "inequality",
    "relation": "<=", "form": "printed", "expected": "holds", "status": "fails",
    "reason": "it is violated", "worst_ratio": 1.5, "instances": 7, "searches": 2,
}  # fmt: skip


@pytest.mark.parametrize("witness, theorem", [
    ("witnesses/mine.claim.printed.json", "witnesses/mine_claim_printed.v"),
    ("a/b/x-1.json", "a/b/x_1.v"), ("a/é.1_.json", "a/1.v"), ("a/json", "a/json.v"), ("", ""),
    ("a/", ""),
])  # fmt: skip
def test_a_theorem_stands_beside_its_witness_under_a_name_that_rocq_takes(witness, theorem):
    assert beside(witness) == theorem
    assert Verdict(**PLAIN, witness_file=witness).theorem_file == theorem


def test_what_is_not_said_is_nothing():
    bare = Verdict(**PLAIN)
    assert not bare.near and bare.accepted == bare.distinct == bare.seed == 0
    assert bare.tolerance == bare.seconds == 0.0 and bare.precision == "float64"
    assert bare.sensitivity is bare.horizon is bare.drawn is None


def test_a_verdict_is_as_expected_where_both_words_are_one():
    assert not Verdict(**PLAIN).as_expected
    assert Verdict(**(PLAIN | {"expected": "fails"})).as_expected


def test_what_was_written_is_read_back():
    told = Verdict(
        **PLAIN, quantiles=(0.5, 1.5), checked=("x > 0",), starts={"worst": (1, 2)}, drawn=0.25,
        size={"d": 2}, sources={"draws": {"instances": 7, "worst_ratio": 1.5}}, near=True,
    )  # fmt: skip
    stored = told.to_json()
    assert stored["as_expected"] is False
    assert Verdict.from_json(stored) == told
    # As JSON has it: lists for tuples, and nothing for what is no number.
    lists = stored | {"quantiles": [0.5, None], "checked": ["x > 0"], "starts": {"worst": [1, 2]}}
    read = Verdict.from_json(lists | {"worst_ratio": None})
    assert math.isnan(read.worst_ratio) and math.isnan(read.quantiles[1])
    assert (read.quantiles[0], read.checked, read.starts) == (0.5, ("x > 0",), {"worst": (1, 2)})
    infinite = Verdict(**(PLAIN | {"worst_ratio": math.inf})).to_json()
    assert infinite["worst_ratio"] == "inf" and Verdict.from_json(infinite).worst_ratio == math.inf


def test_a_verdict_is_said_by_name_and_stays():
    with pytest.raises(TypeError):
        Verdict(*PLAIN.values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        Verdict(**PLAIN).status = "holds"


@pytest.mark.parametrize("change", [{"unknown": 1}, {"reason": ...}])
def test_another_version_is_refused(change):
    stored = {k: v for k, v in (Verdict(**PLAIN).to_json() | change).items() if v is not ...}
    with pytest.raises(ValueError, match="the fields of this version"):
        Verdict.from_json(stored)


def test_the_table_says_what_is_known():
    shown = repr(Verdict(**PLAIN, recorded=True, size={"d": 2, "n": 3}, evidence="violated"))
    for word in (
        "mine.claim (printed), Lemma 1",
        "fails, recorded: holds",
        "1.5",
        "d=2, n=3",
        "violated",
    ):
        assert word in shown
    bare = repr(Verdict(**(PLAIN | {"expected": "fails"})))
    assert "fails, not" not in bare and "evidence" not in bare and "fails" in bare
