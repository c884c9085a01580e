"""Certified extreme eigenvalues of "block-diagonal plus rank n" matrices, linear in the blocks.

For M = D + Z Z^T with D = diag(lambda) and Z of n columns, Sylvester's law of inertia applied to
[[D - s, Z], [Z^T, -I]] gives

    #{eigenvalues of M below s} = #{lambda < s} - #{negative eigenvalues of I + Z^T (D - s)^-1 Z},

an n x n problem whatever the size of D. Two such counts around a candidate prove that the least
(greatest) eigenvalue lies between them. Candidates come from shift-inverted Lanczos, where
(M - s)^-1 is applied by the Woodbury identity; if one cannot be certified, bisection on the count
takes over, which always ends.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.lanczos import lanczos_extremes


class CertifiedExtremes(NamedTuple):
    """Both ends of a spectrum, each inside a bracket that an inertia count proves.

    Attributes:
        minimum: the least eigenvalue.
        maximum: the greatest eigenvalue.
        bracket_minimum: (low, high) with no eigenvalue below `low` and one below `high`.
        bracket_maximum: (low, high) with one eigenvalue above `low` and none above `high`.
        certified: both brackets are proved (up to rounding in the counts) and no wider than asked.
        bisections: counts spent on bisection; 0 when Lanczos candidates were certified at once.
    """

    minimum: Float[Array, ""]
    maximum: Float[Array, ""]
    bracket_minimum: Float[Array, "2"]
    bracket_maximum: Float[Array, "2"]
    certified: Bool[Array, ""]
    bisections: Int[Array, ""]


def count_below(
    poles: Float[Array, " P"], factor: Float[Array, "P n"], shift: Float[Array, ""], /
) -> Int[Array, ""]:
    """How many eigenvalues of diag(poles) + factor factor^T lie below `shift`."""
    gap = poles - shift
    # A pole at the shift itself is moved aside by one unit in the last place.
    tiny = jnp.finfo(poles.dtype).eps * jnp.maximum(jnp.max(jnp.abs(poles)), 1e-300)
    gap = jnp.where(gap == 0, tiny, gap)
    capacitance = jnp.eye(factor.shape[1], dtype=poles.dtype) + factor.T @ (factor / gap[:, None])
    negative = jnp.sum((jnp.linalg.eigvalsh(capacitance) < 0).astype(jnp.int32))
    return jnp.sum((gap < 0).astype(jnp.int32)) - negative


def _nearest(poles, factor, shift, iterations, key):
    """The eigenvalue nearest to a shift outside the spectrum, by shift-inverted Lanczos."""
    gap = poles - shift
    capacitance = jnp.eye(factor.shape[1], dtype=poles.dtype) + factor.T @ (factor / gap[:, None])
    # Explicit, since two triangular solves for each of many vectors are slower than one product;
    # an inaccurate candidate costs time, never correctness.
    solve = jnp.linalg.inv(capacitance)

    def inverse(vector):
        direct = vector / gap
        return direct - (factor @ (solve @ (factor.T @ direct))) / gap

    ends = lanczos_extremes(inverse, poles.size, key, iterations=iterations, dtype=poles.dtype)
    larger = jnp.abs(ends.maximum) > jnp.abs(ends.minimum)
    return shift + 1.0 / jnp.where(larger, ends.maximum, ends.minimum)


def _bracket(passed, outer, inner, candidate, width, steps=100):
    """A bracket of one end of the spectrum: `passed` is false at outer and true at inner.

    `passed(s)` says whether s lies beyond at least one eigenvalue as seen from `outer`. The
    candidate is tried first; where it is off, either count still moves one end.
    """
    towards = jnp.sign(inner - outer) * width / 2
    before, after = candidate - towards, candidate + towards
    passed_before, passed_after = passed(before), passed(after)
    outer = jnp.where(passed_before, outer, jnp.where(passed_after, before, after))
    inner = jnp.where(passed_before, before, jnp.where(passed_after, after, inner))

    def unfinished(state):
        outer, inner, used = state
        return (jnp.abs(inner - outer) > 1.01 * width) & (used < steps)

    def halve(state):
        outer, inner, used = state
        middle = (outer + inner) / 2
        beyond = passed(middle)
        return jnp.where(beyond, outer, middle), jnp.where(beyond, middle, inner), used + 1

    outer, inner, used = jax.lax.while_loop(unfinished, halve, (outer, inner, jnp.int32(0)))
    proved = ~passed(outer) & passed(inner) & (jnp.abs(inner - outer) <= 1.01 * width)
    return jnp.sort(jnp.stack([outer, inner])), proved, used


def structured_extremes(
    blocks: Float[Array, "H p p"],
    factor: Float[Array, "H p n"],
    /,
    *,
    relative: float = 1e-9,
    iterations: int = 40,
    key: jax.Array | None = None,
) -> CertifiedExtremes:
    """Extreme eigenvalues of blockdiag(blocks) + F F^T, F the (H p, n) matrix of `factor`.

    Cost: H eigenproblems of size p, then `2 * iterations` products of H p n and a dozen n x n
    eigenproblems; memory about `4 * iterations * H * p` numbers. Linear in H.

    Args:
        blocks: the symmetric diagonal blocks.
        factor: the rows of F, by block.
        relative: width of the brackets, as a multiple of the eigenvalue; never narrower than 128
            eps times the spectral norm, which is what rounding leaves of a count.
        iterations: of Lanczos for each candidate.
        key: starts Lanczos; `jax.random.key(0)` unless given.

    Raises:
        Refused: if the shapes do not match.
    """
    import chex  # slow to import

    chex.assert_rank([blocks, factor], [3, 3])
    heads, p, _ = factor.shape
    if blocks.shape != (heads, p, p):
        raise Refused(
            f"blocks must have shape (H, p, p) = {(heads, p, p)} to match factor's (H, p, n) = "
            f"{factor.shape}, got {blocks.shape}"
        )
    key = jax.random.key(0) if key is None else key
    return _structured(blocks, factor, key, relative=relative, iterations=iterations)


@partial(jax.jit, static_argnames=("relative", "iterations"))
def _structured(blocks, factor, key, *, relative, iterations):
    heads, p, n = factor.shape
    size = heads * p
    poles, rotation = jnp.linalg.eigh(blocks)
    poles = poles.reshape(size)
    factor = jnp.einsum("hpq,hpn->hqn", rotation, factor).reshape(size, n)
    if n > size:  # F F^T = R^T R with the square R of F^T = Q R
        factor = jnp.linalg.qr(factor.T, mode="r").T
    lift = jnp.linalg.eigvalsh(factor.T @ factor)[-1]
    low, high = jnp.min(poles), jnp.max(poles) + lift
    norm = jnp.maximum(jnp.abs(low), jnp.abs(high))
    floor = 128 * jnp.finfo(poles.dtype).eps * norm
    # Outside the spectrum whatever the rounding, and far enough for the inverse to be benign.
    margin = 1e-3 * (high - low) + 4 * floor

    def end(passed, outer, inner, shift):
        found = _nearest(poles, factor, shift, iterations, key)
        found = jnp.clip(jnp.where(jnp.isfinite(found), found, outer), low, high)
        width = jnp.maximum(relative * jnp.abs(found), floor)
        return _bracket(passed, outer, inner, found, width)

    below = low - margin, high + margin
    above = high + margin, low - margin
    least = end(lambda s: count_below(poles, factor, s) > 0, *below, below[0])
    greatest = end(lambda s: count_below(poles, factor, s) < size, *above, above[0])
    return CertifiedExtremes(
        minimum=jnp.mean(least[0]),
        maximum=jnp.mean(greatest[0]),
        bracket_minimum=least[0],
        bracket_maximum=greatest[0],
        certified=least[1] & greatest[1],
        bisections=least[2] + greatest[2],
    )
