"""Section 5.3: the order of the margins, and that no scaling of the oracle satisfies Theorem 1."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.oracle import gamma_attention, gamma_linear, gamma_star
from jaxbounds.multihead.statements.margins_shared import margin_statement
from jaxbounds.statements import Budget, Form, Instance, Sides, Size


def _settings(key: jax.Array, size: Size) -> Instance:
    values = jax.random.uniform(key, (6,))
    return {
        "log_S": 3 * values[0] - 0.5,
        "zeta": 0.05 + 0.9 * values[1],
        "noise": 0.3 * values[2] ** 2,
        "T": jnp.floor(2 + 30 * values[3]),
        "M": jnp.floor(1 + 6 * values[4]),
    }


def _ordering(instance: Instance) -> Sides:
    """The best case for gamma*: P = 0; `noise` is Z_mu / S^2 = Z_nu / S^2."""
    S, zeta, T = jnp.exp(instance["log_S"]), instance["zeta"], instance["T"]
    Z = jnp.abs(instance["noise"]) * S**2
    star = gamma_star(S, zeta, Z, Z, 0.0, 0.0, T=T, M=instance["M"])
    linear, full = gamma_linear(S, zeta, Z, T=T), gamma_attention(S, Z, 0.0, T=T)
    # The deviation that the printed centre (zeta / 2) u* forces (E2).
    forced = gamma_star(S, zeta, Z, Z, 0.0, zeta * S * 2**0.5 / 4, T=T, M=instance["M"])
    return Sides(
        lhs={
            "printed": star,
            "printed, gamma* >= gamma_lin": linear,
            "derived": linear,
            "derived, printed centre": forced,
            "control": full,
        },
        rhs={
            "printed": full,
            "printed, gamma* >= gamma_lin": star,
            "derived": full,
            "derived, printed centre": linear,
            "control": linear,
        },
    )


def _valid_setting(instance: Instance) -> dict:
    return {
        "0 < zeta < 1": (instance["zeta"] > 0) & (instance["zeta"] < 1),
        "T >= 2, M >= 1": (instance["T"] >= 2) & (instance["M"] >= 1),
    }


def _candidates(key: jax.Array, size: Size) -> Instance:
    values = jax.random.uniform(key, (5,))
    return {
        "log_S": 12 * values[0],
        "log_H": 40 * values[1],
        "log_C": 40 * values[2] - 20,
        "p": 4 * values[3] + 1e-3,
        "log_n": 1.1 + 15 * values[4],
    }


def _candidate_norms(instance: Instance):
    """Logarithms of the two requirements' slacks; constants are one."""
    s, h, c = instance["log_S"], instance["log_H"], instance["log_C"]
    p, n = instance["p"], jnp.log(instance["log_n"])
    outer, inner = n - s, c + (0.5 - p) * h
    length = jnp.logaddexp(2 * outer, 2 * inner) / 2
    saturates = 2 * s + c - p * h
    return saturates, h / 2 - 5 * s - 3 * length, h / 2 - 3 * s - 2 * length, length


def _no_target(instance: Instance) -> Sides:
    saturates, printed, sharp, _ = _candidate_norms(instance)
    least = lambda slack: jnp.exp(jnp.minimum(saturates, slack) / 8)
    cube = instance["log_H"] / 2 + instance["log_S"]
    weak = cube - 2 * _candidate_norms(instance)[3]
    return Sides(
        lhs={
            "printed": least(printed),
            "sharpened S5": least(sharp),
            "control": least(weak),
        },
        rhs={"printed": 1.0, "sharpened S5": 1.0, "control": 1.0},
    )


def _more_samples(instance: Instance) -> dict:
    return {
        "n >= 3": instance["log_n"] >= 1.0986,
        "H >= 1, p > 0, S >= 1": (instance["log_H"] >= 0)
        & (instance["p"] > 0)
        & (instance["log_S"] >= 0),
    }


def _exponent(instance: Instance) -> Sides:
    """Where S^2 = H^p / C and ||U|| <= ||W||, (12) with S >= log(n) H^{p - 1/2} / C is this."""
    h, p, n = instance["log_H"], instance["p"], jnp.log(instance["log_n"])
    # H^{1/2} = log(n)^5 C^{-2} H^{2 p - 1}, solved for log C.
    solved = (5 * n + (2 * p - 1) * h - h / 2) / 2
    return Sides(
        lhs=solved,
        rhs={
            "printed": 2.5 * n + (p - 0.25) * h,
            "corrected": 2.5 * n + (p - 0.75) * h,
            "control": 2.5 * n + (p - 0.5) * h,
        },
        error=1e-14 * (jnp.abs(n) + jnp.abs(h) * (1 + p)),
    )


STATEMENTS = (
    margin_statement(
        "sec5.3-order",
        "Sections 5.3 and 7, order of the margins",
        "gamma_attn >= gamma* >= gamma_lin",
        "inequality",
        _ordering,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E18",
                note="gamma* is not normalised by the size of theta^(1): it grows as S^4 and "
                "passes gamma_attn. T = 10, zeta = 1/2, S = 10, M = 2, no noise: 1287 > 22.4.",
                counterexample={
                    "log_S": 2.302585092994046,
                    "zeta": 0.5,
                    "noise": 0.0,
                    "T": 10.0,
                    "M": 2.0,
                },
            ),
            Form(
                name="printed, gamma* >= gamma_lin",
                expected="fails",
                erratum="E18",
                note="Fails at moderate noise, even at P = 0: the paper's own T = 10, zeta = .1, "
                "S = 2, M = 2 with Z_mu = Z_nu = .6, three standard deviations, gives "
                "gamma* = -2.6 < gamma_lin = -.76.",
                counterexample={
                    "log_S": 0.6931471805599453,
                    "zeta": 0.1,
                    "noise": 0.15,
                    "T": 10.0,
                    "M": 2.0,
                },
            ),
            Form(name="derived", note="gamma_lin <= gamma_attn(0) always."),
            Form(
                name="derived, printed centre",
                erratum="E2",
                note="With P >= zeta S sqrt(2)/4, which the printed centre forces, gamma* is "
                "always below gamma_lin: the recentring is what makes it a gain.",
            ),
        ),
        "gamma_attn <= gamma_lin",
        "Section 5.3, after eq. (11); Section 7",
        sample=_settings,
        hypotheses=_valid_setting,
    ),
    margin_statement(
        "sec5.3-target",
        "Section 5.3, eq. (12)",
        "no (p, C) has S^2 >= H^p / C and sqrt(H) >= S^5 ||theta||^3",
        "inequality",
        _no_target,
        (
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
        "sqrt(H) S >= ||theta||^2",
        "Section 5.3; minima of both ratios, to the power 1/8",
        sample=_candidates,
        hypotheses=_more_samples,
        assumptions="n >= 3, S >= 1, H >= 1, p > 0; constants hidden by >~ are one",
        sizes=({"C": 1},),
    ),
    margin_statement(
        "sec5.3-exponent",
        "Section 5.3, below eq. (12)",
        "H^{1/2} >= log(n)^5 C^{-2} H^{2p-1} iff C >= log(n)^{5/2} H^{p-1/4}",
        "identity",
        _exponent,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E10",
                note="The exponent is p - 3/4; the contradiction survives.",
                counterexample={
                    "log_S": 0.0,
                    "log_H": 1.0,
                    "log_C": 0.0,
                    "p": 1.0,
                    "log_n": 2.718281828459045,
                },
            ),
            Form(name="corrected"),
        ),
        "the exponent p - 1/2",
        "Section 5.3",
        sample=_candidates,
        sizes=({"C": 1},),
        budget=Budget(samples=64, restarts=0),
    ),
)
