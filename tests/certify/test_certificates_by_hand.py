"""What is written down of a disproof, exactly: decimal ends, witnesses, arrays, sides.

Every number is a fraction that stands here, compared by `fractions.Fraction` and Python's integers,
which share nothing with the balls that are written.
"""

import json
import pickle
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from jaxbounds.certification import load_witness, save_witness, witness_of
from jaxbounds.certification.referee import referee
from jaxbounds.certification.sides import arrays_of, sides_of
from jaxbounds.certification.witness import LIMIT, _array, _number, digest_of
from jaxbounds.claims.statements import Form, Sides, Size, Statement
from jaxbounds.falsification import Referee, float64_on_cpu
from jaxbounds.programs.balls.certificate import (
    Certificate,
    _power_of_ten,
    as_fraction,
    decimal_bounds,
)
from jaxbounds.programs.balls.interpreter import precision

ABOUT: dict[str, Any] = {"id": "a.b", "form": "printed"}


# --- decimal ends ---


@pytest.mark.parametrize("x", [0.1, -0.1, 1 / 3, 123456.789, -(2.0**-30), 1e-17, 3e17, 0.7, 1e300])
@pytest.mark.parametrize("radius", [0.0, 1e-3, 1e-20])
def test_decimal_ends_are_rounded_outward_by_little(x, radius):
    """Thirty digits: the last one is 10^-29 of the number, at most."""
    ball = arb(x, radius * abs(x))
    with precision(300):
        low, high = map(Fraction, decimal_bounds(ball))
    ends = [Fraction(x) + sign * as_fraction(ball.rad()) for sign in (-1, 1)]
    tiny = abs(Fraction(x)) / 10**28
    assert ends[0] - 2 * tiny < low <= ends[0]
    assert ends[1] <= high < ends[1] + 2 * tiny


@pytest.mark.parametrize(
    ("ball", "ends"),
    [
        (arb(3), ("3", "3")),
        (arb(0), ("0", "0")),
        (arb(-0.375), ("-0.375", "-0.375")),
        (arb("inf"), ("inf", "inf")),
        (arb("-inf"), ("-inf", "-inf")),
        (arb("nan"), ("nan", "nan")),
        # 2^20000 = 3.98 10^6020 and its inverse: powers of ten on both sides.
        (arb(2) ** 20000, ("1e6020", "1e6022")),
        (-(arb(2) ** 20000), ("-1e6022", "-1e6020")),
        (arb(2) ** -20000, ("1e-6021", "1e-6019")),
        (-(arb(2) ** -20000), ("-1e-6019", "-1e-6021")),
    ],
)
def test_decimal_ends_that_are_plain(ball, ends):
    assert decimal_bounds(ball) == ends
    if ball.is_finite():
        assert Fraction(ends[0]) <= as_fraction(ball) <= Fraction(ends[1])


def test_decimal_ends_of_a_wide_ball_about_zero():
    huge = arb(0, arb(2) ** 20000)
    low, high = decimal_bounds(huge)
    assert low == f"-{high}" and Fraction(high) >= as_fraction(huge.upper())
    assert Fraction(high) < 1000 * as_fraction(huge.upper())
    moved = arb(arb(2) ** 19999, arb(2) ** 20000)
    low, high = map(Fraction, decimal_bounds(moved))
    assert low <= as_fraction(moved.lower()) < 0 < as_fraction(moved.upper()) <= high
    small = arb(0, arb(2) ** -20000)  # which holds zero: digits say it
    low, high = decimal_bounds(small)
    assert low == f"-{high}" and high.startswith("2.5") and high.endswith("E-6021")


@pytest.mark.parametrize("sign", [1, -1])
def test_where_digits_are_written_and_where_powers(sign):
    """2^13200 = 10^3973.6 and 2^13400 = 10^4033.8; the border is 10^4000."""
    within, beyond = (sign * arb(2) ** power for power in (13200, 13400))
    assert all(len(end) > 30 for end in decimal_bounds(within))
    assert all(len(end) < 9 for end in decimal_bounds(beyond))
    assert all(len(end) > 30 for end in decimal_bounds(1 / within))
    assert all(len(end) < 9 for end in decimal_bounds(1 / beyond))
    for ball in (within, beyond, 1 / within, 1 / beyond):
        low, high = map(Fraction, decimal_bounds(ball))
        assert low <= as_fraction(ball) <= high


@pytest.mark.parametrize(
    ("power", "ten"),
    [(0, 0), (3, 1), (10, 3), (332, 100), (20000, 6021), (-332, -100), (-20000, -6020)],
)
def test_the_power_of_ten_next_to_a_power_of_two(power, ten):
    """(p + 1) log10(2), rounded: 333 * .30103 = 100.2, 20001 * .30103 = 6020.9."""
    assert _power_of_ten(arb(2) ** power) == ten
    assert _power_of_ten(arb(0)) == 0


@pytest.mark.parametrize("x", [0.375, -5.0, 2.0**-1074, 1e300, 0.0])
def test_an_exact_ball_is_a_fraction(x):
    assert as_fraction(arb(x)) == Fraction(x)


# --- a certificate ---


def test_what_is_not_disproved_has_no_text_for_a_kernel():
    asked = []
    make = lambda *given: asked.append(given) or "text"
    sure = Certificate(**ABOUT, word="disproved as coded", theorem=make)
    assert sure.rocq() == sure.rocq(operations=7, citation="Someone") == "text"
    assert asked == [(None, ""), (7, "Someone")]
    unsure = Certificate(**ABOUT, word="undecided", reason="it is wide", theorem=make)
    with pytest.raises(ValueError, match=r"\(it is wide\), expected"):
        unsure.rocq()
    with pytest.raises(ValueError, match="contains no instance"):
        Certificate(**ABOUT, word="disproved").rocq()
    assert len(asked) == 2
    back = pickle.loads(pickle.dumps(sure))
    assert (back, back.theorem) == (sure, None) and sure.theorem is make
    assert "theorem" not in sure.to_json() and sure.to_json()["word"] == "disproved as coded"


def test_a_certificate_shows_what_it_has():
    rows = lambda **given: dict(Certificate(**ABOUT, **given)._table().rows)
    assert rows(word="undecided", reason="why") == {"because": "why"}
    assert rows(
        word="disproved", lhs=("2", "3"), rhs=("0", "1"), gap=0.5, hypotheses={"a": "certain"}
    ) == {
        "left side": "2 to 3", "right side": "0 to 1", "apart, relatively": "0.5",
        "hypotheses": "a: certain",
    }  # fmt: skip


# --- a witness ---

WHOLE = Statement(
    id="mine.double", label="Claim 2", formula="2x <= x", kind="inequality", control="zero",
    evaluate=lambda i, size: Sides(i["x"].sum(), {"printed": 0.0, "control": -9.0}),
    sample=lambda key, size: {}, sizes=({"d": 1},), assumptions="x is positive",
    forms=(Form(name="derived"), Form(name="printed", note="a note", cites="Section 1")),
)  # fmt: skip
INSTANCE = {
    "x": np.array([[0.1, -1e300], [5e-324, 3.0]]),
    "y": {"few": np.array([1, 255], np.uint8), "half": np.float16(0.5), "none": np.zeros((0, 2))},
    "b": [True, False],
    "n": 7,
}
CERTIFICATE = Certificate(
    **ABOUT, word="disproved", hypotheses={"b": "certain", "a": "certain"}, size={"d": 3},
    lhs=("2", "3"), rhs=("0", "1"), entry=4,
)  # fmt: skip


def test_a_witness_holds_all_that_a_checker_needs():
    witness = witness_of(WHOLE, INSTANCE, CERTIFICATE, "Someone")
    instance = witness.pop("instance")
    digest = witness.pop("digest")
    assert witness == {
        "format": "jaxbounds witness 1", "paper": "mine", "citation": "Someone",
        "statement": "mine.double", "label": "Claim 2", "form": "printed", "formula": "2x <= x",
        "note": "a note", "cites": "Section 1", "relation": "<=", "assumptions": "x is positive",
        "hypotheses": ["a", "b"], "size": {"d": 3}, "entry": 4, "lhs": ["2", "3"],
        "rhs": ["0", "1"], "word": "disproved",
    }  # fmt: skip
    exact = lambda *values: [str(Fraction(v)) for v in values]
    assert instance == {
        "x": {"shape": [2, 2], "exact": exact(0.1, -1e300, 5e-324, 3), "type": "f"},
        "y.few": {"shape": [2], "exact": ["1", "255"], "type": "u"},
        "y.half": {"shape": [], "exact": ["1/2"], "type": "f"},
        "y.none": {"shape": [0, 2], "exact": [], "type": "f"},
        "b": {"shape": [2], "exact": ["1", "0"], "type": "b"},
        "n": {"shape": [], "exact": ["7"], "type": "i"},
    }
    assert len(digest) == 64
    bare = witness_of(WHOLE, INSTANCE, Certificate(**ABOUT, word="undecided"))
    assert (bare["lhs"], bare["rhs"], bare["entry"], bare["citation"]) == ([], [], None, "")


def test_a_witness_comes_back(tmp_path):
    path = save_witness(tmp_path / "w.json", witness_of(WHOLE, INSTANCE, CERTIFICATE))
    assert path.read_text().endswith("}\n")
    _, instance = load_witness(path)
    assert instance["y"]["few"].tolist() == [1, 255] and instance["y"]["half"] == 0.5
    assert instance["y"]["none"].shape == (0, 2) and instance["n"] == 7
    assert instance["b"].tolist() == [True, False] and instance["b"].dtype == bool
    assert instance["x"].tolist() == INSTANCE["x"].tolist()


def test_a_witness_of_a_million_bytes_is_read_and_one_more_is_not(tmp_path):
    text = json.dumps(witness_of(WHOLE, INSTANCE, CERTIFICATE))
    path = tmp_path / "w.json"
    path.write_text(text + " " * (10**6 - len(text)))
    assert load_witness(path)[0]["form"] == "printed" and LIMIT == 10**6
    path.write_text(text + " " * (10**6 - len(text) + 1))
    with pytest.raises(ValueError, match="at most 1000000 bytes"):
        load_witness(path)


@pytest.mark.parametrize("text", ["3", "-3", "-3/8", "10/4", "0"])
def test_fractions_are_read(text):
    assert _number(text) == Fraction(text)


@pytest.mark.parametrize(
    "text", ["", "-", "+3", "3.5", "1e5", "3/-8", " 3", "3 ", "1_0", "3/", "nan", "3\n"]
)
def test_what_is_no_fraction_is_refused(text):
    with pytest.raises(ValueError, match="is not a fraction"):
        _number(text)


@pytest.mark.parametrize(
    ("entry", "kind", "values"),
    [
        ({"shape": [2], "exact": ["1/2", "-3"], "type": "f"}, "f", [0.5, -3.0]),
        ({"shape": [1, 2], "exact": ["7", "-3"], "type": "i"}, "i", [[7, -3]]),
        ({"shape": [2], "exact": ["7", "3"], "type": "u"}, "i", [7, 3]),
        ({"shape": [2], "exact": ["1", "0"], "type": "b"}, "b", [True, False]),
        ({"shape": [0], "exact": [], "type": "f"}, "f", []),
        ({"shape": [], "exact": ["9007199254740993"], "type": "i"}, "i", 2**53 + 1),
    ],
)
def test_entries_are_read_exactly(entry, kind, values):
    found = _array("x", entry)
    assert (found.dtype.kind, found.tolist()) == (kind, values)
    assert found.dtype.itemsize == (1 if kind == "b" else 8)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"shape": [1], "exact": ["9007199254740993"], "type": "f"}, "does not fit dtype=float64"),
        ({"shape": [2], "exact": ["1", "1/3"], "type": "f"}, "does not fit dtype=float64"),
        ({"shape": [2], "exact": ["1/2", "1"], "type": "i"}, "does not fit dtype=int64"),
        ({"shape": [1], "exact": ["2"], "type": "b"}, "does not fit dtype=bool"),
        ({"shape": [True], "exact": ["2"], "type": "f"}, "expected a list of nonnegative"),
        ({"shape": [-1], "exact": ["2"], "type": "f"}, "expected a list of nonnegative"),
        ({"shape": [1, -1], "exact": ["2"], "type": "f"}, "expected a list of nonnegative"),
        ({"shape": {"1": 1}, "exact": ["2"], "type": "f"}, "expected a list of nonnegative"),
        ({"shape": {}, "exact": ["2"], "type": "f"}, "expected a list of nonnegative"),
        ({"shape": "", "exact": ["2"], "type": "f"}, "expected a list of nonnegative"),
    ],
)
def test_entries_that_are_none_are_refused(entry, reason):
    with pytest.raises(ValueError, match=f"entry 'x' of the instance is unreadable, .*{reason}"):
        _array("x", entry)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda w: w.update(form="another"), "its digest does not match"),
        (lambda w: w.update(format="another"), "is not a witness of format"),
        (lambda w: w["size"].update(d=1.5), "expected a JSON object of integers"),
        (lambda w: w["size"].update(e=True), "expected a JSON object of integers"),
        (lambda w: w.pop("size"), "lacks size"),
        (lambda w: (w.pop("size"), w.pop("form")), "lacks form, size"),
    ],
)
def test_a_file_that_was_changed_is_refused(change, reason, tmp_path):
    witness = witness_of(WHOLE, {"x": 1.0}, CERTIFICATE)
    change(witness)
    if "digest" not in reason:
        witness["digest"] = digest_of(witness)
    path = save_witness(tmp_path / "w.json", witness)
    with pytest.raises(ValueError, match=reason):
        load_witness(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "is not a witness of format"),
        ('{"format": "jaxbounds witness 1", "format": "jaxbounds witness 1"}', "'format' twice"),
        ('{"a": {"b": 1, "b": 2}}', "the key='b' twice"),
        (None, "expected a JSON object of integers"),
    ],
)
def test_json_that_is_no_witness_is_refused(text, reason, tmp_path):
    path = tmp_path / "w.json"
    if text is None:
        witness = witness_of(WHOLE, {"x": 1.0}, CERTIFICATE) | {"size": []}
        text = json.dumps(witness | {"digest": digest_of(witness)})
    path.write_text(text)
    with pytest.raises(ValueError, match=reason):
        load_witness(path)


# --- arrays and sides ---


def test_numbers_become_arrays():
    given = {"x": [1.0, 2.0], "y": {"n": 3, "b": [True]}, "z": np.float32(0.5)}
    with float64_on_cpu():
        found = arrays_of(given)
        assert all(isinstance(v, jnp.ndarray) for v in (found["x"], found["y"]["n"], found["z"]))
    here = arrays_of(given, True)
    assert all(type(v) is np.ndarray for v in (here["x"], here["y"]["n"], here["z"]))
    for one in (found, here):
        assert one["x"].tolist() == [1.0, 2.0] and one["y"]["b"].tolist() == [True]
        assert [v.dtype.kind for v in (one["y"]["n"], one["y"]["b"], one["z"])] == ["i", "b", "f"]


@pytest.mark.parametrize("host", [True, False])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("one", "must hold numbers: y.z holds"),
        ([1j], "must hold numbers: y.z holds"),
        (None, "must hold numbers: y.z holds"),
        ([1.0, np.nan], "is not finite: y.z holds"),
        (-np.inf, "is not finite: y.z holds"),
        (np.float32(np.inf), "is not finite: y.z holds"),
    ],
)
def test_what_is_no_finite_number_is_named(host, value, reason):
    with pytest.raises(ValueError, match=reason.replace(".", r"\.")):
        arrays_of({"x": 1.0, "y": {"z": value}}, host)


def both(relation="<=", error=0.25, kind="inequality"):
    lhs = lambda i: {"printed": i["x"], "derived": 5 * i["x"], "control": 0.0}
    rhs = lambda i: {"printed": 2 * i["x"], "derived": 7 * i["x"], "control": 0.0}
    return Statement(
        id="mine.both", label="1", formula="f", kind=kind, relation=relation, control="zero",
        evaluate=lambda i, size: Sides(lhs(i), rhs(i), error), sample=lambda key, size: {},
        sizes=({"d": 1},), forms=(Form(name="printed"), Form(name="derived")),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("relation", "kind", "printed", "other"),
    [("<=", "inequality", (1, 2), (5, 7)), (">=", "inequality", (2, 1), (7, 5)),
     ("=", "identity", (1, 2), (5, 7))],
)  # fmt: skip
@pytest.mark.parametrize("errors", [0.25, {"printed": 0.25, "derived": 0.5, "control": 0.0}])
def test_the_side_claimed_to_be_the_smaller_one_comes_first(relation, kind, printed, other, errors):
    statement = both(relation, errors, kind)
    size = Size({"d": 1})
    first, second = (sides_of(statement, form, size)({"x": 1.0}) for form in statement.forms)
    assert first == (*printed, 0.25)
    assert second == (*other, 0.25 if errors == 0.25 else 0.5)


# --- the referee ---


def test_the_referee_says_what_is_certain():
    """3 x <= x is false at 1, true at -1; at 0 both are zero; there is no number beyond floats."""
    number = Statement(
        id="mine.claim", label="1", formula="3 x <= x", kind="inequality", control="far off",
        evaluate=lambda i, size: Sides(3 * i["x"], {"printed": i["x"], "control": -99.0}),
        sample=lambda key, size: {"x": jnp.zeros(())}, sizes=({"d": 1},),
        forms=(Form(name="printed"),),
    )  # fmt: skip
    said = lambda x: referee(number, number.forms[0], {"x": np.array(x)}, Size({"d": 1}))
    assert said(1.0) == Referee("disproved", "")
    true = "the claim is true on this instance"
    assert said(-1.0) == Referee("undecided", true, strict=True)
    assert said(0.0) == Referee("undecided", true, equal=True, meeting=True)
    assert said(np.inf).word == "undecided" and "not finite" in said(np.inf).reason
