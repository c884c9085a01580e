# %% [markdown]
# # How many samples do Transformers, recurrent and feedforward networks need?
#
# This notebook trains three kinds of network on sparse token regression, where the label depends on
# one token, and another part of the prompt says on which token. Choose *Run all*: the first code
# cell installs the library where it is missing. You get the number of samples that each network
# needs, the paper's claims, decided on these numbers, and a verdict on the lower bound.
#
# *Result: at prompts of eight tokens a Transformer needs 14,000 samples, a feedforward network
# 56,000, and a recurrent network 74,000. The cells take about two minutes on two cores.*
#
# Attention can look the token up. A feedforward network must learn every position by itself.

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
import jax
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

import jaxbounds as jb
from jaxbounds import report
from jaxbounds.claims.statements import Budget
from jaxbounds.experiments import plotting
from jaxbounds.qstr.data import encode, sample_prompts
from jaxbounds.qstr.encodings import rademacher_encodings
from jaxbounds.qstr.experiments.figure1 import Figure1, claims, figure, run
from jaxbounds.qstr.experiments.online import Protocol
from jaxbounds.qstr.links import find_link

console = Console(width=100)

# %% [markdown]
# ## The data
#
# A prompt holds $N$ tokens $x_i$, and with each token the positions $t_i$ on which its label
# depends. The label at $i$ is a link function of the tokens at these positions.

# %%
key = jax.random.key(0)
link = find_link("linear")
N, d, q = 6, 3, 1
weights = link.init(key, q, d)
prompts = sample_prompts(key, link, weights, shape=(2,), N=N, d=d, q=q, simple=False)
encodings = rademacher_encodings(key, N, 8)
print("tokens", prompts.x.shape, "positions", prompts.t[0].ravel().tolist())
print("encoded", encode(prompts.x, prompts.t, encodings, scale=False).shape)
print("labels", np.round(np.asarray(prompts.y[0]), 2).tolist())

# %% [markdown]
# ## Samples until the test risk is low
#
# Each network trains online on fresh prompts, several seeds at once in one compiled program. A run
# that has not learned by the end of its budget counts as *censored* and is never dropped.

# %%
most = 40_000 if FAST else 150_000
config = Figure1(
    protocol=Protocol(check_every=20, test_prompts=500, max_samples=most),
    architectures=("transformer", "feedforward", "gru128"),
    lengths=(2, 4) if FAST else (4, 8),
    seeds=2 if FAST else 3,
)
dataset = run(config, jax.random.key(1))
print("mean samples, (architecture, N):", dataset.samples.mean("seed").values)

# %%
with plotting.style():
    figure(dataset)
    plt.show()
for claim in claims(dataset):
    print({True: "yes ", False: "NO  ", None: "open"}[claim.reproduced], claim.text, claim.number)

# %% [markdown]
# ## What the theory proves
#
# Proposition 3 says that a Transformer with too few heads cannot learn the task, whatever its
# weights. The cell compares the printed bound and a sharper one with the exact risk of random and
# trained heads:

# %%
proposition = jb.find_statement("qstr.prop3")
budget = Budget(samples=8, restarts=1, steps=10) if FAST else proposition.budget
console.print(report.describe(proposition))
console.print(report.verdict_table(jb.falsify(proposition, budget=budget)))

# %% [markdown]
# `jaxbounds run qstr.fig1a --preset published` is the public code's protocol at full size;
# `qstr.fig1b`, `qstr.fig2` and `qstr.phase` are the other figures.
