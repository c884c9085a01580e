"""Lemma C.3 and Claims C.4-C.6: the binary search for the last visit of a cell."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Integers, Signs
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox.layers import find_last_visit
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.statements.appendix_c import SYMBOLS, two_states
from jaxbounds.smapprox.transformer import attend, feed_forward, keys_and_values

WALK = 31
"""The number of steps of each random walk of the head; a larger number needs more memory."""


def _heads(i: Instance) -> Array:
    """Return the head's positions from its moves, too few to leave the 32 codes of positions."""
    return 20 + jnp.append(0, jnp.cumsum(i["moves"].astype(int)))


def _last_visit(i: Instance) -> tuple[Array, Array]:
    """Return i', the last step <= i with the head on the cell of step i + 1, and its symbol."""
    steps, heads = jnp.arange(1, WALK + 1), _heads(i)
    visits = (steps <= i["step"]) & (heads[:-1] == heads[i["step"]])
    last = jnp.where(visits, steps, 0).max()
    written = jax.nn.one_hot(i["written"][last - 1], len(SYMBOLS))
    return last.astype(float), jnp.where(last > 0, written, 0.0)


class Search(NamedTuple):
    """The states and scores of the layers of Lemma C.3 at one step of a random walk of the head.

    Attributes:
        layout: the positions of the named coordinates in a state.
        start: the state (C.5) before the first layer.
        scores: the attention scores in every layer.
        attended: the states after each attention of each layer.
        states: the states after each layer.
    """

    layout: Layout
    start: Array
    scores: Array
    attended: list[Array]
    states: list[Array]


def searched(i: Instance) -> Search:
    """Run the layers of Lemma C.3 on one step of a random walk of the head."""
    layout, heads = two_states(WALK.bit_length()), _heads(i)
    place = lambda name: np.array(layout.groups[name])
    binary = jax.vmap(layout.binary)
    steps = jnp.arange(1, WALK + 1)
    past = jnp.zeros((WALK, layout.width))
    positions = {"pos1": steps, "pos2": heads[:-1], "pos3": heads[1:]}
    for name, values in positions.items():
        past = past.at[:, place(name)].set(binary(values))
    past = past.at[:, place("sym2")].set(jax.nn.one_hot(i["written"], len(SYMBOLS)))
    past = past.at[:, place("st")].set(jax.nn.one_hot(heads[1:] % 2, 2))
    h = start = past[i["step"] - 1]
    scores, attended, states = [], [], []
    for layer in find_last_visit(layout):
        p = jax.tree.map(jnp.asarray, layer.params)
        memory = jax.vmap(keys_and_values, (None, 0))(p["dec"], past)
        h, (found, _) = attend(p["dec"], h, memory, steps <= i["step"])
        attended.append(h)
        h = feed_forward(p, h)
        scores.append(found)
        states.append(h)
    return Search(layout, start, jnp.stack(scores), attended, states)


def _with(run: Search, **groups: Any) -> Array:
    h = run.start
    for name, values in groups.items():
        h = h.at[np.array(run.layout.groups[name])].set(values)
    return h


STEPS_ASSUMED = f"steps of 512 random walks of {WALK} steps on five-bit positions"
on_search_steps = functools.partial(
    Statement,
    kind="construction",
    judges=(find_last_visit, attend, keys_and_values, feed_forward, Layout.binary),
    over={"moves": Signs(WALK), "written": Integers(0, 2, WALK), "step": Integers(1, WALK)},
    sizes=({},),
    assumptions=STEPS_ASSUMED,
    budget=Budget(samples=512),
    source="Appendix C.2",
)


def _flags(last: Array, third: Any = 0.0) -> Array:
    return jnp.stack([(last > 0).astype(float), jnp.zeros(()), jnp.asarray(third, float)])


def _c3(i: Instance, size: Size) -> Sides:
    """Check every part of (C.6). Claim C.6 says that the maximiser is also unique."""
    run = searched(i)
    last, symbol = _last_visit(i)
    top = run.scores[-1]
    unique = jnp.stack([(top == top.max()).sum().astype(float), top.argmax().astype(float)])
    tell = lambda s: _with(run, scr1=s, scr4=_flags(last))
    attended = jnp.stack([jnp.ones(()), last])
    return Sides.pairs(
        {
            "printed": (run.states[-1], tell(symbol)),
            "printed C.6": (jnp.append(run.states[-1], unique), jnp.append(tell(symbol), attended)),
            "control": (run.states[-1], tell(jnp.roll(symbol, 1))),
        }
    )


LEMMA_C3 = on_search_steps(
    id="smapprox.lemmac.3",
    label="Lemma C.3, Claim C.6",
    formula="scr1 = symbol written at the last visit i', by a unique maximiser at i'; all else "
    "as before",
    tex=r"i' = \max\{1 \le t \le i : l_{t-1} = l_i\}, \quad f(h_i, H_i, \theta)^{\mathrm{scr}_1} = "
    r"\mathbf{1}(u_{i'}) \text{ if } i' > 0, \; \mathbf{0} \text{ otherwise}, \quad "
    r"f(h_i, H_i, \theta)^{\mathrm{scr}_4}_1 = \mathbb{1}(i' > 0)",
    evaluate=_c3,
    forms=(
        Form(
            name="printed",
            cites="(C.6), all seven lines and the sentence after them",
            note="If the tape head has not visited the cell before, then i' = 0, which is the "
            "index of the attention's null key.",
        ),
        Form(name="printed C.6", cites="Claim C.6; its proof: the attention attends exactly to i'"),
    ),
    control="another symbol",
)


def _c4(i: Instance, size: Size) -> Sides:
    run = searched(i)
    last, _ = _last_visit(i)
    right = _with(run, scr4=_flags(last))
    return Sides(
        run.attended[0],
        {"printed": right, "control": _with(run, scr4=_flags(1 - jnp.minimum(last, 1.0)))},
    )


CLAIM_C4 = on_search_steps(
    id="smapprox.claimc.4",
    label="Claim C.4",
    formula="scr4_1 = 1(i' > 0), scr1 = scr3 = 0, all else as before",
    tex=r"f^{(0)}(h_i, H_i, \theta)^{\mathrm{scr}_4}_1 = \mathbb{1}(i' > 0)",
    evaluate=_c4,
    forms=(Form(name="printed", cites="(C.8), all three lines"),),
    control="the flag negated",
)


def _c5(i: Instance, size: Size) -> Sides:
    """Compare the search layers' states with (C.10), (C.11) and (C.14), for every bit j."""
    run = searched(i)
    bits, (last, _) = run.layout.bits, _last_visit(i)
    code = run.layout.binary(last.astype(int))
    prefix = lambda j, code: code * (np.arange(bits) < j).astype(float)
    told = lambda code: jnp.stack(
        [_with(run, scr3=prefix(j, code), scr4=_flags(last)) for j in range(bits + 1)]
    )
    third = [_with(run, scr3=prefix(j, code), scr4=_flags(last, code[j])) for j in range(bits)]
    found = jnp.stack(run.states[: bits + 1])
    return Sides.pairs(
        {
            "printed": (found, told(code)),
            "printed (C.14)": (jnp.stack(run.attended[1 : bits + 1]), jnp.stack(third)),
            "control": (found, told(run.layout.binary(jnp.abs(last.astype(int) - 1)))),
        }
    )


CLAIM_C5 = on_search_steps(
    id="smapprox.claimc.5",
    label="Claim C.5",
    formula="after j layers scr3 = Bin_j(i'), for every j; all else as before",
    tex=r"f^{(j+1)}(h_i^{(j)}, H_i^{(j)}, \theta)^{\mathrm{scr}_3} = \mathrm{Bin}_{j+1}(i') \quad "
    r"(0 \le j < w_{\mathrm{pos}})",
    evaluate=_c5,
    forms=(
        Form(name="printed", cites="(C.10) and (C.11), all lines and coordinates, every j"),
        Form(name="printed (C.14)", cites="(C.14): the bit in scr4_3 after the attention, every j"),
    ),
    control="off by one",
)


STATEMENTS = (LEMMA_C3, CLAIM_C4, CLAIM_C5)
