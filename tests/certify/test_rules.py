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
