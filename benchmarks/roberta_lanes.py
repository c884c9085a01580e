"""Claim: where one lane's matrices fill a core, a sweep's groups should hold one lane (group=1).

Run: python benchmarks/roberta_lanes.py

Figure 6's networks (d = 64, T = 32, batches of 32), five seeds, and for contrast Figure 2's (d = 4)
where the opposite holds, as one lane at a time leaves XLA's loops over tiny matrices scalar.
Ratios of CPU time are given too, as they hardly depend on what else the machine does.
"""

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxbounds.multihead.experiments.sparse_context import FIGURE_2, draw
from jaxbounds.multihead.experiments.student import margins
from jaxbounds.multihead.loss import logistic
from jaxbounds.multihead.roberta import Roberta, RobertaShape, init_roberta
from jaxbounds.networks.training import begin, optimizer, train_step

SEEDS = 5


def roberta(heads: int, vocabulary: int, steps: int):
    """(seed's key) -> a number that needs all steps of training on random tokens."""
    shape = RobertaShape(
        vocabulary=vocabulary,
        width=64,
        layers=2,
        heads=heads,
        head_width=64 // heads,
        inner=128,
        positions=34,
    )
    rule, mask = optimizer("adamw", 1e-3), jnp.ones((32, 32), bool)

    def one(key):
        start_key, token_key, label_key = jax.random.split(key, 3)
        tokens = jax.random.randint(token_key, (steps, 32, 32), 0, vocabulary)
        labels = jax.random.randint(label_key, (steps, 32), 0, 2)

        def step(state, batch):
            def loss(params):
                logits = Roberta(shape).apply({"params": params}, batch[0], mask)
                return optax.softmax_cross_entropy_with_integer_labels(logits, batch[1]).mean()

            return train_step(loss, rule, state), None

        state, _ = jax.lax.scan(step, begin(init_roberta(shape, start_key), rule), (tokens, labels))
        return state.params["norm"]["scale"].sum()

    return one


def sparse(steps: int):
    """The same of Figure 2: one head of d = 4, a hundred samples."""
    rule = optimizer("gd", 1.0)

    def one(key):
        data = draw(FIGURE_2, key, 100)
        zero = {"U": jnp.zeros((1, 10, 4)), "W": jnp.zeros((1, 4, 4))}
        loss = lambda params: jnp.mean(logistic(margins(params, jnp.asarray(1.0), data)))
        step = lambda state, _: (train_step(loss, rule, state), None)
        return jax.lax.scan(step, begin(zero, rule), length=steps)[0].params["U"].sum()

    return one


def seconds(function, keys, rounds: int = 3) -> tuple[float, float]:
    """Median wall and CPU seconds."""
    function(keys).block_until_ready()
    wall, cpu = [], []
    for _ in range(rounds):
        start, used = time.perf_counter(), time.process_time()
        function(keys).block_until_ready()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return statistics.median(wall), statistics.median(cpu)


keys = jax.random.split(jax.random.key(0), SEEDS)
print(f"{SEEDS} seeds, milliseconds for a seed and step (wall, CPU); ratios to groups of one")
print(f"{'':<34} {'group 1':>15} {'group 5':>15} {'no vmap':>15} {'5 / 1':>12}")
for name, one, steps in (
    ("d = 64, H = 1, 112 tokens", roberta(1, 112, 10), 10),
    ("d = 64, H = 16, 112 tokens", roberta(16, 112, 10), 10),
    ("d = 64, H = 4, 4096 tokens", roberta(4, 4096, 10), 10),
    ("Figure 2: d = 4", sparse(100), 100),
):
    single = jax.jit(lambda keys, one=one: jax.lax.map(jax.vmap(one), keys.reshape(SEEDS, 1)))
    together = jax.jit(jax.vmap(one))
    plain = jax.jit(lambda keys, one=one: jax.lax.map(one, keys))
    found = [np.asarray(seconds(f, keys)) * 1e3 / SEEDS / steps for f in (single, together, plain)]
    cells = " ".join(f"{wall:7.3f} {cpu:7.3f}" for wall, cpu in found)
    wall, cpu = found[1] / found[0]
    print(f"{name:<34} {cells} {wall:6.2f} {cpu:5.2f}")
