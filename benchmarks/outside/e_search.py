"""Kind E: Lipschitz claims, tiny scales, spikes, suprema not reached, vertices, witnesses."""

import itertools
import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from jax.scipy.special import xlogy

import jaxbounds as jb
from benchmarks.outside.claims import Claim, Said, constant, of_kind, verdict

softmax = jax.nn.softmax
size = lambda x: jnp.sqrt(jnp.sum(x**2))
gelu = lambda x: jax.nn.gelu(x, approximate=False)
signed = lambda t: t / (jnp.abs(t) + 1e-8)
spike = lambda x, at, width: 1 / (1 + ((x - at) / width) ** 2)
MANY = np.random.default_rng(3).normal(size=(48, 16, 4))
WORST = MANY[20]
SIGNS = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
TENSOR = np.random.default_rng(22).integers(-9, 10, (4, 4, 4)).astype(float)
HEIGHT = np.random.default_rng(23).permutation(12) + 1.0
hilly = lambda x: jnp.sum((x - 0.3) ** 2 + 10 * (1 - jnp.cos(2 * jnp.pi * (x - 0.3))))
row_sums = lambda w: jnp.max(jnp.sum(jnp.abs(w), 1))
longest = lambda w: jb.supremum(lambda y: jnp.max(jnp.abs(w @ y)), {"y": jb.Box(-1, 1, 4)}, size={})
row = lambda y, x: softmax(y * x.at[1].set(y)) @ x.at[1].set(y)
own_slope = lambda x: jax.grad(row)(x[1], x)
FEW = jb.Budget(samples=12, restarts=1, steps=4)
"""The budget of claims with an inner search, in draws and steps; a larger one costs a minute."""
QUICK = {"budget": FEW, "search": "none"}
REALS = jb.Reals(3)


def standardised(x):
    c = x - jnp.mean(x)
    return c / jnp.sqrt(jnp.mean(c**2) + 1e-5)


def projector(a):
    """Onto the top eigenvector of the symmetric part."""
    v = jnp.linalg.eigh((a + a.T) / 2)[1][:, -1]
    return jnp.outer(v, v)


def trilinear():
    """The largest value of the tensor on sign vectors; the last vector takes the best signs."""
    half = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
    return float(np.max(np.sum(np.abs(np.einsum("ijk,ai,bj->abk", TENSOR, half, half)), -1)))


def expanding(name, truth, reason, f, rate, /, *, entry=REALS, **more) -> Claim:
    """The function is `rate`-Lipschitz."""
    return verdict(
        name, truth, reason, lambda x, y: size(f(x) - f(y)), "<=",
        lambda x, y: rate * size(x - y), over={"x": entry, "y": entry}, **more,
    )  # fmt: skip


def estimate(name, truth, reason, asked, check) -> Claim:
    """A value that `jb.supremum` gives."""

    def ask(seed: int) -> Said:
        with jb.float64_on_cpu():
            return Said(word="approached", ratio=float(jax.jit(asked)()))

    return Claim(name=name, truth=truth, reason=reason, ask=ask, check=check)


# fmt: off
CLAIMS = of_kind(
    "E",
    expanding("tanh_is_one_lipschitz", True, "its slope is 1 - tanh^2", jnp.tanh, 1.0,
              never=("attained",), entry=jb.Reals()),
    expanding("softmax_is_half_lipschitz", True, "|diag p - pp'| <= 1/2 (Popoviciu)", softmax, 0.5,
              equality="x, y to 0 along (1, -1)", never=("attained",), entry=jb.Box(-5, 5, 2)),
    verdict("some_token_stretches_its_own_row", True, "1/3 + 2 a^2 / 3 at (a, 0, -a)",
            lambda k, x: own_slope(x), ">=", lambda k: k, over={"k": jb.OneOf(1.0, 10.0, 100.0)},
            there_is={"x": jb.Box(-100, 100, 3)}, **QUICK,
            check=lambda: 2 * 13**2 / 3 > 100),
    verdict("some_unit_vector_is_stretched_enough", True, "|A|_F^2 is the sum of two |A e_i|^2",
            lambda a, x: size(a @ x), ">=", lambda a, x: size(a) / math.sqrt(2), equality="A = I",
            over={"a": jb.Box(-1, 1, (2, 2))}, there_is={"x": jb.Sphere(1, 2)}, **QUICK,
            check=lambda: all(max((a**2).sum(0)) >= (a**2).sum() / 2
                              for a in np.random.default_rng(1).normal(size=(99, 2, 2)))),
    estimate("suprema_over_forty_eight_boxes", 1.0, "the row sum, at a corner of each box of four",
             lambda: jnp.min(jax.vmap(lambda w: longest(w) / row_sums(w))(MANY)),
             lambda: all(np.isclose(np.abs(SIGNS @ w.T).max(), np.abs(w).sum(1).max())
                         for w in MANY)),
    estimate("supremum_at_a_vertex_of_a_simplex", 144.0, "a convex function is largest at a vertex",
             lambda: jb.supremum(lambda p: (HEIGHT @ p) ** 2, {"p": jb.Simplex(12)}, size={}),
             lambda: max(HEIGHT) == 12),
    constant("share_of_a_square_approaches_one", 1.0, "x^2 / (1 + x^2) < 1",
             lambda x: x**2, lambda x: 1 + x**2, over={"x": jb.Reals()},
             never=("attained", "every instance"), check=lambda: 10**12 / (1 + 10**12) > 1 - 1e-11),
    constant("trilinear_form_on_a_box", trilinear(), "linear in each vector: signs are enough",
             lambda x, y, w: jnp.einsum("ijk,i,j,k", TENSOR, x, y, w), 1.0,
             over={k: jb.Box(-1, 1, 4) for k in "xyw"}, check=lambda: trilinear() > 100),

    expanding("standardising_is_100_lipschitz", False, "1 / sqrt(1e-5) = 316 at constant vectors",
              standardised, 100.0, at={"x": [1e-5, -1e-5, 0.0], "y": [0.0, 0, 0]}),
    expanding("a_steep_switch_is_5000_lipschitz", False, "10000 at 0.7",
              lambda x: jnp.tanh(1e4 * (x - 0.7)), 5e3, entry=jb.Box(-10, 10),
              at={"x": 0.7, "y": 0.7 + 1e-6}),
    expanding("gelu_is_11288_lipschitz", False, "1.12890 at sqrt 2", gelu, 1.1288,
              entry=jb.Reals(), at={"x": math.sqrt(2) + 1e-3, "y": math.sqrt(2) - 1e-3}),
    expanding("root_is_10000_lipschitz", False, "sqrt(x) / x at 1e-10 is 1e5", jnp.sqrt, 1e4,
              entry=jb.Box(0, 1), at={"x": 1e-10, "y": 0.0}),
    expanding("direction_is_1000_lipschitz", False, "x / |x| turns by any angle near 0",
              lambda x: x / size(x), 1e3, entry=jb.Box(-1, 1, 2),
              at={"x": [1e-5, 0], "y": [0, 1e-5]}),
    expanding("softmax_of_five_is_49999_lipschitz", False, "1/2 where two of five share the weight",
              softmax, 0.49999, entry=jb.Reals(5),
              at={"x": [1e-3, -1e-3, -50, -50, -50], "y": [0.0, 0, -50, -50, -50]}),
    expanding("normalised_gradient_is_1e6_lipschitz", False, "1e8 at 0", signed, 1e6,
              entry=jb.Box(-1, 1), at={"x": 1e-9, "y": 0.0}),
    expanding("top_projector_is_100_lipschitz", False, "it jumps where eigenvalues cross",
              projector, 100.0, entry=jb.Box(-1, 1, (2, 2)),
              at={"x": [[1e-4, 0], [0, 0.0]], "y": [[0, 0.0], [0, 1e-4]]}),
    verdict("a_quartic_with_a_dent_is_convex", False, "12 x^2 < 2e-3 for |x| < 0.0129",
            lambda x, y: (lambda f: f((x + y) / 2))(lambda t: t**4 - 1e-3 * t**2), "<=",
            lambda x, y: sum(t**4 - 1e-3 * t**2 for t in (x, y)) / 2,
            over={"x": jb.Box(-10, 10), "y": jb.Box(-10, 10)}, at={"x": 0.01, "y": -0.01}),
    verdict("a_pulse_at_a_tiny_scale_is_low", False, "1e-8 / e = 3.68e-9 at x = 1e-8",
            lambda x: x * jnp.exp(-1e8 * x), "<=", 3e-9, over={"x": jb.Box(0, 1)},
            at={"x": 1e-8}),
    verdict("entropy_of_a_tiny_share_is_small", False, "e^-41 more than 40 x at x = e^-41",
            lambda x: -xlogy(x, x), "<=", lambda x: 40 * x + 1e-19, over={"x": jb.Box(0, 1)},
            at={"x": math.exp(-41)}),
    verdict("a_narrow_spike_stays_below_half", False, "1 at x = 0.7321",
            lambda x: spike(x, 0.7321, 1e-4), "<=", 0.5, over={"x": jb.Box(-10, 10)},
            at={"x": 0.7321}),
    verdict("a_spike_beside_an_equality_case", False, "2 at x = 0.618, beside 1 at x = 0",
            lambda x: jnp.maximum(1 - x**2, 2 * spike(x, 0.618, 1e-3)), "<=", 1.0, equality="x = 0",
            over={"x": jb.Box(-1, 1)}, at={"x": 0.618}),
    verdict("compound_interest_stays_below_2718", False, "e - e / 2x > 2.718 from x = 5000 on",
            lambda x: jnp.exp(x * jnp.log1p(1 / x)), "<=", 2.718, over={"x": jb.Box(1, math.inf)},
            check=lambda: (1 + mpmath.mpf(1) / 10**5) ** 10**5 > 2.718),
    verdict("share_of_a_number_stays_below", False, "x / (1 + x) > 1 - 1e-7 from x = 1e7 on",
            lambda x: x / (1 + x), "<=", 1 - 1e-7, over={"x": jb.Box(0, math.inf)},
            check=lambda: mpmath.mpf(10) ** 9 / (1 + mpmath.mpf(10) ** 9) > 1 - 1e-7),
    verdict("a_winding_valley_stays_high", False, "0 at (1, 1)",
            lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2, ">=", 1e-4,
            over={"x": jb.Box(-2, 2, 2)}, at={"x": [1.0, 1.0]}),
    verdict("a_hilly_landscape_stays_high", False, "0 at 0.3; other valleys are about 1 or more",
            hilly, ">=", 0.5, over={"x": jb.Box(-5, 5, 2)}, at={"x": [0.3, 0.3]}),
    verdict("small_matrices_are_well_conditioned", False, "1e8 at diag(1, 1, 1e-8)",
            lambda a: 1 / jnp.linalg.svd(a, compute_uv=False)[-1], "<=", 1e6,
            over={"a": jb.Box(-1, 1, (3, 3))},
            at={"a": [[1.0, 0, 0], [0, 1, 0], [0, 0, 1e-8]]}),
    verdict("longest_image_of_a_box_is_short", False, "a corner reaches the largest row sum",
            lambda t: t * longest(WORST), "<=", lambda t: 0.9 * t * row_sums(WORST),
            over={"t": jb.Box(1, 2)}, estimates={"lhs": "below"}, budget=FEW,
            check=lambda: np.abs(SIGNS @ WORST.T).max() > 0.99 * np.abs(WORST).sum(1).max()),
    verdict("every_residue_is_a_square", False, "2 is none modulo 11",
            lambda n, k: (k * k - n) % 11, "<=", 0.0, over={"n": jb.Integers(0, 10)},
            there_is={"k": jb.Integers(0, 10)},
            check=lambda: 2 not in {k * k % 11 for k in range(11)}),
)
# fmt: on
