"""Machine integers that end: in a program, in a verdict, in a certificate and in a constant."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbounds as jb
from jaxbounds.falsification.discrete import MOVES, neighbours
from jaxbounds.programs.interpreted.whole import with_whole_numbers
from jaxbounds.programs.ranges import operations_that_may_wrap


@pytest.fixture(autouse=True)
def as_a_user():
    """Types are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"):
        yield


def factorial(n):
    k = jnp.arange(1, 31)
    return jnp.prod(jnp.where(k <= n, k, 1)).astype(float)


def fibonacci(n):
    return lax.fori_loop(0, n, lambda _, v: (v[1], v[0] + v[1]), (0, 1))[0].astype(float)


def ran(function, *arguments):
    """The exact result at each row, and the operations that wrap."""
    with jb.float64_on_cpu():
        traced = jax.jit(jax.vmap(function)).trace(*map(jnp.asarray, arguments))
        found = with_whole_numbers(traced.jaxpr, [np.asarray(x) for x in arguments])
        looked = operations_that_may_wrap(traced.jaxpr, arguments)
    return np.asarray(found.values[0]).tolist(), found.wraps, looked


PROGRAMS = {
    "factorial": (factorial, ([5, 20, 21, 30],), lambda n: float(math.factorial(n)), "reduce_prod"),
    "loop": (fibonacci, ([5, 92, 95],), lambda n: float(31940434634990099905 if n == 95 else
             7540113804746346429 if n == 92 else 5), "add"),
    "bytes": (lambda a, b: (a.astype(jnp.int8) * b.astype(jnp.int8)).astype(float),
              ([3, 12], [4, 12]), lambda a, b: float(a * b), "mul"),
    "sum": (lambda a, b: (a.astype(jnp.int32) + b.astype(jnp.int32)).astype(float),
            ([1, 2**31 - 1], [2, 1]), lambda a, b: float(a + b), "add"),
    "unsigned": (lambda a, b: (a.astype(jnp.uint8) - b.astype(jnp.uint8)).astype(float),
                 ([7, 3], [3, 7]), lambda a, b: float(a - b), "sub"),
    "power": (lambda n: (n**20).astype(float), ([2, 19],), lambda n: float(n**20), "integer_pow"),
    "narrower": (lambda n: n.astype(jnp.int8).astype(float), ([100, 200],), float,
                 "convert_element_type"),
    "shift": (lambda n: jnp.left_shift(1, n).astype(float), ([3, 63],), lambda n: 2.0**n,
              "shift_left"),
    "dot": (lambda a: jnp.dot(jnp.stack([a, a]).astype(jnp.int8), jnp.ones(2, jnp.int8) * 50)
            .astype(float), ([1, 2],), lambda a: 100.0 * a, "dot_general"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_integers_and_the_operation_that_wraps_are_found(name):
    function, arguments, truth, operation = PROGRAMS[name]
    values, wraps, looked = ran(function, *map(np.array, arguments))
    assert values == [truth(*row) for row in zip(*arguments)]
    assert wraps == (operation,) and operation in looked


@pytest.mark.parametrize("function", [
    lambda n: jnp.sum(jnp.arange(9) * n), lambda n: jnp.arange(30)[n % 30] + 1, lambda n: n * n - n,
    lambda n: lax.scan(lambda c, k: (c + k, c), 0, jnp.arange(50))[0] + n,
])  # fmt: skip
def test_integers_that_stay_small_are_told_by_their_ranges(function):
    _, wraps, looked = ran(function, np.arange(-1000, 1000))
    assert wraps == () and looked == ()


def test_an_integer_that_wraps_in_a_branch_not_taken_changes_nothing():
    stays = lambda n: jnp.where(n < 12, n**20, 3 * n).astype(float)
    values, wraps, _ = ran(stays, np.array([2, 30]))
    assert values == [2.0**20, 90.0] and wraps == ("integer_pow",)


FAR = np.array([0, 1, 5, 62, 63, 64, 70, 127, 130])
"""Exponents on both sides of 64, from which on JAX reads only a part of an exponent."""
POWERS = {
    "of two": (lambda n: 2**n, lambda n: 2**n),
    "of the exponent": (lambda n: n**n, lambda n: n**n),
    "of a negative number": (lambda n: (-3) ** n, lambda n: (-3) ** n),
    "of a short type": (lambda n: jnp.uint8(3) ** n.astype(jnp.uint8), lambda n: 3**n),
    "of a row": (lambda n: jnp.max(jnp.arange(9) ** n), lambda n: 8**n),
    "of a column to a row": (lambda n: jnp.max(jnp.arange(9)[:, None] ** (n + jnp.arange(9)[None])),
                             lambda n: 8 ** (n + 8)),
    "in a loop": (lambda n: lax.fori_loop(0, 2, lambda _, c: 2**n + 0 * c, n), lambda n: 2**n),
    "of a power": (lambda n: (2**n) ** n, lambda n: 2 ** (n * n)),
}  # fmt: skip


@pytest.mark.parametrize("name", POWERS)
def test_a_power_of_integers_has_all_bits_of_its_exponent(name):
    function, truth = POWERS[name]
    values, wraps, looked = ran(function, FAR)
    assert values == [truth(n) for n in FAR.tolist()]
    assert "pow" in wraps and "pow" in looked


@pytest.mark.parametrize("base", [-1, 0, 1])
def test_a_power_that_large_exponents_do_not_change_wraps_nothing(base):
    exponents = np.array([0, 1, 63, 64, 65, 1000, 2**40 + 1])
    values, wraps, looked = ran(lambda n: base**n, exponents)
    assert values == [base ** min(n, 2 + n % 2) for n in exponents.tolist()]
    assert wraps == () and looked == ()


def test_a_power_with_a_small_exponent_keeps_its_equations():
    values, wraps, looked = ran(lambda n: 2**n, np.arange(63))
    assert values == [2**n for n in range(63)]
    assert "pow" not in (*wraps, *looked)


def test_negative_and_huge_powers_are_fractions_and_infinities():
    values, wraps, _ = ran(lambda n: 2**n, np.array([-1, -3, -(10**9), 10**9]))
    assert values == [0.5, 0.125, 0.0, math.inf] and "pow" in wraps
    values, wraps, _ = ran(lambda n: 0**n, np.array([-1, 2]))
    assert values == [math.inf, 0] and "pow" in wraps
    values, _, _ = ran(lambda n: ((2**n) & 1) + 0.0, np.array([-1, 64]))
    assert math.isnan(values[0]) and values[1] == 0.0


def test_a_loop_of_bits_is_no_power_unless_it_begins_as_a_power_does():
    def squarings(n, start):
        for _ in range(6):
            start, n = jnp.where(n & 1, start * 1, start), lax.shift_right_logical(n, 1)
        return start

    _, wraps, looked = ran(lambda n: squarings(n, n), np.array([64, 3]))
    assert wraps == () and looked == ()


FEW = jb.Budget(samples=64, restarts=2, steps=20)


def claim(lhs, relation, rhs, over, **more):
    """A statement with a control that no instance meets."""

    def evaluate(i, s):
        left = jnp.asarray(lhs(**i)).astype(float)
        right = jnp.asarray(rhs(**i) if callable(rhs) else rhs).astype(float) + 0 * left
        far = {"<=": -1.0 - jnp.abs(left), ">=": 1.0 + jnp.abs(left)}[relation]
        return jb.Sides(lhs=left, rhs={"printed": right, "control": far})

    return jb.Statement(
        id="t.whole", label="", formula="", kind="inequality", evaluate=evaluate, control="far",
        forms=(jb.Form(name="printed"),), sizes=({},), relation=relation, over=over, budget=FEW,
        **more,
    )  # fmt: skip


WRAPPING = {
    "a true lower bound": (factorial, ">=", lambda n: (n / math.e) ** n, {"n": jb.Integers(1, 30)}),
    "a false upper bound": (factorial, "<=", 1e19, {"n": jb.Integers(1, 30)}),
    "a product of bytes": (lambda a, b: a.astype(jnp.int8) * b.astype(jnp.int8), "<=", 127.5,
                           {"a": jb.Integers(0, 12), "b": jb.Integers(0, 12)}),
    "a true bound on powers": (lambda n: 2**n, ">=", lambda n: n, {"n": jb.Integers(0, 64)}),
    "a true bound on n**n": (lambda n: n**n, ">=", lambda n: n, {"n": jb.Integers(0, 70)}),
    "a true bound on three powers": (lambda n: jnp.sum(jnp.arange(1, 4) ** n), ">=", lambda n: n,
                                     {"n": jb.Integers(0, 70)}),
    "a false bound on powers": (lambda n: (2**n) * 1.0, "<=", 2.0**63, {"n": jb.Integers(0, 66)}),
    "powers beyond floats": (lambda n: 2**n, ">=", lambda n: n, {"n": jb.Integers(0, 10**6)}),
    "negative exponents": (lambda n: 2**n, "<=", 1.0, {"n": jb.Integers(-5, 0)}),
}  # fmt: skip


@pytest.mark.slow_cases(
    "a false upper bound", "a true bound on powers", "a true bound on three powers",
    "a false bound on powers",
)  # fmt: skip
@pytest.mark.parametrize("name", WRAPPING)
def test_no_verdict_rests_on_integers_that_wrap(name):
    (found,) = jb.falsify(claim(*WRAPPING[name]), seed=0)
    assert found.status == "inconclusive" and found.reason.startswith(
        "as coded: machine integers wrap in"
    )


def test_no_identity_of_powers_holds_because_an_exponent_loses_bits():
    identity = jb.claim(
        "t.bits", lambda n: 2**n, "=", lambda n: 2 ** (n % 64), over={"n": jb.Integers(64, 70)}
    )
    (found,) = jb.falsify(identity, seed=0)
    assert found.status == "inconclusive" and "integers wrap in pow" in found.reason


POWERS_JUDGED = {
    "small": (lambda n: 2**n, ">=", lambda n: n, {"n": jb.Integers(0, 62)}, "holds"),
    "of minus one": (lambda n: (-1) ** n, "<=", 1.5, {"n": jb.Integers(0, 1000)}, "holds"),
    "false": (lambda n: 2**n, "<=", 1000.0, {"n": jb.Integers(0, 100)}, "fails"),
}


@pytest.mark.slow_cases("small")
@pytest.mark.parametrize("name", POWERS_JUDGED)
def test_powers_that_lose_no_bits_are_judged(name):
    *given, word = POWERS_JUDGED[name]
    (found,) = jb.falsify(claim(*given), seed=0)
    assert found.status == word


def test_a_violation_beside_integers_that_wrap_stands():
    lhs = lambda n: jnp.where(n == 7, 2.0, factorial(n) * 1e-30)
    (found,) = jb.falsify(claim(lhs, "<=", 1.0, {"n": jb.Integers(1, 30)}), seed=0)
    assert (found.status, found.worst_ratio) == ("fails", 2.0)


def test_wraps_that_reach_no_side_leave_the_verdict():
    lhs = lambda n: jnp.where(n <= 20, factorial(n) * 1e-19, 0.5)
    (found,) = jb.falsify(claim(lhs, "<=", 1.0, {"n": jb.Integers(1, 30)}), seed=0)
    assert found.status == "holds"


def test_a_certificate_and_a_constant_say_as_coded():
    statement = claim(*WRAPPING["a true lower bound"])
    found = jb.disprove(statement, "printed", {"n": 25}, {})
    assert found.word == "disproved as coded"
    assert found.reason == "as coded: integers wrap in reduce_prod"
    over = {"n": jb.Integers(1, 30)}
    constant = jb.sharp_constant(factorial, 1.0, over=over, seconds=3)
    assert constant.sizes[0].where == "as coded" and not constant.fails
    assert "integers wrap in reduce_prod" in constant.sizes[0].reason


def test_false_claims_over_integers_are_refuted_by_moves_and_by_counting():
    bowl = lambda a, b: (a - 123) ** 2 + (b - 456) ** 2
    over = {"a": jb.Integers(0, 1000), "b": jb.Integers(0, 1000)}
    assert jb.find_violation(bowl, 0.5, over=over, relation=">=")
    pell = lambda a, b: jnp.abs(a * a - 7 * b * b - 1)
    over = {"a": jb.Integers(9, 200), "b": jb.Integers(4, 200)}
    assert jb.find_violation(pell, 1.0, over=over, relation=">=")


CONSTANTS = {
    "concave": (lambda n: n * (100000 - n) * 4e-10, {"n": jb.Integers(0, 100000)}, 1.0,
                "enumerated"),
    "too many to count": (lambda n: 1e12 - jnp.abs(n - 123456789.0), {"n": jb.Integers(0, 2**40)},
                          1e12, "attained"),
    "an integer and a number": (lambda x, n: x * (1 - x) * (10 - jnp.abs(n - 77.0)),
                                {"x": jb.Box(0, 1), "n": jb.Integers(0, 1000)}, 2.5, "attained"),
    "signs": (lambda x: jnp.sum(x) + 20 * (jnp.prod(x) < 0), {"x": jb.Signs(14)}, 32.0,
              "enumerated"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_over_integers_are_those_of_all_points(name):
    lhs, over, truth, word = CONSTANTS[name]
    found = jb.sharp_constant(lhs, 1.0, over=over, seconds=4).sizes[0]
    assert found.where == word and found.ratio == pytest.approx(truth, rel=1e-12)


def test_a_rare_point_among_many_is_not_called_attained():
    def steps(n):
        step = lambda v: (jnp.where(v[0] % 2 == 0, v[0] // 2, 3 * v[0] + 1), v[1] + 1)
        return lax.while_loop(lambda v: v[0] > 1, step, (n, 0))[1].astype(float)

    found = jb.sharp_constant(steps, 1.0, over={"n": jb.Integers(1, 10**8)}, seconds=1).sizes[0]
    assert found.where == "rising" and "rounds of moves" in found.reason  # the truth is 949


SETS = {
    "integers": jb.Integers(-1, 2, 3), "signs": jb.Signs(4), "listed": jb.OneOf(1.0, 5.0, 2.0),
    "stack": jb.Each(jb.Integers(0, 2, 2), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_numbered_points_are_all_points(name):
    one, every = SETS[name], SETS[name].every({})
    count = one.cardinality({})
    points = one.numbered(np.arange(count), {})
    assert len(every) == count == len({p.tobytes() for p in points}) and points.shape == every.shape
    assert {p.tolist().__repr__() for p in points} == {p.tolist().__repr__() for p in every}
    assert jb.Box(0, 1).cardinality({}) is None


@pytest.mark.parametrize("move", dict.fromkeys(MOVES), ids=lambda move: move.__name__)
@pytest.mark.parametrize("shape", [(5,), (5, 4)])
def test_a_move_of_integers_keeps_the_leaf_that_it_is_given(move, shape):
    leaf = np.random.default_rng(1).integers(-3, 9, shape)
    before = leaf.copy()
    moved = move(leaf, np.random.default_rng(2))
    assert moved.shape == shape and moved.dtype == leaf.dtype
    np.testing.assert_array_equal(leaf, before)


def test_neighbours_of_an_integer_and_of_a_permutation():
    one = {int(x) for x in neighbours(np.array(5), (0, 20), 99)}
    assert {4, 6, 3, 7, 1, 9, 13, 0, 20} <= one and not {-3, 21} & one
    some = {tuple(x) for x in neighbours(np.array([0, 1, 2]), (0, 2), 99)}
    assert {order for order in itertools.permutations(range(3)) if sum(
        a != b for a, b in zip(order, (0, 1, 2))) == 2} <= some  # fmt: skip
