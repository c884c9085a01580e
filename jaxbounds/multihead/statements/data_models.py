"""Section 5, Assumption 3: the data model DM1 as it is sampled."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.data import SparseContext
from jaxbounds.norms import vector_norm
from jaxbounds.sets import Box, Integers
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement


def _bounded_noise(instance: Instance, size: Size) -> Sides:
    model = SparseContext(
        tokens=size["T"],
        dimension=size["M"] + 2,
        relevant=int(instance["relevant"]),
        distractors=size["M"],
        signal=float(instance["signal"]),
        noise_mu=float(instance["noise"][0]),
        noise_nu=float(instance["noise"][1]),
        noise="extreme",
    )
    data, relevant = model.sample_marked(jax.random.wrap_key_data(instance["key"]), size["n"])
    patterns = model.patterns()
    nearest = patterns[jnp.argmax(data["X"][..., 2:] @ patterns[2:, 2:].T, axis=-1) + 2]
    noise = jnp.where(relevant[..., None], 0.0, data["X"] - nearest)
    longest = jnp.max(vector_norm(data["X"]))
    return Sides.pairs(
        {
            "printed, R": (longest, model.radius),
            "printed, Z": (jnp.max(vector_norm(noise)), model.noise_norm),
            "printed, zeta": (jnp.mean(relevant), model.sparsity),
            "control": (longest, model.signal),
        }
    )


ASSUMPTION_3 = Statement(
    id="multihead.asn3",
    label="Assumption 3",
    formula="||x_t||^2 <= R^2 = S^2 + Z^2 + 2 Z_nu / M, ||z_t|| <= Z, |R| = zeta T",
    tex=r"\|x_t\| \le R = \sqrt{S^2 + Z^2 + 2 Z_\nu / M}, \quad \|z_t\| \le Z, \quad "
    r"|\mathcal{R}| = \zeta T",
    kind="inequality",
    host=True,
    over={"relevant": Integers(1, "T-1"), "signal": Box(1.1, 2), "noise": Box(0.1, 1, 2)},
    sample=lambda key, size: {"key": jax.random.key_data(key)},
    evaluate=_bounded_noise,
    judges=(SparseContext.sample_marked,),
    sizes=({"n": 32, "T": 4, "M": 2},),
    forms=(
        Form(
            name="printed, R",
            cites="Assumption 3, Section 5",
            equality="noise at its bounds, along the distractor",
        ),
        Form(
            name="printed, Z",
            cites="Assumption 3, Section 5",
            equality="always: all noise is at its bounds",
        ),
        Form(name="printed, zeta", cites="Assumption 3, Section 5", equality="always"),
    ),
    control="S for R",
    assumptions="Z is the norm that Z_mu and Z_nu allow in every coordinate",
    search="none",
    budget=Budget(samples=10),
    source="Section 5, DM1 and Assumption 3",
)

STATEMENTS = (ASSUMPTION_3,)
