"""`jaxbounds primitives`: list the operations of JAX for which the library lacks a rule."""

import jax
from rich import box
from rich.table import Table

from jaxbounds.cli.common import console_for_output, print_json
from jaxbounds.programs.balls.coverage import Coverage, coverage

COLUMNS = ("parameters", "numpy", "balls", "slopes")
"""The columns of the table: kinds of rules that the library may lack for a JAX operation."""


def primitives(*, all: bool = False, json: bool = False) -> int:
    """List the operations of JAX for which the library lacks an evaluation rule.

    A "-" in the table marks a missing rule. If the rule for NumPy is missing, JAX's compiler runs
    the operation. `certify` refuses an operation without a rule for ball arithmetic, which encloses
    rounding errors. A proof on a box refuses an operation without a rule for slopes (derivatives
    over a box).

    Args:
        all: also list the operations for which the library has every rule.
        json: print the rows as a JSON list of objects instead of a table.
    """
    rows = [row for row in coverage() if all or not _is_complete(row)]
    if json:
        print_json([row._asdict() for row in rows])
        return 0
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("primitive", *COLUMNS, "rounds"):
        table.add_column(column)
    for row in rows:
        rules = ["yes" if getattr(row, column) else "-" for column in COLUMNS]
        table.add_row(row.name, *rules, "yes" if row.rounds else "no")
    console_for_output().print(table)
    print(f"{len(rows)} of {len(coverage())} primitives of JAX {jax.__version__}")
    return 0


def _is_complete(row: Coverage) -> bool:
    return all(getattr(row, column) for column in COLUMNS)
