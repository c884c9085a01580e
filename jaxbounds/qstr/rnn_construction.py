"""The bidirectional RNN that solves simple-qSTR (Propositions 26 and 28), as exact weights.

The increment f(z_i) of the state does not depend on the state. The increment consists of q slots
(blocks of d numbers): slot l is x_i if t_l = i, and otherwise 0. So slot l of the forward state
h->_i is x_{t_l} if t_l < i. Slot l of the backward state h<-_i is x_{t_l} if t_l > i. So the slots
of the sum h->_i + h<-_i + f(z_i) are the q relevant tokens. Tokens are encoded without the factor
sqrt(d/q): z_i = (x_i, w_i, w_{t_1}, .., w_{t_q}).
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.recurrent import exclusive_sums
from jaxbounds.qstr.relu_networks import (
    Layer,
    Network,
    evaluate,
    layer,
    product_error,
    shift_output,
    shrink_output,
    square_hinges,
)
from jaxbounds.qstr.retrieval import ROUNDING


def _selectors(q: int, d: int, de: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    eye = np.eye(d + (q + 1) * de)
    return eye[:d], eye[d : d + de], eye[d + de :]


def _check(coherence: float, radius: float) -> None:
    if not 0 <= coherence < 1 - ROUNDING:
        raise Refused(
            f"coherence={coherence}, expected mu in [0, 1), at which the gate closes: equal"
            " encodings cannot be told apart. Try new encodings"
        )
    if not radius > 0:
        raise Refused(f"radius={radius}, expected a positive bound on every |x_ik|. Try radius=1")


def _gate(q: int, d: int, inner: np.ndarray, constant: float, coherence: float) -> Layer:
    """Build the layer that computes the gates of all slots, and copies x.

    For an input v, the layer computes the products s = inner v + constant. The gate of slot l is
    relu((s_l - mu)/(1 - mu)), where mu is `coherence`.
    """
    width = inner.shape[1]
    scale = 1.0 / (1.0 - coherence)
    keep = np.concatenate([np.eye(2 * d), np.zeros((2 * d, width - 2 * d))], axis=1)
    bias = np.concatenate([np.zeros(2 * d), np.full(q, scale * (constant - coherence))])
    return layer(np.concatenate([keep, scale * inner]), bias)


def _spread(q: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.concatenate([np.eye(d), -np.eye(d), np.zeros((d, q))], axis=1)
    c = np.concatenate([np.zeros((q, 2 * d)), np.eye(q)], axis=1)
    return np.tile(x, (q, 1)), np.repeat(c, d, axis=0)


def exact_transition(*, q: int, d: int, de: int, radius: float, coherence: float = 0.5) -> Network:
    """Build the four layers of f(z), exact for Rademacher encodings with coherence at most mu.

    For w in {-1, 1}^de / sqrt(de), <w_i, w_t> = |w_i + w_t|_1 / sqrt(de) - 1. One ReLU layer
    therefore computes these inner products. The gate c of the l-th relevant token is 1 if t_l = i,
    and otherwise 0. So the third layer, relu(+-x - B (1 - c)), keeps x if c = 1 and removes it if c
    = 0.

    `radius` is a bound B on every |x_ik|. `coherence` is the number mu; the gate relu((s - mu)/(1 -
    mu)) is 0 for all inner products s <= mu.

    Raises:
        Refused: if the coherence is outside [0, 1) or the radius is not positive.
    """
    _check(coherence, radius)
    x, own, wanted = _selectors(q, d, de)
    sums = np.tile(own, (q, 1)) + wanted
    first = layer(np.concatenate([x, -x, sums, -sums]))
    count = np.repeat(np.eye(q), de, axis=1) / np.sqrt(de)
    inner = np.concatenate([np.zeros((q, 2 * d)), count, count], axis=1)
    token, gate = _spread(q, d)
    open_ = np.concatenate([token + radius * gate, -token + radius * gate])
    third = layer(open_, np.full(2 * q * d, -radius))
    eye = np.eye(q * d)
    last = layer(np.concatenate([eye, -eye], axis=1))
    return first, _gate(q, d, inner, -1.0, coherence), third, last


def inner_products(*, q: int, d: int, de: int, knots: int) -> tuple[Layer, np.ndarray]:
    """Return a layer and a matrix A_1 that compute (x; <w_i, w_{t_l}> for each l).

    The construction is Lemma 23, (C.3) to (C.7). The layer passes tokens on without error, as x =
    relu(x) - relu(-x). The inner products of unit vectors err by at most de times `product_error(2,
    knots)`. Rows of W_1 have l_1 norm 1 and biases are at most 1, as Lemmas 22 and 23 require. To
    keep to these limits, the units that compute products have the input (w + w') / 2 and doubled
    outer weights.
    """
    x, own, wanted = _selectors(q, d, de)
    kappa, beta = square_hinges(2.0, knots)
    plus, minus = ((np.tile(own, (q, 1)) + sign * wanted) / 2 for sign in (1, -1))
    forms = np.concatenate([plus, -plus, minus, -minus])
    hinges = np.repeat(forms, knots, axis=0)
    shifts = np.concatenate([np.zeros(2 * d), -np.tile(kappa / 2, len(forms))])
    count = np.kron(np.repeat(np.eye(q), de, axis=1), beta / 2.0)
    token = np.concatenate([np.eye(d), -np.eye(d), np.zeros((d, len(hinges)))], axis=1)
    inner = np.concatenate([np.zeros((q, 2 * d)), count, count, -count, -count], axis=1)
    return layer(np.concatenate([x, -x, hinges]), shifts), np.concatenate([token, inner])


def interpolated_transition(
    *, q: int, d: int, de: int, radius: float, knots: int = 32, coherence: float = 0.5
) -> Network:
    """Build the four layers of f(z) for any unit encodings, with approximate squares.

    The layers approximate squares by piecewise-linear interpolation, and compute products as
    differences of squares. The error of the gate is of order de / knots^2, and the error of the
    product is of order (radius / knots)^2. If the gate is closed, the output is exactly 0. The gate
    closes only if the inner product plus the error of its approximation is at most `coherence`. So
    `coherence` must exceed the encodings' coherence by at least the error of the inner product.

    `radius` is a bound B on every |x_ik|, and `coherence` is the inner product mu up to which the
    gate is closed. `knots` linear pieces approximate v^2 for v >= 0.

    Raises:
        Refused: if the coherence is outside [0, 1) or the radius is not positive.
    """
    _check(coherence, radius)
    first, products = inner_products(q=q, d=d, de=de, knots=knots)
    second = _gate(q, d, products[d:], 0.0, coherence)
    token, gate = _spread(q, d)
    kappa, beta = square_hinges(radius + 1.5, knots)
    sums, differences = token + gate, token - gate
    forms = np.concatenate([sums, -sums, differences, -differences])
    third = layer(np.repeat(forms, knots, axis=0), -np.tile(kappa, len(forms)))
    product = np.kron(np.eye(q * d), beta / 4.0)
    return first, second, third, layer(np.concatenate([product, product, -product, -product], 1))


def interpolated_error(
    *, q: int, d: int, de: int, radius: float, knots: int = 32, coherence: float = 0.5
) -> float:
    """Bound the error of each entry of `interpolated_transition`'s output.

    The inner product errs by at most de times `product_error(2, knots)`, and the gate by 1/(1 - mu)
    times as much. The bound on the error holds under two conditions. First, the coherence of the
    encodings plus the error of the inner product is at most mu, so that the gate closes. Second,
    the value of the gate is at most 3/2.
    """
    gate = de * product_error(2.0, knots) / (1.0 - coherence)
    return radius * gate + product_error(radius + 1.5, knots)


def biased_transition(
    noise: Float[Array | np.ndarray, "qd"], /, *, rectified: bool, eps: float, **options: Any
) -> Network:
    """Build `exact_transition` plus a constant error, with or without the rectifier of (C.2).

    The constant error lies in [eps/2, eps]. If there is no rectifier, every step errs by at most
    eps (C.1), and N steps err by up to N eps. The rectifier removes the errors of all steps except
    the step i = t_l, so errors do not accumulate.

    Raises:
        Refused: if the constant error `noise` is outside [eps/2, eps].
    """
    noise = np.asarray(noise)
    if not np.all((noise >= eps / 2) & (noise <= eps)):
        raise Refused(
            f"noise of shape={np.shape(noise)} is not in [eps/2, eps] = [{eps / 2}, {eps}]. Try "
            f"noise inside this interval"
        )
    network = shift_output(exact_transition(**options), noise)
    return shrink_output(network, eps) if rectified else network


def recovered_tokens(
    forward: Float[Array, "*batch N qd"],
    backward: Float[Array, "*batch N qd"],
    increments: Float[Array, "*batch N qd"],
    /,
    *,
    q: int,
) -> Float[Array, "*batch N q d"]:
    """Return state + state + f(z_i) for all i, which is (x_{t_1}; ..; x_{t_q}) without errors."""
    total = forward + backward + increments
    return total.reshape(*total.shape[:-1], q, -1)


def readout(network: TwoLayer, transition: Network, /) -> Network:
    """Build f_y(h->, h<-, z) as one ReLU network that applies g to h-> + h<- + f(z).

    The hidden layers compute f(z), and also pass on both states as positive and negative parts: v =
    relu(v) - relu(-v).
    """
    width = transition[-1].W.shape[0]
    eye = np.eye(width)
    pair = np.concatenate([eye, -eye])
    into, join = np.concatenate([pair, pair], axis=1), np.concatenate([eye, -eye], axis=1)
    layers = []
    for number, (W, b) in enumerate(transition):
        W, b = np.asarray(W), np.asarray(b)
        if number == 0:  # reads (h->, h<-, z)
            states, beside = into, np.zeros((len(W), 2 * width))
        else:
            states, beside = np.eye(2 * width), np.zeros((len(W), 2 * width))
        if number < len(transition) - 1:
            columns = np.zeros((2 * width, W.shape[1]))
            top = np.concatenate([states, columns], axis=1)
            joined = np.concatenate([top, np.concatenate([beside, W], axis=1)])
            layers.append(layer(joined, np.concatenate([np.zeros(2 * width), b])))
        else:  # joins the states' sum and the transition's output, then enters g's hidden layer
            both, shift = np.concatenate([join, W], axis=1), b
            layers.append(Layer(network.W @ both, network.W @ shift + network.b))
    layers.append(Layer(network.a[None, :], np.zeros(1, network.a.dtype)))
    return tuple(layers)


def constructed_rnn(
    transition: Network, network: TwoLayer, z: Float[Array, "*batch N De"], /
) -> Float[Array, "*batch N"]:
    """Return the constructed RNN's predictions; prefix sums over the tokens replace the scan.

    The function does not check the conditions of `transition` on the encodings and on max |x_ik|.
    `network` is the two-layer network that represents the link g:
    `find_link(..).two_layer(parameters)`. `z` are prompts whose positions share t
    (`sample_prompts(.., simple=True)`), encoded by `encode(.., scale=False)`.
    """
    increments = evaluate(transition, z)
    states = [exclusive_sums(increments), exclusive_sums(increments, reverse=True)]
    return evaluate(readout(network, transition), jnp.concatenate([*states, z], axis=-1))[..., 0]
