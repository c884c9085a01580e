# %% [markdown]
# # Seed sweeps: compiled once, vmapped, sharded over devices, resumable
#
# Runs as it is on a CPU, a GPU or the eight cores of a TPU.

# %%
# Installs the library where it is missing, beside the jax that is here: from a wheel that you
# uploaded, else from the index. SOURCE may be all that pip takes, as "jaxbounds @ git+https://...".
import glob
import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version

SOURCE = max(glob.glob("./jaxbounds-*.whl"), default="jaxbounds") + "[plots]"
if importlib.util.find_spec("jaxbounds") is None:
    there = [name for name in ("jax", "jaxlib", "numpy") if importlib.util.find_spec(name)]
    pins = [f"{name}=={version(name)}" for name in there]
    if "jax" in there and tuple(map(int, version("jax").split(".")[:2])) < (0, 10):
        raise SystemExit(
            f"jaxbounds needs jax 0.10 or newer, here is {version('jax')}: `!pip install -U jax`, "
            "restart the session, and run this cell again"
        )
    pip = [sys.executable, "-m", "pip", "install", "-q", SOURCE, *pins]
    tried = subprocess.run(pip, capture_output=True, text=True)
    if tried.returncode:
        raise SystemExit(
            f"{SOURCE} could not be installed: upload a wheel of jaxbounds beside this notebook, "
            "or set SOURCE to what pip shall install, and run this cell again; pip says: "
            f"{(tried.stderr.strip().splitlines() or ['nothing'])[-1]}"
        )
    importlib.invalidate_caches()
FAST = os.environ.get("JAXBOUNDS_FAST") == "1"

# %%
import tempfile
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from jaxbounds import plotting
from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.tied import tied, tied_margins, tied_risk
from jaxbounds.sweeps import lanes_of, sweep
from jaxbounds.training import begin, optimizer, train_step

print("jax", jax.__version__, "on", jax.devices())

# %% [markdown]
# ## One run is a lane
#
# A lane is whatever distinguishes one run from another: a key, a number of heads, a step size. A
# run is three pure functions of its lane: how it starts, one step, and what is measured.
#
# Heads that start equal stay equal, so $H$ heads are one head with $H$ copies: $H$ is a number in
# the lane, not a shape. One compiled program serves every $H$, step size and seed.

# %%
model = SparseContext(tokens=10, dimension=4, relevant=1, distractors=2)
DATA, START = 50, {"U": jnp.zeros((1, 10, 4)), "W": jnp.zeros((1, 4, 4))}


def data_of(lane):
    """The training set of a seed."""
    return model.sample(lane["key"], DATA)


def rule_of(lane):
    """Gradient descent on every head, with the lane's own step size."""
    return tied(optimizer("gd", lane["step_size"]), lane["heads"].reshape(1))


def start(lane):
    """All parameters zero."""
    return {"run": begin(START, rule_of(lane)), "data": data_of(lane)}


def step(lane, state):
    """One step of gradient descent on the training loss."""
    loss = lambda params: tied_risk(params, lane["heads"].reshape(1), state["data"])
    return {"run": train_step(loss, rule_of(lane), state["run"]), "data": state["data"]}


def measure(lane, state):
    """Training loss and least margin."""
    copies, params = lane["heads"].reshape(1), state["run"].params
    margins = tied_margins(params, copies, state["data"])
    return {"loss": tied_risk(params, copies, state["data"]), "margin": jnp.min(margins)}


# %% [markdown]
# ## Seeds x grid
#
# `lanes_of` makes the product; the sweep spreads it over all devices and runs it in chunks.

# %%
seeds, steps = (2, 60) if FAST else (8, 1000)
heads = np.asarray([1, 16, 256, 4096, 1_000_000], np.float32)
lanes, lengths = lanes_of(jax.random.split(jax.random.key(0), seeds), heads=heads)
lanes["step_size"] = jnp.ones_like(lanes["heads"])
began = time.perf_counter()
swept = sweep(start, step, measure, lanes, steps, every=20, show="loss")
seconds = time.perf_counter() - began
loss = swept.metrics["loss"].reshape(*lengths.values(), -1)
print(f"{loss.shape[0]} head counts x {seeds} seeds, {steps} steps: {seconds:.1f} s")
print("lanes that diverged:", np.flatnonzero(swept.diverged >= 0).tolist())

# %%
with plotting.style():
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for index, count in enumerate(heads):
        mean, shade = loss[index].mean(0), plt.cm.cividis(index / len(heads))
        axes.plot(swept.steps, mean, color=shade, label=f"H = {count:,.0f}")
        low, high = loss[index].min(0), loss[index].max(0)
        axes.fill_between(swept.steps, low, high, color=shade, alpha=0.2)
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel="training loss")
    axes.set_title("Gradient descent, step size 1; band: all seeds")
    axes.legend()
    plt.show()

# %% [markdown]
# ## Interrupted and resumed
#
# With a folder the sweep keeps a checkpoint after every chunk: written whole or not at all, no
# pickle. Here the first half is computed, "the machine dies", and the second half continues, on
# however many devices there are by then: the bits are those of the undisturbed
# run. Other lanes, or another step, would be refused: the folder belongs to this program.

# %%
with tempfile.TemporaryDirectory() as folder:
    options = {"every": 20, "folder": folder}
    sweep(start, step, measure, lanes, steps // 2 // 20 * 20, **options)
    resumed = sweep(start, step, measure, lanes, steps, resume=True, **options)
print("same bits:", np.array_equal(resumed.metrics["loss"], swept.metrics["loss"]))

# %% [markdown]
# ## What it costs
#
# The price of a point does not depend on H, and seeds are nearly free until the device is full.

# %%


def seconds_of(count, head_count):
    """Seconds a step of a second sweep of `count` seeds, which compiles nothing."""
    grid, _ = lanes_of(jax.random.split(jax.random.key(1), count), heads=np.float32([head_count]))
    grid["step_size"] = jnp.ones_like(grid["heads"])
    many = 40 if FAST else 400
    measured = []
    for _ in range(2):
        began = time.perf_counter()
        sweep(start, step, measure, grid, many, every=20, chunk=20)
        measured.append(time.perf_counter() - began)
    return min(measured) / many


for count, head_count in ((1, 1), (1, 1_000_000), (8, 1), (16 if FAST else 64, 1)):
    each = seconds_of(count, head_count)
    print(f"{count:>3} seeds, H = {head_count:>9,}: {1e3 * each:.3f} ms a step")

# %% [markdown]
# On several hosts, call `jax.distributed.initialize()` in each process first; the sweep is then
# spread over all their devices and every process gets all results.
