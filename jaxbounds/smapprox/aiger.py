"""Layered circuits, built from the combinational circuits in ASCII AIGER ("aag") files."""

import re
from collections.abc import Hashable, Sequence

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox.circuits import Circuit, layered


def from_aiger(text: str, /) -> Circuit:
    """Build the layered circuit that an ASCII AIGER file describes.

    A literal 2v is the variable v, and 2v+1 is its negation. The literals 0 and 1 are false and
    true, which the circuit computes as x & ~x and its negation.

    Raises:
        Refused: if the file is malformed, has latches, no inputs or no outputs.
    """
    lines = text.splitlines()
    header = lines[0].split() if lines else []
    if (
        len(header) < 6
        or header[0] != "aag"
        or not all(re.fullmatch(r"\d{1,9}", part) for part in header[1:])
    ):
        raise Refused(
            f"first line={' '.join(header)[:60]!r}, expected 'aag M I L O A', as in an ASCII"
            " AIGER file. Try aigtoaig, which converts a binary file"
        )
    _, n_inputs, n_latches, n_outputs, n_ands = (int(part) for part in header[1:6])
    if n_latches:
        raise Refused(
            f"latches={n_latches}, expected 0, because only combinational circuits have"
            " layers. Try a circuit without latches"
        )
    if not n_inputs or not n_outputs:
        raise Refused(
            f"inputs={n_inputs} and outputs={n_outputs}, expected at least one of each. Try"
            " another circuit"
        )
    single = n_inputs + n_outputs
    rows = [line.split() for line in lines[1 : 1 + single + n_ands]]
    short = len(rows) < single + n_ands
    if short or [len(row) for row in rows] != [1] * single + [3] * n_ands:
        raise Refused(
            f"lines={len(rows)}, expected {n_inputs} inputs, {n_outputs} outputs and {n_ands}"
            " AND lines of 3 literals. Try to compare the header with the lines"
        )
    literals = [[int(part) for part in row] for row in rows]
    inputs: list[Hashable] = [row[0] for row in literals[:n_inputs]]
    outputs, ands = [row[0] for row in literals[n_inputs:single]], literals[single:]
    gates: dict[Hashable, tuple[str, Sequence[Hashable]]] = {}
    for result, left, right in ands:
        if result in gates or result in inputs or result % 2 or not result:
            raise Refused(
                f"AND literal={result}, expected an even literal that no other line defines. Try"
                " another literal"
            )
        gates[result] = ("AND", (left, right))
    for literal in {*outputs, *(part for row in ands for part in row[1:])}:
        if literal % 2:
            gates[literal] = ("NOT", (literal - 1,))
    if 0 in {*outputs, *(part - part % 2 for row in ands for part in row[1:])} or 1 in outputs:
        negated = int(str(inputs[0])) + 1
        gates[negated] = ("NOT", (inputs[0],))
        gates[0] = ("AND", (inputs[0], negated))
    return layered(inputs, gates, outputs)
