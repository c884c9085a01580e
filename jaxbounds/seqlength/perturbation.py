"""The effect of perturbed weights on outputs: Lemmas C.1, E.2, E.3 and the chain of Theorem 4.2."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.numerics.norms import max_row_norm, project_rows, spectral_norm
from jaxbounds.seqlength.model import Activation, LayerWeights, attend, block, blocks

Scalar = Float[Array, ""]
Tokens = Float[Array, "T d"]


def softmax_distance(half_range: ArrayLike, /) -> Array:
    """Compute 2 tanh(h / 2), a sharp bound on ||softmax(theta_1) - softmax(theta_2)||_1.

    Here h is half the range (maximum minus minimum) of theta_1 - theta_2. Lemma C.1 prints 2
    ||theta_1 - theta_2||_infinity, which is at least twice as large. theta_1 = (-h/2, h/2) and
    theta_2 = (h/2, -h/2) attain the bound.
    """
    return 2.0 * jnp.tanh(jnp.asarray(half_range, float) / 2.0)


class BlockPerturbation(NamedTuple):
    """The norms from which Lemma E.2 builds its bound; each norm is ||.||_{2,infinity} over tokens.

    Here dW is the perturbation of a weight, and ghat is the input of the perturbed block.

    Attributes:
        output: the norm of the change of the block's output.
        c: the norm ||dW_c^T sigma(Pi(f(ghat)))^T||, the effect of W_c's perturbation.
        v: the norm ||dW_v^T ghat^T||, the effect of W_v's perturbation.
        QK: the norm ||dW_QK^T ghat^T||, the effect of W_QK's perturbation.
        input: the norm of the change of the block's input.
        radius: the largest norm of a token in the two inputs g and ghat.
    """

    output: Scalar
    c: Scalar
    v: Scalar
    QK: Scalar
    input: Scalar
    radius: Scalar


def block_perturbation(
    g: Tokens, ghat: Tokens, layer: LayerWeights, moved: LayerWeights, /, *, activation: Activation
) -> BlockPerturbation:
    """Measure every term of Lemma E.2 for one block on the inputs `g` and `ghat`."""
    output = block(g, layer, activation=activation) - block(ghat, moved, activation=activation)
    hidden = activation(project_rows(attend(ghat, moved["W_QK"]) @ moved["W_v"], 1.0))
    return BlockPerturbation(
        output=max_row_norm(output),
        c=max_row_norm(hidden @ (layer["W_c"] - moved["W_c"])),
        v=max_row_norm(ghat @ (layer["W_v"] - moved["W_v"])),
        QK=max_row_norm(ghat @ (layer["W_QK"] - moved["W_QK"])),
        input=max_row_norm(g - ghat),
        radius=jnp.maximum(max_row_norm(g), max_row_norm(ghat)),
    )


class SpectralNorms(NamedTuple):
    """B_c2, B_v2 and B_QK2: the larger spectral norm of a matrix and its perturbed copy."""

    c: Scalar
    v: Scalar
    QK: Scalar


def spectral_norms(layer: LayerWeights, moved: LayerWeights, /) -> SpectralNorms:
    """For each matrix, compute the larger of its own and its perturbed copy's spectral norm."""
    larger = lambda name: jnp.maximum(spectral_norm(layer[name]), spectral_norm(moved[name]))
    return SpectralNorms(larger("W_c"), larger("W_v"), larger("W_QK"))


def lemma_e_2(
    parts: BlockPerturbation,
    norms: SpectralNorms,
    L_sigma: ArrayLike,
    /,
    *,
    softmax_constant: float = 2.0,
    radius: ArrayLike = 1.0,
) -> Float[Array, "*layers"]:
    """Compute the right-hand side of Lemma E.2.

    The right-hand side is c + L B_c B_v (1 + 2 s r^2 B_QK) input + s r^2 L B_c B_v QK + L B_c v.
    Here c, input, QK and v are fields of `parts`, and L = `L_sigma`. The factor s =
    `softmax_constant` is 2 in the paper; 1 suffices. The largest token norm r = `radius` is 1 in
    the paper, which is false for the first block if the inputs are longer (erratum E9). The fields
    of `parts` and `radius` may have a leading axis for the layers.
    """
    L, s, r = (jnp.asarray(v, float) for v in (L_sigma, softmax_constant, radius))
    through = L * norms.c * norms.v
    return (
        parts.c
        + through * (1.0 + 2.0 * s * r**2 * norms.QK) * parts.input
        + through * s * r**2 * parts.QK
        + L * norms.c * parts.v
    )


def lemma_e_3(
    w: Float[Array, "d"],
    w_moved: Float[Array, "d"],
    g: Float[Array, "d"],
    ghat: Float[Array, "d"],
    /,
) -> Scalar:
    """Compute ||w|| ||g - ghat|| + |(w - what) . ghat|, the right-hand side of Lemma E.3."""
    return jnp.linalg.norm(w) * jnp.linalg.norm(g - ghat) + jnp.abs((w - w_moved) @ ghat)


class ChainPerturbation(NamedTuple):
    """The change of the output on one input, and three bounds on this change (Theorem 4.2)."""

    output: Scalar
    printed: Scalar
    corrected: Scalar
    sharpened: Scalar


def chain_perturbation(
    X: Tokens,
    layers: LayerWeights,
    moved: LayerWeights,
    w: Float[Array, "d"],
    w_moved: Float[Array, "d"],
    cls: int,
    /,
    *,
    activation: Activation,
    L_sigma: float,
    radius: ArrayLike | None = None,
) -> ChainPerturbation:
    """Measure |g_scalar(X; W, w) - g_scalar(X; What, what)|, and its bounds by Lemmas E.2 and E.3.

    The bounds apply Lemma E.2 once for each layer, with the largest spectral norms over all layers
    of both networks, as in Theorem 4.2. The corrected bound multiplies the QK term of layer 1 by
    r^2, where r = `radius` or, for None, max_t ||x_t||_2. The sharpened bound also uses 1 as the
    Lipschitz constant of softmax.
    """
    steps = layers["W_c"].shape[0]
    exact = blocks(X, layers, activation=activation)[-1]
    states = blocks(X, moved, activation=activation)
    each = jax.vmap(spectral_norms)(dict(layers), dict(moved))
    norms = SpectralNorms(*(jnp.max(values) for values in each))
    B_w = jnp.maximum(jnp.linalg.norm(w), jnp.linalg.norm(w_moved))
    output = jnp.abs(exact[cls] @ w - states[-1][cls] @ w_moved)
    last = jnp.abs(states[-1][cls] @ (w - w_moved))
    later = jnp.arange(steps - 1, -1, -1).astype(X.dtype)

    # Lemma E.2 with one input for both versions, because only the weights of one layer differ.
    alone = lambda g, a, b: block_perturbation(g, g, a, b, activation=activation)
    parts = jax.vmap(alone)(states[:-1], dict(layers), dict(moved))

    def total(softmax_constant: float, first_radius: ArrayLike) -> Scalar:
        radii = jnp.ones(steps, X.dtype).at[0].set(first_radius)
        here = lemma_e_2(parts, norms, L_sigma, softmax_constant=softmax_constant, radius=radii)
        through = L_sigma * norms.c * norms.v * (1.0 + 2.0 * softmax_constant * norms.QK)
        return last + B_w * jnp.sum(through**later * here)

    r = max_row_norm(X) if radius is None else radius
    return ChainPerturbation(output, total(2.0, 1.0), total(2.0, r), total(1.0, r))
