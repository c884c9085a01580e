"""What is said of curvature: each word and error bar from numbers that are written down.

In the place of compiled programs stand their results; the programs are tested where they run.
"""

import importlib
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.networks.curvature import convexity, monitor
from jaxbounds.networks.curvature.convexity import weak_convexity_at
from jaxbounds.networks.curvature.extremes import dense_at, extremes_at, lanczos_options, memory_at
from jaxbounds.networks.curvature.lanczos import Extremes
from jaxbounds.networks.curvature.leaves import Selection
from jaxbounds.networks.curvature.monitor import CurvatureMonitor, _ratio
from jaxbounds.networks.curvature.programs import Point
from jaxbounds.networks.curvature.spectrum import Spectrum, _bare, _error, _stored, spectrum_at
from jaxbounds.networks.curvature.structured import _bracket, count_below, structured_extremes
from jaxbounds.networks.curvature.top import top_at
from jaxbounds.networks.curvature.trace import trace_at

pytestmark = pytest.mark.usefixtures("x64")
EPS = 2.0**-52
VAST = 1e18


class Untouched(Selection):
    """A selection whose trees are its vectors."""

    def tree(self, vector, head=None):
        return vector


def of_size(size, dtype=np.float64):
    leaf = ("w", (size,), np.dtype(dtype), None)
    return Untouched(jax.tree.structure({"w": 0}), (leaf,), (None,), None)


class Known(Point):
    """A point of so many parameters, whose programs give what is written down."""

    def __init__(self, size, result=None, dtype=np.float64, unit=EPS, is_traced=False):
        self.selection = of_size(size, dtype)
        self.result, self.is_traced, self.params, self.data = result, is_traced, None, None
        self.stream = None
        self.unit, self.asked, self.refused = unit, [], []

    def run(self, kernel, static, dynamic, *, limit, what, advice="", head=None):
        self.asked.append((static, dynamic, limit, head))
        return self.result

    def refuse(self, need, limit, what, advice=""):
        self.refused.append((need, limit))

    def bytes(self, kernel, static, dynamic, head=None):
        self.asked.append((static, dynamic, None, head))
        return 77


@pytest.fixture(autouse=True)
def loops_are_kernels(monkeypatch):
    """A known point has no product: its kernel's results stand for the loop's as well."""

    def run(point, kernel, static, dynamic, *, limit, what, hosted, rows, advice="", head=None):
        assert rows > 0 or hosted is None
        return point.run(kernel, static, dynamic, limit=limit, what=what, advice=advice, head=head)

    for name in ("extremes", "spectrum", "top", "trace"):
        module = importlib.import_module(f"jaxbounds.networks.curvature.{name}")
        monkeypatch.setattr(module, "run_hosted", run)
        monkeypatch.setattr(module, "hosted_bytes", lambda _, rows: 1000 * rows, raising=False)


def ends(low, high, residual=0.0, noise=0.0, products=5, **more):
    value, flag = jnp.asarray, jnp.asarray(True)
    given = Extremes(value(low), value(high), value(residual), value(residual), jnp.int32(products),
                     flag, flag, jnp.ones(2), jnp.ones(2), value(noise))  # fmt: skip
    return given._replace(**more)


@pytest.mark.parametrize(
    "products, size, method, sketch, probes, traced",
    [
        (14, 50, "auto", 0, 14, True), (15, 50, "auto", 5, 5, True),
        (30, 9, "auto", 0, 30, False), (6, 50, "hutch++", 2, 2, False),
        (30, 50, "hutchinson", 0, 30, False),
        # Ten rows of eight bytes fill 2^28 at 3,355,443 numbers.
        (30, 3_355_443, "auto", 10, 10, True), (30, 3_355_444, "auto", 0, 30, False),
    ],
)  # fmt: skip
def test_a_sketch_where_it_pays_and_fits(products, size, method, sketch, probes, traced):
    result = (jnp.asarray(5.0), jnp.array([1.0, 2.0, 6.0]), jnp.asarray(0.5))
    point = Known(size, result, is_traced=traced)
    found = trace_at(point, memory_limit=VAST, products=products, method=method)
    assert point.asked[0][0] == {"sketch": sketch, "probes": probes}
    # The exact part and the mean of the rest; the error of a mean of three: sqrt(7 / 3).
    assert float(found.estimate) == 8
    assert float(found.standard_error) == pytest.approx((7 / 3) ** 0.5)
    assert found.method == ("hutch++" if sketch else "hutchinson") and found.products == products


@pytest.mark.parametrize(
    "products, size, method, rows, probes",
    [(15, 50, "auto", 12, 3), (30, 3_355_443, "auto", 24, 6), (30, 10, "auto", 10, 6),
     (10, 50, "krylov", 8, 2)],
)  # fmt: skip
def test_a_krylov_space_takes_four_fifths_of_the_products(products, size, method, rows, probes):
    result = (np.float64(5), np.array([1.0, 2.0, 6.0]), np.float64(12), jnp.asarray(0.5))
    point = Known(size, result)
    found = trace_at(point, memory_limit=VAST, products=products, method=method)
    assert (point.asked[0][0]["rows"], point.asked[0][0]["probes"]) == (rows, probes)
    # The variance of a sample stands in the result: 12 for each of three.
    assert (float(found.estimate), float(found.standard_error)) == (8, 2)
    assert (found.method, found.products) == ("krylov", products)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"products": 1}, "at least 2"),
        ({"products": 9, "method": "krylov"}, "at least 10"),
        ({"products": 5, "method": "hutch++"}, "at least 6"),
        ({"products": 33, "method": "hutch++"}, "for size=10"),
    ],
)  # fmt: skip
def test_traces_that_make_no_sense(options, words):
    point = Known(10, (np.float64(0), np.ones(2), np.float64(0), jnp.asarray(0.5)))
    with pytest.raises(ValueError, match=words):
        trace_at(point, memory_limit=VAST, **options)
    point.result = (np.float64(math.nan), np.ones(2), np.float64(0), jnp.asarray(0.5))
    with pytest.raises(ValueError, match="not finite"):
        trace_at(point, memory_limit=VAST)
    point.is_traced = True
    point.result = (jnp.asarray(math.nan), jnp.ones(2), jnp.asarray(0.5))
    assert math.isnan(trace_at(point, memory_limit=VAST).estimate)


NODES = Spectrum(jnp.array([[1.0, 3.0], [2.0, 3.0]]), jnp.array([[0.25, 0.75], [0.5, 0.5]]), 10)


def test_shares_and_moments_of_a_spectrum():
    # Below 2: 1/4 and none; the spread of the two is 1/8 each way: an error of 1/8.
    assert NODES.share_below(2.0) == pytest.approx((0.125, 0.125))
    assert NODES.share_below(2.5) == pytest.approx((0.375, 0.125))
    assert NODES.moment(1) == pytest.approx((2.5, 0.0)) and NODES.moment(0) == pytest.approx((1, 0))
    assert NODES.moment(2) == pytest.approx(((7 + 6.5) / 2, 0.25))
    assert _error(np.array([1.0])) == math.inf
    assert _error(np.array([1.0, 2.0, 6.0])) == pytest.approx((7 / 3) ** 0.5)


def test_the_density_is_a_mixture_of_normals():
    bell = lambda x, m: math.exp(-((x - m) ** 2) / 0.02) / (0.1 * math.sqrt(2 * math.pi))
    at = np.array([1.0, 2.05, 3.0])
    wanted = [(0.25 * bell(x, 1) + 1.25 * bell(x, 3) + 0.5 * bell(x, 2)) / 2 for x in at]
    np.testing.assert_allclose(NODES.density(at, width=0.1), wanted, rtol=1e-5)
    # A hundredth of the range, of 2, unless given.
    np.testing.assert_allclose(NODES.density(at), NODES.density(at, width=0.02), rtol=1e-5)


@pytest.mark.parametrize("quadrature", ["stored", "bare"])
def test_a_quadrature_of_a_start_by_hand(quadrature):
    # diag(1, 3) from (1, 1)/sqrt 2: after one step the mean, after two all, with equal weights.
    product, start = lambda v: jnp.array([1.0, 3.0]) * v, jnp.ones(2) / 2**0.5
    run = _bare if quadrature == "bare" else lambda f, s, k: _stored(f, s, jax.random.key(0), k)
    for k, nodes, weights in ((1, [2], [1]), (2, [1, 3], [0.5, 0.5])):
        found = run(product, start, k)
        np.testing.assert_allclose(found[0], nodes, rtol=1e-12)
        np.testing.assert_allclose(found[1], weights, rtol=1e-12)


def test_an_exhausted_recurrence_ends():
    # From e_1 of diag(1, 3) the rest is zero: all the weight is at 1.
    nodes, weights, _ = _bare(lambda v: jnp.array([1.0, 3.0]) * v, jnp.array([1.0, 0.0]), 2)
    assert float(jnp.sum(weights * nodes)) == pytest.approx(1) and float(jnp.sum(weights)) == 1


@pytest.mark.parametrize("bad", [0, 3])
def test_a_spectrum_of_what_is_not_finite(bad):
    result = [*[jnp.ones((4, 2))] * 3, jnp.asarray(1.0)]
    result[bad] = result[bad] * math.nan
    with pytest.raises(ValueError, match=r"not finite|the loss is nan"):
        spectrum_at(Known(5, tuple(result)), memory_limit=VAST)
    assert spectrum_at(Known(5, tuple(result), is_traced=True), memory_limit=VAST)
    for wrong in ({"probes": 0}, {"iterations": 0}):
        with pytest.raises(ValueError, match="is no integer from 1 on"):
            spectrum_at(Known(5), memory_limit=VAST, **wrong)


def options(size, iterations=200, tolerance=None, basis=None, dense_limit=1000, dtype=np.float64):
    selection = of_size(size, dtype)
    return lanczos_options(selection, None, iterations, tolerance, basis, dense_limit)


@pytest.mark.parametrize(
    "more, words",
    [
        ({"iterations": 0}, "positive integer"), ({"iterations": 1.5}, "positive integer"),
        ({"basis": 7}, "at least 8 rows"), ({"tolerance": -1e-9}, "finite number >= 0"),
        ({"tolerance": math.nan}, "is no number"),
        ({"size": 5, "basis": 4}, "at least 8 rows"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(more, words):
    with pytest.raises(ValueError, match=words):
        options(**{"size": 2000} | more)
    assert float(options(20, tolerance=0.0)[1]["tolerance"]) == 0
    assert options(20, iterations=1.0)


@pytest.mark.parametrize(
    "low, high, loss, words",
    [(math.nan, 1.0, 1.0, "not finite"), (0.0, math.inf, 1.0, "not finite"),
     (0.0, 1.0, math.nan, "no Hessian"), (0.0, 1.0, math.inf, "no Hessian")],
)  # fmt: skip
def test_what_is_not_finite_is_refused_where_it_is_seen(low, high, loss, words):
    found, fine = (ends(low, high), jnp.asarray(loss)), (ends(0.0, 1.0), jnp.asarray(1.0))
    with pytest.raises(ValueError, match=words):
        extremes_at(Known(20, found), memory_limit=9.0)
    assert extremes_at(Known(20, found, is_traced=True), memory_limit=9.0) == found
    assert extremes_at(Known(20, found), memory_limit=9.0, finite=False) == found
    assert extremes_at(Known(20, fine), memory_limit=9.0) == fine


def test_memory_is_refused_before_anything_is_compiled():
    point = Known(2000, (ends(0.0, 1.0), jnp.asarray(1.0)), unit=0.25)
    extremes_at(point, memory_limit=9.0, basis=10, head=None)
    assert point.refused == [(10 * 2000 * 8, 9.0)]
    static, dynamic, limit, _ = point.asked[0]
    assert float(dynamic["unit"]) == 0.25 and limit == 9.0 and static["basis"] == 10
    small = Known(20, (ends(0.0, 1.0), jnp.asarray(1.0)))
    extremes_at(small, memory_limit=9.0)
    assert small.refused == []
    dense = Known(20, jnp.ones((2, 2)))
    assert dense_at(dense, limit_bytes=5.0) is dense.result and dense.refused == [(400 * 8, 5.0)]
    assert dense.asked[0][0] == {"columns": 64}
    # The rows, half as many while they are replaced, and a few vectors.
    assert memory_at(point) == 1000 * (64 + 32 + 4) and memory_at(small) == 77


@pytest.mark.parametrize(
    "end, sign, order", [("greatest", 1, [5, 4, -6]), ("least", -1, [-6, 4, 5])]
)
def test_eigenvalues_from_one_end_inward(end, sign, order):
    values = jnp.array([4.0, -6.0, 5.0])
    point = Known(30, (values, values / 100, jnp.array([True, False, True]), jnp.eye(3, 30)))
    found = top_at(point, 3, memory_limit=VAST, end=end)
    assert found.values.tolist() == order and (found.residuals * 100).tolist() == order
    assert found.converged.tolist() == [v != -6 for v in order]
    assert [int(jnp.argmax(v)) for v in found.vectors] == [[4, -6, 5].index(v) for v in order]
    assert point.asked[0][0] == {"dense": True, "basis": None, "k": 3, "sign": sign}
    for k in (0, 31):
        with pytest.raises(ValueError, match="the matrix has 30"):
            top_at(point, k, memory_limit=VAST)
    assert top_at(point, 30, memory_limit=VAST) and top_at(point, 1, memory_limit=VAST)
    assert [row[0] for row in found._table().rows] == ["1", "2", "3"]


@pytest.fixture
def convex(monkeypatch):
    """Weak convexity of a point with these ends and this loss."""

    def at(found, loss=2.0, dtype=np.float64, **more):
        asked = {}
        given = lambda point, **options: asked.update(options) or (found, jnp.asarray(loss))
        monkeypatch.setattr(convexity, "extremes_at", given)
        return weak_convexity_at(Known(2, dtype=dtype), memory_limit=VAST, **more), asked

    return at


@pytest.mark.parametrize("heads", [1, 4, None])
def test_kappa_is_the_ratio_times_the_root_of_the_heads(heads, convex):
    found, asked = convex(ends(-3.0, 5.0), heads=heads)
    assert float(found.ratio_at_least) == 1.5 and found.heads == (heads or 1)
    assert float(found.kappa_at_least) == 1.5 * (heads or 1) ** 0.5
    assert found.violated is None and found.kappa is None and float(found.loss) == 2
    assert asked["tolerance"] == 8 * EPS and asked["iterations"] == 200
    assert convex(ends(-3.0, 5.0), tolerance=0.5)[1]["tolerance"] == 0.5
    assert float(convex(ends(3.0, 5.0))[0].ratio_at_least) == 0


@pytest.mark.parametrize(
    "off, noise, violated",
    [(0.9, 0.0, False), (1.1, 0.0, True), (0.9 * 1e-5 / EPS, 1.0, None), (-1, 0.0, False)],
)  # fmt: skip
def test_a_violation_is_one_beyond_rounding(off, noise, violated, convex):
    # kappa L / sqrt(H) = 3; thirty-two units of rounding of the largest eigenvalue, 8.
    noise = 1e-5 if noise else 0.0
    room = 32 * max(8 * EPS, noise)
    low = -(3 + (off if violated is not None else 0.9) * room)
    found, _ = convex(ends(low, 8.0, noise=noise), heads=4, kappa=3.0)
    assert found.violated is bool(violated)
    assert found.verdict == ("violated" if violated else "no direction found in 5 products")
    if noise:
        assert convex(ends(-(3 + 1.1 * room), 8.0, noise=noise), heads=4, kappa=3.0)[0].violated
    dense, _ = convex(ends(1.0, 8.0, products=0), kappa=3.0)
    assert dense.verdict == "no direction found in the whole spectrum"


def test_losses_that_are_not_positive(convex):
    for loss in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="above 0"):
            convex(ends(-3.0, 5.0), loss=loss)
    with pytest.raises(ValueError, match="heads must be"):
        convex(ends(-3.0, 5.0), heads=0)


@pytest.mark.parametrize(
    "minimum, loss, ratio", [(-3.0, 2.0, 1.5), (3.0, 2.0, 0.0), (-3.0, 0.0, math.inf)]
)
def test_the_ratio_of_a_record(minimum, loss, ratio):
    assert _ratio(minimum, loss) == ratio
    assert math.isnan(_ratio(3.0, 0.0)) and math.isnan(_ratio(-1.0, math.nan))


@pytest.fixture
def watching(monkeypatch):
    """A monitor whose points and extremes are written down."""

    def made(results, **options):
        points = []

        def point(loss, params, batches, *, batch_size, of, filter=None, heads=None):
            points.append((batches, batch_size, of, filter, heads))
            return Known(7)

        def extremes(p, *, head, finite, **given):
            points.append((head, finite, given))
            return next(left)

        def block(whole, at, chosen, *, finite, **given):
            return extremes(at(filter=chosen), head=None, finite=finite, **given)

        left = iter(results)
        monkeypatch.setattr(monitor, "block_at", block)
        monkeypatch.setattr(monitor, "Point", point)
        monkeypatch.setattr(monitor, "extremes_at", extremes)
        return CurvatureMonitor(lambda p: p, **options), points

    return made


LOSS = jnp.asarray(2.0)


def test_records_every_so_many_steps(watching):
    seen = []
    watch, points = watching([(ends(-3.0, 5.0), LOSS)] * 9, every=5, on_record=seen.append)
    assert watch.last == {}
    for step in range(11):
        assert watch(step, None, (np.ones(3),)) is (step % 5 == 0)
    assert [record["step"] for record in seen] == [0, 5, 10]
    assert watch.last == {"step": 10, "loss": 2, "batches": 1, "minimum": -3, "maximum": 5,
                          "noise": 0, "ratio_at_least": 1.5, "converged": 1}  # fmt: skip
    assert points[1][:2] == (None, False) and points[1][2]["iterations"] == 200
    data = watch.dataset()
    assert data.step.values.tolist() == [0, 5, 10]
    assert data.block.values.tolist() == ["all parameters"]
    assert "Some records cover one batch" in data.attrs["note"]
    assert "3 records" in watch._table().title
    assert data.ratio_at_least.values.tolist() == [[1.5]] * 3
    assert any("one batch" in row[1] for row in watch._table().rows)


def test_blocks_have_their_own_numbers(watching):
    one = ends(-1.0, 2.0, converged_maximum=jnp.asarray(False))
    watch, points = watching([(ends(-3.0, 5.0), LOSS), (one, LOSS)], blocks={"att": "attention"})
    watch(0, None, batches=[np.ones(3), np.ones(3)])
    assert watch.last["minimum/att"] == -1 and watch.last["ratio_at_least/att"] == 0.5
    assert [watch.last[n] for n in ("converged", "converged/att", "batches")] == [1, 0, 2]
    assert [p[3] for p in points[::2]] == [None, "attention"]
    assert "one batch" not in watch.dataset().attrs["note"]
    assert watch.dataset().minimum.values.tolist() == [[-3, -1]]
    assert "of 7 parameters" in watch._table().title and "1 record," in watch._table().title
    with pytest.raises(ValueError, match="which the monitor keeps"):
        watching([], blocks={"all parameters": "x"})
    for every in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            watching([], every=every)
    assert watching([], every=1)


def test_a_monitor_with_its_own_data(watching):
    own = (np.ones((4, 2)),)
    watch, points = watching([(ends(-3.0, 5.0), LOSS)], data=own, batch_size=2)
    watch(0, None, (np.zeros(3),))
    assert points[0][0] is own and points[0][1] == 2 and watch.last["batches"] == 2
    assert watch.dataset().attrs["measured_on"] == "the monitor's own data"
    assert not any("one batch" in row[1] for row in watch._table().rows)
    none, points = watching([(ends(-3.0, 5.0), LOSS)])
    none(0, None)
    assert not any("one batch" in row[1] for row in none._table().rows) and points[0][1] is None
    with pytest.raises(ValueError, match="no record yet"):
        watching([])[0].dataset()


def test_heads_of_a_monitor(watching):
    params, direction = {"q": jnp.ones((2, 3))}, {"q": jnp.array([[1.0, 0, 0], [0, 2, 0]])}
    whole = ends(-3.0, 5.0)._replace(vector_minimum=direction)
    watch, points = watching([(whole, LOSS)] * 4, heads={"q": 1})
    watch(0, params)
    assert [p[0] for p in points[1::2]] == [None, 0, 1, 2] and points[2][4] == {"q": 1}
    np.testing.assert_allclose(watch.dataset().head_share.values, [[0.2, 0.8, 0]])
    assert list(watch.dataset().block.values) == ["all parameters", "head 0", "head 1", "head 2"]


def test_the_ratio_of_a_block_that_came_later(watching):
    watch, _ = watching([(ends(-3.0, 5.0), LOSS)] * 3)
    watch(0, None)
    watch._blocks = {"new": "x"}
    with pytest.raises(ValueError, match="blocks changed"):
        watch(100, None)


POLES, FACTOR = np.array([1.0, 4.0, 6.0]), np.array([[1.0], [2.0], [0.0]])


@pytest.mark.parametrize("shift", [0.5, 1.0, 1.2, 3.0, 4.0, 5.9, 6.5, 8.0, 8.5, 20.0])
def test_eigenvalues_below_a_shift_are_counted(shift):
    # diag(1, 4) + (1, 2)(1, 2)^T = ((2, 2), (2, 8)): 5 -+ sqrt(13), and 6 beside it.
    values = np.array([5 - math.sqrt(13), 5 + math.sqrt(13), 6.0])
    found = count_below(jnp.asarray(POLES), jnp.asarray(FACTOR), jnp.asarray(shift))
    assert int(found) == int(np.sum(values < shift))


@pytest.mark.parametrize("inner, outer", [(1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("at", [0.3, 0.7])
@pytest.mark.parametrize("off", [0.0, 0.04, -0.2, 0.2])
def test_a_bracket_holds_the_end(inner, outer, at, off):
    beyond = (lambda s: s > at) if inner > outer else (lambda s: s < at)
    found, proved, used = _bracket(beyond, outer, inner, jnp.asarray(at + off), 0.1)
    assert bool(proved) and float(found[0]) <= at <= float(found[1])
    assert float(found[1] - found[0]) <= 0.101 and (int(used) == 0) == (abs(off) < 0.05)


def test_bisection_ends_and_says_that_nothing_is_proved():
    found, proved, used = _bracket(lambda s: s > 0.3, 0.0, 1.0, jnp.asarray(0.9), 1e-6, steps=3)
    assert int(used) == 3 and not bool(proved)
    # What lies beside the candidate is beyond it: 0.45 too, 0.225 not, 0.3375 again.
    np.testing.assert_allclose(found, [0.225, 0.3375], rtol=1e-5)
    never = _bracket(lambda s: s > 5.0, 0.0, 1.0, jnp.asarray(0.5), 0.1)
    assert not bool(never[1])


@pytest.mark.slow_cases("1")
@pytest.mark.parametrize("n", [1, 7])
def test_both_ends_of_blocks_and_a_factor(n):
    rng = np.random.default_rng(n)
    blocks = rng.normal(size=(2, 3, 3))
    blocks = blocks + np.swapaxes(blocks, 1, 2)
    factor = rng.normal(size=(2, 3, n))
    matrix = np.zeros((6, 6))
    matrix[:3, :3], matrix[3:, 3:] = blocks
    flat = factor.reshape(6, n)
    values = np.linalg.eigvalsh(matrix + flat @ flat.T)
    found = structured_extremes(jnp.asarray(blocks), jnp.asarray(factor))
    np.testing.assert_allclose([found.minimum, found.maximum], values[[0, -1]], rtol=1e-9)
    assert bool(found.certified)
    for bracket, value in ((found.bracket_minimum, values[0]), (found.bracket_maximum, values[-1])):
        assert bracket[0] <= value <= bracket[1]
        assert 0 < bracket[1] - bracket[0] <= 1.02e-9 * abs(value)


def test_blocks_and_factors_that_do_not_match(unannotated):
    with pytest.raises(ValueError, match="to match factor"):
        structured_extremes(jnp.ones((2, 2, 2)), jnp.ones((2, 3, 4)))
