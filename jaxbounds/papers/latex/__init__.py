"""Read the numbered items of a paper from its LaTeX, without running code of the source.

`gather` joins the files, `macros` removes definitions, and `walk` finds the items (theorems, lemmas
and displays) and computes their printed numbers.
"""

from jaxbounds.papers.latex.items import items_in

__all__ = ["items_in"]
