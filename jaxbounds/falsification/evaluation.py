"""Evaluate the sides and the hypotheses of a statement on one instance, without comparing them."""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxbounds.claims.sets.inner import estimates_made
from jaxbounds.claims.statements import CONTROL, Hypotheses, Instance, Sides, Size, Statement
from jaxbounds.claims.statements.problems import two_claims
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tracing_errors import TRACED, trace_fault, users_line

Xp = Any
"""The array module of a computation: `jax.numpy` while JAX traces the computation, else NumPy,
which is a hundred times as fast for a few numbers."""
Reals = Float[Array | np.ndarray, "..."]
Flags = Bool[Array | np.ndarray, "..."]


NO_SLOPES = (NotImplementedError, TypeError, ValueError)
"""Exceptions that JAX raises if it cannot differentiate (a `while_loop`, a callback, ...)."""
SCALED_BY = 0.01
"""A deliberately false variant of an `=` has a right side larger by this relative amount. A larger
value makes the variant easier to reject."""

DRIFT = 2.0**-50, 1e-9
"""If an instance meets the hypotheses, its projection replaces an array whose change is between
both shares of the largest entry. A larger first share keeps more instances that drifted out of a
thin set; a larger second share replaces more instances."""


class Reading(NamedTuple):
    """The sides and the hypotheses of one instance, as `evaluate` and `hypotheses` return them.

    Attributes:
        lhs: the side claimed to be smaller, for each version of the claim and for a deliberately
            false variant; a single entry if all versions share it.
        rhs: the side claimed to be larger, given like `lhs`.
        error: the error of the sides that `evaluate` states, given like `lhs`.
        trivial: a trivial upper bound on `lhs`, or None. A claim says nothing if its right side
            always exceeds `trivial`.
        met: dictionaries from each hypothesis's name to its value: the statement's hypotheses, then
            those of each version.
        judged: a few numbers from the result of each function that the statement judges, if a
            `TraceWatch` noted them.
    """

    lhs: tuple[Reals, ...]
    rhs: tuple[Reals, ...]
    error: tuple[Reals, ...]
    trivial: Reals | None
    met: tuple[dict[str, Flags], ...]
    judged: dict[str, Reals]


def form_names(statement: Statement, /) -> tuple[str, ...]:
    """Return the names of the claim versions, followed by the name of the false variant."""
    return (*(form.name for form in statement.forms), CONTROL)


def pick(side: Any, name: str, which: str, statement: Statement, /) -> Any:
    """Return the left or right side of one version of the claim.

    If `evaluate` returned a single side, all versions share it.

    Raises:
        Refused: if `evaluate` returned no side for the version.
    """
    if not isinstance(side, Mapping):
        return side
    if name not in side:
        raise Refused(
            f"evaluate of {statement.id} returned no {which} for form={name!r}, got "
            f"{', '.join(side)}. Try {which}={{{name!r}: ...}}"
        )
    return side[name]


def in_order(statement: Statement, sides: Sides, /) -> Sides:
    """Return the sides of a bound with the side claimed to be smaller as `lhs`."""
    if statement.relation != ">=":
        return sides
    names = list(sides.rhs)
    larger = {name: pick(sides.lhs, name, "lhs", statement) for name in names}
    return sides._replace(lhs=dict(sides.rhs), rhs=larger)


def refuse_other_sides(relation: str, lhs: Any, rhs: Any, error: Any = 0.0, /) -> None:
    """Refuse sides that the relation cannot compare.

    Raises:
        Refused: if a side of a bound is not a scalar, or the sides of an `=` differ in shape.
    """
    left, right, stated = map(np.shape, (lhs, rhs, error))
    if relation in ("<=", ">="):
        if left or right or stated:
            shapes = f"{left} and {right}, with an error of shape {stated}"
            raise Refused(
                f"both sides of a <= must be scalars, got {shapes}. Try jnp.max or jnp.sum of "
                "each side"
            )
    elif left != right:
        of = "a = must have" if relation == "=" else "a limit must have"
        raise Refused(f"both sides of {of} one shape, got {left} and {right}. Try jnp.broadcast_to")


def _refuse_low_precision(statement: Statement, instance: Instance) -> None:
    wanted = jax.dtypes.canonicalize_dtype(float)
    for path, leaf in jax.tree_util.tree_leaves_with_path(instance):
        if jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.dtype != wanted:
            where = jax.tree_util.keystr(path)
            raise Refused(
                f"{statement.id}: instance{where} is {leaf.dtype}; expected dtype={wanted}, "
                "in which statements are measured. Try the default float type in the sampler"
            )


def _flags(hypotheses: Hypotheses | None, instance: Instance, size: Size, xp: Xp) -> dict:
    named = hypotheses(instance, size) if hypotheses else {}
    if not isinstance(named, Mapping):
        raise TypeError(
            f"hypotheses must return a dict of booleans by name, got {type(named)}. Try "
            '{"name": a <= b}'
        )
    for name, flags in named.items():
        kind = flags.dtype if hasattr(flags, "dtype") else np.asarray(flags).dtype
        if kind != np.bool_:
            raise TypeError(
                f"the hypothesis {name!r} must be a boolean, got {kind}. Try a comparison, "
                "such as a <= b"
            )
    return {name: xp.asarray(flags) for name, flags in named.items()}


def asked(
    hypotheses: Hypotheses | None, instance: Instance, size: Size, xp: Xp = jnp, /
) -> dict[str, Flags]:
    """Return whether the instance meets each hypothesis: a boolean scalar for each name.

    Raises:
        TypeError: at trace time, if `hypotheses` returns another type than a dict of booleans.
    """
    found = _flags(hypotheses, instance, size, xp)
    return {name: xp.asarray(xp.all(flags)) for name, flags in found.items()}


def joined(*tables: Mapping[str, Flags]) -> dict[str, Flags]:
    """Join dicts of hypotheses; hypotheses of equal name are joined by a logical and."""
    found: dict[str, Flags] = {}
    for name, flag in itertools.chain.from_iterable(table.items() for table in tables):
        found[name] = found[name] & flag if name in found else flag
    return found


def met(
    hypotheses: Hypotheses | None, instance: Instance, size: Size, xp: Xp = jnp, /
) -> dict[str, Flags]:
    """Return {hypothesis: whether the instance meets it}; the key "finite" tests for finite floats.

    Raises:
        TypeError: at trace time, if `hypotheses` returns another type than a dict of booleans.
    """
    return joined({"finite": all_finite(instance, xp)}, asked(hypotheses, instance, size, xp))


@functools.cache
def is_floating(dtype: Any, /) -> bool:
    """Return whether a dtype is a float type; cached, because JAX's test is slow."""
    return bool(jnp.issubdtype(dtype, jnp.floating))


def all_finite(instance: Instance, xp: Xp, /, axes: int = 0) -> Any:
    """Return whether all floats of an instance, or of each instance of a batch, are finite."""
    found = xp.asarray(True)
    for leaf in jax.tree.leaves(instance):
        if is_floating(leaf.dtype):
            found = found & xp.all(xp.isfinite(leaf), axis=tuple(range(axes, leaf.ndim)))
    return xp.asarray(found)


def projection(statement: Statement, size: Size) -> Callable[[Instance], Instance]:
    """Return a function that moves an instance to a nearby instance that meets the hypotheses.

    The function does not change an instance that meets the hypotheses, except to undo a drift out
    of a thin set, such as a sphere. The function replaces -0 by 0, because real numbers have no -0.
    """
    project, xp = statement.project, np if statement.host else jnp
    plain = lambda x: xp.where(x == 0, xp.zeros_like(x), x) if is_floating(x.dtype) else x
    if project is None:
        return lambda instance: instance
    if statement.hypotheses is None:
        return lambda instance: jax.tree.map(plain, project(instance, size))

    def onto(instance: Instance) -> Instance:
        projected = project(instance, size)
        meets = xp.all(xp.stack(list(met(statement.hypotheses, instance, size, xp).values())))
        kept = lambda own, new: plain(xp.where(meets & ~_has_drifted(own, new, xp), own, new))
        return jax.tree.map(kept, dict(instance), projected)

    return onto


def _has_drifted(own: Any, new: Any, xp: Xp) -> Any:
    """Return whether the projection of an array undoes many small steps out of its set."""
    if not is_floating(own.dtype) or not own.size:
        return np.zeros((), bool)
    largest, far = xp.max(xp.abs(own)), xp.max(xp.abs(new - own))
    return (far > DRIFT[0] * largest) & (far <= DRIFT[1] * largest)


def read(
    statement: Statement, size: Size, /, returned: Callable[[Any], dict[str, Any]] | None = None
) -> Callable[[Instance], Reading]:
    """Return the function that evaluates an instance of the given size.

    JAX can `jit` and `vmap` the function, unless the statement runs outside JAX.

    Args:
        statement: the statement to evaluate.
        size: the size of the instances (the numbers that give their shapes).
        returned: a function that takes the array module (NumPy or `jax.numpy`) and returns a few
            numbers, which summarise the last results of the functions that the claim is about.

    Raises:
        Refused: at trace time, if `evaluate` misses a form or returns sides of wrong shapes.
        TypeError: at trace time, if `evaluate` returns complex numbers.
    """
    xp, names = np if statement.host else jnp, form_names(statement)

    def one(instance: Instance) -> Reading:
        _refuse_low_precision(statement, instance)
        with estimates_made() as made:
            sides = in_order(statement, _checked(statement, _evaluated(statement, instance, size)))
        judged = returned(xp) if returned else {}
        if set(made) - set(statement.estimates.values()):
            one = "supremum" if made[0] == "below" else "infimum"
            cure = f'estimates={{"lhs": "{made[0]}"}}, or "rhs" for the right side'
            if not statement.is_bound:
                cure = two_claims({"lhs": made[0]})
            raise Refused(
                f"the left or right side of {statement.id} calls jb.{one}, which a search "
                f"estimates from "
                f"{made[0]}, but estimates={dict(statement.estimates)} does not name this side of "
                f"the claim. Try {cure}"
            )

        def real(side: Any, name: str, which: str) -> Any:
            found = xp.asarray(pick(side, name, which, statement))
            if jnp.issubdtype(found.dtype, jnp.complexfloating):
                cure = "jnp.stack of its real and its imaginary part"
                cure = "jnp.real or jnp.abs of the side" if statement.is_bound else cure
                raise TypeError(
                    f"{statement.id} ({name}): {which} is complex, dtype={found.dtype}. Try {cure}"
                )
            return found

        def of_each(side: Any, which: str) -> tuple[Any, ...]:
            some = names if isinstance(side, Mapping) else names[:1]
            return tuple(real(side, name, which) for name in some)

        lhs, rhs = of_each(sides.lhs, "lhs"), of_each(sides.rhs, "rhs")
        error = of_each(sides.error, "error")
        for i, name in enumerate(names):
            try:
                refuse_other_sides(statement.relation, *(of_form(p, i) for p in (lhs, rhs, error)))
            except Refused as problem:
                words = f"{statement.id} ({name}): {problem}"
                raise Refused(words) from None
        trivial = None if sides.trivial is None else xp.asarray(sides.trivial)
        # On the host the shape of a flag may differ between instances.
        flags = asked if statement.host else _flags
        wanted = (statement.hypotheses, *(form.hypotheses for form in statement.forms))
        met = tuple(flags(hypotheses, instance, size, xp) for hypotheses in wanted)
        return Reading(lhs, rhs, error, trivial, met, judged)

    return one


def of_form(part: Sequence[Any], index: int, /) -> Any:
    """Return the entry of `part` for one version of the claim, or the only entry."""
    return part[index if len(part) > 1 else 0]


def _own(instance: Instance, writable: bool) -> Instance:

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        held = leaf.copy()
        held.setflags(write=writable)
        return held

    return jax.tree.map(own, instance)


def _refused(problem: ValueError) -> bool:
    return "read-only" in str(problem)


def on_the_host(statement: Statement, /) -> Callable[[Instance, Size], Sides]:
    """Wrap an `evaluate` that runs outside JAX, so that the instance stays unchanged.

    The engine passes read-only arrays to `evaluate`. If `evaluate` tries to write, the engine runs
    `evaluate` again on a writable copy.
    """

    def evaluate(instance: Instance, size: Size) -> Sides:
        try:
            return statement.evaluate(_own(instance, False), size)
        except ValueError as problem:
            if not _refused(problem):
                raise
            return statement.evaluate(_own(instance, True), size)

    return evaluate


def changes_its_instance(statement: Statement, instance: Instance, size: Size, /) -> bool:
    """Tell if a statement's `evaluate` that runs outside JAX overwrites its instance's arrays."""
    try:
        with np.errstate(all="ignore"):
            statement.evaluate(_own(instance, False), size)
    except ValueError as problem:
        return _refused(problem)
    return False


def _evaluated(statement: Statement, instance: Instance, size: Size) -> Sides:
    evaluate = on_the_host(statement) if statement.host else statement.evaluate
    try:
        with np.errstate(all="ignore"):  # an instance that misses the hypotheses may overflow
            return evaluate(instance, size)
    except KeyError as missing:
        name = missing.args[0] if missing.args else None
        if not isinstance(name, str) or name in instance or name in size:
            raise
        raise Refused(
            f"evaluate of {statement.id} reads entry={name!r}; expected one of "
            f"{', '.join(instance)}. Try one of these names"
        ) from missing
    except TRACED as problem:
        cause, cure = trace_fault(problem) or ("fails under a trace", "jax.numpy")
        raise Refused(
            f"{statement.id} cannot be evaluated{users_line(problem)}: the Python code of its left "
            f"or right side raised error={type(problem).__name__}, since the code {cause}. Try "
            f"{cure}"
        ) from problem


def _checked(statement: Statement, sides: Sides) -> Sides:
    if not isinstance(sides, Sides):
        raise TypeError(
            f"evaluate of {statement.id} must return Sides, got {type(sides)}. Try "
            'jb.Sides(lhs, {"printed": rhs})'
        )
    if not isinstance(sides.rhs, Mapping):
        raise TypeError(
            f"the rhs of {statement.id} must be a dict with a value for each of "
            f"{', '.join(form_names(statement))}, got {type(sides.rhs)}. Try "
            "jb.Sides(lhs, {form: rhs})"
        )
    extra = set(sides.rhs) - set(form_names(statement))
    if extra:
        names = ", ".join(sorted(extra))
        raise Refused(
            f"evaluate of {statement.id} returned rhs={names}, which no form declares. "
            "Try jb.Form(name=...) for each, or drop them"
        )
    return sides if statement.control.strip() else _with_control(statement, sides)


def _with_control(statement: Statement, sides: Sides) -> Sides:
    """Add a deliberately false variant to a statement without one.

    The engine scales the right side of an `=` by 1%. For a bound, `falsification.controls` scales
    the right side later, because the scale needs all instances.
    """
    first = statement.forms[0].name
    like = lambda side: (
        {**side, CONTROL: side[first]} if isinstance(side, Mapping) and first in side else side
    )
    rhs = like(sides.rhs)
    if CONTROL in rhs and statement.relation == "=":
        xp = np if statement.host else jnp
        rhs = {**rhs, CONTROL: xp.asarray(rhs[CONTROL]) * (1 + SCALED_BY)}
    return sides._replace(lhs=like(sides.lhs), rhs=rhs, error=like(sides.error))
