"""The paper's registry is complete, and its counterexamples spare the forms that hold."""

import numpy as np
import pytest

from jaxbounds import falsify
from jaxbounds.claims.statements import Budget, Size
from jaxbounds.falsification import UNKEPT, planted
from jaxbounds.falsification.bench import Bench
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.evaluation import form_names
from jaxbounds.falsification.measure import as_arrays, float64_on_cpu
from jaxbounds.seqlength.counting import count_nonnegative
from jaxbounds.seqlength.linear_bounds import lemma_3_3, lemma_3_4_explicit, lemma_3_6_ceil
from jaxbounds.seqlength.single_layer import residual_range
from jaxbounds.seqlength.statements import PAPER

SHOWN = [s for s in PAPER.statements if any(form.counterexample is not None for form in s.forms)]


def test_no_erratum_is_without_evidence():
    shown = {form.erratum for s in PAPER.statements for form in s.forms if form.erratum}
    assert {e.id for e in PAPER.errata} == {f"E{i}" for i in range(1, 21) if i != 12}
    ids = {s.id for s in PAPER.statements}
    for erratum in PAPER.errata:
        named = {word.rstrip(",:;") for word in erratum.evidence.split()} & ids
        read = erratum.evidence.startswith("We found the erratum by reading")
        assert erratum.id in shown or named or read
        assert erratum.kind == "typo" or erratum.id in shown
        assert erratum.quote and erratum.main


@pytest.mark.slow_cases("seqlength.appe.chain", "seqlength.appe.cover", "seqlength.lemmae.2.first")
@pytest.mark.parametrize("statement", SHOWN, ids=lambda s: s.id)
def test_counterexamples_spare_the_forms_that_hold(statement):
    # That they violate their own form is part of the verdict.
    names, holds = form_names(statement), {f.name for f in statement.forms if f.expected == "holds"}
    with float64_on_cpu():
        bench = Bench(statement, 1, UNKEPT)
        for form in statement.forms:
            if form.counterexample is None:
                continue
            size = Size(form.counterexample.size)
            measured = bench.one(as_arrays(dict(form.counterexample.instance)), size)
            for i, name in enumerate(names):
                if name in holds and measured.counted[i]:
                    assert not measured.value[i] > edge(statement), name


def test_sizes_of_covers_by_hand():
    # At x = 2: floor(8) letters among 2 * 3 * 5 entries with signs at 4 levels, or none.
    assert lemma_3_4_explicit(2.0, k=3, d=5) == pytest.approx(8 * np.log(121), rel=1e-14)
    np.testing.assert_array_equal(lemma_3_4_explicit(np.array([0.0, 0.99]), k=3, d=5), [0.0, 0.0])
    assert lemma_3_3(2.0, k=3, d=5) == pytest.approx(20 * np.log(7), rel=1e-14)
    assert lemma_3_6_ceil(1.5, k=3, d=5) == pytest.approx(3 * np.log(31), rel=1e-14)


@pytest.mark.slow_cases("residual_range-0.25-appc.cover")
@pytest.mark.parametrize(
    "function, factor, name",
    [
        (lemma_3_4_explicit, 1 / 8, "lemma3.4.count"),
        (residual_range, 1 / 4, "appc.cover"),
        (count_nonnegative, 3, "lemma3.1.count"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_unsound_versions_of_what_people_call_fail(function, factor, name):
    (statement,) = (s for s in PAPER.statements if s.id == f"seqlength.{name}")
    few = Budget(samples=8, restarts=0, steps=0, batch=8)
    with planted(function, factor):
        verdicts = falsify(statement, budget=few)
    assert any(v.status == "fails" and v.expected == "holds" for v in verdicts)
