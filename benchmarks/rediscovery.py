"""Which errata the engine finds without being told where: no stored counterexample, no cases.

For each form that is expected to fail, the statement is judged by its samplers and searches alone
(where it has no sampler, by its cases). Printed: whether a violation was found, and after how many
evaluations of both sides, a step of a search counted as one.

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

from jaxbounds.falsify import UNKEPT
from jaxbounds.falsify.decide import violation
from jaxbounds.falsify.judging import Findings, judge
from jaxbounds.papers import PAPERS, load_paper
from jaxbounds.statements import Statement

print = functools.partial(print, flush=True)


def _untold(statement: Statement) -> Statement:
    """The statement without what a person put there to show that it fails."""
    # A form that is expected to fail has to store one; nothing here looks at what is expected.
    told_nothing = {"counterexample": None, "expected": "inconclusive"}
    plain = tuple(replace(form, **told_nothing) for form in statement.forms)
    cases = None if statement.sample else statement.cases
    search = statement.search
    if search == "none" and statement.sample and statement.kind == "inequality":
        search = "random"
    return replace(statement, forms=plain, cases=cases, search=search)


def _first(found: Findings, index: int, restarts: int, steps: int) -> int | None:
    """After how many evaluations the first violation of a form came; None if none did."""
    done = 0
    certain = violation(found.bench.statement, found.columns[index].measured) > 0
    row = 0
    for batch, source in zip(found.pool.instances, found.pool.sources):
        rows = len(jax.tree.leaves(batch)[0])
        hits = np.flatnonzero(certain[row : row + rows])
        each = steps if source == "search" else 1
        if len(hits):
            return done + int(hits[0] + 1) * each
        done, row = done + rows * each, row + rows
    return None


def main(papers: tuple[str, ...] = PAPERS, factor: float = 1.0, seed: int = 0) -> None:
    """Judge every statement with an erratum that single instances show."""
    counts: list[int] = []
    missed: list[str] = []
    for statement in (s for paper in papers for s in load_paper(paper).statements):
        wrong = [i for i, form in enumerate(statement.forms) if form.expected == "fails"]
        if not wrong:
            continue
        budget = statement.budget.scaled(factor)
        found = judge(_untold(statement), budget=budget, seed=seed, programs=UNKEPT)
        for index in wrong:
            name = f"{statement.id} ({statement.forms[index].name})"
            after = _first(found, index, budget.restarts, budget.steps)
            told = "" if statement.sample else ", by its cases"
            print(f"{name}: {'NOT FOUND' if after is None else f'after {after}'}{told}")
            if after is None:
                missed.append(name)
            else:
                counts.append(after)
        jax.clear_caches()
    total = len(counts) + len(missed)
    if not total:
        sys.exit("no statement of these papers has a form that fails")
    print(f"found {len(counts)} of {total}; median {median(counts):g} evaluations; not: {missed}")


if __name__ == "__main__":
    tyro.cli(main)
