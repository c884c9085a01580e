"""A hundred thousand pieces on hundreds of workers, simulated: how many belong into one lot?

    python benchmarks/engines_simulated.py
    python benchmarks/engines_simulated.py --verdicts results/verify/verdicts.json --overhead 0.02

Pieces take what the statements of a run of `jaxbounds verify` took (a heavy tail), or log-normal
times with the same mean and spread. A worker is slower than others by a log-normal factor; it dies
after an exponential time, costs the lot it has, and is back after a while. Each lot costs
`overhead` seconds, as `benchmarks/engines.py` measures it; how often workers die is varied.
"""

import heapq
import json
from pathlib import Path

import numpy as np
import tyro


def makespan(
    times: np.ndarray, lot: int, workers: int, life: float, overhead: float, back: float,
    spread: float, rng: np.random.Generator,
) -> float:  # fmt: skip
    """Seconds until every lot is done.

    Args:
        times: of the pieces, (pieces,).
        lot: pieces handed out together.
        workers: how many.
        life: mean seconds until a worker dies; inf for never.
        overhead: seconds for each lot.
        back: seconds until a dead worker is replaced.
        spread: standard deviation of the logarithm of a worker's slowness.
        rng: of all draws.
    """
    cuts = np.add.reduceat(times, np.arange(0, len(times), lot))
    waiting = list(cuts[::-1])
    slow = np.exp(spread * rng.standard_normal(workers))
    dies = rng.exponential(life, workers) if np.isfinite(life) else np.full(workers, np.inf)
    free = [(0.0, worker) for worker in range(workers)]
    # A lot that is lost waits again from the moment at which its worker died.
    lost: list[tuple[float, float]] = []
    last = 0.0
    while waiting or lost:
        now, worker = heapq.heappop(free)
        if waiting and not (lost and lost[0][0] <= now):
            work = waiting.pop()
        else:
            since, work = heapq.heappop(lost)
            now = max(now, since)
        end = now + overhead + work * slow[worker]
        if end <= dies[worker]:
            last = max(last, end)
            heapq.heappush(free, (end, worker))
            continue
        died = max(now, dies[worker])
        heapq.heappush(lost, (died, work))
        dies[worker] = died + back + rng.exponential(life)
        heapq.heappush(free, (died + back, worker))
    return last


def main(
    *,
    pieces: int = 100_000,
    workers: int = 250,
    mean: float = 2.0,
    tail: float = 1.2,
    verdicts: Path | None = None,
    overhead: float = 0.05,
    back: float = 60.0,
    spread: float = 0.3,
    repeats: int = 5,
    seed: int = 0,
) -> None:
    """Print, for each rate of deaths, the efficiency by size of a lot, and the best size.

    Args:
        pieces: how many.
        workers: how many.
        mean: seconds of a piece.
        tail: standard deviation of the logarithm of a piece's seconds.
        verdicts: take the pieces' seconds from this file instead.
        overhead: seconds that a lot costs.
        back: seconds until a dead worker is replaced.
        spread: of the logarithm of the workers' slowness.
        repeats: over which the times are averaged.
        seed: of all draws.
    """
    rng = np.random.default_rng(seed)
    if verdicts is None:
        times = mean * np.exp(tail * rng.standard_normal(pieces) - tail**2 / 2)
    else:
        took = {one["id"]: one["seconds"] for one in json.loads(verdicts.read_text())}
        times = rng.choice(list(took.values()), pieces)
        print(f"{len(took)} statements, log-spread {np.std(np.log(list(took.values()))):.2f}")
    mean = float(times.mean())
    ideal = times.sum() / (workers * np.exp(spread**2 / 2))  # the mean of their speeds
    print(f"{pieces} pieces of {mean:.2f} s (longest {times.max():.0f} s), {workers} workers,")
    print(f"{overhead:g} s a lot: {ideal:.0f} s at best\n")
    lots = [1, 3, 10, 30, 100, 400]
    print("a worker dies every" + "".join(f"{f'lots of {lot}':>14}" for lot in lots))
    for hours in (np.inf, 100.0, 10.0, 1.0, 0.1):
        once = lambda lot, again, life=3600 * hours: makespan(
            times, lot, workers, life, overhead, back, spread, np.random.default_rng([seed, again])
        )
        row = [np.mean([once(lot, again) for again in range(repeats)]) for lot in lots]
        name = "never" if np.isinf(hours) else f"{hours:g} h"
        print(f"{name:>19}" + "".join(f"{100 * ideal / took:>13.0f}%" for took in row))
    print("\nefficiency: the ideal time over the simulated one")


if __name__ == "__main__":
    tyro.cli(main)
