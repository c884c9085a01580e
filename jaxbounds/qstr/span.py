"""Theorem 6's least risk, computed exactly, and a certificate for your own data and network.

The tokens are x ~ N(0, I_{Nd}) and the label is y = <u, x_{t_1}> with uniform t_1. The theorem is
about predictors f(t, W x) whose first layer W has its rows in a subspace of R^{Nd}. No such
predictor has a smaller risk than E[y | t, P x], where P projects onto the subspace. P_kk is the d x
d diagonal block of P for token k.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.networks.own_network import Reason
from jaxbounds.qstr.own_network import beside, first_layer, weights_of


def span_rows(
    samples: Float[Array, "n Nd"], /, *, tolerance: float | None = None
) -> tuple[Float[Array, "k Nd"], Int[Array, ""]]:
    """Return orthonormal rows that span the samples, and their rank.

    The returned array has min(n, Nd) rows; the rows beyond the rank are zero.

    Args:
        samples: the flattened prompts, as rows; duplicates change nothing.
        tolerance: the relative tolerance: singular values below `tolerance` times the largest
            singular value count as zero. The default is max(n, Nd) times the rounding unit.
    """
    singular, rows = jnp.linalg.svd(samples, full_matrices=False)[1:]
    if tolerance is None:
        tolerance = max(samples.shape) * float(jnp.finfo(samples.dtype).eps)
    kept = singular > tolerance * jnp.max(singular, initial=0.0)
    return rows * kept[:, None].astype(rows.dtype), jnp.sum(kept)


def diagonal_block_mean(basis: Float[Array, "r Nd"], /, *, d: int) -> Float[Array, "d d"]:
    """Return (1/N) sum_k P_kk, the mean of the diagonal d x d blocks of P = basis^T basis.

    Raises:
        Refused: if Nd is not a multiple of d.
    """
    if basis.shape[1] % d:
        raise Refused(
            f"basis.shape={basis.shape}, expected rows that split into tokens of R^d with d={d}."
            " Try the d of these prompts"
        )
    blocks = basis.reshape(basis.shape[0], basis.shape[1] // d, d)
    return jnp.einsum("rka,rkb->ab", blocks, blocks) / blocks.shape[1]


def direction_risk(basis: Float[Array, "r Nd"], u: Float[Array, "d"], /) -> Float[Array, ""]:
    """Return the exact least risk for the direction u: |u|^2 - u^T ((1/N) sum_k P_kk) u."""
    return u @ u - u @ diagonal_block_mean(basis, d=u.shape[0]) @ u


def extreme_risks(
    basis: Float[Array, "r Nd"], /, *, d: int
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return two least risks: for the worst and for the easiest unit direction u.

    The two risks are 1 - lambda for the smallest and the largest eigenvalue lambda of
    `diagonal_block_mean`. The worst direction's risk is at least the average over directions, 1 -
    rank/(N d), which is at least Theorem 6's bound 1 - n/(N d).
    """
    spectrum = jnp.linalg.eigvalsh(diagonal_block_mean(basis, d=d))
    return 1 - spectrum[0], 1 - spectrum[-1]


def best_prediction(
    basis: Float[Array, "r Nd"],
    u: Float[Array, "d"],
    x: Float[Array, "*batch N d"],
    /,
) -> Float[Array, "*batch N"]:
    """Return the optimal predictor E[<u, x_k> | P x] = <u, (P x)_k>, with risk `direction_risk`."""
    flat = x.reshape(*x.shape[:-2], -1)
    seen = jnp.einsum("...n,rn,rm->...m", flat, basis, basis).reshape(x.shape)
    return jnp.einsum("...nd,d->...n", seen, u)


class SpanCertificate(NamedTuple):
    """The least risk of predictors f(t, W x) if the rows of W lie in the samples' span.

    Attributes:
        average: the least risk, averaged over uniform unit directions u: 1 - rank/(N d).
        worst: the least risk for the worst unit vector u: 1 - lambda_min((1/N) sum_k P_kk), at
            least `average`.
        easiest: the least risk for the easiest unit vector u: 1 - lambda_max((1/N) sum_k P_kk); it
            may be far below `average`.
        direction: the least risk for the caller's u, which is |u|^2 times the least risk for
            u / |u|; NaN if the caller gave no u.
        printed: Theorem 6's printed bound 1 - n/(N d), which has the number n of samples in place
            of the rank.
        rank: the rank of the matrix of samples.
        vacuous: whether the bound is trivial, because `average` is 0.
        reason: a text: for which networks the certificate holds, or why it is vacuous.
    """

    average: float
    worst: float
    easiest: float
    direction: float
    printed: float
    rank: int
    vacuous: bool
    reason: str


@jax.jit
def _measured(samples: Float[Array, "n Nd"], u: Float[Array, "d"]) -> tuple[Array, ...]:
    rows, rank = span_rows(samples)
    return rank, direction_risk(rows, u), *extreme_risks(rows, d=u.shape[0])


def _checked(x: Any, u: Any) -> tuple[np.ndarray, np.ndarray | None]:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 3 or 0 in x.shape[1:]:
        raise Refused(
            f"x.shape={x.shape}, expected an array (n, N, d) of tokens. Try x[None] for a single"
            " prompt"
        )
    d = x.shape[2]
    if u is not None:
        u = np.asarray(u, dtype=np.float64)
        if u.shape != (d,) or not np.all(np.isfinite(u)):
            raise Refused(
                f"u={u}, expected a finite vector of R^d with d={d}. Try a vector of the tokens'"
                " dimension"
            )
    if not np.all(np.isfinite(x)):
        raise Refused(
            f"prompts of x.shape={x.shape} hold NaN or infinity. Try to remove the prompts"
            " concerned"
        )
    return x, u


def feedforward_certificate(x: ArrayLike, /, u: ArrayLike | None = None) -> SpanCertificate:
    """Bound from below the risk of networks of Definition 5 that were trained on your prompts.

    The function computes Theorem 6's bound. The theorem assumes that the tokens of test prompts are
    N(0, I), and that the rows of the first layer are in the span of the training prompts.
    Minimum-norm interpolators and stationary points with l2 regularisation have such first layers,
    for any width. AdamW's updates move the rows out of the span, so the bound does not cover
    networks trained by AdamW. The function computes ranks in float64, whatever JAX's precision
    setting is.

    Args:
        x: the training prompts (n, N, d), of any real type; repeated prompts count once.
        u: the direction u of the link in R^d, if you know it.

    Raises:
        Refused: if an array has a wrong shape, or is not finite.
    """
    x, u = _checked(x, u)
    n, N, d = x.shape
    samples = x.reshape(n, N * d) if n else np.zeros((1, N * d))
    with enable_x64(True):
        found = _measured(jnp.asarray(samples), jnp.asarray(np.zeros(d) if u is None else u))
    direction = float("nan") if u is None else float(found[1])
    rank, worst, easiest = int(found[0]), max(0.0, float(found[2])), max(0.0, float(found[3]))
    vacuous = rank >= N * d
    reason = (
        f"the {n} prompts span all of R^{N * d}: n >= N d samples determine u completely"
        if vacuous
        else "covers first layers in the span of the prompts (Definition 5); not AdamW"
    )
    return SpanCertificate(
        average=max(0.0, 1.0 - rank / (N * d)),
        worst=worst,
        easiest=easiest,
        direction=direction,
        printed=max(0.0, 1.0 - n / (N * d)),
        rank=rank,
        vacuous=vacuous,
        reason=reason,
    )


def off_span_fraction(W: Float[Array, "m Nd"], basis: Float[Array, "r Nd"], /) -> Float[Array, ""]:
    """Return |W - W P|_F^2 / |W|_F^2, the share of W outside the span; 0 for W = 0.

    Theorem 6 assumes that this share is 0.
    """
    outside, whole = W - (W @ basis.T) @ basis, jnp.sum(W**2)
    return jnp.sum(outside**2) / jnp.where(whole > 0, whole, jnp.ones_like(whole))


class Applicable(NamedTuple):
    """Theorem 6's bound for a network, or all reasons why the theorem does not apply to it.

    Attributes:
        bound: the certificate for the prompts; None if the theorem does not apply.
        first: the path of the parameter that the function identified as W; "" if it found no such
            parameter.
        off_span: the share `off_span_fraction` of W's columns for token coordinates; NaN if it was
            not computed.
        reasons: all reasons why the theorem does not apply; empty if it applies.
    """

    bound: SpanCertificate | None
    first: str
    off_span: float
    reasons: tuple[Reason, ...]


def applicable(
    model: Any,
    x: Any,
    /,
    u: Any = None,
    *,
    first: str = "",
    encoded: int | None = None,
    tolerance: float = 1e-8,
) -> Applicable:
    """Decide whether Theorem 6 bounds the risk of a trained network, and list all reasons if not.

    Theorem 6 has two conditions on the network. First, the network depends on the prompt only
    through W x. Second, the rows of W are in the span of the training prompts (Definition 5). If
    the network or the prompts do not fit, the result lists the reasons; the function raises no
    error. The function cannot check three hypotheses; check them yourself. The network has no skip
    connections, the tokens are N(0, I), and the labels are <u, x_t> with one t for all positions
    (simple-1STR).

    Args:
        model: the trained weights as a pytree: Flax linen variables, an nnx module or its state, an
            Equinox module, or nested dicts. A matrix called "kernel" has its inputs on the first
            axis, and a matrix called "weight" has its outputs on the first axis.
        x: the prompts (n, N, d) on which the model was trained.
        u: the direction of the link in R^d, if you know it.
        first: the path of W. A caller who gives this path asserts that all other layers depend on
            the prompt only through W x.
        encoded: the dimension D of an encoded token; by default d.
        tolerance: the largest accepted share of |W|_F^2 outside the span of the prompts.
    """
    reasons, weights, name, share = [], {}, "", float("nan")
    missing, fit = x is None, False
    try:
        weights = weights_of(model)
    except (TypeError, ValueError) as problem:
        reasons.append(
            Reason(f"the model is no pytree: {problem}", ("the model",), "pass the weights")
        )
    else:
        if not weights:
            change = "pass the trained weights: variables of linen, a module of nnx or Equinox"
            reasons.append(
                Reason(
                    f"a model of type {type(model).__name__} has no weights", ("the model",), change
                )
            )
    broken = [path for path, w in weights.items() if not np.isfinite(w).all()]
    if broken:
        reasons.append(Reason("some weights are not finite", (*broken,), "train again without NaN"))
    try:
        x, u = _checked(x, u)
        fit = True
    except (TypeError, ValueError) as problem:
        why = "the prompts are not given" if missing else str(problem)
        reasons.append(
            Reason(why, ("the prompts",), "pass the prompts on which the model was trained")
        )
    W = None
    if weights and fit:
        N, d = x.shape[1:]
        D = d if encoded is None else encoded
        if d > D:
            why = f"encoded={D}, but a token has {d} numbers before its encoding"
            reasons.append(Reason(why, ("encoded",), f"pass encoded={d} or more"))
        else:
            name, W, found = first_layer(weights, N * D, first=first)
            reasons += found
    if not (first and name):
        reasons += beside(weights, name, 0 if W is None else len(W))
    if W is not None and name not in broken:
        tokens = W.reshape(len(W), N, D)[:, :, :d].reshape(len(W), -1)
        with enable_x64(True):
            flat = jnp.asarray(x.reshape(-1, N * d))
            share = float(off_span_fraction(jnp.asarray(tokens), span_rows(flat)[0]))
        if share > tolerance:
            why = (
                f"{share:.2g} of the squared norm of W is outside the span of the prompts "
                "(Definition 5)"
            )
            change = "train to a stationary point with an l2 penalty in the loss (AdamW's decay is "
            change += "none), or by gradient descent from W = 0"
            reasons.append(Reason(why, (name,), change))
    bound = None if reasons else feedforward_certificate(x, u)  # the slow part comes last
    return Applicable(bound, name, share, tuple(reasons))
