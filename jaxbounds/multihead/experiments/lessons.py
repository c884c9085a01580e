"""The compiled training programs (lessons) of Figures 2 to 5.

For the paper's model with equal heads, H and the step size are inputs, so one program trains all H.
The shapes of another network's parameters depend on H, so each H has its own program.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.multihead.experiments.student import (
    EqualHeads,
    Lane,
    Params,
    margins,
    measurements,
    risks,
)
from jaxbounds.multihead.experiments.students import EQUAL_HEADS, Student, build
from jaxbounds.multihead.loss import logistic
from jaxbounds.multihead.tied import tied
from jaxbounds.networks.training import Rule, Training, begin, optimizer, train_step

if TYPE_CHECKING:  # slow to import
    import optax

Measure = Callable[[Lane, Params], dict[str, Array]]


class Lesson(NamedTuple):
    """A compiled program that trains a network (student) in every trial, at one H or at all H.

    Attributes:
        name: the name of the folder that stores the progress of this program; "" if the run trains
            with one program.
        lanes: the inputs {"train", "test", "heads", "step_size", ...}, stacked over H and trials.
        start: a function from one trial's inputs to the parameters before the first step.
        margins: a function from (parameters, one trial's inputs, "train" or "test") to y_i f(X_i).
        rule: a function from one trial's inputs to its optimiser.
        measure: a function from one trial's inputs and its parameters to the recorded quantities.
    """

    name: str
    lanes: Lane
    start: Callable[[Lane], Any]
    margins: Callable[[Any, Lane, str], Array]
    rule: Callable[[Lane], "optax.GradientTransformation"]
    measure: Measure

    def begin(self, lane: Lane, /) -> Training:
        """Return the state of one trial before the first step."""
        return begin(self.start(lane), self.rule(lane))

    def step(self, lane: Lane, state: Training, /) -> Training:
        """Take one step along the gradient of the mean logistic loss on the train samples."""
        loss = lambda params: jnp.mean(logistic(self.margins(params, lane, "train")))
        return train_step(loss, self.rule(lane), state)

    def record(self, lane: Lane, state: Training, /) -> dict[str, Array]:
        """Return the measured quantities of a network in training."""
        return self.measure(lane, state.params)


def equal_heads(rule: Rule, lanes: Lane, measure: Measure, /) -> Lesson:
    """Return a program that trains the paper's model from zero weights, with H equal heads."""
    module, key = EqualHeads(), jax.random.key(0)  # the start is zero, so any key will do
    tokens = lambda lane: lane["train"]["X"]
    return Lesson(
        name="",
        lanes=lanes,
        start=lambda lane: module.init(key, tokens(lane), method="parameters")["params"],
        margins=lambda params, lane, part: margins(params, lane["heads"], lane[part]),
        rule=lambda lane: tied(optimizer(rule, lane["step_size"]), lane["heads"].reshape(1)),
        measure=lambda lane, params: measurements(lane, params) | measure(lane, params),
    )


def _own(student: Student, name: str, rule: Rule, lanes: Lane) -> Lesson:
    def outputs(params: Any, lane: Lane, part: str) -> Array:
        return lane[part]["y"] * student.apply(params, lane[part]["X"])

    return Lesson(
        name=name,
        lanes=lanes,
        start=lambda lane: student.init(lane["key"], lane["train"]["X"]),
        margins=outputs,
        rule=lambda lane: optimizer(rule, lane["step_size"]),
        measure=lambda lane, params: risks(
            *(outputs(params, lane, part) for part in ("train", "test"))
        ),
    )


def lessons(
    student: str, rule: Rule, heads: Sequence[int], lanes: Lane, keys: Array, measure: Measure, /
) -> Iterator[Lesson]:
    """Yield the training programs of one optimiser: one for equal heads, else one for each H.

    `lanes` holds the inputs of all trials, ordered by H and then by trial, with the sample axis of
    the data last. `keys` are the random keys of these data; a student other than the paper's equal
    heads also draws its start from them.
    """
    if student == EQUAL_HEADS:
        yield equal_heads(rule, lanes, measure)
        return
    own_key = lambda key: jax.random.fold_in(key, zlib.crc32(b"student"))
    first = lambda part: {"X": jnp.moveaxis(part["X"], -1, 1), "y": part["y"]}
    every: Lane = {name: first(lanes[name]) for name in ("train", "test")}
    every |= {"step_size": lanes["step_size"], "key": jax.vmap(own_key)(keys)}
    trials = len(keys) // len(heads)
    for index, H in enumerate(heads):
        some = jax.tree.map(lambda leaf: leaf[index * trials : (index + 1) * trials], every)  # noqa: B023
        tokens = some["train"]["X"]
        shape = jax.ShapeDtypeStruct(tokens.shape[1:], tokens.dtype)
        yield _own(build(student, H, shape), f"H{H}", rule, some)
