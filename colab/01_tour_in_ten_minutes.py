# %% [markdown]
# # A tour in ten minutes
#
# This notebook measures what four papers on Transformers claim. It checks each numbered statement
# on random, extremal and searched instances. The versions (forms) of a statement are: as printed,
# corrected, and sharpened. Choose *Run all*: the first code cell installs the library where it is
# missing. You get a table of verdicts that says how loose each bound is, a picture of the ratios,
# and the claims that are false.
#
# *Result: Corollary 1 (3) of a paper holds and is 3.9 times too large, and 13 printed claims of
# four papers are false. The cells take about 20 seconds on two cores.*

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
from jaxbounds.papers import load_papers

console = Console(width=100)
print("jax", jax.__version__, "on", jax.devices())

# %% [markdown]
# ## The papers and their statements

# %%
papers = load_papers()
for paper in papers:
    forms = sum(len(s.forms) for s in paper.statements)
    counts = f"{len(paper.statements)} statements, {forms} forms, {len(paper.errata)} errata"
    print(f"{paper.id:<10} {counts}: {paper.title}")

# %% [markdown]
# ## One statement: how loose is Corollary 1 (3)?
#
# The training loss of a multi-head attention model is *self-bounded weakly convex*: the least
# eigenvalue of its Hessian is at least $-\beta_3 \hat L / \sqrt H$. The paper prints one value of
# $\beta_3$. A bound on third cumulants gives a smaller value.

# %%
corollary = jb.find_statement("multihead.cor1.3")
console.print(report.describe(corollary))

# %% [markdown]
# `falsify` draws random instances, evaluates the statement along real training runs, and searches
# for the worst case by gradient ascent on the ratio left side / right side. It also checks that the
# same code rejects a deliberately false variant (the *control*).

# %%
budget = Budget(samples=16, restarts=2, steps=30) if FAST else corollary.budget
verdicts = jb.falsify("multihead.cor1.3", budget=budget)
console.print(report.verdict_table(verdicts))

# %% [markdown]
# The plot shows the distribution of left / right for each form. A curve that touches 1 shows that
# the bound is attained.

# %%
with plotting.style():
    figure, axes = plt.subplots(figsize=(6, 3.2))
    for verdict in verdicts:
        levels = np.linspace(0, 1, len(verdict.quantiles))
        axes.plot(verdict.quantiles, levels, label=verdict.form)
        axes.axvline(verdict.worst_ratio, linewidth=0.8, linestyle=":", color="grey")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="left side / right side", ylabel="share of the drawn instances")
    axes.set_title("Slack of Corollary 1 (3); dotted: the worst that the search found")
    axes.legend()
    plt.show()

# %% [markdown]
# ## Where a paper is wrong
#
# An erratum describes a false claim. The claim as printed is expected to fail, with a
# counterexample small enough to check by hand. Equation (24) says that the training loss is at most
# one.

# %%
bounded = jb.find_statement("multihead.eq24.loss")
print(bounded.form("printed").note)
print(bounded.form("printed").counterexample)
small = Budget(samples=16, restarts=1, steps=20)
console.print(report.verdict_table(jb.falsify("multihead.eq24.loss", budget=small)))

# %%
for paper in papers:
    false = [e for e in paper.errata if e.kind == "false"]
    changed = sum(e.main.startswith("changed") for e in paper.errata)
    print(f"\n{paper.id}: {len(false)} false claims; {changed} errata change a main theorem")
    for erratum in false[:2]:
        print(f"  {erratum.id} ({erratum.where}): {erratum.text}")

# %% [markdown]
# ## The same on the command line
#
# ```
# jaxbounds verify multihead          # every statement of a paper: table, report.html, instances
# jaxbounds show multihead.prop1.2    # claim, hypotheses, forms, proof sketches
# jaxbounds errata                    # where the papers are wrong, and what follows
# jaxbounds run multihead.fig2        # a figure, with the paper's claims decided on the data
# jaxbounds guide                     # pages to read
# ```
#
# `jb.verify("multihead")`, `jb.run("multihead.fig2")`, `jb.certify` and `jb.audit` do this
# from Python.
