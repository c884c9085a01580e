"""Violations looked at again before `fails` is said: alone, moved a little, in ball arithmetic."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification.bench import Bench, batch_of
from jaxbounds.falsification.cancellation import is_cancellation, largest_entry
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.scales import is_looked_at, judged, measured_again
from jaxbounds.programs.interpreted import NotInterpreted

SMALL = 1e-6
"""A violation up to this, relative, may always be rounding."""
ULPS, NEAR, MOVED = 4, 2.0**-20, 16
"""Units in the last place by which each float of an instance is moved, or of this part of it, as a
sum with larger numbers loses the last places; and how often."""
ROOT = 2.0**-26
"""Sides so small, for entries of one, may be the root of what rounding leaves of a difference."""
LARGE = 1e6
"""Entries count as no larger than this: beyond they are of other units than the sides."""
ALONE = 0.5
"""Part of a violation that may be gone where the instance is measured by itself."""
DEAR = 1e-2
"""Beyond this violation a statement on the host is not measured again and again."""


TRUE = "the claim is true on this instance"
"""What `jaxbounds.certify` says of it."""


class Referee(NamedTuple):
    """What ball arithmetic says of a form on an instance.

    Attributes:
        word: "disproved", "disproved as coded", "undecided", or "absent" without the extra.
        reason: one sentence.
        strict: the sides are certainly apart, in the order that the claim says.
        equal: both sides are certainly one number.
        meeting: the enclosures of both sides overlap, and are so short that nothing else than an
            equality explains it.
    """

    word: str
    reason: str
    strict: bool = False
    equal: bool = False
    meeting: bool = False

    @property
    def is_true(self) -> bool:
        """Whether the claim is certainly true there."""
        return self.reason == TRUE

    @property
    def clears(self) -> bool:
        """Whether a violation that floats show there is rounding: true, or an equality."""
        return self.is_true or self.equal or self.meeting


Asked = Callable[[Statement, Form, Instance, Size], Referee]
"""Who is asked: of a form on an instance."""


def remembering(referee: Asked, /) -> Asked:
    """Who answers a question that was asked before as before: deciding it takes seconds."""
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
    """Where nobody can be asked."""
    return Referee("absent", "pip install 'jaxbounds[certify]' decides it in ball arithmetic")


def is_rounding(bench: Bench, index: int, instance: Instance, size: Size, value: float, /) -> bool:
    """Whether a violation is small, or as large as what the last places of the instance do."""
    statement = bench.statement
    excess, found = value - edge(statement), bench.one(instance, size).column(index)
    instance = jax.tree.map(np.asarray, instance)
    leaves, structure = jax.tree.flatten(instance)
    largest = largest_entry(instance, np)
    if excess <= SMALL or is_cancellation(found.lhs, found.rhs, largest):
        return True
    if statement.relation == "=" and is_looked_at(statement):
        with contextlib.suppress(NotInterpreted):
            return not judged(bench, batch_of(instance), size, index).low[0] > edge(statement)
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
        least[MOVED // 2 :] = NEAR * many[MOVED // 2 :]  # of either sign, as the steps are
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
    """Empty if a violation stands; else why it is not enough to say `fails`.

    Args:
        bench: measures.
        form: one that fails.
        found: a violating instance, its size and the measured value.
        referee: who is asked about a violation of the size of rounding.
    """
    index = [f.name for f in bench.statement.forms].index(form.name)
    instance, size, value = found
    if alone := _by_itself(bench, index, instance, size, value):
        return alone
    rounding = is_rounding(bench, index, instance, size, value)
    said = referee(bench.statement, form, instance, size)
    if said.word.startswith("disproved") and rounding and bench.statement.project is not None:
        said = _exactly_there(bench.statement, form, instance, size, referee, said)
    if said.word.startswith("disproved") or not (rounding or said.is_true):
        return ""
    violated = f"the violation ({_excess(bench.statement, value)})"
    if not rounding:
        return f"{violated} is of float arithmetic alone; ball arithmetic says: {said.reason}"
    return (
        f"{violated} is of the size of rounding, and ball arithmetic does not confirm it: "
        f"{said.reason}"
    )


@dataclass(frozen=True)
class _There:
    """A function of instances, asked at projected ones."""

    function: Callable[[Instance, Size], Any]
    project: Callable[[Instance, Size], Instance]

    def __call__(self, instance: Instance, size: Size) -> Any:
        return self.function(self.project(instance, size), size)


def at_projected(statement: Statement, instance: Instance, size: Size, /) -> Statement | None:
    """The statement about projected instances, which meet the hypotheses exactly.

    None where the projection runs on the host.
    """
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
    """Whether a statement is one that `at_projected` made."""
    return isinstance(statement.evaluate, _There)


def _exactly_there(
    statement: Statement, form: Form, instance: Instance, size: Size, referee: Asked, said: Referee
) -> Referee:
    """What is said where the hypotheses are met exactly, and not up to rounding: projected.

    A projection that runs on the host has none that is more exact.
    """
    exact = at_projected(statement, instance, size)
    if exact is None:
        return said
    said = referee(exact, exact.form(form.name), instance, size)
    words = "it is certain of these floats only, which meet the hypotheses up to rounding: "
    return said if said.word.startswith("disproved") else said._replace(reason=words + said.reason)


def clears_at_the_set(
    statement: Statement, form: Form, instance: Instance, size: Size, referee: Asked, /
) -> bool:
    """Whether the referee clears a violation at the exact point of the set beside the floats."""
    if statement.project is None:
        return False
    exact = at_projected(statement, instance, size)
    return exact is not None and referee(exact, exact.form(form.name), instance, size).clears


def _by_itself(bench: Bench, index: int, instance: Instance, size: Size, value: float) -> str:
    """Why what is compiled for many instances is not what the functions give for this one.

    Compilers may pass over NaN in a maximum of many entries (seen of XLA on the CPU).
    """
    statement = bench.statement
    if statement.host or statement.there_is is not None:
        return ""
    found = bench.unbatched(size)(jax.tree.map(jnp.asarray, instance)).column(index)
    excess = value - edge(statement)
    least = excess - ALONE * abs(excess)
    if float(found.value) - edge(statement) >= least or np.isinf(value):
        return ""
    # Of an identity one entry may differ beside larger ones.
    entries = lambda: float(measured_again(bench, instance, size, index).low) - edge(statement)
    if statement.relation == "=" and entries() >= least:
        return ""
    return (
        f"measured by itself the worst instance gives {float(found.value):.6g}, and {value:.6g} as "
        "one of many: say in `hypotheses` where the floats may be"
    )


def _excess(statement: Statement, value: float) -> Any:
    return f"a ratio of 1 + {value - 1:.2g}" if statement.is_bound else f"{value:.2g}"
