"""What a folder of one share of a run says of itself: of which run, which share, whether done."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax

from jaxbounds.cli.source import digest_of
from jaxbounds.files import Place, write_text
from jaxbounds.provenance import provenance
from jaxbounds.sweeps import Share

NAME = "shard.json"
FORMAT = "jaxbounds-shard-1"


def identity(config: Any, key: jax.Array, imports: Sequence[str], /) -> dict[str, Any]:
    """All that the numbers depend on, as JSON gives it back."""
    about = provenance(config, key) | {"source": digest_of(imports)}
    del about["git"]  # the source is known better
    return json.loads(json.dumps(about))


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A share of a run.

    Attributes:
        experiment: its id.
        flags: of `jaxbounds run`: preset, seed, imports and fields of the configuration.
        index: which share, from 1.
        count: how many there are.
        about: `identity` of the run.
        done: whether all of it was computed.
        format: of the file.
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
        """Which it is."""
        return Share(self.index, self.count)

    def command(self, share: Share, out: Place, /) -> str:
        """What computes a share of the same run, or goes on with it."""
        words = ["jaxbounds", "run", self.experiment, *self.flags, "--shard", str(share)]
        return shlex.join([*words, "--resume", "--out", str(out)])

    def write(self, folder: Place, *, done: bool) -> None:
        """Put the file into the share's folder.

        Raises:
            ValueError: if that of another run or share is there.
        """
        if (folder / NAME).is_file():
            there = read(folder)
            if (there.experiment, there.share) != (self.experiment, self.share):
                raise ValueError(f"{folder} holds another shard: choose another --out")
            refuse_unless_same(self, there, f"{folder} was", "this run is")
            if there.done == done:
                return  # its time says what came after it
        write_text(folder / NAME, json.dumps(asdict(replace(self, done=done)), indent=1) + "\n")


def folder_of(out: Place, share: Share, /) -> Place:
    """Where a share is kept: all of a run can be given the same `--out`."""
    return out / f"shard-{share.index}-of-{share.count}"


def read(folder: Place, /) -> Shard:
    """What `Shard.write` wrote.

    Raises:
        ValueError: if it is damaged or of another version.
    """
    try:
        stored = json.loads((folder / NAME).read_text(encoding="utf8"))
        shard = Shard(**stored | {"flags": tuple(stored["flags"])})
        Share.read(str(shard.share))
    except (OSError, ValueError, TypeError, KeyError) as problem:
        raise ValueError(
            f"{folder / NAME} is damaged ({type(problem).__name__}): compute this shard again"
        ) from problem
    if shard.format != FORMAT:
        raise ValueError(f"{folder / NAME} was not written by this version: expected {FORMAT}")
    return shard


def _flat(about: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(about, dict):
        return {name: about}
    return {k: v for key in about for k, v in _flat(about[key], f"{name}.{key}".strip(".")).items()}


def refuse_unless_same(one: Shard, other: Shard, first: str, second: str, /) -> None:
    """Refuse shards of different runs.

    Raises:
        ValueError: naming what differs, of `first` and of `second`.
    """
    ours, theirs = (_flat(s.about | {"experiment": s.experiment}) for s in (one, other))
    for name in sorted(ours | theirs):
        a, b = (str(about.get(name, "nothing")) for about in (ours, theirs))
        if a != b:
            raise ValueError(
                f"shards of different runs: {name} differs, {first} computed with {b[:60]}, "
                f"{second} with {a[:60]}; choose another --out, or compute them again"
            )
