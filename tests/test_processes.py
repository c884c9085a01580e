"""One device, eight devices, and two processes with two devices each give the same bits."""

import socket
import subprocess
import sys

import numpy as np

CODE = """
import sys
import jax
pid, port, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2 if pid >= 0 else -pid)
if pid >= 0:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, pid)
import jax.numpy as jnp
import numpy as np
from jaxbounds.experiments.sweeps import lanes_of, sweep

def start(lane):
    return {"w": jax.random.normal(lane["key"], (3,))}

def step(lane, state):
    return {"w": state["w"] - lane["rate"] * jnp.tanh(state["w"])}

def measure(lane, state):
    return {"loss": jnp.sum(state["w"] ** 2)}

keys = jax.random.split(jax.random.key(0), 7)
lanes, _ = lanes_of(keys, rate=np.array([0.1, 0.3], np.float32))
# Lanes that finish are moved, here also from one process to the other.
finished = lambda state: jnp.sum(state["w"] ** 2) < 0.5
options = {"every": 5, "group": 2, "chunk": 5, "finished": finished}
swept = sweep(start, step, measure, lanes, 40, **options)
np.save(f"{path}/{pid}.npy", swept.metrics["loss"])
"""


def test_devices_and_processes_agree(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = lambda pid: [sys.executable, "-c", CODE, str(pid), port, str(tmp_path)]
    running = [subprocess.Popen(command(pid)) for pid in (-1, -8, 0, 1)]
    assert [process.wait(timeout=200) for process in running] == [0, 0, 0, 0]
    alone, *others = (np.load(tmp_path / f"{pid}.npy") for pid in (-1, -8, 0, 1))
    for other in others:
        np.testing.assert_array_equal(alone, other)
