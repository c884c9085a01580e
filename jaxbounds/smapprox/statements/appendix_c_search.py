"""Lemma C.3 and Claims C.4-C.6: the binary search for the last visit of a cell."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.smapprox.layers import Layer, find_last_visit
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.transformer import attend, feed_forward, keys_and_values
from jaxbounds.statements import Budget, Counterexample, Form, Instance, Sides, Size, Statement

SYMBOLS = ("0", "1", "_")
WALK = 31
"""Timesteps of the random walks in the search statements."""


@functools.cache
def _search() -> tuple[Layout, list[Layer]]:
    layout = Layout(("p",), SYMBOLS, WALK.bit_length())
    return layout, find_last_visit(layout)


def _walks(size: Size) -> Instance:
    """Every step of random walks: the heads, and what each past step wrote."""
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(size["walks"]):
        heads = 20 + np.concatenate([[0], np.cumsum(rng.choice([-1, 1], WALK))])
        written = rng.integers(0, len(SYMBOLS), WALK)
        rows += [(heads, written, step) for step in range(1, WALK + 1)]
    return dict(zip(("heads", "written", "step"), map(np.stack, zip(*rows))))


def _last_visit(i: Instance) -> tuple[Array, Array]:
    """I', the last t <= i at which the head stood on the cell of step i + 1, and what t wrote."""
    steps = jnp.arange(1, WALK + 1)
    visits = (steps <= i["step"]) & (i["heads"][:-1] == i["heads"][i["step"]])
    last = jnp.where(visits, steps, 0).max()
    written = jax.nn.one_hot(i["written"][last - 1], len(SYMBOLS))
    return last.astype(float), jnp.where(last > 0, written, 0.0)


def _searched(i: Instance) -> tuple[Layout, Array, list[Array]]:
    """Run Lemma C.3's layers on one step of a walk: scores of each layer, and the states."""
    layout, layers = _search()
    place = lambda name: np.array(layout.groups[name])
    binary = jax.vmap(layout.binary)
    steps = jnp.arange(1, WALK + 1)
    past = jnp.zeros((WALK, layout.width))
    past = past.at[:, place("pos1")].set(binary(steps))
    past = past.at[:, place("pos2")].set(binary(i["heads"][:-1]))
    past = past.at[:, place("sym2")].set(jax.nn.one_hot(i["written"], len(SYMBOLS)))
    h = past[i["step"] - 1].at[place("pos3")].set(layout.binary(i["heads"][i["step"]]))
    all_scores, states = [], []
    for layer in layers:
        p = jax.tree.map(jnp.asarray, layer.params)
        memory = jax.vmap(keys_and_values, (None, 0))(p["dec"], past)
        h, (scores, _) = attend(p["dec"], h, memory, steps <= i["step"])
        states.append(h)
        h = feed_forward(p, h)
        all_scores.append(scores)
    return layout, jnp.stack(all_scores), states


SEARCH: dict[str, Any] = {
    "kind": "construction",
    "judges": (find_last_visit, attend, keys_and_values, feed_forward, Layout.binary),
    "cases": _walks,
    "sizes": ({"walks": 6},),
    "assumptions": f"every step of six random walks of {WALK} steps on five-bit positions",
    "budget": Budget(batch=64),
    "source": "Appendix C.2",
}


def _c3(i: Instance, size: Size) -> Sides:
    """The symbol and the flag of Lemma C.3; Claim C.6 adds that the maximiser is unique."""
    layout, scores, states = _searched(i)
    last, symbol = _last_visit(i)
    flag = states[-1][layout.at("scr4", "left")]
    maximisers = (scores[-1] == scores[-1].max()).sum().astype(float)
    place = scores[-1].argmax().astype(float)
    tell = lambda s: jnp.concatenate(
        [s, jnp.stack([jnp.where(last > 0, 1.0, 0.0), jnp.ones(()), last])]
    )
    found = states[-1][np.array(layout.groups["scr1"])]
    return Sides(
        jnp.concatenate([found, jnp.stack([flag, maximisers, place])]),
        {"printed": tell(symbol), "control": tell(jnp.roll(symbol, 1))},
    )


LEMMA_C3 = Statement(
    id="smapprox.lemmac.3",
    label="Lemma C.3, Claim C.6",
    formula="scr1 = symbol written at the last visit i', by a unique maximiser at i'",
    evaluate=_c3,
    forms=(Form(name="printed", note="With i' = 0, the null key, where there was no visit."),),
    control="another symbol",
    **SEARCH,
)


def _c4(i: Instance, size: Size) -> Sides:
    layout, _, states = _searched(i)
    visited = (_last_visit(i)[0] > 0).astype(float)
    flag = states[0][layout.at("scr4", "left")]
    return Sides(flag, {"printed": visited, "control": 1 - visited})


CLAIM_C4 = Statement(
    id="smapprox.claimc.4",
    label="Claim C.4",
    formula="scr4_1 = 1(i' > 0)",
    evaluate=_c4,
    forms=(Form(name="printed"),),
    control="the flag negated",
    **SEARCH,
)


def _c5(i: Instance, size: Size) -> Sides:
    layout, _, states = _searched(i)
    found = states[-1][np.array(layout.groups["scr3"])]
    last, _ = _last_visit(i)
    value = found @ 2.0 ** np.arange(layout.bits)[::-1]
    return Sides(value, {"printed": last, "control": jnp.abs(last - 1)})


CLAIM_C5 = Statement(
    id="smapprox.claimc.5",
    label="Claim C.5",
    formula="the binary search finds Bin(i')",
    evaluate=_c5,
    forms=(Form(name="printed"),),
    control="off by one",
    **SEARCH,
)


def _bit(i: Instance, t: str, size: Size) -> Array:
    """Bit j + 1 of Bin(t)."""
    return Layout((), (), size["bits"]).binary(i[t])[i["j"]]


def _case2_cases(size: Size) -> Instance:
    """All (i', j, t) with t <= i' and bit j+1 of i' zero."""
    bits, positions = size["bits"], range(1, 2 ** size["bits"])
    rows = [
        (last, j, t)
        for last, j, t in itertools.product(positions, range(bits), positions)
        if t <= last and not last >> (bits - 1 - j) & 1
    ]
    return dict(zip(("last", "j", "t"), np.array(rows).T))


def _case2(i: Instance, size: Size) -> Sides:
    bit = _bit(i, "t", size)
    return Sides(bit, {"printed": 0.0, "corrected": 0.0, "control": 1 - bit})


def _in_case2(i: Instance, size: Size) -> dict[str, Any]:
    return {"t <= i'": i["t"] <= i["last"], "bit j+1 of i' zero": _bit(i, "last", size) == 0}


def _same_prefix(i: Instance, size: Size) -> dict[str, Any]:
    shift = size["bits"] - i["j"]
    return {"the same j-bit prefix": i["last"] >> shift == i["t"] >> shift}


CASE_2 = Statement(
    id="smapprox.claimc.5-case2",
    label="Claim C.5, Case 2",
    formula="t <= i' and bit j+1 of i' zero  =>  bit j+1 of t zero",
    kind="construction",
    evaluate=_case2,
    judges=(Layout.binary,),
    cases=_case2_cases,
    sizes=({"bits": 3}, {"bits": 4}),
    hypotheses=_in_case2,
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E9",
            note="i' = 4 = 100, t = 3 = 011: bit 2 of i' is 0, that of t is 1.",
            counterexample=Counterexample(
                instance={"last": 4, "j": 1, "t": 3}, size={"bits": 3}, ratio=1.0
            ),
        ),
        Form(
            name="corrected",
            hypotheses=_same_prefix,
            note="With different prefixes the position part of the score loses 2.",
        ),
    ),
    control="the bit is one",
    source="Appendix C.2",
)


def _gaps(i: Instance, size: Size) -> Sides:
    """The least distance between different scores, over the layers of the search."""
    _, scores, _ = _searched(i)
    ordered = jnp.sort(scores, axis=1)
    steps = jnp.diff(ordered, axis=1)
    distinct = jnp.isfinite(ordered[:, :-1]) & (steps > 0)
    least = jnp.where(distinct, steps, jnp.inf).min()
    return Sides(jnp.ones(()), {"printed": least, "control": least - 0.5})


GAPS = Statement(
    id="smapprox.claimc.4-gap",
    label="Claims C.4-C.6, score levels",
    formula="1 <= the distance between different scores, in every layer of the search",
    evaluate=_gaps,
    forms=(Form(name="printed", equality="the null key against the best key"),),
    control="the distance less one half",
    **(SEARCH | {"kind": "inequality", "search": "none"}),
)

STATEMENTS = (LEMMA_C3, CLAIM_C4, CLAIM_C5, CASE_2, GAPS)
