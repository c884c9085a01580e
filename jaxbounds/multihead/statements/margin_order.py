"""Sections 5.3 and 7: gamma_attn >= gamma* >= gamma_lin, and how their gaps depend on zeta."""

from dataclasses import replace

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
from jaxbounds.multihead.oracle import Assumption3
from jaxbounds.multihead.oracle_bounds import gamma_attention, gamma_linear, gamma_star


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


def _setting_of(instance: Instance) -> Assumption3:
    S, named = jnp.exp(instance["log_S"]), {name: instance[name] for name in ("zeta", "T", "M")}
    noise = jnp.abs(instance["noise"]) * S**2
    return Assumption3(S=S, Z_mu=noise, Z_nu=noise, Z=0.0, **named)


def _ordering(instance: Instance, size: Size) -> Sides:
    dm1 = _setting_of(instance)
    S = dm1.S
    linear, full, star = gamma_linear(dm1), gamma_attention(dm1, 0.0), gamma_star(dm1, 0.0)
    return Sides.pairs(
        {
            "printed": (star, full),
            "printed, gamma* >= gamma_lin": (linear, star),
            "derived": (linear, full),
            # The deviation p that follows from the printed centre (zeta / 2) u* (E2).
            "derived, printed centre": (gamma_star(dm1, dm1.zeta * S * 2**0.5 / 4), linear),
            "control": (full, linear),
        }
    )


def _regime(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    S, noise = jnp.exp(instance["log_S"]), instance["noise"]
    count = instance["zeta"] * instance["T"]
    return {
        "R >= S >= 1 (Assumptions 1 and 3)": instance["log_S"] >= 0,
        "T >= 2, M >= 1, integers (DM1, Section 5)": (instance["T"] >= 2)
        & (instance["M"] >= 1)
        & (instance["T"] == jnp.round(instance["T"]))
        & (instance["M"] == jnp.round(instance["M"])),
        "zeta in (0, 1), zeta T integer (Assumption 3)": (instance["zeta"] < 1)
        & (jnp.abs(count - jnp.round(count)) < 1e-9)
        & (count >= 1),
        "Z_mu = Z_nu <= S^2 / 8 (Proposition 3)": noise <= 0.125,
        "T v M = O(1) (Section 5.1, below (7))": (instance["T"] <= 10) & (instance["M"] <= 2),
        "Z_mu v Z_nu = O(S) (Section 5.1, below (7))": noise * S**2 <= S,
    }


def _finite_first_phase(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    dm1, n1, d = _setting_of(instance), 1e12, instance["M"] + 2
    P = (2 * dm1.S + dm1.Z) * (jnp.sqrt(d / n1) + jnp.sqrt(jnp.log(1 / 0.1) / n1))
    return {
        **_regime(instance, size),
        "no noise, as Z = 0 (Assumption 3)": dm1.noise == 0,
        "n1 = 10^12 >~ S^2 d, with constant 1000 (Section 5.1, below (7))": n1
        >= 1000 * dm1.S**2 * d,
        "P of (6) at C = 1, delta = .1, d = M + 2 is O(1) (Lemma 2; Section 5.1)": P <= 1,
        "gamma* is above gamma_attn with that P too": gamma_star(dm1, P)
        > gamma_attention(dm1, 0.0),
    }


ORDER = Statement(
    id="multihead.sec5.3.order",
    label="Sections 5.3 and 7, order of the margins",
    formula="gamma_attn >= gamma* >= gamma_lin",
    tex=r"\gamma_{\mathrm{attn}} \ge \gamma_\star \ge \gamma_{\mathrm{lin}}",
    kind="inequality",
    evaluate=_ordering,
    judges=(gamma_star, gamma_linear, gamma_attention),
    forms=(
        Form(
            name="printed",
            cites="Section 5.3, 'In particular, gamma_attn >= gamma* >= gamma_lin'; Section 7",
            erratum="E18",
            note=(
                "The margin gamma* is not normalised by the size of theta^(1), so it grows as S^4 "
                "and exceeds gamma_attn for large S. Example: T = 10, zeta = 1/2, S = 10, M = 2 "
                "and no noise. Then gamma_attn = 22.4, and gamma* = 1287 at P = 0. At P = 7e-5, "
                "gamma* is 1265. This P is the bound (6) with C = 1, d = 4, n1 = 10^12 and delta "
                "= .1. If P is as large as the printed centre requires (erratum E2), the other "
                "inequality gamma* >= gamma_lin fails instead."
            ),
            counterexample=Counterexample(
                instance={
                    "log_S": 2.302585092994046,
                    "zeta": 0.5,
                    "noise": 0.0,
                    "T": 10.0,
                    "M": 2.0,
                },
                ratio=57.554433073454845,
                meets=_finite_first_phase,
            ),
        ),
        Form(
            name="printed, gamma* >= gamma_lin",
            cites="Section 5.3, 'In particular, gamma_attn >= gamma* >= gamma_lin'; Section 7",
            erratum="E18",
            note="The inequality gamma* >= gamma_lin fails even at P = 0, for zeta = 1/2, Z_mu = "
            "Z_nu = S^2/10 and every S. At T = 10, M = 2 and S = 1, gamma* = .809 is below "
            "gamma_lin = .894. If the noise is O(S) and P = O(1), the inequality holds for large "
            "S.",
            counterexample=Counterexample(
                instance={"log_S": 0.0, "zeta": 0.5, "noise": 0.1, "T": 10.0, "M": 2.0},
                ratio=1.1060129414630961,
                meets=_regime,
            ),
        ),
        Form(name="derived", note="The inequality gamma_lin <= gamma_attn(0) always holds."),
        Form(
            name="derived, printed centre",
            erratum="E2",
            note="The printed centre forces P >= zeta S sqrt(2)/4, and gamma* is then always "
            "below gamma_lin. The gain over the linear model therefore exists only for the true "
            "centre.",
        ),
    ),
    control="gamma_attn <= gamma_lin",
    source="Section 5.3, after eq. (11); Section 7",
    sample=_settings,
    sizes=({"C": 1},),
    hypotheses=_valid_setting,
    budget=Budget(samples=256, restarts=4, steps=100),
)


def _two_sparsities(key: jax.Array, size: Size) -> Instance:
    setting_key, key = jax.random.split(key)
    setting, values = _settings(setting_key, size), jax.random.uniform(key, (3,))
    share = jnp.where(values[1] < 0.25, 1.0, 0.05 + 0.95 * values[0])
    noise = jnp.where(values[2] < 0.5, 0.0, setting["noise"])
    return {**setting, "noise": noise, "less": share * setting["zeta"]}


def _gaps(instance: Instance, size: Size) -> Sides:
    dm1 = _setting_of(instance)
    both = dm1, replace(dm1, zeta=instance["less"])
    linear, star, full = zip(
        *((gamma_linear(c), gamma_star(c, 0.0), gamma_attention(c, 0.0)) for c in both)
    )
    gap = lambda high, low: tuple(h - l for h, l in zip(high, low))
    return Sides.pairs(
        {
            "printed": gap(full, linear),
            "derived, gamma_attn - gamma*": gap(full, star),
            "derived, gamma* - gamma_lin": gap(star, linear),
            "control": gap(linear, full),
        },
        error=1e-14 * (dm1.S + dm1.T * dm1.S**4),
    )


def _less_sparse(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    less, zeta = instance["less"], instance["zeta"]
    return {**_valid_setting(instance, size), "0 < zeta' <= zeta": (less > 0) & (less <= zeta)}


def _in_order(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    dm1 = _setting_of(instance)
    return {
        "no noise": dm1.noise == 0,
        "gamma* <= gamma_attn at zeta": gamma_star(dm1, 0.0) <= gamma_attention(dm1, 0.0),
    }


def _both_in_regime(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    at = {"zeta": instance, "zeta'": {**instance, "zeta": instance["less"]}}
    met: dict[str, ArrayLike] = {"zeta' < zeta": instance["less"] < instance["zeta"]}
    for name, setting in at.items():
        dm1 = _setting_of(setting)
        linear, star, full = gamma_linear(dm1), gamma_star(dm1, 0.0), gamma_attention(dm1, 0.0)
        named = {f"{text}, at {name}": held for text, held in _regime(setting, size).items()}
        met |= named | {f"the order holds at {name}": (linear <= star) & (star <= full)}
    return met


SPARSITY = Statement(
    id="multihead.sec5.3.sparsity",
    label="Sections 5.3 and 7, the gap and the sparsity",
    formula="gamma_attn - gamma_lin at zeta is at most that at zeta' <= zeta",
    tex=r"\gamma_{\mathrm{attn}} - \gamma_{\mathrm{lin}}(\zeta) \le \gamma_{\mathrm{attn}} - "
    r"\gamma_{\mathrm{lin}}(\zeta'), \quad \zeta' \le \zeta",
    kind="inequality",
    evaluate=_gaps,
    judges=(gamma_star, gamma_linear, gamma_attention),
    forms=(
        Form(
            name="printed",
            cites="Section 5.3: 'and the gap increases with decreasing sparsity'; Section 7",
            equality="zeta' = zeta",
            note="The margin gamma_attn does not depend on zeta, and gamma_lin is S sqrt(T/2) "
            "times zeta - 2 (1 - zeta) Z_mu / S^2. The difference gamma_attn - gamma_lin "
            "therefore grows as zeta falls.",
        ),
        Form(
            name="derived, gamma_attn - gamma*",
            hypotheses=_in_order,
            equality="zeta' = zeta",
            note="Without noise and at P = 0, gamma_attn - gamma* is (1 - zeta) (S sqrt(T/2) - T "
            "zeta^2 S^4 / (4 sqrt(2 (M+1)))). Wherever gamma_attn - gamma* is not negative, both "
            "factors of this formula grow as zeta falls.",
        ),
        Form(
            name="derived, gamma* - gamma_lin",
            erratum="E18",
            note="Without noise and at P = 0, gamma* - gamma_lin is of order zeta^2 (1 - zeta), "
            "so the difference falls with zeta below 2/3. At S = 1, T = 10, M = 2 the difference "
            "is .128 at zeta = 1/2 and .0092 at zeta = 1/10. Both settings satisfy gamma_attn >= "
            "gamma* >= gamma_lin.",
            counterexample=Counterexample(
                instance={
                    "log_S": 0.0,
                    "zeta": 0.5,
                    "less": 0.1,
                    "noise": 0.0,
                    "T": 10.0,
                    "M": 2.0,
                },
                ratio=13.888888888888889,
                meets=_both_in_regime,
            ),
        ),
    ),
    control="gamma_lin - gamma_attn",
    source="Section 5.3, after eq. (11); Section 7",
    sample=_two_sparsities,
    sizes=({"C": 1},),
    hypotheses=_less_sparse,
    assumptions="P = 0, the best case for gamma*; Z_mu = Z_nu",
    budget=Budget(samples=256, restarts=4, steps=100),
)

STATEMENTS = (ORDER, SPARSITY)
