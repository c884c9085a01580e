"""The experiment on a network small enough for `jax.hessian`, its claims, and the formulas."""

from dataclasses import asdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.experiments.weakconvexity import (
    WeakConvexityCurves,
    claims,
    exponents,
    figure,
    run,
)
from jaxbounds.multihead.experiments.weakconvexity_network import Encoder, HeadSum
from jaxbounds.multihead.self_bounded import loss_weighted_curvature, slope_weighted_curvature

SMALL = WeakConvexityCurves(
    heads=(2,), arms=("fixed",), dimension=4, tokens=4, distractors=1, n=6, records=(0, 2),
    iterations=150, seeds=1,
)  # fmt: skip


def _by_hand(x, params, scale):
    """Attention with loops over heads and queries, in numpy."""
    total = np.zeros_like(x)
    for h in range(params["query"].shape[1]):
        query, key, value = (x @ params[name][:, h] for name in ("query", "key", "value"))
        for t in range(len(x)):
            weights = np.exp(query[t] @ key.T / query.shape[1] ** 0.5)
            total[t] += (weights / weights.sum()) @ value @ params["out"][h]
    return total * scale


@pytest.mark.parametrize("arm, width, scale", [("split", 2, 1), ("fixed", 3, 2**-0.5)])
def test_attention_against_loops(arm, width, scale, key):
    x, layer = np.asarray(jax.random.normal(key, (5, 4))), HeadSum(2, arm, 3)
    params = jax.jit(layer.init)(jax.random.key(1), x)["params"]
    assert params["query"].shape == (4, 2, width)
    expected = _by_hand(x, jax.tree.map(np.asarray, params), scale)
    found = jax.jit(layer.apply)({"params": params}, x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_heads_must_divide_the_width(key):
    with pytest.raises(ValueError, match="heads=3 do not divide the width d=4, expected"):
        HeadSum(3, "split").init(key, jnp.ones((5, 4)))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A run and where it was kept."""
    folder = tmp_path_factory.mktemp("run")
    return run(SMALL, jax.random.key(0), folder=folder), folder


def test_ratios_are_those_of_the_dense_hessian(measured, key):
    dataset, _ = measured
    data_key, start_key = jax.random.split(jax.random.fold_in(key, 0))
    model = SparseContext(tokens=4, dimension=3, relevant=1, distractors=1)
    batch = model.sample(data_key, 6)
    encoder = Encoder(2, "fixed", 4, 1)
    params = jax.tree.map(np.asarray, encoder.init(start_key, batch["X"])["params"])
    labels = np.asarray(batch["y"], np.float32)
    leaves, tree = jax.tree.flatten(params)
    sizes = [leaf.size for leaf in leaves]

    def value(flat):
        parts = jnp.split(flat, np.cumsum(sizes)[:-1])
        whole = tree.unflatten([p.reshape(leaf.shape) for p, leaf in zip(parts, leaves)])
        outputs = encoder.apply({"params": whole}, batch["X"])
        return jnp.mean(jax.nn.softplus(-labels * outputs))

    flat = np.concatenate([leaf.ravel() for leaf in leaves])
    loss, hessian = jax.jit(lambda v: (value(v), jax.hessian(value)(v)))(flat)
    hessian = np.asarray(hessian)
    names = [path[0].key for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    rows = np.flatnonzero(np.repeat([name == "attention_0" for name in names], sizes))
    for block, part in (("attention", hessian[np.ix_(rows, rows)]), ("network", hessian)):
        least = np.linalg.eigvalsh(part)[0]
        found = dataset.sel(H=2, arm="fixed", step=0, seed=0, block=block)
        assert float(found.minimum) == pytest.approx(least, rel=1e-3)
        assert float(found.ratio) == pytest.approx(-least / float(loss), rel=1e-3)


def test_a_resumed_run_reads_what_is_there(measured, monkeypatch):
    dataset, folder = measured
    from jaxbounds.multihead.experiments import weakconvexity

    refused = "the resumed run computed a stored part again"
    monkeypatch.setattr(weakconvexity, "_one_arm", lambda *_: pytest.fail(refused))
    again = run(SMALL, jax.random.key(0), folder=folder, resume=True)
    np.testing.assert_array_equal(again.ratio, dataset.ratio)
    with pytest.raises(ValueError, match="another kind or version"):
        run(SMALL, jax.random.key(1), folder=folder, resume=True)
    with pytest.raises(ValueError, match=r"records=\(3, 1\), expected increasing numbers"):
        run(WeakConvexityCurves(records=(3, 1)), jax.random.key(0))


def _planted(measured, exponent, losses, ratios):
    """A data set with the law and the course given, over four H and two arms."""
    dataset = (
        measured[0]
        .isel(H=[0] * 4, arm=[0] * 2)
        .assign_coords(H=[1, 4, 16, 64], arm=["split", "fixed"])
    )
    law = dataset.H.astype(float) ** exponent
    shape = dict(zip(dataset.ratio.dims, dataset.ratio.shape))
    ratio = (law * 0.5).expand_dims({k: v for k, v in shape.items() if k != "H"})
    course = np.asarray(ratios)
    ratio = ratio.transpose(*dataset.ratio.dims) * course[None, None, None, :, None]
    loss = dataset.loss * 0 + np.asarray(losses)[None, None, None, :]
    dataset = dataset.assign_attrs(config=asdict(WeakConvexityCurves()))
    return dataset.assign(ratio=(dataset.ratio.dims, ratio.values), loss=loss)


def test_claims_decide(measured):
    planted = _planted(measured, -0.5, [0.7, 0.001], [1, 20])
    np.testing.assert_allclose(exponents(planted, "fixed", "attention"), -0.5, atol=1e-12)
    # The course of all H is the same one, so that the law is too.
    later = exponents(planted, "fixed", "attention", record=1)
    np.testing.assert_allclose(later, -0.5, atol=1e-12)
    assert "attention after 2 steps -0.50" in claims(planted)[1].number
    # The law holds in both arms, which the claim on "split" denies.
    assert [claim.reproduced for claim in claims(planted)] == [False, True, True]
    flat = _planted(measured, 0.0, [0.7, 0.001], [1, 40])
    assert [claim.reproduced for claim in claims(flat)] == [True, False, False]
    short = _planted(measured, 0.0, [0.7, 0.1], [1, 40])
    assert claims(short)[2].reproduced is None
    assert claims(measured[0])[0].reproduced is None  # one H makes no exponent
    pytest.importorskip("matplotlib").use("agg")
    assert len(figure(planted).axes) == 2


def test_formulas(x64):
    given = np.array([0.0, 2.0]), np.array([3.0, 1.0])
    expected = (3 / 2 + 1 / (1 + np.exp(2))) / 2
    assert jax.jit(slope_weighted_curvature)(*given) == pytest.approx(expected, rel=1e-14)
    expected = 3 * (np.log(2) + np.log1p(np.exp(-2))) / 2
    assert jax.jit(loss_weighted_curvature)(*given) == pytest.approx(expected, rel=1e-14)
