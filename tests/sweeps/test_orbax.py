"""States of sweeps as orbax checkpoints: the bits come back, other states are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest

from jaxbounds.experiments.sweeps import read_state, sweep, write_state

pytestmark = [
    pytest.mark.usefixtures("kept_programs"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:orbax"),
]
RULE = optax.sgd(0.1, momentum=0.9)


def _state():
    def start(lane):
        w = {"w": lane["a"] * jnp.ones(3), "low": jnp.ones(2, jnp.bfloat16)}
        return w, RULE.init(w), jax.random.fold_in(jax.random.key(1), lane["seed"])

    def step(lane, state):
        w, inner, key = state
        update, inner = RULE.update(jax.tree.map(lambda leaf: leaf + 1, w), inner)
        return optax.apply_updates(w, update), inner, jax.random.split(key)[0]

    measure = lambda lane, state: {"sum": jnp.sum(state[0]["w"])}
    lanes = {"a": np.float32([1, 2, 3]), "seed": np.arange(3)}
    return sweep(start, step, measure, lanes, 4).state


def _bits(leaf):
    plain = jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
    return str(leaf.dtype), np.asarray(plain).tobytes()


def test_a_state_goes_to_orbax_and_comes_back(tmp_path):
    state = _state()
    place = write_state(tmp_path / "state", state)
    found = read_state(place, state)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    assert list(map(_bits, jax.tree.leaves(found))) == list(map(_bits, jax.tree.leaves(state)))
    with ocp.StandardCheckpointer() as other:  # as another tool reads it
        np.testing.assert_array_equal(other.restore(place)[0]["w"], state[0]["w"])
    with pytest.raises(ValueError, match="exists, but orbax must make the folder"):
        write_state(place, state)


def test_a_checkpoint_of_another_tool(tmp_path):
    tree = {"w": np.arange(6.0).reshape(2, 3), "n": np.arange(2, dtype=np.int32)}
    with ocp.StandardCheckpointer() as other:
        other.save(tmp_path / "theirs", tree)
    found = read_state(tmp_path / "theirs", jax.tree.map(np.zeros_like, tree))
    assert all(map(np.array_equal, jax.tree.leaves(found), jax.tree.leaves(tree)))


@pytest.mark.parametrize(
    "like, words",
    [
        (
            {"w": np.zeros((3, 2)), "n": np.zeros(2, np.int32)},
            r"leaves that like= lacks: float64 of shape \(2, 3\)",
        ),
        ({"w": np.zeros((2, 3), np.float32), "n": np.zeros(2, np.int32)}, "like= lacks: float64"),
        ({"w": np.zeros((2, 3))}, "no checkpoint with the structure"),
        ({"v": np.zeros((2, 3)), "n": np.zeros(2, np.int32)}, "no checkpoint with the structure"),
    ],
)
def test_another_state_is_refused(like, words, tmp_path):
    tree = {"w": np.arange(6.0).reshape(2, 3), "n": np.arange(2, dtype=np.int32)}
    place = write_state(tmp_path / "state", tree)
    with pytest.raises(ValueError, match=words):
        read_state(place, like)


def test_a_folder_without_a_checkpoint_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, words in (("none", "is no folder"), ("empty", "no checkpoint with the structure")):
        with pytest.raises(ValueError, match=words):
            read_state(tmp_path / name, {"w": np.zeros(2)})
