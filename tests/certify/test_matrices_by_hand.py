"""Products, decompositions and factors of small matrices whose answers stand here.

Whole numbers, NumPy's exact products of them, and closed forms: nothing of it knows balls.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax
from oracle.hand import ANY, INF, are_images, ball, balls, exactly, is_image, only, ways

from jaxbounds.certification import NotSupported
from jaxbounds.programs.balls import linear_algebra
from jaxbounds.programs.balls.values import midpoints, nonnegative

pytestmark = pytest.mark.usefixtures("x64")
AROUND = ball(-1, 1)
A = np.array([[1, 2, -3], [0, 4, 5]])


def matrix(*rows):
    return balls(*(v for row in rows for v in row)).reshape(len(rows), -1)


def near(found, values, within=1e-12):
    values = np.asarray(values, float)
    worst = max((float(v.rad()) for v in found.ravel()), default=0.0)
    return (
        found.shape == values.shape
        and worst < within
        and (np.allclose(midpoints(found), values, rtol=0, atol=within))
    )


def contain(found, values):
    return found.shape == np.shape(values) and all(
        v.is_finite() and v.contains(arb(float(w))) for v, w in zip(found.ravel(), np.ravel(values))
    )


def dot(numbers):
    return lambda x, y: lax.dot_general(x, y, numbers)


def test_products_of_nothing():
    nothing = dot((((1,), (0,)), ((), ())))
    assert are_images(only(nothing, np.zeros((2, 0)), np.zeros((0, 2))), [[0, 0], [0, 0]])
    assert only(nothing, np.zeros((0, 2)), np.zeros((2, 3))).shape == (0, 3)
    assert only(nothing, np.zeros((2, 2)), np.zeros((2, 0))).shape == (2, 0)
    assert is_image(only(lambda x: x @ x, np.zeros(0)).item(), 0)


def test_what_is_not_negative_stays_so_in_a_product_of_vectors():
    square = only(lambda x: x * x, balls(AROUND, (-2, 2)))
    for act in (lambda x, y: x @ y, lambda x, y: x[:, None] * y[None]):
        assert all(map(nonnegative, only(act, square, square.copy()).ravel()))
    outer = only(dot((((), ()), ((), ()))), square, square.copy())
    assert all(map(nonnegative, outer.ravel())) and outer[0, 1].contains(4)
    column = only(dot((((1,), (0,)), ((), ()))), square[:, None], square[None])
    assert all(map(nonnegative, column.ravel()))


def test_zeros_stay_exact_in_a_product_of_vectors():
    third = arb(1) / 3
    column = only(dot((((1,), (0,)), ((), ()))), balls(0, third)[:, None], balls(0, third)[None])
    assert [v.is_exact() for v in column.ravel()] == [True, True, True, False]


def test_a_product_of_a_variable_with_itself():
    """All of it contracted in one order is a sum of squares; of x_ij x_ji it is none."""
    x = balls(AROUND, AROUND, 0, 2).reshape(2, 2)
    assert is_image(only(lambda x: jnp.tensordot(x, x, 2), x).item(), (4, 6))
    turn = matrix((0, 1), (-1, 0))
    assert is_image(only(lambda x: jnp.tensordot(x, x, ((0, 1), (1, 0))), turn).item(), -2)
    gram = only(lambda x: lax.dot_general(x, x, (((0,), (0,)), ((), ()))), exactly(A))
    assert are_images(gram, (A.T @ A).tolist())
    apart = only(lambda x, y: x @ y, balls(AROUND, AROUND), balls(AROUND, AROUND)).item()
    assert is_image(apart, (-2, 2))


ROOT = math.sqrt(2)
SYMMETRIC = {
    "two": ([[2, 1], [1, 2]], [1, 3]), "swap": ([[0, 1], [1, 0]], [-1, 1]),
    "three": ([[2, -1, 0], [-1, 2, -1], [0, -1, 2]], [2 - ROOT, 2, 2 + ROOT]),
    "apart": ([[5, 0, 0], [0, -7, 2], [0, 2, -4]], [-8, -3, 5]),
    "negative": ([[1, -2], [-2, 1]], [-1, 3]), "unequal": ([[1, 2], [2, 4]], [0, 5]),
    "all ones": (np.ones((3, 3), int), [0, 0, 3]), "one": ([[7]], [7]),
}  # fmt: skip


@pytest.mark.parametrize("name", SYMMETRIC)
def test_eigenvalues(name):
    m, values = SYMMETRIC[name]
    assert near(linear_algebra.eigenvalues(exactly(m)), values)


def test_what_jacobi_leaves_of_balls():
    """Off the diagonal stay balls about zero: the norm of the rest is sqrt(2 (1/4 + 1/16 + 1))."""
    m = matrix(
        (1, (-0.5, 0.5), (-0.25, 0.25)), ((-0.5, 0.5), 4, AROUND), ((-0.25, 0.25), AROUND, 9)
    )
    diagonal, rest, V = linear_algebra.diagonalised(m)
    assert [float(v.mid()) for v in diagonal] == [1, 4, 9] and V[0, 0] == 1 and V[0, 1] == 0
    assert float(rest) == pytest.approx(math.sqrt(2 * (1 / 4 + 1 / 16 + 1)), rel=1e-6)
    found = linear_algebra.eigenvalues(m)
    for center, v in zip((1, 4, 9), found):
        assert is_image(v, (center - float(rest.lower()), center + float(rest.lower())))


def test_eigenvalues_of_a_box():
    """[[a, b], [b, 2]]: (a + 2 -+ sqrt((a - 2)^2 + 4 b^2)) / 2 at its corners."""
    found = linear_algebra.eigenvalues(matrix(((1.75, 2.25), (0.875, 1.125)), ((0.875, 1.125), 2)))
    for a in (1.75, 2, 2.25):
        for b in (0.875, 1, 1.125):
            spread = math.sqrt((a - 2) ** 2 + 4 * b * b)
            assert contain(found, [(a + 2 - spread) / 2, (a + 2 + spread) / 2])
    assert max(float(v.rad()) for v in found) < 0.6


@pytest.mark.parametrize("unknown", [ANY, INF, arb("0 +/- inf")])
@pytest.mark.parametrize("place", [(0, 0), (1, 0)])
def test_values_and_vectors_of_an_unknown_matrix_are_unknown(unknown, place):
    m = exactly([[1, 2], [2, 5]])
    m[place] = m[place[::-1]] = unknown
    for found in (linear_algebra.eigenvalues(m), linear_algebra.eigenvectors(m).ravel()):
        assert all(v.is_nan() for v in found)


def test_vectors_that_are_not_read_are_not_made():
    """Of a tall matrix full ones are refused, of a box their signs would fork."""
    tall = exactly([[3, 0], [0, 4], [0, 0]])
    assert near(only(lambda x: jnp.linalg.svd(x)[1], tall), [4, 3])
    with pytest.raises(NotSupported, match="full matrices"):
        ways(jnp.linalg.svd, tall)
    box = matrix((AROUND, 0), (0, (4, 5)))
    assert len(ways(lambda x: jnp.linalg.svd(x, full_matrices=False)[1], box)) == 1
    assert len(ways(lambda x: lax.linalg.eigh(x, symmetrize_input=False)[1], box)) == 1
    assert len(ways(lambda x: lax.linalg.eigh(x, symmetrize_input=False), box)) == 4
    assert (
        len(ways(lambda x: lax.linalg.eigh(x, symmetrize_input=False), exactly([[2, 1], [1, 3]])))
        == 1
    )


def same_but_for_signs(found, vectors):
    found, vectors = midpoints(found), np.asarray(vectors, float)
    signs = np.sign(np.sum(found * vectors, axis=0))
    return np.allclose(found * signs, vectors, atol=1e-12)


def test_eigenvectors():
    half = 1 / ROOT
    found = linear_algebra.eigenvectors(exactly([[2, 1], [1, 2]]))
    assert same_but_for_signs(found, [[half, half], [-half, half]])
    found = linear_algebra.eigenvectors(exactly(SYMMETRIC["three"][0]))
    assert same_but_for_signs(found, [[0.5, half, 0.5], [half, 0, -half], [0.5, -half, 0.5]])
    found = linear_algebra.eigenvectors(exactly(SYMMETRIC["apart"][0]))
    a, b = 2 / math.sqrt(5), 1 / math.sqrt(5)
    assert same_but_for_signs(found, [[0, 0, 1], [a, b, 0], [-b, a, 0]])
    assert max(float(v.rad()) for v in found.ravel()) < 1e-12
    known = linear_algebra.eigenvectors(exactly([[1, 0, 0], [0, 3, 0], [0, 0, 1]]))
    assert [v.is_finite() for v in known[0]] == [False, False, True]
    assert linear_algebra.eigenvectors(matrix((1, ANY), (ANY, 2)))[0, 0].is_nan()
    assert is_image(linear_algebra.eigenvectors(exactly([[3]])).item(), 1)


def test_eigenvectors_of_a_box():
    """Off the diagonal b in +-0.1 beside 0 and 3: rest sqrt(2) 0.1, gap 3 - 2 rest, and so their
    entries off by sqrt(2) rest / gap = 0.2 / (3 - 0.2 sqrt(2)), as Davis and Kahan bound them."""
    tenth = arb(0, 0.1)
    found = linear_algebra.eigenvectors(matrix((0, tenth), (tenth, 3)))
    off = 0.2 / (3 - 0.2 * ROOT)
    for at, v in zip((1, 0, 0, 1), found.ravel()):
        assert is_image(v, (at - off + 1e-9, at + off - 1e-9))
    touching = matrix((0, AROUND), (AROUND, 2 * ROOT))  # gap 2 sqrt(2) - 2 sqrt(2) = 0
    assert all(v.is_nan() for v in linear_algebra.eigenvectors(touching).ravel())


def triangle(lower):
    return lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=False)[1]


def test_one_triangle_is_read():
    m = matrix((1, 5), (2, 1))
    assert near(only(triangle(True), m), [-1, 3]) and near(only(triangle(False), m), [-4, 6])
    three = exactly(SYMMETRIC["three"][0])
    three[np.triu_indices(3, 1)] = ANY
    assert near(only(triangle(True), three), SYMMETRIC["three"][1])
    assert near(only(triangle(False), three.T), SYMMETRIC["three"][1])
    stack = np.stack([m, matrix((3, 0), (0, 2))])
    assert near(only(triangle(True), stack), [[-1, 3], [2, 3]])


def only_values(x):
    return jnp.linalg.svd(x, compute_uv=False)


def test_singular_values():
    golden = (1 + math.sqrt(5)) / 2
    assert near(only(only_values, exactly([[1, 1], [0, 1]])), [golden, golden - 1])
    assert near(only(only_values, exactly([[3], [4]])), [5])
    assert near(only(only_values, exactly([[3, 4]])), [5])
    assert near(only(only_values, exactly([[0, 3, 0], [-4, 0, 0]])), [4, 3])
    stack = exactly([[[3, 0], [0, 4]], [[-1, 0], [0, 6]]])
    assert near(only(only_values, stack), [[4, 3], [6, 1]])
    stack[0, 0, 0] = ANY
    found = only(only_values, stack)
    assert all(v.is_nan() for v in found[0]) and near(found[1], [6, 1])
    wide = only(only_values, matrix(((2.75, 3.25), 0), (0, 1)))
    assert wide[0].contains(3.25) and wide[0].contains(2.75) and float(wide[0].rad()) < 0.5


def eliminated(x):
    return lax.linalg.lu(x)


def test_elimination():
    """Of [[1, 2], [3, 4]] with its rows exchanged: 1/3 below, 2 - 4/3 = 2/3 in the corner."""
    ((lu, pivots, order),) = ways(eliminated, exactly([[1, 2], [3, 4]]))
    assert near(lu, [[3, 4], [1 / 3, 2 / 3]])
    assert pivots.tolist() == [1, 1] and order.tolist() == [1, 0]
    ((lu, pivots, order),) = ways(eliminated, exactly([[1, 2], [-4, 2], [2, 8], [-2, 1]]))
    assert near(lu, [[-4, 2], [-0.5, 9], [-0.25, 2.5 / 9], [0.5, 0]])
    assert pivots.tolist() == [1, 2] and order.tolist() == [1, 2, 0, 3]
    ((lu, pivots, order),) = ways(eliminated, exactly([[2, 4, 6], [1, 5, 9]]))
    assert near(lu, [[2, 4, 6], [0.5, 3, 6]])
    assert pivots.tolist() == [0, 1] and order.tolist() == [0, 1]


def test_elimination_of_a_stack():
    stack = exactly([[[1, 2], [3, 4]], [[4, 1], [2, 2]]])
    ((lu, pivots, order),) = ways(eliminated, stack)
    assert near(lu, [[[3, 4], [1 / 3, 2 / 3]], [[4, 1], [0.5, 1.5]]])
    assert pivots.tolist() == [[1, 1], [0, 1]] and order.tolist() == [[1, 0], [0, 1]]


def test_pivots_that_are_certain_are_no_choices():
    """Of which only eight may be open: here are ten."""
    ((lu, pivots, _),) = ways(eliminated, exactly(np.diag(range(1, 11))))
    assert pivots.tolist() == [*range(10)] and is_image(lu[9, 9], 10)


def test_elimination_takes_the_first_of_equal_pivots_and_forks_where_they_are_open():
    ((_, pivots, _),) = ways(eliminated, exactly([[1, 0], [-1, 1], [1, 3]]))
    assert pivots[0] == 0
    x = matrix(((1, 3), 0), (2, 1))
    assert sorted(way[1].tolist() for way in ways(eliminated, x)) == [[0, 1], [1, 1]]
    ((_, pivots, _),) = ways(eliminated, matrix(((-1, 1), 0), ((2, 3), 1)))
    assert pivots.tolist() == [1, 1]


def solved(**options):
    return lambda a, b: lax.linalg.triangular_solve(a, b, **options)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems(left, lower, transpose, unit):
    """The product with what was solved is the right side; the other triangle is not read."""
    a, b = (
        np.array([[2, 7, 1], [3, 4, -5], [-1, 6, 8]]),
        np.array([[1, 0, 2], [3, -2, 1], [5, 4, 6]]),
    )
    read = np.tril(a) if lower else np.triu(a)
    if unit:
        np.fill_diagonal(read, 1)
    read = read.T if transpose else read
    act = solved(left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=unit)
    found = only(act, exactly(a), exactly(b))
    product = exactly(read) @ found if left else found @ exactly(read)
    assert near(product, b)
    assert found.shape == b.shape
    stack = only(act, exactly(np.stack([2 * a, a])), exactly(np.stack([b, b])))
    assert near(stack[1], midpoints(found)) and (unit or near(2 * stack[0], midpoints(found)))


def test_triangular_systems_that_may_be_singular_are_unknown():
    act = solved(left_side=True, lower=True)
    for corner in (0, AROUND, ANY):
        found = only(act, matrix((1, 0), (1, corner)), balls(1, 1)[:, None])
        assert all(v.is_nan() for v in found.ravel())


# Triangular factors.


def factor(x):
    return lax.linalg.cholesky(x, symmetrize_input=False)


def test_the_lower_factor():
    lower = np.array([[1, 0, 0], [2, 3, 0], [4, 5, 6]])
    m = exactly(lower @ lower.T)
    assert are_images(only(factor, m), lower.tolist())
    assert are_images(only(lax.linalg.cholesky_p.bind, m), lower.tolist())
    m[np.triu_indices(3, 1)] = ANY  # is not read
    assert are_images(only(factor, m), lower.tolist())
    stack = np.stack([exactly([[4, 0], [2, 10]]), exactly([[9, 0], [3, 5]])])
    assert are_images(only(factor, stack), [[[2, 0], [1, 3]], [[3, 0], [1, 2]]])


@pytest.mark.parametrize("corner", [4, 3, ball(3, 5), ANY])
def test_a_matrix_that_may_not_be_positive_has_no_factor(corner):
    """Of [[1, 2], [2, c]] the last pivot is c - 4."""
    found = only(factor, matrix((1, 2), (2, corner)))
    assert all(v.is_nan() for v in found[np.tril_indices(2)])


def reflected(x):
    return lax.linalg.qr(x, full_matrices=False)


def test_signs_of_one_column():
    """The diagonal entry takes the sign that the column's head has not."""
    for head, r in ((3, -5), (-3, 5)):
        ((q, found),) = ways(reflected, exactly([[head], [4]]))
        assert near(found, [[r]]) and near(q, [[head / r], [4 / r]])
    ((q, found),) = ways(reflected, exactly([[-2], [0]]))  # is left alone
    assert are_images(found, [[-2]]) and are_images(q, [[1], [0]])
    ((q, found),) = ways(reflected, exactly([[3, 4, 5]]))
    assert are_images(found, [[3, 4, 5]]) and are_images(q, [[1]])


def test_a_pivot_that_is_zero_has_either_sign():
    """LAPACK makes -1 of a column (0., 1.) and 1 of (-0., 1.), and a real zero is both."""
    found = ways(reflected, exactly([[0], [1]]))
    assert len(found) == 2
    assert sorted(float(r.item().mid()) for _, r in found) == [-1, 1]
    for q, r in found:
        assert near(q, [[0], [float(r.item().mid())]])
    for zero in (0.0, -0.0):
        _, true = np.linalg.qr(np.array([[zero], [1.0]]))
        assert any(r.item().contains(float(true[0, 0])) for _, r in found)


@pytest.mark.parametrize("head", [AROUND, ball(-0.5, 2)])
def test_a_pivot_whose_sign_is_open_forks(head):
    found = ways(reflected, matrix((head,), (2,)))
    assert sorted(r.item() > 0 for _, r in found) == [False, True]
    for h in (-0.5, 0.5):
        for q, r in found:
            norm = math.copysign(math.sqrt(h * h + 4), float(r.item().mid()))
            if h == 0 or (norm < 0) == (h > 0):
                assert r.item().contains(norm) and contain(q, [[h / norm], [2 / norm]])


def test_a_column_that_may_be_zero_below_forks():
    """Left alone the head stays, 3; else it is minus the norm."""
    found = ways(reflected, matrix((3,), (AROUND,)))
    assert sorted(float(r.item().mid()) > 0 for _, r in found) == [False, True]
    assert any(is_image(r.item(), 3) and are_images(q, [[1], [0]]) for q, r in found)
    assert any(r.item().contains(-math.sqrt(10)) for _, r in found)
    assert len(ways(reflected, matrix((3,), ((0.5, 1),)))) == 1


def test_two_columns():
    """v = (8, 4), H = I - v v^T / 40 = ((-0.6, -0.8), (-0.8, 0.6)), H (1, 2) = (-2.2, 0.4)."""
    ((q, r),) = ways(reflected, exactly([[3, 1], [4, 2]]))
    assert near(q, [[-0.6, -0.8], [-0.8, 0.6]]) and near(r, [[-5, -2.2], [0, 0.4]])
    assert is_image(r[1, 0], 0)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (3, 1)])
@pytest.mark.parametrize("full", [True, False])
def test_factors_are_numpys(shape, full):
    m = np.array([2, -1, 3, 4, 1, 5, -2, 7, 6])[: math.prod(shape)].reshape(shape)
    ((q, r),) = ways(lambda x: lax.linalg.qr(x, full_matrices=full), exactly(m))
    true = np.linalg.qr(m, mode="complete" if full else "reduced")
    assert near(q, true[0]) and near(r, true[1])
    ((q, r),) = ways(lambda x: lax.linalg.qr(x, full_matrices=full), exactly(np.stack([m, -m])))
    assert near(q[0], true[0]) and near(r[1], -true[1]) and near(q[1], true[0])


def test_pivoting_is_refused():
    with pytest.raises(NotSupported, match="pivoting"):
        ways(lambda x: lax.linalg.qr(x, pivoting=True), exactly([[1, 2], [3, 4]]))
