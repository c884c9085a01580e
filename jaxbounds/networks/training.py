"""One pure training step, scanned: gradient, Optax update, metrics.

Step sizes are arrays: a grid of them shares one compiled program.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import jax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused

if TYPE_CHECKING:  # slow to import
    import optax

Params = Any
Loss = Callable[[Params], Float[Array, ""]]
Rule = Literal["gd", "momentum", "adam", "adamw"]


class Training(NamedTuple):
    """A run in the middle: what the next step needs besides the loss.

    Attributes:
        params: the iterate.
        memory: the optimiser's state.
    """

    params: Params
    memory: Any


def optimizer(
    rule: Rule,
    step_size: ArrayLike,
    /,
    *,
    momentum: ArrayLike = 0.9,
    weight_decay: ArrayLike = 0.01,
) -> "optax.GradientTransformation":
    """Full-batch optimisers by name, with a step size that may be traced.

    Args:
        rule: "gd", "momentum" (heavy ball), "adam" or "adamw" (beta = .9, .999, eps = 1e-8).
        step_size: a number or a traced scalar.
        momentum: the heavy ball's coefficient.
        weight_decay: AdamW's, decoupled.

    Raises:
        Refused: if the rule is unknown.
    """
    import optax

    if rule == "gd":
        return optax.sgd(step_size)
    if rule == "momentum":
        return optax.sgd(step_size, momentum=momentum)
    if rule == "adam":
        return optax.adam(step_size)
    if rule == "adamw":
        return optax.adamw(step_size, weight_decay=weight_decay)
    raise Refused(f"rule must be one of {', '.join(get_args(Rule))}, got {rule!r}")


def begin(params: Params, rule: "optax.GradientTransformation", /) -> Training:
    """The state before the first step."""
    return Training(params, rule.init(params))


def train_step(loss: Loss, rule: "optax.GradientTransformation", state: Training, /) -> Training:
    """One step along the gradient of `loss`."""
    import optax

    slope = jax.grad(loss)(state.params)
    # Optax mixes floats with integer counts, which strict promotion refuses.
    with jax.numpy_dtype_promotion("standard"):
        updates, memory = rule.update(slope, state.memory, state.params)
        params = optax.apply_updates(state.params, updates)
    return Training(params, memory)


def train(
    loss: Loss,
    params: Params,
    rule: "optax.GradientTransformation",
    steps: int,
    measure: Callable[[Params], Mapping[str, Array]],
    /,
    *,
    every: int = 1,
) -> tuple[Training, dict[str, Array]]:
    """`steps` steps in one scan, measured after every `every` of them.

    Args:
        loss: of the parameters; close over the data.
        params: where to start.
        rule: from `optimizer`, or any Optax transformation.
        steps: a multiple of `every`.
        measure: small arrays by name.
        every: steps between measurements.

    Returns:
        The last state, and the measurements stacked along a leading axis.

    Raises:
        Refused: if `steps` is no positive multiple of `every`.
    """
    if every < 1 or steps < 1 or steps % every:
        raise Refused(f"steps must be a positive multiple of every, got {steps} and {every}")
    one = lambda state, _: (train_step(loss, rule, state), None)

    def record(state: Any, _: None) -> tuple[Any, dict[str, Any]]:
        state, _ = jax.lax.scan(one, state, length=every)
        return state, dict(measure(state.params))

    return jax.lax.scan(record, begin(params, rule), length=steps // every)


def trajectory(
    loss: Loss, params: Params, rule: "optax.GradientTransformation", steps: int, /
) -> Params:
    """The iterates of an optimiser from `params` on, stacked: leaves of length `steps + 1`."""
    step = lambda state, _: (train_step(loss, rule, state), state.params)
    last, earlier = jax.lax.scan(step, begin(params, rule), length=steps)
    join = lambda rows, row: jax.numpy.concatenate([rows, row[None]])
    return jax.tree.map(join, earlier, last.params)
