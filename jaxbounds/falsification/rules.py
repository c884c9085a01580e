"""Rules that the declarations of a paper must follow, for the shipped papers and your own."""

import importlib
import re
from collections.abc import Iterator
from functools import reduce
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Counterexample, Form, Paper, Size, Statement
from jaxbounds.claims.statements.paper import Weight
from jaxbounds.falsification.measure import as_arrays, float64_on_cpu
from jaxbounds.programs.interpreted import once


def _exists(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        try:
            reduce(getattr, parts[end:], module)
        except AttributeError:
            return False
        return True
    return False


def _of_items(paper: Paper) -> Iterator[str]:
    known = {s.id for s in paper.statements} | {erratum.id for erratum in paper.errata}
    for item, what in paper.items.items():
        if what.startswith("none: "):
            if len(what) <= 12:
                yield f"item {item!r} has no reason after 'none: '. Try a sentence there"
        elif what.startswith("code: "):
            for name in re.split(r",\s*", what[6:]):
                if not _exists(name):
                    yield f"item {item!r} names {name}, which no module defines"
        else:
            for name in sorted(set(re.split(r",\s*", what)) - known):
                yield f"item {item!r} names {name}, which is neither a statement nor an erratum"


def _of_errata(paper: Paper) -> Iterator[str]:
    ids = {s.id for s in paper.statements}
    shown = {form.erratum for s in paper.statements for form in s.forms if form.erratum}
    weights = [get_args(Weight).index(erratum.kind) for erratum in paper.errata]
    if weights != sorted(weights):
        yield f"the errata must be in the order of their kinds: {', '.join(get_args(Weight))}"
    for erratum in paper.errata:
        for name in re.findall(rf"\b{paper.id}\.[\w.\-]+[\w]", erratum.evidence):
            if name not in ids:
                yield f"the evidence of erratum {erratum.id} names {name}, which is no statement"
        cited = erratum.evidence.replace(",", " ").split()
        if erratum.kind == "false" and set(cited) <= ids and erratum.id not in shown:
            named = ", ".join(cited)
            yield f"the evidence of erratum {erratum.id} is {named}, but no form cites the erratum"


def _of_readings(paper: Paper) -> Iterator[str]:
    """Yield faults of errata with two readings; versions of the first, false reading must fail."""
    readings = {erratum.id: erratum.readings for erratum in paper.errata}
    for s in paper.statements:
        for form in (form for form in s.forms if form.reading):
            name = f"{s.id} ({form.name})"
            meant = [form.reading in one for one in readings.get(form.erratum, ())]
            if sum(meant) != 1:
                yield f"{name}: exactly one reading of its erratum must contain {form.reading!r}"
            elif (form.expected in ("fails", "inconsistent")) != meant[0]:
                yield (
                    f"{name} is expected to be {form.expected!r}, but takes the "
                    f"{'false' if meant[0] else 'true'} reading of erratum {form.erratum}"
                )


def _missed(statement: Statement, stored: Counterexample) -> list[str]:
    assert stored.meets is not None
    with float64_on_cpu():
        instance = as_arrays(dict(stored.instance))
        given = instance if statement.host else jax.tree.map(jnp.asarray, instance)
        size = Size(dict(stored.size))
        meets = lambda given: stored.meets(given, size)
        try:
            named = meets(given) if statement.host else once(meets, meets)(given)
        except jax.errors.JAXTypeError:  # a trace fails for a hypothesis that reads numbers
            named = meets(given)
    return [name for name, met in named.items() if not np.all(np.asarray(met))]


def _of_form(statement: Statement, form: Form, cited: bool) -> Iterator[str]:
    name, stored = f"{statement.id} ({form.name})", form.counterexample
    if cited and form.name.startswith("printed") and not form.cites.strip():
        yield f"{name} is a printed form without a place in print. Try cites=..."
    if form.expected == "fails" and stored is not None:
        if stored.meets is None:
            yield f"{name}: the counterexample does not test the paper's hypotheses. Try meets=..."
        elif missed := _missed(statement, stored):
            yield f"{name}: the counterexample violates the hypotheses {', '.join(missed)}"


def problems_of(paper: Paper) -> tuple[str, ...]:
    """Return the faults in a paper's declarations, one sentence for each fault.

    The rules are:

    - Every item of the paper has a statement, an erratum, a definition in code, or a reason for its
      omission.
    - The paper lists its errata by kind, the gravest kind first. The evidence that an erratum names
      exists.
    - If an erratum names a statement as its evidence, a form (claim version) of the statement cites
      the erratum.
    - If the paper has a citation, each printed form names the form's place in the paper.
    - A counterexample meets all assumptions of the paper.

    Args:
        paper: a shipped paper, or a paper of your own.
    """
    cited = bool(paper.citation)
    of_forms = (p for s in paper.statements for form in s.forms for p in _of_form(s, form, cited))
    return (*_of_items(paper), *_of_errata(paper), *_of_readings(paper), *of_forms)
