"""The Transformer of Section 4 in plain NumPy: the oracle of these tests, sharing no code."""

from types import SimpleNamespace

import numpy as np
import pytest


def attend(p, h, memory):
    """h + mean of the values over the maximisers of (null, memory)."""
    query = p["Wq"] @ h + p["bq"]
    scores = [p["K0"] @ query] + [query @ (p["Wk"] @ g + p["bk"]) for g in memory]
    values = [p["V0"]] + [p["Wv"] @ g + p["bv"] for g in memory]
    best = [t for t, s in enumerate(scores) if s == max(scores)]
    return h + np.mean([values[t] for t in best], axis=0), scores, best


def layer_of(stacked, i):
    return {
        name: ({k: v[i] for k, v in leaf.items()} if isinstance(leaf, dict) else leaf[i])
        for name, leaf in stacked.items()
    }


def feed(p, h):
    h = np.maximum(p["W1"] @ h + p["b1"], 0)
    if "W2" in p:
        h = np.maximum(p["W3"] @ np.maximum(p["W2"] @ h + p["b2"], 0) + p["b3"], 0)
    return h


def transformer(params, tokens, encoder_codes, decoder_codes):
    """o_0 .. o_T, one timestep and one layer after the other."""
    layers = params["layers"]
    depth = len(layers["b1"])
    encoded = [params["embedding"] @ x + c for x, c in zip(tokens, encoder_codes)]
    memory = [[] for _ in range(depth)]
    h, outputs = params["start"], []
    for i in range(len(decoder_codes) - 1):
        for layer in range(depth):
            p = layer_of(layers, layer)
            if i >= 1:
                memory[layer].append(h)
            h, _, _ = attend(p["dec"], h, memory[layer])
            h, _, _ = attend(p["enc"], h, encoded)
            h = feed(p, h)
        outputs.append(h)
        h = h + decoder_codes[i + 1]
    return np.array(outputs)


@pytest.fixture
def plain_numpy():
    """The functions above."""
    return SimpleNamespace(attend=attend, transformer=transformer)
