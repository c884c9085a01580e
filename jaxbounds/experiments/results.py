"""Save and load results: labelled arrays with their provenance, in files that hold no code."""

import json
from typing import Any, cast

import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.extras import require
from jaxbounds.ground.files import Place, Unreachable, digest, here, is_there, locate
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.readers import check_netcdf

require("xarray", "h5netcdf", "h5py", why="results")

import xarray as xr  # noqa: E402 - after the check that xarray is installed

FORMAT, EARLIER = "jaxbounds-result-2", "jaxbounds-result-1"
LIMIT = 2**34
"""`load` reads a result only if all of its variables together take at most this many bytes.

If this limit is larger, a damaged file may fill more memory.
"""


def _digest(dataset: xr.Dataset) -> str:
    # A file may change the width of strings.
    text = lambda v: np.array(json.dumps(v.astype(str).tolist())) if v.dtype.kind in "OSU" else v
    arrays = {str(name): text(dataset[name].values) for name in dataset.variables}
    plain = lambda value: np.asarray(value).tolist()
    about = [
        [str(name), list(map(str, dataset[name].dims)), sorted(dataset[name].attrs.items())]
        for name in sorted(dataset.variables, key=str)
    ]
    words = [about, sorted((k, v) for k, v in dataset.attrs.items() if k != "sha256")]
    return digest(arrays, json.dumps(words, default=plain))


def save(dataset: xr.Dataset, path: str | Place, /, **about: Any) -> Place:
    """Write a data set as netCDF-4; the values of the dict `about` become JSON attributes.

    An interrupted write leaves no partial file.
    """
    plain = dataset.copy()
    plain.attrs = {k: json.dumps(v) for k, v in (dict(dataset.attrs) | about).items()}
    plain.attrs["format"] = FORMAT
    plain.attrs["sha256"] = _digest(plain)
    place = locate(path)
    with Marked(place.parent).writing(place.name) as file:
        plain.to_netcdf(cast(Any, file), engine="h5netcdf")
    return place


def load(path: str | Place, /) -> xr.Dataset:
    """Read a file that `save` wrote, in this version or before 0.2, and decode its attributes.

    Raises:
        Refused: if the file is missing, or `save` did not write the file.
    """
    path = locate(path)
    if not is_there(path):
        raise Refused(f"path={str(path)!r} holds no result. Try to run the experiment first")
    try:
        # At some kinds of damage the reader of the format never ends.
        Marked(path.parent).refuse_changed(path.name)
        with here(path) as file:
            with file.open("rb") as raw:
                before = raw.read(3) == b"CDF"  # netCDF-3, with a checksum of values alone
            if not before:  # h5netcdf leaves a file open if it cannot read a part of it
                check_netcdf(file, limit=LIMIT)
            with xr.open_dataset(file, engine="scipy" if before else "h5netcdf") as stored:
                dataset = stored.load()
        form, check = dataset.attrs.get("format", ""), dataset.attrs.get("sha256", "")
        damaged = not before and check != _digest(dataset)
        dataset.attrs = {
            name: json.loads(text)
            for name, text in dataset.attrs.items()
            if name not in ("format", "sha256")
        }
    except Unreachable:
        raise
    except Exception as problem:  # the readers raise many classes of exceptions
        raise Refused(
            f"path={str(path)!r} is no result or is damaged ({type(problem).__name__}). Try to "
            "run the experiment again"
        ) from problem
    if form != (EARLIER if before else FORMAT):
        raise Refused(
            f"path={str(path)!r} was not written by this library: expected {FORMAT}, got "
            f"format={form!r:.60}. Try to run the experiment again"
        )
    if damaged:
        raise Refused(
            f"path={str(path)!r} is damaged (its checksum does not match). Try to run the "
            "experiment again"
        )
    return dataset
