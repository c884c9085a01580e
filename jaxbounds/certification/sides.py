"""Convert an instance to arrays, and evaluate both sides of a claim by one function."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification.evaluation import in_order, on_the_host, pick
from jaxbounds.ground.exceptions import Refused


def arrays_of(instance: Instance, /, host: bool = False) -> dict[str, Any]:
    """Convert an instance's numbers, lists and arrays to the arrays that `evaluate` expects.

    Raises:
        Refused: if a leaf is not a finite number or array of numbers; the message names the leaf.
    """
    leaf = lambda x: not isinstance(x, Mapping)
    arrays = jax.tree.map(np.asarray, dict(instance), is_leaf=leaf)
    for path, x in jax.tree_util.tree_leaves_with_path(arrays):
        if x.dtype.kind not in "biuf":
            where = jax.tree_util.keystr(path, simple=True, separator=".")
            raise Refused(
                f"the instance must hold numbers: {where} holds {x.ravel()[:2]}, "
                f"dtype={x.dtype}. Try floats or integers"
            )
        if np.issubdtype(x.dtype, np.floating) and not np.isfinite(x).all():
            where = jax.tree_util.keystr(path, simple=True, separator=".")
            raise Refused(
                f"the instance is not finite: {where} holds {x.ravel()[:4]}, "
                f"dtype={x.dtype}. Try finite numbers"
            )
    return arrays if host else jax.device_put(arrays)


def sides_of(statement: Statement, form: Form, size: Size, /) -> Callable[[Any], tuple]:
    """Return a function from an instance to (smaller side, larger side, error) of a claim."""

    def sides(instance: Any) -> tuple[Any, Any, Any]:
        evaluate = on_the_host(statement) if statement.host else statement.evaluate
        both = in_order(statement, evaluate(instance, size))
        parts = {"lhs": both.lhs, "rhs": both.rhs, "error": both.error}
        return tuple(pick(part, form.name, which, statement) for which, part in parts.items())

    return sides
