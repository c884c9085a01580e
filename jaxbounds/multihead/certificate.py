"""Certify from the data, before training: initialisation, heads, step size and loss bound.

The first phase of training ends at theta^(1), where half of the heads have alpha_h = +1 and half
have alpha_h = -1. This module computes the best NTK margin at theta^(1). Corollary 5 (as printed
and corrected) and Theorem 3 with sharpened constants then give the number of heads and the step
size that certify a loss.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.bounds import beta3, beta3_sharp
from jaxbounds.multihead.data import validate_data
from jaxbounds.multihead.descent import Setting, distance_bound, loss_bound, rho, root_heads
from jaxbounds.multihead.descent_certificate import DescentCertificate, descent_certificate
from jaxbounds.multihead.first_phase import balanced_signs, first_step
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params, head_norm
from jaxbounds.multihead.ntk import NTKMargin, best_ntk_margin, ntk_gram, separator
from jaxbounds.multihead.tied import tied_margins, tied_output, tied_risk
from jaxbounds.numerics.arrays import array_module, number
from jaxbounds.numerics.norms import max_row_norm

Copies = Float[Array, " G"]


class GoodInitialisation(NamedTuple):
    """The constants of a good initialisation (Definition 1), measured on a data set.

    Attributes:
        head_bound: B_2 = max(1, max_h ||theta_h||), property P1.
        model_bound: B_Phi = max(1, max_i |Phi(X_i)|), property P2.
        margin: the margin min_i y_i <grad Phi(X_i), theta*>, property P3. Definition 1 calls an
            initialisation good only if this margin is positive.
    """

    head_bound: Float[Array, ""] | float
    model_bound: Float[Array, ""] | float
    margin: Float[Array, ""] | float


def tied_direction(direction: Params, copies: Copies, /) -> Params:
    """Divide the direction of each group of equal heads by sqrt(copies), its number of heads."""
    return jax.tree.map(lambda leaf: leaf / jnp.sqrt(copies)[:, None, None], direction)


@jax.jit
def good_initialisation(
    params: Params, copies: Copies, data: Data, direction: Params, /
) -> GoodInitialisation:
    """Measure the constants of Definition 1 for groups of equal heads.

    `copies` holds the number of heads in each group, shape (G,). `direction` is the part of theta*
    that belongs to one head of each group; over all H heads, theta* has norm sqrt(2).
    """
    outputs = jax.vmap(tied_output, in_axes=(None, None, 0))(params, copies, data["X"])

    def margin(tokens: Array, label: Array) -> Array:
        along = jax.jvp(lambda p: tied_output(p, copies, tokens), (params,), (direction,))[1]
        return label * along

    labels = data["y"].astype(outputs.dtype)
    return GoodInitialisation(
        jnp.maximum(head_norm(params), 1.0),
        jnp.maximum(jnp.max(jnp.abs(outputs)), 1.0),
        jnp.min(jax.vmap(margin)(data["X"], labels)),
    )


def target_scale(good: GoodInitialisation, tolerance: ArrayLike, /) -> ArrayLike:
    """Return the factor G = (2 B_Phi + log(1/epsilon)) / gamma.

    In Proposition 7, the target is theta(epsilon) = theta_0 + G theta*.
    """
    log = array_module(good, tolerance).log
    return (2 * number(good.model_bound) - log(tolerance)) / number(good.margin)


def realized_distance(
    good: GoodInitialisation, tolerance: ArrayLike, /, *, corrected: bool = True
) -> ArrayLike:
    """Return g_0(epsilon) = ||theta(epsilon) - theta_0|| = sqrt(2) G, since ||theta*|| = sqrt(2).

    Proposition 7 prints G in place of sqrt(2) G (erratum E5); `corrected=False` returns the printed
    G.
    """
    return (math.sqrt(2) if corrected else 1.0) * target_scale(good, tolerance)


def realized_size(good: GoodInitialisation, distance: ArrayLike, /) -> ArrayLike:
    """Return g(epsilon) = B_2 + g_0(epsilon) >= ||theta(epsilon)||_{2,infinity}, Proposition 7."""
    return good.head_bound + distance


def realizing_heads(
    good: GoodInitialisation, tolerance: ArrayLike, radius: ArrayLike, /, *, T: int, d: int
) -> ArrayLike:
    """Return the number of heads H of Proposition 7, equation (98).

    The constant 5 in (98) is so large that the condition (98) is enough even without the factor
    sqrt(2) of erratum E5.
    """
    G = target_scale(good, tolerance)
    shape = 5 / 2 * beta3(1.0, radius, T=T, d=d)
    root = shape * good.head_bound / good.model_bound * G**2 * jnp.maximum(G, 1.0)
    return root**2


def realizing_heads_sharp(
    good: GoodInitialisation, tolerance: ArrayLike, radius: ArrayLike, /, *, T: int
) -> ArrayLike:
    """Return the least number of heads H with ||Hess Phi|| ||theta - theta_0||^2 / 2 <= B_Phi.

    The bound on ||Hess Phi|| along the segment from theta_0 to theta is beta_3# / sqrt(H)
    (sharpening S6).
    """
    distance = realized_distance(good, tolerance)
    size = realized_size(good, distance)
    return (beta3_sharp(size, radius, T=T) * distance**2 / 2 / good.model_bound) ** 2


@np.errstate(over="ignore")
def realized_step(good: GoodInitialisation, /, *, corrected: bool = True) -> ArrayLike:
    """Return g_0(1)^2 / log(1 + e^{B_Phi}), one of Corollary 5's upper limits on the step.

    The paper prints the limit 4 B_Phi^2 / (gamma^2 log(1 + e^{B_Phi})). The corrected g_0 = sqrt(2)
    G replaces the factor 4 of this limit by 8.
    """
    unit, xp = realized_distance(good, 1.0, corrected=corrected), array_module(good)
    return unit**2 / xp.log1p(xp.exp(good.model_bound))


@np.errstate(all="ignore")
def corollary5(
    good: GoodInitialisation,
    radius: ArrayLike,
    K: ArrayLike,
    /,
    *,
    T: int,
    d: int,
    corrected: bool,
    heads: ArrayLike | None = None,
) -> DescentCertificate:
    """Return Corollary 5's number of heads, step size and loss bound.

    All three follow from Corollary 3 with Proposition 7's g_0(1/K) and g(1/K). If `corrected` is
    set, g_0 = sqrt(2) G (erratum E5), else the printed g_0 = G. The sqrt(H) of Corollary 5 is B_2
    times the sqrt(H) of equation (84). The default of `heads` is the least certified number.
    `radius` is an upper bound R on the token norms, and `K` is the number of gradient steps.
    """
    good, radius = GoodInitialisation(*map(number, good)), number(radius)
    distance = realized_distance(good, 1 / K, corrected=corrected)
    size = realized_size(good, distance)
    s = Setting.bounded(distance=distance, size=size, radius=radius, T=T, d=d, loss_target=1 / K)
    least = np.ceil((good.head_bound * root_heads(s, stability=True)) ** 2)
    s = s._replace(heads=least if heads is None else heads)
    step = min(number(1 / rho(s)), number(realized_step(good, corrected=corrected)), 1.0)
    bounds = loss_bound(s, step, K), distance_bound(s)
    return DescentCertificate.of(s.heads, size, rho(s), step, *bounds)


class Pipeline(NamedTuple):
    """The results of `certified_run`.

    Attributes:
        radius: R = max(1, max ||x_t||).
        margin: the certified enclosure of the best NTK margin at theta^(1).
        good: the constants of Definition 1.
        distance: sqrt(2) G, the distance between theta(1/K) and theta^(1).
        certificates: a dictionary from the name of the constants ("printed", "corrected",
            "sharpened", "sharpened S8") to the certificate (heads, step size and bounds) with these
            constants.
        params: the parameters theta^(1), stored as two heads: one for alpha = +1 and one for alpha
            = -1.
        direction: the direction theta* of Definition 1, for the two heads of `params`.
    """

    radius: float
    margin: NTKMargin
    good: GoodInitialisation
    distance: float
    certificates: dict[str, DescentCertificate]
    params: Params
    direction: Params


@jax.jit
def _started(first: Data, second: Data) -> tuple[Params, Array, Array]:
    params, tokens = first_step(first, balanced_signs(2)), second["X"]
    radius = jnp.maximum(max_row_norm(tokens.reshape(-1, tokens.shape[-1])), 1.0)
    return params, tied_risk(params, jnp.ones(2), second), radius


_width = jax.jit(head_norm)


def certified_run(first: Data, second: Data, K: int, /) -> Pipeline:
    """Certify K gradient steps on `second` from theta^(1), the result of one step on `first`.

    Args:
        first: the samples {"X", "y"} of the first phase.
        second: the samples {"X", "y"} of the second phase.
        K: the number of gradient steps.

    Raises:
        Refused: if a label is not +1 or -1, or if no direction separates the second phase's samples
            at theta^(1).
    """
    validate_data(first)
    validate_data(second)
    with enable_x64(True):
        wide: Any = lambda data: {
            "X": np.asarray(data["X"], np.float64),
            "y": np.asarray(data["y"]),
        }
        first, second = wide(first), wide(second)
        tokens, labels = second["X"], second["y"]
        _, T, d = tokens.shape
        params, start, radius = _started(first, second)
        margin = best_ntk_margin(ntk_gram(params, tokens, tokens), labels)
        if not margin.lower > 0:
            raise Refused(
                f"the NTK margin at theta^(1) has upper={margin.upper:.3g}, expected a certified "
                f"positive margin, as property P3 of a good start requires. Try fewer samples in "
                f"the second phase of training, or more in the first phase"
            )
        direction = separator(params, second, margin)
        good = good_initialisation(params, np.ones(2), second, direction)
        start, radius, width = float(start), float(radius), float(_width(direction))
        scale, distance = target_scale(good, 1 / K), realized_distance(good, 1 / K)
        found = {
            name: corollary5(good, radius, K, T=T, d=d, corrected=name == "corrected")
            for name in ("printed", "corrected")
        }
        # In H heads, each head's theta* is the theta* of two heads divided by sqrt(H / 2).
        spread = math.sqrt(2) * number(scale) * width
        sharper = descent_certificate(
            T=T,
            d=d,
            radius=radius,
            distance=number(distance),
            K=K,
            loss_target=1 / K,
            loss_start=start,
            size=float(good.head_bound),
            spread=spread,
        )
        found |= {name: value for name, value in sharper.items() if name != "printed"}
    return Pipeline(radius, margin, good, number(distance), found, params, direction)


class Observed(NamedTuple):
    """The losses that a run measures at the number of heads and the step size of a certificate.

    Attributes:
        loss_start: the loss L(theta^(1)) at the start.
        loss_last: the loss L(theta_K) after K steps.
        loss_average: the average loss (1/K) sum_{k=1}^K L(theta_k).
        target_margin: the least margin min_i y_i Phi(X_i; theta) at the target theta = theta^(1) +
            G theta*.
    """

    loss_start: float
    loss_last: float
    loss_average: float
    target_margin: float


@partial(jax.jit, static_argnums=0)
def _observed(
    K: int, pipeline: tuple, copies: Copies, data: Data, step: Array
) -> tuple[Array, ...]:
    params, direction, good = pipeline
    scale, share = target_scale(good, 1 / K), tied_direction(direction, copies)
    target = jax.tree.map(lambda p, v: p + scale * v, params, share)
    loss = lambda p: tied_risk(p, copies, data)

    def advance(p: Params, _: None) -> tuple[Params, Array]:
        slope = jax.grad(tied_risk, argnums=3)(p, copies, data, p)
        moved = jax.tree.map(lambda leaf, g: leaf - step * g, p, slope)
        return moved, loss(moved)

    _, losses = jax.lax.scan(advance, params, length=K)
    least = jnp.min(tied_margins(target, copies, data))
    return loss(params), losses[-1], jnp.mean(losses), least


def observe(pipeline: Pipeline, second: Data, K: int, name: str, /) -> Observed:
    """Run K steps with the number of heads and the step size of `pipeline.certificates[name]`.

    The run adds one head if the certified number is odd. A certificate also holds for more heads.
    """
    certificate = pipeline.certificates[name]
    with enable_x64(True):
        data = {"X": np.asarray(second["X"], np.float64), "y": np.asarray(second["y"])}
        copies = np.full(2, float(math.ceil(certificate.heads / 2)))
        given, step = (pipeline.params, pipeline.direction, pipeline.good), certificate.step_size
        return Observed(*map(float, _observed(K, given, copies, data, np.float64(step))))
