"""Define experiments, which compute a figure or table of a paper and decide its claims."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxbounds.ground.exceptions import Refused

if TYPE_CHECKING:  # slow to import, and commands that list experiments do not need it
    import xarray as xr


class Finding(NamedTuple):
    """A qualitative statement of the paper about a figure, decided on a data set.

    Attributes:
        text: the paper's statement, with the threshold that decides it.
        reproduced: whether the data set shows the statement; None if the data set cannot decide.
        number: a text with the numbers that decided the claim.
    """

    text: str
    reproduced: bool | None
    number: str


def __getattr__(name: str) -> Any:
    """Return `Finding` for its old name `Claim`, for one release."""
    if name != "Claim":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "jb.Claim, a figure's claim, is now called jb.Finding. Try jb.Finding, since the next "
        "release drops the old name. jb.claim declares a claim of a paper",
        DeprecationWarning,
        stacklevel=3,
    )
    return Finding


Control = Callable[["xr.Dataset"], "xr.Dataset"]
"""A function that changes a data set so that the changed data set must not reproduce a claim."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A computation that reproduces a figure or table of a paper.

    Attributes:
        id: "<paper>.<name>", for example "multihead.fig2".
        label: the label in the paper, for example "Figure 2".
        title: the purpose of the experiment, in one line.
        config: the default configuration, a frozen dataclass; every field is an option of
            `jaxbounds run`.
        presets: a dict from the name of a preset, such as "faithful", to the preset's
            configuration.
        run: the function `run(config, key) -> xarray.Dataset`, which computes the data. If
            `resumable` is set, the function also takes `folder` and `resume`. A resumable `run`
            stores its progress in `folder`, and continues from there if `resume` is True.
        figure: the function `figure(dataset) -> matplotlib Figure`, which draws the result.
        claims: the function `claims(dataset) -> tuple of Finding`, which decides the paper's
            claims.
        controls: a dict from words in a claim's text to the claim's control (a change of the data
            set after which the claim must fail). If several keys of this dict occur in the text,
            the longest key's control is used.
        resumable: whether the function `run` takes `folder` and `resume`.
    """

    id: str
    label: str
    title: str
    config: Any
    run: Callable[..., xr.Dataset]
    figure: Callable[[xr.Dataset], Any]
    claims: Callable[[xr.Dataset], tuple[Finding, ...]]
    controls: Mapping[str, Control] = field(default_factory=dict)
    presets: Mapping[str, Any] = field(default_factory=dict)
    resumable: bool = False


def refuse_unless_increasing(config: Any, /, *names: str) -> None:
    """Refuse a grid (a tuple of values) in a configuration unless it is positive and increasing.

    Raises:
        Refused: if a grid is empty, not positive or not strictly increasing; the message names the
            first field with this fault, and its values.
    """
    for name in names:
        values = list(getattr(config, name))
        if not values or values != sorted(set(values)) or not values[0] > 0:
            raise Refused(
                f"{name}={tuple(values)}, expected positive increasing numbers. Try {name}=1,2,4"
            )


def refuse_unless_positive(config: Any, /, *names: str) -> None:
    """Refuse a configuration in which one of the named numbers is not positive.

    Raises:
        Refused: if a number is not positive; the message names the first such field.
    """
    for name in names:
        value = getattr(config, name)
        if not value > 0:
            raise Refused(f"{name}={value}, expected a positive number. Try {name}=1")
