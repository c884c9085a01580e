"""One compiled program for many calls, whose memory is known before it runs.

A program is made for what tracing a loss gives, a selection of parameters and the static options;
parameters, batches, keys, iterations, tolerances, and what the loss refers to, are its arguments.
"""

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.curvature.batches import group
from jaxbounds.curvature.leaves import Filter, Params, Selection, select
from jaxbounds.curvature.products import Loss, Of, Problem, check_matrix
from jaxbounds.curvature.traced import ANOTHER, TracedLoss
from jaxbounds.memory import refuse_over
from jaxbounds.traces import coarseness

Kernel = Callable[..., Any]
"""`kernel(problem, static options, dynamic options) -> pytree of arrays`, traceable."""


def refuse_memory(
    need: float, limit: float, selection: Selection, what: str, advice: str = ""
) -> None:
    """Raise where `need` is over the limit.

    Raises:
        ValueError: then, with the numbers.
    """
    of = f"{what} of {selection.size} parameters in {selection.dtype.name} needs"
    refuse_over(need, limit, of, advice)


class Program:
    """A kernel for one traced loss and selection, compiled once for each shape of its arguments."""

    def __init__(
        self, kernel: Kernel, traced: TracedLoss, selection: Selection, of: Of, static: Any
    ):
        def call(constants, own, fixed, groups, head, dynamic):
            loss = traced.bound(constants)
            problem = Problem(loss, selection, of, own, fixed, groups, head)
            return kernel(problem, dict(static), dynamic)

        self._jitted = jax.jit(call)
        self._compiled: dict[Any, tuple[Any, int]] = {}

    def compiled(self, arguments: tuple, /) -> tuple[Any, int]:
        """The program for these arguments, and the bytes it needs with arguments and results."""
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
            program = self._jitted.lower(*arguments).compile()
            memory = program.memory_analysis()
            parts = ("temp_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes")
            need = sum(getattr(memory, part, 0) for part in parts)
            self._compiled[mark] = (program, need)
        return self._compiled[mark]


KEPT = 32
"""Programs that are kept; the one that was not used for longest goes."""
_programs: "OrderedDict[Any, Program]" = OrderedDict()


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

    @functools.cached_property
    def unit(self) -> float:
        """The unit of rounding of the coarsest operation of the loss."""
        return max(
            [float(jnp.finfo(self.selection.dtype).eps)]
            + [coarseness(operation) for operation in self._now.narrow]
        )

    @functools.cached_property
    def _now(self) -> TracedLoss:
        """The loss as it is in this call."""
        return TracedLoss(self.loss, self.selection, *self.arguments, self.of == "ggn")

    def _made(self, static: dict, dynamic: dict, head: Any) -> tuple[Program, tuple]:
        traced = self._now
        key = (traced.key, self.kernel, self.selection, self.of, tuple(static.items()))
        if key not in _programs:
            # What is drawn in Python would otherwise be frozen unseen.
            again = TracedLoss(self.loss, self.selection, *self.arguments, self.of == "ggn")
            if not traced.same_as(again):
                raise ValueError(ANOTHER)
            self._refuse_callbacks()
            _programs[key] = Program(self.kernel, traced, self.selection, self.of, key[-1])
        _programs.move_to_end(key)
        while len(_programs) > KEPT:
            _programs.popitem(last=False)
        one = lambda leaf: leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf)
        head = None if head is None else jnp.asarray(head, jnp.int32)
        arguments = jax.tree.map(one, (traced.constants, *self.arguments, head, dynamic))
        return _programs[key], arguments

    def _refuse_callbacks(self) -> None:
        """A callback may give another number each time, which no trace shows."""
        if not self._now.calls_back:
            return
        own, fixed, groups = self.arguments
        problem = Problem(self.loss, self.selection, self.of, own, fixed, groups, None)
        one, two = (np.asarray(problem.value()) for _ in range(2))
        if not np.array_equal(one, two, equal_nan=True):
            raise ValueError(ANOTHER)

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
        if self.traced or isinstance(head, jax.core.Tracer):
            own, fixed, groups = self.arguments
            problem = Problem(self.loss, self.selection, self.of, own, fixed, groups, head)
            return self.kernel(problem, dict(static), dynamic)
        program, arguments = self._made(static, dynamic, head)
        run, need = program.compiled(arguments)
        refuse_memory(need, limit, self.selection, self.what, advice)
        return run(*arguments)
