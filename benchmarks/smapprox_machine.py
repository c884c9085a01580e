"""A compiled Turing machine run by look-ups, and its trace verified, against plain NumPy.

`python benchmarks/smapprox_machine.py [--batch 1024] [--steps 256] [--rounds 3]` runs the parity
machine's network on the same words by a NumPy evaluation of the dense layers (keys and values of
past steps cached), by `execute.execute` (look-ups) and by `teacher_forcing.verify` (the trace
known, all steps at once), and prints seconds, ratios, and which share of the measured matmul rate
the multiplications of each are. `--long 4096` runs all nine machines for that many steps, says the
memory beforehand, and compares every step with the simulator. `--growth 64 512 4096` sets time
against work: the position codes have log T bits, and the network more layers with each bit.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.smapprox import execute
from jaxbounds.smapprox.compile_machine import Compiled, compile_machine
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine
from jaxbounds.smapprox.teacher_forcing import verify


def numpy_outputs(compiled: Compiled, inputs: execute.Inputs) -> np.ndarray:
    """o_T of every input by NumPy, layer by layer, batched over the inputs, with cached keys."""
    params = jax.tree.map(lambda a: a.astype(np.float32), compiled.params)
    layers, T, n = params["layers"], compiled.T, len(inputs.tokens)
    encoded = (inputs.tokens @ params["embedding"].T + inputs.encoder_codes).astype(np.float32)
    uses = [layer.attends for layer in compiled.layers]
    keys, values = {}, {}

    def attend(p, h, key, value, allowed):
        query = h @ p["Wq"].T + p["bq"]
        scores = np.concatenate(
            [(query @ p["K0"])[:, None], np.einsum("ntk,nk->nt", key, query)], axis=1
        )
        scores[:, 1:][~allowed] = -np.inf
        best = (scores == scores.max(axis=1, keepdims=True)).astype(np.float32)
        best /= best.sum(axis=1, keepdims=True)
        return h + best[:, :1] * p["V0"] + np.einsum("nt,ntw->nw", best[:, 1:], value)

    of = lambda kind, i: {name: leaf[i] for name, leaf in layers[kind].items()}
    every = np.ones((n, 1), dtype=bool)
    h = np.tile(params["start"], (n, 1))
    for step in range(T + 1):
        for i, kinds in enumerate(uses):
            if "dec" in kinds:
                p = of("dec", i)
                if step == 0:
                    keys[i] = np.zeros((n, T, len(p["K0"])), np.float32)
                    values[i] = np.zeros((n, T, h.shape[1]), np.float32)
                else:
                    keys[i][:, step - 1] = h @ p["Wk"].T + p["bk"]
                    values[i][:, step - 1] = h @ p["Wv"].T + p["bv"]
                past = keys[i][:, :step], values[i][:, :step]
                h = attend(p, h, *past, np.repeat(every, step, axis=1))
            if "enc" in kinds:
                p = of("enc", i)
                looked_up = encoded @ p["Wk"].T + p["bk"], encoded @ p["Wv"].T + p["bv"]
                h = attend(p, h, *looked_up, inputs.present)
            h = np.maximum(h @ layers["W1"][i].T + layers["b1"][i], 0)
            h = np.maximum(h @ layers["W2"][i].T + layers["b2"][i], 0)
            h = np.maximum(h @ layers["W3"][i].T + layers["b3"][i], 0)
        output = h
        h = h + inputs.decoder_codes[step + 1].astype(np.float32)
    return output @ params["head"]


def random_words(machine: TuringMachine, count: int, length: int) -> list[str]:
    """Words over the machine's input alphabet."""
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(machine.input_alphabet, length)) for _ in range(count)]


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def matmul_rate(size: int = 2048) -> float:
    """Multiply-adds per second of a large float32 product on all cores."""
    square = jnp.ones((size, size), jnp.float32)
    product = jax.jit(lambda a: a @ a)
    jax.block_until_ready(product(square))
    taken = min(seconds(lambda: jax.block_until_ready(product(square))) for _ in range(5))
    return size**3 / taken


def dense_work(compiled: Compiled, longest: int) -> int:
    """Multiply-adds of one word in `numpy_outputs`."""
    w, T = compiled.layout.width, compiled.T
    k, total = 2 * compiled.layout.bits + 1, 0
    for layer in compiled.layers:
        total += (T + 1) * 5 * w * w
        for kind in layer.attends:
            keys = T * (T + 1) // 2 if kind == "dec" else (T + 1) * longest
            made = T if kind == "dec" else (T + 1) * longest
            total += (T + 1) * k * w + made * (k * w + w * w) + keys * (k + w)
    return total


def sparse_work(compiled: Compiled) -> int:
    """Multiply-adds of one word by its structure."""
    size = lambda names: sum(len(compiled.layout.groups[name]) for name in names)
    layers = compiled.structure.layers
    return (compiled.T + 1) * sum(size(layer.computed) * size(layer.sources) for layer in layers)


def compared(T: int, batch: int, rounds: int, numpy: bool, rate: float) -> None:
    """Print seconds of all three on the same words, whose outputs must be equal."""
    compiled = compile_machine(LIBRARY["parity"]().machine, T)
    words = random_words(compiled.machine, batch, min(T - 1, 32))
    trace = execute.simulated(compiled, words)
    run_it = lambda: execute.execute(compiled, words)
    verify_it = lambda: verify(compiled, words, trace)
    output = run_it().output
    assert not verify_it().any() and np.array_equal(output, trace.decision)
    times = {"look-ups": [], "verified": []}
    for _ in range(rounds):
        times["look-ups"].append(seconds(run_it))
        times["verified"].append(seconds(verify_it))
    taken = {name: statistics.median(found) for name, found in times.items()}
    work = dict.fromkeys(taken, batch * sparse_work(compiled))
    if numpy:
        inputs = execute.encode(compiled, words)
        start = time.perf_counter()
        dense = numpy_outputs(compiled, inputs)
        taken = {"NumPy": time.perf_counter() - start, **taken}
        assert np.array_equal(dense, output)
        work["NumPy"] = batch * dense_work(compiled, inputs.tokens.shape[1])
    for name, spent in taken.items():
        ratio = f"{taken['NumPy'] / spent:8.1f}" if numpy else "        "
        share = work[name] / spent / rate
        speed = f"{spent:9.3f} {batch * T / spent:12,.0f}"
        print(f"{T:5d} {batch:6d}  {name:8s} {speed} {ratio} {share:8.2%}", flush=True)


def long_runs(T: int, batch: int) -> None:
    """Print, for each machine, the memory said beforehand, and whether every step is exact.

    The peak is that of the whole process so far, with Python, JAX and its compiler.
    """
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print("machine                 T words  said, MiB  peak, MiB  seconds  wrong steps")
    for name, make in LIBRARY.items():
        compiled = compile_machine(make().machine, T)
        words = random_words(compiled.machine, batch, 60)
        said = execute.memory_needed(compiled, batch)
        execute.execute(compiled, words)
        spent = seconds(lambda: execute.execute(compiled, words))  # noqa: B023
        network = execute.decode(compiled, execute.execute(compiled, words))
        truth = execute.simulated(compiled, words)
        parts = ("states", "heads", "symbols")
        wrong = sum((getattr(network, p) != getattr(truth, p)).sum() for p in parts)
        wrong += int(network.error.max() > 0)
        memory = f"{said / 2**20:10.0f} {peak() / 2**20:10.0f}"
        print(f"{name:20s} {T:4d} {batch:5d} {memory} {spent:8.2f} {wrong:12d}", flush=True)


def growth(steps: list[int], batch: int, rounds: int) -> None:
    """Print time and multiply-adds against T, at the bits that each T needs and at the most."""
    print("    T bits layers  words   seconds   per step and word: multiply-adds  ns, wall    CPU")
    machine = LIBRARY["parity"]().machine
    most = compile_machine(machine, max(steps)).layout.bits
    for bits in (None, most):
        for T in steps:
            compiled = compile_machine(machine, T, **({} if bits is None else {"bits": bits}))
            words = random_words(machine, batch, min(T - 1, 32))
            run_it = lambda: execute.execute(compiled, words)  # noqa: B023
            run_it()
            used = time.process_time()
            spent = statistics.median(seconds(run_it) for _ in range(rounds))
            used = (time.process_time() - used) / rounds
            work, each = sparse_work(compiled) / (T + 1), 1e9 / batch / (T + 1)
            sizes = f"{T:5d} {compiled.layout.bits:4d} {compiled.depth:6d} {batch:6d}"
            times = f"{work:14,.0f} {spent * each:9.0f} {used * each:6.0f}"
            print(f"{sizes} {spent:9.3f} {'':20s}{times}", flush=True)


def main() -> None:
    """Print the table for every T, the long runs, or the growth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, nargs="+", default=[256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-numpy", action="store_true", help="leave out the slow one")
    parser.add_argument("--long", type=int, help="steps of all machines, compared step by step")
    parser.add_argument("--growth", type=int, nargs="+", help="time and work against T")
    args = parser.parse_args()
    print(f"float32, {jax.devices()[0].platform}, jax {jax.__version__}")
    if args.long:
        return long_runs(args.long, args.batch)
    if args.growth:
        return growth(args.growth, args.batch, args.rounds)
    rate = matmul_rate()
    print(f"parity machine; a large matmul: {rate / 1e9:.1f}e9 multiply-adds/s")
    print("    T  words                seconds      steps/s    ratio  share of matmul rate")
    for T in args.steps:
        compared(T, args.batch, args.rounds, not args.no_numpy, rate)
    return None


if __name__ == "__main__":
    main()
