"""Sharp constants of inequalities from the literature, beside CMA-ES and L-BFGS at equal CPU time.

    python benchmarks/classics.py --seconds 10 --out classics.jsonl
    python benchmarks/classics.py --false --out false.jsonl

The first finds the constant of each inequality of `classics_data.py` at each size, and lets CMA-ES
(with restarts, by `cma`) and L-BFGS-B (from many starts, by SciPy) make the same ratio large for as
many CPU seconds as it took. The table, by class: sizes at which the relative error is below 1e-12;
"attained", "unbounded" and closed forms that are false. The second makes every claim false by 1%
and counts what `jaxbounds verify` finds at its defaults.

`--only` takes names (or how they begin); `--part 2/5` the second of five slices. What was done is
kept line by line in `--out`; the same command goes on from there, and prints the table of it all.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import scipy
import tyro
from classics_data import CLASSICS, Classic

from jaxbounds import falsify, float64_on_cpu, sharp_constant
from jaxbounds.constants.nonsmooth import by_cma
from jaxbounds.constants.problem import Problem, flat
from jaxbounds.constants.snapping import Ties, bases

RIGHT, CLEARLY = 1e-12, 1e-9
"""Relative errors: of a constant that is found, and of one that is wrong."""
CLASSES = (
    "smooth", "non-smooth", "simplex", "sphere", "matrices", "polynomials", "limit", "enumerated",
)  # fmt: skip


def _as_function(one: Classic, size: dict[str, int], seed: int) -> Any:
    """The log ratio with slopes in free coordinates, and a draw of a start."""
    problem = Problem(one.statement(), "printed", size)
    sampler = next(iter(problem.statement.samplers.values()))
    drawn = lambda k: jax.tree.map(np.asarray, sampler(jax.random.key(k), problem.size))
    first = drawn(seed)
    basis = bases(first)[0]
    free = Ties(np.ones(len(flat(first))), np.arange(len(flat(first))), basis)
    return problem, free, first, lambda k: np.asarray(flat(drawn(k)))


def _by_lbfgs(function: Any, until: float) -> float:
    problem, free, first, start = function
    best, k = -np.inf, 0

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        score, slope = problem.slope(x, free, first)
        return -score, -slope

    while time.process_time() < until and k < 10_000:
        with np.errstate(all="ignore"):
            found = scipy.optimize.minimize(loss, start(k), jac=True, method="L-BFGS-B")
        best, k = max(best, -float(found.fun)), k + 1
    return float(np.exp(best))


def _by_cma(function: Any, until: float) -> float:
    problem, free, first, start = function
    best, k = -np.inf, 0
    losses = lambda rows: -problem.scores(rows, free, first)
    while time.process_time() < until and k < 10_000:
        x = start(k)
        if len(x) < 2:  # the library wants two coordinates
            x = np.append(x, 0.0)
            wide = lambda rows: losses(rows[:, :1])
            found = by_cma(wide, x, spread=0.5, seed=k, until=until)[:1]
        else:
            found = by_cma(losses, x, spread=0.5, seed=k, until=until)
        best, k = max(best, float(problem.scores(found[None], free, first)[0])), k + 1
    return float(np.exp(best))


def _others(one: Classic, size: dict[str, int], seconds: float) -> dict[str, float | None]:
    if one.cases is not None:
        return {"cma": None, "lbfgs": None}
    with float64_on_cpu(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searches: dict[str, Callable[[Any, float], float]] = {"cma": _by_cma, "lbfgs": _by_lbfgs}
        found = {}
        for name, by in searches.items():
            function = _as_function(one, size, 0)
            x = function[3](0)
            function[0].slope(x, function[1], function[2])  # compiling is not searching
            function[0].scores(x[None], function[1], function[2])
            found[name] = by(function, time.process_time() + seconds)
    return found


def _constant(one: Classic, size: dict[str, int], seconds: float, seed: int) -> dict[str, Any]:
    (s,) = sharp_constant(one.statement(), sizes=[size], seconds=seconds, seed=seed).sizes
    return {
        "ratio": s.ratio, "where": s.where, "along": s.along, "low": s.low, "high": s.high,
        "closed": s.closed and s.closed.text, "agreeing": f"{s.agreeing}/{s.starts}",
        "reason": s.reason, "seconds": round(s.seconds, 2),
    }  # fmt: skip


def _false(one: Classic, size: dict[str, int], seed: int) -> dict[str, Any]:
    statement = one.statement(less=0.99)
    (verdict,) = falsify(statement, seed=seed)
    return {"status": verdict.status, "worst": verdict.worst_ratio}


def _done(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        yield from map(json.loads, file.read_text(encoding="utf8").splitlines())


def _error(found: float | None, truth: float) -> float:
    return abs(found / truth - 1) if found is not None else np.inf


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of the table, and what is wrong by name."""
    heads = f"{'class':13}{'sizes':>6}{'ours':>6}{'CMA':>6}{'L-BFGS':>8}"
    yield heads + "   false: attained, unbounded, closed"
    totals = np.zeros(7, int)
    for kind in (*CLASSES, "all"):
        mine = [r for r in rows if kind in (r["kind"], "all")]
        right = [
            sum(_error(r[k], r["truth"]) < RIGHT for r in mine) for k in ("ratio", "cma", "lbfgs")
        ]
        wrong = [r for r in mine if _error(r["ratio"], r["truth"]) > CLEARLY]
        false = [
            sum(r["where"] == "attained" for r in wrong),
            sum(r["where"] == "unbounded" for r in mine),
            sum(r["closed"] is not None for r in wrong),
        ]
        totals = [len(mine), *right, *false]
        yield "{:13}{:6}{:6}{:6}{:8}   {:15}{:11}{:8}".format(kind, *totals)
    for r in rows:
        error = _error(r["ratio"], r["truth"])
        if error > RIGHT or r["where"] in ("rising", "unbounded"):
            yield (
                f"{r['name']} {r['size']}: {r['ratio']!r} for {r['truth']!r}, {r['where']} "
                f"{r['agreeing']}, CMA {r['cma']}, L-BFGS {r['lbfgs']} {r['reason']}"
            )


def _said_of_false(rows: list[dict[str, Any]]) -> Iterator[str]:
    failing = sum(r["status"] == "fails" for r in rows)
    yield f"{failing} of {len(rows)} claims that are false by 1% fail at verify's defaults"
    for r in rows:
        if r["status"] != "fails":
            yield f"{r['name']} {r['size']}: {r['status']}, worst {r['worst']:.6g}"


def main(
    seconds: float = 10.0,
    seed: int = 0,
    only: tuple[str, ...] = (),
    part: str = "1/1",
    false: bool = False,
    out: Path = Path("classics.jsonl"),
) -> None:
    """Run what is not done yet, and print the table.

    Args:
        seconds: of CPU for each constant.
        seed: of the draws.
        only: names, or how they begin.
        part: which slice of how many.
        false: make the claims false by 1%, and look whether `verify` finds it.
        out: where each line is kept.
    """
    which, parts = map(int, part.split("/"))
    work = [(one, size) for one in CLASSICS for size in one.sizes]
    if false:  # verify takes all sizes together; each is to be found by itself
        work = [(one._replace(sizes=(size,)), size) for one, size in work]
    work = [w for w in work if not only or w[0].name.startswith(only)][which - 1 :: parts]
    done = {(r["name"], json.dumps(r["size"])) for r in _done(out)}
    for one, size in work:
        if (one.name, json.dumps(size)) in done:
            continue
        about = {"name": one.name, "size": size, "kind": one.kind, "truth": one.constant(size)}
        if false:
            row = about | _false(one, size, seed)
        else:
            row = about | _constant(one, size, seconds, seed)
            row |= _others(one, size, row["seconds"])
        print(json.dumps(row), flush=True)
        with out.open("a", encoding="utf8") as to:
            to.write(json.dumps(row) + "\n")
    rows = list(_done(out))
    print("\n".join(_said_of_false(rows) if false else table(rows)))


if __name__ == "__main__":
    tyro.cli(main)
