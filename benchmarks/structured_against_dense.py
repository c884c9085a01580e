"""Claim: certified extreme eigenvalues cost a fraction of eigvalsh(jax.hessian(loss)).

Run: python benchmarks/structured_against_dense.py
"""

import jax
import jax.numpy as jnp
from problem import flat_risk, flatten, problem
from timing import medians

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.calculus import loss_hessian_extremes

with enable_x64(True):
    print("T = 10, d = 4, n = 100, float64; seconds are medians of 6 in two blocks")
    print(f"{'H':>4} {'size':>6} {'dense':>9} {'structured':>11} {'ratio':>7} {'error':>9}")
    for heads in (1, 4, 16):
        params, data = problem(heads)
        risk = flat_risk(heads, data)
        dense = jax.jit(lambda x, risk=risk: jnp.linalg.eigvalsh(jax.hessian(risk)(x)))
        structured = jax.jit(lambda params, data=data: loss_hessian_extremes(params, data))
        point = flatten(params)
        slow, fast = medians((dense, point), (structured, params))
        values, ends = dense(point), structured(params)
        assert ends.certified
        error = max(abs(ends.minimum - values[0]), abs(ends.maximum - values[-1]))
        error = float(error / jnp.max(jnp.abs(values)))
        row = f"{heads:>4} {point.size:>6} {slow:>9.4f} {fast:>11.4f}"
        print(f"{row} {slow / fast:>7.1f} {error:>9.1e}")
