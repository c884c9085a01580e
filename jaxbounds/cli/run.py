"""`jaxbounds run` and `jaxbounds plot`: the figures of the papers as experiments."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from rich.table import Table

from jaxbounds import plotting
from jaxbounds.cli.cache import use_compilation_cache
from jaxbounds.cli.common import console_for_output
from jaxbounds.results import Experiment, experiments, load, provenance, save


@dataclass(frozen=True, kw_only=True)
class Options:
    """The flags that every experiment has.

    Attributes:
        preset: a named configuration to start from.
        seed: of all draws.
        out: folder of the results; "results/<experiment>" unless given.
        resume: continue the run that the folder holds, instead of starting again.
    """

    preset: str = "default"
    seed: int = 0
    out: Path | None = None
    resume: bool = False


def _find(name: str) -> Experiment:
    known = experiments()
    if name not in known:
        raise ValueError(f"no experiment {name!r}; there are: {', '.join(known) or 'none yet'}")
    return known[name]


def _configuration(experiment: Experiment, preset: str, flags: list[str]) -> Any:
    presets = {"default": experiment.config, **experiment.presets}
    if preset not in presets:
        raise ValueError(f"{experiment.id} has no preset {preset!r}: {', '.join(presets)}")
    prog = f"jaxbounds run {experiment.id}"
    default = presets[preset]
    return tyro.cli(type(default), default=default, args=flags, prog=prog)


def run(
    experiment: Annotated[str, tyro.conf.Positional],
    flags: Annotated[tuple[str, ...], tyro.conf.Suppress] = (),
    /,
) -> int:
    """Run an experiment: its data, its figure, and what it says about the paper's claims.

    `jaxbounds run EXPERIMENT --help` lists the fields of its configuration.

    Args:
        experiment: its id, as "multihead.fig2".
        flags: --preset, --seed, --out, --resume, and fields of the configuration.
    """
    chosen = _find(experiment)
    prog = f"jaxbounds run {experiment}"
    if {"-h", "--help"} & set(flags):
        _configuration(chosen, "default", ["--help"])
    options, rest = tyro.cli(Options, args=list(flags), return_unknown_args=True, prog=prog)
    config = _configuration(chosen, options.preset, rest)
    if options.seed < 0:
        raise ValueError(f"--seed cannot be negative, got {options.seed}")
    if options.resume and not chosen.resumable:
        raise ValueError(f"{experiment} cannot be resumed: run it without --resume")
    folder = options.out or Path("results") / experiment
    use_compilation_cache()
    key = jax.random.key(options.seed)
    more = {}
    if chosen.resumable:
        more = {"folder": folder / "checkpoints", "resume": options.resume}
    unknown = set(more) - set(inspect.signature(chosen.run).parameters)
    if unknown:
        raise TypeError(f"{experiment} is resumable but its run lacks {', '.join(unknown)}")
    dataset = chosen.run(config, key, **more)
    about = provenance(config, key) | {"experiment": experiment}
    save(dataset, folder / "result.nc", **about)
    return _show(chosen, folder)


def plot(folder: Annotated[Path, tyro.conf.Positional], /) -> int:
    """Draw the figure of a finished run again and print its claims.

    Args:
        folder: the folder that `jaxbounds run` wrote.
    """
    dataset = load(folder / "result.nc")
    return _show(_find(str(dataset.attrs.get("experiment"))), folder)


def _show(experiment: Experiment, folder: Path) -> int:
    dataset = load(folder / "result.nc")
    console = console_for_output()
    table = Table("the paper says", "reproduced", "numbers", box=None, pad_edge=False)
    words = {True: "yes", False: "NO", None: "open"}
    for claim in experiment.claims(dataset):
        table.add_row(claim.text, words[claim.reproduced], claim.number)
    console.print(f"{experiment.id}  {experiment.label}: {experiment.title}")
    if "text" in dataset.attrs:
        console.print(dataset.attrs["text"], markup=False, soft_wrap=True)
    console.print(table)
    written = ["result.nc"]
    try:
        import matplotlib.pyplot
    except ModuleNotFoundError:
        console.print("no figure: install the plots extra (pip install 'jaxbounds[plots]')")
    else:
        matplotlib.use("Agg")
        with plotting.style():
            figure = experiment.figure(dataset)
            for name in ("figure.svg", "figure.png"):
                figure.savefig(folder / name)
                written.append(name)
        matplotlib.pyplot.close(figure)
    console.print(f"written to {folder}: {', '.join(written)}")
    return 0
