"""Join several statements into one, which evaluates all claims on the same instances."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.claims.statements import (
    CONTROL,
    Budget,
    Form,
    Hypotheses,
    Instance,
    Sampler,
    Sides,
    Size,
    Statement,
)

SHORT = 0.99
"""The control, a deliberately false claim, says that the left side is at most this fraction of the
left side. A larger fraction makes the control harder to refute.
"""


def _name(part: Statement, form: Form) -> str:
    return f"{form.name}: {part.label}"


def _form(part: Statement, form: Form) -> Form:
    asked = [h for h in (part.hypotheses, form.hypotheses) if h]
    both: Hypotheses | None = (lambda i, size: _joined(asked, i, size)) if asked else None
    return replace(
        form,
        name=_name(part, form),
        hypotheses=both,
        equality="",
        domains=(),
        note=f"This claim is a version of the statement {part.id}, evaluated at other sizes.",
    )


def _joined(asked: Sequence[Hypotheses], instance: Instance, size: Size) -> dict[str, ArrayLike]:
    found: dict[str, ArrayLike] = {}
    for hypotheses in asked:
        found |= hypotheses(instance, size)
    return found


def _pair(sides: Sides, name: str) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
    of = lambda side: side[name] if isinstance(side, Mapping) else side
    return of(sides.lhs), sides.rhs[name], of(sides.error)


def together(
    parts: Sequence[Statement],
    /,
    *,
    id: str,
    label: str,
    tex: str,
    sample: Mapping[str, Sampler],
    sizes: tuple[Mapping[str, float], ...],
    budget: Budget,
    source: str,
    horizon: str = "",
    without: tuple[str, ...] = (),
) -> Statement:
    """Return one statement that joins all true versions of the claims of the given statements.

    Each joined statement must be able to evaluate the instances that `sample` draws. `budget` is
    the number of drawn instances; the check does not search. `without` names the versions of a
    claim that cannot be decided at these sizes.
    """
    kept = [
        (part, form)
        for part in parts
        for form in part.forms
        if form.expected == "holds" and _name(part, form) not in without
    ]

    def evaluate(instance: Instance, size: Size) -> Sides:
        found = {part.id: part.evaluate(instance, size) for part in parts}
        pairs = {_name(part, form): _pair(found[part.id], form.name) for part, form in kept}
        lhs, _, error = next(iter(pairs.values()))
        pairs[CONTROL] = lhs, SHORT * jnp.asarray(lhs), error
        return Sides.pairs(
            {name: (lhs, rhs) for name, (lhs, rhs, _) in pairs.items()},
            error={name: error for name, (_, _, error) in pairs.items()},
        )

    return Statement(
        id=id,
        label=label,
        kind=parts[0].kind,
        formula="; ".join(part.formula for part in parts),
        tex=tex,
        evaluate=evaluate,
        judges=tuple(dict.fromkeys(judge for part in parts for judge in part.judges)),
        forms=tuple(_form(part, form) for part, form in kept),
        control=f"{SHORT} of the first form's left side, in place of the bound",
        assumptions="; ".join(dict.fromkeys(p.assumptions for p in parts if p.assumptions)),
        sample=sample,
        sizes=sizes,
        budget=budget,
        source=source,
        horizon=horizon,
        search="none",
    )
