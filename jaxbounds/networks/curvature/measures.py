"""Compute the numbers that a monitor records beside extreme eigenvalues; read and write records."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import write_text
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Point
from jaxbounds.networks.curvature.top import top_at
from jaxbounds.networks.curvature.trace import trace_at
from jaxbounds.networks.options import number

Measure = str | Callable[[Any], float]
"""A number to record: "extremes", "trace", "top5", "gradient_norm", or a function of `Curvature`.
"""

_RATE = "the number or schedule of the optimiser"
_TOP = re.compile(r"top(\d+)")
_NAMES = "extremes, trace, top5 (or another number), gradient_norm, or a function of the Curvature"


def check_measures(measures: Sequence[Measure], /) -> tuple[Measure, ...]:
    """Return the measures (names of numbers that a monitor records); refuse an unknown name.

    Raises:
        Refused: if the name of a measure is unknown.
    """
    single = isinstance(measures, str) or not hasattr(measures, "__iter__")
    given: tuple[Any, ...] = (measures,) if single else tuple(measures)
    for one in given:
        known = one in ("extremes", "trace", "gradient_norm") or (
            isinstance(one, str) and _TOP.fullmatch(one)
        )
        if not (callable(one) or known) or one == "top0":
            raise Refused(f"measure={one!r} is unknown. Try one of {_NAMES}")
    return given


def _gradient_kernel(problem: Problem, static: dict, dynamic: dict) -> jax.Array:
    return jnp.linalg.norm(jax.grad(problem.value)(problem.point))


def measured(
    measure: Measure, point: Point, operator: Callable[[], Any], /, *, memory_limit: float,
    key: jax.Array | None,
) -> dict[str, float]:  # fmt: skip
    """Compute one measure, such as the gradient's norm, at a point; return a dictionary of numbers.

    For "extremes" the dictionary is empty, because every record contains the extreme eigenvalues.
    `operator` makes the `Curvature` to which a user's own measure is applied.
    """
    if callable(measure):
        name, found = getattr(measure, "__name__", "measure"), measure(operator())
        return {name: number(f"measure {name}", found, example="float(...) of one number")}
    if measure == "trace":
        trace = trace_at(point, memory_limit=memory_limit, key=key)
        return {"trace": float(trace.estimate), "trace_error": float(trace.standard_error)}
    if measure == "gradient_norm":
        norm = point.run(_gradient_kernel, {}, {}, limit=memory_limit, what="a gradient")
        return {"gradient_norm": float(norm)}
    top = _TOP.fullmatch(measure)
    if top is None:
        return {}
    k = min(int(top[1]), point.selection.size)
    values = top_at(point, k, memory_limit=memory_limit, key=key).values
    return {f"top_{i}": float(value) for i, value in enumerate(values, 1)}


def check_logger(logger: Any, /) -> None:
    """Refuse a logger that cannot receive records.

    Raises:
        Refused: if the logger is neither a function nor an object with `log`, `log_metrics`,
            `add_scalar` or `info`.
    """
    ways = ("log_metrics", "add_scalar", "info", "log")
    if logger is not None and not callable(logger) and not any(hasattr(logger, w) for w in ways):
        raise Refused(
            f"logger has type={type(logger).__name__}, expected a function of a dictionary, or an "
            "object with log, log_metrics, add_scalar or info. Try logger=print"
        )


def rate_at(learning_rate: Any, step: int, /) -> float:
    """Return the learning rate at a step, from a number or a schedule.

    Raises:
        Refused: if the rate is not a positive number, or the schedule fails at a step.
    """
    if callable(learning_rate):
        try:
            learning_rate = learning_rate(step)
        except TypeError as problem:
            raise Refused(
                f"learning_rate(step={step}) raised {problem}. Try a schedule that is a function "
                "of the step alone"
            ) from None
        # A schedule may begin at 0.
        return number("learning_rate", learning_rate, above=-5e-324, example=_RATE)
    return number("learning_rate", learning_rate, above=0, example=_RATE)


def logged(logger: Any, record: dict[str, float], /) -> None:
    """Pass a record to a function or to a logger (`log`, `log_metrics`, `add_scalar`, `info`)."""
    step = int(record["step"])
    if hasattr(logger, "log_metrics"):
        logger.log_metrics(record, step=step)
    elif hasattr(logger, "add_scalar"):
        for name, value in record.items():
            logger.add_scalar(f"curvature/{name}", value, step)
    elif hasattr(logger, "info"):
        logger.info(json.dumps(record))
    elif hasattr(logger, "log"):
        logger.log(record, step=step)
    else:
        logger(record)


def stored(path: str | Path, /) -> list[dict[str, Any]]:
    """Return the records of a file, one for each line; an empty list if there is no file.

    Raises:
        Refused: if a line of the file is not a record.
    """
    if not isinstance(path, str | Path) or Path(path).is_dir():
        kind = "a folder" if isinstance(path, str | Path) else f"a {type(path).__name__}"
        raise Refused(
            f"file={path!r} is {kind}, expected the path of a file. Try file='curvature.jsonl'"
        )
    if not Path(path).exists():
        return []
    found = []
    for place, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            record = json.loads(line)
            found.append(record | {"step": int(record["step"])})
        except (ValueError, TypeError, KeyError):
            raise Refused(
                f"line={place} of file={str(path)!r} is no JSON object with an integer step, as a "
                f"monitor writes it. Try file= with the path of a new file"
            ) from None
    return found


def store(path: str | Path, records: list[dict[str, Any]], /) -> None:
    """Write all records to the file; a failure leaves the file as it was."""
    listed = lambda value: value.tolist() if hasattr(value, "tolist") else value
    lines = [json.dumps({k: listed(v) for k, v in one.items()}) for one in records]
    write_text(path, "".join(line + "\n" for line in lines))
