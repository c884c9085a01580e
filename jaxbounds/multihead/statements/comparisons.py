"""Section 5.3: the order of the margins, and that no scaling of the oracle satisfies Theorem 1."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.multihead.oracle import Assumption3
from jaxbounds.multihead.oracle_bounds import (
    gamma_attention,
    gamma_linear,
    gamma_star,
    log_target_scale,
    target_slacks,
)
from jaxbounds.statements import Budget, Counterexample, Form, Instance, Sides, Size, Statement


def _settings(key: jax.Array, size: Size) -> Instance:
    values = jax.random.uniform(key, (6,))
    return {
        "log_S": 3 * values[0] - 0.5,
        "zeta": 0.05 + 0.9 * values[1],
        "noise": 0.3 * values[2] ** 2,
        "T": jnp.floor(2 + 30 * values[3]),
        "M": jnp.floor(1 + 6 * values[4]),
    }


def _valid_setting(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    return {
        "0 < zeta < 1": (instance["zeta"] > 0) & (instance["zeta"] < 1),
        "T >= 2, M >= 1": (instance["T"] >= 2) & (instance["M"] >= 1),
    }


def _ordering(instance: Instance, size: Size) -> Sides:
    """The best case for gamma*: P = 0; `noise` is Z_mu / S^2 = Z_nu / S^2."""
    S, named = jnp.exp(instance["log_S"]), {name: instance[name] for name in ("zeta", "T", "M")}
    noise = jnp.abs(instance["noise"]) * S**2
    dm1 = Assumption3(S=S, Z_mu=noise, Z_nu=noise, Z=0.0, **named)
    linear, full, star = gamma_linear(dm1), gamma_attention(dm1, 0.0), gamma_star(dm1, 0.0)
    return Sides.pairs(
        {
            "printed": (star, full),
            "printed, gamma* >= gamma_lin": (linear, star),
            "derived": (linear, full),
            # The deviation that the printed centre (zeta / 2) u* forces (E2).
            "derived, printed centre": (gamma_star(dm1, dm1.zeta * S * 2**0.5 / 4), linear),
            "control": (full, linear),
        }
    )


ORDER = Statement(
    id="multihead.sec5.3-order",
    label="Sections 5.3 and 7, order of the margins",
    formula="gamma_attn >= gamma* >= gamma_lin",
    kind="inequality",
    evaluate=_ordering,
    judges=(gamma_star, gamma_linear, gamma_attention),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E18",
            note="gamma* is not normalised by the size of theta^(1): it grows as S^4 and "
            "passes gamma_attn. T = 10, zeta = 1/2, S = 10, M = 2, no noise: 1287 > 22.4.",
            counterexample=Counterexample(
                instance={
                    "log_S": 2.302585092994046,
                    "zeta": 0.5,
                    "noise": 0.0,
                    "T": 10.0,
                    "M": 2.0,
                },
                size={"C": 1},
                ratio=57.554433073454845,
            ),
        ),
        Form(
            name="printed, gamma* >= gamma_lin",
            expected="fails",
            erratum="E18",
            note="Fails at moderate noise, even at P = 0: the paper's own T = 10, zeta = .1, "
            "S = 2, M = 2 with Z_mu = Z_nu = .6, three standard deviations, gives "
            "gamma* = -2.6 < gamma_lin = -.76.",
            counterexample=Counterexample(
                instance={
                    "log_S": 0.6931471805599453,
                    "zeta": 0.1,
                    "noise": 0.15,
                    "T": 10.0,
                    "M": 2.0,
                },
                size={"C": 1},
                ratio=1.5518527006847753,
            ),
        ),
        Form(name="derived", note="gamma_lin <= gamma_attn(0) always."),
        Form(
            name="derived, printed centre",
            erratum="E2",
            note="With P >= zeta S sqrt(2)/4, which the printed centre forces, gamma* is "
            "always below gamma_lin: the recentring is what makes it a gain.",
        ),
    ),
    control="gamma_attn <= gamma_lin",
    source="Section 5.3, after eq. (11); Section 7",
    sample=_settings,
    sizes=({"C": 1},),
    hypotheses=_valid_setting,
    budget=Budget(samples=256, restarts=4, steps=100),
)


def _candidates(key: jax.Array, size: Size) -> Instance:
    values = jax.random.uniform(key, (5,))
    return {
        "log_S": 12 * values[0],
        "log_H": 40 * values[1],
        "log_C": 40 * values[2] - 20,
        "p": 4 * values[3] + 1e-3,
        "log_n": 1.1 + 15 * values[4],
    }


def _more_samples(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    positive = (instance["log_H"] >= 0) & (instance["p"] > 0) & (instance["log_S"] >= 0)
    return {"n >= 3": instance["log_n"] >= 1.0986, "H >= 1, p > 0, S >= 1": positive}


def _no_target(instance: Instance, size: Size) -> Sides:
    log_S = instance["log_S"]
    names = ("log_H", "log_C", "p", "log_n")
    slacks = target_slacks(log_S, *(instance[name] for name in names))
    least = lambda slack: jnp.exp(jnp.minimum(slacks.saturates, slack) / 8)
    return Sides(
        lhs={
            "printed": least(slacks.heads),
            "sharpened S5": least(slacks.heads_sharp),
            "control": least(slacks.heads_sharp + 4 * log_S),
        },
        rhs={"printed": 1.0, "sharpened S5": 1.0, "control": 1.0},
    )


TARGET = Statement(
    id="multihead.sec5.3-target",
    label="Section 5.3, eq. (12)",
    formula="no (p, C) has S^2 >= H^p / C and sqrt(H) >= S^5 ||theta||^3",
    kind="inequality",
    evaluate=_no_target,
    judges=(target_slacks,),
    forms=(
        Form(
            name="printed",
            note="Constants one. S^2 >= H^p / C makes ||W|| >= sqrt(H) / S^2, so (12) forces "
            "S >= H; then ||U|| = log(n) / S needs sqrt(H) >= S^2 log(n)^3. Both cases.",
        ),
        Form(
            name="sharpened S5",
            note="Even for sqrt(H) >= S^3 ||theta||^2, which only the tight mixed block "
            "needs: S >= sqrt(H) and sqrt(H) >= S log(n)^2 contradict for n >= 3.",
        ),
    ),
    control="sqrt(H) S >= ||theta||^2",
    source="Section 5.3; minima of both ratios, to the power 1/8",
    sample=_candidates,
    sizes=({"C": 1},),
    hypotheses=_more_samples,
    assumptions="n >= 3, S >= 1, H >= 1, p > 0; constants hidden by >~ are one",
    budget=Budget(samples=256, restarts=4, steps=100),
)


def _exponent(instance: Instance, size: Size) -> Sides:
    """Where S^2 = H^p / C and ||U|| <= ||W||, (12) with S >= log(n) H^{p - 1/2} / C is this."""
    h, p, n = instance["log_H"], instance["p"], jnp.log(instance["log_n"])
    corrected = log_target_scale(h, p, instance["log_n"])
    return Sides(
        # H^{1/2} = log(n)^5 C^{-2} H^{2 p - 1}, solved for log C.
        lhs=(5 * n + (2 * p - 1) * h - h / 2) / 2,
        rhs={
            "printed": corrected + h / 2,
            "corrected": corrected,
            "control": corrected + h / 4,
        },
        error=1e-14 * (jnp.abs(n) + jnp.abs(h) * (1 + p)),
    )


EXPONENT = Statement(
    id="multihead.sec5.3-exponent",
    label="Section 5.3, below eq. (12)",
    formula="H^{1/2} >= log(n)^5 C^{-2} H^{2p-1} iff C >= log(n)^{5/2} H^{p-1/4}",
    kind="identity",
    evaluate=_exponent,
    judges=(log_target_scale,),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E10",
            note="The exponent is p - 3/4; the contradiction survives.",
            counterexample=Counterexample(
                instance={
                    "log_S": 0.0,
                    "log_H": 1.0,
                    "log_C": 0.0,
                    "p": 1.0,
                    "log_n": 2.718281828459045,
                },
                size={"C": 1},
                ratio=0.15384615384615385,
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

STATEMENTS = (ORDER, TARGET, EXPONENT)
