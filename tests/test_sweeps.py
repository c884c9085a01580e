"""Sweeps give the same bits however they are split, and survive being cut short."""

import functools
import importlib
from types import SimpleNamespace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.experiments.sweeps import Checkpoints, compiled, lanes_of, progress, reporting, sweep
from jaxbounds.experiments.sweeps.checkpoint import FORMAT
from jaxbounds.experiments.sweeps.compaction import compaction
from jaxbounds.experiments.sweeps.grouping import available, fitting
from jaxbounds.ground import stopping
from jaxbounds.ground.files import load_arrays

pytestmark = pytest.mark.usefixtures("kept_programs")


def _start(lane):
    return {"w": jax.random.normal(lane["key"], (5,)), "key": lane["key"]}


def _step(lane, state):
    """Noisy descent; rate > 2 diverges."""
    key, noise_key = jax.random.split(state["key"])
    noise = 0.01 * jax.random.normal(noise_key, (5,))
    return {"w": state["w"] - lane["rate"] * (state["w"] + noise), "key": key}


def _measure(lane, state):
    w = state["w"]
    return {"loss": jnp.sum(w**2) + jnp.sum(jnp.tanh(w)), "w": w}


def _lanes(seeds=5, rates=(0.1, 0.5)):
    keys = jax.random.split(jax.random.key(0), seeds)
    return lanes_of(keys, rate=np.asarray(rates, np.float32))[0]


_same = chex.assert_trees_all_equal


def test_a_sweep_is_the_loop_it_stands_for():
    lanes = _lanes(seeds=2)
    swept = sweep(_start, _step, _measure, lanes, 6, every=2, chunk=4)
    assert swept.steps.tolist() == [2, 4, 6] and swept.metrics["loss"].shape == (4, 3)
    for i in range(4):
        lane = jax.tree.map(lambda leaf, i=i: leaf[i], lanes)
        state, losses = _start(lane), []
        for _ in range(6):
            state = _step(lane, state)
            losses.append(float(_measure(lane, state)["loss"]))
        np.testing.assert_allclose(swept.metrics["loss"][i], losses[1::2], rtol=1e-5)


def test_the_product_of_seeds_and_grid_unflattens():
    keys = jax.random.split(jax.random.key(0), 3)
    lanes, lengths = lanes_of(keys, a=np.array([1, 2]), b=np.array([5, 6, 7, 8]))
    assert list(lengths) == ["a", "b", "seed"]
    assert lanes["a"].reshape(2, 4, 3)[1, 2, 0] == 2 and lanes["b"].reshape(2, 4, 3)[1, 2, 0] == 7


def _mixing(lane, state):
    """A product of matrices and a gradient: vmapped, they go through other routines."""
    w = state["w"][:, None] * jnp.ones((1, 5))
    slope = jax.grad(lambda v: jnp.sum(jnp.tanh(w @ w.T) @ v))(state["w"])
    return _step(lane, state | {"w": state["w"] - 0.1 * slope})


def _small(state):
    return jnp.sum(state["w"] ** 2) < 1.0


@functools.cache
def _mixed(group, finished, devices):
    return sweep(
        _start, _mixing, _measure, _lanes(seeds=4, rates=(0.01, 0.3)), 30,
        chunk=10, group=group, finished=finished, devices=jax.devices()[:devices],
    )  # fmt: skip


@pytest.mark.slow_cases("3-2", "1-3", "1-4", "3-4")
@pytest.mark.parametrize(
    "devices", [pytest.param(count, marks=pytest.mark.devices(count)) for count in (2, 3, 4)]
)
@pytest.mark.parametrize("group", [1, 3, 8])
def test_the_number_of_devices_does_not_change_the_bits(devices, group):
    """Also where lanes fill no group, groups no device, and some lanes end before others."""
    for ends in (None, _small):
        _same(_mixed(group, ends, 1), _mixed(group, ends, devices))


@pytest.fixture(scope="module")
def whole():
    """Eleven seeds on one device, in one chunk."""
    return sweep(_start, _step, _measure, _lanes(11), 12, devices=jax.devices()[:1])


@pytest.mark.parametrize("seeds", [1, 5, 11])
def test_devices_chunks_and_lane_counts_do_not_change_the_bits(seeds, whole):
    part = sweep(_start, _step, _measure, _lanes(seeds), 12, chunk=5)
    rows = np.arange(22).reshape(2, 11)[:, :seeds].ravel()
    _same(whole.metrics["loss"][rows], part.metrics["loss"])
    _same(jax.tree.map(lambda leaf: leaf[rows], whole.state), part.state)


@pytest.fixture(scope="module")
def undisturbed():
    """By the step that it takes."""
    steps = {"step": _step, "mixing": _mixing}
    return {name: sweep(_start, f, _measure, _lanes(), 20, chunk=5) for name, f in steps.items()}


class Killed(Exception):
    """Stands for whatever ends a process."""


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("after", [1, 2, 3])
def test_resuming_gives_the_undisturbed_bits(after, undisturbed, tmp_path, monkeypatch):
    write, calls = Checkpoints._write, []

    def dying(self, name, arrays):
        calls.append(name)
        if len(calls) == 2 * after:
            raise Killed
        write(self, name, arrays)

    options = {"chunk": 5, "folder": tmp_path, "fingerprint": "a"}
    monkeypatch.setattr(Checkpoints, "_write", dying)
    with pytest.raises(Killed):
        sweep(_start, _step, _measure, _lanes(), 20, **options)
    monkeypatch.setattr(Checkpoints, "_write", write)
    # Fewer devices than before.
    resumed = sweep(
        _start, _step, _measure, _lanes(), 20, resume=True, devices=jax.devices()[:2], **options
    )
    _same(undisturbed["step"], resumed)


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_what_was_asked_to_stop_is_kept_and_goes_on_elsewhere(
    seconds, undisturbed, tmp_path, monkeypatch
):
    """At the end of the second round, of one record or of a chunk."""
    module = importlib.import_module("jaxbounds.experiments.sweeps.sweep")
    monkeypatch.setattr(module, "ROUND", seconds)
    advance, rounds = module.Work.advance, []

    def asking(self, records):
        rounds.append(records)
        if len(rounds) == 2:
            assert stopping.ask()
        return advance(self, records)

    monkeypatch.setattr(module.Work, "advance", asking)
    options = {"chunk": 5, "folder": tmp_path, "fingerprint": "a"}
    run = lambda **more: sweep(_start, _mixing, _measure, _lanes(), 20, **options | more)
    with pytest.raises(KeyboardInterrupt, match="are saved"):
        run()
    assert not stopping.ask() and not stopping.asked()
    assert rounds[0] == 1 and sum(rounds) < 20
    done, _, chunks = Checkpoints(tmp_path, _mark(tmp_path)).load()
    assert done == sum(rounds) and len(chunks) == 1
    resumed = run(resume=True, devices=jax.devices()[:3])
    assert sum(rounds) == 20
    _same(undisturbed["mixing"], resumed)


def _mark(folder):
    return load_arrays(folder / "state.npz", form=FORMAT)[1]


def test_another_precision_is_another_run(tmp_path):
    options = {"folder": tmp_path, "chunk": 5, "fingerprint": "a"}
    with jax.default_matmul_precision("high"):
        sweep(_start, _step, _measure, _lanes(), 10, **options)
    with pytest.raises(ValueError, match="belongs to another run"):
        sweep(_start, _step, _measure, _lanes(), 10, resume=True, **options)


def test_foreign_and_damaged_checkpoints_are_refused(tmp_path):
    options = {"folder": tmp_path, "chunk": 5, "fingerprint": "a"}
    sweep(_start, _step, _measure, _lanes(), 10, **options)
    with pytest.raises(ValueError, match="belongs to another run"):
        sweep(
            _start, _step, _measure, _lanes(), 10, resume=True, **(options | {"fingerprint": "b"})
        )
    with pytest.raises(ValueError, match="belongs to another run"):
        sweep(_start, _step, _measure, _lanes(3), 10, resume=True, **options)
    chunk = sorted(tmp_path.glob("chunk-*.npz"))[0]
    content = chunk.read_bytes()
    for damage in (content[:-30], content[:80] + b"xxxx" + content[84:]):
        chunk.write_bytes(damage)
        with pytest.raises(ValueError, match="damaged"):
            sweep(_start, _step, _measure, _lanes(), 10, resume=True, **options)
    chunk.unlink()
    with pytest.raises(ValueError, match="lacks the metrics"):
        sweep(_start, _step, _measure, _lanes(), 10, resume=True, **options)
    _same(
        sweep(_start, _step, _measure, _lanes(), 10, **options),
        sweep(_start, _step, _measure, _lanes(), 10, chunk=5),
    )


def test_divergence_of_one_lane_is_recorded_and_stays_there():
    lanes = _lanes(seeds=1, rates=(0.1, 1e8, 0.2))
    swept = sweep(_start, _step, _measure, lanes, 40, every=4)
    assert swept.diverged[0] == swept.diverged[2] == -1
    assert swept.diverged[1] > 0 and swept.diverged[1] % 4 == 0
    assert np.all(np.isfinite(swept.metrics["loss"][[0, 2]]))


def test_one_entry_that_is_not_finite_makes_a_lane_diverge():
    # Lane i loses its entry i at step 5 (to NaN or infinity), the last lane none; records are taken
    # at 2, 4, 6, 8. The metric keeps its shape, so that no sum can spread what is lost.
    def step(lane, state):
        lost = (jnp.arange(4) == lane["which"]) & (state["done"] == 4)
        return {"w": jnp.where(lost, lane["by"], state["w"]), "done": state["done"] + 1}

    lanes = {"which": np.arange(5), "by": np.array([np.nan, np.inf, -np.inf, np.nan, np.nan])}
    lanes["by"] = lanes["by"].astype(np.float32)
    start = lambda lane: {"w": jnp.ones(4), "done": 0 * lane["which"]}
    measure = lambda lane, state: {"w": state["w"].reshape(2, 2), "done": state["done"]}
    swept = sweep(start, step, measure, lanes, 8, every=2)
    assert swept.steps.tolist() == [2, 4, 6, 8]
    assert np.sum(~np.isfinite(swept.metrics["w"]), axis=(1, 2, 3)).tolist() == [2, 2, 2, 2, 0]
    assert swept.diverged.tolist() == [6, 6, 6, 6, -1]


def test_finished_lanes_freeze_and_end_the_sweep():
    finished = lambda state: jnp.sum(state["w"] ** 2) < 0.05
    swept = sweep(_start, _step, _measure, _lanes(), 1000, chunk=10, finished=finished)
    assert swept.steps[-1] < 1000
    assert np.all(np.sum(swept.state["w"] ** 2, axis=1) < 0.05)


def test_moving_unfinished_lanes_together_changes_no_bit():
    # Lanes finish at very different times; with one chunk nothing is ever moved.
    lanes = _lanes(seeds=12, rates=(0.01, 0.3, 0.9))
    finished = lambda state: jnp.sum(state["w"] ** 2) < 0.05
    options = {"finished": finished, "group": 2}
    together = sweep(_start, _step, _measure, lanes, 400, chunk=10, **options)
    apart = sweep(_start, _step, _measure, lanes, 400, chunk=400, **options)
    _same(together.state, apart.state)
    seen = len(together.steps)
    _same(together.metrics["loss"], apart.metrics["loss"][:, :seen])


def test_compaction_keeps_slots_and_every_lane():
    over = np.random.default_rng(0).random(4 * 6 * 8) < 0.8
    order = compaction(over, 8, 4)
    assert np.array_equal(np.sort(order), np.arange(len(over)))
    assert np.array_equal(order % 8, np.arange(len(over)) % 8)
    busy = ~over[order].reshape(6, 4, 8).all(axis=2)  # group i is on device i modulo 4
    need = -(-np.max(np.sum(~over.reshape(-1, 8), axis=0)) // 4)
    assert busy.sum(axis=0).max() == need < 6
    assert compaction(over[order], 8, 4) is None and compaction(np.zeros(16, bool), 8, 2) is None


def test_memory_is_refused_before_running():
    with pytest.raises(ValueError, match="on a device, needs"):
        sweep(_start, _step, _measure, _lanes(), 10, memory_limit=10.0)
    with pytest.raises(ValueError, match="positive multiple"):
        sweep(_start, _step, _measure, _lanes(), 10, every=3)


def test_one_program_serves_all_rates():
    # The rate is an argument of the program, not a constant in it: as many traces for one as three.
    def traces(rates):
        count = []

        def step(lane, state):
            count.append(1)
            return _step(lane, state)

        sweep(_start, step, _measure, _lanes(rates=rates), 10, chunk=5)
        return len(count)

    compiled.forget()
    first = traces((0.1,))
    assert traces((0.1, 0.2, 0.3)) <= first <= 6


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(reporting, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with progress(3000, "steps") as report:
        for done, now[0] in ((1000, 30.0), (2000, 61.0), (2500, 90.0), (3000, 130.0)):
            report(done, f"loss {1 / done:.2g}")
    lines = [
        "2,000/3,000 steps  loss 0.0005; about 31 s left",
        "3,000/3,000 steps  loss 0.00033",
    ]
    assert capsys.readouterr().err.splitlines() == lines
    with progress(10, "steps", show=False) as report:
        report(10, "")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("lanes", "bytes_", "group"), [(1000, 1, 256), (100, 1, 64), (1000, 30, 32), (3, 1e9, 1)]
)
def test_groups_fill_an_accelerator_as_far_as_its_memory_goes(lanes, bytes_, group):
    asked = []

    def need(group):
        asked.append(group)
        return bytes_ * group

    assert fitting(lanes, 1000, SimpleNamespace(platform="gpu"), need) == group
    assert len(asked) <= 2  # each is a compilation
    on_cpu = {1000: 125, 100: 13, 3: 4}[lanes]  # an eighth, but four at least
    assert fitting(lanes, 1000, jax.devices("cpu")[0], need) == on_cpu


def test_the_memory_of_a_group_is_asked_of_the_program_that_will_run(monkeypatch):
    asked = {}

    def choose(count, limit, device, need):
        asked.update({group: need(group) for group in (1, 2, 4)}, count=count)
        return 2

    module = importlib.import_module("jaxbounds.experiments.sweeps.sweep")
    monkeypatch.setattr(module, "fitting", choose)
    compiled.forget()
    chosen = sweep(_start, _step, _measure, _lanes(), 20)
    _same(chosen.metrics, sweep(_start, _step, _measure, _lanes(), 20, group=2).metrics)
    assert asked.pop("count") == 10
    # A lane holds its key and rate, five weights, and for each step the loss and the weights.
    assert asked[4] - asked[2] >= 2 * (20 * 6 + 5) * 4 and asked[2] > asked[1] > 0
    asked.clear()
    again = sweep(_start, _step, _measure, _lanes(), 20)
    _same(again.metrics, chosen.metrics)
    assert not asked  # each time would be a compilation
    sweep(_start, _step, _measure, _lanes(), 20, memory_limit=1e8)
    assert asked
    compiled.forget()  # nobody else shall have the group of this test


def test_what_a_device_says_of_its_memory():
    stats = lambda: {"bytes_limit": 1000}
    assert available(SimpleNamespace(platform="gpu", memory_stats=stats)) == 800
    assert available(SimpleNamespace(platform="gpu", memory_stats=lambda: None)) == 8 * 2**30
