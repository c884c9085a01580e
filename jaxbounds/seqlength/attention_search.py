"""Lower estimates of the attention class's Rademacher complexity, by projected gradient ascent.

The complexity is E = E_sigma sup (1/m) sum_i sigma_i s e_j^T X_i^T softmax(X_i W_QK^T x_i), as in
Appendix C. The supremum is over signs s, coordinates j and ||W_QK||_{1,1} <= B_QK. Gradient ascent
finds feasible weights, so its value is a *lower estimate* of the supremum.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.ascent import projected_ascent
from jaxbounds.seqlength.model import attend_from
from jaxbounds.seqlength.norms import project_entries_l1
from jaxbounds.seqlength.rademacher import Estimate


def attention_rademacher_lower(
    key: Array,
    X: Float[Array, "m T d"],
    B_QK: float,
    /,
    *,
    cls: int = 0,
    draws: int = 12,
    restarts: int = 3,
    steps: int = 100,
) -> Estimate:
    """Estimate the complexity E from below, by a mean over random signs sigma.

    Return also the standard error. For each sigma, sign s and coordinate j, an ascent starts at
    `restarts` random matrices and at W_QK = 0. It takes `steps` normalised gradient steps from each
    start, and projects W_QK onto the ball ||W_QK||_{1,1} <= B_QK after each step.

    Raises:
        Refused: if m < 1, draws < 2, or B_QK is not positive.
    """
    m, _, d = X.shape
    if m < 1 or draws < 2 or not B_QK > 0:
        raise Refused(
            f"m={m}, draws={draws}, B_QK={B_QK}: expected m >= 1, draws >= 2 and B_QK > 0. Try"
            " draws=2"
        )
    key_signs, key_starts = jax.random.split(key)
    sigma = jax.random.rademacher(key_signs, (draws, m), X.dtype)
    starts = jax.random.normal(key_starts, (restarts, d, d), X.dtype)
    starts = jnp.concatenate([jnp.zeros((1, d, d), X.dtype), starts])
    targets = jnp.concatenate([jnp.eye(d, dtype=X.dtype), -jnp.eye(d, dtype=X.dtype)])

    def value(W: Array, signs: Array, direction: Array) -> Array:
        return signs @ (attend_from(X, W, cls) @ direction) / m

    project = lambda W: project_entries_l1(W, B_QK)
    first = jax.vmap(project)(starts * B_QK)

    def largest(signs: Array, direction: Array) -> Array:
        of = lambda W: value(W, signs, direction)
        return projected_ascent(of, project, first, steps=steps, rate=0.3 * B_QK)

    per_direction = jax.vmap(largest, (None, 0))
    sups = jax.lax.map(lambda signs: jnp.max(per_direction(signs, targets)), sigma)
    return Estimate(jnp.mean(sups), jnp.std(sups, ddof=1) / jnp.sqrt(float(draws)))
