"""Code in a page that names something becomes a link to it."""

import re
from typing import NamedTuple

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


class Links(NamedTuple):
    """The names that have a place on the site.

    Attributes:
        names: public names of `import jaxbounds as jb`.
        statements: ids of statements.
        topics: pages of the guide.
        books: notebooks, without the end of their files.
    """

    names: frozenset[str]
    statements: frozenset[str]
    topics: frozenset[str]
    books: frozenset[str]

    def page(self, text: str, label: str, /) -> str:
        """A page with links, and with a label before its first heading.

        Args:
            text: in Markdown.
            label: for links to the page.
        """
        return f"({label})=\n{self.linked(text)}\n"

    def linked(self, text: str, /) -> str:
        """A text in Markdown whose code is a link where it names something of the site.

        Args:
            text: the text; code blocks and headings stay as they are.
        """
        pieces = _FENCE.split(text)
        return "".join(p if i % 2 else self._lines(p) for i, p in enumerate(pieces))

    def _lines(self, text: str) -> str:
        lines = (
            line if line.startswith("#") else _CODE.sub(self._link, line)
            for line in text.split("\n")
        )
        return "\n".join(lines)

    def _link(self, found: re.Match[str]) -> str:
        code = found[1]
        topic = re.fullmatch(r"jaxbounds guide (\w+)", code)
        name = re.match(r"jb\.(\w+)(?=$|\W)", code)
        book = re.fullmatch(r"colab/(\w+)\.py", code)
        if topic and topic[1] in self.topics:
            return f"[{found[0]}](#guide-{topic[1]})"
        if code in self.topics:
            return f"[{found[0]}](#guide-{code})"
        if name and name[1] in self.names and "<" not in code:
            return f"{{py:obj}}`{code} <jaxbounds.{name[1]}>`"
        if code in self.statements:
            return f"[{found[0]}](#{code})"
        if book and book[1] in self.books:
            return f"[{found[0]}](#book-{book[1]})"
        return found[0]
