"""The constants of printed forms that are on record; `jaxbounds constant --record` writes them."""

import json
from pathlib import Path

from jaxbounds.constants.result import SharpConstant

FILE = Path(__file__).with_name("recorded.json")


def recorded() -> tuple[SharpConstant, ...]:
    """What is on record, in the order of the papers."""
    if not FILE.is_file():
        return ()
    return tuple(map(SharpConstant.from_json, json.loads(FILE.read_text(encoding="utf8"))))
