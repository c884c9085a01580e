"""The recorded constants of printed inequalities; `jaxbounds constant --record` writes them."""

import json
from collections.abc import Iterable
from dataclasses import replace

from jaxbounds.claims.records import CONSTANTS, read_records, write_records
from jaxbounds.claims.statements import Paper
from jaxbounds.constants.result import SharpConstant
from jaxbounds.ground.to_json import to_json

SMALL = 400
"""The record stores an extremal instance with at most this many characters of JSON.

If this limit is larger, the record stores larger instances.
"""


def constants_on_record(paper: Paper, /) -> tuple[SharpConstant, ...]:
    """Return the recorded constants of a paper, in the paper's order."""
    found = read_records(paper, CONSTANTS)
    return tuple(SharpConstant.from_json(one) for forms in found.values() for one in forms)


def put_on_record(constants: Iterable[SharpConstant], paper: Paper, /) -> None:
    """Record constants of a paper; a new constant replaces the earlier constant of its form.

    Raises:
        Refused: if no file defines the paper, because the records lie beside the paper's file.
    """
    kept = {(c.id, c.form): c for c in constants_on_record(paper)}
    fits = lambda instance: len(json.dumps(instance)) <= SMALL
    for constant in constants:
        # Omit the seconds, which differ from run to run.
        sizes = (
            replace(s, instance=s.instance if fits(s.instance) else {}, seconds=0.0)
            for s in constant.sizes
        )
        kept[constant.id, constant.form] = replace(constant, sizes=tuple(sizes))
    content: dict[str, list] = {}
    for key in sorted(kept):
        content.setdefault(key[0], []).append(to_json(kept[key]))
    write_records(paper, CONSTANTS, content)
