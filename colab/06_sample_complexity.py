# %% [markdown]
# # How many samples do Transformers, recurrent and feedforward networks need?
#
# In sparse token regression the label depends on one token, and another part of the prompt says
# which. Attention can look it up; a feedforward network must learn every position by itself.

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
import jax
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

import jaxbounds as jb
from jaxbounds import plotting, report
from jaxbounds.qstr.data import encode, sample_prompts
from jaxbounds.qstr.encodings import rademacher_encodings
from jaxbounds.qstr.experiments.figure1 import Figure1, claims, figure, run
from jaxbounds.qstr.experiments.online import Protocol
from jaxbounds.qstr.links import find_link
from jaxbounds.statements import Budget

console = Console(width=100)

# %% [markdown]
# ## The data
#
# A prompt holds $N$ tokens $x_i$, each with the positions $t_i$ it depends on; the label at $i$ is
# a link function of the tokens at those positions.

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
# Online training on fresh prompts, several seeds at once in one compiled program. A run that has
# not learned by the end of its budget is *censored*, never dropped.

# %%
most = 3_000 if FAST else 150_000
config = Figure1(
    protocol=Protocol(check_every=20, test_prompts=500, max_samples=most),
    architectures=("transformer", "feedforward"),
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
# Proposition 3: a Transformer with too few heads cannot do it, whatever its weights. The printed
# bound and a sharper one, on the exact risk of random and trained heads:

# %%
proposition = jb.find_statement("qstr.prop3")
budget = Budget(samples=8, restarts=1, steps=10) if FAST else proposition.budget
console.print(report.describe(proposition))
console.print(report.verdict_table(jb.falsify(proposition, budget=budget)))

# %% [markdown]
# `jaxbounds run qstr.fig1a --preset published` is the public code's protocol at full size;
# `qstr.fig1b`, `qstr.fig2` and `qstr.phase` are the other figures.
