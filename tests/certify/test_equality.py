"""Claims that are equalities somewhere, and their twins that are false by next to nothing there.

That the claims are true is classical; the twins are false by construction, at points that are
written beside them and measured with mpmath in one of the tests.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp

from jaxbounds import testing
from jaxbounds.certification import prove
from jaxbounds.claims.statements import Domain


def claim(lhs, rhs, hypotheses=None):
    return testing.claim(
        lhs, rhs, entry="x", hypotheses=hypotheses, sizes=({"n": 1},),
        sample=lambda key, size: {"x": jax.random.uniform(key, (size["n"],))},
    )  # fmt: skip


def box(lower, upper, **slack):
    return Domain(
        name="a box", chart=lambda point, size: {"x": point}, size={"n": len(lower)},
        lower=lower, upper=upper, **slack,
    )  # fmt: skip


def settled(lhs, rhs, lower, upper, hypotheses=None, **options):
    options = {"boxes": 6000, "seconds": 60.0} | options
    return prove(claim(lhs, rhs, hypotheses), "printed", box(lower, upper), **options)


def eps():
    """2^-30, of constants that mean themselves."""
    return jnp.asarray(2.0**-15) * 2.0**-15


def entropy(p):
    return -p * jnp.log(p) - (1 - p) * jnp.log(1 - p)


SHARP = {
    "x exp(-x)": (
        lambda x: x[0] * jnp.exp(-x[0]), lambda x: jnp.exp(-1.0 + 0 * x[0]), (0.0,), (4.0,)
    ),
    "sine": (lambda x: jnp.sin(x[0]), lambda x: x[0], (0.0,), (3.0,)),
    "cosine": (lambda x: 1 - x[0] ** 2 / 2, lambda x: jnp.cos(x[0]), (-2.0,), (2.0,)),
    "x log x": (lambda x: x[0] - 1, lambda x: x[0] * jnp.log(x[0]), (0.125,), (4.0,)),
    "root": (lambda x: jnp.sqrt(1 + x[0]), lambda x: 1 + x[0] / 2, (-0.5,), (3.0,)),
    "two thirds": (
        lambda x: x[0] ** 2 * (1 - x[0]), lambda x: 4.0 / (27.0 + 0 * x[0]), (0.0,), (1.0,)
    ),
    "Pinsker": (
        lambda x: 2 * (x[0] - 0.5) ** 2, lambda x: jnp.log(2.0) - entropy(x[0]), (0.125,), (0.875,)
    ),
    "three squares": (
        lambda x: x[0] * x[1] + x[1] * x[2] + x[2] * x[0], lambda x: jnp.sum(x**2),
        (-1.0,) * 3, (1.0,) * 3,
    ),
    "log of two": (
        jax.nn.logsumexp, lambda x: jnp.max(x) + jnp.log(2.0), (-2.0, -2.0), (2.0, 2.0)
    ),
    "triangle": (
        lambda x: jnp.abs(x[0] + x[1]), lambda x: jnp.abs(x[0]) + jnp.abs(x[1]),
        (-1.0, -1.0), (1.0, 1.0),
    ),
    "along a line": (
        lambda x: 2 * x[0] * x[1] * jnp.exp(x[0]),
        lambda x: (x[0] ** 2 + x[1] ** 2) * jnp.exp(x[0]), (-1.0, -1.0), (1.0, 1.0),
    ),
    "kinks": (
        lambda x: jnp.abs(x[0]) * jnp.cos(x[0]), lambda x: jnp.abs(x[0]), (-1.0,), (1.0,)
    ),
    "two orders": (
        lambda x: x[0] * x[1] ** 2, lambda x: x[0] ** 2 + x[1] ** 4 + x[0] ** 4,
        (-1.0, -1.0), (1.0, 1.0),
    ),
}  # fmt: skip


@pytest.mark.slow_cases("x exp(-x)", "cosine", "x log x", "root", "Pinsker")
@pytest.mark.parametrize("name", SHARP)
def test_an_equality_is_proved_without_slack(name):
    lhs, rhs, lower, upper = SHARP[name]
    proof = settled(lhs, rhs, lower, upper)
    assert proof.word == "proved on D", proof.reason
    assert proof.slack == 0
    assert proof.looked > 1000


FALSE = {
    # name: lhs, rhs, box, a point at which it is false
    "raised": (lambda x: x[0] * (1 - x[0]) + eps(), lambda x: 0.25 + 0 * x[0], (0.0,), (1.0,), 0.5),
    "tilted": (
        lambda x: x[0] * (1 - x[0]) + eps() * (x[0] - 0.5), lambda x: 0.25 + 0 * x[0],
        (0.0,), (1.0,), 0.5 + 2**-32,
    ),
    "odd, third order": (
        lambda x: x[0] - x[0] ** 2 / 2, lambda x: jnp.log1p(x[0]), (-0.5,), (1.0,), -(2**-20)
    ),
    "odd under a fourth power": (
        lambda x: 1 - x[0] ** 2 / 2 + eps() * x[0] ** 3, lambda x: jnp.cos(x[0]), (-1.0,), (1.0,),
        2**-28,
    ),
    "x^5 under x^6": (
        lambda x: eps() * x[0] ** 5, lambda x: x[0] ** 6, (-1.0,), (1.0,), 2**-32
    ),
    "on a face": (
        lambda x: eps() * x[1] * (1 - x[0]), lambda x: x[0] + 0 * x[1], (0.0, 0.0), (1.0, 1.0),
        (0.0, 0.5),
    ),
    "at a corner": (
        lambda x: 2.0**-29 * x[0] + x[0] * x[1], lambda x: 2.0**-30 * x[0] + x[0] * x[1] + x[1],
        (0.0, 0.0), (1.0, 1.0), (0.5, 0.0),
    ),
    "a saddle": (
        lambda x: 2 * x[0] * x[1] * (1 + eps()), lambda x: x[0] ** 2 + x[1] ** 2,
        (-1.0, -1.0), (1.0, 1.0), (0.5, 0.5),
    ),
    "a parabola between": (
        lambda x: 2 * (1 + eps()) * x[0] * x[1] ** 2, lambda x: x[0] ** 2 + x[1] ** 4,
        (-1.0, -1.0), (1.0, 1.0), (0.25, 0.5),
    ),
    "off a curve": (
        lambda x: 2 * x[0] * x[1] * x[2] + eps() * x[2] ** 2,
        lambda x: x[0] ** 2 * x[1] ** 2 + x[2] ** 2, (-1.0,) * 3, (1.0,) * 3, (0.5, 0.5, 0.25),
    ),
    "means": (
        lambda x: jnp.sqrt(x[0] * x[1]) * (1 + eps()), lambda x: (x[0] + x[1]) / 2,
        (0.0, 0.0), (1.0, 1.0), (0.5, 0.5),
    ),
    "beside a kink": (
        lambda x: jnp.maximum(x[0], eps() * x[0] - x[0]), lambda x: jnp.abs(x[0]) * (1 - eps()),
        (-1.0,), (1.0,), 0.5,
    ),
    "Motzkin, less": (
        lambda x: (3 + eps()) * x[0] ** 2 * x[1] ** 2,
        lambda x: x[0] ** 4 * x[1] ** 2 + x[0] ** 2 * x[1] ** 4 + 1,
        (0.0, 0.0), (2.0, 2.0), (1.0, 1.0),
    ),
    "up to the end of a hypothesis": (
        lambda x: x[0] / (2 * jnp.arctan(1.0)), lambda x: jnp.sin(x[0]) - eps() * (x[0] - 1.0),
        (0.0,), (1.625,), 1.5707963267,
    ),
    "entropy, two logs": (
        lambda x: entropy(x[0]) + eps() * (x[0] - 0.5), lambda x: jnp.log(2.0 + 0 * x[0]),
        (0.125,), (0.875,), 0.5 + 2**-34,
    ),
    "shifted, not kept": (
        lambda x: jax.nn.logsumexp(x) + eps() * (x[0] + 2), lambda x: jnp.max(x) + jnp.log(2.0),
        (-2.0, -2.0), (2.0, 2.0), (0.0, 0.0),
    ),
}  # fmt: skip


@pytest.mark.slow_cases(
    "odd under a fourth power", "up to the end of a hypothesis", "entropy, two logs",
    "beside a kink", "x^5 under x^6", "on a face",
)  # fmt: skip
@pytest.mark.parametrize("name", FALSE)
def test_a_twin_that_is_false_by_little_is_not_proved(name):
    lhs, rhs, lower, upper, _ = FALSE[name]
    asked = None
    if name.startswith("up to"):
        asked = lambda i, size: {"x": i["x"][0] <= 2 * jnp.arctan(1.0)}
    proof = settled(lhs, rhs, lower, upper, asked, boxes=1500, seconds=20.0)
    assert not proof.word.startswith("proved"), proof


def _in_mp(function, point):
    """The claim at a point at 60 digits: the same expression, by mpmath's functions."""
    with mp.workdps(60):
        names = {
            "log1p": mp.log1p, "cos": mp.cos, "sin": mp.sin, "sqrt": mp.sqrt, "log": mp.log,
            "arctan": mp.atan, "abs": abs, "maximum": max, "asarray": mp.mpf,
            "max": max, "exp": mp.exp,
        }  # fmt: skip
        fake = type("Fake", (), {k: staticmethod(v) for k, v in names.items()})
        total = lambda x: mp.log(sum(mp.exp(v) for v in x))
        fake_jax = type("FakeJax", (), {"nn": type("Nn", (), {"logsumexp": staticmethod(total)})})
        code = function.__globals__
        before = code["jnp"], code["jax"]
        code["jnp"], code["jax"] = fake, fake_jax
        try:
            return function([mp.mpf(v) for v in np.atleast_1d(point).tolist()])
        finally:
            code["jnp"], code["jax"] = before


@pytest.mark.parametrize("name", FALSE)
def test_the_twins_are_false(name):
    lhs, rhs, lower, upper, point = FALSE[name]
    assert np.all(np.asarray(lower) <= point) and np.all(point <= np.asarray(upper))
    assert _in_mp(lhs, point) > _in_mp(rhs, point)


def test_a_hypothesis_with_an_irrational_end():
    """Beyond pi / 2 the claim is false, and at pi / 2 it is an equality."""
    half_pi = lambda: 2 * jnp.arctan(1.0)
    asked = lambda i, size: {"x": i["x"][0] <= half_pi()}
    wanted = (lambda x: x[0] / half_pi(), lambda x: jnp.sin(x[0]), (0.0,), (2.0,))
    assert settled(*wanted, asked).word == "proved on D"
    assert settled(*wanted).word == "false on D"


NAMELESS = claim(lambda x: x[0] * jnp.cos(x[0]), lambda x: 0.5610963381 + 0.0 * x[0])
"""Sharp at the root of x tan x = 1, which nothing here can write down."""


def test_what_is_undecided_says_where_and_which_slack_would_do():
    left = prove(NAMELESS, "printed", box((0.0,), (1.0,)), boxes=300)
    assert left.word == "undecided"
    assert "the box from (0.8" in left.reason
    slack = left.reason.split("a slack of ")[1].split(" ")[0]
    assert 0 < float(slack) < 1e-3
    enough = prove(NAMELESS, "printed", box((0.0,), (1.0,)), boxes=3000, slack=float(slack))
    assert enough.word == "proved on D"
    assert enough.slack == float(slack)


def test_a_relative_slack_is_of_the_right_side():
    """1e6 times the claim above: an absolute slack of 1e-6 is one of 1e-12 of it."""
    large = claim(lambda x: 1e6 * x[0] * jnp.cos(x[0]), lambda x: 561096.3381 + 0.0 * x[0])
    domain = box((0.0,), (1.0,))
    proof = prove(large, "printed", domain, boxes=4000, slack="1e-7 relative")
    assert proof.word == "proved on D" and proof.relative_slack == 1e-7 and proof.slack == 0
    assert "relative" in proof.upto
    assert prove(large, "printed", domain, boxes=64, slack="1e-7").word == "undecided"
    # What is given there replaces what the domain has.
    both = box((0.0,), (1.0,), relative_slack=1e-7)
    assert prove(large, "printed", both, boxes=64, slack=0.0).word == "undecided"


@pytest.mark.parametrize("slack", ["much", "1e-9 percent", "", "-1", "nan"])
def test_a_slack_that_is_none_is_refused(slack):
    with pytest.raises(ValueError, match="slack"):
        prove(NAMELESS, "printed", box((0.0,), (1.0,)), slack=slack)


def test_a_relative_slack_does_not_prove_more_than_it_says():
    """The claim is false by a relative 2e-7, 1e-7 is not enough."""
    false = claim(lambda x: 1 + 2e-7 + 0 * x[0], lambda x: 1 + x[0] ** 2)
    proof = prove(false, "printed", box((-1.0,), (1.0,)), slack="1e-7 relative", boxes=500)
    assert not proof.word.startswith("proved")
    proof = prove(false, "printed", box((-1.0,), (1.0,)), slack="2.1e-7 relative", boxes=500)
    assert proof.word == "proved on D"


def test_the_clock_on_the_wall_is_not_asked(monkeypatch):
    """The budget is of processor time: an hour between any two looks at the clock is no matter."""
    hours = iter(range(0, 10**9, 3600))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(hours)))
    lhs, rhs, lower, upper = SHARP["sine"]
    assert settled(lhs, rhs, lower, upper, seconds=30.0).word == "proved on D"
    spent = iter(range(0, 10**9, 10))
    monkeypatch.setattr(time, "process_time", lambda: float(next(spent)))
    late = settled(lhs, rhs, lower, upper, seconds=5.0)
    assert late.word == "undecided"
