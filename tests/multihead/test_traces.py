"""One compilation for all rates, head counts, seeds and data of one shape."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.multihead.experiments import sparse_context
from jaxbounds.multihead.experiments.lessons import equal_heads
from jaxbounds.multihead.experiments.student import attention_mass, margins
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.tied import tied_risk

CONFIG = sparse_context.SparseContextCurves(tokens=4)
DRAW = jax.jit(sparse_context.draw, static_argnums=(0, 2))


@pytest.fixture(autouse=True)
def counted_anew():
    """Chex counts the traces of a function by its name."""
    chex.clear_trace_counter()


def _lane(seed, heads, rate, n=6):
    part = DRAW(CONFIG, jax.random.key(seed), n)
    return {
        "train": part,
        "test": part,
        "heads": jnp.asarray(heads),
        "step_size": jnp.asarray(rate),
    }


def _program(rule):
    lesson = equal_heads(rule, _lane(0, 1.0, 1.0), lambda lane, params: {})

    def steps(lane, count):
        begin = lesson.begin(lane)
        state = jax.lax.fori_loop(0, count, lambda _, state: lesson.step(lane, state), begin)
        return lesson.record(lane, state)["log10_train_loss"]

    return jax.jit(chex.assert_max_traces(steps, n=1))


@pytest.mark.slow_cases("adam")
@pytest.mark.parametrize("rule", ["gd", "adam"])
def test_rates_head_counts_seeds_and_steps_share_one_program(rule):
    program, found = _program(rule), []
    for seed, heads, rate, count in ((0, 1.0, 1.0, 5), (1, 16.0, 0.3, 5), (2, 1e4, 0.1, 9)):
        found.append(float(program(_lane(seed, heads, rate), count)))
    assert len(set(found)) == 3 and np.all(np.isfinite(found))
    with pytest.raises(AssertionError, match="traced"):
        program(_lane(0, 1.0, 1.0, n=7), 5)  # the control: other shapes are another program


@pytest.mark.usefixtures("unannotated")
def test_wrong_shapes_are_refused_where_they_would_broadcast():
    """The annotations are off, as they are for users; the assertions cost nothing under jit."""
    lane = _lane(0, 1.0, 1.0)
    params = {"U": jnp.zeros((1, 4, 4)), "W": jnp.zeros((1, 4, 4))}
    part = {"X": lane["train"]["X"], "y": lane["train"]["y"][:, None]}
    with pytest.raises(AssertionError, match="shape"):
        margins(params, lane["heads"], part)
    first = {"X": jnp.moveaxis(part["X"], -1, 0), "y": part["y"]}
    with pytest.raises(AssertionError, match="shape"):
        empirical_risk(params, first)
    with pytest.raises(AssertionError, match="shape"):
        tied_risk(params, jnp.ones(1), first)
    two = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), params)
    with pytest.raises(AssertionError, match="shape"):
        tied_risk(two, jnp.ones(1), first | {"y": part["y"][:, 0]})
    with pytest.raises(AssertionError, match="shape"):
        attention_mass(params["W"][0], part["X"], jnp.ones((4, 1)))
