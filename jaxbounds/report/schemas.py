"""The JSON Schema of the output of `jaxbounds.ground.to_json` for dataclasses."""

import dataclasses
import inspect
import re
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.falsification import Verdict
from jaxbounds.ground.to_json import fields_of, to_json

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": [None, "inf", "-inf"]}]}
"""The schema of a float. The output writes NaN as null, since JSON has no NaN."""
_SIMPLE = {str: "string", bool: "boolean", int: "integer", type(None): "null"}


def schema_of(hint: Any, /) -> Schema:
    """Return the schema of `to_json`'s output for a value of a type.

    Raises:
        TypeError: if `to_json` cannot convert a value of the type.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint is float:
        return NUMBER
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in inner]}
    if origin is tuple and inner[1:] != (...,):
        parts = [schema_of(one) for one in inner]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    if origin in (tuple, list):
        return {"type": "array", "items": schema_of(inner[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return object_schema(hint)
    raise TypeError(
        f"no schema for type={hint!r}. Try a dataclass, or str, bool, int, float, tuples and dicts"
    )


def _described(kind: type) -> dict[str, str]:
    _, _, listed = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    found = re.findall(r"^    (\w+): (.+(?:\n {6,}.+)*)", listed, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}


def object_schema(
    kind: type, /, *, besides: Mapping[str, Any] = types.MappingProxyType({}), without: str = ""
) -> Schema:
    """Return the schema of a dataclass; the class's docstring describes each field.

    The dict `besides` gives the types of further entries. The schema omits the field `without`.
    """
    said = _described(kind)
    hints = {name: h for name, h in (fields_of(kind) | dict(besides)).items() if name != without}
    about = lambda name: {"description": said[name]} if name in said else {}
    return {
        "type": "object",
        "description": (inspect.getdoc(kind) or "").split("\n\n")[0],
        "properties": {name: schema_of(hint) | about(name) for name, hint in hints.items()},
        "required": list(hints),
        "additionalProperties": False,
    }


STATEMENT = {
    "paper": str, "judges": tuple[str, ...], "samplers": tuple[str, ...],
    "over": dict[str, str], "there_is": dict[str, str],
}  # fmt: skip
"""The types of the entries that the JSON of a statement has in addition to the statement's
fields."""
SHOWN = {"hypotheses": dict[str, tuple[str, ...]], "written_in": str}
"""The names and types of the entries that the command `show` adds to the JSON of a statement. The
entries are the hypotheses of each form (version of a claim), and the statement's file and line.
"""


def statement_json(statement: Statement, /) -> dict[str, Any]:
    """Return a statement as a dictionary for JSON, with names in place of functions."""
    names: dict[str, Any] = {"judges": list(statement.judged)}
    names["samplers"] = list(statement.samplers)
    for field in ("over", "there_is"):
        sets = getattr(statement, field) or {}
        names[field] = {name: repr(one) for name, one in sets.items()}
    return to_json(statement) | {"paper": statement.paper} | names


def paper_json(paper: Paper, /) -> dict[str, Any]:
    """Return a paper as data without its statements; the heaviest errata come first."""
    ordered = dataclasses.replace(paper, statements=(), errata=paper.by_weight)
    return {name: entry for name, entry in to_json(ordered).items() if name != "statements"}


def statements_schema() -> Schema:
    """Return the schema of `jaxbounds list --json` and `show --json`."""
    one = object_schema(Statement, besides=STATEMENT | SHOWN)
    return many(one | {"required": [name for name in one["required"] if name not in SHOWN]})


def verdicts_schema() -> Schema:
    """Return the schema of `jaxbounds verify --json` and verdicts.json."""
    return many(object_schema(Verdict, besides={"as_expected": bool}))


def errata_schema() -> Schema:
    """Return the schema of `jaxbounds errata --json`: one entry for each paper."""
    return many(object_schema(Paper, without="statements"))


def many(one: Schema, /) -> Schema:
    """Return the schema of a list of objects."""
    return {"type": "array", "items": one}
