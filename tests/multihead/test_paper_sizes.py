"""The sizes of the paper's experiments: which bounds are measured there, and which are not."""

import re

import jax
import numpy as np
import pytest

from jaxbounds.claims.statements import Size
from jaxbounds.cli.guide import topic_text
from jaxbounds.multihead.statements import (
    PAPER,
    descent_lemmas,
    generalization,
    gradient_descent,
    loss_bounds,
    main_text,
    model_bounds,
    paper_losses,
    paper_sizes,
    proof_steps,
    readouts,
    recursion,
    segments,
    smoothness,
    weak_convexity,
)

SECTIONS = (
    readouts, proof_steps, model_bounds, loss_bounds, segments, descent_lemmas, smoothness,
    gradient_descent, main_text, recursion, generalization, weak_convexity,
)  # fmt: skip
"""The modules on Sections 3, 4 and 6."""
KNOWN = {s.id: s for s in PAPER.statements}


def test_each_bound_is_measured_at_the_papers_sizes_or_listed_with_a_reason():
    bounds = [s.id for module in SECTIONS for s in module.STATEMENTS if s.is_bound]
    measured = [one for group in paper_sizes.MEASURED.values() for one in group]
    toys = [one for group in paper_sizes.TOY.values() for one in group]
    assert sorted(measured + toys) == sorted(bounds)


@pytest.mark.parametrize("statement", [paper_losses.COROLLARY_1, *paper_sizes.STATEMENTS],
                         ids=lambda s: s.id)  # fmt: skip
def test_what_is_measured_has_the_papers_t_and_d(statement):
    for size in statement.sizes:
        assert size["T"] == 10 and size["d"] in (4, 5)
    assert set(paper_sizes.MEASURED[statement.id]) <= set(KNOWN)


@pytest.mark.parametrize("statement", paper_sizes.STATEMENTS, ids=lambda s: s.id)
def test_the_forms_are_those_of_the_parts_that_hold(statement):
    parts = [KNOWN[one] for one in paper_sizes.MEASURED[statement.id]]
    of_parts = {f"{f.name}: {p.label}" for p in parts for f in p.forms if f.expected == "holds"}
    missing = of_parts - {form.name for form in statement.forms}
    assert missing <= {"printed, last iterate: Theorem 3"}
    assert {form.name for form in statement.forms} <= of_parts


def test_the_guide_lists_the_toys_with_their_reasons():
    rows = re.findall(r"^\| `(multihead\.[^`]*)` \| (.*) \|$", topic_text("papers"), re.MULTILINE)
    listed = {one: reason for reason, ids in paper_sizes.TOY.items() for one in ids}
    assert dict(rows) == listed


def test_heads_are_counted_once():
    for heads in (1, 2, 7, 1024):
        assert sum(paper_losses.copies_of(Size({"H": heads}))) == heads


def test_an_end_that_no_count_encloses_decides_nothing():
    """A residual says that some eigenvalue is near: without a bracket the error is infinite."""
    like = lambda certified: paper_losses.CertifiedExtremes(
        *jax.numpy.asarray([-1.0, 2.0]), jax.numpy.asarray([-1.1, -0.9]),
        jax.numpy.asarray([1.9, 2.1]), jax.numpy.asarray(certified), jax.numpy.asarray(0),
    )  # fmt: skip
    unknown = dict.fromkeys(paper_losses.Extremes._fields)
    ends = paper_losses.Extremes(
        **unknown | {"minimum": jax.numpy.asarray(-0.95), "maximum": jax.numpy.asarray(1.95)}
    )
    assert np.isinf(paper_losses._off_norm(ends, like(False)))
    assert np.isinf(paper_losses._off_least(ends, like(False)))
    assert float(paper_losses._off_norm(ends, like(True))) == pytest.approx(0.15)
    assert float(paper_losses._off_least(ends, like(True))) == pytest.approx(0.15)
