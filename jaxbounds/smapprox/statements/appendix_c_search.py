"""Lemma C.3 and Claims C.4-C.6: the binary search for the last visit of a cell."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.smapprox.layers import find_last_visit
from jaxbounds.smapprox.layout import Layout
from jaxbounds.statements import Budget, Form, Sides, Statement

SYMBOLS = ("0", "1", "_")
WALK = 31
"""Timesteps of the random walks in the search statements."""


@functools.cache
def _search():
    layout = Layout(("p",), SYMBOLS, 5)
    return layout, find_last_visit(layout)


def _walk_cases(size):
    """Random walks: for every step, the head, what each past step wrote, and the last visit."""
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(size["walks"]):
        heads = 20 + np.concatenate([[0], np.cumsum(rng.choice([-1, 1], WALK))])
        written = rng.integers(0, 3, WALK)
        for i in range(1, WALK + 1):
            visits = [t for t in range(1, i + 1) if heads[t - 1] == heads[i]]
            last = max(visits, default=0)
            symbol = written[last - 1] if last else -1
            rows.append((heads, written, i, last, symbol))
    heads, written, step, last, symbol = (np.stack(column) for column in zip(*rows))
    return {"heads": heads, "written": written, "step": step, "last": last, "symbol": symbol}


def _searched(i):
    """Run Lemma C.3's layers on one step of a walk: scores of each layer, and the states."""
    layout, layers = _search()
    place = lambda name: np.array(layout.groups[name])
    powers = jnp.arange(5)[::-1]
    binary = lambda n: (jnp.expand_dims(n % 32, -1) >> powers.reshape((1,) * n.ndim + (5,))) & 1
    steps = jnp.arange(1, WALK + 1)
    memory = jnp.zeros((WALK, layout.width))
    memory = memory.at[:, place("pos1")].set(binary(steps).astype(float))
    memory = memory.at[:, place("pos2")].set(binary(i["heads"][:-1]).astype(float))
    memory = memory.at[:, place("sym2")].set(jax.nn.one_hot(i["written"], 3))
    h = memory[i["step"] - 1].at[place("pos3")].set(binary(i["heads"][i["step"]]).astype(float))
    allowed = jnp.concatenate([jnp.ones(1, bool), steps <= i["step"]])
    all_scores, states = [], []
    for layer in layers:
        p = jax.tree.map(jnp.asarray, layer.dec)
        query = p["Wq"] @ h + p["bq"]
        keys = memory @ p["Wk"].T + p["bk"][None, :]
        scores = jnp.where(allowed, jnp.append(query @ p["K0"], keys @ query), -jnp.inf)
        best = (scores == scores.max()).astype(h.dtype)
        values = memory @ p["Wv"].T + p["bv"][None, :]
        h = h + (best[0] * p["V0"] + best[1:] @ values) / best.sum()
        states.append(h)
        h = jnp.maximum(jnp.asarray(layer.W1) @ h + jnp.asarray(layer.b1), 0.0)
        all_scores.append(scores)
    return layout, jnp.stack(all_scores), states


def _c4(i):
    layout, _, states = _searched(i)
    visited = (i["last"] > 0).astype(float)
    flag = states[0][layout.at("scr4", "left")]
    return Sides(flag, {"printed": visited, "control": 1 - visited})


def _gaps(i):
    """The least distance between different scores, over the layers of the search."""
    _, scores, _ = _searched(i)
    ordered = jnp.sort(scores, axis=1)
    steps = jnp.diff(ordered, axis=1)
    distinct = jnp.isfinite(ordered[:, :-1]) & (steps > 0)
    least = jnp.where(distinct, steps, jnp.inf).min()
    return Sides(jnp.ones(()), {"printed": least, "control": least - 0.5})


def _c5(i):
    layout, _, states = _searched(i)
    found = states[-1][np.array(layout.groups["scr3"])]
    value = found @ jnp.array([16.0, 8.0, 4.0, 2.0, 1.0])
    last = i["last"].astype(float)
    return Sides(value, {"printed": last, "control": jnp.abs(last - 1)})


def _c3(i):
    """The symbol and the flag of Lemma C.3; Claim C.6 adds that the maximiser is unique."""
    layout, scores, states = _searched(i)
    symbol = states[-1][np.array(layout.groups["scr1"])]
    flag = states[-1][layout.at("scr4", "left")]
    maximisers = (scores[-1] == scores[-1].max()).sum().astype(float)
    place = scores[-1].argmax().astype(float)
    want = jax.nn.one_hot(i["symbol"], 3)
    visited = (i["last"] > 0).astype(float)
    tell = lambda s, p: jnp.concatenate([s, jnp.stack([visited, jnp.ones(()), p])])
    last = i["last"].astype(float)
    return Sides(
        jnp.concatenate([symbol, jnp.stack([flag, maximisers, place])]),
        {"printed": tell(want, last), "control": tell(jnp.roll(want, 1), last)},
    )


def _case2_cases(size):
    """All (i', j, t) with t <= i' and bit j+1 of i' zero."""
    bits = size["bits"]
    rows = []
    for last, j, t in itertools.product(range(1, 2**bits), range(bits), range(1, 2**bits)):
        if t <= last and not last >> (bits - 1 - j) & 1:
            same = last >> (bits - j) == t >> (bits - j)
            rows.append((t >> (bits - 1 - j) & 1, same))
    bit, same = map(np.array, zip(*rows))
    return {"bit": bit.astype(int), "same_prefix": same.astype(int)}


def _case2(i):
    zero = jnp.zeros(())
    bit = i["bit"].astype(float)
    return Sides(bit, {"printed": zero, "corrected": zero, "control": 1 - bit})


_SEARCH = {
    "kind": "construction",
    "cases": _walk_cases,
    "sizes": ({"walks": 6},),
    "assumptions": f"every step of six random walks of {WALK} steps on five-bit positions",
    "budget": Budget(batch=64),
}

STATEMENTS = (
    Statement(
        id="smapprox.lemmac.3",
        label="Lemma C.3, Claim C.6",
        formula="scr1 = symbol written at the last visit i', by a unique maximiser at i'",
        evaluate=_c3,
        forms=(Form(name="printed", note="With i' = 0, the null key, where there was no visit."),),
        control="another symbol",
        source="Appendix C.2",
        **_SEARCH,
    ),
    Statement(
        id="smapprox.claimc.4",
        label="Claim C.4",
        formula="scr4_1 = 1(i' > 0)",
        evaluate=_c4,
        forms=(Form(name="printed"),),
        control="the flag negated",
        source="Appendix C.2",
        **_SEARCH,
    ),
    Statement(
        id="smapprox.claimc.5",
        label="Claim C.5",
        formula="the binary search finds Bin(i')",
        evaluate=_c5,
        forms=(Form(name="printed"),),
        control="off by one",
        source="Appendix C.2",
        **_SEARCH,
    ),
    Statement(
        id="smapprox.claimc.5-case2",
        label="Claim C.5, Case 2",
        formula="t <= i' and bit j+1 of i' zero  =>  bit j+1 of t zero",
        kind="construction",
        evaluate=_case2,
        cases=_case2_cases,
        sizes=({"bits": 3}, {"bits": 4}),
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E9",
                note="i' = 4 = 100, t = 3 = 011: bit 2 of i' is 0, that of t is 1.",
                counterexample={"bit": np.array(1), "same_prefix": np.array(0)},
            ),
            Form(
                name="corrected",
                hypotheses=lambda i: {"the same j-bit prefix": i["same_prefix"] == 1},
                note="With different prefixes the position part of the score loses 2.",
            ),
        ),
        control="the bit is one",
        source="Appendix C.2",
    ),
    Statement(
        id="smapprox.claimc.4-gap",
        label="Claims C.4-C.6, score levels",
        formula="1 <= the distance between different scores, in every layer of the search",
        evaluate=_gaps,
        forms=(Form(name="printed", equality="the null key against the best key"),),
        control="the distance less one half",
        source="Appendix C.2",
        **(_SEARCH | {"kind": "inequality", "search": "none"}),
    ),
)
