"""The networks that Figures 2 to 5 can train, by name, and the place to add one.

A student is two pure functions: `init(key, tokens)` gives a pytree of parameters, and
`apply(params, tokens)` gives the outputs (n,) of the tokens (n, T, d). A Flax (linen) module of
that shape is a student as it is. A file of your own registers another one, and
`jaxbounds run multihead.fig2 --import FILE --student NAME` trains it.
"""

import difflib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

import flax.linen as nn
import jax
from jaxtyping import Array

from jaxbounds.experiments.experiment import Finding
from jaxbounds.multihead.model import MultiHeadAttention

EQUAL_HEADS = "equal-heads"
"""The paper's model with equal heads (`student.EqualHeads`), where H is data of a lane."""


class Student(NamedTuple):
    """A network as two pure functions.

    Attributes:
        init: (key, tokens (n, T, d)) to a pytree of parameters.
        apply: (parameters, tokens (n, T, d)) to the outputs (n,), whose signs are the labels.
    """

    init: Callable[[Array, Array], Any]
    apply: Callable[[Any, Array], Array]


Factory = Callable[[int], Student | nn.Module]


def of_module(module: nn.Module, /) -> Student:
    """A Flax (linen) module over n sequences, through its `init` and `apply`."""
    return Student(
        lambda key, tokens: module.init(key, tokens)["params"],
        lambda params, tokens: cast(Array, module.apply({"params": params}, tokens)),
    )


def all_heads(heads: int, /) -> Student:
    """The paper's model with all heads written out, from zero."""
    module = MultiHeadAttention(heads)
    one = lambda params, X: cast(Array, module.apply({"params": params}, X))
    every = jax.vmap(one, in_axes=(None, 0))
    return Student(lambda key, tokens: module.init(key, tokens[0])["params"], every)


STUDENTS: dict[str, Factory] = {"all-heads": all_heads}
"""The students besides `EQUAL_HEADS`; a factory makes one from H."""


def register(name: str, factory: Factory, /) -> None:
    """Add a student of your own, so that Figures 2 to 5 can name it.

    Args:
        name: the value of the field `student`.
        factory: from H to a `Student` or a Flax (linen) module.

    Raises:
        ValueError: if the name is taken.
    """
    if name in STUDENTS or name == EQUAL_HEADS:
        raise ValueError(
            f"name={name!r} is taken by another student, expected a new name. Try another name"
        )
    STUDENTS[name] = factory


def refuse_unknown(name: str, /) -> None:
    """Check that there is a student of this name.

    Raises:
        ValueError: if there is none, with the nearest one or those there are.
    """
    if name not in STUDENTS and name != EQUAL_HEADS:
        names = (EQUAL_HEADS, *STUDENTS)
        near = difflib.get_close_matches(name, names, 1)
        hint = near[0] if near else f"one of {', '.join(names)}"
        raise ValueError(
            f"student={name!r}, expected a registered name. Try {hint} (your own needs --import "
            "FILE)"
        )


def build(name: str, heads: int, tokens: jax.ShapeDtypeStruct, /) -> Student:
    """The student of that name with so many heads, checked on the shape of the tokens.

    Args:
        name: from `STUDENTS`.
        heads: H.
        tokens: (n, T, d).

    Raises:
        ValueError: if the factory makes no student, or its outputs are not (n,).
    """
    made = STUDENTS[name](heads)
    student = of_module(made) if isinstance(made, nn.Module) else made
    if not isinstance(student, Student):
        raise ValueError(
            f"the factory of student={name!r} gives {type(made).__name__}, expected a Flax"
            " linen module or a Student. Try Student(init, apply)"
        )
    key = jax.eval_shape(lambda: jax.random.key(0))
    params = jax.eval_shape(student.init, key, tokens)
    outputs = jax.eval_shape(student.apply, params, tokens)
    if getattr(outputs, "shape", None) != tokens.shape[:1]:
        raise ValueError(
            f"student={name!r} maps tokens {tokens.shape} to"
            f" {getattr(outputs, 'shape', outputs)}, expected {tokens.shape[:1]}. Try jax.vmap"
            " for a network of one sequence, or [..., 0]"
        )
    return student


def attributed(student: str, claims: Iterable[Finding], /) -> tuple[Finding, ...]:
    """The claims with the name of the student, unless it is the paper's: the paper owns them.

    Args:
        student: the value of the field.
        claims: decided on what the student did.
    """
    whose = "" if student == EQUAL_HEADS else f"asked of student {student!r}: "
    return tuple(claim._replace(text=whose + claim.text) for claim in claims)
