"""Claim: both ends are right on operators where other Lanczos codes are not, residuals in hand.

matfree 0.6 (`eigh_partial`), scipy (ARPACK) and this library on the same products, 30 at most for
the first and the last; errors of both ends beside the spectral radius.

Run: python benchmarks/curvature_operators.py
"""

import jax
import jax.numpy as jnp
import numpy as np
from matfree import decomp, eig
from scipy.sparse.linalg import LinearOperator, eigsh

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.networks.curvature import lanczos_extremes

OPERATORS = {
    "identity with two 3s": np.r_[np.ones(198), 3.0, 3],
    "3I minus rank 2": np.r_[3 * np.ones(198), 1.0, -2],
    "0": np.zeros(200),
    "2I": 2 * np.ones(200),
    "clustered": np.r_[100.0, 50, 20, 1, np.linspace(0, 0.999, 196)],
    "rank 3": np.r_[5.0, -2, 1, np.zeros(197)],
    "rank 10": np.r_[np.arange(1.0, 11), np.zeros(190)],
    "rank 190": np.r_[np.arange(-95.0, 95), np.zeros(10)],
}
PRODUCTS = 150


def wrong(ends, values) -> float:
    """The larger error of both ends, in units of the spectral radius (of one for 0)."""
    radius = max(np.abs(values).max(), 1e-300) if values.any() else 1.0
    found = np.asarray(ends, float)
    return float(np.max(np.abs(found - [values.min(), values.max()])) / radius)


def main() -> None:
    for wide in (False, True):
        with enable_x64(wide):
            kind = "float64" if wide else "float32"
            print(f"{kind}, n = 200, {PRODUCTS} products at most: error of the worse end")
            print(
                f"{'operator':<22}{'ours':>10}{'flags':>8}{'products':>10}{'matfree':>10}{'scipy':>10}"
            )
            for name, values in OPERATORS.items():
                n = len(values)
                basis = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
                matrix = jnp.asarray(basis * values @ basis.T, kind)
                apply = lambda v, matrix=matrix: matrix @ v
                ours = jax.jit(
                    lambda key, apply=apply, n=n, kind=kind: lanczos_extremes(
                        apply, n, key, iterations=PRODUCTS, dtype=kind
                    )
                )(jax.random.key(0))
                start = jax.random.normal(jax.random.key(0), (n,), kind)
                other, _ = eig.eigh_partial(decomp.tridiag_sym(PRODUCTS))(apply, start)
                operator = LinearOperator(
                    (n, n), matvec=lambda v, a=apply: np.asarray(a(v)), dtype=kind
                )
                try:
                    arpack = eigsh(operator, k=2, which="BE", return_eigenvectors=False)
                    arpack = wrong([arpack.min(), arpack.max()], values)
                except Exception as problem:
                    arpack = type(problem).__name__[:9]
                mine = wrong([ours.minimum, ours.maximum], values)
                flags = "".join(
                    "ny"[int(f)] for f in (ours.converged_minimum, ours.converged_maximum)
                )
                theirs = wrong([jnp.min(other), jnp.max(other)], values)
                last = arpack if isinstance(arpack, str) else f"{arpack:.1e}"
                print(
                    f"{name:<22}{mine:>10.1e}{flags:>8}{int(ours.iterations):>10}{theirs:>10.1e}{last:>10}"
                )


if __name__ == "__main__":
    main()
