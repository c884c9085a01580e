"""Instances on disk: one .npz each, readable without executing code, refused when damaged."""

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.statements import Instance

FORMAT = "jaxbounds-instance-1"


class StoredInstance(NamedTuple):
    """An instance and what was measured on it."""

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
    """The inverse of `flatten`."""
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return nested


def _digest(flat: Mapping[str, np.ndarray], meta: str) -> str:
    digest = hashlib.sha256(meta.encode())
    for name in sorted(flat):
        array = np.ascontiguousarray(flat[name])
        digest.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def save_instance(path: str | Path, instance: Instance, /, **meta: Any) -> Path:
    """Write an instance and JSON-able `meta` to `path` (a .npz file), all or nothing."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    flat = flatten(instance)
    text = json.dumps(meta, sort_keys=True)
    arrays = {f"leaf/{name}": value for name, value in flat.items()}
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        np.savez(file, format=FORMAT, meta=text, digest=_digest(flat, text), **arrays)
    os.replace(partial, path)
    return path


def load_instance(path: str | Path, /) -> StoredInstance:
    """Read what `save_instance` wrote.

    Raises:
        ValueError: if the file is missing, is no such file, or its checksum does not match.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no file {path}: give one of the .npz files under worst/")
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        known = str(stored["format"]) == FORMAT
        text, digest = str(stored["meta"]), str(stored["digest"])
        flat = {k.removeprefix("leaf/"): v for k, v in stored.items() if k.startswith("leaf/")}
        meta = json.loads(text)
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as problem:
        raise ValueError(
            f"{path} is not a stored instance or is damaged ({type(problem).__name__}): "
            "run `jaxbounds verify` again to write a new one"
        ) from problem
    if not known or _digest(flat, text) != digest:
        raise ValueError(
            f"{path} is damaged: its checksum does not match its content; "
            "run `jaxbounds verify` again to write a new one"
        )
    return StoredInstance(unflatten(flat), meta)
