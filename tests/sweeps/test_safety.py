"""A sweep loses no file and no lane, and goes on as the sweep that it was, or says why not."""

import inspect
import threading
import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxbounds.experiments.sweeps import Checkpoints, compiled, lanes_of, records_in, sweep
from jaxbounds.experiments.sweeps.checkpoint import leaves_of
from jaxbounds.experiments.sweeps.swept import swept_of
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.occupied import LOCK

pytestmark = pytest.mark.usefixtures("kept_programs")
SCALE, OTHER = np.float32([1, 2, 3]), np.float32([1, 2, 4])


def start(lane, *shared):
    return {"w": lane["rate"] * jnp.arange(3.0), "key": lane["key"]}


def step(lane, state, *shared):
    key, noise = jax.random.split(state["key"])
    return {"w": state["w"] - lane["rate"] * jax.random.normal(noise, (3,)) * SCALE, "key": key}


def other_step(lane, state):
    return {"w": state["w"] + lane["rate"], "key": state["key"]}


def closes_over_more(lane, state):
    key, noise = jax.random.split(state["key"])
    return {"w": state["w"] - lane["rate"] * jax.random.normal(noise, (3,)) * OTHER, "key": key}


def measure(lane, state, *shared):
    return {"loss": jnp.sum(state["w"] ** 2)}


def other_measure(lane, state):
    return {"loss": jnp.sum(state["w"])}


def other_start(lane):
    return {"w": lane["rate"] * jnp.ones(3), "key": lane["key"]}


def lanes(rate=0.1, seed=0, seeds=3):
    return lanes_of(jax.random.split(jax.random.key(seed), seeds), rate=np.float32([rate]))[0]


GIVEN = {"start": start, "step": step, "measure": measure, "lanes": lanes(), "steps": 8}


def run(folder=None, **changed):
    given = GIVEN | {"chunk": 4} | changed
    functions = [given.pop(name) for name in ("start", "step", "measure", "lanes", "steps")]
    return sweep(*functions, folder=folder, **given)


class Killed(Exception):
    """Stands for whatever ends a process."""


def cut(folder, monkeypatch, **changed):
    """A sweep of 8 steps that is killed after the checkpoint at step 4."""
    save = Checkpoints.save

    def dying(self, *arguments):
        save(self, *arguments)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Checkpoints, "save", dying)
        run(folder, **changed)


def same(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype and leaves_of([a])[0].tobytes() == leaves_of([b])[0].tobytes()


FOREIGN = ["my_dataset.npz", "precious.npz.bak", "chunk-1.npz", "state.npz.old", "notes.txt",
           "state.npy", "chunk-abcdefghi.npz", "deep/state.npz"]  # fmt: skip


def test_files_of_the_user_survive(tmp_path, monkeypatch):
    for name in FOREIGN:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    run(tmp_path)
    run(tmp_path)
    run(tmp_path, fresh=True)
    run(tmp_path, resume=True, steps=12)
    run(tmp_path, lanes=lanes(rate=0.5), fresh=True)
    cut(tmp_path, monkeypatch, fresh=True)
    run(tmp_path, resume=True)
    assert all((tmp_path / name).read_bytes() == name.encode() for name in FOREIGN)


@pytest.mark.parametrize("name", ["state.npz", "chunk-000000000.npz", "sweep.json"])
@pytest.mark.parametrize("how", [{}, {"resume": True}, {"fresh": True}])
def test_a_file_of_the_user_at_a_name_of_the_sweep_is_refused(name, how, tmp_path):
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(ValueError, match=rf"{name}.*no sweep wrote"):
        run(tmp_path, **how)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"mine"]


CHANGES = {
    "rate": ({"lanes": lanes(rate=0.5)}, r"lanes\['rate'\], values"),
    "seed": ({"lanes": lanes(seed=7)}, r"lanes\['key'\], values"),
    "count": ({"lanes": lanes(seeds=4)}, r"lanes\['key'\], type and shape"),
    "type": (
        {"lanes": {"key": lanes()["key"], "rate": np.ones((3, 1), np.float32)}},
        r"lanes\['rate'\], type and shape",
    ),
    "step": ({"step": other_step}, "step, the program"),
    "constant": ({"step": closes_over_more}, "step, values that it closes over"),
    "start": ({"start": other_start}, "start, the program"),
    "measure": ({"measure": other_measure}, "measure, the program"),
    "every": ({"every": 2}, "every"),
    "group": ({"group": 3}, "lanes in a group"),
    "finished": ({"finished": lambda state: state["w"][0] > 9}, "finished, the program"),
    "enough": ({"enough": lambda found: found["loss"] < 0}, "enough, the program"),
    "fingerprint": ({"fingerprint": "other"}, "fingerprint"),
    "shared": ({"shared": np.float32(2)}, r"shared.*, values"),
    "more lanes": ({"lanes": lanes() | {"more": np.zeros(3)}}, r"lanes\['more'\]"),
}
"""Changes of a sweep that make another sweep of it, with the words that name the difference."""
BEFORE = {"shared": {"shared": np.float32(1)}}
"""Arguments of the sweep before a change, where `GIVEN` lacks the argument that changes."""
IN_THE_IDENTITY = {name for change, _ in CHANGES.values() for name in change} | {"devices"}
"""Parameters of a sweep that numbers depend on; another kind of device has a test of its own."""
CHANGE_NO_NUMBER = {
    "steps", "chunk", "folder", "resume", "fresh", "memory_limit", "show", "on_record", "share",
}  # fmt: skip
"""Parameters of a sweep that a folder need not remember."""


def test_each_option_of_a_sweep_is_in_its_identity_or_changes_no_number():
    assert {*inspect.signature(sweep).parameters} == IN_THE_IDENTITY | CHANGE_NO_NUMBER
    assert not IN_THE_IDENTITY & CHANGE_NO_NUMBER


@pytest.mark.parametrize("name", CHANGES)
def test_a_resumption_with_a_difference_is_refused_and_named(name, tmp_path, monkeypatch):
    (change, words), first = CHANGES[name], BEFORE.get(name, {})
    cut(tmp_path, monkeypatch, **first)
    content = lambda: {p: p.read_bytes() for p in tmp_path.iterdir() if p.name != LOCK}
    before = content()
    for how in ({"resume": True}, {}):
        with pytest.raises(ValueError, match=words):
            run(tmp_path, **change, **how)
    assert content() == before
    reached, metrics = records_in(tmp_path)  # they stay readable
    assert reached == 4 and metrics["loss"].shape == (3, 4)
    same(run(tmp_path, resume=True, **first), run(**first))


def test_a_complete_sweep_does_not_give_its_numbers_to_other_lanes(tmp_path):
    run(tmp_path)
    with pytest.raises(ValueError, match="belongs to another run"):
        run(tmp_path, lanes=lanes(rate=0.5), resume=True)


@pytest.mark.parametrize("what", ["version", "device", "precision"])
def test_another_version_device_or_precision_is_another_run(what, tmp_path, monkeypatch):
    from jaxbounds.experiments.sweeps import identity

    cut(tmp_path, monkeypatch)
    names = {"version": ("versions", {"jaxbounds": "0"}), "precision": ("products_used", "high")}
    if what == "device":
        monkeypatch.setattr(identity, "versions", dict)
        text = (tmp_path / "sweep.json").read_text().replace('"cpu cpu"', '"gpu H100"')
        Marked(tmp_path).write("sweep.json", text)
    else:
        name, value = names[what]
        monkeypatch.setattr(identity, name, lambda: value)
    words = {"version": "jaxbounds", "device": "kind of device", "precision": "precision"}[what]
    with pytest.raises(ValueError, match=words):
        run(tmp_path, resume=True)


def test_an_unfinished_sweep_is_not_begun_anew_unless_asked(tmp_path, monkeypatch, capsys):
    cut(tmp_path, monkeypatch)
    kept = (tmp_path / "state.npz").read_bytes()
    with pytest.raises(ValueError, match="unfinished sweep, at step 4"):
        run(tmp_path)
    assert (tmp_path / "state.npz").read_bytes() == kept
    same(run(tmp_path, fresh=True), run())
    assert (tmp_path / "state.aside-1.npz").read_bytes() == kept
    assert "state.aside-1.npz" in capsys.readouterr().err
    with pytest.raises(ValueError, match="exclude each other"):
        run(tmp_path, fresh=True, resume=True)


def test_two_sweeps_at_once_in_one_folder(tmp_path):
    """An equal one waits; another one is refused, and disturbs nothing."""
    began, refused, others = threading.Event(), threading.Event(), []

    def slow(step, metrics):
        began.set()
        refused.wait(60)
        time.sleep(0.02)

    first = threading.Thread(target=lambda: others.append(run(tmp_path, on_record=slow)))
    first.start()
    began.wait(60)
    with pytest.raises(ValueError, match="another run uses the folder"):
        run(tmp_path, lanes=lanes(rate=0.5), fresh=True)
    refused.set()
    same(run(tmp_path, resume=True), run())
    first.join(60)
    same(others[0], run())


def test_what_was_cut_before_its_first_checkpoint_holds_nothing_to_lose(tmp_path, monkeypatch):
    def dying(self, *arguments):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Checkpoints, "save", dying)
        run(tmp_path)
    same(run(tmp_path, lanes=lanes(rate=0.5)), run(lanes=lanes(rate=0.5)))


def test_fewer_steps_than_stored_are_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(ValueError, match="holds a sweep of 8 steps, more than steps=4"):
        run(tmp_path, steps=4, resume=True)
    same(run(tmp_path, steps=12, resume=True), run(steps=12))


@pytest.mark.parametrize("damage", ["sweep.json", "state.npz", "chunk-000000000.npz"])
def test_damage_is_named_and_set_aside_when_asked(damage, tmp_path):
    run(tmp_path)
    (tmp_path / damage).write_bytes(b"{")
    with pytest.raises(ValueError, match=rf"{damage}.*fresh=True"):
        run(tmp_path, resume=True)
    same(run(tmp_path, fresh=True), run())


TYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "complex64", "bool",
         "int8", "uint8", "int16", "uint16", "int32", "uint32"]  # fmt: skip


@pytest.mark.default_cases("bfloat16", "float8_e5m2", "complex64", "bool", "uint8")
@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_stored_and_goes_on_bit_for_bit(name, tmp_path, monkeypatch):
    kind = jnp.dtype(name)

    def moved(lane, state):
        wide = jnp.real(state["x"]).astype(jnp.float32) * 1.25 + lane["rate"]
        return {"x": wide.astype(kind), "n": state["n"] + 1, "key": state["key"]}

    given = {
        "start": lambda lane: {"x": jnp.ones(3, kind), "n": jnp.int32(0), "key": lane["key"]},
        "step": moved, "measure": lambda lane, state: {"x": state["x"]},
    }  # fmt: skip
    whole = run(**given)
    cut(tmp_path, monkeypatch, **given)
    found = run(tmp_path, resume=True, **given)
    same(found, whole)
    assert found.state["x"].dtype == kind and found.metrics["x"].dtype == kind
    same(run(tmp_path, resume=True, **given), whole)
    assert records_in(tmp_path)[1]["x"].dtype == kind


@pytest.mark.slow_cases("int64", "complex128")
@pytest.mark.parametrize("name", ["float64", "int64", "complex128"])
def test_wide_types_too(name, tmp_path, monkeypatch, x64):
    test_every_type_is_stored_and_goes_on_bit_for_bit(name, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["int4", "uint4", "int2"])
def test_types_that_cannot_be_kept_are_refused_before_the_first_step(name, tmp_path):
    kind = jnp.dtype(name)
    with pytest.raises(ValueError, match=f"the state .* has type={name}"):
        run(tmp_path / "f", start=lambda lane: start(lane) | {"q": jnp.zeros(2, kind)},
            step=lambda lane, state: step(lane, state) | {"q": state["q"]})  # fmt: skip
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_keys_come_back_typed(impl, tmp_path, monkeypatch):
    own = {"rate": np.float32([0.1] * 2), "key": jax.random.split(jax.random.key(0, impl=impl), 2)}
    whole = run(lanes=own)
    assert whole.state["key"].dtype == own["key"].dtype
    assert jax.random.uniform(whole.state["key"][0]) >= 0
    cut(tmp_path, monkeypatch, lanes=own)
    same(run(tmp_path, lanes=own, resume=True), whole)
    same(run(tmp_path, lanes=own, resume=True), whole)


NAMES = ("bfloat16", "float16", "float32", "float64", "complex64", "complex128")
NAMES += ("float8_e5m2", "float8_e4m3fn")


@pytest.mark.parametrize("name", NAMES)
def test_divergence_is_seen_in_every_type(name):
    values = np.ones((3, 4, 2), getattr(ml_dtypes, name, name))
    values[1, 2, 1] = np.nan
    expected = [-1, 3, -1]
    if name not in ("float8_e4m3fn",):  # which has no infinity
        values[2, 1, 0] = np.inf
        expected[2] = 2
    found = swept_of({"w": np.zeros(3)}, [{"loss": values}], 1, 4)
    assert found.diverged.tolist() == expected


def refused(words, **changed):
    with pytest.raises(ValueError, match=words):
        run(**changed)


@pytest.mark.parametrize(
    "words, changed",
    [
        ("chunk=0", {"chunk": 0}), ("group=0", {"group": 0}), ("group=-2", {"group": -2}),
        ("chunk=2.5", {"chunk": 2.5}), ("positive multiple", {"every": 0}),
        ("show='acc', expected one of the metrics: loss", {"show": "acc"}),
        ("returns .*, expected a dict", {"measure": lambda lane, state: state["w"][0]}),
        ("returns type=list for 'a'", {"measure": lambda lane, state: {"a": [state["w"]]}}),
        ("returns the metric name=3", {"measure": lambda lane, state: {3: state["w"]}}),
        ("is list|is float without an axis", {"lanes": {"rate": [0.1, 0.2]}}),
        (": 3, .*: 2", {"lanes": {"key": lanes()["key"], "rate": np.ones(2, np.float32)}}),
        ("single old-style key", {"lanes": {"key": jax.random.PRNGKey(0)}}),
        ("lengths=none", {"lanes": {}}), (": 0", {"lanes": {"rate": np.zeros(0)}}),
        ("ends in .csv", {"on_record": "log.txt"}),
    ],
)  # fmt: skip
def test_what_makes_no_sense_gets_one_sentence(words, changed, monkeypatch):
    compiled.forget()
    refused(words, **changed)
    assert not compiled._programs  # before anything was compiled


@pytest.mark.parametrize(
    "words, keys, grid",
    [
        ("name='seed'", None, {"seed": [10, 20, 30]}), ("name='key'", None, {"key": [1]}),
        ("a single key", jax.random.key(0), {}), ("a single key", jax.random.PRNGKey(0), {}),
        ("a.shape=", None, {"a": 3}), ("a.shape=", None, {"a": [[1]]}),
        ("one axis", None, {"a": []}),
    ],
)  # fmt: skip
def test_no_lane_vanishes_from_a_product(words, keys, grid):
    keys = jax.random.split(jax.random.key(0), 4) if keys is None else keys
    with pytest.raises(ValueError, match=words):
        lanes_of(keys, **grid)


def test_a_metric_may_have_any_name(tmp_path):
    found = {"until": 1.0, "step": 2.0, "stamp": 3.0, "types": 4, "a": {"b": {"c": 5.0}}, "x/y": 6}
    given = {"measure": lambda lane, state: found}
    run(tmp_path, **given)
    swept = run(tmp_path, resume=True, **given)
    assert {name: values[0, 0].item() for name, values in swept.metrics.items()} == {
        "until": 1, "step": 2, "stamp": 3, "types": 4, "a/b/c": 5, "x/y": 6,
    }  # fmt: skip


def test_settings_that_forbid_what_a_sweep_does_itself():
    whole = run()
    with jax.disable_jit():
        same(run(), whole)
    with jax.transfer_guard("disallow"):
        same(run(), whole)


def test_a_second_call_compiles_nothing(monkeypatch):
    from jaxbounds.experiments.sweeps.groups import Groups

    compiled.forget()
    calls, usual = [], Groups.compiled

    def counted(self, *given, **more):
        calls.append(1)
        return usual(self, *given, **more)

    monkeypatch.setattr(Groups, "compiled", counted)
    first = run()
    assert len(calls) == 2  # what starts, and what goes on: for all devices
    same(run(), first)
    run(lanes=lanes(rate=0.7))
    assert len(calls) == 2
    other = run(step=closes_over_more)
    assert len(calls) == 4 and not np.array_equal(other.metrics["loss"], first.metrics["loss"])
