"""Read the numbered items of a paper from its LaTeX, without running code of the source.

`gather` joins the files, `macros` removes definitions, and `walk` goes through the document and
numbers the items.
"""

from jaxbounds.papers.latex.items import items_in

__all__ = ["items_in"]
