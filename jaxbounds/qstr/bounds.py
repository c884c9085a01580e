"""Functions that compute the bounds and rates of Appendices A and C.2.

A function whose name ends in `_rate` sets every hidden constant and logarithm to 1, so only its
exponents are meaningful. The formulas of the other functions hide no constant.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import array_module, traced
from jaxbounds.numerics.norms import frobenius_norm, spectral_norm, vector_norm

Norm = Callable[[Array], Array]


def token_radius(*, n: int, N: int, d: int, C_x: float = 1.0) -> float:
    """Return r_x = sqrt(3 C_x e d log(nN)), which bounds all token norms with high probability."""
    return math.sqrt(3 * C_x * math.e * d * math.log(n * N))


def encoded_radius(r_x: ArrayLike, /, *, d: int, q: int) -> Array:
    """Return r_z = sqrt(r_x^2 + d (1 + 1/q)), the norm bound of encoded tokens if |x_j| <= r_x."""
    return jnp.sqrt(jnp.square(r_x) + d * (1 + 1 / q))


def _moment_order(r: Any, d: int, C_x: float) -> Any:
    return r**2 / (C_x * (jnp.exp(1.0) if traced(r) else math.e) * d)


def token_tail(r: Any, /, *, n: int, N: int, d: int, C_x: float = 1.0, checked: bool = True) -> Any:
    """Bound P(max |x_j| >= r) by n N exp(-r^2 / (2 C_x e d)), Lemma 12.

    Raises:
        Refused: if nN = 1 and r^2 < C_x e d. In this case the order r^2 / (C_x e d) of the proof's
            moment is below 1, and the bound is false. If nN >= 2 and r^2 < C_x e d, the bound
            exceeds 1, so it is trivially true. The function skips the check if `checked` is False
            or JAX traces r.
    """
    if checked and not traced(r) and n * N == 1 and r**2 < C_x * math.e * d:
        raise Refused(
            f"r^2={r**2:.4g}, expected r^2 >= C_x e d = {C_x * math.e * d:.4g}, which Lemma 12"
            " needs at nN = 1. Try a larger r"
        )
    exp: Any = jnp.exp if traced(r) else math.exp
    return n * N * exp(-_moment_order(r, d, C_x) / 2)


def largest_tail(r: Any, /, *, d: int, C_x: float = 1.0) -> Any:
    """Return the largest P(|x| >= r) that Assumption 1 allows.

    A vector with |x| in {0, r} attains this probability. The upper bound follows from P r^p <=
    E|x|^p <= (C_x d p)^{p/2} for all p >= 1. The best moment order is p = max(1, r^2 / (C_x e d)).
    If this p exceeds 1, the bound is exp(-r^2 / (2 C_x e d)).
    """
    xp = array_module(r)
    order = xp.maximum(1.0, _moment_order(r, d, C_x))
    return xp.minimum(1.0, (C_x * d * order / r**2) ** (order / 2))


def attention_lipschitz(
    difference: Float[Array, "De HDe"], z: Float[Array, "N De"], /, *, factor: float = 1.0
) -> Float[Array, ""]:
    """Return Lemma 15's bound `factor` r_z^2 max_j |(Theta - Theta')^T z_j| on |f_Attn - f_Attn'|.

    Here r_z = max |z_j|. The paper prints `factor` = 2. The factor 1 suffices, because the
    softmax's Jacobian diag(p) - p p^T has norm at most 1 from l_inf to l_1. The norm is the maximum
    of 4 a (1 - a), where a is the probability of a set of tokens under p.
    """
    radius, moved = jnp.max(vector_norm(z)), jnp.max(vector_norm(z @ difference))
    return factor * radius**2 * moved


def two_layer_lipschitz(
    a: Float[Array, "m"], W: Float[Array, "m k"], /, *, norm: Norm = frobenius_norm
) -> Float[Array, ""]:
    """Return Lemma 13's Lipschitz constant |a| |W|_F of a^T relu(W h + b).

    The spectral norm of W (`norm=spectral_norm`) gives a valid constant too.
    """
    return vector_norm(a) * norm(W)


def prediction_bound(
    a: Float[Array, "m"],
    W: Float[Array, "m k"],
    b: Float[Array, "m"],
    z: Float[Array, "N De"],
    /,
    *,
    heads: int,
    norm: Norm = frobenius_norm,
) -> Float[Array, ""]:
    """Return Lemma 20's bound |a| (|W|_F sqrt(H) max |z_l| + |b|) on |yhat_i|.

    The paper uses the Frobenius norm of W; the spectral norm (`norm=spectral_norm`) also gives a
    valid bound.
    """
    radius = jnp.max(vector_norm(z))
    return vector_norm(a) * (norm(W) * math.sqrt(heads) * radius + vector_norm(b))


def query_key_log_covering(eps: Any, /, *, r_z: float, radius: float, H: int, De: int) -> Any:
    """Return Lemma 16's volume bound H De^2 log(1 + 2 R_F r_z / eps) on a log covering number.

    The bound holds for both readings of the (2,1) norm: a sum over rows, or a sum over columns.
    Lemma 16's bound is the smaller of this bound and a second bound, `query_key_log_covering_rate`
    as printed or `column_log_covering_rate` as corrected.
    """
    return H * De**2 * array_module(eps).log1p(2 * radius * r_z / eps)


def query_key_log_covering_rate(
    eps: float, /, *, r_z: float, radius_21: float, H: int, De: int
) -> float:
    """Return the rate of Lemma 16's second bound (Maurey) as printed; this bound is false.

    The value is r_z^2 R_{2,1}^2 log(2 H De^2) / eps^2. The paper cites [BFT17], where the distance
    is the l_2 norm over the data, not the supremum over prompts and positions.
    """
    return (r_z * radius_21 / eps) ** 2 * math.log(2 * H * De**2)


def column_log_covering_rate(
    eps: float, /, *, r_z: float, radius_21: float, H: int, De: int, positions: int
) -> float:
    """Return the rate of Lemma 16's second bound, corrected, on `positions` = nN tokens.

    The corrected rate is r_z^2 R_{2,1}^2 log(2 H De^2) log(nN) / eps^2, the printed rate times
    log(nN). Here R_{2,1} = `radius_21` bounds ||Theta_QK||_{2,1}, the sum of the l_2 norms of the
    columns of Theta_QK, as everywhere in the library. If R_{2,1} bounds only the sum over rows, the
    corrected rate is no bound either.

    Proof sketch: let R = R_{2,1} and t = eps^2 / (2 R r_z^2). Among the H De columns, the columns
    of norm below t together contribute at most eps / sqrt 2 to Theta_QK^T z. At most R / t columns
    have a norm of t or more. The log number of choices of these large columns, with norms rounded
    to multiples of t, is of order (R / t) log(H De). Each large column is a linear function of z,
    and Zhang (2002) gives a cover of such functions on nN points. The proof divides the allowed
    error eps^2 among the large columns in proportion to their norms. The proof gives a bound with
    the sum of the logarithms of H De and of nN; the returned rate has the product of two such
    logarithms. The returned rate also omits the proof's factor log(R r_z / eps).
    """
    maurey = query_key_log_covering_rate(eps, r_z=r_z, radius_21=radius_21, H=H, De=De)
    return maurey * math.log(positions)


def transformer_log_covering_rate(
    eps: float,
    /,
    *,
    m: int,
    H: int,
    De: int,
    R: float,
    r_a: float,
    R_w: float,
    r_z: float,
    r_QK: float,
) -> float:
    """Return Proposition 17's rate: the two-layer term plus the smaller of two attention terms."""
    two_layer = m * H * De * math.log1p(R / eps)
    slope = r_a * R_w * H * r_QK
    maurey = r_z**6 * slope**2 * math.log(H * De**2) / eps**2
    volume = H * De**2 * math.log1p(slope / math.sqrt(H) * r_z**3 / eps)
    return two_layer + min(maurey, volume)


def transformer_excess_rate(
    n: float, /, *, q: int, d: int, m_g: int, r_a: float, r_w: float, r_x: float
) -> float:
    """Return Theorem 10's rate C_1 sqrt((m_g q (d + q) + min(..)) / n).

    Here C_1 = q r_a^2 r_w^2 r_x^2. The minimum min(..) is over the theorem's two terms for
    attention.
    """
    attention = min(r_x**6 * (r_a * r_w) ** 2 * q**4 / d**2, q * (q**2 + d**2))
    return q * (r_a * r_w * r_x) ** 2 * math.sqrt((m_g * q * (d + q) + attention) / n)


def rnn_excess_rate(n: float, /, *, parameters: int, N: int, R: float, tau: float = 1.0) -> float:
    """Return Lemma 32's rate tau sqrt(p log(R N n tau) / n), with the number p of parameters."""
    return tau * math.sqrt(parameters * math.log(R * N * n * tau) / n)


def network_value_bound(
    weights: list[Float[Array, "..."]],
    biases: list[Float[Array, "..."]],
    start: Float[Array, "i"],
    /,
) -> Float[Array, ""]:
    """Bound a ReLU network's output by (C.13): prod |W_l| |x_0| + sum_l |b_l| prod_{k>l} |W_k|."""
    value = vector_norm(start)
    for W, b in zip(weights, biases, strict=True):
        value = jnp.linalg.norm(W, ord=2) * value + vector_norm(b)
    return value


def network_perturbation_bound(
    first: Sequence[tuple[ArrayLike, ArrayLike]],
    second: Sequence[tuple[ArrayLike, ArrayLike]],
    x: Float[Array, "i"],
    /,
) -> Float[Array, ""]:
    """Bound the distance of two ReLU networks' outputs at x, layer by layer as in Lemma 30.

    Let x_l and x~_l be the outputs of layer l of the two networks. Then |x_l - x~_l| <= |W_l|_op
    |x_{l-1} - x~_{l-1}| + |W_l - W~_l|_op |x~_{l-1}| + |b_l - b~_l|, and (C.13) bounds |x~_{l-1}|.
    The norms are operator norms, as printed after (C.14). `first` and `second` hold the pairs (W,
    b) of the two networks' layers.
    """
    apart, reach = jnp.zeros(()), vector_norm(x)
    for (W, b), (W2, b2) in zip(first, second, strict=True):
        W, W2, b, b2 = (jnp.asarray(v) for v in (W, W2, b, b2))
        moved = spectral_norm(W - W2) * reach + vector_norm(b - b2)
        apart = spectral_norm(W) * apart + moved
        reach = spectral_norm(W2) * reach + vector_norm(b2)
    return apart


def polynomial_perturbation_bound(*, depth: int, R: Any, r: Any) -> Any:
    """Return Lemma 30's factor poly(R) in |f - f~| <= poly(R) |vec Theta - vec Theta~|.

    The bound holds on |x| <= r if |W_l|_F <= R and |b_l| <= R for both networks. Then |x_l| <= M_l
    = R^l r + sum_{k <= l} R^k by (C.14). The error that layer l adds is at most sqrt(M_{l-1}^2 + 1)
    times the distance of the layer's parameters. The later layers multiply this error by at most
    R^{L - l}, and the Cauchy-Schwarz inequality sums the errors.
    """
    xp = array_module(R, r)
    reach = [R**k * r + sum(R**j for j in range(1, k + 1)) for k in range(depth)]
    own = (R ** (depth - 1 - k) * xp.sqrt(m**2 + 1) for k, m in enumerate(reach))
    return functools.reduce(xp.hypot, own)


def recurrent_perturbation_bound(
    readout_gap: Any, transition_gap: Any, /, *, N: int, lipschitz: Any, sharp: bool = False
) -> Any:
    """Bound the distance of two RNNs by gap(f_y) + L_y e N (gap(f->) + gap(f<-)), Lemma 29.

    Here gap(f) is the largest distance between the two RNNs' readouts f_y, or transitions f-> or
    f<-. The argument `transition_gap` is gap(f->) + gap(f<-), and `lipschitz` is the readout's
    Lipschitz constant L_y. The bound holds if the transitions are 1/N-Lipschitz in the state, since
    (1 + 1/N)^N <= e. If `sharp` is set, the exact sum over the steps replaces e N: sum_k (1 +
    1/N)^k = N ((1 + 1/N)^N - 1) <= (e - 1) N.
    """
    growth = (1 + 1 / N) ** N - 1 if sharp else math.e
    return readout_gap + lipschitz * growth * N * transition_gap
