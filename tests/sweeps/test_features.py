"""Shared data, early stopping, loggers, labelled results, memory; on one device as on several."""

import csv
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.experiments.sweeps import compiled, lanes_of, reporting, sweep
from jaxbounds.experiments.sweeps.groups import Groups
from jaxbounds.ground.files import locate

pytestmark = pytest.mark.usefixtures("kept_programs")
LANES = {"a": np.arange(1, 6, dtype=np.float32)}
COUNT = (lambda lane: 0 * lane["a"], lambda lane, state: state + lane["a"])


def measure(lane, state):
    return {"sum": state, "both": jnp.stack([state, -state])}


def count(**more):
    return sweep(*COUNT, measure, LANES, 6, every=2, **more)


def test_shared_data_are_an_argument_and_no_constant(tmp_path):
    data = {"x": np.arange(3, dtype=np.float32), "n": 2.0}
    given = (
        lambda lane, shared: lane["a"] * shared["x"],
        lambda lane, state, shared: state + lane["a"] * shared["x"] * shared["n"],
        lambda lane, state, shared: {"s": jnp.sum(state) + shared["n"]},
    )
    compiled.forget()
    found = sweep(*given, LANES, 4, shared=data, folder=tmp_path)
    expected = np.outer(LANES["a"], 3 * (1 + 2 * np.arange(1, 5))) + 2
    np.testing.assert_allclose(found.metrics["s"], expected)
    programs = dict(compiled._programs)
    other = sweep(*given, LANES, 4, shared=data | {"n": 4.0})
    np.testing.assert_allclose(other.metrics["s"][:, 0], 3 * LANES["a"] * 5 + 4)
    assert dict(compiled._programs) == programs  # other data, the same program
    with pytest.raises(ValueError, match=r"shared\[0\]\['n'\], values"):
        sweep(*given, LANES, 4, shared=data | {"n": 4.0}, folder=tmp_path, resume=True)
    alone = sweep(*given, LANES, 4, shared=data, devices=jax.devices()[:1])
    assert alone.metrics["s"].tobytes() == found.metrics["s"].tobytes()


@pytest.mark.parametrize(
    "devices", [pytest.param(count, marks=pytest.mark.devices(count)) for count in (1, 3, 4)]
)
def test_a_lane_stops_when_its_metric_is_enough(devices, tmp_path):
    more = {"enough": lambda found: found["sum"] >= 8, "devices": jax.devices()[:devices]}
    found = count(**more)
    # Records at 2, 4, 6 steps: lane a stands at 2a, 4a, 6a until it reaches 8.
    expected = [[2, 4, 6], [4, 8, 8], [6, 12, 12], [8, 8, 8], [10, 10, 10]]
    assert found.metrics["sum"].tolist() == expected
    assert found.state.tolist() == [6, 8, 12, 8, 10]
    assert found.stopped.tolist() == [-1, 4, 4, 2, 2] and set(found.metrics) == {"sum", "both"}
    kept = count(**more, folder=tmp_path, chunk=2)
    assert kept.metrics["sum"].tolist() == expected and kept.stopped.tolist() == [-1, 4, 4, 2, 2]
    assert count(**more, folder=tmp_path, resume=True).stopped.tolist() == [-1, 4, 4, 2, 2]


def test_a_sweep_ends_when_all_lanes_have_enough():
    found = sweep(*COUNT, measure, LANES, 1000, chunk=10, enough=lambda found: found["sum"] > 30)
    assert found.steps[-1] < 60 and found.stopped.min() > 0
    assert count().stopped is None
    both = count(enough=lambda found: found["sum"] > 1e9, finished=lambda state: state >= 4)
    assert both.stopped.tolist() == [4, 2, 2, 2, 2]


def test_a_logger_sees_each_record_once(tmp_path, monkeypatch):
    seen = []
    log = lambda step, metrics: seen.append((step, metrics["sum"].tolist()))
    count(on_record=log)
    assert seen == [(s, (s * LANES["a"]).tolist()) for s in (2, 4, 6)]
    seen.clear()
    count(on_record=log, folder=tmp_path, chunk=2, enough=lambda found: found["sum"] > 1e9)
    assert [step for step, _ in seen] == [2, 4, 6]
    seen.clear()
    sweep(*COUNT, measure, LANES, 8, every=2, folder=tmp_path, resume=True, on_record=log,
          enough=lambda found: found["sum"] > 1e9)  # fmt: skip
    assert seen == [(8, (8 * LANES["a"]).tolist())]


def test_a_csv_file_by_its_name(tmp_path):
    file = tmp_path / "log" / "records.csv"
    for steps, more in ((4, {}), (6, {"resume": True})):  # a resumed sweep writes all of it
        sweep(*COUNT, measure, LANES, steps, every=2, folder=tmp_path, on_record=file, **more)
    with file.open() as text:
        rows = list(csv.reader(text))
    assert rows[0] == ["step", "lane", "both[0]", "both[1]", "sum"]
    assert rows[1:] == [
        [str(s), str(i), str(s * a), str(-s * a), str(s * a)]
        for s in (2, 4, 6)
        for i, a in enumerate(LANES["a"].tolist())
    ]
    file.write_text("notes of the user")
    count(on_record=str(file))
    kept = [path.read_text() for path in file.parent.glob("*.aside-*.csv")]
    assert kept == ["notes of the user"] and file.read_text().startswith("step,lane")


def test_labelled_data():
    keys = jax.random.split(jax.random.key(0), 2)
    lanes, lengths = lanes_of(keys, a=np.float32([1, 2, 3]), b=np.float32([5, 6]))
    found = sweep(*COUNT, measure, lanes, 6, every=2, enough=lambda m: m["sum"] > 10)
    data = found.to_xarray(lanes, lengths)
    assert data["sum"].dims == ("a", "b", "seed", "step")
    assert data["both"].dims == ("a", "b", "seed", "step", "both_0")
    assert data.sel(a=3, b=5, seed=1, step=4)["sum"].item() == 12
    assert data["stopped"].sel(a=3).values.tolist() == [[4, 4], [4, 4]]
    flat = found.to_xarray(lanes)
    assert flat["sum"].dims == ("lane", "step") and flat["a"].dims == ("lane",)
    assert found.to_xarray()["diverged"].values.tolist() == [-1] * 12
    with pytest.raises(ValueError, match="make 5 lanes"):
        found.to_xarray(lanes, {"a": 5})


def test_special_types_are_labelled_as_floats():
    half = lambda lane, state: {"x": state.astype(jnp.bfloat16)}
    data = sweep(*COUNT, half, LANES, 2).to_xarray()
    assert data["x"].dtype == np.float32 and data["x"].values[1].tolist() == [2, 4]


def test_memory_is_known_before_anything_is_allocated(monkeypatch):
    placed = []
    monkeypatch.setattr(Groups, "put", lambda self, *given: placed.append(1))
    wide = (
        lambda lane: lane["a"] + jnp.zeros(10**6, jnp.float32),
        lambda lane, state: state * 0.5,
        lambda lane, state: {"sum": jnp.sum(state)},
    )
    with pytest.raises(ValueError, match="on a device, needs"):
        sweep(*wide, LANES, 4, memory_limit=2**20)
    assert not placed


def test_the_memory_is_said_where_something_is_shown(monkeypatch):
    import importlib

    said = []
    monkeypatch.setattr(
        reporting, "_in_lines", lambda *given: lambda done, words: said.append(words)
    )
    importlib.import_module("jaxbounds.experiments.sweeps.sweep")
    count(show="sum")
    assert said[0].startswith("a device needs ") and said[1].startswith("mean sum")


def test_padding_ends_at_the_next_multiple_of_the_devices():
    # Groups of four; a group that is none has no steps to do.
    for lanes, devices, places in ((12, 4, 12), (12, 3, 12), (12, 2, 16), (12, 1, 12), (29, 4, 32)):
        every = [SimpleNamespace(process_index=0) for _ in range(devices)]
        groups = Groups(-(-lanes // 4), 4, every)
        assert sum(map(len, groups.rounds)) * 4 == places


def test_an_address_of_google_s_needs_the_extra(monkeypatch):
    pytest.importorskip("upath", reason="the extra `storage` is not installed")
    # Without a token gcsfs would ask the network for credentials, several times.
    monkeypatch.setitem(pytest.importorskip("fsspec").config.conf, "gs", {"token": "anon"})
    try:
        import gcsfs  # noqa: F401
    except ImportError:
        with pytest.raises(ValueError, match=r"jaxbounds\[storage\]"):
            locate("gs://bucket/name")
    else:
        assert str(locate("gs://bucket/name")).startswith("gs://bucket")


def test_the_example_of_the_guide(tmp_path, monkeypatch):
    import re

    from jaxbounds.cli.guide import topic_text

    (example,) = re.findall(r"```python\n(.*?)```", topic_text("sweeps"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    found = {}
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        exec(example, found)
    table = found["table"]
    assert table["loss"].dims == ("rate", "seed", "step")
    assert (table["diverged"].sel(rate=10) > 0).all() and (table["stopped"].sel(rate=0.1) > 0).all()
    assert (table["diverged"].sel(rate=0.1) == -1).all()
    stopped = table["w"].sel(rate=0.1).isel(step=-1)
    assert np.abs(stopped.values - np.arange(5.0)).max() < 1e-2
    assert (tmp_path / "results/toy/sweep.json").is_file()
    lines = (tmp_path / "results/toy.csv").read_text().splitlines()
    assert lines[0].split(",")[:3] == ["step", "lane", "loss"]
    assert len(lines) == 1 + 9 * len(table["step"])
