"""PyTorch's default initial laws, part of the published protocol."""

import math

import jax

Initialiser = jax.nn.initializers.Initializer


def uniform_fan_in(fan_in: int, /) -> Initialiser:
    """U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's Linear, GRU and LSTM, biases included."""
    bound = 1.0 / math.sqrt(fan_in)
    return lambda key, shape, dtype=float: jax.random.uniform(
        key, shape, dtype, minval=-bound, maxval=bound
    )


def stacked_xavier(width: int, /) -> Initialiser:
    """Xavier-uniform over the stacked (3 width, width) query, key and value map."""
    bound = math.sqrt(6.0 / (4 * width))
    return lambda key, shape, dtype=float: jax.random.uniform(
        key, shape, dtype, minval=-bound, maxval=bound
    )
