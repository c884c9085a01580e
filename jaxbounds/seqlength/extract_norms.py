"""Convert a trained Flax Transformer block to a network that the bounds cover.

The bias of the queries becomes a constant coordinate of the CLS token. The bias of the keys shifts
all scores of a head equally, so it has no effect. The value and output biases become a single
offset. The factor 1 / sqrt(d_k) becomes part of the attention map.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused


class ActivationFact(NamedTuple):
    """An activation sigma with sigma(0) = 0; its Lipschitz constant; whether sigma is odd."""

    function: Callable[[np.ndarray], np.ndarray]
    lipschitz: float
    odd: bool


ACTIVATIONS: Mapping[str, ActivationFact] = {
    "identity": ActivationFact(lambda z: z, 1.0, True),
    "relu": ActivationFact(lambda z: np.maximum(z, 0.0), 1.0, False),
    "tanh": ActivationFact(np.tanh, 1.0, True),
}


class Dense(NamedTuple):
    """A dense layer that computes sigma(input) @ kernel + bias, with the activation sigma."""

    kernel: Float[np.ndarray, "inputs outputs"]
    bias: Float[np.ndarray, "outputs"]
    activation: str


@dataclass(frozen=True, kw_only=True)
class AttentionNetwork:
    """A network that the bounds cover: attention at the CLS token, followed by dense layers.

    Its output before the dense layers is sum_h (X^T softmax(X maps[h] (x_cls, 1)))^T values[h] +
    offset.

    Attributes:
        maps: for each head, W_K (W_Q^T, b_Q) / sqrt(d_k), which acts on the CLS token with a 1
            appended.
        values: for each head, the product W_V W_O of the value and output maps.
        offset: the value biases times W_O, plus the output bias.
        cls: the index of the CLS token.
    """

    maps: Float[np.ndarray, "H d augmented"]
    values: Float[np.ndarray, "H d out"]
    offset: Float[np.ndarray, "out"]
    dense: tuple[Dense, ...]
    cls: int

    def __call__(self, X: Float[np.ndarray, "n T d"], /) -> Float[np.ndarray, "n outputs"]:
        """Compute the network's outputs in float64."""
        X = np.asarray(X, np.float64)
        query = np.concatenate([X[:, self.cls], np.ones((len(X), 1))], axis=1)
        keys = np.einsum("hde,ne->hnd", self.maps, query)
        scores = np.einsum("ntd,hnd->hnt", X, keys)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        means = np.einsum("hnt,ntd->hnd", weights, X)
        z = np.einsum("hnd,hdo->no", means, self.values) + self.offset
        for layer in self.dense:
            z = ACTIVATIONS[layer.activation].function(z) @ layer.kernel + layer.bias
        return z


def from_nnx(module: Any, /) -> dict[str, Any]:
    """Return the parameters of a `flax.nnx` module as a nested dict for `extract_network`.

    Raises:
        Refused: if the module holds state other than parameters and random streams, for example
            running statistics or a cache; the error names the state.
    """
    from flax import nnx

    params, _, rest = nnx.state(module, nnx.Param, nnx.RngState, ...)
    other = _flatten(nnx.to_pure_dict(rest))
    if other:
        raise Refused(
            f"state={', '.join(sorted(other))} has no place in the bounds, expected parameters"
            " only. Try to pass the parameters without this state"
        )
    return nnx.to_pure_dict(params)


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
    flat: dict[str, np.ndarray] = {}
    for name, leaf in tree.items():
        path = f"{prefix}/{name}" if prefix else str(name)
        if isinstance(leaf, Mapping):
            flat.update(_flatten(leaf, path))
        else:
            flat[path] = np.asarray(leaf, np.float64)
    return flat


def extract_network(
    params: Mapping[str, Any], /, *, attention: str, dense: Sequence[tuple[str, str]], cls: int = 0
) -> AttentionNetwork:
    """Convert the parameters of attention followed by dense layers to an `AttentionNetwork`.

    Residual connections and dropout have no parameters, so the function cannot detect them. To
    check the conversion, compare the outputs of the returned network with the outputs of your
    model.

    Args:
        params: `variables["params"]` of a linen model, or `from_nnx(module)`.
        attention: the path of a module MultiHeadDotProductAttention that the network uses as
            self-attention ("block/attn").
        dense: for each dense layer in order, its path and the activation applied *before* it:
            "identity", "relu" or "tanh".
        cls: the index of the token whose output the network uses.

    Raises:
        Refused: if a path or an activation is unknown, a parameter is not finite, or parameters
            are left over (a layer normalisation, a second attention layer). The error names the
            parameters.
    """
    flat = _flatten(params)
    for path, leaf in flat.items():
        if not np.isfinite(leaf).all():
            raise Refused(
                f"parameter {path} of shape={leaf.shape} holds NaN or infinity, so no norm bounds"
                " it. Try finite parameters"
            )
    used: set[str] = set()

    def take(path: str, absent: tuple[int, ...] | None = None) -> np.ndarray:
        if path not in flat and absent is None:
            raise Refused(
                f"no parameter {path}, expected one of {', '.join(sorted(flat))}. Try"
                f" path={next(iter(sorted(flat)), None)!r}"
            )
        used.add(path)
        return flat[path] if path in flat else np.zeros(absent or ())

    kernels = {name: take(f"{attention}/{name}/kernel") for name in ("query", "key", "value")}
    out = take(f"{attention}/out/kernel")
    if any(kernel.ndim != 3 for kernel in kernels.values()) or out.ndim != 3:
        raise Refused(
            f"{attention}: kernel shapes={kernels['query'].shape} and {out.shape}, expected"
            " (d, heads, d_k) and (heads, d_k, d) as in MultiHeadDotProductAttention. Try the"
            " path of a MultiHeadDotProductAttention"
        )
    _, heads, d_k = kernels["query"].shape
    take(f"{attention}/key/bias", (heads, d_k))
    query_bias = take(f"{attention}/query/bias", (heads, d_k))
    query = np.concatenate([kernels["query"], query_bias[None]])
    offset = np.einsum("hk,hko->o", take(f"{attention}/value/bias", out.shape[:2]), out)
    offset = offset + take(f"{attention}/out/bias", out.shape[2:])

    layers = []
    width = out.shape[2]
    for path, activation in dense:
        if activation not in ACTIVATIONS:
            raise Refused(
                f"activation={activation!r} is unknown, expected one of"
                f" {', '.join(ACTIVATIONS)}. Try activation={next(iter(ACTIVATIONS))!r}"
            )
        kernel = take(f"{path}/kernel")
        if kernel.ndim != 2 or kernel.shape[0] != width:
            raise Refused(
                f"{path}/kernel has shape={kernel.shape}, expected a matrix with {width} rows. Try "
                f"to list the dense layers in the network's order"
            )
        width = kernel.shape[1]
        layers.append(Dense(kernel, take(f"{path}/bias", (width,)), activation))
    left = sorted(set(flat) - used)
    if left:
        raise Refused(
            f"parameters={', '.join(left)} are not covered: the bounds hold for one attention"
            " layer followed by dense layers, and other parameters would make them wrong. Try"
            " a network without these parameters"
        )
    return AttentionNetwork(
        maps=np.einsum("dhk,ehk->hde", kernels["key"], query) / math.sqrt(d_k),
        values=np.einsum("dhk,hko->hdo", kernels["value"], out),
        offset=offset,
        dense=tuple(layers),
        cls=cls,
    )


class MatrixNorms(NamedTuple):
    """The norms of one matrix, over its columns and over its rows."""

    entries_1: float
    columns_1_inf: float
    rows_1_inf: float
    columns_2_1: float
    rows_2_1: float
    frobenius: float
    spectral: float


def matrix_norms(W: Float[np.ndarray, "k d"], /) -> MatrixNorms:
    """Compute the norms of one matrix in float64."""
    absolute = np.abs(W)
    return MatrixNorms(
        entries_1=float(absolute.sum()),
        columns_1_inf=float(absolute.sum(axis=0).max()),
        rows_1_inf=float(absolute.sum(axis=1).max()),
        columns_2_1=float(np.linalg.norm(W, axis=0).sum()),
        rows_2_1=float(np.linalg.norm(W, axis=1).sum()),
        frobenius=float(np.linalg.norm(W)),
        spectral=float(np.linalg.norm(W, 2)),
    )


def extract_norms(network: AttentionNetwork, /) -> dict[str, MatrixNorms]:
    """Compute the norms of every matrix of the network: "map 0", "value 0", ..., "dense 0", ..."""
    named = [(f"map {h}", W) for h, W in enumerate(network.maps)]
    named += [(f"value {h}", W) for h, W in enumerate(network.values)]
    named += [(f"dense {i}", layer.kernel) for i, layer in enumerate(network.dense)]
    return {name: matrix_norms(W) for name, W in named}
