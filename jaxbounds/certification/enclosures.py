"""Enclose the results and the hypotheses of a statement's functions in ball arithmetic."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Size, Statement
from jaxbounds.programs.balls.interpreter import Enclosed, Program
from jaxbounds.programs.balls.values import OPEN, Flags, NotSupported, Reading, Undecided, as_flags

BITS = (192, 448)
"""The precisions of ball arithmetic, in bits, that a disproof tries in this sequence. Larger
precisions give sharper bounds and take longer."""


def is_float(x: Any, /) -> bool:
    """Return whether an array has a float dtype."""
    return jax.dtypes.issubdtype(x.dtype, np.floating)


class Enclosing:
    """Encloses the results of a statement's function in balls, and traces the function only once.

    If JAX cannot trace the function with the whole instance, the class traces it with the
    instance's floats as its only arguments. If this trace fails too, the class runs the function
    without JAX. The result of this run must be integers, because integers have no rounding error.
    """

    def __init__(self, function: Callable[[Any], Any], instance: Any, /) -> None:
        self._function, self._instance = function, instance
        self._leaves, self._structure = jax.tree.flatten(instance)

    def _of_floats(self, given: list[Any]) -> Any:
        rest = iter(given)
        mixed = [next(rest) if is_float(x) else np.asarray(x) for x in self._leaves]
        return self._function(jax.tree.unflatten(self._structure, mixed))

    @functools.cached_property
    def _traced(self) -> tuple[Program | None, Any, Exception | None]:
        refusal: Exception | None = None
        whole = (self._function, self._instance)
        floats = [x for x in self._leaves if is_float(x)]
        for traceable, argument in (whole, (self._of_floats, floats)) if floats else (whole,):
            try:
                return Program.of(traceable, argument), argument, refusal
            except Exception as problem:  # NumPy or Python code that refuses a tracer
                refusal = problem
        return None, None, refusal

    def __call__(
        self,
        *,
        reading: Reading = "exact",
        bits: int = BITS[0],
        seconds: float | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> Enclosed:
        """Enclose the result of the given function on the instance.

        Raises:
            Undecided: if the enclosures are too wide, or if a result that Python computed without
                JAX is not an integer.
            NotSupported: if ball arithmetic has no rule for a primitive.
        """
        program, argument, refusal = self._traced
        if program is not None:
            options: Any = {"reading": reading, "bits": bits, "seconds": seconds, "rules": rules}
            return program.enclosed(argument, **options)._replace(whole=refusal is None)
        result = jax.tree.map(np.asarray, self._function(self._instance))
        if any(is_float(x) and not np.all(x == np.round(x)) for x in jax.tree.leaves(result)):
            raise Undecided(
                "evaluate computes on the host, where rounding errors cannot be "
                f"enclosed (JAX could not trace evaluate: {type(refusal).__name__})"
            )
        return Enclosed([result], computed=True, whole=False)


def enclosures(function: Callable[[Any], Any], instance: Any, /, **options: Any) -> Enclosed:
    """Enclose the result of a function once; the options are those of `Enclosing.__call__`.

    Raises:
        Undecided: if the enclosures are too wide to determine the result.
        NotSupported: if ball arithmetic has no rule for a primitive.
    """
    return Enclosing(function, instance)(**options)


class Met(NamedTuple):
    """Whether an instance meets the hypotheses of a claim.

    Attributes:
        words: a dictionary from each hypothesis to "certain" (proved), "open" (undecided) or
            "missed" (violated).
        computed: whether a hypothesis depends on numbers that Python computed without JAX, and so
            without enclosures.
    """

    words: dict[str, str]
    computed: bool

    @property
    def certain(self) -> bool:
        """Whether the enclosures prove that the instance meets all hypotheses."""
        return all(word == "certain" for word in self.words.values())


def hypotheses_of(
    statement: Statement, form: Form, instance: Any, size: Size, /
) -> Callable[..., Met]:
    """Trace the hypotheses of a claim; return a function that decides them.

    Raises:
        NotSupported: in a call of the returned function, if a hypothesis returns another type than
            booleans.
    """
    asking = lambda hypotheses: Enclosing(lambda i: dict(hypotheses(i, size)), instance)
    asked = [asking(f) for f in (statement.hypotheses, form.hypotheses) if f is not None]

    def met(**options: Any) -> Met:
        known: dict[str, str] = {}
        found = [one(**options) for one in asked]
        for name, value in (pair for one in found for way in one.ways for pair in way.items()):
            values = as_flags(value) if isinstance(value, Flags) else np.asarray(value)
            if not isinstance(value, Flags) and values.dtype != np.bool_:
                raise NotSupported(
                    f"the hypothesis {name!r} returns dtype={values.dtype}, expected booleans. Try "
                    "a comparison, such as a <= b"
                )
            unsure = "open" if (values == OPEN).any() else "certain"
            word = "missed" if (values == 0).any() else unsure
            before = known.get(name, word)
            known[name] = word if word == before else "open"
        return Met(known, any(one.taken(statement.host) for one in found))

    return met
