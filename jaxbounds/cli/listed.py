"""Make a new paper's files from its LaTeX: a list of numbered items, and files for claims."""

import dataclasses

from jaxbounds.claims.statements.item import Item
from jaxbounds.papers.latex.items import Source

PROVED = ("theorem", "lemma", "proposition", "corollary")
"""The kinds of items that papers prove; `jaxbounds new` writes an example claim on the first
one."""
README = """# {name}

`items.py` lists the numbered items of the source: theorems, definitions, assumptions and labelled
displays, each with its printed number, label, text and place. No statement covers an item yet.
`statements.py` holds the claims, and `model.py` the formulas that the claims call. Type in the
folder above this one (`jaxbounds guide start` explains the next steps):

    jaxbounds verify {name} --import {name}              # a verdict for each form, and the coverage
    jaxbounds audit {name} --import {name} --out audit   # a page: which items have a verdict
"""
INIT = '"""{name}: the claims of a paper, measured."""\n'
MODEL = '"""The formulas of the paper, each once. Statements call them."""\n'
STATEMENTS = '''"""The claims of the paper, in its order; `items.py` lists its numbered items.

To cover an item, add a claim about it: the item gives id, label, place and formula.

    BALL = {{"x": jb.Ball(1, "d")}}
    ITEMS[{first!r}].claim(model.left, "<=", model.right, over=BALL, sizes={{"d": (2, 5)}})

`ITEMS[...].statement(kind=..., evaluate=..., ...)` declares a claim that needs more than one line.
`Paper(items=...)` gives the reason why no statement judges an item:
items={{"Definition 1": "none: it fixes the notation"}}.
"""

import jaxbounds as jb

from .items import ITEMS

PAPER = jb.Paper(
    id={name!r},
    title={title!r},
    contents=ITEMS,
    statements=(),
)
'''
ITEMS = '''"""The numbered items of the paper, in its order, read from {file}.

No statement covers an item yet: `statements.py` says how to add one.
"""

import jaxbounds as jb

ITEMS = jb.Items(
{entries})
'''


def files_of(name: str, source: Source, /) -> dict[str, str]:
    """Return the text of each file of a paper's folder."""
    entries = "".join(map(_entry, source.items))
    proved = (item for item in source.items if item.kind.lower().startswith(PROVED))
    first = next(proved, next(iter(source.items), None))
    title = source.title or name
    return {
        "__init__.py": INIT.format(name=name),
        "README.md": README.format(name=name),
        "model.py": MODEL,
        "items.py": ITEMS.format(file=_plain(source.file.name), entries=entries),
        "statements.py": STATEMENTS.format(name=name, title=title, first=_name_of(first)),
    }


def _name_of(item: Item | None) -> str:
    return item.id.partition(".")[2] if item else "thm1"


def _plain(words: str) -> str:
    return "".join(char for char in words if char.isalnum() or char in "._- ")


def _entry(item: Item) -> str:
    lines = ["    jb.Item(\n"]
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if value:
            lines.append(f"        {field.name}={value!r},\n")
    return "".join([*lines, "    ),\n"])
