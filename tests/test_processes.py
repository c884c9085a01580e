"""One device, and two processes with two devices each, give the same bits."""

import socket
import subprocess
import sys

import numpy as np

SWEEP = """
import jax
import jax.numpy as jnp
import numpy as np
from jaxbounds.experiments.sweeps import lanes_of, sweep

def start(lane):
    return {"w": jax.random.normal(lane["key"], (3,))}

def step(lane, state):
    return {"w": state["w"] - lane["rate"] * jnp.tanh(state["w"])}

def measure(lane, state):
    return {"loss": jnp.sum(state["w"] ** 2)}

def loss(**more):
    keys = jax.random.split(jax.random.key(0), 7)
    lanes, _ = lanes_of(keys, rate=np.array([0.1, 0.3], np.float32))
    # Lanes that finish are moved, here also from one process to the other.
    finished = lambda state: jnp.sum(state["w"] ** 2) < 0.5
    options = {"every": 5, "group": 2, "chunk": 5, "finished": finished}
    return sweep(start, step, measure, lanes, 40, **options, **more).metrics["loss"]
"""

JOINED = """
import sys
import jax
pid, port, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", 2, pid)
"""


def test_one_device_and_two_processes_agree(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    code = JOINED + SWEEP + "np.save(f'{path}/{pid}.npy', loss())\n"
    command = lambda pid: [sys.executable, "-c", code, str(pid), port, str(tmp_path)]
    running = [subprocess.Popen(command(pid)) for pid in (0, 1)]
    scope: dict = {}
    exec(SWEEP, scope)
    alone = scope["loss"](devices=scope["jax"].devices()[:1])
    assert [process.wait(timeout=200) for process in running] == [0, 0]
    for pid in (0, 1):
        np.testing.assert_array_equal(alone, np.load(tmp_path / f"{pid}.npy"))
