# %% [markdown]
# # A paper from outside: how smooth is attention?
#
# This notebook goes from a blank folder to an audit. Its claims are about attention: how much does
# the output of self-attention move when the tokens move? Choose *Run all*: the first code cell
# installs the library where it is missing. You get a verdict on each claim, a counterexample for
# each false claim, and the text of an audit for the authors.
#
# *Result: five of seven claims hold, and two natural guesses fail, each with a counterexample. The
# cells take about 20 seconds on two cores.*
#
# Castin, Ablin and Peyré, and before them Kim, Papamakarios and Mnih, ask this question. The claims
# are in our own words. Some claims are from these papers, and some are natural first guesses. The
# library does not know which claims are true, nor any constant.

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
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxbounds as jb

folder = Path(tempfile.mkdtemp())
SMALL = jb.Budget(samples=64, restarts=4, steps=60)

# %% [markdown]
# ## First guesses, in a line each
#
# The Jacobian of softmax is a covariance matrix. How large can its norm be? The question needs no
# statement, no label and no control (a deliberately false variant). Two functions and the sets of
# their arguments are enough.


# %%
def jacobian_norm(p):
    """|diag(p) - p p^T|, the Jacobian of softmax where it gives p."""
    return jnp.linalg.norm(jnp.diag(p) - jnp.outer(p, p), ord=2)


softmax = jb.sharp_constant(
    jacobian_norm, 1.0, over={"p": jb.Simplex("n")}, sizes={"n": (2, 3)}, seconds=5, budget=SMALL
)
print(softmax)


# %% [markdown]
# The search finds 1/2 by itself. Is one head Lipschitz? Here tokens are numbers, and the logits are
# $a x_i x_j$.


# %%
def head(x, a):
    """Self-attention of tokens that are numbers, logits a x_i x_j."""
    return jax.nn.softmax(a * jnp.outer(x, x), axis=-1) @ x


def steepness(x, a):
    """The spectral norm of its Jacobian."""
    return jnp.linalg.norm(jax.jacobian(head)(x, a), ord=2)


everywhere = {"x": jb.Reals("n"), "a": jb.Box(-1, 1)}
print(jb.find_violation(steepness, 10.0, over=everywhere, sizes={"n": 3}, budget=SMALL))

# %% [markdown]
# The head is not Lipschitz, as Kim et al. proved: dot-product attention has no Lipschitz constant
# on all of space. On a box, the head has a Lipschitz constant. Does this constant grow with the
# number of tokens? "2" is a guess, and the instance that violates it is small enough to read.

# %%
box = {"x": jb.Box(-1, 1, "n"), "a": jb.Box(-1, 1)}
found = jb.find_violation(steepness, 2.0, over=box, sizes={"n": (2, 4, 8)}, budget=SMALL)
print(found)
print("largest at each size:", {size: round(ratio * 2, 3) for size, ratio in found.by_size.items()})

# %% [markdown]
# ## The paper: formulas once, claims that call them
#
# * **softmax**: the Jacobian of softmax has norm at most 1/2;
# * **head**: for tokens in a ball of radius $R$ and $|A| \le 1$, Castin et al. bound the Jacobian
#   by $\sqrt{3 (R^4 (4 n + 1) + n)}$, which grows like $\sqrt n$;
# * **guess**: the bound $1 + R^2$ does not depend on $n$;
# * **mask**: a causal mask never makes a head steeper;
# * **distance**: with logits $-(x_i - x_j)^2$ Kim et al. bound the largest row sum of the Jacobian
#   by $4 W((n - 1) / e) + 1$ on all of space, where $W$ is Lambert's function;
# * **shift**: for each $X$ there is a direction in which the head moves as far as its input.

# %%
MODEL = '''
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

def head(x, a, mask):
    """softmax(x a x^T) x of tokens x (n, d) and a (d, d); mask (n, n) is true where seen."""
    return jax.nn.softmax(jnp.where(mask, x @ a @ x.T, -jnp.inf), axis=-1) @ x

def steepness(x, a, causal=False):
    """The spectral norm of its Jacobian."""
    n, d = x.shape
    mask = jnp.tril(jnp.ones((n, n), bool)) if causal else jnp.ones((n, n), bool)
    return jnp.linalg.norm(jax.jacobian(head)(x, a, mask).reshape(n * d, n * d), ord=2)

def ball_bound(n, radius):
    """sqrt(3 (R^4 (4 n + 1) + n)), after Castin, Ablin and Peyre."""
    return np.sqrt(3 * (radius**4 * (4 * n + 1) + n))

def by_distance(x):
    """Attention of numbers x (n,) with logits -(x_i - x_j)^2, after Kim et al."""
    return jax.nn.softmax(-((x[:, None] - x[None, :]) ** 2), axis=-1) @ x

def lambert_bound(n):
    """4 W((n - 1) / e) + 1, after Kim, Papamakarios and Mnih."""
    return 4 * float(np.real(scipy.special.lambertw((n - 1) / np.e))) + 1

def softmax_steepness(scores):
    """The spectral norm of the Jacobian of softmax."""
    return jnp.linalg.norm(jax.jacobian(jax.nn.softmax)(scores), ord=2)
'''
CLAIMS = """
import math

import jax
import jax.numpy as jnp
import jaxbounds as jb

SMALL = jb.Budget(samples=48, restarts=4, steps=60, batch=24)
HEAD = {"x": jb.Matrices(("n", "d"), norm="rows", at_most="R"), "a": jb.OperatorNorm(1, "d")}
SIZES = ({"n": 2, "d": 1, "R": 1.0}, {"n": 4, "d": 1, "R": 1.0}, {"n": 8, "d": 1, "R": 2.0})

def sides(lhs, rhs, control):
    return jb.Sides(lhs=lhs, rhs={"printed": rhs, "control": control})

SOFTMAX = jb.Statement(
    id="smooth.softmax", label="softmax", formula="|J softmax| <= 1/2", kind="inequality",
    over={"x": jb.Reals("n")}, sizes=({"n": 2}, {"n": 5}), judges=(softmax_steepness,),
    evaluate=lambda i, s: sides(softmax_steepness(i["x"]), 0.5, 0.4), control="0.4",
    forms=(jb.Form(name="printed", equality="two equal scores, the others far below"),),
    cases=lambda s: {"x": jnp.where(jnp.arange(s["n"]) < 2, 0.0, -1e3)[None]}, budget=SMALL)

def _head(i, s):
    bound = ball_bound(s["n"], s["R"])
    return sides(steepness(i["x"], i["a"]), bound, bound / 20)

BALL = jb.Statement(
    id="smooth.head", label="head", formula="|J head| <= sqrt(3 (R^4 (4 n + 1) + n))",
    kind="inequality", over=HEAD, sizes=SIZES, judges=(steepness, ball_bound), evaluate=_head,
    control="a twentieth", forms=(jb.Form(name="printed"),), budget=SMALL)

GUESS = jb.Statement(
    id="smooth.guess", label="guess", formula="|J head| <= 1 + R^2", kind="inequality",
    over=HEAD, sizes=SIZES, judges=(steepness,), control="a tenth", budget=SMALL,
    evaluate=lambda i, s: sides(
        steepness(i["x"], i["a"]), 1 + s["R"] ** 2, 0.1 + 0.1 * s["R"] ** 2),
    forms=(jb.Form(name="printed"),))

MASK = jb.Statement(
    id="smooth.mask", label="mask", formula="|J head| >= |J causal head|", kind="inequality",
    relation=">=", over=HEAD, sizes=SIZES[:2], judges=(steepness,), control="nine times the head",
    evaluate=lambda i, s: sides(steepness(i["x"], i["a"]),
        steepness(i["x"], i["a"], causal=True), 9 * steepness(i["x"], i["a"])),
    forms=(jb.Form(name="printed"),), budget=SMALL)

def _distance(i, s):
    rows = jnp.max(jnp.sum(jnp.abs(jax.jacobian(by_distance)(i["x"])), axis=1))
    return sides(rows, lambert_bound(s["n"]), 0.5)

DISTANCE = jb.Statement(
    id="smooth.distance", label="distance", formula="|J|_inf <= 4 W((n - 1) / e) + 1",
    kind="inequality", over={"x": jb.Reals("n")}, sizes=({"n": 2}, {"n": 6}),
    judges=(by_distance, lambert_bound), evaluate=_distance, control="a half",
    forms=(jb.Form(name="printed"),), budget=SMALL)

def _shift(i, s):
    direction = i["v"] / jnp.linalg.norm(i["v"])
    mask = jnp.ones((s["n"], s["n"]), bool)
    _, moved = jax.jvp(lambda x: head(x, i["a"], mask), (i["x"],), (direction,))
    return sides(jnp.linalg.norm(moved), 0.5, 50.0)

SHIFT = jb.Statement(
    id="smooth.shift", label="shift", formula="for each X there is a V with |J V| >= |V| / 2",
    kind="inequality", relation=">=", over=HEAD, there_is={"v": jb.Sphere(1, ("n", "d"))},
    sizes=SIZES[:1], judges=(head,), evaluate=_shift, control="fifty times as far", search="none",
    forms=(jb.Form(name="printed"),), budget=SMALL)

def _limit(i, s):
    gaps = jax.nn.softmax(s["t"] * jnp.array([0.0, -1.0 - i["g"]]))
    return sides(gaps[0], 1.0, 0.9)

HARD = jb.Statement(
    id="smooth.hard", label="hard", formula="softmax(t (0, -1 - g)) -> (1, 0) as t -> inf",
    kind="limit", towards={"t": math.inf}, over={"g": jb.Box(0, 1)}, evaluate=_limit,
    sizes=tuple({"t": float(t)} for t in (2, 4, 8, 16, 32)), control="0.9",
    forms=(jb.Form(name="printed"),), budget=SMALL)

ALL = (SOFTMAX, BALL, GUESS, MASK, DISTANCE, SHIFT, HARD)
PAPER = jb.Paper(id="smooth", title="How smooth is attention?", statements=ALL)
"""
file = folder / "smooth.py"
file.write_text(MODEL + CLAIMS)
lines = len([line for line in CLAIMS.splitlines() if line.strip()])
print(f"{lines / 7:.0f} lines a statement, their evaluation included")

# %%
verdicts = jb.verify(file, out=folder / "audit", jobs=1)
print(verdicts)

# %% [markdown]
# ## The false claims, and the audit
#
# A claim that fails may become an erratum: `jaxbounds verify smooth.py --accept` writes a draft of
# the erratum, for review. The next cell checks a counterexample by plain NumPy.

# %%
import numpy as np

wrong = [v for v in verdicts if v.status == "fails"]
for v in wrong:
    stored = jb.load_instance(folder / "audit" / v.shrunk_file)
    print(v.id, v.reason, dict(stored.meta["size"]), "ratio", stored.meta["ratio"])
    x, a = (np.asarray(stored.instance[name], float) for name in ("x", "a"))
    logits = x @ a @ x.T
    weights = np.exp(logits - logits.max(1, keepdims=True))
    print("  weights", (weights / weights.sum(1, keepdims=True)).round(3).tolist())

# %%
audit = jb.audit(file, out=folder / "audit", certify=False, jobs=1)
print((folder / "audit" / "audit.md").read_text()[:1500])
