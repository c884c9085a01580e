"""Claim: both ends of a Hessian at equal residual, many times faster than PyTorch's libraries.

The same two-layer network and data at P = 10^4, 10^5, 10^6 for this library, curvlinops (its
Hessian operator under scipy's ARPACK) and hessian-eigenthings (its Lanczos, once for each end).
Those need PyTorch: give a Python that has them, if this one has not. CPU and wall seconds;
residuals are measured by one more product in each library's own arithmetic (float32).

Run: python benchmarks/curvature_networks.py [--torch PYTHON] [--sizes 10000 100000]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SHAPES = {10_000: (98, 100), 100_000: (228, 400), 1_000_000: (998, 1000)}
SAMPLES = 512


def arrays(inputs: int, hidden: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SAMPLES, inputs)).astype(np.float32)
    return {
        "x": x,
        "y": x[:, :2],
        "w": (rng.normal(size=(inputs, hidden)) / inputs**0.5).astype(np.float32),
        "b": np.zeros(hidden, np.float32),
        "v": (rng.normal(size=(hidden, 2)) / hidden**0.5).astype(np.float32),
    }


def timed(function):
    """The result, CPU seconds, wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def ours(data: dict) -> list[dict]:
    import jax
    import jax.numpy as jnp

    from jaxbounds.networks.curvature import hessian_extremes

    def loss(params, batch):
        output = jnp.tanh(batch["x"] @ params["w"] + params["b"]) @ params["v"]
        return jnp.mean((output - batch["y"]) ** 2)

    params = {name: jnp.asarray(data[name]) for name in "wbv"}
    batch = {name: jnp.asarray(data[name]) for name in "xy"}
    rows = []
    for tolerance in (1e-3, 1e-4, 1e-5):
        call = lambda t=tolerance: jax.block_until_ready(
            hessian_extremes(loss, params, batch, tolerance=t, iterations=400, dense_limit=0)
        )
        if not rows:
            _, compiling, _ = timed(call)
        ends, cpu, wall = timed(call)
        name = f"ours {tolerance:g}" + (f" (compiled in {compiling:.1f} s)" if not rows else "")
        rows.append({
            "name": name, "ends": [float(ends.minimum), float(ends.maximum)], "cpu": cpu,
            "wall": wall, "products": int(ends.iterations),
            "residuals": [float(ends.residual_minimum), float(ends.residual_maximum)],
        })  # fmt: skip
    return rows


def theirs(data: dict) -> list[dict]:
    import torch
    from curvlinops import HessianLinearOperator
    from hessian_eigenthings import HessianOperator, lanczos, supervised_loss
    from scipy.sparse.linalg import LinearOperator, eigsh

    hidden = torch.nn.Linear(*data["w"].shape)
    model = torch.nn.Sequential(
        hidden, torch.nn.Tanh(), torch.nn.Linear(data["v"].shape[0], 2, bias=False)
    )
    with torch.no_grad():
        hidden.weight.copy_(torch.tensor(data["w"].T))
        hidden.bias.copy_(torch.tensor(data["b"]))
        model[2].weight.copy_(torch.tensor(data["v"].T))
    batch = torch.tensor(data["x"]), torch.tensor(data["y"])
    criterion = torch.nn.MSELoss()
    params = [p for p in model.parameters() if p.requires_grad]
    operator = HessianLinearOperator(model, criterion, params, [batch], check_deterministic=False)
    counted = operator.to_scipy()
    used = [0]

    def apply(vector):
        used[0] += 1
        return counted @ vector

    size = counted.shape[0]
    plain = LinearOperator((size, size), matvec=apply, dtype=np.float32)
    rows = []
    # Random starts: ARPACK's default start is random too.
    start = np.random.default_rng(1).normal(size=size).astype(np.float32)
    for tolerance in (1e-3, 1e-4):
        used[0] = 0
        (values, vectors), cpu, wall = timed(
            lambda t=tolerance: eigsh(plain, k=2, which="BE", tol=t, v0=start)
        )
        residuals = [float(np.linalg.norm(counted @ v - t * v)) for t, v in zip(values, vectors.T)]
        rows.append({
            "name": f"curvlinops + ARPACK {tolerance:g}", "ends": [float(t) for t in values],
            "cpu": cpu, "wall": wall, "products": used[0], "residuals": residuals,
        })  # fmt: skip
    other = HessianOperator(model, [batch], supervised_loss(criterion))
    for steps in (50, 120):
        both = lambda m=steps: [
            lanczos(other, k=1, max_iter=m, which=which, seed=0) for which in ("SA", "LA")
        ]
        found, cpu, wall = timed(both)
        values = [float(r.eigenvalues[0]) for r in found]
        residuals = [
            float(torch.linalg.norm(other.matvec(v) - t * v))
            for t, v in zip(values, (r.eigenvectors.reshape(-1, size)[0] for r in found))
        ]
        rows.append({
            "name": f"hessian-eigenthings {steps} + {steps}", "ends": values, "cpu": cpu,
            "wall": wall, "products": 2 * steps, "residuals": residuals,
        })  # fmt: skip
    return rows


def _compare(rows: list[dict]) -> None:
    """How many times longer the others take than our fastest run with no larger residuals."""
    own = [row for row in rows if row["name"].startswith("ours")]
    for row in rows:
        equal = [o for o in own if max(o["residuals"]) <= max(row["residuals"])]
        if row not in own and equal:
            best = min(equal, key=lambda o: o["cpu"])
            cpu, wall = row["cpu"] / best["cpu"], row["wall"] / best["wall"]
            row["times"] = f"  {cpu:.0f} and {wall:.0f} times ours at {max(best['residuals']):.1e}"


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--torch", default=sys.executable, help="a Python with the other libraries")
    flags.add_argument("--sizes", type=int, nargs="+", default=list(SHAPES))
    flags.add_argument("--part", help=argparse.SUPPRESS)
    options = flags.parse_args()
    if options.part:
        data = dict(np.load(options.part))
        print(json.dumps(theirs(data)))
        return
    for size in options.sizes:
        data = arrays(*SHAPES[size])
        count = sum(data[name].size for name in "wbv")
        print(f"P = {count}, n = {SAMPLES}, float32, both ends")
        rows = ours(data)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "data.npz")
            np.savez(path, **data)
            command = [options.torch, __file__, "--part", path]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print("  the other libraries did not run:", done.stderr.strip().splitlines()[-1:])
        else:
            rows += json.loads(done.stdout.splitlines()[-1])
        _compare(rows)
        for row in rows:
            residuals = ", ".join(f"{r:.1e}" for r in row["residuals"])
            ends = ", ".join(f"{t:.6f}" for t in row["ends"])
            print(
                f"  {row['name']:<34} {ends:>22}  residuals {residuals}  {row['products']:>4} "
                f"products  {row['cpu']:>8.2f} CPU s {row['wall']:>8.2f} s{row.get('times', '')}",
                flush=True,
            )


if __name__ == "__main__":
    main()
