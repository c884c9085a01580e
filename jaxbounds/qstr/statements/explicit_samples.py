"""Statements on the rates and sample numbers of Theorems 4, 7 and 10, with explicit constants."""

import functools
import math
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import covers, excess
from jaxbounds.qstr.links import LINKS
from jaxbounds.qstr.statements.common import searched_on_host

TARGET = 0.5
"""The target risk, in units of the label's variance. A larger target needs fewer samples."""


def _decay(i: Instance, size: Size) -> Sides:
    n, tau = float(i["n"]), 4.0
    f = covers.TransformerClass(m=2, H=1, De=100, r_a=1.4, R_w=1.4, r_QK=10.0, r_z=20.0)
    covering = lambda eps: covers.transformer_log_covering(eps, f)
    given = {"tau": tau, "delta": 0.01}
    slow = excess.truncated_gap(covering, n, sharp=False, **given)
    fast = excess.truncated_risk(covering, n, **given)
    return Sides.pairs(
        {
            "derived": (slow, math.sqrt(math.log(n) / n)),
            "sharpened": (fast, math.log(n) / n),
            "control": (slow, math.log(n) / n),
        }
    )


DECAY = Statement(
    id="qstr.thm10.rate",
    label="Theorems 4, 7 and 10 (in n)",
    formula="the gap is O~(n^{-1/2}), and O~(1/n) where the samples are fitted",
    tex=r"R_\tau - \hat R_\tau = \tilde O(n^{-1/2}), \quad R_\tau = \tilde O(1/n) \text{ where } "
    r"\hat R_\tau = 0",
    kind="rate",
    judges=(excess.truncated_gap, excess.truncated_risk, covers.transformer_log_covering),
    host=True,
    cases=lambda size: {"n": 2.0 ** np.arange(26, 61, 2)},
    evaluate=_decay,
    forms=(
        Form(
            name="derived",
            sense="at least",
            exponent=(1.0, 1.05),
            note="The generalisation gap is of order sqrt(log(n)/n). The statement "
            "qstr.thm10.order checks the order of the printed bounds.",
        ),
        Form(
            name="sharpened",
            sense="at least",
            exponent=(1.0, 1.05),
            note=(
                "The function `truncated_risk` bounds the generalisation gap. If a network of the "
                "class represents the link exactly, the bound has no term of order 1/sqrt n."
            ),
        ),
    ),
    control="1/n for the first",
    sizes=({},),
    assumptions="formulas are compared, for one class, n from 2^26 to 2^60: no data and no "
    "minimiser stands behind them; the gaps of a class on data are qstr.cor19 and qstr.lem18",
    source="Theorems 4, 7 and 10",
)


def _encoding_dimension(N: int) -> int:
    return math.ceil(16 * math.log(N))


@functools.lru_cache
def transformer_samples(N: int, d: int, q: int, form: str, target: float = TARGET) -> float:
    """Return the number of samples after which Theorem 4's Transformer has at most the target risk.

    The link is linear; a network of two units with r_a = 2 and r_w = 1 represents the link.
    """
    setting, de = excess.Setting(N=N, d=d, q=q), _encoding_dimension(N)
    network: dict[str, Any] = {"m": 2, "r_a": 2.0, "r_w": 1.0, "eps": target / 100}
    risk = lambda n: excess.transformer_risk(n, setting, de=de, form=form, **network)
    return excess.samples_needed(risk, target)


@functools.lru_cache
def recurrent_samples(N: int, d: int, q: int, form: str, target: float = TARGET) -> float:
    """Return the number of samples after which Proposition 28's RNN has at most the target risk."""
    setting, link = excess.Setting(N=N, d=d, q=q), LINKS["linear"]
    assert link.two_layer is not None
    network = link.two_layer(link.init(jax.random.key(0), q, d))
    f = excess.recurrent_class(setting, network, de=_encoding_dimension(N))
    risk = lambda n: excess.recurrent_risk(n, setting, f, form=form)
    return excess.samples_needed(risk, target)


def _lengths(i: Instance, size: Size) -> Sides:
    N = int(i["N"])
    needed = transformer_samples(N, 2, 1, "clipped")
    other = recurrent_samples(N, 2, 1, "clipped")
    scale = math.log(N) ** 4
    return Sides.pairs(
        {
            "derived": (transformer_samples(N, 2, 1, "symmetrised"), scale**2),
            "sharpened": (needed, scale),
            "sharpened RNN": (other, scale),
            "control": (needed, math.sqrt(scale)),
        }
    )


LENGTHS = Statement(
    id="qstr.thm4.length",
    label="Theorems 4 and 7 (in N)",
    formula="the samples needed for risk 1/2 grow with log N, for Transformers and RNNs alike",
    tex=r"n = O(\mathrm{polylog}(N))",
    kind="rate",
    judges=(
        excess.samples_needed,
        excess.minimiser_risk,
        excess.transformer_risk,
        excess.recurrent_class,
        excess.recurrent_risk,
    ),
    host=True,
    cases=lambda size: {"N": 4 ** np.arange(2, 12)},
    evaluate=_lengths,
    forms=(
        Form(
            name="derived",
            sense="at most",
            exponent=(0.2, 1.0),
            note="The paper's chain of lemmas, with every constant, gives a number of samples of "
                 "order (log N)^8 at most.",
        ),
        Form(
            name="sharpened",
            sense="at most",
            exponent=(0.4, 1.0),
            note=(
"A proof with one cover and clipped predictions gives a number of samples of order "
"(log N)^4 at most. The factor de^2 contributes two of the four powers."
),
        ),
        Form(name="sharpened RNN", sense="at most", exponent=(0.4, 1.0),
             note=(
"The task is simple-qSTR, and the transitions of the RNN do not depend on its states. "
"The RNN and the Transformer need numbers of samples of the same order."
)),
    ),
    control="(log N)^2, as if De did not grow",
    sizes=({},),
    assumptions="1STR with the linear link, d = 2, de = 16 log N",
    source="Theorems 4 and 7",
)  # fmt: skip


def _separation(i: Instance, size: Size) -> Sides:
    N, d, target = int(i["N"]), 10, float(i["target"])
    feedforward = (1 - target) * N * d
    longer = transformer_samples(N << 23, d, 1, "symmetrised", target)
    needed = transformer_samples(N, d, 1, "clipped", target)
    return Sides.pairs(
        {
            "derived": (longer, feedforward * 2**23),
            "sharpened": (needed, feedforward),
            "control": (needed, feedforward / 2),
        }
    )


SEPARATION = searched_on_host(
    id="qstr.thm1.length",
    label="Theorem 1 (where the bounds separate)",
    formula="n_TR(t) <= (1 - t) N d <= n_FFN(t) for N >= 2^36, d = 10, t from 2/5 to 3/5",
    tex=r"n_{\mathrm{TR}}(t) \le (1 - t) N d \le n_{\mathrm{FFN}}(t), \quad N \ge 2^{36}, "
    r"\ d = 10, \ \frac{2}{5} \le t \le \frac{3}{5}",
    kind="inequality",
    judges=(excess.samples_needed, excess.transformer_risk),
    over={"N": Integers(2**36, 2**41), "target": Box(0.4, 0.6)},
    cases=lambda size: {"N": 2 ** np.arange(36, 41), "target": np.full(5, TARGET)},
    evaluate=_separation,
    forms=(
        Form(
            name="derived",
            note=(
                "The paper's chain of lemmas, with every constant, shows for N >= 2^59 that "
                "Transformers need fewer samples than feedforward networks."
            ),
        ),
        Form(
            name="sharpened",
            note=(
                "A proof with one cover and clipped predictions shows for N >= 2^36 that "
                "Transformers need fewer samples than feedforward networks."
            ),
        ),
    ),
    control="half as many tokens",
    sizes=({},),
    assumptions="simple-1STR with the linear link, d = 10, de = 16 log N, normal tokens; upper "
    "bounds for Transformers against Theorem 6, so that below the bounds decide nothing",
    source="Theorems 1, 4 and 6",
    budget=Budget(samples=5, restarts=2, steps=8),
)

STATEMENTS = (DECAY, LENGTHS, SEPARATION)
