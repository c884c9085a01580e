"""Read and write the file that describes a shard: a share of the training runs of a run."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, get_type_hints

from jaxbounds.experiments.sweeps import Share
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, Unreachable, here, is_there, reaching
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.readers import fits, json_in
from jaxbounds.runs.request import Request

NAME = "shard.json"
FORMAT = "jaxbounds-shard-1"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A shard: a part of the training runs that one `jaxbounds run` of an experiment needs.

    The `index` counts from 1. The field `about` is the result of `Request.identity` for the run.
    """

    experiment: str
    flags: tuple[str, ...]
    index: int
    count: int
    about: dict[str, Any]
    done: bool = False
    format: str = FORMAT

    @property
    def share(self) -> Share:
        """Return the shard's index and the number of shards."""
        return Share(self.index, self.count)

    def command(self, share: Share, out: Place, /) -> str:
        """Return the command that computes or continues this shard."""
        words = ["jaxbounds", "run", self.experiment, *self.flags, "--shard", str(share)]
        return shlex.join([*words, "--resume", "--out", str(out)])

    def write(self, folder: Place, *, done: bool) -> None:
        """Write the description of the shard into the shard's folder.

        Raises:
            Refused: if the folder holds the description of another run or shard.
        """
        if is_there(folder / NAME):
            there = read(folder)
            if (there.experiment, there.share) != (self.experiment, self.share):
                raise Refused(
                    f"{folder} already holds the shard={there.share} (a part) of "
                    f"experiment={there.experiment!r}. Try another --out"
                )
            refuse_unless_same(self, there, f"{folder} was", "this run is")
            if there.done == done:
                return  # the file keeps its time, which `_unfinished` compares with checkpoints
        text = json.dumps(asdict(replace(self, done=done)), indent=1) + "\n"
        Marked(folder).write(NAME, text)


def folder_of(out: Place, share: Share, /) -> Place:
    """Return the folder of a shard (part of a run) in `out`; all shards can use one `--out`."""
    return out / f"shard-{share.index}-of-{share.count}"


def _shard(stored: Any) -> Shard:
    hints = get_type_hints(Shard)
    if not isinstance(stored, dict) or set(stored) != set(hints):
        raise Refused(
            f"shard={stored!r:.40}, expected a part of a run with the fields {', '.join(hints)}. "
            f"Try to compute the shard again"
        )
    for name, hint in hints.items():
        if not fits(stored[name], hint):
            raise Refused(
                f"{name}={stored[name]!r:.40}, expected {hint}. Try to compute the shard again"
            )
    shard = Shard(**stored | {"flags": tuple(stored["flags"])})
    Share.read(str(shard.share))
    return shard


def read(folder: Place, /) -> Shard:
    """Read the description that `Shard.write` wrote.

    Raises:
        Refused: if the file is damaged or has the format of another version.
    """
    try:
        with here(folder / NAME) as file:
            shard = json_in(file, of=_shard)
        Marked(folder).refuse_changed(NAME)
    except Unreachable:
        raise
    except (OSError, ValueError) as problem:
        raise Refused(
            f"file={str(folder / NAME)!r} is damaged ({type(problem).__name__}). Try to compute "
            "this shard again"
        ) from problem
    if shard.format != FORMAT:
        raise Refused(
            f"{folder / NAME} has format={shard.format!r}, expected {FORMAT!r}. Try to compute "
            "this shard again"
        )
    return shard


def _flat(about: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(about, dict):
        return {name: about}
    return {k: v for key in about for k, v in _flat(about[key], f"{name}.{key}".strip(".")).items()}


def refuse_unless_same(one: Shard, other: Shard, first: str, second: str, /) -> None:
    """Refuse shards (shares of a run) that belong to different runs.

    Raises:
        Refused: if the shards' runs differ in a setting. The message names the setting, with the
            values of both shards.
    """
    ours, theirs = (_flat(s.about | {"experiment": s.experiment}) for s in (one, other))
    for name in sorted(ours | theirs):
        a, b = (str(about.get(name, "nothing")) for about in (ours, theirs))
        if a != b:
            raise Refused(
                f"these shards are of different runs: {first} computed with {name}={b[:60]}, "
                f"{second} computed with {name}={a[:60]}. Try another folder (--out), or compute "
                "the shards again"
            )


def shard_of(request: Request, share: Share, /) -> Shard:
    """Return the description of a shard (share of the training runs) of a requested run."""
    return Shard(
        experiment=request.experiment.id,
        flags=request.flags,
        about=json.loads(json.dumps(request.identity())),
        index=share.index,
        count=share.count,
    )


def _found(folders: tuple[Place, ...]) -> Iterator[Place]:
    for folder in folders:
        with reaching(folder):
            inside = sorted(file.parent for file in folder.glob(f"*/{NAME}"))
        itself = [folder] * is_there(folder / NAME)
        if not inside and not itself:
            raise Refused(
                f"folder={str(folder)!r} holds no shards. Try to compute shards with `jaxbounds "
                "run EXPERIMENT --shard I/N`"
            )
        yield from (*itself, *inside)


def complete(folders: tuple[Place, ...], /) -> dict[Share, tuple[Place, Shard]]:
    """Return all shards of one run, or refuse an incomplete set.

    Raises:
        Refused: if the shards belong to different runs, a shard occurs twice, or a shard is
            missing.
    """
    shards: dict[Share, tuple[Place, Shard]] = {}
    for folder in dict.fromkeys(_found(folders)):
        one = read(folder)
        first_folder, first = next(iter(shards.values()), (folder, one))
        refuse_unless_same(one, first, f"{first_folder} was", f"{folder} was")
        if one.count != first.count:
            raise Refused(
                f"the runs have different numbers of shards: {folder} is shard={one.share} and "
                f"{first_folder} is shard={first.share}. Try shards I/N with one number N"
            )
        if one.share in shards:
            twice = shards[one.share][0]
            raise Refused(
                f"{folder} and {twice} both hold shard={one.share}. Try to give only one of the "
                "two folders"
            )
        shards[one.share] = folder, one
    count, out = first.count, first_folder.parent
    missing = [share for i in range(1, count + 1) if (share := Share(i, count)) not in shards]
    cut = [share for share, (_, one) in shards.items() if not one.done]
    if missing or cut:
        names = lambda shares: ", ".join(map(str, sorted(shares)))
        words = [f"missing={names(missing)}"] * bool(missing)
        words += [f"unfinished={names(cut)}"] * bool(cut)
        again = first.command(min([*missing, *cut]), out)
        raise Refused(
            f"shards={count} (parts of the run) are needed, but {'; '.join(words)}. Try to compute "
            f"each of these shards, for example with `{again}`"
        )
    return shards
