"""A loss as it is now: traced anew at each call, its constants as data.

A loss may read what somebody changes in place: a module, an array, an attribute, a global name. So
nothing is kept by what a function looks like; a compiled program is found again by the program that
tracing the loss gives, and what the loss refers to are that program's arguments.
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
    """One traced function.

    Attributes:
        closed: its equations, and the constants of this call.
        result: the structure of what it returns.
    """

    closed: ClosedJaxpr
    result: Any

    def text(self) -> str:
        """A text that tells this program from others, without the values of its arguments."""
        return f"{program_text(self.closed)} {self.result}"

    @classmethod
    def of(cls, function: Callable, example: Any, /) -> tuple["Part", list[Any]]:
        """A function of one pytree, and the values that it holds, which are not kept in it."""
        part = _part(function, example)
        held = list(part.closed.consts)
        return cls(with_constants(part.closed, [None] * len(held)), part.result), held

    def at(self, constants: list[Any], leaves: list[Any]) -> Any:
        """Its value, with other constants in their places."""
        run = as_function(with_constants(self.closed, constants))
        return jax.tree.unflatten(self.result, run(*leaves))


def _kind(batch: tuple) -> Any:
    leaves, structure = jax.tree.flatten(batch)
    return structure, tuple((tuple(x.shape), str(x.dtype)) for x in leaves)


def _examples(groups: tuple[Group, ...] | None) -> Iterator[tuple]:
    """A batch of each shape, without its numbers."""
    one = lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)
    if groups is None:
        yield ()
    for group in groups or ():
        yield (jax.tree.map(one, group.stacked),)


def _part(function: Callable, *arguments: Any) -> Part:
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
    return Part(closed, jax.tree.structure(shape))


class TracedLoss:
    """The programs of a loss, for each shape of its batches.

    Attributes:
        key: equal for losses, on batches of one tree, that differ in their constants only.
        constants: what the loss refers to, for each program.
        narrow: operations that round more coarsely than the parameters are computed in.
    """

    def __init__(
        self, loss: Loss, selection: Selection, own: list, fixed: list, groups: Any, parted: bool
    ) -> None:
        """Trace the loss; in two parts where a kernel works on them (`parted`)."""
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
        # Programs are found by the tree of a batch, too, which their text does not show.
        self.key = digest, tuple(self._parts)

    def _refuse_draws(self, kind: Any, held: int) -> None:
        """Refuse a loss that draws from a state of its own: the trace would freeze one draw."""
        part = self._parts.get(("loss", kind)) or self._parts["outputs", kind]
        program = part.closed.jaxpr
        kept = [i < held for i in range(len(program.invars))]
        if draws(program, [True] * len(program.constvars) + kept):
            raise Refused(
                "the loss draws random numbers from a state that it holds (dropout in train "
                "mode?): its curvature would be that of one draw; switch it off (model.eval(), "
                "deterministic=True), or pass the key in the batch"
            )

    def _rules(self, own: list, fixed: list, groups: Any) -> list[str]:
        """The derivatives that functions with rules of their own have; their text hides them."""
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
        """The loss as a function, with these constants."""
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
        """The names of all operations."""
        programs = (part.closed.jaxpr for part in self._parts.values())
        return frozenset(eqn.primitive.name for program in programs for eqn in equations(program))

    @property
    def calls_back(self) -> bool:
        """Whether it calls Python while it runs."""
        return any("callback" in name for name in self.primitives)

    def same_as(self, other: "TracedLoss", /) -> bool:
        """Whether another trace gave the same program with the same constants."""
        ours, theirs = (
            [bytes_of(c) for held in traced.constants for c in held] for traced in (self, other)
        )
        return self.key == other.key and ours == theirs


ANOTHER = (
    "the loss is another function at each call (does it draw random numbers or change state in "
    "Python?): curvature needs a fixed loss; pass keys in the batch, or switch dropout off"
)
