"""The numbered items of a paper, read from its LaTeX; no code of the source runs.

`gather` joins the files, `macros` takes definitions out, `walk` follows the document and counts.
"""

from jaxbounds.papers.latex.items import items_in

__all__ = ["items_in"]
