"""Claim: the cost is linear in the number of heads, to sizes where no dense matrix can exist.

Run: python benchmarks/structured_growth.py
"""

import jax
from problem import problem
from timing import medians

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.calculus import loss_hessian_extremes

with enable_x64(True):
    print("T = 10, d = 4, n = 100, float64")
    print(f"{'H':>5} {'parameters':>11} {'dense GiB':>10} {'seconds':>8} {'us per head':>12}")
    for heads in (16, 64, 256, 1024, 4096):
        params, data = problem(heads)
        structured = jax.jit(lambda params, data=data: loss_hessian_extremes(params, data))
        (seconds,) = medians((structured, params), rounds=1)
        assert structured(params).certified
        size = 56 * heads
        print(
            f"{heads:>5} {size:>11} {size**2 * 8 / 2**30:>10.2f} {seconds:>8.3f} "
            f"{1e6 * seconds / heads:>12.0f}"
        )
