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
from jaxbounds.claims.statements import Form, Sides, Statement

SIZE = {"d": 1}


def claim(lhs: Any, rhs: Any, **options: Any) -> Statement:
    """lhs(instance) <= rhs(instance), unless the options say otherwise."""

    def evaluate(instance: Any, size: Any) -> Sides:
        return Sides(lhs=lhs(instance), rhs={"printed": rhs(instance), "control": 0.0})

    plain: dict[str, Any] = {
        "id": "mine.claim", "label": "Claim 1", "formula": "lhs <= rhs", "kind": "inequality",
        "sample": lambda key, size: {}, "forms": (Form(name="printed"),), "sizes": (SIZE,),
        "control": "zero", "evaluate": evaluate,
    }  # fmt: skip
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


def test_what_is_not_enclosed_is_undecided():
    found = said(claim(lambda i: (i["x"] - 1) / (i["x"] * 2 - 2), lambda i: -i["x"]), X)
    assert found.word == "undecided"
    assert "no enclosure of a side" in found.reason


def test_a_violation_that_hangs_on_the_last_place_of_a_constant_is_disproved_as_coded():
    below = np.nextafter(0.3, 0)
    step = {"x": np.array(below), "half": np.array((0.3 - below) / 2)}
    found = said(claim(lambda i: 0.3 - i["x"], lambda i: i["half"]), step)
    assert found.word == "disproved as coded"
    assert "exactly its float" in found.reason
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
    ],
)
def test_every_hypothesis_must_be_certain(holds, word):
    named = lambda instance, size: {"mine": holds(instance["x"])}
    found = said(claim(*FALSE, hypotheses=named), X)
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


VECTOR = {"x": np.array([1.0, 2.0, 3.0])}
AS_IDENTITY: dict[str, Any] = {"kind": "identity", "relation": "="}


def test_an_identity_is_disproved_at_an_entry():
    off = np.array([0.0, 0.5, -1.0])
    found = said(claim(lambda i: i["x"], lambda i: i["x"] + off, **AS_IDENTITY), VECTOR)
    assert (found.word, found.entry) == ("disproved", 2)
    assert (found.lhs, found.rhs) == (("3", "3"), ("2", "2"))
    assert found.gap == pytest.approx(1 / 3)  # relative to the largest entry


def test_an_identity_that_holds_up_to_rounding_is_undecided():
    found = said(claim(lambda i: i["x"], lambda i: jnp.sqrt(i["x"]) ** 2, **AS_IDENTITY), VECTOR)
    assert found.word == "undecided"


def tie(table: tuple[float, float]) -> Any:
    """An entry of a table at an argmax that no precision decides."""

    def value(i: Any) -> Any:
        same = jnp.stack([jnp.sqrt(2 * i["x"]) ** 2, 2 * i["x"]])
        return jnp.array(table)[jnp.argmax(same)]

    return value


@pytest.mark.parametrize(("rhs", "word", "ways"), [(1.0, "disproved", 2), (6.0, "undecided", 2)])
def test_a_violation_is_needed_on_every_way(rhs, word, ways):
    found = said(claim(tie((5.0, 7.0)), lambda i: rhs * i["x"]), X)
    assert (found.word, found.ways) == (word, ways)
    assert found.lhs is not None
    assert (Fraction(found.lhs[0]) <= 5, Fraction(found.lhs[1]) >= 7) == (True, True)


AS_HOST: dict[str, Any] = {"host": True, "search": "none"}


def test_a_host_statement_of_which_only_the_floats_can_be_traced_is_disproved_as_coded():
    power = lambda i: i["x"] * 2 ** int(i["n"])
    given = {"x": np.array(0.7), "n": np.array(3)}
    found = said(claim(power, lambda i: i["x"], **AS_HOST), given)
    assert found.word == "disproved as coded"
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


@pytest.mark.parametrize(("n", "word"), [(5, "disproved"), (64, "disproved as coded")])
def test_a_power_that_loses_bits_of_its_exponent_is_disproved_as_coded(n, word):
    least = -1 if n < 64 else 1  # JAX computes 2**64 = 1
    found = said(claim(lambda i: i["n"] + least, lambda i: 2 ** i["n"] * least), {"n": np.array(n)})
    assert found.word == word
    assert ("wrap in pow" in found.reason) == (word != "disproved")


def test_a_power_of_integers_beyond_the_floats_is_disproved_as_coded():
    found = said(claim(lambda i: i["n"], lambda i: 2 ** i["n"]), {"n": np.array(2048)})
    assert found.word == "disproved as coded" and "wrap in pow" in found.reason
