"""Tokenizers: a table of words, a trained byte-pair encoding, or the tokenizer of a folder."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.text import Sentences

START, PAD, END, UNKNOWN = range(4)
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
NEEDS_TOKENIZERS = "this needs the tokenizers package: pip install 'jaxbounds[sst2]'"


class Tokenizer(NamedTuple):
    """A tokenizer.

    Attributes:
        encode: a function from texts to the token ids of each text, without start and end tokens.
        size: the number of ids; all ids are smaller than this number.
    """

    encode: Callable[[Sequence[str]], list[list[int]]]
    size: int


def words_of(text: str, /) -> list[str]:
    """Return the lower-case words and the single punctuation marks of a text."""
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_", text.lower())


def word_table(texts: Sequence[str], /, *, size: int = 4096) -> Tokenizer:
    """Build a tokenizer of the most frequent words; it maps every other word to `<unk>`.

    `size` counts the words and the special tokens; equally frequent words rank alphabetically.
    """
    counts = Counter(word for text in texts for word in words_of(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: size - len(SPECIAL)]
    ids = {word: index + len(SPECIAL) for index, word in enumerate(ranked)}
    encode = lambda texts: [[ids.get(w, UNKNOWN) for w in words_of(text)] for text in texts]
    return Tokenizer(encode, len(ids) + len(SPECIAL))


def byte_pairs(texts: Sequence[str], /, *, size: int = 4096) -> Tokenizer:
    """Train a byte-level byte-pair encoding like RoBERTa's on `texts`.

    `size` counts the ids, the four special tokens included.

    Raises:
        ImportError: if tokenizers is missing; the message tells how to install tokenizers.
    """
    try:
        import tokenizers
    except ImportError as problem:
        raise ImportError(NEEDS_TOKENIZERS) from problem
    code = tokenizers.ByteLevelBPETokenizer()
    code.train_from_iterator(
        texts, vocab_size=size, min_frequency=2, special_tokens=list(SPECIAL), show_progress=False
    )
    return _wrapped(code)


def stored_tokenizer(folder: str | Path, /) -> Tokenizer:
    """Load the tokenizer in `tokenizer.json` of a Hugging Face folder.

    Raises:
        Refused: if the file is missing or damaged, or its special tokens are not RoBERTa's.
        ImportError: if tokenizers is missing; the message tells how to install tokenizers.
    """
    path = Path(folder) / "tokenizer.json"
    try:
        import tokenizers
    except ImportError as problem:
        raise ImportError(NEEDS_TOKENIZERS) from problem
    if not path.is_file():
        raise Refused(
            f"path={path} does not exist, expected a tokenizer.json. Try fetching it with the"
            " weights, or saving it with save_pretrained"
        )
    try:
        code = tokenizers.Tokenizer.from_file(str(path))
    except Exception as problem:  # the package raises a plain Exception
        raise Refused(
            f"cannot read path={path} ({problem}), expected a tokenizer.json. Try fetching it again"
        ) from problem
    found = tuple(code.token_to_id(token) for token in SPECIAL[:3])
    if found != (START, PAD, END):
        raise Refused(
            f"{path}: <s>, <pad>, </s> are ids={', '.join(map(str, found))}, expected {START},"
            f" {PAD}, {END} as in RoBERTa. Try the tokenizer.json of roberta-base"
        )
    code.no_padding()
    code.no_truncation()
    return _wrapped(code)


def _wrapped(code: Any) -> Tokenizer:
    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in code.encode_batch(list(texts), add_special_tokens=False)]

    return Tokenizer(encode, code.get_vocab_size())


def to_arrays(
    sentences: Sentences, tokenizer: Tokenizer, length: int, /
) -> tuple[dict[str, np.ndarray], float]:
    """Encode sentences between `<s>` and `</s>`, cut and padded to one length.

    `length` is T, the number of ids of each sentence, the two special tokens included.

    Returns:
        {"tokens": (n, T) int32, "mask": (n, T) bool, "labels": (n,) int32} and the share of
        sentences that were cut.

    Raises:
        Refused: if `length` leaves no room for a token between the two special tokens.
    """
    if length < 3:
        raise Refused(f"length={length}, expected at least 3 (start, a token, end). Try length=64")
    rows = tokenizer.encode(sentences.texts)
    tokens = np.full((len(rows), length), PAD, np.int32)
    for place, row in zip(tokens, rows):
        ids = [START, *row[: length - 2], END]
        place[: len(ids)] = ids
    cut = float(np.mean([len(row) > length - 2 for row in rows]))
    counts = np.minimum([len(row) + 2 for row in rows], length)
    mask = np.arange(length) < counts[:, None]
    return {"tokens": tokens, "mask": mask, "labels": sentences.labels.astype(np.int32)}, cut
