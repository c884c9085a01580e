"""Trace a loss again at each call; the arrays in the loss become arguments of the program.

A loss may read objects that the user changes in place: a module, an array, an attribute, a global
name. The key of a compiled program is therefore the trace of the loss, not its function object.
"""

import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import ClosedJaxpr, as_function, with_constants
from jaxbounds.networks.curvature.batches import Group
from jaxbounds.networks.curvature.causes import explained
from jaxbounds.networks.curvature.leaves import Selection
from jaxbounds.networks.curvature.paths import refuse_deleted
from jaxbounds.networks.curvature.products import Composite, Loss, real, slope_product
from jaxbounds.programs.traces import bytes_of, draws, equations, narrow_operations, program_text


class Part(NamedTuple):
    """A traced function of one pytree.

    Attributes:
        closed: the function's equations, and the constants of this call.
    """

    closed: ClosedJaxpr
    result: Any

    def text(self) -> str:
        """Return a text that differs between programs, and does not depend on arguments' values."""
        return f"{program_text(self.closed)} {self.result}"

    @classmethod
    def of(cls, function: Callable, example: Any, /) -> tuple["Part", list[Any]]:
        """Return the trace of a function of one pytree, and the arrays that the function holds."""
        part = _part(function, example)
        held = list(part.closed.consts)
        return cls(with_constants(part.closed, [None] * len(held)), part.result), held

    def at(self, constants: list[Any], leaves: list[Any]) -> Any:
        """Evaluate the traced function at the given constants and leaves of its argument."""
        run = as_function(with_constants(self.closed, constants))
        return jax.tree.unflatten(self.result, run(*leaves))


def _kind(batch: tuple) -> Any:
    leaves, structure = jax.tree.flatten(batch)
    return structure, tuple((tuple(x.shape), str(x.dtype)) for x in leaves)


def _examples(groups: tuple[Group, ...] | None) -> Iterator[tuple]:
    one = lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)
    if groups is None:
        yield ()
    for group in groups or ():
        yield (jax.tree.map(one, group.stacked),)


def _part(function: Callable, *arguments: Any) -> Part:
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    return Part(closed, jax.tree.structure(shape))


class TracedLoss:
    """The traces of a loss, one for each shape of its batches.

    Attributes:
        key: a text that is equal for losses that differ only in their constants, on batches of
            equal structure.
        constants: a list for each trace of the loss, with the arrays to which the loss refers.
        narrow: the operations that round to fewer digits than the dtype of the parameters has.
    """

    def __init__(
        self, loss: Loss, selection: Selection, own: list, fixed: list, groups: Any, parted: bool
    ) -> None:
        """Trace the loss; if `parted`, trace the network and the outer loss separately."""
        self._selection, self._parted = selection, parted
        self._parts: dict[Any, Part] = {}
        for batch in _examples(groups):
            kind = _kind(batch)
            if parted:
                outputs = lambda o, f, *b: loss.outputs(selection.rebuilt(o, f), *b)  # type: ignore
                self._parts["outputs", kind] = part = _part(outputs, own, fixed, *batch)
                made = jax.tree.unflatten(
                    part.result,
                    [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in part.closed.out_avals],
                )
                outer = lambda z, *b: real(loss.outer(z, *b))  # type: ignore[attr-defined]
                self._parts["outer", kind] = _part(outer, made, *batch)
            else:
                value = lambda o, f, *b: real(loss(selection.rebuilt(o, f), *b))
                self._parts["loss", kind] = _part(value, own, fixed, *batch)
            self._refuse_draws(kind, len(own) + len(fixed))
        self.constants = [list(part.closed.consts) for part in self._parts.values()]
        for constant in jax.tree.leaves(self.constants):
            refuse_deleted("an array that the loss refers to", constant)
        self.narrow = tuple(
            operation
            for part in self._parts.values()
            for operation in narrow_operations(part.closed.jaxpr, selection.dtype)
        )
        texts = [part.text() for part in self._parts.values()]
        with explained(None, differentiated=True):
            texts += self._rules(own, fixed, groups)
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        # The key has the structure of a batch too, which the text of a program does not show.
        self.key = digest, tuple(self._parts)

    def _refuse_draws(self, kind: Any, held: int) -> None:
        """Refuse a loss that draws from its own random state; a trace would reuse one draw."""
        part = self._parts.get(("loss", kind)) or self._parts["outputs", kind]
        program = part.closed.jaxpr
        kept = [i < held for i in range(len(program.invars))]
        if draws(program, [True] * len(program.constvars) + kept):
            raise Refused(
                "the loss draws random numbers from a state that it holds (dropout in train "
                "mode?), so its curvature would depend on one draw. Try to switch the draws off "
                "(model.eval(), deterministic=True), or pass the key in the batch"
            )

    def _rules(self, own: list, fixed: list, groups: Any) -> list[str]:
        """Return the texts of custom derivative rules; the text of the traced loss omits them."""
        if not any("custom" in name for name in self.primitives):
            return []
        loss, texts = self.bound(self.constants), []
        for batch in _examples(groups):

            def product(o: list, f: list, b: tuple) -> Any:
                slope = jax.grad(lambda x: loss(self._selection.rebuilt(x, f), *b))
                return slope_product(slope, o, o)

            texts.append(_part(product, own, fixed, batch).text())
        return texts

    def bound(self, constants: list[list[Any]], /) -> Loss:
        """Return the loss as a function; its trace uses the given values of captured constants."""
        held = dict(zip(self._parts, constants))

        def at(which: str, first: list, batch: tuple) -> Any:
            place = which, _kind(batch)
            return self._parts[place].at(held[place], [*first, *jax.tree.leaves(batch)])

        arrays = lambda params: self._selection.flat(params)
        if not self._parted:
            return lambda params, *batch: at("loss", arrays(params), batch)
        return Composite(
            lambda params, *batch: at("outputs", arrays(params), batch),
            lambda z, *batch: at("outer", jax.tree.leaves(z), batch),
        )

    @functools.cached_property
    def primitives(self) -> frozenset[str]:
        """The names of all operations of the loss."""
        programs = (part.closed.jaxpr for part in self._parts.values())
        return frozenset(eqn.primitive.name for program in programs for eqn in equations(program))

    @property
    def calls_back(self) -> bool:
        """Return whether the loss calls Python functions (callbacks) while it runs."""
        return any("callback" in name for name in self.primitives)

    def same_as(self, other: "TracedLoss", /) -> bool:
        """Return whether another trace has an equal program with equal constants."""
        ours, theirs = (
            [bytes_of(c) for held in traced.constants for c in held] for traced in (self, other)
        )
        return self.key == other.key and ours == theirs


ANOTHER = (
    "the loss is another function at each call (does it draw random numbers or change state in "
    "Python?), and curvature needs a fixed loss. Try keys in the batch, or switch dropout off"
)
