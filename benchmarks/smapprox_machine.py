"""Inputs x steps per second of a compiled Turing machine, against plain NumPy.

`python benchmarks/smapprox_machine.py [--batch 1024] [--steps 256]` prints one line for each of
several T and batch sizes, then the compiled network at the full size against a NumPy evaluation of
the same layers on the same batch (fewer steps, where it would take minutes).
"""

import argparse
import time

import jax
import numpy as np

from jaxbounds.smapprox import execute
from jaxbounds.smapprox.compile_machine import Compiled, compile_machine
from jaxbounds.smapprox.machine_library import LIBRARY


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


def random_words(machine, count: int, length: int) -> list[str]:
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(machine.input_alphabet, length)) for _ in range(count)]


def measure(T: int, batch: int) -> float:
    """Seconds for one run, after one to compile."""
    machine = LIBRARY["parity"]().machine
    compiled = compile_machine(machine, T)
    words = random_words(machine, batch, min(T - 1, 32))
    execute.execute(compiled, words)
    start = time.perf_counter()
    execute.execute(compiled, words)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--numpy-steps", type=int, default=64)
    args = parser.parse_args()
    print(f"parity machine, float32, {jax.devices()[0].platform}, jax {jax.__version__}")
    sizes = [(T, args.batch // 8) for T in (64, 128, args.steps)]
    sizes += [(args.numpy_steps, batch) for batch in (args.batch // 4, args.batch)]
    for T, batch in [*sizes, (args.steps, args.batch)]:
        seconds = measure(T, batch)
        print(f"T {T:4d}  batch {batch:5d}  {seconds:7.2f} s  {batch * T / seconds:12,.0f} steps/s")
    machine = LIBRARY["parity"]().machine
    compiled = compile_machine(machine, args.numpy_steps)
    words = random_words(machine, args.batch, min(args.numpy_steps - 1, 32))
    inputs = execute.encode(compiled, words)
    start = time.perf_counter()
    by_numpy = numpy_outputs(compiled, inputs)
    seconds = time.perf_counter() - start
    assert np.array_equal(by_numpy, execute.execute(compiled, words).output)
    rate = args.batch * args.numpy_steps / seconds
    print(
        f"NumPy: T {args.numpy_steps}  batch {args.batch}  {seconds:7.2f} s  {rate:12,.0f} steps/s"
    )


if __name__ == "__main__":
    main()
