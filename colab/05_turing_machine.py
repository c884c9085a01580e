# %% [markdown]
# # Compile a Turing machine to a Transformer and look inside
#
# This notebook compiles a Turing machine of yours to an encoder-decoder Transformer, by the
# construction of Wei, Chen and Ma. Wei, Chen and Ma show that Transformers approximate Turing
# machines *statistically meaningfully*, with weights that a learner could find. Choose *Run all*:
# the first code cell installs the library where it is missing. You get each layer by name, the
# network beside the simulator step by step, and the answers on all short inputs.
#
# *Result: 14 layers of width 51 do one step of a machine with four states, and all 63 short inputs
# get the right answer. The cells take about 10 seconds on two cores.*

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
# %matplotlib inline
import jax
import numpy as np

from jaxbounds.experiments import plotting
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.execute import decide, decode, execute, simulated
from jaxbounds.smapprox.experiments.machine import Machine, figure, run
from jaxbounds.smapprox.machine_formats import from_yaml
from jaxbounds.smapprox.machines import words
from jaxbounds.smapprox.readout import show, side_by_side

# %% [markdown]
# ## A machine
#
# The text below describes a machine in the YAML format of the teaching site turingmachine.io. The
# machine accepts binary words with an even number of ones.

# %%
EVEN = """
blank: '_'
start state: even
table:
  even:
    0: {R: even}
    1: {R: odd}
    _: {R: accept}
  odd:
    0: {R: odd}
    1: {R: even}
    _: {R: reject}
"""
machine = from_yaml(EVEN, name="even ones")
compiled = compile_machine(machine, 6)
print(f"{len(machine.states)} states -> width {compiled.layout.width}, depth {compiled.depth}")

# %% [markdown]
# ## Every layer, by name
#
# The coordinates have named groups (state, symbol, position in binary, ...), so the library can
# print the purpose of each layer.

# %%
print(show(compiled))

# %% [markdown]
# ## Beside the simulator
#
# The table shows state, head position and symbol at every step, read off the network's activations.

# %%
word = "1101"
network = decode(compiled, execute(compiled, [word]))
print(side_by_side(compiled, word, network, 0))

# %% [markdown]
# The network also answers on *all* inputs up to a length, in one batch:

# %%
every = words(machine, 3 if FAST else 5)
answers = decide(compiled, every)
truth = ["accept" if word.count("1") % 2 == 0 else "reject" for word in every]
print(f"{len(every)} inputs, wrong: {sum(a != b for a, b in zip(answers, truth))}")
found, expected = decode(compiled, execute(compiled, every)), simulated(compiled, every)
for name in ("states", "heads", "symbols"):
    print(name, "agree:", np.array_equal(getattr(found, name), getattr(expected, name)))

# %% [markdown]
# ## Inside: attention as memory
#
# The network stores the machine's tape nowhere. At each step the network searches its own past
# steps for the head's last visit to the present cell. The search layers find the number of that
# step bit by bit, so the attention concentrates on fewer steps from layer to layer. The attention
# maps show the contents of the tape.

# %%
result = run(Machine(machine="equal_blocks", input="ab" if FAST else "aabb"), jax.random.key(0))
with plotting.style():
    picture = figure(result)
picture  # noqa: B018 - the notebook shows it

# %% [markdown]
# The command is `jaxbounds run smapprox.machine --machine FILE --input STRING`. The experiment
# `smapprox.margins` measures the margins of such networks. The experiment shows that correction
# layers keep the margins from decaying with depth.
