"""Figures 2 to 5 train modules: the fast path against the module, and networks of a user's own."""

import re
from dataclasses import replace

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxbounds.cli.guide import topic_text
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.experiments import EXPERIMENTS, planted, sparse_context, students
from jaxbounds.multihead.experiments.curves import Panel
from jaxbounds.multihead.experiments.lessons import equal_heads
from jaxbounds.multihead.experiments.student import EqualHeads
from jaxbounds.multihead.loss import logistic
from jaxbounds.multihead.model import MultiHeadAttention
from jaxbounds.multihead.tied import tie, untie

TOY = sparse_context.SparseContextCurves(
    heads=(1, 2), trials=2, steps=4, every=2, opening=1, n=6, test=5, tokens=4
)
FIGURES = {experiment.id: experiment for experiment in EXPERIMENTS}


def _by_the_module(H, rule, X, y, steps):
    """Independent: Flax's init and apply with Optax's update, and a Python-level loss."""
    module = MultiHeadAttention(heads=H)
    params = jax.jit(module.init)(jax.random.key(0), X[0])["params"]
    outputs = jax.vmap(lambda p, x: module.apply({"params": p}, x), in_axes=(None, 0))

    def step(carry, _):
        params, memory = carry
        loss = lambda p: jnp.mean(logistic(y * outputs(p, X)))
        with jax.numpy_dtype_promotion("standard"):
            updates, memory = rule.update(jax.grad(loss)(params), memory, params)
            params = optax.apply_updates(params, updates)
        return (params, memory), loss(params)

    run = jax.jit(lambda: jax.lax.scan(step, (params, rule.init(params)), length=steps))
    (after, _), losses = run()
    return params, after, losses


def _by_the_fast_path(start, name, eta, part, steps):
    """The same parameters in and out."""
    one, copies = tie(start)
    data = {"train": part, "test": part, "heads": copies[0], "step_size": eta}
    lane = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, part["X"].dtype)), data)
    lesson = equal_heads(name, lane, lambda lane, params: {})

    def step(state, _):
        state = lesson.step(lane, state)
        return state, jnp.mean(logistic(lesson.margins(state.params, lane, "train")))

    begin = lesson.begin(lane)
    chex.assert_trees_all_equal_shapes_and_dtypes(begin.params, one)
    chex.assert_trees_all_equal(begin.params, one)
    after, losses = jax.jit(lambda: jax.lax.scan(step, begin, length=steps))()
    return untie(after.params, (start["U"].shape[0],)), losses


@pytest.mark.default_cases("gd-1.0-float64", "adam-0.06-float32")
@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("name, eta", [("gd", 1.0), ("adam", 0.06)])
def test_the_fast_path_follows_the_module_for_500_steps(name, eta, wide, key):
    """On the data of Figure 2 at its size; H = 4 equal heads."""
    draw = jax.jit(sparse_context.draw, static_argnums=(0, 2))
    drawn = draw(sparse_context.FIGURE_2, key, 100)
    with enable_x64(wide), jax.default_matmul_precision("highest"):
        dtype = np.float64 if wide else np.float32
        part = {k: np.asarray(drawn[k], dtype) for k in ("X", "y")}
        rule = optax.sgd(eta) if name == "gd" else optax.adam(eta)
        first = np.moveaxis(part["X"], -1, 0)
        start, after, losses = _by_the_module(4, rule, first, part["y"], 500)
        heads, fast = _by_the_fast_path(start, name, eta, part, 500)
        assert losses.dtype == dtype and losses[0] > 0.6 and losses[-1] < 1e-3
        np.testing.assert_allclose(fast, losses, rtol=0, atol=1e-12 if wide else 1e-6)
        chex.assert_trees_all_close(heads, after, rtol=0, atol=1e-11 if wide else 1e-5)


def test_the_fast_path_has_the_outputs_of_heads_that_are_not_zero(x64, key):
    init = jax.jit(EqualHeads(scale=1.0).init)
    one = init(key, jnp.zeros((5, 3, 2)), jnp.asarray(1.0))["params"]
    tokens = np.random.default_rng(0).normal(size=(5, 3, 7))
    heads = untie(one, (6,))
    plain = lambda X: MultiHeadAttention(heads=6).apply({"params": heads}, X)
    fast = jax.jit(EqualHeads().apply)({"params": one}, tokens, jnp.asarray(6.0))
    wanted = jax.jit(jax.vmap(plain))(np.moveaxis(tokens, -1, 0))
    np.testing.assert_allclose(fast, wanted, rtol=1e-12)
    assert np.std(fast) > 0.1
    back, copies = tie(heads)
    chex.assert_trees_all_equal(back, one)
    assert float(copies[0]) == 6


def test_heads_that_differ_have_no_fast_path(key):
    init = jax.jit(MultiHeadAttention(heads=3, scale=1.0).init)
    heads = init(key, np.zeros((4, 2), np.float32))["params"]
    with pytest.raises(ValueError, match=r"heads=3 of U differ, expected equal heads\."):
        tie(heads)


class Linen(nn.Module):
    """Attention of Flax's own, pooled."""

    heads: int

    @nn.compact
    def __call__(self, tokens):
        """(n, T, d) -> (n,)."""
        mixed = nn.MultiHeadDotProductAttention(self.heads, qkv_features=4 * self.heads)(tokens)
        return nn.Dense(1)(jnp.mean(mixed, axis=1))[:, 0]


def _nnx():
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, heads, rngs):
            self.mix = nnx.MultiHeadAttention(heads, 4, 4 * heads, decode=False, rngs=rngs)
            self.drop = nnx.Dropout(0.0, rngs=rngs)  # holds keys, which are not trained
            self.out = nnx.Linear(4, 1, rngs=rngs)

        def __call__(self, tokens):
            return self.out(self.drop(jnp.mean(self.mix(tokens), axis=1)))[:, 0]

    return {"nnx": nnx, "Net": Net}


def _equinox():
    eqx = pytest.importorskip("equinox")

    class Net(eqx.Module):
        mix: eqx.nn.MultiheadAttention
        out: eqx.nn.Linear

        def __init__(self, heads, key):
            self.mix = eqx.nn.MultiheadAttention(heads, 4, qk_size=4, vo_size=4, key=key)
            self.out = eqx.nn.Linear(4, 1, key=jax.random.fold_in(key, 1))

        def __call__(self, tokens):
            return self.out(jnp.mean(self.mix(tokens, tokens, tokens), axis=0))[0]

    return {"eqx": eqx, "jax": jax, "Net": Net}


NETWORKS = {"linen": lambda: {"Net": Linen}, "nnx": _nnx, "equinox": _equinox}


@pytest.fixture
def registry(monkeypatch):
    """Students registered by a test are gone after it."""
    monkeypatch.setattr(students, "STUDENTS", dict(students.STUDENTS))


def _lines_of_the_guide(name):
    blocks = re.findall(r"^```python\n(.*?)^```", topic_text("figures"), re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if f'register("{name}"' in block]
    assert len([line for line in found.splitlines() if line]) <= 5
    return found


@pytest.mark.slow_cases("linen", "nnx")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of flax.nnx, about its own modules
@pytest.mark.parametrize("name", NETWORKS)
def test_the_lines_of_the_guide_put_a_network_into_figure_2(name, registry, key, tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    scope = NETWORKS[name]() | {"Student": students.Student, "register": students.register}
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        exec(_lines_of_the_guide(name), scope)
        config = replace(
            TOY, student=name, panels=(Panel(rule="adam", step_size=0.02),), heads=(2,), steps=60,
            opening=0,
        )  # fmt: skip
        found = sparse_context.run(config, key, folder=tmp_path)
        again = sparse_context.run(config, key, folder=tmp_path, resume=True)
    assert found.identical(again)
    losses = found.log10_train_loss.isel(panel=0)
    assert np.isfinite(losses).all() and (losses.isel(step=-1) < losses.isel(step=0)).all()
    assert len(np.unique(losses.isel(step=0))) == losses.isel(step=0).size
    claims = FIGURES["multihead.fig3"].claims(found.assign_attrs(hypotheses={"gamma_attn": 1.0}))
    assert all(claim.text.startswith(f"asked of student '{name}': ") for claim in claims)
    drawn = FIGURES["multihead.fig2"].figure(found)
    assert [axis.get_title() for axis in drawn.axes[:2]] == ["train loss", "test loss"]
    assert len([axis for axis in drawn.axes if axis.axison]) == 2
    assert f"student {name}" in drawn.legends[0].get_title().get_text()
    matplotlib.pyplot.close(drawn)


def test_a_network_of_ones_own_in_figure_4(registry, key):
    import matplotlib

    matplotlib.use("Agg")
    students.register("pooled", lambda H: Linen(heads=H))
    small = planted.PlantedCurves(
        panels=(Panel(exponent=0.5),), heads=(1, 2), trials=2, steps=2, every=1,
        opening=0, n=8, test=4, dimension=4, student="pooled",
    )  # fmt: skip
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        found = planted.run(small, key)
    claims = FIGURES["multihead.fig5"].claims(found)
    assert len(claims) == 1 and all("student 'pooled'" in claim.text for claim in claims)
    drawn = FIGURES["multihead.fig4"].figure(found)
    assert len(drawn.axes) == 2
    matplotlib.pyplot.close(drawn)


def test_a_student_that_is_none_is_one_sentence(registry):
    with pytest.raises(ValueError, match=r"student='all-head', expected .* Try all-heads"):
        replace(TOY, student="all-head")
    with pytest.raises(ValueError, match="name='all-heads' is taken"):
        students.register("all-heads", students.all_heads)
    tokens = jax.ShapeDtypeStruct((6, 4, 4), jnp.float32)
    students.register("wide", lambda H: nn.Dense(2))
    with pytest.raises(
        ValueError, match=r"maps tokens \(6, 4, 4\) to \(6, 4, 2\), expected \(6,\)"
    ):
        students.build("wide", 1, tokens)
    students.register("none", lambda H: H)
    with pytest.raises(ValueError, match="returns int, expected a Flax linen module or a Student"):
        students.build("none", 1, tokens)
