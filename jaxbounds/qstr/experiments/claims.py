"""A paper's qualitative statement as a predicate on an experiment's dataset, with its number."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Claim:
    """One claim, checked.

    Attributes:
        text: what is claimed, with its threshold.
        value: the measured number.
        status: "reproduced", "not reproduced", or "undecided" where censoring leaves it open.
    """

    text: str
    value: float
    status: Literal["reproduced", "not reproduced", "undecided"]


def claim(text: str, value: float, holds: bool, /, *, open_: bool = False) -> Claim:
    """A claim with its status; `open_` marks a number that censoring only bounds."""
    if holds:
        return Claim(text, float(value), "reproduced")
    return Claim(text, float(value), "undecided" if open_ else "not reproduced")
