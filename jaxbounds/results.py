"""Experiments and their results: labelled arrays with provenance, saved without code in them."""

import dataclasses
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import numpy as np
import xarray as xr

from jaxbounds.files import digest, whole

FORMAT, EARLIER = "jaxbounds-result-2", "jaxbounds-result-1"


class Claim(NamedTuple):
    """A qualitative statement of the paper about a figure, decided on a data set.

    Attributes:
        text: what the paper says, with the threshold that decides it.
        reproduced: whether the data set shows it; None where it cannot decide.
        number: the numbers the decision rests on, in words.
    """

    text: str
    reproduced: bool | None
    number: str


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure or table of a paper as a computation.

    Attributes:
        id: "<paper>.<name>" ("multihead.fig2").
        label: as printed ("Figure 2").
        title: one line.
        config: the default configuration, a frozen dataclass; every field is a flag of
            `jaxbounds run`.
        presets: other configurations by name ("faithful").
        run: `run(config, key) -> xarray.Dataset`; where `resumable`, also
            `run(config, key, folder=..., resume=...)`, which keeps its progress in the folder and
            with `resume` continues what it finds there.
        figure: `figure(dataset) -> matplotlib Figure`.
        claims: `claims(dataset) -> tuple of Claim`.
        resumable: whether `run` takes `folder` and `resume`.
    """

    id: str
    label: str
    title: str
    config: Any
    run: Callable[..., xr.Dataset]
    figure: Callable[[xr.Dataset], Any]
    claims: Callable[[xr.Dataset], tuple[Claim, ...]]
    presets: Mapping[str, Any] = field(default_factory=dict)
    resumable: bool = False


def refuse_unless_increasing(config: Any, /, *names: str) -> None:
    """Refuse grids of a configuration that are empty, not positive, or do not increase strictly.

    Raises:
        ValueError: naming the first such field and what it holds.
    """
    for name in names:
        values = list(getattr(config, name))
        if not values or values != sorted(set(values)) or not values[0] > 0:
            raise ValueError(f"{name} must be positive and increase, got {values}")


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that decide the numbers."""
    names = ("jaxbounds", "jax", "jaxlib", "flax", "optax", "chex", "numpy", "scipy")
    packages = {name: importlib.metadata.version(name) for name in names}
    return packages | {"python": platform.python_version(), "machine": platform.machine()}


def _git_state() -> str:
    """The commit of the checkout this package is imported from, "-dirty" if changed, else ""."""
    folder = Path(__file__).parent
    try:
        ask = ("git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40")
        done = subprocess.run(ask, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def provenance(config: Any, key: jax.Array, /) -> dict[str, Any]:
    """What a result depends on: configuration, key, versions, device, precision, git state."""
    return {
        "config": dataclasses.asdict(config),
        "config_type": type(config).__name__,
        "key": jax.random.key_data(key).tolist(),
        "prng": str(jax.random.key_impl(key)),
        "versions": versions(),
        "device": jax.devices()[0].device_kind,
        "backend": jax.default_backend(),
        "matmul_precision": str(jax.config.values["jax_default_matmul_precision"] or "default"),
        "git": _git_state(),
    }


def _digest(dataset: xr.Dataset) -> str:
    """Of values, types, dimensions and attributes: everything but the digest itself."""
    # A file gives strings any width.
    text = lambda v: np.array(json.dumps(v.astype(str).tolist())) if v.dtype.kind in "OSU" else v
    arrays = {str(name): text(dataset[name].values) for name in dataset.variables}
    plain = lambda value: np.asarray(value).tolist()
    about = [
        [str(name), list(map(str, dataset[name].dims)), sorted(dataset[name].attrs.items())]
        for name in sorted(dataset.variables, key=str)
    ]
    words = [about, sorted((k, v) for k, v in dataset.attrs.items() if k != "sha256")]
    return digest(arrays, json.dumps(words, default=plain))


def save(dataset: xr.Dataset, path: str | Path, /, **about: Any) -> Path:
    """Write a data set as netCDF-4, all or nothing; `about` becomes JSON attributes."""
    plain = dataset.copy()
    plain.attrs = {k: json.dumps(v) for k, v in (dict(dataset.attrs) | about).items()}
    plain.attrs["format"] = FORMAT
    plain.attrs["sha256"] = _digest(plain)
    with whole(path) as file:
        plain.to_netcdf(cast(Any, file), engine="h5netcdf")
    return Path(path)


def load(path: str | Path, /) -> xr.Dataset:
    """Read what `save` wrote, now or before 0.2; attributes are decoded.

    Raises:
        ValueError: if the file is missing or is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no result {path}: run the experiment first")
    try:
        before = path.read_bytes()[:3] == b"CDF"  # netCDF-3, with a checksum of values alone
        with xr.open_dataset(path, engine="scipy" if before else "h5netcdf") as stored:
            dataset = stored.load()
        form, check = dataset.attrs.get("format", ""), dataset.attrs.get("sha256", "")
        damaged = not before and check != _digest(dataset)
        dataset.attrs = {
            name: json.loads(text)
            for name, text in dataset.attrs.items()
            if name not in ("format", "sha256")
        }
    except Exception as problem:  # the readers raise whatever they stumble over
        raise ValueError(
            f"{path} is no result or is damaged ({type(problem).__name__}): run it again"
        ) from problem
    if form != (EARLIER if before else FORMAT):
        raise ValueError(f"{path} was not written by this library: expected {FORMAT}")
    if damaged:
        raise ValueError(f"{path} is damaged (its checksum does not match): run it again")
    return dataset


def fingerprint(config: Any, key: jax.Array, /) -> str:
    """A short hash of configuration and key: a checkpoint with another one is refused."""
    text = json.dumps([repr(config), jax.random.key_data(key).tolist()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
