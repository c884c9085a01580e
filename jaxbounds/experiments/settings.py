"""Name the settings at which a figure's claims are decided.

If a run has other settings than the required ones, its claims remain undecided (open).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jaxbounds.experiments.experiment import Finding

if TYPE_CHECKING:  # slow to import
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings that a run needs to decide a figure's claims.

    A field's path in the configuration ("n", "protocol.d") names the field.

    Attributes:
        exact: a dict from a field of the configuration to the field's required value.
        least: a dict from a field of the configuration to the field's smallest allowed value. If a
            field is a grid, the largest value of the grid must be at least the given value.
        others: the reason why fields in neither `exact` nor `least` may have any value.
        whose: the origin of the settings, in words, for example "the paper's".
        decides: the options of a run that decides the claims ("--preset published").
    """

    exact: Mapping[str, Any] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    others: str
    whose: str = "the paper's"
    decides: str = "--preset published"

    def changed(self, dataset: "xr.Dataset", /) -> tuple[str, ...]:
        """Return a text for each setting that differs, such as "n = 200, not the paper's 1000"."""
        config = dataset.attrs.get("config")
        if config is None:
            return ("settings not recorded",)
        words = []
        for name, wanted in self.exact.items():
            own = _plain(value_at(config, name))
            if own != _plain(wanted):
                words.append(f"{name} = {_shown(own)}, not {self.whose} {_shown(_plain(wanted))}")
        for name, wanted in self.least.items():
            own = _plain(value_at(config, name))
            largest = max(own, default=0) if isinstance(own, list) else own
            if largest is None or largest < wanted:
                up_to = "up to " * isinstance(own, list)
                words.append(f"{name} = {up_to}{_shown(largest)}, below {self.whose} {wanted:g}")
        return tuple(words)

    def judged(
        self, dataset: "xr.Dataset", findings: Iterable[Finding], /, *, more: Iterable[str] = ()
    ) -> tuple[Finding, ...]:
        """Return findings (answers to claims); make them undecided if the settings do not suffice.

        The texts `more` name further differences between the run's settings and the required
        settings.
        """
        changed = (*self.changed(dataset), *more)
        return tuple(opened(one, changed, self.decides) for one in findings)


def default_settings(
    *, others: str, least: Mapping[str, float], exact: Mapping[str, Any] | None = None
) -> Settings:
    """Return the settings for an experiment that no paper has: the experiment's default settings.

    The arguments mean the same as the attributes of `Settings`.
    """
    return Settings(
        exact=exact or {}, least=least, others=others, whose="the default's", decides="The default"
    )


def opened(finding: Finding, changed: Iterable[str], decides: str, /) -> Finding:
    """Return a finding (answer to a claim); make it undecided if any settings `changed`.

    The undecided finding names the options `decides` of a run that decides the claim.
    """
    why = "; ".join(changed)
    if not why or finding.reproduced is None:
        return finding
    here = "yes" if finding.reproduced else "no"
    number = f"{why}. {decides} would decide; here {here}: {finding.number}"
    return finding._replace(reproduced=None, number=number)


def said_here(finding: Finding, /) -> str:
    """Return "yes" or "no": the answer to a claim before `opened` made the answer undecided.

    If `opened` did not change the answer, the result is "".
    """
    found = re.search(r"; here (yes|no): ", finding.number)
    return found.group(1) if found and finding.reproduced is None else ""


def value_at(config: Mapping[str, Any], path: str, /) -> Any:
    """Return a field of a configuration by its path, or None if there is no such field."""
    value: Any = config
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _plain(value: Any) -> Any:
    """Turn tuples into lists, because a stored configuration has lists."""
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
