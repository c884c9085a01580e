"""Inputs x steps per second of a compiled Turing machine, against plain NumPy.

`python benchmarks/smapprox_machine.py [--batch 1024] [--steps 64 256] [--rounds 1]` runs the
compiled network and a NumPy evaluation of the same layers, with keys and values of past steps
cached, in turn on the same words, and prints one line for each T and batch size with the ratio of
their times.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import jax
import numpy as np

from jaxbounds.smapprox import execute
from jaxbounds.smapprox.compile_machine import Compiled, compile_machine
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine


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


def compared(T: int, batch: int, rounds: int) -> tuple[float, float]:
    """Median seconds of the compiled network and of NumPy, in turn, on the same words.

    The compiled network runs once before it is timed; outputs must be equal.
    """
    machine = LIBRARY["parity"]().machine
    compiled = compile_machine(machine, T)
    words = random_words(machine, batch, min(T - 1, 32))
    inputs = execute.encode(compiled, words)
    output = execute.execute(compiled, words).output
    assert np.array_equal(numpy_outputs(compiled, inputs), output)
    times = [
        (
            seconds(lambda: execute.execute(compiled, words)),
            seconds(lambda: numpy_outputs(compiled, inputs)),
        )
        for _ in range(rounds)
    ]
    network, plain = zip(*times)
    return statistics.median(network), statistics.median(plain)


def main() -> None:
    """Print both rates and their ratio for every T, and for an eighth of the batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    print(f"parity machine, float32, {jax.devices()[0].platform}, jax {jax.__version__}")
    print("   T  batch  compiled, s  steps/s     NumPy, s  steps/s     ratio")
    for batch in (max(1, args.batch // 8), args.batch):
        for T in args.steps:
            network, plain = compared(T, batch, args.rounds)
            rates = [f"{taken:11.2f}  {batch * T / taken:9,.0f}" for taken in (network, plain)]
            print(f"{T:4d}  {batch:5d}  {'  '.join(rates)}  {plain / network:7.2f}", flush=True)


if __name__ == "__main__":
    main()
