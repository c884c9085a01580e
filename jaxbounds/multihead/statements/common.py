"""What the statements of Section 3 and Appendix A share."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.multihead.instances import LOSS, SINGLE, keep_radius, radius_at_least_one
from jaxbounds.multihead.model import head_norm
from jaxbounds.norms import max_row_norm
from jaxbounds.statements import Budget, Instance, Statement

ANTIPODAL = "two tokens x = +-R v"
IDENTICAL = "identical tokens, where every covariance vanishes"


def token_radius(instance: Instance) -> Float[Array, ""]:
    """R = max ||x_t||, the least that the data allow."""
    return max_row_norm(instance["X"].reshape(-1, instance["X"].shape[-1]))


def params_of(instance: Instance) -> dict[str, Array]:
    """The heads of a loss-level instance."""
    return {"U": instance["U"], "W": instance["W"]}


def data_of(instance: Instance) -> dict[str, Array]:
    """Its sequences and labels."""
    return {"X": instance["X"], "y": instance["y"]}


def shape_of(instance: Instance) -> dict[str, int]:
    """T and d of a loss-level instance."""
    return {"T": instance["X"].shape[1], "d": instance["X"].shape[2]}


def sizes_of(params, tokens):
    """R, ||theta||_{2,inf}, max_h ||U_h||_F and the mean of ||U_h||_F^2."""
    squares = jnp.sum(params["U"] ** 2, axis=(1, 2))
    largest = jnp.sqrt(jnp.max(squares) + 1e-300)
    radius = max_row_norm(tokens.reshape(-1, tokens.shape[-1]))
    return radius, head_norm(params), largest, jnp.mean(squares)


def stated(name, label, formula, evaluate, forms, control, source, /, **options) -> Statement:
    """A statement of this paper from its parts in the order in which they are read."""
    return Statement(
        id=f"multihead.{name}",
        label=label,
        formula=formula,
        evaluate=evaluate,
        forms=forms,
        control=control,
        source=source,
        **options,
    )


def model_statement(name, label, formula, evaluate, forms, control, source, **options) -> Statement:
    """A bound on one head and one sequence, tried on `SINGLE`."""
    defaults = {
        "kind": "inequality",
        "sample": SINGLE,
        "sizes": ({"T": 4, "d": 3},),
        "project": keep_radius,
        "hypotheses": radius_at_least_one,
        "assumptions": "R = max_t ||x_t|| >= 1",
    }
    return stated(name, label, formula, evaluate, forms, control, source, **defaults | options)


def loss_statement(name, label, formula, evaluate, forms, control, source, **options) -> Statement:
    """A bound on the training loss, tried on `LOSS`."""
    defaults = {
        "kind": "inequality",
        "sample": LOSS,
        "sizes": ({"n": 1, "T": 2, "d": 2, "H": 1}, {"n": 4, "T": 3, "d": 2, "H": 4}),
        "project": keep_radius,
        "hypotheses": radius_at_least_one,
        "assumptions": "Assumption 1 with R = max ||x_t|| >= 1; labels in {-1, +1}",
        "budget": Budget(samples=192, restarts=8, steps=200),
    }
    return stated(name, label, formula, evaluate, forms, control, source, **defaults | options)
