"""Collect the statements of a paper from the modules of its sections."""

import importlib
from collections.abc import Mapping

from jaxbounds.claims.statements.statement import Statement
from jaxbounds.ground.exceptions import Refused

Sections = Mapping[str, tuple[str, ...]]
"""A dict from each section of the paper, in order, to the names of the modules with its statements.
An entry names a module with a tuple `STATEMENTS`; "heads.APPENDIX" names another tuple of a module.
"""


def statements_in(package: str, sections: Sections, /) -> tuple[Statement, ...]:
    """Join the tuples of statements of a paper's sections, in order.

    The argument `package` is the `__name__` of the package that contains the modules.

    Raises:
        Refused: if an entry occurs twice in `sections`.
    """
    entries = [entry for names in sections.values() for entry in names]
    if twice := sorted({entry for entry in entries if entries.count(entry) > 1}):
        raise Refused(
            f"SECTIONS of {package} has entry={twice[0]!r} twice. Try to list the entry in one "
            "section only"
        )
    found: list[Statement] = []
    for entry in entries:
        name, _, tuple_name = entry.partition(".")
        module = importlib.import_module(f"{package}.{name}")
        found.extend(getattr(module, tuple_name or "STATEMENTS"))
    return tuple(found)
