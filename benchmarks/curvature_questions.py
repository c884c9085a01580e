"""Claim: five questions to one operator cost at most 1.5 times the extremes alone.

An nnx GPT of 229,056 parameters in float32 on 8 x 64 tokens. Each line is CPU seconds in a process
of its own, compiling included: extremes; top(5); trace; spectrum; three blocks; all of these on one
operator; and a hand-written Hessian-vector product with SciPy's eigsh (top 5 and least).

Run: python benchmarks/curvature_questions.py [--only NAME ...]
"""

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree

import jaxbounds as jb

WIDTH, LAYERS, HEADS, TOKENS, VOCABULARY = 48, 8, 4, 64, 33


class Block(nnx.Module):
    """Attention and a feed-forward layer, each after a norm."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first, self.second = (nnx.LayerNorm(WIDTH, rngs=rngs) for _ in range(2))
        dense = lambda i, o: nnx.Linear(i, o, use_bias=False, rngs=rngs)
        self.query, self.key, self.value, self.out = (dense(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = dense(WIDTH, 4 * WIDTH), dense(4 * WIDTH, WIDTH)

    def __call__(self, x: jax.Array) -> jax.Array:
        """(n, T, d) to (n, T, d)."""
        y = self.first(x)
        split = lambda z: z.reshape(*z.shape[:2], HEADS, WIDTH // HEADS)
        q, k, v = (split(layer(y)) for layer in (self.query, self.key, self.value))
        scores = jnp.einsum("nthd,nshd->nhts", q, k) / (WIDTH // HEADS) ** 0.5
        mask = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        x = x + self.out(jnp.einsum("nhts,nshd->nthd", weights, v).reshape(x.shape))
        return x + self.down(jax.nn.gelu(self.up(self.second(x))))


class Gpt(nnx.Module):
    """A decoder of tokens."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.tokens = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.positions = nnx.Embed(TOKENS, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(LAYERS)])
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.head = nnx.Linear(WIDTH, VOCABULARY, use_bias=False, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """(n, T) to (n, T, V)."""
        x = self.tokens(tokens) + self.positions(jnp.arange(TOKENS))[None]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(model: Gpt, tokens: jax.Array) -> jax.Array:
    """The mean cross-entropy of the next token."""
    logits = jax.nn.log_softmax(model(tokens)[:, :-1])
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], axis=2))


def problem() -> tuple[Gpt, jax.Array]:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (8, TOKENS))
    return Gpt(nnx.Rngs(0)), jnp.asarray(tokens)


BLOCKS = {"first": "blocks/0/", "attention": "blocks/*/query*", "head": "head"}


def _ends(found: jb.Curvature) -> str:
    ends = found.extremes()
    return f"{ends.minimum:.6f} {ends.maximum:.6f} in {ends.iterations}, converged {ends.converged}"


def _top(found: jb.Curvature) -> str:
    top = found.top(5)
    return " ".join(f"{v:.6f}" for v in top.values) + f", converged {bool(top.converged.all())}"


def _blocks(found: jb.Curvature) -> str:
    ends = found.blocks(BLOCKS)
    return ", ".join(
        f"{name} {e.minimum:.4f} {e.maximum:.4f} in {e.iterations}" for name, e in ends.items()
    )


ONE: dict[str, Callable[[jb.Curvature], object]] = {
    "extremes": _ends,
    "top(5)": _top,
    "trace": lambda H: H.trace(),
    "spectrum": lambda H: H.spectrum(),
    "blocks": _blocks,
}


def by_hand(model: Gpt, tokens: jax.Array) -> str:
    """Top 5 and least with SciPy's ARPACK."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    graph, state = nnx.split(model)
    flat, back = ravel_pytree(state)
    slope = jax.grad(lambda x: loss(nnx.merge(graph, back(x)), tokens))
    product = jax.jit(lambda v: jax.jvp(slope, (flat,), (v,))[1])
    start = np.random.default_rng(1).normal(size=flat.size).astype(np.float32)
    begun = time.process_time()
    jax.block_until_ready(product(start))
    compiling = time.process_time() - begun
    matrix = LinearOperator(
        (flat.size,) * 2,
        matvec=lambda v: np.asarray(product(v.astype(np.float32))),
        dtype=np.float32,
    )
    top = eigsh(matrix, k=5, which="LA", v0=start, tol=1e-4)[0][::-1]
    least = eigsh(matrix, k=1, which="SA", v0=start, tol=1e-4)[0]
    return (
        f"{' '.join(f'{v:.6f}' for v in top)}, least {least[0]:.6f}; compiled in {compiling:.1f} s"
    )


def ask(name: str) -> None:
    """One line."""
    model, tokens = problem()
    jax.block_until_ready(jnp.ones(3) + 1)
    begun = time.process_time()
    if name == "by hand":
        print(f"{'hand-written, top 5 and least':<32}{_since(begun, by_hand(model, tokens))}")
        return
    H = jb.Curvature(loss, model, tokens)
    for one in ONE if name == "together" else name.split(" and "):
        said = ONE[one](H)
        print(f"{('  ' if name == 'together' else '') + one:<32}{_since(begun, said)}", flush=True)
    if name in ("extremes", "together"):
        begun = time.process_time()
        said = _ends(H)
        print(f"{'  extremes again':<32}{_since(begun, said)}")


def _since(begun: float, said: object) -> str:
    seconds = time.process_time() - begun
    return f"{seconds:7.1f} CPU s  {str(said).splitlines()[0]}"


NAMES = (*ONE, "extremes and top(5)", "together", "by hand")

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--only", nargs="+", default=list(NAMES))
    flags.add_argument("--one", help=argparse.SUPPRESS)
    options = flags.parse_args()
    if options.one:
        ask(options.one)
    else:
        for chosen in options.only:
            subprocess.run([sys.executable, __file__, "--one", chosen], check=True)
