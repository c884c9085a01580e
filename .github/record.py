"""Updates every record of the shipped papers, and says what changed: `python .github/record.py`.

It judges all statements as `jaxbounds verify --record` does, which keeps ratios and values, and
draws the picture of the front page. Then it corrects each count in README and guide, the parts of a
sum included. `python .github/record.py FOLDER` takes the verdicts that such a run left in a folder.
"""

import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import jaxbounds as jb
from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.paper import Weight
from jaxbounds.constants import constants_on_record
from jaxbounds.falsification import Verdict
from jaxbounds.papers import load_papers
from jaxbounds.runs.folder import verdicts_in

ROOT = Path(__file__).parents[1]
GUIDE = "jaxbounds/guide/"
WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
"""Small numbers, as sentences write them; a larger one is written in digits."""
SUMS = {
    "evidence.md": (
        r"the (\d+) inequality forms that hold on each instance, (\d+) are attained, (\d+) "
        r"searched, (\d+) approached and (\d+) enumerated .*? The other (\d+) inequality "
        r"forms that hold rest",
        "python .github/record.py",
    ),
    "certify.md": (
        r"There are (\d+) failing forms \(versions of claims\) in the four papers: (\d+) are "
        r"disproved and (\d+) disproved as coded",
        "jaxbounds certify",
    ),
}
"""For each page of the guide a total and its parts, and the command that counts the parts."""
PARTS = ("attained", "searched", "approached", "enumerated", "sampled")
"""The evidence of a form that holds, in the order of the page."""
SETTLED = ("attained", "enumerated", "every instance", "limit")
"""The places of a supremum that a search for a constant has settled."""


class Sentence(NamedTuple):
    """A sentence of a page that counts something.

    Attributes:
        page: its file.
        text: the words, with `{}` for each number.
        counts: the numbers.
    """

    page: str
    text: str
    counts: tuple[int, ...]


def errata_of(paper: Paper, /) -> tuple[int, ...]:
    """How many errata there are of each weight, and how many change a main theorem."""
    weights = [sum(e.kind == weight for e in paper.errata) for weight in get_args(Weight)]
    return *weights, sum(e.main.startswith("changed") for e in paper.errata)


def tables(papers: Sequence[Paper], /) -> Iterator[Sentence]:
    """The rows of the tables of papers."""
    rows = {p.id: (len(p.statements), len(p.errata), *errata_of(p)) for p in papers}
    row = lambda numbers: " | {}" * len(numbers) + " |"
    for name, numbers in rows.items():
        yield Sentence("README.md", f"| `{name}` | **arxiv.org/abs/**" + row(numbers), numbers)
        yield Sentence(GUIDE + "papers.md", f"| `{name}` | [A-Z]**" + row(numbers[:1]), numbers[:1])
        yield Sentence(GUIDE + "papers.md", f"| `{name}`" + row(numbers[2:]), numbers[2:])
    totals = tuple(map(sum, zip(*rows.values())))
    yield Sentence("README.md", "| | all" + row(totals), totals)


def of_constants(papers: Sequence[Paper], /) -> Iterator[Sentence]:
    """Yield the counts of the page on constants, from the constants on record."""
    found = [constant for paper in papers for constant in constants_on_record(paper)]
    printed = sum(c.form.startswith("printed") for c in found)
    settled = sum(all(one.where in SETTLED for one in c.sizes) for c in found)
    certain = sum(all(one.digits for one in c.sizes) for c in found)
    (half,) = (c.largest for c in found if (c.id, c.form) == ("multihead.eq42", "printed"))
    page = GUIDE + "constants.md"
    yield Sentence(
        page,
        "the recorded constants of {} forms; {} of these forms are bounds as printed",
        (len(found), printed),
    )
    yield Sentence(page, "{} forms have settled constants at all sizes", (settled,))
    yield Sentence(page, "{} forms have certified digits", (certain,))
    yield Sentence(
        page, "its sharp constant is 1/2, attained, with {} certified digits", (half.digits,)
    )


def sentences(papers: Sequence[Paper], verdicts: Sequence[Verdict], /) -> Iterator[Sentence]:
    """All that pages count, from the declarations and from the verdicts on all statements."""
    yield from tables(papers)
    yield from of_constants(papers)
    forms = [(s, form) for paper in papers for s in paper.statements for form in s.forms]
    holding = [v for v in verdicts if v.kind == "inequality" and v.status == "holds"]
    by = Counter(v.evidence for v in holding)
    slack = [v.sensitivity for v in verdicts if v.sensitivity is not None]
    domains = [form.domains for _, form in forms if form.domains]
    failing = sum(form.expected == "fails" for _, form in forms)
    off = sum(form.expected == "inconsistent" for _, form in forms)
    along = sum(s.kind == "trajectory" for s, _ in forms)
    evidence, certify = GUIDE + "evidence.md", GUIDE + "certify.md"
    yield Sentence(
        evidence,
        "Among the {} inequality forms that hold on each instance, {} are attained, {} searched, "
        "{} approached and {} enumerated (`jaxbounds guide verdicts` explains the words). The "
        "other {} inequality forms that hold rest on random instances",
        (len(holding), *(by[word] for word in PARTS)),
    )
    yield Sentence(evidence, "The {} forms about whole training runs", (along,))
    yield Sentence(
        evidence,
        "In {} of {} forms the verdict changes if the right side shrinks by 1%. In {} of the {} "
        "forms (the loose bounds) the verdict is unchanged even if the right side is halved",
        (sum(s < 0.01 for s in slack), len(slack), sum(s > 0.5 + 1e-5 for s in slack), len(slack)),
    )
    yield Sentence(evidence, "At seed 0 all {} forms are as recorded", (len(forms),))
    yield Sentence(certify, "There are {} failing forms", (failing,))
    yield Sentence(certify, "The {} other forms that do not hold are rates", (off,))
    yield Sentence(
        certify,
        "{} forms that hold are proved on {} boxes",
        (len(domains), sum(map(len, domains))),
    )
    yield Sentence(certify, "The program `checker` confirms {} of the {}", (failing - 1, failing))


def _pattern(text: str) -> re.Pattern[str]:
    """Words as they stand on a page, whatever its line breaks."""
    parts = re.split(r"(\{\}|\*\*|\[A-Z\])", text)
    known = {"{}": r"(\w+)", "**": r"[^\n]*?", "[A-Z]": r"[A-Z]"}
    escape = lambda part: r"\s+".join(map(re.escape, re.split(r"\s+", part)))
    return re.compile("".join(known.get(part) or escape(part) for part in parts))


def corrected(page: str, sentence: Sentence, /) -> tuple[str, str]:
    """A page with the numbers of a sentence, and what changed, in words; nothing where they stood.

    Raises:
        ValueError: if the page does not say that sentence once.
    """
    found = list(_pattern(sentence.text).finditer(page))
    if len(found) != 1:
        raise ValueError(
            f"{sentence.page} says {len(found)} times {sentence.text!r}, not once. Try the same "
            "words on the page and in .github/record.py"
        )
    (match,) = found
    said, made, at = [], "", match.start()
    for i, count in enumerate(sentence.counts, 1):
        old = match[i]
        new = WORDS[count] if old in WORDS and count < len(WORDS) else str(count)
        said += [f"{old} -> {new}"] * (old != new)
        made += page[at : match.start(i)] + new
        at = match.end(i)
    changed = f"{sentence.page}: {', '.join(said)} in {sentence.text!r}" if said else ""
    return page[: match.start()] + made + page[at:], changed


def correct_pages(root: Path, found: Sequence[Sentence], /) -> Iterator[str]:
    """Correct the pages under a folder; a line for each sentence that changed."""
    for name in dict.fromkeys(sentence.page for sentence in found):
        file = root / name
        page = before = file.read_text(encoding="utf8")
        for sentence in found:
            if sentence.page == name:
                page, changed = corrected(page, sentence)
                if changed:
                    yield changed
        if page != before:
            file.write_text(page, encoding="utf8")
    yield from wrong_sums(root)


def wrong_sums(root: Path, /) -> Iterator[str]:
    """A line for each total on a page that its parts do not add up to."""
    for page, (pattern, command) in SUMS.items():
        plain = " ".join((root / GUIDE / page).read_text(encoding="utf8").split())
        found = re.search(pattern, plain)
        whole, *parts = map(int, found.groups()) if found else (1,)
        if whole != sum(parts):
            said = f"{' + '.join(map(str, parts))} is not {whole}" if found else "lost its sum"
            yield f"{page}: {said}. Try {command}"


def picture(root: Path, /) -> Iterator[str]:
    """Draw the picture again; a line where it changed."""
    file = root / ".github/looseness.svg"
    made = runpy.run_path(str(ROOT / ".github/looseness.py"))["picture"]()
    if file.read_text(encoding="utf8") != made:
        file.write_text(made, encoding="utf8")
        yield f"{file.name}: drawn again"


def main(folder: str = "") -> int:
    """Update everything; the exit status is that of the verdicts."""
    lines: Sequence[str] = ()
    if folder:
        verdicts = [v for found in verdicts_in(Path(folder)).values() for v in found]
    else:
        verdicts = jb.verify(record=True, out="results/record")
        lines = verdicts.recorded
    papers = load_papers()
    judged, known = {v.id for v in verdicts}, {s.id for p in papers for s in p.statements}
    if judged != known:
        print(f"verdicts on {len(judged)} statements, expected {len(known)}. Try no folder")
        return 2
    wrong = [
        f"{v.id} ({v.form}): {v.status}, not {v.expected}" for v in verdicts if not v.as_expected
    ]
    for line in (*lines, *picture(ROOT), *correct_pages(ROOT, list(sentences(papers, verdicts)))):
        print(f"changed: {line}")
    for line in wrong:
        print(f"NOT as recorded: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
