"""The monitor in a training loop: one trace, labelled records that survive a file."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxbounds.experiments import results
from jaxbounds.networks import curvature
from jaxbounds.networks.curvature import programs


def _loss(params, batch):
    return jnp.mean((jnp.tanh(batch["x"] @ params["w"]) @ params["v"] - batch["y"]) ** 2)


@pytest.fixture
def start(key):
    """Parameters and data."""
    keys = jax.random.split(key, 3)
    params = {"w": jax.random.normal(keys[0], (4, 5)), "v": jax.random.normal(keys[1], (5,))}
    x = jax.random.normal(keys[2], (24, 4))
    return params, {"x": x, "y": x[:, 0]}


def test_a_training_loop_is_recorded_with_one_compilation(start, tmp_path):
    params, data = start
    programs._programs.clear()
    compiled = lambda: sum(len(p._compiled) for p in programs._programs.values())
    heads = {"w": 1, "v": 0}
    monitor = curvature.CurvatureMonitor(_loss, every=2, blocks={"out": "v"}, heads=heads)
    recorded, counts, points = [], [], []
    for step in range(6):
        recorded.append(monitor(step, params, data))
        counts.append(compiled())
        points.append(params)
        slope = _slope(params, data)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, slope)
    assert recorded == [True, False, True, False, True, False]
    assert counts[0] == counts[-1] == 3  # all parameters, the block, the heads
    dataset = monitor.dataset()
    assert dataset.step.values.tolist() == [0, 2, 4]
    names = ["all parameters", "out", *(f"head {h}" for h in range(5))]
    assert dataset.block.values.tolist() == names
    for i, step in enumerate((0, 2, 4)):
        matrix = np.asarray(_matrix(_flat(points[step]), data))
        whole = dataset.isel(step=i).sel(block="all parameters")
        values = np.linalg.eigvalsh(matrix)
        np.testing.assert_allclose([whole.minimum, whole.maximum], values[[0, -1]], rtol=1e-4)
        ratio = max(0, -values[0]) / float(jax.jit(_loss)(points[step], data))
        assert float(whole.ratio_at_least) == pytest.approx(ratio, rel=1e-4)
    np.testing.assert_allclose(dataset.head_share.sum("head"), 1, rtol=1e-5)
    assert "biased" in dataset.attrs["note"]
    stored = results.load(results.save(dataset, tmp_path / "curvature.nc"))
    np.testing.assert_array_equal(stored.minimum, dataset.minimum)
    pytest.importorskip("matplotlib").use("agg")
    assert len(monitor.plot().axes) == 3


@jax.jit
def _matrix(vector, data):
    """The dense Hessian of the loss, without the library."""
    return jax.hessian(_unflat)(vector, data)


_slope = jax.jit(jax.grad(_loss))


def _flat(params):
    return jnp.concatenate([params["v"], params["w"].ravel()])


def _unflat(vector, data):
    return _loss({"v": vector[:5], "w": vector[5:].reshape(4, 5)}, data)


def test_the_latest_record_is_flat_floats_for_any_logger(start):
    params, data = start
    logged = []
    monitor = curvature.CurvatureMonitor(
        _loss, every=2, blocks={"out": "v"}, on_record=logged.append
    )
    assert monitor.last == {} and "0 records" in repr(monitor)
    for step in range(3):
        assert monitor(step, params, data) == (step % 2 == 0)
        matrix = np.asarray(_matrix(_flat(params), data))
        if step % 2 == 0:
            loss = float(_loss(params, data))
            blocks = {"": np.linalg.eigvalsh(matrix), "/out": np.linalg.eigvalsh(matrix[:5, :5])}
            expected = {"step": step, "loss": loss, "batches": 1}
            for name, values in blocks.items():
                expected |= {f"minimum{name}": values[0], f"maximum{name}": values[-1]}
                expected |= {f"ratio_at_least{name}": max(0, -values[0]) / loss}
                eps = float(jnp.finfo(jnp.float32).eps)
                expected |= {f"converged{name}": 1, f"noise{name}": eps * max(abs(values))}
            assert monitor.last == pytest.approx(expected, rel=1e-4, abs=1e-6)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, _slope(params, data))
    assert {type(value) for value in monitor.last.values()} == {float}
    assert [record["step"] for record in logged] == [0, 2] and logged[-1] == monitor.last
    monitor.last["loss"] = 0.0  # a copy
    assert monitor.last["loss"] > 0
    shown = repr(monitor)
    rows = [line.split() for line in shown.splitlines()]
    assert ["minimum", f"{monitor.last['minimum']:.6g}"] in rows
    assert "of 25 parameters every 2 steps on the loop's batches: 2 records" in shown
    assert "of one batch" in shown and "too negative" in shown and len(shown) < 1500


def test_what_is_no_minibatch_is_not_called_one(start):
    params, data = start
    whole = curvature.CurvatureMonitor(lambda p: _loss(p, data), every=1)
    whole(0, params)
    parts = [jax.tree.map(lambda leaf, i=i: leaf[i : i + 6], data) for i in range(0, 24, 6)]
    listed = curvature.CurvatureMonitor(_loss, every=1, iterations=1, dense_limit=1, tolerance=0.0)
    listed(0, params, parts)
    for monitor, batches in ((whole, 1), (listed, 4)):
        assert monitor.last["batches"] == batches
        assert "biased" not in repr(monitor) + monitor.dataset().attrs["note"]
    assert listed.last["converged"] == 0 < whole.last["converged"]


def test_narrow_operations_and_moments_of_an_optimiser_are_seen(start):
    params, data = start
    state = {"params": params, "moments": optax.adam(0.1).init(params)}
    narrow = lambda tree: jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), tree)
    mixed = lambda s, b: _loss(narrow(s["params"]), narrow(b)).astype(jnp.float32)
    monitor = curvature.CurvatureMonitor(mixed, every=1)
    monitor(0, state, data)
    exact = np.linalg.eigvalsh(_matrix(_flat(params), data))
    assert monitor.last["converged"] == 0 and "of 25 parameters" in repr(monitor)
    errors = abs(monitor.last["minimum"] - exact[0]), abs(monitor.last["maximum"] - exact[-1])
    assert 1e-5 < max(errors) < monitor.last["noise"]


def test_own_data_correct_the_bias_of_a_minibatch(start):
    params, data = start
    batch = jax.tree.map(lambda leaf: leaf[:4], data)
    monitor = curvature.CurvatureMonitor(_loss, every=1, data=data, batch_size=5)
    monitor(0, params, batch)
    dataset = monitor.dataset()
    expected = np.linalg.eigvalsh(_matrix(_flat(params), data))
    np.testing.assert_allclose(dataset.minimum.values.ravel(), expected[:1], rtol=1e-4)
    assert int(dataset.batches[0]) == 5 and "biased" not in dataset.attrs["note"]
    parts = [jax.tree.map(lambda leaf, i=i: leaf[i : i + 6], data) for i in range(0, 24, 6)]
    bias = curvature.minibatch_bias(_loss, params, parts)
    assert bias.batches.values.tolist() == [1, 2, 4]
    np.testing.assert_allclose(bias.minimum[-1], expected[0], rtol=1e-4)


def test_a_diverged_loss_is_recorded_as_such():
    monitor = curvature.CurvatureMonitor(lambda w: jnp.sum(jnp.log(w)), every=1)
    monitor(0, -jnp.ones(2))
    assert np.isnan(monitor.dataset().loss.values).all()
    assert np.isnan(monitor.last["loss"]) and np.isnan(monitor.last["ratio_at_least"])


def test_bad_use_is_refused(start):
    with pytest.raises(ValueError, match="at least 1"):
        curvature.CurvatureMonitor(_loss, every=0)
    with pytest.raises(ValueError, match="no record yet"):
        curvature.CurvatureMonitor(_loss).dataset()
    with pytest.raises(ValueError, match="block of all parameters"):
        curvature.CurvatureMonitor(_loss, blocks={"all parameters": "w"})
    params, data = start
    rng = np.random.default_rng(0)
    monitor = curvature.CurvatureMonitor(lambda p, b: _loss(p, b) * rng.random(), every=1)
    with pytest.raises(ValueError, match="another function at each call"):
        monitor(0, params, data)
    with pytest.raises(ValueError, match="two batches"):
        curvature.minibatch_bias(_loss, params, data)


def test_a_monitor_measures_what_it_is_told_and_goes_on_from_its_file(start, tmp_path):
    params, data = start
    file, logged = tmp_path / "records.jsonl", []
    made = lambda: curvature.CurvatureMonitor(
        _loss, every=5, file=file, logger=logged.append, learning_rate=lambda step: 0.1 + step,
        measure=("extremes", "trace", "top2", "gradient_norm", size_of),
    )  # fmt: skip

    def size_of(H):
        return H.size

    first = made()
    for step in (0, 5, 10, 5):
        assert first(step, params, data)
    assert first.last["step"] == 5 and first.dataset().step.values.tolist() == [0, 5, 10]
    again = made()
    assert again(15, params, data) and again.dataset().step.values.tolist() == [0, 5, 10, 15]
    found = again.dataset().isel(step=-1)
    matrix = np.asarray(_matrix(_flat(params), data))
    values = np.linalg.eigvalsh(matrix)
    np.testing.assert_allclose([found.top_1, found.top_2], values[::-1][:2], rtol=1e-4)
    assert abs(found.trace - np.trace(matrix)) <= 4 * found.trace_error + 1e-4
    slope = jax.flatten_util.ravel_pytree(_slope(params, data))[0]
    assert float(found.gradient_norm) == pytest.approx(float(jnp.linalg.norm(slope)), rel=1e-5)
    assert float(found.size_of) == 25 and float(found.two_over_learning_rate) == 2 / 15.1
    assert [record["step"] for record in logged] == [0, 5, 10, 5, 15]
    pytest.importorskip("matplotlib").use("agg")
    lines = again.plot().axes[1].lines
    assert any(line.get_label() == "2 / learning rate" for line in lines)
    with pytest.raises(ValueError, match="measure='tracee' is unknown"):
        curvature.CurvatureMonitor(_loss, measure=("tracee",))
    file.write_text("nonsense")
    with pytest.raises(ValueError, match=r"line=1 of .* is no JSON object"):
        made()


@pytest.mark.parametrize("name", ["log", "log_metrics", "add_scalar", "info"])
def test_any_logger_gets_the_records(name, start):
    calls = []
    logger = type("Logger", (), {name: lambda self, *given, **named: calls.append((given, named))})
    curvature.CurvatureMonitor(_loss, logger=logger())(0, *start)
    assert len(calls) == (8 if name == "add_scalar" else 1)
    with pytest.raises(ValueError, match="logger has type=int"):
        curvature.CurvatureMonitor(_loss, logger=3)(0, *start)
