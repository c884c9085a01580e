"""Generate opinions about films from a small grammar, in which no single word decides the label.

An opinion has one or two clauses. A clause praises or blames, and a negation exchanges praise and
blame. Clauses joined by "and" agree. If two clauses contradict each other, the label is that of the
clause after "but", after a leading "although", or before a later "although". The adjective and the
negation of this clause determine the label.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array

from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.text import Sentences


def _words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


PRAISE = _words(
    "brilliant charming clever fresh funny graceful gripping honest inventive lively moving "
    "polished rich sharp subtle superb tender thoughtful vivid warm"
)
BLAME = _words(
    "awful bland clumsy dull empty flat forced grim hollow lazy messy noisy pointless shallow "
    "silly slow stale tedious thin weak"
)
NOUNS = _words(
    "acting cast camera comedy dialogue drama ending film hero lead movie music opening pacing "
    "plot romance scenery score script story"
)
DEGREES = ("very", "really", "quite", "rather", "truly", "so")
ASIDES = (
    "to be frank ,",
    "on the whole ,",
    "after two hours",
    "in the end",
    "for what it is ,",
    "i saw it last week :",
    "whatever others say ,",
    "at this length",
)
PLAIN = ("the {noun} is {quality}", "i found the {noun} {quality}", "here is a {quality} {noun}")
NEGATED = (
    "the {noun} is not {quality}",
    "i never found the {noun} {quality}",
    "nobody would call the {noun} {quality}",
    "the {noun} is far from {quality}",
    "the {noun} is hardly {quality}",
)
CONTRASTS = (
    ("{other} but {decisive}", 3),
    ("although {other} , {decisive}", 2),
    ("{decisive} , although {other}", 2),
    ("{decisive} , even if {other}", 1),
)
DRAWS = 24
"""The largest number of uniform random numbers for one sentence; a larger number allows longer
sentences.
"""


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The frequencies of the kinds of clauses and sentences.

    Attributes:
        negated: the share of clauses with a negation.
        contrast: the share of sentences with two clauses that contradict each other.
        joined: the share of sentences with two clauses that agree; all other sentences have one
            clause.
        aside: the share of sentences that start with a neutral phrase.
        degree: the share of adjectives with an adverb of degree.
    """

    negated: float = 0.25
    contrast: float = 0.5
    joined: float = 0.1
    aside: float = 0.3
    degree: float = 0.4

    def __post_init__(self) -> None:
        shares = (self.negated, self.contrast, self.joined, self.aside, self.degree)
        if not all(0 <= share <= 1 for share in shares) or self.contrast + self.joined > 1:
            raise Refused(
                f"grammar={self}, expected shares in [0, 1], and contrast + joined (the sentences "
                f"of two clauses) at most 1. Try smaller shares"
            )


def _pick(options: Sequence[str], draws: Iterator[float]) -> str:
    return options[int(next(draws) * len(options))]


def _clause(grammar: Grammar, praise: bool, draws: Iterator[float]) -> str:
    negated = next(draws) < grammar.negated
    words = PRAISE if praise != negated else BLAME
    quality = _pick(words, draws)
    if next(draws) < grammar.degree:
        quality = f"{_pick(DEGREES, draws)} {quality}"
    form = _pick(NEGATED if negated else PLAIN, draws)
    return form.format(noun=_pick(NOUNS, draws), quality=quality)


def _sentence(grammar: Grammar, praise: bool, draws: Iterator[float]) -> str:
    kind = next(draws)
    text = _clause(grammar, praise, draws)
    if kind < grammar.contrast:
        forms = [form for form, weight in CONTRASTS for _ in range(weight)]
        other = _clause(grammar, not praise, draws)
        text = _pick(forms, draws).format(decisive=text, other=other)
    elif kind < grammar.contrast + grammar.joined:
        text = f"{text} and {_clause(grammar, praise, draws)}"
    return f"{_pick(ASIDES, draws)} {text}" if next(draws) < grammar.aside else text


def draw_sentences(grammar: Grammar, key: Array, count: int, /) -> Sentences:
    """Draw `count` distinct sentences; praise and blame are equally likely.

    Raises:
        Refused: if the grammar does not give enough different sentences.
    """
    found: dict[str, int] = {}
    for round_key in jax.random.split(key, 20):
        rows = np.asarray(jax.random.uniform(round_key, (count, DRAWS)), np.float64)
        for row in rows:
            draws = iter(row.tolist())
            praise = next(draws) < 0.5
            found.setdefault(_sentence(grammar, praise, draws), int(praise))
            if len(found) == count:
                return Sentences(tuple(found), np.asarray(list(found.values()), np.int32))
    raise Refused(
        f"count={count} different sentences, but {grammar} gave only {len(found)} in"
        f" {20 * count} draws. Try a smaller count, or a grammar with more kinds of sentences"
    )
