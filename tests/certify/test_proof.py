"""Branch and bound on statements whose truth is known by hand."""

import jax
import jax.numpy as jnp
import pytest

from jaxbounds import testing
from jaxbounds.certification import prove
from jaxbounds.claims.statements import Domain


def claim(lhs, rhs, *, hypotheses=None, relation="<="):
    """The statement lhs(x) <= rhs(x), or =, for a vector x."""
    return testing.claim(
        lhs, rhs, entry="x", hypotheses=hypotheses, sizes=({"n": 1},),
        kind="inequality" if relation == "<=" else "identity",
        sample=lambda key, size: {"x": jax.random.uniform(key, (size["n"],))},
    )  # fmt: skip


def box(lower, upper, slack=0.0):
    return Domain(
        name="a box",
        chart=lambda point, size: {"x": point},
        size={"n": len(lower)},
        lower=lower,
        upper=upper,
        slack=slack,
    )


nameless = claim(lambda x: x[0] * jnp.cos(x[0]), lambda x: 0.5610963381910451 + 0.0 * x[0])
"""Its greatest value, at the root of x tan x = 1, which nothing here can write down."""


def test_a_maximum_inside_is_proved_up_to_a_slack():
    """No box around a point of equality that has no name is ever proved without slack."""
    proof = prove(nameless, "printed", box((0.0,), (1.0,), slack=1e-9), boxes=4000)
    assert proof.word == "proved on D"
    assert proof.slack == 1e-9
    assert 1e-6 < proof.narrowest < 1e-3  # about the root of the slack


def test_what_is_false_is_found_with_its_point():
    """x (1 - x) > .24 exactly for |x - 1/2| < .1."""
    wrong = claim(lambda x: x[0] * (1 - x[0]), lambda x: 0.24 + 0.0 * x[0])
    proof = prove(wrong, "printed", box((0.0,), (1.0,)))
    assert proof.word == "false on D"
    assert abs(proof.point[0] - 0.5) < 0.1


@pytest.mark.parametrize("edge", [0.3, 1 / 3, 0.7])
def test_a_jump_is_never_bridged_by_a_derivative(edge):
    """The derivative is zero wherever JAX takes it; the claim is false beyond the edge."""
    wrong = claim(lambda x: jnp.where(x[0] > edge, 2.0, 0.0), lambda x: 1.0 + 0.0 * x[0])
    assert prove(wrong, "printed", box((0.0,), (1.0,))).word == "false on D"
    upward = claim(lambda x: jnp.where(x[0] > edge, 0.5, 0.0), lambda x: 1.0 + 0.0 * x[0])
    assert prove(upward, "printed", box((0.0,), (1.0,))).word == "proved on D"


def test_a_kink_is_taken_with_both_its_slopes():
    """max(x, -x) <= 1 on [-1, 1] is tight at both ends; |x| >= 0 is tight at the kink."""
    tight = claim(lambda x: jnp.maximum(x[0], -x[0]), lambda x: 1.0 + 0.0 * x[0])
    assert prove(tight, "printed", box((-1.0,), (1.0,))).word == "proved on D"
    wrong = claim(lambda x: 0.01 - jnp.abs(x[0]), lambda x: 0.0 * x[0])
    assert prove(wrong, "printed", box((-1.0,), (1.0,))).word == "false on D"


def test_a_monotone_margin_is_decided_on_a_face():
    """x + y + y^2 >= 0 on the unit square is tight at the origin, where both slopes are one."""
    rises = claim(lambda x: 0.0 * x[0], lambda x: x[0] + x[1] + x[1] ** 2)
    proof = prove(rises, "printed", box((0.0, 0.0), (1.0, 1.0)))
    assert proof.word == "proved on D"
    assert proof.boxes <= 2


def test_an_identity_is_proved_up_to_its_slack():
    """(x - 1)(x + 1) = x^2 - 1: the slopes of both sides differ by the width of the box only."""
    same = claim(lambda x: (x[0] - 1) * (x[0] + 1), lambda x: x[0] ** 2 - 1, relation="=")
    assert prove(same, "printed", box((0.0,), (1.0,), slack=1e-4)).word == "proved on D"
    other = claim(lambda x: (x[0] - 1) * (x[0] + 1), lambda x: x[0] ** 2, relation="=")
    assert prove(other, "printed", box((0.0,), (1.0,), slack=1e-4)).word == "false on D"


def test_a_domain_without_instances_proves_nothing():
    nowhere = claim(
        lambda x: x[0], lambda x: 0.0 * x[0], hypotheses=lambda i, size: {"big": i["x"][0] > 7}
    )
    proof = prove(nowhere, "printed", box((0.0,), (1.0,)))
    assert proof.word == "undecided"
    assert "hypotheses" in proof.reason


def test_hypotheses_cut_the_domain():
    """x <= 1/2 holds where x <= 1/4 is asked for, and nowhere else is looked at."""
    half = claim(
        lambda x: x[0],
        lambda x: 0.5 + 0.0 * x[0],
        hypotheses=lambda i, size: {"x": i["x"][0] <= 0.25},
    )
    proof = prove(half, "printed", box((0.0,), (1.0,)))
    assert proof.word == "proved on D"
    assert proof.outside > 0


def test_what_is_left_can_be_gone_on_with():
    domain = box((0.0,), (1.0,), slack=1e-9)
    first = prove(nameless, "printed", domain, boxes=20)
    assert first.word == "undecided"
    assert first.left
    second = prove(nameless, "printed", domain, boxes=4000, start=first.left)
    assert second.word == "proved on D"


def test_what_constants_as_coded_leave_is_not_gone_on_with():
    """The root of .3 - .3 exists only if both are the same number: the wider reading has none.

    Boxes that were closed for the constants as coded are not closed for what they stand for, so
    nothing may be handed on to a search that would call the rest proved.
    """

    def lhs(x):
        three_tenths = jnp.full((), 0.3)
        return x[0] * (1 - x[0]) + jnp.sqrt(three_tenths - (0.0 * x[0] + 0.3))

    nil = claim(lhs, lambda x: 0.25 + 0.0 * x[0])
    domain = box((0.0,), (1.0,), slack=1e-9)
    few = prove(nil, "printed", domain, boxes=40)
    assert few.word == "undecided"
    assert "at the end of the budget" in few.reason
    assert few.left == ()
    many = prove(nil, "printed", domain, boxes=4000)
    assert many.word == "proved on D as coded"
