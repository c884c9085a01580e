"""A share of a run: the lanes and other pieces that are computed here.

The run deals out the lanes of its sweeps in the order in which it needs them. So the shares of a
run agree on their lanes without talking to each other.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

import jax

from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True, order=True)
class Share:
    """One of `count` shares of a run; `index` counts from 1."""

    index: int
    count: int

    @classmethod
    def read(cls, text: str, /) -> "Share":
        """Read a share from "3/16".

        Raises:
            Refused: if the text has another form, or there is no such share.
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
    """The share is computed; the numbers of the other shares are not here."""


@dataclass
class _Deal:
    share: Share
    seen: int = 0


_deal: ContextVar[_Deal | None] = ContextVar("deal", default=None)


@contextlib.contextmanager
def only(share: Share, /) -> Iterator[None]:
    """Let a run compute one share, and end with `OnlyAShare`, for the length of a `with` block."""
    token = _deal.set(_Deal(share))
    try:
        yield
    finally:
        _deal.reset(token)


def dealt() -> bool:
    """Tell whether only a share is computed."""
    return _deal.get() is not None


def own(count: int, /) -> range:
    """Return the next `count` lanes of the run that are computed here: all, or a share of them."""
    deal = _deal.get()
    if deal is None:
        return range(count)
    # Shares without lanes of this sweep come first at the next.
    turn, shares = (deal.share.index - 1 - deal.seen) % deal.share.count, deal.share.count
    deal.seen += count
    return range(count * turn // shares, count * (turn + 1) // shares)


def mine() -> bool:
    """Tell whether the next piece of the run that is no lane of a sweep is computed here.

    Raises:
        Refused: if several processes share the run: only lanes can be spread over them.
    """
    if jax.process_count() > 1:
        raise Refused("this run has no lanes to share among processes: cut it by --shards")
    return len(own(1)) == 1


def whole() -> None:
    """End a share, called by a run when its pieces are done, before it looks at their numbers.

    Raises:
        OnlyAShare: if the numbers of other shares are not here.
    """
    if dealt():
        raise OnlyAShare
