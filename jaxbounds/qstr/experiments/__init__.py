"""The paper's figures as sweeps: a frozen config, `run(config, key)`, `figure` and `claims`.

`EXPERIMENTS` maps a name to (module, ready-made configurations); in each the "reduced" ones take
minutes on two cores, and the "published" ones are for a GPU.
"""

from types import ModuleType
from typing import Any

from jaxbounds.qstr.experiments import figure1, figure2, phase

EXPERIMENTS: dict[str, tuple[ModuleType, dict[str, Any]]] = {
    "qstr.fig1a": (figure1, {k: v for k, v in figure1.PRESETS.items() if k.startswith("fig1a")}),
    "qstr.fig1b": (figure1, {k: v for k, v in figure1.PRESETS.items() if k.startswith("fig1b")}),
    "qstr.fig2": (figure2, figure2.PRESETS),
    "qstr.phase": (phase, {"phase.reduced": phase.Phase()}),
}
"""The experiments by name."""
