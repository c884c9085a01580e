"""Settings that several statements share."""

import functools
from collections.abc import Mapping

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import Budget, Instance, Sides, Size, Statement
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.runs import head_sizes
from jaxbounds.multihead.statements.instances import LOSS, SINGLE, keep_radius, radius_at_least_one
from jaxbounds.numerics.norms import max_row_norm

ANTIPODAL = "two tokens x = +-R v"
IDENTICAL = "identical tokens, where every covariance vanishes"

on_model = functools.partial(
    Statement,
    kind="inequality",
    sample=SINGLE,
    sizes=({"T": 4, "d": 3},),
    project=keep_radius,
    hypotheses=radius_at_least_one,
    assumptions="R = max_t ||x_t|| >= 1",
)
"""Settings of statements that bound a quantity of one head on one sequence."""

on_tokens = functools.partial(
    Statement,
    kind="inequality",
    over={"X": Reals(("T", "d")), "U": Reals(("T", "d")), "W": Reals(("d", "d"))},
    sample={"any": lambda key, size: {}, "extremal": SINGLE["extremal"]},
    sizes=({"T": 4, "d": 3},),
    assumptions="none: any tokens, of any norm",
)
"""Settings of statements about one head on one sequence, without Assumption 1."""

LOSS_ASSUMED = "Assumption 1 with R = max ||x_t|| >= 1; labels in {-1, +1}"
on_loss = functools.partial(
    Statement,
    kind="inequality",
    sample=LOSS,
    sizes=({"n": 1, "T": 2, "d": 2, "H": 1}, {"n": 4, "T": 3, "d": 2, "H": 4}),
    project=keep_radius,
    hypotheses=radius_at_least_one,
    assumptions=LOSS_ASSUMED,
    budget=Budget(samples=128, restarts=6, steps=120),
)
"""Settings of statements that bound the training loss or its derivatives."""


def token_radius(instance: Instance) -> Float[Array, ""]:
    """Return R = max ||x_t||, the least R that satisfies Assumption 1."""
    return max_row_norm(instance["X"].reshape(-1, instance["X"].shape[-1]))


def params_of(instance: Instance) -> Params:
    """Return the parameters of the heads of an instance."""
    return {"U": instance["U"], "W": instance["W"]}


def sizes_of(params: Params) -> tuple[Float[Array, ""], ...]:
    """Return ||theta||_{2,inf}, max_h ||U_h||_F and the mean of ||U_h||_F^2."""
    return head_sizes(params, jnp.ones(params["U"].shape[0]))


def on_data(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Check Assumption 1 for stored sequences, with R = max ||x_t||."""
    bounded = token_radius(instance) >= 1 - 1e-12
    found: dict[str, ArrayLike] = {"R = max ||x_t|| >= 1 (Assumption 1, Section 3)": bounded}
    if "y" in instance:
        labels = jnp.abs(jnp.asarray(instance["y"]))
        found["y in {-1, +1} (Assumption 1, Section 3)"] = jnp.all(labels == 1)
    return found


def unrestricted(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Return the hypothesis of claims about arbitrary numbers: all entries are finite."""
    finite = [jnp.all(jnp.isfinite(jnp.asarray(leaf, float))) for leaf in instance.values()]
    return {"no hypothesis: any finite numbers": jnp.all(jnp.stack(finite))}


def tight(lhs: ArrayLike, rhs: Mapping[str, ArrayLike], *, error: ArrayLike = 0.0) -> Sides:
    """Return the claim's sides, and a control (a false claim) with 0.9 times the last bound."""
    return Sides(lhs=lhs, rhs={**rhs, "control": 0.9 * list(rhs.values())[-1]}, error=error)
