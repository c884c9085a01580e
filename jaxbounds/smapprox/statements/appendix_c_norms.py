"""The claims of Lemmas C.1 to C.8 about norms, layer by layer."""

from typing import Any

from jaxbounds.claims.statements import Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox.compile_machine import START
from jaxbounds.smapprox.feedforward import l1_norm
from jaxbounds.smapprox.layers import combine, find_last_visit, ripple_adder, transition
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.machines import TuringMachine, total
from jaxbounds.smapprox.statements.margin_cases import every


def _machine(states: int, symbols: int) -> TuringMachine:
    running = tuple(f"z{n}" for n in range(states - 2))
    names, alphabet = (*running, "accept", "reject"), tuple("_abcdefghijklmnop"[:symbols])
    step = lambda z, a: (names[(z + a + 1) % states], alphabet[(a + z) % symbols], (-1) ** (z + a))
    given = {(names[z], s): step(z, a) for z in range(states - 2) for a, s in enumerate(alphabet)}
    return TuringMachine(
        states=names,
        alphabet=alphabet,
        blank="_",
        transitions=total(given, names, alphabet, terminal=("accept", "reject")),
        start="z0",
    )


def _sizes(size: Size) -> Instance:
    return every(states=(3, 8, 20), symbols=(2, 5, 12), bits=(2, 6, 20))


def _norms(i: Instance, size: Size) -> Sides:
    machine = _machine(int(i["states"]), int(i["symbols"]))
    layout = Layout((START, *machine.states), tuple(machine.alphabet), int(i["bits"]))
    nz, na, wp = len(layout.states), len(layout.symbols), layout.bits
    first, *bits, copy = find_last_visit(layout)
    content = lambda layer: l1_norm({"W1": layer.W1, "b1": layer.b1})
    summed = lambda layers: sum(l1_norm(layer.params) for layer in layers)
    decoder = content(copy) + l1_norm(copy.dec)
    search = l1_norm(first.dec) + summed(bits) + decoder
    ripple = summed(ripple_adder(layout))
    return Sides.pairs(
        {
            "printed C.1": (summed(transition(layout, machine, START)), 6 * (nz * na + wp)),
            "printed C.2": (ripple, 14 * wp * (nz + na + wp)),
            "printed C.3": (search, 26 * wp * (nz + na + wp)),
            "printed C.4": (l1_norm(first.dec), 8 * wp),
            "printed C.5": (max(l1_norm(layer.params) for layer in bits), 20 * (nz + na + wp)),
            "printed C.6": (decoder, 18 * (nz + na + wp)),
            "printed C.7": (l1_norm(copy.enc), 8 * (na + wp)),
            "printed C.8": (summed(combine(layout, "_")), 11 * (nz + na + wp)),
            "control": (ripple, 14 * (nz + na + wp)),
        }
    )


ORDERS = {
    "C.1": "Lemma C.1: O(|Z||A| + w_pos)",
    "C.2": "Lemma C.2: O(w_pos (|Z| + |A| + w_pos))",
    "C.3": "Lemma C.3: O(w_pos (|Z| + |A| + w_pos))",
    "C.4": "Claim C.4: O(w_pos)",
    "C.5": "Claim C.5: O(|Z| + |A| + w_pos)",
    "C.6": "Claim C.6: O(|Z| + |A| + w_pos)",
    "C.7": "Lemma C.7: O(|A| + w_pos)",
    "C.8": "Lemma C.8: O(|Z| + |A| + w_pos)",
}
"""The bound that each lemma claims for |theta|_1, the l_1 norm of its layers' weights."""

NORMS = Statement(
    id="smapprox.appc.norms",
    label="Lemmas C.1-C.3, C.7, C.8 and Claims C.4-C.6, norms",
    formula="|theta|_1 <= 6 (|Z||A| + w_pos), 14 w_pos (|Z| + |A| + w_pos), ..., one by one",
    tex=r"\|\theta_{C.1}\|_1 = O(|\mathcal{Z}| |\mathcal{A}| + w_{\mathrm{pos}}), \; "
    r"\|\theta_{C.2}\|_1, \|\theta_{C.3}\|_1 = O(w_{\mathrm{pos}} (|\mathcal{Z}| + |\mathcal{A}| + "
    r"w_{\mathrm{pos}})), \; \ldots",
    kind="inequality",
    evaluate=_norms,
    judges=(transition, ripple_adder, find_last_visit, combine, l1_norm),
    host=True,
    cases=_sizes,
    enumerates="|Z| of 4, 9 and 21, |A| of 2, 5 and 12, w_pos of 2, 6 and 20, all combinations",
    sizes=({"machines": 27},),
    forms=tuple(
        Form(
            name=f"printed {item}",
            cites=order,
            note="The printed order of the norm holds with an explicit constant, for |Z| >= 4 "
            "states, |A| >= 2 symbols "
            "and w_pos >= 2 position bits. The check computes the norm from all entries.",
        )
        for item, order in ORDERS.items()
    ),
    control="the adder without the factor w_pos",
    assumptions="|Z| up to 21, |A| up to 12, w_pos up to 20; the check leaves out corrections and "
    "the identity maps of unused modules",
    source="Appendix C.2",
)

STATEMENTS: tuple[Any, ...] = (NORMS,)
