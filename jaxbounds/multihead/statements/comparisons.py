"""Section 5.3: conditions on the number of heads, checked for scaled oracle parameters theta*.

No multiple of theta* satisfies equation (12) or the hypothesis of Theorem 3. Some multiples of
theta* satisfy the condition (3) of Theorem 1 (erratum E27).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.multihead.model import head_output
from jaxbounds.multihead.oracle_bounds import (
    TargetSlacks,
    gamma_attention,
    log_target_scale,
    saturation_scale,
    target_slacks,
)
from jaxbounds.multihead.statements.contexts import by_hand, quiet_context, unfold


def _candidates(key: jax.Array, size: Size) -> Instance:
    values = jax.random.uniform(key, (6,))
    return {
        "log_S": 12 * values[0],
        "log_H": 40 * values[1],
        "log_C": 40 * values[2] - 20,
        "p": 4 * values[3] + 1e-3,
        "log_n": 1.1 + 15 * values[4],
        "c": 3 * values[5] + 1e-3,
    }


def _more_samples(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    positive = (instance["log_H"] >= 0) & (instance["p"] > 0) & (instance["log_S"] >= 0)
    return {
        "n >= 3": instance["log_n"] >= 1.0986,
        "H >= 1, p > 0, c > 0, S >= 1": positive & (instance["c"] > 0),
    }


def _keep_candidate(instance: Instance, size: Size) -> Instance:
    low = {"log_S": 0.0, "log_H": 0.0, "log_C": -40.0, "p": 1e-3, "log_n": 1.0986, "c": 1e-3}
    high = {"log_S": 40.0, "log_H": 80.0, "log_C": 40.0, "p": 4.0, "log_n": 40.0, "c": 3.0}
    return {name: jnp.clip(x, low[name], high[name]) for name, x in instance.items()}


def _slacks(instance: Instance, **scaling: Any) -> TargetSlacks:
    names = ("log_S", "log_H", "log_C", "p", "log_n")
    return target_slacks(*(instance[name] for name in names), **scaling)


def _no_target(instance: Instance, size: Size) -> Sides:
    s, scaled = _slacks(instance), _slacks(instance, scaling=instance["c"])
    pairs = {
        "printed": (s.saturates, s.heads),
        "printed, any c": (scaled.saturates, scaled.heads),
        "printed, as per (3)": (s.saturates, s.heads_product),
        "sharpened S5": (s.saturates, s.heads_sharp),
        "control": (s.saturates, s.heads_sharp + instance["log_S"]),
    }
    lhs = {name: jnp.exp(jnp.minimum(*both) / 8) for name, both in pairs.items()}
    return Sides(lhs=lhs, rhs=dict.fromkeys(lhs, 1.0))


def _large_target(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    S, log_n = jnp.exp(instance["log_S"]), instance["log_n"]
    drawn = by_hand([[True] + [False] * 9] * 2, y=[1, -1]) | {"S": S, "log_eps": -log_n}
    drawn = {name: jnp.asarray(value) for name, value in drawn.items()}
    c = unfold(drawn)
    inner = jnp.exp(instance["log_C"] - instance["p"] * instance["log_H"])
    gamma, tolerance = gamma_attention(c, jnp.exp(-log_n)), jnp.exp(-log_n)
    outer = log_n / gamma * jnp.exp(-instance["log_H"] / 2)
    head = jnp.sqrt(outer**2 + inner**2)
    root = jnp.exp(instance["log_H"] / 2)
    of_head = lambda X: head_output(outer * c.direction["U"], inner * c.direction["W"], X)
    margins = c.y * root * jax.vmap(of_head)(c.X)
    return {
        **quiet_context(drawn, size),
        "C > 0, p > 0, n > 1, H >= 1 (Section 5.3)": jnp.isfinite(instance["log_C"])
        & (instance["p"] > 0)
        & (log_n > 0)
        & (instance["log_H"] >= 0),
        "||W_h|| >= Gamma_eps (Proposition 3; Section 5.3)": inner
        >= saturation_scale(c, tolerance),
        "margin log(n), so low empirical loss (Section 5.3)": jnp.min(margins)
        >= log_n * (1 - 1e-9),
        "(3) with constant 1000 (Theorem 1)": root
        >= 1000 * 4 * c.T**0.5 * c.R**5 * head * (root * head) ** 3,
    }


TARGET = Statement(
    id="multihead.sec5.3.target",
    label="Section 5.3, eq. (12)",
    formula="no (p, C) has S^2 >= H^p / C and sqrt(H) >= S^5 ||theta||^3",
    tex=r"\nexists \, (p, C): \quad S^2 \ge \frac{H^p}{C}, \quad H^{1/2} \ge S^5 "
    r"\|\tilde\theta\|^3",
    kind="inequality",
    evaluate=_no_target,
    judges=(target_slacks,),
    forms=(
        Form(
            name="printed",
            cites="Section 5.3, below eq. (12): 'no possible choices for p and C'",
            note=(
                "This version of the claim assumes eq. (12) for the target W_h = C H^{-p} W_opt. "
                "Saturated attention needs S^2 >= H^p / C, which makes ||W|| >= sqrt(H) / S^2, so "
                "(12) implies S >= H. For ||U|| = log(n) / S, eq. (12) also needs sqrt(H) >= S^2 "
                "log(n)^3, which contradicts S >= H. This version covers the paper's case ||W|| "
                ">= ||U||, and the opposite case, which the paper omits."
            ),
        ),
        Form(
            name="printed, any c",
            cites="Section 5.3: 'no such value of c exists', H^c >~ S^5 ||theta||^3",
            note=(
                "The choice U_h = log(n) H^{c-1} / gamma_attn U_opt gives the margin log n. This "
                "choice needs H^{3/2 - c} <= S and S^2 log(n)^3 <= H^{3/2 - 2c}, and the two "
                "inequalities contradict each other."
            ),
        ),
        Form(
            name="printed, as per (3)",
            cites="Section 5.3: 'does not yield a target parameter that simultaneously achieves "
            "low empirical loss and allows choosing H large enough as per (3)'",
            erratum="E27",
            reading="as Theorem 1 prints it",
            note=(
                "Condition (12) omits the factor ||theta||_{2,inf} of (3), which is of order "
                "log(n) / S^2 here. At H = S^2 and ||W_h|| of order 1/S^2, the right side of (3) "
                "is of order log(n)^4. The left side of (3) is S, so the ratio of the left to the "
                "right side grows without bound."
            ),
            counterexample=Counterexample(
                instance={
                    "log_S": 32.23619130191664,  # S = 1e14, H = S^2, n = 100, p = 1
                    "log_H": 64.47238260383328,
                    "log_C": 4.0,
                    "p": 1.0,
                    "log_n": 4.605170185988092,
                    "c": 0.5,
                },
                ratio=1.6487212707001282,
                meets=_large_target,
            ),
        ),
        Form(
            name="sharpened S5",
            note=(
                "No target theta exists even under the weaker condition sqrt(H) >= S^3 "
                "||theta||^2. "
                "This condition is enough if sharpening S5 bounds the Hessian's mixed block. The "
                "conditions then give S >= sqrt(H) and sqrt(H) >= S log(n)^2, which contradict "
                "each other for n >= 3."
            ),
        ),
    ),
    control="sqrt(H) >= S^2 ||theta||^2",
    source="Section 5.3; minima of both ratios, to the power 1/8",
    sample=_candidates,
    sizes=({"C": 1},),
    hypotheses=_more_samples,
    project=_keep_candidate,
    assumptions="n >= 3, S >= 1, H >= 1, p > 0; constants hidden by >~ are one",
    budget=Budget(samples=256, restarts=4, steps=100),
)


def _exponent(instance: Instance, size: Size) -> Sides:
    h, p, n = instance["log_H"], instance["p"], jnp.log(instance["log_n"])
    corrected = log_target_scale(h, p, instance["log_n"])
    return Sides(
        # H^{1/2} = log(n)^5 C^{-2} H^{2 p - 1}, solved for log C.
        lhs=(5 * n + (2 * p - 1) * h - h / 2) / 2,
        rhs={"printed": corrected + h / 2, "corrected": corrected, "control": corrected + h / 4},
        error=1e-14 * (jnp.abs(n) + jnp.abs(h) * (1 + p)),
    )


def _first_case(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Return the hypotheses of Section 5.3 for the display below (12), in the case ||W|| >= ||U||.

    An H or n within .002 of an integer counts, because exp(log 10^12) has an error of up to .0018.
    """
    log_S, log_H, log_C, p, log_n = (
        instance[name] for name in ("log_S", "log_H", "log_C", "p", "log_n")
    )
    whole = lambda log: jnp.abs(jnp.exp(log) - jnp.round(jnp.exp(log))) < 2e-3
    return {
        "H and n are integers, n > 1, H >= 1 (Section 5.3)": whole(log_H)
        & whole(log_n)
        & (log_n > 0)
        & (log_H >= 0),
        "p > 0, C > 0 (Section 5.3)": (p > 0) & jnp.isfinite(log_C),
        "S >= 1, so that R >= 1 (Assumptions 1 and 3)": log_S >= 0,
        "S^2 >= H^p / C (Section 5.3, above (12))": 2 * log_S >= p * log_H - log_C,
        "S >= log(n) H^{p - 1/2} / C, from ||W|| >= ||U|| (Section 5.3, below (12))": log_S
        >= jnp.log(log_n) + (p - 0.5) * log_H - log_C,
        "H^{1/2} >= log(n)^5 C^{-2} H^{2p-1}, the left side of the iff (Section 5.3)": log_H / 2
        >= 5 * jnp.log(log_n) - 2 * log_C + (2 * p - 1) * log_H,
    }


EXPONENT = Statement(
    id="multihead.sec5.3.exponent",
    label="Section 5.3, below eq. (12)",
    formula="H^{1/2} >= log(n)^5 C^{-2} H^{2p-1} iff C >= log(n)^{5/2} H^{p-1/4}",
    tex=r"H^{1/2} \ge \frac{\ln^5(n)}{C^2} H^{2 p - 1} \iff H^{p - 1/4} \le "
    r"\frac{C}{\ln^{5/2}(n)}",
    kind="identity",
    evaluate=_exponent,
    judges=(log_target_scale,),
    forms=(
        Form(
            name="printed",
            cites="Section 5.3, the display below 'we get the following conditions on H'",
            erratum="E10",
            note=(
                "The correct exponent is p - 3/4. With the correct exponent, (12) still leads to a "
                "contradiction. Example: H = 10^12, n = 20, p = 1, C = e^16, log S = 6.5. The "
                "left-hand inequality of the printed equivalence holds by a factor e^12. The "
                "right-hand inequality is violated by a factor e^7."
            ),
            counterexample=Counterexample(
                instance={
                    "log_S": 6.5,  # H = 10^12, n = 20, C = e^16
                    "log_H": 27.631021115928547,
                    "log_C": 16.0,
                    "p": 1.0,
                    "log_n": 2.995732273553991,
                    "c": 0.5,
                },
                ratio=0.5887399079736708,
                meets=_first_case,
            ),
        ),
        Form(name="corrected"),
    ),
    control="the exponent p - 1/2",
    source="Section 5.3",
    sample=_candidates,
    sizes=({"C": 1},),
    budget=Budget(samples=64, restarts=0),
)

STATEMENTS = (TARGET, EXPONENT)
