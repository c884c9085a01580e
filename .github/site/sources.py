"""The pages of the site as Markdown, each made from what the repository has already."""

import re
import shutil
from pathlib import Path

from crosslinks import Links
from notebooks import write_notebooks
from papers import write_papers
from questions import write_questions
from reference import themes, write_reference

import jaxbounds as jb
from jaxbounds.cli.guide import TOPICS, topic_text
from jaxbounds.papers import PAPERS, load_papers

ROOT = Path(__file__).parents[2]
INDEX = """
```{{toctree}}
:hidden:
:caption: Guide

{guide}
```

```{{toctree}}
:hidden:
:caption: Papers

{papers}
```

```{{toctree}}
:hidden:
:caption: Reference

{reference}
```

```{{toctree}}
:hidden:
:caption: Notebooks

{notebooks}
```
"""


def write_sources(folder: Path, /) -> None:
    """Write all pages into a new folder.

    Args:
        folder: the folder, which this function makes.
    """
    for room in ("guide", "questions", "papers", "reference", "notebooks"):
        (folder / room).mkdir(parents=True)
    papers = load_papers()
    books = write_notebooks(ROOT / "colab", folder / "notebooks")
    ids = frozenset(s.id for paper in papers for s in paper.statements)
    links = Links(frozenset(dir(jb)), ids, frozenset(TOPICS), frozenset(books))
    for topic in TOPICS:
        text = topic_text(topic)
        if topic == "questions":
            text = write_questions(text, folder / "questions", links)
        _write(folder / "guide" / f"{topic}.md", links.page(text, f"guide-{topic}"))
    write_papers(papers, folder / "papers", links)
    write_reference(folder / "reference", links)
    shutil.copy(ROOT / ".github" / "looseness.svg", folder)
    front = (ROOT / "README.md").read_text(encoding="utf8")
    front = re.sub(r"\(\.github/looseness\.svg\)", "(looseness.svg)", front)
    index = INDEX.format(
        guide="\n".join(f"{topic} <guide/{topic}>" for topic in TOPICS),
        papers="\n".join(
            f"{name} <papers/{name}>\n{name}, errata <papers/{name}-errata>" for name in PAPERS
        ),
        reference="\n".join(f"reference/{theme.name}" for theme in themes()),
        notebooks="\n".join(f"notebooks/{name}" for name in books),
    )
    _write(folder / "index.md", links.page(front, "front") + index)


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf8")
