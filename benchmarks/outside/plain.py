"""A check of a claim's truth in plain float64: the sides as the compiler measures them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

import jaxbounds as jb

Side = Callable[..., Any] | float
"""A function of instance entries and sizes by name, or a number."""
Relation = Literal["=", "<=", ">=", "->"]
PLAIN = 1e-6
"""Slack, relative to the sides and to squared entries; a larger slack accepts smaller faults."""


def value(side: Side, instance: Mapping[str, Any], size: Mapping[str, float]) -> Any:
    """One side at an instance."""
    if not callable(side):
        return float(side)
    known = {**size, **instance}
    return side(**{name: known[name] for name in inspect.signature(side).parameters})


def plain(
    make: Callable[[], jb.Statement], lhs: Side, rhs: Side, relation: Relation, truth: bool,
    at: Mapping[str, Any] | None,
) -> Callable[[], bool]:  # fmt: skip
    """Make a check in plain float64: a false claim fails at `at`; no draw violates a true claim."""

    def check() -> bool:
        with jb.float64_on_cpu():
            statement = make()
            size: Any = statement.sizes[0]
            if not truth:
                return _excess({k: np.asarray(v) for k, v in (at or {}).items()}, size) > 0
            keys = jax.random.split(jax.random.key(5), 40)
            drawn = [draw(key, size) for key in keys for draw in statement.samplers.values()]
            host = lambda i: jax.tree.map(np.array, i) if statement.host else i
            return not any(_excess(host(instance), size) > 0 for instance in drawn)

    def _excess(instance: Mapping[str, Any], size: Mapping[str, float]) -> float:
        arrays = {k: v if isinstance(v, np.ndarray) and truth else jnp.asarray(v)
                  for k, v in instance.items()}  # fmt: skip
        left, right = (np.asarray(value(s, arrays, size), float) for s in (lhs, rhs))
        entry = max((float(np.max(np.abs(np.asarray(v, float)))) for v in instance.values()),
                    default=0.0)  # fmt: skip
        scale = np.abs(left) + np.abs(right)
        slack = PLAIN * (np.maximum(scale, 1 + entry**2) if truth else scale)
        gap = {"=": np.abs(left - right), "<=": left - right, ">=": right - left}[relation]
        return float(np.max(np.nan_to_num(gap - slack, nan=-1.0)))

    return check
