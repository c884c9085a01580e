"""Claims C.4 to C.6: the scores of the binary search, and Case 2 of Claim C.5."""

from typing import Any

import jax.numpy as jnp

from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.statements.appendix_c_search import STEPS_ASSUMED, on_search_steps, searched
from jaxbounds.smapprox.statements.margin_cases import every


def _bit(i: Instance, t: str, size: Size) -> Any:
    return Layout((), (), size["bits"]).binary(i[t])[i["j"]]


def _positions(size: Size) -> Instance:
    own = range(1, 2 ** size["bits"])
    return every(last=own, j=range(size["bits"]), t=own)


def _case2(i: Instance, size: Size) -> Sides:
    bit = _bit(i, "t", size)
    return Sides(bit, {"printed": 0.0, "corrected": 0.0, "control": 1 - bit})


def _in_case2(i: Instance, size: Size) -> dict[str, Any]:
    return {"t <= i'": i["t"] <= i["last"], "bit j+1 of i' zero": _bit(i, "last", size) == 0}


def _same_prefix(i: Instance, size: Size) -> dict[str, Any]:
    shift = size["bits"] - i["j"]
    return {"the same j-bit prefix": i["last"] >> shift == i["t"] >> shift}


def _claim_c5(i: Instance, size: Size) -> dict[str, Any]:
    """Check Case 2 of Claim C.5 for each i' >= 1.

    Some walk of the head visits a cell for the last time at step i': it leaves the cell and returns
    at once, so that i = i' + 1.
    """
    bits = size["bits"]
    return {
        "i' > 0 (Case 2)": i["last"] > 0,
        "0 <= j <= w_pos - 1 (Claim C.5)": (i["j"] >= 0) & (i["j"] < bits),
        "1 <= t <= i' (Case 2)": (i["t"] >= 1) & (i["t"] <= i["last"]),
        "i' and t fit into w_pos bits (Appendix C.1)": i["last"] < 2**bits,
        "bit j+1 of i' is 0 (Case 2)": _bit(i, "last", size) == 0,
    }


CASE_2 = Statement(
    id="smapprox.claimc.5.case2",
    label="Claim C.5, Case 2",
    formula="t <= i' and bit j+1 of i' zero  =>  bit j+1 of t zero",
    tex=r"t \le i', \; \mathrm{Bin}(i')_{j+1} = 0 \Rightarrow \mathrm{Bin}(t)_{j+1} = 0",
    kind="construction",
    evaluate=_case2,
    judges=(Layout.binary,),
    cases=_positions,
    enumerates="all i', j and t of three and four bits",
    sizes=({"bits": 3}, {"bits": 4}),
    hypotheses=_in_case2,
    forms=(
        Form(
            name="printed",
            cites="Appendix C.2, proof of Claim C.5, Case 2: \"if t <= i', t must have (j+1)-th "
            'bit 0"',
            erratum="E9",
            note="In binary, i' = 4 is 100 and t = 3 is 011. Bit 2 of i' is 0, so the printed "
            "claim says that bit 2 of t is 0, but bit 2 of t is 1.",
            counterexample=Counterexample(
                instance={"last": 4, "j": 1, "t": 3}, ratio=1.0, meets=_claim_c5
            ),
        ),
        Form(
            name="corrected",
            hypotheses=_same_prefix,
            note="Each bit in which the prefixes of t and i' differ lowers the position part of "
            "the score by 2.",
        ),
    ),
    control="the bit is one",
    source="Appendix C.2",
)


def _gaps(i: Instance, size: Size) -> Sides:
    ordered = jnp.sort(searched(i).scores, axis=1)
    steps = jnp.diff(ordered, axis=1)
    distinct = jnp.isfinite(ordered[:, :-1]) & (steps > 0)
    least = jnp.where(distinct, steps, jnp.inf).min()
    return Sides(jnp.ones(()), {"printed": least, "control": least - 0.5})


GAPS = on_search_steps(
    id="smapprox.claimc.4.gap",
    label="Claims C.4-C.6, score levels",
    formula="1 <= the distance between different scores, in every layer of the search",
    tex=r"\tau_s \ne \tau_t \Rightarrow |\tau_s - \tau_t| \ge 1",
    evaluate=_gaps,
    forms=(
        Form(
            name="printed",
            cites='Appendix C.2, proof of Theorem 4.1: "the largest attention score is always '
            'greater than the second largest by a margin of 1"',
            note="The check leaves out ties (equal scores). The paper allows ties in the next "
            "sentence.",
            equality="the null key against the best key",
        ),
    ),
    control="the distance less one half",
    kind="inequality",
    search="none",
    assumptions=f"{STEPS_ASSUMED}; decoder self-attention only: the encoder's "
    "scores are those of Claim C.4 with pos1 for pos2",
)

STATEMENTS = (CASE_2, GAPS)
