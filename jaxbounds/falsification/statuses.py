"""The statuses of a verdict as an enum; each member has a meaning and the reader's next step."""

from enum import StrEnum


class Status(StrEnum):
    """The status of a verdict; each member equals its word, as in `Status.HOLDS == "holds"`.

    `jb.Status(verdict.status).cure` is the next step for a reader of that verdict.

    Attributes:
        meaning: the meaning of the status, in a sentence or two.
        cure: the next step for the reader; empty if no step is needed.
    """

    meaning: str
    cure: str

    def __new__(cls, word: str, meaning: str, cure: str) -> "Status":
        """Create a status from its word, its meaning and the reader's next step (`cure`)."""
        made = str.__new__(cls, word)
        made._value_ = word
        made.meaning, made.cure = meaning, cure
        return made

    HOLDS = (
        "holds",
        "The engine measured both sides in float64 on all sampled instances that meet the "
        "hypotheses. No instance violates the claim, and the same code rejected a deliberately "
        "false variant. This is evidence, not a proof.",
        "",
    )
    CONSISTENT = (
        "consistent",
        "The claim is a rate or a limit, and the fit over sizes agrees with it.",
        "",
    )
    FAILS = (
        "fails",
        "An instance violates the claim; the run stores the instance, and you can replay it. A "
        "printed form that is known to be wrong is expected to fail.",
        "Replay the stored instance with `jaxbounds replay FILE`. Correct the formula or the "
        "hypotheses, or declare the form with expected='fails' and its counterexample.",
    )
    INCONSISTENT = (
        "inconsistent",
        "The claim is a rate or a limit, and the fit over sizes contradicts it.",
        "Add larger sizes, or correct the claim.",
    )
    VACUOUS = (
        "vacuous",
        "No instance meets the hypotheses, or the bound never beats the trivial bound.",
        "Sample instances that meet the hypotheses (over=, project=), or drop the bound.",
    )
    INCONCLUSIVE = (
        "inconclusive",
        "The measurements do not decide the claim: the error bar of a ratio contains one, an "
        "instance gave NaN, or the engine did not reject the false variant.",
        "Read the verdict's reason. Try --thorough, a smaller stated error, or a false control.",
    )
    ERROR = (
        "error",
        "The engine could not measure the statement, because its code or its process broke.",
        "Run `jaxbounds verify ID --traceback` and repair the line that it names.",
    )
