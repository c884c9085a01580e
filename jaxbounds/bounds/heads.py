"""Apply Corollary 1 of the paper multihead, a curvature bound, to a network that is its model (2).

Model (2) is H^{-1/2} sum_h <U_h, softmax(X W_h X^T) X>, with the parameters U_h (T, d) and W_h (d,
d). Attention with query, key, value and out matrices can compute a function of this form, with
W_h = W_Q W_K^T. But the parameters of such a network are not U and W, so the loss has other
gradients and another curvature than the loss of model (2).
"""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxbounds.bounds.result import PaperBound
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.bounds import beta3_sharp
from jaxbounds.multihead.model import model_output
from jaxbounds.networks.own_network import Leaves, Reason, holds, leaves_by_path
from jaxbounds.seqlength.parameters import EMBEDDED, NORMALISED, SPLIT, UNKNOWN, read_layers

HEADS = PaperBound(
    paper="multihead",
    source="Corollary 1 (3), Section 3, with the sharpened beta_3 (ours)",
    of="-lambda_min / L, of the Hessian of the logistic loss L at these weights",
)

FORM = (
    "train U (H, T, d) and W (H, d, d) themselves, as `jaxbounds.multihead.model` does; for the"
    " loss of any network, `jb.weak_convexity` gives a lower estimate of this curvature, and"
    " `jaxbounds.networks.curvature.convexity_certificate` bounds it"
)
OTHER = "remove this layer: model (2) applies only attention, to the unchanged tokens"
CHANGES = {NORMALISED: OTHER, UNKNOWN: OTHER, SPLIT: FORM, EMBEDDED: EMBEDDED}
"""A dictionary from the advice that `read_layers` gives for the paper seqlength to the advice
for the paper multihead.
"""

RUN = (
    "Theorems 3 and 4 (training, generalization gap) need gradient descent from a start, with"
    " enough heads and a small step; the weights do not show these conditions, but"
    " `multihead.descent_certificate` computes the number of heads"
)
FUNCTION = "whether the network computes model (2) of U and W: only the names U and W suggest this"

AGREE = 1e-3
"""A network's outputs count as the outputs of the paper's model (2) if they differ by at most this
value, relative to the largest output. The tolerance is needed because the network may compute in
float32. A larger value accepts more networks as model (2)."""


def _parts(leaves: Leaves) -> tuple[Any, Any] | None:
    floats = {path: leaf for path, leaf in leaves.items() if holds(leaf, jnp.floating)}
    names = {path.rpartition("/")[2]: leaf for path, leaf in floats.items()}
    parents = {path.rpartition("/")[0] for path in floats}
    if set(names) != {"U", "W"} or len(leaves) != 2 or len(parents) != 1:
        return None
    return names["U"], names["W"]


def _structure(model: Any) -> tuple[Reason, ...]:
    layers = read_layers(model)
    found = [one._replace(change=CHANGES.get(one.change, one.change)) for one in layers.reasons]
    if found and not found[0].paths:  # a reason has no paths if the network has no parameters
        return tuple(found)
    paths = tuple(layers.attention)
    if len(paths) > 1:
        what = "the network has more than one block, but model (2) has a single attention layer"
        found.append(Reason(what, paths, "keep one attention layer"))
    if paths:
        what = "the attention has parameters query, key, value and out instead of U and W"
        found.append(Reason(what, paths, FORM))
    else:
        found.append(Reason("the model has no parameters U (H, T, d) and W (H, d, d)", (), FORM))
    if layers.dense:
        what = "the network has dense layers, but model (2) is linear in the attention's output"
        found.append(Reason(what, tuple(layers.dense), "remove the dense layers: U is the readout"))
    return tuple(found)


def _shapes(U: Any, W: Any, X: np.ndarray | None) -> tuple[Reason, ...]:
    reasons = []
    if np.ndim(U) != 3 or np.shape(W) != (len(U), U.shape[-1], U.shape[-1]):
        what = f"U has shape {np.shape(U)} and W {np.shape(W)}, expected (H, T, d) and (H, d, d)"
        change = "give each token its own row of U; for one u for all tokens, see erratum E14"
        reasons.append(Reason(what, ("U", "W"), change))
    elif X is not None and X.shape[1:] != U.shape[1:]:
        what = f"the data have shape {X.shape}, but U needs (n, {U.shape[1]}, {U.shape[2]})"
        reasons.append(Reason(what, ("data",), "give the tokens on which the network was trained"))
    if any(not hasattr(leaf, "__array__") for leaf in (U, W)):
        reasons.append(
            Reason(
                "the parameters are shapes without values",
                ("U", "W"),
                "give the trained parameters",
            )
        )
    elif not all(np.isfinite(np.asarray(leaf, np.float64)).all() for leaf in (U, W)):
        reasons.append(Reason("some values are NaN or infinite", ("U", "W"), "train again"))
    return tuple(reasons)


def _function(U: Any, W: Any, X: np.ndarray, outputs: Any) -> tuple[Reason, ...]:
    given = np.asarray(outputs, np.float64).ravel()
    with enable_x64(True):
        params = {"U": jnp.asarray(np.float64(U)), "W": jnp.asarray(np.float64(W))}
        ours = np.asarray(jax.vmap(lambda x: model_output(params, x))(jnp.asarray(X)))
    if given.shape == ours.shape and np.allclose(
        ours, given, rtol=0, atol=AGREE * abs(given).max()
    ):
        return ()
    change = "let the network compute H^{-1/2} sum_h <U_h, softmax(X W_h X^T) X> for each sample"
    return (Reason("the given outputs differ from those of model (2)", ("outputs",), change),)


def curvature_of_heads(
    model: Any, X: Float[np.ndarray, "n T d"] | None, outputs: Any = None, /
) -> PaperBound:
    """Return the curvature bound beta_3 / sqrt(H), or reasons why a network is not model (2).

    Here H is the number of heads. The constant beta_3 of Corollary 1 depends on the tokens' norms.

    Args:
        model: the network's parameters, a pytree; model (2) has U (H, T, d) and W (H, d, d).
        X: the tokens, of shape (n, T, d); the bound uses only the largest norm of a token.
        outputs: the network's outputs on `X`; the function compares them with the outputs of model
            (2).
    """
    parts = _parts(leaves_by_path(model))
    reasons = _structure(model) if parts is None else _shapes(*parts, X)
    if parts is not None and not reasons and X is not None and outputs is not None:
        reasons = _function(*parts, X, outputs)
    if parts is None or reasons:
        # A network with other parameters than U and W is another network, which no change adapts.
        return replace(HEADS, reasons=reasons, hopeless=parts is None)
    unseen = (RUN,) if X is not None and outputs is not None else (FUNCTION, RUN)
    if X is None:
        return replace(HEADS, unseen=unseen)
    U = np.asarray(parts[0], np.float64)
    radius = float(np.linalg.norm(X, axis=-1).max())
    largest = float(np.linalg.norm(U.reshape(len(U), -1), axis=1).max())
    value = float(np.asarray(beta3_sharp(largest, radius, T=U.shape[1]))) / math.sqrt(len(U))
    details = {"H": len(U), "T": U.shape[1], "R": radius, "max ||U_h||_F": largest}
    return replace(HEADS, unseen=unseen, value=value, from_size=1, details=details)
