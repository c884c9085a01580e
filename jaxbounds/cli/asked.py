"""What a command line asks `jaxbounds run` for."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import tyro

from jaxbounds.cli.common import Imports
from jaxbounds.cli.engines import HERE, On
from jaxbounds.cli.gang import ALONE, Gang
from jaxbounds.experiments import Experiment
from jaxbounds.files import Place, locate
from jaxbounds.papers import find_experiment


@dataclass(frozen=True, kw_only=True)
class Options:
    """The flags that every experiment has.

    Attributes:
        preset: a named configuration to start from.
        seed: of all draws.
        out: folder of the results, or its address on an object store (s3://bucket/name);
            "results/<experiment>" unless given.
        verbose: print the numbers behind every claim, not of those alone that are not reproduced.
        resume: continue the run that the folder holds, instead of starting again.
        shard: compute one share of the run's lanes, as "3/16", wherever and whenever;
            `jaxbounds merge` puts them together.
        shards: cut the run into so many shares, compute them where `--engine` says, merge them.
        on: where.
        gang: several processes that share their devices.
        imports: modules or files of your own that define EXPERIMENTS, or register what experiments
            can name (an architecture).
    """

    preset: str = "default"
    seed: int = 0
    out: str = ""
    verbose: bool = False
    resume: bool = False
    shard: str = ""
    shards: int = 0
    imports: Imports = ()
    on: On = HERE
    gang: Annotated[Gang, tyro.conf.OmitArgPrefixes] = ALONE


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
    several = ["--resume", "--shard I/N", "--shards N", "--engine ENGINE", "--distributed"]
    general += several * experiment.resumable
    _configuration(
        experiment,
        "default",
        ["--help"],
        description=f"{experiment.label}: {experiment.title}.\n\n"
        f"Besides the fields below: {', '.join(general)}. Presets: {presets}; "
        "the defaults shown are those of the first.",
    )


class Asked(NamedTuple):
    """What a command line asks for; `flags` gives the same again."""

    experiment: Experiment
    config: Any
    key: jax.Array
    options: Options
    flags: tuple[str, ...]

    @property
    def out(self) -> Place:
        """Where the results go."""
        return locate(self.options.out or f"results/{self.experiment.id}")


def asked(experiment: str, flags: tuple[str, ...], /) -> Asked:
    """What `jaxbounds run EXPERIMENT FLAGS` asks for.

    Raises:
        ValueError: if there is no such experiment, preset, seed, or no going on with it.
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
    if not chosen.resumable:
        several = {
            "--resume": options.resume,
            "--shard": options.shard,
            "--shards": options.shards,
            "--distributed": options.gang.distributed,
        }
        for flag in (flag for flag, given in several.items() if given):
            word = "be resumed" if flag == "--resume" else "be cut into shards or shared"
            raise ValueError(f"{experiment} cannot {word}: run it without {flag}")
    options.gang.check()
    if sum(map(bool, (options.shard, options.shards, options.gang.distributed))) > 1:
        raise ValueError("--shard, --shards and --distributed exclude each other: give one")
    if options.shards < 0 or (options.on != HERE and not options.shards):
        raise ValueError("--engine needs --shards N, the number of pieces to cut the run into")
    same = ["--preset", options.preset, "--seed", str(options.seed)]
    same += [word for module in options.imports for word in ("--import", module)]
    return Asked(chosen, config, jax.random.key(options.seed), options, (*same, *rest))
