"""Sentences: files as they are met, good and broken; the grammar against a parser of its own."""

import hashlib
import io
import json
import os
import re
import tarfile
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxbounds.multihead import text
from jaxbounds.multihead.experiments.fig6.baselines import lexicon_accuracy, naive_bayes
from jaxbounds.multihead.grammar import BLAME, PRAISE, Grammar, draw_sentences
from jaxbounds.multihead.text import Sentences, read_parquet, read_snippets, read_text, read_tsv
from jaxbounds.multihead.tokens import (
    byte_pairs,
    stored_tokenizer,
    to_arrays,
    word_table,
    words_of,
)

TINY = Path(__file__).parent / "tiny_roberta"
ROWS = [('a "quoted remark', 1), ("it's, well, dull ", 0), ('"so" it goes"', 0)]


def _tsv(path, rows=ROWS, header="sentence\tlabel", end="\n"):
    lines = [header, *(f"{sentence}\t{label}" for sentence, label in rows), ""]
    path.write_bytes(end.join(lines).encode())
    return path


# GLUE -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotes_in_tsv_are_text(end, tmp_path):
    found = read_tsv(_tsv(tmp_path / "train.tsv", end=end))
    assert found.texts == tuple(sentence for sentence, _ in ROWS)
    assert found.labels.tolist() == [1, 0, 0] and found.labels.dtype == np.int32


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("index\tsentence\n0\tdull\n", "test split, which has no labels. Try dev.tsv"),
        ("label\tsentence\n0\tdull\n", "header='label.*expected sentence<tab>label"),
        ("sentence\tlabel\ndull\t0\nfine\n", "1 rows are not a sentence.*line=3: 'fine'"),
        ("sentence\tlabel\ndull\t0\nfine\t\n", "1 labels that are neither.*.*row=1: label=''"),
        ("sentence\tlabel\ndull\t0\nfine\t-1\n", "neither 0 nor 1.*row=1: label='-1'"),
        ("sentence\tlabel\ndull\t-1\nfine\t-1\n", "as in GLUE's test split"),
        ("sentence\tlabel\n \t1\n", "1 empty or null sentences of 1, the first in row=0"),
        ("sentence\tlabel\n", "sentences=0"),
    ],
)
def test_broken_tsv_is_refused(content, words, tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(content, encoding="utf8")
    with pytest.raises(ValueError, match=words):
        read_tsv(path)


def test_files_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "train.tsv").write_bytes(b"sentence\tlabel\n\xff\xfe\t1\n")
    with pytest.raises(ValueError, match="as UTF-8 text"):
        read_tsv(tmp_path / "train.tsv")
    with pytest.raises(ValueError, match="as UTF-8 text"):
        read_tsv(tmp_path / "none.tsv")


def _parquet(path, sentences, labels, **options):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"idx": list(range(len(labels))), "sentence": sentences, "label": labels}
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def test_parquet_with_dictionaries_that_overflow_is_read_whole(tmp_path):
    """What another reader turned into None: snappy, and a dictionary given up half way."""
    sentences = [f"sentence {i} {'x' * (i % 90)}" for i in range(4000)]
    labels = [i % 2 for i in range(4000)]
    path = _parquet(
        tmp_path / "a.parquet", sentences, labels, compression="snappy",
        dictionary_pagesize_limit=2000,
    )  # fmt: skip
    found = read_parquet(path)
    assert found.texts == tuple(sentences) and found.labels.tolist() == labels


@pytest.mark.parametrize(
    ("sentences", "labels", "words"),
    [
        (["a", None, "b"], [0, 1, 1], "1 empty or null sentences of 3, the first in row=1"),
        (["a", "b"], [1, None], "neither 0 nor 1, the first in row=1: label=None"),
        (["a", "b"], [-1, -1], "as in GLUE's test split.*dev"),
    ],
)
def test_broken_parquet_is_refused(sentences, labels, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        read_parquet(_parquet(tmp_path / "a.parquet", sentences, labels))


def test_damaged_parquet_and_missing_columns_are_refused(tmp_path):
    path = _parquet(tmp_path / "a.parquet", ["a"], [1])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="as Parquet"):
        read_parquet(path)
    other = pytest.importorskip("pyarrow").table({"text": ["a"]})
    pytest.importorskip("pyarrow.parquet").write_table(other, path)
    with pytest.raises(ValueError, match=r"expected sentence and label|as Parquet"):
        read_parquet(path)


def test_folders_of_both_kinds_evaluate_on_dev(tmp_path):
    _tsv(tmp_path / "train.tsv")
    with pytest.raises(ValueError, match=r"found files=train\.tsv, expected train\.tsv and"):
        read_text(tmp_path)
    _tsv(tmp_path / "dev.tsv", ROWS[:1])
    found = read_text(tmp_path)
    assert [len(found[name].texts) for name in ("train", "test")] == [3, 1]
    assert read_text(tmp_path / "dev.tsv")["all"].texts == (ROWS[0][0],)
    hub = tmp_path / "hub"
    for name, count in (("train", 3), ("validation", 2), ("test", 1)):
        _parquet(hub / "data" / f"{name}-00000-of-00001.parquet", ["a"] * count, [1] * count)
    found = read_text(hub)
    assert [len(found[name].texts) for name in ("train", "test")] == [3, 2]
    with pytest.raises(ValueError, match="no file or folder"):
        read_text(tmp_path / "none")


# The snippets -----------------------------------------------------------------------------------


def _archive(content, name):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        entry = tarfile.TarInfo(f"folder/{name}")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def snippets(tmp_path):
    """An archive built like theirs, of sentences of ours, and the digest of its ratings."""
    rows = ["1\t2.25\tGrand.\r\n", "2\t-0.5\tNot “grand”.\r\n", "3\t0.0\tA film.\r\n", "4\t-3\tNo."]
    content = "".join(rows).encode()
    path = tmp_path / "vaderSentiment-3.3.2.tar.gz"
    path.write_bytes(_archive(_archive(content, text.SNIPPETS_NAME), text.SNIPPETS_INNER))
    return path, hashlib.sha256(content).hexdigest()


def test_ratings_become_labels_and_zero_is_left_out(snippets, monkeypatch):
    path, digest = snippets
    monkeypatch.setattr(text, "SNIPPETS_SHA256", digest)
    found = read_text(path)["all"]
    assert found.texts == ("Grand.", "Not “grand”.", "No.") and found.labels.tolist() == [1, 0, 0]


def test_other_and_broken_archives_are_refused_with_the_cure(snippets, tmp_path):
    path, digest = snippets
    with pytest.raises(ValueError, match=rf"sha256={digest}"):
        read_snippets(path)
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"no archive", whole[:40] + b"xx" + whole[42:]):
        path.write_bytes(damage)
        with pytest.raises(ValueError, match="pip download"):
            read_snippets(path)
    path.write_bytes(_archive(b"", "other.txt"))
    with pytest.raises(ValueError, match=r"holds no hutto_ICWSM_2014\.tar\.gz.*pip download"):
        read_snippets(path)
    path.write_bytes(_archive(_archive(b"", "other.txt"), text.SNIPPETS_INNER))
    with pytest.raises(ValueError, match=r"holds no movieReviewSnippets.*pip download"):
        read_snippets(path)
    with pytest.raises(ValueError, match="pip download"):
        read_snippets(tmp_path / "none.tar.gz")


@pytest.mark.skipif("JAXBOUNDS_SNIPPETS" not in os.environ, reason="names no archive")
def test_the_real_snippets_are_as_described():
    found = read_snippets(os.environ["JAXBOUNDS_SNIPPETS"])
    assert np.bincount(found.labels).tolist() == [5326, 5242]
    assert np.median([len(sentence.split()) for sentence in found.texts]) == 18


# The grammar ------------------------------------------------------------------------------------

NEGATIONS = ("not", "never", "nobody", "far", "hardly")


def _reading(sentence):
    """Whether it praises, by rules of this test alone."""

    def praises(clause):
        words = clause.split()
        (praise,) = {word in PRAISE for word in words if word in PRAISE + BLAME}
        return praise != any(word in NEGATIONS for word in words)

    if " but " in sentence:
        return praises(sentence.split(" but ")[1])
    later = re.match(r"(.*) , (?:although|even if) ", sentence)
    if later and re.search("|".join(PRAISE + BLAME), later[1]):
        return praises(later[1])
    if "although " in sentence:
        return praises(sentence.split("although ")[1].split(" , ")[1])
    parts = [praises(part) for part in sentence.split(" and ")]
    assert len(set(parts)) == 1
    return parts[0]


@pytest.fixture(scope="module")
def drawn():
    return draw_sentences(Grammar(), jax.random.key(0), 3000)


def test_labels_are_what_the_sentences_say(drawn):
    for sentence, label in zip(*drawn, strict=True):
        assert _reading(sentence) == bool(label), sentence
    assert len(set(drawn.texts)) == 3000
    assert 0.45 < drawn.labels.mean() < 0.55
    assert max(len(words_of(sentence)) for sentence in drawn.texts) <= 30


def test_the_shares_are_those_asked_for(drawn):
    grammar = Grammar()
    two = [bool(re.search(r" but |although|even if", sentence)) for sentence in drawn.texts]
    joined = [" and " in sentence for sentence in drawn.texts]
    # One-clause sentences repeat more often, and repetitions are left out.
    assert np.mean(two) == pytest.approx(grammar.contrast, abs=0.05)
    assert np.mean(joined) == pytest.approx(grammar.joined, abs=0.03)
    clauses = 3000 + sum(two) + sum(joined)
    turned = sum(word in NEGATIONS for sentence in drawn.texts for word in sentence.split())
    assert turned / clauses == pytest.approx(grammar.negated, abs=0.03)


def test_single_words_do_not_decide(drawn):
    """Neither naive Bayes nor the best linear rule on the training words gets far."""
    train, test = drawn.take(np.arange(2000)), drawn.take(np.arange(2000, 3000))
    assert 0.5 < naive_bayes(train, test) < 0.66
    table = word_table(train.texts)
    counts = np.zeros((3000, table.size))
    for row, ids in zip(counts, table.encode(drawn.texts)):
        np.add.at(row, ids, 1)
    signs = 2.0 * drawn.labels - 1
    weights = np.linalg.lstsq(counts[:2000], signs[:2000], rcond=1e-6)[0]
    assert np.mean((counts[2000:] @ weights > 0) == (signs[2000:] > 0)) < 0.66
    # Without contrast and negation they would decide nearly alone.
    plain = draw_sentences(Grammar(negated=0.0, contrast=0.0), jax.random.key(0), 1000)
    assert naive_bayes(plain.take(np.arange(700)), plain.take(np.arange(700, 1000))) > 0.97


def test_draws_repeat_and_differ_by_key(drawn):
    again = draw_sentences(Grammar(), jax.random.key(0), 3000)
    assert again.texts == drawn.texts and np.array_equal(again.labels, drawn.labels)
    assert draw_sentences(Grammar(), jax.random.key(1), 50).texts != drawn.texts[:50]


def test_shares_that_are_none_and_grammars_that_run_dry_are_refused(key, monkeypatch):
    with pytest.raises(ValueError, match="two clauses\\) at most 1"):
        Grammar(contrast=0.8, joined=0.3)
    from jaxbounds.multihead import grammar

    monkeypatch.setattr(grammar, "NOUNS", ("film",))
    narrow = Grammar(negated=0.0, contrast=0.0, joined=0.0, aside=0.0, degree=0.0)
    with pytest.raises(ValueError, match="count=200 different sentences, but"):
        draw_sentences(narrow, key, 200)


# Tokens and rules -------------------------------------------------------------------------------


def test_words_and_signs_are_told_apart():
    assert words_of("It's “good”, no? 3 stars_") == [
        *("it's", "“", "good", "”", ",", "no", "?", "3", "stars", "_")
    ]


def test_the_word_table_ranks_by_frequency():
    table = word_table(["b a b", "c a b", "d"], size=6)
    assert table.size == 6 and table.encode(["a b c x"]) == [[5, 4, 3, 3]]


def test_sentences_stand_between_start_and_end_cut_and_padded():
    table = word_table(["a b c d e"])
    sentences = Sentences(("a b", "a b c d e"), np.asarray([1, 0]))
    arrays, cut = to_arrays(sentences, table, 5)
    assert arrays["tokens"].tolist() == [[0, 4, 5, 2, 1], [0, 4, 5, 6, 2]] and cut == 0.5
    assert arrays["mask"].tolist() == [[True] * 4 + [False], [True] * 5]
    assert arrays["labels"].tolist() == [1, 0] and arrays["tokens"].dtype == np.int32
    with pytest.raises(ValueError, match="expected at least 3"):
        to_arrays(sentences, table, 2)


def test_byte_pairs_are_trained_and_lose_nothing():
    pytest.importorskip("tokenizers")
    texts = ["the plot is thin", "the cast is warm", "the plot is warm"] * 3
    code = byte_pairs(texts, size=300)
    assert code.size <= 300
    (row,) = code.encode(["the plot is thin"])
    assert len(row) < len("the plot is thin") and min(row) >= 4
    assert code.encode(["the plot is thin"]) == byte_pairs(texts, size=300).encode([texts[0]])


def test_the_stored_code_gives_the_tokens_of_transformers():
    pytest.importorskip("tokenizers")
    expected = json.loads((TINY / "expected.json").read_text(encoding="utf8"))
    sentences = Sentences(tuple(expected["sentences"]), np.zeros(4, np.int32))
    arrays, _ = to_arrays(sentences, stored_tokenizer(TINY), len(expected["tokens"][0]))
    assert arrays["tokens"].tolist() == expected["tokens"]
    assert arrays["mask"].tolist() == [[bool(m) for m in row] for row in expected["mask"]]


def test_codes_that_are_not_robertas_are_refused(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    with pytest.raises(ValueError, match="fetching it with the weights"):
        stored_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf8")
    with pytest.raises(ValueError, match="cannot read"):
        stored_tokenizer(tmp_path)
    model = tokenizers.models.WordLevel({"[CLS]": 0, "<s>": 1}, unk_token="[CLS]")
    tokenizers.Tokenizer(model).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match="expected 0, 1, 2 as in RoBERTa"):
        stored_tokenizer(tmp_path)


def test_naive_bayes_is_the_rule_by_hand():
    train = Sentences(("a a b", "b c", "c"), np.asarray([1, 0, 0]))
    # Praise: a 3/6, b 2/6, c 1/6; blame: a 1/6, b 2/6, c 3/6; priors 1/3 and 2/3.
    test = Sentences(("a", "b", "c", "a c", "zzz"), np.asarray([1, 0, 0, 0, 0]))
    assert naive_bayes(train, test) == 1.0
    assert naive_bayes(train, Sentences(("a",), np.asarray([0]))) == 0.0


def test_the_lexicon_is_asked_where_it_is_installed(monkeypatch):
    import sys
    from types import ModuleType

    test = Sentences(("good", "bad", "good"), np.asarray([1, 0, 0]))
    monkeypatch.setitem(sys.modules, "vaderSentiment", None)
    assert lexicon_accuracy(test) is None

    class Judge:
        def polarity_scores(self, sentence):
            return {"compound": 0.5 if sentence == "good" else -0.5}

    module = ModuleType("vaderSentiment.vaderSentiment")
    module.SentimentIntensityAnalyzer = Judge
    monkeypatch.setitem(sys.modules, "vaderSentiment", ModuleType("vaderSentiment"))
    monkeypatch.setitem(sys.modules, "vaderSentiment.vaderSentiment", module)
    assert lexicon_accuracy(test) == pytest.approx(2 / 3)
