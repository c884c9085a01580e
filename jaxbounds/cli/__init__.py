"""The command line `jaxbounds COMMAND`."""

import errno
import gc
import importlib
import importlib.metadata
import sys
from collections.abc import Callable

import tyro

from jaxbounds.cli import printed
from jaxbounds.cli.first import FIRST
from jaxbounds.cli.help_text import wrapped
from jaxbounds.cli.limits import shortage
from jaxbounds.cli.streams import Stream, say, usable_streams
from jaxbounds.ground.extras import PACKAGES
from jaxbounds.runs.digest import refusal
from jaxbounds.runs.interruption import came, interruptible, leave
from jaxbounds.runs.threads import collect_rarely, one_thread
from jaxbounds.version import __version__

COMMANDS = {
    "verify": ("verify", "verify", "Check statements; print a verdict for each form."),
    "list": ("browse", "list_statements", "List the statements."),
    "show": ("browse", "show", "Show one statement: claim, hypotheses, forms, source."),
    "errata": ("browse", "errata", "List the errata of the papers by weight."),
    "replay": ("browse", "replay_file", "Measure a stored instance again."),
    "certify": ("certify", "certify", "Disprove failing forms by ball arithmetic, with witnesses."),
    "constant": ("constant", "constant", "Search for the sharp constant of an inequality."),
    "run": ("run", "run", "Run an experiment: a figure or table of a paper."),
    "merge": ("merge", "merge", "Put the shards of a run together."),
    "plot": ("plot", "plot", "Draw the result of a run, and print its claims."),
    "new": ("new", "new", "Start a folder for a paper of your own."),
    "diff": ("diff", "diff", "Compare two runs of verify, form by form."),
    "audit": ("audit", "audit", "Write the findings about a paper, for its authors."),
    "primitives": ("primitives", "primitives", "List the operations of JAX that lack a rule."),
    "schema": ("schema", "schema", "Print the JSON Schema of the output of --json."),
    "guide": ("guide", "guide", "Print pages to read: from an inequality to a verdict, and more."),
}
"""For each command: its module, its function and its purpose. A command imports only the module of
this command."""


_JUDGING = ("verify", "certify", "constant", "audit")

FLAG = "--json"
NO_THREADS = "can't start new thread"
"""The words of Python's error when the system refuses another thread."""
_NO_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""The error numbers of the system for a disk that is full or a folder that is not writable."""


def _command(name: str) -> Callable[..., int]:
    module, function, _ = COMMANDS[name]
    if name in _JUDGING:
        one_thread()
        collect_rarely()
        if reason := shortage():
            raise OSError(errno.ENOMEM, reason)
        if reason := refusal():
            say(f"jaxbounds: {reason}")
    if module == "browse":
        gc.disable()  # saves a tenth of the time: these commands keep all objects until they end
    found = getattr(importlib.import_module(f"jaxbounds.cli.{module}"), function)
    if name in (*_JUDGING, "replay"):
        importlib.import_module("jaxbounds.runs.cache").compile_quickly()
    return found


def _described(text: str) -> Callable[[], int]:
    def command() -> int:
        return 0

    command.__doc__ = text
    return command


def main(arguments: list[str] | None = None) -> int:
    """Run a command; after bad input, print one line on standard error and return exit status 2.

    If `arguments` is None, the function runs the program's own command line, and an interruption
    ends the process.
    """
    program = arguments is None
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    usual = gc.get_threshold()
    with usable_streams() as streams:
        try:
            with interruptible():
                status = streams.status(_answered(arguments))
                if program and came():
                    leave(status)
                return status
        except SystemExit as end:  # raised by the parser of options
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
            raise SystemExit(streams.status(code)) from None
        except RuntimeError as problem:
            if NO_THREADS not in str(problem):
                raise
            words = f"{problem}: the limit of processes is too low. Try ulimit -u 1024, or more"
            say(f"jaxbounds: {words}")
            return 3
        finally:
            gc.enable()
            gc.set_threshold(*usual)


def _ran(arguments: list[str]) -> int:
    if not arguments:
        print(FIRST, end="")
        return 0
    if arguments == ["--version"]:
        print(f"jaxbounds {__version__} jax {importlib.metadata.version('jax')}")
        return 0
    if arguments in (["run"], ["run", "-h"], ["run", "--help"]):
        return importlib.import_module("jaxbounds.cli.run").list_experiments()
    # The options after the name of an experiment are the fields of its configuration.
    if arguments[:1] == ["run"] and len(arguments) > 1 and not arguments[1].startswith("-"):
        return _command("run")(arguments[1], tuple(arguments[2:]))
    if arguments[:1] and arguments[0] in COMMANDS:
        name = arguments[0]
        if (text := printed.recall(arguments)) is not None:
            print(text, end="")
            return 0
        with printed.remember(arguments):
            return tyro.cli(_command(name), prog=f"jaxbounds {name}", args=arguments[1:])
    return tyro.extras.subcommand_cli_from_dict(
        {name: _described(text) for name, (_, _, text) in COMMANDS.items()},
        prog="jaxbounds",
        description="Learning theory on Transformers that runs. --version prints the version.",
        args=arguments,
    )


def _answered(arguments: list[str]) -> int:
    if FLAG in arguments[1:] and arguments[0] not in printed.COMMANDS:
        answers = importlib.import_module("jaxbounds.cli.answers")
        if answers.asked(arguments):
            return int(answers.answered(arguments, _answered))
    try:
        with wrapped(arguments):
            return _ran(arguments)
    except ValueError as problem:
        say(f"jaxbounds: {problem}")
        return 2
    except ImportError as problem:
        if came():  # Ctrl-C came, and an import swallowed the exception
            say("jaxbounds: interrupted")
            return 130
        if problem.name not in ("flint", *PACKAGES):
            raise
        say(f"jaxbounds: {problem}")
        return 2
    except BrokenPipeError:  # as in `jaxbounds list | head`; Python must not flush at its exit
        Stream(sys.stdout).to_nowhere()
        return 1
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        cure = ". Try to free space, or another --out" if problem.errno in _NO_PLACE else ""
        say(f"jaxbounds: {where}{problem.strerror or problem}{cure}")
        return 3
    except KeyboardInterrupt as stop:
        words = f"interrupted; {stop}" if str(stop) else "interrupted"
        say(f"jaxbounds: {words}")
        return 130
