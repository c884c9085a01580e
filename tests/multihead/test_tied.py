"""The tied-heads reduction against all heads written out: the plain model never sees a group."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.model import head_norm
from jaxbounds.multihead.tied import tied, tied_distance, tied_risk, untie
from jaxbounds.networks.training import optimizer, trajectory

COPIES = (3, 1, 2)
MODEL = SparseContext(tokens=4, dimension=3, relevant=2, distractors=1)
SAMPLE = jax.jit(MODEL.sample, static_argnums=1)


@pytest.mark.default_cases("momentum", "adamw")
@pytest.mark.parametrize("rule", ["gd", "momentum", "adam", "adamw"])
def test_groups_of_equal_heads_train_as_the_heads_do(x64, key, rule):
    data, rng = SAMPLE(key, 6), np.random.default_rng(0)
    shapes = {"U": (len(COPIES), 4, 3), "W": (len(COPIES), 3, 3)}
    start = {name: jnp.asarray(rng.normal(size=shape)) for name, shape in shapes.items()}
    copies = jnp.asarray(COPIES, float)
    chosen = optimizer(rule, 0.3)

    @jax.jit
    def both(start):
        groups = trajectory(lambda p: tied_risk(p, copies, data), start, tied(chosen, copies), 25)
        every = untie(start, COPIES)
        return groups, trajectory(lambda p: empirical_risk(p, data), every, chosen, 25)

    groups, plain = jax.tree.map(np.asarray, both(start))
    for name in ("U", "W"):
        written_out = np.repeat(np.asarray(groups[name]), COPIES, axis=1)
        np.testing.assert_allclose(written_out, plain[name], rtol=1e-9, atol=1e-11)

    @jax.jit
    def measured(last, start):
        heads = untie(last, COPIES)
        return heads, head_norm(last), head_norm(heads), tied_distance(last, start, copies)

    heads, *lengths, distance = measured({k: leaf[-1] for k, leaf in groups.items()}, start)
    np.testing.assert_allclose(*lengths)
    squares = sum(np.sum((np.asarray(heads[k]) - plain[k][0]) ** 2) for k in heads)
    np.testing.assert_allclose(distance, np.sqrt(squares))


def test_heads_that_differ_do_not_reduce_to_one(x64, key):
    data = SAMPLE(key, 6)
    rule, copies = optimizer("gd", 1.0), jnp.asarray([2.0])
    start = {"U": np.random.default_rng(0).normal(size=(2, 4, 3)), "W": np.zeros((2, 3, 3))}

    @jax.jit
    def runs(start):
        one = {name: leaf[:1] for name, leaf in start.items()}
        both = trajectory(lambda p: empirical_risk(p, data), start, rule, 5)
        return both, trajectory(lambda p: tied_risk(p, copies, data), one, tied(rule, copies), 5)

    both, group = jax.tree.map(np.asarray, runs(start))
    assert np.max(np.abs(both["U"][-1] - group["U"][-1])) > 1e-3
