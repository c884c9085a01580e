"""A table of the kinds of claims: the usual relation, and the evidence that decides a claim."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal[
    "identity", "inequality", "probability", "expectation", "construction", "trajectory", "rate",
    "limit",
]  # fmt: skip
Relation = Literal["=", "<=", ">=", "->"]
Search = Literal["gradient", "random", "none"]
Estimate = Literal["below", "above"]
Decider = Literal[
    "each instance", "each run", "all draws of a size", "the trend over all sizes"
]  # fmt: skip
"""The evidence that decides a claim, in the words of the guide's page on verdicts."""


class Traits(NamedTuple):
    """The properties of a kind of claims.

    Attributes:
        decider: the evidence that decides a claim of this kind. If "each instance" decides, a
            failing form (version of the claim) stores a counterexample. If "the trend over all
            sizes" decides, the best status of a verdict is `consistent`. If "all draws of a size"
            (random instances) decide, the statement must name its own control (a deliberately false
            variant).
    """

    relation: Relation
    decider: Decider


TRAITS: Mapping[Kind, Traits] = {
    "inequality": Traits("<=", "each instance"),
    "identity": Traits("=", "each instance"),
    "construction": Traits("=", "each instance"),
    "trajectory": Traits("<=", "each run"),
    "probability": Traits("<=", "all draws of a size"),
    "expectation": Traits("<=", "all draws of a size"),
    "rate": Traits("<=", "the trend over all sizes"),
    "limit": Traits("->", "the trend over all sizes"),
}
"""The properties of each kind of claims."""


def _decided_by(*deciders: Decider) -> tuple[Kind, ...]:
    return tuple(kind for kind, traits in TRAITS.items() if traits.decider in deciders)


EXACT = _decided_by("each instance")
"""The kinds of claims whose failing forms (versions of the claim) store a counterexample."""
BY_INSTANCE = _decided_by("each instance", "each run")
"""The kinds of claims that a single instance can refute."""
DRAWN = _decided_by("all draws of a size")
"""The kinds of claims about the probability distribution of random instances."""
FITTED = _decided_by("the trend over all sizes")
"""The kinds of claims that the engine decides by a trend over sizes. The best status of a claim
about a trend is `consistent`."""
ON_AVERAGE = (*DRAWN, *FITTED)
"""The kinds of claims that no single instance can refute."""
SCALED = (*BY_INSTANCE, *FITTED)
"""The kinds of claims for which the engine makes a control (a deliberately false variant) if the
statement names no control."""
