"""Kind A: sets that floats satisfy up to rounding, tolerances in hypotheses, zero on the right."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import rel_entr

import jaxbounds as jb
from benchmarks.outside.claims import disproof, of_kind, verdict

N = ({"N": 2}, {"N": 5})
P, X = jb.Simplex("N"), jb.Reals("N")
eye, total = jnp.eye, jnp.sum
softmax = jax.nn.softmax
PERMUTATIONS = np.stack([np.eye(3)[list(p)] for p in itertools.permutations(range(3))])
TOLERANCE = 1e-9
"""A user's tolerance in a hypothesis, absolute; a larger one admits more floats."""


def mixture(key, size):
    """A doubly stochastic matrix as a mixture of permutations, and a vector."""
    weights, vector = jax.random.split(key)
    p = softmax(3 * jax.random.normal(weights, (6,)))
    return {"m": jnp.tensordot(p, PERMUTATIONS, 1), "x": jax.random.normal(vector, (3,))}


def doubly_stochastic(i, size):
    rows, columns = total(i["m"], 1), total(i["m"], 0)
    return {
        "rows add up to 1": jnp.all(jnp.abs(rows - 1) <= TOLERANCE),
        "columns add up to 1": jnp.all(jnp.abs(columns - 1) <= TOLERANCE),
        "entries are not negative": jnp.all(i["m"] >= 0),
    }


def centred(key, size):
    x = jax.random.normal(key, (size["N"],)) * 10
    return {"x": x - jnp.mean(x)}


MIXED = {"sample": mixture, "hypotheses": doubly_stochastic}
CENTRED = {
    "sample": centred, "sizes": ({"N": 3}, {"N": 6}),
    "hypotheses": lambda i, s: {"entries add up to 0": jnp.abs(total(i["x"])) <= TOLERANCE},
}  # fmt: skip
var = lambda p, x: p @ (x - p @ x) ** 2
laplacian = lambda w: jnp.diag(total(w + w.T, 1)) - (w + w.T)
centring = lambda x: x - jnp.mean(x)
attention = lambda x: softmax(x @ x.T) @ x
c, s = math.cos(1.0), math.sin(1.0)

# fmt: off
CLAIMS = of_kind(
    "A",
    verdict("two_distributions_differ_by_zero_in_sum", True, "both add up to 1",
            lambda p, q: total(p - q), "=", 0.0, over={"p": P, "q": P}, sizes=N),
    verdict("softmax_is_invariant_under_shifts", True, "the factor e^c cancels",
            lambda x, c: softmax(x + c) - softmax(x), "=", 0.0,
            over={"x": jb.Box(-9, 9, "N"), "c": jb.Box(-5, 5)}, sizes=N),
    verdict("score_of_a_softmax_has_mean_zero", True, "sum_y p_y (e_y - p) = p - p",
            lambda t: softmax(t) @ (eye(len(t)) - softmax(t)), "=", 0.0, over={"t": X}, sizes=N),
    verdict("laplacian_of_a_graph_kills_constants", True, "a diagonal entry is its row's degree",
            lambda w: laplacian(w) @ jnp.ones(len(w)), "=", 0.0,
            over={"w": jb.Box(0, 1, ("N", "N"))}, sizes=N),
    verdict("laplacian_of_a_graph_is_psd", True, "x'Lx = sum w_ij (x_i - x_j)^2 / 2",
            lambda w, x: x @ laplacian(w) @ x, ">=", 0.0, equality="x constant",
            over={"w": jb.Box(0, 1, ("N", "N")), "x": X}, sizes=N),
    verdict("doubly_stochastic_matrices_keep_the_mean", True, "1'M = 1'",
            lambda m, x: jnp.mean(m @ x) - jnp.mean(x), "=", 0.0, **MIXED),
    verdict("doubly_stochastic_matrices_shrink_squares", True, "Birkhoff and Jensen; x'x at M = I",
            lambda m, x: total((m @ x) ** 2) - total(x**2), "<=", 0.0, equality="M a permutation",
            **MIXED),
    verdict("projection_along_a_unit_vector_kills_it", True, "(I - xx')x = x - x",
            lambda x: (eye(len(x)) - jnp.outer(x, x)) @ x, "=", 0.0,
            over={"x": jb.Sphere(1, "N")}, sizes=N),
    verdict("tangent_part_is_orthogonal_to_the_point", True, "x'v - (x'v) x'x = 0",
            lambda x, v: x @ (v - (x @ v) * x), "=", 0.0,
            over={"x": jb.Sphere(1, "N"), "v": X}, sizes=N),
    verdict("orthogonal_matrices_keep_lengths", True, "x'Q'Qx = x'x",
            lambda q, x: total((q @ x) ** 2) - total(x**2), "=", 0.0,
            over={"q": jb.Orthogonal("N"), "x": X}, sizes=N),
    verdict("stiefel_projector_is_idempotent", True, "QQ'QQ' = QQ'",
            lambda q: q @ q.T @ q @ q.T - q @ q.T, "=", 0.0,
            over={"q": jb.Orthogonal(("n", "k"))}, sizes=({"n": 4, "k": 2}, {"n": 3, "k": 1})),
    verdict("cross_product_is_orthogonal", True, "a determinant with two equal rows is 0",
            lambda x, y: x @ jnp.cross(x, y), "=", 0.0,
            over={"x": jb.Reals(3), "y": jb.Reals(3)}),
    verdict("trace_of_a_commutator_is_zero", True, "tr AB = tr BA",
            lambda a, b: jnp.trace(a @ b - b @ a), "=", 0.0,
            over={"a": jb.Reals((3, 3)), "b": jb.Reals((3, 3))}),
    verdict("gradient_of_a_scale_free_loss_is_orthogonal", True, "Euler: f(tw) = f(w)",
            lambda w, a: w @ jax.grad(lambda v: jnp.tanh(a @ v / jnp.sqrt(v @ v)))(w), "=", 0.0,
            over={"w": jb.Sphere(2, "N"), "a": jb.Box(-2, 2, "N")}, sizes=N),
    verdict("gram_matrix_of_few_rows_is_psd", True, "x'A'Ax = |Ax|^2; rank 2 in 4 dimensions",
            lambda a: jnp.linalg.eigvalsh(a.T @ a)[0], ">=", 0.0, equality="always",
            over={"a": jb.Box(-1, 1, (2, 4))}),
    verdict("divergence_is_not_negative", True, "Gibbs' inequality",
            lambda p, q: total(rel_entr(p, q)), ">=", 0.0, equality="p = q",
            over={"p": P, "q": jb.SubSimplex("N")}, sizes=N),
    verdict("attention_commutes_with_reversal", True, "softmax acts row by row, sums have no order",
            lambda x: attention(x[::-1])[::-1] - attention(x), "=", 0.0,
            over={"x": jb.Box(-2, 2, (3, 2))}),
    verdict("centring_keeps_centred_vectors", True, "C = I - 11'/n, and 1'x = 0",
            lambda x: x @ (eye(len(x)) - 1 / len(x)) @ x - x @ x, "=", 0.0, **CENTRED),
    disproof("weights_of_ten_tenths_add_up", True, "p adds up to 1 on its set",
             lambda p: 1 - total(p), "=", 0.0, over={"p": jb.Simplex(10)}, at={"p": [0.1] * 10}),
    disproof("rotation_of_one_radian_is_orthogonal", True, "Q'Q = I on the set",
             lambda q: q.T @ q - eye(2), "=", 0.0, over={"q": jb.Orthogonal(2)},
             at={"q": [[c, -s], [s, c]]}),

    verdict("plain_mean_centres_weighted_sums", False, "the weighted mean centres, not the plain",
            lambda p, x: p @ centring(x), "=", 0.0, over={"p": P, "x": X}, sizes=N,
            at={"p": [1.0, 0.0], "x": [1.0, 0.0]}),
    verdict("uncorrected_variance_of_two_is_unbiased", False, "E (x_i - x_j)^2 / 4 = Var / 2",
            lambda p, x: p @ ((x[:, None] - x) ** 2 / 4) @ p - var(p, x), "=", 0.0,
            over={"p": P, "x": X}, sizes=N, at={"p": [0.5, 0.5], "x": [1.0, 0.0]}),
    verdict("projection_along_a_short_vector_kills_it", False, "in the ball |x| < 1 leaves a rest",
            lambda x: (eye(len(x)) - jnp.outer(x, x)) @ x, "=", 0.0,
            over={"x": jb.Ball(1, "N")}, sizes=N, at={"x": [0.5, 0.0]}),
    verdict("contractions_give_projectors", False, "only orthonormal columns do",
            lambda q: q @ q.T @ q @ q.T - q @ q.T, "=", 0.0,
            over={"q": jb.OperatorNorm(1, (3, 2))}, at={"q": [[0.5, 0], [0, 0], [0, 0]]}),
    verdict("row_stochastic_matrices_keep_the_mean", False, "columns must add up to 1 for that",
            lambda a, x: jnp.mean(a @ x) - jnp.mean(x), "=", 0.0,
            over={"a": jb.Each(jb.Simplex(3), 3), "x": jb.Reals(3)},
            at={"a": [[1, 0, 0.0]] * 3, "x": [1.0, 0, 0]}),
    verdict("doubly_stochastic_matrices_keep_lengths", False, "the flat one sends x to its mean",
            lambda m, x: total((m @ x) ** 2) - total(x**2), "=", 0.0, **MIXED,
            at={"m": np.full((3, 3), 1 / 3), "x": [1.0, 0, 0]}),
    verdict("twice_the_outer_product_stays_psd", False, "at x = 1 it is 1 - 2",
            lambda p, x: x @ (jnp.diag(p) - 2 * jnp.outer(p, p)) @ x, ">=", 0.0,
            over={"p": P, "x": X}, sizes=N, at={"p": [0.5, 0.5], "x": [1.0, 1.0]}),
    verdict("variance_beats_a_small_share_of_the_length", False, "a vertex has variance 0",
            lambda p, x: var(p, x) - 1e-4 * x @ x, ">=", 0.0, over={"p": P, "x": X}, sizes=N,
            at={"p": [1.0, 0.0], "x": [1.0, 2.0]}),
    verdict("orthogonal_matrices_have_determinant_one", False, "reflections have -1",
            lambda q: jnp.linalg.det(q) - 1, "=", 0.0, over={"q": jb.Orthogonal("N")}, sizes=N,
            at={"q": [[1.0, 0], [0, -1]]}),
    verdict("psd_matrices_commute", False, "two projections at 45 degrees do not",
            lambda a, b: a @ b - b @ a, "=", 0.0, over={"a": jb.PSD(2), "b": jb.PSD(2)},
            at={"a": [[1.0, 0], [0, 0]], "b": [[0.5, 0.5], [0.5, 0.5]]}),
    verdict("centred_vectors_have_centred_cubes", False, "1 + 1 - 8 at (1, 1, -2)",
            lambda x: total(x**3), "=", 0.0, **CENTRED, at={"x": [1.0, 1, -2]}),
    disproof("fourth_powers_on_the_sphere_add_up_to_half", False, "0.1296 + 0.4096 = 0.5392",
             lambda x: total(x**4) - 0.5, "=", 0.0, over={"x": jb.Sphere(1, 2)},
             at={"x": [0.6, 0.8]}),
)
# fmt: on
