"""Claim: at equal residuals, ahead of curvlinops, hessian-eigenthings and matfree in CPU seconds.

One decoder of tokens after ten steps of Adam, equal float32 parameters for JAX and PyTorch. Each
library answers in a process of its own; the order turns from repeat to repeat. The questions are
both ends, the greatest five, the trace, the density, and the four together on one operator. A
library raises its effort (iterations, tolerance, probes) until the residuals of its own products
are at most TOLERANCE times the greatest eigenvalue, and until the standard error of its trace is at
most ERROR of it. The search for that effort is not timed, so that a library that cannot stop by
itself gets the right number of iterations for nothing. At last a judge, one product in float64,
measures every residual again. Times hold making the operator; `first` holds compiling, too. Each
process has one core, since threads that wait for one another would count as CPU seconds.

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
COMPILED = ("jaxbounds", "matfree")
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


def _enough(question: str, answer: Answer, product: Callable) -> tuple[bool, dict]:
    """Whether an answer is as exact as asked, by the library's own product."""
    if question in QUESTIONS[:2]:
        unit = answer.vectors / np.linalg.norm(answer.vectors, axis=1, keepdims=True)
        images = np.stack([product(row) for row in unit.astype(np.float32)])
        values = np.sum(unit * images, axis=1, keepdims=True)
        worst = float(np.linalg.norm(images - values * unit, axis=1).max() / np.abs(values).max())
        return worst <= TOLERANCE, {"accuracy": worst, "values": []}
    if question == "trace":
        error = answer.error / abs(answer.value)
        return not error > ERROR, {"accuracy": error, "values": [answer.value]}
    return True, {"accuracy": 0.0, "values": []}


def _judge(name: str, rows: list[dict], folder: Path, judge: Judge) -> None:
    """Put the residuals of the judge in the place of the library's own."""
    for row in rows:
        if row["question"] in QUESTIONS[:2]:
            values, residuals = judge.residuals(np.load(folder / f"{name} {row['question']}.npy"))
            row["accuracy"] = float(np.max(residuals) / np.max(np.abs(values)))
            row["values"] = np.sort(values).tolist()
            row["enough"] = row["accuracy"] <= TOLERANCE


def one_library(name: str, folder: Path, asked: list[str]) -> list[dict]:
    """The rows of a library: each question with a fresh operator, twice; then all together."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    saved = dict(np.load(folder / "case.npz"))
    one = Case({n[2:]: a for n, a in sorted(saved.items()) if n.startswith("p_")},
               saved["tokens"], saved["targets"])  # fmt: skip
    begun: dict[str, int] = json.loads((folder / "efforts.json").read_text()).get(name, {})
    asks, ladders = LIBRARIES[name][0](one)
    rows: list[dict] = []
    efforts: dict[str, int] = {}
    jax.block_until_ready(jnp.ones(3) + 1)
    if name not in COMPILED:  # the first product of PyTorch starts its machinery
        asks()["trace"](3)
    for question, ladder in ((q, ladders[q]) for q in QUESTIONS[:4] if q in asked):
        for rung in range(begun.get(question, 0), len(ladder)):
            ask = lambda q=question, r=ladder[rung]: asks()[q](r)
            answer, first, _ = timed(ask)
            enough, said = _enough(question, answer, asks()["product"])
            if enough:
                break
        if answer.vectors.size:
            np.save(folder / f"{name} {question}.npy", answer.vectors)
        efforts[question] = rung
        _, cpu, wall = timed(ask) if name in COMPILED else (None, first, 0.0)
        rows.append({"question": question, "first": first, "cpu": cpu, "wall": wall, **said,
                     "products": answer.products, "enough": enough, "rung": rung})  # fmt: skip
    if "together" in asked:
        rows.append(_together(name, asks, ladders, efforts, rows))
    return rows


def _together(name: str, asks: Callable, ladders: dict, efforts: dict, rows: list[dict]) -> dict:
    """The row of all questions to one operator.

    It is measured where questions share products. hessian-eigenthings reads the greatest five off
    the run for both ends, and curvlinops shares nothing: there the other rows are added.
    """
    total = {key: sum(row[key] for row in rows) for key in ("first", "cpu", "wall", "products")}
    if name == "hessian-eigenthings":
        total = {key: total[key] - rows[1][key] for key in total}
    elif name in COMPILED:
        both = [ladders[q][efforts[q]] for q in ("extremes", "top 5")]

        def together() -> Answer:
            ask = asks()
            for question in QUESTIONS[:2]:
                ask[question](max(both) if name == "matfree" else min(both))
            for question in QUESTIONS[2:4]:
                answer = ask[question](ladders[question][efforts[question]])
            return answer

        answer, total["cpu"], total["wall"] = timed(together)
        total["products"] = answer.products
    enough = all(row["enough"] for row in rows)
    return {"question": "together", **total, "accuracy": 0.0, "values": [], "enough": enough,
            "rung": 0}  # fmt: skip


def _run(name: str, folder: Path, asked: tuple[str, ...]) -> list[dict]:
    command = [sys.executable, "-W", "ignore", __file__, "part", name, str(folder), *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _table(found: dict[str, list[list[dict]]]) -> None:
    """Median CPU seconds over the repeats, and their ratio to this library in the same run."""
    for i, question in enumerate(row["question"] for row in found["jaxbounds"][0]):
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
    questions: tuple[str, ...] = QUESTIONS,
) -> None:
    """Compare; `repeats` runs of each library, whose order turns."""
    there = [name for name in libraries if find_spec(LIBRARIES[name][1])]
    for name in set(libraries) - set(there):
        print(f"{name} is not installed here, and is left out: pip install 'jaxbounds[compare]'.")
    packages = [PACKAGES.get(name, name) for name in there] + ["jax", "torch"]
    print(", ".join(f"{p} {version(p)}" for p in packages if p != "torch" or find_spec(p)))
    efforts: dict[str, dict[str, int]] = {}
    for size in sizes:
        # The search at the next size starts a rung lower.
        efforts = {name: {q: max(0, r - 1) for q, r in e.items()} for name, e in efforts.items()}
        one = trained(*SHAPES[size])
        judge = Judge(one)
        print(f"{one.size} parameters, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        found: dict[str, list[list[dict]]] = {name: [] for name in there}
        with tempfile.TemporaryDirectory() as path:
            leaves = {f"p_{name}": leaf for name, leaf in one.params.items()}
            np.savez(Path(path) / "case.npz", tokens=one.tokens, targets=one.targets, **leaves)
            for repeat in range(repeats):
                turn = repeat % len(there)
                for name in there[turn:] + there[:turn]:
                    # A library without an error of its own gets the probes of the one method.
                    known = efforts.get("hessian-eigenthings", {}).get("trace", 2)
                    if name == "curvlinops":
                        efforts[name] = {**efforts.get(name, {}), "trace": known}
                    (Path(path) / "efforts.json").write_text(json.dumps(efforts))
                    rows = _run(name, Path(path), questions)
                    _judge(name, rows, Path(path), judge)
                    found[name].append(rows)
                    efforts[name] = {row["question"]: row["rung"] for row in rows}
        _table(found)
        print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["part"]:
        print(json.dumps(one_library(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])))
    else:
        tyro.cli(main)
