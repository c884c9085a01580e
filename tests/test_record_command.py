"""The command that updates every record: counts on pages are corrected, and said."""

import re
import runpy
import shutil
from pathlib import Path
from typing import get_args

import pytest

from jaxbounds.falsification.evidence import Evidence

ROOT = Path(__file__).parents[1]
RECORD = runpy.run_path(str(ROOT / ".github/record.py"))
PAPERS = RECORD["load_papers"]()
SENTENCES = list(RECORD["sentences"](PAPERS, []))
Sentence = RECORD["Sentence"]


@pytest.fixture
def pages(tmp_path):
    for page in {s.page for s in SENTENCES}:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
    return tmp_path


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda s: f"{s.page}: {s.text[:30]}")
def test_each_sentence_stands_once_on_its_page(sentence):
    page = (ROOT / sentence.page).read_text(encoding="utf8")
    corrected, _ = RECORD["corrected"](page, sentence)
    assert len(corrected.split()) == len(page.split())


def test_counts_of_declarations_are_right_as_they_stand(pages):
    """Sums of verdicts need a run; the others come from the declarations alone."""
    declared = [s for s in SENTENCES if "on each instance" not in s.text and "1%" not in s.text]
    assert list(RECORD["correct_pages"](pages, declared)) == []


def test_the_parts_of_each_sum_add_up():
    assert list(RECORD["wrong_sums"](ROOT)) == []


def test_a_sum_without_one_of_its_parts_is_said(pages):
    page = pages / "jaxbounds/guide/evidence.md"
    whole = page.read_text(encoding="utf8")
    page.write_text(re.sub(r"\d+ approached", "0 approached", whole), encoding="utf8")
    (line,) = RECORD["wrong_sums"](pages)
    assert re.search(r"is not \d+. Try python .github/record.py$", line)
    page.write_text(re.sub(r", \d+ approached", "", whole), encoding="utf8")
    assert list(RECORD["wrong_sums"](pages)) != []


def test_each_evidence_of_a_form_that_holds_is_counted():
    assert {*RECORD["PARTS"]} == {*get_args(Evidence)} - {"", "violated", "not seen"}


def test_a_wrong_count_is_corrected_and_said(pages):
    readme = pages / "README.md"
    right = readme.read_text(encoding="utf8")
    (row,) = (s for s in RECORD["tables"](PAPERS) if s.text.startswith("| | all"))
    wrong = right.replace(f"| | all | {row.counts[0]} |", "| | all | 7 |")
    assert wrong != right
    readme.write_text(wrong, encoding="utf8")
    (line,) = RECORD["correct_pages"](pages, [row])
    assert line.startswith(f"README.md: 7 -> {row.counts[0]} in ")
    assert readme.read_text(encoding="utf8") == right


def test_each_part_of_a_sum_is_corrected_across_line_breaks():
    page = "Of the 12 forms\nthat hold 3 are attained, eight\nsearched, 1 drawn."
    text = "Of the {} forms that hold {} are attained, {} searched, {} drawn"
    corrected, said = RECORD["corrected"](page, Sentence("x.md", text, (13, 3, 9, 1)))
    assert corrected == "Of the 13 forms\nthat hold 3 are attained, nine\nsearched, 1 drawn."
    assert said.startswith("x.md: 12 -> 13, eight -> nine in ")


def test_a_sentence_that_is_gone_is_named():
    with pytest.raises(ValueError, match=r"x.md says 0 times .* Try the same words"):
        RECORD["corrected"]("nothing", Sentence("x.md", "Of the {} forms", (1,)))


def test_verdicts_on_some_statements_correct_nothing(tmp_path, capsys):
    assert RECORD["main"](str(tmp_path)) == 2
    assert "Try no folder" in capsys.readouterr().out
