"""The sparse majority network: the exact CLS reduction against plain implementations.

    python benchmarks/seqlength_majority.py [--lengths 20 100 200] [--runs 5]

One epoch is 300 training samples in batches of 128 (SGD, rate 0.01, momentum 0.9). Three programs
with the same parameters and data: the reduction, jitted dense attention in JAX (CLS row of
`MajorityTransformer`), and PyTorch modules written here, where torch is installed (optional; one
run at a time). Reported: milliseconds per epoch and run (median of alternating blocks), and epochs
per second with all runs vmapped.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from timing import medians

from jaxbounds.seqlength.majority_model import MajorityTransformer, reduced_logits, sigmoid_loss
from jaxbounds.seqlength.sparse_majority import Embedding, draw_bits, draw_task, embed
from jaxbounds.seqlength.sparse_majority import majority_label as label

try:
    import torch
except ImportError:
    torch = None

SAMPLES, BATCH, RATE, MOMENTUM = 300, 128, 0.01, 0.9


def batches():
    return [slice(start, min(start + BATCH, SAMPLES)) for start in range(0, SAMPLES, BATCH)]


def jax_epoch(logits):
    """One epoch of SGD with momentum, given `logits(params, task, bits)`."""

    def epoch(params, velocity, task, bits, labels):
        for rows in batches():
            loss = lambda p, rows=rows: jnp.mean(
                sigmoid_loss(logits(p, task, bits[rows]), labels[rows])
            )
            slope = jax.grad(loss)(params)
            velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, slope)
            params = jax.tree.map(jnp.add, params, velocity)
        return params, velocity

    return epoch


def torch_epoch(params, tokens, labels):
    """The same epoch as a PyTorch module with nn.Linear layers and an explicit softmax."""
    leaf = lambda a: torch.tensor(np.asarray(a), requires_grad=True)
    p = jax.tree.map(leaf, params)
    X, y = torch.tensor(np.asarray(tokens)), torch.tensor(np.asarray(labels))
    leaves = jax.tree.leaves(p)
    optimiser = torch.optim.SGD(leaves, lr=RATE, momentum=MOMENTUM)
    target = torch.nn.functional.one_hot(y.long(), 2).float()

    def logits(x):
        a = p["attention"]
        project = lambda n: torch.einsum("ntd,dhk->nhtk", x, a[n]["kernel"]) + a[n]["bias"][:, None]
        q, k, v = project("query"), project("key"), project("value")
        weights = torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5, dim=-1)
        z = torch.einsum("nhtk,hko->nto", weights @ v, a["out"]["kernel"]) + a["out"]["bias"]
        h = torch.relu(z[:, -1]) @ p["hidden"]["kernel"] + p["hidden"]["bias"]
        return h @ p["readout"]["kernel"] + p["readout"]["bias"]

    def epoch():
        for rows in batches():
            optimiser.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits(X[rows]), target[rows]
            )
            loss.backward()
            optimiser.step()

    return epoch, lambda: logits(X).detach().numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[20, 100, 200])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    versions = f"jax {jax.__version__}, torch {getattr(torch, '__version__', 'absent')}"
    print(f"{versions}, {jax.devices()[0].device_kind}")
    print("    T  reduced ms   dense ms   torch ms  dense/reduced  vmapped epochs/s")
    net = MajorityTransformer()
    dense = lambda params, task, bits: net.apply({"params": params}, embed(task, bits))
    for T in args.lengths:
        task = draw_task(jax.random.key(0), Embedding(), T=T)
        bits = draw_bits(jax.random.key(1), n=SAMPLES, T=T)
        labels = label(bits, task.relevant)
        params = net.init(jax.random.key(2), embed(task, bits[:1]))["params"]
        velocity = jax.tree.map(jnp.zeros_like, params)
        state = (params, velocity, task, bits, labels)
        epochs = {
            n: jax.jit(jax_epoch(f)) for n, f in (("reduced", reduced_logits), ("dense", dense))
        }
        ends = {name: epoch(*state)[0] for name, epoch in epochs.items()}
        gap = max(
            float(jnp.max(jnp.abs(a - b)))
            for a, b in zip(jax.tree.leaves(ends["reduced"]), jax.tree.leaves(ends["dense"]))
        )
        assert gap < 1e-4, f"the programs disagree by {gap}"
        stacked = jax.tree.map(lambda leaf: jnp.stack([leaf] * args.runs), state)
        calls = [(epoch, *state) for epoch in epochs.values()]
        calls.append((jax.jit(jax.vmap(jax_epoch(reduced_logits))), *stacked))
        if torch is not None:
            epoch, outputs = torch_epoch(params, embed(task, bits), labels)
            reference = np.asarray(dense(params, task, bits))
            assert np.abs(outputs() - reference).max() < 1e-4
            calls.append((epoch,))
        reduced, plain, together, *pytorch = medians(*calls, rounds=args.rounds)
        pytorch = pytorch[0] if pytorch else float("nan")
        print(
            f"{T:>5} {1e3 * reduced:>11.2f} {1e3 * plain:>10.2f} "
            f"{1e3 * pytorch:>10.2f} {plain / reduced:>14.1f} "
            f"{args.runs / together:>17.1f}"
        )


if __name__ == "__main__":
    main()
