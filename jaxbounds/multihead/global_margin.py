"""A search for the global margin of one head; each value that it finds is a lower estimate.

`norm="both"` is the paper's max over ||theta|| = sqrt(2) of min_i y_i Phi(X_i; theta) (Section 7).
Phi is homogeneous in U but not in W. The constraint `norm="projection"` fixes ||U|| = 1 and does
not restrict W. The supremum of the margin under ||U|| = 1 is the value that gamma_attn approaches.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import head_output

Head = dict[str, Array]
Norm = Literal["both", "projection"]


class GlobalMargin(NamedTuple):
    """The largest margin that several searches for the global margin have found.

    Attributes:
        value: min_i y_i Phi(X_i; theta) at `params`, a lower estimate of the global margin.
        params: theta, the parameters of one head, which satisfy the constraint.
        starts: the margin that each search reached.
    """

    value: Float[Array, ""]
    params: Head
    starts: Float[Array, " starts"]


def feasible(params: Head, norm: Norm, /) -> Head:
    """Return the multiple of `params` that satisfies the constraint.

    If `norm` is "projection", the constraint bounds U alone, so the function multiplies only U.
    """
    squares = jnp.sum(params["U"] ** 2)
    if norm == "projection":
        return {"U": params["U"] / jnp.sqrt(squares), "W": params["W"]}
    total = jnp.sqrt((squares + jnp.sum(params["W"] ** 2)) / 2)
    return jax.tree.map(lambda leaf: leaf / total, params)


def head_margins(params: Head, data: Data, /) -> Float[Array, " n"]:
    """Return the margins y_i Phi(X_i; U, W) of one head."""
    outputs = jax.vmap(head_output, in_axes=(None, None, 0))(params["U"], params["W"], data["X"])
    return data["y"].astype(outputs.dtype) * outputs


def search_global_margin(
    key: jax.Array,
    data: Data,
    norm: Norm = "both",
    /,
    *,
    starts: int = 8,
    steps: int = 1500,
    step_size: float = 0.03,
    initial: Head | None = None,
) -> GlobalMargin:
    """Maximise the soft minimum of the margins with Adam from random starts.

    During the search, the soft minimum approaches the exact minimum.

    Args:
        key: the random key of the starts.
        data: {"X": (n, T, d), "y": (n,)}.
        norm: the parameters of norm one: all ("both") or only U ("projection").
        starts: the number of searches, which run in parallel.
        steps: the number of Adam steps of each search.
        step_size: the first step size of Adam; the step size decays to zero.
        initial: the parameters that replace the first start, such as the oracle direction.

    Raises:
        Refused: if `norm` is unknown.
    """
    import optax  # slow to import

    if norm not in ("both", "projection"):
        raise Refused(f"norm={norm!r} is unknown, expected 'both' or 'projection'. Try norm='both'")
    _, T, d = data["X"].shape
    outer_key, inner_key = jax.random.split(key)
    first = {
        "U": jax.random.normal(outer_key, (starts, T, d)) / jnp.sqrt(1.0 * T * d),
        "W": jax.random.normal(inner_key, (starts, d, d)) / d,
    }
    if initial is not None:
        first = jax.tree.map(lambda rows, row: rows.at[0].set(row), first, dict(initial))
    rule = optax.adam(optax.cosine_decay_schedule(step_size, steps))
    sharpness = jnp.geomspace(3.0, 300.0, steps)

    def objective(params: Head, sharp: Array) -> Array:
        return jax.nn.logsumexp(-sharp * head_margins(feasible(params, norm), data)) / sharp

    def climb(params: Head) -> tuple[Head, Array]:
        def step(carry: tuple[Head, Any], sharp: Array) -> tuple[tuple[Head, Any], None]:
            params, state = carry
            updates, state = rule.update(jax.grad(objective)(params, sharp), state)
            params = optax.apply_updates(params, updates)
            return (params, state), None

        (params, _), _ = jax.lax.scan(step, (params, rule.init(params)), sharpness)
        params = feasible(params, norm)
        return params, jnp.min(head_margins(params, data))

    with jax.numpy_dtype_promotion("standard"):
        params, reached = jax.jit(jax.vmap(climb))(first)
    best = jnp.argmax(reached)
    return GlobalMargin(reached[best], jax.tree.map(lambda leaf: leaf[best], params), reached)
