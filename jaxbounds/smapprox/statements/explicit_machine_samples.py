"""Theorem 4.1: certified sample sizes of compiled machines, and margins from counts alone."""

import functools
import math
from typing import Any

import numpy as np

from jaxbounds.claims.sets import Box, Integers, OneOf
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox import generalization as general
from jaxbounds.smapprox.certified_machine import (
    machine_margin_by_counts,
    machine_margin_lower,
    norms_by_counts,
)
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import l1_norm, parameter_count
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.statements.explicit_samples import CONFIDENCE, WIDER
from jaxbounds.smapprox.statements.margin_cases import every

LENGTHS = (4, 19)
"""The values of log2(T + 1) that the statements check: T = 15 and T = 524287 steps."""
ANY: dict[str, Any] = {"k": Box(3, 1e4), "symbols": Box(2, 1e3), "w_pos": Box(2, 64)}
"""The ranges of the numbers k of states, |A| of symbols and w_pos of position bits."""


def _machine_cases(size: Size) -> Instance:
    of, count = every(log_T=LENGTHS, machine=range(len(LIBRARY))), len(LIBRARY) * len(LENGTHS)
    growing = {name: np.geomspace(box.lo, box.hi, count) for name, box in ANY.items()}
    return of | growing | {"epsilon": np.full(count, 0.5)}


@functools.cache
def _machine(number: int, log_T: int) -> tuple[float, int, float, float, tuple[int, int, int]]:
    """Return a machine's norm alpha, parameter count p, two margin bounds, and (k, |A|, w_pos).

    The first margin bound uses measured norms, the second only the numbers k of states, |A| of
    symbols and w_pos of position bits.
    """
    machine = [*LIBRARY.values()][number]().machine
    compiled = compile_machine(machine, 2**log_T - 1, correction=THIRDS)
    layout, params = compiled.layout, compiled.params
    counts = len(layout.states), len(layout.symbols), layout.bits
    margins = machine_margin_lower(compiled), machine_margin_by_counts(*counts, THIRDS)
    return l1_norm(params), parameter_count(params), *margins, counts


def _over(k: float, symbols: float, bits: float) -> tuple[float, float]:
    order = k * symbols + bits
    return 60 * (bits + 10) * order, 20 * order * bits


def _machines(i: Instance, size: Size) -> Sides:
    alpha, p, gamma, by_counts, counts = _machine(int(i["machine"]), int(i["log_T"]))
    epsilon, k, symbols, w = (float(i[name]) for name in ("epsilon", *ANY))
    over = math.prod(_over(*counts))
    cover = ((2 * over) ** 2 * math.log(2 * p * WIDER**2) + CONFIDENCE) / epsilon
    counting = (p * math.log1p(4 * over) + CONFIDENCE) / epsilon
    single = general.realizable_sample_complexity(alpha, p, gamma, epsilon)
    wide = general.realizable_sample_complexity(alpha, p * WIDER**2, gamma, epsilon)
    per_scale = 600 * (1 + math.log(1 / epsilon)) / epsilon
    chained = general.chained_sample_complexity(alpha, p, gamma, epsilon)
    any_margin = machine_margin_by_counts(k, symbols, w, THIRDS)
    return Sides.pairs(
        {
            "derived": (chained, (over * per_scale) ** 2 * math.log(2 * p)),
            "sharpened": (wide, cover),
            "sharpened counting": (single, counting),
            "derived counts": (by_counts, gamma),
            "derived margin": (1.0, _over(k, symbols, w)[1] * any_margin),
            "control": (single, counting / 2),
        }
    )


THEOREM_41 = Statement(
    id="smapprox.thm4.1.explicit",
    label="Theorem 4.1, with its constants",
    formula="n <= (p log(1 + 4 A) + log 100) / epsilon, A = 1200 (w_pos + 10) w_pos (k|A| + "
    "w_pos)^2 >= alpha / gamma",
    tex=r"n \le \frac{p \log(1 + 4 A) + \log 100}{\epsilon}, \quad \frac{\alpha}{\gamma} \le A = "
    r"1200 (w_{\mathrm{pos}} + 10) w_{\mathrm{pos}} (k |\mathcal{A}| + w_{\mathrm{pos}})^2",
    kind="inequality",
    search="random",
    budget=Budget(samples=16, restarts=2, steps=25),
    evaluate=_machines,
    judges=(
        general.realizable_sample_complexity,
        general.chained_sample_complexity,
        machine_margin_lower,
        machine_margin_by_counts,
        norms_by_counts,
        l1_norm,
    ),
    host=True,
    over={"machine": Integers(0, len(LIBRARY) - 1), "log_T": OneOf(*LENGTHS)}
    | {"epsilon": Box(1e-3, 0.5), **ANY},
    cases=_machine_cases,
    sizes=({},),
    forms=(
        Form(
            name="derived",
            note=(
                "The statement smapprox.thm4.1.width bounds the parameter norm alpha. The other "
                "steps are those of Theorem 3.1's proof."
            ),
        ),
        Form(
            name="sharpened",
            note="The cover of N networks has log N = (2 alpha/gamma)^2 log 2p for p parameters of "
            "l_1 norm alpha and margin gamma. The check takes p from a network 2^30 times as wide "
            "as the compiled machine.",
        ),
        Form(
            name="sharpened counting",
            note=(
                "The number p of parameters is of the order of w^2 log T for the width w. So the "
                "sample size n depends on T only through log T."
            ),
        ),
        Form(
            name="derived counts",
            equality="parity: its attention binds, whose norms are exact",
            note="This margin bound uses only the numbers k of states, |A| of symbols and w_pos of "
            "position bits. It is at most the bound from measured norms, because |W1|^2 <= max(3 "
            "k|A|, w_pos (2 w_pos - 1), 9).",
        ),
        Form(
            name="derived margin",
            note=(
                "The margin bound gamma from the counts k (states), |A| (symbols) and w_pos "
                "(position bits) gives 1/gamma <= 20 (k|A| + w_pos) w_pos."
            ),
        ),
    ),
    control="half of what counting parameters gives",
    assumptions="the nine machines at T = 15 and 524287, epsilon from 1/1000 to 1/2; any machine, "
    "k <= 10^4, |A| <= 1000 and w_pos <= 64, for the last",
    source="Section 4",
)

STATEMENTS = (THEOREM_41,)
