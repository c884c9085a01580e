"""Sets as objects: draws, projections, extreme points, moves and coordinates, by properties."""

import dataclasses
import functools
import importlib
import inspect
import itertools
import math
import pkgutil
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import jaxbounds as jb
from jaxbounds.claims import sets
from jaxbounds.claims.sets import Over, number_of, shape_of
from jaxbounds.claims.sets.base import RefusedSet
from jaxbounds.claims.sets.reading import sets_in
from jaxbounds.claims.sets.words import declared
from jaxbounds.programs.interpreted import once

SIZE = {"d": 3, "n": 4, "R": 2.5}
BOUNDED = [
    jb.Ball(2, "d"),
    jb.Ball("R", "d", p=1),
    jb.Ball(0.5, ("n", "d"), p=math.inf),
    jb.Ball(1, "d", p=3),
    jb.Sphere("sqrt(d)", "d"),
    jb.Sphere(1, "d", p=1),
    jb.Box(-1, "R", "d"),
    jb.Box(0, 1),
    jb.Simplex("d"),
    jb.Simplex(("n", "d"), total=2),
    jb.SubSimplex("d"),
    jb.SubSimplex(("n", "d"), total="R"),
    jb.Each(jb.Sphere(1, "d"), "n"),
    jb.Each(jb.Ball("R", "d", p=1), 2),
    jb.Each(jb.Orthogonal(2), 2),
    jb.Each(jb.Integers(0, 2), "d"),
    jb.Signs("d"),
    jb.Signs("d", 0.5),
    jb.Orthogonal("d"),
    jb.Orthogonal(("n", "d")),
    jb.Orthogonal(("d", "n")),
    jb.OperatorNorm("R", ("n", "d")),
    jb.Matrices(("d", "n"), norm="nuclear", at_most=2),
    jb.Matrices(("n", "d"), norm="rows", at_most=2),
    jb.Matrices(("n", "d"), norm="row sum", at_most=2),
    jb.Matrices(("n", "d"), norm="max", at_most=2),
    jb.PSD("d", at_most=2),
    jb.PSD("d", at_most=2, norm="trace"),
    jb.PSD("d", at_most=2, norm="frobenius"),
    jb.Symmetric("d", at_most=2),
    jb.Symmetric("d", at_most=2, norm="nuclear"),
    jb.Symmetric("d", at_most=2, norm="frobenius"),
    jb.Integers(-2, 3, "d"),
    jb.OneOf((0.0, 1.0), (1.0, 0.0), (0.5, 0.5)),
]
UNBOUNDED = [jb.Reals(("n", "d")), jb.Box(0, math.inf, "d"), jb.PSD("d"), jb.Symmetric("d")]
MADE_BY = {"SpectralBall": "OperatorNorm", "RowBalls": "Matrices"}
"""Sets that users do not name, and the function that returns them."""


def _subclasses(kind):
    for one in kind.__subclasses__():
        yield from (one, *_subclasses(one))


for module in pkgutil.iter_modules(sets.__path__, f"{sets.__name__}."):
    importlib.import_module(module.name)
KINDS = [kind for kind in _subclasses(sets.Set) if kind.__module__.startswith(sets.__name__)
         and not kind.__name__.startswith("_") and kind is not RefusedSet]  # fmt: skip
"""All sets of the library; `RefusedSet` stands in the place of a set that was refused."""
each = pytest.mark.parametrize("chosen", [*BOUNDED, *UNBOUNDED], ids=repr)
bounded = pytest.mark.parametrize("chosen", BOUNDED, ids=repr)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_set_is_exported_and_said_and_read_and_in_the_lists(kind):
    name = MADE_BY.get(kind.__name__, kind.__name__)
    assert name in dir(jb), "jaxbounds/__init__.pyi"
    assert name in sets.__all__, "claims/sets/__init__.py"
    page = Path(jb.__file__).with_name("guide") / "say.md"
    assert re.search(rf"\b{name}\b", page.read_text(encoding="utf8")), "guide/say.md"
    listed = [one for one in (*BOUNDED, *UNBOUNDED) if type(one) is kind]
    assert listed, "BOUNDED and UNBOUNDED of tests/test_sets.py"
    for one in listed:
        read = sets_in(declared({"x": one}))["x"]
        assert repr(read) == repr(one), "claims/sets/reading.py"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_option_of_a_set_is_used_in_the_lists(kind):
    listed = [one for one in (*BOUNDED, *UNBOUNDED) if type(one) is kind]
    for field in dataclasses.fields(kind):
        if field.name != "shape" and field.default is not dataclasses.MISSING:
            values = {repr(getattr(one, field.name)) for one in listed}
            assert values - {repr(field.default)}, f"no instance changes {field.name}"


@pytest.fixture(autouse=True)
def float64():
    with jb.float64_on_cpu():
        yield


def _run(function, *arguments):
    """What a traced function gives; it is compiled only where NumPy has no rule for it."""
    return once(function, jax.jit(function))(*arguments)


@functools.cache
def _all_drawn(chosen):
    keys = jax.random.split(jax.random.key(0), 3000)
    return np.asarray(_run(jax.vmap(lambda key: chosen.draw(key, SIZE)), keys))


def _drawn(chosen, count=200):
    return _all_drawn(chosen)[:count]


WITH_COORDINATES = [
    jb.Each(jb.Sphere(1, 2), 2), jb.Each(jb.Orthogonal(2), 2), jb.Each(jb.Box(0, 1, 2), 2),
    jb.Orthogonal("d"), jb.Orthogonal(2), jb.OperatorNorm("R", "d"), jb.PSD("d", at_most=2),
    jb.Symmetric("d", at_most=2),
]  # fmt: skip
"""Sets whose coordinates the library knows, apart from balls, boxes and simplices."""


def _with_one_entry(chosen):
    """The sets of the same kind and numbers whose points are a single number."""
    if isinstance(chosen, jb.Ball | jb.Box) and not isinstance(chosen, jb.Sphere):
        return [dataclasses.replace(chosen, shape=1)]
    return []


def _met(chosen, points):
    return np.array([all(map(bool, chosen.meets(x, SIZE).values())) for x in points])


def _outside(chosen, count=12):
    rng = np.random.default_rng(1)
    return 2 * rng.normal(size=(count, *chosen.shape_at(SIZE)))


@each
def test_draws_are_in_the_set_and_differ(chosen):
    drawn = _drawn(chosen)
    assert drawn.shape[1:] == chosen.shape_at(SIZE)
    assert _met(chosen, drawn).all()
    traced = _run(jax.vmap(lambda x: list(chosen.meets(x, SIZE).values())), drawn)
    assert np.all(traced)  # the same words, traced
    if not isinstance(chosen, jb.OneOf):
        assert len(np.unique(drawn.reshape(len(drawn), -1), axis=0)) >= 8


@bounded
def test_some_draws_are_on_the_boundary_and_some_within(chosen):
    """A boundary point leaves the set when it is moved a little outward from the set's middle.

    Of a set without inside (a sphere, signs, ...) every point is one.
    """
    drawn, middle = _drawn(chosen, 100), np.zeros(chosen.shape_at(SIZE))
    if isinstance(chosen, jb.Box):
        low, high = (number_of(end, SIZE) for end in (chosen.lo, chosen.hi))
        middle = np.full(middle.shape, (low + high) / 2)
    pushed = middle + (drawn - middle) * (1 + 1e-6)
    left = ~_met(chosen, pushed)
    assert left.sum() >= 15
    flat = not chosen.convex or type(chosen) is jb.Simplex
    assert flat or (~left).sum() >= 5


@each
def test_the_projection_is_one(chosen):
    """What it gives is in the set and stays where it is; a point of the set stays, too."""
    project = jax.jit(jax.vmap(lambda x: chosen.project(x, SIZE)))
    near = _outside(chosen)
    for points in (np.concatenate([near[:8], 1e3 * near[8:11], 0 * near[:1]]), _drawn(chosen, 12)):
        found = np.asarray(project(points))
        assert _met(chosen, found).all()
        np.testing.assert_allclose(project(found), found, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found, points, rtol=1e-9, atol=1e-9)
    on_host = chosen.project(near[0], SIZE)
    assert isinstance(on_host, np.ndarray | np.generic)
    np.testing.assert_allclose(on_host, np.asarray(project(near))[0], rtol=1e-9, atol=1e-9)


@each
def test_what_the_projection_moves_is_not_in_the_set(chosen):
    """A condition that `meets` forgets and `project` enforces shows at points outside.

    Some points break one condition alone: a member with the sign of an entry turned or with a
    larger entry, points beyond a member on the line from another one, and points near the middle.
    """
    drawn = _drawn(chosen, 12).astype(float)
    flipped, grown = drawn.copy(), drawn.copy()
    flipped.reshape(12, -1)[:, 0] *= -1
    grown.reshape(12, -1)[:, -1] += 0.25
    beyond = 1.5 * drawn - 0.5 * drawn[::-1]
    middle = drawn.mean(axis=0) + 0.01 * _outside(chosen)
    points = np.concatenate([_outside(chosen), flipped, -drawn, grown, beyond, middle])
    found = np.asarray(_run(jax.vmap(lambda x: chosen.project(x, SIZE)), points))
    moved = np.max(np.abs(found - points).reshape(len(points), -1), axis=1)
    kept = _met(chosen, points[moved > 1e-6])
    assert not kept.any(), points[moved > 1e-6][kept][:1]


def _nearest(chosen):
    if isinstance(chosen, jb.Each):
        return _nearest(chosen.one)
    return chosen.convex and not (isinstance(chosen, jb.Ball) and chosen.p not in (1, 2, math.inf))


@pytest.mark.parametrize("chosen", [c for c in [*BOUNDED, *UNBOUNDED] if _nearest(c)], ids=repr)
def test_a_convex_projection_is_the_nearest_point(chosen):
    """By the variational inequality <y - P y, z - P y> <= 0 for every z of the set.

    It characterises the nearest point of a convex set, and shares nothing with the projections;
    among the z are extreme points, which decide a linear function.
    """
    others = _drawn(chosen, 300)
    for y in _outside(chosen, 6):
        near = np.asarray(chosen.project(y, SIZE))
        products = np.sum((y - near) * (others - near), axis=tuple(range(1, others.ndim)))
        assert np.max(products) <= 1e-8 * (1 + np.linalg.norm(y - near)) * np.max(np.abs(others))


@pytest.mark.parametrize(
    "chosen", [jb.Ball(1, "d", p=1), jb.Simplex("d"), jb.Ball(1, "d")], ids=repr
)
def test_the_nearest_point_is_what_a_solver_finds(chosen):
    """Sequential quadratic programming knows only the constraint, not the projection.

    Of the l_1 ball it knows x = u - v with u, v >= 0 and a sum of at most one, which is smooth.
    """
    split = isinstance(chosen, jb.Ball) and chosen.p == 1
    of = (lambda z: z[:3] - z[3:]) if split else (lambda z: z)
    rule = {"type": "ineq", "fun": lambda z: 1 - np.sum(z if split else z**2)}
    if isinstance(chosen, jb.Simplex):
        rule = {"type": "eq", "fun": lambda z: np.sum(z) - 1}
    entries = 6 if split else 3
    bounds = None if isinstance(chosen, jb.Ball) and not split else [(0, None)] * entries
    for y in _outside(chosen, 4):
        found = scipy.optimize.minimize(
            lambda z, y=y: np.sum((of(z) - y) ** 2), np.full(entries, 0.1),
            method="SLSQP", constraints=[rule], bounds=bounds, options={"ftol": 1e-15},
        )  # fmt: skip
        np.testing.assert_allclose(chosen.project(y, SIZE), of(found.x), atol=1e-5)


def test_the_projection_on_orthogonal_matrices_is_the_nearest_of_many():
    others = _drawn(jb.Orthogonal("d"), 3000)
    for y in _outside(jb.Orthogonal("d"), 5):
        near = jb.Orthogonal("d").project(y, SIZE)
        distances = np.linalg.norm(others - y, axis=(1, 2))
        assert np.linalg.norm(near - y) <= distances.min()


@bounded
def test_draws_have_the_signs_that_projections_have(chosen):
    """The projections of random points reach all sides of a set, and so must the draws."""
    drawn = _drawn(chosen, 400)
    far = 9 * np.random.default_rng(5).normal(size=drawn.shape)
    there = np.asarray(_run(jax.vmap(lambda x: chosen.project(x, SIZE)), far))
    for sign in (1, -1):
        reached = np.mean(sign * there > 0, axis=0) > 0.2
        assert np.all(np.mean(sign * drawn > 0, axis=0)[reached] > 0.02)


@each
def test_a_set_is_convex_exactly_if_it_says_so(chosen):
    points = _drawn(chosen, 400)
    inside = _met(chosen, (points[::2] + points[1::2]) / 2)
    assert inside.all() if chosen.convex else not inside.all()


def test_the_table_of_sets_gives_their_parameters_and_defaults():
    page = Path(jb.__file__).with_name("guide") / "say.md"
    rows = re.findall(r"^\| (`\w+\(.*?)\|", page.read_text(encoding="utf8"), re.MULTILINE)
    calls = [call for row in rows for call in re.findall(r"`(\w+)\((.*?)\)`", row)]
    assert len(calls) > 10
    for name, given in calls:
        there = inspect.signature(getattr(jb, name)).parameters
        for word in () if given == "..." else given.split(", "):
            parameter, _, value = word.partition("=")
            if parameter.isidentifier():
                assert parameter in there, f"{name}({word}) in guide/say.md"
                assert value in ("", str(there[parameter].default)), f"{name}({word})"


@bounded
def test_vertices_are_extreme(chosen):
    """No vertex lies within a segment of the set: v + t and v - t are not both in it."""
    points = np.asarray(_run(lambda key: chosen.vertices(key, SIZE, 12), jax.random.key(3)))
    assert _met(chosen, points).all()
    if isinstance(chosen, jb.Ball) and chosen.p == 3:
        moves = np.random.default_rng(0).normal(size=(40, *points.shape[1:]))
    else:
        others = _drawn(chosen, 20).astype(float)
        moves = np.concatenate([np.random.default_rng(0).normal(size=(20, *points.shape[1:])),
                                others - others[::-1], others - points[0]])  # fmt: skip
    for vertex, move in itertools.product(points[:8], moves):
        if np.linalg.norm(move) < 1e-6:
            continue
        step = 1e-3 * move / np.linalg.norm(move)
        both = _met(chosen, np.stack([vertex + step, vertex - step]))
        assert not both.all()


def test_sets_without_extreme_points_say_so():
    for chosen in (jb.Reals("d"), jb.PSD("d")):
        with pytest.raises(ValueError, match="has no extreme points"):
            chosen.vertices(jax.random.key(0), SIZE)


@each
def test_candidates_are_in_the_set(chosen):
    point = jnp.asarray(_drawn(chosen, 1)[0])
    moved = _run(lambda key: chosen.candidates(key, point, SIZE), jax.random.key(1))
    assert moved.shape[1:] == point.shape and len(moved) >= 3
    assert moved.dtype == point.dtype
    assert _met(chosen, np.asarray(moved)).all()


@pytest.mark.parametrize(
    "chosen",
    [*dict.fromkeys([*BOUNDED, *WITH_COORDINATES])]
    + [small for one in BOUNDED for small in _with_one_entry(one)],
    ids=repr,
)
def test_coordinates_stay_in_the_set_and_reach_it(chosen):
    try:
        chosen.charts(SIZE)
    except ValueError as refused:
        assert "has no known coordinates" in str(refused)
        known = isinstance(chosen, jb.Ball) and chosen.p in (2, math.inf)
        assert not (known or isinstance(chosen, jb.Box | jb.Simplex) or chosen in WITH_COORDINATES)
        return
    rng, charts = np.random.default_rng(0), chosen.charts(SIZE)
    reached = []
    for chart in charts:
        lower, upper = np.array(chart.lower), np.array(chart.upper)
        t = rng.uniform(lower, upper, (4000 // len(charts), len(lower)))
        ends = rng.integers(0, 3, t[::4].shape) / 2  # each coordinate at an end or in the middle
        t[::4] = lower + ends * (upper - lower)
        points = np.asarray(_run(jax.vmap(chart.point), t))
        assert _met(chosen, points[:200]).all()
        reached.append(points.reshape(len(points), -1))
    reached = np.concatenate(reached)
    # Random coordinates come near every draw, as near as so many points in so many axes can.
    drawn = _drawn(chosen, 40).reshape(40, -1)
    near = np.min(np.linalg.norm(drawn[:, None] - reached[None], axis=-1), axis=1)
    largest = np.linalg.norm(drawn, axis=1).max()
    assert near.max() <= 0.75 * largest
    assert np.linalg.norm(reached, axis=1).max() >= 0.99 * largest


def test_finite_sets_are_enumerated():
    assert jb.Signs("d").every(SIZE).shape == (8, 3)
    assert jb.Integers(0, 2, 2).every(SIZE).shape == (9, 2)
    for one, count in (jb.Simplex((2, 1), 3), 1), (jb.Sphere(2, 1), 2), (jb.PSD(2, at_most=0), 1):
        points = one.every(SIZE)
        assert len(points) == one.cardinality(SIZE) == count
        assert all(all(one.meets(point, SIZE).values()) for point in points)
    assert jb.SubSimplex(1).every(SIZE) is None and jb.Simplex("d").every(SIZE) is None
    assert jb.Signs(20).every(SIZE) is None and jb.Ball(1, "d").every(SIZE) is None
    both = Over({"s": jb.Signs(2), "k": jb.OneOf(1.0, 2.0, 3.0)}).every(SIZE)
    rows = {(*s, k) for s, k in zip(both["s"].tolist(), both["k"].tolist()) for s in [tuple(s)]}
    assert len(rows) == 12


def test_stacks_of_a_finite_set_are_enumerated():
    found = jb.Each(jb.OneOf((1.0, 0.0), (0.0, 1.0)), "d").every(SIZE)
    assert found.shape == (8, 3, 2) and len({point.tobytes() for point in found}) == 8
    assert jb.Each(jb.Signs(4), "d").every(SIZE).shape == (4096, 3, 4)
    assert jb.Each(jb.Signs(5), "d").every(SIZE) is None
    assert jb.Each(jb.Ball(1, 2), 2).every(SIZE) is None
    words = jb.Each(jb.Sphere(1, 2), 2).meets(np.array([[1.0, 0.0], [0.0, 2.0]]), {}, "w")
    assert words == {"|each w_i|_2 = 1": False}
    with pytest.raises(TypeError, match="in Each"):
        jb.Each("Ball", 2)
    with pytest.raises(ValueError, match="expected a size's name or a whole number"):
        jb.Each(jb.Ball(1, 2), 2.5)


def test_rows_of_at_most_a_sum_are_what_a_solver_finds():
    """Sequential quadratic programming knows only the constraints, not the projection."""
    rule = {"type": "ineq", "fun": lambda z: 1 - np.sum(z)}
    for y in [*_outside(jb.SubSimplex("d"), 4), np.array([0.2, -0.1, 0.3])]:
        found = scipy.optimize.minimize(
            lambda z, y=y: np.sum((z - y) ** 2), np.full(3, 0.1), method="SLSQP",
            constraints=[rule], bounds=[(0, None)] * 3, options={"ftol": 1e-15},
        )  # fmt: skip
        np.testing.assert_allclose(jb.SubSimplex("d").project(y, SIZE), found.x, atol=1e-5)


def test_a_product_is_a_set_of_instances():
    over = Over({"x": jb.Ball(1, "d"), "w": {"a": jb.OperatorNorm(1, "d"), "k": jb.Integers(0, 3)}})
    point = _run(lambda key: over.draw(key, SIZE), jax.random.key(0))
    words = over.meets(point, SIZE)
    assert list(words) == ["|x|_2 <= 1", "|w.a|_op <= 1", "w.k in 0..3"]
    assert all(map(bool, words.values()))
    far = jax.tree.map(lambda leaf: 9 * np.asarray(leaf), point)
    assert all(map(bool, over.meets(over.project(far, SIZE), SIZE).values()))
    moved = _run(lambda key, at: over.candidates(key, at, SIZE), jax.random.key(1), point)
    assert len({len(leaf) for leaf in jax.tree.leaves(moved)}) == 1
    assert jax.tree.structure(moved) == jax.tree.structure(point)
    vertices = _run(lambda key: over.vertices(key, SIZE, 5), jax.random.key(2))
    assert vertices["w"]["a"].shape == (5, 3, 3)
    (chart,) = Over({"x": jb.Box(0, 1, 2), "y": jb.Sphere(1, 2)}).charts(SIZE)
    assert set(chart.point(jnp.array([0.1, 0.2, 0.3]))) == {"x", "y"}


@pytest.mark.parametrize("project", [
    jb.Orthogonal(3), jb.OperatorNorm(1, 3), jb.Matrices((3, 2), norm="nuclear", at_most=1),
    jb.PSD(3, at_most=1), jb.PSD(3, at_most=1, norm="trace"),
    jb.PSD(3, at_most=1, norm="frobenius"),
    jb.Orthogonal((4, 2)), jb.Orthogonal((2, 4)),
], ids=repr)  # fmt: skip
def test_slopes_of_spectral_projections_are_differences(project):
    """Central differences share nothing with the formula; the point is generic."""
    rng = np.random.default_rng(5)
    shape = project.shape_at({})
    x, v = rng.normal(size=shape) * 2, rng.normal(size=shape)
    to = jax.jit(lambda y: project.project(y, {}))
    _, slope = jax.jit(lambda y: jax.jvp(to, (y,), (jnp.asarray(v),)))(x)
    h = 1e-6
    np.testing.assert_allclose(slope, (to(x + h * v) - to(x - h * v)) / (2 * h), atol=1e-6)


def test_slopes_are_finite_where_singular_values_coincide():
    for chosen in (jb.Orthogonal(3), jb.OperatorNorm(1, 3), jb.PSD(3, at_most=1)):
        slope = jax.jit(jax.jacobian(lambda y, chosen=chosen: chosen.project(y, {})))
        for x in (np.eye(3), 2 * np.eye(3), np.zeros((3, 3))):
            assert np.all(np.isfinite(slope(x)))


@pytest.mark.parametrize("what, found", [
    ("d", 3), ("2*d + 1", 7), ("sqrt(n)", 2.0), ("-R", -2.5), (4, 4), ("n // d", 1), ("d**2", 9),
])  # fmt: skip
def test_expressions_of_sizes(what, found):
    assert number_of(what, SIZE) == found
    assert shape_of(("d", "n - 1", 2), SIZE) == (3, 3, 2) and shape_of((), SIZE) == ()


@pytest.mark.parametrize("make, says", [
    (lambda: jb.Ball("d.real", "d"), "holds more than names and numbers"),
    (lambda: jb.Ball("__import__('os')", "d"), "holds more than names and numbers"),
    (lambda: jb.Ball("2 +", "d"), "cannot be parsed"),
    (lambda: jb.Ball(1, "d", p=0.5), "p=0.5, expected p >= 1"),
    (lambda: jb.Ball(1, "m").shape_at(SIZE), "names no size='m'. Try one of: d, n, R"),
    (lambda: jb.Ball(1, "d/2").shape_at(SIZE), "expected a whole number"),
    (lambda: jb.Ball(-1, "d").draw(jax.random.key(0), SIZE), "radius=-1, expected a positive"),
    (lambda: jb.Box(1, 0).draw(jax.random.key(0), SIZE), r"Try jb.Box\(0, 1, \(\)\)"),
    (lambda: jb.OneOf(), "OneOf lists values"),
    (lambda: jb.OneOf([1.0], [1.0, 2.0]), "OneOf lists values=.* expected values of one shape"),
])  # fmt: skip
def test_what_is_no_set_is_one_sentence(make, says):
    with pytest.raises(ValueError, match=says) as said:
        make()
    assert "\n" not in str(said.value)


def test_over_takes_sets_only():
    with pytest.raises(TypeError, match=r"over=\{\} names no set"):
        Over({})


@pytest.mark.parametrize("text", ["9**9**9", "d**d**d**d", "(0-9)**9999", "2**(10**300)"])
def test_a_power_that_no_float_holds_is_refused_at_once(text):
    with pytest.raises(ValueError, match="exceeds 1e"):
        number_of(text, {"d": 9})
    assert number_of("d**2", {"d": 9}) == 81 and number_of("2**(0-d)", {"d": 9}) == 2**-9


@pytest.mark.parametrize("make, words", [
    (lambda: jb.PSD((2, 3)), r"shape=\(2, 3\), expected a square matrix. Try jb.PSD\(2\)"),
    (lambda: jb.Symmetric((2, 3)), "expected a square matrix"),
    (lambda: jb.Each(jb.PSD((2, 3)), 2), "expected a square matrix"),
    (lambda: jb.PSD(2, at_most=-1), r"at_most=-1.0, expected a norm of at least 0. Try at_most=1"),
    (lambda: jb.Symmetric("d", at_most=-1), "expected a norm of at least 0"),
    (lambda: jb.PSD(0), "expected axes of positive length. Try"),
    (lambda: jb.Ball(-1, "d"), "radius=-1, expected a positive finite number. Try 1"),
    (lambda: jb.Ball(0, 2), r"only the point zero .* Try jb.OneOf\(\[np.full\(2, 0.0\)\]\)"),
    (lambda: jb.OperatorNorm(0, "d"), r"Try jnp.full\(\(d, d\), 0.0\) in both sides"),
    (lambda: jb.Simplex("d", 0), r"only the point zero lies in the set. Try jnp.full\(d, 0.0\)"),
    (lambda: jb.Box(1, 1, ("d", 2)), r"Try jnp.full\(\(d, 2\), 1.0\) in both sides"),
    (lambda: jb.Sphere(-1, 2), "radius=-1, expected a positive"),
    (lambda: jb.Sphere(1, 0), "expected at least one entry. Try"),
    (lambda: jb.OperatorNorm(-1, 2), "radius=-1, expected a positive"),
    (lambda: jb.Matrices(("n", "d"), norm="rows", at_most=-1), "radius=-1, expected a positive"),
    (lambda: jb.Matrices((0, 2), norm="row sum"), "expected axes of positive length. Try"),
    (lambda: jb.Box(1, 0, "d"), "lo=1.0, hi=0.0, expected lo < hi. Try jb.Box"),
    (lambda: jb.Box(0, 0), r"which allow only one point. Try jb.OneOf\(0.0\)"),
    (lambda: jb.Box(2, 2, 3), r"Try jb.OneOf\(\[np.full\(3, 2.0\)\]\)"),
    (lambda: jb.Integers(2, 1), "expected lo <= hi"),
    (lambda: jb.Integers(0, np.inf), "expected finite ends. Try"),
    (lambda: jb.Simplex(0), "expected rows with entries. Try"),
    (lambda: jb.Simplex(2, -1), "total=-1, expected a positive"),
    (lambda: jb.SubSimplex((), 1), "expected rows with entries. Try"),
    (lambda: jb.Signs(2, 0.0), "scale=0.0, expected a positive"),
    (lambda: jb.OneOf(1.0, float("nan")), "which hold NaN. Try"),
])  # fmt: skip
def test_a_set_with_impossible_numbers_is_refused_at_once(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("one", [
    jb.PSD(("m", "n")), jb.Symmetric(("m", 3)), jb.PSD("m", at_most="-m"), jb.Ball("m - n", 2),
    jb.Box("m", "m"), jb.Simplex("m - 2"), jb.Integers("n", "m"), jb.Sphere(1, ("m - 2", 3)),
])  # fmt: skip
def test_a_set_with_impossible_sizes_is_refused_at_the_size(one):
    with pytest.raises(ValueError, match="Try"):
        one.draw(jax.random.key(0), {"m": 2, "n": 3})


def test_square_sets_of_one_named_axis_stay():
    size, key = {"d": 2, "k": 2}, jax.random.key(0)
    for one in (jb.PSD(("d", "k")), jb.Each(jb.PSD("d", at_most=0), "k"), jb.Symmetric((2, "k"))):
        assert jax.eval_shape(lambda key, one=one: one.draw(key, size), key).shape[-2:] == (2, 2)
    assert jb.OneOf([np.full(3, 2.0)]).shape_at({}) == (3,)


@pytest.mark.parametrize("one", [
    sets.OperatorNorm(2, ("m", "n")), sets.Matrices(("m", "n"), "nuclear", 3),
], ids=["operator", "nuclear"])  # fmt: skip
def test_a_ball_of_matrices_prints_the_call_that_makes_it(one):
    assert eval(repr(one), vars(sets)) == one
