"""The links of a finished site: each target is a file of the site, with the anchor of the link."""

import functools
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LEADS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}
_OUTSIDE = frozenset(("a",))
"""Tags that may lead to another site; a page loads nothing from elsewhere."""
_ELSEWHERE = frozenset(("canonical", "edit", "source"))
"""Relations of a <link> that a browser does not load."""


class _Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors, self.links = set[str](), list[tuple[str, str]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        target = given.get(_LEADS.get(tag, ""), "")
        if target and given.get("rel") not in _ELSEWHERE:
            self.links.append((tag, target))


@functools.cache
def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf8"))
    return page


def dead_links(folder: Path, /) -> Iterator[str]:
    """Each link that leads nowhere, or that loads something from elsewhere, with its page.

    Args:
        folder: of the site.
    """
    root = folder.resolve()
    for file in sorted(root.rglob("*.html")):
        for tag, target in dict.fromkeys(_read(file).links):
            if reason := _fault(root, file, tag, target):
                yield f"{file.relative_to(root)}: {target}: {reason}"


def _fault(root: Path, file: Path, tag: str, target: str) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        inside = parts.scheme in ("data", "mailto") or tag in _OUTSIDE
        return "" if inside else "the page loads it from another site"
    place = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    place = place / "index.html" if place.is_dir() else place
    if not place.is_file() or root not in place.parents:
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and place.suffix == ".html" and anchor not in _read(place).anchors:
        return "no such anchor"
    return ""
