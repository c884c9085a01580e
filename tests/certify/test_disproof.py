"""What `disprove` says of small claims whose truth is plain, and of what it cannot judge."""

import math
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbounds as jb
from jaxbounds.certification import disprove
from jaxbounds.certification.disproof import confirmed
from jaxbounds.claims.statements import Form, Sides, Statement

SIZE = {"d": 1}


def claim(lhs: Any, rhs: Any, **options: Any) -> Statement:
    """lhs(instance) <= rhs(instance), unless the options say otherwise."""

    def evaluate(instance: Any, size: Any) -> Sides:
        return Sides(lhs=lhs(instance), rhs={"printed": rhs(instance), "control": 0.0})

    plain: dict[str, Any] = {
        "id": "mine.claim",
        "label": "Claim 1",
        "formula": "lhs <= rhs",
        "kind": "inequality",
        "sample": lambda key, size: {},
        "forms": (Form(name="printed"),),
        "sizes": (SIZE,),
        "control": "zero",
        "evaluate": evaluate,
    }
    return Statement(**plain | options)


def said(statement: Statement, instance: Any, **options: Any) -> Any:
    return disprove(statement, "printed", instance, SIZE, **options)


X = {"x": np.array(1.0)}


def test_a_false_claim_is_disproved_and_the_sides_are_enclosed():
    found = said(claim(lambda i: 3 * i["x"], lambda i: jnp.exp(i["x"])), X)
    assert found.word == "disproved"
    assert found.lhs is not None
    assert found.rhs is not None
    assert tuple(map(Fraction, found.lhs)) == (3, 3)
    low, high = map(Fraction, found.rhs)
    digits = Fraction("2.71828182845904523536028747135266249775724709369995")  # of e
    assert low < digits < high
    assert high - low < Fraction(1, 10**28)
    assert found.gap == pytest.approx((3 - math.e) / 3)
    assert (found.reason, found.ways, found.bits) == ("", 1, 192)


def test_a_true_claim_is_undecided_and_it_is_said_that_it_is_true():
    found = said(claim(lambda i: i["x"], lambda i: 2 * i["x"]), X)
    assert found.word == "undecided"
    assert found.reason == "the claim is true on this instance"


@pytest.mark.parametrize("factor", [1.0, 0.0, -1.0])
@pytest.mark.parametrize("relation", ["<=", "="])
def test_an_equality_is_no_violation(factor, relation):
    side = lambda i: factor * i["x"]
    found = said(claim(side, side, relation=relation), X)
    assert found.word == "undecided"


@pytest.mark.parametrize(("excess", "word"), [(1e-7, "undecided"), (1e-5, "disproved")])
@pytest.mark.parametrize("scale", [1.0, 1e9, -1e9])
def test_the_margin_is_relative(excess, word, scale):
    lhs = lambda i: i["x"] * scale + i["x"] * abs(scale) * excess
    found = said(claim(lhs, lambda i: i["x"] * scale), X)
    assert found.word == word
    assert found.gap == pytest.approx(excess, rel=1e-4)
    assert ("differ by less" in found.reason) == (word == "undecided")


def test_where_floats_are_the_numbers_meant_any_certain_gap_confirms():
    """One part in 2^24 is exact in floats, above the tolerance, below the margin of a disproof."""
    over = claim(lambda i: i["x"] * (1 + 2.0**-24), lambda i: i["x"])
    assert said(over, X).word == "undecided"
    assert confirmed(over, "printed", X, SIZE).word == "disproved"
    equal = claim(lambda i: i["x"] * 3, lambda i: i["x"] + 2 * i["x"])
    assert confirmed(equal, "printed", X, SIZE).word == "undecided"


def test_the_gap_of_wide_sides_is_what_is_certain():
    unsure = lambda i: jnp.where(jnp.sqrt(2 * i["x"]) ** 2 > 2, 2.0, 100.0)  # either
    found = said(claim(unsure, lambda i: i["x"]), X)
    assert found.word == "disproved"
    assert found.gap == pytest.approx((2 - 1) / 100, rel=1e-6)
    assert found.lhs is not None
    assert float(found.lhs[0]) <= 2 < 100 <= float(found.lhs[1])
    found = said(claim(lambda i: 200 * i["x"], unsure), X)
    assert found.gap == pytest.approx((200 - 100) / 200, rel=1e-6)
    found = said(claim(unsure, lambda i: 50 * i["x"]), X)
    assert found.word == "undecided"
    assert "balls overlap" in found.reason


@pytest.mark.parametrize(("lhs", "rhs", "gap"), [(1, -1000, 1.001), (-1, -4, 0.75), (3, 2, 1 / 3)])
def test_the_gap_is_relative_to_the_larger_side(lhs, rhs, gap):
    found = said(claim(lambda i: lhs * i["x"], lambda i: rhs * i["x"]), X)
    assert found.gap == pytest.approx(gap)


def test_an_infinite_left_side_is_a_violation_and_an_infinite_right_side_is_none():
    infinite = lambda i: -jnp.log(i["x"] - 1)
    assert said(claim(infinite, lambda i: i["x"]), X).word == "disproved"
    assert said(claim(lambda i: i["x"], infinite), X).word == "undecided"
    assert said(claim(infinite, lambda i: 2 * infinite(i)), X).word == "undecided"


def test_what_is_not_enclosed_is_undecided():
    found = said(claim(lambda i: (i["x"] - 1) / (i["x"] * 2 - 2), lambda i: -i["x"]), X)
    assert found.word == "undecided"
    assert "no enclosure of a side" in found.reason


def test_a_violation_that_hangs_on_the_last_place_of_a_constant_is_disproved_as_coded():
    below = np.nextafter(0.3, 0)
    step = {"x": np.array(below), "half": np.array((0.3 - below) / 2)}
    found = said(claim(lambda i: 0.3 - i["x"], lambda i: i["half"]), step)
    assert found.word == "disproved as coded"
    assert "exactly its floats" in found.reason
    exact = {"x": np.array(0.25 - 2**-54), "half": np.array(2.0**-55)}
    found = said(claim(lambda i: 0.25 - i["x"], lambda i: i["half"]), exact)
    assert found.word == "disproved"  # a quarter means itself


FALSE = (lambda i: 2 * i["x"], lambda i: i["x"])


@pytest.mark.parametrize(
    ("holds", "word"),
    [
        (lambda x: x > 0, "certain"),
        (lambda x: x > 5, "missed"),
        (lambda x: jnp.sqrt(2 * x) ** 2 <= 2, "open"),
        (lambda x: jnp.stack([x > 0, jnp.sqrt(2 * x) ** 2 <= 2]), "open"),
        (lambda x: jnp.stack([x > 5, jnp.sqrt(2 * x) ** 2 <= 2]), "missed"),
    ],
)
@pytest.mark.parametrize("of_form", [True, False])
def test_every_hypothesis_must_be_certain(holds, word, of_form):
    named = lambda instance, size: {"mine": holds(instance["x"])}
    options: dict[str, Any] = (
        {"forms": (Form(name="printed", hypotheses=named),)} if of_form else {"hypotheses": named}
    )
    found = said(claim(*FALSE, **options), X)
    assert found.hypotheses == {"mine": word}
    assert found.word == ("disproved" if word == "certain" else "undecided")
    assert found.reason == ("" if word == "certain" else f"hypothesis 'mine' is {word}")


def test_a_hypothesis_that_hangs_on_the_last_place_of_a_constant_is_not_certain_in_both_readings():
    named = lambda instance, size: {"short": instance["x"] <= 0.3}
    found = said(claim(*FALSE, hypotheses=named), {"x": np.array(0.3)})
    assert found.word == "disproved as coded"


def test_a_hypothesis_that_the_host_computed_with_roundings_is_not_certain():
    named = lambda instance, size: {"short": float(np.asarray(instance["x"])) <= 2}
    found = said(claim(*FALSE, hypotheses=named), X)
    assert found.word != "disproved"


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_instance_that_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match=r"not finite: y\.z holds"):
        said(claim(*FALSE), X | {"y": {"z": np.array([value])}})


def test_a_leaf_that_is_no_array_is_refused():
    with pytest.raises(ValueError, match="x"):
        said(claim(*FALSE), {"x": "one"})


def test_an_unknown_form_is_refused():
    with pytest.raises(jb.Refused, match=r"no form='corrected'\. Try one of: printed"):
        disprove(claim(*FALSE), "corrected", X, SIZE)


def test_a_primitive_without_a_rule_is_named():
    found = said(claim(lambda i: lax.bessel_i0e(i["x"]), lambda i: 0 * i["x"]), X)
    assert found.word == "undecided"
    assert (
        found.reason
        == "no rule for primitive='bessel_i0e'. Try other operations (`jaxbounds primitives`)"
    )


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("rate", {"forms": (Form(name="printed", sense="at most"),)}),
        ("probability", {"level": 0.1}),
        ("expectation", {}),
    ],
)
def test_what_no_single_instance_decides_is_never_disproved(kind, options):
    found = said(claim(*FALSE, kind=kind, **options), X)
    assert found.word == "undecided"
    assert kind in found.reason


def test_the_time_allowed_is_kept():
    found = said(claim(*FALSE), X, seconds=-1)
    assert found.word == "undecided"
    assert found.reason == "the enclosure took longer than its time limit"


VECTOR = {"x": np.array([1.0, 2.0, 3.0])}
AS_IDENTITY: dict[str, Any] = {"kind": "identity", "relation": "="}


def test_an_identity_is_disproved_at_an_entry():
    off = np.array([0.0, 0.5, -1.0])
    found = said(claim(lambda i: i["x"], lambda i: i["x"] + off, **AS_IDENTITY), VECTOR)
    assert (found.word, found.entry) == ("disproved", 2)
    assert (found.lhs, found.rhs) == (("3", "3"), ("2", "2"))
    assert found.gap == pytest.approx(1 / 3)  # relative to the largest entry


@pytest.mark.parametrize(("off", "word"), [(2e-6, "undecided"), (4e-6, "disproved")])
def test_the_margin_of_an_identity_is_relative_to_the_largest_entry(off, word):
    moved = np.array([off, 0, 0])
    found = said(claim(lambda i: i["x"], lambda i: i["x"] + moved, **AS_IDENTITY), VECTOR)
    assert found.word == word


def test_the_gap_of_a_wide_identity_is_what_is_certain():
    unsure = lambda i: jnp.where(jnp.sqrt(2 * i["x"]) ** 2 > 2, 2.0, 100.0)  # either
    found = said(claim(unsure, lambda i: i["x"], **AS_IDENTITY), X)
    assert found.gap == pytest.approx((2 - 1) / 100, rel=1e-6)


def test_an_identity_that_holds_up_to_rounding_is_undecided():
    found = said(claim(lambda i: i["x"], lambda i: jnp.sqrt(i["x"]) ** 2, **AS_IDENTITY), VECTOR)
    assert found.word == "undecided"


def tie(table: tuple[float, float]) -> Any:
    """An entry of a table at an argmax that no precision decides."""

    def value(i: Any) -> Any:
        same = jnp.stack([jnp.sqrt(2 * i["x"]) ** 2, 2 * i["x"]])
        return jnp.array(table)[jnp.argmax(same)]

    return value


@pytest.mark.parametrize(
    ("rhs", "word", "ways"), [(1.0, "disproved", 2), (6.0, "undecided", 2), (8.0, "undecided", 2)]
)
def test_a_violation_is_needed_on_every_way(rhs, word, ways):
    for table in ((5.0, 7.0), (7.0, 5.0)):
        found = said(claim(tie(table), lambda i: rhs * i["x"]), X)
        assert (found.word, found.ways) == (word, ways)
        assert found.lhs is not None
        assert (Fraction(found.lhs[0]) <= 5, Fraction(found.lhs[1]) >= 7) == (True, True)


def test_too_many_ways_are_undecided():
    def value(i: Any) -> Any:
        same = jnp.stack([jnp.sqrt(2 * i["x"]) ** 2, 2 * i["x"]])
        return sum(jnp.array([5.0, 7.0])[jnp.argmax(same * k)] for k in range(1, 10))

    found = said(claim(value, lambda i: i["x"]), X)
    assert found.word == "undecided"
    assert "too many continuations" in found.reason


AS_HOST: dict[str, Any] = {"host": True, "search": "none"}


def test_a_host_statement_that_counts_is_disproved_as_coded():
    count = lambda i: sum(int(v) for v in np.asarray(i["n"]))
    found = said(claim(count, lambda i: 5, **AS_HOST), {"n": np.array([4, 3])})
    assert found.word == "disproved as coded"
    assert (found.lhs, found.rhs) == (("7", "7"), ("5", "5"))


def test_a_host_statement_that_can_be_traced_is_disproved():
    found = said(claim(lambda i: 2 * i["x"], lambda i: i["x"], **AS_HOST), X)
    assert found.word == "disproved"


def test_a_host_statement_of_which_only_the_floats_can_be_traced_is_disproved_as_coded():
    power = lambda i: i["x"] * 2 ** int(i["n"])
    given = {"x": np.array(0.7), "n": np.array(3)}
    found = said(claim(power, lambda i: i["x"], **AS_HOST), given)
    assert found.word == "disproved as coded"
    assert "host" in found.reason


def test_a_host_statement_with_floats_of_its_own_is_undecided():
    norm = lambda i: float(np.sqrt(np.asarray(i["x"])))
    found = said(claim(norm, lambda i: 0.5, **AS_HOST), X)
    assert found.word == "undecided"
    assert "host" in found.reason


def test_a_certificate_is_json():
    found = said(claim(*FALSE), X).to_json()
    assert found["word"] == "disproved"
    assert found["size"] == SIZE


@pytest.mark.parametrize(("host", "word"), [(True, "disproved as coded"), (False, "disproved")])
def test_long_constants_of_a_statement_on_the_host_may_have_been_computed(host, word):
    third = claim(lambda i: 2 * i["x"], lambda i: i["x"] * (1 / 3), host=host)
    assert said(third, X).word == word
    short = claim(lambda i: 2 * i["x"], lambda i: i["x"] * 0.25, host=host)
    assert said(short, X).word == "disproved"


def test_only_whole_numbers_that_the_host_computed_are_taken():
    on_host = lambda values: lambda i: np.array(values) * float(np.asarray(i["x"]))
    given = {"host": True, **AS_IDENTITY}
    found = said(claim(on_host([2.0, 0.3]), on_host([1.0, 0.3]), **given), X)
    assert (found.word, "rounding errors" in found.reason) == ("undecided", True)
    assert said(claim(on_host([2.0]), on_host([1.0]), **given), X).word == "disproved as coded"
