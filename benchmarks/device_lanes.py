"""What an accelerator does for many seeds, and what its matrix units cost in the last digits.

    python benchmarks/device_lanes.py            # on whatever device JAX has

Figure 2's training (d = 4, 100 samples) and Figure 6's (a Transformer of d = 64 on 32 tokens), one
seed against many, group after group as `sweep` does, in groups of several sizes; then the training
loss of the second with each matmul precision in float32, against the same steps in float64 from the
same weights.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from timing import medians

from jaxbounds.experiments.sweeps import sweep
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.experiments.sparse_context import FIGURE_2, draw
from jaxbounds.multihead.experiments.student import margins
from jaxbounds.multihead.loss import logistic
from jaxbounds.multihead.roberta import Roberta, RobertaShape, init_roberta
from jaxbounds.networks.training import begin, optimizer, train_step

TEXT = RobertaShape(
    vocabulary=112, width=64, layers=2, heads=4, head_width=16, inner=128, positions=34
)


def sparse_context():
    """(start, step, measure) of Figure 2."""
    rule = optimizer("gd", 1.0)
    zero = {"U": jnp.zeros((1, 10, 4)), "W": jnp.zeros((1, 4, 4))}
    loss = lambda lane, params: jnp.mean(logistic(margins(params, jnp.asarray(1.0), lane["data"])))

    def step(lane, state):
        return train_step(lambda params: loss(lane, params), rule, state)

    return lambda lane: begin(zero, rule), step, lambda lane, s: {"loss": loss(lane, s.params)}


def sentences():
    """(start, step, measure) of Figure 6's network on one batch of random tokens for each seed."""
    net, rule = Roberta(TEXT), optimizer("adamw", 1e-3)
    mask = jnp.ones((32, 32), bool)

    def loss(lane, params):
        logits = net.apply({"params": params}, lane["tokens"], mask)
        return optax.softmax_cross_entropy_with_integer_labels(logits, lane["labels"]).mean()

    def step(lane, state):
        return train_step(lambda params: loss(lane, params), rule, state)

    start = lambda lane: begin(lane["params"], rule)
    return start, step, lambda lane, s: {"loss": loss(lane, s.params)}


def lanes_of(name: str, seeds: int) -> dict:
    keys = jax.random.split(jax.random.key(0), seeds)
    if name == "sparse context":
        data = jax.jit(jax.vmap(lambda key: draw(FIGURE_2, key, 100)))(keys)
        return {"data": jax.tree.map(np.asarray, data)}

    def one(key):
        start, tokens, labels = jax.random.split(key, 3)
        return {
            "params": init_roberta(TEXT, start),
            "tokens": jax.random.randint(tokens, (32, 32), 0, TEXT.vocabulary),
            "labels": jax.random.randint(labels, (32,), 0, 2),
        }

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(keys))


def seconds(program, lanes: dict, steps: int, group: int) -> float:
    """Of so many steps of all lanes, group after group as in a sweep; the median of three."""
    start, step, measure = program

    def one(lane):
        state, _ = jax.lax.scan(lambda s, _: (step(lane, s), None), start(lane), length=steps)
        return measure(lane, state)["loss"]

    split = jax.tree.map(lambda leaf: leaf.reshape(-1, group, *leaf.shape[1:]), lanes)
    train = jax.jit(lambda lanes: jax.lax.map(jax.vmap(one), lanes))
    return medians((train, split), rounds=1)[0]


def many_seeds() -> None:
    print(f"{'':<16} {'seeds':>6} {'group':>6} {'ms a step':>10} {'us a seed and step':>20}")
    usual = ((1, 1), (8, 8), (1024, 64), (1024, 256), (1024, 1024))
    for name, program, steps, sizes in (
        ("sparse context", sparse_context(), 500, usual),
        ("sentences", sentences(), 20, (*usual[:2], (64, 64), (1024, 256))),
    ):
        for seeds, group in sizes:
            took = seconds(program, lanes_of(name, seeds), steps, group)
            each = 1e6 * took / steps / seeds
            print(
                f"{name:<16} {seeds:>6} {group:>6} {1e3 * took / steps:>10.3f} {each:>20.2f}",
                flush=True,
            )


def precisions(steps: int = 300) -> None:
    """The largest relative difference of the loss from float64's within so many steps."""
    drawn = lanes_of("sentences", 4)

    def losses(dtype, precision):
        with enable_x64(dtype == jnp.float64), jax.default_matmul_precision(precision):
            cast = lambda leaf: leaf.astype(dtype) if leaf.dtype == jnp.float32 else leaf
            lanes = jax.tree.map(cast, drawn)
            done = sweep(*sentences(), lanes, steps, every=10, chunk=steps, group=4)
            return done.metrics["loss"].astype(np.float64)

    exact = losses(jnp.float64, "highest")
    print(
        f"loss after 10 and {steps} steps in float64: {exact[:, 0].mean():.6f}, "
        f"{exact[:, -1].mean():.3g}"
    )
    for precision in ("highest", "high", "default"):
        apart = np.abs(losses(jnp.float32, precision) / exact - 1)
        print(
            f"float32, matmul precision {precision:<8} after 10 steps {apart[:, 0].max():.1e}, "
            f"within {steps} {apart.max():.1e}"
        )


device = jax.devices()[0]
print(f"{device.device_kind}, {len(jax.devices())} of them, jax {jax.__version__}")
many_seeds()
precisions()
