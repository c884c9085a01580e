"""Lessons: the compiled training programs of Figures 2 to 5.

A student is the network that a lesson trains, and a lane is one trial at one H. For the paper's
model with equal heads, H and the step size are inputs of the lesson (training program), so one
lesson serves all H. The shapes of another student's parameters depend on H, so each H has its own
lesson.
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
    """A compiled program that trains a student (network) on lanes; a lane is one trial at one H.

    Attributes:
        name: the name of the folder that stores the progress of this program; "" if the run trains
            with one program.
        lanes: the inputs {"train", "test", "heads", "step_size", ...} of all lanes, stacked.
        start: a function from a lane to its parameters before the first step.
        margins: a function from (parameters, lane, "train" or "test") to y_i f(X_i).
        rule: a function from a lane to its optimiser.
        measure: a function from a lane and parameters to the recorded quantities.
    """

    name: str
    lanes: Lane
    start: Callable[[Lane], Any]
    margins: Callable[[Any, Lane, str], Array]
    rule: Callable[[Lane], "optax.GradientTransformation"]
    measure: Measure

    def begin(self, lane: Lane, /) -> Training:
        """Return the state of a lane (one trial at one H) before the first step."""
        return begin(self.start(lane), self.rule(lane))

    def step(self, lane: Lane, state: Training, /) -> Training:
        """Take one step along the gradient of the mean logistic loss on the train samples."""
        loss = lambda params: jnp.mean(logistic(self.margins(params, lane, "train")))
        return train_step(loss, self.rule(lane), state)

    def record(self, lane: Lane, state: Training, /) -> dict[str, Array]:
        """Return the measured quantities of a network in training; a lane is one trial at one H."""
        return self.measure(lane, state.params)


def equal_heads(rule: Rule, lanes: Lane, measure: Measure, /) -> Lesson:
    """Return a program that trains the paper's model from zero weights, with H equal heads.

    Args:
        rule: the name of the optimiser.
        lanes: the inputs of all lanes; a lane is one trial at one H.
        measure: a function that returns further quantities to record, from a lane (one trial at one
            H) and the parameters of one head.
    """
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
    """Return the training program of a student (network) on the lanes (trials) of one H.

    A student network takes data whose first axis counts the samples.
    """

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
    """Yield the training programs (lessons) of one optimiser, in the order of their lanes.

    Args:
        student: the name of the student, the network that the programs train.
        rule: the name of the optimiser.
        heads: the number of heads H.
        lanes: the inputs of all lanes (one trial at one H), ordered by H and then by trial. In the
            data of a lane, the sample axis is the last axis.
        keys: the random keys from which the data of the lanes were drawn. A student other than the
            paper's equal heads uses these keys for the random parameters of its start.
        measure: a function from a lane (one trial at one H) and the parameters of one head to
            further quantities to record.
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
