"""Define a share of a run: the lanes (runs of a sweep) and other work that one process computes.

Each process counts the lanes of all sweeps in the order of the run, and computes from the count
which lanes are its own. The processes therefore divide the lanes without communication.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

import jax

from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True, order=True)
class Share:
    """One of the `count` shares of a run; `index`, from 1 to `count`, says which share.

    A share is the part of the run's work that one process computes.
    """

    index: int
    count: int

    @classmethod
    def read(cls, text: str, /) -> "Share":
        """Read a share (the part of a run for one process) from a text such as "3/16".

        Raises:
            Refused: if the text has another form, or the index exceeds the count.
        """
        index, _, count = text.partition("/")
        if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
            raise Refused(
                f"a shard is I/N with 1 <= I <= N, as 3/16; got {text!r}. Try "
                f"1/{count if count.isdecimal() else 16}"
            )
        return cls(int(index), int(count))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class OnlyAShare(Exception):
    """Raised to end a run after its share, the part of the work for this process.

    The run cannot continue, because this process lacks the results of the other shares.
    """


@dataclass
class _Deal:
    share: Share
    seen: int = 0


_deal: ContextVar[_Deal | None] = ContextVar("deal", default=None)


@contextlib.contextmanager
def only(share: Share, /) -> Iterator[None]:
    """Let a run inside a `with` block compute one share of its work, then raise `OnlyAShare`."""
    token = _deal.set(_Deal(share))
    try:
        yield
    finally:
        _deal.reset(token)


def dealt() -> bool:
    """Tell whether this run computes only a part (share) of a sweep's training runs."""
    return _deal.get() is not None


def own(count: int, /) -> range:
    """Return which of the next `count` lanes (runs of a sweep) this process computes."""
    deal = _deal.get()
    if deal is None:
        return range(count)
    # A share without lanes of this sweep comes first in the next sweep.
    turn, shares = (deal.share.index - 1 - deal.seen) % deal.share.count, deal.share.count
    deal.seen += count
    return range(count * turn // shares, count * (turn + 1) // shares)


def mine() -> bool:
    """Tell whether this process does the next part of the work that belongs to no training run.

    Exactly one process does each part of the work that belongs to no training run.

    Raises:
        Refused: if several processes share the run, because only lanes can be spread over them.
    """
    if jax.process_count() > 1:
        raise Refused(
            f"processes={jax.process_count()} share this run, but they can share only training "
            f"runs, and this run has other work. Try --shards instead of several processes"
        )
    return len(own(1)) == 1


def whole() -> None:
    """End a process that computed only a share, before the run needs the results of all shares.

    Raises:
        OnlyAShare: if this process computes only a share of the run's work.
    """
    if dealt():
        raise OnlyAShare
