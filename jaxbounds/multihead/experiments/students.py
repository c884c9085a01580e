"""The networks that Figures 2 to 5 can train, by name, and the function that adds a network.

A student is a network, given as two pure functions `init` and `apply`. A Flax (linen) module that
maps tokens (n, T, d) to outputs (n,) can be a student without any change. A file of your own
registers another student, and `jaxbounds run multihead.fig2 --import FILE --student NAME` trains
it.
"""

import difflib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

import flax.linen as nn
import jax
from jaxtyping import Array

from jaxbounds.experiments.experiment import Finding
from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.model import MultiHeadAttention

EQUAL_HEADS = "equal-heads"
"""The name of the paper's model with equal heads; `student.EqualHeads` is this model."""


class Student(NamedTuple):
    """A network as two pure functions.

    Attributes:
        init: a function from (key, tokens (n, T, d)) to a pytree of parameters.
        apply: a function from (parameters, tokens (n, T, d)) to the outputs (n,), whose signs are
            the labels.
    """

    init: Callable[[Array, Array], Any]
    apply: Callable[[Any, Array], Array]


Factory = Callable[[int], Student | nn.Module]


def of_module(module: nn.Module, /) -> Student:
    """Return a student with the `init` and `apply` of a Flax (linen) module over n sequences."""
    return Student(
        lambda key, tokens: module.init(key, tokens)["params"],
        lambda params, tokens: cast(Array, module.apply({"params": params}, tokens)),
    )


def all_heads(heads: int, /) -> Student:
    """Return the paper's model with all heads written out and a start at zero."""
    module = MultiHeadAttention(heads)
    one = lambda params, X: cast(Array, module.apply({"params": params}, X))
    every = jax.vmap(one, in_axes=(None, 0))
    return Student(lambda key, tokens: module.init(key, tokens[0])["params"], every)


STUDENTS: dict[str, Factory] = {"all-heads": all_heads}
"""A dictionary from the name of each student (network to train) to its factory, a function from the
number of heads H to a student. `EQUAL_HEADS` has no entry.
"""


def register(name: str, factory: Factory, /) -> None:
    """Register a student of your own under a name that the runs of Figures 2 to 5 accept.

    Args:
        name: the value of the field `student`.
        factory: a function from H to a `Student` or a Flax (linen) module.

    Raises:
        Refused: if the name is taken.
    """
    if name in STUDENTS or name == EQUAL_HEADS:
        raise Refused(
            f"name={name!r} is taken by another student, expected a new name. Try another name"
        )
    STUDENTS[name] = factory


def refuse_unknown(name: str, /) -> None:
    """Check that a student (network to train) with the name `name` exists.

    Raises:
        Refused: if no student has this name; the message names the student with the nearest name,
            or all students.
    """
    if name not in STUDENTS and name != EQUAL_HEADS:
        names = (EQUAL_HEADS, *STUDENTS)
        near = difflib.get_close_matches(name, names, 1)
        hint = near[0] if near else f"one of {', '.join(names)}"
        raise Refused(
            f"student={name!r}, expected a registered name. Try {hint} (a student of your own "
            "needs --import FILE)"
        )


def build(name: str, heads: int, tokens: jax.ShapeDtypeStruct, /) -> Student:
    """Build the named student with H heads, and check the shape of its output on tokens.

    `tokens` gives the shape (n, T, d) and the dtype of the tokens.

    Raises:
        Refused: if the factory makes no student, or the student's outputs do not have shape (n,).
    """
    made = STUDENTS[name](heads)
    student = of_module(made) if isinstance(made, nn.Module) else made
    if not isinstance(student, Student):
        raise Refused(
            f"the factory of student={name!r} returns {type(made).__name__}, expected a Flax"
            " linen module or a Student. Try Student(init, apply)"
        )
    key = jax.eval_shape(lambda: jax.random.key(0))
    params = jax.eval_shape(student.init, key, tokens)
    outputs = jax.eval_shape(student.apply, params, tokens)
    if getattr(outputs, "shape", None) != tokens.shape[:1]:
        raise Refused(
            f"student={name!r} maps tokens {tokens.shape} to"
            f" {getattr(outputs, 'shape', outputs)}, expected {tokens.shape[:1]}. Try jax.vmap"
            " for a network of one sequence, or [..., 0]"
        )
    return student


def attributed(student: str, claims: Iterable[Finding], /) -> tuple[Finding, ...]:
    """Add the name of the student to the claims, unless the student is the paper's model."""
    whose = "" if student == EQUAL_HEADS else f"asked of student {student!r}: "
    return tuple(claim._replace(text=whose + claim.text) for claim in claims)
