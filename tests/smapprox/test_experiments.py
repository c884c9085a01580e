"""The two experiments at their smallest, and the messages a user of `machine` may meet."""

import jax
import numpy as np
import pytest

from jaxbounds.smapprox.experiments import machine, margins
from jaxbounds.smapprox.machine_formats import from_description


def test_machine_beside_the_simulator(key, tmp_path):
    dataset = machine.run(machine.Machine(input="ab"), key)
    assert all(claim.reproduced for claim in machine.claims(dataset))
    assert dataset.attrs["T"] == 5
    assert "differ" not in dataset.attrs["text"]
    machine.figure(dataset).savefig(tmp_path / "machine.png")
    wrong = dataset.assign(symbol=(("source", "step"), np.arange(12).reshape(2, 6)))
    assert not machine.claims(wrong)[0].reproduced


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
        (machine.Machine(T=-3), "T must be at least 1"),
        (machine.Machine(correction="seconds"), "correction must be one of"),
        (machine.Machine(machine="increment", input="1", tape="one_way"), "promised one-way tape"),
    ],
)
def test_messages(config, message, key):
    with pytest.raises(ValueError, match=message):
        machine.run(config, key)


def test_a_machine_that_is_not_total(key, tmp_path):
    file = tmp_path / "partial.yaml"
    file.write_text("blank: '_'\nstart state: go\ntable:\n  go:\n    0: {R: yes}\n")
    with pytest.raises(ValueError, match="not total"):
        machine.run(machine.Machine(machine=str(file), input="0"), key)


@pytest.mark.slow
def test_margins_of_chains_and_of_one_machine(key):
    config = margins.Margins(depths=(2, 6), words=("",), times=(1,), bits=3, refinements=0)
    dataset = margins.run(config, key)
    lower, upper = dataset["depth_lower"].values, dataset["depth_upper"].values
    assert (lower <= upper[1]).all() and np.ptp(lower) < 1e-12
    assert (np.diff(upper[1]) <= 1e-12).all()  # a perturbation at the end is carried over
    assert (dataset["time_lower"].values <= dataset["time_upper"].values[1]).all()
    with pytest.raises(ValueError, match="must increase"):
        margins.Margins(depths=(5, 3))
    with pytest.raises(ValueError, match="as many times"):
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
    )
    decaying = margins.claims(build(0.3 / np.sqrt(depth), np.exp(-T)))
    flat = margins.claims(build(0 * depth + 0.3, 0 * T + 0.1))
    assert all(claim.reproduced for claim in decaying)
    assert [claim.reproduced for claim in flat] == [False, True, True, False, True, True]
    assert margins.figure(build(depth, T)) is not None
    assert jax.config.jax_enable_x64 is False


@pytest.mark.parametrize(
    "change, message",
    [
        ({"table": None}, "maps each state to a row"),
        ({"table": {"go": ["R"]}}, "maps each state to a row"),
        ({"accept": 5}, "'accept' of a machine is a list, got 5"),
        ({"input alphabet": "0"}, "'input alphabet' of a machine is a list"),
    ],
)
def test_descriptions_of_the_wrong_shape(change, message):
    row = {"0": {"R": "go"}, "_": {"R": "yes"}}
    with pytest.raises(ValueError, match=message):
        from_description({"blank": "_", "start state": "go", "table": {"go": row}} | change)
