"""The feedforward ReLU networks of Section 3, and Boolean circuits compiled to them (Lemma B.1).

Parameters are {"first": {"W" (w, m), "b" (w,)}, "hidden": {"W" (d-1, w, w), "b" (d-1, w)}, "head":
{"W" (w,), "b" ()}}. The network has d hidden layers of width w; one `scan` computes all hidden
layers.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox.circuits import Circuit, Gate
from jaxbounds.smapprox.correction import THIRDS, Correction
from jaxbounds.smapprox.straight_through import relu

Params = dict[str, Any]


def feedforward(
    params: Params, x: Float[Array, "m"], /
) -> tuple[Float[Array, ""], Float[Array, "d w"]]:
    """Compute F_{w,d}(x, theta) = W_d relu(... relu(W_0 x + b_0) ...) + b_d and hidden states."""
    first, hidden, head = params["first"], params["hidden"], params["head"]
    start = jnp.maximum(first["W"] @ x + first["b"], 0.0)

    def layer(h: Array, p: Params) -> tuple[Array, Array]:
        h = jnp.maximum(p["W"] @ h + p["b"], 0.0)
        return h, h

    last, states = jax.lax.scan(layer, start, hidden)
    return head["W"] @ last + head["b"], jnp.concatenate([start[None], states])


def straight_through_feedforward(
    params: Params, x: Float[Array, "m"], /, *, corrected: bool | Bool[Array, ""]
) -> Float[Array, ""]:
    """Compute F_{w,d}(x, theta) with a surrogate derivative: every ReLU has the derivative one.

    In corrected networks, the rounding function as a whole gets derivative one, because the
    derivatives of its two ReLUs would cancel.
    """
    stop = jax.lax.stop_gradient
    first, hidden, head = params["first"], params["hidden"], params["head"]
    start = relu(first["W"] @ x + first["b"], straight_through=True)
    place = jnp.arange(1, hidden["b"].shape[0] + 1) % 4
    enters, leaves = (corrected & (place == 2)), (corrected & (place == 3))

    def layer(carry: tuple[Array, Array], xs: Any) -> Any:
        h, rounded = carry
        p, enter, leave = xs
        z = p["W"] @ jnp.where(enter, stop(h), h) + p["b"]
        out = relu(z, straight_through=True)
        rounded = jnp.where(enter, h, rounded)
        return (out + jnp.where(leave, rounded - stop(rounded), 0.0), rounded), None

    (last, _), _ = jax.lax.scan(layer, (start, start), (hidden, enters, leaves))
    return head["W"] @ last + head["b"]


class FeedforwardNet(nn.Module):
    """The network F_{w,d} of Section 3 as a Flax module."""

    width: int
    depth: int

    @nn.compact
    def __call__(self, x: Float[Array, "m"]) -> Float[Array, ""]:
        """Compute the output on one input."""
        w, d, m = self.width, self.depth, x.shape[0]
        normal = nn.initializers.normal
        affine = lambda name, scale, W, b: self.param(
            name, lambda key: {"W": normal(scale)(key, W), "b": jnp.zeros(b)}
        )
        params = {
            "first": affine("first", (2.0 / m) ** 0.5, (w, m), (w,)),
            "hidden": affine("hidden", (2.0 / w) ** 0.5, (d - 1, w, w), (d - 1, w)),
            "head": affine("head", (1.0 / w) ** 0.5, (w,), ()),
        }
        return feedforward(params, x)[0]


def gate_rows(gate: Gate, below: int, /) -> tuple[np.ndarray, float, float, float]:
    """Return (row, b, c, e) so that the gate's value is relu(c relu(row . h + b) + e).

    The formulas for the gates are those of Lemma B.1 and Proposition B.2. AND is relu(x1 + x2 - 1).
    OR is 1 - relu(1 - x1 - x2). NOT is relu(1 - x). ID is relu(x). If a gate has one parent twice,
    their weights add up, so AND(x, x) = relu(2x - 1) = x.
    """
    row = np.zeros(below)
    sign = {"AND": 1.0, "OR": -1.0, "NOT": -1.0, "ID": 1.0}[gate.op]
    np.add.at(row, list(gate.parents), sign)
    bias = {"AND": -1.0, "OR": 1.0, "NOT": 1.0, "ID": 0.0}[gate.op]
    return row, bias, (-1.0 if gate.op == "OR" else 1.0), (1.0 if gate.op == "OR" else 0.0)


def circuit_layer(
    layer: tuple[Gate, ...], below: int, width: int, /
) -> list[dict[str, np.ndarray]]:
    """Return the two ReLU layers W1, b1, W2, b2 of Lemma B.1, padded to `width` with zeros."""
    W1, b1, W2, b2 = np.zeros((width, below)), np.zeros(width), np.zeros(width), np.zeros(width)
    for i, gate in enumerate(layer):
        W1[i], b1[i], W2[i], b2[i] = gate_rows(gate, below)
    return [{"W": W1, "b": b1}, {"W": np.diag(W2), "b": b2}]


def network_depth(circuit: Circuit, /, *, corrected: bool) -> int:
    """Count the hidden layers of the compiled circuit: 2 (corrected: 4) for each circuit layer."""
    return (4 if corrected else 2) * circuit.depth


def compile_circuit(
    circuit: Circuit,
    /,
    *,
    correction: Correction | None = THIRDS,
    width: int | None = None,
    depth: int | None = None,
) -> Params:
    """Build the network that computes 2 G(x) - 1 and every gate of G (Lemmas 3.2, B.1).

    Each circuit layer becomes two ReLU layers (Lemma B.1), or four with a correction. The head is z
    -> 2z - 1, as in the proof of Theorem 3.1. The weights are float64 NumPy arrays.

    Args:
        circuit: the circuit G; the network reads only its first output.
        correction: the rounding between layers, or None for the uncorrected network.
        width: the width w, at least 2r with a correction and r without, where r is the circuit's
            width; a larger w adds zero weights.
        depth: the number d of hidden layers; identity gates fill the layers beyond `network_depth`.

    Raises:
        Refused: if the width or depth is too small, or the extra depth is not a multiple of the
            layers that one circuit layer needs.
    """
    per_layer = 2 if correction is None else 4
    gates = max(len(layer) for layer in circuit.layers)
    least = gates if correction is None else 2 * gates
    w = least if width is None else width
    d = network_depth(circuit, corrected=correction is not None) if depth is None else depth
    extra, rest = divmod(d - per_layer * circuit.depth, per_layer)
    if w < least:
        raise Refused(
            f"w={w}, expected a width of at least {least} for the compiled circuit. Try w={least}"
        )
    if extra < 0 or rest:
        raise Refused(
            f"d={d}, expected {per_layer * circuit.depth} (the depth of the compiled circuit) plus "
            f"a multiple of {per_layer}. Try d={per_layer * circuit.depth}"
        )
    layers: list[dict[str, np.ndarray]] = []
    below = circuit.inputs
    for layer in (*circuit.layers, *((Gate("ID", (0,)),),) * extra):
        layers += circuit_layer(layer, below if not layers else w, w)
        if correction is not None:
            layers += _correction_layers(correction, w, len(layer))
    head = np.zeros(w)
    head[0] = 2.0
    stack = lambda name: np.stack([layer[name] for layer in layers[1:]])
    return {
        "first": layers[0],
        "hidden": {"W": stack("W"), "b": stack("b")},
        "head": {"W": head, "b": np.array(-1.0)},
    }


def _correction_layers(correction: Correction, w: int, live: int) -> list[dict[str, np.ndarray]]:
    narrow = correction.weights(live, live)
    W2, b2, W3 = np.zeros((w, w)), np.zeros(w), np.zeros((w, w))
    W2[: 2 * live, :live], b2[: 2 * live] = narrow["W2"], narrow["b2"]
    W3[:live, : 2 * live] = narrow["W3"]
    return [{"W": W2, "b": b2}, {"W": W3, "b": np.zeros(w)}]


def l1_norm(params: Params, /) -> float:
    """Compute ||theta||_1, the sum of the absolute values of all parameters."""
    return float(sum(np.abs(np.asarray(leaf)).sum() for leaf in jax.tree.leaves(params)))


def parameter_count(params: Params, /) -> int:
    """Count the parameters p, zeros included."""
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(params))
