"""The sentences of Figure 6 for each trial: token ids, and the order of the training batches."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import digest
from jaxbounds.multihead.experiments.fig6.baselines import baselines
from jaxbounds.multihead.experiments.fig6.config import Figure6
from jaxbounds.multihead.grammar import draw_sentences
from jaxbounds.multihead.text import FETCH_SNIPPETS, Sentences, read_text
from jaxbounds.multihead.tokens import (
    Tokenizer,
    byte_pairs,
    stored_tokenizer,
    to_arrays,
    word_table,
)

EVALUATED = 128
"""The number of sentences that the network evaluates at once; a larger number takes more memory."""


class Prepared(NamedTuple):
    """The data of all trials.

    Attributes:
        lanes: the sentences, their order and the random keys of each trial, stacked over the
            trials.
        vocabulary: the size of the largest vocabulary of a trial.
        found: for each trial, the accuracies of simple rules and the share of sentences cut to T
            tokens.
        mark: a hash of the data, so that a continued run refuses other data.
    """

    lanes: dict
    vocabulary: int
    found: dict[str, np.ndarray]
    mark: str


def _divided(config: Figure6, key: Array, stored: dict[str, Sentences]) -> tuple[Sentences, ...]:
    if not stored:
        both = draw_sentences(config.grammar, key, config.n + config.test)
        return both.take(np.arange(config.n)), both.take(np.arange(config.n, len(both.texts)))
    whole, given = stored.get("all"), stored.get("test")
    rest = stored["train"] if whole is None else whole
    order = np.asarray(jax.random.permutation(key, len(rest.texts)))
    test = config.test
    if whole is not None:
        if not test:
            raise Refused(
                f"data={config.data} is one file without a test split, so test={test} must be "
                "positive: the number of rows to hold out for testing. Try --test 1000"
            )
        given, order = rest.take(order[:test]), order[test:]
    n = config.n or len(order)
    if given is None or len(order) < n or len(given.texts) < test:
        have = f"{len(order)} and {0 if given is None else len(given.texts)}"
        raise Refused(
            f"n={n} training and test={test} test sentences, but {config.data} holds only"
            f" {have}. Try smaller --n and --test"
        )
    return rest.take(order[:n]), given.take(np.arange(test or len(given.texts)))


def _tokenizer(config: Figure6, texts: Sequence[str]) -> Tokenizer:
    if config.weights:
        return stored_tokenizer(config.weights)
    train = word_table if config.code == "words" else byte_pairs
    return train(texts, size=config.vocabulary)


def _orders(config: Figure6, key: Array, n: int, batches: int) -> np.ndarray:
    rows = [np.asarray(jax.random.permutation(k, n)) for k in jax.random.split(key, config.epochs)]
    return np.stack(rows)[:, : batches * config.batch].reshape(-1, config.batch).astype(np.int32)


def _for_looks(data: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """Divide `count` rows into groups of `EVALUATED`; the rows that fill up have no label."""
    fill = -count % EVALUATED
    rows = np.minimum(np.arange(count + fill), count - 1)
    labels = np.where(np.arange(count + fill) < count, data["labels"][rows], -1)
    whole = {name: leaf[rows] for name, leaf in data.items()} | {"labels": labels}
    return {name: leaf.reshape(-1, EVALUATED, *leaf.shape[1:]) for name, leaf in whole.items()}


def batches_of(config: Figure6, n: int, /) -> int:
    """Return the number of steps of an epoch over n sentences, a multiple of `looks`.

    Raises:
        Refused: if an epoch has fewer batches than `looks`, the number of recordings in an epoch.
    """
    batches = n // config.batch // config.looks * config.looks
    if not batches:
        raise Refused(
            f"looks={config.looks} records of the loss in an epoch, but n={n} training sentences "
            f"make only {n // config.batch} batches of size {config.batch}. Try more sentences or "
            f"fewer looks"
        )
    return batches


def prepare(config: Figure6, key: Array, /) -> Prepared:
    """Read or draw the sentences of every trial, and encode them as token ids.

    A trial's data, order and first weights do not depend on the number of heads H or on the arm
    (way to vary the number of heads).

    Raises:
        Refused: if the source is a file and no file is given, or the file holds too few sentences.
    """
    if config.source == "file" and not config.data:
        raise Refused(
            f"data={config.data!r}, expected a source of sentences. Try --data FOLDER (SST-2"
            " with train.tsv and dev.tsv, or with Parquet files), or --data FILE for the"
            f" archive that this command fetches: {FETCH_SNIPPETS}"
        )
    stored = read_text(config.data) if config.source == "file" else {}
    lanes: list[dict] = []
    found: list[dict[str, float]] = []
    sizes: list[int] = []
    for trial_key in jax.random.split(key, config.trials):
        data_key, start_key, order_key, drop_key = jax.random.split(trial_key, 4)
        train, test = _divided(config, data_key, stored)
        tokenizer = _tokenizer(config, train.texts)
        (rows, cut), (held, _) = (
            to_arrays(part, tokenizer, config.length) for part in (train, test)
        )
        count = len(train.texts)
        sizes.append(tokenizer.size)
        batches = batches_of(config, count)
        found.append(
            baselines(train, test, lexicon=config.source == "file")
            | {"share_cut": cut, "tokens_used": float(np.mean(rows["mask"].sum(1)))}
        )
        lanes.append(
            {
                "start": np.asarray(jax.random.key_data(start_key)),
                "drop": np.asarray(jax.random.key_data(drop_key)),
                "data": rows,
                "order": _orders(config, order_key, count, batches),
                "train": _for_looks(rows, min(count, len(test.texts))),
                "test": _for_looks(held, len(test.texts)),
            }
        )
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *lanes)
    flat = {jax.tree_util.keystr(p): v for p, v in jax.tree_util.tree_leaves_with_path(stacked)}
    measured = {name: np.asarray([each[name] for each in found]) for name in found[0]}
    return Prepared(stacked, max(sizes), measured, digest(flat))
