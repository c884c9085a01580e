"""Merge the checkpoints of a run's shares (each computed by another process) into one run."""

import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.experiments.sweeps.checkpoint import ABOUT, FORMAT, NAMES, STATE, Checkpoints
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, here, is_there, load_arrays, locate, reaching
from jaxbounds.ground.folders import Marked

Metrics = dict[str, np.ndarray]


class _Part(NamedTuple):
    """A share of a sweep at its last step: the lanes (runs) `first` to `end` - 1 of `lanes`."""

    first: int
    end: int
    lanes: int
    mark: str
    step: int
    state: list[np.ndarray]
    metrics: Metrics


def _read(folder: Place) -> _Part | None:
    """Read a share (some of the runs) of a sweep; return None if the folder holds all runs."""
    arrays, mark = load_arrays(folder / "state.npz", form=FORMAT)
    if "part" not in arrays:
        return None
    first, end, count = arrays["part"].tolist()
    stored: Any = Checkpoints(folder, mark, (first, end, count)).load()
    step, state, chunks = stored
    metrics = {n: np.concatenate([c[n] for c in chunks], axis=1) for n in chunks[0]}
    return _Part(first, end, count, mark, step, state, metrics)


def _as_long_as(metrics: Metrics, records: int) -> Metrics:
    """Repeat the last record of finished lanes (runs) until the metrics have `records` records."""
    last = lambda v: np.repeat(v[:, -1:], records - v.shape[1], axis=1)
    return {name: np.concatenate([v, last(v)], axis=1) for name, v in metrics.items()}


def _join(name: str, parts: list[_Part], found: Sequence[Place], into: Place) -> None:
    parts.sort(key=lambda part: part.first)
    said = f"{name}: " if name else ""
    if len({(part.mark, part.lanes) for part in parts}) > 1:
        runs = sorted({part.mark[:8] for part in parts})
        raise Refused(
            f"{said}the shards belong to different runs, expected one run, got the runs' hashes "
            f"marks={runs}. Try the shards of one run"
        )
    reached, count = 0, parts[0].lanes
    for first, end in [*((part.first, part.end) for part in parts), (count, count)]:
        if first != reached:
            words = "are in two shards" if first < reached else "are in no shard"
            low, high = sorted((first, reached))
            raise Refused(
                f"{said}the sweep's training runs (lanes) {low} to {high - 1} of {count} {words} "
                f"(folders="
                f"{[str(place) for place in found]}). Try to give the folder of each shard once"
            )
        reached = end
    step = max(part.step for part in parts)
    records = max(next(iter(part.metrics.values())).shape[1] for part in parts)
    metrics = [_as_long_as(part.metrics, records) for part in parts]
    joined = {name: np.concatenate([m[name] for m in metrics]) for name in metrics[0]}
    state = [np.concatenate(leaves) for leaves in zip(*(part.state for part in parts))]
    checkpoints = Checkpoints(into / name, parts[0].mark)
    checkpoints.clear()
    checkpoints.refuse_foreign()
    _copy_files([found[0] / ABOUT], into / name)
    checkpoints.save(step, state, 0, joined)


def _copy(name: str, found: Sequence[Place], into: Place) -> None:
    if len(found) > 1:
        raise Refused(
            f"piece={name} (a part of the run) is in two shards: {found[0]} and {found[1]}. Try to "
            f"give each shard's folder once"
        )
    if is_there(found[0]):
        _copy_files(found, (into / name).parent)
    else:
        files = [file for file in found[0].glob("*") if NAMES.fullmatch(file.name)]
        _copy_files(sorted(files), into / name)


def _copy_files(files: Sequence[Place], into: Place) -> None:
    marked = Marked(into)
    for file in filter(is_there, files):
        with here(file) as copy, copy.open("rb") as old, marked.writing(file.name) as new:
            shutil.copyfileobj(old, new)


def merge_sweeps(folders: Sequence[str | Place], into: str | Place, /) -> int:
    """Join the shares of one sweep in a folder.

    The call `sweep(..., share="I/N", folder=...)` computes a share: a part of the lanes (runs).

    A later call of `sweep` with `resume=True`, this folder and no `share` returns all lanes.

    Args:
        folders: the folder of each share of the sweep.
        into: the folder of the whole sweep; it must not hold a sweep yet.

    Returns:
        The step that the sweep reached.

    Raises:
        Refused: if a folder holds no share, lanes are missing or in two shares, a file is damaged,
            the shares are of different sweeps, or `into` holds a sweep.
    """
    found, place = list(map(locate, folders)), locate(into)
    if is_there(place / STATE):
        raise Refused(f"out={place} holds a sweep. Try an empty folder")
    parts = list[_Part]()
    for folder in found:
        part = _read(folder) if is_there(folder / STATE) else None
        if part is None:
            raise Refused(
                f"folder={folder} holds no share of a sweep. Try the folders of "
                "sweep(..., share=..., folder=...)"
            )
        parts.append(part)
    _join("", parts, found, place)
    return max(part.step for part in parts)


def merge_parts(shares: Sequence[Place], into: Place, /) -> None:
    """Join the checkpoints of all shares of a run in `into`, from which a run can resume.

    Raises:
        Refused: if lanes are missing or in two shares, a file is damaged, or the shares are of
            different runs.
    """
    places: dict[str, dict[Place, None]] = {}
    for share in shares:
        with reaching(share):
            found = list(share.rglob("*.npz"))
        for file in found:
            place = file.parent if is_there(file.parent / "state.npz") else file
            name = str(place)[len(str(share)) :].strip("/")
            places.setdefault(name, {})[place] = None
    for name, alike in sorted(places.items()):
        parts = [_read(place) for place in alike if not is_there(place)]
        of_lanes = [part for part in parts if part is not None]
        if of_lanes and len(of_lanes) == len(alike):
            _join(name, of_lanes, list(alike), into)
        else:
            _copy(name, list(alike), into)
