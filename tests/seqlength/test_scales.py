"""Lemma E.1: the least of several entries decides, not the largest, in all that is asked of one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.seqlength.statements.scales import LEMMA_E_1

STORED = LEMMA_E_1.form("printed").counterexample
MIXED = np.array([1.0, -2.0])


def _given(**changed):
    return {name: np.asarray(value, float) for name, value in (STORED.instance | changed).items()}


@pytest.mark.parametrize(
    "name, broken",
    [("C", "C_i >= 0"), ("beta", "beta_i >= 0"), ("scales", "eps = sum beta_i eps_i >= 0")],
)
def test_one_negative_entry_misses_a_hypothesis_of_the_paper(name, broken):
    # E8's counterexample may rest on a negative eps_i, on nothing else.
    size = Size(STORED.size)
    assert all(STORED.meets(_given(), size).values())
    missed = [
        words for words, held in STORED.meets(_given(**{name: MIXED}), size).items() if not held
    ]
    assert f"{broken} (Lemma E.1)" in missed


@pytest.mark.parametrize(
    "changed, broken",
    [
        ({"C": [1.0, 0.0]}, "C >= 0.001"),
        ({"beta": [1.0, 0.0]}, "beta >= 0.001"),
        ({"scales": [1.0, 0.0]}, "eps_i is not 0"),
        ({"scales": [1.0, -1.0]}, "eps > 0"),
    ],
)
def test_one_entry_that_is_zero_misses_a_hypothesis_of_the_statement(changed, broken):
    met = LEMMA_E_1.hypotheses(_given(**changed), Size(STORED.size))
    assert [words for words, held in met.items() if not held] == [broken]


def test_the_control_is_only_wrong_where_all_scales_are_positive():
    # By hand: C = beta = (1, 1), scales (2, 2): 8 / 16 <= 1/2; where one is negative it says 0.
    with enable_x64(True):
        positive, mixed = (
            LEMMA_E_1.evaluate(jax.tree.map(jnp.asarray, given), Size(STORED.size))
            for given in (_given(scales=[2.0, 2.0]), _given())
        )
    assert float(positive.lhs["control"]) == pytest.approx(0.6)
    assert float(positive.rhs["control"]) == pytest.approx(0.5)
    assert float(mixed.lhs["control"]) == 0.0 and float(mixed.lhs["printed"]) == pytest.approx(8.0)
