"""Define controls: functions that change a data set so that a figure's claim must fail.

If the original data set reproduces a claim, the changed data set must not reproduce the claim. The
dict `Experiment.controls` maps words from the text of a claim to the claim's control.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxbounds.experiments.experiment import Control, Experiment, Finding

if TYPE_CHECKING:  # slow to import
    import xarray as xr


class Controlled(NamedTuple):
    """The decision of a claim on a data set, and on the data set that the claim's control changed.

    A control changes a data set so that the claim must fail.

    Attributes:
        control: the name of the claim's control; "" if the claim has no control.
        after: the decision of the claim on the changed data set; None if no claim on the changed
            data set has the claim's text.
    """

    finding: Finding
    control: str
    after: Finding | None

    @property
    def rejected(self) -> bool:
        """Tell whether the claim's control (a change of the data set) makes the claim fail."""
        return self.after is not None and self.after.reproduced is False


def control_of(controls: Mapping[str, Control], finding: Finding, /) -> str:
    """Return the longest name in `controls` that the claim's text contains; "" if there is none."""
    names = [name for name in controls if name in finding.text]
    return max(names, key=len, default="")


def controlled(experiment: Experiment, dataset: "xr.Dataset", /) -> tuple[Controlled, ...]:
    """Decide each claim about a data set again, on a changed data set that must not confirm it."""
    spoiled: dict[str, tuple[Finding, ...]] = {}
    found = []
    for index, finding in enumerate(experiment.claims(dataset)):
        name = control_of(experiment.controls, finding)
        if name and name not in spoiled:
            spoiled[name] = experiment.claims(experiment.controls[name](dataset))
        others = spoiled.get(name, ())
        after = next((one for one in others if one.text == finding.text), None)
        if after is None and index < len(others):  # a claim's text may hold a number of the data
            after = others[index]
        found.append(Controlled(finding, name, after))
    return tuple(found)


def scaled(factor: float, /, *names: str, **where: Any) -> Control:
    """Return a control (a change of a data set) that multiplies variables by a factor.

    The variables have the given names. The dict `where` maps a coordinate to the labels of the
    entries that change; the default changes all entries.
    """

    def control(dataset: "xr.Dataset") -> "xr.Dataset":
        return _changed(dataset, names, where, lambda values: values * factor)

    return control


def shifted(change: float, /, *names: str, **where: Any) -> Control:
    """Return a control (a change of a data set) that adds a number to variables.

    The arguments `names` and `where` mean the same as in `scaled`.
    """

    def control(dataset: "xr.Dataset") -> "xr.Dataset":
        return _changed(dataset, names, where, lambda values: values + change)

    return control


def valued(value: Any, /, *names: str, **where: Any) -> Control:
    """Return a control (a change of a data set) that sets variables to one value.

    The arguments `names` and `where` mean the same as in `scaled`.
    """

    def control(dataset: "xr.Dataset") -> "xr.Dataset":
        return _changed(dataset, names, where, lambda values: values * 0 + value)

    return control


def turned(dimension: str, /, *names: str) -> Control:
    """Return a control (a change of a data set) that reverses variables along a dimension."""

    def control(dataset: "xr.Dataset") -> "xr.Dataset":
        there = [name for name in names if name in dataset and dimension in dataset[name].dims]
        other = {
            name: (dataset[name].dims, dataset[name].isel({dimension: slice(None, None, -1)}).data)
            for name in there
        }
        return dataset.assign(other)

    return control


def _changed(
    dataset: "xr.Dataset", names: tuple[str, ...], where: Mapping[str, Any], change: Callable
) -> "xr.Dataset":
    found = {}
    for name in (name for name in names if name in dataset):
        values = dataset[name].astype(float)
        here = True
        for coordinate, label in where.items():
            wanted = label if callable(label) else (lambda value, label=label: value == label)
            here = here & wanted(dataset[coordinate])
        found[name] = change(values).where(here, values).transpose(*values.dims)
    return dataset.assign(found)
