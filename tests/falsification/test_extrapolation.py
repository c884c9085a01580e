"""What is far from all draws counts where it is confirmed: who is asked, and what stays."""

import numpy as np
import pytest
from stubs import measured, statement

from jaxbounds.claims.statements import Form
from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.explore import DistantInstance, Searched
from jaxbounds.falsification.extrapolation import _scaled, confirm_extrapolated, extrapolate
from jaxbounds.falsification.programs import UNKEPT
from jaxbounds.falsification.second_opinion import TRUE, Referee

TEN = [10.0**p for p in (-100, -50, -20, -8, -4, 4, 8, 20, 50, 100)]


def test_leaves_are_scaled_alone_and_all_together():
    # Only floats of some size move; alone where there are two to six of them.
    instance = {"a": np.array([1.0]), "b": np.array(2.0), "n": np.array([3]), "z": np.zeros(0)}
    found = [(one["a"][0], float(one["b"]), one["n"][0]) for one in _scaled(instance)]
    wanted = [(f, 2, 3) for f in TEN] + [(1, 2 * f, 3) for f in TEN] + [(f, 2 * f, 3) for f in TEN]
    np.testing.assert_allclose(found, wanted)
    assert instance["a"][0] == 1.0
    leaves = lambda n: {f"x{i}": np.ones(1) for i in range(n)}
    assert [len(list(_scaled(leaves(n)))) for n in (0, 1, 2, 6, 7)] == [0, 10, 30, 70, 10]


FORMS = (Form(name="printed"), Form(name="derived"))


class _Fake(Bench):
    """The ratios of the forms are the entries of x, that of the control is 99."""

    def __init__(self, **options):
        given = {"host": False, "forms": FORMS, "sizes": ({"d": 1}, {"d": 2}), "search": "random"}
        given |= {"sample": lambda key, size: {"x": np.zeros(2)}}
        super().__init__(statement(**(given | options)), 4, UNKEPT)

    def __call__(self, batch, size):
        x = np.asarray(batch["x"])
        return measured(np.column_stack([x, np.full(len(x), 99.0)]))


def _pool(bench, *rows):
    """Draws of each size."""
    pool = Pool()
    for size, x in enumerate(rows):
        batch = {"x": np.array(x, float)}
        pool.add("draws", size, batch, bench(batch, {}))
    return pool


def _referee(say, asked):
    def referee(claim, form, instance, size):
        asked.append((form.name, instance["x"].tolist(), size["d"]))
        return say(form.name, instance["x"])

    return referee


NEAR = [[0.5, 0.5], [0.2, 0.9]]


def _confirmed(say, *far, rows=(NEAR, NEAR)):
    """Of these places: what is in doubt, who was asked, and what went into the pool."""
    bench, asked = _Fake(), []
    pool = _pool(bench, *rows)
    places = tuple(DistantInstance(size, {"x": np.array(x, float)}) for size, x in far)
    searched = Searched(1, np.zeros(3, int), 1, (), places)
    doubts = confirm_extrapolated(bench, pool, searched, _referee(say, asked))
    added = [
        (source, size, batch["x"].tolist(), m.value[0, :2].tolist())
        for source, size, batch, m in zip(pool.sources, pool.sizes, pool.instances, pool.measured)
    ][len(rows) :]
    return doubts, asked, added


YES = lambda name, x: Referee("disproved", "so")
UNSURE = lambda name, x: Referee("undecided", "nobody knows")
FALSE_ALARM = lambda name, x: Referee("undecided", TRUE)


def test_what_is_confirmed_goes_into_the_pool():
    doubts, asked, added = _confirmed(YES, (1, [2, 0]))
    assert (doubts, asked) == ({}, [("printed", [2, 0], 2)])
    assert added == [("search", 1, [[2, 0]], [2, 0])]


def test_what_is_not_confirmed_is_told_and_what_is_true_is_not():
    doubts, asked, added = _confirmed(UNSURE, (0, [0, 3]))
    assert list(doubts) == ["derived"] and asked == [("derived", [0, 3], 1)] and added == []
    said = doubts["derived"]
    assert "far from all draws violates the form by 2," in said and "nobody knows. Try" in said
    assert _confirmed(FALSE_ALARM, (0, [0, 3]))[0] == {}
    # "disproved as coded" is not enough: far away what is coded rounds.
    coded = _confirmed(lambda name, x: Referee("disproved as coded", "so"), (0, [0, 3]))
    assert list(coded[0]) == ["derived"] and coded[2] == []


def test_the_two_largest_violations_are_asked_about_until_one_is_confirmed():
    far = [(0, [2, 0]), (0, [5, 0]), (1, [3, 0]), (0, [0.5, 0])]
    assert [x for _, x, _ in _confirmed(UNSURE, *far)[1]] == [[5, 0], [3, 0]]
    assert [x for _, x, _ in _confirmed(YES, *far)[1]] == [[5, 0]]
    # A doubt goes where the next is confirmed, and stays where the next is true.
    late = lambda name, x: YES(name, x) if x[0] == 3 else UNSURE(name, x)
    doubts, asked, added = _confirmed(late, *far)
    assert doubts == {} and added == [("search", 1, [[3, 0]], [3, 0])] and len(asked) == 2
    mixed = lambda name, x: FALSE_ALARM(name, x) if x[0] == 3 else UNSURE(name, x)
    assert list(_confirmed(mixed, *far)[0]) == ["printed"]


def test_on_the_edge_and_where_it_is_violated_nearby_nobody_is_asked():
    assert _confirmed(YES, (0, [1 + 1e-9, 0.5]))[1] == []
    on_it = ([[1 + 1e-9, 0.5]], NEAR)
    assert [name for name, _, _ in _confirmed(YES, (0, [5, 0]), rows=on_it)[1]] == ["printed"]
    assert len(_looked(UNSURE, [[1 + 1e-9, 0], [0.25, 0]])[0]) == 2
    # One size at which it is violated is enough; the other form is still asked about.
    rows = (NEAR, [[0.5, 0.5], [2, 0]])
    assert [name for name, _, _ in _confirmed(YES, (0, [5, 5]), rows=rows)[1]] == ["derived"]


# Scaled draws


def _looked(say, *rows, seed=0, batch=None, **options):
    bench, asked = _Fake(**options), []
    pool = _pool(bench, *rows)
    before = len(pool.sources)
    extrapolate(bench, pool, _referee(say, asked), seed)
    return asked, [(pool.sources[i], pool.sizes[i], pool.instances[i]["x"][0].tolist())
                   for i in range(before, len(pool.sources))]  # fmt: skip


def test_the_worst_draws_and_others_are_scaled_and_the_largest_two_asked_about():
    asked, added = _looked(UNSURE, [[0.5, 0], [0.25, 0]], [[0, 0.5], [0, 0.125]])
    assert [name for name, _, _ in asked] == ["printed"] * 2 + ["derived"] * 2 and added == []
    assert [d for _, _, d in asked] == [1, 1, 2, 2]
    np.testing.assert_allclose([x for _, x, _ in asked[:2]], [[5e99, 0], [2.5e99, 0]])
    np.testing.assert_allclose([x for _, x, _ in asked[2:]], [[0, 5e99], [0, 1.25e99]])
    asked, added = _looked(YES, [[0.5, 0], [0.25, 0]])
    assert len(asked) == 1 and added[0][:2] == ("search", 0)
    np.testing.assert_allclose(added[0][2], [5e99, 0])
    # A true claim is asked about twice, and nothing is kept.
    asked, added = _looked(FALSE_ALARM, [[0.5, 0], [0.25, 0]])
    assert len(asked) == 2 and added == []


def test_the_worst_of_many_are_among_those_that_are_scaled():
    many = np.zeros((500, 2))
    many[:, 0] = -1.0
    many[[123, 77], 0] = 0.5, 0.25
    many[:, 1] = -1.0
    asked, _ = _looked(UNSURE, many)
    np.testing.assert_allclose([x[0] for _, x, _ in asked[:2]], [5e99, 2.5e99])
    assert all(x[0] >= 2.5e99 for _, x, _ in asked)  # the other ones have the opposite sign
    # Other than the worst two: the one whose second entry grows is found by luck, by the seed.
    many[:, 1] = 0.5
    many[[123, 77], 1] = -1.0
    found = {tuple(x) for seed in range(3) for name, x, _ in _looked(UNSURE, many, seed=seed)[0]
             if name == "derived"}  # fmt: skip
    assert {x for x in found if x[1] < 1e100} == {(-1e100, 5e99), (-1e50, 5e49)}


def test_what_does_not_grow_beyond_the_edge_is_not_asked_about():
    assert _looked(UNSURE, [[0, 0], [0, 0]]) == ([], [])
    assert len(_looked(UNSURE, [[1e-100, 0], [0, 0]])[0]) == 0  # one, and the edge is above
    assert len(_looked(UNSURE, [[1.1e-100, 0], [0, 0]])[0]) == 1


def test_an_odd_function_is_looked_at_on_both_sides():
    asked, _ = _looked(UNSURE, [[-0.5, 0], [-0.25, 0]])
    np.testing.assert_allclose([x[0] for _, x, _ in asked], [5e99, 2.5e99])


@pytest.mark.parametrize(
    "options",
    [
        {"search": "none"},
        {"host": True},
        {"kind": "probability", "level": 0.5},
        {"kind": "expectation"},
    ],
)
def test_where_nothing_is_searched_nothing_far_is_looked_at(options):
    assert _looked(YES, [[0.5, 0], [0.25, 0]], **options) == ([], [])


def test_a_form_that_is_violated_nearby_at_that_size_is_left():
    asked, _ = _looked(UNSURE, [[2, 0.5], [0.25, 0.5]], [[0.5, 0], [0.25, 0]])
    assert [(name, d) for name, _, d in asked] == [("derived", 1)] * 2 + [("printed", 2)] * 2
    # Nothing was drawn at the second size: it is passed over.
    assert len(_looked(UNSURE, [[0.5, 0], [0.25, 0]])[0]) == 2
    # Integers alone cannot be scaled.
    bench, pool = _Fake(), Pool()
    batch = {"x": np.ones((2, 2), int)}
    pool.add("draws", 0, batch, measured(np.full((2, 3), 0.5)))
    extrapolate(bench, pool, _referee(YES, []), 0)
    assert len(pool.sources) == 1


def test_what_does_not_count_or_is_no_number_is_not_the_worst():
    bench, asked = _Fake(), []
    pool, batch = (
        Pool(),
        {"x": np.array([[0.9, 0.0]] * 3 + [[0.5, 0.0], [0.25, 0.0]] + [[-1.0, 0]] * 300)},
    )
    m = bench(batch, {})
    m.counted[0] = False
    m = m._replace(
        value=np.where(np.isin(np.arange(len(m.value)), [1, 2])[:, None], np.nan, m.value)
    )
    pool.add("draws", 0, batch, m)
    extrapolate(bench, pool, _referee(UNSURE, asked), 0)
    np.testing.assert_allclose([x[0] for _, x, _ in asked[:2]], [5e99, 2.5e99])
