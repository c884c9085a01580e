"""Self-bounded weak convexity of any network's logistic loss; Corollary 1 (3) is a special case.

For any twice differentiable f, the Hessian of L = (1/n) sum l(y_i f_i) has two terms.
The first term, (1/n) sum l''_i grad f_i grad f_i^T, has no negative eigenvalue. The second term is
(1/n) sum l'_i y_i Hess f_i, with |l'| <= l. Therefore lambda_min(Hess L) >= -c L with c = max_i
||Hess f_i||, for any architecture. For the paper's model, the paper proves this
inequality with c = beta_3 / sqrt(H). The inequality for arbitrary networks is not in the paper.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.multihead.loss import logistic, logistic_slope


def slope_weighted_curvature(
    margins: Float[Array, " n"], norms: Float[Array, " n"], /
) -> Float[Array, ""]:
    """Return (1/n) sum |l'(m_i)| ||Hess f_i||, which bounds -lambda_min(Hess L).

    Args:
        margins: the margins m_i = y_i f(X_i).
        norms: the spectral norms of the Hessians of the network's output at each sample.
    """
    return jnp.mean(logistic_slope(margins) * norms)


def loss_weighted_curvature(
    margins: Float[Array, " n"], norms: Float[Array, " n"], /
) -> Float[Array, ""]:
    """Return L max_i ||Hess f_i||, a weaker bound in terms of the loss L.

    The arguments are those of `slope_weighted_curvature`.
    """
    return jnp.mean(logistic(margins)) * jnp.max(norms)
