"""One compiled program for many calls, whose memory is known before it runs.

A program is made for a loss, a selection of parameters and the static options; parameters, batches,
keys, iterations and tolerances are its arguments. Data that the loss refers to itself are compiled
into it, and other data make another program: give them as batches.
"""

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.curvature.batches import group
from jaxbounds.curvature.leaves import Filter, Params, Selection, select
from jaxbounds.curvature.products import Loss, Of, Problem, check_matrix
from jaxbounds.curvature.sameness import meaning

MEMORY_LIMIT = 8 * 2**30
"""Bytes that a call may need unless it is told otherwise."""

Kernel = Callable[..., Any]
"""`kernel(problem, static options, dynamic options) -> pytree of arrays`, traceable."""


def shown_bytes(amount: float, /) -> str:
    """An amount of memory for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB"


def refuse_memory(
    need: float, limit: float, selection: Selection, what: str, advice: str = ""
) -> None:
    """Raise where `need` is over the limit.

    Raises:
        ValueError: then, with the numbers.
    """
    if need > limit:
        raise ValueError(
            f"{what} of {selection.size} parameters in {selection.dtype.name} needs "
            f"{shown_bytes(need)}, more than the limit of {shown_bytes(limit)}: "
            f"{advice}raise memory_limit"
        )


class Program:
    """A kernel for one loss and selection, compiled once for each shape of its arguments."""

    def __init__(self, kernel: Kernel, loss: Loss, selection: Selection, of: Of, static: Any):
        def call(own, fixed, groups, head, dynamic):
            problem = Problem(loss, selection, of, own, fixed, groups, head)
            return kernel(problem, dict(static), dynamic)

        self._loss = lambda own, fixed, groups, head: Problem(
            loss, selection, of, own, fixed, groups, head
        ).value()
        self.inline = call
        self._jitted = jax.jit(call)
        self._compiled: dict[Any, tuple[Any, int]] = {}

    def compiled(self, arguments: tuple, /) -> tuple[Any, int]:
        """The program for these arguments and the bytes it needs, arguments and results included.

        Raises:
            ValueError: if the loss is no scalar, or is another one at each call.
        """
        config = jax.config.values
        settings = (
            config.get("jax_enable_x64"),
            str(config.get("jax_default_matmul_precision")),
            str(config.get("jax_numpy_dtype_promotion")),
        )
        leaves, structure = jax.tree.flatten(arguments)
        shapes = tuple((x.shape, x.dtype, str(getattr(x, "sharding", ""))) for x in leaves)
        mark = (structure, shapes, settings)
        if mark not in self._compiled:
            self._check_loss(arguments[:4])
            program = self._jitted.lower(*arguments).compile()
            memory = program.memory_analysis()
            parts = ("temp_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes")
            need = sum(getattr(memory, part, 0) for part in parts)
            self._compiled[mark] = (program, need)
        return self._compiled[mark]

    def _check_loss(self, arguments: tuple) -> None:
        """Trace the loss twice: what is drawn in Python would otherwise be frozen unseen."""
        texts, constants = [], []
        for _ in range(2):
            traced = jax.make_jaxpr(lambda *a: self._loss(*a))(*arguments)
            texts.append(re.sub(r"0x[0-9a-f]+", "", str(traced)))
            constants.append(
                [
                    np.asarray(c)
                    for c in traced.consts
                    if hasattr(c, "dtype") and not jnp.issubdtype(c.dtype, jax.dtypes.prng_key)
                ]
            )
        same = len(constants[0]) == len(constants[1]) and all(
            np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(*constants)
        )
        if "callback" in texts[0]:
            one, two = (np.asarray(self._loss(*arguments)) for _ in range(2))
            same = same and np.array_equal(one, two, equal_nan=True)
        if texts[0] != texts[1] or not same:
            raise ValueError(
                "the loss is another function at each call (does it draw random numbers or change "
                "state in Python?): curvature needs a fixed loss; pass keys in the batch, or "
                "switch dropout off"
            )


class _Known:
    """A loss, equal to others of the same meaning."""

    def __init__(self, loss: Loss) -> None:
        self.loss, self.meaning = loss, meaning(loss)

    def __hash__(self) -> int:
        return hash(self.meaning)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and other.meaning == self.meaning


@functools.lru_cache(maxsize=32)
def _program(kernel: Kernel, known: _Known, selection: Selection, of: Of, static: Any) -> Program:
    return Program(kernel, known.loss, selection, of, static)


def _check_arguments(loss: Loss, batches: Any) -> None:
    try:
        signature = inspect.signature(loss)
    except (TypeError, ValueError):  # some builtins have none
        return
    given = ("params",) if batches is None else ("params", "batch")
    try:
        signature.bind(*given)
    except TypeError as problem:
        raise ValueError(
            f"the loss is called as loss({', '.join(given)}) where batches are "
            f"{'not ' if batches is None else ''}given, and takes {signature}: {problem}"
        ) from None


class Call:
    """One call of a kernel: its program and arguments."""

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        params: Params,
        batches: Any,
        *,
        batch_size: int | None,
        filter: Filter | None,
        of: Of,
        what: str,
        heads: Any = None,
    ):
        check_matrix(loss, of)
        if not callable(loss):
            raise ValueError(
                f"loss must be a function of the parameters, got {type(loss).__name__}"
            )
        _check_arguments(loss, batches)
        self.kernel, self.loss, self.of, self.what = kernel, loss, of, what
        self.selection = select(params, filter, heads=heads)
        own, fixed = self.selection.arrays(params)
        self.arguments = (own, fixed, group(batches, batch_size))
        leaves = jax.tree.leaves((params, batches))
        self.traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)

    def _made(self, static: dict, dynamic: dict, head: Any) -> tuple[Program, tuple]:
        known = _Known(self.loss)
        program = _program(self.kernel, known, self.selection, self.of, tuple(static.items()))
        one = lambda leaf: leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf)
        head = None if head is None else jnp.asarray(head, jnp.int32)
        return program, jax.tree.map(one, (*self.arguments, head, dynamic))

    def bytes(self, static: dict, dynamic: dict, head: Any = None) -> int:
        """What the program needs; it is compiled, not run."""
        program, arguments = self._made(static, dynamic, head)
        return program.compiled(arguments)[1]

    def __call__(
        self, static: dict, dynamic: dict, *, limit: float, advice: str = "", head: Any = None
    ) -> Any:
        """Run it.

        Raises:
            ValueError: if it needs more memory than the limit; nothing has been run then.
        """
        program, arguments = self._made(static, dynamic, head)
        if self.traced or isinstance(head, jax.core.Tracer):
            return program.inline(*arguments)
        run, need = program.compiled(arguments)
        refuse_memory(need, limit, self.selection, self.what, advice)
        return run(*arguments)
