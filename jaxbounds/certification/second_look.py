"""Check a proof on a box by float64 evaluations at many points, without ball arithmetic."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Domain
from jaxbounds.falsification.programs import compiled
from jaxbounds.ground.jax_internals import as_function, with_outputs

POINTS = 1024
"""The number of points at which each round evaluates the claim. A larger number may find more
violations and takes longer."""
CORNERS = 256
"""The check evaluates the claim at no more than this many corners of the box. A larger number may
find more violations and takes longer."""
ROUNDS = 6
"""The number of rounds; each round tries points near the points with the least margin (rhs - lhs).
A larger number may find more violations and takes longer."""
ULPS = 8
"""The check moves a point's coordinates by this many units in the last place to measure rounding. A
larger number excuses more violations as rounding."""
UNITS = 8
"""A violation counts as rounding below this many units in the last place of the largest computed
number. A larger number excuses larger violations."""


class Doubt(NamedTuple):
    """Whether float64 contradicts the proof, and why; `looked` counts the evaluated points."""

    reason: str
    point: tuple[float, ...] | None
    looked: int


def _special(low: float, high: float) -> list[float]:
    inside = [v for v in (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-9, -1e-9) if low <= v <= high]
    whole = np.arange(np.ceil(low), min(np.floor(high), np.ceil(low) + 8) + 1)
    near = [np.nextafter(low, high), np.nextafter(high, low)]
    return [low, high, *near, low / 2 + high / 2, *inside, *whole.tolist()]


def _points(domain: Domain, rng: np.random.Generator) -> np.ndarray:
    low, high = np.array(domain.lower), np.array(domain.upper)
    count = len(low)
    corners = itertools.islice(itertools.product(*zip(low, high)), CORNERS)
    some = np.where(rng.random((CORNERS, count)) < 0.5, low, high)
    inside = rng.uniform(size=(POINTS, count))
    squeezed = np.where(rng.random(inside.shape) < 0.5, inside**4, 1 - inside**4)
    known = [_special(a, b) for a, b in zip(low, high)]
    special = np.stack([rng.choice(values, POINTS) for values in known], axis=1)
    mixed = np.where(rng.random(inside.shape) < 0.4, special, low + (high - low) * inside)
    lines = []
    for j, values in enumerate(known):
        line = np.repeat((low / 2 + high / 2)[None], len(values), axis=0)
        line[:, j] = values
        lines.append(line)
    parts = [np.array(list(corners)), some, special, mixed, *lines]
    parts += [low + (high - low) * share for share in (inside, squeezed)]
    return np.clip(np.concatenate(parts), low, high)


class _Measured(NamedTuple):
    margin: np.ndarray
    scale: np.ndarray
    stated: np.ndarray
    needed: np.ndarray


def against(margin: Callable[[jax.Array], Any], domain: Domain, tolerance: float, /) -> Doubt:
    """Search a box by float64 measurements for a violation of a claim that was proved on it.

    A violation counts as rounding if its relative size is at most `tolerance`. A violation also
    counts as rounding if a few units in the last place of the point, or of the largest number,
    explain it.
    """
    program, rng, looked = compiled(jax.vmap(margin)), np.random.default_rng(0), 0
    low, high = np.array(domain.lower), np.array(domain.upper)

    def measured(points: np.ndarray) -> _Measured:
        parts = []
        for start in range(0, len(points), POINTS):  # batches of equal length compile once
            index = np.minimum(np.arange(start, start + POINTS), len(points) - 1)
            found = map(np.asarray, program(points[index]))
            parts.append([f[: len(points) - start] for f in found])
        return _Measured(*map(np.concatenate, zip(*parts)))

    points = _points(domain, rng)
    for _ in range(ROUNDS):
        found = measured(points)
        looked += len(points)
        with np.errstate(all="ignore"):
            scale = np.maximum(np.maximum(found.scale, domain.slack), 1e-300)
            share = np.where(found.needed, (found.margin + domain.slack) / scale, np.inf)
            share = np.where(found.needed & np.isnan(found.margin), -np.inf, share)
        for row in np.argsort(share)[:8]:
            value = float(found.margin[row]) + domain.slack
            if (
                share[row] < -tolerance
                and not _rounding(measured, points[row], value)
                and not -value <= UNITS * np.finfo(float).eps * _largest(margin, points[row])
            ):
                point = tuple(map(float, points[row]))
                what = "is undefined" if np.isnan(value) else f"has the margin {value:.6g}"
                return Doubt(
                    "a contradiction, caused by rounding or an error of this library: enclosures "
                    f"prove the claim, but in float64 it {what} at {point}",
                    point, looked,
                )  # fmt: skip
        best = points[np.argsort(share)[:16]]
        reach = (high - low) * 10.0 ** rng.uniform(-6, -0.5, (POINTS // 16, 16, 1))
        moves = reach * rng.normal(size=(POINTS // 16, 16, len(low)))
        moves *= rng.random(moves.shape) < max(0.5, 1 / len(low))
        points = np.clip((best[None, : len(best)] + moves).reshape(-1, len(low)), low, high)
    return Doubt("", None, looked)


def _rounding(measured: Callable, point: np.ndarray, violation: float) -> bool:
    if not np.isfinite(violation):
        return False
    rng = np.random.default_rng(1)
    steps = rng.integers(-ULPS, ULPS + 1, (32, len(point)))
    near = measured(point + steps * np.spacing(np.maximum(np.abs(point), 1e-300))).margin
    spread = float(np.max(near) - np.min(near)) if np.all(np.isfinite(near)) else 0.0
    return bool(-violation <= 4 * spread)


def _largest(margin: Callable[[jax.Array], Any], point: np.ndarray) -> float:
    """Return the largest finite number that the program computes, outside loops, at a point."""
    closed = jax.make_jaxpr(margin)(jnp.asarray(point))
    met = [
        variable
        for eqn in closed.jaxpr.eqns
        for variable in eqn.outvars
        if jax.dtypes.issubdtype(variable.aval.dtype, np.floating)
    ]
    everything = as_function(with_outputs(closed, met))
    sizes = [np.abs(np.asarray(x, float)).ravel() for x in everything(point)]
    return max((float(np.max(s[np.isfinite(s)], initial=0.0)) for s in sizes), default=0.0)
