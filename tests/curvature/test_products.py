"""Products, points and traces of losses whose Hessians are 2 X^T X / n, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.networks.curvature import bias, programs
from jaxbounds.networks.curvature.batches import group
from jaxbounds.networks.curvature.convexity import convexity_certificate
from jaxbounds.networks.curvature.leaves import select
from jaxbounds.networks.curvature.products import (
    Composite,
    Problem,
    check_matrix,
    ggn_vector_product,
    hessian_vector_product,
    real,
)
from jaxbounds.networks.curvature.programs import Point

pytestmark = pytest.mark.usefixtures("x64")

X = np.array([[1.0, 2], [3, 4], [5, -6], [7, 8], [0, 1]])
HESSIAN = 2 * X.T @ X / 5


def squares(w, batch):
    return jnp.mean((batch @ w["w"]) ** 2) + w["c"]


NET = Composite(
    lambda w, batch: batch @ w["w"],
    lambda z, batch: jnp.mean(z**2) + 0.0 * jnp.sum(batch),
)
W = {"w": np.array([0.5, -1.0]), "c": np.array(3.0)}


@pytest.mark.parametrize("loss", [None, (1.0,), [1.0], {"l": 1.0}])
def test_a_loss_comes_alone(loss):
    with pytest.raises(ValueError, match="return only the number"):
        real(loss)


@pytest.mark.parametrize("loss", [np.ones(1), np.array(1), np.array(True), np.array(1j)])
def test_a_loss_is_one_real_number(loss):
    with pytest.raises(ValueError, match="one real number"):
        real(loss)
    assert real(2.5) == 2.5


def test_which_matrix():
    check_matrix(squares, "hessian")
    check_matrix(NET, "ggn")
    assert float(NET(W, X)) == pytest.approx(np.mean((X @ [0.5, -1]) ** 2))
    with pytest.raises(ValueError, match="two parts"):
        check_matrix(squares, "ggn")
    with pytest.raises(ValueError, match="expected one of hessian, ggn"):
        check_matrix(squares, "fisher")


def problem(loss, of, batches, size=None, filter="w"):
    selection = select(W, filter)
    return Problem(loss, selection, of, *selection.arrays(W), group(batches, size), None)


@pytest.mark.parametrize("loss, of", [(squares, "hessian"), (NET, "hessian"), (NET, "ggn")])
@pytest.mark.parametrize("size", [None, 2, 5])
def test_products_over_batches_are_those_of_all_examples(loss, of, size):
    one = problem(loss, of, X, size)
    v = jnp.array([1.0, -2.0])
    np.testing.assert_allclose(one.operator()(v), HESSIAN @ v, rtol=1e-12)
    value = np.mean((X @ [0.5, -1]) ** 2) + (3 if loss is squares else 0)
    np.testing.assert_allclose(one.value(), value, rtol=1e-12)
    np.testing.assert_array_equal(one.point, [0.5, -1])
    assert one.params(jnp.array([8.0, 9.0]))["c"] == 3


def test_batches_of_a_list_count_equally():
    two = problem(squares, "hessian", [X[:2], X[2:4]])
    np.testing.assert_allclose(
        two.operator()(jnp.array([1.0, 0.0])), 2 * X[:4].T @ X[:4, 0] / 4, rtol=1e-12
    )


def test_the_gauss_newton_matrix_leaves_out_the_bend_of_the_network():
    # z = w^2, outer z^2: the Hessian is 12 w^2, J^2 times 2 is 8 w^2.
    net = Composite(lambda w: w**2, lambda z: jnp.sum(z**2))
    w = jnp.array([3.0])
    assert float(hessian_vector_product(net, w)(jnp.ones(1))[0]) == 108
    assert float(ggn_vector_product(net, w)(jnp.ones(1))[0]) == 72


def test_products_on_pytrees():
    found = hessian_vector_product(squares, W, X, filter="w")({"w": jnp.array([1.0, 0]), "c": None})
    np.testing.assert_allclose(found["w"], HESSIAN[:, 0], rtol=1e-12)
    assert found["c"] is None


@pytest.mark.parametrize(
    "count, sizes", [(2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (5, [1, 2, 4, 5])]
)
def test_the_bias_of_the_first_batches(count, sizes, monkeypatch):
    asked = []

    class Noted:
        def __init__(self, loss, params, batches):
            self.size = len(batches)

        def extremes_and_loss(self, **options):
            asked.append((self.size, options))
            ends = dict.fromkeys(bias._NUMBERS, float(self.size))
            return type("Ends", (), ends), -float(self.size)

    monkeypatch.setattr(bias, "Curvature", Noted)
    found = bias.minibatch_bias(squares, W, [X] * count, iterations=3)
    assert [size for size, _ in asked] == sizes == found.batches.values.tolist()
    assert found.loss.values.tolist() == [-s for s in sizes] and asked[0][1] == {"iterations": 3}
    assert found.minimum.values.tolist() == sizes
    for few in ([X], (X, X)):
        with pytest.raises(ValueError, match="at least two"):
            bias.minibatch_bias(squares, W, few)


@pytest.mark.parametrize(
    "loss, batches, words",
    [
        (lambda w: 0.0, X, "the loss must take"), (lambda w, b: 0.0, None, "not given"),
        (lambda w, b, c: 0.0, X, "the loss must take"), (3, X, "must be a function"),
    ],
)  # fmt: skip
def test_what_a_loss_is_called_with(loss, batches, words, unannotated):
    with pytest.raises(ValueError, match=words):
        Point(loss, W, batches)
    assert Point(squares, W, X).selection.size == 3


def test_constants_are_data_and_programs_are_not():
    by = lambda times: Point(lambda w: times * jnp.sum(w["w"] ** 2), W)._traced
    one, same, other = by(jnp.array(2.0)), by(jnp.array(2.0)), by(jnp.array(5.0))
    assert one.key == other.key and one.same_as(same) and not one.same_as(other)
    assert [float(c) for c in one.constants[0]] == [2.0]
    cube = Point(lambda w: jnp.sum(w["w"] ** 3), W)._traced
    assert cube.key != one.key and not cube.same_as(one)
    value = one.bound(other.constants)
    assert float(value(W)) == pytest.approx(5 * 1.25)
    assert not one.calls_back


def test_losses_that_draw_from_what_they_hold():
    noisy = lambda w: jnp.sum(w["w"]) + jax.random.normal(w["key"])
    with pytest.raises(ValueError, match="draws random numbers"):
        Point(noisy, W | {"key": jax.random.key(0)})
    # A key of the batch is data.
    given = lambda w, key: jnp.sum(w["w"] ** 2) * jax.random.normal(key)
    assert Point(given, W, jax.random.key(1))
    state = np.random.default_rng(0)
    with pytest.raises(ValueError, match="another function at each call"):
        Point(lambda w: jnp.sum(w["w"]) * state.normal(), W)


def test_what_calls_back_is_called_twice():
    calls = []

    def outside(x):
        calls.append(1)
        return np.float64(x) * len(calls)

    shape = jax.ShapeDtypeStruct((), np.float64)
    loss = lambda w: jax.pure_callback(outside, shape, jnp.sum(w["w"]))
    with pytest.raises(ValueError, match="another function at each call"):
        Point(loss, W)
    steady = lambda w: jax.pure_callback(lambda x: 2 * np.float64(x), shape, jnp.sum(w["w"]))
    assert Point(steady, W)._traced.calls_back


def test_the_unit_of_rounding_is_that_of_the_coarsest_operation():
    assert Point(squares, W, X).unit == 2.0**-52
    narrow = lambda w: jnp.sum(w["w"].astype(jnp.bfloat16) ** 2).astype(float)
    assert Point(narrow, W).unit == 2.0**-7


def test_the_programs_not_used_for_longest_go(monkeypatch):
    monkeypatch.setattr(programs, "KEPT", 2)
    monkeypatch.setattr(programs, "_programs", type(programs._programs)())
    point, kernel = Point(squares, W, X), lambda problem, static, dynamic: problem.value()
    use = lambda k: point.made(kernel, {"k": k})
    first, second = use(1), use(2)
    assert use(1) is first  # used again: now the second is the oldest
    use(3)
    assert len(programs._programs) == 2 and use(1) is first and use(2) is not second
    head = point.program_arguments({"a": 2.0}, 1)
    assert head[4].dtype == np.int32 and head[5]["a"].dtype == np.float64


def test_a_program_knows_its_memory_before_it_runs():
    point = Point(squares, W, X)
    kernel = lambda problem, static, dynamic: problem.value() * dynamic["times"]
    run = lambda limit: point.run(kernel, {}, {"times": jnp.array(2.0)}, limit=limit, what="it")
    need = point.bytes(kernel, {}, {"times": jnp.array(2.0)})
    # Two parameters, a number, ten of data and one more go in, one comes out, of eight bytes.
    assert need >= 8 * 15
    assert float(run(need)) == pytest.approx(2 * float(squares(W, X)))
    with pytest.raises(ValueError, match="of 3 parameters in float64 needs"):
        run(need - 1)


def test_the_norm_of_an_output_is_that_of_its_larger_end():
    # z = (y^2 - 3 x^2, 3 x^2 - y^2) has ends -6, 2 and -2, 6; at (1, 2) it is (1, -1), and
    # z_1^2 + exp(z_2) has the slopes 2 and 1/e.
    loss = Composite(
        lambda w: jnp.array([1.0, -1.0]) * (w[1] ** 2 - 3 * w[0] ** 2),
        lambda z: z[0] ** 2 + jnp.exp(z[1]),
    )
    found = convexity_certificate(loss, np.array([1.0, 2.0]))
    np.testing.assert_allclose(found.norms, [6, 6], rtol=1e-9)
    assert float(found.bound) == pytest.approx(12 + 6 / np.e) and found.converged
