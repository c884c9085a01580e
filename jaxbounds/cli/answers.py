"""Print the answers of commands with --json: one JSON object on standard output, for a program."""

import contextlib
import contextvars
import sys
from collections.abc import Callable, Iterator
from typing import Any

from jaxbounds.cli.common import print_json
from jaxbounds.ground.to_json import to_json
from jaxbounds.report.schemas import Schema

FLAG = "--json"
COMMANDS = ("replay", "certify", "run", "merge", "plot", "new", "audit", "guide")
"""The commands whose --json prints one object; the other commands print a list."""
_STRINGS = {"type": "array", "items": {"type": "string"}}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
FIELDS: dict[str, Any] = {
    "command": {"type": "string", "description": "the name of the command"},
    "status": {"type": "integer", "description": "the exit status"},
    "folder": {"type": "string", "description": "the folder of the results"},
    "files": _STRINGS | {"description": "new: the files of the folder"},
    "items": _OBJECTS | {"description": "new: the items of the source; audit: also `verdict`"},
    "digest": {"type": "string", "description": "audit: the digest of the findings"},
    "verdicts": _OBJECTS | {"description": "audit: as `jaxbounds schema verdicts` says"},
    "certificates": _OBJECTS | {"description": "certify: a certificate for each form"},
    "id": {"type": "string", "description": "replay: the id of the statement"},
    "form": {"type": "string", "description": "replay: the form whose instance the file holds"},
    "ratios": {"type": "object", "description": "replay: the new ratios, with the control's"},
    "stored": {
        "type": ["number", "string", "null"],
        "description": "replay: the ratio in the file",
    },
    "experiment": {"type": "string", "description": "run, merge, plot: the experiment's id"},
    "findings": _OBJECTS | {"description": "run, merge, plot: text, reproduced, number"},
    "experiments": _OBJECTS | {"description": "run without a name: id, label, title, presets"},
    "topics": _STRINGS | {"description": "guide without a topic: all topics"},
    "topic": {"type": "string", "description": "guide: the topic"},
    "text": {"type": "string", "description": "guide: the page"},
}
"""The fields of a command's --json answer; every answer has `command` and `status`."""

_answer: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar(
    "answer", default=None
)


def answer(**fields: Any) -> None:
    """Add fields to the command's answer; do nothing if the command was called without --json.

    A field has a name from `FIELDS`; its value is JSON, or a dataclass that holds JSON values.
    """
    held = _answer.get()
    if held is not None:
        held.update(fields)


def asked(arguments: list[str], /) -> bool:
    """Tell whether the arguments name one of `COMMANDS` and have the flag --json."""
    return bool(arguments) and arguments[0] in COMMANDS and FLAG in arguments[1:]


def answered(arguments: list[str], run: Callable[[list[str]], int], /) -> int:
    """Run a command, print its usual text on standard error, and print its result as JSON."""
    rest = [word for word in arguments if word != FLAG]
    with _collected() as held:
        status = run(rest)
    if status not in (2, 130) or len(held):
        print_json(to_json({"command": arguments[0], "status": status} | held))
    return status


@contextlib.contextmanager
def _collected() -> Iterator[dict[str, Any]]:
    held: dict[str, Any] = {}
    token = _answer.set(held)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield held
    finally:
        _answer.reset(token)


def answers_schema() -> Schema:
    """Return the JSON schema of the answers that commands print with --json."""
    return {
        "type": "object",
        "properties": FIELDS,
        "required": ["command", "status"],
        "additionalProperties": False,
    }
