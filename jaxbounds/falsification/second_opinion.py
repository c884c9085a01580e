"""Check a violation before the verdict `fails`: alone, perturbed, and in ball arithmetic."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Integers
from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification.bench import Bench, batch_of, take
from jaxbounds.falsification.cancellation import is_cancellation, largest_entry
from jaxbounds.falsification.compared import sides_of
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.measure import UNITS
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.scales import (
    flat_sides,
    is_looked_at,
    judged,
    measured_again,
    sizes_of_terms,
)
from jaxbounds.falsification.summands import has_jumps
from jaxbounds.falsification.wording import in_words
from jaxbounds.programs.interpreted import NotInterpreted

SMALL = 1e-6
"""Rounding may always explain a relative violation up to this value. A larger value makes more
violations need ball arithmetic."""
ULPS, NEAR, MOVED = 4, 2.0**-20, 16
"""The engine perturbs an instance MOVED times, half by up to ULPS units in the last place. The
other half moves an entry x by up to ULPS NEAR |x|, like the rounding of a larger sum. Larger
values mistake more violations for rounding."""
ROOT = 2.0**-26
"""Sides up to this absolute value may be square roots of rounding errors, for entries near 1. A
larger value mistakes more violations for rounding."""
LARGE = 1e6
"""The engine estimates rounding from the largest entry, taken as at most this number. A larger
number mistakes more violations for rounding."""
ALONE = 0.5
"""A violation may shrink by this share if the instance is measured alone or projected, and may
vanish at this share of the neighbours of a point with undefined sides. A larger share accepts
violations whose sizes differ more between compilers."""
CERTAIN = 1e3
"""A violation must exceed this multiple of the error of an operation with fewer digits than
float64. A larger multiple leaves more violations undecided."""
SMALLER = 2.0
"""The advice about rounding proposes sets with entries up to this absolute value. A larger value
proposes larger sets, in which terms cancel to fewer digits."""
BESIDE = 1e-9
"""Rounding may move an instance out of its set by this share of max(1, largest entry). A larger
share makes ball arithmetic decide more projected instances."""
DEAR = 1e-2
"""Outside JAX, a relative violation above this value needs no second measurement. A larger value
measures more violations again."""


TRUE = "the claim is true on this instance"
"""The reason that `jaxbounds.certify` gives if the instance satisfies the claim."""
HYPOTHESIS = "hypothesis "
"""The first word of the reason that ball arithmetic gives if it cannot decide a hypothesis."""
RELAXED = 2.0**-40
"""Rounded constants may cause a violation that vanishes if the larger side grows by this share. A
larger share leaves more small violations undecided."""
UNDEFINED = "ball arithmetic has no enclosure of a side, which may be undefined"
"""The reason that `jaxbounds.certify` gives if an enclosure of a side is infinite or NaN."""
JUMPS = "where the rounding of a constant may decide a jump"
"""A part of the reason if other roundings of a claim's constants remove a confirmed violation."""
FLOATS_ONLY = (
    "these floats certainly violate the form, but rounding may have moved the floats out of the "
    "hypotheses"
)
"""The reason that `jaxbounds.certify` gives if the projected instance does not violate the claim.
"""


def cure(statement: Statement, /) -> str:
    """Return the advice for a violation that rounding may explain."""
    ways = ["error= with the rounding error of the sides", *_smaller(statement)]
    ways.append("squares of both sides if the sides are square roots")
    return f"Try {', '.join(ways[:-1])}{',' * (len(ways) > 2)} or {ways[-1]}"


def _smaller(statement: Statement) -> list[str]:
    sets: Mapping[str, Any] = statement.over or {}
    for name, one in sets.items():
        given = vars(one) if is_dataclass(one) else {}
        number = {key: float(x) for key, x in given.items() if isinstance(x, int | float)}
        less: dict[str, float] = {}
        for key in ("R", "at_most"):
            if number.get(key, 0) > SMALLER:
                less = {key: 1}
        if number.get("hi", 0) > SMALLER > -SMALLER > number.get("lo", 0):
            less = {"lo": -2, "hi": 2}
        if less and not isinstance(one, Integers):
            return [f"a smaller set such as {name!r}: jb.{replace(one, **less)!r}"]
    return []


class Referee(NamedTuple):
    """The answer of ball arithmetic about one version of the claim on an instance.

    Attributes:
        word: "disproved", "disproved as coded", "undecided", or "absent" if ball arithmetic (the
            extra `certify`) is not installed.
        reason: the reason for the answer, in one sentence.
        strict: whether the claimed inequality certainly holds strictly.
        equal: whether both sides of the claim certainly are equal.
        meeting: whether the enclosures of both sides overlap, and are so short that only equal
            sides explain the overlap.
    """

    word: str
    reason: str
    strict: bool = False
    equal: bool = False
    meeting: bool = False

    @property
    def is_true(self) -> bool:
        """Whether the claim is certainly true on the instance."""
        return self.reason == TRUE or self.strict

    @property
    def clears(self) -> bool:
        """Whether a violation is only rounding, since the claim is true or the sides are equal."""
        return self.is_true or self.equal or self.meeting


Asked = Callable[[Statement, Form, Instance, Size], Referee]
"""A function that asks ball arithmetic about a claim version on an instance."""


def remembering(referee: Asked, /) -> Asked:
    """Return a function that stores the answers of ball arithmetic, which take seconds."""
    known: dict[Any, Referee] = {}

    def asked(statement: Statement, form: Form, instance: Instance, size: Size, /) -> Referee:
        leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, instance))
        bits = tuple((str(leaf.dtype), leaf.shape, leaf.tobytes()) for leaf in leaves)
        question = statement, form.name, tuple(size.items()), str(structure), bits
        if question not in known:
            known[question] = referee(statement, form, instance, size)
        return known[question]

    return asked


def no_referee(statement: Statement, form: Form, instance: Instance, size: Size, /) -> Referee:
    """Return the answer "absent", which says that ball arithmetic is not installed."""
    return Referee("absent", "ball arithmetic is not installed (pip install 'jaxbounds[certify]')")


def is_rounding(bench: Bench, index: int, instance: Instance, size: Size, value: float, /) -> bool:
    """Return whether changes in the last digits of an instance's floats may explain a violation."""
    statement = bench.statement
    excess, found = value - edge(statement), bench.one(instance, size).column(index)
    instance = jax.tree.map(np.asarray, instance)
    leaves, structure = jax.tree.flatten(instance)
    largest = largest_entry(instance, np)
    if excess <= SMALL or is_cancellation(found.lhs, found.rhs, largest):
        return True
    is_identity = statement.relation == "="
    if is_looked_at(statement):
        with contextlib.suppress(NotInterpreted):
            stays = judged(bench, batch_of(instance), size, index).low[0] > edge(statement)
            if is_identity or not stays:
                return not stays
    if statement.host and excess > DEAR:
        return False
    sides = max(abs(float(found.lhs)), abs(float(found.rhs)))
    if sides <= ROOT * min(max(float(largest), 1.0), LARGE) ** 0.5:
        return True
    if not any(np.issubdtype(leaf.dtype, np.floating) for leaf in leaves):
        return False
    rng = np.random.default_rng(0)

    def moved(leaf: np.ndarray) -> np.ndarray:
        many = np.repeat(leaf[None], MOVED, axis=0)
        if not np.issubdtype(leaf.dtype, np.floating):
            return many
        steps = rng.integers(-ULPS, ULPS + 1, many.shape)
        least = np.spacing(np.maximum(np.abs(many), np.finfo(float).tiny))
        least[MOVED // 2 :] = NEAR * many[MOVED // 2 :]  # with the sign of the steps
        return many + steps * least

    near = bench(jax.tree.unflatten(structure, list(map(moved, leaves))), size).value[:, index]
    near = near[np.isfinite(near)]
    return bool(len(near)) and excess <= 4 * float(np.max(np.abs(near - value)))


def stands(
    bench: Bench,
    form: Form,
    found: tuple[Instance, Size, float],
    referee: Asked,
    /,
) -> str:
    """Return the reason why a violation does not yet prove `fails`, or "".

    The triple `found` holds an instance, the numbers that give its shapes, and its lhs / rhs.
    """
    index = [f.name for f in bench.statement.forms].index(form.name)
    instance, size, value = found
    if alone := _by_itself(bench, index, instance, size, value):
        return alone
    rounding = is_rounding(bench, index, instance, size, value)
    there = _projected_nearby(bench.statement, instance, size)
    beside = there is not None and not rounding and _stays_beside(bench, index, there, size, value)
    infinite = _infinite_sides(bench, index, instance, size)
    if bench.statement.there_is is not None and not (rounding or beside or infinite):
        return ""  # the bench tried all `there_is` points, and the referee takes long for each
    said = referee(bench.statement, form, instance, size)
    if said.word.startswith("disproved") and there is not None:
        said = _exactly_there(bench.statement, form, instance, size, referee, said)
    if said.word.startswith("disproved"):
        jumped = by_a_jump(bench, form, found) if rounding else ""
        return jumped or (_by_a_constant(bench, index, said, referee, found) if rounding else "")
    if infinite:
        return (
            f"infinite in floats at {in_words(instance)}: the {infinite}; ball arithmetic "
            f"does not confirm the violation: {said.reason}. Try hypotheses that keep the sides "
            "finite, or compare logarithms"
        )
    if said.reason.startswith(HYPOTHESIS) and not _stays_nearby(bench, index, found):
        return (
            f"a tiny change of the instance {in_words(instance)} removes the violation, and "
            f"rounding may decide a hypothesis: {said.reason}. Try hypotheses with a margin, such "
            "as x > 1e-6 for x > 0"
        )
    many = take(batch_of(jax.tree.map(np.asarray, instance)), [0] * bench.batch)
    smooth = said.reason == UNDEFINED and not has_jumps(sides_of(bench, size, many)[0])
    if smooth and not _stays_nearby(bench, index, found, on_sets=True):
        return (
            f"a tiny change of the instance {in_words(instance)} removes the violation, and "
            f"{said.reason} there. Try hypotheses that exclude such instances"
        )
    if not (rounding or beside or said.is_true):
        return ""
    violated = f"the violation ({_excess(bench.statement, value)})"
    advice = cure(bench.statement)
    if beside and not rounding:
        return (
            f"{violated} occurs at an instance that meets the hypotheses only up to rounding, and "
            f"not at its projection; ball arithmetic says: {said.reason}. {advice}"
        )
    if not rounding:
        return f"{violated} occurs in floats only; ball arithmetic says: {said.reason}. {advice}"
    return (
        f"{violated} may be rounding of terms that cancel, and ball arithmetic does not confirm "
        f"it: {said.reason}. {advice}"
    )


def _stays_nearby(
    bench: Bench, index: int, found: tuple[Instance, Size, float], *, on_sets: bool = False
) -> bool:
    """Return whether most of a violation stays at an instance beside the given instance.

    If `on_sets`, `Statement.project` moves the neighbours onto the sets, and the violation must
    stay at half of the neighbours. The result is also true if no neighbour meets the hypotheses.
    """
    instance, size, value = found
    rng = np.random.default_rng(0)

    def moved(leaf: Any) -> np.ndarray:
        many = np.repeat(np.asarray(leaf)[None], MOVED, axis=0)
        if not np.issubdtype(many.dtype, np.floating):
            return many
        largest = np.max(np.abs(leaf), initial=0.0) or 1.0
        return many + BESIDE * largest * rng.normal(size=many.shape)

    near = jax.tree.map(moved, dict(instance))
    if on_sets:
        near = projected(bench, size)(near)
    m = bench(near, size).column(index)
    if on_sets and not np.any(m.counted):
        return True
    if bench.statement.relation == "=":  # a side that is zero makes each relative difference one
        own = bench.one(instance, size).column(index)
        stays = np.abs(m.lhs - m.rhs) >= ALONE * abs(float(own.lhs) - float(own.rhs))
    else:
        least = edge(bench.statement) + ALONE * (value - edge(bench.statement))
        stays = np.asarray(m.value >= least)
    if on_sets:
        return float(np.mean(stays[m.counted])) >= ALONE
    return bool(np.any(m.counted & stays))


@dataclass(frozen=True)
class _Relaxed:
    """The function `evaluate` of a bound whose larger side is larger by the share RELAXED."""

    evaluate: Callable[[Instance, Size], Any]
    side: str

    def __call__(self, instance: Instance, size: Size) -> Any:
        sides = self.evaluate(instance, size)
        more = lambda x: x + RELAXED * abs(x)
        value = getattr(sides, self.side)
        new = {k: more(x) for k, x in value.items()} if isinstance(value, Mapping) else more(value)
        return sides._replace(**{self.side: new})


def _is_within_constants(
    bench: Bench, index: int, referee: Asked, found: tuple[Instance, Size, float]
) -> bool:
    """Return whether ball arithmetic confirms no violation of a slightly weaker bound."""
    statement, (instance, size, _) = bench.statement, found
    if not statement.is_bound or statement.host or statement.evaluate is None:
        return False
    relaxed = _Relaxed(statement.evaluate, "lhs" if statement.relation == ">=" else "rhs")
    weaker = replace(statement, evaluate=relaxed, judges=())
    return not referee(weaker, statement.forms[index], instance, size).word.startswith("disproved")


def _by_a_constant(
    bench: Bench,
    index: int,
    said: Referee,
    referee: Asked,
    found: tuple[Instance, Size, float],
) -> str:
    """Return a reason if a tiny violation may come from a rounded constant, such as pi; else ""."""
    if said.word == "disproved" or "constant" not in said.reason:
        return ""
    instance, size, value = found
    if _is_within_constants(bench, index, referee, found):
        return (
            f"floats find a violation ({_excess(bench.statement, value)}), and ball arithmetic one "
            f"that is as small as a rounded constant. {cure(bench.statement)}"
        )
    m, batch = bench.one(instance, size).column(index), batch_of(jax.tree.map(np.asarray, instance))
    with contextlib.suppress(NotInterpreted):
        terms = sizes_of_terms(bench, batch, size, index)[0]
        if abs(float(m.lhs) - float(m.rhs)) <= UNITS * terms:
            return (
                f"the violation ({_excess(bench.statement, value)}) may come from a rounded "
                f"constant, such as pi; ball arithmetic disproves the claim {said.reason}. "
                f"{cure(bench.statement)}"
            )
    return ""


def fails_by_less(
    statement: Statement, form: Form, instance: Instance, size: Size, referee: Asked, /
) -> bool:
    """Return whether ball arithmetic finds a bound false on an instance, however slightly."""
    flipped: Any = {"<=": ">=", ">=": "<="}.get(statement.relation)
    if flipped is None:
        return False
    reverse = replace(statement, relation=flipped, strict=False, judges=())
    return referee(reverse, form, instance, size).strict


def by_a_jump(bench: Bench, form: Form, found: tuple[Instance, Size, float], /) -> str:
    """Return a reason if a jump that rounding may decide explains a violation; else empty.

    The reason is empty if NumPy cannot run the claim's program.

    Args:
        bench: the bench, an object that measures instances.
        form: a form (version of the claim) that fails.
        found: a violating instance, its shapes (size), and its ratio of the sides.
    """
    index = [f.name for f in bench.statement.forms].index(form.name)
    instance, size, _ = found
    if not is_looked_at(bench.statement):
        return ""
    with contextlib.suppress(NotInterpreted):
        if judged(bench, batch_of(jax.tree.map(np.asarray, instance)), size, index).jumped[0]:
            return (
                f"the sides violate the form at {in_words(instance)}, {JUMPS}; ball arithmetic "
                "confirms the violation for these floats only. Try the same expression on both "
                "sides of the jump"
            )
    return ""


def _stays_beside(bench: Bench, index: int, there: Instance, size: Size, value: float) -> bool:
    # One entry of an identity may differ beside larger entries.
    values = bench.one(there, size).value[index], measured_again(bench, there, size, index).low
    least = edge(bench.statement) + ALONE * (value - edge(bench.statement))
    return not any(found >= least for found in values)


@dataclass(frozen=True)
class _There:
    """A call of `function` on the projection of an instance onto the statement's hypotheses."""

    function: Callable[[Instance, Size], Any]
    project: Callable[[Instance, Size], Instance]

    def __call__(self, instance: Instance, size: Size) -> Any:
        return self.function(self.project(instance, size), size)


def at_projected(statement: Statement, instance: Instance, size: Size, /) -> Statement | None:
    """Return a copy of the statement for projected instances, which meet the hypotheses exactly.

    The result is None if the projection runs outside JAX, or if the statement says that entries
    exist (`there_is`).
    """
    if statement.there_is is not None:
        return None
    project: Any = statement.project
    try:
        jax.eval_shape(lambda i: project(i, size), instance)
    except (TypeError, jax.errors.JAXTypeError):
        return None
    there = lambda function: function and _There(function, project)
    forms = tuple(replace(one, hypotheses=there(one.hypotheses)) for one in statement.forms)
    return replace(
        statement, forms=forms, evaluate=there(statement.evaluate), over=None,
        sample=statement.samplers, hypotheses=there(statement.hypotheses), project=None, judges=(),
    )  # fmt: skip


def is_at_projected(statement: Statement, /) -> bool:
    """Return whether the function `at_projected` made this statement."""
    return isinstance(statement.evaluate, _There)


def _exactly_there(
    statement: Statement, form: Form, instance: Instance, size: Size, referee: Asked, said: Referee
) -> Referee:
    """Return ball arithmetic's answer at the projection, or `said` if JAX cannot project."""
    exact = at_projected(statement, instance, size)
    if exact is None:
        return said
    said = referee(exact, exact.form(form.name), instance, size)
    if said.word.startswith("disproved"):
        return said
    return said._replace(reason=f"{FLOATS_ONLY}: {said.reason}")


def clears_at_the_set(
    statement: Statement, form: Form, instance: Instance, size: Size, referee: Asked, /
) -> bool:
    """Return whether ball arithmetic finds the claim true at the projected instance."""
    said = _at_the_set(statement, form, instance, size, referee)
    return said is not None and said.clears


def meets_at_the_set(
    statement: Statement, form: Form, instance: Instance, size: Size, referee: Asked, /
) -> bool:
    """Return whether both sides agree at the instance projected onto the hypotheses."""
    said = _at_the_set(statement, form, instance, size, referee)
    return said is not None and (said.equal or said.meeting)


def _at_the_set(
    statement: Statement, form: Form, instance: Instance, size: Size, referee: Asked
) -> Referee | None:
    if statement.project is None:
        return None
    exact = at_projected(statement, instance, size)
    return None if exact is None else referee(exact, exact.form(form.name), instance, size)


def _by_itself(bench: Bench, index: int, instance: Instance, size: Size, value: float) -> str:
    """Return a reason if the batched program and a single measurement disagree on an instance.

    A compiler may skip NaN in a maximum of many entries (seen in XLA on the CPU).
    """
    statement = bench.statement
    if statement.host or statement.there_is is not None:
        return ""
    found = bench.unbatched(size)(instance).column(index)
    excess = value - edge(statement)
    least = excess - ALONE * abs(excess)
    if float(found.value) - edge(statement) >= least or np.isinf(value):
        return ""
    # One entry of an identity may differ beside larger entries.
    entries = lambda: float(measured_again(bench, instance, size, index).low) - edge(statement)
    if statement.relation == "=" and entries() >= least:
        return ""
    return (
        f"the ratio is {float(found.value):.6g} or {value:.6g} at {in_words(instance)}, because "
        "two compiled programs round differently. Try hypotheses that exclude this instance"
    )


def _projected_nearby(statement: Statement, instance: Instance, size: Size) -> Instance | None:
    """Return the result of `project` if it is the instance up to rounding, else None."""
    if statement.project is None:
        return None
    project: Any = statement.project
    there = project(jax.tree.map(jnp.asarray, instance), size)
    least = BESIDE * (float(largest_entry(instance, np)) + 1.0)
    pairs = zip(jax.tree.leaves(instance), jax.tree.leaves(there), strict=True)
    gaps = (
        np.max(np.abs(np.asarray(a, float) - np.asarray(b, float)), initial=0) for a, b in pairs
    )
    return there if all(gap <= least for gap in gaps) else None


def is_coarse(bench: Bench, index: int, found: tuple[Instance, Size, float], /) -> bool:
    """Return whether an operation with fewer digits than float64 may explain a violation.

    The rounding error of an operation is relative to the size of the terms, which may cancel.
    """
    statement, coarsest = bench.statement, bench.watch.coarsest
    instance, size, value = found
    if value - edge(statement) <= CERTAIN * coarsest:
        return True
    if not coarsest:
        return False
    if not is_looked_at(statement):
        return bool(bench.watch.narrow) and not statement.host
    batch = batch_of(jax.tree.map(np.asarray, instance))
    with contextlib.suppress(NotInterpreted), np.errstate(all="ignore"):
        left, right, _ = flat_sides(bench.reading(batch, size), index)
        scale = sizes_of_terms(bench, batch, size, index)[0]
        # Each narrow operation adds its error; `scale` counts both sides, and moved terms twice.
        many = CERTAIN / 4 if bench.watch.narrow else 1.0
        return not np.max(np.abs(left - right), initial=0.0) > many * coarsest * scale
    return True  # nothing measures the terms, so nothing bounds the error


def _infinite_sides(bench: Bench, index: int, instance: Instance, size: Size) -> str:
    """Return the name of a bound's infinite side, or ""; the side may be infinite by overflow."""
    found = bench.one(instance, size).column(index)
    smaller, larger = ("rhs", "lhs") if bench.statement.relation == ">=" else ("lhs", "rhs")
    sides = {smaller: found.lhs, larger: found.rhs}
    return " and the ".join(name for name, side in sides.items() if np.isinf(side))


def _excess(statement: Statement, value: float) -> Any:
    return f"a ratio of 1 + {value - 1:.2g}" if statement.is_bound else f"{value:.2g}"
