"""Section 5, Assumption 3: samples of the data model DM1."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.data import SparseContext
from jaxbounds.numerics.norms import vector_norm


def _model(relevant: Any, signal: Any, noise: Any, M: int, T: int) -> SparseContext:
    return SparseContext(
        tokens=T, dimension=M + 2, relevant=relevant, distractors=M, signal=signal,
        noise_mu=noise[0], noise_nu=noise[1], noise="extreme",
    )  # fmt: skip


@functools.partial(jax.jit, static_argnames=("n", "M", "T"))
def _longest_tokens(key: Any, n: int, **about: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    model = _model(**about)
    data, relevant = model.sample_marked(jax.random.wrap_key_data(key), n)
    patterns = model.patterns()
    nearest = patterns[jnp.argmax(data["X"][..., 2:] @ patterns[2:, 2:].T, axis=-1) + 2]
    noise = jnp.where(relevant[..., None], 0.0, data["X"] - nearest)
    return jnp.max(vector_norm(data["X"])), jnp.max(vector_norm(noise)), jnp.mean(relevant)


def _bounded_noise(instance: Instance, size: Size) -> Sides:
    about = {
        "relevant": int(instance["relevant"]),
        "signal": float(instance["signal"]),
        "noise": tuple(map(float, instance["noise"])),
        "M": size["M"],
        "T": size["T"],
    }
    longest, noise, share = _longest_tokens(instance["key"], size["n"], **about)
    model = _model(**about)
    return Sides.pairs(
        {
            "printed, R": (longest, model.radius),
            "printed, Z": (noise, model.noise_norm),
            "printed, zeta": (share, model.sparsity),
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
