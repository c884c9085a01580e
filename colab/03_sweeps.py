# %% [markdown]
# # Seed sweeps: compiled once, vmapped, sharded over devices, resumable
#
# This notebook trains many seeds and settings side by side as one compiled program. Choose *Run
# all*: the first code cell installs the library where it is missing. You get a picture of all loss
# curves, a sweep that is cut and resumed with the same bits, and the cost of a step.
#
# *Result: forty training runs of 1,000 steps take 7 seconds as one program, and a run that is cut
# resumes with the same bits. The cells take about 30 seconds on two cores.*
#
# The notebook runs as it is on CPUs and GPUs. Its programs are lowered and exported for TPUs; no
# TPU has run them yet.

# %%
# Installs the library where it is missing, beside the JAX that is here. SOURCE is an address that
# pip takes ("https://...whl", "git+https://..."); an empty SOURCE means the wheel that you uploaded
# (the README builds one in two lines). NEWER_JAX = True installs the newest JAX for this device.
import glob
import importlib.util
import os
import shutil
import subprocess
import sys
from importlib.metadata import version

SOURCE = ""
NEWER_JAX = False


def pip_install(*requirements):
    """Install packages; stop with the last line of pip's report where pip fails."""
    pip = [sys.executable, "-m", "pip", "install", "-q", *requirements]
    tried = subprocess.run(pip, capture_output=True, text=True)
    if tried.returncode:
        raise SystemExit(
            f"pip could not install {' '.join(requirements)}. Upload a wheel of jaxbounds beside "
            "this notebook or set SOURCE, then run this cell again. pip reports: "
            f"{(tried.stderr.strip().splitlines() or ['nothing'])[-1]}"
        )
    importlib.invalidate_caches()


there = lambda *names: [name for name in names if importlib.util.find_spec(name)]
nvidia = os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi")
device = "cuda13" if there("jax_cuda13_plugin") else "cuda12" if nvidia else ""
device = "tpu" if there("libtpu") else device
newer = f"jax[{device}]" if device else "jax"
if NEWER_JAX:
    pip_install("-U", newer)
    if "jax" in sys.modules:
        raise SystemExit("JAX is newer now. Set NEWER_JAX = False, restart the session, run again.")
if there("jax") and tuple(map(int, version("jax").split(".")[:3])) < (0, 7, 2):
    raise SystemExit(
        f"jax=={version('jax')} is too old; jaxbounds needs jax>=0.7.2. Try NEWER_JAX = True: it "
        f"installs {newer} as a whole."
    )
if not there("jaxbounds"):
    wheels = sorted(glob.glob("./jaxbounds-*.whl"), key=os.path.getmtime)
    if not SOURCE and not wheels:
        raise SystemExit(
            "jaxbounds is missing. Upload a wheel of jaxbounds beside this notebook or set SOURCE, "
            "then run this cell again."
        )
    library = f"jaxbounds[plots] @ {SOURCE}" if SOURCE else f"{wheels[-1]}[plots]"
    pip_install(library, *(f"{name}=={version(name)}" for name in there("jax", "jaxlib", "numpy")))

import jax

if device and not os.environ.get("JAX_PLATFORMS") and jax.default_backend() == "cpu":
    raise SystemExit(
        f"JAX {jax.__version__} runs on the CPU, but this machine has an accelerator ({device}). "
        f"Try `!pip install -U '{newer}'` and restart the session, or choose the CPU on purpose: "
        "os.environ['JAX_PLATFORMS'] = 'cpu'."
    )
FAST = os.environ.get("JAXBOUNDS_FAST") == "1"

# %%
import tempfile
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from jaxbounds.experiments import plotting
from jaxbounds.experiments.sweeps import lanes_of, sweep
from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.tied import tied, tied_margins, tied_risk
from jaxbounds.networks.training import begin, optimizer, train_step

print("jax", jax.__version__, "on", jax.devices())

# %% [markdown]
# ## One run is a lane
#
# A lane is the input of one training run. A lane holds what distinguishes one run from another: a
# key, a number of heads, a step size. Three pure functions of the lane define the run. The
# functions say how the run starts, what one step does, and what is measured.
#
# Heads that start equal stay equal, so $H$ equal heads are one head with $H$ copies. So $H$ is a
# number in the lane, and not a shape. One compiled program serves every $H$, step size and seed.

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
# `lanes_of` makes one lane for each pair of a seed and a point of the grid. The sweep spreads the
# lanes over all devices and runs in chunks.

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
    axes.set(yscale="log", xlabel="step", ylabel="training loss")
    axes.set_title("Gradient descent, step size 1; line: mean of the seeds, band: all seeds")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    plt.show()

# %% [markdown]
# ## Interrupted and resumed
#
# If the sweep gets a folder, it writes a checkpoint after every chunk of steps. A checkpoint is
# written whole or not at all, and holds no pickle. Here the first half runs, "the machine dies",
# and the second half continues on any number of devices. The results equal the results of an
# uninterrupted run, bit for bit. The sweep refuses to continue from this folder with other lanes or
# with another step.

# %%
with tempfile.TemporaryDirectory() as folder:
    options = {"every": 20, "folder": folder}
    sweep(start, step, measure, lanes, steps // 2 // 20 * 20, **options)
    resumed = sweep(start, step, measure, lanes, steps, resume=True, **options)
print("same bits:", np.array_equal(resumed.metrics["loss"], swept.metrics["loss"]))

# %% [markdown]
# ## What it costs
#
# The time of a training run does not depend on $H$. More seeds cost nearly nothing until the device
# is full.

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
# On several hosts, call `jax.distributed.initialize()` in each process first. The sweep then runs
# on all devices of the hosts, and every process gets all results.
