"""How many lanes go together, where lanes are, and what is moved: counted by hand."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from jaxbounds.experiments.sweeps.compaction import compaction
from jaxbounds.experiments.sweeps.grouping import LIMIT, available, fitting, needed
from jaxbounds.experiments.sweeps.groups import Groups, largest
from jaxbounds.experiments.sweeps.work import like, places

CPU = SimpleNamespace(platform="cpu", memory_stats=lambda: {"bytes_limit": 1})
GPU = SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": 1000})


def test_four_fifths_of_what_an_accelerator_has():
    assert available(GPU) == 800 and available(CPU) == LIMIT == 8 * 1024**3
    silent = SimpleNamespace(platform="gpu", memory_stats=lambda: None)
    assert available(silent) == LIMIT


def test_bytes_of_a_program():
    size = SimpleNamespace(argument_size_in_bytes=100, output_size_in_bytes=30,
                           alias_size_in_bytes=20, temp_size_in_bytes=7)  # fmt: skip
    assert needed(SimpleNamespace(memory_analysis=lambda: size)) == 117


@pytest.mark.parametrize(
    "count, limit, per_lane, group",
    [
        (1000, 1e9, 1, 256), (255, 1e9, 1, 128), (1, 1e9, 1, 1), (2, 1e9, 1, 2),
        (64, 64, 1, 64), (64, 63, 1, 32), (64, 33, 1, 32), (64, 31, 1, 16), (64, 0.5, 1, 1),
        (8, 3, 1, 2),
    ],
)  # fmt: skip
def test_the_largest_power_of_two_that_fits(count, limit, per_lane, group):
    assert fitting(count, limit, GPU, lambda lanes: lanes * per_lane) == group
    assert (
        fitting(count, limit, CPU, lambda lanes: 1 // 0)
        == {1000: 125, 255: 32, 64: 8, 1: 4, 2: 4, 8: 4}[count]
    )  # an eighth; nothing is asked there


def test_at_least_one_halving():
    # Memory that falls less than the lanes do: asked again at each half.
    asked = []
    need = lambda lanes: asked.append(lanes) or 1000 + lanes
    assert fitting(16, 1001.5, GPU, need) == 1 and asked == [16, 8, 4, 2]


@pytest.mark.parametrize(
    "own, group, place, lane",
    [
        (range(0, 5), 2, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 4]),
        (range(3, 8), 2, [1, 0, 3, 2, 5], [1, 0, 3, 2, 4, 4]),
        (range(4, 7), 4, [0, 1, 2], [0, 1, 2, 2]),
        (range(1, 4), 4, [1, 2, 3], [2, 0, 1, 2]),
        (range(0, 1), 1, [0], [0]),
    ],
)  # fmt: skip
def test_a_lane_keeps_its_slot_within_a_group(own, group, place, lane):
    found = places(own, group)
    assert found[0].tolist() == place and found[1].tolist() == lane
    assert all((own.start + i) % group == p % group for i, p in enumerate(place))


def test_the_shapes_of_a_group():
    found = like({"a": np.zeros((9, 2, 3), np.float32), "n": np.zeros(9, int)}, 4)
    assert found["a"].shape == (4, 2, 3) and found["a"].dtype == np.float32
    assert found["n"].shape == (4,)


@pytest.mark.devices(3)
def test_groups_are_dealt_over_devices_in_turn():
    devices = jax.devices()[:3]
    groups = Groups(7, 2, devices)
    assert [groups.device(i) for i in range(4)] == [*devices, devices[0]]
    assert groups.mine == list(range(7))
    assert groups.rounds == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]  # 7 and 8 are none
    numbers = groups.numbers(lambda i: 10 * i)
    assert [row.tolist() for row in numbers] == [[0, 10, 20], [30, 40, 50], [60, 0, 0]]
    # A device without a group is left out.
    assert Groups(2, 2, devices).local == tuple(devices[:2])


@pytest.mark.devices(2)
def test_lanes_go_to_devices_and_come_back():
    groups = Groups(2, 2, jax.devices()[:2])
    keys = jax.random.split(jax.random.key(0), 3)
    tree = {"x": np.arange(6.0).reshape(3, 2), "key": keys}
    parts = groups.put(tree, np.array([2, 0, 1, 1]))
    (part,) = parts
    assert part["x"].tolist() == [[4, 5], [0, 1], [2, 3], [2, 3]]
    shards = {shard.device: shard.data.tolist() for shard in part["x"].addressable_shards}
    assert shards == {jax.devices()[0]: [[4, 5], [0, 1]], jax.devices()[1]: [[2, 3], [2, 3]]}
    data = np.asarray(jax.random.key_data(keys))
    assert jax.random.key_data(part["key"]).tolist() == data[[2, 0, 1, 1]].tolist()
    back = groups.gather(parts, None)
    assert back["x"].tolist() == [[4, 5], [0, 1], [2, 3], [2, 3]]
    assert back["key"].tolist() == data[[2, 0, 1, 1]].tolist()


def test_of_one_process_each_number_is_the_largest():
    assert largest(1.5, 2.5) == [1.5, 2.5]


@pytest.mark.parametrize(
    "over, group, devices, order",
    [
        # Three groups of two with one lane left in each, in one slot: three groups stay.
        ([0, 1, 0, 1, 0, 1], 2, 1, None),
        # In other slots: they fit into two groups.
        ([0, 1, 1, 0, 0, 1], 2, 1, [0, 3, 4, 1, 2, 5]),
        ([1, 1, 0, 0], 2, 1, None),
        ([1, 1, 0, 0, 1, 1], 2, 1, None),
        # Over two devices each has one group with work already, unless both are on one.
        ([0, 1, 1, 1, 1, 0, 1, 1], 2, 2, [0, 5, 2, 1, 4, 3, 6, 7]),
        ([0, 1, 1, 0, 1, 1, 1, 1], 2, 2, None),
        ([0, 0, 0, 0], 1, 4, None),
        ([0, 1, 0, 1], 1, 2, [0, 2, 1, 3]),
        ([0, 1, 1, 0], 1, 2, None),
    ],
)
def test_unfinished_lanes_are_moved_where_a_device_has_less_to_do(over, group, devices, order):
    found = compaction(np.array(over, bool), group, devices)
    assert (None if found is None else found.tolist()) == order


def test_a_process_with_fewer_groups_sends_as_many_as_the_others(monkeypatch):
    # Groups 0 and 2 are of the other process, group 1 is here: a table of two, the second empty.
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    groups = Groups(3, 2, [SimpleNamespace(process_index=0), SimpleNamespace(process_index=1)])
    assert groups.mine == [1]
    sent = []

    def gathered(table):
        sent.append(table["x"].tolist())
        return {"x": np.stack([np.array([[0.0, 1.0], [4.0, 5.0]]), table["x"]])}

    monkeypatch.setattr("jax.experimental.multihost_utils.process_allgather", gathered)
    found = groups.gather(
        [{"x": np.float32([2, 3])}], {"x": jax.ShapeDtypeStruct((2,), np.float32)}
    )
    assert sent == [[[2.0, 3.0], [0.0, 0.0]]] and found["x"].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_largest_over_processes(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    everyone = lambda own: np.stack([own, np.array([9.0, 0.5])])
    monkeypatch.setattr("jax.experimental.multihost_utils.process_allgather", everyone)
    assert largest(1.5, 2.5) == [9.0, 2.5]
