"""Claim: a training curve costs the same at H = 10^6 as at H = 1, because equal heads are tied.

Run: python benchmarks/multihead_heads.py

One compiled program of 100 GD steps serves every H. For contrast the same steps with all heads
written out, which is what the tied curve is equal to.
"""

import jax
import jax.numpy as jnp
from timing import medians

from jaxbounds.multihead.experiments.sparse_context import FIGURE_2, draw
from jaxbounds.multihead.experiments.student import margins
from jaxbounds.multihead.loss import empirical_risk, logistic
from jaxbounds.multihead.tied import tied
from jaxbounds.networks.training import optimizer, trajectory

STEPS = 100
drawn = draw(FIGURE_2, jax.random.key(0), 100)
plain = {"X": jnp.moveaxis(drawn["X"], -1, 0), "y": drawn["y"]}


def zero(heads: int):
    return {"U": jnp.zeros((heads, 10, 4)), "W": jnp.zeros((heads, 4, 4))}


@jax.jit
def tied_curve(heads):
    loss = lambda params: jnp.mean(logistic(margins(params, heads, drawn)))
    return trajectory(loss, zero(1), tied(optimizer("gd", 1.0), heads[None]), STEPS)


def written_out(heads: int):
    loss = lambda params: empirical_risk(params, plain)
    return jax.jit(lambda start: trajectory(loss, start, optimizer("gd", 1.0), STEPS))


one, million = jnp.asarray(1.0), jnp.asarray(1e6)
first, second = medians((tied_curve, one), (tied_curve, million), rounds=4)
print(f"T = 10, d = 4, n = 100, {STEPS} GD steps, float32; medians of 12 in alternating blocks")
print(f"tied, H = 1: {first:.4f} s   H = 10^6: {second:.4f} s   ratio {second / first:.3f}")
print(f"{'H':>5} {'written out':>12} {'tied':>8} {'ratio':>7} {'difference':>11}")
for heads in (4, 16, 64):
    full, start, count = written_out(heads), zero(heads), jnp.asarray(float(heads))
    slow, fast = medians((full, start), (tied_curve, count), rounds=1)
    apart = jnp.max(jnp.abs(full(start)["U"][:, :1] - tied_curve(count)["U"]))
    print(f"{heads:>5} {slow:>12.4f} {fast:>8.4f} {slow / fast:>7.1f} {float(apart):>11.1e}")
