# %% [markdown]
# # Compile a Turing machine to a Transformer and look inside
#
# Wei, Chen and Ma show that Transformers approximate Turing machines *statistically meaningfully*:
# with weights that a learner could find. Here is the construction: a machine of yours becomes an
# encoder-decoder Transformer whose every step can be read.

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
# %matplotlib inline
import jax
import numpy as np

from jaxbounds import plotting
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.execute import decide, decode, execute, simulated
from jaxbounds.smapprox.experiments.machine import Machine, figure, run
from jaxbounds.smapprox.machine_formats import from_yaml
from jaxbounds.smapprox.machines import words
from jaxbounds.smapprox.readout import show, side_by_side

# %% [markdown]
# ## A machine
#
# The format is the one that teaching sites use. This one accepts binary words with an even number
# of ones.

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
# The coordinates come in named groups (state, symbol, position in binary, ...), so the compiled
# network can be printed as what its layers do.

# %%
print(show(compiled))

# %% [markdown]
# ## Beside the simulator
#
# State, head position and symbol at every step, read off the network's activations.

# %%
word = "1101"
network = decode(compiled, execute(compiled, [word]))
print(side_by_side(compiled, word, network, 0))

# %% [markdown]
# On *all* inputs up to a length, in one batch:

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
# The machine's tape is nowhere stored. At each step the network searches its own past, bit by bit
# of the position, for the last time it stood on this cell. The attention maps narrow from layer to
# layer, and the tape can be recovered from them.

# %%
result = run(Machine(machine="equal_blocks", input="ab" if FAST else "aabb"), jax.random.key(0))
with plotting.style():
    picture = figure(result)
picture  # noqa: B018 - the notebook shows it

# %% [markdown]
# On the command line: `jaxbounds run smapprox.machine --machine FILE --input STRING`. How wide the
# margins of such networks are, and that correction layers keep them from decaying with depth, is
# the experiment `smapprox.margins`.
