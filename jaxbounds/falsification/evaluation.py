"""What a statement gives on one instance, before it is compared: its sides, its hypotheses."""

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

Xp = Any
"""The array module of a comparison: `jax.numpy` where it is traced, NumPy on the host, where a
`jax.numpy` operation on a few numbers takes a hundred times as long."""
Reals = Float[Array | np.ndarray, "..."]
Flags = Bool[Array | np.ndarray, "..."]


NO_SLOPES = (NotImplementedError, TypeError, ValueError)
"""What JAX raises where it cannot differentiate (loops of unknown length, callbacks, ...)."""
SCALED_BY = 0.01
"""Relative: the engine's control of an `=` scales the right side by one and this part. A larger
value makes a control that is easier to reject."""


class Reading(NamedTuple):
    """What `evaluate` and the hypotheses give on one instance, as they give it.

    Attributes:
        lhs: the side claimed to be the smaller one, of each form and the control; a single one
            where they share it.
        rhs: the other side.
        error: the stated error.
        trivial: the trivial bound, if there is one.
        met: the hypotheses by name: the statement's, then each form's own.
        judged: a few numbers of what each judged function returned, where a watch noted it.
    """

    lhs: tuple[Reals, ...]
    rhs: tuple[Reals, ...]
    error: tuple[Reals, ...]
    trivial: Reals | None
    met: tuple[dict[str, Flags], ...]
    judged: dict[str, Reals]


def form_names(statement: Statement, /) -> tuple[str, ...]:
    """The order of the entries of `Measured`: the forms, then the control."""
    return (*(form.name for form in statement.forms), CONTROL)


def pick(side: Any, name: str, which: str, statement: Statement, /) -> Any:
    """One form's side, where forms have sides of their own.

    Raises:
        ValueError: if there is none for that form.
    """
    if not isinstance(side, Mapping):
        return side
    if name not in side:
        raise ValueError(
            f"evaluate of {statement.id} returned no {which} for {name!r}; it returned "
            f"{', '.join(side)}"
        )
    return side[name]


def in_order(statement: Statement, sides: Sides, /) -> Sides:
    """The sides of a bound with that which is claimed to be the smaller one on the left."""
    if statement.relation != ">=":
        return sides
    names = list(sides.rhs)
    larger = {name: pick(sides.lhs, name, "lhs", statement) for name in names}
    return sides._replace(lhs=dict(sides.rhs), rhs=larger)


def refuse_other_sides(relation: str, lhs: Any, rhs: Any, error: Any = 0.0, /) -> None:
    """Refuse sides that the relation cannot compare.

    Raises:
        ValueError: if those of a bound are no scalars, or others differ in shape.
    """
    left, right, stated = map(np.shape, (lhs, rhs, error))
    if relation in ("<=", ">="):
        if left or right or stated:
            shapes = f"{left} and {right}, with an error of shape {stated}"
            raise ValueError(f"both sides of a <= must be scalars, got {shapes}")
    elif left != right:
        of = "a = must have" if relation == "=" else "a limit have"
        raise ValueError(f"both sides of {of} one shape, got {left} and {right}")


def _refuse_low_precision(statement: Statement, instance: Instance) -> None:
    wanted = jax.dtypes.canonicalize_dtype(float)
    for path, leaf in jax.tree_util.tree_leaves_with_path(instance):
        if jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.dtype != wanted:
            where = jax.tree_util.keystr(path)
            raise ValueError(
                f"{statement.id}: instance{where} is {leaf.dtype}, but statements are measured in "
                f"{wanted}: let the sampler use the default float type"
            )


def _flags(hypotheses: Hypotheses | None, instance: Instance, size: Size, xp: Xp) -> dict:
    """Each hypothesis by name, as it was given."""
    named = hypotheses(instance, size) if hypotheses else {}
    if not isinstance(named, Mapping):
        raise TypeError(f"hypotheses must return a dict of booleans by name, got {type(named)}")
    for name, flags in named.items():
        kind = flags.dtype if hasattr(flags, "dtype") else np.asarray(flags).dtype
        if kind != np.bool_:
            raise TypeError(f"the hypothesis {name!r} must be a boolean, not {kind}: compare them")
    return {name: xp.asarray(flags) for name, flags in named.items()}


def asked(
    hypotheses: Hypotheses | None, instance: Instance, size: Size, xp: Xp = jnp, /
) -> dict[str, Flags]:
    """Each hypothesis by name, as a boolean scalar.

    Raises:
        TypeError: at trace time, if `hypotheses` returns no dict of booleans.
    """
    found = _flags(hypotheses, instance, size, xp)
    return {name: xp.asarray(xp.all(flags)) for name, flags in found.items()}


def joined(*tables: Mapping[str, Flags]) -> dict[str, Flags]:
    """Hypotheses from several places; those of one name must all be met."""
    found: dict[str, Flags] = {}
    for name, flag in itertools.chain.from_iterable(table.items() for table in tables):
        found[name] = found[name] & flag if name in found else flag
    return found


def met(
    hypotheses: Hypotheses | None, instance: Instance, size: Size, xp: Xp = jnp, /
) -> dict[str, Flags]:
    """Each hypothesis by name, as a boolean scalar; plus finiteness of the instance.

    Raises:
        TypeError: at trace time, if `hypotheses` returns no dict of booleans.
    """
    return joined({"finite": all_finite(instance, xp)}, asked(hypotheses, instance, size, xp))


@functools.cache
def is_floating(dtype: Any, /) -> bool:
    """Whether numbers of a type are floats: asked at each step, and slow to find out."""
    return bool(jnp.issubdtype(dtype, jnp.floating))


def all_finite(instance: Instance, xp: Xp, /, axes: int = 0) -> Any:
    """Whether all floats of an instance are finite; of each, over leading axes."""
    found = xp.asarray(True)
    for leaf in jax.tree.leaves(instance):
        if is_floating(leaf.dtype):
            found = found & xp.all(xp.isfinite(leaf), axis=tuple(range(axes, leaf.ndim)))
    return xp.asarray(found)


def projection(statement: Statement, size: Size) -> Callable[[Instance], Instance]:
    """Back onto the hypotheses; what meets them as it is stays, wherever `project` would put it.

    Without hypotheses `project` alone says which instances there are.
    """
    project, xp = statement.project, np if statement.host else jnp
    if project is None:
        return lambda instance: instance
    if statement.hypotheses is None:
        return lambda instance: project(instance, size)

    def onto(instance: Instance) -> Instance:
        projected = project(instance, size)
        meets = xp.all(xp.stack(list(met(statement.hypotheses, instance, size, xp).values())))
        return jax.tree.map(lambda own, new: xp.where(meets, own, new), dict(instance), projected)

    return onto


def read(
    statement: Statement, size: Size, /, returned: Callable[[Any], dict[str, Any]] | None = None
) -> Callable[[Instance], Reading]:
    """The function from an instance of that size to its `Reading`.

    Pure; `jit` and `vmap` it, unless the statement is run on the host.

    Args:
        statement: that is read.
        size: of the instances.
        returned: from the array module to the numbers of what judged functions just returned.

    Raises:
        ValueError: at trace time, if `evaluate` misses a form or returns sides of wrong shapes.
        TypeError: at trace time, if it returns complex numbers.
    """
    xp, names = np if statement.host else jnp, form_names(statement)

    def one(instance: Instance) -> Reading:
        _refuse_low_precision(statement, instance)
        with estimates_made() as made:
            sides = in_order(statement, _checked(statement, _evaluated(statement, instance, size)))
        judged = returned(xp) if returned else {}
        if set(made) - set(statement.estimates.values()):
            cure = f'the side, as estimates={{"lhs": "{made[0]}"}}'
            if not statement.is_bound:
                cure = "two claims, <= and >=: a search supports one side of an = only"
            raise ValueError(
                f"evaluate of {statement.id} has a supremum or infimum that is only estimated. Try "
                f"{cure}"
            )

        def real(side: Any, name: str, which: str) -> Any:
            found = xp.asarray(pick(side, name, which, statement))
            if jnp.issubdtype(found.dtype, jnp.complexfloating):
                raise TypeError(
                    f"{statement.id} ({name}): {which} is complex: compare real numbers, such as "
                    "real and imaginary parts, stacked"
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
            except ValueError as problem:
                raise ValueError(f"{statement.id} ({name}): {problem}") from None
        trivial = None if sides.trivial is None else xp.asarray(sides.trivial)
        # On the host flags may be of another shape for each instance.
        flags = asked if statement.host else _flags
        wanted = (statement.hypotheses, *(form.hypotheses for form in statement.forms))
        met = tuple(flags(hypotheses, instance, size, xp) for hypotheses in wanted)
        return Reading(lhs, rhs, error, trivial, met, judged)

    return one


def of_form(part: Sequence[Any], index: int, /) -> Any:
    """A form's entry, or the one that all share."""
    return part[index if len(part) > 1 else 0]


def _own(instance: Instance, writable: bool) -> Instance:
    """Arrays of an instance that nobody else holds."""

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return leaf
        held = leaf.copy()
        held.setflags(write=writable)
        return held

    return jax.tree.map(own, instance)


def _refused(problem: ValueError) -> bool:
    """Whether NumPy refused to change an array."""
    return "read-only" in str(problem)


def on_the_host(statement: Statement, /) -> Callable[[Instance, Size], Sides]:
    """The `evaluate` of a statement on the host, which can change no instance but its own.

    It gets arrays that are read-only. One that changes its instance gets a copy to change, so that
    its sides are of the instance as it was drawn; `changes_its_instance` tells.
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
    """Whether the `evaluate` of a statement on the host writes into the arrays it is given."""
    try:
        with np.errstate(all="ignore"):
            statement.evaluate(_own(instance, False), size)
    except ValueError as problem:
        return _refused(problem)
    return False


def _evaluated(statement: Statement, instance: Instance, size: Size) -> Sides:
    evaluate = on_the_host(statement) if statement.host else statement.evaluate
    try:
        with np.errstate(all="ignore"):  # an instance that the hypotheses leave out may be anything
            return evaluate(instance, size)
    except KeyError as missing:
        name = missing.args[0] if missing.args else None
        if not isinstance(name, str) or name in instance or name in size:
            raise
        raise ValueError(
            f"evaluate of {statement.id} asks for {name!r}; an instance has {', '.join(instance)}"
        ) from missing


def _checked(statement: Statement, sides: Sides) -> Sides:
    if not isinstance(sides, Sides):
        raise TypeError(f"evaluate of {statement.id} must return Sides, got {type(sides)}")
    if not isinstance(sides.rhs, Mapping):
        raise TypeError(
            f"the rhs of {statement.id} must be a dict with a value for each of "
            f"{', '.join(form_names(statement))}, got {type(sides.rhs)}"
        )
    extra = set(sides.rhs) - set(form_names(statement))
    if extra:
        names = ", ".join(sorted(extra))
        raise ValueError(f"evaluate of {statement.id} returned rhs for unknown forms: {names}")
    return sides if statement.control.strip() else _with_control(statement, sides)


def _with_control(statement: Statement, sides: Sides) -> Sides:
    """The sides with the first form in the place of the control, of an `=` scaled by 1%.

    How far a bound must be scaled depends on all instances: `falsification.controls` does it.
    """
    first = statement.forms[0].name
    like = lambda side: (
        {**side, CONTROL: side[first]} if isinstance(side, Mapping) and first in side else side
    )
    rhs = like(sides.rhs)
    if CONTROL in rhs and not statement.is_bound:
        xp = np if statement.host else jnp
        rhs = {**rhs, CONTROL: xp.asarray(rhs[CONTROL]) * (1 + SCALED_BY)}
    return sides._replace(lhs=like(sides.lhs), rhs=rhs, error=like(sides.error))
