"""The paper's bidirectional RNN (Section 5), with residual transitions and projected states.

The states are h->_1 = 0 and h->_{i+1} = Pi_r(h->_i + f->(h->_i, z_i)), and the backward states h<-
are defined in the same way from the last token on. The prediction is yhat_i = f_y(h->_i, h<-_i,
z_i). The state at position i does not depend on token i, unlike in PyTorch's or Flax's RNNs.
"""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.qstr.layers import TorchMLP

Transition = Callable[[Array, Array], Array]


def project_to_ball(
    h: Float[Array, "*batch dh"], radius: float | Float[Array, ""], /
) -> Float[Array, "*batch dh"]:
    """Return Pi_r h = min(1, r / |h|) h, which is 1-Lipschitz and differentiable at 0."""
    square = jnp.sum(h**2, axis=-1, keepdims=True)
    outside = square > radius**2
    norm = jnp.sqrt(jnp.where(outside, square, jnp.ones_like(square)))
    return jnp.where(outside, radius / norm, jnp.ones_like(norm)) * h


def exclusive_states(
    transition: Transition,
    z: Float[Array, "*batch N De"],
    hidden: int,
    /,
    *,
    radius: float | Float[Array, ""] = jnp.inf,
    reverse: bool = False,
) -> Float[Array, "*batch N dh"]:
    """Compute the states of all positions by a scan; the state at i does not depend on token i.

    `transition` is the function f(h, z) that returns the increment of the state, and `radius` is
    the radius of the ball onto which states are projected. If `reverse` is set, the scan starts at
    the last token, as for the backward states h<-.
    """

    def step(h: Array, token: Array) -> tuple[Array, Array]:
        return project_to_ball(h + transition(h, token), radius), h

    start = jnp.zeros((*z.shape[:-2], hidden), z.dtype)
    states = jax.lax.scan(step, start, jnp.moveaxis(z, -2, 0), reverse=reverse)[1]
    return jnp.moveaxis(states, 0, -2)


def exclusive_sums(
    increments: Float[Array, "*batch N dh"], /, *, reverse: bool = False
) -> Float[Array, "*batch N dh"]:
    """Return the states of all positions, for increments that do not depend on the state.

    The state at i does not depend on token i. The function does not project the states onto a ball.
    """
    if reverse:
        return jnp.flip(exclusive_sums(jnp.flip(increments, -2)), -2)
    shifted = jnp.roll(jnp.cumsum(increments, axis=-2), 1, axis=-2)
    return shifted.at[..., 0, :].set(0.0)


class BidirectionalRNN(nn.Module):
    """The RNN of Section 5 with trainable ReLU transitions and readout.

    Attributes:
        hidden: the dimension d_h of a state.
        transition_widths: the hidden widths of the transitions f-> and f<-.
        readout_widths: the hidden widths of the readout f_y.
        radius: the radius r_h of the ball onto which states are projected.
    """

    hidden: int
    transition_widths: tuple[int, ...] = (64,)
    readout_widths: tuple[int, ...] = (64,)
    radius: float = 10.0

    @nn.compact
    def __call__(self, z: Float[Array, "*batch N De"]) -> Float[Array, "*batch N"]:
        """Return the predictions at every position of each prompt."""
        states = []
        for name, reverse in (("forward", False), ("backward", True)):
            net = TorchMLP((*self.transition_widths, self.hidden), name=name)
            first = jnp.zeros((*z.shape[:-2], self.hidden), z.dtype)
            net(jnp.concatenate([first, z[..., 0, :]], axis=-1))  # creates the parameters
            # A bound Flax module may not be called inside a scan; its pure `apply` may.
            weights = {"params": net.variables["params"]}
            pure = net.clone(parent=None, name=None)
            transition = lambda h, token, pure=pure, weights=weights: pure.apply(
                weights, jnp.concatenate([h, token], axis=-1)
            )
            states.append(
                exclusive_states(transition, z, self.hidden, radius=self.radius, reverse=reverse)
            )
        features = jnp.concatenate([*states, z], axis=-1)
        return TorchMLP((*self.readout_widths, 1), name="readout")(features)[..., 0]
