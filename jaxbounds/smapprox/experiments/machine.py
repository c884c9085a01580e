"""One machine on one input: compiled, run beside the simulator, with its attention maps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

from jaxbounds.smapprox import execute
from jaxbounds.smapprox.compile_machine import Compiled, compile_machine
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.experiments.claim import Claim
from jaxbounds.smapprox.machine_formats import load_machine
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine, halting_time
from jaxbounds.smapprox.readout import attended, recovered_tape, side_by_side

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
    """

    machine: str = "equal_blocks"
    input: str = "aabb"
    T: int | None = None
    adder: str = "lookahead"
    correction: str = "dyadic"
    tape: str = "two_way"
    limit: int = 2000


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
    machine = _find(config.machine)
    T = config.T
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


def _find(name: str) -> TuringMachine:
    if name in LIBRARY:
        return LIBRARY[name]().machine
    try:
        return load_machine(name)
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
    return xr.Dataset(
        {
            "state": (("source", "step"), pair("states")),
            "head": (("source", "step"), pair("heads")),
            "symbol": (("source", "step"), pair("symbols")),
            "decision": (("source",), np.array([network.decision[0], truth.decision[0]])),
            "error": ((), float(network.error[0])),
            "past": (("layer", "step", "key"), maps.decoder),
            "input": (("step", "position"), maps.encoder),
            "tape": (("step", "cell"), recovered_tape(compiled, config.input)),
        },
        coords={"source": ["network", "machine"], "step": steps, "layer": list(maps.layers)},
        attrs={
            "machine": compiled.machine.name,
            "word": config.input,
            "T": compiled.T,
            "width": compiled.layout.width,
            "depth": compiled.depth,
            "trace": side_by_side(compiled, config.input, network, 0),
        },
    )


def claims(dataset: xr.Dataset, /) -> list[Claim]:
    """The network is the machine, at every step."""
    differ = sum(
        int((dataset[name][0] != dataset[name][1]).sum()) for name in ("state", "head", "symbol")
    )
    gap = float(abs(dataset["decision"][0] - dataset["decision"][1]))
    error = float(dataset["error"])
    return [
        Claim("state, head and symbol agree at every step (differences)", differ == 0, differ),
        Claim("the outputs agree (distance)", gap < 1e-5, gap),
        Claim("every state is binary (largest distance)", error < 1e-5, error),
    ]


def figure(dataset: xr.Dataset, /) -> Any:
    """The attention maps of the search, narrowing layer by layer, and the tape they recover."""
    from matplotlib.figure import Figure

    layers = dataset.sizes["layer"]
    picture = Figure(figsize=(2.2 * (layers + 2), 2.8), layout="constrained")
    axes = picture.subplots(1, layers + 2)
    for axis, layer in zip(axes, range(layers)):
        axis.imshow(dataset["past"][layer], aspect="auto", cmap="Greys", vmin=0, vmax=1)
        title = str(dataset["layer"].values[layer]).split(" = ")[0]
        axis.set_title(f"{layer}: {title}", fontsize=7)
        axis.set_xlabel("null, past steps", fontsize=7)
    axes[0].set_ylabel("step")
    axes[-2].imshow(dataset["input"], aspect="auto", cmap="Greys", vmin=0, vmax=1)
    axes[-2].set_title("input", fontsize=7)
    names, values = np.unique(dataset["tape"].values, return_inverse=True)
    axes[-1].imshow(values.reshape(dataset["tape"].shape), aspect="auto", cmap="viridis")
    axes[-1].set_title(f"tape ({' '.join(names)})", fontsize=7)
    return picture
