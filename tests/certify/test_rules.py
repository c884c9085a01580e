"""Every rule of the interpreter: enclosures of small programs contain an independent evaluation.

Each program uses the rule that it stands for (that is asserted), on points and on boxes in turn; on
a box the truth at random points of it must lie in one of the ways through the program. On points
there is one way, and the radius is small, so that an enclosure of everything does not pass.
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from oracle import control, entrywise, folds, matrices, movement, windows
from oracle.programs import is_made, judge

from jaxbounds.certification import NotSupported, enclose
from jaxbounds.programs.balls.interpreter import RULES

DRAWS = pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.slow)])
PROGRAMS = {
    **entrywise.PROGRAMS,
    **movement.PROGRAMS,
    **folds.PROGRAMS,
    **matrices.PROGRAMS,
    **control.PROGRAMS,
    **windows.PROGRAMS,
}
ABSENT = {"checkpoint", "copy_p", "core_call", "eval_jaxpr", "expand_dims", "pjit", "remat"}
"""Names of rules for which no supported release of JAX writes a program from its public names."""
SINCE = {"stack": 8, "tile": 8, "unstack": 8, **dict.fromkeys(
    ("call_hi_primitive", "log2", "one_minus_square", "polynomial"), 11
)}  # fmt: skip
"""The first minor release of JAX 0 whose programs may have a primitive."""


def test_every_rule_is_judged():
    assert set(RULES) - ABSENT == set(PROGRAMS)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_has_the_primitive_that_it_stands_for(name, x64):
    old = jax.__version_info__ < (0, SINCE.get(name, 0))
    assert old or any(is_made(name, program) for program in PROGRAMS[name])


@pytest.mark.slow_cases("igamma-20")
@DRAWS
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_rule_contains_the_truth(name, count, x64):
    seen: set[str] = set()
    if not any(is_made(name, program) for program in PROGRAMS[name]):
        pytest.skip(f"{name}: JAX {jax.__version__} writes no such primitive")
    for program in PROGRAMS[name]:
        acted, compared = judge(name, program, count, zlib.crc32(name.encode()))
        seen |= acted
        assert compared > count // 2
    assert name in seen


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.abs(x.astype(complex)),
        lambda x: x + jnp.real(jnp.exp(1j * jnp.arange(3).astype(complex)))[1],
        lambda x: lax.reduce_precision(x, 5, 2),
        lambda x: lax.bitcast_convert_type(x, jnp.int64),
    ],
)
def test_what_has_no_meaning_in_real_arithmetic_is_refused(function, x64):
    with pytest.raises(NotSupported):
        enclose(function, np.array(2.5))


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (1, 3), (3, 1)])
def test_the_signs_of_qr_are_those_of_lapack(shape, x64):
    """NumPy calls LAPACK itself; columns that are zero below the diagonal are left alone."""
    rng = np.random.default_rng(5)
    for draw in range(12):
        a = rng.normal(size=shape)
        if draw % 3 == 0:
            a[1:, 0] = 0.0
        (way,) = enclose(jnp.linalg.qr, a).ways
        for found, true in zip(way, np.linalg.qr(a)):
            middle = np.vectorize(lambda v: float(v.mid()), otypes=[float])(found)
            np.testing.assert_allclose(middle, true, atol=1e-12)


def test_a_total_order_of_two_zeros_is_open(x64):
    """Their signs decide, and a real zero has none: both answers are followed."""
    grid = jnp.array([-1.0, 0.0, 1.0])
    ways = enclose(lambda x: jnp.searchsorted(grid, x), np.array(0.0)).ways
    assert {1, 2} <= {int(way) for way in ways}


def test_a_number_that_is_no_float_has_no_next_one(x64):
    """A third, rounded to a float either way, and one step from there."""
    ((found,),) = ([w] for w in enclose(lambda x: lax.nextafter(x / 3, x), np.array(1.0)).ways)
    for near in (1 / 3, np.nextafter(1 / 3, 1)):
        assert found.item().contains(float(np.nextafter(near, 1)))
    assert float(found.item().rad()) < 1e-15
