"""The command line."""

import sys

import tyro

from jaxbounds.cli.browse import errata, list_statements, replay_file, show
from jaxbounds.cli.plot import plot
from jaxbounds.cli.run import run
from jaxbounds.cli.verify import verify

COMMANDS = {
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
        # The flags after the name of an experiment are the fields of its configuration.
        if arguments[:1] == ["run"] and len(arguments) > 1 and not arguments[1].startswith("-"):
            return run(arguments[1], tuple(arguments[2:]))
        return tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="jaxbounds",
            description="Learning theory on Transformers that runs.",
            args=arguments,
        )
    except ValueError as problem:
        print(f"jaxbounds: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("jaxbounds: interrupted (a resumable run goes on with --resume)", file=sys.stderr)
        return 130
