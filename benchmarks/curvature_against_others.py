"""Claim: at equal residuals, ahead of curvlinops, hessian-eigenthings and matfree in CPU seconds.

One decoder of tokens after ten steps of Adam, equal float32 parameters for JAX and PyTorch. Each
library answers in a process of its own; the order turns from repeat to repeat. The questions are
both ends, the greatest five, the trace, the density, and the four together on one operator. A
library raises its effort (iterations, tolerance, probes) until the residuals of its own products
are at most TOLERANCE times the greatest eigenvalue, and until the standard error of its trace is at
most ERROR of it. The search for that effort is not timed, so that a library that cannot stop by
itself gets the right number of iterations for nothing. At last a judge, one product in float64,
measures every residual again. Times hold making the operator; `first` holds compiling, too.

The others are no dependencies: pip install "jaxbounds[compare]" brings them.

Run: python benchmarks/curvature_against_others.py [--sizes 100000] [--repeats 3]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro
from curvature_libraries import LIBRARIES, PACKAGES, TOLERANCE, Answer
from same_network import SHAPES, Case, Judge, case, jax_loss

ERROR = 0.02
"""The standard error that each trace must reach, relative to the trace; a larger one asks less."""
QUESTIONS = ("extremes", "top 5", "trace", "density", "together")


def trained(width: int, layers: int) -> Case:
    """The case after ten steps of Adam, where both ends of the Hessian are far from 0."""
    one = case(width, layers)
    batch = jnp.asarray(one.tokens), jnp.asarray(one.targets)
    rule = optax.adam(3e-3)

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        update, state = rule.update(jax.grad(jax_loss)(params, batch), state)
        return optax.apply_updates(params, update), state

    params = {name: jnp.asarray(leaf) for name, leaf in one.params.items()}
    state = rule.init(params)
    for _ in range(10):
        params, state = step(params, state)
    return one._replace(params={name: np.asarray(leaf) for name, leaf in params.items()})


def timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, CPU seconds of all threads, wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def _enough(question: str, answer: Answer, judge: Judge) -> tuple[bool, dict]:
    """Whether an answer is as exact as asked, and what a row says of it."""
    if question in ("extremes", "top 5"):
        values, residuals = judge.residuals(answer.vectors)
        worst = float(np.max(residuals) / np.max(np.abs(values)))
        return worst <= TOLERANCE, {"accuracy": worst, "values": np.sort(values).tolist()}
    if question == "trace":
        error = answer.error / abs(answer.value)
        return not error > ERROR, {"accuracy": error, "values": [answer.value]}
    return True, {"accuracy": 0.0, "values": []}


def one_library(name: str, folder: Path) -> list[dict]:
    """The rows of a library: each question with a fresh operator, twice; then all together."""
    saved = dict(np.load(folder / "case.npz"))
    one = Case({n[2:]: a for n, a in sorted(saved.items()) if n.startswith("p_")},
               saved["tokens"], saved["targets"])  # fmt: skip
    begun: dict[str, int] = json.loads((folder / "efforts.json").read_text()).get(name, {})
    asks, ladders = LIBRARIES[name][0](one)
    judge, rows, efforts = Judge(one), [], {}
    jax.block_until_ready(jnp.ones(3) + 1)
    for question, ladder in ladders.items():
        for rung in range(begun.get(question, 0), len(ladder)):
            ask = lambda q=question, r=ladder[rung]: asks()[q](r)
            answer, first, _ = timed(ask)
            enough, said = _enough(question, answer, judge)
            if enough:
                break
        efforts[question] = rung
        _, cpu, wall = timed(ask)
        rows.append({"question": question, "first": first, "cpu": cpu, "wall": wall, **said,
                     "products": answer.products, "enough": enough, "rung": rung})  # fmt: skip
    most = max(ladders["extremes"][efforts["extremes"]], ladders["top 5"][efforts["top 5"]])
    least = min(ladders["extremes"][efforts["extremes"]], ladders["top 5"][efforts["top 5"]])

    def together() -> Answer:
        ask = asks()
        both = most if most > 1 else least  # more iterations, or a smaller tolerance
        for question in ("extremes", "top 5"):
            answer = ask[question](both)
        for question in ("trace", "density"):
            answer = ask[question](ladders[question][efforts[question]])
        return answer

    answer, cpu, wall = timed(together)
    rows.append({"question": "together", "first": sum(row["first"] for row in rows), "cpu": cpu,
                 "wall": wall, "products": answer.products, "accuracy": 0.0, "values": [],
                 "enough": all(row["enough"] for row in rows), "rung": 0})  # fmt: skip
    return rows


def _run(name: str, folder: Path) -> list[dict]:
    command = [sys.executable, "-W", "ignore", __file__, "part", name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _table(found: dict[str, list[list[dict]]]) -> None:
    """Median CPU seconds over the repeats, and their ratio to this library in the same run."""
    for i, question in enumerate(QUESTIONS):
        middle = lambda name, what, i=i: statistics.median(run[i][what] for run in found[name])
        for name, runs in found.items():
            row, cpu = runs[0][i], middle(name, "cpu")
            ratios = [a[i]["cpu"] / b[i]["cpu"] for a, b in zip(runs, found["jaxbounds"])]
            spread = f"{statistics.median(ratios):6.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            reached = f"{row['accuracy']:.1e}" if row["accuracy"] else ""
            print(
                f"{question:<9} {name:<20} {cpu:8.2f} CPU s {middle(name, 'wall'):8.2f} s "
                f"first {middle(name, 'first'):7.2f}  {row['products']:>5} products  "
                f"{reached:>8} {'' if row['enough'] else 'NOT REACHED '}x{spread}  "
                + " ".join(f"{value:.5g}" for value in row["values"]), flush=True,
            )  # fmt: skip


def main(
    sizes: tuple[int, ...] = tuple(SHAPES),
    repeats: int = 3,
    libraries: tuple[str, ...] = tuple(LIBRARIES),
) -> None:
    """Compare; `repeats` runs of each library, whose order turns."""
    there = [name for name in libraries if find_spec(LIBRARIES[name][1])]
    for name in set(libraries) - set(there):
        print(f"{name} is not installed here, and is left out: pip install 'jaxbounds[compare]'.")
    packages = [PACKAGES.get(name, name) for name in there] + ["jax", "torch"]
    print(", ".join(f"{p} {version(p)}" for p in packages if p != "torch" or find_spec(p)))
    for size in sizes:
        one = trained(*SHAPES[size])
        print(f"{one.size} parameters, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        found: dict[str, list[list[dict]]] = {name: [] for name in there}
        efforts: dict[str, dict[str, int]] = {}
        with tempfile.TemporaryDirectory() as path:
            leaves = {f"p_{name}": leaf for name, leaf in one.params.items()}
            np.savez(Path(path) / "case.npz", tokens=one.tokens, targets=one.targets, **leaves)
            for repeat in range(repeats):
                turn = repeat % len(there)
                for name in there[turn:] + there[:turn]:
                    # A library without an error of its own gets the probes of the one method.
                    if name == "curvlinops" and name not in efforts:
                        known = efforts.get("hessian-eigenthings", {"trace": 2})
                        efforts[name] = {"trace": known["trace"]}
                    (Path(path) / "efforts.json").write_text(json.dumps(efforts))
                    rows = _run(name, Path(path))
                    found[name].append(rows)
                    efforts[name] = {row["question"]: row["rung"] for row in rows}
        _table(found)
        print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["part"]:
        print(json.dumps(one_library(sys.argv[2], Path(sys.argv[3]))))
    else:
        tyro.cli(main)
