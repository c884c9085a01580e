"""What is said about the papers: quoted, classed, with every hypothesis of theirs met.

The numbers are judged elsewhere (`test_papers`); here the words about them are held to their rules.
"""

import importlib
import re
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.falsification.bench import as_arrays
from jaxbounds.papers import load_papers
from jaxbounds.report.formula import formula
from jaxbounds.statements import Size

ALL = load_papers()
STATEMENTS = [s for paper in ALL for s in paper.statements]
FORMS = [(s, form) for s in STATEMENTS for form in s.forms]
FAILING = [(s, form) for s, form in FORMS if form.counterexample is not None]
by_name = lambda pair: f"{pair[0].id}, {pair[1].name}"


@pytest.mark.parametrize("pair", FAILING, ids=by_name)
def test_a_counterexample_meets_what_the_paper_assumes(pair):
    statement, form = pair
    stored = form.counterexample
    assert stored.meets is not None, "name the paper's hypotheses, with their sources"
    with float64_on_cpu():
        instance = as_arrays(dict(stored.instance))
        given = instance if statement.host else jax.tree.map(jnp.asarray, instance)
        named = stored.meets(given, Size(stored.size))
    assert named
    assert [name for name, met in named.items() if not np.all(np.asarray(met))] == []


def test_what_is_called_printed_says_where():
    assert [by_name(pair) for pair in FORMS if pair[1].name.startswith("printed")
            and not pair[1].cites.strip()] == []  # fmt: skip


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_errata_are_exhibited_or_explained(paper):
    """A false claim has a form that fails, or says how it was found; ids are not used twice."""
    ids = [erratum.id for erratum in paper.errata]
    assert len(set(ids)) == len(ids)
    known = {s.id for s in paper.statements}
    for erratum in paper.errata:
        named = re.findall(rf"\b{paper.id}\.[\w.\-]+[\w]", erratum.evidence)
        assert set(named) <= known, (erratum.id, set(named) - known)
    # An erratum that a form exhibits is no slip of the pen about which nothing can be measured.
    exhibited = {form.erratum for s in paper.statements for form in s.forms if form.erratum}
    assert exhibited <= set(ids)


def _exists(name: str) -> bool:
    """Whether a module, or something in one, has that full name."""
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


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_every_item_of_a_paper_is_accounted_for(paper):
    """Each is judged, an erratum, a definition in code, or is left out with a reason."""
    known = {s.id for s in paper.statements} | {erratum.id for erratum in paper.errata}
    assert len(paper.items) > 20
    for item, what in paper.items.items():
        if what.startswith("none: "):
            assert len(what) > 12, item
        elif what.startswith("code: "):
            missing = [n for n in re.split(r",\s*", what[6:]) if not _exists(n)]
            assert not missing, (item, missing)
        else:
            assert set(re.split(r",\s*", what)) <= known, (item, what)


@pytest.mark.parametrize("paper", ALL, ids=lambda paper: paper.id)
def test_every_formula_is_set(paper):
    """Nothing of LaTeX is left over in what a reader sees."""
    for statement in paper.statements:
        assert statement.tex, f"{statement.id} has no tex"
        shown = re.sub(r"<[^>]*>", "", formula(statement))
        assert not re.search(r"[\\$_]|\b(le|ge|sqrt|frac|infty)\b", shown), (
            statement.id,
            shown,
        )
