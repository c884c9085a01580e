"""The statements of a paper, collected from the modules that its sections name."""

import importlib
from collections.abc import Mapping

from jaxbounds.claims.statements.statement import Statement
from jaxbounds.ground.exceptions import Refused

Sections = Mapping[str, tuple[str, ...]]
"""Modules by the section of the paper that they judge, in the paper's order. An entry names a
module with a tuple `STATEMENTS`; "heads.APPENDIX" names another tuple of a module."""


def statements_in(package: str, sections: Sections, /) -> tuple[Statement, ...]:
    """Join the tuples of statements that a paper's sections name, in order.

    Args:
        package: the name of the package that contains the modules, as `__name__` gives it.
        sections: the names by section.

    Raises:
        Refused: if an entry stands twice.
    """
    entries = [entry for names in sections.values() for entry in names]
    if twice := sorted({entry for entry in entries if entries.count(entry) > 1}):
        raise Refused(f"SECTIONS of {package} names {twice[0]!r} twice. Try one section for it")
    found: list[Statement] = []
    for entry in entries:
        name, _, tuple_name = entry.partition(".")
        module = importlib.import_module(f"{package}.{name}")
        found.extend(getattr(module, tuple_name or "STATEMENTS"))
    return tuple(found)
