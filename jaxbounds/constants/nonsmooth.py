"""Maximise lhs/rhs with kinks by BFGS that moves along kinks, and by CMA-ES, a random search.

A gradient search with strong Wolfe conditions stops at the first kink. BFGS with weak Wolfe
conditions learns from the slopes on both sides of a kink and continues (Lewis and Overton,
Nonsmooth optimization via quasi-Newton methods, 2013). CMA-ES needs no slopes; BFGS continues from
the result of CMA-ES.
"""

import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

PROGRAMS, CUTS = 300, 150
"""The largest number of linear programs in one minimisation, and of cuts (linear bounds) in one
program.

A minimisation with more programs or cuts goes farther, and takes longer.
"""
QUICK = {"presolve": False}
"""Options for SciPy's solver; they switch off the presolve, which is slower than the solution."""
LARGEST = 80
"""The search tries CMA-ES, a random search, on problems with at most this many coordinates.

If this number of coordinates is larger, the search takes longer.
"""
MISSING = "CMA-ES needs module='cma'. Try pip install 'jaxbounds[search]'"
Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""A function that takes a point and returns the value to minimise and the value's slope."""


def has_cma() -> bool:
    """Tell whether the package cma, which the extra `search` installs, is present."""
    return importlib.util.find_spec("cma") is not None


def _step(loss: Loss, x: np.ndarray, f: float, g: np.ndarray, p: np.ndarray) -> Any:
    """Find a step t along p that satisfies the weak Wolfe conditions, by bisection, or None."""
    low, high, t, fall = 0.0, np.inf, 1.0, float(g @ p)
    for _ in range(60):
        there, slope = loss(x + t * p)
        if not there < f + 1e-4 * t * fall:
            high = t
        elif slope @ p < 0.9 * fall:
            low = t
        else:
            return t, there, slope
        t = (low + high) / 2 if high < np.inf else 2 * low
    return None


def walked(loss: Loss, x: np.ndarray, /, *, steps: int = 400, until: float = np.inf) -> np.ndarray:
    """Minimise by BFGS with weak Wolfe conditions, until no step makes the loss smaller."""
    f, g = loss(x)
    inverse, fresh = np.eye(len(x)), True
    for _ in range(steps):
        p = -inverse @ g
        if not g @ p < 0:
            p, inverse, fresh = -g, np.eye(len(x)), True
        found = _step(loss, x, f, g, p) if np.any(p) and time.process_time() < until else None
        if found is None:
            if fresh:
                break
            inverse, fresh = np.eye(len(x)), True  # try again with a fresh inverse Hessian
            continue
        t, there, slope = found
        s, y = t * p, slope - g
        x, f, g = x + s, there, slope
        if (curved := float(s @ y)) > 0:
            if fresh:
                inverse = inverse * curved / float(y @ y)
            turn = np.eye(len(x)) - np.outer(s, y) / curved
            inverse, fresh = turn @ inverse @ turn.T + np.outer(s, s) / curved, False
    return x


def bundled(
    loss: Loss, x: np.ndarray, /, *, radius: float = 0.1, until: float = np.inf
) -> np.ndarray:
    """Minimise in a trust region by cutting planes: linear programs over the known smooth pieces.

    If as many smooth pieces meet as there are coordinates, the steps are Newton steps.

    The first trust region is a cube with half side `radius`.
    """
    f, g = loss(x)
    cuts, before = [(x, f, g)], np.inf
    for _ in range(PROGRAMS):
        if radius < 1e-15 or time.process_time() > until:
            break
        near = [c for c in cuts if np.max(np.abs(c[0] - x)) <= 10 * radius][-CUTS:]
        step, promised, _ = program(near, x, f, radius)
        if step is None or not promised > 1e-17 * max(1.0, abs(f)):
            radius /= 8  # no gain with this radius
            continue
        there, slope = loss(x + step)
        if not (np.isfinite(there) and np.all(np.isfinite(slope))):
            radius /= 8
            continue
        cuts = [*cuts[-2 * CUTS :], (x + step, there, slope)]
        gained = f - there
        if gained > 0:
            x, f, before = x + step, there, np.inf
            if gained > promised / 2 and np.max(np.abs(step)) > radius / 2:
                radius *= 4
        elif gained < -promised or promised >= before:  # too far, or the last cut had no effect
            radius, before = radius / 2, np.inf
        else:
            before = promised
    return x


def program(cuts: list[Any], x: np.ndarray, f: float | None, radius: float, /) -> Any:
    """Return the step within a cube that minimises the largest of the cuts (linear functions).

    The function lowers a cut that exceeds f at x until the cut equals f there. If f is None, the
    function changes no cut.

    Returns:
        The step, the predicted decrease below f (below the first cut if f is None), and the
        multiplier of each cut. The step is None if the linear program has no solution.
    """
    slopes = np.array([g for _, _, g in cuts])
    scale = max(float(np.max(np.abs(slopes))) * radius, 1e-300)
    with np.errstate(all="ignore"):
        # A cut that exceeds f at x does so because of curvature, so it is lowered to f.
        heights = np.array([at + g @ (x - z) for z, at, g in cuts])
        heights = heights - cuts[0][1] if f is None else np.minimum(heights, f) - f
        heights = heights / scale
    if not (scale < np.inf and np.all(np.isfinite(heights))):  # the slopes overflow
        return None, 0.0, np.zeros(len(cuts))
    rows = np.hstack([slopes * (radius / scale), -np.ones((len(cuts), 1))])
    goal = np.append(np.zeros(len(x)), 1.0)
    ends = [(-1, 1)] * len(x) + [(None, None)]
    found = scipy.optimize.linprog(goal, rows, -heights, bounds=ends, options=QUICK)
    if not found.success:
        return None, 0.0, np.zeros(len(cuts))
    return found.x[:-1] * radius, -float(found.x[-1]) * scale, -found.ineqlin.marginals


def by_cma(
    losses: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    /,
    *,
    spread: float,
    seed: int,
    until: float,
) -> np.ndarray:
    """Return the best point that CMA-ES finds.

    The function `losses` takes points of shape (m, n) and returns losses of shape (m,). The first
    draws have the standard deviation `spread`.

    Raises:
        ModuleNotFoundError: if cma is absent; the message has the command that installs cma.
    """
    if not has_cma():
        raise ModuleNotFoundError(MISSING, name="cma")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cma

        state = np.random.get_state()  # noqa: NPY002, cma draws from the global generator
        try:
            settings = {"seed": seed + 1, "verbose": -9, "tolfun": 1e-14, "tolx": 1e-14}
            search = cma.CMAEvolutionStrategy(x, spread, settings)
            while not search.stop() and time.process_time() < until:
                asked = search.ask()
                search.tell(asked, list(losses(np.array(asked))))
        finally:
            np.random.set_state(state)  # noqa: NPY002
    return x if search.result.xbest is None else np.asarray(search.result.xbest)
