"""What runs on the host can be traced too, with every number and integer of its instance."""

import math

import chex
import jax
import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.falsification.measure import as_arrays
from jaxbounds.numerics.arrays import array_module, log, number, real, traced
from jaxbounds.seqlength import covering_numbers, linear_bounds
from jaxbounds.seqlength.counting import log_counts_signed
from jaxbounds.seqlength.statements import PAPER, entropy_integral

WHOLE, REAL = np.dtype(np.int64), np.dtype(np.float64)
REFUTED = [
    (s, form)
    for s in PAPER.statements
    for form in s.forms
    if s.host and form.counterexample is not None
    if s.id != "seqlength.lemma3.1.count"  # integers alone: it counts a list, as long as they say
]


@pytest.mark.parametrize("statement, form", REFUTED, ids=lambda value: getattr(value, "id", None))
def test_traced_and_on_the_host_the_sides_are_the_same(statement, form):
    instance, size = as_arrays(dict(form.counterexample.instance)), Size(form.counterexample.size)
    hypotheses = [h for h in (statement.hypotheses, form.hypotheses) if h]
    with float64_on_cpu():
        for function in (statement.evaluate, *hypotheses):
            by_name = lambda i, function=function: function(i, size)
            program, shapes = jax.make_jaxpr(by_name, return_shape=True)(instance)
            kinds = [leaf.dtype for leaf in jax.tree.leaves(instance)]
            assert [v.dtype for v in program.in_avals] == kinds and {*kinds} <= {WHOLE, REAL}
            found, host = jax.jit(by_name)(instance), by_name(instance)
            assert jax.tree.structure(shapes) == jax.tree.structure(host)
            chex.assert_trees_all_close(found, host, rtol=1e-12, atol=0)


def _traced(function, *given):
    """The value of the traced function: nothing in it may look at a number."""
    return np.asarray(jax.jit(function)(*map(np.asarray, given)))


BY_HAND = {
    # x = 2, or as said, at k = 3 and d = 5.
    "lemma_3_3": (2.0, 5 * 4 * math.log(7)),
    "lemma_3_3_ceil": (1.5, 5 * 3 * math.log(7)),
    # K = 2: the 25 = 1 + 6 + 6 + 12 integer points of R^3 of l_1 norm at most 2.
    "lemma_3_3_sharp": (2.0, 5 * math.log(25)),
    "lemma_3_4_leading": (2.0, 4 * math.log(15)),
    "lemma_3_4_explicit": (2.0, 8 * math.log(121)),
    "lemma_3_6": (2.0, 4 * math.log(31)),
    "lemma_3_6_ceil": (1.5, 3 * math.log(31)),
    # K = 1: zero and the 30 signed entries.
    "lemma_3_6_sharp": (1.5, math.log(31)),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_traced_bounds_by_hand(name, x64):
    x, expected = BY_HAND[name]
    function = getattr(linear_bounds, name)

    @jax.jit
    def asked(given, k, d):
        """All traced; a number and traced dimensions, and the other way round."""
        return function(given, k=k, d=d), function(x, k=k, d=d), function(given, k=3, d=5)

    np.testing.assert_allclose(asked(x, 3, 5), expected, rtol=1e-14)


def test_traced_volumes_and_points_by_hand(x64):
    bound = linear_bounds
    points = _traced(lambda x, k, n: bound.lemma_3_5_corrected_leading(x, k=k, points=n), 2.0, 3, 6)
    assert points == pytest.approx(4 * math.log(18), rel=1e-14)
    counted = _traced(lambda x, p: bound.volumetric(x, parameters=p), 2.0, 3)
    assert counted == pytest.approx(3 * math.log(5), rel=1e-14)
    column = lambda x, k: bound.volumetric_lower_column(x, k=k)
    assert _traced(column, 2.0, 3) == pytest.approx(3 * math.log(2), rel=1e-14)
    assert _traced(column, 0.5, 3) == 0
    # In the plane a square of side 2 and a disc of area pi.
    cube = lambda x, k: bound.volumetric_lower_cube(x, k=k)
    assert _traced(cube, 1.0, 2) == pytest.approx(math.log(4 / math.pi), rel=1e-14)
    assert _traced(bound.sparsity_needed, [0.5, 1.0, 2.5]).tolist() == [0.0, 1.0, 3.0]


def test_traced_counts_by_hand_and_with_large_integers(x64):
    # Delannoy numbers, for an array of K; K = 0 has the origin alone.
    logs = _traced(log_counts_signed, 3, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.exp(logs), [1, 7, 25, 63], rtol=1e-13)
    assert _traced(log_counts_signed, 1, 1000.0) == pytest.approx(math.log(2001), rel=1e-14)
    n = 10**6
    terms = _traced(lambda k, d: 2 * d * k + 1, n, n)
    assert terms.dtype == np.int64 and terms == 2 * n**2 + 1
    size = _traced(lambda k, d: linear_bounds.lemma_3_6(1.0, k=k, d=d), n, n)
    assert size == pytest.approx(math.log(2 * n**2 + 1), rel=1e-15)


def test_traced_covering_numbers_by_hand(x64):
    # On a path of five points at distance 1 the second and the fourth reach all, at epsilon 1.5.
    values = np.arange(5.0)[:, None, None] * np.ones((1, 2, 1))

    def cover(values, epsilon):
        table = covering_numbers.sup_distances(values, 2.0)
        return covering_numbers.covering_number(table, epsilon)

    for epsilon, count in ((0.5, 5), (1.5, 2), (2.5, 1)):
        assert _traced(cover, values, epsilon) == count == cover(values, epsilon)
    unreached = np.array([[True, False], [False, False]])
    assert _traced(covering_numbers.smallest_cover, unreached) == 3


def test_the_traced_minimum_of_the_objective_by_hand(x64):
    # x + (1 - x)/2 + ln(1/x) / 4: 1/2 + 1/4 + ln(2) / 4 at 1/2; with ln(1/x) it falls up to B = 1.
    inside = _traced(entropy_integral._least, 0.5, 0.25, 1.0)
    assert inside == pytest.approx(0.75 + math.log(2) / 4, rel=1e-14)
    assert inside == pytest.approx(entropy_integral._least(0.5, 0.25, 1.0), rel=1e-12)
    assert _traced(entropy_integral._least, 0.5, 1.0, 1.0) == pytest.approx(1.0, rel=1e-15)


def test_what_is_known_is_refused_and_what_is_not_is_left(x64):
    with pytest.raises(ValueError, match="k=0, expected at least 1"):
        linear_bounds.lemma_3_6(2.0, k=0, d=5)
    with pytest.raises(ValueError, match="k=0, expected at least 1"):
        jax.make_jaxpr(lambda x: linear_bounds.lemma_3_6(x, k=0, d=5))(2.0)
    with pytest.raises(ValueError, match="not negative"):
        jax.make_jaxpr(lambda k: linear_bounds.lemma_3_6(-1.0, k=k, d=5))(3)


def test_numbers_stay_numbers():
    assert array_module(2.0, [1], np.ones(2)) is np and not traced({"a": 1.0})
    assert real(3) == 3 and isinstance(real(3), int) and log(10**400) > 900
    assert isinstance(number(np.float64(2.0)), float) and number([1, 2]).shape == (2,)
    seen = []
    jax.make_jaxpr(lambda x: seen.append((array_module({"a": x}), number(x) is x)) or x)(1.0)
    assert seen == [(jax.numpy, True)]
