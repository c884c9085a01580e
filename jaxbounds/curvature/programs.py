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
_fixed: set[str] = set()
"""Keys of traces that were the same twice."""


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


class Point:
    """A loss at a point, on batches: what kernels are run at.

    The loss is traced here, as it is now: what somebody changes in place later is not seen.

    Args:
        loss: `loss(params)`, or `loss(params, batch)` where batches are given.
        params: the point.
        batches: one batch or a list of batches.
        batch_size: cuts one pytree of examples into batches.
        filter: which leaves.
        of: which matrix.
        heads: the axis of the heads for each pattern of a path, for kernels on one head.

    Raises:
        ValueError: if the loss is no function of these arguments or no real number, draws random
            numbers, or no parameter is left.
    """

    def __init__(
        self,
        loss: Loss,
        params: Params,
        batches: Any = None,
        *,
        batch_size: int | None = None,
        filter: Filter | None = None,
        of: Of = "hessian",
        heads: Any = None,
    ) -> None:
        check_matrix(loss, of)
        if not callable(loss):
            raise ValueError(
                f"loss must be a function of the parameters, got {type(loss).__name__}"
            )
        _check_arguments(loss, batches)
        self.loss, self.params, self.of = loss, params, of
        self.selection = select(params, filter, heads=heads)
        own, fixed = self.selection.arrays(params)
        self.arguments = (own, fixed, group(batches, batch_size))
        leaves = jax.tree.leaves((params, batches))
        self.is_traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        self._traced = None if self.is_traced else self._trace()
        if self._traced is not None and self._traced.key not in _fixed:
            self._refuse_another(self._traced)
            _fixed.add(self._traced.key)

    def _trace(self) -> TracedLoss:
        return TracedLoss(self.loss, self.selection, *self.arguments, self.of == "ggn")

    @functools.cached_property
    def unit(self) -> float:
        """The unit of rounding of the coarsest operation of the loss."""
        narrow = (self._traced or self._trace()).narrow
        least = float(jnp.finfo(self.selection.dtype).eps)
        return max([least] + [coarseness(operation) for operation in narrow])

    def _program(
        self, kernel: Kernel, static: dict, dynamic: dict, head: Any
    ) -> tuple[Program, tuple]:
        traced = self._traced
        assert traced is not None
        key = (traced.key, kernel, self.selection, self.of, tuple(static.items()))
        if key not in _programs:
            _programs[key] = Program(kernel, traced, self.selection, self.of, key[-1])
        _programs.move_to_end(key)
        while len(_programs) > KEPT:
            _programs.popitem(last=False)
        one = lambda leaf: leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf)
        head = None if head is None else jnp.asarray(head, jnp.int32)
        arguments = jax.tree.map(one, (traced.constants, *self.arguments, head, dynamic))
        return _programs[key], arguments

    def _problem(self, head: Any) -> Problem:
        own, fixed, groups = self.arguments
        return Problem(self.loss, self.selection, self.of, own, fixed, groups, head)

    def _refuse_another(self, traced: TracedLoss) -> None:
        """What Python draws would be frozen unseen, and no trace shows what callbacks give."""
        if not traced.same_as(self._trace()):
            raise ValueError(ANOTHER)
        if not traced.calls_back:
            return
        one, two = (np.asarray(self._problem(None).value()) for _ in range(2))
        if not np.array_equal(one, two, equal_nan=True):
            raise ValueError(ANOTHER)

    def bytes(self, kernel: Kernel, static: dict, dynamic: dict, head: Any = None) -> int:
        """What the program needs; it is compiled, not run."""
        program, arguments = self._program(kernel, static, dynamic, head)
        return program.compiled(arguments)[1]

    def refuse(self, need: float, limit: float, what: str, advice: str = "") -> None:
        """Raise where `need` is over the limit.

        Raises:
            ValueError: then, with the numbers.
        """
        size, dtype = self.selection.size, self.selection.dtype
        refuse_over(need, limit, f"{what} of {size} parameters in {dtype.name} needs", advice)

    def run(
        self,
        kernel: Kernel,
        static: dict,
        dynamic: dict,
        *,
        limit: float,
        what: str,
        advice: str = "",
        head: Any = None,
    ) -> Any:
        """Run a kernel.

        Args:
            kernel: `kernel(problem, static, dynamic)`, traceable.
            static: options that its program depends on.
            dynamic: options that are arguments of its program.
            limit: bytes that it may need.
            what: it computes, for messages.
            advice: for one that needs more.
            head: which head, where the point is of one.

        Raises:
            ValueError: if it needs more memory than the limit; nothing has been run then.
        """
        if self.is_traced or isinstance(head, jax.core.Tracer):
            return kernel(self._problem(head), dict(static), dynamic)
        program, arguments = self._program(kernel, static, dynamic, head)
        run, need = program.compiled(arguments)
        self.refuse(need, limit, what, advice)
        return run(*arguments)
