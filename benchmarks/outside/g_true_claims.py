"""Kind G: true claims of theory, on exact domains or approached in a limit; two are false."""

import math

import jax.numpy as jnp
import mpmath
import numpy as np
from jax import lax
from jax.nn import logsumexp, softmax
from jax.scipy.special import entr, erf, gammaln, rel_entr, xlogy

import jaxbounds as jb
from benchmarks.outside.claims import of_kind, proof, verdict

total, eig = jnp.sum, jnp.linalg.eigvalsh
values = lambda a: jnp.linalg.svd(a, compute_uv=False)
even = lambda a: (a + a.T) / 2
P, X = jb.Simplex("N"), jb.Reals("N")
N, D = ({"N": 2}, {"N": 4}), ({"d": 2}, {"d": 3})
SYMMETRIC = {"a": jb.Reals(("d", "d")), "b": jb.Reals(("d", "d"))}
CONES = {"a": jb.PSD(2, at_most=1, norm="operator"), "b": jb.PSD(2, at_most=1, norm="operator")}
det = lambda a: a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
root = lambda x: jnp.sqrt(jnp.maximum(x, 0.0))
length = lambda x, p: total(jnp.abs(x) ** p) ** (1 / p)
AXIS = {"x": jb.Reals()}
KNOTS, HAT = np.array([0.0, 1, 2]), np.array([0.0, 1, 0])
STEPS = tuple({"n": n} for n in (16, 32, 64, 128, 256, 512))

# fmt: off
CLAIMS = of_kind(
    "G",
    verdict("entropy_is_at_most_that_of_the_uniform_law", True, "Jensen; 0 log 0 = 0",
            lambda p: -total(jnp.where(p > 0, p * jnp.log(p), 0.0)), "<=",
            lambda p: jnp.log(len(p)), equality="p uniform", over={"p": P}, sizes=N),
    verdict("hellinger_below_divergence", True, "log t <= 2 (sqrt t - 1)",
            lambda p, q: total((jnp.sqrt(p) - jnp.sqrt(q)) ** 2), "<=",
            lambda p, q: total(rel_entr(p, q)), equality="p = q", over={"p": P, "q": P}, sizes=N),
    verdict("fenchel_young_for_the_softmax", True, "entropy is conjugate to log-sum-exp",
            lambda x, p: x @ p, "<=", lambda x, p: logsumexp(x) + total(xlogy(p, p)),
            equality="p = softmax(x)", over={"x": jb.Box(-5, 5, "N"), "p": P}, sizes=N),
    verdict("gibbs_variational_bound", True, "KL(softmax(x) || q) >= 0",
            lambda x, q: softmax(x) @ jnp.log(q + 1e-3), "<=",
            lambda x, q: softmax(x) @ jnp.log(softmax(x)) + jnp.log(1 + 1e-3 * len(x)),
            equality="q + 1e-3 in proportion to softmax(x)",
            over={"x": jb.Box(-3, 3, "N"), "q": P}, sizes=N),
    verdict("weyl_for_singular_values", True, "Weyl's perturbation inequality",
            lambda a, b: jnp.max(jnp.abs(values(a + b) - values(a))), "<=",
            lambda a, b: values(b)[0], equality="b a multiple of a", over=SYMMETRIC, sizes=D),
    verdict("largest_eigenvalue_is_subadditive", True, "a supremum of linear forms",
            lambda a, b: eig(even(a + b))[-1], "<=",
            lambda a, b: eig(even(a))[-1] + eig(even(b))[-1], equality="a = b", over=SYMMETRIC,
            sizes=D),
    verdict("diagonal_below_the_largest_eigenvalue", True, "Schur and Horn: e_i'Ae_i",
            lambda a: jnp.max(jnp.diag(a)), "<=", lambda a: eig(even(a))[-1],
            equality="a diagonal", over={"a": jb.Reals(("d", "d"))}, sizes=D),
    verdict("schur_products_of_psd_are_psd", True, "Schur's product theorem",
            lambda a, b: eig(a * b)[0], ">=", 0.0, equality="rank one", over=CONES),
    verdict("minkowski_for_determinants", True, "det(A)^(1/2) is concave in two dimensions",
            lambda a, b: root(det(a + b)), ">=", lambda a, b: root(det(a)) + root(det(b)),
            equality="a = b", over=CONES),
    verdict("hadamard_for_determinants", True, "a11 a22 - a12^2 <= a11 a22",
            lambda a: det(a), "<=", lambda a: a[0, 0] * a[1, 1], equality="a diagonal",
            over={"a": CONES["a"]}),
    verdict("minkowski_for_cubes", True, "the triangle inequality of the 3-norm",
            lambda x, y: length(x + y, 3), "<=", lambda x, y: length(x, 3) + length(y, 3),
            equality="x = y", over={"x": X, "y": X}, sizes=N),
    verdict("hoelder_for_three_and_three_halves", True, "1/3 + 2/3 = 1",
            lambda x, y: jnp.abs(x @ y), "<=", lambda x, y: length(x, 3) * length(y, 1.5),
            equality="x = y of signs", over={"x": X, "y": X}, sizes=N),
    verdict("log_sum_exp_is_near_the_maximum", True, "at most N terms of e^max",
            lambda x: logsumexp(x), "<=", lambda x: jnp.max(x) + jnp.log(len(x)),
            equality="x constant", over={"x": X}, sizes=N),
    verdict("sine_is_below_its_argument", True, "the ratio tends to 1 at 0 only",
            lambda x: jnp.sin(x) / x, "<=", 1.0, never=("attained",),
            over={"x": jb.Box(1e-8, 10)}),
    verdict("logarithm_below_its_tangent", True, "log is strictly concave",
            lambda x: jnp.log1p(x) / x, "<=", 1.0, equality="x to 0", never=("attained",),
            over={"x": jb.Box(1e-9, 10)}),
    verdict("a_number_below_its_hypotenuse", True, "x^2 < 1 + x^2", lambda x: x, "<=",
            lambda x: jnp.sqrt(1 + x**2), equality="x to infinity", never=("attained",), over=AXIS),
    verdict("error_function_below_one", True, "erf < 1; it rounds to 1 from 6 on",
            lambda x: erf(x), "<=", 1.0, equality="x to infinity", never=("attained",), over=AXIS),
    verdict("compound_growth_below_its_limit", True, "log(1 + 1/x) < 1/x",
            lambda x: x * jnp.log1p(1 / x), "<=", 1.0, equality="x to infinity",
            never=("attained",), over={"x": jb.Box(1, math.inf)}),
    verdict("stirlings_ratio_tends_to_one", True, "n! ~ sqrt(2 pi n) (n/e)^n",
            lambda n: jnp.exp(gammaln(n + 1.0) - n * math.log(n) + n)
            / math.sqrt(2 * math.pi * n), "->", 1.0, over={}, sizes=STEPS, towards={"n": math.inf},
            check=lambda: abs(mpmath.factorial(10**4) / mpmath.sqrt(2 * mpmath.pi * 10**4)
                              / mpmath.mpf(10) ** (4 * 10**4) * mpmath.exp(10**4) - 1) < 1e-5),
    proof("area_cosine_below_a_root", True, "equal at 1; u <= 2 sinh(u / 2)",
          lambda x: jnp.arccosh(x), "<=", lambda x: jnp.sqrt(2 * (x - 1)),
          over={"x": jb.Box(1, 5)}),
    proof("circle_below_a_parabola", True, "(1 - x^2/2)^2 = 1 - x^2 + x^4/4",
          lambda x: jnp.sqrt(1 - x**2), "<=", lambda x: 1 - x**2 / 2, over={"x": jb.Box(-1, 1)}),
    proof("cardinal_sine_below_one", True, "|sin t| <= |t|",
          lambda x: jnp.sinc(x), "<=", 1.0, over={"x": jb.Box(-3, 3)}),
    proof("number_times_logarithm_from_below", True, "-1/e = -0.36788 at 1/e",
          lambda x: xlogy(x, x), ">=", -0.368, over={"x": jb.Box(0, 2)}),
    proof("entropy_of_a_coin", True, "log 2 = 0.693147",
          lambda p: entr(p) + entr(1 - p), "<=", 0.69315, over={"p": jb.Box(0, 1)}),
    proof("floor_below_its_argument", True, "definition; equal at the jumps",
          lambda x: jnp.floor(x), "<=", lambda x: x, over={"x": jb.Box(0.5, 3.5)}),
    proof("entry_at_the_argmax_above_the_mean", True, "the largest of two",
          lambda x: x[jnp.argmax(x)], ">=", lambda x: jnp.mean(x) - 1e-3,
          over={"x": jb.Box(-1, 1, 2)}),

    proof("interpolated_hat_stays_below_half", False, "1 in the middle of the box",
          lambda x: jnp.interp(x, KNOTS, HAT), "<=", 0.5, over={"x": jb.Box(0, 2)}, at={"x": 1.0}),
    proof("branches_of_a_modulus_stay_low", False, "1 at both ends",
          lambda x: lax.cond(x > 0, lambda v: v, lambda v: -v, x), "<=", 0.9,
          over={"x": jb.Box(-1, 1)}, at={"x": 1.0}),
)
# fmt: on
