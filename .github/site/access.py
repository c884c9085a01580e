"""Attributes that a keyboard and a screen reader need, and that the theme leaves out."""

from pathlib import Path

MISSING = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="All pages">'),
    ('<aside class="toc-drawer">', '<aside class="toc-drawer" aria-label="On this page">'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="formula">', '<div class="formula" tabindex="0">'),
    ('<blockquote class="quoted">', '<blockquote class="quoted" tabindex="0">'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ('<div id="search-results">', '<h1>Search</h1>\n<div id="search-results">'),
)
"""Tags as they are built, each with the tag that takes its place: parts that scroll take the focus,
headings have a level, and regions have a name."""


def complete(folder: Path, /) -> None:
    """Put the attributes into each page of a site.

    Args:
        folder: of the site.
    """
    for file in folder.rglob("*.html"):
        text = file.read_text(encoding="utf8")
        for built, instead in MISSING:
            text = text.replace(built, instead)
        file.write_text(text, encoding="utf8")
