"""Draws .github/looseness.svg from the ratios on record: `python .github/looseness.py`."""

from pathlib import Path

from jaxbounds.claims.records import RATIOS, read_records
from jaxbounds.claims.statements import Paper
from jaxbounds.papers import load_papers

WORDS = ("fails", "nothing", "up to x2", "x2 to x10", "more than x10")
COLOURS = ("#c4403a", "#12385c", "#3a6ea5", "#8fb3d6", "#cfdeed")
INK = ("#fff", "#fff", "#fff", "#1b1f24", "#1b1f24")
LEFT, RIGHT, TOP, ROW = 110, 740, 98, 42


def place(worst: float, /) -> int:
    """Where a printed inequality belongs, by its largest left side over right side."""
    if worst > 1.01:
        return 0
    return 1 if worst > 0.99 else 2 if worst > 0.5 else 3 if worst > 0.1 else 4


def counts(paper: Paper, /) -> tuple[int, ...]:
    """How many printed inequalities are in each place, on one instance or along one run."""
    worst, found = read_records(paper, RATIOS), [0] * len(WORDS)
    for s in paper.statements:
        for form in s.forms if s.kind in ("inequality", "trajectory") else ():
            printed = form.name.startswith("printed") and "early version" not in form.name
            if printed and form.expected in ("holds", "fails"):
                spot = place(worst[s.id][form.name]["worst"])
                if (spot == 0) != (form.expected == "fails"):
                    raise ValueError(f"{s.id} ({form.name}): the record is not as expected")
                found[spot] += 1
    return tuple(found)


def _text(x: float, y: float, words: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{words}</text>'


def _bar(row: int, paper: Paper) -> list[str]:
    found, x, y = counts(paper), float(LEFT), TOP + ROW * row
    drawn = [_text(LEFT - 12, y + 19, paper.id, 'text-anchor="end" font-weight="600"')]
    for count, colour, ink in zip(found, COLOURS, INK):
        width = (RIGHT - LEFT) * count / sum(found)
        box = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="28"'
        drawn.append(f'<rect {box} fill="{colour}" stroke="#fff"/>')
        style = f'text-anchor="middle" fill="{ink}"'
        drawn += [_text(x + width / 2, y + 19, str(count), style)] * (width > 14)
        x += width
    return [*drawn, _text(RIGHT + 10, y + 19, str(sum(found)), 'fill="#57606a"')]


def picture() -> str:
    """The SVG, the same to the last character from the same records."""
    papers = load_papers()
    title = "By what factor could the right side of a printed inequality shrink?"
    height = TOP + ROW * len(papers) + 6
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" width="800" '
        'font-family="system-ui, sans-serif" font-size="14" fill="#1b1f24">',
        f'<rect width="800" height="{height}" rx="8" fill="#fff"/>',
        _text(24, 32, title, 'font-size="17" font-weight="600"'),
    ]
    for i, (word, colour) in enumerate(zip(WORDS, COLOURS)):
        x = LEFT + 118 * i
        lines.append(f'<rect x="{x}" y="58" width="14" height="14" fill="{colour}"/>')
        lines.append(_text(x + 20, 70, word))
    lines.append(_text(RIGHT + 10, 70, "all", 'fill="#57606a"'))
    for row, paper in enumerate(papers):
        lines += _bar(row, paper)
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf8")
