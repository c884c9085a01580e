"""What is measured where: batches, columns, and what is refused before it is measured."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import column, measured, statement

from jaxbounds.claims.statements import Budget, Counterexample, Form, Sides, Size
from jaxbounds.falsification.bench import (
    Bench,
    Column,
    Pool,
    as_arrays,
    batch_of,
    calls_of,
    cases_of,
    concatenate,
    counterexample_of,
    fitted,
    labelled,
    length,
    one_by_one,
    refuse_other_kinds,
    refuse_other_shapes,
    take,
)
from jaxbounds.falsification.programs import UNKEPT, Programs

pytestmark = pytest.mark.usefixtures("x64")
ONE, FORM = Size({"d": 1}), Form(name="printed")


@pytest.mark.parametrize("given, rows", [
    ({"x": np.zeros((3, 2)), "n": np.arange(3)}, 3), ({"x": np.array([[1.0], [2.0]])}, 2),
    ({"x": np.zeros(3), "n": np.arange(2)}, 0), ({"x": np.zeros(3), "n": np.asarray(2)}, 0),
    ({"n": np.asarray(2)}, 0), ({"a": {"x": np.zeros(2), "y": np.zeros((2, 2))}}, 2),
])  # fmt: skip
def test_cases_are_stacked(given, rows):
    claim = statement(cases=lambda size: given)
    if rows:
        assert length(cases_of(claim, ONE)) == rows
    else:
        with pytest.raises(ValueError, match="must have leading axes of equal length"):
            cases_of(claim, ONE)


BATCH = {"x": np.arange(6.0).reshape(3, 2), "n": np.array([7, 8, 9])}


def test_rows_of_batches():
    assert length(BATCH) == 3
    some = take(BATCH, np.array([2, 0]))
    assert some["x"].tolist() == [[4, 5], [0, 1]] and some["n"].tolist() == [9, 7]
    assert batch_of(take(BATCH, 1))["x"].tolist() == [[2, 3]]
    both = concatenate([BATCH, some])
    assert both["n"].tolist() == [7, 8, 9, 9, 7] and both["x"].shape == (5, 2)
    assert as_arrays({"a": {"x": [1, 2]}, "y": 0.5})["a"]["x"].dtype == np.int64
    doubled = one_by_one(lambda i: {"twice": 2 * i["x"], "n": i["n"]})(BATCH)
    assert doubled["twice"].tolist() == [[0, 2], [4, 6], [8, 10]] and doubled["n"].tolist() == [
        7,
        8,
        9,
    ]


def test_rows_that_agree_bit_by_bit_have_one_label():
    x, n = np.array([[0.0, 1], [0, 1], [0, 1], [-0.0, 1]]), np.array([1, 1, 2, 1], np.int32)
    found = labelled({"x": x, "n": n, "none": np.zeros((4, 0))})
    assert found[0] == found[1] and len(set(found.tolist())) == 3
    assert len(set(labelled({"x": np.arange(4.0)}).tolist())) == 4
    # A strided leaf and one of several axes; and rows of nothing, that are all alike.
    wide = np.arange(12.0).reshape(2, 2, 3).transpose(2, 0, 1)
    assert len(set(labelled({"x": wide}).tolist())) == 3
    assert labelled({"x": np.zeros((3, 0))}).tolist() == [0, 0, 0]


# What is given from outside

DRAWN = {"cases": None, "sample": lambda key, size: {
    "x": jax.random.normal(key, (size["d"], 2)), "n": jax.random.randint(key, (), 0, 5),
}, "sizes": ({"d": 1}, {"d": 2})}  # fmt: skip
FITS = {"x": np.zeros((1, 2)), "n": np.asarray(3)}


@pytest.mark.parametrize(
    "instance, says",
    [
        (FITS, None),
        (FITS | {"n": np.asarray(3.0)}, None),
        (FITS | {"n": 3}, None),  # of shapes only
        (
            FITS | {"x": np.zeros((2, 2))},
            r"has \['x'\] of shape \(2, 2\); expected \[\'x\'\] of shape \(1, 2\)",
        ),
        (
            {"x": np.zeros((1, 2))},
            r"has fewer entries; expected \['n'\] of shape \(\)",
        ),
        (FITS | {"y": np.zeros(1)}, r"has \['y'\] of shape \(1,\); expected no further entry"),
    ],
)
def test_an_instance_of_another_shape_is_refused(instance, says):
    claim = statement(**DRAWN)
    if says is None:
        refuse_other_shapes(claim, FORM, instance, ONE)
        return
    with pytest.raises(ValueError, match=says):
        refuse_other_shapes(claim, FORM, instance, ONE)
    # By the shapes of the cases where nothing is drawn, and of nothing where there are none.
    listed = statement(cases=lambda s: jax.tree.map(lambda leaf: np.stack([leaf] * 4), FITS))
    with pytest.raises(ValueError, match=says):
        refuse_other_shapes(listed, FORM, instance, ONE)
    refuse_other_shapes(listed, FORM, FITS, ONE)
    refuse_other_shapes(listed, FORM, instance, Size({"d": 9}))


def _stored(meets, **options):
    return Counterexample(
        **({"instance": FITS, "size": {"d": 1}, "ratio": 2.0, "meets": meets} | options)
    )


def test_at_sizes_that_are_not_drawn_what_checks_all_hypotheses_vouches():
    claim, other = statement(**DRAWN), {"x": np.zeros(5)}
    vouched = Form(name="printed", counterexample=_stored(lambda i, s: {"all": True}))
    unchecked = Form(name="printed", counterexample=_stored(None))
    refuse_other_shapes(claim, vouched, other, Size({"d": 9}))
    # Nothing is known of its types there.
    refuse_other_kinds(claim, vouched, other, {"d": 9})
    assert fitted(claim, vouched, other | {"y": np.int8([3])}, Size({"d": 9}))["y"].dtype == np.int8
    for form, size in ((vouched, ONE), (unchecked, Size({"d": 9})), (FORM, Size({"d": 9}))):
        with pytest.raises(ValueError, match="the instance given for form='printed' has"):
            refuse_other_shapes(claim, form, other, size)


def test_a_chart_gives_the_types_that_are_drawn():
    claim = statement(**DRAWN)
    refuse_other_kinds(claim, FORM, FITS, {"d": 1})
    for wrong, says in (
        ({"n": np.asarray(3.0)}, "n'] as float64; expected int"),
        ({"x": np.zeros((1, 2), np.float32)}, "x'] as float32"),
        ({"x": np.zeros(3)}, "of shape (3,)"),
    ):
        with pytest.raises(ValueError) as refused:
            refuse_other_kinds(claim, FORM, FITS | wrong, {"d": 1})
        assert says in str(refused.value)


@pytest.mark.parametrize("name, given, fine", [
    ("n", 3.0, True), ("n", 2.5, False), ("n", np.int8(-3), True), ("n", float("nan"), False),
    ("n", 1e300, False), ("n", True, True), ("n", np.uint64(2**64 - 1), False),
    ("x", np.array([[1, 2]]), True), ("x", np.array([[2**53 + 1, 0]]), False),
    ("x", np.array([[0.5, 1]], np.float32), True),
])  # fmt: skip
def test_a_number_is_of_the_type_that_is_drawn_or_refused(name, given, fine):
    claim, instance = statement(**DRAWN), as_arrays(FITS | {name: given})
    if not fine:
        with pytest.raises(ValueError, match=rf"has an array \['{name}'\] with .*; expected"):
            fitted(claim, FORM, instance, ONE)
        return
    found = fitted(claim, FORM, instance, ONE)
    assert found["n"].dtype == np.int64 and found["x"].dtype == np.float64
    np.testing.assert_array_equal(found[name], given)
    assert isinstance(found["x"], np.ndarray)


def test_unsigned_numbers_do_not_wrap_around_and_arrays_of_jax_stay():
    claim = statement(cases=lambda s: {"n": np.zeros((1, 1), np.uint8)})
    assert fitted(claim, FORM, {"n": np.array([200])}, ONE)["n"].dtype == np.uint8
    for bad in (-1, -256, 256):
        with pytest.raises(ValueError, match="expected dtype=uint8"):
            fitted(claim, FORM, {"n": np.array([bad])}, ONE)
    kept = fitted(claim, FORM, {"n": jnp.array([7])}, ONE)["n"]
    assert isinstance(kept, jax.Array) and kept.dtype == np.uint8
    wide = statement(cases=lambda s: {"n": np.zeros((1, 1), np.uint64)})
    with pytest.raises(
        ValueError, match="expected dtype=uint64"
    ):  # it comes back as -1, and is not it
        fitted(wide, FORM, {"n": np.array([-1])}, ONE)


def test_a_key_stays_as_it_is():
    claim = statement(cases=None, sample=lambda key, size: {"k": key})
    key = jax.random.key(7)
    assert fitted(claim, FORM, {"k": key}, ONE)["k"] is key


def test_a_stored_counterexample_comes_as_arrays_of_its_size():
    literal = _stored(None, instance={"x": [[1.0, 2.0]], "n": 3})
    claim = statement(
        forms=(Form(name="printed", expected="holds", counterexample=literal),), **DRAWN
    )
    instance, size = counterexample_of(claim, claim.forms[0])
    assert instance["x"].tolist() == [[1.0, 2.0]] and instance["n"] == 3 and size == {"d": 1}
    with pytest.raises(ValueError, match=r"counterexample=None in mine.claim \(printed\)"):
        counterexample_of(claim, FORM)


# Measuring


class _Plain(Programs):
    """Runs a function over a batch as it is, and notes of what length, and under which name."""

    def __init__(self):
        super().__init__()
        self.made, self.calls, self.lengths = [], [], []

    def __call__(self, function, /, *name, calls, watch=None):
        self.calls.append(calls)
        self.made.append((name, watch is not None))

        def run(batch):
            self.lengths.append(length(batch))
            return one_by_one(function)(batch)

        return run


def _double(instance, size):
    x = instance["x"]
    return Sides(jnp.asarray(2.0) * x, {"printed": jnp.asarray(4.0), "control": jnp.asarray(1.0)})


def test_how_often_a_batch_is_measured():
    draw = lambda key, size: {"x": jax.random.normal(key)}
    budget = Budget(samples=27, batch=4, restarts=2, steps=50)
    assert calls_of(statement(), budget) == 7
    two = statement(sample={"a": draw, "b": draw}, search="random")
    assert calls_of(two, budget) == 14 + 50
    for none in ({"restarts": 0}, {"steps": 0}):
        assert calls_of(two, dataclasses.replace(budget, **none)) == 14
    mean = statement(sample=draw, kind="expectation", search="none", cases=None)
    assert calls_of(mean, budget) == 7 + 32


@pytest.mark.parametrize(
    "rows, calls", [(3, [4]), (4, [4]), (5, [4, 4]), (8, [4, 4]), (9, [4] * 3)]
)
def test_instances_are_measured_a_batch_at_a_time(rows, calls):
    programs = _Plain()
    claim = statement(_double, host=False, sizes=({"d": 1}, {"d": 2}))
    bench = Bench(claim, 4, programs, calls=7)
    x = np.arange(float(rows))
    found = bench({"x": x}, ONE)
    assert found.value[:, 0].tolist() == (x / 2).tolist() and programs.lengths == calls
    bench({"x": x[:1]}, ONE)
    assert programs.made == [(("mine.claim", "measure", (("d", 1),)), True)]  # once for a size
    bench({"x": x[:1]}, Size({"d": 2}))
    assert len(programs.made) == 2
    # Of a size that nothing is drawn at a stored counterexample is measured, once or twice.
    assert bench({"x": x}, Size({"d": 3})).value[:, 0].tolist() == (x / 2).tolist()
    assert programs.calls == [7, 7, 2]
    assert bench.one({"x": np.asarray(3.0)}, ONE).value.tolist() == [1.5, 6.0]


def test_on_the_host_each_instance_is_measured_alone():
    seen = []

    def evaluate(instance, size):
        seen.append(float(instance["x"]))
        return Sides(instance["x"], {"printed": 2.0, "control": 0.5})

    bench = Bench(statement(evaluate), 2, UNKEPT)
    assert bench({"x": np.arange(5.0)}, ONE).value[:, 0].tolist() == [0, 0.5, 1, 1.5, 2]
    assert seen == [0, 1, 2, 3, 4]


def test_what_does_not_count_is_told_by_its_reason():
    flags = lambda i, s: {"x > 0": i["x"] > 0, "x < 3": i["x"] < 3, "always": True}
    hidden = lambda i, s: Sides(
        i["x"], {"printed": 9.0, "control": 0.5}, error=np.where(i["x"] == 1, 100.0, 0.0)
    )
    bench = Bench(statement(hidden, hypotheses=flags), 8, UNKEPT)
    batch = {"x": np.array([-1.0, 0.0, 1.0, 2.0, 5.0, 1.0])}
    found = bench.excluded(batch, ONE, bench(batch, ONE))
    assert found == {"x > 0": 2, "x < 3": 1, "below the numerical error": 2}
    assert Bench(statement(), 8, UNKEPT).excluded(batch, ONE, measured(np.ones((6, 2)))) == {}
    # Nothing is compiled for it.
    programs = _Plain()
    elsewhere = Bench(statement(host=False, hypotheses=flags), 8, programs)
    elsewhere.excluded(batch, ONE, measured(np.ones((6, 2))))
    assert programs.made == []


# What was measured


@pytest.mark.parametrize(
    "value, counted, rows, worst",
    [
        ([1, 3, 2], True, [0, 1, 2], 1),
        ([1, 3, 2], [1, 0, 1], [0, 1, 2], 2),
        ([1, 3, 2], True, [0, 2], 2),
        ([1, np.nan, 2], True, [0, 1, 2], 1),
        ([1, np.nan, 2], [1, 0, 1], [0, 1, 2], 2),
        ([-5, -3], True, [1, 0], 1),
        ([2, 2], True, [0, 1], 0),
    ],
)
def test_the_worst_row_counts_and_what_is_no_number_is_worst(value, counted, rows, worst):
    assert column(value, counted=counted).worst(np.array(rows)) == worst


def test_a_pool_has_everything_by_size_and_in_order():
    pool = Pool()
    table = lambda rows: measured(np.stack([rows, 10 + np.asarray(rows)], axis=1))
    pool.add("a", 0, {"x": np.array([1.0, 2.0])}, table([1, 2]))
    pool.add("b", 1, {"x": np.array([[3.0, 3.5]])}, table([3]))
    pool.add("c", 0, {"x": np.array([1.0])}, table([4]))
    batch, found = pool.of_size(0)
    assert batch["x"].tolist() == [1, 2, 1] and found.value[:, 0].tolist() == [1, 2, 4]
    one, other = pool.columns()
    assert (one.measured.value.tolist(), other.measured.value.tolist()) == (
        [1, 2, 3, 4],
        [11, 12, 13, 14],
    )
    assert one.sources.tolist() == ["a", "a", "b", "c"] and one.sizes.tolist() == [0, 0, 1, 0]
    assert one.labels[0] == one.labels[3] and len(set(one.labels.tolist())) == 3
    assert np.isnan(Column(*one[:4]).reach).all()
    assert [np.ravel(pool.instance(i)["x"]).tolist() for i in range(4)] == [[1], [2], [3, 3.5], [1]]
    with pytest.raises(IndexError):
        pool.instance(4)
