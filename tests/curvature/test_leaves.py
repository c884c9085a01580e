"""Which leaves are parameters, in which order, and whose share a direction is; shapes by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.networks.curvature.filters import matches
from jaxbounds.networks.curvature.leaves import Held, select
from jaxbounds.networks.curvature.shares import head_axes, head_shares, shares

TREE = {
    "a": {"kernel": jnp.arange(6.0).reshape(2, 3), "bias": jnp.array([7.0, 8.0])},
    "count": jnp.array(3),
    "name": "adam",
    "z": jnp.array(9.0),
}


def test_reals_are_taken_in_the_trees_order():
    selection = select(TREE)
    assert selection.size == 9 and selection.heads is None
    assert [c and c[0] for c in selection.chosen] == ["a/bias", "a/kernel", None, None, "z"]
    own, fixed = selection.arrays(TREE)
    assert [x.shape for x in own] == [(2,), (2, 3), ()] and [int(x) for x in fixed] == [3]
    vector = selection.vector(own)
    assert vector.tolist() == [7, 8, 0, 1, 2, 3, 4, 5, 9]
    back = selection.params(vector + 1, own, fixed)
    assert back["z"] == 10 and back["count"] == 3 and back["name"] == "adam"
    assert back["a"]["kernel"].tolist() == [[1, 2, 3], [4, 5, 6]]
    tree = selection.tree(vector)
    assert tree["count"] is None and tree["a"]["bias"].tolist() == [7, 8] and tree["name"] is None
    again = selection.rebuilt(own, fixed)
    assert again["name"] == "adam" and again["a"]["kernel"].shape == (2, 3) and again["count"] == 3
    assert [np.shape(x) for x in selection.flat(again)] == [(2,), (2, 3), (), ()]


def test_narrow_numbers_are_computed_in_float32():
    half = {"a": jnp.ones(2, jnp.bfloat16), "b": jnp.ones(1, jnp.float16)}
    assert select(half).dtype == jnp.float32
    mixed = {"a": jnp.ones(2, jnp.bfloat16), "b": np.ones(1, np.float32)}
    selection = select(mixed)
    own, _ = selection.arrays(mixed)
    assert all(x.dtype == jnp.float32 for x in own)


def test_the_widest_type_is_that_of_the_vector(x64):
    narrow = jnp.ones(2, jnp.float32)
    both = {"a": narrow, "b": jnp.ones(1, jnp.float64), "c": narrow}
    selection = select(both)
    own, _ = selection.arrays(both)
    assert selection.dtype == jnp.float64 == selection.vector(own).dtype
    assert [x.dtype for x in jax.tree.leaves(selection.params(selection.vector(own), own, []))] == [
        jnp.float32, jnp.float64, jnp.float32,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "pattern, path, taken",
    [
        ("att", "block/attention/w", True),
        ("att*", "block/attention", False),
        ("*att*", "x/attention", True),
        ("b?ock", "block", True),
        ("[ab]", "a", True),
        ("[ab]", "ab", False),
        (["x", "block"], "block", True),
        (["x", "y"], "block", False),
        (lambda path: path == "a", "a", True),
        (lambda path: 0, "a", False),
        ("Att", "att", False),
    ],
)
def test_patterns(pattern, path, taken):
    assert matches(pattern, path) is taken


def test_kinds_of_variables():
    assert matches(int, "a", 3) and not matches(int, "a", "3") and not matches(int, "a")


@pytest.mark.parametrize(
    "filter, chosen",
    [("kernel", ["a/kernel"]), (["z", "bias"], ["a/bias", "z"]), (lambda p: p < "a/c", ["a/bias"])],
)
def test_filters(filter, chosen):
    selection = select(TREE, filter)
    assert [c[0] for c in selection.chosen if c] == chosen


HEADS = {"q": jnp.arange(12.0).reshape(2, 3, 2), "o": jnp.arange(6.0).reshape(3, 2)}
HEADS["r"] = jnp.ones(4)


def test_the_vector_of_one_head():
    selection = select(HEADS, heads={"q": 1, "o": -2})
    assert selection.heads == 3 and selection.size == 2 * 2 + 2
    own, fixed = selection.arrays(HEADS)
    assert len(fixed) == 1
    one, two = jnp.array(1), jnp.array(2)
    vector = selection.vector(own, one)
    assert vector.tolist() == [2, 3, 2, 3, 8, 9]  # o, then q, by name
    tree = selection.tree(vector, two)
    assert tree["o"].tolist() == [[0, 0], [0, 0], [2, 3]] and tree["r"] is None
    assert tree["q"][:, 2].tolist() == [[2, 3], [8, 9]] and float(jnp.sum(tree["q"][:, :2])) == 0
    moved = selection.params(vector * 0, own, fixed, one)
    assert moved["o"].tolist() == [[0, 1], [0, 0], [4, 5]] and moved["r"].shape == (4,)


@pytest.mark.parametrize(
    "params, options, words",
    [
        ({"n": jnp.arange(3), "s": "x"}, {}, "with 2 leaves"),
        (TREE, {"filter": "kernal"}, "nearest: .*kernel"),
        (TREE, {"filter": ["qqq9"]}, "there are: "),
        (TREE, {"heads": {"kernel": 2}}, "no axis=2"),
        (TREE, {"heads": {"kernel": -3}}, "no axis=-3"),
        (HEADS, {"heads": {"q": 0, "o": 0}}, "equal numbers of heads"),
        ({"c": jnp.ones(1, complex)}, {}, "is complex"),
        (TREE, {"heads": {"q": 0}}, "no parameter"),
    ],
)  # fmt: skip
def test_what_cannot_be_selected(params, options, words):
    with pytest.raises(ValueError, match=words):
        select(params, **options)


def test_heads_are_given_by_their_axes(unannotated):
    with pytest.raises(ValueError, match="axis of the heads"):
        select(TREE, heads=3)


def test_three_paths_are_named_and_how_many_more():
    four = {name: jnp.ones(1) for name in "abcd"}
    with pytest.raises(ValueError, match=r"there are: a, b, c and 1 more"):
        select(four, "yyyyyy")
    three = {name: jnp.ones(1) for name in "abc"}
    with pytest.raises(ValueError, match=r"there are: a, b, c\. Try"):
        select(three, "yyyyyy")


def test_statistics_beside_parameters_are_held_fixed():
    names = ("batch_stats", "cache", "intermediates", "perturbations")
    linen = {"params": {"w": jnp.ones(2)}} | {name: {"m": jnp.ones(3)} for name in names}
    assert select(linen).size == 2
    assert select({"batch_stats": {"m": jnp.ones(3)}}).size == 3  # no linen variables
    assert select({"params": {"w": jnp.ones(2)}, "other": jnp.ones(1)}).size == 3


def test_the_state_of_an_optimiser_is_no_parameter():
    optax = pytest.importorskip("optax")
    params = {"w": jnp.ones(2)}
    state = optax.adam(0.1).init(params)
    assert select({"params": params, "opt": state}).size == 2
    assert select({"w": jnp.ones(2), "state": (state, jnp.ones(5))}).size == 7


def test_variables_of_nnx_that_are_trained():
    nnx = pytest.importorskip("flax.nnx")
    params = {"w": nnx.Param(jnp.ones(2)), "s": nnx.BatchStat(jnp.ones(3)), "x": jnp.ones(4)}
    found = select(params)
    assert [c and c[0] for c in found.chosen] == [None, "w", "x"]
    assert [c and c[0] for c in select(params, nnx.BatchStat).chosen] == ["s", None, None]
    assert select(params, nnx.Param).size == 2


def test_what_holds_no_array_says_nothing():
    assert Held(1) == Held(2) and hash(Held(1)) == hash(Held("x")) == 0 and Held(1) != 1
    assert select(TREE) == select(TREE | {"name": "sgd"})


def test_shares_of_a_direction():
    # Squares 9, 16 and 25 in three leaves of two layers.
    vector = {"a": {"x": jnp.array([3.0]), "y": jnp.array([4.0])}, "b": {"x": jnp.array([5.0])}}
    assert shares(vector) == pytest.approx({"b/x": 0.5, "a/y": 0.32, "a/x": 0.18})
    assert list(shares(vector)) == ["b/x", "a/y", "a/x"]
    assert shares(vector, depth=1) == pytest.approx({"a": 0.5, "b": 0.5})
    assert shares({"a": jnp.zeros(2)}) == {"a": 0.0}


def test_shares_of_heads():
    # Heads along axis 1 of q and 0 of o: squares 1 + 4, 4 + 9, and 16 + 7 outside.
    q = jnp.array([[1.0, 2.0]])
    vector = {"q": q, "o": jnp.array([[2.0], [3.0]]), "r": jnp.array([4.0, 7.0**0.5])}
    found = head_shares(vector, {"q": 1, "o": 0})
    np.testing.assert_allclose(found, np.array([5, 13]) / 41, rtol=1e-6)
    zero = {"q": jnp.zeros((1, 2)), "r": jnp.zeros(1)}
    assert head_shares(zero, {"q": 1}).tolist() == [0, 0]
    assert head_shares(vector, {"q": -1, "o": -2}).shape == (2,)


def test_the_axes_of_flaxs_attention():
    kernel, bias = np.ones((5, 3, 2)), np.ones((3, 2))
    layer = {name: {"kernel": kernel, "bias": bias} for name in ("query", "key", "value")}
    layer["out"] = {"kernel": np.ones((3, 2, 5)), "bias": np.ones(5)}
    found = head_axes({"att": layer, "dense": {"kernel": np.ones((5, 5)), "q": kernel}})
    names = ("query", "key", "value")
    wanted = {f"att/{n}/{kind}": axis for n in names for kind, axis in (("kernel", 1), ("bias", 0))}
    assert found == wanted | {"att/out/kernel": 0}
    for other in ({"query": {"kernel": np.ones((5, 6))}}, {"out": {"bias": kernel}},
                  {"query": {"bias": kernel}}, {"value": {"kernel": bias}}):  # fmt: skip
        with pytest.raises(ValueError, match="no attention"):
            head_axes(other)
    assert head_axes({"query": {"kernel": kernel}}) == {"query/kernel": 1}
