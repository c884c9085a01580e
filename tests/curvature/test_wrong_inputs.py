"""Wrong inputs: each gets one sentence that names the cause, and the user's line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb

W = {"a": jnp.ones((3, 2)), "b": jnp.ones(2)}
X, Y = jnp.ones((4, 3)), jnp.ones((4, 2))
DATA = X, Y
INF, NAN = X.at[1, 2].set(jnp.inf), Y.at[3, 1].set(jnp.nan)


def loss(w, batch):
    return jnp.mean((jnp.tanh(batch[0] @ w["a"]) + w["b"][None] - batch[1]) ** 2)


def of(function, *, ask="extremes", params=W, data=DATA):
    return lambda: getattr(jb.Curvature(function, params, data), ask)()


def asked(ask, *args, **options):
    return lambda: getattr(jb.Curvature(loss, W, DATA), ask)(*args, **options)


def made(data=DATA, params=W, function=loss, **options):
    return lambda: jb.Curvature(function, params, data, **options)


def with_if(w, b):
    if jnp.sum(w["a"]) > 0:
        return jnp.sum(w["a"] ** 2)
    return jnp.sum(w["b"])


def with_range(w, b):
    return sum(w["a"][i, 0] for i in range(int(jnp.sum(w["b"]))))


def with_numpy(w, b):
    return np.mean(np.asarray(w["a"]) ** 2)


def with_callback(w, b):
    shape = jax.ShapeDtypeStruct((2,), jnp.float32)
    return jnp.sum(jax.pure_callback(lambda v: v * 2, shape, w["b"]) ** 2)


def with_while(w, b):
    return jnp.sum(jax.lax.while_loop(lambda v: jnp.sum(v) < 99, lambda v: v * 2, w["b"]))


def with_eigvals(w, b):
    return jnp.sum(jnp.abs(jnp.linalg.eigvals(w["a"][:2] + jnp.array([[0, 1.0], [2, 0]]))))


def raises(w, b):
    raise RuntimeError("boom")


def deleted(tree):
    for leaf in jax.tree.leaves(tree):
        leaf.delete()
    return tree


copy = lambda tree: jax.tree.map(jnp.copy, tree)
LINE = r"at test_wrong_inputs\.py:\d+: `.*"
CASES = {
    "numpy": (of(with_numpy), LINE + "NumPy or Python. Try jax.numpy"),
    "if": (of(with_if), LINE + r"if jnp.sum.*Try jnp.where"),
    "range": (of(with_range), LINE + "value of a traced number"),
    "mask": (of(lambda w, b: jnp.sum(w["a"][w["a"] > 0])), LINE + "traced mask. Try jnp.where"),
    "key": (of(lambda w, b: jnp.sum(w["zz"])), LINE + "KeyError: 'zz'; params has .* 'a', 'b'"),
    "tree": (of(loss, params={"c": jnp.ones(3)}), LINE + "KeyError: 'a'; .*leaves 'c'"),
    "list for dict": (of(loss, params=[jnp.ones(3)]), LINE + "TypeError"),
    "batch": (of(loss, data={"x": X}), LINE + "KeyError: 0"),
    "shape": (of(lambda w, b: jnp.sum(b[0] @ w["b"])), LINE + "TypeError: dot_general"),
    "raises": (of(raises), LINE + "RuntimeError: boom"),
    "callback": (of(with_callback), LINE + "callback, which has no derivative"),
    "while": (of(with_while), LINE + "while_loop, which has no reverse derivative"),
    "eigvals": (of(with_eigvals), "eigenvalues of a nonsymmetric matrix"),
    "donated": (lambda: jb.Curvature(loss, deleted(copy(W)), DATA), "'a' was deleted"),
    "donated batch": (lambda: jb.Curvature(loss, W, deleted(copy(DATA))), "'0' was deleted"),
    "donated closure": (
        lambda: (lambda c: jb.Curvature(lambda w, b: loss(w, c), W, DATA).extremes())(
            deleted(copy(DATA))), "donated"),
    "no rows": (of(loss, data=(X[:0], Y[:0])), r"has shape \(0, 3\), without examples"),
    "inf": (of(loss, data=(INF, Y)), r"batch at '0'\[1, 2\] is inf \(1 of 12"),
    "nan": (of(loss, data=[DATA, (X, NAN)], ask="trace"), r"batch at '1/1'\[3, 1\] is nan"),
    "nan parameter": (
        of(loss, params={"a": W["a"], "b": W["b"].at[1].set(jnp.nan)}, ask="spectrum"),
        r"parameter 'b'\[1\] is nan"),
    "root": (of(lambda w, b: jnp.sqrt(0 * jnp.sum(w["a"]))), "avoid a root"),
    "no loss": (of(None), "function of the parameters, got type=NoneType"),
    "with more": (of(lambda w, b: (loss(w, b), 1)), "got type=tuple. Try to return"),
    "vector": (of(lambda w, b: w["b"]), r"one real number, got float32\[2\]"),
    "arguments": (of(lambda w: jnp.sum(w["a"])), r"the loss must take \(params, batch\)"),
    "forgets": (of(lambda w, b: jnp.mean(b[0])), "does not depend on params='a', 'b'"),
    "ragged": (made([DATA, (X[:2], Y[:2])]), "batch 1 and batch 0 differ"),
    "generator": (made(DATA for _ in range(2)), "only once"),
    "text inside": (made((X, ["a", "b"])), "batch at '1/0' is a str"),
    "objects": (made((np.array([object()]), Y)), "batch at '0' is an array of object"),
    "batch_size 0": (made(batch_size=0), "batch_size=0"),
    "batch_size text": (made(batch_size="4"), "batch_size='4'"),
    "lengths": (made((X, Y[:2]), batch_size=2), "one positive length n"),
    "no parameters": (made(params={}), "no array of real numbers"),
    "integers": (made(params={"a": np.arange(3)}), "no array of real numbers"),
    "complex": (made(params={"a": jnp.ones((3, 2), complex), "b": W["b"]}), "a is complex"),
    "of": (made(of="fisher"), "expected one of hessian, ggn"),
    "ggn": (made(of="ggn"), "in two parts"),
    "filter": (made(filter="attention"), "no parameter matches filter='attention'"),
    "filter 3": (made(filter=3), "names no parameter"),
    "memory": (lambda: made(memory_limit=1)().extremes(), "more than the limit"),
    "iterations 0": (asked("extremes", iterations=0), "positive integer, got 0"),
    "tolerance": (asked("extremes", tolerance=-1), "finite number >= 0"),
    "key 0": (asked("extremes", key=0), "key=0 is not a key"),
    "basis": (asked("extremes", basis=2), "at least 8 rows"),
    "top 0": (asked("top", 0), "k=0 eigenvalues"),
    "top 99": (asked("top", 99), "k=99 eigenvalues"),
    "top middle": (asked("top", 1, end="middle"), "greatest, least"),
    "top copies": (asked("top", 1, copies="no"), "copies='no' is neither True nor False"),
    "trace 1": (asked("trace", products=1), "at least 2 products"),
    "trace how": (asked("trace", method="x"), "method must be one of"),
    "probes": (asked("spectrum", probes=0), "probes=0 is no integer from 1 on"),
    "blocks": (asked("blocks", "a"), "from names of blocks to filters"),
    "block": (asked("blocks", {"q": "zz"}), "no parameter matches filter='zz'"),
    "axis": (asked("blocks", heads={"a": 5}), "no axis=5"),
    "every": (lambda: jb.CurvatureMonitor(loss, every=0), "every must be at least 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_input_gets_one_sentence(name, unannotated):
    ask, words = CASES[name]
    with pytest.raises(ValueError, match=words) as caught:
        ask()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
