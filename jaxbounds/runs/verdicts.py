"""`Verdicts`: a tuple of verdicts that prints as a table and loads its instances."""

import math
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxbounds.falsification import StoredInstance, Verdict, load_instance
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, with_table


class Scratch:
    """A temporary folder, which Python removes when nothing refers to the `Scratch` any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="jaxbounds-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@with_table
class Verdicts(tuple[Verdict, ...]):
    """Verdicts on forms of statements, with the instances that decided them.

    A form is one version of a claim: printed, corrected or sharpened.

    An id selects the verdicts on one statement: `verdicts["multihead.cor1.3"]`. In the printed
    table, the column "how close" shows the worst ratio in words. "x1.39 loose" means that the left
    side reached at most 1/1.39 of the right side. "x1.5 over" means that the left side reached 1.5
    times the right side. "over by 2" means that the difference of the sides is 2; the table prints
    the difference if a side is negative or zero. "attained" means that an instance made the two
    sides equal. The table prints "(recorded: holds)" beside a verdict that differs from the
    recorded verdict.

    Attributes:
        folder: the folder that holds the run's instances.
        settings: the versions, the source and the seed that the verdicts depend on; empty if
            unknown.
        moved: a line for each form whose ratios differ from the record (`verify(record=True)`). A
            changed formula may change ratios, even if no verdict changes.
        changed: a line for each form whose values differ from the record.
        recorded: a line for each form whose recorded values `verify(record=True)` changed.
        continued: the statements that an interrupted run judged, each with the time (UTC). The code
            and files on which the interrupted run's verdicts depend have not changed since.
    """

    folder: Path
    settings: Mapping[str, Any]
    moved: tuple[str, ...]
    changed: tuple[str, ...]
    recorded: tuple[str, ...]
    continued: Mapping[str, str]

    def __new__(
        cls,
        verdicts: Iterable[Verdict],
        *,
        folder: Path,
        settings: Mapping[str, Any] | None = None,
        moved: Iterable[str] = (),
        changed: Iterable[str] = (),
        recorded: Iterable[str] = (),
        continued: Mapping[str, str] | None = None,
        scratch: Scratch | None = None,
    ) -> "Verdicts":
        """Make the tuple; Python keeps the folder `scratch` as long as the tuple is in use."""
        made = super().__new__(cls, verdicts)
        made.folder, made.settings, made._scratch = folder, dict(settings or {}), scratch
        made.moved, made.changed, made.recorded = tuple(moved), tuple(changed), tuple(recorded)
        made.continued = dict(continued or {})
        return made

    _scratch: Scratch | None

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, str):
            return super().__getitem__(index)
        found = [v for v in self if v.id == index]
        if not found:
            ids = ", ".join(dict.fromkeys(v.id for v in self))
            raise KeyError(
                f"there is no verdict on {index!r}, got id={index!r}. Try one of: {ids[:300]}"
            )
        own = lambda lines: [line for line in lines if line.startswith((f"{index} (", f"{index}:"))]
        given = {"folder": self.folder, "settings": self.settings, "scratch": self._scratch}
        moved, changed = own(self.moved), own(self.changed)
        continued = {name: when for name, when in self.continued.items() if name == index}
        return Verdicts(found, moved=moved, changed=changed, continued=continued, **given)  # type: ignore[arg-type]

    @property
    def status(self) -> int:
        """Return the exit status: 3 if a measurement failed, 1 if a verdict is unexpected, else 0.

        A verdict is unexpected if it differs from the recorded verdict.
        """
        if any(v.status == "error" or (v.out_of_time and v.recorded) for v in self):
            return 3
        return int(bool(self.changed) or not all(v.as_expected for v in self))

    @property
    def worst(self) -> Verdict:
        """Return the verdict with the largest `worst`, the largest measured ratio of the two sides.

        Raises:
            Refused: if no instance was measured for any of the verdicts.
        """
        measured = [v for v in self if not math.isnan(v.worst_ratio)]
        if not measured:
            reasons = "; ".join(dict.fromkeys(v.reason for v in self))
            raise Refused(
                f"no instance was measured for verdicts={len(self)}: "
                f"{reasons or 'there are no verdicts'}. Try another statement"
            )
        return max(measured, key=lambda v: v.worst_ratio)

    def instance(self, verdict: Verdict | None = None, *, shrunk: bool = False) -> StoredInstance:
        """Return the worst instance of a form as nested dicts of arrays, with its measurements.

        A form is one version of a claim: printed, corrected or sharpened.

        Args:
            verdict: a verdict of this run; by default the verdict with the largest ratio.
            shrunk: whether to load the simplified counterexample of a failing form instead of the
                worst instance.

        Raises:
            Refused: if the run stored no worst instance, or no counterexample (for `shrunk=True`),
                of the form.
        """
        verdict = self.worst if verdict is None else verdict
        file = verdict.shrunk_file if shrunk else verdict.worst_file
        if not file:
            raise Refused(
                f"the run stored no instance (input) for {verdict.id} ({verdict.form}), got "
                f"{shrunk=}. Try another verdict, or verify again with out=FOLDER"
            )
        return load_instance(self.folder / file)

    def _table(self) -> Table:
        from jaxbounds.report.columns import BRIEF  # slow to import
        from jaxbounds.report.terminal import summary

        def cells(v: Verdict) -> Iterator[str]:
            for column in BRIEF:
                wrong = column.name == "verdict" and not v.as_expected
                yield f"{column.text(v)}: {v.reason}" if wrong else column.text(v)

        since = (f"{name} was judged {when} UTC" for name, when in self.continued.items())
        rows = [[*cells(v)] for v in self]
        changed = [f"NOT as recorded: {line}" for line in self.changed]
        title = "\n".join([summary(self, changed=len(changed)), *since, *changed, *self.moved])
        return Table(title, [column.name for column in BRIEF], rows)
