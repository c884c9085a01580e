"""Instances on disk: one .npz each, readable without executing code, refused when damaged."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.ground.files import load_arrays, save_arrays

FORMAT = "jaxbounds-instance-2"
LIMIT = 2**28
"""Bytes of an instance: one that needs more was not written here."""


class StoredInstance(NamedTuple):
    """An instance and what was measured on it; `jaxbounds.replay` measures it again.

    Attributes:
        instance: nested dicts of arrays.
        meta: the statement's "id", the "form", its "size" (the static part of the instance), and
            the "ratio" as written, so that no digit is lost.
    """

    instance: Instance
    meta: dict[str, Any]


def flatten(instance: Instance, /, prefix: str = "") -> dict[str, np.ndarray]:
    """Nested dicts to {"a/b": array}.

    Raises:
        TypeError: if a container is not a dict with string keys free of "/".
    """
    flat: dict[str, np.ndarray] = {}
    for name, value in instance.items():
        if not isinstance(name, str) or "/" in name:
            raise TypeError(f"instance keys must be strings without '/', got {name!r}")
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}/")
        elif isinstance(value, (list, tuple)):
            raise TypeError(f"instances are nested dicts of arrays; {prefix}{name} is a sequence")
        else:
            flat[prefix + name] = np.asarray(value)
    return flat


def unflatten(flat: Mapping[str, np.ndarray], /) -> dict[str, Any]:
    """The inverse of `flatten`.

    Raises:
        ValueError: if a name is both an array and a dict.
    """
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise ValueError(f"{parent!r} is an array, and {path!r} lies in it")
        if name in node:
            raise ValueError(f"{path!r} is an array, and others lie in it")
        node[name] = value
    return nested


def save_instance(
    path: str | Path, instance: Instance, /, *, lasting: bool = True, **meta: Any
) -> Path:
    """Write an instance and JSON-able `meta` to `path` (a .npz file), all or nothing.

    Args:
        path: where.
        instance: nested dicts of arrays.
        lasting: false where it can be made again: then it may be lost with the power.
        meta: see `StoredInstance`.
    """
    about = json.dumps(meta, sort_keys=True)
    return save_arrays(path, flatten(instance), form=FORMAT, about=about, lasting=lasting)


def load_instance(path: str | Path) -> StoredInstance:
    """Read a file that `save_instance` wrote.

    Args:
        path: the file, as "results/verify/worst/multihead.cor1.3.printed.npz".

    Raises:
        ValueError: if the file is missing, is no such file, or its checksum does not match.
    """
    if not Path(path).is_file():
        raise ValueError(f"no file {path}: give one of the .npz files under worst/")
    try:
        flat, text = load_arrays(path, form=FORMAT, limit=LIMIT)
        meta = json.loads(text)
        if not isinstance(meta, dict):
            raise ValueError(f"{path} is damaged: what it says about itself is no dict")
        return StoredInstance(unflatten(flat), meta)
    except ValueError as problem:
        raise ValueError(f"{problem}: run `jaxbounds verify` again to write a new one") from problem
