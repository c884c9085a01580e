"""No sampler uses a key twice; that it uses its key at all, every verdict checks."""

import jax
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.papers import load_papers

SAMPLERS = {
    (id(sampler), tuple(statement.sizes[0].items())): (statement, name)
    for paper in load_papers()
    for statement in paper.statements
    for name, sampler in statement.samplers.items()
}


@pytest.mark.parametrize(
    "statement, name", SAMPLERS.values(), ids=[f"{s.id}-{name}" for s, name in SAMPLERS.values()]
)
def test_keys_are_used_once(statement, name):
    sampler, size = statement.samplers[name], Size(statement.sizes[0])
    draw = jax.jit(lambda key: sampler(key, size))
    with float64_on_cpu(), jax.debug_key_reuse(True):
        draw.trace(jax.random.key(0))


def test_a_key_used_twice_would_be_found():
    def draw(key):
        return jax.random.normal(key), jax.random.uniform(key)

    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        jax.jit(draw).trace(jax.random.key(0))
