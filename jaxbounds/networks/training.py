"""Train by a scan over one pure step, which computes gradient, Optax update and metrics.

Step sizes are arrays, so that a grid of step sizes shares one compiled program.
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
    """The state of a training run between two steps.

    Attributes:
        params: the present parameters of the network.
        memory: the present state of the optimiser.
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
    """Return the full-batch optimiser with the given name; its step size may be traced.

    Args:
        rule: the name of the optimiser: "gd", "momentum" (heavy ball), "adam" or "adamw" (beta =
            .9, .999, eps = 1e-8).
        step_size: the step size of the optimiser: a number or a traced scalar.
        momentum: the momentum coefficient of the heavy-ball method.
        weight_decay: the decoupled weight decay of AdamW.

    Raises:
        Refused: if the name of the optimiser is unknown.
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
    raise Refused(f"rule must be one of {', '.join(get_args(Rule))}, got {rule!r}. Try 'gd'")


def begin(params: Params, rule: "optax.GradientTransformation", /) -> Training:
    """Return the state before the first step."""
    return Training(params, rule.init(params))


def train_step(loss: Loss, rule: "optax.GradientTransformation", state: Training, /) -> Training:
    """Do one step of the optimiser along the gradient of `loss`."""
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
    """Train for `steps` steps in one scan, and measure after every `every` steps.

    Args:
        loss: a function of the parameters alone, `loss(params)`, which closes over the data.
        params: the parameters at the start of the training.
        rule: the optimiser, from `optimizer` or any Optax transformation.
        steps: the number of training steps, a multiple of `every`.
        measure: a function of the parameters that returns a dictionary of small arrays.
        every: the number of training steps between measurements.

    Returns:
        The training state after the last step, and the measurements stacked along a leading axis.

    Raises:
        Refused: if `steps` is not a positive multiple of `every`.
    """
    if every < 1 or steps < 1 or steps % every:
        raise Refused(
            f"steps must be a positive multiple of every, got steps={steps} and every={every}. Try "
            f"steps={max(1, every)}"
        )
    one = lambda state, _: (train_step(loss, rule, state), None)

    def record(state: Any, _: None) -> tuple[Any, dict[str, Any]]:
        state, _ = jax.lax.scan(one, state, length=every)
        return state, dict(measure(state.params))

    return jax.lax.scan(record, begin(params, rule), length=steps // every)


def trajectory(
    loss: Loss, params: Params, rule: "optax.GradientTransformation", steps: int, /
) -> Params:
    """Return all iterates of an optimiser, `params` first, as stacked leaves (steps + 1, ...)."""
    step = lambda state, _: (train_step(loss, rule, state), state.params)
    last, earlier = jax.lax.scan(step, begin(params, rule), length=steps)
    join = lambda rows, row: jax.numpy.concatenate([rows, row[None]])
    return jax.tree.map(join, earlier, last.params)
