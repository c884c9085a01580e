"""Write a claim on a box of parameters as one goal for Rocq's proof tactic `interval`.

The file defines both sides as functions of the parameters, one definition for each operation.
`interval` then cuts the box into smaller boxes until the goal is proved.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbounds.certification.rocq.file import RocqFile, place_comment, variables_of
from jaxbounds.certification.rocq.theorem import BITS
from jaxbounds.certification.sides import sides_of
from jaxbounds.claims.statements import Domain, Form, Size, Statement
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.interpreter import Program, precision
from jaxbounds.programs.balls.rocq.ledger import Ledger
from jaxbounds.programs.balls.rocq.names import comment
from jaxbounds.programs.balls.rocq.numbers import fraction_text
from jaxbounds.programs.balls.rocq.rules import lifted, objects
from jaxbounds.programs.balls.rocq.scripts import definition_of
from jaxbounds.programs.balls.rocq.terms import MINUS, PLUS, TIMES, Comparison, Real
from jaxbounds.programs.balls.rocq.translation import Translator
from jaxbounds.programs.balls.values import NotSupported, Reading, Undecided

DIGITS, DEPTH = 24, 40
SAMPLES = 12
"""The translation runs the program at this many points of a box to find which branches it executes.
A larger number finds more branches."""
MOST = 400
"""A formula with more operations than this number is refused. A larger number may make Rocq's check
longer."""
WHAT_IS_NOT_SAID = (
    "The kernel does not check that the definitions below are the program's operations in the "
    "program's order, that they read floats as real numbers, and that the program means the "
    "paper's claim. The proof needs no hypotheses: the theorem holds on the whole box."
)
_LEMMAS = """Lemma Rmax_is a b : Rmax a b = (a + b + Rabs (a - b)) / 2.
Proof. unfold Rmax, Rabs. destruct Rle_dec, Rcase_abs; lra. Qed.
Lemma Rmin_is a b : Rmin a b = (a + b - Rabs (a - b)) / 2.
Proof. unfold Rmin, Rabs. destruct Rle_dec, Rcase_abs; lra. Qed."""


class OnBox(NamedTuple):
    """A claim on a box of parameters, translated to scalar operations.

    Attributes:
        pairs: for each entry of the sides, the left and the right scalar.
        error: the rounding error of the sides that `evaluate` states.
        ledger: the list of all scalar operations that the program executes.
    """

    parameters: list[Real]
    pairs: list[tuple[Real, Real]]
    error: Real
    ledger: Ledger


def on_box(statement: Statement, form: Form, domain: Domain, reading: Reading, /) -> OnBox:
    """Translate the program of a claim on a box to scalar operations.

    Raises:
        NotSupported: if an operation has no translation.
        Undecided: if the program takes different branches at points of the box.
    """
    size = Size(dict(domain.size))
    sides = sides_of(statement, form, size)
    with float64_on_cpu(), precision(BITS):
        ledger = Ledger(DIGITS)
        parameters = _parameters(domain, ledger)
        run = Translator(ledger, reading, 60.0)
        program = Program.of(lambda p: sides(domain.instance(p)), jnp.asarray(domain.lower))
        run._next, run._reads = 0, []
        given = objects((len(parameters),), parameters)
        left, right, error = run.closed(program.closed, given)
        lhs, rhs = np.broadcast_arrays(lifted(left, ledger), lifted(right, ledger))
        errors = set(lifted(error, ledger).ravel())
    if len(errors) != 1:
        raise NotSupported(
            f"Sides.error differs between the entries of the sides, {len(errors)=}. Try one error "
            f"for all entries"
        )
    (off,) = errors
    pairs = list(dict.fromkeys(zip(lhs.ravel(), rhs.ravel())))
    for x in (off, *(x for pair in pairs for x in pair)):
        if x.why or not x.ball.is_finite():
            raise NotSupported(
                f"a side of the claim may be undefined on the box of parameters={len(parameters)}: "
                f"{x.why or 'infinite'}. Try a smaller box"
            )
    return OnBox(parameters, pairs, off, ledger)


def _parameters(domain: Domain, ledger: Ledger) -> list[Real]:
    rng, made = np.random.default_rng(0), []
    for i, (low, high) in enumerate(zip(domain.lower, domain.upper)):
        shares = [Fraction(float(v)) for v in rng.uniform(0.01, 0.99, SAMPLES)]
        a, b = Fraction(low), Fraction(high)
        made.append(ledger.parameter(f"t{i}", a, b, [a + (b - a) * share for share in shares]))
    return made


def _needed(numbers: Sequence[Real]) -> list[Real]:
    found: dict[int, Real] = {}
    stack = list(numbers)
    while stack:
        x = stack.pop()
        if x.is_literal or x.order in found or x.operation is None:
            continue
        found[x.order] = x
        stack += x.parts()
    return [found[order] for order in sorted(found)]


def _script(about: OnBox, numbers: Sequence[Real], *unfolded: str) -> str:
    inner = _needed(numbers)
    names = [x.name for x in reversed(inner) if x.operation != "variable"]
    constants = [x for x in inner if x.operation == "variable" and x not in about.parameters]
    words = [f"unfold {', '.join([*unfolded, *names])}."] if names or unfolded else []
    if any(getattr(x.operation, "name", "") in ("max", "min") for x in inner):
        words.append("rewrite ?Rmax_is, ?Rmin_is.")
    used = [p for p in about.parameters if p in inner]
    words += [f"use {x.name} {x.name}_in." for x in constants]
    words += [
        f"generalize {p.name}_in; generalize {p.name}; intros x{i} ?." for i, p in enumerate(used)
    ]
    cut = ", ".join(f"i_bisect x{i}" for i in range(len(used)))
    how = f"{cut}, i_autodiff x0, i_prec 53, i_depth {DEPTH}" if used else "i_prec 90"
    words.append(f"interval with ({how}).")
    return " ".join(words)


def _ways(about: OnBox) -> Iterator[Comparison]:
    yield from (choice.comparison for choice in about.ledger.choices.values())


def box_file(
    statement: Statement,
    form: Form,
    domain: Domain,
    /,
    *,
    as_coded: bool = False,
    citation: str = "",
    boxes: int = 0,
) -> RocqFile:
    """Write the Rocq file that proves a claim on a box.

    The arguments are those of `proof_file`.

    Raises:
        NotSupported: if an operation has no translation, or the formula is too large for Rocq.
        Undecided: if the program takes different branches at points of the box.
    """
    if domain.relative_slack:
        raise NotSupported(
            f"the Rocq file needs an absolute slack, got relative_slack={domain.relative_slack}. "
            "Try slack=1e-9"
        )
    about = on_box(statement, form, domain, "exact" if as_coded else "ulp")
    numbers = [x for pair in about.pairs for x in pair] + [about.error]
    ways = list(_ways(about))
    inner = _needed([*numbers, *(x for c in ways for x in (c.left, c.right))])
    count = sum(x.operation.cost for x in inner if x.operation != "variable")
    if count > MOST:
        raise NotSupported(
            f"the formula of form={form.name!r} has operations={count}, expected at most {MOST} in "
            f"one goal of a file. Try a smaller formula"
        )
    lines = list(_definitions(about, inner))
    for i, c in enumerate(ways):
        goal = f"{c.left.shown(PLUS)} - {c.right.shown(MINUS)} {c.sign} 0"
        if c.sign == "=":
            raise Undecided("the program compares numbers for equality on the box")
        lines += [
            f"Lemma way_{i + 1} : {goal}.",
            f"Proof. {_script(about, (c.left, c.right))} Qed.",
        ]
    lines += list(_claims(about, "<=" if statement.is_bound else "=", Fraction(domain.slack)))
    seconds = 3 + 0.0002 * max(boxes, 50) * count
    head = [
        comment(f"{statement.id}, form '{form.name}': true on a box."),
        comment(
            f"Claim: {statement.formula}\nPaper: {citation or statement.paper}; {statement.label}\n"
            f"The box: {domain.name}; slack {fraction_text(Fraction(domain.slack))}\n"
            f"{count} operations; {boxes} boxes in our own proof; about {seconds:.0f} s on one "
            "core: coqc FILE.v (Coq 8.16 with coq-interval 4.6, or later)."
        ),
        comment(WHAT_IS_NOT_SAID),
        "",
        "From Coq Require Import Reals Lra.",
        "From Interval Require Import Tactic.",
        "Open Scope R_scope.",
        "",
        "Ltac use x known := generalize known; generalize x; intros ? ?.",
        _LEMMAS,
        "",
        "Section Box.",
    ]
    body = [*lines, "End Box.", "", "Print Assumptions true_on_the_box.", ""]
    file = RocqFile("\n".join([*head, *body]))
    file.operations, file.lemmas, file.seconds = count, len(ways) + 1, seconds
    return file


def _definitions(about: OnBox, inner: Sequence[Real]) -> Iterator[str]:
    yield from variables_of([x for x in inner if x.operation == "variable"])
    place = None
    for x in inner:
        if x.operation == "variable":
            continue
        if x.place is not None and x.place != place:
            yield ""
            yield place_comment(x.place)
        place = x.place
        yield definition_of(x)


def _claims(about: OnBox, relation: str, slack: Fraction) -> Iterator[str]:
    words, names, claims = fraction_text(slack), list[str](), list[str]()
    error = "" if about.error.exact == 0 else f" + {about.error.shown(TIMES)}"
    for i, (lhs, rhs) in enumerate(about.pairs):
        left, right = lhs.shown(PLUS), rhs.shown(PLUS)
        if lhs is rhs and about.error.exact == 0:
            continue
        if relation == "<=":
            claim = f"{left}{error} <= {right} + {words}" if slack else f"{left}{error} <= {right}"
        else:
            claim = f"Rabs ({left} - {rhs.shown(TIMES)}){error} <= {words}"
        names.append(f"entry_{i}")
        claims.append(claim)
        script = _script(about, (lhs, rhs, about.error))
        yield ""
        yield f"Lemma entry_{i} : {claim}."
        yield f"Proof. apply Rminus_le. {script} Qed."
    if not names:
        raise NotSupported(
            f"both sides of relation={relation!r} have the same formula, so nothing is left to "
            f"prove. Try another form of the claim"
        )
    if about.error.exact is None:
        off = about.error.shown(PLUS)
        yield from ("", f"Lemma error_is_none : 0 <= {off}.")
        yield f"Proof. {_script(about, (about.error,))} Qed."
    together = " /\\\n  ".join(claims)
    yield ""
    yield f"Theorem true_on_the_box :\n  {together}."
    yield f"Proof. exact {_joined(names)}. Qed."


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"(conj {names[0]} {_joined(names[1:])})"
