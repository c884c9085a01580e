"""Find the claim versions that fail; attach proofs and disproofs by ball arithmetic to verdicts."""

import contextlib
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from jaxbounds.certification.disproof import disprove
from jaxbounds.certification.proof import Proof, prove
from jaxbounds.certification.referee import referee
from jaxbounds.certification.rocq import disproof_file
from jaxbounds.certification.witness import save_witness, witness_of
from jaxbounds.claims.statements import Instance, Statement
from jaxbounds.falsification import Examples, Verdict, load_instance, verdicts_on
from jaxbounds.falsification.examples import NONE
from jaxbounds.falsification.verdict import beside
from jaxbounds.ground.files import write_text
from jaxbounds.programs.balls.certificate import Certificate

PROVED = "proved on D"
MOST_BOXES = 60_000
"""A proof cuts a domain into at most this many boxes. A larger number proves more and takes longer.
"""


class Failing(NamedTuple):
    """A version of a claim that fails, and an instance on which it fails.

    Attributes:
        form: the name of the claim version.
        instance: the stored counterexample, or the failing instance that a search found and
            simplified.
        size: the static part of the instance (its shapes and other Python numbers, by name).
    """

    form: str
    instance: Instance
    size: Mapping[str, float]


def stored(statement: Statement, /) -> tuple[Failing, ...]:
    """Return the claim versions that are expected to fail and store a counterexample."""
    return tuple(
        Failing(form.name, form.counterexample.instance, form.counterexample.size)
        for form in statement.forms
        if form.expected == "fails" and form.counterexample is not None
    )


def failed_in(
    statement: Statement, verdicts: Iterable[Verdict], folder: str | Path, /
) -> tuple[Failing, ...]:
    """Return the claim versions that failed in a run, each with a failing instance."""
    known = {failing.form: failing for failing in stored(statement)}
    found = []
    for verdict in verdicts:
        file = verdict.shrunk_file or verdict.worst_file
        if verdict.status != "fails":
            continue
        if verdict.form in known:
            found.append(known[verdict.form])
        elif file:
            instance, meta = load_instance(Path(folder) / file)
            found.append(Failing(verdict.form, instance, meta["size"]))
    return tuple(found)


def failing_forms(
    statement: Statement, /, *, seed: int = 0, examples: Examples = NONE
) -> tuple[Failing, ...]:
    """Return the stored counterexamples of a statement, or else violations that `falsify` finds.

    The search starts from `examples`, the instances that earlier runs stored.
    """
    known = stored(statement)
    if known:
        return known
    with tempfile.TemporaryDirectory() as folder:
        verdicts = verdicts_on(
            statement, seed=seed, store=folder, referee=referee, examples=examples
        )
        return failed_in(statement, verdicts, folder)


def proofs(
    statement: Statement, /, *, seconds: float = 120.0, slack: str = ""
) -> tuple[Proof, ...]:
    """Try to prove every version of a claim on each of its domains (boxes of instances).

    The argument `slack` replaces the slack of each domain.
    """
    return tuple(
        prove(statement, form.name, domain, seconds=seconds, boxes=MOST_BOXES, slack=slack or None)
        for form in statement.forms
        for domain in form.domains
    )


def _proved(found: tuple[Proof, ...]) -> dict[str, Any]:
    upto = lambda p: f" up to {p.upto}" if p.upto else ""
    domains = "; ".join(f"{p.domain}{upto(p)} ({p.boxes} boxes)" for p in found)
    return {"word": PROVED, "reason": domains, "lhs": None, "proofs": [p.to_json() for p in found]}


def _write_theorem(
    folder: Path,
    statement: Statement,
    failing: Failing,
    certificate: Certificate,
    witness_file: str,
    citation: str,
) -> None:
    as_coded = certificate.word == "disproved as coded"
    options: Any = {"as_coded": as_coded, "citation": citation, "seconds": 5.0}
    with contextlib.suppress(ValueError):
        text = disproof_file(statement, *failing, **options)
        write_text(folder / beside(witness_file), text)


def _open(found: tuple[Proof, ...]) -> dict[str, Any]:
    left = [p for p in found if p.word != PROVED]
    reason = "; ".join(f"{p.domain}: {p.reason or p.word}" for p in left)
    proofs_ = [p.to_json() for p in found]
    return {"word": left[0].word, "reason": reason, "lhs": None, "proofs": proofs_}


def certified(
    statement: Statement,
    verdicts: Iterable[Verdict],
    folder: str | Path,
    /,
    *,
    citation: str = "",
    seconds: float = 120.0,
) -> tuple[Verdict, ...]:
    """Add certificates to verdicts with status `fails`, and to verdicts on forms with a domain.

    A form is one version of the claim; a domain is a box of instances.

    For each disproof, the function writes a witness (a file with which another program can check
    the disproof) into the folder of counterexamples.

    Args:
        statement: the statement that the run checked.
        verdicts: the verdicts on all forms of the statement.
        folder: the folder in which the run stored its counterexamples.
        citation: the paper's title, which the witnesses cite.
        seconds: the processor time in seconds after which the certificate of a form is "undecided".
    """
    found = tuple(verdicts)
    made = {}
    for failing in failed_in(statement, found, folder):
        certificate = disprove(statement, *failing, seconds=seconds)
        file = ""
        if certificate.word != "undecided":
            file = f"counterexamples/{statement.id}.{statement.form(failing.form).file_name}.json"
            witness = witness_of(statement, failing.instance, certificate, citation)
            save_witness(Path(folder) / file, witness)
            _write_theorem(Path(folder), statement, failing, certificate, file, citation)
        made[failing.form] = (certificate, file)

    shown = proofs(statement, seconds=seconds)

    def attached(verdict: Verdict) -> Verdict:
        own = tuple(p for p in shown if p.form == verdict.form)
        if own and verdict.status == "holds" and all(p.word == PROVED for p in own):
            return replace(verdict, evidence=PROVED, certificate=_proved(own))
        if own and verdict.status == "holds":
            return replace(verdict, certificate=_open(own))
        if verdict.form not in made:
            return verdict
        certificate, file = made[verdict.form]
        proof = certificate.word if file else verdict.evidence
        about = certificate.to_json()
        return replace(verdict, evidence=proof, certificate=about, witness_file=file)

    return tuple(map(attached, found))
