"""A generalization certificate for a trained network: the bounds with its own norms.

The peeling of Appendix C extends to a chain of dense layers. With U the complexity of the worst
signed unit of a layer, a dense layer with columns of l_1 norm at most B gives

    U' = B L_sigma U (twice that unless sigma is odd) + max|bias| / sqrt m,

and attention with heads h gives U = sum_h B_{V,h} E_h + max|offset| / sqrt m.

Norms of a trained network depend on the data. A certificate therefore rounds each norm up to a grid
2^j B_0 and pays for the union over j; without that the same number is only a diagnostic.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from jaxbounds.seqlength.comparisons import first_informative
from jaxbounds.seqlength.extract_norms import ACTIVATIONS, AttentionNetwork, matrix_norms
from jaxbounds.seqlength.generalization import generalization_gap
from jaxbounds.seqlength.linear_bounds import (
    LogCovering,
    at_scale,
    lemma_3_4_explicit,
    lemma_3_6_sharp,
    volumetric,
)
from jaxbounds.seqlength.single_layer import attention_bound, residual_range


class Certificate(NamedTuple):
    """What the bound says about one trained network.

    Attributes:
        gap: min(bound, trivial), a bound on |population loss - training loss|.
        bound: the bound before clipping.
        trivial: what the gap cannot exceed: the range of the loss.
        ratio: bound / trivial; the bound says something where it is below 1.
        rademacher: the bound on the complexity of the scalar output.
        tail: the confidence term.
        certified: whether norms were rounded up and the union over the grid was paid.
        delta: the allowed failure probability.
        smallest_sample: m*, the sample size at which the bound would first be below the trivial
            value with these norms; None if beyond 2^60.
        norms: the norms that entered, as used.
    """

    gap: float
    bound: float
    trivial: float
    ratio: float
    rademacher: float
    tail: float
    certified: bool
    delta: float
    smallest_sample: int | None
    norms: dict[str, float]


class TokenNorms(NamedTuple):
    """The largest norms of the tokens of a sample; l_1 and l_2 also of the CLS token with a 1."""

    l2: float
    entry: float
    cls_l1: float
    cls_l2: float


def token_norms(X: Float[np.ndarray, "m T d"], cls: int, /) -> TokenNorms:
    """Measure the sample's tokens.

    Raises:
        ValueError: if the sample is empty, not finite, or has no token `cls`.
    """
    m, T, _ = X.shape
    if m < 1 or not -T <= cls < T or not np.isfinite(X).all():
        raise ValueError(f"a finite sample with m >= 1 and a token {cls} is needed, got {X.shape}")
    query = np.concatenate([X[:, cls], np.ones((m, 1))], axis=1)
    return TokenNorms(
        l2=float(np.linalg.norm(X, axis=2).max()),
        entry=float(np.abs(X).max()),
        cls_l1=float(np.abs(query).sum(axis=1).max()),
        cls_l2=float(np.linalg.norm(query, axis=1).max()),
    )


def round_up(norm: float, base: float, /) -> tuple[float, int]:
    """The least base 2^j >= norm with j >= 0, and j.

    Raises:
        ValueError: if the norm is negative or not finite, or the base not positive.
    """
    if not (0 <= norm < math.inf and base > 0):
        raise ValueError(f"a finite norm >= 0 and base > 0 are needed, got {norm} and {base}")
    j = 0 if norm <= base else math.ceil(math.log2(norm / base))
    while base * 2.0**j < norm:
        j += 1
    return base * 2.0**j, j


def map_norms(network: AttentionNetwork, X: Float[np.ndarray, "m T d"], /) -> dict[str, float]:
    """The norms that enter a bound, by name; `X` is read only where the CLS token is constant."""
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


def _covering(norms: dict[str, float], h: int, d: int, tokens: TokenNorms) -> LogCovering:
    """The least of every cover that applies to the map of head h, at each scale."""
    e = d + 1
    options = [
        at_scale(lemma_3_6_sharp, norms[f"map {h} (1,1)"] * tokens.cls_l2, k=d, d=e),
        at_scale(lemma_3_4_explicit, norms[f"map {h} rows (2,1)"] * tokens.cls_l1, k=d, d=e),
        at_scale(volumetric, norms[f"map {h} Frobenius"] * tokens.cls_l2, parameters=d * e),
    ]
    if f"map {h} of CLS l1" in norms:
        # The map of a constant CLS token is one vector: the cover of an l_1 ball in R^d.
        options.append(at_scale(lemma_3_6_sharp, norms[f"map {h} of CLS l1"], k=d, d=1))
    return _remembering(lambda epsilon: np.min([option(epsilon) for option in options], axis=0))


def _remembering(covering: LogCovering) -> LogCovering:
    """The same function; Dudley's grids come back for every sample size."""
    known: dict[bytes, np.ndarray] = {}

    def recall(epsilon: np.ndarray) -> np.ndarray:
        key = np.asarray(epsilon).tobytes()
        if key not in known:
            known[key] = covering(epsilon)
        return known[key]

    return recall


def map_coverings(
    network: AttentionNetwork, norms: dict[str, float], tokens: TokenNorms, /
) -> list[LogCovering]:
    """For each head the best cover of its attention map that the norms allow, at every scale."""
    heads, d, _ = network.maps.shape
    return [_covering(norms, h, d, tokens) for h in range(heads)]


def network_rademacher(
    network: AttentionNetwork,
    norms: dict[str, float],
    tokens: TokenNorms,
    m: int,
    /,
    *,
    coverings: Sequence[LogCovering] = (),
) -> float:
    """The chain of this module's docstring: a bound on Rad of the worst signed output unit.

    Certified for the class of networks of this shape within `norms`, on samples within `tokens`.
    `coverings` are `map_coverings(...)`, to share them between sample sizes.
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
        fact = ACTIVATIONS[layer.activation]
        U *= norms[f"dense {i} columns (1,inf)"] * fact.lipschitz * (1.0 if fact.odd else 2.0)
        U += norms[f"dense {i} bias"] / math.sqrt(m)
    return U


def with_readout(network: AttentionNetwork, readout: np.ndarray, /) -> AttentionNetwork:
    """The network whose one output is `readout` . outputs, folded into the last layer.

    Raises:
        ValueError: if there is no dense layer, or `readout` does not have one entry per output.
    """
    if not network.dense:
        raise ValueError("the network has no dense layer to read out from: name at least one")
    *earlier, last = network.dense
    readout = np.asarray(readout, np.float64)
    if readout.shape != last.bias.shape:
        raise ValueError(
            f"readout should have one entry for each of {last.bias.size} outputs, got shape "
            f"{readout.shape}"
        )
    folded = last._replace(
        kernel=(last.kernel @ readout)[:, None], bias=np.array([last.bias @ readout])
    )
    fields = {name: getattr(network, name) for name in ("maps", "values", "offset", "cls")}
    return AttentionNetwork(dense=(*earlier, folded), **fields)


def certify(
    network: AttentionNetwork,
    X: Float[np.ndarray, "m T d"],
    /,
    *,
    readout: np.ndarray,
    loss_range: float,
    lipschitz: float = 1.0,
    delta: float = 0.05,
    union: bool = True,
    base: float = 1.0,
) -> Certificate:
    """Bound the generalization gap of a trained network on its training inputs `X`.

    Args:
        network: from `extract_norms.extract_network`.
        X: the training inputs.
        readout: the loss sees readout . outputs; [-1, 1] for two-class cross entropy, where
            `lipschitz` is 1.
        loss_range: the loss lies in an interval of this length (clip it).
        lipschitz: of the loss in the scalar it sees.
        delta: the allowed probability of failure.
        union: round norms up and pay for it; without, the result is a diagnostic.
        base: B_0 of the grid.

    Raises:
        ValueError: on an empty or infinite sample, a readout of the wrong length, a loss range that
            is not positive, or delta outside (0, 1).
    """
    if not 0 < loss_range < math.inf:
        raise ValueError(f"loss_range must be positive and finite (clip it), got {loss_range}")
    X = np.asarray(X, np.float64)
    tokens = token_norms(X, network.cls)
    network = with_readout(network, readout)
    norms = map_norms(network, X)
    spent = delta
    if union:
        rounded = {name: round_up(value, base) for name, value in norms.items()}
        norms = {name: value for name, (value, _) in rounded.items()}
        # sum over j >= 0 of 1 / ((j + 1)(j + 2)) is 1.
        for _, j in rounded.values():
            spent /= (j + 1.0) * (j + 2.0)

    coverings = map_coverings(network, norms, tokens)

    def parts(m: int) -> tuple[float, float]:
        rademacher = network_rademacher(network, norms, tokens, m, coverings=coverings)
        with jax.enable_x64(True):
            # Losses in an interval of length c are within c / 2 of its middle.
            total = generalization_gap(
                rademacher, c=loss_range / 2.0, m=m, delta=spent, lipschitz=lipschitz
            )
        return rademacher, float(total)

    m = X.shape[0]
    rademacher, bound = parts(m)
    at: Callable[[int], float] = lambda size: parts(size)[1]
    return Certificate(
        gap=min(bound, loss_range),
        bound=bound,
        trivial=loss_range,
        ratio=bound / loss_range,
        rademacher=rademacher,
        tail=bound - 2.0 * lipschitz * rademacher,
        certified=union,
        delta=delta,
        smallest_sample=first_informative(at, loss_range),
        norms=norms,
    )
