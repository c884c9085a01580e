"""Which errata the engine finds without their stored counterexamples.

For each form that is expected to fail, the statement is judged without the counterexample that is
stored with it. Printed: whether a violation was found, after how many evaluations of both sides (a
step of a search counted as one), and by what: draws, a search, or only by the statement's cases,
which a person chose.

    python benchmarks/rediscovery.py
    python benchmarks/rediscovery.py --papers qstr --factor 2
"""

import functools
import sys
from dataclasses import replace
from statistics import median

import jax
import numpy as np
import tyro

from jaxbounds.claims.statements import Statement
from jaxbounds.falsification import UNKEPT
from jaxbounds.falsification.decide import violation
from jaxbounds.falsification.judging import Findings, judge
from jaxbounds.papers import PAPERS, load_paper

print = functools.partial(print, flush=True)


def _untold(statement: Statement) -> Statement:
    """The statement without its stored counterexamples."""
    # A form that is expected to fail has to store one; nothing here looks at what is expected.
    told_nothing = {"counterexample": None, "expected": "inconclusive"}
    plain = tuple(replace(form, **told_nothing) for form in statement.forms)
    return replace(statement, forms=plain)


def _first(found: Findings, index: int, steps: int) -> tuple[int, str] | None:
    """After how many evaluations the first violation of a form came, and by what."""
    certain = violation(found.bench.statement, found.columns[index].measured) > 0
    sources = found.columns[index].sources
    chosen = sources == "cases"
    for by, rows in (("draws", ~chosen), ("cases", chosen)):
        cost = np.where(sources == "search", steps, 1)[rows]
        hits = np.flatnonzero(certain[rows])
        if len(hits):
            what = "search" if sources[rows][hits[0]] == "search" else by
            return int(np.cumsum(cost)[hits[0]]), what
    return None


def main(papers: tuple[str, ...] = PAPERS, factor: float = 1.0, seed: int = 0) -> None:
    """Judge every statement with an erratum that single instances show."""
    counts: list[tuple[int, str]] = []
    missed: list[str] = []
    for statement in (s for paper in papers for s in load_paper(paper).statements):
        wrong = [i for i, form in enumerate(statement.forms) if form.expected == "fails"]
        if not wrong:
            continue
        budget = statement.budget.scaled(factor)
        found = judge(_untold(statement), budget=budget, seed=seed, programs=UNKEPT)
        for index in wrong:
            name = f"{statement.id} ({statement.forms[index].name})"
            first = _first(found, index, budget.steps)
            print(f"{name}: {f'after {first[0]}, by {first[1]}' if first else 'NOT FOUND'}")
            if first:
                counts.append(first)
            else:
                missed.append(name)
        jax.clear_caches()
    total = len(counts) + len(missed)
    if not total:
        sys.exit("no statement of these papers has a form that fails")
    by = {what: sum(how == what for _, how in counts) for what in ("draws", "search", "cases")}
    words = ", ".join(f"{count} by {what}" for what, count in by.items())
    print(f"found {len(counts)} of {total} ({words}); not: {', '.join(missed) or 'none'}")
    print(f"median {median(after for after, _ in counts):g} evaluations")


if __name__ == "__main__":
    tyro.cli(main)
