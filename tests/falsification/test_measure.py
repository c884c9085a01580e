"""What is measured on one instance: every ratio, discrepancy and flag by hand, at each border."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import TENTH, statement

from jaxbounds.claims.sets import inner
from jaxbounds.claims.statements import Form, Sides, Size
from jaxbounds.falsification.evaluation import form_names, in_order, met, pick, read
from jaxbounds.falsification.measure import (
    Measured,
    compared,
    counts_for,
    float64_on_cpu,
    hypothesis_names,
    measure,
    measured,
    ratio,
)
from jaxbounds.ground.jax_internals import enable_x64

pytestmark = pytest.mark.usefixtures("x64")
NAN, INF = math.nan, math.inf
ONE = Size({"d": 1})
UP, DOWN = np.nextafter(1.0, 2), np.nextafter(1.0, 0)


@pytest.mark.parametrize("lhs, rhs, found", [
    (1, 2, 0.5), (3, 2, 1.5), (-1, 2, -0.5), (0, 2, 0), (1, 0.25, 4),
    # Of a right side that is not positive: 1 + (lhs - rhs) / (|lhs| + |rhs|).
    (1, 0, 2), (-1, 0, 0), (0, 0, 0), (1, -1, 2), (1, -3, 2), (-2, -1, 1 - 1 / 3),
    (-1, -2, 1 + 1 / 3), (-1, -1, 1), (0, -4, 2), (-3, -1, 0.5), (NAN, 1, NAN), (1, NAN, NAN),
    (0.25, -0.25, 2), (-0.25, -0.5, 1 + 1 / 3),
])  # fmt: skip
def test_a_ratio_is_at_most_one_where_the_claim_is_true(lhs, rhs, found):
    value = ratio(np.float64(lhs), np.float64(rhs), np)
    assert value == pytest.approx(found, nan_ok=True)
    if not math.isnan(found):
        assert (value <= 1) == (lhs <= rhs)


def _one(lhs, rhs, *, host=True, control=-9.0, forms=("printed",), instance=None, size=ONE,
         **options):  # fmt: skip
    """The measurement of a claim on one instance; `error`, `trivial` are those of its sides."""
    sides = {k: options.pop(k) for k in ("error", "trivial") if k in options}
    rhs = rhs if isinstance(rhs, dict) else {"printed": rhs, "control": control}
    given = [form if isinstance(form, Form) else Form(name=form) for form in forms]
    claim = statement(lambda i, s: Sides(lhs, rhs, **sides), forms=tuple(given), **options)
    return measure(claim, size)(instance or {"x": np.zeros(2)})


@pytest.mark.parametrize("lhs, rhs, error, value, low, high", [
    (1.0, 2.0, 0.5, 0.5, 0.25, 0.75), (-1.0, 2.0, 0.5, -0.5, -0.75, -0.25),
    (1.0, 0.0, 0.25, 2.0, 2.0, 2.0), (1.0, -2.0, 0.5, 2.0, 2.0, 2.0),
    (-2.0, -1.0, 0.5, 2 / 3, 1 - 1.5 / 3.5, 1 - 0.5 / 2.5),
])  # fmt: skip
def test_the_error_is_taken_off_and_added_to_the_left_side(lhs, rhs, error, value, low, high):
    m = _one(lhs, rhs, error=error).column(0)
    assert (m.value, m.low, m.high) == pytest.approx((value, low, high))
    assert (m.lhs, m.rhs, m.error) == (lhs, rhs, error) and m.counted and m.met


@pytest.mark.parametrize("lhs, rhs, error, counts", [
    (1.0, 0.5, 1.0, False), (0.5, 1.0, 1.0, False), (-1.0, 0.5, 1.0, False),
    (0.5, -1.0, 1.0, False), (1.0, 0.5, DOWN, True), (0.5, -1.0, DOWN, True),
    (0.0, 0.0, 0.0, True), (0.0, 0.0, 1e-300, False),
])  # fmt: skip
def test_sides_that_are_both_below_the_error_say_nothing(lhs, rhs, error, counts):
    m = _one(lhs, rhs, error=error).column(0)
    assert (bool(m.counted), bool(m.met)) == (counts, True)


@pytest.mark.parametrize("lhs, rhs, error", [([1.0], 1.0, 0.0), (1.0, [1.0], 0.0),
                                             (1.0, 1.0, [0.0])])  # fmt: skip
def test_a_bound_is_of_scalars(lhs, rhs, error):
    with pytest.raises(ValueError, match=r"mine.claim \(printed\): both sides of a <= must be"):
        _one(np.asarray(lhs), np.asarray(rhs), error=np.asarray(error))


EQUAL = {"kind": "identity", "tolerance": TENTH}


@pytest.mark.parametrize("lhs, rhs, error, value, low, high, counts", [
    # The largest difference over the largest entry, which may be negative and of either side.
    ([[1, -8, 3], [0, 2, 5]], [[1, -8, 3], [0, 4, 5]], 0, 0.25, 0.25, 0.25, True),
    ([[1, 2], [3, 4]], [[1, 2], [3, -16]], 0, 1.25, 1.25, 1.25, True),
    ([16.0], [4.0], 0, 0.75, 0.75, 0.75, True),
    ([0.0, 0.0], [0.0, 0.0], 0, 0, 0, 0, True), ([], [], 0, 0, 0, 0, True),
    (0.25, 0.5, 0, 0.5, 0.5, 0.5, True),
    # The error beside it, and where it may decide nothing: above half the tolerance.
    ([4.0], [8.0], TENTH * 4, 0.5, 0.5 - TENTH / 2, 0.5 + TENTH / 2, True),
    ([4.0], [8.0], TENTH * 4 * UP, 0.5, 0.5 - TENTH / 2, 0.5 + TENTH / 2, False),
    ([8.0], [8.0], TENTH * 4, 0, 0, TENTH / 2, True),
    ([0.0], [0.0], 1e-300, 0, 0, 1e-300, False),
    ([4.0], [8.0], [TENTH], 0.5, 0.5 - TENTH / 8, 0.5 + TENTH / 8, True),
])  # fmt: skip
def test_an_identity_is_as_good_as_its_worst_entry(lhs, rhs, error, value, low, high, counts):
    error = float(np.max(error))
    m = _one(np.asarray(lhs, float), np.asarray(rhs, float), error=error, control=np.asarray(
        rhs, float), **EQUAL).column(0)  # fmt: skip
    assert (m.value, m.low, m.high) == pytest.approx((value, low, high), abs=1e-12)
    assert bool(m.counted) == counts and math.isnan(m.lhs) and math.isnan(m.rhs)


LIMIT = {"kind": "limit", "towards": {"d": INF}, "sizes": ({"d": 1}, {"d": 2}, {"d": 3})}


@pytest.mark.parametrize("lhs, rhs, error, found", [
    ([[1, 5, 2]], [[1, -3, 2]], 0.5, (8, 7.5, 8.5, 5, 3)),
    ([1.0, -6.0], [1.0, -6.25], 0.5, (0.25, 0.0, 0.75, 6, 6.25)),
    ([], [], 0.0, (0, 0, 0, 0, 0)), (-2.0, 1.0, 0.0, (3, 3, 3, -2, 1)),
])  # fmt: skip
def test_a_limit_is_measured_by_the_distance_itself(lhs, rhs, error, found):
    rhs = np.asarray(rhs, float)
    m = _one(np.asarray(lhs, float), rhs, error=error, control=rhs, **LIMIT).column(0)
    assert (m.value, m.low, m.high, m.lhs, m.rhs) == found and m.counted


@pytest.mark.parametrize("options, of", [(EQUAL, "="), (LIMIT, "limit")])
def test_both_sides_have_one_shape(options, of):
    with pytest.raises(ValueError, match=f"{of} .*have one shape, got .*2,.* and .*3"):
        _one(np.zeros(2), np.zeros(3), **options)


def test_two_numbers_are_compared_without_a_statement():
    assert compared("<=", 3.0, 2.0, 0.5) == (1.5, 1.25)
    assert compared("=", np.array([1.0, 4.0]), 2.0, [0.5, 1.0]) == (0.5, 0.25)
    assert compared("->", 5.0, np.array([1.0, 4.0]), 1.0) == (4.0, 3.0)


def test_of_at_least_the_right_side_is_the_smaller_one():
    # lhs >= rhs is rhs <= lhs: 1/4 of it.
    m = _one(4.0, 1.0, relation=">=", control=8.0)
    assert m.value.tolist() == [0.25, 2.0]
    assert (m.lhs.tolist(), m.rhs.tolist()) == ([1.0, 8.0], [4.0, 4.0])
    own = _one({"printed": 4.0, "control": 2.0}, 1.0, relation=">=", control=8.0)
    assert own.value.tolist() == [0.25, 4.0]
    sides = Sides(1.0, {"printed": 2.0})
    assert in_order(statement(), sides) is sides


@pytest.mark.parametrize("relation, lhs, rhs, trivial, beaten", [
    ("<=", 0.5, 1.0, None, False), ("<=", 0.5, 1.0, 1.0, True), ("<=", 0.5, DOWN, 1.0, False),
    ("<=", 2.0, 1.0, 1.5, False), (">=", 2.0, 1.0, 1.0, True), (">=", 2.0, UP, 1.0, False),
    (">=", 0.25, 1.0, 0.5, False), (">=", 2.0, 1.0, 3.0, True),
])  # fmt: skip
def test_a_form_that_the_trivial_bound_says_as_well_is_trivial(relation, lhs, rhs, trivial, beaten):
    m = _one(lhs, rhs, relation=relation, trivial=trivial).column(0)
    assert bool(m.trivial) == beaten


@pytest.mark.parametrize("stated, kept", [(0.0, 0.0), (0.25, 0.25), (-1e-300, NAN), (NAN, NAN)])
def test_a_negative_error_is_none(stated, kept):
    m = _one(0.5, 1.0, error=stated).column(0)
    np.testing.assert_equal(float(m.error), kept)
    assert math.isnan(m.low) == math.isnan(m.high) == math.isnan(kept)


def test_each_form_has_its_sides_its_error_and_its_hypotheses():
    forms = (
        Form(name="printed"),
        Form(name="derived", hypotheses=lambda i, s: {"x > 0": i["x"] > 0}),
    )
    lhs = {"printed": 1.0, "derived": 3.0, "control": 5.0}
    error = {"printed": 0.5, "derived": 0.25, "control": 0.0}
    rhs = {"printed": 2.0, "derived": 2.0, "control": 2.0}
    m = _one(lhs, rhs, forms=forms, error=error)
    assert m.value.tolist() == [0.5, 1.5, 2.5] and m.error.tolist() == [0.5, 0.25, 0.0]
    assert m.low.tolist() == [0.25, 1.375, 2.5]
    # The control has none of a form's hypotheses.
    assert m.counted.tolist() == m.met.tolist() == [True, False, True]
    assert form_names(statement(forms=forms)) == ("printed", "derived", "control")
    table = Measured(*(np.array([field, field]) for field in m))
    assert table.column(1).value.tolist() == [1.5, 1.5]


@pytest.mark.parametrize("estimates, open_", [
    ({}, False), ({"rhs": "below"}, True), ({"rhs": "above"}, False), ({"lhs": "above"}, True),
])  # fmt: skip
def test_what_an_estimate_cannot_support_has_no_least_value(estimates, open_):
    m = _one(3.0, 2.0, control=1.0, estimates=estimates)
    assert m.low.tolist() == [-INF if open_ else 1.5, 3.0]
    assert m.value.tolist() == [1.5, 3.0] and m.counted.all()


@pytest.mark.parametrize(
    "made, estimates, refused",
    [
        (["below"], {"rhs": "below"}, False),
        (["below"], {}, True),
        (["above"], {"rhs": "below"}, True),
        (["below", "above"], {"rhs": "below"}, True),
        ([], {"rhs": "below"}, False),
    ],
)
def test_an_estimate_that_is_not_declared_is_refused(made, estimates, refused):
    def evaluate(instance, size):
        inner._made.get().extend(made)
        return Sides(1.0, {"printed": 2.0, "control": 0.5})

    run = measure(statement(evaluate, estimates=estimates), ONE)
    if refused:
        with pytest.raises(
            ValueError, match=r"does not name this side of the claim\. Try estimates="
        ):
            run({"x": np.zeros(2)})
    else:
        assert run({"x": np.zeros(2)}).value[0] == 0.5


@pytest.mark.parametrize("x, finite", [
    (np.zeros(2), True), (np.array([0, NAN]), False), (np.array([INF, 0]), False),
    (np.array([1, 2]), True), (np.zeros((0, 2)), True),
])  # fmt: skip
def test_an_instance_is_finite(x, finite):
    for instance in ({"x": x, "y": np.ones(3)}, {"a": np.ones(3), "x": x}):
        assert {k: bool(v) for k, v in met(None, instance, ONE, np).items()} == {"finite": finite}
    m = _one(0.5, 1.0, instance={"x": x}).column(0)
    assert bool(m.counted) == bool(m.met) == finite


def test_every_entry_of_a_hypothesis_is_met():
    flags = lambda i, s: {"both": np.array([True, i["x"][0] > 0]), "d": s["d"] == 1}
    for x, both in ((1.0, True), (-1.0, False)):
        found = met(flags, {"x": np.array([x])}, ONE, np)
        assert {k: bool(v) for k, v in found.items()} == {"finite": True, "both": both, "d": True}
        assert bool(_one(0.5, 1.0, instance={"x": np.array([x])}, hypotheses=flags).met[0]) == both


@pytest.mark.parametrize("given, says", [
    (lambda i, s: [True], "must return a dict of booleans by name"),
    (lambda i, s: {"ok": 1}, "'ok' must be a boolean, got int"),
    (lambda i, s: {"fine": True, "ok": np.zeros(2)}, "'ok' must be a boolean, got float64"),
])  # fmt: skip
def test_a_hypothesis_is_a_boolean_by_name(given, says, unannotated):
    with pytest.raises(TypeError, match=says):
        met(given, {"x": np.zeros(2)}, ONE, np)


@pytest.mark.parametrize("leaf, refused", [
    (np.zeros(2, np.float32), True), (np.zeros(2, np.float16), True), (np.zeros(2), False),
    (np.zeros(2, np.int32), False), (np.zeros(2, bool), False),
])  # fmt: skip
def test_an_instance_of_less_precision_is_refused(leaf, refused):
    instance = {"a": np.zeros(1), "x": leaf}
    if refused:
        with pytest.raises(
            ValueError, match=r"instance\['x'\] is float(32|16); expected dtype=float64"
        ):
            _one(0.5, 1.0, instance=instance)
    else:
        assert _one(0.5, 1.0, instance=instance).value[0] == 0.5


def test_what_evaluate_must_return(unannotated):
    for sides, error, says in (
        ((1.0, {}), TypeError, "must return Sides"),
        (Sides(1.0, [1.0]), TypeError, "must be a dict with a value for each of printed, control"),
        (
            Sides(1.0, {"printed": 1.0, "control": 0.0, "other": 1.0}),
            ValueError,
            "returned rhs=other",
        ),
        (Sides(1.0, {"printed": 1.0}), ValueError, "returned no rhs for form='control'"),
        (Sides({"printed": 1.0}, {"printed": 1.0, "control": 0.0}), ValueError, "returned no lhs"),
        (Sides(1j, {"printed": 1.0, "control": 0.0}), TypeError, "lhs is complex"),
        (Sides(1.0, {"printed": np.array(1j), "control": 0.0}), TypeError, "rhs is complex"),
    ):
        with pytest.raises(error, match=says):
            measure(statement(lambda i, s, sides=sides: sides), ONE)({"x": np.zeros(2)})
    assert pick({"a": 1.0, "b": 2.0}, "b", "lhs", statement()) == 2.0
    assert pick(3.0, "b", "lhs", statement()) == 3.0


@pytest.mark.parametrize("missing, told", [
    ("y", True), ("x", False), ("d", False), (3, False), (None, False),
])  # fmt: skip
def test_an_entry_that_an_instance_has_not_is_named(missing, told):
    def evaluate(instance, size):
        raise KeyError(*(() if missing is None else (missing,)))

    error = ValueError if told else KeyError
    with pytest.raises(error, match="reads entry='y'; expected one of x" if told else None):
        measure(statement(evaluate), ONE)({"x": np.zeros(2)})


@pytest.mark.parametrize("shared", [True, False])
def test_what_counts_for_one_form_is_what_counts_among_all(shared):
    # Entries of either sign, errors that hide, hypotheses of one form: against `measured`.
    def evaluate(i, s):
        x, y = i["x"]
        lhs = x if shared else {"printed": x, "derived": 2 * x, "control": y}
        rhs = {"printed": y, "derived": x + y, "control": -y}
        return Sides(lhs, rhs, error=i["error"])

    forms = (
        Form(name="printed", hypotheses=lambda i, s: {"x < 1": i["x"] < 1.0}),
        Form(name="derived"),
    )
    claim = statement(evaluate, host=False, forms=forms, hypotheses=lambda i, s: {
        "y > -1": i["x"][1] > -1.0
    })  # fmt: skip
    rng = np.random.default_rng(0)
    batch = {"x": rng.normal(size=(200, 2)), "error": rng.choice([0, 0.5, 1, -1, NAN], 200)}
    batch["x"][0, 0] = INF
    which = rng.integers(3, size=200)
    reading = jax.tree.map(np.asarray, jax.vmap(read(claim, ONE))(batch))
    table = measured(claim, reading, batch, axes=1)
    counts, lhs, rhs = counts_for(claim, reading, batch, which)
    each = np.arange(200), which
    assert counts.tolist() == table.counted[each].tolist() and 20 < counts.sum() < 180
    assert lhs.tolist() == table.lhs[each].tolist() and rhs.tolist() == table.rhs[each].tolist()


def test_hypotheses_have_names_without_a_measurement():
    own = Form(name="printed", hypotheses=lambda i, s: {"x < 9": i["x"] < 9})
    seen = []

    def small(instance, size):
        seen.append((instance["x"], size["d"]))
        return {"x > 0": instance["x"] > 0}

    assert (
        hypothesis_names(statement()) == hypothesis_names(statement(), Form(name="printed")) == ()
    )
    assert hypothesis_names(statement(), own) == ("x < 9",)
    claim = statement(
        hypotheses=small, sizes=({"d": 3}, {"d": 4}), cases=lambda s: {"x": np.array([5.0, 6.0])}
    )
    assert hypothesis_names(claim) == ("x > 0",)
    assert hypothesis_names(claim, own) == ("x > 0", "x < 9")
    assert hypothesis_names(claim, own, {"x": np.float64(7.0)}) == ("x > 0", "x < 9")
    assert seen == [(5.0, 3), (5.0, 3), (7.0, 3)]


def test_hypotheses_are_traced_unless_the_statement_is_run_on_the_host():
    kinds = []

    def small(instance, size):
        kinds.append(isinstance(instance["x"], np.ndarray | np.generic))
        return {"x > 0": instance["x"] > 0}

    draw = lambda key, size: {"x": jax.random.uniform(key)}
    for host in (True, False):
        claim = statement(hypotheses=small, cases=None, sample=draw, host=host)
        assert hypothesis_names(claim) == ("x > 0",)
    assert kinds == [True, False]


# Where it is measured


def test_numbers_are_float64_for_the_length_of_a_block():
    with enable_x64(False):
        assert jnp.zeros(1).dtype == np.float32
        with float64_on_cpu():
            assert jnp.zeros(1).dtype == np.float64
            assert jax.config.jax_default_matmul_precision == "highest"


def test_on_the_host_it_is_numpy_and_elsewhere_it_can_be_traced():
    m = _one(0.5, 1.0, hypotheses=lambda i, s: {"any": True})
    assert all(isinstance(field, np.ndarray) for field in m)
    claim = statement(host=False, hypotheses=lambda i, s: {"x < 9": i["x"] < 9})
    shapes = jax.eval_shape(measure(claim, ONE), {"x": jnp.asarray(0.5)})
    assert shapes.value.shape == shapes.met.shape == (2,)


def test_what_has_no_hypotheses_is_not_drawn():
    def never(key, size):
        raise AssertionError

    assert hypothesis_names(statement(cases=None, sample=never)) == ()


@pytest.mark.filterwarnings("error")
def test_what_hypotheses_leave_out_may_divide_by_zero():
    # On the host NumPy warns where a compiled program is silent.
    sides = lambda i, s: Sides(np.float64(1.0) / i["x"], {"printed": np.inf, "control": 0.0})
    claim = statement(sides, hypotheses=lambda i, s: {"x > 0": i["x"] > 0})
    assert not measure(claim, ONE)({"x": np.float64(0.0)}).met.any()
    assert measure(claim, ONE)({"x": np.float64(0.5)}).met.all()


@pytest.mark.parametrize("xp", [np, jnp])
def test_an_infinite_side_is_larger_or_smaller_than_another_side(xp):
    lhs = xp.asarray([-INF, INF, 1.0, 1.0, -INF, INF, INF, -INF, NAN])
    rhs = xp.asarray([-1.0, -1.0, -INF, INF, INF, -INF, INF, -INF, INF])
    with np.errstate(invalid="ignore"):
        found = np.asarray(ratio(lhs, rhs, xp))
    np.testing.assert_array_equal(found <= 1, [True, False, False, True, True, *[False] * 4])
    np.testing.assert_array_equal(np.isnan(found), [*[False] * 6, True, True, True])
