"""What the statements of Section 4.1 and Appendix B share: hypotheses along a run, budgets."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.descent import root_heads, root_heads_sharp
from jaxbounds.multihead.runs import RUNS, setting
from jaxbounds.multihead.statements.common import stated
from jaxbounds.statements import Budget, Instance, Statement

SIZES = ({"n": 3, "T": 3, "d": 2},)

RUN_BUDGET = Budget(samples=256, restarts=0, steps=0, batch=128)


def worst_step(lhs, rhs, mask):
    """Both sides at the step of the largest ratio among those in the mask."""
    score = jnp.where(mask, lhs / jnp.maximum(rhs, 1e-300), -jnp.inf)
    at = jnp.argmax(score)
    return lhs[at], rhs[at]


@jax.jit
def assumption1(instance: Instance) -> dict:
    """Assumption 1 with R = max ||x_t||."""
    norms = jnp.linalg.norm(instance["X"], axis=-1)
    return {"R >= 1": jnp.max(norms) >= 1 - 1e-12}


@jax.jit
def many_heads(instance: Instance) -> dict:
    """Eq. (74)."""
    s = setting(instance)
    return {"(74)": s.heads >= root_heads(s.distance, s.size, s.radius, **s.shape) ** 2}


def many_sharp_heads(weight):
    """Eq. (74) with beta_3# and the quasi-convexity weight q."""

    def hypothesis(instance: Instance) -> dict:
        s = setting(instance)
        root = root_heads_sharp(s.distance, s.largest, s.radius, T=s.shape["T"], weight=weight)
        return {"(74) with beta_3#": s.heads >= root**2}

    return hypothesis


def run_statement(name, label, formula, evaluate, forms, control, source, **options) -> Statement:
    """A statement along certified runs."""
    defaults = {
        "sample": RUNS,
        "sizes": SIZES,
        "hypotheses": assumption1,
        "assumptions": "Assumption 1 with R = max ||x_t||; gradient descent on the logistic loss",
        "budget": RUN_BUDGET,
        "kind": "trajectory",
    }
    return stated(name, label, formula, evaluate, forms, control, source, **defaults | options)
