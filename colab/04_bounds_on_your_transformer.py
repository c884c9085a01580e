# %% [markdown]
# # Bounds on your own Flax Transformer
#
# This notebook trains a small attention classifier and asks norm-based theory about it. Choose *Run
# all*: the first code cell installs the library where it is missing. You get the norms of the
# network, the bounds that apply to it, and the number of samples from which on a bound is below the
# trivial value.
#
# *Result: the trained network has a gap of 0.33, and every bound on the gap is above the trivial
# value 4 until there are about 10^9 samples. The cells take about 25 seconds on two cores.*

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
import numpy as np

import jaxbounds as jb
from jaxbounds.experiments import plotting
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.networks.training import optimizer, train
from jaxbounds.seqlength.certificate import certificate_text, generalization_certificate
from jaxbounds.seqlength.extract_norms import extract_network, extract_norms

print("jax", jax.__version__, "on", jax.devices())

# %% [markdown]
# ## An ordinary Flax block
#
# The network is multi-head attention read at the first token, a ReLU layer, and two logits. The
# task is to say whether a token points in a hidden direction.

# %%
TOKENS, DIMENSION = 12, 8


class Classifier(nn.Module):
    """Attention at the CLS token, then two dense layers."""

    @nn.compact
    def __call__(self, X):
        """(n, T, d) to (n, 2)."""
        attended = nn.MultiHeadDotProductAttention(num_heads=2, name="attention")(X, X)
        hidden = nn.Dense(16, name="hidden")(attended[:, 0])
        return nn.Dense(2, name="logits")(nn.relu(hidden))


def draw(key, n):
    """Half of the sequences hold one token along the hidden direction."""
    token_key, label_key, place_key = jax.random.split(key, 3)
    X = 0.3 * jax.random.normal(token_key, (n, TOKENS, DIMENSION))
    y = jax.random.bernoulli(label_key, 0.5, (n,)).astype(int)
    place = jax.random.randint(place_key, (n,), 1, TOKENS)
    signal = 1.5 * jax.nn.one_hot(place, TOKENS)[:, :, None] * y[:, None, None]
    X = X.at[:, :, 0].add(signal[:, :, 0])
    X = X.at[:, 0, :].set(jnp.ones(DIMENSION) / jnp.sqrt(float(DIMENSION)))
    return X / jnp.maximum(jnp.linalg.norm(X, axis=-1, keepdims=True), 1.0), y


train_key, test_key, init_key = jax.random.split(jax.random.key(0), 3)
data, unseen = draw(train_key, 256), draw(test_key, 2000)
model = Classifier()


def loss(params, data):
    """Mean cross entropy."""
    X, y = data
    logits = model.apply({"params": params}, X)
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])


def accuracy(params, data):
    """Share of correct labels."""
    return jnp.mean(model.apply({"params": params}, data[0]).argmax(-1) == data[1])


start = model.init(init_key, data[0])["params"]
steps = 100 if FAST else 600
measure = lambda params: {"train": loss(params, data), "test": loss(params, unseen)}
run = jax.jit(
    lambda start: train(lambda p: loss(p, data), start, optimizer("adam", 3e-3), steps, measure)
)
state, curves = run(start)
params = state.params
print(f"accuracy: train {accuracy(params, data):.3f}, test {accuracy(params, unseen):.3f}")

# %%
with plotting.style():
    figure, axes = plt.subplots(figsize=(5, 3))
    for name, values in curves.items():
        axes.plot(np.arange(1, steps + 1), values, label=f"{name} loss")
    axes.set(ylim=(0, None), xlabel="step of Adam", ylabel="cross entropy")
    axes.legend()
    plt.show()

# %% [markdown]
# ## Its norms
#
# `extract_network` maps the parameters to the class of networks that the bounds are about. Heads
# become matrices, biases become constant coordinates, and $1/\sqrt{d_k}$ becomes part of the
# attention map. The function refuses a layer that it cannot map (a layer normalisation, a second
# attention layer), and names the layer. The function sees the parameters, and not the operations of
# `__call__`. A residual connection or another pooling shows only in the comparison below; then the
# bounds would be about another network.

# %%
network = extract_network(
    params, attention="attention", dense=[("hidden", "identity"), ("logits", "relu")]
)
folded = network(np.asarray(data[0]))
error = np.max(np.abs(folded - model.apply({"params": params}, data[0])))
print("folded = Flax to", error)
assert error < 1e-4, "the folded network is not the model: its bounds would not be yours"
for name, norms in extract_norms(network).items():
    parts = f"sum |.| {norms.entries_1:.3g}, Frobenius {norms.frobenius:.3g}"
    print(f"{name:<12} {parts}, spectral {norms.spectral:.3g}")

# %% [markdown]
# ## What the bound says
#
# The norms of a trained network depend on its data. A *certificate* therefore rounds the norms up
# to a grid and pays for the grid by a union bound. Without the grid and the union bound, the
# computed number is only a *diagnostic*. $m^*$ is the sample size from which on the bound would be
# below the trivial value.

# %%
for union in (True, False):
    found = generalization_certificate(
        network, np.asarray(data[0]), readout=np.array([-1.0, 1.0]), loss_range=4.0, union=union
    )
    print(certificate_text(found), "\n")


def bounded_loss(params, data):
    """Mean cross entropy, clipped at the 4 that the certificate was given as its range."""
    X, y = data
    logits = model.apply({"params": params}, X)
    return jnp.mean(jnp.minimum(-jax.nn.log_softmax(logits)[jnp.arange(len(y)), y], 4.0))


gap = bounded_loss(params, unseen) - bounded_loss(params, data)
print(f"measured gap of the clipped loss on 2000 unseen sequences: {gap:.4f}")

# %% [markdown]
# Norm-based bounds of this kind are vacuous at this size, by the factor printed above. This is the
# honest state of the theory, and the reason why the notebook shows $m^*$.
#
# ## The curvature of its loss
#
# `Curvature` computes the extreme eigenvalues of the Hessian of any loss, with residuals and flags.
# Is the minimum flat? Is the loss convex there? For small networks, `Curvature` uses the whole
# matrix. Beyond 1000 parameters the method is Lanczos, whose `minimum` is an upper estimate of
# $\lambda_{\min}$. A negative `minimum` shows a direction along which the loss is not convex; a
# positive one proves nothing. $\lambda_{\min}$ is about these data alone. The multi-head paper
# bounds $\lambda_{\min}$ from below by $-\kappa L / \sqrt H$ for its model. Notebook 07 measures
# the ratio $-\lambda_{\min} / L$ of any network.

# %%
with enable_x64(True):
    wide = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), jnp.float64), params)
    sixty_four = jnp.asarray(np.asarray(data[0]), jnp.float64), jnp.asarray(np.asarray(data[1]))
    ends = jb.Curvature(lambda p: loss(p, sixty_four), wide).extremes()
    print(f"eigenvalues of the loss Hessian: {ends.minimum:.5f} ... {ends.maximum:.5f}")
    print("residuals:", float(ends.residual_minimum), float(ends.residual_maximum))
    print(f"-lambda_min / L is at least {max(0.0, -ends.minimum / loss(wide, sixty_four)):.3f}")
