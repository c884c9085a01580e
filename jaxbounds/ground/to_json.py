"""Convert results to values that `json.dumps` accepts."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints


def _is_here(hint: Any) -> bool:
    code = get_origin(hint) is Callable or getattr(hint, "is_code", False)
    return hint is Path or code or any(map(_is_here, get_args(hint)))


@functools.cache
def fields_of(kind: type, /) -> dict[str, Any]:
    """Return a dict from a dataclass's fields to their types, without functions and local paths."""
    hints = get_type_hints(kind)
    named = {f.name: hints[f.name] for f in dataclasses.fields(kind)}
    return {name: hint for name, hint in named.items() if not _is_here(hint)}


def to_json(value: Any, /) -> Any:
    """Convert a value for JSON: a dataclass to an object, an infinity to a word, NaN to null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(getattr(value, name)) for name in fields_of(type(value))}
    if isinstance(value, Mapping):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return to_json(value.tolist()) if hasattr(value, "tolist") else value
