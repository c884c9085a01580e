"""`jaxbounds run`: the figures of the papers as experiments."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich import box
from rich.table import Table

from jaxbounds.cli.cache import prepare_jax
from jaxbounds.cli.common import Imports, console_for_output
from jaxbounds.cli.plot import draw_result, print_result
from jaxbounds.experiments import Experiment
from jaxbounds.files import try_to_write
from jaxbounds.papers import experiments, find_experiment
from jaxbounds.provenance import provenance
from jaxbounds.results import save

USAGE = """usage: jaxbounds run EXPERIMENT [--preset NAME] [--seed INT] [--out FOLDER] [OPTIONS]

Run an experiment: its data, its figure, and what it says about the paper's claims.
`jaxbounds run EXPERIMENT --help` lists its presets and the fields of its configuration.
"""


def list_experiments() -> int:
    """Print how `run` is used, and what can be run."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("experiment", no_wrap=True)
    for name in ("in the paper", "what it does"):
        table.add_column(name)
    for experiment in experiments().values():
        table.add_row(experiment.id, experiment.label, experiment.title)
    console = console_for_output()
    console.print(USAGE, markup=False)
    console.print(table)
    return 0


@dataclass(frozen=True, kw_only=True)
class Options:
    """The flags that every experiment has.

    Attributes:
        preset: a named configuration to start from.
        seed: of all draws.
        out: folder of the results; "results/<experiment>" unless given.
        verbose: print the numbers behind every claim, not of those alone that are not reproduced.
        resume: continue the run that the folder holds, instead of starting again.
        imports: modules or files of your own that define EXPERIMENTS, or register what experiments
            can name (an architecture).
    """

    preset: str = "default"
    seed: int = 0
    out: Path | None = None
    verbose: bool = False
    resume: bool = False
    imports: Imports = ()


def _configuration(experiment: Experiment, preset: str, flags: list[str], **more: Any) -> Any:
    presets = {"default": experiment.config, **experiment.presets}
    if preset not in presets:
        raise ValueError(f"{experiment.id} has no preset {preset!r}: {', '.join(presets)}")
    prog = f"jaxbounds run {experiment.id}"
    default = presets[preset]
    return tyro.cli(type(default), default=default, args=flags, prog=prog, **more)


def _help(experiment: Experiment) -> None:
    """What can be said of a run: the flags of all experiments, and the fields of this one."""
    presets = ", ".join(["default", *experiment.presets])
    general = ["--preset NAME", "--seed INT", "--out FOLDER", "--import MODULE", "--verbose"]
    general += ["--resume"] * experiment.resumable
    _configuration(
        experiment,
        "default",
        ["--help"],
        description=f"{experiment.label}: {experiment.title}.\n\n"
        f"Besides the fields below: {', '.join(general)}. Presets: {presets}; "
        "the defaults shown are those of the first.",
    )


def _unfinished(folder: Path) -> bool:
    """Whether checkpoints are there that no result has followed."""
    states = [file.stat().st_mtime for file in folder.glob("checkpoints/**/state.npz")]
    result = folder / "result.nc"
    return bool(states) and not (result.is_file() and result.stat().st_mtime >= max(states))


def _refuse_to_lose(folder: Path, resume: bool) -> None:
    if not resume and _unfinished(folder):
        raise ValueError(
            f"{folder} holds a run that was cut: add --resume to continue it, give another --out, "
            "or remove that folder to start again"
        )


def run(
    experiment: Annotated[str, tyro.conf.Positional],
    flags: Annotated[tuple[str, ...], tyro.conf.Suppress] = (),
    /,
) -> int:
    """Run an experiment: its data, its figure, and what it says about the paper's claims.

    `jaxbounds run EXPERIMENT --help` lists the fields of its configuration.

    Args:
        experiment: its id, as "multihead.fig2".
        flags: --preset, --seed, --out, --resume, --import, and fields of the configuration.
    """
    prog = f"jaxbounds run {experiment}"
    given = [flag for flag in flags if flag not in ("-h", "--help")]
    options, rest = tyro.cli(Options, args=given, return_unknown_args=True, prog=prog)
    chosen = find_experiment(experiment, imports=options.imports)
    if len(given) < len(flags):
        _help(chosen)
    config = _configuration(chosen, options.preset, rest)
    if not 0 <= options.seed < 2**32:
        raise ValueError(f"--seed cannot be negative or above 2^32 - 1, got {options.seed}")
    if options.resume and not chosen.resumable:
        raise ValueError(f"{experiment} cannot be resumed: run it without --resume")
    folder = options.out or Path("results") / experiment
    try_to_write(folder)
    prepare_jax()
    key = jax.random.key(options.seed)
    more = {}
    if chosen.resumable:
        more = {"folder": folder / "checkpoints", "resume": options.resume}
        _refuse_to_lose(folder, options.resume)
    unknown = set(more) - set(inspect.signature(chosen.run).parameters)
    if unknown:
        raise TypeError(f"{experiment} is resumable but its run lacks {', '.join(unknown)}")
    try:
        dataset = chosen.run(config, key, **more)
    except KeyboardInterrupt:
        if _unfinished(folder):
            raise KeyboardInterrupt(f"{folder} can be continued: add --resume") from None
        raise
    about = provenance(config, key) | {"experiment": experiment}
    # First: what was computed is not lost with a full disk.
    print_result(chosen, dataset, verbose=options.verbose)
    save(dataset, folder / "result.nc", **about)
    return draw_result(chosen, folder)
