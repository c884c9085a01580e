"""The first phase of training (Section 5.1): one gradient step from zero, and its bounds.

After this step, all heads have U_h = alpha_h 1_T u1^T with u1 = (1 / 2 n1) sum_i y_i mean_t x_it,
and W_h = 0. On the data model DM1 the mean of u1 is (zeta / 4) u*, since E[y mu_y] = u* / 2.

The argument `dm1` holds the constants of Assumption 3. The argument `size` is P = ||p||, the norm
of the deviation p of u1 from its mean. The argument `failure` is the failure probability delta.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.oracle import Assumption3, Real
from jaxbounds.multihead.oracle_bounds import attention_part


def equal_rows(
    row: Float[Array, " d"], step_sizes: Float[Array, " H"], length: int, /
) -> dict[str, Array]:
    """Return U_h = alpha_h 1_T u^T and W_h = 0, the parameters after the first phase."""
    (d,), heads = row.shape, step_sizes[:, None, None]
    rows = jnp.broadcast_to(row[None, None, :], (1, length, d))
    return {"U": heads * rows, "W": jnp.zeros((len(step_sizes), d, d), rows.dtype)}


def first_direction(data: Data, /) -> Float[Array, " d"]:
    """Return u1 = (1 / 2 n1) sum_i y_i mean_t x_it, equation (120)."""
    tokens = data["X"]
    signed = data["y"].astype(tokens.dtype)[:, None] * jnp.mean(tokens, axis=1)
    return jnp.mean(signed, axis=0) / 2


def first_step(data: Data, step_sizes: Float[Array, " H"], /) -> Params:
    """Return theta^(1) in closed form: one step of size alpha_h sqrt(H) from zero on every head."""
    return equal_rows(first_direction(data), step_sizes, data["X"].shape[1])


def centre(classifier: Float[Array, " d"], sparsity: Real, /) -> Float[Array, " d"]:
    """Return (zeta / 4) u*, the expectation of u1.

    The paper prints (zeta / 2) u* (see `printed_centre`).
    """
    return sparsity / 4 * classifier


def printed_centre(classifier: Float[Array, " d"], sparsity: Real, /) -> Float[Array, " d"]:
    """Return (zeta / 2) u*, which Lemma 2 and equation (102) print as the centre of u1.

    The true mean (zeta / 4) u* of u1 is half of (zeta / 2) u* (erratum E2).
    """
    return sparsity / 2 * classifier


def deviation(data: Data, classifier: Float[Array, " d"], sparsity: Real, /) -> Float[Array, " d"]:
    """Return p = u1 - (zeta / 4) u*: the deviation of the first direction u1 from its mean."""
    return first_direction(data) - centre(classifier, sparsity)


def deviation_bound(radius: Real, samples: Real, failure: Real, /) -> Array:
    """Return P#, an explicit bound on ||p|| that holds with probability 1 - delta (sharpening S13).

    The vector 2 p is a mean of n1 independent vectors y xbar - E[y xbar], where ||y xbar|| is at
    most R. The expectation of the norm of 2 p is at most R / sqrt(n1). McDiarmid's inequality, with
    bounded differences 2 R / n1, adds the term R sqrt(2 log(1/delta) / n1).
    """
    return radius / 2 * (1 + jnp.sqrt(2 * jnp.log(1 / jnp.asarray(failure)))) / jnp.sqrt(samples)


def deviation_bound_dimension(
    signal: Real, noise: Real, dimension: Real, samples: Real, failure: Real, /
) -> Array:
    """Return C (2S + Z)(sqrt(d / n1) + sqrt(log(1/delta) / n1)) of (6), with C = 1 / sqrt(2).

    For the deviation p from the true centre (erratum E2), this printed bound is at least
    `deviation_bound`. The sharpened `deviation_bound` is smaller because R <= S + Z and (1 + sqrt(2
    log(1/delta))) / 2 <= (sqrt(d) + sqrt(log(1/delta))) / sqrt(2).
    """
    roots = jnp.sqrt(1.0 * dimension) + jnp.sqrt(jnp.log(1 / jnp.asarray(failure)))
    return (2 * signal + noise) * roots / jnp.sqrt(2.0 * samples)


def deviation_bound_sharp(radius: Real, samples: Real, failure: Real, /) -> Array:
    """Return R sqrt(log(2 / delta) / (2 n1)), which bounds ||p|| with probability 1 - delta.

    Sharpening S15 proves this bound. The vector 2 n1 p is a sum of n1 independent vectors y xbar -
    (zeta / 2) u*, where xbar is the mean token of one sequence. In xbar, each relevant token
    contributes +-(mu_+ + mu_-) / 2, which is shorter than mu_+, and each irrelevant token
    contributes +-x_t. So each vector has mean zero and norm at most R. The sum has norm at least r
    with probability at most 2 exp(-r^2 / (2 n1 R^2)), by Theorem 3.5 of Pinelis (1994).
    """
    return radius * jnp.sqrt(jnp.log(2 / jnp.asarray(failure)) / (2 * samples))


def hoeffding_tail(mean: Real, heads: Real, /) -> Array:
    """Return exp(-H t^2 / 2), which bounds the probability that H random signs have a mean >= t.

    For summands with absolute value at most B = 1, this bound is Fact 2. The bound on the
    probability of |mean| >= t is twice as large; the paper omits the factor two.
    """
    return jnp.exp(-heads * jnp.asarray(mean) ** 2 / 2)


def sign_sum_bound(failure: Real, /) -> Array:
    """Return sqrt(2 log(2 / delta)), a bound on |sum_h alpha_h| / sqrt(H) for random signs alpha_h.

    Random signs satisfy this bound with probability at least 1 - delta.

    Lemma 12 prints log(1 / delta), which would be correct only for a one-sided inequality.
    """
    return jnp.sqrt(2 * jnp.log(2 / jnp.asarray(failure)))


def head_bound(dm1: Assumption3, size: Real, /) -> Real:
    """Return B_2 = sqrt(T) (S + P), the bound P1 of Proposition 2 on a head's norm."""
    return jnp.sqrt(1.0 * dm1.T) * (dm1.S + size)


def head_bound_sharp(dm1: Assumption3, size: Real, /) -> Real:
    """Return sqrt(T) (zeta S / (2 sqrt 2) + P), a head's largest norm, for p parallel to u*."""
    return jnp.sqrt(1.0 * dm1.T) * (dm1.zeta * dm1.S / 8**0.5 + size)


def model_bound(dm1: Assumption3, size: Real, failure: Real, /) -> Real:
    """Return B_Phi = T R (S + P) sqrt(2 log(2 / delta)), the bound P2 for all samples at once.

    The paper prints log(1/delta) for one sample and log(n/delta) for n samples. Both logarithms
    lack the factor 2 of a two-sided bound. A union bound over samples is unnecessary: since W^(1) =
    0, every output is a multiple of the same sum of signs.
    """
    return dm1.T * dm1.R * (dm1.S + size) * sign_sum_bound(failure)


def balanced_signs(heads: int, /) -> Float[Array, " H"]:
    """Return signs alpha_h, of which half are +1 and half are -1.

    The model output at theta^(1) is then Phi = 0, so the condition P2 of a good start holds
    (sharpening S12).

    Raises:
        Refused: if the number of heads is odd or less than 2.
    """
    if heads < 2 or heads % 2:
        raise Refused(
            f"heads={heads}, expected an even number of at least 2, so that the signs balance. Try"
            f" heads={2 * max(1, round(heads / 2))}"
        )
    return jnp.tile(jnp.asarray([1.0, -1.0]), heads // 2)


def _slope(dm1: Assumption3, size: Real) -> Real:
    return 2 * dm1.R**3 * dm1.T * (dm1.S + size) + jnp.sqrt(1.0 * dm1.T) * dm1.R


def margin_loss(dm1: Assumption3, size: Real, failure: Real, heads: Real, /) -> Real:
    """Return 2 (2 R^3 T (S + P) + sqrt(T) R) sqrt(2 log(1 / delta) / H), a term of Lemma 14.

    Lemma 14 subtracts this term from gamma*, because its alpha_h are random in [-1, 1]. If all
    alpha are +1 or -1, nothing needs to be subtracted (sharpening S12).
    """
    return 2 * _slope(dm1, size) * jnp.sqrt(2 * jnp.log(1 / jnp.asarray(failure)) / heads)


def margin_loss_sharp(dm1: Assumption3, failure: Real, heads: Real, /) -> Real:
    """Return |A| sqrt(2 log(1/delta) / (3 H)), which replaces `margin_loss` in Lemma 14.

    Sharpening S16 proves this bound for alpha_h uniform on [-1, 1], with A = `attention_part`. Let
    m be the mean of |alpha_h| over the heads. Let U^(1) be centred at (zeta / 2) u*. The part of
    the margin from W is m times at least 2 A minus gamma*'s term for p. The margin is therefore at
    least gamma* - (1 - 2 m) A. Since |alpha_h| is strictly sub-Gaussian with variance 1/12, 1/2 - m
    exceeds t with probability at most exp(-6 H t^2).
    """
    spread = jnp.sqrt(2 * jnp.log(1 / jnp.asarray(failure)) / (3 * heads))
    return jnp.abs(attention_part(dm1)) * spread


def heads_for_margin(dm1: Assumption3, size: Real, margin: Real, failure: Real, /) -> Real:
    """Return Lemma 15's number of heads, for which each sample's margin is at least half of gamma*.

    Proposition 2 prints R^4 where Lemma 15 has another power of R. For n samples, pass delta / n as
    `failure`. If all alpha are +1 or -1, the margin is at least half of gamma* for every number of
    heads (sharpening S12).
    """
    return (4 * _slope(dm1, size) / margin) ** 2 * 2 * jnp.log(1 / jnp.asarray(failure))
