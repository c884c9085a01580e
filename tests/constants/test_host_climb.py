"""Moves on the host, on functions of which every value is known."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Sides
from jaxbounds.constants.host_climb import HostClimber, TimeIsOver, scales, ways
from jaxbounds.constants.problem import Problem, flat
from jaxbounds.falsification import float64_on_cpu

NEVER = np.inf


@pytest.fixture
def climber(claim):
    """Of f <= 1 on the host; f is asked at instances, and says how often."""

    def make(f, draws, **more):
        def evaluate(instance, size):
            return Sides(lhs=float(f(instance)), rhs={"printed": 1.0, "control": 0.5})

        given = {"sample": lambda key, size: {"x": jnp.ones(1)}} | more
        own = claim(evaluate=evaluate, host=True, search="random", **given)
        return HostClimber(Problem(own, "printed", {}), draws)

    with float64_on_cpu():
        yield make


def rng():
    return np.random.default_rng(0)


DRAWS = {"x": np.ones((8, 2))}


def test_directions_move_entries_arrays_and_all():
    instance = {"a": np.array([2.0, 0.0]), "n": np.array([3]), "z": np.array(-5.0)}
    np.testing.assert_array_equal(scales(instance), [2, 2, 5])
    found = list(ways(instance, rng()))
    single = [tuple(w) for w in found if np.count_nonzero(w) == 1]
    # Each entry, as large as it is; a zero as the largest beside it. Arrays by their own values.
    assert {(2, 0, 0), (0, 2, 0), (0, 0, 5)} <= set(single) and (0, 0, -5) in single
    assert sum(np.count_nonzero(w) == 3 for w in found) == 8
    assert len(list(ways({"x": np.ones(100)}, rng()))) == 48 + 1 + 8
    assert not list(ways({"n": np.array([3])}, rng()))


def test_a_climb_ends_at_the_top_to_all_digits(climber):
    f = lambda i: 3 / (1 + (i["x"][0] - 7) ** 2 + 2 * (i["x"][1] + 1e-3) ** 2)
    w = climber(f, DRAWS)
    there = w.climbed({"x": np.array([1.0, 1.0])}, rng(), until=NEVER)
    assert there.ratio == pytest.approx(3, rel=1e-14)
    np.testing.assert_allclose(there.instance["x"], [7, -1e-3], atol=1e-6)
    # What is refused, or is no number, counts nowhere.
    w = climber(lambda i: [][0] if i["x"][0] > 2 else i["x"][0], DRAWS)
    there = w.climbed({"x": np.array([1.0, 1.0])}, rng(), until=NEVER)
    assert 2 - 1e-12 < there.ratio <= 2 and w.at({"x": np.array([3.0, 1.0])}).ratio == -np.inf
    assert w.at({"x": np.array([np.inf, 1.0])}).ratio == -np.inf


def test_what_comes_to_a_known_ratio_ends_there(climber):
    asked = []
    f = lambda i: asked.append(1) or min(i["x"][0], 2.0)
    w = climber(f, DRAWS)
    top = {"x": np.array([2.0, 1.0])}
    assert w.climbed(top, rng(), until=NEVER, reach=2.0).ratio == 2 and len(asked) == 1
    # One that is larger than what is known goes on.
    w.climbed(top, rng(), until=NEVER, reach=1.9)
    assert len(asked) > 100


def test_whole_numbers_are_those_drawn_or_declared(climber):
    f = lambda i: 1 + int(i["n"][0] == 3) + int(i["n"][1] == 1) + i["x"][0] * 0
    draws = {"n": np.array([[0, 1], [3, 5], [3, 5], [2, 5]]), "x": np.ones((4, 1))}
    w = climber(f, draws)
    start = {"n": np.array([0, 5]), "x": np.ones(1)}
    first, second = w.wholes(start)
    assert list(first.seen) == [0, 2, 3] and first.once == 0.5
    assert list(second.seen) == [1, 5] and second.once == 0.25
    assert not w.declared(start, first) and w.values_of(start, second) == [1, 5]
    there = w.climbed(start, rng(), until=NEVER)
    assert list(there.instance["n"]) == [3, 1] and there.ratio == 3
    # All alike in the draws: nothing is known to be moved.
    assert not w.wholes({"n": np.zeros(2, int), "x": np.ones(1)})[2:]
    own = {"over": {"k": Integers(1, 1000), "x": Box(0, 1)}, "sample": {}}
    w = climber(lambda i: 1 / (1 + abs(int(i["k"]) - 777)), {"k": np.array([5, 9]),
                                                              "x": np.ones(2)}, **own)  # fmt: skip
    start = {"k": np.array(5), "x": np.array(1.0)}
    (k,) = w.wholes(start)
    assert w.declared(start, k) and {4, 6, 5 + 512} <= set(w.values_of(start, k))
    assert w.climbed(start, rng(), until=NEVER).instance["k"] == 777


def test_far_from_the_draws(climber):
    w = climber(lambda i: 1.0, {"x": np.array([[1.0, 0.0], [-4.0, 2.0]])})
    place = {"x": np.array([4001.0, -4000.0])}
    assert list(w.out(place)) == [1, 0]
    assert list(w.out({"x": np.array([0.9e-3, 0.0])})) == [-1, 0] and len(flat(place)) == 2


def test_after_its_time_nothing_is_measured(climber):
    w = climber(lambda i: 1.0, {"k": np.array([1, 2]), "x": np.ones((2, 1))})
    start = {"k": np.array(1), "x": np.ones(1)}
    (k,) = w.wholes(start)
    assert w.at(start).ratio == w.tried(start, k, 5).ratio == 1
    w.until = 0.0
    for ask in (lambda: w.at(start), lambda: w.tried(start, k, 5)):
        with pytest.raises(TimeIsOver):
            ask()
