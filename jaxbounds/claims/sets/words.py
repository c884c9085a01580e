"""Write the Python code that declares a set."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from jaxbounds.claims.sets.base import Set
from jaxbounds.claims.sets.finite import OneOf
from jaxbounds.claims.sets.matrices import RowBalls, SpectralBall
from jaxbounds.claims.sets.vectors import Box, Reals


def declared(one: "Set | Mapping[str, Any]", /) -> str:
    """Return the Python code that declares a set or a dict of sets, such as "jb.Ball(1, 'd')"."""
    if isinstance(one, Mapping):
        return "{" + ", ".join(f"{name!r}: {declared(part)}" for name, part in one.items()) + "}"
    if isinstance(one, OneOf):
        return f"jb.OneOf({list(one.values)!r})"
    if isinstance(one, Box) and one == Reals(one.shape):
        return f"jb.Reals({one.shape!r})"
    if isinstance(one, SpectralBall):
        norm = "nuclear" if one.p == 1 else "operator"
        return f"jb.Matrices({one.shape!r}, norm={norm!r}, at_most={one.R!r})"
    if isinstance(one, RowBalls):
        norm = "rows" if one.over == "max" else "row sum"
        return f"jb.Matrices({one.shape!r}, norm={norm!r}, at_most={one.R!r})"
    fields = dataclasses.fields(one)
    changed = [getattr(one, field.name) != field.default for field in fields]
    last = max((at for at, other in enumerate(changed) if other), default=-1)
    given = []
    for at, field in enumerate(fields):
        value = getattr(one, field.name)
        written = declared(value) if isinstance(value, Set) else repr(value)
        if isinstance(value, float) and math.isinf(value):
            written = f"float({str(value)!r})"
        if at <= min(last, 1):
            given.append(written)
        elif changed[at]:
            given.append(f"{field.name}={written}")
    return f"jb.{type(one).__name__}({', '.join(given)})"
