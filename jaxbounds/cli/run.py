"""`jaxbounds run`: run an experiment, which makes a figure or table of a paper."""

import functools
import signal
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, NamedTuple

import jax
import tyro
from rich import box
from rich.table import Table
from rich.text import Text

from jaxbounds.cli.answers import answer
from jaxbounds.cli.common import Imports, console_for_output
from jaxbounds.cli.plot import draw_result, print_result
from jaxbounds.cli.streams import say
from jaxbounds.experiments.experiment import Experiment
from jaxbounds.experiments.results import save
from jaxbounds.experiments.sweeps import Share
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, locate
from jaxbounds.papers import experiments, find_experiment
from jaxbounds.papers.full_size import full_size
from jaxbounds.runs.distributed import ALONE, Distributed, supervised
from jaxbounds.runs.engines import HERE, On
from jaxbounds.runs.experiment import NAMES, compute, compute_shards, compute_share, merged, taken
from jaxbounds.runs.interruption import DEADLINE, grant, interruptible
from jaxbounds.runs.request import Request, configured, requested

USAGE = """usage: jaxbounds run EXPERIMENT [--preset NAME] [--seed INT] [--out FOLDER] [OPTIONS]

Run an experiment: compute its data, draw its figure, and test the paper's claims on it.
`jaxbounds run EXPERIMENT --help` lists its presets and the fields of its configuration.
"""


def _flat(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            yield from _flat(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, value


def differences(config: Any, preset: Any, /) -> str:
    """Return the fields of a preset that differ from the default configuration, as name=value."""
    before = dict(_flat(config))
    shown = lambda value: ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    changed = ((k, v) for k, v in _flat(preset) if k not in before or before[k] != v)
    return " ".join(f"{name}={shown(value):.40}" for name, value in changed) or "none"


def list_experiments() -> int:
    """Print the usage of `run`, the experiments, and the differences of presets from defaults."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("experiment", no_wrap=True)
    for name in ("in the paper", "purpose; the presets, and the fields that they change"):
        table.add_column(name)
    for experiment in experiments().values():
        about = Text(experiment.title)
        for name, preset in experiment.presets.items():
            about.append(f"\n{name}: {differences(experiment.config, preset)}", style="dim")
        if full_size(experiment):
            about.append(f"\n{full_size(experiment)}", style="dim")
        table.add_row(experiment.id, experiment.label, about)
    answer(experiments=[
        {"id": e.id, "label": e.label, "title": e.title, "presets": list(e.presets),
         "full_size": full_size(e)}
        for e in experiments().values()
    ])  # fmt: skip
    console = console_for_output()
    console.print(USAGE, markup=False)
    console.print(table)
    console.print("`jaxbounds guide codes` explains short names such as DM1 and 1STR")
    return 0


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that every experiment has.

    Attributes:
        preset: the named configuration to start from.
        seed: the seed of all random numbers.
        precision: JAX's precision of matrix products: "highest", "high" or "default".
        deadline: seconds that the machine leaves between SIGTERM and the end; a resumable run
            stores its progress within this time.
        out: the folder of the results, or its address on an object store (s3://bucket/name);
            "results/<experiment>" unless given.
        verbose: print the numbers of every claim, not only of claims that are not reproduced.
        resume: continue the run that the folder holds, instead of starting a new run.
        shard: compute only one share of the run's lanes (its independent training runs), for
            example "3/16". Any machine can compute a share; `jaxbounds merge` joins the shares.
        shards: the number of shares into which to cut the run. The engine of `--engine` computes
            the shares, and the command merges them.
        on: the engine that computes the shares of the run.
        together: the options for one run on several processes, which share all their devices.
        imports: modules or files of your own that define EXPERIMENTS, or register objects that an
            experiment can name, such as an architecture.
    """

    preset: str = "default"
    seed: int = 0
    precision: str = ""
    deadline: float = DEADLINE
    out: str = ""
    verbose: bool = False
    resume: bool = False
    shard: str = ""
    shards: int = 0
    imports: Imports = ()
    on: On = HERE
    together: Annotated[Distributed, tyro.conf.OmitArgPrefixes] = ALONE


class Asked(NamedTuple):
    """The request of a run (experiment, configuration, seed), with the options of `run`."""

    request: Request
    options: Options

    @property
    def out(self) -> Place:
        """Return the folder of the results."""
        return locate(self.options.out or f"results/{self.request.experiment.id}")


def _help(experiment: Experiment) -> None:
    presets = ", ".join(["default", *experiment.presets])
    general = ["--preset NAME", "--seed INT", "--precision highest|high|default", "--out FOLDER"]
    general += ["--import MODULE", "--verbose"]
    several = [
        "--resume",
        "--deadline SECONDS",
        "--shard I/N",
        "--shards N",
        "--engine ENGINE",
        "--distributed",
    ]
    general += several * experiment.resumable
    ran = full_size(experiment)
    configured(
        experiment,
        "default",
        ["--help"],
        description=f"{experiment.label}: {experiment.title}.\n\n"
        f"{f'This figure {ran}. ' if ran else ''}"
        "After its first chunk a run prints how long it will take on this machine.\n\n"
        f"Further options: {', '.join(general)}. Presets: {presets}. The defaults below are "
        "the values of the first preset.",
    )


def _check(experiment: Experiment, options: Options) -> None:
    if not experiment.resumable:
        several = {
            "--resume": options.resume,
            "--shard": options.shard,
            "--shards": options.shards,
            "--distributed": options.together.distributed,
        }
        for flag in (flag for flag, given in several.items() if given):
            word = "be resumed" if flag == "--resume" else "be cut into shards or shared"
            raise Refused(
                f"experiment={experiment.id} cannot {word}, got flag={flag!r}. Try the run "
                "without it"
            )
    options.together.check()
    if sum(map(bool, (options.shard, options.shards, options.together.distributed))) > 1:
        raise Refused(
            "only one of --shard, --shards and --distributed may be given, got "
            f"shard={options.shard!r}, shards={options.shards}. Try one of them"
        )
    if not options.deadline > 0:
        raise Refused(
            f"deadline={options.deadline:g}, expected a positive number of seconds. Try "
            "--deadline 30"
        )
    if options.shards < 0 or (options.on != HERE and not options.shards):
        raise Refused(
            "--engine needs --shards N, the number of pieces to cut the run into, got "
            f"shards={options.shards}. Try --shards 8"
        )


def _asked(experiment: str, flags: tuple[str, ...]) -> Asked:
    given = [flag for flag in flags if flag not in ("-h", "--help")]
    prog = f"jaxbounds run {experiment}"
    options, rest = tyro.cli(Options, args=given, return_unknown_args=True, prog=prog)
    chosen = find_experiment(experiment, imports=options.imports)
    if len(given) < len(flags):
        _help(chosen)
    request = requested(
        experiment,
        rest,
        preset=options.preset,
        seed=options.seed,
        precision=options.precision,
        imports=options.imports,
    )
    _check(chosen, options)
    return Asked(request, options)


def run(
    experiment: Annotated[str, tyro.conf.Positional],
    flags: Annotated[tuple[str, ...], tyro.conf.Suppress] = (),
    /,
) -> int:
    """Run an experiment: compute its data, draw its figure, and test the paper's claims on it.

    `jaxbounds run EXPERIMENT --help` lists the fields of its configuration.

    Args:
        experiment: the id of the experiment, for example "multihead.fig2".
        flags: the arguments --preset, --seed, --out, --resume, --import, and fields of the
            configuration.
    """
    asked = _asked(experiment, flags)
    request, options = asked
    grant(options.deadline)
    if options.shard:
        share = Share.read(options.shard)
        folder = compute_share(request, asked.out, share, resume=options.resume)
        words = "written; when all shards are there, type jaxbounds merge"
        answer(folder=str(folder))
        say(f"{folder}: shard {share} is {words} {asked.out} --out {asked.out}")
        return 0
    if options.shards:
        compute_shards(request, asked.out, options.shards, on=options.on)
        whole = merged([asked.out], asked.out, imports=request.imports)
        return finish(whole, asked.out, resume=True)
    if options.together.distributed:
        again = ("jaxbounds", "run", experiment, *flags, "--resume")
        return supervised(
            functools.partial(_run_together, options.together, experiment, flags), again
        )
    return _whole(asked)


def _run_together(together: Distributed, experiment: str, flags: tuple[str, ...]) -> int:
    together.join()  # before any call that starts JAX, such as the making of a key
    asked = _asked(experiment, flags)
    with interruptible():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process sends SIGTERM instead
        grant(asked.options.deadline)
        return _whole(asked, together=True)


def _whole(asked: Asked, together: bool = False) -> int:
    options, out, held = asked.options, asked.out, None
    if jax.process_index() == 0:
        held = taken(asked.request, out, NAMES, resume=options.resume or together)
        out = held.path
    status = finish(asked.request, out, resume=options.resume, verbose=options.verbose)
    if held is not None:
        held.release()
    return status


def finish(request: Request, out: Place, /, *, resume: bool, verbose: bool = False) -> int:
    """Compute the unfinished part of a run; print, write and draw the result.

    Only the first of several processes prints, writes and draws.
    """
    about = request.about
    dataset = compute(request, out, resume=resume)
    if jax.process_index() > 0:
        return 0
    answer(folder=str(out))
    # Print first: a full disk then loses no computed number.
    print_result(request.experiment, dataset, verbose=verbose)
    save(dataset, out / "result.nc", **about)
    return draw_result(request.experiment, out)
