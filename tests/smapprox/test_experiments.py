"""The experiments at their smallest, and the messages a user of `machine` may meet."""

import time
from dataclasses import asdict
from threading import Event

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.smapprox.experiments import learn, machine, margins
from jaxbounds.smapprox.experiments.at_once import at_once
from jaxbounds.smapprox.machine_formats import from_description
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import simulate


@pytest.fixture(scope="module")
def shown():
    """One run, its network in words."""
    return machine.run(machine.Machine(input="ab", show=True), jax.random.key(0))


def test_machine_beside_the_simulator(shown, tmp_path):
    dataset = shown
    assert all(claim.reproduced for claim in machine.claims(dataset))
    assert dataset.attrs["T"] == 5
    assert "differ" not in dataset.attrs["text"]
    picture = machine.figure(dataset)
    picture.savefig(tmp_path / "machine.png")
    _reads_as_simulated(picture, "ab", T=5)
    listed = dataset.attrs["text"]
    assert "scr4[left] = was the cell visited before?" in listed and "za[take,a] = relu(" in listed
    wrong = dataset.assign(symbol=(("source", "step"), np.arange(12).reshape(2, 6)))
    assert not machine.claims(wrong)[0].reproduced


def _reads_as_simulated(picture, word, T):
    """Where the head is, the figure's cell holds the symbol that the simulator reads there."""
    tape, past, look_up = picture.axes
    truth = simulate(LIBRARY["equal_blocks"]().machine, word, T)
    alphabet = LIBRARY["equal_blocks"]().machine.alphabet
    texts = {tuple(text.get_position()): text.get_text() for text in tape.texts}
    boxes = [(box.get_x() + 0.5, box.get_y() + 0.5) for box in tape.patches]
    assert [texts[box] for box in boxes] == [alphabet[a] for a in truth.symbols]
    assert [row for _, row in boxes] == list(range(T + 1))
    # Every step reads once: what was written before, or the input.
    dots = [line.get_ydata() for axis in (past, look_up) for line in axis.lines]
    assert sorted(np.concatenate(dots).tolist()) == list(range(T + 1))


def test_a_long_run_is_drawn_in_colours(shown):
    long = shown.isel(step=np.arange(70) % 6)
    tape = machine.figure(long.assign_coords(step=np.arange(70))).axes[0]
    assert not tape.texts and tape.get_legend() is not None


def test_a_users_machine(key, tmp_path):
    file = tmp_path / "flip.yaml"
    file.write_text("blank: '_'\nstart state: go\ntable:\n  go:\n    0: {R}\n    _: {R: yes}\n")
    dataset = machine.run(machine.Machine(machine=str(file), input="00"), key)
    assert all(claim.reproduced for claim in machine.claims(dataset))


@pytest.mark.parametrize(
    "config, message",
    [
        (machine.Machine(machine="nobody"), "neither a file nor one of parity"),
        (machine.Machine(input="abc"), "outside the input alphabet"),
        (machine.Machine(T=4), "not halted"),
        (machine.Machine(T=-3), "T=-3, expected at least 1"),
        (machine.Machine(correction="seconds"), "correction='seconds' is unknown"),
        (machine.Machine(machine="increment", input="1", tape="one_way"), "a one-way tape begins"),
    ],
)
def test_messages(config, message, key):
    with pytest.raises(ValueError, match=message):
        machine.run(config, key)


def test_a_machine_that_is_not_total(key, tmp_path):
    file = tmp_path / "partial.yaml"
    file.write_text("blank: '_'\nstart state: go\ntable:\n  go:\n    0: {R: yes}\n")
    with pytest.raises(ValueError, match=r"not total.*`--missing reject` on the command line"):
        machine.run(machine.Machine(machine=str(file), input="0"), key)
    compiled = machine.build(machine.Machine(machine=str(file), input="0", missing="reject"))
    assert simulate(compiled.machine, "", 2).verdict == "reject"


def test_calls_at_once_keep_the_callers_precision():
    for wide in (False, True):
        with enable_x64(wide), at_once() as submit:
            found = submit(lambda: jnp.ones(()).dtype).result()
        assert found == (np.float64 if wide else np.float32)


def test_an_error_of_one_call_ends_the_others():
    ended = Event()

    def forever():
        try:
            while True:
                time.sleep(0.001)
        finally:
            ended.set()

    with pytest.raises(ZeroDivisionError), at_once() as submit:
        submit(forever)
        submit(lambda: 1 // 0).result()
    assert ended.wait(10)


@pytest.mark.slow
def test_margins_of_chains_and_of_one_machine(key):
    dataset = margins.run(margins.EXPERIMENT.presets["quick"], key)
    lower, upper = dataset["depth_lower"].values, dataset["depth_upper"].values
    assert (lower <= upper[1]).all() and np.ptp(lower) < 1e-12
    assert (np.diff(upper[1]) <= 1e-12).all()  # a perturbation at the end is carried over
    assert (dataset["time_lower"].values <= dataset["time_upper"].values[1]).all()
    with pytest.raises(ValueError, match="expected increasing"):
        margins.Margins(depths=(5, 3))
    with pytest.raises(ValueError, match="one time for each word"):
        margins.Margins(times=(5,))


def test_margin_claims_tell_decay_from_none():
    base = margins.Margins()
    depth, T = np.array(base.depths, float), np.array(base.times, float)
    build = lambda chain, machine: margins.xr.Dataset(
        {
            "depth_upper": (("correction", "depth"), [chain, 0 * depth + 0.08]),
            "depth_lower": (("depth",), 0 * depth + 0.02),
            "time_upper": (("correction", "T"), [machine, 0 * T + 0.08]),
            "time_lower": (("T",), 0 * T + 1e-3),
        },
        coords={"correction": list(margins.KINDS), "depth": depth, "T": T},
        attrs={"config": asdict(base)},
    )
    decaying = margins.claims(build(0.3 / np.sqrt(depth), np.exp(-T)))
    flat = margins.claims(build(0 * depth + 0.3, 0 * T + 0.1))
    assert all(claim.reproduced for claim in decaying)
    assert [claim.reproduced for claim in flat] == [False, True, True, False, True, True]
    assert margins.figure(build(depth, T)) is not None
    assert jax.config.jax_enable_x64 is False


@pytest.mark.slow
def test_learning_at_its_smallest(key, tmp_path):
    dataset = learn.run(learn.EXPERIMENT.presets["quick"], key)
    assert dataset["error"].shape == (1, 2, 2) and dataset["noise_error"].shape == (2, 1, 1, 2)
    # A certified network cannot err at such a small noise; the uncorrected one at 3 does.
    assert (dataset["noise_error"] == 0).all()
    assert (dataset["bare_noise_error"].sel(stage="before") > 0).any()
    assert learn.claims(dataset)
    learn.figure(dataset).savefig(tmp_path / "learn.png")


def test_learning_claims_tell_success_from_failure():
    n = np.array([4, 16, 64])
    build = lambda error, after, seeds=4: margins.xr.Dataset(
        {
            "error": (("machine", "n", "seed"), error[None, :, None] * np.ones((1, 3, seeds))),
            "straight_through_error": (("seed",), np.full(seeds, 0.5)),
            "noise_error": (
                ("stage", "radius", "weight_n", "seed"),
                after * np.ones((1, 1, 1, seeds)),
            ),
            "bare_noise_error": (
                ("stage", "bare_radius", "weight_n", "seed"),
                after * np.ones((1, 1, 1, seeds)),
            ),
            "calculator": (("machine",), np.array([1e15])),
        },
        coords={
            "machine": ["parity"],
            "n": n,
            "radius": [4.0],
            "bare_radius": [0.5],
            "stage": ["before", "after"],
        },
        attrs={"config": asdict(learn.Learn())},
    )
    stages = lambda before, after: np.array([before, after]).reshape(2, 1, 1, 1)
    learned = learn.claims(build(1.0 / n, stages(0.4, 0.4)))
    flat = learn.claims(build(np.full(3, 0.5), stages(0.4, 0.1)))
    assert [c.reproduced for c in learned] == [True, True, True, True, False, True, True]
    assert [c.reproduced for c in flat] == [False, False, True, False, False, True, False]
    few = learn.claims(build(1.0 / n, stages(0.4, 0.4), seeds=2))
    unbroken = learn.claims(build(1.0 / n, stages(0.0, 0.0)))
    assert [c.reproduced for c in few] == [None, None, True, None, False, True, True]
    assert unbroken[-1].reproduced is None and "larger norms" in unbroken[-1].number


@pytest.mark.parametrize(
    "change, message",
    [
        ({"machines": ("nobody",)}, "machines=.* are unknown"),
        ({"machines": ("equal_blocks",)}, "or its move depends"),
        ({"samples": (8, 4)}, "samples=.*positive increasing"),
    ],
)
def test_learning_messages(change, message):
    with pytest.raises(ValueError, match=message):
        learn.Learn(**change)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"table": None}, "from each state to a row"),
        ({"table": {"go": ["R"]}}, "from each state to a row"),
        ({"accept": 5}, "'accept'=5, expected a list"),
        ({"input alphabet": "0"}, "'input alphabet'='0', expected a list"),
    ],
)
def test_descriptions_of_the_wrong_shape(change, message):
    row = {"0": {"R": "go"}, "_": {"R": "yes"}}
    with pytest.raises(ValueError, match=message):
        from_description({"blank": "_", "start state": "go", "table": {"go": row}} | change)
