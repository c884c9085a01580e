"""One machine on one input: compiled, run beside the simulator, with its attention maps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

from jaxbounds.experiments import Claim, Experiment
from jaxbounds.smapprox import execute
from jaxbounds.smapprox.compile_machine import Compiled, compile_machine
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.machine_formats import load_machine
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine, halting_time
from jaxbounds.smapprox.readout import attended, recovered_tape, show, side_by_side

CORRECTIONS = {"thirds": THIRDS, "dyadic": DYADIC, "none": None}


@dataclass(frozen=True)
class Machine:
    """What to run.

    Attributes:
        machine: the name of a machine of the library, or a file (see `machine_formats`).
        input: the word, one character for each symbol.
        T: steps; by default until the machine halts.
        adder: "lookahead" or "ripple".
        correction: "dyadic", "thirds" or "none".
        tape: "two_way" or "one_way".
        limit: how long to wait for the machine to halt.
        show: print what every layer of the network computes, too.
        missing: what to do with a machine in a file that is not total: "error", or "reject" to send
            the missing pairs to a rejecting state.
    """

    machine: str = "equal_blocks"
    input: str = "aabb"
    T: int | None = None
    adder: str = "lookahead"
    correction: str = "dyadic"
    tape: str = "two_way"
    limit: int = 2000
    show: bool = False
    missing: str = "error"


def build(config: Machine, /) -> Compiled:
    """The compiled machine of a configuration.

    Raises:
        ValueError: if the machine or the word is not accepted, T is too small for the machine to
            halt or to read its input, or a name is unknown.
    """
    if config.correction not in CORRECTIONS:
        raise ValueError(
            f"correction must be one of {', '.join(CORRECTIONS)}, got {config.correction!r}"
        )
    machine = _find(config.machine, config.missing)
    T = config.T
    if T is not None and T < 1:
        raise ValueError(f"T must be at least 1, got {T}")
    if T is None:
        T = halting_time(machine, config.input, config.limit)
    halting_time(machine, config.input, T)
    return compile_machine(
        machine,
        max(T, len(config.input), 1),
        adder=config.adder,
        correction=CORRECTIONS[config.correction],
        tape=config.tape,
    )


def _find(name: str, missing: str) -> TuringMachine:
    if name in LIBRARY:
        return LIBRARY[name]().machine
    try:
        return load_machine(name, missing=missing)
    except ValueError as error:
        if str(error).startswith("no file"):
            known = ", ".join(LIBRARY)
            raise ValueError(f"{name!r} is neither a file nor one of {known}") from error
        raise


def run(config: Machine, key: PRNGKeyArray, /) -> xr.Dataset:
    """Network and simulator at every step, the attention maps, and the recovered tape.

    Nothing is random: the key is taken so that all experiments are called alike.
    """
    del key
    compiled = build(config)
    result = execute.execute(compiled, [config.input])
    network, truth = execute.decode(compiled, result), execute.simulated(compiled, [config.input])
    maps = attended(compiled, config.input)
    pair = lambda name: np.stack([getattr(network, name)[0], getattr(truth, name)[0]])
    steps = np.arange(compiled.T + 1)
    text = [show(compiled, equations=True)] if config.show else []
    text.append(side_by_side(compiled, config.input, network, 0))
    return xr.Dataset(
        {
            "state": (("source", "step"), pair("states")),
            "head": (("source", "step"), pair("heads")),
            "symbol": (("source", "step"), pair("symbols")),
            "decision": (("source",), np.array([network.decision[0], truth.decision[0]])),
            "error": ((), float(network.error[0])),
            "past": (("layer", "step", "key"), maps.decoder),
            "input": (("step", "position"), maps.encoder),
            "tape": (("step", "cell"), recovered_tape(compiled, maps)),
        },
        coords={"source": ["network", "machine"], "step": steps, "layer": list(maps.layers)},
        attrs={
            "machine": compiled.machine.name,
            "input": config.input,
            "T": compiled.T,
            "width": compiled.layout.width,
            "depth": compiled.depth,
            "text": "\n".join(text),
        },
    )


def claims(dataset: xr.Dataset, /) -> tuple[Claim, ...]:
    """The network is the machine, at every step."""
    differ = sum(
        int((dataset[name][0] != dataset[name][1]).sum()) for name in ("state", "head", "symbol")
    )
    network, machine = (float(value) for value in dataset["decision"])
    error = float(dataset["error"])
    return (
        Claim(
            "Theorem 4.1: state, head and symbol agree at every step",
            differ == 0,
            f"{differ} differences in {dataset.sizes['step']} steps",
        ),
        Claim(
            "the outputs agree (within 1e-5)",
            abs(network - machine) < 1e-5,
            f"network {network:.6g}, machine {machine:.6g}",
        ),
        Claim(
            "every state of the network is binary (within 1e-5)",
            error < 1e-5,
            f"largest distance {error:.3g}",
        ),
    )


def figure(dataset: xr.Dataset, /) -> Any:
    """The attention maps of the search, narrowing layer by layer, and the tape they recover."""
    from matplotlib.colors import BoundaryNorm
    from matplotlib.figure import Figure

    layers = dataset.sizes["layer"]
    columns = -(-(layers + 2) // 2)
    picture = Figure(figsize=(2.7 * columns, 5.6), layout="constrained")
    axes = picture.subplots(2, columns, sharey=True).ravel()
    for axis, layer in zip(axes, range(layers)):
        purpose = str(dataset["layer"].values[layer]).split(" = ")[-1]
        if layer == layers - 1:
            purpose = "symbol of the last visit"
        axis.imshow(dataset["past"][layer], aspect="auto", cmap="Greys", vmin=0, vmax=1)
        axis.set_title(purpose, fontsize=8)
        axis.set_xlabel("past step + 1 (0: null)", fontsize=8)
    look_up, tape = axes[layers], axes[layers + 1]
    look_up.imshow(dataset["input"], aspect="auto", cmap="Greys", vmin=0, vmax=1)
    look_up.set_title("input symbol", fontsize=8)
    look_up.set_xlabel("input position (0: null)", fontsize=8)
    known = (dataset["tape"] != "?").any("step").values
    cells = np.flatnonzero(known)
    names, values = np.unique(dataset["tape"].values[:, known], return_inverse=True)
    norm = BoundaryNorm(np.arange(len(names) + 1) - 0.5, 256)
    values = values.reshape(dataset.sizes["step"], len(cells))
    shown = tape.imshow(values, aspect="auto", cmap="viridis", norm=norm)
    bar = picture.colorbar(shown, ax=tape, ticks=range(len(names)))
    bar.ax.set_yticklabels(names)
    tape.set_title("recovered tape (?: not read yet)", fontsize=8)
    places = np.unique(np.linspace(0, len(cells) - 1, 8).round().astype(int))
    tape.set_xticks(places, [str(cells[place]) for place in places])
    tape.set_xlabel(f"cell modulo {dataset.sizes['cell']}", fontsize=8)
    for axis in axes:
        axis.grid(False)
    for axis in axes[::columns]:
        axis.set_ylabel("step")
    for axis in axes[layers + 2 :]:
        axis.set_axis_off()
    return picture


EXPERIMENT = Experiment(
    id="smapprox.machine",
    label="Theorem 4.1",
    title="a machine of yours, compiled and run beside the simulator",
    config=Machine(),
    presets={
        "published": Machine(adder="ripple", correction="thirds"),
    },
    run=run,
    figure=figure,
    claims=claims,
)
