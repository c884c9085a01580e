"""Disprove a false claim on one instance by ball arithmetic (intervals around floats).

The certificate is a theorem about the statement's JAX program, if all operations are exact
operations on real numbers. The certificate relies on the FLINT library, on `jax.make_jaxpr`, and on
this package's rules for each operation. If float64 values of the sides contradict the enclosures,
the certificate's result is "undecided".
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxbounds.certification.apart import Gap, apart, hull
from jaxbounds.certification.enclosures import BITS, Enclosing, Met, hypotheses_of, is_float
from jaxbounds.certification.rocq import OPERATIONS, disproof_file
from jaxbounds.certification.sides import arrays_of, sides_of
from jaxbounds.claims.sets import Over
from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification import ON_AVERAGE, fitted, float64_on_cpu
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.measure import compared
from jaxbounds.falsification.programs import compiled
from jaxbounds.falsification.second_opinion import (
    FLOATS_ONLY,
    TRUE,
    at_projected,
    is_at_projected,
)
from jaxbounds.falsification.tolerated import POINTS
from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers import Named, the_statement
from jaxbounds.programs.balls.boxes import MARGIN
from jaxbounds.programs.balls.certificate import Certificate, decimal_bounds
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.values import (
    NotSupported,
    Reading,
    Undecided,
)
from jaxbounds.programs.interpreted import NotInterpreted, interpreted, once
from jaxbounds.programs.interpreted.whole import as_floats, with_whole_numbers
from jaxbounds.programs.ranges import operations_that_may_wrap

AGREED = 1e-12
"""The sides of an identity count as equal up to this relative difference. A larger value counts
more instances as equal."""
NEARBY = 1e-6
"""If the sides differ by less than this share of the instance's largest entry, the disproof needs a
point that meets the hypotheses exactly. A larger share requires an exact point more often."""
SECONDS = 20.0
"""Seconds after which ball arithmetic leaves an instance undecided; a larger number decides more.
"""
EQUAL = "both sides are equal, which violates the strict inequality; a disproof needs a gap"
"""The certificate's reason if both sides of a strict inequality are equal."""


def disprove(
    statement: Named,
    form: str = "printed",
    instance: Instance | None = None,
    size: Mapping[str, float] | None = None,
    *,
    seconds: float = 120.0,
    bits: tuple[int, ...] = BITS,
) -> Certificate:
    """Try to disprove one form (version of the claim) on one instance by ball arithmetic.

    Args:
        statement: a statement of a paper, or its id.
        form: the name of one of the statement's forms.
        instance: the inputs, as in `Counterexample.instance`; each float means its exact binary
            value. The default instance is the form's stored counterexample.
        size: the static part of the instance (its shapes and other Python numbers, by name).
        seconds: the time in seconds after which the form is undecided.
        bits: the precisions of ball arithmetic, in bits; the function tries them in this sequence.

    Raises:
        Refused: if the statement or the form is unknown, if there is no instance, or if the
            instance does not fit the statement (its leaves, shapes or numbers).
    """
    statement = the_statement(statement)
    stored = statement.form(form).counterexample
    if instance is None and stored is not None:
        instance, size = stored.instance, stored.size
    if instance is None or size is None:
        raise Refused(
            f"form={form!r} of {statement.id} declares no counterexample=..., and the call gave no "
            f"instance or size. Try instance=..., size=..."
        )
    certificate = _certificate(
        statement, form, instance, size, seconds, bits, MARGIN, by_entry=False
    )
    return replace(certificate, theorem=_theorem_of(statement, instance, certificate))


def _theorem_of(
    statement: Statement, instance: Instance, certificate: Certificate
) -> Callable[[int | None, str], str]:

    def theorem(operations: int | None, citation: str) -> str:
        return disproof_file(
            statement, certificate.form, instance, certificate.size,
            as_coded=certificate.word == "disproved as coded",
            operations=OPERATIONS if operations is None else operations,
            citation=citation,
        )  # fmt: skip

    return theorem


def confirmed(
    statement: Statement, form: str, instance: Instance, size: Mapping[str, float], /
) -> Certificate:
    """Disprove a claim on an instance whose floats are exact; any proved violation is enough.

    The sides of an identity must differ by more than the identity's tolerance. If the claim says
    that an element of a finite set exists, the certificate must refute each element of the set.

    Raises:
        Refused: if the instance does not fit the statement; see `disprove`.
    """
    # The sides of a true identity may differ by the rounding of its constants.
    margin = statement.tolerance if statement.relation == "=" else 0.0
    points = list(_promised_points(statement, Size(dict(size))))
    if not 0 < len(points) <= POINTS:
        return _certificate(statement, form, instance, size, SECONDS, BITS, margin)
    given, found, each = statement.as_given(), list[Certificate](), SECONDS / len(points)
    for point in points:
        filled = {**instance, **point}
        found.append(_certificate(given, form, filled, size, each, BITS, margin))
        if found[-1].reason == TRUE:
            return found[-1]
    left = [one for one in found if not one.word.startswith("disproved")]
    as_coded = [one for one in found if one.word != "disproved"]
    return (left or as_coded or sorted(found, key=lambda one: one.gap or 0.0))[0]


def _promised_points(statement: Statement, size: Size) -> Iterator[Instance]:
    every = Over(statement.there_is).every(size) if statement.there_is else None
    for row in range(len(jax.tree.leaves(every)[0]) if every else 0):
        yield jax.tree.map(lambda leaf, row=row: np.asarray(leaf)[row], every)


def _not_tried(statement: Statement, size: Size) -> str:
    count = len(list(_promised_points(statement, size)))
    if not count:
        return "a search computes a side and may miss the optimum, so nothing is disproved"
    promised = ", ".join(statement.there_is or {})
    return (
        f"a disproof needs all {count} points of {promised}, and a certificate is about a single "
        "point"
    )


def _certificate(
    statement: Statement,
    form: str,
    instance: Instance,
    size: Mapping[str, float],
    seconds: float,
    bits: tuple[int, ...],
    margin: float,
    *,
    by_entry: bool = True,
) -> Certificate:
    started, claim = time.perf_counter(), statement.form(form)
    about: dict[str, Any] = {
        "id": statement.id,
        "form": form,
        "relation": statement.relation,
        "size": dict(size),
    }
    tried: dict[str, Any] = {}
    if statement.kind in ON_AVERAGE:
        reason = f"no single instance disproves a claim of kind {statement.kind!r}"
        return Certificate(**about, word="undecided", reason=reason)
    if statement.there_is is not None or statement.unrefutable:
        reason = _not_tried(statement, Size(dict(size)))
        return Certificate(**about, word="undecided", reason=reason)
    with float64_on_cpu():
        static = Size(dict(size))
        given = fitted(statement, claim, arrays_of(instance, statement.host), static)
        attempt = _attempting(statement, claim, given, static, seconds, margin, by_entry=by_entry)
        for precise in bits:
            try:
                tried = attempt(precise)
            except (Undecided, NotSupported) as problem:
                tried = {"word": "undecided", "reason": str(problem), "bits": precise}
                if isinstance(problem, NotSupported):
                    break
            if tried["word"] != "undecided" or "missed" in tried.get("hypotheses", {}).values():
                break
        if tried["word"] != "undecided" and tried["traced"]:
            tried |= _in_floats(statement, claim, given, static)
        if tried["word"] != "undecided" and tried.get("apart", math.inf) <= NEARBY * _largest(
            given
        ):
            tried |= _of_the_set(
                statement, claim, given, static, seconds, margin, by_entry=by_entry
            )
        if tried["word"] == "disproved" and not statement.host:
            tried |= _of_machine_integers(statement, claim, given, static)
    tried.pop("traced", None)
    tried.pop("apart", None)
    return Certificate(**about, **tried, seconds=time.perf_counter() - started)


def _largest(instance: Any) -> float:
    floats = [np.asarray(x) for x in jax.tree.leaves(instance) if is_float(x)]
    return max([1.0, *(float(np.max(np.abs(x), initial=0.0)) for x in floats)])


def _of_the_set(
    statement: Statement,
    form: Form,
    instance: Any,
    size: Size,
    seconds: float,
    margin: float,
    *,
    by_entry: bool,
) -> dict[str, Any]:
    """Decide whether a small violation remains at a point that meets the hypotheses exactly."""
    unconditional = statement.hypotheses is None and form.hypotheses is None
    if unconditional or is_at_projected(statement):
        return {}
    only = {"word": "undecided", "reason": FLOATS_ONLY}
    exact = statement.project and at_projected(statement, instance, size)
    if not exact:
        return only
    try:
        attempt = _attempting(
            exact, exact.form(form.name), instance, size, seconds, margin, by_entry=by_entry
        )
        there = attempt(BITS[-1])
    except (Undecided, NotSupported):
        return only
    return {} if there["word"].startswith("disproved") else only


def _of_machine_integers(
    statement: Statement, form: Form, instance: Any, size: Size
) -> dict[str, Any]:
    """Weaken the result to "disproved as coded" if machine integers overflow in a side.

    If NumPy cannot run the program, a possible overflow is enough.
    """
    traced = jax.jit(sides_of(statement, form, size)).trace(instance)
    leaves = jax.tree.leaves(instance)
    named = ", ".join(operations_that_may_wrap(traced.jaxpr, leaves))
    if not named:
        return {}
    reason = f"as coded: integers may wrap in {named}"
    with contextlib.suppress(NotInterpreted):
        whole = with_whole_numbers(traced.jaxpr, leaves)
        if not whole.wraps:
            return {}
        own = interpreted(traced.jaxpr)(*leaves)
        alike = [np.allclose(a, as_floats(b), rtol=AGREED, atol=0.0, equal_nan=True)
                 for a, b in zip(own, whole.values)]  # fmt: skip
        if all(alike):
            return {}
        reason = f"as coded: integers wrap in {', '.join(whole.wraps)}"
    return {"word": "disproved as coded", "reason": reason}


def _in_floats(statement: Statement, form: Form, instance: Any, size: Size) -> dict[str, Any]:
    program = sides_of(statement, form, size)
    with np.errstate(all="ignore"):
        sides = (program if statement.host else once(program, compiled(program)))(instance)
        value, low = compared(statement.relation, *(np.asarray(side, float) for side in sides))
    if low > edge(statement):
        return {}
    if np.isnan(value) and np.isinf(sides[0]).all() and np.isinf(sides[1]).all():
        reason = "both sides overflow float64, which neither confirms nor contradicts the disproof"
        return {"word": "disproved as coded", "reason": reason}
    reason = (
        "a contradiction, caused by rounding or by an error of this library: the enclosures "
        f"violate the claim, but float64 measures the ratio {value:.9g}, which is no violation"
    )
    return {"word": "undecided", "reason": reason}


def _attempting(
    statement: Statement,
    form: Form,
    instance: Any,
    size: Size,
    seconds: float,
    margin: float,
    *,
    by_entry: bool = True,
) -> Callable[[int], dict[str, Any]]:
    hypotheses = hypotheses_of(statement, form, instance, size)
    program, stated = sides_of(statement, form, size), lambda: ()
    if statement.host:  # the host may compute the stated error, which needs no enclosure
        whole = program
        program, stated = lambda i: whole(i)[:2], lambda: whole(instance)[2:]
    sides = Enclosing(program, instance)
    left, right = ("rhs", "lhs") if statement.relation == ">=" else ("lhs", "rhs")

    def met_by(options: Any) -> tuple[Met, bool]:
        with contextlib.suppress(Undecided):
            if (met := hypotheses(reading="ulp", **options)).certain:
                return met, True
        return hypotheses(**options), False

    def attempt(bits: int) -> dict[str, Any]:
        options: Any = {"bits": bits, "seconds": seconds}
        met, in_both = met_by(options)
        known: dict[str, Any] = {"hypotheses": met.words, "bits": bits}
        if not met.certain:
            unsure = {name: word for name, word in met.words.items() if word != "certain"}
            named = ", ".join(f"{name!r} is {word}" for name, word in unsure.items())
            return known | {"word": "undecided", "reason": f"hypothesis {named}"}
        readings: tuple[Reading, ...] = ("ulp", "exact")  # "ulp" encloses "exact"
        found: list[Gap] = []
        for reading in readings:
            try:
                enclosed = sides(reading=reading, **options)
                with precision(bits):
                    found = [
                        apart(statement.relation, *way, *stated(), by_entry=by_entry)
                        for way in enclosed.ways
                    ]
            except Undecided:
                if reading == "exact":
                    raise
                continue
            gap = float(min(f.amount for f in found).lower())
            with precision(bits):
                known |= {
                    left: decimal_bounds(hull(f.lhs for f in found)),
                    right: decimal_bounds(hull(f.rhs for f in found)),
                    "entry": found[0].entry if statement.relation == "=" else None,
                    "gap": gap,
                    "apart": max(float(abs(f.lhs - f.rhs).upper()) for f in found),
                    "ways": len(found),
                    "traced": enclosed.whole,  # if False, the sides come from the float program
                }
            if gap > 0 and gap >= margin:
                break
        else:
            return known | {"word": "undecided", "reason": _why(found, statement)}
        if reading == "exact" or not in_both:
            reason = "only if each constant of the claim is exactly its float in the program"
            return known | {"word": "disproved as coded", "reason": reason}
        if met.computed or enclosed.taken(statement.host):
            reason = "numbers that were computed on the host count as exact"
            return known | {"word": "disproved as coded", "reason": reason}
        return known | {"word": "disproved"}

    return attempt


def _why(found: list[Gap], statement: Statement) -> str:
    least = min(found, key=lambda f: float(f.amount))
    left, right = least.lhs, least.rhs
    if statement.strict and all(f.lhs == f.rhs for f in found):
        return EQUAL
    if statement.is_bound and all(f.lhs <= f.rhs for f in found):
        return TRUE
    agreed = lambda f: f.most is not None and f.most <= max(statement.tolerance, AGREED)
    if statement.relation == "=" and all(map(agreed, found)):
        return TRUE
    if statement.is_bound and (left - right).is_finite():
        return f"the sides differ by less than a relative {MARGIN:g}, or their balls overlap"
    return f"no entry of the sides certainly differs by a relative {MARGIN:g}"
