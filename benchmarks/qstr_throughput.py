"""Training samples per second, ours against PyTorch: same architecture, batch and cores.

    python benchmarks/qstr_throughput.py [--models transformer gru128 ...] [--seeds 5] [--cores 2]

Both sides draw fresh prompts in every step (N = 12, d = 10, batch 64, float32, AdamW); medians of
alternating blocks in one process. Several seeds are one vmapped program here and one run after the
other in PyTorch, so the ratio of samples per second compares both. PyTorch is optional (torch
2.13 or newer, CPU); without it only our side runs. The last column is the share of the matmul rate
of these cores, measured on a 1024 x 1024 product.
"""

import argparse
import os

import jax
import jax.numpy as jnp
from timing import medians

from jaxbounds.qstr.experiments import online

try:
    import torch
except ImportError:
    torch = None

N, D, DE, BATCH = 12, 10, 12, 64
WIDTH = D + 2 * DE
STEPS = {"transformer": 100, "feedforward": 100, "gru128": 25, "gru500": 8}


def flops(model: str) -> float:
    """Multiply-adds of one training step, forward once and backward twice, times two."""
    gru = lambda h: 2 * N * (3 * h * (WIDTH + h)) + N * 2 * h
    forward = {
        "transformer": N * (4 * WIDTH**2 + 2 * N * WIDTH + WIDTH * 100 + 100),
        "feedforward": N * WIDTH * N * D + N * D * 1000 + 1000 * N,
        "gru128": gru(128),
        "gru500": gru(500),
    }
    return 6.0 * BATCH * forward[model]


def ours(model: str, seeds: int):
    """A function that trains all seeds for the model's number of steps, on from the last call."""
    protocol = online.Protocol(check_every=STEPS[model], test_prompts=1)
    first, advance = online.side_by_side(model, N, protocol)
    state = {"runs": first(jax.random.split(jax.random.key(0), seeds), jax.random.key(1))}

    def train():
        state["runs"], risk = advance(state["runs"])
        return risk

    return train


def theirs(model: str):
    """The same in PyTorch, eager, for one seed."""
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = nn.MultiheadAttention(WIDTH, 1, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 100), nn.ReLU(), nn.Linear(100, 1))

        def forward(self, z):
            return self.mlp(self.attend(z, z, z, need_weights=False)[0])[..., 0]

    class Gated(nn.Module):
        def __init__(self, hidden):
            super().__init__()
            self.gru = nn.GRU(WIDTH, hidden, batch_first=True, bidirectional=True)
            self.readout = nn.Linear(2 * hidden, 1)

        def forward(self, z):
            return self.readout(self.gru(z)[0])[..., 0]

    net = {
        "transformer": Attention,
        "feedforward": lambda: nn.Sequential(
            nn.Flatten(), nn.Linear(N * WIDTH, N * D), nn.ReLU(),
            nn.Linear(N * D, 1000), nn.ReLU(), nn.Linear(1000, N),
        ),
        "gru128": lambda: Gated(128),
        "gru500": lambda: Gated(500),
    }[model]()  # fmt: skip
    adamw = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
    u = torch.nn.functional.normalize(torch.randn(D), dim=0)
    omega = (2.0 * torch.randint(0, 2, (N, DE)) - 1.0) / DE**0.5

    def train():
        for _ in range(STEPS[model]):
            x = torch.randn(BATCH, N, D)
            t = torch.randint(0, N, (BATCH, N))
            z = torch.cat([x, omega.expand(BATCH, N, DE), omega[t]], dim=-1)
            y = torch.gather(x @ u, 1, t)
            adamw.zero_grad()
            torch.mean((net(z) - y) ** 2).backward()
            adamw.step()

    return train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    # Before either library starts its threads, so that both have as many as there are cores.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    a = jnp.ones((1024, 1024))
    (took,) = medians((jax.jit(lambda a: a @ a), a), rounds=4)
    peak = 2 * 1024**3 / took
    print(
        f"jax {jax.__version__} on {jax.devices()[0].device_kind}, {options.cores} cores: ", end=""
    )
    print(f"{peak / 1e9:.0f} GFLOP/s")
    if torch is None:
        print("no PyTorch here: pip install torch (CPU) to compare")
    else:
        torch.set_num_threads(options.cores)
        print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    many = options.seeds
    heads = ("model", "ours /s", f"{many} seeds /s", "torch /s", "ratio", f"{many} seeds", "peak")
    print("{:12} {:>9} {:>11} {:>9} {:>6} {:>8} {:>5}".format(*heads))
    for model in options.models:
        calls = [(ours(model, 1),), (ours(model, many),)]
        calls += [(theirs(model),)] if torch is not None else []
        one, several, *other = medians(*calls, rounds=options.rounds)
        drawn = STEPS[model] * BATCH
        one, several, other = drawn / one, many * drawn / several, drawn / (*other, float("nan"))[0]
        share = max(one, several) / BATCH * flops(model) / peak
        print(
            f"{model:12} {one:9.0f} {several:11.0f} {other:9.0f} {one / other:6.2f} "
            f"{several / other:8.2f} {share:5.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
