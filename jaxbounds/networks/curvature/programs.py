"""Compile programs, keep them for later calls, and tell the memory that a program will need.

A program is compiled for the trace of a loss, a selection of parameters and the static options. Its
arguments are parameters, batches, keys, iterations, tolerances, and the arrays that the loss holds.
"""

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.memory import refuse_over
from jaxbounds.networks.curvature.batches import Listed, group, single
from jaxbounds.networks.curvature.causes import explained, why_not_finite
from jaxbounds.networks.curvature.filters import Filter, listed
from jaxbounds.networks.curvature.leaves import Selection, select
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Loss, Of, Problem, check_matrix
from jaxbounds.networks.curvature.streams import Stream, stream_of
from jaxbounds.networks.curvature.traced import ANOTHER, TracedLoss
from jaxbounds.programs.traces import coarseness

Kernel = Callable[..., Any]
"""A method of `Curvature` as a traceable function `kernel(problem, static options, dynamic
options)` that returns arrays."""


def as_key(key: Any, /) -> jax.Array:
    """Return the user's key of JAX, or `jax.random.key(0)` if the user gave no key.

    Raises:
        Refused: if `key` is not one key of JAX.
    """
    if key is None:
        return jax.random.key(0)
    if not isinstance(key, jax.Array) or not (
        jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or key.dtype == jnp.uint32
    ):
        raise Refused(f"key={key!r} is not a key of JAX. Try key=jax.random.key(0)")
    if key.ndim != (0 if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else 1):
        raise Refused(
            f"key.shape={key.shape} is an array of keys, expected a single key, of shape (). Try "
            "key[0]"
        )
    return key


def bytes_of_program(program: Any, /) -> int:
    """Return the bytes that a compiled program needs, with arguments and results."""
    memory = program.memory_analysis()
    parts = ("temp_size_in_bytes", "argument_size_in_bytes", "output_size_in_bytes")
    return sum(getattr(memory, part, 0) for part in parts)


class Program:
    """A computation (kernel) about one loss, compiled once for each shape of its arguments."""

    def __init__(
        self, kernel: Kernel, traced: TracedLoss, selection: Selection, of: Of, static: Any
    ) -> None:
        ruled = any("custom_vjp" in eqn for eqn in traced.primitives)

        def call(
            constants: Any, own: Any, fixed: Any, groups: Any, head: Any, dynamic: dict[str, Any]
        ) -> Any:
            loss = traced.bound(constants)
            problem = Problem(loss, selection, of, own, fixed, groups, head, ruled)
            return kernel(problem, dict(static), dynamic)

        self._jitted = jax.jit(call)
        self._compiled: dict[Any, tuple[Any, int]] = {}

    @staticmethod
    def mark(arguments: tuple, /) -> Any:
        """Return the key of a compiled program: shapes, dtypes, devices and settings of JAX."""
        config = jax.config.values
        settings = (
            config.get("jax_enable_x64"),
            str(config.get("jax_default_matmul_precision")),
            str(config.get("jax_numpy_dtype_promotion")),
        )
        leaves, structure = jax.tree.flatten(arguments)
        shapes = tuple((x.shape, x.dtype, str(getattr(x, "sharding", ""))) for x in leaves)
        return structure, shapes, settings

    def compiled(self, arguments: tuple, /) -> tuple[Any, int]:
        """Return the compiled program for these arguments, and the bytes that it needs."""
        mark = self.mark(arguments)
        if mark not in self._compiled:
            with explained(None, differentiated=True):
                lowered = self._jitted.lower(*arguments)
            program = lowered.compile()
            self._compiled[mark] = (program, bytes_of_program(program))
        return self._compiled[mark]


def _slope_kernel(problem: Problem, static: dict, dynamic: dict) -> jax.Array:
    at = problem.point + dynamic["step"] * (1 + jnp.abs(problem.point))
    return jnp.max(jnp.abs(jax.grad(problem.value)(at)))


KEPT = 32
"""The number of compiled programs that this module keeps. If there are more, the module drops the
least recently used program first. A larger number takes more memory, and programs are compiled less
often."""
_programs: "OrderedDict[Any, Any]" = OrderedDict()
_fixed: set[Any] = set()
"""A set of keys, one for each loss whose first two traces were equal. The library does not trace
these losses again.
"""


def _check_arguments(loss: Loss, batches: Any) -> None:
    try:
        signature = inspect.signature(loss)
    except (TypeError, ValueError):  # some builtins have none
        return
    given = ("params",) if batches is None else ("params", "batch")
    try:
        signature.bind(*given)
    except TypeError as problem:
        raise Refused(
            f"the loss must take ({', '.join(given)}), because batches are "
            f"{'not ' if batches is None else ''}given, got {signature}: {problem}. Try a function "
            f"loss({', '.join(given)})"
        ) from None


class Point:
    """A loss at a point, on batches; `run` calls a kernel (a traceable function) at the point.

    The constructor traces the loss, so later in-place changes of the loss's objects have no effect.
    The arguments are those of `Curvature`. `heads` maps a pattern of paths to the axis that runs
    over the heads, for kernels that handle one head.

    Raises:
        Refused: if the loss does not take these arguments, or returns anything other than a real
            number; if the loss draws random numbers; if no parameter is left.
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
            raise Refused(
                f"loss must be a function of the parameters, got type={type(loss).__name__}. Try a "
                "function loss(params)"
            )
        self.stream = stream_of(batches)
        if self.stream is not None:
            if batch_size is not None:
                raise Refused(
                    f"batch_size={batch_size} is given with a stream of batches, but batch_size "
                    "only cuts arrays. Try batch_size=None"
                )
            batches = self.stream.first
        _check_arguments(loss, batches)
        self.loss, self.params, self.of = loss, params, of
        self.data = list(batches) if isinstance(batches, Listed) else batches
        self.selection = select(params, filter, heads=heads)
        own, fixed = self.selection.arrays(params)
        groups = group(batches, batch_size) if self.stream is None else single(batches)
        self.arguments = (own, fixed, groups)
        self.product: Any = None
        leaves = jax.tree.leaves((params, self.data))
        self.is_traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        self._traced = None if self.is_traced else self._trace()
        if self._traced is not None and any(
            isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(self._traced.constants)
        ):
            self.is_traced, self._traced = True, None
        if self._traced is not None and self._traced.key not in _fixed:
            self._refuse_another(self._traced)
            _fixed.add(self._traced.key)

    def _trace(self) -> TracedLoss:
        with explained(self.params):
            return TracedLoss(self.loss, self.selection, *self.arguments, self.of == "ggn")

    @functools.cached_property
    def unit(self) -> float:
        """The largest relative rounding error of any operation in the program of the loss."""
        narrow = (self._traced or self._trace()).narrow
        least = float(jnp.finfo(self.selection.dtype).eps)
        return max([least] + [coarseness(operation) for operation in narrow])

    def kept(self, name: Any, make: Callable[[], Any]) -> Any:
        """Return the object cached for losses with an equal trace; make it if it is absent."""
        assert self._traced is not None
        key = (self._traced.key, self.selection, self.of, name)
        if key not in _programs:
            _programs[key] = make()
        _programs.move_to_end(key)
        while len(_programs) > KEPT:
            _programs.popitem(last=False)
        return _programs[key]

    def made(self, kernel: Kernel, static: dict) -> Program:
        """Return the program of a kernel (a traceable function), and keep it for later."""
        options = tuple(static.items())
        return self.kept((kernel, options), lambda: self.program(kernel, options))

    def program(self, kernel: Kernel, options: tuple, /) -> Program:
        """Return a new program of a kernel (a traceable function), without keeping the program."""
        assert self._traced is not None
        return Program(kernel, self._traced, self.selection, self.of, options)

    def on(self, batch: Any, /) -> "Point":
        """Return a `Point` with the given batch, and this point's loss and parameters."""
        chosen = [entry[0] for entry in self.selection.chosen if entry]
        return Point(
            self.loss, self.params, Stream([batch]), filter=lambda p: p in chosen, of=self.of
        )

    def program_arguments(self, dynamic: dict, head: Any = None) -> tuple:
        """Return the arguments of a program."""
        assert self._traced is not None
        one = lambda leaf: leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf)
        head = None if head is None else jnp.asarray(head, jnp.int32)
        return jax.tree.map(one, (self._traced.constants, *self.arguments, head, dynamic))

    def _problem(self, head: Any) -> Problem:
        own, fixed, groups = self.arguments
        return Problem(self.loss, self.selection, self.of, own, fixed, groups, head)

    def _refuse_another(self, traced: TracedLoss) -> None:
        if not traced.same_as(self._trace()):
            raise Refused(ANOTHER)
        if not traced.calls_back:
            return
        one, two = (np.asarray(self._problem(None).value()) for _ in range(2))
        if not np.array_equal(one, two, equal_nan=True):
            raise Refused(ANOTHER)

    def is_transformed(self, *values: Any) -> bool:
        """Return whether the point, or one of the values, is traced by a transformation of JAX."""
        tracers = (isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))
        return self.is_traced or any(tracers)

    def refuse_not_finite(self, loss: Any, *results: Any) -> None:
        """Refuse a loss, or a result of products with its Hessian, that is not finite.

        Raises:
            Refused: if the loss or a result is not finite. The message gives the cause, if the
                parameters or batches are not finite.
        """
        if self.is_transformed(loss, results):
            return
        if np.isfinite(loss) and all(np.isfinite(result).all() for result in results):
            return
        cause = why_not_finite(self.params, self.data)
        if cause is not None:
            raise Refused(
                f"the loss={float(loss):.6g}, or its Hessian, is not finite: {cause}. Try finite "
                "numbers there"
            )
        if not np.isfinite(loss):
            raise Refused(
                f"the loss is {float(loss)} at these parameters, so it has no Hessian there. Try "
                "parameters at which the loss is finite"
            )
        raise Refused(
            f"the loss is {float(loss):.6g}, but products with its Hessian are not finite. Try to "
            "avoid a root, a norm or a logarithm of 0 in the loss"
        )

    def refuse_constant(self, *results: Any, head: Any = None) -> None:
        """Refuse results that are all 0 because the loss does not depend on the parameters.

        The loss counts as dependent on the parameters if its gradient is not 0 at the present
        point, at one of three random points, or at parameters NaN. Therefore the method does not
        refuse a loss that is flat at one point only, linear, or multiplied by 0.

        Raises:
            Refused: if the loss does not depend on the parameters.
        """
        if self.is_transformed(head, results):
            return
        if self.stream is not None or any(np.any(np.asarray(r) != 0) for r in results):
            return
        size, dtype = self.selection.size, self.selection.dtype
        for i, width in enumerate((0.0, 0.01, 1.0, 10.0, float("nan"))):
            step = width * jax.random.normal(jax.random.key(i), (size,), dtype)
            slope = self.run(
                _slope_kernel, {}, {"step": step}, limit=float("inf"), what="a gradient", head=head
            )
            if slope != 0:
                return
        paths = listed([entry[0] for entry in self.selection.chosen if entry])
        raise Refused(
            f"the loss does not depend on params={paths}: its gradient is 0 here and at three "
            "random points. Try a loss that uses its parameters without stop_gradient, rounding or "
            "argmax"
        )

    def bytes(self, kernel: Kernel, static: dict, dynamic: dict, head: Any = None) -> int:
        """Compile the program without running it, and return the bytes that the program needs."""
        arguments = self.program_arguments(dynamic, head)
        return self.made(kernel, static).compiled(arguments)[1]

    def refuse(self, need: float, limit: float, what: str, advice: str = "") -> None:
        """Refuse a computation that needs more bytes than the memory limit.

        Raises:
            Refused: if the bytes `need` exceed `limit`.
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
        """Run a kernel (a traceable function) at this point.

        The kernel is `kernel(problem, static, dynamic)`. The program is compiled for the `static`
        options, and takes the `dynamic` options as arguments. `limit` is a number of bytes. `head`
        is the index of the head, if the point covers the parameters of one head.

        Raises:
            Refused: if the program needs more bytes than the memory limit; nothing runs in that
                case.
        """
        if self.is_transformed(head, dynamic):
            with explained(None, differentiated=True):
                return kernel(self._problem(head), dict(static), dynamic)
        if self.stream is not None:
            raise Refused(
                f"{what} needs all batches in memory, but data is {type(self.data).__name__}, a "
                "stream. Try a list of batches"
            )
        arguments = self.program_arguments(dynamic, head)
        run, need = self.made(kernel, static).compiled(arguments)
        self.refuse(need, limit, what, advice)
        return run(*arguments)
