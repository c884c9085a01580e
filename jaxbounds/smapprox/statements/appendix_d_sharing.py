"""Lemma D.9: constants for each layer give a margin bound, even if layers share weights."""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import Form, Instance, Sides, Size
from jaxbounds.smapprox.certified import layer_norm
from jaxbounds.smapprox.statements.appendix_d import in_appendix_d

READS = {
    "printed": ((0, 1), (2, 3), (4, 5)),
    "printed shared": ((0, 1, 2), (2, 3, 0), (4, 5)),
    "control": ((0, 1, 2), (2, 3, 0), (4, 4, 5)),
}
"""For each version of the claim, the parameters that each layer uses. In the version "printed
shared", layers share parameters. In the false version, a layer also reads a parameter twice."""


def _alike(key: Array, size: Size) -> Instance:
    c = jnp.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [1e-9, 1e-9, 1e-9]])
    return {"c": c, "a": jnp.ones(3)}


def _one_layer(key: Array, size: Size) -> Instance:
    return {"c": jnp.full((3, 3), 1e-9).at[2, :2].set(1.0), "a": jnp.ones(3)}


def _sharing(i: Instance, size: Size) -> Sides:
    """Compute the margin rho of F = 1 - sum_i <c_i, tau_i(delta)> for layers that share parameters.

    The linear map tau_i takes layer i's part delta_i from the perturbation delta. The sum of all
    a_i |c_i| is 1, so F changes by less than 1 whenever all |delta_i| < a_i. The margin is rho = 1
    / |sum_i tau_i^T c_i|.
    """
    a = i["a"]

    def margin(reads: Any) -> Array:
        rows = [i["c"][k, : len(read)] for k, read in enumerate(reads)]
        lengths = jnp.stack([jnp.sqrt(jnp.maximum(row @ row, 1e-300)) for row in rows])
        whole = a @ lengths
        slope = jnp.zeros(size["p"])
        for row, read in zip(rows, reads):
            slope = slope.at[jnp.array(read)].add(row / whole)
        return 1 / jnp.sqrt(jnp.maximum(slope @ slope, 1e-300))

    norms = [layer_norm(i["delta"], read) for read in READS["printed shared"]]
    pairs = {name: (a.min(), margin(reads)) for name, reads in READS.items()}
    pairs["derived"] = (jnp.stack(norms).max(), jnp.sqrt(i["delta"] @ i["delta"]))
    return Sides.pairs(pairs, error=1e-13)


LEMMA_D9 = in_appendix_d(
    id="smapprox.lemmad.9",
    label="Lemma D.9, Definition D.5",
    formula="rho >= min_i a_i if |F-hat - F| < 1 whenever |theta-hat_i - theta_i| <= a_i, with "
    "and without shared weights",
    tex=r"\rho_F((\theta, \xi), x, \mathbb{1}(F \ge 0)) \ge \min\{a_0, \ldots, a_d, b_0, \ldots, "
    r"b_{d-1}\}",
    evaluate=_sharing,
    judges=(layer_norm,),
    over={"c": Reals((3, 3)), "a": Box(1e-9, math.inf, 3), "delta": Reals("p")},
    sample={"random": lambda key, size: {}, "alike": _alike, "one layer": _one_layer},
    sizes=({"p": 6},),
    forms=(
        Form(
            name="printed",
            cites="Lemma D.9, its display",
            note="The network F is linear in the parameters, so the check computes the margin rho "
            "exactly.",
            equality="one layer alone matters, that of the least a_i",
        ),
        Form(
            name="printed shared",
            cites="Lemma D.9, last sentence, with (D.4)",
            note="Each layer uses a parameter at most once, but several layers may share a "
            "parameter.",
            equality="two layers that read the same parameters alike",
        ),
        Form(
            name="derived",
            note="The lemma holds because |tau_i(delta)| <= |delta| for every layer i, where "
            "tau_i(delta) has the entries of delta for the parameters that layer i uses.",
            equality="delta in the parameters of one layer",
        ),
    ),
    control="a parameter read twice by one layer",
    assumptions="three layers, F linear in the parameters; a_i is a supremum; the b_i are treated "
    "as further a_i",
)

STATEMENTS = (LEMMA_D9,)
