"""A share of a run: which of its lanes and other pieces are computed here.

The lanes of one sweep after the other are dealt out in the order in which the run asks for them, so
that the shares of a run agree on who computes what without a word between them.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

import jax


@dataclass(frozen=True, order=True)
class Share:
    """One of `count` shares of a run; `index` counts from 1."""

    index: int
    count: int

    @classmethod
    def read(cls, text: str, /) -> "Share":
        """From "3/16".

        Raises:
            ValueError: if it is nothing of the kind, or there is no such share.
        """
        index, _, count = text.partition("/")
        if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
            raise ValueError(f"a shard is I/N with 1 <= I <= N, as 3/16; got {text!r}")
        return cls(int(index), int(count))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class OnlyAShare(Exception):
    """All that belongs to the share is computed; the numbers of the others are not here."""


@dataclass
class _Deal:
    share: Share
    seen: int = 0


_deal: ContextVar[_Deal | None] = ContextVar("deal", default=None)


@contextlib.contextmanager
def only(share: Share, /) -> Iterator[None]:
    """For the length of a `with` block a run computes one share and ends with `OnlyAShare`."""
    token = _deal.set(_Deal(share))
    try:
        yield
    finally:
        _deal.reset(token)


def dealt() -> bool:
    """Whether only a share is computed."""
    return _deal.get() is not None


def own(count: int, /) -> range:
    """Which of the next `count` lanes of the run are computed here: all, or a share of them."""
    deal = _deal.get()
    if deal is None:
        return range(count)
    # Shares that got nothing of this come first at the next.
    turn, shares = (deal.share.index - 1 - deal.seen) % deal.share.count, deal.share.count
    deal.seen += count
    return range(count * turn // shares, count * (turn + 1) // shares)


def mine() -> bool:
    """Whether the next piece of the run that is no lane of a sweep is computed here.

    Raises:
        ValueError: if several processes share the run: only lanes can be spread over them.
    """
    if jax.process_count() > 1:
        raise ValueError("this run has no lanes to share among processes: cut it by --shards")
    return len(own(1)) == 1


def whole() -> None:
    """Called by a run when its pieces are done, before it looks at their numbers.

    Raises:
        OnlyAShare: if those of other shares are not here.
    """
    if dealt():
        raise OnlyAShare
