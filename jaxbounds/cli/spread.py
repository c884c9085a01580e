"""A run cut into shards that are computed by any executor, and put together."""

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from jaxbounds.cli import shard
from jaxbounds.cli.asked import Asked
from jaxbounds.cli.engines import On, opened
from jaxbounds.cli.merge import merge
from jaxbounds.cli.pieces import Died, absolute, each, packed, unpack
from jaxbounds.cli.run import run
from jaxbounds.cli.workers import at_most
from jaxbounds.files import Place
from jaxbounds.sweeps import Share


class _Piece(NamedTuple):
    experiment: str
    flags: tuple[str, ...]
    share: Share
    again: bool = False


def _compute(piece: _Piece) -> dict[str, bytes]:
    """Anywhere; the shard's files come home."""
    with tempfile.TemporaryDirectory() as place:
        run(piece.experiment, (*piece.flags, "--shard", str(piece.share), "--out", place))
        return packed(Path(place))


def _is_done(folder: Place) -> bool:
    return (folder / shard.NAME).is_file() and shard.read(folder).done


def spread(given: Asked, shards: int, on: On, /) -> int:
    """Compute all shards of a run and merge them; what was done before is not done again.

    Args:
        given: the run.
        shards: how many.
        on: where they are computed; each is in the folder of the run as soon as it is done.

    Raises:
        ValueError: if shards were lost twice, with those that are missing.
    """
    out = given.out
    every = [Share(index, shards) for index in range(1, shards + 1)]
    left = [share for share in every if not _is_done(shard.folder_of(out, share))]
    words = given.flags
    flags = tuple(absolute([b])[0] if a == "--import" else b for a, b in zip(("", *words), words))
    pieces, died = [_Piece(given.experiment.id, flags, share) for share in left], {}
    with opened(on, count=min(at_most(0), max(len(left), 1)), folder=out) as executor:
        while pieces:
            again = []
            for piece, files in each(executor, _compute, pieces):
                if not isinstance(files, Died):
                    unpack(files, out)
                    print(f"shard {piece.share} is done", file=sys.stderr)
                elif piece.again:
                    died[piece.share] = files
                else:
                    again.append(piece._replace(again=True))
            pieces = again
    for share, death in sorted(died.items()):
        raise ValueError(f"shard {share}: {death}; the same command continues")
    return merge((str(out),), out=str(out))
