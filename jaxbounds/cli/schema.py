"""`jaxbounds schema`: print the JSON Schema of the output of --json."""

import importlib
from typing import Annotated

import tyro

from jaxbounds.cli.common import print_json
from jaxbounds.ground.exceptions import Refused
from jaxbounds.report.schemas import DIALECT, Schema, many, object_schema

SCHEMAS = {
    "verdicts": ("report.schemas", "verdicts_schema"),
    "statements": ("report.schemas", "statements_schema"),
    "errata": ("report.schemas", "errata_schema"),
    "changes": ("cli.diff", "Change"),
    "constants": ("constants.result", "SharpConstant"),
    "answers": ("cli.answers", "answers_schema"),
}
"""A dict from the name of each schema to its module and an object in the module. The object is a
function that returns the schema, or a dataclass that describes each object of a list."""


def _schema(name: str) -> Schema:
    module, stated = SCHEMAS[name]
    found = getattr(importlib.import_module(f"jaxbounds.{module}"), stated)
    schema = many(object_schema(found)) if isinstance(found, type) else found()
    return {"$schema": DIALECT, "title": name} | schema


def schema(name: Annotated[str, tyro.conf.Positional] = "", /) -> int:
    """Print the JSON Schema of the output of --json.

    Without a name, print all schemas as one object, keyed by name.

    Args:
        name: the name of the schema: "verdicts" (output of verify), "statements" (list, show),
            "errata", "changes" (diff), "constants" (constant) or "answers" (all other commands).
    """
    if name and name not in SCHEMAS:
        raise Refused(f"no schema has name={name!r}. Try one of: {', '.join(SCHEMAS)}")
    print_json(_schema(name) if name else {known: _schema(known) for known in SCHEMAS})
    return 0
