"""What runs on the host can be traced too, with every number and integer of its instance."""

import math

import chex
import jax
import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.falsification.measure import as_arrays
from jaxbounds.qstr import bounds, packing
from jaxbounds.qstr.statements import PAPER, auxiliary

REFUTED = [
    (s, form)
    for s in PAPER.statements
    for form in s.forms
    if s.host and form.counterexample is not None
]


@pytest.mark.parametrize("statement, form", REFUTED, ids=lambda value: getattr(value, "id", None))
def test_traced_and_on_the_host_the_sides_are_the_same(statement, form):
    instance, size = as_arrays(dict(form.counterexample.instance)), Size(form.counterexample.size)
    hypotheses = [h for h in (statement.hypotheses, form.hypotheses) if h]
    with float64_on_cpu():
        for function in (statement.evaluate, *hypotheses):
            by_name = lambda i, function=function: function(i, size)
            program = jax.make_jaxpr(by_name)(instance)
            assert all(value.dtype in (np.int64, np.float64) for value in program.in_avals)
            found, host = jax.jit(by_name)(instance), by_name(instance)
            chex.assert_trees_all_close(found, host, rtol=1e-12, atol=0)


def _traced(function, *given):
    """The value of the traced function: nothing in it may look at a number."""
    return np.asarray(jax.jit(function)(*map(np.asarray, given)))


def test_traced_tails_by_hand(x64):
    token = lambda r: bounds.token_tail(r, n=2, N=3, d=1)
    assert _traced(token, 2.0) == pytest.approx(6 * math.exp(-2 / math.e), rel=1e-14)
    # Below the threshold r^2 = e d the moment of order 1, sqrt(d) / r; beyond it exp(-r^2 / 2e).
    largest = lambda r: bounds.largest_tail(r, d=1)
    expected = {0.5: 1.0, 1.25: 0.8, 2.0: math.exp(-2 / math.e)}
    for r, tail in expected.items():
        assert _traced(largest, r) == pytest.approx(tail, rel=1e-14)
        assert largest(r) == pytest.approx(tail, rel=1e-14)
    with pytest.raises(ValueError, match="expected r\\^2 >= C_x e d"):
        bounds.token_tail(0.5, n=1, N=1, d=1)


def test_traced_packing_bounds_by_hand(x64):
    for run in (_traced, lambda function, *given: function(*given)):
        assert run(packing.volume_upper, 2, 0.5) == pytest.approx(2 * math.log(5), rel=1e-14)
        printed = run(packing.maurey, 2, 0.5)
        assert printed == pytest.approx(4 * (1 + math.log(2)), rel=1e-14)
        assert run(packing.volume_lower, 3, 0.5) == pytest.approx(3 * math.log(2), rel=1e-14)
        assert run(packing.volume_lower, 3, 2.0) == 0


def test_traced_families_by_hand(x64):
    """Five points of [-1, 1]; 2^(d - 12) words that differ in 8 of d places; a maximal packing."""
    half, golay = 0.5, auxiliary.GOLAY
    known = {
        (auxiliary.SEGMENT, 1): (math.log(5), half),
        (golay, 24): (12 * math.log(2), math.sqrt(4 * 8 / 24)),
        (golay, 14): (2 * math.log(2), math.sqrt(4 * 8 / 14)),
        (auxiliary.MAXIMAL, 10**6): (10**6 * math.log(2), half),
    }
    for (family, d), expected in known.items():
        np.testing.assert_allclose(auxiliary._family(family, d), expected, rtol=1e-12)
        found = jax.jit(auxiliary._traced_family)(np.asarray(family), np.asarray(d))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    # Golay's words beyond its length, as on the host.
    longer = jax.jit(auxiliary._traced_family)(np.asarray(golay), np.asarray(30))
    np.testing.assert_allclose(longer, auxiliary._family(golay, 30), rtol=1e-12)
    for d in range(auxiliary.SHORTEST, 25):
        found = jax.jit(auxiliary._traced_family)(np.asarray(golay), np.asarray(d))
        np.testing.assert_allclose(found, auxiliary._family(golay, d), rtol=1e-12)
