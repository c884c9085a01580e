"""Log the records of a sweep with any function, or into a CSV file."""

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import numpy as np

from jaxbounds.experiments.sweeps.programs import OVER
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import locate
from jaxbounds.ground.folders import Marked

OnRecord = Callable[[int, Mapping[str, np.ndarray]], None]
"""A function that the sweep calls with (step, metrics) each time that it records metrics; `metrics`
is a dict of arrays (lanes, ...)."""


class Csv:
    """A CSV file with a line for each lane (run) and each recorded step: step, lane, metrics.

    An array becomes one column for each of its entries, "w[0]", "w[1]", ... The sweep renames an
    existing file that no sweep wrote.

    Raises:
        Refused: if the name does not end in .csv, or is an address.
    """

    def __init__(self, path: str | Path) -> None:
        if not str(path).endswith(".csv") or "://" in str(path):
            raise Refused(
                f"on_record={str(path)!r}, expected a function or a file of this machine that ends "
                "in .csv. Try on_record='records.csv'"
            )
        place = locate(path)
        self._marked, self._name, self._began = Marked(place.parent), place.name, False

    def __call__(self, step: int, metrics: Mapping[str, np.ndarray]) -> None:
        """Write a line for each lane (run), with the metrics recorded at one step."""
        columns: dict[str, np.ndarray] = {}
        for name, values in metrics.items():
            flat = values.reshape(len(values), -1)
            if values.ndim == 1:
                columns[name] = flat[:, 0]
                continue
            for i, index in enumerate(np.ndindex(values.shape[1:])):
                columns[f"{name}[{','.join(map(str, index))}]"] = flat[:, i]
        if not self._began:
            self._marked.begin_lines(self._name, _line(["step", "lane", *columns]))
            self._began = True
        lanes = len(next(iter(columns.values()), ()))
        rows = (_line([step, i, *(values[i] for values in columns.values())]) for i in range(lanes))
        self._marked.add_line(self._name, "\n".join(rows))


def _line(entries: list) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(map(str, entries))
    return text.getvalue()


def logger_of(on_record: OnRecord | str | Path | None, /) -> OnRecord | None:
    """Return the function that `on_record` names.

    Raises:
        Refused: if `on_record` is neither a function nor the name of a CSV file.
    """
    if on_record is None or callable(on_record):
        return on_record
    return Csv(on_record)


def tell(log: OnRecord | None, metrics: Mapping[str, np.ndarray], first: int, every: int) -> None:
    """Pass records (metrics at recorded steps) to a logger, if this is the first process.

    The arrays of metrics have the shape (lanes, records, ...). The first record comes `every` steps
    after the step `first`.
    """
    if log is None or jax.process_index() > 0:
        return
    shown = {name: values for name, values in metrics.items() if name != OVER}
    for i in range(next((values.shape[1] for values in metrics.values()), 0)):
        log(first + (i + 1) * every, {name: values[:, i] for name, values in shown.items()})
