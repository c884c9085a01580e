"""Equations (115) and (116): the margin along W*, and its mean over alpha in [-1, 1] or {-1, 1}."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
)
from jaxbounds.multihead.first_phase import first_direction, printed_centre
from jaxbounds.multihead.ntk import ntk_margins
from jaxbounds.multihead.oracle_bounds import attention_part, deviation_part, weights_margin_bound
from jaxbounds.multihead.statements.contexts import (
    Context,
    assumption_3,
    by_hand,
    searched_sequence,
    unfold,
)
from jaxbounds.numerics.norms import vector_norm

INTERVAL, SIGNS = (-0.75, -0.25, 0.25, 0.75), (-1.0, 1.0)
"""The values of alpha over which the check averages: four midpoints on [-1, 1], or the two signs.

If a function is linear in |alpha|, its mean over the four midpoints equals its mean over [-1, 1].
"""


def _mean_margin(c: Context, row: Array, law: Sequence[float]) -> Array:
    at = jax.vmap(lambda alpha: jnp.sign(alpha) * jnp.min(c.margins_at(alpha * row)[1]))
    return jnp.mean(at(jnp.asarray(law, row.dtype)))


def _expected(instance: Instance, size: Size) -> Sides:
    c, p = unfold(instance), instance["p"]
    P = vector_norm(p)
    row = printed_centre(c.classifier, c.zeta) + p
    brace, last = weights_margin_bound(c, P), attention_part(c) - deviation_part(c, P)
    at_one = jnp.min(c.margins_at(row)[1])
    mean = {"printed": INTERVAL, "printed, alpha = +-1": SIGNS}
    pairs = {name: (last, sum(map(abs, law)) / len(law) * brace) for name, law in mean.items()}
    margins = {f"{name}, mu": (last, _mean_margin(c, row, law)) for name, law in mean.items()}
    pairs |= {"derived, alpha = +-1, brace >= 0": pairs["printed, alpha = +-1"], **margins}
    return Sides.pairs(
        {"printed, (115)": (brace, at_one), **pairs, "control": (1.01 * brace, at_one)},
        error=c.rounding * (1 + P),
    )


def _brace_positive(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    brace = weights_margin_bound(unfold(instance), vector_norm(instance["p"]))
    return {"the brace of (115) is not negative": brace >= 0}


def _after_a_first_phase(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    c, both = unfold(instance), {**instance, "y": jnp.asarray([1, -1])}
    twice = lambda leaf: jnp.stack([leaf, leaf])
    both |= {name: twice(instance[name]) for name in ("relevant", "choice", "z")}
    row = printed_centre(c.classifier, c.zeta) + instance["p"]
    error = jnp.max(jnp.abs(first_direction(unfold(both).data) - row))
    return {
        **assumption_3(instance, size),
        "U^(1) = alpha 1_T ((zeta/2) u* + p)^T of the same R (Section 5.1, (120))": error < 1e-12,
    }


EQ_116 = searched_sequence(
    id="multihead.eq116",
    label="eqs. (115), (116)",
    formula="E|alpha| {...} / ||W*|| >= T (1-zeta) zeta / (4 sqrt(2 (M+1))) (zeta S^4 - ...) - "
    "P T^{5/2} (S+Z)^3, {...} the brace of (115)",
    tex=r"y \langle \nabla_W \Phi(X; \theta^{(1)}), W_\star \rangle \ge \alpha \{ \cdots \}, "
    r"\quad \frac{\mathbb{E} |\alpha|}{\|W_\star\|} \{ \cdots \} \ge \frac{T (1 - \zeta) "
    r"\zeta}{4 \sqrt{2 (M + 1)}} \left( \zeta S^4 - 7 \bar Z S^2 - 12 \bar Z^2 - \frac{16 \bar "
    r"Z^3}{S^2} \right) - P T^{5/2} (S + Z)^3",
    evaluate=_expected,
    judges=(weights_margin_bound, attention_part, deviation_part, printed_centre, ntk_margins),
    forms=(
        Form(
            name="printed, (115)",
            cites="eq. (115), Appendix D.2.3, its last line",
            equality="no noise and p = 0",
            note="The check uses alpha = 1 and divides both sides by ||W*||. For alpha < 0 the "
            "inequality is reversed (erratum E33).",
        ),
        Form(
            name="printed",
            cites="eq. (116), Appendix D.2.3, its last step",
            erratum="E3",
            reading="uniform",
            equality="always: E|alpha| = 1/2",
            note="This version of the claim interprets Unif(+-1) as the uniform law on [-1, 1].",
        ),
        Form(
            name="printed, alpha = +-1",
            cites="eq. (116), Appendix D.2.3, its last step",
            erratum="E3",
            reading="is a sign",
            note="This version of the claim interprets Unif(+-1) as two signs. Then E|alpha| = 1. "
            "The last step of (116) halves the expression in braces, and halving increases a "
            "negative expression. Example: the first phase has one noise-free sample of each "
            "label, S = 1 and T = 2. The expression in braces is -1.94 ||W*||, and the last line "
            "of (116) is -.97. The printed centre forces P >= zeta S sqrt(2) / 4 (erratum E2), and "
            "the expression in braces is then always negative.",
            counterexample=Counterexample(
                instance=by_hand([True, False], p=[-0.125, 0.125, 0, 0]),
                size={"T": 2, "d": 4},
                ratio=4 / 3,
                meets=_after_a_first_phase,
            ),
        ),
        Form(
            name="derived, alpha = +-1, brace >= 0",
            hypotheses=_brace_positive,
            note=(
                "Here alpha is +1 or -1. If the expression in braces in (116) is not negative, "
                "the last step of (116) makes the bound two times weaker."
            ),
        ),
        Form(
            name="printed, mu",
            cites="eq. (116), Appendix D.2.3, its first line against its last",
            equality="no noise and p = 0",
            note=(
                "This version of the claim bounds the mean of the margin, instead of the "
                "expression in braces in (116), for alpha uniform on [-1, 1]."
            ),
        ),
        Form(
            name="printed, alpha = +-1, mu",
            cites="eq. (116), Appendix D.2.3, its first line against its last",
            note="Here alpha is +1 or -1. For every drawn instance, the last line of (116) is "
            "below the mean of the margin, even where the last step of (116) fails. If the "
            "expression in braces is negative, this comparison is unproved.",
        ),
    ),
    control="1.01 times the brace",
    source="Appendix D.2.3",
    budget=Budget(samples=256, restarts=4, steps=80),
)

STATEMENTS = (EQ_116,)
