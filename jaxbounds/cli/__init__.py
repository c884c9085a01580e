"""The command line."""

import importlib.metadata
import os
import sys
from typing import Any

import tyro

from jaxbounds.cli.browse import errata, list_statements, replay_file, show
from jaxbounds.cli.plot import plot
from jaxbounds.cli.run import list_experiments, run
from jaxbounds.cli.verify import verify

COMMANDS: dict[str, Any] = {
    "verify": verify,
    "list": list_statements,
    "show": show,
    "errata": errata,
    "replay": replay_file,
    "run": run,
    "plot": plot,
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; bad input gives one line on standard error and exit status 2."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if arguments == ["--version"]:
            print(" ".join(f"{n} {importlib.metadata.version(n)}" for n in ("jaxbounds", "jax")))
            return 0
        if arguments in (["run"], ["run", "-h"], ["run", "--help"]):
            return list_experiments()
        # The flags after the name of an experiment are the fields of its configuration.
        if arguments[:1] == ["run"] and len(arguments) > 1 and not arguments[1].startswith("-"):
            return run(arguments[1], tuple(arguments[2:]))
        return tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="jaxbounds",
            description="Learning theory on Transformers that runs. --version prints the version.",
            args=arguments,
        )
    except ValueError as problem:
        print(f"jaxbounds: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # as in `jaxbounds list | head`; Python must not flush on its way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as stop:
        words = f"interrupted; {stop}" if str(stop) else "interrupted"
        print(f"jaxbounds: {words}", file=sys.stderr)
        return 130
