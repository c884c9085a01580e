"""Show stored instances on the HTML page: their arrays, and the command to measure them again."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.falsification import ON_AVERAGE, Verdict, load_instance
from jaxbounds.falsification.storage import flatten
from jaxbounds.report.columns import number
from jaxbounds.report.describe import sides_text
from jaxbounds.report.markup import Html, element, joined

_ENTRIES = 96
"""The page shows an array whole if it has at most this many entries. If this number of entries is
larger, the page is longer."""


class Run(NamedTuple):
    """The facts about a run that the page shows in a statement's rows in addition to the verdicts.

    The commands that replay an instance need the arguments `imports` of `--import`.
    """

    out: Path
    imports: tuple[str, ...]
    errata: frozenset[tuple[str, str]]


def _array(value: object) -> tuple[str, bool]:
    array = np.asarray(value)
    digits = lambda x: f"{x + 0:.6g}"  # adding zero turns -0.0 into 0.0
    text = np.array2string(
        array,
        separator=", ",
        max_line_width=76,
        threshold=_ENTRIES,
        edgeitems=3,
        formatter={"float_kind": digits},
    )
    return re.sub(r"\n\s*\n", "\n", text), array.size > _ENTRIES or any(
        float(digits(x)) != x for x in array.ravel() if np.issubdtype(array.dtype, np.floating)
    )


def _instance(instance: Instance) -> tuple[str, bool]:
    lines, cut = [], False
    for name, leaf in flatten(instance).items():
        text, shortened = _array(leaf)
        cut |= shortened
        shape = " × ".join(map(str, np.shape(leaf)))
        title = f"{name} ({shape})" if shape else name
        lines.append(f"{title}\n{text}" if "\n" in text else f"{title}  {text}")
    return "\n".join(lines), cut


def _stored(title: str, size: Mapping[str, float], file: str, run: Run, relation: str = "") -> Html:
    stored = load_instance(run.out / file)
    text, cut = _instance(stored.instance)
    ratio = f"ratio {number(float(stored.meta['ratio']))}"
    shapes = ", ".join(f"{name} = {value}" for name, value in size.items())
    imports = "".join(f" --import {shlex.quote(where)}" for where in run.imports)
    command = f"jaxbounds replay {shlex.quote(str(run.out / file))}{imports}"
    return element(
        "details",
        element(
            "summary",
            f"{title}, {sides_text(relation, stored.meta) or ratio}"
            + (f" at {shapes}" if shapes else ""),
        ),
        element("pre", text),
        element("p", "Shortened; the file has every digit.", class_="small") if cut else None,
        element("p", element("code", command), class_="command"),
        class_="instance",
    )


def stored_instances(verdict: Verdict, run: Run, /) -> Html:
    """Return the HTML of a form's worst instance and, if the form fails, its counterexample.

    A form is one version of a claim. At the worst instance the ratio lhs/rhs is largest.
    """
    parts = []
    if verdict.worst_file:
        title = "Largest single draw" if verdict.kind in ON_AVERAGE else "Worst instance"
        parts.append(_stored(title, verdict.size, verdict.worst_file, run, verdict.relation))
    if verdict.shrunk_file:
        title, of = "Counterexample, made small", verdict.relation
        parts.append(_stored(title, {}, verdict.shrunk_file, run, of))
    if verdict.witness_file:
        file = run.out / verdict.witness_file
        title = element("summary", "Witness, for an independent checker")
        text = element("pre", file.read_text(encoding="utf8"))
        parts.append(element("details", title, text, class_="instance"))
        if (run.out / verdict.theorem_file).is_file():
            link = element("a", verdict.theorem_file, href=verdict.theorem_file)
            parts.append(element("p", "A file that the kernel of Rocq checks: ", link))
    return joined(*parts)
