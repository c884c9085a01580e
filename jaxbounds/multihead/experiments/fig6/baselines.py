"""Baselines that need no network: the more frequent class, a bag of words, a lexicon."""

import importlib

import numpy as np

from jaxbounds.multihead.text import Sentences
from jaxbounds.multihead.tokens import words_of


def naive_bayes(train: Sentences, test: Sentences, /) -> float:
    """Compute the test accuracy of naive Bayes on word counts, with one added to each count.

    The classifier ignores words that do not occur in the training texts. A sentence is classified
    as praise if both classes are equally likely.
    """
    ids: dict[str, int] = {}
    rows = [[ids.setdefault(w, len(ids)) for w in words_of(text)] for text in train.texts]
    counts = np.ones((2, len(ids)))
    for row, label in zip(rows, train.labels):
        np.add.at(counts[label], row, 1)
    logs = np.log(counts) - np.log(counts.sum(axis=1, keepdims=True))
    prior = np.log(np.maximum(np.bincount(train.labels, minlength=2), 0.5))
    weights, offset = logs[1] - logs[0], prior[1] - prior[0]
    known = [[ids[w] for w in words_of(text) if w in ids] for text in test.texts]
    scores = np.asarray([offset + weights[row].sum() for row in known])
    return float(np.mean((scores >= 0) == (test.labels == 1)))


def lexicon_accuracy(test: Sentences, /) -> float | None:
    """Compute the accuracy of the sign of VADER's score; return None without vaderSentiment.

    A sentence with score zero is classified as praise.
    """
    try:
        package = importlib.import_module("vaderSentiment.vaderSentiment")
    except ImportError:
        return None
    judge = package.SentimentIntensityAnalyzer()
    scores = np.asarray([judge.polarity_scores(text)["compound"] for text in test.texts])
    return float(np.mean((scores >= 0) == (test.labels == 1)))


def baselines(train: Sentences, test: Sentences, /, *, lexicon: bool) -> dict[str, float]:
    """Compute test accuracies by name: `majority`, `bag_of_words`, and `lexicon` if available."""
    larger = np.mean(train.labels) >= 0.5
    found = {
        "majority": float(np.mean((test.labels == 1) == larger)),
        "bag_of_words": naive_bayes(train, test),
    }
    judged = lexicon_accuracy(test) if lexicon else None
    return found if judged is None else found | {"lexicon": judged}
