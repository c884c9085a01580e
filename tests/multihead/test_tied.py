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
    data_key, *keys = jax.random.split(key, 3)
    data = SAMPLE(data_key, 6)
    start = {
        "U": jax.random.normal(keys[0], (len(COPIES), 4, 3)),
        "W": jax.random.normal(keys[1], (len(COPIES), 3, 3)),
    }
    copies = jnp.asarray(COPIES, float)
    chosen = optimizer(rule, 0.3)
    groups = trajectory(lambda p: tied_risk(p, copies, data), start, tied(chosen, copies), 25)
    plain = trajectory(lambda p: empirical_risk(p, data), untie(start, COPIES), chosen, 25)
    for name in ("U", "W"):
        written_out = np.repeat(np.asarray(groups[name]), COPIES, axis=1)
        np.testing.assert_allclose(written_out, plain[name], rtol=1e-9, atol=1e-11)
    last, first = jax.tree.map(lambda leaf: leaf[-1], groups), start
    heads = untie(last, COPIES)
    np.testing.assert_allclose(head_norm(last), head_norm(heads))
    squares = sum(np.sum((heads[k] - untie(first, COPIES)[k]) ** 2) for k in heads)
    np.testing.assert_allclose(tied_distance(last, first, copies), np.sqrt(squares))


def test_heads_that_differ_do_not_reduce_to_one(x64, key):
    data = SAMPLE(key, 6)
    U, W = jax.random.normal(key, (2, 4, 3)), jnp.zeros((2, 3, 3))
    rule, copies = optimizer("gd", 1.0), jnp.asarray([2.0])
    both = trajectory(lambda p: empirical_risk(p, data), {"U": U, "W": W}, rule, 5)
    one = {"U": U[:1], "W": W[:1]}
    group = trajectory(lambda p: tied_risk(p, copies, data), one, tied(rule, copies), 5)
    assert np.max(np.abs(both["U"][-1] - group["U"][-1])) > 1e-3
