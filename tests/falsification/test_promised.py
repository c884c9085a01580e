"""Entries that a claim only promises, at claims whose witnesses are known on paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import statement

import jaxbounds as jb
from jaxbounds.claims.statements import Budget, Form, Sides, Size
from jaxbounds.falsification.bench import Bench
from jaxbounds.falsification.measure import float64_on_cpu
from jaxbounds.falsification.programs import UNKEPT

FEW = Budget(samples=24, restarts=2, steps=20, batch=16)
INF = np.inf


@pytest.fixture(autouse=True)
def as_a_user():
    """Types and ranks are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _judged(lhs, relation, rhs, over, there_is, **given):
    claim = jb.claim(
        "mine.there", lhs, relation, rhs, over=over, there_is=there_is,
        sizes=given.pop("sizes", {"d": 3}), budget=FEW, **given,
    )  # fmt: skip
    (row,) = jb.verify(jb.Paper(id="mine", title="Mine", statements=(claim,)))
    return row


def _slope(x):
    """The first entry of the Jacobian of attention among two numbers."""
    attend = lambda x: jax.nn.softmax(jnp.outer(x, x), axis=-1) @ x
    return jax.jacobian(attend)(x)[0, 0]


def test_a_witness_is_a_vertex_with_an_entry_at_zero():
    # At x = (0, a) the slope is a^2/4 + 1/2; nearly everywhere else it is at most a few units.
    found = _judged(lambda x: _slope(x), ">=", lambda K: K, {"K": jb.Box(1, 100)},
                    {"x": jb.Box(-100, 100, 2)})  # fmt: skip
    assert found.status == "holds"


TRUE = {
    "integers": (lambda x, p, q: jnp.abs(q * x - p), "<=", lambda q: 1.0 / q,
                 {"x": jb.Box(0, 1)}, {"q": jb.Integers(1, 50), "p": jb.Integers(0, 50)}),
    "the nearest of many integers": (lambda x, n: jnp.abs(x - n), "<=", 0.5000001,
                                     {"x": jb.Box(-1e5, 1e5)},
                                     {"n": jb.Integers(-100000, 100000)}),
    "a vertex of a simplex": (lambda v, p: p @ v, ">=", lambda v: jnp.max(v) - 1e-6,
                              {"v": jb.Box(-3, 3, "d")}, {"p": jb.Simplex("d")}),
    "the middle of a simplex": (lambda v, p: jnp.abs(p @ v - (jnp.max(v) + jnp.min(v)) / 2), "<=",
                                1e-6, {"v": jb.Box(-3, 3, "d")}, {"p": jb.Simplex("d")}),
    "a direction in a ball": (lambda v, y: v @ y, ">=", lambda v: 0.9999 * jnp.linalg.norm(v),
                              {"v": jb.Sphere(2, "d")}, {"y": jb.Ball(1, "d")}),
    "a law whose small entries matter": (
        lambda z, t, p: p @ z + jnp.sum(jax.scipy.special.entr(p)) / t, ">=",
        lambda z, t: jax.nn.logsumexp(t * z) / t - 1e-6,
        {"z": jb.Box(-5, 5, "d"), "t": jb.Box(0.1, 10)}, {"p": jb.Simplex("d")}),
    "two numbers": (lambda x, y: x * y, ">=", lambda K: K, {"K": jb.Box(0, 99)},
                    {"x": jb.Box(0, 10), "y": jb.Box(0, 10)}),
    "a thin place, where the ratio is flat": (lambda K, x: 1 - 1e3 * jnp.abs(x - K / 7), ">=", 0.0,
                                              {"K": jb.Box(0, 7)}, {"x": jb.Box(0, 1)}),
    "a root": (lambda x: x**3 + x, "=", lambda K: K, {"K": jb.Box(-10, 10)}, {"x": jb.Box(-9, 9)}),
    "a weight of each mean": (lambda v, p: p @ v, "=", lambda v: (v[0] + jnp.max(v)) / 2,
                              {"v": jb.Box(-3, 3, "d")}, {"p": jb.Simplex("d")}),
    "several equations": (lambda b, x: jnp.array([[3.0, 1, 0], [1, 2, 1], [0, 1, 1]]) @ x, "=",
                          lambda b: b, {"b": jb.Ball(1, 3)}, {"x": jb.Reals(3)}),
    "an orthogonal direction, up to rounding": (lambda a, x: jnp.abs(a @ x), "<=", 0,
                                                {"a": jb.Ball(1, "d")}, {"x": jb.Sphere(1, "d")}),
    "an equation with zero": (lambda a, x: a @ x, "=", 0,
                              {"a": jb.Ball(1, "d")}, {"x": jb.Sphere(1, "d")}),
    "an equation with small entries": (lambda A, b, x: (A + jnp.eye(2)) @ x, "=", lambda b: b,
                                       {"A": jb.PSD(2, at_most=9), "b": jb.Sphere(1, 2)},
                                       {"x": jb.Reals(2)}),
}  # fmt: skip


@pytest.mark.default_cases(
    "integers", "a vertex of a simplex", "a root", "several equations", "an equation with zero",
    "an equation with small entries",
)  # fmt: skip
@pytest.mark.parametrize("name", TRUE)
def test_witnesses_are_found(name):
    found = _judged(*TRUE[name])
    assert found.status == "holds", found.reason


@pytest.mark.slow_cases("0.0")
@pytest.mark.parametrize("above", [0.0, 1e-17])
def test_rounding_beside_zero_is_no_proof_of_a_witness(above):
    """Nothing tells a true bound by zero from a bound that is false by less than rounding."""
    sides = lambda a, s: jnp.abs((jnp.sum(a) + s[0]) - jnp.sum(a) - 1) + above
    found = _judged(sides, "<=", 0, {"a": jb.Ball(1, "d")}, {"s": jb.Signs("d")})
    assert found.status == "inconclusive" and "Try equality=" in found.reason
    distance = lambda x, y: jnp.abs(x - y) + 1e-17
    found = _judged(distance, "<=", 0, {"x": jb.Box(1, 2)}, {"y": jb.Box(0, 3)})
    assert found.status == "inconclusive", found.reason


FALSE = {
    "a larger product": (lambda x, y: x * y, ">=", lambda K: K, {"K": jb.Box(0, 101)},
                         {"x": jb.Box(0, 10), "y": jb.Box(0, 10)}),
    "more than the largest entry": (lambda v, p: p @ v, ">=", lambda v: jnp.max(v) + 1e-3,
                                    {"v": jb.Box(-3, 3, "d")}, {"p": jb.Simplex("d")}),
    "roots of negative numbers": (lambda x: x**2, "=", lambda K: K, {"K": jb.Box(-10, 10)},
                                  {"x": jb.Box(-10, 10)}),
    "squares": (lambda n, m: jnp.abs(1.0 * m * m - n), "<=", lambda n: 0.25 * jnp.sqrt(1.0 * n),
                {"n": jb.Integers(0, 10**6)}, {"m": jb.Integers(0, 5000)}),
    "more than rounding beside zero": (lambda a, x: jnp.abs(a @ x) + 1e-9, "<=", 0,
                                       {"a": jb.Ball(1, "d")}, {"x": jb.Sphere(1, "d")}),
}  # fmt: skip


@pytest.mark.slow_cases("more than the largest entry", "more than rounding beside zero")
@pytest.mark.parametrize("name", FALSE)
def test_no_witness_is_no_verdict(name):
    found = _judged(*FALSE[name])
    assert found.status == "inconclusive" and "does not prove that none exists" in found.reason


@pytest.mark.parametrize("function", [jax.nn.sigmoid, jnp.tanh, lambda x: x / (1 + jnp.abs(x))])
@pytest.mark.parametrize("relation", ["=", ">="])
def test_a_value_that_is_only_a_limit_is_not_reached(function, relation):
    (found,) = jb.falsify(
        jb.claim("mine.limit", function, relation, 1.0, over={}, there_is={"x": jb.Reals(())})
    )
    assert found.status == "inconclusive", found.reason


@pytest.mark.parametrize("last, status", [(3, "fails"), (4, "holds")])
def test_a_strict_claim_fails_if_each_point_of_a_finite_set_reaches_only_equality(last, status):
    (found,) = jb.falsify(
        jb.claim(
            "mine.larger", lambda i, k: 1.0 * k, ">", lambda i: 1.0 * i,
            over={"i": jb.Integers(0, 3)}, there_is={"k": jb.Integers(0, last)},
        )
    )  # fmt: skip
    assert found.status == status, found.reason
    assert status == "holds" or found.reason == "no k satisfies the strict inequality at i = 3"


def _pairs(v, i):
    """The squared distance of the mean of all rows from the mean of two rows."""
    return jnp.sum((jnp.mean(v, axis=0) - (v[i[0]] + v[i[1]]) / 2) ** 2)


CERTAIN = {
    "points of a sphere": ({"v": jb.Each(jb.Sphere(1, 2), 3)}, 0.1),
    "points of a box": ({"v": jb.Box(-1, 1, (3, 2))}, 0.1),
}


@pytest.mark.slow_cases("points of a box")
@pytest.mark.parametrize("name", CERTAIN)
def test_a_violation_by_each_point_of_a_finite_set_is_no_rounding(name):
    over, bound = CERTAIN[name]
    found = _judged(_pairs, "<=", bound, over, {"i": jb.Integers(0, 2, 2)})
    assert (found.status, found.worst_ratio > 1.2) == ("fails", True), found.reason
    single = lambda v, i, j: _pairs(v, (i, j))
    found = _judged(single, "<=", bound, over, {"i": jb.Integers(0, 2), "j": jb.Integers(0, 2)})
    assert (found.status, found.worst_ratio > 1.2) == ("fails", True), found.reason


def test_beside_its_set_an_instance_has_its_best_point_too():
    """Rounding moves an instance off its set; the point with the least ratio stays the same."""
    claim = jb.claim("mine.pairs", _pairs, "<=", 0.1, over={"v": jb.Each(jb.Sphere(1, 2), 3)},
                     there_is={"i": jb.Integers(0, 2, 2)}, budget=FEW,
                     hypotheses=lambda i: {"no two equal": i[0] != i[1]})  # fmt: skip
    v = np.array([[0.6, 0.8], [0.0, -1.0], [-1.0, 0.0]])
    best = min(float(np.sum((v.mean(0) - (v[i] + v[j]) / 2) ** 2)) for i, j in
               ((0, 1), (0, 2), (1, 2)))  # fmt: skip
    with float64_on_cpu():
        bench = Bench(claim, 16, UNKEPT)
        there, off = (bench.one({"v": v * by, "i": np.array([0, 0])}, Size({})) for by in (1, 1.01))
    assert bool(there.counted[0]) and not off.counted[0]
    assert float(there.value[0]) == pytest.approx(best / 0.1)
    assert float(off.value[0]) == pytest.approx(best / 0.1 * 1.01**2)


def test_ball_arithmetic_tries_each_point_of_a_small_finite_set():
    pytest.importorskip("flint")
    from jaxbounds.certification.referee import referee

    far = lambda x, n: jnp.abs(x - n / 4)
    given = {"over": {"x": jb.Box(0, 1, ())}, "budget": FEW}
    ask = lambda bound, many: referee(
        claim := jb.claim("mine.grid", far, "<=", bound, there_is={"n": jb.Integers(0, many)},
                          **given),
        claim.form("printed"), {"x": np.array(0.125), "n": np.array(0)}, Size({}),
    )  # fmt: skip
    with float64_on_cpu():
        assert ask(0.125 - 2.0**-25, 4).word == "disproved"
        assert ask(0.125, 4).is_true
        many = ask(0.125 - 2.0**-25, 100)
    assert many.word == "undecided" and "all 101 points of n" in many.reason


def test_an_instance_for_which_hypotheses_leave_no_entry_is_not_left_out():
    # For a > 1/2 no x in [0, 1/2) reaches a: the hypothesis on x must not hide these instances.
    found = _judged(lambda x: x, ">=", lambda a: a, {"a": jb.Box(0, 1)}, {"x": jb.Box(0, 1)},
                    hypotheses=lambda i, s: {"x < 1/2": i["x"] < 0.5})  # fmt: skip
    assert found.status == "inconclusive" and "found no x" in found.reason
    # A hypothesis on a alone still leaves instances out.
    found = _judged(lambda x: x, ">=", lambda a: a + 0.5, {"a": jb.Box(0, 1)}, {"x": jb.Box(0, 1)},
                    hypotheses=lambda i, s: {"a < 0.4": i["a"] < 0.4})  # fmt: skip
    assert found.status == "holds"


NEEDLE = (lambda K, x: jnp.exp(-1e12 * (x - jnp.sin(1e3 * K)) ** 2), ">=",
          lambda K: 0.9 - 0.001 * K, {"K": jb.Box(0, 7)}, {"x": jb.Box(-1, 1)})  # fmt: skip


def test_a_witness_is_where_the_search_starts():
    assert _judged(*NEEDLE).status == "inconclusive"
    assert _judged(*NEEDLE, witness=lambda K: jnp.sin(1e3 * K)).status == "holds"
    assert _judged(*NEEDLE, witness=lambda K: {"x": jnp.sin(1e3 * K)}).status == "holds"
    # A wrong one costs nothing but its trial, and one outside of its set is projected.
    product = TRUE["two numbers"]
    assert _judged(*product, witness=lambda K: {"x": -1.0 + 0 * K}).status == "holds"
    assert _judged(*product, witness={"x": 1e9, "y": 10.0}).status == "holds"
    with pytest.raises(TypeError, match="witness must be a function or a dict or float"):
        _judged(*product, witness="x = 1")


def test_a_statement_takes_a_witness_of_the_instance_and_the_size():
    def sides(instance, size):
        far = (instance["x"] - jnp.sin(size["d"] * instance["K"])) ** 2
        value = jnp.exp(-1e12 * far)
        return Sides(0.9 - 0.001 * instance["K"], {"printed": value, "control": 0.1 * value})

    given = {"host": False, "cases": None, "over": {"K": jb.Box(0, 7)}, "budget": FEW,
             "there_is": {"x": jb.Box(-1, 1)}, "sizes": ({"d": 1000},)}  # fmt: skip
    own = lambda instance, size: {"x": jnp.sin(size["d"] * instance["K"])}
    assert _status(statement(sides, **given, witness=own)) == "holds"
    assert _status(statement(sides, **given)) == "inconclusive"


def _status(claim):
    (row,) = jb.verify(jb.Paper(id="mine", title="Mine", statements=(claim,)))
    return row.status


@pytest.mark.parametrize("witness, says", [
    (lambda K: {"z": K}, "gives 'z', expected the names in there_is=x. Try a dict with the keys x"),
    (lambda K: jnp.zeros(3), r"gives x with shape=\(3,\), expected shape=\(\). Try"),
])  # fmt: skip
def test_a_witness_of_another_kind_is_named(witness, says):
    found = _judged(*NEEDLE, witness=witness)
    assert found.status == "error"
    with pytest.raises(ValueError, match=says):
        raise ValueError(found.reason)


def test_a_witness_without_a_promise_is_refused():
    with pytest.raises(ValueError, match="witness is where the search for the entries"):
        jb.claim("mine.a", 0.0, "<=", 1.0, over={"K": jb.Box(0, 1)}, witness=lambda K: K)
    with pytest.raises(ValueError, match="the function witness takes argument='x'"):
        jb.claim("mine.a", 0.0, "<=", 1.0, over={"K": jb.Box(0, 1)}, there_is={"x": jb.Box(0, 1)},
                 witness=lambda x: x)  # fmt: skip


@pytest.mark.parametrize("exact", [True, False])
def test_each_form_has_the_promised_entry_that_suits_it_best(exact):
    """x s >= 1 for some s of -1, 1."""

    def sides(instance, size):
        x, s = instance["x"], instance["s"]
        return Sides(1.0, {"printed": x * s, "derived": -2 * x * s, "control": 0.0 * x + 0.25})

    promise = jb.Signs(()) if exact else jb.Box(-1, 1)
    claim = statement(
        sides, host=False, over={"x": jb.Box(1, 3)}, there_is={"s": promise}, cases=None,
        forms=(Form(name="printed"), Form(name="derived")),
    )  # fmt: skip
    kind = int if exact else float
    with float64_on_cpu():
        batch = {"x": np.array([2.0, 3.0]), "s": np.array([1, -1], kind)}
        m = Bench(claim, 4, UNKEPT)(batch, Size({"d": 1}))
    assert m.value == pytest.approx(np.array([[0.5, 0.25, 4.0], [1 / 3, 1 / 6, 4.0]]))
    # What was looked for among all there are may violate, else nothing but the control does.
    assert np.all(np.isneginf(m.low[:, :2])) != exact and np.all(m.low[:, 2] == 4.0)


@pytest.mark.parametrize("control", ["a control", ""])
def test_a_gradient_is_taken_at_the_best_point_of_each_form(control):
    sides = lambda i, s: Sides(1.0, {"printed": i["x"] * i["s"], "derived": -2 * i["x"] * i["s"]}
                               | ({"control": -i["x"] * i["s"]} if control else {}))  # fmt: skip
    claim = statement(
        sides, host=False, over={"x": jb.Box(1, 3)}, there_is={"s": jb.Signs(())}, cases=None,
        forms=(Form(name="printed"), Form(name="derived")), control=control,
    )  # fmt: skip
    batch = {"x": np.array([2.0, 3.0, 1.5]), "s": np.array([-1, 1, 1])}
    with float64_on_cpu():
        promises = Bench(claim, 4, UNKEPT).promises(Size({"d": 1}))
        found = promises.of_each(batch, np.array([0, 1, 2]))
    assert found["s"].tolist() == [1, -1, -1 if control else 1] and promises.points == 2
    assert batch["s"].tolist() == [-1, 1, 1] and found["x"] is batch["x"]


@pytest.mark.slow_cases("1")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_search_climbs_on_the_least_of_finitely_many_ratios(seed):
    """Four points of a sphere: the regular tetrahedron is worst, and no draw is near it."""
    over, pairs = {"v": jb.Each(jb.Sphere(1, 3), 4)}, {"i": jb.Integers(0, 3, 2)}
    claim = jb.claim("mine.four", _pairs, "<=", 0.3, over=over, there_is=pairs,
                     budget=Budget(samples=24, restarts=2, steps=100, batch=16))  # fmt: skip
    (found,) = jb.falsify(claim, seed=seed)
    assert found.status == "fails", found.reason
    assert found.worst_ratio == pytest.approx(1 / 0.9, abs=2e-3)


def test_a_found_entry_is_a_function_of_the_instance():
    """Measured again, alone or among others, an instance has the same entry."""
    claim = statement(
        lambda i, s: Sides(i["a"], {"printed": i["x"], "control": i["x"] / 2}), host=False,
        over={"a": jb.Box(0, 1)}, there_is={"x": jb.Box(0, 2)}, cases=None,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    batch = {"a": rng.uniform(size=8), "x": rng.uniform(size=8)}
    with float64_on_cpu():
        promises = Bench(claim, 4, UNKEPT).promises(Size({"d": 1}))
        every = promises.filled(batch, 0)
        one = promises.filled({name: leaf[3:4] for name, leaf in batch.items()}, 0)
    assert one["x"][0] == every["x"][3] and np.all(every["x"] >= every["a"])


@pytest.mark.parametrize("last", [1000, 1e6])
def test_a_bounded_entry_does_not_follow_every_real(last):
    sides = {"over": {"a": jb.Reals()}, "there_is": {"x": jb.Box(0, last)}}
    (found,) = jb.falsify(jb.claim("mine.far", lambda a, x: x - a, ">=", 0.0, **sides))
    assert found.status == "inconclusive" and "the search found no x" in found.reason


WHOLE = (jb.Integers(0, 5), jb.Integers(0, 5), lambda n, k: jnp.abs(k - n).astype(float))
REAL = (jb.Box(0, 5), jb.Reals(), lambda n, k: jnp.abs(k - n))
NEAR = [(*WHOLE, "inconclusive"), (*REAL, "holds")]


@pytest.mark.parametrize("given, promised, distance, status", NEAR)
def test_a_stated_error_hides_no_witness(given, promised, distance, status):
    sets = {"over": {"n": given}, "there_is": {"k": promised}}
    (found,) = jb.falsify(jb.claim("mine.near", distance, "<=", 0.0, error=1e-12, **sets))
    assert found.status == status, found.reason


@pytest.mark.parametrize("slope, status", [(1.15, "holds"), (2.0, "inconclusive")])
def test_entries_that_suit_one_instance_are_tried_at_the_others(slope, status):
    mean = lambda x: jax.nn.softmax(x) @ x
    box = jb.Box(-2, 8, (2,))
    claim = jb.claim(
        "t.shared", lambda x, y: jnp.abs(mean(x) - mean(y)), ">=",
        lambda x, y: slope * jnp.max(jnp.abs(x - y)) + 0.01, over={},
        there_is={"x": box, "y": box},
    )  # fmt: skip
    assert jb.falsify(claim)[0].status == status
