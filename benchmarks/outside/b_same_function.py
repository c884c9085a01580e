"""Kind B: programs on bits, bytes, bools, casts, ties, indices and complex numbers.

The library must evaluate the function that the compiler evaluates.
"""

import jax
import jax.numpy as jnp

import jaxbounds as jb
from benchmarks.outside.claims import line, of_kind, verdict

lax = jax.lax
real = lambda x: x.astype(float)
u8, i8, i16, i32 = jnp.uint8, jnp.int8, jnp.int16, jnp.int32
BYTES = {"x": jb.Integers(0, 255, 4)}
SMALL = {"x": jb.Integers(-128, 127, 4)}
PLANE = {k: jb.Box(-2, 2) for k in ("a", "b", "c", "d")}
z = lambda a, b: a + 1j * b
both = lambda w: jnp.stack([jnp.real(w), jnp.imag(w)])
holes = lambda x: jnp.where(x > 0, jnp.nan, x)
uniform = lambda seed: jax.random.uniform(jax.random.key(seed), dtype=jnp.float64)


def products(x, y):
    """The full convolution of two arrays of bytes, added up in 32 bits."""
    rows = (x.astype(i8)[None, None], y.astype(i8)[None, None])
    return lax.conv_general_dilated(*rows, (1,), "VALID", preferred_element_type=i32)[0, 0, 0]


# fmt: off
CLAIMS = of_kind(
    "B",
    verdict("top_of_four_bytes_is_their_maximum", True, "255 is the largest byte, 0 the least",
            lambda x: real(lax.top_k(x.astype(u8), 1)[0][0]), "=", lambda x: real(jnp.max(x)),
            over=BYTES),
    verdict("top_k_sorts_signed_bytes", True, "-128 comes last, though -(-128) wraps",
            lambda x: real(lax.top_k(x.astype(i8), 4)[0]), "=", lambda x: real(jnp.sort(x)[::-1]),
            over=SMALL),
    verdict("top_k_takes_the_first_of_ties", True, "the lower index appears first",
            lambda x: lax.top_k(x, 1)[1][0], "=", lambda x: jnp.argmax(x),
            over={"x": jb.Integers(0, 2, 4)}),
    verdict("sorting_puts_nan_last", True, "the order of sort counts NaN as the largest",
            lambda x: real(jnp.isnan(jnp.sort(holes(x))[-1])), "=", lambda x: real(jnp.any(x > 0)),
            over={"x": jb.Box(-1, 1, 2)}),
    verdict("nan_is_the_top_of_two", True, "the compiler orders NaN above every number",
            lambda x: real(jnp.isnan(lax.top_k(holes(x), 1)[0][0])), "=",
            lambda x: real(jnp.any(x > 0)), over={"x": jb.Box(-1, 1, 2)}),
    verdict("single_precision_holds_whole_numbers", True, "24 bits of mantissa",
            lambda n: real(n.astype(jnp.float32)), "=", lambda n: real(n),
            over={"n": jb.Integers(-(2**24), 2**24)}),
    line("bools_add_up_to_one_at_most", True, "true + true is true",
         lambda x, y: real((x > 0) + (y > 0)), "<=", 1.0,
         over={"x": jb.Box(-1, 1), "y": jb.Box(-1, 1)}),
    verdict("last_running_maximum_is_the_maximum", True, "definition",
            lambda x: real(lax.cummax(x.astype(i8))[-1]), "=", lambda x: real(jnp.max(x)),
            over=SMALL),
    verdict("bytes_add_up_in_wide_words", True, "products of 16 bits, sums in 32",
            lambda x, y: real(jnp.einsum("i,i->", x.astype(i8), y.astype(i8),
                                         preferred_element_type=i32)), "=",
            lambda x, y: real(x @ y), over={"x": SMALL["x"], "y": SMALL["x"]}),
    verdict("bfloat16_is_off_by_a_256th", True, "8 bits of mantissa: half a unit is x / 256",
            lambda x: jnp.abs(real(x.astype(jnp.bfloat16)) - x), "<=", lambda x: x / 256,
            over={"x": jb.Box(1, 100)}),
    verdict("moduli_of_complex_products", True, "|zw| = |z| |w|",
            lambda a, b, c, d: jnp.abs(z(a, b) * z(c, d)), "=",
            lambda a, b, c, d: jnp.abs(z(a, b)) * jnp.abs(z(c, d)), over=PLANE),
    verdict("leading_zeros_give_the_logarithm", True, "floor(log2 n) is the index of the top bit",
            lambda n: real(31 - lax.clz(n.astype(i32))), "=", lambda n: jnp.floor(jnp.log2(n)),
            over={"n": jb.Integers(1, 4000)}),

    line("bits_in_common_are_few", False, "8 is common to 8..15",
         lambda x: real(jnp.bitwise_and.reduce(x)), "<=", 1.0, over={"x": jb.Integers(8, 15, 3)},
         at={"x": [8, 9, 10]}),
    line("half_precision_stays_within_a_4096th", False, "1 + 33 / 2048 is off by 1 / 2048",
         lambda x: jnp.abs(real(x.astype(jnp.float16)) - x), "<=", lambda x: x / 4096,
         over={"x": jb.Box(1, 2)}, at={"x": 1 + 1 / 64 + 1 / 2048}),
    line("exclusive_bits_stay_below_four", False, "4 xor 3 = 7",
         lambda x: real(jnp.bitwise_xor.reduce(x.astype(u8))), "<=", 3.0,
         over={"x": jb.Integers(0, 7, 3)}, at={"x": [4, 3, 0]}),
    line("bool_products_count_to_one", False, "four of four agree",
         lambda x, y: real(jnp.dot(x > 0, y > 0, preferred_element_type=i32)), "<=", 1.0,
         over={"x": jb.Box(-1, 1, 4), "y": jb.Box(-1, 1, 4)},
         at={"x": [1.0] * 4, "y": [1.0] * 4}),
    line("products_of_short_words_stay_short", False, "3 * 3e4 * 3e4 = 2.7e9 in 64 bits",
         lambda x, y: real(jnp.matmul(x.astype(i16), y.astype(i16),
                                      preferred_element_type=jnp.int64)), "<=", 32768.0,
         over={"x": jb.Integers(-30000, 30000, 3), "y": jb.Integers(-30000, 30000, 3)},
         at={"x": [30000] * 3, "y": [30000] * 3}),
    line("convolved_bytes_stay_bytes", False, "8 * 100 * 100 = 80000",
         lambda x, y: real(products(x, y)), "<=", 127.0,
         over={"x": jb.Integers(0, 100, 8), "y": jb.Integers(0, 100, 8)},
         at={"x": [100] * 8, "y": [100] * 8}),
    verdict("top_two_bytes_add_up_to_300", False, "255 + 255 = 510",
            lambda x: jnp.sum(real(lax.top_k(x.astype(u8), 2)[0])), "<=", 300.0, over=BYTES,
            at={"x": [255, 255, 0, 0]}),
    verdict("division_of_integers_rounds_down", False, "lax.div rounds -1/2 to 0",
            lambda x: real(lax.div(x, 2)), "=", lambda x: jnp.floor(x / 2),
            over={"x": jb.Integers(-100, 100)}, at={"x": -1}),
    line("logical_shift_keeps_small_numbers_small", False, "-1 shifted once is 2^31 - 1",
         lambda x: real(lax.shift_right_logical(x.astype(i32), i32(1))), "<=", 100.0,
         over={"x": jb.Integers(-8, 8)}, at={"x": -1}),
    verdict("cast_to_an_integer_is_the_floor", False, "the cast truncates -0.5 to 0",
            lambda x: real(x.astype(i32)), "=", lambda x: jnp.floor(x), over={"x": jb.Box(-5, 5)},
            at={"x": -0.5}),
    verdict("cast_to_an_unsigned_word_keeps_numbers", False, "-1 becomes 2^64 - 1",
            lambda x: real(x.astype(jnp.uint64)), "<=", lambda x: jnp.abs(real(x)),
            over={"x": jb.Integers(-5, 5)}, at={"x": -1}),
    verdict("last_maximum_mirrors_the_first", False, "ties: argmax takes the first",
            lambda x: jnp.argmax(x), "=", lambda x: 3 - jnp.argmax(x[::-1]),
            over={"x": jb.Integers(0, 9, 4)}, at={"x": [5, 5, 0, 0]}),
    verdict("bytes_have_seven_bits_set_at_most", False, "255 has eight",
            lambda x: real(lax.population_count(x.astype(u8))), "<=", 7.0,
            over={"x": jb.Integers(0, 255)}, at={"x": 255}),
    verdict("complex_roots_multiply", False, "sqrt(-1) sqrt(-1) = -1, sqrt(1) = 1",
            lambda a, b, c, d: both(jnp.sqrt(z(a, b) * z(c, d))), "=",
            lambda a, b, c, d: both(jnp.sqrt(z(a, b)) * jnp.sqrt(z(c, d))), over=PLANE,
            at={"a": -1.0, "b": 0.5, "c": -1.0, "d": 0.5}),
    verdict("complex_inner_product_needs_no_conjugate", False, "i * i = -1, conj(i) i = 1",
            lambda x, y: both(jnp.vdot(z(x, y), z(x, y))), "=",
            lambda x, y: both(jnp.dot(z(x, y), z(x, y))),
            over={"x": jb.Reals(2), "y": jb.Reals(2)}, at={"x": [0.0, 0], "y": [1.0, 0]}),
    verdict("scattered_counts_all_land", False, "index 3 is outside of three places: dropped",
            lambda i: jnp.sum(jnp.zeros(3).at[i].add(1.0)), "=", 4.0,
            over={"i": jb.Integers(0, 3, 4)}, at={"i": [3, 0, 0, 0]}),
    verdict("products_in_bfloat16_stay_small", False, "12 * 256 = 3072, exact in float32",
            lambda x: real(jnp.dot(x.astype(jnp.bfloat16), x.astype(jnp.bfloat16),
                                   preferred_element_type=jnp.float32)), "<=", 3000.0,
            over={"x": jb.Integers(0, 16, 12)}, at={"x": [16] * 12}),
    verdict("seeded_uniforms_stay_below_099", False, "six of the 500 give more",
            lambda seed: uniform(seed), "<=", 0.99, over={"seed": jb.Integers(0, 499)},
            at={"seed": 362}),
)
# fmt: on
