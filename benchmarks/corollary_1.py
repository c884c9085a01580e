"""Corollary 1 (1) to (3) at T = 10, d = 4, n = 100: ratios and residuals, by three computations.

The statement's own (`Curvature` on the module's loss, enclosed by inertia counts); `jax.hessian` of
a plain function where the matrix fits; SciPy's `eigsh` on a product of the Hessian with a vector
that is written out in NumPy. The second and the third share no code with the library.

    python benchmarks/corollary_1.py --heads 1 16 256 1024
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from scipy.sparse.linalg import LinearOperator, eigsh

from jaxbounds.claims.statements import Size
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.statements.common import token_radius
from jaxbounds.multihead.statements.loss_bounds import (
    convexity_sides,
    gradient_sides,
    smoothness_sides,
)
from jaxbounds.multihead.statements.paper_losses import DM1, measured

DENSE = 1000
"""Parameters up to which `jax.hessian` is formed whole: 8 MB; more take its square in memory."""


def plain_hessian(U: np.ndarray, W: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The Hessian of the loss at (U, W), by `jax.hessian` of twelve lines."""
    heads = len(U)

    def loss(flat: jax.Array) -> jax.Array:
        out, inner = flat[: U.size].reshape(U.shape), flat[U.size :].reshape(W.shape)
        scores = jnp.einsum("nti,hij,nsj->nhts", X, inner, X)
        attended = jnp.einsum("nhts,nsi->nhti", jax.nn.softmax(scores, axis=-1), X)
        outputs = jnp.einsum("hti,nhti->n", out, attended) / heads**0.5
        return jnp.mean(jnp.log1p(jnp.exp(-y * outputs)))

    return np.asarray(jax.hessian(loss)(jnp.concatenate([U.ravel(), W.ravel()])))


class ByHand:
    """Hessian-vector products of the loss in NumPy: second derivatives of softmax written out."""

    def __init__(self, U: np.ndarray, W: np.ndarray, X: np.ndarray, y: np.ndarray) -> None:
        self.U, self.W, self.X, self.root = U, W, X, len(U) ** 0.5
        scores = np.einsum("nti,hij,nsj->hnts", X, W, X, optimize=True)
        scores -= scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores)
        self.A = weights / weights.sum(axis=-1, keepdims=True)
        self.V = np.einsum("hti,nsi->hnts", U, X, optimize=True)  # u_t . x_s
        self.C = self.V - (self.A * self.V).sum(axis=-1, keepdims=True)
        self.mean = self.A @ X
        margin = y * np.einsum("hti,hnti->n", U, self.mean, optimize=True) / self.root
        slope = -1 / (1 + np.exp(margin))
        self.first, self.second = y * slope / len(y), -slope * (1 + slope) / len(y)
        self.size = U.size + W.size

    def gradient(self) -> np.ndarray:
        """The gradient, U then W."""
        outer = np.einsum("n,hnti->hti", self.first, self.mean) / self.root
        inner = self._inner(self.A * self.C, self.first)
        return np.concatenate([outer.ravel(), inner.ravel()])

    def _inner(self, of_scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """sum_n w_n sum_ts G_nts x_t x_s^T / sqrt(H)."""
        pulled = np.einsum("n,hnts,nsj->hntj", weights, of_scores, self.X, optimize=True)
        return np.einsum("nti,hntj->hij", self.X, pulled, optimize=True) / self.root

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        """Hess L times a vector."""
        v = np.ravel(vector)
        dU, dW = v[: self.U.size].reshape(self.U.shape), v[self.U.size :].reshape(self.W.shape)
        B = np.einsum("nti,hij,nsj->hnts", self.X, dW, self.X, optimize=True)
        mean_B = (self.A * B).sum(axis=-1, keepdims=True)
        dA = self.A * (B - mean_B)
        dV = np.einsum("hti,nsi->hnts", dU, self.X, optimize=True)
        # d of A (V - mean V): A is moved, V is moved, and so is the mean of V.
        moved = (dA * self.V).sum(axis=-1, keepdims=True) + (self.A * dV).sum(-1, keepdims=True)
        dG = dA * self.C + self.A * (dV - moved)
        dmean = dA @ self.X
        along = np.einsum("hti,hnti->n", dU, self.mean, optimize=True)
        along = (along + (self.A * self.C * B).sum(axis=(0, 2, 3))) / self.root
        pull = self.second * along
        outer = np.einsum("n,hnti->hti", pull, self.mean) + np.einsum(
            "n,hnti->hti", self.first, dmean
        )
        inner = self._inner(self.A * self.C, pull) + self._inner(dG, self.first)
        return np.concatenate([(outer / self.root).ravel(), inner.ravel()])


def point(heads: int, data: dict, steps: int = 40) -> dict[str, np.ndarray]:
    """A point of a short run of GD from a random start with every head apart."""
    rng = np.random.default_rng(0)
    _, T, d = data["X"].shape
    params = {"U": rng.normal(size=(heads, T, d)) / T, "W": rng.normal(size=(heads, d, d)) / d}
    for _ in range(steps if heads < 100 else 4):
        slope = ByHand(params["U"], params["W"], data["X"], data["y"]).gradient()
        split = params["U"].size
        step = 0.1 * heads**0.5
        params = {
            "U": params["U"] - step * slope[:split].reshape(params["U"].shape),
            "W": params["W"] - step * slope[split:].reshape(params["W"].shape),
        }
    return params


def main(heads: tuple[int, ...] = (1, 16, 256, 1024)) -> None:
    """Print both ends of the Hessian, by three computations, and the ratios of Corollary 1."""
    from jaxbounds.multihead.statements.instances import POPULATIONS

    for H in heads:
        size = Size(DM1 | {"H": H})
        with enable_x64(True):
            data = jax.tree.map(np.asarray, POPULATIONS["DM1"](jax.random.key(0), size))
            params = point(H, data)
            given = jax.tree.map(jnp.asarray, (params, data))
            began = time.perf_counter()
            ends, loss, slope, bracket = jax.block_until_ready(measured(*given, size))
            ours = time.perf_counter() - began
            by_hand = ByHand(params["U"], params["W"], data["X"], data["y"].astype(float))
            operator = LinearOperator((by_hand.size,) * 2, matvec=by_hand, dtype=np.float64)
            began = time.perf_counter()
            values = eigsh(operator, k=2, which="BE", return_eigenvectors=False, tol=1e-9)
            other = time.perf_counter() - began
            gradient = float(np.linalg.norm(by_hand.gradient()))
            radius = token_radius({"X": given[1]["X"]})
            about = given[0], jnp.ones(H), radius, empirical_risk(*given)
            one = gradient_sides(*about, size["T"])
            two, three = smoothness_sides(*about, size), convexity_sides(*about, size)
            print(f"H = {H}, P = {by_hand.size}: L = {float(loss):.6f}")
            least, greatest = float(ends.minimum), float(ends.maximum)
            print(f"  Curvature     {least:+.12e} {greatest:+.12e}  residuals "
                  f"{float(ends.residual_minimum):.1e} {float(ends.residual_maximum):.1e}  "
                  f"({ours:.1f} s)")  # fmt: skip
            off = [
                float(jnp.max(jnp.abs(found - value)))
                for found, value in (
                    (bracket.bracket_minimum, least),
                    (bracket.bracket_maximum, greatest),
                )
            ]
            print(f"  inertia       {float(bracket.minimum):+.12e} {float(bracket.maximum):+.12e}  "
                  f"certified {bool(bracket.certified)}, from Curvature at most {off[0]:.1e} "
                  f"{off[1]:.1e}")  # fmt: skip
            print(f"  eigsh by hand {values[0]:+.12e} {values[-1]:+.12e}  ({other:.1f} s)")
            if by_hand.size <= DENSE:
                dense = plain_hessian(params["U"], params["W"], data["X"], data["y"].astype(float))
                plain = np.linalg.eigvalsh(dense)
                print(f"  jax.hessian   {plain[0]:+.12e} {plain[-1]:+.12e}")
            norm = max(abs(least), abs(greatest))
            print(f"  ||grad L||    {float(slope):.12e}, by hand {gradient:.12e}")
            for part, left, right in (
                ("(1)", float(slope), one), ("(2)", norm, two), ("(3)", -least, three)
            ):  # fmt: skip
                ratios = {n: f"{left / float(r):.4g}" for n, r in right.items() if n != "control"}
                print(f"  ratio {part} {ratios}", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
