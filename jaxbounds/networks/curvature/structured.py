"""Certify extreme eigenvalues of block-diagonal plus rank-n matrices, in time linear in the blocks.

Let M = D + Z Z^T with D = diag(lambda), where Z has n columns. Sylvester's law of inertia, applied
to [[D - s, Z], [Z^T, -I]], counts eigenvalues:

    #{eigenvalues of M below s} = #{lambda < s} - #{negative eigenvalues of I + Z^T (D - s)^-1 Z}.

The matrix I + Z^T (D - s)^-1 Z is n x n, whatever the size of D is. Eigenvalue counts at two shifts
s, below and above a candidate, prove that the least (greatest) eigenvalue lies between the two
shifts. Lanczos on the inverse (M - s)^-1 finds candidates; the Woodbury identity computes the
products with (M - s)^-1. If the counts of eigenvalues do not certify a candidate, the search
bisects by counting, which always ends.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.lanczos import lanczos_extremes


class CertifiedExtremes(NamedTuple):
    """The least and the greatest eigenvalue, each inside an interval that an inertia count proves.

    Attributes:
        minimum: the least eigenvalue of the matrix.
        maximum: the greatest eigenvalue of the matrix.
        bracket_minimum: an interval (low, high) with no eigenvalue below `low` and at least one
            eigenvalue below `high`.
        bracket_maximum: an interval (low, high) with at least one eigenvalue above `low` and no
            eigenvalue above `high`.
        certified: whether both intervals are proved (up to rounding in the counts) and no wider
            than the caller wanted.
        bisections: the number of eigenvalue counts that the bisection needed; 0 if Lanczos
            candidates were certified at once.
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
    """Return the number of eigenvalues of diag(poles) + factor factor^T below `shift`."""
    gap = poles - shift
    # A pole that equals the shift moves aside by one unit in the last place.
    tiny = jnp.finfo(poles.dtype).eps * jnp.maximum(jnp.max(jnp.abs(poles)), 1e-300)
    gap = jnp.where(gap == 0, tiny, gap)
    capacitance = jnp.eye(factor.shape[1], dtype=poles.dtype) + factor.T @ (factor / gap[:, None])
    negative = jnp.sum((jnp.linalg.eigvalsh(capacitance) < 0).astype(jnp.int32))
    return jnp.sum((gap < 0).astype(jnp.int32)) - negative


def _nearest(
    poles: Float[Array, " P"],
    factor: Float[Array, "P n"],
    shift: Float[Array, ""],
    iterations: int,
    key: Array,
) -> Float[Array, ""]:
    gap = poles - shift
    capacitance = jnp.eye(factor.shape[1], dtype=poles.dtype) + factor.T @ (factor / gap[:, None])
    # The inverse is explicit: one product for each vector is faster than two triangular solves.
    # An inaccurate candidate costs time, never correctness.
    solve = jnp.linalg.inv(capacitance)

    def inverse(vector: Array) -> Array:
        direct = vector / gap
        return direct - (factor @ (solve @ (factor.T @ direct))) / gap

    ends = lanczos_extremes(inverse, poles.size, key, iterations=iterations, dtype=poles.dtype)
    larger = jnp.abs(ends.maximum) > jnp.abs(ends.minimum)
    return shift + 1.0 / jnp.where(larger, ends.maximum, ends.minimum)


class _Search(NamedTuple):
    """A search for one end of the spectrum, between the shifts `outer` and `inner`.

    Attributes:
        outer: a shift outside of the spectrum: no eigenvalue lies beyond it, on the side of the
            wanted end.
        inner: a shift inside of the spectrum: at least one eigenvalue lies between `inner` and
            `outer`.
        known: two booleans: whether a count of eigenvalues has confirmed `outer`, and whether a
            count has confirmed `inner`.
    """

    outer: Array | float
    inner: Array | float
    known: Array
    counts: Array
    halvings: Array


def _bracket(
    passed: Callable[[Array], Array],
    outer: Array | float,
    inner: Array | float,
    candidate: Array,
    width: Array | float,
    steps: int = 100,
) -> tuple[Array, Array, Array]:
    """Shrink the interval from `outer` to `inner` around one end of the matrix's spectrum.

    `passed(s)` tells whether at least one eigenvalue lies between s and `outer`; it is false at
    `outer` and true at `inner`. The search evaluates `passed` on both sides of the candidate, then
    at the bracket's midpoints, and last at an end that no evaluation has confirmed. The code calls
    `passed` on one line, in one loop, because JAX compiles each further call for seconds.
    """
    towards = jnp.sign(inner - outer) * width / 2
    tried = jnp.stack([candidate - towards, candidate + towards])
    is_wide = lambda state: jnp.abs(state.inner - state.outer) > 1.01 * width

    def unfinished(state: _Search) -> Array:
        going = (state.halvings < steps) & (state.counts < 2 * steps + 4)
        return (is_wide(state) | ~jnp.all(state.known)) & going

    def ask(state: _Search) -> _Search:
        outer, inner, known, counts, _ = state
        at = tried[jnp.minimum(counts, 1)]
        new = (counts < 2) & ((at - outer) * (inner - at) > 0)
        at = jnp.where(new, at, (outer + inner) / 2)
        at = jnp.where(is_wide(state), at, jnp.where(known[0], inner, outer))
        beyond = passed(at)
        return _Search(
            jnp.where(beyond, outer, at),
            jnp.where(beyond, at, inner),
            known | jnp.stack([~beyond, beyond]),
            counts + 1,
            state.halvings + (is_wide(state) & ~new).astype(jnp.int32),
        )

    none = jnp.int32(0)
    start = _Search(outer, inner, jnp.zeros(2, bool), none, none)
    found = jax.lax.while_loop(unfinished, ask, start)
    ends = jnp.sort(jnp.stack([found.outer, found.inner]))
    return ends, jnp.all(found.known) & ~is_wide(found), found.halvings


def structured_extremes(
    blocks: Float[Array, "H p p"],
    factor: Float[Array, "H p n"],
    /,
    *,
    relative: float = 1e-9,
    iterations: int = 40,
    key: jax.Array | None = None,
) -> CertifiedExtremes:
    """Return both extreme eigenvalues of blockdiag(blocks) + F F^T, with F the rows of `factor`.

    For H blocks of size p and n columns of F, the function solves H eigenproblems of size p and
    about twelve of size n. The function also computes `2 * iterations` products of H p n operations
    each, and stores about `4 * iterations * H * p` numbers. Time and memory are linear in the
    number H of blocks.

    Args:
        blocks: the H symmetric diagonal blocks, each of size (p, p).
        factor: the rows of the (H p, n) matrix F, grouped by block.
        relative: the wanted width of a bracket, relative to the eigenvalue. A bracket is never
            narrower than 128 eps times the spectral norm, because rounding errors make eigenvalue
            counts unreliable at closer shifts.
        iterations: the number of Lanczos steps for each candidate of an eigenvalue.
        key: the random key that draws the start vector of Lanczos; `jax.random.key(0)` unless
            given.

    Raises:
        Refused: if the shapes of `blocks` and `factor` do not match.
    """
    import chex  # slow to import

    chex.assert_rank([blocks, factor], [3, 3])
    heads, p, _ = factor.shape
    if blocks.shape != (heads, p, p):
        raise Refused(
            f"blocks must have shape (H, p, p) = {(heads, p, p)} to match factor's (H, p, n) = "
            f"{factor.shape}, got {blocks.shape}. Try blocks of shape (H, p, p) with the H and p "
            "of factor"
        )
    key = jax.random.key(0) if key is None else key
    return _structured(blocks, factor, key, relative=relative, iterations=iterations)


@partial(jax.jit, static_argnames=("relative", "iterations"))
def _structured(
    blocks: Float[Array, "H p p"],
    factor: Float[Array, "H p n"],
    key: Array,
    *,
    relative: float,
    iterations: int,
) -> CertifiedExtremes:
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
    # The margin keeps shifts outside the spectrum despite rounding, and M - s well conditioned.
    margin = 1e-3 * (high - low) + 4 * floor

    def end(ends: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        outer, inner = ends
        found = _nearest(poles, factor, outer, iterations, key)
        found = jnp.clip(jnp.where(jnp.isfinite(found), found, outer), low, high)
        width = jnp.maximum(relative * jnp.abs(found), floor)
        upward = outer < inner

        def passed(shift: Array) -> Array:
            below = count_below(poles, factor, shift)
            return jnp.where(upward, below > 0, below < size)

        return _bracket(passed, outer, inner, found, width)

    # A loop over both ends compiles the counts and Lanczos once.
    outside = jnp.stack([low - margin, high + margin])
    brackets, proved, halvings = jax.lax.map(end, (outside, outside[::-1]))
    return CertifiedExtremes(
        minimum=jnp.mean(brackets[0]),
        maximum=jnp.mean(brackets[1]),
        bracket_minimum=brackets[0],
        bracket_maximum=brackets[1],
        certified=jnp.all(proved),
        bisections=jnp.sum(halvings),
    )
