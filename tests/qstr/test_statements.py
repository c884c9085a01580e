"""The paper's errata, items and statements cite each other; the verdicts are in test_papers.py."""

from jaxbounds.qstr.statements import PAPER


def test_every_numbered_item_is_listed():
    """Counted in the text: 42 numbered results and definitions, 3 assumptions, 24 displays."""
    numbered = {name.split()[-1] for name in PAPER.items if name.split()[-1].isdigit()}
    assert {str(k) for k in range(1, 43)} <= numbered
    displays = [("2", 4), ("A", 4), ("C", 16)]
    assert all(f"({s}.{k})" in PAPER.items for s, last in displays for k in range(1, last + 1))
