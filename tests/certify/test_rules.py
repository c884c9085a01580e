"""Every rule of the interpreter: enclosures of small programs contain an independent evaluation.

Each program uses the rule that it stands for (that is asserted), on points and on boxes in turn; on
a box the truth at random points of it must lie in one of the ways through the program. On points
there is one way, and the radius is small, so that an enclosure of everything does not pass.
"""

import zlib

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import Primitive, primitives
from oracle import control, entrywise, folds, matrices, movement
from oracle.programs import judge

from jaxbounds.certification import NotSupported, enclose
from jaxbounds.certification.interpreter import RULES

DRAWS = pytest.mark.parametrize("count", [20, pytest.param(500, marks=pytest.mark.slow)])
PROGRAMS = {
    **entrywise.PROGRAMS,
    **movement.PROGRAMS,
    **folds.PROGRAMS,
    **matrices.PROGRAMS,
    **control.PROGRAMS,
}
ABSENT = {
    *("checkpoint", "copy_p", "core_call", "custom_vjp_call_jaxpr", "expand_dims"),
    *("pjit", "remat", "stack"),
}
"""Names that rules may have for other releases of JAX: the installed one has no such primitive."""


def test_every_rule_is_judged():
    made = {p.name for p in vars(primitives).values() if isinstance(p, Primitive)}
    assert not ABSENT & made
    assert set(RULES) - ABSENT == set(PROGRAMS)


@DRAWS
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_rule_contains_the_truth(name, count, x64):
    seen: set[str] = set()
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
        lambda x: lax.nextafter(x, x + 1),
        lambda x: lax.bitcast_convert_type(x, jnp.int64),
    ],
)
def test_what_has_no_meaning_in_real_arithmetic_is_refused(function, x64):
    with pytest.raises(NotSupported):
        enclose(function, np.array(2.5))
