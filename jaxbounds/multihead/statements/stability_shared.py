"""What the statements of Section 4.2 and Appendix C share: hypotheses and constants."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import beta1, beta3, beta3_sharp
from jaxbounds.multihead.descent import (
    PRINTED_WEIGHT,
    STABILITY,
    gradient_sharp,
    reach,
    root_heads,
    root_heads_sharp,
)
from jaxbounds.multihead.runs import printed_step, setting, sharp_step
from jaxbounds.statements import Instance


def uniform_constants(instance: Instance):
    """beta~_1, beta~_3 / sqrt(H) of (87), (90): with 3 D + size, and sharpened with S9."""
    s, T = setting(instance), instance["X"].shape[1]
    root, far = jnp.sqrt(s.heads), reach(PRINTED_WEIGHT)
    ball = 3 * s.distance + s.size
    return {
        "printed": (
            beta1(ball, s.radius, T=T),
            beta3(ball, s.radius, **s.shape) / root,
        ),
        SHARP: (
            gradient_sharp(s.distance, s.squares, s.radius, s.heads, T=T, far=far),
            beta3_sharp(far * s.distance + s.largest, s.radius, T=T) / root,
        ),
    }


SHARP = "sharpened S2, S6, S9, S10"


@jax.jit
def printed_conditions(instance: Instance) -> dict:
    """The head count (84) and the step size of Theorem 3."""
    s = setting(instance)
    root = root_heads(s.distance, s.size, s.radius, factor=STABILITY, **s.shape)
    allowed = instance["step"] <= printed_step(s, instance["K"].astype(s.heads.dtype))
    return {"(84)": s.heads >= root**2, "eta of Theorem 3": allowed}


@jax.jit
def sharp_conditions(instance: Instance) -> dict:
    """(84) with 104/3 beta_3# in place of 128 beta~_3, and the step size of S10."""
    s = setting(instance)
    T, K = s.shape["T"], instance["K"].astype(s.heads.dtype)
    root = root_heads_sharp(
        s.distance, s.largest, s.radius, T=T, weight=PRINTED_WEIGHT, stability=True
    )
    allowed = instance["step"] <= sharp_step(s, K, largest_head=False, weight=PRINTED_WEIGHT)
    return {"(84) with beta_3#": s.heads >= root**2, "eta <= 1 / rho# and (73)": allowed}


CONDITIONS = "Assumption 1; (84); eta of Theorem 3. Sharpened form: its own H and eta"
