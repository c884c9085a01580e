"""Kind D: identities that are wrong in one entry of many, at integers, ties, singularities."""

import math

import jax
import jax.numpy as jnp
import mpmath
from jax import lax
from jax.scipy.special import gamma, gammaln, xlogy
from jax.scipy.stats import norm

import jaxbounds as jb
from benchmarks.outside.claims import of_kind, verdict

eye, total, pinv = jnp.eye, jnp.sum, jnp.linalg.pinv
relu = jax.nn.relu
real = lambda x: x.astype(float)
SQUARE = {"a": jb.Box(-1, 1, (2, 2))}
SINGULAR = {"a": [[1.0, 1.0], [1.0, 1.0]]}
UNIT, LINE = {"x": jb.Box(0, 1, 4)}, {"x": jb.Box(-10, 10)}
TIED = {"x": [0.5, 0.5, 0.1, 0.2]}
far = lambda x: jnp.abs(x[:, None] - x)


def elementary(x):
    """The four elementary symmetric polynomials of four numbers."""
    a, b, c, d = x
    return jnp.stack([a + b + c + d, a * b + a * c + a * d + b * c + b * d + c * d,
                      a * b * c + a * b * d + a * c * d + b * c * d, a * b * c * d])  # fmt: skip


def moments(a, b):
    """Second moments of two samples of different units."""
    return jnp.stack([jnp.mean(a * a), jnp.mean(a * b), jnp.mean(b * b)])


def stirling(x):
    return (x - 0.5) * jnp.log(x) - x + 0.5 * math.log(2 * math.pi)


# fmt: off
CLAIMS = of_kind(
    "D",
    verdict("floors_of_halves", True, "Hermite's identity",
            lambda x: jnp.floor(2 * x), "=", lambda x: jnp.floor(x) + jnp.floor(x + 0.5),
            over=LINE),
    verdict("ceiling_is_a_mirrored_floor", True, "definition",
            lambda x: jnp.ceil(x), "=", lambda x: -jnp.floor(-x), over=LINE),
    verdict("maximum_from_the_distance", True, "the distance is the larger less the smaller",
            lambda x, y: jnp.maximum(x, y), "=", lambda x, y: (x + y + jnp.abs(x - y)) / 2,
            over={"x": jb.Box(-10, 10), "y": jb.Box(-10, 10)}),
    verdict("determinant_of_rank_one_is_zero", True, "two rows are parallel",
            lambda u, v: jnp.linalg.det(jnp.outer(u, v)), "=", 0.0,
            over={"u": jb.Reals(3), "v": jb.Reals(3)}),
    verdict("cayley_hamilton", True, "A^2 - tr(A) A + det(A) I = 0 in two dimensions",
            lambda a: a @ a - jnp.trace(a) * a + (a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]) * eye(2),
            "=", 0.0, over={"a": jb.Reals((2, 2))}),
    verdict("slope_of_a_maximum_is_shared_among_ties", True, "the shares add up to 1",
            lambda x: total(jax.grad(jnp.max)(x)), "=", 1.0, over={"x": jb.Box(0, 1, 3)}),

    verdict("first_symmetric_polynomial_is_four_medians", False, "entry 0 of 4: 12000, not 4000",
            elementary, "=", lambda x: elementary(x).at[0].set(4 * jnp.median(x)),
            over={"x": jb.Box(1000, 9000, 4)}, at={"x": [1000.0, 1000, 1000, 9000]}),
    verdict("spread_is_the_second_moment", False, "entry 2 of 3, a trillion times smaller",
            moments, "=", lambda a, b: moments(a, b).at[2].set(jnp.var(b)),
            over={"a": jb.Box(5e7, 9e7, 3), "b": jb.Box(1, 2, 3)},
            at={"a": [6e7] * 3, "b": [1.0, 1, 2]}),
    verdict("tail_of_the_normal_law_by_mills", False, "entry 1 of 2: Q(8) is 1.5% below",
            lambda x: jnp.stack([0.5 + 0 * x, norm.sf(x)]), "=",
            lambda x: jnp.stack([0.5 + 0 * x, norm.pdf(x) / x]), over={"x": jb.Box(7.5, 9)},
            check=lambda: mpmath.erfc(8 / mpmath.sqrt(2)) / 2 < 0.99 * mpmath.npdf(8) / 8),
    verdict("gamma_of_one_and_a_bit_is_one", False, "entry 0 of 2: gamma(1.5) = 0.886",
            lambda x: jnp.stack([gamma(1 + x), gamma(20 + x)]), "=",
            lambda x: jnp.stack([1.0 + 0 * x, gamma(20 + x)]), over={"x": jb.Box(0, 1)},
            check=lambda: abs(mpmath.gamma(1.5) - 0.8862) < 1e-4),
    verdict("running_product_starts_at_one", False, "entry 0 of 8 is x_0",
            lambda x: jnp.cumprod(x), "=", lambda x: jnp.cumprod(x).at[0].set(1.0),
            over={"x": jb.Box(50, 100, 8)}, at={"x": [50.0] * 8}),
    verdict("the_fastest_decay_is_doubled", False, "entry 3 of 4, 1e-12 beside 1",
            lambda x: jnp.exp(-x * jnp.arange(4.0)), "=",
            lambda x: jnp.exp(-x * jnp.arange(4.0)) * jnp.array([1, 1, 1, 2.0]),
            over={"x": jb.Box(9, 12)}, at={"x": 10.0}),
    verdict("log_gamma_is_stirlings", False, "off by 1 / 12 x, which is 1e-8 in 1e7",
            lambda x: jnp.stack([gammaln(x), gammaln(x / 1e5)]), "=",
            lambda x: jnp.stack([gammaln(x), stirling(x / 1e5)]), over={"x": jb.Box(9e7, 1e8)},
            check=lambda: mpmath.loggamma(1e3) - (999.5 * mpmath.log(1e3) - 1e3
                                                  + mpmath.log(2 * mpmath.pi) / 2) > 8e-5),
    verdict("inverse_undoes_every_matrix", False, "A A+ is a projection where A is singular",
            lambda a: a @ pinv(a), "=", lambda a: eye(2) + 0 * a, over=SQUARE, at=SINGULAR),
    verdict("every_square_matrix_has_full_rank", False, "det = 0 at equal rows",
            lambda a: jnp.sign(a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]) ** 2, "=", 1.0, over=SQUARE,
            at=SINGULAR),
    verdict("two_ways_to_round_agree", False, "0.5 to even is 0, away from zero is 1",
            lambda x: jnp.round(x), "=", lambda x: lax.round(x, lax.RoundingMethod(0)), over=LINE,
            at={"x": 0.5}),
    verdict("steps_add_up_to_one", False, "both steps are 0 at 0",
            lambda x: real(x > 0) + real(-x > 0), "=", 1.0, over=LINE, at={"x": 0.0}),
    verdict("one_entry_is_the_maximum", False, "two are at a tie",
            lambda x: total(real(x == jnp.max(x))), "=", 1.0, over=UNIT, at=TIED),
    verdict("ranks_add_up_to_six", False, "a tie counts for nobody",
            lambda x: total(real(x[:, None] > x)), "=", 6.0, over=UNIT, at=TIED),
    verdict("slope_of_a_hinge_is_zero_or_one", False, "JAX shares the slope at a tie: 1/2 at 0",
            lambda x: jax.grad(lambda y: jnp.maximum(y, 0.0))(x), "=", lambda x: real(x > 0),
            over=LINE, at={"x": 0.0}),
    verdict("slope_of_relu_starts_at_zero", False, "the slope at 0 is 0, not 1",
            lambda x: jax.grad(relu)(x), "=", lambda x: real(x >= 0), over=LINE, at={"x": 0.0}),
    verdict("fractions_of_opposites_add_up_to_one", False, "both are 0 at integers",
            lambda x: jnp.mod(x, 1) + jnp.mod(-x, 1), "=", 1.0, over=LINE, at={"x": 3.0}),
    verdict("angle_of_a_point_is_its_angle", False, "3.15 > pi comes back as 3.15 - 2 pi",
            lambda t: jnp.arctan2(jnp.sin(t), jnp.cos(t)), "=", lambda t: t,
            over={"t": jb.Box(-3.14, 3.15)}, at={"t": 3.15}),
    verdict("zero_to_the_zero_is_zero", False, "x^0 = 1, at 0 too",
            lambda x, n: x**n, "=", lambda x, n: jnp.where(x == 0, 0.0, x**n),
            over={"x": jb.Box(-2, 2), "n": jb.Integers(0, 3)}, at={"x": 0.0, "n": 0}),
    verdict("distinct_entries_are_counted", False, "a pair of equal entries has distance 0",
            lambda x: total(jnp.sign(far(x))), "=", 12.0, over=UNIT, at=TIED),
    verdict("bits_of_a_coin_are_positive", False, "xlogy(0, 0) = 0 at both ends",
            lambda p: jnp.sign(-xlogy(p, p) - xlogy(1 - p, 1 - p)), "=", 1.0,
            over={"p": jb.Box(0, 1)}, at={"p": 0.0}),
)
# fmt: on
