"""One network for JAX and for PyTorch, and a judge of eigenpairs that no library brings along.

The network is a decoder of tokens, written once: arrays of JAX and tensors of PyTorch go through
one function, so that both frameworks differentiate one formula at equal float32 parameters.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbounds as jb

TOKENS, VOCABULARY, HEADS, SEQUENCES = 64, 64, 4, 8
SHAPES = {100_000: (64, 2), 1_000_000: (128, 5)}
"""The width and the number of layers by the number of parameters, which they give roughly."""


class Case(NamedTuple):
    """Parameters, sorted by name, and data.

    Attributes:
        params: arrays of float32.
        tokens: (sequences, tokens), integers.
        targets: (sequences * tokens,), the tokens that follow.
    """

    params: dict[str, np.ndarray]
    tokens: np.ndarray
    targets: np.ndarray

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(leaf.size for leaf in self.params.values())


def case(width: int, layers: int) -> Case:
    """Random parameters, and sequences whose next token depends on the last one and on chance."""
    rng = np.random.default_rng(0)
    shapes = {"embed": (VOCABULARY, width), "place": (TOKENS, width), "zhead": (width, VOCABULARY)}
    for i in range(layers):
        shapes |= {f"l{i}{name}": (width, width) for name in ("key", "out", "query", "value")}
        shapes |= {f"l{i}up": (width, 4 * width), f"l{i}down": (4 * width, width)}
    scaled = lambda s: (rng.normal(size=s) / s[0] ** 0.5).astype(np.float32)
    tokens = np.zeros((SEQUENCES, TOKENS + 1), np.int64)
    for t in range(TOKENS):
        step = rng.integers(0, 4, SEQUENCES)
        tokens[:, t + 1] = (5 * tokens[:, t] + step) % VOCABULARY
    params = {name: scaled(shapes[name]) for name in sorted(shapes)}
    return Case(params, tokens[:, :-1], tokens[:, 1:].reshape(-1))


def logits(params: Any, tokens: Any, mask: Any, softmax: Any, tanh: Any) -> Any:
    """(sequences * tokens, vocabulary), in JAX or in PyTorch.

    Args:
        params: by name.
        tokens: (sequences, tokens).
        mask: (tokens, tokens), added to scores.
        softmax: of the framework, over the last axis.
        tanh: of the framework.
    """

    def normed(x: Any) -> Any:
        x = x - x.mean(-1)[..., None]
        return x / ((x * x).mean(-1)[..., None] + 1e-5) ** 0.5

    x = params["embed"][tokens] + params["place"]
    shape, width = x.shape, x.shape[-1]
    layers = sum(name.endswith("query") for name in params)
    for i in range(layers):
        p = {name: params[f"l{i}{name}"] for name in ("query", "key", "value", "out", "up", "down")}
        y = normed(x)
        heads = lambda z: z.reshape(*shape[:2], HEADS, width // HEADS).swapaxes(1, 2)
        q, k, v = (heads(y @ p[name]) for name in ("query", "key", "value"))
        scores = q @ k.swapaxes(2, 3) / (width // HEADS) ** 0.5
        x = x + (softmax(scores + mask) @ v).swapaxes(1, 2).reshape(shape) @ p["out"]
        y = normed(x) @ p["up"]
        x = x + (y * (1 + tanh(0.8 * (y + 0.045 * y * y * y))) / 2) @ p["down"]
    return (normed(x) @ params["zhead"]).reshape(-1, VOCABULARY)


MASK = np.triu(np.full((TOKENS, TOKENS), -1e4, np.float32), 1)


def jax_loss(params: Any, batch: Any) -> jax.Array:
    """The mean cross-entropy."""
    tokens, targets = batch
    mask = jnp.asarray(MASK, params["embed"].dtype)
    z = jax.nn.log_softmax(logits(params, tokens, mask, jax.nn.softmax, jnp.tanh))
    return -jnp.mean(jnp.take_along_axis(z, targets[:, None], axis=1))


def torch_module(one: Case) -> Any:
    """The network as a module whose parameters stand in the order of `Case.params`."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, leaf in one.params.items():
                self.register_parameter(name, torch.nn.Parameter(torch.tensor(leaf)))

        def forward(self, tokens: Any) -> Any:
            params = dict(self.named_parameters())
            softmax = lambda z: torch.softmax(z, -1)
            return logits(params, tokens, torch.tensor(MASK), softmax, torch.tanh)

    return Network()


class Judge:
    """The Hessian in float64 at the float32 parameters: forward over reverse, one jit, no more."""

    def __init__(self, one: Case) -> None:
        self._case = one
        self._product: Any = None

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """The products with rows (k, n)."""
        with jb.float64_on_cpu():
            wide = {
                name: jnp.asarray(leaf, jnp.float64) for name, leaf in self._case.params.items()
            }
            flat, back = jax.flatten_util.ravel_pytree(wide)
            batch = jnp.asarray(self._case.tokens), jnp.asarray(self._case.targets)
            if self._product is None:
                slope = jax.grad(lambda x, batch: jax_loss(back(x), batch))
                self._product = jax.jit(
                    lambda x, v, batch: jax.jvp(lambda y: slope(y, batch), (x,), (v,))[1]
                )
            rows = [self._product(flat, jnp.asarray(v, jnp.float64), batch) for v in vectors]
            return np.stack([np.asarray(row) for row in rows])

    def residuals(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The Rayleigh quotients of rows, and ||H u - value u|| of the unit vectors u."""
        unit = np.asarray(vectors, np.float64)
        unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
        images = self(unit)
        values = np.sum(unit * images, axis=1)
        return values, np.linalg.norm(images - values[:, None] * unit, axis=1)
