"""The statuses of a verdict as an enum: each has its meaning and the reader's next step."""

from enum import StrEnum


class Status(StrEnum):
    """The status of a verdict; each member equals its word: `Status.HOLDS == "holds"`.

    `jb.Status(verdict.status).cure` is the next step for a reader of that verdict.

    Attributes:
        meaning: the meaning of the status, in a sentence or two.
        cure: the next step for the reader; empty if no step is needed.
    """

    meaning: str
    cure: str

    def __new__(cls, word: str, meaning: str, cure: str) -> "Status":
        """Make a member from its word, its meaning and its cure."""
        made = str.__new__(cls, word)
        made._value_ = word
        made.meaning, made.cure = meaning, cure
        return made

    HOLDS = (
        "holds",
        "Both sides were measured in float64 on every instance that meets the hypotheses, none "
        "violates it, and a deliberately false variant was rejected by the same code. Evidence, "
        "not a proof.",
        "",
    )
    CONSISTENT = (
        "consistent",
        "Only a rate is claimed, and the interval of the fitted exponent agrees with it.",
        "",
    )
    FAILS = (
        "fails",
        "Some instance violates it; it is stored and can be replayed. A printed form that is "
        "known to be wrong is expected to fail.",
        "Replay the stored instance with `jaxbounds replay FILE`. Correct the formula or the "
        "hypotheses, or declare the form with expected='fails' and its counterexample.",
    )
    INCONSISTENT = (
        "inconsistent",
        "Only a rate is claimed, and the interval of the fitted exponent excludes it.",
        "Add larger sizes, or declare the exponent that the fit shows.",
    )
    VACUOUS = (
        "vacuous",
        "No instance meets the hypotheses, or the bound never beats the trivial one.",
        "Sample instances that meet the hypotheses (over=, project=), or drop the bound.",
    )
    INCONCLUSIVE = (
        "inconclusive",
        "The numerical or statistical error covers one, an instance gave NaN, or the "
        "false variant was not rejected.",
        "Read the verdict's reason. Try --thorough, a tighter error, or a control that is false.",
    )
    ERROR = (
        "error",
        "It could not be measured: its code or its process broke.",
        "Run `jaxbounds verify ID --traceback` and repair the line that it names.",
    )
