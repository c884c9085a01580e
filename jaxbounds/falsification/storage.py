"""Store instances on disk: one .npz file for each; reading a file never executes code."""

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
"""A stored instance has at most this many bytes. A larger limit lets the library read larger files.
"""


class StoredInstance(NamedTuple):
    """An instance with its measured ratio; `jaxbounds.replay` measures the instance again.

    Attributes:
        instance: the instance as nested dicts of arrays.
        meta: the statement's "id", the "form", the "size" (the static part of the instance), and
            the "ratio" as a text with all its digits. The counterexample to a bound also has its
            sides "lhs" and "rhs".
    """

    instance: Instance
    meta: dict[str, Any]


def flatten(instance: Instance, /, prefix: str = "") -> dict[str, np.ndarray]:
    """Flatten nested dicts of arrays to {"a/b": array}.

    Raises:
        TypeError: if a container is not a dict, or a key is not a string without "/".
    """
    flat: dict[str, np.ndarray] = {}
    for name, value in instance.items():
        if not isinstance(name, str) or "/" in name:
            raise TypeError(
                f"key={name!r} of the instance must be a string without '/'. Try another name"
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
    """Rebuild nested dicts from the result of `flatten`.

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
                    f"path={path!r} lies in {parent!r}, which is an array; expected a dict. "
                    f"Try `jaxbounds verify` to write a new file"
                )
        if name in node:
            raise Refused(
                f"path={path!r} is an array and a dict, expected one of the two. Try `jaxbounds "
                "verify` to write a new file"
            )
        node[name] = value
    return nested


def save_instance(
    path: str | Path, instance: Instance, /, *, lasting: bool = True, **meta: Any
) -> Path:
    """Write an instance and its `meta` to an .npz file; a failed write leaves no partial file.

    Args:
        path: the path of the file to write.
        instance: the instance as nested dicts of arrays.
        lasting: whether the data must survive a power failure; False for data that a run can make
            again.
        meta: the description that the file stores as JSON; see `StoredInstance`.
    """
    about = json.dumps(meta, sort_keys=True)
    return save_arrays(path, flatten(instance), form=FORMAT, about=about, lasting=lasting)


def load_instance(path: str | Path) -> StoredInstance:
    """Read a file that `save_instance` wrote.

    Args:
        path: the file, such as "results/verify/worst/multihead.cor1.3.printed.npz".

    Raises:
        Refused: if the file is missing, damaged, or not an instance.
    """
    if not Path(path).is_file():
        raise Refused(
            f"file={path} does not exist, expected an instance. Try an .npz file under worst/"
        )
    try:
        flat, text = load_arrays(path, form=FORMAT, limit=LIMIT)
        meta = json.loads(text)
        if not isinstance(meta, dict):
            raise Refused(
                f"file={path} is damaged: its description is not a dict. Try `jaxbounds verify` "
                "to write a new one"
            )
        return StoredInstance(unflatten(flat), meta)
    except ValueError as problem:
        raise Refused(
            f"{problem}, in file={path}. Try `jaxbounds verify` to write a new one"
        ) from problem
