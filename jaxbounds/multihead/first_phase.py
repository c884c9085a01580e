"""The first phase (Section 5.1): one gradient step from zero, and what it leaves.

All heads get U_h = alpha_h 1_T u1^T with u1 = (1 / 2 n1) sum_i y_i mean_t x_it, and W_h = 0.
On DM1 the mean of u1 is (zeta / 4) u*: E[y mu_y] = u* / 2.

`dm1` holds the constants of Assumption 3, `size` is P = ||p||, the norm of the deviation, and
`failure` delta. Scalars may be traced.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.oracle import Assumption3, Real
from jaxbounds.multihead.oracle_bounds import attention_part


def equal_rows(
    row: Float[Array, " d"], step_sizes: Float[Array, " H"], length: int, /
) -> dict[str, Array]:
    """U_h = alpha_h 1_T u^T and W_h = 0: the parameters that the first phase can reach."""
    (d,), heads = row.shape, step_sizes[:, None, None]
    rows = jnp.broadcast_to(row[None, None, :], (1, length, d))
    return {"U": heads * rows, "W": jnp.zeros((len(step_sizes), d, d), rows.dtype)}


def first_direction(data: Data, /) -> Float[Array, " d"]:
    """u1 = (1 / 2 n1) sum_i y_i mean_t x_it, eq. (120)."""
    tokens = data["X"]
    signed = data["y"].astype(tokens.dtype)[:, None] * jnp.mean(tokens, axis=1)
    return jnp.mean(signed, axis=0) / 2


def first_step(data: Data, step_sizes: Float[Array, " H"], /) -> Params:
    """theta^(1): one step of size alpha_h sqrt(H) from zero on every head, in closed form."""
    return equal_rows(first_direction(data), step_sizes, data["X"].shape[1])


def centre(classifier: Float[Array, " d"], sparsity: Real, /) -> Float[Array, " d"]:
    """(zeta / 4) u*, the mean of u1; print has zeta / 2 (`printed_centre`)."""
    return sparsity / 4 * classifier


def printed_centre(classifier: Float[Array, " d"], sparsity: Real, /) -> Float[Array, " d"]:
    """(zeta / 2) u*, the centre of Lemma 2 and eq. (102); the mean is half of it (E2)."""
    return sparsity / 2 * classifier


def deviation(data: Data, classifier: Float[Array, " d"], sparsity: Real, /) -> Float[Array, " d"]:
    """The deviation p = u1 - (zeta / 4) u*."""
    return first_direction(data) - centre(classifier, sparsity)


def deviation_bound(radius: Real, samples: Real, failure: Real, /) -> Array:
    """P# with ||p|| <= P# with probability 1 - delta (sharpening S13): explicit, no dimension.

    2 p is a mean of n1 independent centred vectors y xbar - E of norm at most R before centring:
    the expectation of its norm is at most R / sqrt(n1), and McDiarmid's inequality with differences
    2 R / n1 adds R sqrt(2 log(1/delta) / n1).
    """
    return radius / 2 * (1 + jnp.sqrt(2 * jnp.log(1 / jnp.asarray(failure)))) / jnp.sqrt(samples)


def deviation_bound_dimension(
    signal: Real, noise: Real, dimension: Real, samples: Real, failure: Real, /
) -> Array:
    """Eq. (6), C (2S + Z)(sqrt(d / n1) + sqrt(log(1/delta) / n1)), with C = 1 / sqrt(2).

    About the true centre (erratum E2) that is at least `deviation_bound`: R <= S + Z, and
    (1 + sqrt(2 log(1/delta))) / 2 <= (sqrt(d) + sqrt(log(1/delta))) / sqrt(2).
    """
    roots = jnp.sqrt(1.0 * dimension) + jnp.sqrt(jnp.log(1 / jnp.asarray(failure)))
    return (2 * signal + noise) * roots / jnp.sqrt(2.0 * samples)


def deviation_bound_sharp(radius: Real, samples: Real, failure: Real, /) -> Array:
    """R sqrt(log(2 / delta) / (2 n1)): ||p|| is at most that with probability 1 - delta (S15).

    2 n1 p is a sum of independent vectors y xbar - (zeta / 2) u*. Each is y times the mean over
    the tokens of (mu_+ + mu_-) / 2, which is shorter than mu, and of the irrelevant x_t: no longer
    than R. A sum of n1 such vectors of mean zero is r or longer with probability at most
    2 exp(-r^2 / (2 n1 R^2)) (Pinelis 1994, Theorem 3.5, in a Hilbert space).
    """
    return radius * jnp.sqrt(jnp.log(2 / jnp.asarray(failure)) / (2 * samples))


def hoeffding_tail(mean: Real, heads: Real, /) -> Array:
    """exp(-H t^2 / 2): at most this is the probability that H signs have a mean of t or more.

    Fact 2 with B = 1; for |mean| it is twice that, which the paper forgets.
    """
    return jnp.exp(-heads * jnp.asarray(mean) ** 2 / 2)


def sign_sum_bound(failure: Real, /) -> Array:
    """sqrt(2 log(2 / delta)): |sum_h alpha_h| / sqrt(H) is at most that with probability 1 - delta.

    Lemma 12 prints log(1 / delta); the inequality is two-sided.
    """
    return jnp.sqrt(2 * jnp.log(2 / jnp.asarray(failure)))


def head_bound(dm1: Assumption3, size: Real, /) -> Real:
    """B_2 = sqrt(T) (S + P) of Proposition 2, P1."""
    return jnp.sqrt(1.0 * dm1.T) * (dm1.S + size)


def head_bound_sharp(dm1: Assumption3, size: Real, /) -> Real:
    """sqrt(T) (zeta S / (2 sqrt 2) + P): a head's size at theta^(1) if p is parallel to u*."""
    return jnp.sqrt(1.0 * dm1.T) * (dm1.zeta * dm1.S / 8**0.5 + size)


def model_bound(dm1: Assumption3, size: Real, failure: Real, /) -> Real:
    """T R (S + P) sqrt(2 log(2 / delta)): B_Phi of P2 for every sample at once.

    Print has log(1/delta) for one sample and log(n/delta) for n (two-sided, so the 2 is missing);
    but W^(1) = 0 makes every output a multiple of the same sum of signs: no union bound is needed.
    """
    return dm1.T * dm1.R * (dm1.S + size) * sign_sum_bound(failure)


def balanced_signs(heads: int, /) -> Float[Array, " H"]:
    """As many +1 as -1: then the model vanishes at theta^(1) and P2 holds surely (S12).

    Raises:
        ValueError: if the number of heads is odd.
    """
    if heads < 2 or heads % 2:
        raise ValueError(f"balanced signs need an even number of heads, got {heads}")
    return jnp.tile(jnp.asarray([1.0, -1.0]), heads // 2)


def _slope(dm1: Assumption3, size: Real) -> Real:
    return 2 * dm1.R**3 * dm1.T * (dm1.S + size) + jnp.sqrt(1.0 * dm1.T) * dm1.R


def margin_loss(dm1: Assumption3, size: Real, failure: Real, heads: Real, /) -> Real:
    """2 (2 R^3 T (S + P) + sqrt(T) R) sqrt(2 log(1 / delta) / H): what Lemma 14 takes off gamma*.

    Not needed for alpha = +-1 (S12).
    """
    return 2 * _slope(dm1, size) * jnp.sqrt(2 * jnp.log(1 / jnp.asarray(failure)) / heads)


def margin_loss_sharp(dm1: Assumption3, failure: Real, heads: Real, /) -> Real:
    """|A| sqrt(2 log(1 / delta) / (3 H)), A = `attention_part`: the same for |alpha| <= 1 (S16).

    The margin depends on alpha only through the mean m <= 1 of |alpha_h|, by which its part in W is
    multiplied. About (zeta / 2) u* that part is at least 2 A, less what gamma* takes off for p: the
    margin is at least gamma* - (1 - 2 m) A. As |alpha_h| is uniform on [0, 1], which is strictly
    sub-Gaussian with variance 1/12, m is t or more to one side of 1/2 with probability at most
    exp(-6 H t^2).
    """
    spread = jnp.sqrt(2 * jnp.log(1 / jnp.asarray(failure)) / (3 * heads))
    return jnp.abs(attention_part(dm1)) * spread


def heads_for_margin(dm1: Assumption3, size: Real, margin: Real, failure: Real, /) -> Real:
    """The H of Lemma 15, which leaves half of `margin` > 0 at one sample; Proposition 2 has R^4.

    For n samples give delta / n. Not needed for alpha = +-1 (S12).
    """
    return (4 * _slope(dm1, size) / margin) ** 2 * 2 * jnp.log(1 / jnp.asarray(failure))
