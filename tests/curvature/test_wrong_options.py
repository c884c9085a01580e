"""Wrong options of the methods, of results, of the monitor and of `bounds_for`: one sentence each.

`test_wrong_inputs.py` has wrong losses, parameters and data.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxbounds as jb

W = {"a": jnp.ones((3, 2)), "b": jnp.ones(2)}
DATA = jnp.ones((4, 3)), jnp.ones((4, 2))
V = jnp.ones(8)
PROMPTS = jnp.ones((2, 3, 3))


def loss(w, batch):
    return jnp.mean((jnp.tanh(batch[0] @ w["a"]) + w["b"][None] - batch[1]) ** 2)


def H():
    return jb.Curvature(loss, W, DATA)


def asked(ask, *args, **options):
    return lambda: getattr(H(), ask)(*args, **options)


def times(v):
    return lambda: H() @ v


def seen(ask, *args, **options):
    return lambda: getattr(H().spectrum(), ask)(*args, **options)


def made(**options):
    given = {"params": W, "data": DATA} | options
    return lambda: jb.Curvature(loss, **given).extremes()


def watched(step=0, params=W, data=DATA, **options):
    return lambda: jb.CurvatureMonitor(loss, **({"every": 1} | options))(step, params, data)


def bounds(**options):
    return lambda: jb.bounds_for(W, PROMPTS, **options)


INTEGER = "is no integer"
CASES = {
    "@ text": (times("abc"), "lacks 'a', 'b'"),
    "@ short": (times(jnp.ones(7)), "matrix, which has 8 columns"),
    "@ complex": (times(jnp.ones(8, complex)), "complex64 is complex, expected real"),
    "@ transposed": (times({"a": jnp.ones((2, 3)), "b": V[:2]}), r"shape=\(2, 3\), expected"),
    "matvec short": (asked("matvec", np.ones(5)), "matrix, which has 8 columns"),
    "apply 3": (asked("apply", 3, V), "function=3 is no function"),
    "apply short": (asked("apply", lambda x: x, jnp.ones(3)), "lacks 'a', 'b'"),
    "apply 1": (asked("apply", lambda x: x, V, iterations=1), "iterations=1 is too few"),
    "apply text": (asked("apply", lambda x: x, V, iterations="a"), f"iterations='a' {INTEGER}"),
    "apply shape": (asked("apply", lambda x: jnp.ones(3), V), r"returns shape=\(3,\) for eigen"),
    "apply None": (asked("apply", lambda x: None, V), "function fails on eigenvalues of shape"),
    "apply if": (asked("apply", lambda x: x if x > 0 else 0, V), "at test_wrong_options.py"),
    "apply log": (asked("apply", jnp.log, V), "not finite at an eigenvalue"),
    "diagonal text": (asked("diagonal", products="x"), f"products='x' {INTEGER}"),
    "diagonal 1": (asked("diagonal", products=1), "for a standard error"),
    "trace -3": (asked("trace", products=-3), "at least 2 products, got products=-3"),
    "trace text": (asked("trace", products="30"), f"products='30' {INTEGER}"),
    "many keys": (asked("trace", key=jax.random.split(jax.random.key(0), 3)), "array of keys"),
    "NumPy's generator": (asked("extremes", key=np.random.default_rng(0)), "is not a key"),
    "nodes text": (asked("spectrum", iterations="x"), f"iterations='x' {INTEGER}"),
    "share nan": (seen("share_below", float("nan")), "x=nan is no number"),
    "moment text": (seen("moment", "x"), "power='x' is no number"),
    "moment root": (seen("moment", 0.5), "0.5 is not finite at the estimated eigenvalue node=-"),
    "density text": (seen("density", "x"), "grid='x', expected an array of numbers"),
    "density width": (seen("density", np.zeros(3), width=0), "width=0 is no number above 0"),
    "trace_of log": (seen("trace_of", np.log), "not finite at the estimated eigenvalue node=-"),
    "trace_of 3": (seen("trace_of", 3), "function=3 is no function"),
    "trace_of shape": (seen("trace_of", lambda x: np.ones(3)), r"f gives .* shape=\(3,\)"),
    "top text": (asked("top", "3"), f"k='3' {INTEGER}"),
    "top True": (asked("top", True), f"k=True {INTEGER}"),
    "top -1": (asked("top", -1), "k=-1 eigenvalues"),
    "kappa text": (asked("weak_convexity", kappa="x"), "kappa=x, expected a positive number"),
    "heads text": (asked("weak_convexity", heads="two"), "heads must be the number"),
    "heads of nothing": (asked("weak_convexity", heads={"zz": 0}), "matches heads='zz'"),
    "no blocks": (asked("blocks"), "blocks=None and heads=None"),
    "block 3": (asked("blocks", {"x": 3}), "filter is 3"),
    "axis text": (asked("blocks", heads={"a": "x"}), f"axis of a='x' {INTEGER}"),
    "columns 0": (asked("dense", columns=0), f"columns=0 {INTEGER} from 1 on"),
    "limit text": (asked("dense", limit_bytes="1GB"), "limit_bytes='1GB' is no number"),
    "tolerance text": (asked("extremes", tolerance="x"), "tolerance='x' is no number"),
    "tolerance nan": (asked("extremes", tolerance=float("nan")), "tolerance=nan is no number"),
    "basis text": (asked("extremes", basis="x"), f"basis='x' {INTEGER}"),
    "dense_limit None": (asked("extremes", dense_limit=None), f"dense_limit=None {INTEGER}"),
    "memory text": (made(memory_limit="1GB"), "memory_limit='1GB' is no number"),
    "filter empty": (made(filter=""), "is an empty text"),
    "filter numbers": (made(filter={"a": 1}), "expected a mask"),
    "stream raises": (made(data=lambda: 1 / 0), "batches=function fails at .*Zero"),
    "stream of one": (made(data=lambda x: [x]), "a function without arguments"),
    "stream of 3": (made(data=lambda: 3), "return an iterator, got type=int"),
    "stream empty": (made(data=lambda: iter([])), "yields no batch"),
    "every text": (watched(every="x"), f"every='x' {INTEGER}"),
    "measure 3": (watched(measure=3), "measure=3 is unknown"),
    "measure vector": (watched(measure=lambda H: jnp.ones(3)), "is no number"),
    "measure None": (watched(measure=lambda H: None), "=None is no number"),
    "rate text": (watched(learning_rate="fast"), "learning_rate='fast' is no number above 0"),
    "rate optax": (watched(learning_rate=optax.sgd(0.1)), "Try the number or schedule"),
    "schedule": (watched(learning_rate=lambda: 1), "Try a schedule"),
    "file 3": (watched(file=3), "file=3 is a int"),
    "file folder": (watched(file="/"), "file='/' is a folder"),
    "logger 3": (watched(logger=3), "logger has type=int"),
    "blocks list": (watched(blocks=["a"]), r"blocks=\['a'\] is not a mapping"),
    "heads a": (watched(heads="a"), "to the axis of the heads"),
    "on_record 3": (watched(on_record=3), "on_record=3 is no function"),
    "loss text": (lambda: jb.CurvatureMonitor("loss"), "loss='loss' is no function"),
    "step text": (watched(step="x"), f"step='x' {INTEGER}"),
    "step swapped": (watched(step=W, params=0), f"step=.* {INTEGER}"),
    "no params": (watched(params=None), "no array of real numbers"),
    "no batch": (watched(data=None), r"the loss must take \(params\)"),
    "in jit": (lambda: jax.jit(lambda w: watched(params=w)())(W), "inside of jit"),
    "no record": (lambda: jb.CurvatureMonitor(loss).plot(), "no record yet"),
    "delta 2": (bounds(delta=2), r"0 < delta < 1"),
    "delta text": (bounds(delta="x"), "delta='x' is no number"),
    "range -1": (bounds(loss_range=-1), "expected positive, finite loss_range"),
    "lipschitz nan": (bounds(lipschitz=float("nan")), "expected positive, finite loss_range"),
    "cls text": (bounds(cls="x"), f"cls='x' {INTEGER}"),
    "first 3": (bounds(first=3), "first=3 is not a string"),
    "encoded -1": (bounds(encoded=-1), f"encoded=-1 {INTEGER} from 1 on"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_option_gets_one_sentence(name, unannotated):
    ask, words = CASES[name]
    with pytest.raises(ValueError, match=words) as caught:
        ask()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_there_are_sixty():
    assert len(CASES) >= 60


@pytest.mark.parametrize(
    "model, data, words",
    [
        (None, PROMPTS, "the model"), ("model", PROMPTS, "the model"), (W, "x", "data"),
        (W, jnp.ones(3), "data"), (W, PROMPTS * jnp.nan, "NaN or infinite values"),
    ],
)  # fmt: skip
def test_no_model_and_no_data_make_bounds_for_raise(model, data, words):
    assert words in str(jb.bounds_for(model, data))


def test_a_schedule_may_begin_at_zero(unannotated):
    monitor = jb.CurvatureMonitor(loss, every=1, learning_rate=lambda step: 0.1 * step)
    assert monitor(0, W, DATA) and monitor.last["two_over_learning_rate"] == float("inf")
    assert monitor(np.int64(1), W, DATA) and monitor.last["two_over_learning_rate"] == 20
