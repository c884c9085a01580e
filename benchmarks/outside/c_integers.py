"""Kind C: integers in sets, constants over integers, and machine integers that wrap."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxbounds as jb
from benchmarks.outside.claims import constant, line, of_kind, verdict

real = lambda x: x.astype(float)
i8, i32 = jnp.int8, jnp.int32
LAST = 6001
PRIMES = np.array([n > 1 and all(n % k for k in range(2, math.isqrt(n) + 1)) for n in range(LAST)])
SQUARES = 2 * np.arange(55) ** 2
CUT = np.triu(np.random.default_rng(11).integers(0, 2, (16, 16)), 1)
FORM = np.triu(np.random.default_rng(12).integers(-9, 10, (18, 18))).astype(float)
WEIGHTS = np.random.default_rng(13).integers(5, 60, 18)
WORTH = np.random.default_rng(14).integers(5, 60, 18)
PARTS = np.random.default_rng(15).integers(100, 1000, 16) * 2
ORDERS = [list(order) for order in itertools.permutations(range(7))]
ALL = {n: np.array(list(itertools.product((-1, 1), repeat=n)), np.int8) for n in (16, 18)}
K = np.arange(1, 5001)


def steps(n):
    """The steps of the Collatz map from n to 1."""
    step = lambda v: (jnp.where(v[0] % 2 == 0, v[0] // 2, 3 * v[0] + 1), v[1] + 1)
    return lax.while_loop(lambda v: v[0] > 1, step, (n, 0))[1].astype(float)


def collatz(n):
    return 0 if n == 1 else 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)


def power_of_two(n, kind=int):
    return lax.fori_loop(0, n, lambda _, v: v * jnp.asarray(2, kind), jnp.asarray(1, kind))


def residue(n):
    """2^n mod n in a loop."""
    return lax.fori_loop(0, n, lambda _, v: (2 * v) % n, 1)


def fibonacci(n):
    return lax.fori_loop(0, n, lambda _, v: (v[1], v[0] + v[1]), (0, 1))[0].astype(float)


def fill(x):
    """The worth of a knapsack; none where it is too heavy."""
    return jnp.where(x @ WEIGHTS <= 250, x @ WORTH, 0).astype(float)


def fullest():
    x = (ALL[18].astype(int) + 1) // 2
    return int(np.max(np.where(x @ WEIGHTS <= 250, x @ WORTH, 0)))


def cut(x):
    """The edges between the two sides that signs give."""
    return (jnp.sum(CUT) - x @ CUT @ x) / 2


cuts = lambda: int(max((CUT.sum() - int(x @ CUT @ x)) // 2 for x in ALL[16].astype(int)))
forms = lambda: float(np.max(np.einsum("ni,ij,nj->n", ALL[18].astype(float), FORM, ALL[18])))
divisors = lambda n: jnp.sum(n % K == 0).astype(float)
grid = lambda f, n: np.max(f(*np.meshgrid(np.arange(n + 1), np.arange(n + 1))))
budget = lambda a, b: a * b - 10.0 * jnp.maximum(0, a + 2 * b - 1000) ** 2
CUBE, SIGNS = {"x": jb.Integers(0, 1, 18)}, {"x": jb.Signs(18)}

# fmt: off
CLAIMS = of_kind(
    "C",
    constant("a_peak_inside_a_million", 1.0, "n = 314159", lambda n: 1e6 - jnp.abs(n - 314159), 1e6,
             over={"n": jb.Integers(0, 10**6)}, check=lambda: 0 < 314159 < 10**6),
    constant("a_product_within_a_budget", 1.0, "the largest of a million points",
             budget, 126581.0, over={"a": jb.Integers(0, 1000), "b": jb.Integers(0, 1000)},
             check=lambda: grid(lambda a, b: a * b - 10 * np.maximum(0, a + 2 * b - 1000) ** 2,
                                1000) == 126581),
    constant("largest_cut_of_sixteen_vertices", 44.0, "all 65536 sign vectors", cut, 1.0,
             over={"x": jb.Signs(16)}, check=lambda: cuts() == 44),
    constant("quadratic_form_of_eighteen_signs", 310.0, "all 262144 sign vectors",
             lambda x: x @ FORM @ x, 1.0, over=SIGNS, check=lambda: forms() == 310),
    constant("longest_collatz_run_below_ten_thousand", 261.0, "it starts at 6171", steps, 1.0,
             over={"n": jb.Integers(1, 9999)},
             check=lambda: max(map(collatz, range(1, 10**4))) == collatz(6171) == 261),
    constant("most_bits_below_a_million", 19.0, "2^19 - 1; twenty need 2^20 - 1",
             lambda n: real(lax.population_count(n)), 1.0, over={"n": jb.Integers(1, 10**6)},
             check=lambda: max(n.bit_count() for n in range(10**6 + 1)) == 19),
    constant("most_divisors_up_to_five_thousand", 48.0, "2520, and seven more", divisors, 1.0,
             over={"n": jb.Integers(1, 5000)},
             check=lambda: max(sum(n % k == 0 for k in range(1, n + 1))
                               for n in range(2500, 2530)) == 48),
    constant("rearrangement_of_seven", 91.0, "sorted alike: 1 + 4 + ... + 36; 5040 orders",
             lambda order: real(order @ jnp.arange(7)), 1.0, over={"order": jb.OneOf(ORDERS)},
             check=lambda: max(sum(i * p for i, p in enumerate(o)) for o in ORDERS) == 91),
    constant("best_knapsack_of_eighteen", 353.0, "all 262144 fillings", fill, 1.0, over=CUBE,
             check=lambda: fullest() == 353),
    constant("a_common_divisor_that_is_everything", 30030.0, "n = 30030, of a million",
             lambda n: real(jnp.gcd(n, 30030)), 1.0, over={"n": jb.Integers(1, 10**6)},
             check=lambda: math.gcd(30030, 30030) == 30030),
    verdict("fifth_powers_end_alike", True, "n^5 - n is divisible by 2, 3 and 5",
            lambda n: (n**5 - n) % 30, "=", 0.0, over={"n": jb.Integers(-1000, 1000)},
            check=lambda: not any((n**5 - n) % 30 for n in range(-1000, 1001))),
    verdict("products_of_integers_below_squares", True, "(a - b)^2 >= 0",
            lambda a, b: real(4 * a * b), "<=", lambda a, b: real((a + b) ** 2), equality="a = b",
            over={"a": jb.Integers(0, 10**6), "b": jb.Integers(0, 10**6)}),
    verdict("a_prime_between_n_and_its_double", True, "Bertrand's postulate",
            lambda n: jnp.sum(PRIMES & (jnp.arange(LAST) > n) & (jnp.arange(LAST) <= 2 * n)), ">=",
            1.0, equality="n = 1", over={"n": jb.Integers(1, 3000)},
            check=lambda: all(PRIMES[n + 1:2 * n + 1].any() for n in range(1, 3001))),
    verdict("powers_of_two_beat_cubes", True, "2^n > n^3 from n = 10 on; 2^64 wraps to 0",
            lambda n: real(power_of_two(n)), ">=", lambda n: real(n) ** 3, wraps=True,
            over={"n": jb.Integers(10, 70)}, check=lambda: all(2**n > n**3 for n in range(10, 71))),
    verdict("squares_of_short_integers_are_not_negative", True, "50000^2 wraps in 32 bits",
            lambda n: real(n.astype(i32) ** 2), ">=", 0.0, equality="n = 0", wraps=True,
            over={"n": jb.Integers(-(10**5), 10**5)},
            check=lambda: min(n * n for n in range(-(10**5), 10**5)) == 0),
    verdict("average_of_two_bytes_lies_between", True, "100 + 100 wraps in 8 bits",
            lambda a, b: real((a.astype(i8) + b.astype(i8)) // 2), ">=",
            lambda a, b: real(jnp.minimum(a, b)), equality="a = b", wraps=True,
            over={"a": jb.Integers(-100, 100), "b": jb.Integers(-100, 100)},
            check=lambda: all((a + b) // 2 >= min(a, b)
                              for a in range(-100, 101) for b in range(-100, 101))),

    verdict("eulers_polynomial_gives_primes", False, "n = 40 gives 41^2",
            lambda n: jnp.sum(((n * n + n + 41) % K[1:] == 0) & (K[1:] < n * n + n + 41)), "<=",
            0.0, over={"n": jb.Integers(0, 60)}, check=lambda: 40 * 40 + 40 + 41 == 41 * 41),
    verdict("fermats_test_finds_primes", False, "2^341 = 2 mod 341 = 11 * 31",
            lambda n: real((residue(n) == 2) & ~jnp.asarray(PRIMES)[n]), "<=", 0.0,
            over={"n": jb.Integers(3, 4000)}, check=lambda: pow(2, 341, 341) == 2),
    verdict("odd_numbers_are_primes_plus_twice_squares", False, "5777 and 5993 are not",
            lambda n: jnp.sum(jnp.asarray(PRIMES)[jnp.maximum(2 * n + 1 - SQUARES, 0)]), ">=", 1.0,
            over={"n": jb.Integers(1, 2999)},
            check=lambda: not any(PRIMES[5777 - s] for s in SQUARES if s < 5777)),
    line("a_parabola_below_its_peak", False, "only n = 100000 gives 1e10",
         lambda n: real(n * (200000 - n)), "<=", 1e10 - 0.5, over={"n": jb.Integers(0, 200000)},
         at={"n": 100000}, check=lambda: 100000 * 100000 > 10**10 - 1),
    line("a_bowl_stays_above_its_bottom", False, "0 at (123, 456) alone",
         lambda a, b: real((a - 123) ** 2 + (b - 456) ** 2), ">=", 0.5,
         over={"a": jb.Integers(0, 1000), "b": jb.Integers(0, 1000)}, at={"a": 123, "b": 456}),
    line("no_even_split_of_sixteen_numbers", False, "some of 65536 splits are even",
         lambda x: jnp.abs(x @ PARTS), ">=", 1.0, over={"x": jb.Signs(16)},
         check=lambda: bool((ALL[16].astype(int) @ PARTS == 0).any())),
    line("cut_of_sixteen_stays_below_44", False, "the largest cut is 44", cut, "<=", 43.0,
         over={"x": jb.Signs(16)}, check=lambda: cuts() == 44),
    line("form_of_eighteen_signs_stays_below", False, "the largest value is 310",
         lambda x: x @ FORM @ x, "<=", 309.0, over=SIGNS, check=lambda: forms() == 310),
    line("knapsack_stays_below_353", False, "the best filling is worth 353", fill, "<=", 352.0,
         over=CUBE, check=lambda: fullest() == 353),
    verdict("pells_equation_has_no_small_solution", False, "127^2 - 7 * 48^2 = 1",
            lambda a, b: jnp.abs(a * a - 7 * b * b - 1), ">=", 1.0,
            over={"a": jb.Integers(9, 200), "b": jb.Integers(4, 200)},
            check=lambda: 127**2 - 7 * 48**2 == 1),
    verdict("triangular_numbers_are_no_squares", False, "8 * 9 / 2 = 36; 49 * 50 / 2 = 35^2",
            lambda n: jnp.abs(n * (n + 1) // 2 - jnp.round(jnp.sqrt(n * (n + 1) / 2)) ** 2), ">=",
            1.0, over={"n": jb.Integers(9, 3000)}, check=lambda: 49 * 50 // 2 == 35**2),
    verdict("mersenne_numbers_are_prime", False, "2^11 - 1 = 23 * 89",
            lambda p: jnp.sum((power_of_two(p) - 1) % K[1:1000] == 0), "<=",
            lambda p: jnp.sum(power_of_two(p) - 1 == K[1:1000]),
            over={"p": jb.OneOf(2, 3, 5, 7, 11, 13)}, check=lambda: 2**11 - 1 == 23 * 89),
    verdict("three_short_sums_stay_below", False, "3e9 > 2.2e9; the sum wraps in 32 bits",
            lambda x: real(jnp.sum(x.astype(i32), dtype=i32)), "<=", 2.2e9, wraps=True,
            over={"x": jb.Integers(0, 10**9, 3)}, check=lambda: 3 * 10**9 > 2.2e9),
    verdict("fibonacci_stays_below", False, "F(93) = 1.2e19; it wraps", fibonacci, "<=", 1e19,
            wraps=True, over={"n": jb.Integers(1, 96)},
            check=lambda: 12200160415121876738 > 10**19),
    verdict("a_product_of_bytes_is_below_128", False, "12 * 12 = 144; it wraps in 8 bits",
            lambda a, b: real(a.astype(i8) * b.astype(i8)), "<=", 127.5, wraps=True,
            over={"a": jb.Integers(0, 12), "b": jb.Integers(0, 12)}, check=lambda: 144 > 127.5),
    verdict("a_form_in_two_integers_is_definite", False, "1 - 3 + 1 at (1, 1)",
            lambda a, b: a * a - 3 * a * b + b * b, ">=", 0.0,
            over={"a": jb.Integers(-50, 50), "b": jb.Integers(-50, 50)}, at={"a": 1, "b": 1}),
)
# fmt: on
