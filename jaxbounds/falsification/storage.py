"""Instances on disk: one .npz each, readable without executing code, refused when damaged."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import load_arrays, save_arrays

FORMAT = "jaxbounds-instance-2"
LIMIT = 2**28
"""Bytes of an instance at most; no larger instance was written here. A larger limit reads larger
files.
"""


class StoredInstance(NamedTuple):
    """An instance with its measured ratio; `jaxbounds.replay` measures the instance again.

    Attributes:
        instance: nested dicts of arrays.
        meta: the statement's "id", the "form", its "size" (the static part of the instance), and
            the "ratio" as a text, so that no digit is lost.
    """

    instance: Instance
    meta: dict[str, Any]


def flatten(instance: Instance, /, prefix: str = "") -> dict[str, np.ndarray]:
    """Flatten nested dicts to {"a/b": array}.

    Raises:
        TypeError: if a container is not a dict with string keys free of "/".
    """
    flat: dict[str, np.ndarray] = {}
    for name, value in instance.items():
        if not isinstance(name, str) or "/" in name:
            raise TypeError(
                f"instance keys must be strings without '/', got {name!r}. Try another name"
            )
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}/")
        elif isinstance(value, (list, tuple)):
            raise TypeError(
                f"instance entry={prefix + name} is a sequence; expected nested dicts of "
                "arrays. Try jnp.stack"
            )
        else:
            flat[prefix + name] = np.asarray(value)
    return flat


def unflatten(flat: Mapping[str, np.ndarray], /) -> dict[str, Any]:
    """Rebuild nested dicts from `flatten`'s result.

    Raises:
        Refused: if a name is both an array and a dict.
    """
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise Refused(
                    f"path={path!r} lies in {parent!r}, which is an array; expected a dict. Try "
                    "`jaxbounds verify` to write a new file"
                )
        if name in node:
            raise Refused(
                f"path={path!r} is an array, and other arrays lie in it; expected one or the "
                "other. Try `jaxbounds verify` to write a new file"
            )
        node[name] = value
    return nested


def save_instance(
    path: str | Path, instance: Instance, /, *, lasting: bool = True, **meta: Any
) -> Path:
    """Write an instance and JSON-able `meta` to `path` (a .npz file), all or nothing.

    Args:
        path: the path of the file.
        instance: nested dicts of arrays.
        lasting: False for an instance that can be made again, and may be lost with the power.
        meta: see `StoredInstance`.
    """
    about = json.dumps(meta, sort_keys=True)
    return save_arrays(path, flatten(instance), form=FORMAT, about=about, lasting=lasting)


def load_instance(path: str | Path) -> StoredInstance:
    """Read a file that `save_instance` wrote.

    Args:
        path: the file, as "results/verify/worst/multihead.cor1.3.printed.npz".

    Raises:
        Refused: if the file is missing, is no such file, or its checksum does not match.
    """
    if not Path(path).is_file():
        raise Refused(
            f"no file={path}; expected an instance. Try one of the .npz files under worst/"
        )
    try:
        flat, text = load_arrays(path, form=FORMAT, limit=LIMIT)
        meta = json.loads(text)
        if not isinstance(meta, dict):
            raise Refused(
                f"file={path} is damaged: its description is no dict. Try `jaxbounds verify` "
                "to write a new one"
            )
        return StoredInstance(unflatten(flat), meta)
    except ValueError as problem:
        raise Refused(
            f"{problem}, in file={path}. Try `jaxbounds verify` to write a new one"
        ) from problem
