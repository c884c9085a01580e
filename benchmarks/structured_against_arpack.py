"""Claim: from some number of heads on it beats ARPACK on Hessian-vector products of the same loss.

Run: python benchmarks/structured_against_arpack.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from problem import flat_risk, flatten, problem
from scipy.sparse.linalg import LinearOperator, eigsh
from timing import medians

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.calculus import loss_hessian_extremes
from jaxbounds.networks.curvature import hessian_vector_product

with enable_x64(True):
    print("T = 10, d = 4, n = 100, float64; ARPACK at its default tolerance, both ends")
    print(f"{'H':>4} {'ARPACK':>9} {'structured':>11} {'ratio':>7} {'difference':>11}")
    for heads in (4, 16, 64):
        params, data = problem(heads)
        point = flatten(params)
        product = jax.jit(hessian_vector_product(flat_risk(heads, data), point))
        apply = lambda v, product=product: np.asarray(product(jnp.asarray(v.ravel(), float)))
        operator = LinearOperator((point.size, point.size), matvec=apply, dtype=np.float64)
        start = np.random.default_rng(0).normal(size=point.size)
        arpack = lambda op=operator, v0=start: eigsh(
            op, k=2, which="BE", v0=v0, return_eigenvectors=False
        )
        structured = jax.jit(lambda params, data=data: loss_hessian_extremes(params, data))
        slow, fast = medians((arpack,), (structured, params), rounds=1)
        values, ends = arpack(), structured(params)
        gap = max(abs(float(ends.minimum) - values[0]), abs(float(ends.maximum) - values[-1]))
        print(f"{heads:>4} {slow:>9.4f} {fast:>11.4f} {slow / fast:>7.1f} {gap:>11.1e}")
