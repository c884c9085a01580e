"""Write the lemmas of a file for Rocq, each with a proof that uses the lemmas of its operands."""

from collections.abc import Iterable

from jaxbounds.programs.balls.rocq.numbers import decimal_text, fraction_text
from jaxbounds.programs.balls.rocq.terms import Comparison, Real


def known_as(x: Real, /) -> str:
    """Return the name of the lemma with the bounds, or the exact value, of a defined number."""
    return f"{x.name}_{'in' if x.exact is None else 'eq'}"


def prepared(parts: Iterable[Real], *unfolded: str) -> str:
    """Return tactics that prepare a goal with the given numbers.

    The tactics replace each number of known exact value by this value, and each other number by a
    variable with its bounds.
    """
    parts = list({id(x): x for x in parts if x.name}.values())
    given = [x.name for x in parts if x.operation is None]
    exact = [known_as(x) for x in parts if x.operation is not None and x.exact is not None]
    between = [f"use {x.name} {known_as(x)}." for x in parts if x.exact is None]
    steps = []
    if unfolded or given:
        steps.append(f"unfold {', '.join([*unfolded, *given])}.")
    if exact:
        steps.append(f"rewrite {', '.join(exact)}.")
    return " ".join([*steps, *between])


def definition_of(x: Real, /) -> str:
    """Return the line that defines a number."""
    if x.operation is None:
        assert x.exact is not None
        text = fraction_text(x.exact)
    else:
        text = x.operation.written(x.arguments)
    return f"Definition {x.name} : R := {text}."


def lemma_of(x: Real, /) -> str:
    """Return the text of the lemma that bounds a number, with its proof."""
    if x.exact is not None:
        value = fraction_text(x.exact)
        tactic = x.operation.exactly
        # `lra` needs only the exact parts, because zero multiplies every other part.
        parts = [p for p in x.parts() if p.exact is not None or tactic != "lra"]
        claim = f"{x.name} = {value}"
    else:
        assert x.bounds is not None
        low, high = map(decimal_text, x.bounds)
        tactic, parts = x.operation.tactic, list(x.parts())
        claim = f"{low} <= {x.name} <= {high}"
    script = prepared(parts, x.name)
    return f"Lemma {known_as(x)} : {claim}.\nProof. {script} {tactic}. Qed."


def comparison_script(c: Comparison, *unfolded: str) -> str:
    """Return the tactics that prove a comparison."""
    return f"{prepared((c.left, c.right), *unfolded)} lra.".strip()
