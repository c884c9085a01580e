"""What ball arithmetic must refuse: each case is one where a guess would make a false proof.

The truth of each claim is seen on paper and stands beside it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from jaxbounds import testing
from jaxbounds.certification import disprove, prove
from jaxbounds.certification.second_look import _rounding
from jaxbounds.claims.statements import Domain
from jaxbounds.programs.balls.exact import Field, GivenUp


def claim(lhs, rhs=1.0):
    return testing.claim(
        lhs, rhs, entry="x", id="refusals.one", sizes=({"d": 2},),
        sample=lambda key, size: {"x": jax.random.uniform(key, (2,), minval=-1, maxval=1)},
    )  # fmt: skip


def proved(lhs, low=-1.0, high=1.0):
    box = Domain(
        name="a square", chart=lambda p, size: {"x": p}, size={"d": 2},
        lower=(low, low), upper=(high, high),
    )  # fmt: skip
    return prove(claim(lhs), "printed", box, boxes=200, seconds=20)


def test_a_choice_that_is_open_on_a_box_is_not_taken():
    """It is 5 where the second entry is larger. The second look would see it, but comes second."""
    found = proved(lambda x: jnp.where(jnp.argmax(x) == 0, 0.0, 5.0))
    assert found.word == "undecided" and "contradiction" not in found.reason
    table = jnp.array([0.0, 5.0])
    found = proved(lambda x: table[jnp.argsort(x)[0]] + 0.0)
    assert found.word == "undecided" and "contradiction" not in found.reason


def test_a_choice_that_is_certain_is_taken():
    found = proved(lambda x: jnp.where(jnp.argmax(x + jnp.array([9.0, 0.0])) == 0, 0.0, 5.0))
    assert found.word == "proved on D"


def test_an_index_that_is_a_ball_is_undecided():
    """It reads 0 or 5, where the entry is below or above zero."""
    table = jnp.array([0.0, 5.0])
    at = lambda x: jax.lax.dynamic_slice(table, (jnp.ceil(x[0]).astype(int),), (1,))[0]
    found = proved(at)
    assert found.word == "undecided" and "contradiction" not in found.reason
    assert proved(at, -0.75, -0.25).word == "proved on D"


def test_what_a_callback_computes_is_refused():
    """It gives zero, which no program says."""
    shape = jax.ShapeDtypeStruct((), jnp.float64)
    none = lambda x: jax.pure_callback(lambda v: np.float64(0 * v), shape, x[0])
    found = disprove(claim(lambda x: 2.0 + none(x)), "printed", {"x": [0.5, 0.5]}, {"d": 2})
    assert found.word == "undecided" and "callback" in found.reason


def test_the_last_places_move_both_ways():
    """A step of 1e-18 at one half: below it everything differs."""
    seen = []

    class Found:
        def __init__(self, points):
            self.margin = np.where(points[:, 0] < 0.5, -1e-18, 1e-18)
            seen.append(points)

    assert _rounding(Found, np.array([0.5]), -2e-18)
    assert np.min(seen[0]) < 0.5 < np.max(seen[0])
    assert not _rounding(Found, np.array([0.5]), -1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_inverse_of_what_may_vanish_is_no_bound(sign):
    """1/x has no bound on a box about zero, on either side."""
    found = proved(lambda x: sign / x[0])
    assert found.word == "undecided" and "contradiction" not in found.reason


def test_powers_that_no_memory_holds_are_given_up():
    """FLINT would end the process, which no `except` sees."""
    field = Field()
    x, three = field.symbol("x", arb(2)), field.rational(3)
    one = field.rational(1)
    assert (x**100).num.total_degree() == 100 and (one**10**15).as_rational() == 1
    assert (three**5000).as_rational() == 3**5000  # of two bits each
    for number, power in (
        (x, 101),
        (x, 2519062964838749),
        (x + one, 10**15),
        (three, 5001),
        (x * x, 51),
        (three, -5001),
    ):
        with pytest.raises(GivenUp):
            number**power
    with pytest.raises(GivenUp):  # 51 * 52 / 2 * 53 / 3 terms
        (x + field.pi() + field.symbol("y", arb(3)) + one) ** 50
