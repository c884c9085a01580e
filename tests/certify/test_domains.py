"""A proof that ends at the edge of a function's domain says which function it is."""

import jax.numpy as jnp
import pytest

import jaxbounds as jb


def reason(left, right, box):
    over = {"x": box}
    claim = jb.claim("mine.edge", left, "<=", right, over=over)
    (domain,) = jb.Domain.over(over, size={})
    return jb.prove(claim, "printed", domain, seconds=2.0).reason


@pytest.mark.parametrize(
    "left, right, box, name",
    [
        (lambda x: jnp.sqrt(1.0 - x**2), lambda x: 1.0 - x**2 / 2.0, jb.Box(-1, 1), "sqrt"),
        (lambda x: jnp.sin(x) / x, lambda x: 1.0 + 0.0 * x, jb.Box(-3, 3), "div"),
    ],
)
def test_the_reason_names_the_function_whose_domain_ends(left, right, box, name):
    assert f"its rounding reaches beyond the domain of {name}" in reason(left, right, box)


def test_no_function_is_named_inside_of_the_domain():
    assert reason(lambda x: jnp.sqrt(1.0 - x**2), lambda x: 1.0 - x**2 / 2.0, jb.Box(0, 0.9)) == ""


def test_no_function_is_named_where_the_violation_has_a_bound():
    found = reason(lambda x: jnp.floor(x), lambda x: x, jb.Box(0.5, 3.5))
    assert found and "domain of" not in found
