"""Claims about the cost of the extremes of a Hessian.

200 iterations within twice the time of their products; 40 iterations within 2.2 gradients each, in
one batch of memory; at P = 10^6 the peak is within 1.2 times what is announced.

CPU seconds, which other programs on the machine disturb less than the wall clock.

Run: python benchmarks/curvature_cost.py
"""

import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxbounds.networks.curvature import extremes_memory, hessian_extremes


def network(inputs: int, hidden: int, samples: int):
    """A two-layer network with two outputs: its loss, parameters and data."""
    keys = jax.random.split(jax.random.key(0), 3)
    params = {
        "w": jax.random.normal(keys[0], (inputs, hidden)) / inputs**0.5,
        "b": jnp.zeros(hidden),
        "v": jax.random.normal(keys[1], (hidden, 2)) / hidden**0.5,
    }
    x = jax.random.normal(keys[2], (samples, inputs))
    return loss, params, {"x": x, "y": x[:, :2]}


def loss(params, batch):
    output = jnp.tanh(batch["x"] @ params["w"] + params["b"]) @ params["v"]
    return jnp.mean((output - batch["y"]) ** 2)


def cpu(function, rounds: int = 5) -> float:
    """The least CPU seconds of several calls, after one untimed."""
    jax.block_until_ready(function())
    times = []
    for _ in range(rounds):
        start = time.process_time()
        jax.block_until_ready(function())
        times.append(time.process_time() - start)
    return min(times)


def costs() -> None:
    _, params, batch = network(228, 400, 512)
    flat, unravel = ravel_pytree(params)
    of = lambda x, batch: loss(unravel(x), batch)

    @jax.jit
    def products(flat):
        product = jax.linearize(jax.grad(lambda x: of(x, batch)), flat)[1]
        return jax.lax.fori_loop(0, 200, lambda _, v: product(v) * 0.01, flat)

    @jax.jit
    def gradients(flat):
        step = lambda _, x: x - 1e-3 * jax.grad(lambda x: of(x, batch))(x)
        return jax.lax.fori_loop(0, 200, step, flat)

    base, slope = cpu(lambda: products(flat)), cpu(lambda: gradients(flat)) / 200
    print(f"P = {flat.size}, n = 512, float32; 200 products {base:.3f} s, a gradient {slope:.5f} s")
    for iterations in (40, 80, 120, 200, 300):
        call = lambda i=iterations: hessian_extremes(loss, params, batch, iterations=i, tolerance=0)
        seconds, ends = cpu(call), call()
        own = base * iterations / 200
        print(
            f"  {iterations:>3} iterations {seconds:.3f} s = {seconds / own:.2f} times their "
            f"products, {seconds / slope / iterations:.2f} gradients each; residuals "
            f"{float(ends.residual_minimum):.1e}, {float(ends.residual_maximum):.1e}"
        )

    @jax.jit
    def batched(flat):
        parts = jax.tree.map(lambda leaf: leaf.reshape(8, 64, *leaf.shape[1:]), batch)

        def step(_, x):
            one = lambda total, part: (total + jax.grad(of)(x, part) / 8, None)
            return x - 1e-3 * jax.lax.scan(one, jnp.zeros_like(x), parts)[0]

        return jax.lax.fori_loop(0, 200, step, flat)

    slopes = {512: slope, 64: cpu(lambda: batched(flat)) / 200}
    for batches, size in ((1, 512), (8, 64)):
        data = {"batch_size": size} if batches > 1 else {}
        call = lambda data=data: hessian_extremes(
            loss, params, batch, iterations=40, tolerance=0, **data
        )
        need = extremes_memory(loss, params, batch, **data) / 2**20
        per = cpu(call) / slopes[size] / 40
        print(f"  {batches} batches of {size}: {per:.2f} gradients an iteration, {need:.1f} MiB")


def memory(*, reset: bool = False) -> int:
    """The resident bytes, or the highest since the last reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    name = "VmRSS:" if reset else "VmHWM:"
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def peak(inputs: int, hidden: int) -> None:
    """Measured in a process of its own: the peak while it runs, less what it had before."""
    # The first matrix alone is a million numbers; data are small beside the vectors.
    _, params, batch = network(inputs, hidden, 64)
    announced = extremes_memory(loss, params, batch)
    size = sum(leaf.size for leaf in params.values())
    held = sum(leaf.nbytes for leaf in jax.tree.leaves((params, batch)))
    before = memory(reset=True)
    jax.block_until_ready(hessian_extremes(loss, params, batch, iterations=40, tolerance=0))
    grown = memory() - before + held
    print(
        f"P = {size}, float32: announced {announced / 2**20:.0f} MiB, "
        f"peak {grown / 2**20:.0f} MiB, ratio {grown / announced:.2f}"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        peak(*map(int, sys.argv[1:]))
    else:
        costs()
        for shape in ((228, 400), (1000, 997)):
            subprocess.run([sys.executable, __file__, *map(str, shape)], check=True)
