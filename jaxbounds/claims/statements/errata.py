"""Read a paper's errata from a TOML file, because a reviewer can read the diffs of such a file.

```toml survives = "The paragraph that says which theorems remain true."

[remarks]
"Lemma 12" = "A finding that is worth knowing and is no erratum."

[unchecked]
"Lemma 42" = "The reason why no statement judges this item."

[[erratum]]
id = "E1"
where = "Section 2, eq. (3)"
```

An `[[erratum]]` has the fields of `Erratum`; a text with a backslash needs single quotes. The
reader turns line breaks into spaces, so that each sentence of a text can have its own line.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from jaxbounds.claims.statements.paper import Erratum, Weight
from jaxbounds.ground.exceptions import Refused

_FIELDS = {f.name: f.default is MISSING for f in fields(Erratum)}
"""Maps the name of each field of an erratum to whether every erratum must have the field."""
_TOP = ("survives", "remarks", "unchecked", "erratum")


@dataclass(frozen=True, kw_only=True)
class Errata:
    """The contents of a file of errata, named like the arguments of `Paper`."""

    survives: str
    errata: tuple[Erratum, ...] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)


def load_errata(path: Path, /) -> Errata:
    """Read the errata of a paper from its file.

    Args:
        path: a TOML file (UTF-8); the module's docstring shows its format.

    Raises:
        OSError: if the file of errata is missing or unreadable.
        Refused: if the file is not TOML, or a field of an entry is missing, unknown, of a wrong
            type or empty. The error message names the file, the entry and the field.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(
            f"file={path} is not TOML in UTF-8: {error}. Try single quotes around a text with "
            "backslashes"
        ) from error
    for name in given:
        if name not in _TOP:
            raise _fault(path, f"top level, field {name!r}", "unknown", f"one of {', '.join(_TOP)}")
    entries = given.get("erratum", [])
    if not isinstance(entries, list):
        raise _fault(path, "top level, field 'erratum'", "not a list", "[[erratum]] for each")
    named = [_name(entry, at) for at, entry in enumerate(entries, 1)]
    for name in named:
        if named.count(name) > 1:
            raise _fault(path, name, f"given {named.count(name)} times", "another id for each")
    return Errata(
        survives=_text(given.get("survives", ""), path, "top level, field 'survives'", True),
        errata=tuple(_erratum(entry, path, name) for entry, name in zip(entries, named)),
        remarks=_texts(given.get("remarks", {}), path, "remarks"),
        unchecked=_texts(given.get("unchecked", {}), path, "unchecked"),
    )


def _erratum(entry: Any, path: Path, name: str) -> Erratum:
    if not isinstance(entry, dict):
        raise _fault(path, name, f"of type {type(entry).__name__}", "a table under [[erratum]]")
    for key in entry:
        if key not in _FIELDS:
            raise _fault(path, f"{name}, field {key!r}", "unknown", f"one of {', '.join(_FIELDS)}")
    for key, needed in _FIELDS.items():
        if needed and key not in entry:
            raise _fault(path, f"{name}, field {key!r}", "missing", f'{key} = "..."')
    values: dict[str, Any] = {}
    for key, value in entry.items():
        place = f"{name}, field {key!r}"
        if key != "readings":
            values[key] = _text(value, path, place)
        elif isinstance(value, list):
            values[key] = tuple(_text(reading, path, place) for reading in value)
        else:
            raise _fault(path, place, f"of type {type(value).__name__}", "a list of two texts")
    if values["kind"] not in get_args(Weight):
        kinds = ", ".join(get_args(Weight))
        raise _fault(path, f"{name}, field 'kind'", repr(values["kind"]), f"one of {kinds}")
    try:
        return Erratum(**values)
    except (TypeError, Refused) as error:
        raise Refused(f"{path}: {name}: {error}") from error


def _texts(given: Any, path: Path, table: str) -> Mapping[str, str]:
    if not isinstance(given, dict):
        raise _fault(path, f"table {table!r}", f"of type {type(given).__name__}", f"[{table}]")
    found = {key: _text(value, path, f"{table}, field {key!r}") for key, value in given.items()}
    return MappingProxyType(found)


def _text(value: Any, path: Path, place: str, empty: bool = False) -> str:
    if not isinstance(value, str):
        raise _fault(path, place, f"of type {type(value).__name__}", "a text in quotes")
    if not value.strip() and not empty:
        raise _fault(path, place, "empty", "at least one word")
    return " ".join(value.split())


def _name(entry: Any, at: int) -> str:
    named = entry.get("id") if isinstance(entry, dict) else None
    return f"erratum {named}" if isinstance(named, str) else f"erratum number {at}"


def _fault(path: Path, place: str, fault: str, wanted: str) -> Refused:
    return Refused(f"{path}: {place} is {fault}. Try {wanted}.")
