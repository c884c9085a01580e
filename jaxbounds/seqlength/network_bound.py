"""The complexity of a trained network from its norms: the peeling of Appendix C, layer by layer.

Let U bound the Rademacher complexity of each unit of a layer, with the unit's negative. A dense
layer whose columns have l_1 norm at most B replaces U by B L_sigma U + max|bias| / sqrt m. The
first term doubles unless the activation sigma is odd. The attention layer starts with U = sum_h
B_{V,h} E_h + max|offset| / sqrt m. Here B_{V,h} is the largest l_1 norm of a column of head h's
value matrix, and E_h is the complexity of head h's attention.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.seqlength.extract_norms import ACTIVATIONS, AttentionNetwork, matrix_norms
from jaxbounds.seqlength.linear_bounds import (
    LogCovering,
    at_scale,
    lemma_3_4_explicit,
    lemma_3_6_sharp,
    volumetric,
)
from jaxbounds.seqlength.single_layer import attention_bound, residual_range


class TokenNorms(NamedTuple):
    """The largest l_2 norm and the largest entry of a sample's tokens.

    The fields `cls_l1` and `cls_l2` hold the largest l_1 and l_2 norms of (x_cls, 1).
    """

    l2: float
    entry: float
    cls_l1: float
    cls_l2: float


def token_norms(X: Float[np.ndarray, "m T d"], cls: int, /) -> TokenNorms:
    """Measure the norms of the sample's tokens.

    Raises:
        Refused: if the sample is empty, not finite, or has no token `cls`.
    """
    m, T, _ = X.shape
    if not -T <= cls < T:
        raise Refused(f"cls={cls} is no token of a sequence of length T={T}. Try cls=0")
    if m < 1:
        raise Refused(
            f"X.shape={X.shape} holds no sample, expected at least one. Try X with a sequence"
        )
    if not np.isfinite(X).all():
        raise Refused(
            f"only {np.isfinite(X).mean():.0%} of X's entries are finite, expected all entries. "
            f"Try X[np.isfinite(X).all(axis=(1, 2))]"
        )
    query = np.concatenate([X[:, cls], np.ones((m, 1))], axis=1)
    return TokenNorms(
        l2=float(np.linalg.norm(X, axis=2).max()),
        entry=float(np.abs(X).max()),
        cls_l1=float(np.abs(query).sum(axis=1).max()),
        cls_l2=float(np.linalg.norm(query, axis=1).max()),
    )


def with_readout(network: AttentionNetwork, readout: np.ndarray, /) -> AttentionNetwork:
    """Multiply the last layer by `readout`.

    Raises:
        Refused: if there is no dense layer, or `readout` does not have one entry per output.
    """
    if not network.dense:
        raise Refused(
            f"dense={network.dense}, expected at least one dense layer to read out from. Try"
            " to name a dense layer in `dense`"
        )
    *earlier, last = network.dense
    readout = np.asarray(readout, np.float64)
    if readout.shape != last.bias.shape:
        raise Refused(
            f"readout.shape={readout.shape}, expected one entry for each of {last.bias.size}"
            " outputs. Try a vector of that length"
        )
    folded = last._replace(
        kernel=(last.kernel @ readout)[:, None], bias=np.array([last.bias @ readout])
    )
    fields = {name: getattr(network, name) for name in ("maps", "values", "offset", "cls")}
    return AttentionNetwork(dense=(*earlier, folded), **fields)


def map_norms(network: AttentionNetwork, X: Float[np.ndarray, "m T d"], /) -> dict[str, float]:
    """Return a dictionary of the norms of the network's matrices that the bound needs.

    If all CLS tokens in `X` are equal, the result also has the l_1 norm of each head's map applied
    to this token.
    """
    norms: dict[str, float] = {}
    constant = bool(np.all(X[:, network.cls] == X[:1, network.cls]))
    query = np.append(X[0, network.cls], 1.0)
    for h, (W, V) in enumerate(zip(network.maps, network.values)):
        named = matrix_norms(W)
        norms[f"map {h} (1,1)"] = named.entries_1
        norms[f"map {h} rows (2,1)"] = named.rows_2_1
        norms[f"map {h} Frobenius"] = named.frobenius
        if constant:
            norms[f"map {h} of CLS l1"] = float(np.abs(W @ query).sum())
        norms[f"value {h} columns (1,inf)"] = matrix_norms(V).columns_1_inf
    norms["offset"] = float(np.abs(network.offset).max())
    for i, layer in enumerate(network.dense):
        norms[f"dense {i} columns (1,inf)"] = matrix_norms(layer.kernel).columns_1_inf
        norms[f"dense {i} bias"] = float(np.abs(layer.bias).max())
    return norms


def map_covering(norms: dict[str, float], h: int, d: int, tokens: TokenNorms, /) -> LogCovering:
    """Return the log size of the smallest known cover of head h's map, as a function of epsilon.

    The map has outputs in R^d.
    """
    e = d + 1
    options = [
        at_scale(lemma_3_6_sharp, norms[f"map {h} (1,1)"] * tokens.cls_l2, k=d, d=e),
        at_scale(lemma_3_4_explicit, norms[f"map {h} rows (2,1)"] * tokens.cls_l1, k=d, d=e),
        at_scale(volumetric, norms[f"map {h} Frobenius"] * tokens.cls_l2, parameters=d * e),
    ]
    if f"map {h} of CLS l1" in norms:
        # The map of a constant CLS token is one vector: the cover of an l_1 ball in R^d.
        options.append(at_scale(lemma_3_6_sharp, norms[f"map {h} of CLS l1"], k=d, d=1))
    return lambda epsilon: np.min([option(epsilon) for option in options], axis=0)


def _contraction(activation: str) -> float:
    """Return L_sigma if sigma is odd, else 2 L_sigma."""
    fact = ACTIVATIONS[activation]
    return fact.lipschitz * (1.0 if fact.odd else 2.0)


def map_coverings(
    network: AttentionNetwork, norms: dict[str, float], tokens: TokenNorms, /
) -> list[LogCovering]:
    """Return, for each head's attention map, the log size of a cover as a function of epsilon."""
    heads, d, _ = network.maps.shape
    return [map_covering(norms, h, d, tokens) for h in range(heads)]


def network_rademacher(
    network: AttentionNetwork,
    norms: dict[str, float],
    tokens: TokenNorms,
    m: int,
    /,
    *,
    coverings: Sequence[LogCovering] = (),
) -> float:
    """Bound the complexity U of the output units by the recursion of the module's docstring.

    The bound holds for all networks of this shape with norms at most `norms`, on samples with token
    norms at most `tokens`. `coverings` is a result of `map_coverings`.
    """
    heads, d, _ = network.maps.shape
    coverings = coverings or map_coverings(network, norms, tokens)
    U = norms["offset"] / math.sqrt(m)
    for h in range(heads):
        reach = norms[f"map {h} Frobenius"] * tokens.cls_l2
        if f"map {h} of CLS l1" in norms:
            reach = min(reach, norms[f"map {h} of CLS l1"])
        E = attention_bound(
            coverings[h],
            m,
            d,
            B_x=tokens.l2,
            B_inf=tokens.entry,
            residual=residual_range(tokens.entry, tokens.l2, reach),
        )
        U += norms[f"value {h} columns (1,inf)"] * E
    for i, layer in enumerate(network.dense):
        U *= norms[f"dense {i} columns (1,inf)"] * _contraction(layer.activation)
        U += norms[f"dense {i} bias"] / math.sqrt(m)
    return U


def norm_product(network: AttentionNetwork, norms: dict[str, float], /) -> float:
    """Compute the sum, over the heads h, of E_h's factors in the output's complexity bound."""
    product = sum(norms[f"value {h} columns (1,inf)"] for h in range(len(network.maps)))
    for i, layer in enumerate(network.dense):
        product *= norms[f"dense {i} columns (1,inf)"] * _contraction(layer.activation)
    return product
