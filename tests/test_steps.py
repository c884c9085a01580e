"""Claims whose programs step or choose at a rounded number: no rounding makes a true claim fail."""

import jax.numpy as jnp
import pytest
from jax import lax

import jaxbounds as jb

NUMBERS = {"x": jb.Integers(1, 1000)}


def around(x):
    """Return x, up to the rounding of exp and log."""
    return jnp.exp(jnp.log(x))


def top_bit(x):
    """Return the index of the top bit of a whole number."""
    return 31.0 - lax.clz(x.astype(jnp.int32)).astype(float)


TRUE = {
    "the logarithm's floor is the top bit": (lambda x: jnp.floor(jnp.log2(x)), top_bit, "=<"),
    "the sign of a zero": (lambda x: jnp.sign(around(x) - x), lambda x: 0.0 * x, "=<>"),
    "a comparison of equals": (
        lambda x: jnp.where(around(x) >= x, 1.0, 0.0), lambda x: 0.0 * x + 1.0, "=<>",
    ),
    "the integer part": (lambda x: around(x).astype(int).astype(float), lambda x: x, "=>"),
    "a remainder": (lambda x: jnp.mod(around(x), 1.0), lambda x: 0.0 * x, "=<>"),
    "a maximum's place": (
        lambda x: jnp.argmax(jnp.stack([x, around(x)])).astype(float), lambda x: 0.0 * x, "=<",
    ),
}  # fmt: skip
FALSE = {
    "the top bit of the next": (lambda x: jnp.floor(jnp.log2(x)), lambda x: top_bit(x + 1.0), "="),
    "a sign": (lambda x: jnp.sign(around(x) - 500.0), lambda x: 1.0 + 0.0 * x, "=>"),
    "a rounded half": (lambda x: jnp.round(around(x) / 2.0), lambda x: x / 2.0, "="),
    "a remainder of three": (lambda x: jnp.mod(x, 3.0), lambda x: 0.0 * x + 1.0, "=<>"),
    "a count of bits": (
        lambda x: lax.population_count(x.astype(int)).astype(float), lambda x: 8.0 + 0.0 * x, "<",
    ),
}  # fmt: skip


def word(left, right, relation, **more):
    relation = {"<": "<=", ">": ">="}.get(relation, relation)
    of = lambda side: lambda x: side(x.astype(float))
    claim = jb.claim("mine.step", of(left), relation, of(right), over=NUMBERS, **more)
    (found,) = jb.falsify(claim)
    return found.status


@pytest.mark.slow_cases(
    *(f"{name}-{one}" for name in ("a remainder", "the sign of a zero") for one in "<>"),
    *(f"a comparison of equals-{one}" for one in "<>"),
)
@pytest.mark.parametrize(
    "name, relation", [(name, one) for name, (*_, relations) in TRUE.items() for one in relations]
)
def test_a_step_at_a_rounded_number_is_no_violation(name, relation):
    left, right, _ = TRUE[name]
    assert word(left, right, relation) != "fails"


@pytest.mark.slow_cases("a remainder of three-<", "a remainder of three->", "a sign->")
@pytest.mark.parametrize(
    "name, relation", [(name, one) for name, (*_, relations) in FALSE.items() for one in relations]
)
def test_a_false_claim_with_steps_fails(name, relation):
    left, right, _ = FALSE[name]
    few = jb.Budget(samples=64, restarts=2, steps=20)
    assert word(left, right, relation, budget=few) == "fails"
