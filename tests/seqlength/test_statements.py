"""The paper's registry is complete, and its counterexamples spare the forms that hold."""

import jax
import numpy as np
import pytest

from jaxbounds.falsify import UNKEPT
from jaxbounds.falsify.bench import as_arrays
from jaxbounds.falsify.measure import form_names, measure, verification
from jaxbounds.seqlength.statements import PAPER

SHOWN = [s for s in PAPER.statements if any(form.counterexample is not None for form in s.forms)]


def test_every_erratum_is_shown_or_explained():
    shown = {form.erratum for s in PAPER.statements for form in s.forms if form.erratum}
    assert [e.id for e in PAPER.errata] == [f"E{i}" for i in range(1, 18)]
    ids = {s.id for s in PAPER.statements}
    for erratum in PAPER.errata:
        named = {word.rstrip(",:;") for word in erratum.evidence.split()} & ids
        assert erratum.id in shown or named or erratum.kind in ("typo", "inconsistent")


@pytest.mark.parametrize("statement", SHOWN, ids=lambda s: s.id)
def test_counterexamples_spare_the_forms_that_hold(statement):
    # That they violate their own form is part of the verdict.
    edge = 1e3 * statement.tolerance if statement.relation == "=" else 1 + statement.tolerance
    names, holds = form_names(statement), {f.name for f in statement.forms if f.expected == "holds"}
    stored = [f.counterexample for f in statement.forms if f.counterexample is not None]
    with verification():
        run = UNKEPT(measure(statement))
        for instance in stored:
            one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], as_arrays(dict(instance)))
            measured = run(one)
            for i, name in enumerate(names):
                if name in holds and measured.counted[0, i]:
                    assert not measured.value[0, i] > edge, name
