"""Experiments and their results: labelled arrays with provenance, saved without code in them."""

import dataclasses
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import xarray as xr

from jaxbounds.statements import PAPERS, load_module

FORMAT = "jaxbounds-result-1"


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


def _of(paper: str) -> dict[str, Experiment]:
    name = f"jaxbounds.{paper}.experiments"
    if importlib.util.find_spec(name) is None:
        return {}
    return {e.id: e for e in importlib.import_module(name).EXPERIMENTS}


def experiments() -> dict[str, Experiment]:
    """The experiments of the shipped papers by id: `jaxbounds.<paper>.experiments.EXPERIMENTS`."""
    return {name: found for paper in PAPERS for name, found in _of(paper).items()}


def find_experiment(name: str, /, *, imports: Iterable[str] = ()) -> Experiment:
    """The experiment of that id; of the shipped papers only its own is imported.

    Args:
        name: its id.
        imports: modules or files of the user's, executed first. Theirs are in their `EXPERIMENTS`;
            they may also register what experiments can name (an architecture).

    Raises:
        ValueError: if there is none, with the names of those that there are, or a module cannot be
            loaded.
    """
    modules = [load_module(where) for where in imports]
    own = {e.id: e for module in modules for e in getattr(module, "EXPERIMENTS", ())}
    paper = name.split(".")[0]
    known = own if name in own else own | (_of(paper) if paper in PAPERS else experiments())
    if name not in known:
        raise ValueError(f"no experiment {name!r}; there are: {', '.join(known) or 'none yet'}")
    return known[name]


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
        "matmul_precision": str(jax.config.jax_default_matmul_precision or "default"),
        "git": _git_state(),
    }


def _digest(dataset: xr.Dataset) -> str:
    """Of all values, independent of the widths that a file format gives numbers."""
    digest = hashlib.sha256()
    for name in sorted(map(str, dataset.variables)):
        values = dataset[name].values
        wide = {"b": "<i8", "i": "<i8", "u": "<i8", "f": "<f8"}.get(values.dtype.kind)
        words = lambda values: "\0".join(map(str, values.ravel())).encode()
        data = values.astype(wide).tobytes() if wide else words(values)
        digest.update(f"{name}:{values.shape}:".encode() + data)
    return digest.hexdigest()


def save(dataset: xr.Dataset, path: str | Path, /, **about: Any) -> Path:
    """Write a data set as netCDF, all or nothing; `about` becomes JSON attributes.

    Booleans are stored as int8 (netCDF has none).
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = dataset.map(lambda v: v.astype("int8") if v.dtype == bool else v, keep_attrs=True)
    plain.attrs = {k: json.dumps(v) for k, v in (dict(dataset.attrs) | about).items()}
    plain.attrs |= {"format": FORMAT, "sha256": _digest(plain)}
    partial = path.with_name(path.name + ".partial")
    plain.to_netcdf(partial, engine="scipy")
    os.replace(partial, path)
    return path


def load(path: str | Path, /) -> xr.Dataset:
    """Read what `save` wrote; attributes are decoded.

    Raises:
        ValueError: if the file is missing or is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no result {path}: run the experiment first")
    try:
        with xr.open_dataset(path, engine="scipy") as stored:
            dataset = stored.load()
        known = dataset.attrs.pop("format", "") == FORMAT
        digest = dataset.attrs.pop("sha256", "")
        dataset.attrs = {name: json.loads(text) for name, text in dataset.attrs.items()}
    except (OSError, ValueError, TypeError, LookupError) as problem:
        raise ValueError(
            f"{path} is no result or is damaged ({type(problem).__name__}): run it again"
        ) from problem
    if not known:
        raise ValueError(f"{path} was not written by this library: expected {FORMAT}")
    if digest != _digest(dataset):
        raise ValueError(f"{path} is damaged (its checksum does not match): run it again")
    return dataset


def fingerprint(config: Any, key: jax.Array, /) -> str:
    """A short hash of configuration and key: a checkpoint with another one is refused."""
    text = json.dumps([repr(config), jax.random.key_data(key).tolist()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
