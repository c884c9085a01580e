"""Certified lower bounds on the all-layer margin by corrections (Appendix D, Theorem D.6).

The Lipschitz constants come from spectral norms of the weights, and from norms of the states on the
given inputs. The paper's Lipschitz constants hold near theta; these hold at all parameters at
distance at most r (the trust radius) from theta. The bound is the maximum over r.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox.correction import Correction


class NiceConstants(NamedTuple):
    """The constants of Conditions D.3 and D.4, on a ball of radius `trust` around the parameters.

    Attributes:
        kappa_theta: the Lipschitz constant of layer f_i, i >= 1, in its parameters theta_i,
            relative to max(|h|, 1) for the input h.
        kappa_xi: the Lipschitz constant of the correction functions in their parameters, relative
            to max(|h|, 1).
        mu: the Lipschitz constant of the layer f_i in its input h, at perturbed parameters theta_i.
        mu_0: the Lipschitz constant of the first layer f_0 in its parameters theta_0.
        sigma_h: the radius around the exact state h within which the Lipschitz constant mu holds.
        sigma_zeta: the radius around an exact state within which the corrections restore the state.
        norm: lambda, a bound on every state's norm, at least 1.
        trust: the radius sigma_theta = sigma_xi of the ball in which the constants hold.
    """

    kappa_theta: float
    kappa_xi: float
    mu: float
    mu_0: float
    sigma_h: float
    sigma_zeta: float
    norm: float
    trust: float


def theorem_d6(c: NiceConstants, /) -> float:
    """Compute the minimum of the nine terms of Theorem D.6, as printed."""
    return min(theorem_d6_terms(c).values())


def theorem_d6_terms(c: NiceConstants, /) -> dict[str, float]:
    """Return the nine terms of Theorem D.6's minimum, as a dictionary from formulas to values."""
    return {
        "lambda/mu_0": c.norm / c.mu_0,
        "sigma_zeta/mu_0": c.sigma_zeta / c.mu_0,
        "sigma_theta": c.trust,
        "sigma_xi": c.trust,
        "1/(2 kappa_theta)": 1 / (2 * c.kappa_theta),
        "sigma_zeta/(2 kappa_theta lambda)": c.sigma_zeta / (2 * c.kappa_theta * c.norm),
        "sigma_h/(2 kappa_xi lambda)": c.sigma_h / (2 * c.kappa_xi * c.norm),
        "sigma_zeta/(4 lambda mu kappa_xi)": c.sigma_zeta / (4 * c.norm * c.mu * c.kappa_xi),
        "1/(4 mu kappa_xi)": 1 / (4 * c.mu * c.kappa_xi),
    }


class Radii(NamedTuple):
    """The allowed sizes of perturbations of each group of parameters, for any number of layers.

    Attributes:
        first: the radius for the first layer's parameters theta_0, from (D.6).
        layer: the radius for the parameters theta_i of each layer after the first, from (D.7).
        correction: the radius for the parameters xi_i of each correction, from (D.8).
    """

    first: float
    layer: float
    correction: float


def perturbation_radii(c: NiceConstants, /) -> Radii:
    """Compute the right sides of (D.6), (D.7) and (D.8).

    The least of the three is Theorem D.6's bound.
    """
    t = theorem_d6_terms(c)
    part = lambda *names: min(t[name] for name in names)
    return Radii(
        first=part("lambda/mu_0", "sigma_zeta/mu_0"),
        layer=part("sigma_theta", "1/(2 kappa_theta)", "sigma_zeta/(2 kappa_theta lambda)"),
        correction=part(
            "sigma_xi",
            "sigma_h/(2 kappa_xi lambda)",
            "sigma_zeta/(4 lambda mu kappa_xi)",
            "1/(4 mu kappa_xi)",
        ),
    )


def without_halvings(c: NiceConstants, /) -> float:
    """Compute a larger bound than Theorem D.6, without the factors 1/2 of the theorem's proof.

    A perturbed layer causes the error E2 <= kappa_theta lambda r. The perturbed correction before
    it causes the error E1 <= mu kappa_xi (lambda + sigma_zeta) r. E1 + E2 must stay below
    sigma_zeta, and so must the error of the first layer.
    """
    per_unit = c.kappa_theta * c.norm + c.mu * c.kappa_xi * (c.norm + c.sigma_zeta)
    in_h = c.sigma_h / (c.kappa_xi * (c.norm + c.sigma_zeta))
    return min(c.trust, c.sigma_zeta / c.mu_0, in_h, c.sigma_zeta / per_unit)


def joint_budget(c: NiceConstants, /) -> float:
    """Compute a larger bound than `without_halvings` does.

    The perturbations of theta_i and xi_{i-1} are parts of one perturbation, so their squared norms
    add up. The bound therefore adds the squares of the factors of r in E1 and E2 of
    `without_halvings`.
    """
    second = c.mu * c.kappa_xi * (c.norm + c.sigma_zeta)
    in_h = c.sigma_h / (c.kappa_xi * (c.norm + c.sigma_zeta))
    per_unit = math.hypot(c.kappa_theta * c.norm, second)
    return min(c.trust, c.sigma_zeta / c.mu_0, in_h, c.sigma_zeta / per_unit)


def layer_norm(delta: Float[Array, "p"], reads: Sequence[int], /) -> Float[Array, ""]:
    """Compute |tau_i(delta)|, the norm of the parameters that one layer reads (Definition D.5).

    The norm is at most |delta|, even if several layers read one parameter (Lemma D.9).

    Raises:
        Refused: if the layer reads a parameter twice, because the norm could then exceed |delta|.
    """
    if len(set(reads)) < len(reads):
        raise Refused(
            f"reads={list(reads)}, expected each once in a layer"
            " (Definition D.5). Try to remove the repeated parameter"
        )
    return jnp.sqrt((delta[jnp.array(reads)] ** 2).sum())


def best_over_trust(
    bound: Callable[[NiceConstants], float], constants: Callable[[float], NiceConstants], /
) -> float:
    """Return the largest of the bounds for trust radii on a grid from 1e-5 to 1."""
    return max(bound(constants(float(r))) for r in np.geomspace(1e-5, 1.0, 241))


def circuit_constants(
    params: Any, states: Float[np.ndarray, "n d w"], correction: Correction, /
) -> Callable[[float], NiceConstants]:
    """Return the constants of a compiled, corrected circuit for inputs with these hidden states.

    Here f_i is the two ReLU layers of Lemma B.1, f_q is the head, and zeta_i is the correction
    after f_i. A layer f = f_i satisfies f(h, theta') - f(h, theta) = W2 (a' - a) + dW2 a' + db2
    with a = relu(W1 h + b1). So kappa_theta comes from sqrt((|W2| |(h,1)|)^2 + (|a| + r
    |(h,1)|)^2 + 1), where r is the trust radius.

    Raises:
        Refused: if no corrected network has this depth.
    """
    W = [np.asarray(params["first"]["W"]), *np.asarray(params["hidden"]["W"])]
    if len(W) % 4 or states.shape[1] != len(W):
        raise Refused(
            f"params has layers={len(W)} and states has layers={states.shape[1]}, expected both 4 "
            f"times the layers of the corrected circuit. Try compiling with a correction"
        )
    norms = np.array([np.linalg.norm(weight, 2) for weight in W])
    length = np.linalg.norm(states, axis=-1)
    lam = max(1.0, float(length[:, 1::2].max()))
    head = float(np.linalg.norm(params["head"]["W"]))
    start = np.full((len(length), 1), math.sqrt(params["first"]["W"].shape[1]))
    before, a = np.concatenate([start, length[:, 3:-1:4]], axis=1), length[:, ::4]
    with_one = np.sqrt(before**2 + 1)
    through = (norms[1::4] * with_one) ** 2
    of_head = float((np.sqrt(length[:, -1] ** 2 + 1) / np.maximum(length[:, -1], 1)).max())

    def constants(r: float) -> NiceConstants:
        kappa = np.sqrt(through + (a + r * with_one) ** 2 + 1)
        relative = kappa[:, 1:] / np.maximum(before[:, 1:], 1)
        mu = (norms[5::4] + r) * (norms[4::4] + r)
        return NiceConstants(
            kappa_theta=float(relative.max(initial=of_head)),
            kappa_xi=correction.parameter_lipschitz(r),
            mu=float(mu.max(initial=head + r)),
            mu_0=float(kappa[:, 0].max()),
            sigma_h=math.inf,
            sigma_zeta=correction.radius,
            norm=lam,
            trust=r,
        )

    return constants


def circuit_margin_lower(
    params: Any,
    states: Float[np.ndarray, "n d w"],
    correction: Correction,
    /,
    *,
    form: Callable[[NiceConstants], float] = joint_budget,
) -> float:
    """Compute a lower bound on the all-layer margin of a compiled circuit at each given input."""
    return best_over_trust(form, circuit_constants(params, states, correction))
