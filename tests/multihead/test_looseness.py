"""How loose Section 3's bounds are: left sides against the dense Hessian, claims with controls."""

import functools
from dataclasses import asdict, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from jaxbounds.experiments.results import load, save
from jaxbounds.multihead.experiments import looseness
from jaxbounds.multihead.experiments.looseness_measured import QUANTITIES, Measured, measured
from jaxbounds.multihead.experiments.looseness_networks import aligned_network, random_network
from jaxbounds.multihead.loss import logistic
from jaxbounds.multihead.model import MultiHeadAttention

SMALL = looseness.Looseness(
    heads=(4, 8, 16), tokens=(2, 4, 8), dimensions=(2, 3, 4), n=2, samples=1, seeds=2, steps=(0, 9)
)


@pytest.mark.slow_cases("random")
@pytest.mark.parametrize("family", ["random", "aligned"])
def test_left_sides_are_those_of_the_whole_hessian(family, x64, key):
    """Independent: one dense `jax.hessian` of the loss, and of the model, through `apply`."""
    sizes = {"H": 4, "T": 2, "d": 2, "n": 3}
    drawn = functools.partial(random_network, key) if family == "random" else aligned_network
    params, data = jax.jit(lambda radius: drawn(radius, 2.0, **sizes))(jnp.asarray(1.5))
    flat, whole = ravel_pytree(params)
    apply = lambda p, x: MultiHeadAttention(4).apply({"params": whole(p)}, x)
    outputs = lambda p: jax.vmap(apply, in_axes=(None, 0))(p, data["X"])
    loss = lambda p: jnp.mean(logistic(data["y"].astype(float) * outputs(p)))

    @jax.jit
    def derivatives(p):
        of_each = lambda taken: jax.vmap(taken(apply), in_axes=(None, 0))(p, data["X"])
        return (*jax.value_and_grad(loss)(p), jax.hessian(loss)(p),
                of_each(jax.grad), of_each(jax.hessian))  # fmt: skip

    value, slope, hessian, slopes, models = derivatives(flat)
    value, ends, models = float(value), np.linalg.eigvalsh(hessian), np.linalg.eigvalsh(models)
    wanted = [
        np.max(np.linalg.norm(slopes, axis=1)), np.max(np.abs(models)),
        np.linalg.norm(slope) / value, ends[-1], -ends[0] / value,
    ]  # fmt: skip
    found = jax.jit(measured, static_argnums=2)(params, data, 3)
    np.testing.assert_allclose(found.left, wanted, rtol=1e-8)
    assert bool(found.certified) and np.all(found.left <= found.sharp)
    assert np.all(found.sharp <= found.printed) and float(found.loss) == pytest.approx(value)


def _fake(powers, tight=0.9):
    """A data set whose left sides are those shares of the sharpened bounds along each axis."""

    def one(at, aligned):
        growth = np.prod([float(at[axis]) ** power for axis, power in powers.items()])
        sharp = at["H"] ** -0.5 * at["T"] ** 0.5 * float(at["R"]) ** 5
        left = tight * growth if aligned else tight * growth / 10
        every = lambda value: np.full(len(QUANTITIES), value)
        return Measured(every(left), every(8 * sharp * at["d"]), every(sharp), every(0.0),
                        np.bool_(True), np.float64(1.0))  # fmt: skip

    points = SMALL.points()
    rows = [[[one(at, aligned)] * 2 for _, at in points] for aligned in (False, True)]
    base = points[1][1]
    along = [[one(base, True), one(base, False)]] * 2
    data = looseness._labelled(SMALL, points, rows, along)
    return data.assign_attrs(config=asdict(looseness.Looseness()))


RIGHT = {"H": -0.5, "T": 0.5, "R": 5.0}


def _decided(dataset):
    return [claim.reproduced for claim in looseness.claims(dataset)]


def test_claims_and_their_controls():
    """Each control moves one thing, and the claim on it says no."""
    assert _decided(_fake(RIGHT)) == [True] * 7
    assert _decided(_fake(RIGHT | {"H": -0.7}))[1] is False
    assert _decided(_fake(RIGHT | {"T": 0.3}))[2] is False
    assert _decided(_fake(RIGHT | {"R": 4.7}))[3] is False
    assert _decided(_fake(RIGHT, tight=1.1))[4] is False
    assert _decided(_fake(RIGHT, tight=0.4))[5] is False
    assert _decided(_fake(RIGHT, tight=40.0))[0] is False
    later = _fake(RIGHT)
    later["run_left"] = later.run_left.isel(step=slice(None, None, -1)).assign_coords(
        step=later.step
    )
    assert _decided(later)[6] is False
    assert _decided(_fake(RIGHT).assign_attrs(certified=3))[0] is None
    assert _decided(_fake(RIGHT).isel(step=[0]))[6] is None


def test_exponents_stand_beside_those_of_the_bounds():
    lines = looseness.table(_fake(RIGHT | {"d": 0.25})).splitlines()
    row = {tuple(line.rsplit(None, 5)[:2]): line.split()[-4:] for line in lines[2:]}
    assert row["-min Hess L / L", "T"] == ["0.50"] * 4
    assert row["|Hess Phi|", "d"] == ["0.25", "0.25", "1.00", "0.00"]
    assert len(row) == 20


def test_the_picture_has_the_sizes_as_its_ticks():
    import matplotlib

    matplotlib.use("Agg")
    figure = looseness.figure(_fake(RIGHT))
    assert len(figure.axes) == 15
    ticks = [label.get_text() for label in figure.axes[-5].get_xticklabels()]
    assert ticks == ["4", "8", "16"]
    matplotlib.pyplot.close(figure)


@pytest.mark.slow
def test_a_small_run_is_measured_and_kept(key, tmp_path):
    save(looseness.run(replace(SMALL, seeds=1), key), tmp_path / "result.nc")
    dataset = load(tmp_path / "result.nc")
    decided = looseness.claims(dataset)
    # A bound at every network is decided at any size; exponents are not.
    assert [claim.reproduced for claim in decided[:1] + decided[4:5]] == [True] * 2
    assert decided[1].reproduced is None
    # The base point is measured once: ten points for each family, and two steps of the run.
    assert dataset.attrs["certified"] == dataset.attrs["networks"] == 2 * 10 + 2
    assert np.isfinite(dataset.run_left).all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"heads": (2, 4, 8)}, "expected even numbers and H >= 4"),
        ({"tokens": (3, 4, 8)}, "expected even numbers"),
        ({"radii": (1.0, 2.0)}, "sizes=radii: fewer than 3 values"),
        ({"dimensions": (4, 2, 8)}, r"dimensions=\(4, 2, 8\), expected positive increasing"),
        ({"steps": (5, 2)}, "expected increasing steps"),
        ({"samples": 3}, "expected 1 <= samples <= n"),
    ],
)
def test_sizes_that_no_network_has_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)
