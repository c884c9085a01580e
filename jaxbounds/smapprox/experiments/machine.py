"""One compiled machine on one input: a comparison with the simulator, and attention maps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray

from jaxbounds.experiments.controls import shifted, valued
from jaxbounds.experiments.experiment import Control, Experiment, Finding
from jaxbounds.ground.exceptions import Refused
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
    """The machine to run, its input and its network.

    Attributes:
        machine: the name of a machine of the library, or a file that `machine_formats` reads.
        input: the input word, with one character for each symbol.
        T: the number of steps; by default the number after which the machine halts.
        adder: the kind of adder, "lookahead" or "ripple".
        correction: the rounding after each layer, "dyadic", "thirds" or "none".
        tape: the kind of tape, "two_way" or "one_way".
        limit: the largest number of steps in which the machine may halt.
        show: whether to print also the purpose of every layer.
        missing: "error" refuses a machine that lacks transitions; "reject" makes it reject there.
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
    """Compile the machine of a configuration.

    Raises:
        Refused: if the machine or the word is invalid, the machine needs more than T steps to halt
            or to read its input, or the configuration has an unknown name.
    """
    if config.correction not in CORRECTIONS:
        raise Refused(
            f"correction={config.correction!r} is unknown, expected one of"
            f" {', '.join(CORRECTIONS)}. Try correction={next(iter(CORRECTIONS))!r}"
        )
    machine = _find(config.machine, config.missing)
    T = config.T
    if T is not None and T < 1:
        raise Refused(f"T={T}, expected at least 1 step. Try T=10")
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
    except Refused as error:
        if str(error).startswith("no file"):
            known = ", ".join(LIBRARY)
            raise Refused(
                f"machine={name!r} is neither a file nor one of {known}. Try one of these names"
            ) from error
        raise


def run(config: Machine, key: PRNGKeyArray, /) -> xr.Dataset:
    """Return the states of the network and of the simulator at every step.

    Return also the attention maps and the recovered tape. The function ignores the argument `key`.
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


def claims(dataset: xr.Dataset, /) -> tuple[Finding, ...]:
    """Decide whether the network's state equals the machine's state at every step.

    Theorem 4.1 claims this equality; a run decides it for one machine, word and T.
    """
    differ = sum(
        int((dataset[name][0] != dataset[name][1]).sum()) for name in ("state", "head", "symbol")
    )
    network, machine = (float(value) for value in dataset["decision"])
    error = float(dataset["error"])
    return (
        Finding(
            "Theorem 4.1: state, head and symbol agree at every step",
            differ == 0,
            f"{differ} differences in {dataset.sizes['step']} steps",
        ),
        Finding(
            "the outputs agree (within 1e-5)",
            abs(network - machine) < 1e-5,
            f"network {network:.6g}, machine {machine:.6g}",
        ),
        Finding(
            "every state of the network is binary (within 1e-5)",
            error < 1e-5,
            f"largest distance {error:.3g}",
        ),
    )


CONTROLS: dict[str, Control] = {
    "agree at every step": shifted(1, "symbol", source="network"),
    "the outputs agree": shifted(1.0, "decision", source="network"),
    "is binary": valued(0.5, "error"),
}
"""False data that the claims must reject: a wrong symbol, a wrong decision, or an entry between 0
and 1."""

LEGIBLE = 60
"""The largest number of steps for which the figure writes symbols as letters; a larger number of
steps gets colours."""


_TINTS = ("#cfe3f2", "#f7d9c4", "#cdeadd", "#f2dcea", "#f9e8c2", "#d9effb", "#dddddd")
"""Colours for the tape's symbols, light enough for black letters."""


def figure(dataset: xr.Dataset, /) -> Any:
    """Draw three panels: the tape, the last visit to each cell, and the symbols of the input."""
    from matplotlib.figure import Figure

    steps = dataset.sizes["step"]
    picture = Figure(figsize=(11, min(max(1.4 + 0.21 * steps, 4.5), 9)), layout="constrained")
    tape, past, look_up = picture.subplots(1, 3, sharey=True, width_ratios=(5, 4, 1.8))
    _draw_tape(tape, dataset)
    # Tied keys share the weight, so a layer attends to every key with a weight above zero.
    kept = (dataset["past"].values[:, :, 1:] > 1e-3).sum(0)
    layers, timesteps = dataset.sizes["layer"], kept.shape[1]
    place = (0.5, timesteps + 0.5, steps - 0.5, -0.5)
    past.imshow(kept, aspect="auto", cmap="Blues", vmin=0, vmax=layers, extent=place)
    found = dataset["past"].values[-1].argmax(1)
    rows = np.flatnonzero(found)
    dots: Any = {"color": "#D55E00", "markersize": 5, "linestyle": "", "marker": "o"}
    past.plot(found[rows], rows, **dots, label="read here")
    past.plot([], [], "s", color="#6aaed6", label=f"attended by some of {layers} layers")
    past.set(title="symbol written at the head's last visit to the cell", xlabel="past step + 1")
    past.legend(loc="upper right")
    rows = np.flatnonzero(found == 0)
    look_up.imshow(dataset["input"], aspect="auto", cmap="Blues", vmin=0, vmax=2)
    look_up.plot(dataset["input"].values.argmax(1)[rows], rows, **dots)
    names = ["blank", *dataset.attrs["input"]]
    every = -(-len(names) // 12)
    look_up.set_xticks(range(0, len(names), every), names[::every])
    look_up.set(title="input symbol of a cell that the head has not visited", xlabel="symbol")
    for axis in (tape, past, look_up):
        axis.grid(False)
    about = dataset.attrs
    words = f"{about['machine']} on {about['input']!r}, T = {about['T']}; network of width "
    words += f"{about['width']}, {about['depth']} layers; nothing is random"
    picture.suptitle(words, fontsize=8)
    return picture


def _draw_tape(axis: Any, dataset: xr.Dataset) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch, Rectangle

    known = (dataset["tape"] != "?").any("step").values
    cells, symbols = np.flatnonzero(known), dataset["tape"].values[:, known]
    names = [name for name in np.unique(symbols) if name != "?"]
    colours = ["#f4f4f4", *(_TINTS[i % len(_TINTS)] for i in range(len(names)))]
    index = np.vectorize({name: i for i, name in enumerate(["?", *names])}.get)(symbols)
    tints = ListedColormap(colours)
    axis.imshow(index, aspect="auto", cmap=tints, vmin=-0.5, vmax=len(colours) - 0.5)
    steps = dataset.sizes["step"]
    if steps <= LEGIBLE:
        size = min(9, 500 / (steps + 8))
        for row, column in np.argwhere(symbols != "?"):
            # A blank is often a space.
            text = symbols[row, column].strip() or "\u2423"
            axis.text(column, row, text, ha="center", va="center", fontsize=size)
    else:
        key = [Patch(color=c, label=n.strip() or "\u2423") for n, c in zip(names, colours[1:])]
        axis.legend(handles=key, loc="upper right")
    column_of = {int(cell): column for column, cell in enumerate(cells)}
    heads = dataset["head"].sel(source="network").values
    for row, cell in enumerate(heads):
        if int(cell) in column_of:
            corner = (column_of[int(cell)] - 0.5, row - 0.5)
            axis.add_patch(Rectangle(corner, 1, 1, fill=False, linewidth=1.4))
    places = np.unique(np.linspace(0, len(cells) - 1, 16).round().astype(int))
    axis.set_xticks(places, [str(cells[place]) for place in places])
    axis.set(
        title="tape that the network has read (the box marks the head)",
        xlabel=f"cell modulo {dataset.sizes['cell']}",
        ylabel="step",
    )


EXPERIMENT = Experiment(
    id="smapprox.machine",
    label="Theorem 4.1",
    title="one Turing machine, run by its compiled network and by the step simulator",
    config=Machine(),
    presets={
        "published": Machine(adder="ripple", correction="thirds"),
    },
    run=run,
    figure=figure,
    claims=claims,
    controls=CONTROLS,
)
