"""Leave-one-out runs: on-average stability and its recursion (Section 6.2 and Appendix C)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.claims.statements import Instance
from jaxbounds.multihead.loss import Data, logistic
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.runs import Run, gradient_descent, start_of, training_set
from jaxbounds.multihead.tied import tied_distance, tied_margins

Reals = Float[Array, "..."]


def sample_losses(
    params: Params, copies: Float[Array, " G"], data: Data, single: Params | None = None, /
) -> Float[Array, " n"]:
    """Return the losses l_i(theta) of all samples i."""
    return logistic(tied_margins(params, copies, data, single))


def leave_one_out_masks(data: Data, /) -> Float[Array, "n n"]:
    """Return n masks of the samples; mask i selects every sample except sample i."""
    n = data["X"].shape[0]
    return 1.0 - jnp.eye(n, dtype=data["X"].dtype)


def leave_one_out_risk(
    params: Params,
    copies: Float[Array, " G"],
    data: Data,
    keep: Float[Array, " n"],
    single: Params | None = None,
    /,
) -> Float[Array, ""]:
    """Return (1/n) sum_{j != i} l_j, where the divisor is n although sample i is left out."""
    return jnp.mean(keep * sample_losses(params, copies, data, single))


@jax.jit
def leave_one_out(problem: Instance) -> Run:
    """Run gradient descent n times, for each i without sample i.

    The arrays of the result have the leading axes (i, k) of length (n, STEPS + 1).
    """
    data, copies = training_set(problem), problem["copies"]

    def without(keep: Float[Array, " n"]) -> Run:
        risk = lambda params, single: leave_one_out_risk(params, copies, data, keep, single)
        return gradient_descent(risk, start_of(problem), copies, problem["step"])

    return jax.vmap(without)(leave_one_out_masks(data))


def deviations(full: Run, without: Run, copies: Float[Array, " G"], /) -> Float[Array, "n k"]:
    """Return the distances ||theta_k - theta_k^{-i}|| of the run and the run without sample i."""
    over_steps = jax.vmap(tied_distance, in_axes=(0, 0, None))
    over_samples = jax.vmap(over_steps, in_axes=(None, 0, None))
    return over_samples(full.params, without.params, copies)


def on_average_stability(
    full: Run, without: Run, copies: Float[Array, " G"], /
) -> Float[Array, " k"]:
    """Return (1/n) sum_i ||theta_k - theta_k^{-i}||, for k = 0, ..., STEPS."""
    return jnp.mean(deviations(full, without, copies), axis=0)


def expansion(step: Reals, weak: Reals, smooth: Reals, loss: Reals, /) -> Reals:
    """Return max(1 + eta beta_3 L / sqrt(H), eta beta_2), the expansion factor in (19) and (20).

    The argument `weak` is beta_3 / sqrt(H).
    """
    return jnp.maximum(1 + step * weak * loss, step * smooth)


def growth_rate(step: Reals, weak: Reals, losses: Reals, /) -> Reals:
    """Return the growth rates alpha_{k,i} of the distance of two runs, equation (22).

    The argument `losses` is L^{-i}(theta_k) + L^{-i}(theta_k^{-i}).
    """
    return 4 / 3 * step * weak * losses


def growth(before: Reals, rate: Reals, added: Reals, /) -> Reals:
    """Return (1 + rate) ||theta_k - theta_k^{-i}|| + added, the right side of (20) and (22)."""
    return (1 + rate) * before + added


def misparenthesised_growth(before: Reals, weak: Reals, loss: Reals, added: Reals, /) -> Reals:
    """Return the bound (21), (89) on ||theta_{k+1} - theta_{k+1}^{-i}|| as printed.

    The printed bound is ((1 + weak) * loss) * before + added, where `before` is ||theta_k -
    theta_k^{-i}||. The paper means (1 + weak loss), as in (20) and (22).
    """
    return (1 + weak) * loss * before + added
