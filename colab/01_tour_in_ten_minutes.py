# %% [markdown]
# # A tour in ten minutes
#
# Four papers on Transformers state lemmas, bounds and constructions. Here they run: each numbered
# statement is measured on random, extremal and searched instances, and its printed, corrected and
# sharpened forms are compared.

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
from jaxbounds.papers import load_papers
from jaxbounds.statements import Budget

console = Console(width=100)
print("jax", jax.__version__, "on", jax.devices())

# %% [markdown]
# ## What is there

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
# eigenvalue of its Hessian is at least $-\beta_3 \hat L / \sqrt H$. The paper prints one
# $\beta_3$; a sharper one follows from a bound on third cumulants.

# %%
corollary = jb.find_statement("multihead.cor1.3")
console.print(report.describe(corollary))

# %% [markdown]
# `falsify` draws instances, follows real training runs, searches for the worst case by gradient
# ascent on left side / right side, and checks that a deliberately false variant (the *control*) is
# rejected by the same code.

# %%
budget = Budget(samples=16, restarts=2, steps=30) if FAST else corollary.budget
verdicts = jb.falsify("multihead.cor1.3", budget=budget)
console.print(report.verdict_table(verdicts))

# %% [markdown]
# The distribution of left / right, for each form: where a curve touches 1, the bound is attained.

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
# An erratum is a form that is expected to fail, with a counterexample small enough to check by
# hand. Equation (24) says that the training loss is at most one.

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
