"""Instances with starts as in Definition 1 and targets as in Proposition 7, and their hypotheses.

The data come from the data model DM1. At the start theta^(1), the heads with alpha = +1 outnumber
the heads with alpha = -1 by b sqrt(H), for a drawn number b. The direction theta* is that of Lemma
13. An instance stores only one head of each sign, so H can be as large as the conditions require.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Instance, Size, Statement
from jaxbounds.multihead.certificate import (
    GoodInitialisation,
    good_initialisation,
    realizing_heads,
    target_scale,
    tied_direction,
)
from jaxbounds.multihead.first_phase import centre
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.statements.contexts import DATA_SIZES, quieter, unfold
from jaxbounds.multihead.tied import tied_margins, tied_norm

_quiet = quieter(p=0.1)
"""A sampler of data sets with so little noise that the direction theta* separates each of them."""


class Start(NamedTuple):
    """The start theta^(1) and direction theta*, each with one head per sign of alpha, and the data.

    The tuple also contains the constants of Definition 1. `excess` is a number b: of the H heads,
    (H + b sqrt(H)) / 2 have alpha = +1. The output Phi(theta^(1)) is therefore of order b for every
    number of heads H.
    """

    params: Params
    direction: Params
    data: Data
    good: GoodInitialisation
    radius: Array
    level: Array
    excess: Array

    def moved(self, heads: Array) -> tuple[Params, Array]:
        """Return theta^(1) + G theta* as one head for each sign, and the head count by sign."""
        G, (share, copies) = target_scale(self.good, self.level), shared(self, heads)
        return jax.tree.map(lambda p, v: p + G * v, self.params, share), copies


def shared(start: Start, heads: ArrayLike) -> tuple[Params, Array]:
    """Return one head's part of theta* for each sign, and the number of heads of each sign."""
    half = jnp.full(2, heads / 2)
    more = start.excess * jnp.sqrt(heads) / 2 * jnp.asarray([1.0, -1.0])
    return tied_direction(start.direction, half), half + more


def good_start_of(instance: Instance) -> Start:
    """Return the start theta^(1) that an instance describes, with its constants of Definition 1."""
    c = unfold(instance)
    row = centre(c.classifier, c.zeta) + instance["p"]
    rows = jnp.broadcast_to(row[None, :], (c.T, row.shape[0]))
    outer, inner = c.direction["U"], c.direction["W"]
    start = {"U": jnp.stack([rows, -rows]), "W": jnp.zeros((2, *inner.shape))}
    # Definition 1's theta* has norm sqrt(2): here it has two heads of norm one.
    direction = {"U": jnp.stack([outer, outer]), "W": jnp.stack([inner, -inner])}
    direction = jax.tree.map(lambda leaf: leaf / 2**0.5, direction)
    data = {"X": c.X, "y": instance["y"]}
    level, none = jnp.exp(instance["log_eps"]), GoodInitialisation(*jnp.ones(3))
    radius = jnp.maximum(c.R, 1.0)
    found = Start(start, direction, data, none, radius, level, instance["excess"])
    # B_2, B_Phi and gamma do not depend on H, so any large H will do.
    share, copies = shared(found, 1e4)
    return found._replace(good=good_initialisation(start, copies, data, share))


def definition_1(
    good: GoodInitialisation, params: Params, copies: Array, data: Data, direction: Params
) -> dict[str, ArrayLike]:
    """Return, for each condition of Definition 1, whether a start and its theta* satisfy it."""
    found = good_initialisation(params, copies, data, direction)
    outputs = jnp.abs(tied_margins(params, copies, data))
    norms = jnp.sqrt(sum(jnp.sum(leaf**2, (1, 2)) for leaf in params.values()))
    return {
        "P1: ||theta_h|| <= B_2 for every h, B_2 >= 1 (Definition 1, Section 4.3)": (
            jnp.max(norms) <= good.head_bound
        )
        & (good.head_bound >= 1),
        "P2: |Phi(X_i; theta_0)| <= B_Phi for every i, B_Phi >= 1 (Definition 1)": (
            jnp.max(outputs) <= good.model_bound
        )
        & (good.model_bound >= 1),
        "P3: ||theta*|| = sqrt(2) (Definition 1)": jnp.abs(tied_norm(direction, copies) - 2**0.5)
        < 1e-9,
        "P3: y_i <grad Phi(X_i; theta_0), theta*> >= gamma > 0 (Definition 1)": (
            found.margin >= good.margin * (1 - 1e-9)
        )
        & (good.margin > 0),
    }


def enough_for_proposition_7(
    good: GoodInitialisation, level: ArrayLike, radius: ArrayLike, heads: ArrayLike, size: Size
) -> dict[str, ArrayLike]:
    """Check Proposition 7's conditions: (98) on the number of heads, and 0 < epsilon <= 1."""
    level = jnp.asarray(level)
    least = realizing_heads(good, level, radius, T=size["T"], d=size["d"])
    return {
        "(98) (Proposition 7, Appendix C.3)": jnp.asarray(heads) >= least * (1 - 1e-12),
        "0 < eps <= 1 (Proposition 7)": (level > 0) & (level <= 1),
    }


def even(heads: ArrayLike) -> Array:
    """Round the number of heads up to an even number, so that the heads form two equal groups."""
    return 2 * jnp.ceil(heads / 2)


def _separates(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    return {"gamma > 0": good_start_of(instance).good.margin > 1e-3}


on_good_starts = functools.partial(
    Statement,
    over={"log_eps": Box(-8, 0), "excess": Box(-9, 9)},
    sample={
        "b": _quiet,
        "b = 0": lambda key, size: {**_quiet(key, size), "excess": jnp.zeros(())},
    },
    sizes=DATA_SIZES,
    hypotheses=_separates,
    assumptions="Definition 1 on DM1 at theta^(1), with b sqrt(H) more signs +1 than -1 "
    "(half of the draws have b = 0); theta* of Lemma 13, gamma > 0; R >= 1",
    relation="<=",
    search="none",
    budget=Budget(samples=128, restarts=0),
)
"""Settings of statements about networks that start from theta^(1) (Definition 1)."""
