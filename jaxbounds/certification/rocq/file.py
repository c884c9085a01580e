"""Write a Rocq file: header, instance, hypotheses, both sides, and the theorem at the end."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jaxbounds.certification.rocq.theorem import Translated
from jaxbounds.programs.balls.rocq.ledger import Ledger
from jaxbounds.programs.balls.rocq.names import comment, usable
from jaxbounds.programs.balls.rocq.numbers import decimal_text
from jaxbounds.programs.balls.rocq.scripts import (
    comparison_script,
    definition_of,
    known_as,
    lemma_of,
    prepared,
)
from jaxbounds.programs.balls.rocq.spectral import LEMMAS, Spectral, lines_of
from jaxbounds.programs.balls.rocq.terms import Choice, Comparison, Place, Real
from jaxbounds.programs.balls.values import Reading

WHAT_IS_NOT_SAID = (
    "The kernel does not check that the definitions below are the program's operations in the "
    "program's order, that they read floats as real numbers, and that the program means the "
    "paper's claim. We wrote the definitions from the program's trace, entry by entry, with the "
    "lines of the program beside them. A value that depends on shapes and integers alone, or that "
    "Python computed before the trace, stands as a number."
)
_READ: dict[Reading, str] = {
    "exact": "The program's constants are exactly their floats.",
    "ulp": "Constants of the program that may have been rounded are variables.",
}
_WHOLE = ("Zfloor", "Zceil", "ZnearestE")
_LEMMAS = {
    "lower_end": LEMMAS,
    "root_is": "Lemma root_is x y : 0 <= y -> x = y * y -> sqrt x = y.\n"
    "Proof. intros h ->. now apply sqrt_square. Qed.",
    "floor_is": "Lemma floor_is n x : IZR n <= x < IZR n + 1 -> IZR (Zfloor x) = IZR n.\n"
    "Proof. intros h. f_equal. apply Zfloor_imp. now rewrite plus_IZR. Qed.",
    "ceil_is": "Lemma ceil_is n x : IZR n - 1 < x <= IZR n -> IZR (Zceil x) = IZR n.\n"
    "Proof. intros h. f_equal. apply Zceil_imp. now rewrite minus_IZR. Qed.",
    "nearest_is": "Lemma nearest_is n x : Rabs (x - IZR n) < / 2 -> IZR (ZnearestE x) = IZR n.\n"
    "Proof. intros h. f_equal. now apply Znearest_imp. Qed.",
}


def place_comment(place: Place, /) -> str:
    """Return a comment that names the file and line of an operation in the program."""
    return comment(f"{place.file}:{place.line}, {place.function}: {place.code}")


class Contents:
    """Collects the lines of a Rocq file, with each definition once and before its first use."""

    def __init__(self, ledger: Ledger) -> None:
        self.lines: list[str] = []
        self.operations = self.lemmas = 0
        self._pending = sorted(ledger.choices.values(), key=lambda c: c.order)
        self._written: set[int] = set()
        self._place: Place | None = None

    def add(self, *lines: str) -> None:
        """Append the given lines to the file, unchanged."""
        self.lines += lines

    def need(self, numbers: Iterable[Real], choices_until: int = 0) -> None:
        """Write the definitions of the given numbers, each after the numbers that it uses."""
        wanted: dict[int, Real | Choice] = {}
        stack = list(numbers)
        while self._pending and self._pending[0].order <= choices_until:
            choice = self._pending.pop(0)
            wanted[choice.order] = choice
            stack += [choice.comparison.left, choice.comparison.right]
        while stack:
            x = stack.pop()
            if x.is_literal or id(x) in self._written or x.operation in (None, "variable"):
                continue
            self._written.add(id(x))
            wanted[x.order] = x
            stack += x.parts()
        for order in sorted(wanted):
            one = wanted[order]
            self._at(one.place)
            if isinstance(one, Choice):
                self._chosen(one.comparison)
            else:
                self.operations += one.operation.cost
                self.lemmas += 1
                spectral = isinstance(one.operation, Spectral)
                self.add(*(lines_of(one) if spectral else (definition_of(one), lemma_of(one))))

    def _at(self, place: Place | None) -> None:
        if place is not None and place != self._place:
            self.add("", place_comment(place))
        self._place = place

    def _chosen(self, c: Comparison) -> None:
        self.operations += 1
        self.lemmas += 1
        self.add(f"Lemma way_{self.lemmas} : {c}.", f"Proof. {comparison_script(c)} Qed.")


def digest_of(about: Translated, /) -> str:
    """Return the SHA-256 of a disproof's statement id, form name, size and exact instance."""
    entries = {
        name: [str(x.exact) for x in values.ravel()] for name, values in about.instance.items()
    }
    what = [about.statement.id, about.form.name, dict(about.size), entries]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _instance(about: Translated) -> Iterator[str]:
    yield ""
    shapes = ", ".join(
        f"{name} of shape {values.shape}" if values.shape else name
        for name, values in about.instance.items()
    )
    size = ", ".join(f"{name} = {value}" for name, value in about.size.items())
    yield comment(f"1. The instance, exact: {shapes or 'nothing'}. Size: {size or 'none'}.")
    for values in about.instance.values():
        yield from map(definition_of, values.ravel())


def variables_of(reals: Iterable[Real], /) -> Iterator[str]:
    """Yield the lines of Rocq that declare variables and their bounds."""
    for x in reals:
        assert x.bounds is not None
        low, high = map(decimal_text, x.bounds)
        yield f"Variable {x.name} : R. {_where(x.place)}".rstrip()
        yield f"Hypothesis {known_as(x)} : {low} <= {x.name} <= {high}."


def _where(place: Place | None) -> str:
    return comment(f"{place.file}:{place.line}: {place.code}") if place else ""


def _hypotheses(about: Translated, contents: Contents) -> None:
    contents.add("", comment(f"2. The hypotheses. {about.statement.assumptions}".strip()))
    named = list(about.hypotheses.items())
    if not named:
        contents.add(comment("The form has no hypotheses."))
    taken: dict[str, int] = {}
    for i, (name, fact) in enumerate(named):
        last = i == len(named) - 1
        until = about.opened if last else max((c.order for c in _within(fact.because)), default=0)
        contents.need((x for c in fact.because for x in (c.left, c.right)), until)
        lemma = f"hypothesis_{usable(name)}"
        taken[lemma] = taken.get(lemma, 0) + 1
        lemma += f"_{taken[lemma]}" if taken[lemma] > 1 else ""
        contents.add("", comment(f"Hypothesis: {name}."))
        if not fact.because:
            contents.add(comment("This hypothesis depends on shapes, integers and literals alone."))
            continue
        contents.lemmas += len(fact.because)
        contents.operations += len(fact.because)
        claim = " /\\\n  ".join(map(str, fact.because))
        steps = [f"  split. {{ {comparison_script(c)} }}" for c in fact.because[:-1]]
        steps.append(f"  {comparison_script(fact.because[-1])}")
        contents.add(f"Lemma {lemma} :\n  {claim}.", "Proof.", *steps, "Qed.")


def _within(comparisons: Iterable[Comparison]) -> Iterator[Real]:
    return (x for c in comparisons for x in (c.left, c.right))


def _claim(about: Translated, contents: Contents, margin: float) -> None:
    lhs, rhs, error = about.lhs, about.rhs, about.error
    contents.add("", comment("3. Both sides, as the program computes them."))
    contents.need((lhs, rhs, error), about.ledger.now)
    entry = f", entry {about.entry}" if about.entry >= 0 else ""
    contents.add(
        "",
        comment(f"The left side{entry}."),
        f"Definition lhs : R := {lhs.shown()}.",
        comment(f"The right side{entry}."),
        f"Definition rhs : R := {rhs.shown()}.",
    )
    off = not (error.is_literal and error.exact == 0)
    if off:
        contents.add(
            comment("The statement's bound on the rounding error of their difference."),
            f"Definition error : R := {error.shown()}.",
        )
    names = ("lhs", "rhs", "error")[: 2 + off]
    difference = "lhs - rhs" if about.statement.is_bound else "Rabs (lhs - rhs)"
    beyond = f"{difference} - error" if off else difference
    script = prepared((lhs, rhs, error), *names)
    if margin:
        contents.add(
            "",
            comment("The sides differ by at least a millionth of each side."),
            "Lemma by_a_millionth :\n"
            f"  {beyond} >= Rabs lhs / 10 ^ 6 /\\ {beyond} >= Rabs rhs / 10 ^ 6.",
            f"Proof. {script} split; apply Rminus_ge; enclosed. Qed.",
        )
    if about.statement.is_bound:
        claim, tactic = "lhs > rhs + error" if off else "lhs > rhs", "lra"
    elif off:
        claim, tactic = "Rabs (lhs - rhs) > error", "apply Rminus_gt; enclosed"
    else:
        above = bool(lhs.ball > rhs.ball)
        claim = "lhs <> rhs"
        tactic = f"apply {'Rgt_not_eq' if above else 'Rlt_not_eq'}; lra"
    contents.lemmas += 3
    contents.add(
        "",
        comment(f"4. The claim, {about.statement.formula}, is false here."),
        f"Theorem claim_is_false : {claim}.",
        f"Proof. {script} {tactic}. Qed.",
    )


def seconds_of(text: str, /) -> float:
    """Estimate the kernel's time in seconds on one core of a laptop from the number of proofs."""
    exact = text.count(" lra. Qed.")
    tactics = text.count("enclosed. Qed.") + text.count("enclosed. }")
    return 1.5 + 0.005 * exact + 0.03 * tactics + 0.005 * text.count(" use ")


def _head(about: Translated, citation: str, body: Mapping[str, Any]) -> Iterator[str]:
    s, form = about.statement, about.form
    yield comment(f"{s.id}, form '{form.name}': false on one instance.")
    yield comment(
        "\n".join(
            line
            for line in (
                f"Claim: {s.formula}",
                f"Paper: {citation or s.paper}; {s.label}"
                + (f"; {form.cites}" if form.cites else ""),
                f"Setting: {s.assumptions}" if s.assumptions else "",
                f"Why it is false: {form.note}" if form.note else "",
                f"SHA-256 of statement, form, size and instance: {digest_of(about)}",
                f"{body['operations']} operations, {body['lemmas']} lemmas; about "
                f"{body['seconds']:.0f} s on one core: coqc FILE.v "
                "(Coq 8.16 with coq-interval 4.6, or later).",
            )
            if line
        )
    )
    yield comment(f"{WHAT_IS_NOT_SAID} {_READ[about.reading]}")


class RocqFile(str):
    """The text of a file that Rocq's kernel checks; see the guide's page `kernel`.

    Attributes:
        operations: the number of scalar operations and comparisons in the file.
        lemmas: the number of lemmas in the file.
        seconds: the estimated time that Rocq's kernel needs on one core, in seconds.
    """

    operations: int
    lemmas: int
    seconds: float


def file_of(about: Translated, /, *, citation: str = "", margin: float = 1e-6) -> RocqFile:
    """Write the file of a translated disproof.

    Unless `margin` is zero, the file also proves that the relative distance of the sides is at
    least one millionth.
    """
    ledger, contents = about.ledger, Contents(about.ledger)
    contents.add(*_instance(about))
    rounded = any(x.operation == "variable" for x in ledger.reals)
    free = rounded or any(isinstance(x.operation, Spectral) for x in ledger.reals)
    if free:
        contents.add("", "Section Instance.")
    if rounded:
        words = "Constants of the program that may have been rounded: any near value will do."
        variables = [x for x in ledger.reals if x.operation == "variable"]
        contents.add("", comment(words), *variables_of(variables))
    _hypotheses(about, contents)
    _claim(about, contents, margin)
    if free:
        contents.add("", "End Instance.")
    contents.add("", "Print Assumptions claim_is_false.", "")
    body = "\n".join(contents.lines)
    lemmas = [text for name, text in _LEMMAS.items() if name in body]
    known: dict[str, Any] = {
        "operations": contents.operations,
        "lemmas": contents.lemmas,
        "seconds": seconds_of(body),
    }
    head = [
        *_head(about, citation, known),
        "",
        "From Coq Require Import Reals Lra.",
        *(["From Flocq Require Import Core."] if any(z in body for z in _WHOLE) else []),
        "From Interval Require Import Tactic.",
        "Open Scope R_scope.",
        "",
        f"Ltac enclosed := interval with (i_prec {round(3.33 * ledger.digits) + 50}).",
        "Ltac use x known := generalize known; generalize x; intros ? ?.",
        *lemmas,
    ]
    file = RocqFile("\n".join([*head, body]))
    file.operations, file.lemmas = contents.operations, contents.lemmas
    file.seconds = known["seconds"]
    return file
