"""Put runs at the paper's full size on record: `full_size.py FOLDER=CPU_SECONDS ...`.

A folder holds what `jaxbounds run FIGURE --preset published --out FOLDER` wrote. With `--show` the
command prints a table of any runs instead, and keeps nothing.
"""

import argparse
import datetime
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jaxbounds.experiments.experiment import Experiment
from jaxbounds.experiments.results import load
from jaxbounds.papers import find_experiment
from jaxbounds.papers.full_size import PRESET, FullSize, answered, place


def plain(config: Any, /) -> Any:
    """Return a configuration as JSON holds it."""
    return json.loads(json.dumps(config if isinstance(config, dict) else asdict(config)))


def preset_of(experiment: Experiment, config: Any, /) -> str:
    """Return the name of a configuration: a preset, "default", or "" for neither."""
    known = {"default": experiment.config} | dict(experiment.presets)
    return next((name for name, one in reversed(known.items()) if plain(one) == config), "")


def record(folder: Path, cpu_seconds: float, machine: str, /) -> tuple[str, FullSize]:
    """Return the id of the figure that ran in a folder, and its record.

    Raises:
        ValueError: if the run had other settings than the preset.
    """
    dataset = load(str(folder / "result.nc"))
    about = dataset.attrs
    experiment = find_experiment(about["experiment"])
    if plain(experiment.presets[PRESET]) != about["config"]:
        raise ValueError(
            f"config of {folder} differs from the preset {PRESET!r} of {experiment.id}, expected "
            f"its values. Try to run it again with --preset {PRESET}"
        )
    day = datetime.date.fromtimestamp((folder / "result.nc").stat().st_mtime)
    return experiment.id, FullSize(
        date=day.isoformat(),
        version=about["versions"]["jaxbounds"],
        jax=about["versions"]["jax"],
        seed=about["key"][-1],
        machine=machine,
        cpu_seconds=round(cpu_seconds),
        settings=about["settings"],
        config=about["config"],
        claims=tuple(map(answered, experiment.claims(dataset))),
    )


def keep(name: str, new: FullSize, /) -> None:
    """Write a record beside the paper's other ones, a line for each field and each claim."""
    file = place(name.partition(".")[0])
    kept = json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
    kept[name] = asdict(new)
    figures = []
    for figure, fields in sorted(kept.items()):
        rows = ",\n".join(f"   {json.dumps(claim)}" for claim in fields.pop("claims"))
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items()]
        lines.append(f'  "claims": [\n{rows}\n  ]')
        figures.append(f" {json.dumps(figure)}: {{\n" + ",\n".join(lines) + "\n }")
    file.write_text("{\n" + ",\n".join(figures) + "\n}\n", encoding="utf8")


def shown(folder: Path, cost: str, machine: str, /) -> Iterator[str]:
    """Yield the rows of a run: figure, preset, cost, machine, then each claim."""
    dataset = load(str(folder / "result.nc"))
    experiment = find_experiment(dataset.attrs["experiment"])
    preset = preset_of(experiment, dataset.attrs["config"])
    answers = list(map(answered, experiment.claims(dataset)))
    said = Counter(one.answer for one in answers)
    counts = ", ".join(f"{count} {word}" for word, count in said.items())
    yield f"| `{experiment.id}` | {preset} | {cost} s | {counts} | {machine} |"
    yield from (f"| | {one.answer} | | {one.claim} | {one.number} |" for one in answers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", help="FOLDER=CPU_SECONDS")
    parser.add_argument("--machine", default=f"{os.cpu_count()} CPU cores")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    for run in options.runs:
        where, _, cost = run.rpartition("=")
        if options.show:
            print("\n".join(shown(Path(where), cost, options.machine)), flush=True)
        else:
            keep(*record(Path(where), float(cost), options.machine))
