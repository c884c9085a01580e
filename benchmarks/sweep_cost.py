"""What a sweep costs beside the plain loop, `jax.vmap` of the step inside of `jax.lax.scan`.

    python benchmarks/sweep_cost.py --devices 1 4
    python benchmarks/sweep_cost.py --devices 1 --width 512 --steps 500

The case is a network in Flax with clipping, AdamW and a cosine schedule, 12 lanes of seeds and
rates. Each number of devices has a process of its own, in which sweep and plain loop take turns.
Printed: seconds of the first calls, which compile, and of the fastest of the others; their ratio;
how far the losses are apart; and the seconds of a second call of a sweep of five numbers.
"""

import subprocess
import sys
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

from jaxbounds.experiments.sweeps import lanes_of, sweep

EVERY = 10
"""Steps between records; a larger number makes both sides measure less often."""


def _case(width: int, steps: int):
    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.relu(nn.Dense(width)(x))
            return nn.Dense(1)(x)[..., 0]

    network, X = Network(), jax.random.normal(jax.random.key(1), (128, 32))
    Y = jnp.sin(X @ jnp.ones(32))
    schedule = optax.cosine_decay_schedule(1.0, steps)
    rule = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    loss = lambda params: jnp.mean((network.apply(params, X) - Y) ** 2)

    def start(lane):
        params = network.init(lane["key"], X)
        return params, rule.init(params)

    def step(lane, state):
        params, inner = state
        update, inner = rule.update(jax.grad(loss)(params), inner, params)
        update = jax.tree.map(lambda u: u * lane["rate"], update)
        return optax.apply_updates(params, update), inner

    return start, step, lambda lane, state: {"loss": loss(state[0])}


def _plain(start, step, measure, steps):
    @jax.jit
    def run(lanes):
        def one(state, _):
            move = lambda state, _: (jax.vmap(step)(lanes, state), None)
            state, _ = jax.lax.scan(move, state, length=EVERY)
            return state, jax.vmap(measure)(lanes, state)["loss"]

        return jax.lax.scan(one, jax.vmap(start)(lanes), length=steps // EVERY)[1].T

    return run


def _seconds(call):
    began = time.perf_counter()
    result = np.asarray(call())
    return time.perf_counter() - began, result


def _second_call() -> float:
    """Seconds of the second call of a sweep of five numbers."""
    start = lambda lane: lane["rate"] * jnp.ones(5)
    step = lambda lane, state: state - lane["rate"] * state
    measure = lambda lane, state: {"loss": jnp.sum(state**2)}
    lanes = {"rate": np.linspace(0.1, 0.9, 12, dtype=np.float32)}
    call = lambda: sweep(start, step, measure, lanes, 200).metrics["loss"]
    return [_seconds(call)[0] for _ in range(3)][1]


def _measure(width: int, steps: int, repeats: int) -> None:
    start, step, measure = _case(width, steps)
    rates = np.float32([1e-3, 3e-3, 1e-2])
    lanes, _ = lanes_of(jax.random.split(jax.random.key(0), 4), rate=rates)
    plain = _plain(start, step, measure, steps)
    swept = lambda: sweep(start, step, measure, lanes, steps, every=EVERY).metrics["loss"]
    (first_plain, one), (first_sweep, other) = _seconds(lambda: plain(lanes)), _seconds(swept)
    pairs = [(_seconds(lambda: plain(lanes))[0], _seconds(swept)[0]) for _ in range(repeats)]
    loop, ours = (min(times) for times in zip(*pairs))
    apart = np.nanmax(np.abs(one - other))
    print(
        f"{len(jax.devices())} devices: first calls {first_plain:.2f} (plain), {first_sweep:.2f} s "
        f"(sweep); then {loop:.2f} and {ours:.2f} s, ratio {ours / loop:.2f}; losses apart by "
        f"{apart:.1e}; second call of the toy {_second_call():.3f} s",
        flush=True,
    )


def main(
    *,
    devices: tuple[int, ...] = (1, 4),
    width: int = 128,
    steps: int = 400,
    repeats: int = 3,
    here: bool = False,
) -> None:
    """Print a line for each number of devices.

    Args:
        devices: CPU devices, which share the cores of this machine.
        width: of the network.
        steps: of training; a multiple of 10.
        repeats: calls of each side after the first.
        here: in this process, for the first number of devices.
    """
    if here:
        jax.config.update("jax_num_cpu_devices", devices[0])
        _measure(width, steps, repeats)
        return
    for count in devices:
        options = ["--width", width, "--steps", steps, "--repeats", repeats, "--here"]
        command = [sys.executable, __file__, "--devices", count, *options]
        subprocess.run(list(map(str, command)), check=True)


if __name__ == "__main__":
    tyro.cli(main)
