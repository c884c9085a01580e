"""The majority trains the Flax module: its exact reduction follows `apply` for 500 steps."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.seqlength import majority_model as mm
from jaxbounds.seqlength import sparse_majority as sm

STEPS = 500


@pytest.mark.default_cases("momentum-float64")
@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_the_reduction_follows_the_module_for_500_steps(name, wide, key):
    """The same parameters go in and come out. The rates let the losses fall without oscillation.

    Adam divides each gradient by its size, so it amplifies rounding, tenfold in some 50 steps: its
    losses are compared to 1e-12 over the first 200 steps, to 1e-8 over 400, to 1e-6 over all. The
    key bias is left out under Adam: softmax ignores it, its gradient is zero in the reduction and
    rounding noise in the module, and Adam makes steps of any noise.
    """
    rule = optax.sgd(0.01, momentum=0.9) if name == "momentum" else optax.adam(0.001)
    embedding = sm.Embedding(d=8, symbols="l2", symbol_scale=3.0)
    net = mm.MajorityTransformer(d_k=4, hidden=8)
    drawn = jax.jit(net.init)(jax.random.key(2), np.zeros((1, 1, 8), np.float32))["params"]

    @jax.jit
    def draw(key):
        task = sm.draw_task(key, embedding, T=7, sparsity=3)
        bits = sm.draw_bits(jax.random.key(1), n=40, T=7)
        return task, bits, sm.majority_label(bits, task.relevant), sm.embed(task, bits)

    with enable_x64(wide), jax.default_matmul_precision("highest"):
        dtype = np.float64 if wide else np.float32
        task, bits, labels, tokens = draw(key)
        assert tokens.dtype == dtype
        start = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), drawn)

        def trained(logits):
            loss = lambda params: jnp.mean(mm.sigmoid_loss(logits(params), labels))

            def step(carry, _):
                params, memory = carry
                with jax.numpy_dtype_promotion("standard"):
                    updates, memory = rule.update(jax.grad(loss)(params), memory, params)
                    params = optax.apply_updates(params, updates)
                return (params, memory), loss(params)

            run = jax.jit(lambda: jax.lax.scan(step, (start, rule.init(start)), length=STEPS))
            (params, _), losses = run()
            return params, np.asarray(losses)

        plain, wanted = trained(lambda params: net.apply({"params": params}, tokens))
        fast, found = trained(lambda params: mm.reduced_logits(params, task, bits))
        assert wanted.dtype == dtype and wanted[-1] < wanted[0] - 0.05
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
        exact, most = (slice(200), slice(400)) if name == "adam" else (slice(STEPS), slice(STEPS))
        if wide:
            np.testing.assert_allclose(found[exact], wanted[exact], rtol=0, atol=1e-12)
            np.testing.assert_allclose(found[most], wanted[most], rtol=0, atol=1e-8)
        for params in (plain, fast):
            if name == "adam":
                params["attention"]["key"].pop("bias")
        within = 1e-4 if not wide else 1e-9 if name == "momentum" else 1e-5
        chex.assert_trees_all_close(fast, plain, rtol=0, atol=within)
