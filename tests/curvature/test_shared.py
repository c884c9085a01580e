"""Questions share one product and one Krylov run; each answer is that of a question alone.

The matrices are diagonal, so that their eigenvalues stand in the test, or NumPy's eigh is the
oracle.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.networks.curvature import engine, shared
from jaxbounds.networks.curvature.lanczos import Wanted
from jaxbounds.networks.curvature.shared import CONFIRM, Run, pairs_of
from jaxbounds.networks.curvature.short import ShortRun

pytestmark = pytest.mark.usefixtures("x64")
SIZE = 1200
RNG = np.random.default_rng(0)
DIAGONAL = np.concatenate([np.linspace(-1, 1, SIZE - 6), [-9, -7, 8, 10, 10, 12]])
WIDE = {"first": RNG.normal(size=(24, 26)) / 5, "last": RNG.normal(size=(26, 24)) / 5}
BATCH = RNG.normal(size=(16, 24)), RNG.normal(size=(16, 24))


def quadratic(w):
    return jnp.sum(DIAGONAL * w**2) / 2


def network(w, batch):
    return jnp.mean((jnp.tanh(batch[0] @ w["first"]) @ w["last"] - batch[1]) ** 2)


def networks():
    return jb.Curvature(network, jax.tree.map(jnp.asarray, WIDE), BATCH)


@pytest.fixture
def products(monkeypatch):
    """How many products were made so far."""
    made, whole = [], engine.Product.__call__

    def counted(self, vector):
        made.append(1)
        return whole(self, vector)

    monkeypatch.setattr(engine.Product, "__call__", counted)
    return lambda: len(made)


def test_questions_share_the_products_of_one_run(products):
    H = jb.Curvature(quadratic, jnp.ones(SIZE))
    ends = H.extremes()
    alone = products()
    assert alone == int(ends.iterations) + 2
    again = H.extremes()
    assert products() == alone and again.minimum == ends.minimum
    H.spectrum(probes=1, iterations=20)
    assert products() == alone
    H.trace(products=30)
    assert products() == alone + 6
    before = products()
    H.top(1)
    # The greatest pair is known: the run that looks for copies is all.
    assert products() - before <= 32


def test_no_answer_depends_on_the_questions_before():
    H, other = jb.Curvature(quadratic, jnp.ones(SIZE)), jb.Curvature(quadratic, jnp.ones(SIZE))
    ends, trace, top = H.extremes(), H.trace(), H.top(4)
    others = other.top(4), other.trace(), other.spectrum(), other.extremes()
    np.testing.assert_array_equal(top.values, others[0].values)
    assert trace.estimate == others[1].estimate
    assert (ends.minimum, ends.maximum) == (others[3].minimum, others[3].maximum)
    np.testing.assert_array_equal(H.spectrum().nodes, others[2].nodes)


def test_a_second_question_traces_and_compiles_no_loss(monkeypatch):
    calls, compiled, made = [], [], engine.Linear._made

    def counted(w, batch):
        calls.append(1)
        return network(w, batch)

    def counting(self, *arguments):
        compiled.append(1)
        return made(self, *arguments)

    monkeypatch.setattr(engine.Linear, "_made", counting)
    H = jb.Curvature(counted, jax.tree.map(jnp.asarray, WIDE), BATCH)
    H.extremes()
    traced, once = len(calls), len(compiled)
    H.top(3), H.trace(), H.spectrum(), H.weak_convexity(kappa=1.0), H.diagonal()
    H.blocks({"last": "last"}, dense_limit=0)
    assert (len(calls), len(compiled)) == (traced, once) and once == 1


def test_several_eigenvalues_with_copies_after_extremes():
    H = jb.Curvature(quadratic, jnp.ones(SIZE))
    H.extremes()
    for end, wanted in (("greatest", [12, 10, 10, 8]), ("least", [-9, -7])):
        top = H.top(len(wanted), end=end)
        np.testing.assert_allclose(top.values, wanted, rtol=1e-8)
        assert top.converged.all()


def test_without_copies_one_run_finds_several_eigenvalues(products):
    apart = np.concatenate([np.linspace(-1, 1, SIZE - 5), [-9, 7, 8, 10, 12]])
    H = jb.Curvature(lambda w: jnp.sum(apart * w**2) / 2, jnp.ones(SIZE))
    with_copies = H.top(3, tolerance=1e-3)
    before = products()
    top = H.top(3, copies=False, tolerance=1e-3)
    # The first run and its pairs are known.
    assert products() == before
    np.testing.assert_array_equal(top.values, with_copies.values)
    np.testing.assert_allclose(top.values, [12, 10, 8], atol=12e-3)
    assert top.converged.all() and before >= 3 + 2 * 20


@pytest.mark.slow_cases("12")
@pytest.mark.parametrize("basis", [8, 12, 33])
def test_a_run_restarts_where_its_basis_is_full(basis):
    close = np.sort(np.concatenate([RNG.uniform(-1, 1, 400), [1.05, -1.05]]))
    H = jb.Curvature(lambda w: jnp.sum(close * w**2) / 2, jnp.ones(402))
    ends = H.extremes(basis=basis, dense_limit=0, iterations=2000, tolerance=1e-9)
    assert ends.converged and int(ends.iterations) > basis
    np.testing.assert_allclose([ends.minimum, ends.maximum], [-1.05, 1.05], rtol=1e-9)
    # The other questions make a new run.
    assert H.trace(products=20).method == "krylov"
    assert int(H.extremes(basis=basis, dense_limit=0, iterations=20).iterations) == 20


def test_blocks_of_the_map_agree_with_the_matrix():
    H = networks()
    matrix = np.asarray(H.dense())
    found = H.blocks({"first": "first", "last": "last"}, dense_limit=0)
    for name, rows in (("first", slice(0, 624)), ("last", slice(624, 1248))):
        values = np.linalg.eigvalsh(matrix[rows, rows])[[0, -1]]
        ends = found[name]
        scale = np.abs(values).max()
        errors = np.abs([ends.minimum - values[0], ends.maximum - values[1]])
        assert errors.max() <= 1e-8 * scale and ends.converged
        assert (ends.vector_maximum["last"] is None) == (name == "first")


@pytest.mark.slow
def test_a_short_block_has_a_program_of_its_own(monkeypatch):
    deep = lambda w, b: jnp.mean((jnp.tanh(deeper(w["a"], b)) @ w["z"]) ** 2)

    def deeper(a, b):
        for _ in range(12):
            b = jnp.tanh(b @ a)
        return b

    shape = lambda *s: jnp.asarray(RNG.normal(size=s))
    H = jb.Curvature(deep, {"a": shape(40, 40) / 6, "z": shape(40, 30)}, shape(9, 40))
    H.extremes()
    # Neither a mask nor a step of the whole serves it.
    monkeypatch.setattr(engine, "_masked", None)
    monkeypatch.setattr(shared, "_taken", None)
    ends = H.blocks({"z": "z"}, dense_limit=0)["z"]
    matrix = np.asarray(H.dense(limit_bytes=1e9))[1600:, 1600:]
    values = np.linalg.eigvalsh(matrix)
    np.testing.assert_allclose(float(ends.maximum), values[-1], rtol=1e-8)
    assert abs(float(ends.minimum) - values[0]) <= float(ends.residual_minimum) + 1e-8


HARD = {
    "two copies above a cluster": np.r_[np.ones(198), 3, 3],
    "rank 3": np.r_[5, -2, 1, np.zeros(197)],
    "one value": 2 * np.ones(200),
    "both ends apart": np.r_[-9, np.linspace(-1, 1, 198), 12],
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_a_short_run_finds_both_ends_and_its_residuals_cover_them(name, dtype):
    values = HARD[name]
    turn = np.linalg.qr(RNG.normal(size=(200, 200)))[0]
    matrix = jnp.asarray(turn * values @ turn.T, dtype)
    run = ShortRun(lambda v: matrix @ v, jax.random.key(3), 120, dtype=dtype, size=200)
    eps = float(jnp.finfo(dtype).eps)
    found = pairs_of(run, Wanted(1, 1), tolerance=64 * eps, limit=120, least=8)
    for (vector, value, residual), truth in zip(found.pairs, (values.min(), values.max())):
        assert vector.dtype == value.dtype == dtype
        assert abs(value - truth) <= residual + 64 * eps * np.abs(values).max()
        np.testing.assert_allclose(np.linalg.norm(vector), 1, rtol=8 * eps)


def test_a_short_run_spans_a_whole_space():
    matrix = jnp.asarray(RNG.normal(size=(12, 12)))
    matrix = matrix + matrix.T
    run = ShortRun(lambda v: matrix @ v, jax.random.key(0), 12, dtype=jnp.float64, size=12)
    np.testing.assert_allclose(run.look(12).values, np.linalg.eigvalsh(matrix), atol=1e-12)


def scores(asked, truth):
    """(estimate - truth) / error for twenty keys."""
    found = (asked(jax.random.key(i)) for i in range(20))
    return np.asarray([(estimate - truth) / error for estimate, error in found])


def test_errors_of_few_probes_cover_the_truth():
    H = networks()
    values = np.linalg.eigvalsh(np.asarray(H.dense()))
    trace = lambda key: (lambda t: (t.estimate, t.standard_error))(H.trace(key=key))
    runs = [H.spectrum(key=jax.random.key(i), probes=1, iterations=40) for i in range(20)]
    one = lambda key: runs[int(jax.random.key_data(key)[-1])]
    at = float(np.quantile(values, 0.9))
    for asked, truth in (
        (trace, values.sum()),
        (lambda key: one(key).moment(1), values.mean()),
        (lambda key: one(key).moment(2), np.mean(values**2)),
        (lambda key: one(key).trace_of(lambda x: np.exp(-(x**2))), np.exp(-(values**2)).sum()),
        (lambda key: one(key).share_below(at), np.mean(values < at)),
    ):
        z = scores(asked, truth)
        assert np.abs(z).max() < 4 and np.sqrt(np.mean(z**2)) < 1.6
    # An error that is much too large would say nothing.
    assert np.sqrt(np.mean(scores(trace, values.sum()) ** 2)) > 0.4
    assert np.sqrt(np.mean(scores(lambda key: one(key).moment(1), values.mean()) ** 2)) > 0.4


def run(diagonal, start=None):
    """All runs here have the shapes, and so the programs, of one."""
    values = jnp.asarray(diagonal, float)
    found = Run(
        lambda v: values * v, jax.random.key(0), 60, dtype=values.dtype, mask=jnp.ones(SIZE)
    )
    if start is not None:
        found._state = found._state._replace(vector=jnp.asarray(start, float))
    return found


def test_a_look_is_that_of_the_leading_rows():
    whole, part = run(DIAGONAL), run(DIAGONAL)
    whole.look(30)
    late, early = whole.look(12), part.look(12)
    np.testing.assert_allclose(late.values, early.values, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(late.estimates, early.estimates, rtol=1e-6, atol=1e-12)
    vector = np.asarray(part.vector(early, 0))
    residual = np.linalg.norm(DIAGONAL * vector - early.values[0] * vector)
    assert residual == pytest.approx(early.estimates[0], rel=1e-6)


def test_an_exhausted_run_goes_on_in_fresh_directions():
    # A start in three directions: the space is exhausted after three, far from the ends.
    start = np.zeros(SIZE)
    start[[0, 5, 9]] = 3**-0.5
    found = run(DIAGONAL, start=start)
    pairs = pairs_of(found, Wanted(1, 1), tolerance=1e-8, limit=60, least=4)
    assert found.exhausted_at() == 3 and pairs.products > 3 + CONFIRM
    np.testing.assert_allclose([float(p[1]) for p in pairs.pairs], [-9, 12], rtol=1e-8)


def test_a_run_that_is_lost_ends():
    found = run(np.full(SIZE, np.nan))
    pairs = pairs_of(found, Wanted(1, 1), tolerance=1e-8, limit=100, least=8)
    assert pairs.products == 8 and not np.isfinite(pairs.least)


def test_an_upper_end_below_the_floor_is_not_waited_for():
    found = run(np.linspace(0, 1, SIZE))
    pairs = pairs_of(found, Wanted(0, 1), tolerance=1e-12, limit=60, least=4, floor=2.0)
    assert pairs.pairs == [] and pairs.products < 60
