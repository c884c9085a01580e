"""What the statements about the first phase share: the margins at theta^(1)."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.model import head_output
from jaxbounds.multihead.statements.common import stated
from jaxbounds.multihead.statements.contexts import SIZES, Context, keep_context, sequence
from jaxbounds.statements import Budget


def euclidean(vector):
    """The Euclidean norm, with a gradient at zero."""
    return jnp.sqrt(jnp.sum(vector**2) + 1e-300)


def repeated_rows(vector, length):
    """1_T vector^T."""
    return jnp.broadcast_to(vector[None, :], (length, vector.shape[0]))


def margin_parts(c: Context, vector):
    """The NTK margins of U* and of W* at U = 1_T vector^T, W = 0, by forward differentiation."""
    rows, zero = repeated_rows(vector, c.T), jnp.zeros_like(c.direction["W"])

    def of_sequence(tokens, label):
        # The model is linear in U, so that its derivative along U* is itself.
        outer = head_output(c.direction["U"], zero, tokens)
        moved = lambda weights: head_output(rows, weights, tokens)
        _, inner = jax.jvp(moved, (zero,), (c.direction["W"],))
        return label * outer, label * inner

    if c.X.ndim == 2:
        return of_sequence(c.X, c.y)
    return jax.vmap(of_sequence)(c.X, c.y)


def margin_scale(c: Context):
    """The size of the terms that cancel in a margin of W at zero."""
    return c.T * (c.S + c.Z) ** 6 / c.S**2


def phase_statement(name, label, formula, kind, evaluate, forms, control, source, **options):
    """A statement on sequences of DM1."""
    defaults = {"sizes": SIZES, "sample": sequence, "assumptions": "DM1, Assumption 3"}
    if kind == "inequality":
        defaults |= {
            "project": keep_context,
            "budget": Budget(samples=128, restarts=4, steps=80),
        }
    return stated(
        name, label, formula, evaluate, forms, control, source, kind=kind, **defaults | options
    )


DRAWS = Budget(samples=256, restarts=0)
