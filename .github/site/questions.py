"""The page of questions as a page for each question: a search then finds the one that is asked."""

import re
from pathlib import Path

from crosslinks import Links

LIST = """
```{{toctree}}
:maxdepth: 1

{names}
```
"""


def write_questions(text: str, folder: Path, links: Links, /) -> str:
    """Write a page for each question.

    Args:
        text: the page of the guide, in which each question is a heading.
        folder: where the pages go.
        links: the names that have a place.

    Returns:
        The page of the guide, with a list of the questions in place of the answers.
    """
    opening, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    names = [_name(part) for part in parts]
    for name, part in zip(names, parts):
        (folder / f"{name}.md").write_text(f"# {links.linked(part)}", encoding="utf8")
    return opening + LIST.format(names="\n".join(f"/{folder.name}/{name}" for name in names))


def _name(part: str) -> str:
    """A question in the name of a file."""
    return "-".join(re.findall(r"[a-z0-9]+", part.partition("\n")[0].lower()))
