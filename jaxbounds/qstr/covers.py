"""Covering numbers with every constant: Lemmas 14 and 16, Proposition 17, Corollary 31.

Each class of functions has its parameters in a ball, and the functions are Lipschitz in the
parameters. A ball of radius R in R^p has an internal cover of (1 + 2R/r)^p balls of radius r (Lemma
41, first branch). Distances are suprema over all prompts with |z_j| <= r_z, so a cover is valid for
the population as well as for a sample.
"""

from typing import Any, NamedTuple

from jax.typing import ArrayLike

from jaxbounds.numerics.arrays import array_module
from jaxbounds.qstr.bounds import (
    polynomial_perturbation_bound,
    query_key_log_covering,
    recurrent_perturbation_bound,
)
from jaxbounds.qstr.packing import volume_upper


class TransformerClass(NamedTuple):
    """Sizes and norm bounds of a class of `SparseTransformer`s, on prompts with |z_j| <= r_z.

    Attributes:
        m: the width of the two-layer network.
        H: the number of attention heads.
        De: the dimension of an encoded token.
        r_a: the bound on |a|, the norm of the outer weights.
        R_w: the bound on |(W, b)|_F, the norm of the inner weights and biases.
        r_QK: the bound on the Frobenius norm |W_QK|_F of each head. A bound on ||W_QK||_{2,1}, over
            columns or rows, is also a bound on |W_QK|_F.
        r_z: the bound on |z_j|, the norm of an encoded token.
    """

    m: int
    H: int
    De: int
    r_a: Any
    R_w: Any
    r_QK: Any
    r_z: Any

    @property
    def reach(self) -> Any:
        """The bound sqrt(H r_z^2 + 1) on |(h, 1)|, where h joins the outputs of all heads."""
        return (self.H * self.r_z**2 + 1.0) ** 0.5

    @property
    def largest_prediction(self) -> Any:
        """The bound |a| |(W, b)|_F |(h, 1)| on |yhat|, where h joins the outputs of all heads."""
        return self.r_a * self.R_w * self.reach

    @property
    def parameters(self) -> tuple[int, int, int]:
        """The numbers of entries of the outer weights a, of (W, b), and of the heads."""
        return self.m, self.m * (self.H * self.De + 1), self.H * self.De**2


def two_layer_log_covering(eps: Any, f: TransformerClass, /) -> Any:
    """Bound the log covering number of the two-layer networks, Lemma 14.

    The bound is m log(1 + 2 L/eps_a) + m (H De + 1) log(1 + 2 L/eps_w), with L = r_a R_w |(h, 1)|.
    The proof shows |f - f'| <= |(h, 1)| (R_w |a - a'| + r_a |(W, b) - (W', b')|_F) for |h| <=
    sqrt(H) r_z. The scale eps is the sum eps_a + eps_w, in proportion to the numbers of parameters
    in a and in (W, b).
    """
    of_a, of_w, _ = f.parameters
    total, L = of_a + of_w, f.largest_prediction
    return sum(volume_upper(p, eps * p / (total * L)) for p in (of_a, of_w))


def transformer_log_covering(eps: Any, f: TransformerClass, /) -> Any:
    """Bound the log covering number of Proposition 17's Transformers.

    Lemma 13 combines Lemma 14, Lemma 15 (with constant 1) and the volume bound of Lemma 16. The
    scale is eps = eps_2 + r_a R_w eps_A, divided in proportion to the numbers of parameters of the
    two-layer network and of the heads. The attention's output changes by at most eps_A if each
    Theta_QK^T z_j changes by at most eps_A / r_z^2. The class has |Theta_QK|_F <= sqrt(H) r_QK.
    """
    *two_layer, attention = f.parameters
    share = attention / (sum(two_layer) + attention)
    moved = share * eps / (f.r_a * f.R_w * f.r_z**2)
    radius = f.H**0.5 * f.r_QK
    heads = query_key_log_covering(moved, r_z=f.r_z, radius=radius, H=f.H, De=f.De)
    return two_layer_log_covering((1.0 - share) * eps, f) + heads


def transformer_lipschitz(R: Any, /, *, H: int, r_z: Any) -> Any:
    """Return the Lipschitz constant of yhat in the parameters Theta on {|vec Theta| <= R}.

    The constant is sqrt(R^2 (H r_z^2 + 1) + R^4 r_z^6 / 4).

    Let s^2 = H r_z^2 + 1. The derivatives of yhat in a, (W, b) and Theta_QK have norms at most s
    |(W, b)|, s |a| and |a| |W| r_z^3, where |a| |W| <= R^2 / 2.
    """
    return (R**2 * (H * r_z**2 + 1.0) + 0.25 * R**4 * r_z**6) ** 0.5


def ball_log_covering(eps: Any, /, *, parameters: int, radius: float, lipschitz: float) -> Any:
    """Bound the log covering number of functions that are Lipschitz in a ball of parameters.

    The bound is p log(1 + 2 R L / eps) with p = `parameters`, R = `radius` and L = `lipschitz`.
    """
    return volume_upper(parameters, eps / (radius * lipschitz))


def recurrent_lipschitz(
    R: ArrayLike, /, *, N: int, r_z: ArrayLike, r_h: ArrayLike, depth_y: int, depth_h: int
) -> Any:
    """Bound the Lipschitz constant of an RNN's predictions in the parameters, |vec Theta| <= R.

    The bound combines Lemmas 29 and 30: sqrt(D_y^2 + 2 (R^{L_y} N ((1 + 1/N)^N - 1) D_h)^2). D_y is
    the Lipschitz constant of the readout in its own parameters, at inputs with |(h->, h<-, z)| <=
    sqrt(2 r_h^2 + r_z^2). D_h is the Lipschitz constant of a transition in the transition's
    parameters. States have norm at most r_h, and transitions are 1/N-Lipschitz in the state.
    """
    xp = array_module(R, r_z, r_h)
    R, r_h, r_z = (xp.asarray(v, float) for v in (R, r_h, r_z))
    seen = lambda states: xp.sqrt(states * r_h**2 + r_z**2)
    readout = polynomial_perturbation_bound(depth=depth_y, R=R, r=seen(2.0))
    step = polynomial_perturbation_bound(depth=depth_h, R=R, r=seen(1.0))
    # Both directions together: a + b <= sqrt 2 sqrt(a^2 + b^2).
    passed = recurrent_perturbation_bound(
        0.0, 2.0**0.5 * step, N=N, lipschitz=R**depth_y, sharp=True
    )
    return xp.hypot(readout, passed)
