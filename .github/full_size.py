"""Put runs of figures on record: `full_size.py FOLDER=CPU_SECONDS ...` or `full_size.py FIGURE`.

A folder holds what `jaxbounds run FIGURE --preset NAME --out FOLDER` wrote. NAME is `published`, or
the preset that tries the figure out (`quick`; the default where there is no `quick`). A figure is
run at that small preset first, and the command measures its processor time. The command then writes
`guide/results.md` again. With `--show` it prints a table of any runs instead, and keeps nothing.
"""

import argparse
import datetime
import json
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jaxbounds
from jaxbounds.cli.run import differences
from jaxbounds.experiments.experiment import Experiment, Finding
from jaxbounds.experiments.results import load
from jaxbounds.experiments.settings import said_here
from jaxbounds.papers import PAPERS, experiments, find_experiment
from jaxbounds.papers.full_size import (
    PRESET,
    Kind,
    RecordedRun,
    answered,
    place,
    records,
    small_preset,
)

HEAD = """# results: figures at quick presets, their cost, their claims one by one

A quick preset is a small configuration of a figure's experiment. For each figure the list below
names the preset, the processor time of a first run (compiling included), and the machine. A second
line gives each setting in which the preset differs from the paper: the preset's value, and the
paper's value in brackets. If the paper gives a figure no settings, the brackets hold the library's
defaults. Each further line of a figure is a claim with its answer. The answer "open (yes)" means
that the data agree with a claim that only `--preset published` can decide.

`python .github/full_size.py FIGURE` runs a figure again and writes the guide page `results`. The
numbers behind each answer are in `<paper>/records/quick.json`.

"""
PAGE = Path(jaxbounds.__file__).parent / "guide" / "results.md"
"""The page of the guide that shows the records of quick presets."""


def plain(config: Any, /) -> Any:
    """Return a configuration as JSON holds it."""
    return json.loads(json.dumps(config if isinstance(config, dict) else asdict(config)))


def preset_of(experiment: Experiment, config: Any, /) -> str:
    """Return the name of a configuration: a preset, "default", or "" for neither."""
    known = {"default": experiment.config} | dict(experiment.presets)
    return next((name for name, one in reversed(known.items()) if plain(one) == config), "")


def settings_of(experiment: Experiment, preset: str, /) -> Any:
    """Return the configuration of a preset, or of "default"."""
    return experiment.config if preset == "default" else experiment.presets[preset]


def kind_of(experiment: Experiment, config: Any, /) -> Kind:
    """Return the file in which a run with a configuration goes on record.

    Raises:
        ValueError: if the configuration is neither that of the paper nor that of the small preset.
    """
    small = small_preset(experiment)
    if PRESET in experiment.presets and plain(experiment.presets[PRESET]) == config:
        return "full_size"
    if plain(settings_of(experiment, small)) == config:
        return "quick"
    raise ValueError(
        f"config={config} of {experiment.id} differs from the presets {PRESET!r} and {small!r}, "
        f"expected the values of one. Try to run it again with --preset {PRESET}"
    )


def record(folder: Path, cpu_seconds: float, machine: str, /) -> tuple[Kind, str, RecordedRun]:
    """Return the kind of a folder's run, the id of the figure, and its record.

    Raises:
        ValueError: if the run had other settings than the presets that go on record.
    """
    dataset = load(str(folder / "result.nc"))
    about = dataset.attrs
    experiment = find_experiment(about["experiment"])
    kind = kind_of(experiment, about["config"])
    day = datetime.date.fromtimestamp((folder / "result.nc").stat().st_mtime)
    return (
        kind,
        experiment.id,
        RecordedRun(
            date=day.isoformat(),
            version=about["versions"]["jaxbounds"],
            jax=about["versions"]["jax"],
            seed=about["key"][-1],
            machine=machine,
            cpu_seconds=round(cpu_seconds),
            settings=about.get("settings", ""),
            config=about["config"],
            claims=tuple(map(answered, experiment.claims(dataset))),
        ),
    )


def run_small(name: str, folder: Path, /) -> float:
    """Run a figure at its small preset, without compiled programs of earlier runs.

    Returns:
        The seconds of processor time of the whole command.
    """
    preset = small_preset(find_experiment(name))
    command = [sys.executable, "-m", "jaxbounds", "run", name, "--preset", preset]
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = spent()
    with tempfile.TemporaryDirectory() as cache:
        own = os.environ | {"XDG_CACHE_HOME": cache}
        subprocess.run([*command, "--out", str(folder)], env=own, check=True)
    return spent() - before


def keep(kind: Kind, name: str, new: RecordedRun, /) -> None:
    """Write a record beside the paper's other ones, a line for each field and each claim."""
    file = place(name.partition(".")[0], kind)
    kept = json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
    kept[name] = asdict(new)
    figures = []
    for figure, fields in sorted(kept.items()):
        rows = ",\n".join(f"   {json.dumps(claim)}" for claim in fields.pop("claims"))
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items()]
        lines.append(f'  "claims": [\n{rows}\n  ]')
        figures.append(f" {json.dumps(figure)}: {{\n" + ",\n".join(lines) + "\n }")
    file.write_text("{\n" + ",\n".join(figures) + "\n}\n", encoding="utf8")


def _lines(start: str, text: str) -> list[str]:
    """Return a text in lines of the guide; `start` opens the first and indents the others."""
    wide = {"width": 100, "break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(text, **wide, initial_indent=start, subsequent_indent=" " * len(start))


def _both(ours: Any, other: Any, /) -> Iterator[str]:
    """Yield each setting in which two configurations differ: name=ours (other)."""
    named = lambda text: dict(pair.split("=", 1) for pair in text.split(" "))
    theirs = named(differences(ours, other))
    for name, value in named(differences(other, ours)).items():
        yield f"{name.rpartition('.')[2]}={value} ({theirs[name]})"


def _of_figure(experiment: Experiment, one: RecordedRun, /) -> Iterator[str]:
    """Yield the lines of a record: figure, cost, settings, and each claim with its answer."""
    small = small_preset(experiment)
    yield f"{experiment.id}: {small}, {one.cpu_seconds} CPU s, {one.machine}, seed {one.seed}"
    ours, whose = settings_of(experiment, small), "default"
    other = experiment.config
    if PRESET in experiment.presets:
        other, whose = experiment.presets[PRESET], "paper"
    if ours != other:
        yield from _lines(f"  {small} ({whose}) ", " ".join(_both(ours, other)))
    elif whose == "paper":
        yield from _lines("  paper ", "the same settings")
    for claim in one.claims:
        here = said_here(Finding(claim.claim, None, claim.number))
        answer = f"{claim.answer} ({here})" if here else claim.answer
        yield from _lines(f"  {answer:<10} ", claim.claim)


def page() -> str:
    """Return the guide's page about the quick presets."""
    kept = records("quick")
    figures = [e for e in experiments().values() if e.id.partition(".")[0] in PAPERS]
    lines = [line for e in figures if e.id in kept for line in _of_figure(e, kept[e.id])]
    missing = [e.id for e in figures if e.id not in kept]
    return (
        HEAD
        + "```\n"
        + "\n".join(lines)
        + "\n```\n"
        + (
            "\n".join(["", *_lines("", f"No record yet: {', '.join(missing)}."), ""])
            * bool(missing)
        )
    )


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
    parser.add_argument("runs", nargs="*", help="FOLDER=CPU_SECONDS, or the id of a figure")
    parser.add_argument("--machine", default=f"{os.cpu_count()} CPU cores")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    for run in options.runs:
        where, known, cost = run.rpartition("=")
        with tempfile.TemporaryDirectory() as new:
            folder = Path(where if known else new)
            seconds = float(cost) if known else run_small(run, folder)
            if options.show:
                print("\n".join(shown(folder, f"{seconds:.0f}", options.machine)), flush=True)
            else:
                keep(*record(folder, seconds, options.machine))
    if not options.show:
        records.cache_clear()
        PAGE.write_text(page(), encoding="utf8")
