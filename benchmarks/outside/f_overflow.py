"""Kind F: overflow, underflow, infinite bounds, host code that works in place or draws numbers."""

import math
from fractions import Fraction

import jax.numpy as jnp
import mpmath
import numpy as np

import jaxbounds as jb
from benchmarks.outside.claims import Claim, Said, line, of_kind, verdict

HUGE, VAST = jb.Box(-1e200, 1e200), jb.Box(-1e308, 1e308)
PAIR = {"x": HUGE, "y": HUGE}
big, exp = mpmath.mpf, mpmath.exp
exact = lambda x: [Fraction(float(v)) for v in np.ravel(x)]
f32 = jnp.float32
calls = np.random.default_rng(31)
COUNTED = [0]


def in_place_centring(x):
    """The variance of x; x itself is centred."""
    x -= x.mean()
    return np.sum(x**2) / len(x)


def in_place_sorting(x):
    x.sort()
    return x[-1] - x[0]


def in_place_doubling(x):
    x *= 2.0
    return np.max(x) / 2


def in_place_normalising(x):
    length = np.sqrt(np.sum(x**2))
    x /= max(length, 1e-3)
    return length


def in_place_clipping(x):
    found = np.sum(x)
    np.clip(x, -0.5, 0.5, out=x)
    return found


def noisy(x):
    """The mean and a draw: another number at each call."""
    return np.mean(x) + calls.normal()


def alternating(x):
    """Low and high by turns."""
    COUNTED[0] += 1
    return np.mean(x) * 0 + COUNTED[0] % 2


def pairs(holds) -> bool:
    """Whether a claim holds on exact pairs of huge numbers."""
    drawn = calls.integers(-(10**9), 10**9, (99, 2)).tolist()
    return all(holds(a * 10**291, b * 10**291) for a, b in drawn)


def fails_by(name, reason, lhs, rhs, over, check) -> Claim:
    """A false claim, refuted by `jb.sharp_constant(...).fails`."""

    def ask(seed: int) -> Said:
        found = jb.sharp_constant(lhs, rhs, over=over, seed=seed, seconds=4.0)
        said = found.sizes[0]
        word = "violation" if found.fails else "no violation"
        return Said(word=word, evidence=said.where, ratio=said.ratio, reason=said.reason)

    return Claim(name=name, truth=False, reason=reason, ask=ask, check=check, never=("none",))


HOST = {"host": True, "over": {"x": jb.Box(-1, 1, 4)}}
total = lambda x: sum(exact(x), Fraction(0))

# fmt: off
CLAIMS = of_kind(
    "F",
    verdict("triangle_inequality_of_vast_numbers", True, "the sum may overflow, the claim is true",
            lambda x, y: jnp.abs(x + y), "<=", lambda x, y: jnp.abs(x) + jnp.abs(y),
            equality="x, y >= 0", over={"x": VAST, "y": VAST},
            check=lambda: pairs(lambda a, b: abs(a + b) <= abs(a) + abs(b))),
    line("square_of_a_huge_sum", True, "(x + y)^2 <= 2 x^2 + 2 y^2; squares overflow at 1e154",
         lambda x, y: (x + y) ** 2, "<=", lambda x, y: 2 * x**2 + 2 * y**2, over=PAIR,
         check=lambda: pairs(lambda a, b: (a + b) ** 2 <= 2 * a * a + 2 * b * b)),
    line("euclidean_norm_of_a_huge_pair", True, "at most sqrt 2 times the larger entry",
         lambda x, y: jnp.sqrt(x * x + y * y), "<=",
         lambda x, y: 1.5 * jnp.maximum(jnp.abs(x), jnp.abs(y)), over=PAIR,
         check=lambda: pairs(lambda a, b: 4 * (a * a + b * b) <= 9 * max(abs(a), abs(b)) ** 2)),
    line("naive_softplus_stays_near_relu", True, "log 2 at 0 is the most; e^1000 overflows",
         lambda x: jnp.log(1 + jnp.exp(x)), "<=", lambda x: jnp.maximum(x, 0.0) + 0.7,
         over={"x": jb.Box(-1000, 1000)}),
    verdict("naive_softmax_adds_up_to_one", True, "e^1000 / e^1000 is nothing in floats",
            lambda x: jnp.sum(jnp.exp(x) / jnp.sum(jnp.exp(x))), "=", 1.0,
            over={"x": jb.Box(-1000, 1000, 3)}),
    verdict("scaled_down_and_up_again", True, "1e-200 twice, 1e200 twice: underflow to 0",
            lambda x: x * 1e-200 * 1e-200 * 1e200 * 1e200, "=", lambda x: x,
            over={"x": jb.Box(1, 2)},
            check=lambda: abs((Fraction(1e-200) * Fraction(1e200)) ** 2 - 1) < 1e-15),
    verdict("hyperbolic_cosine_less_sine", True, "e^-x; both overflow from 711 on",
            lambda x: jnp.cosh(x) - jnp.sinh(x), "=", lambda x: jnp.exp(-x),
            over={"x": jb.Box(0, 800)}),
    verdict("single_precision_adds_and_takes_away", True, "(x + 1) - 1 = x; float32 rounds x + 1",
            lambda x: ((x.astype(f32) + 1) - 1).astype(float), "=",
            lambda x: x.astype(f32).astype(float), over={"x": jb.Box(0, 1)},
            check=lambda: (Fraction(1, 3) + 1) - 1 == Fraction(1, 3)),
    verdict("an_infinite_bound", True, "nothing exceeds infinity: the bound says nothing",
            lambda x: x**2, "<=", lambda x: jnp.inf + 0 * x, over={"x": jb.Box(-3, 3)},
            right=("vacuous",), never=("holds",)),
    verdict("integers_near_the_least_machine_integer", True, "the set ends at 5",
            lambda n: n.astype(float), "<=", 5.0, equality="n = 5",
            over={"n": jb.Integers(-(2**63) + 1, 5)}, check=lambda: -(2**63) + 1 <= 5),
    verdict("variance_that_centres_in_place", True, "the variance is at most the second moment",
            in_place_centring, "<=", 1.0, equality="two 1, two -1", **HOST,
            check=lambda: np.var([1.0, 1, -1, -1]) == 1),
    verdict("range_that_sorts_in_place", True, "x_max - x_min <= 2 in the box",
            in_place_sorting, "<=", 2.0, equality="1 and -1 are there", **HOST,
            check=lambda: 1 - -1 == 2),

    verdict("product_of_huge_numbers_is_a_float", False, "1e200 * 1e200 = 1e400",
            lambda x, y: x * y, "<=", 1e308, over=PAIR,
            check=lambda: big("1e200") ** 2 > big("1e308"),
            violates=lambda x, y: exact(x)[0] * exact(y)[0] > 10**308),
    line("square_grows_like_its_root", False, "x^2 > 1e200 |x| from 1e200 on; both overflow there",
         lambda x: x**2, "<=", lambda x: 1e200 * jnp.abs(x), over={"x": jb.Box(-1e201, 1e201)},
         check=lambda: big("5e200") ** 2 > big("1e200") * big("5e200"),
         violates=lambda x: abs(exact(x)[0]) > Fraction(1e200)),
    line("difference_of_vast_numbers_is_vast", False, "1e308 - -1e308 = 2e308",
         lambda x, y: x - y, "<=", 1e308, over={"x": VAST, "y": VAST},
         check=lambda: 2 * big("1e308") > big("1e308"),
         violates=lambda x, y: exact(x)[0] - exact(y)[0] > Fraction(1e308)),
    line("inverse_of_a_small_number_is_small", False, "1e13 at 1e-13",
         lambda x: 1 / x, "<=", 1e12, over={"x": jb.Box(0, 1)}, at={"x": 1e-13}),
    line("square_of_a_tiny_number_is_a_float", False, "1e-340 is below every float",
         lambda x: x**2, ">=", 1e-300, over={"x": jb.Box(1e-170, 1)},
         check=lambda: big("1e-340") < big("1e-300"),
         violates=lambda x: exact(x)[0] ** 2 < Fraction(1e-300)),
    line("an_exponential_beats_a_larger_one", False, "e^x < e^(x + 1); floats end at 709",
         lambda x: jnp.exp(x), ">=", lambda x: jnp.where(x > 705, jnp.exp(x + 1), 0.0),
         over={"x": jb.Box(0, 1000)}, check=lambda: exp(800) < exp(801),
         violates=lambda x: exact(x)[0] > 705),
    fails_by("constant_of_a_huge_cube", "1e450 at 1e150", lambda x: x**3, 1.0,
             {"x": jb.Box(-1e150, 1e150)}, lambda: big("1e150") ** 3 > 1),
    verdict("maximum_that_doubles_in_place", False, "1 at the end of the box",
            in_place_doubling, "<=", 0.75, **HOST, check=lambda: 1 > 0.75,
            violates=lambda x: max(exact(x)) > Fraction(3, 4) and max(map(abs, exact(x))) <= 1),
    verdict("length_that_normalises_in_place", False, "2 at a corner",
            in_place_normalising, "<=", 1.5, **HOST, check=lambda: math.sqrt(4) > 1.5,
            violates=lambda x: sum(v * v for v in exact(x)) > Fraction(9, 4)),
    verdict("sum_that_clips_in_place", False, "4 at a corner", in_place_clipping, "<=", 3.0, **HOST,
            check=lambda: 4 > 3, violates=lambda x: total(x) > 3),
    verdict("a_mean_with_noise_is_below_two", False, "a normal draw passes 3 one time in 741",
            noisy, "<=", 2.0, **HOST, check=lambda: mpmath.ncdf(-3) > 0.0013,
            right=("inconclusive",), never=("fails",)),
    verdict("an_alternating_value_stays_low", False, "1 at every other call",
            alternating, "<=", 0.5, **HOST, check=lambda: 1 > 0.5, right=("inconclusive",),
            never=("fails",)),
)
# fmt: on
