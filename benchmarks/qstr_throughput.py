"""Training samples per second, ours against PyTorch: same architecture, batch and threads.

    python benchmarks/qstr_throughput.py [--models transformer gru128 ...] [--seeds 5]

Both sides draw fresh prompts in every step (N = 12, d = 10, batch 64, float32, AdamW) and take the
better of interleaved repeats. PyTorch is optional (torch 2.13, CPU build); without it only our side
runs. The last column is the share of the machine's matmul rate, measured here on a 1024 x 1024
product with the same threads.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.qstr import online

try:
    import torch
except ImportError:
    torch = None

N, D, DE, BATCH = 12, 10, 12, 64
WIDTH = D + 2 * DE
STEPS = {"transformer": 200, "feedforward": 200, "gru128": 60, "gru500": 15}


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
    """A function that trains all seeds for the model's number of steps."""
    protocol = online.Protocol(check_every=STEPS[model], test_prompts=1)
    with jax.numpy_dtype_promotion("standard"):
        begin = jax.vmap(lambda key: online.start(key, key, model, N, protocol))
        runs = jax.jit(begin)(jax.random.split(jax.random.key(0), seeds))
        advance = jax.jit(jax.vmap(lambda run: online.train_chunk(run, model, N, protocol)))
        compiled = advance.lower(runs).compile()
    return lambda: jax.block_until_ready(compiled(runs))


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


def seconds(runs: dict, repeats: int) -> dict[str, float]:
    """The best time of each, interleaved so that a busy moment hits all of them."""
    best = dict.fromkeys(runs, np.inf)
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def matmul_rate() -> float:
    """Floating-point operations per second of a large float32 product."""
    a = jnp.ones((1024, 1024))
    product = jax.jit(lambda a: a @ a).lower(a).compile()
    return 2 * 1024**3 / seconds({"a": lambda: jax.block_until_ready(product(a))}, 20)["a"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    peak = matmul_rate()
    print(f"jax {jax.__version__} on {jax.devices()[0].device_kind}, {peak / 1e9:.0f} GFLOP/s")
    if torch is None:
        print("no PyTorch here: pip install torch==2.13.0 (CPU build) to compare")
    else:
        print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    many = options.seeds
    heads = ("model", "ours /s", f"{many} seeds /s", "torch /s", "ratio", "peak")
    print("{:12} {:>9} {:>11} {:>9} {:>6} {:>5}".format(*heads))
    for model in options.models:
        runs = {"one": ours(model, 1), "many": ours(model, many)}
        if torch is not None:
            runs["torch"] = theirs(model)
        took = seconds(runs, options.repeats)
        drawn = STEPS[model] * BATCH
        one, all_ = drawn / took["one"], many * drawn / took["many"]
        other = drawn / took["torch"] if "torch" in took else float("nan")
        share = max(one, all_) / BATCH * flops(model) / peak
        print(
            f"{model:12} {one:9.0f} {all_:11.0f} {other:9.0f} {one / other:6.2f} {share:5.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
