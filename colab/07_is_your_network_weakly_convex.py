# %% [markdown]
# # Is *your* network self-bounded weakly convex?
#
# This notebook measures, for any network, an inequality that Deora, Ghaderi, Taheri and
# Thrampoulidis prove for their attention model: $\lambda_{\min}(\nabla^2 L) \ge -\kappa\, L /
# \sqrt{H}$. If the inequality holds, the loss $L$ is nearly convex where it is small, and the more
# heads $H$, the more convex is the loss. Choose *Run all*: the first code cell installs the library
# where it is missing. You get the ratio $-\lambda_{\min} / L$ of a Flax Transformer at one point, a
# training run that is killed and resumes, and a picture of its curvature.
#
# *Result: a Transformer's loss has a direction of negative curvature, at least 0.37 times the loss
# at the start and at least 29 times the loss after training. The cells take about 45 seconds on two
# cores.*

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
import flax.linen as nn
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import optax

import jaxbounds as jb
from jaxbounds.experiments import plotting
from jaxbounds.networks import curvature

print("jax", jax.__version__, "on", jax.devices())

# %% [markdown]
# ## A network and data: put yours here
#
# Every network works whose loss is a function `loss(params, batch)`: linen, nnx, Equinox, plain
# functions.

# %%
HEADS, DIMENSION, TOKENS, SAMPLES = 4, 16, 8, 32 if FAST else 128


class Transformer(nn.Module):
    """One pre-LN block and a linear readout of the mean token."""

    @nn.compact
    def __call__(self, x):
        """(n, T, d) to (n,)."""
        x = x + nn.MultiHeadDotProductAttention(num_heads=HEADS, name="attention")(
            nn.LayerNorm()(x)
        )
        x = x + nn.Dense(DIMENSION)(nn.gelu(nn.Dense(2 * DIMENSION)(nn.LayerNorm()(x))))
        return nn.Dense(1)(jnp.mean(nn.LayerNorm()(x), axis=1))[:, 0]


def loss(params, batch):
    """The mean logistic loss."""
    x, y = batch
    return jnp.mean(jax.nn.softplus(-y * model.apply({"params": params}, x)))


model = Transformer()
x_key, y_key, init_key = jax.random.split(jax.random.key(0), 3)
x = jax.random.normal(x_key, (SAMPLES, TOKENS, DIMENSION))
y = jnp.sign(x[:, 0, 0] + 0.3 * jax.random.normal(y_key, (SAMPLES,)))
data = x, y
params = model.init(init_key, x)["params"]

# %% [markdown]
# ## One point
#
# Lanczos gives upper estimates of $\lambda_{\min}$, so the ratio $-\lambda_{\min} / L$ is a *lower*
# estimate. The estimate refutes the inequality for each smaller value of $\kappa / \sqrt H$. If
# Lanczos finds no direction of negative curvature, this is no proof of convexity. `head_axes` finds
# the axes of Flax's attention parameters that count heads.

# %%
heads = curvature.head_axes(params)
found = jb.Curvature(loss, params, data).weak_convexity(heads=heads, kappa=1.0)
print(f"L = {found.loss:.4f}, lambda_min = {found.minimum:.4f}, residual {found.residual:.1e}")
print(f"-lambda_min / L >= {found.ratio_at_least:.3f}, kappa >= {found.kappa_at_least:.3f}")
print("kappa = 1 is", found.verdict)
for layer, share in list(curvature.shares(found.direction, depth=1).items())[:4]:
    print(f"  {share:.0%} of the direction lies in {layer}")
print("  by head:", found.by_head)

# %% [markdown]
# ## Along training, in two lines, through a kill
#
# Two lines of the loop record the curvature: the monitor, and its call. Gradient descent is
# unstable where the greatest eigenvalue is above 2 / learning rate, so the monitor gets the rate. A
# file keeps the records of the monitor. A kill ends the run below at step 230. The second call has
# only the files. It continues from the last checkpoint, and the records contain each step once.
#
# The monitor measures on all the data. The least eigenvalue of a minibatch is biased: it is usually
# several times too negative.

# %%
import pathlib
import tempfile

from flax import serialization

RATE, STEPS, EVERY = 0.1, 500, 50 if FAST else 25
folder = pathlib.Path(tempfile.mkdtemp())
slope = jax.jit(jax.grad(loss))


class Killed(Exception):
    """The machine is taken away."""


def train(params, *, killed_at=None):
    """Run 500 steps of gradient descent, or the steps after the last checkpoint."""
    saved, begin = folder / "checkpoint.msgpack", 0
    if saved.exists():
        begin, params = serialization.from_bytes((0, params), saved.read_bytes())
    rule = optax.sgd(RATE)
    memory = rule.init(params)
    monitor = jb.CurvatureMonitor(
        loss, every=EVERY, blocks={"attention": "attention"}, data=data, learning_rate=RATE,
        measure=("extremes", "gradient_norm"), file=folder / "curvature.jsonl",
    )  # fmt: skip
    for step in range(begin, STEPS + 1):
        if step == killed_at:
            raise Killed
        if step % 100 == 0:
            saved.write_bytes(serialization.to_bytes((step, params)))
        monitor(step, params)
        updates, memory = rule.update(slope(params, data), memory, params)
        params = optax.apply_updates(params, updates)
    return params, monitor


try:
    train(params, killed_at=230)
except Killed:
    lines = (folder / "curvature.jsonl").read_text().count("\n")
    print(f"killed at step 230; {lines} records are on disk")
params, monitor = train(params)
records = monitor.dataset()
print("recorded steps:", records.step.values.tolist())
print(records.attrs["note"])

# %% [markdown]
# The picture shows both ends of the spectrum along the steps, and the density of all eigenvalues at
# the end. Both panels show the least and the greatest eigenvalue, and the line 2 / learning rate.

# %%
H = jb.Curvature(loss, params, data)
ends, density = H.extremes(), H.spectrum()
edge = 2 / RATE
with plotting.style():
    figure, (along, across) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    whole = records.sel(block="all parameters")
    along.plot(whole.step, whole.maximum, marker=".", label="greatest")
    along.plot(whole.step, whole.minimum, marker=".", label="least")
    along.plot(whole.step, whole.two_over_learning_rate, ":", color="black", label="2 / rate")
    along.axvline(230, color="gray", linewidth=0.8)
    along.annotate("killed", (235, 0), color="gray", fontsize="small")
    along.set_yscale("symlog", linthresh=0.1)
    along.set(xlabel="step", ylabel="eigenvalue")
    along.legend()
    width = float(ends.maximum - ends.minimum) / 50
    grid = jnp.linspace(float(ends.minimum) - 4 * width, float(ends.maximum) + 4 * width, 800)
    across.semilogy(grid, density.density(grid, width=width), color="gray", label="density")
    across.axvline(float(ends.maximum), color="C0", label="greatest")
    across.axvline(float(ends.minimum), color="C1", label="least")
    across.axvline(edge, color="black", linestyle=":", label="2 / rate")
    across.set_xscale("symlog", linthresh=0.1)
    across.set(xlabel=f"eigenvalue after {STEPS} steps", ylabel="density", ylim=(1e-4, None))
    across.legend()
    plt.show()

# %% [markdown]
# The next picture shows the paper's ratio $-\lambda_{\min} / L$ against the loss $L$:

# %%
with plotting.style():
    figure, axes = plt.subplots(figsize=(5.5, 3.2))
    for block in records.block.values:
        axes.plot(records.loss, records.ratio_at_least.sel(block=block), marker=".", label=block)
    axes.set(xscale="log", yscale="log", xlabel="loss L (training goes to the right)")
    axes.set(ylabel=r"$-\lambda_{\min} / L$, at least")
    axes.invert_xaxis()
    axes.legend()
    plt.show()

# %% [markdown]
# A curve that stays level while the loss falls by decades is what self-bounded weak convexity
# predicts. A bound of this form, with *some* constant, holds for every network with the logistic
# loss, since $|\ell'| \le \ell$: $-\lambda_{\min} \le \frac1n \sum_i |\ell'_i|\,\|\nabla^2 f_i\|
# \le L \max_i \|\nabla^2 f_i\|$. In the next cell, Lanczos estimates the norms $\|\nabla^2 f_i\|$
# from below. So the printed number is an estimate of this bound, and not a proof.

# %%
whole = jb.Composite(
    lambda params, batch: model.apply({"params": params}, batch[0]),
    lambda outputs, batch: jnp.mean(jax.nn.softplus(-batch[1] * outputs)),
)
few = tuple(leaf[: 4 if FAST else 16] for leaf in data)
above = curvature.convexity_certificate(whole, params, few, iterations=20 if FAST else 60)
below = jb.weak_convexity(whole, params, few)
print(
    f"{below.ratio_at_least:.3f} <= -lambda_min / L <= {above.ratio:.3f} on {len(few[0])} samples"
)

# %% [markdown]
# The paper adds the constant and its $1/\sqrt H$. Does a real network show this dependence on $H$?
# `jaxbounds run multihead.weakconvexity` measures this dependence for H = 1 ... 64, for two ways to
# make heads.
