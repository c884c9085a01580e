"""What is said about a constant, as data: the largest, whether the form fails, the table, JSON."""

import json
from dataclasses import FrozenInstanceError

import pytest

from jaxbounds.constants import AtSize, ClosedForm, Exponent, SharpConstant
from jaxbounds.ground.to_json import to_json

HALF = ClosedForm(text="1/2", digits=20, height=2, chance=1e-9, basis="rational numbers")


def constant(*ratios, **more):
    sizes = tuple(AtSize(size={"T": n}, ratio=r, where="none") for n, r in enumerate(ratios, 2))
    return SharpConstant(id="a.b", form="printed", label="", formula="", sizes=sizes, **more)


def test_of_what_was_not_said_there_is_nothing():
    (found,) = constant(0.5).sizes
    assert (found.digits, found.starts, found.agreeing, found.seconds) == (0, 0, 0, 0.0)
    assert (found.gain, found.closed, found.instance_ratio) == (None, None, None)
    assert (constant(0.5).residual, constant(0.5).seed, constant(0.5).relation) == (0.0, 0, "<=")


def test_the_largest_is_that_of_the_largest_ratio():
    assert constant(0.5, 0.75, 0.25).largest.size == {"T": 3}


@pytest.mark.parametrize(
    "ratio, fails", [(0.5, False), (1 + 0.95e-9, False), (1 + 1.05e-9, True), (2.0, True)]
)
def test_a_form_fails_from_a_billionth_above_one(ratio, fails):
    assert constant(0.25, ratio).fails is fails


def test_a_row_for_each_size():
    size = AtSize(
        size={"T": 2, "d": 3}, ratio=0.5, where="attained", digits=31, closed=HALF, low="0.5"
    )  # fmt: skip
    found = SharpConstant(
        id="a.b", form="printed", label="", formula="", sizes=(size, *constant(0.25).sizes)
    )
    table = found._table()
    assert table.rows == [
        ("T=2, d=3", "0.5", "attained", "31", "1/2"),
        ("T=2", "~0.25", "none", "-", ""),  # of floats alone
    ]
    assert table.title.endswith("the least C with lhs <= C rhs, from below")
    above = constant(0.5, relation=">=", law="1/T")._table()
    assert above.title.endswith("the least C with C lhs >= rhs, from below; C = 1/T")


def test_json_and_back(tmp_path):
    exponent = Exponent(axis="T", value=1.0, low=None, high=2.0, word="power")
    size = AtSize(size={"T": 2}, ratio=0.5, where="attained", closed=HALF)
    sizes = (size, AtSize(size={"T": 4}, ratio=1.5, where="limit"))
    found = SharpConstant(
        id="a.b", form="printed", label="", formula="", sizes=sizes, dependence=(exponent,)
    )
    written = json.loads(found.save(tmp_path / "c.json").read_text())
    assert written == json.loads(json.dumps(to_json(found)))
    assert SharpConstant.from_json(written) == found


@pytest.mark.parametrize("kind", [AtSize, SharpConstant, ClosedForm, Exponent])
def test_what_was_found_does_not_change_and_is_given_by_name(kind):
    with pytest.raises(TypeError, match="positional"):
        kind("T", 1.0, 0.5, 2.0, "power")
    found = {AtSize: constant(0.5).sizes[0], SharpConstant: constant(0.5), ClosedForm: HALF}
    exponent = Exponent(axis="T", value=1.0, low=None, high=2.0, word="power")
    with pytest.raises(FrozenInstanceError):
        found.get(kind, exponent).text = "other"
