"""A certified lower bound on the all-layer margin of a compiled Turing machine (Theorem 4.1).

Condition D.3 fails for hard-max layers with ties, because a perturbation can decide the tie for
either key, and then the output jumps. Lemma D.8 needs less: the distance of the perturbed layer's
output at a nearby input from the exact output at the exact input. A decided tie does not change
this distance, because tied keys have equal values at the exact input.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox.compile_machine import Compiled
from jaxbounds.smapprox.correction import Correction


class LayerNorms(NamedTuple):
    """The norms of one layer's weights.

    Attributes:
        content: the spectral norm of W1.
        decoder_value: the spectral norm of the decoder's value map.
        encoder_value: the spectral norm of the encoder's value map.
        query: the largest spectral norm of the query and key maps.
        attends: whether the layer uses any attention. If not, all keys have equal scores and the
            value zero.
    """

    content: float
    decoder_value: float
    encoder_value: float
    query: float
    decoder_null: float
    encoder_null: float
    attends: bool


def layer_norms(compiled: Compiled, /) -> list[LayerNorms]:
    """Measure the norms of every layer on its weights."""

    def spectral(matrix: np.ndarray) -> float:
        there = matrix[matrix.any(axis=1)][:, matrix.any(axis=0)]  # most rows and columns are zero
        return float(np.linalg.norm(there, 2)) if there.size else 0.0

    return [
        LayerNorms(
            content=spectral(layer.W1),
            decoder_value=spectral(layer.dec["Wv"]),
            encoder_value=spectral(layer.enc["Wv"]),
            query=max(spectral(a[name]) for a in (layer.dec, layer.enc) for name in ("Wq", "Wk")),
            decoder_null=float(np.linalg.norm(layer.dec["K0"])),
            encoder_null=float(np.linalg.norm(layer.enc["K0"])),
            attends=bool(layer.attends),
        )
        for layer in compiled.layers
    ]


def state_norm(bits: float, /) -> float:
    """Compute lambda = sqrt(4 w_pos + 5), which bounds every state before and after every layer.

    At most four one-hot groups of a `Layout` are nonzero at once. If fewer are, three coordinates
    of scr4 may be 1. The groups pos1, pos2, pos3 and scr3 have w_pos bits each.
    """
    return math.sqrt(4 * bits + 5)


def slack(norms: LayerNorms, bits: float, slope: float, radius: float, r: float, /) -> float:
    """Compute the smallest slack (right side minus left side) over the conditions of one layer.

    A layer tolerates a perturbation of norm r if the slack is not negative. One condition is that
    the error K r + mu eta of the layer's output stays within the correction's radius. Here eta =
    `state_error`, and K and mu are the layer's Lipschitz constants in its parameters and in its
    state. Another is that no attention scores change their order; different scores differ by at
    least 1.
    """
    one = lambda v: math.hypot(v, 1.0)
    lam, eta = state_norm(bits), state_error(bits, slope, radius, r)
    w1, code = norms.content + r, math.sqrt(1 + bits)
    attended = lam + math.sqrt(3)
    K = math.sqrt(
        (w1 * one(lam + eta)) ** 2
        + (w1 * one(code)) ** 2
        + (w1 * (norms.encoder_value + r)) ** 2
        + attended**2
        + 1
    )
    mu = w1 * (1 + norms.decoder_value + r)
    result = radius - (K * r + mu * eta)
    if not norms.attends:
        return result
    query, key = math.sqrt(2 * bits + 1), math.sqrt(2 * bits)
    moved = lambda by, norm: (norms.query + r) * by + r * one(norm)
    score_change = lambda dq, dk, null: dq * (key + dk + null + r) + query * (dk + r)
    after_decoder = eta + r * one(lam + eta) + norms.decoder_value * eta
    stable = max(
        score_change(moved(eta, attended), moved(eta, lam + eta), norms.decoder_null),
        score_change(moved(after_decoder, attended), moved(r, code + r), norms.encoder_null),
    )
    return min(result, 1 - stable)


def state_error(bits: float, slope: float, radius: float, r: float, /) -> float:
    """Bound the error eta of a corrected state if the correction has a perturbation of norm r."""
    most = state_norm(bits) + radius
    first = 2 * slope**2 * (most**2 + 1)
    return r * math.sqrt(first + (math.sqrt(2) * most + r * math.hypot(most, 1)) ** 2 + 1)


def machine_margin_lower(compiled: Compiled, /) -> float:
    """Bound the margin from below at every input on which the machine halts within T steps.

    Raises:
        Refused: if the network has no correction, because there is no bound without corrections.
    """
    if compiled.correction is None:
        raise Refused(
            f"correction={compiled.correction}: a network without correction (rounding of its "
            f"layers) has no certified margin. Try to compile the machine with a correction"
        )
    head = float(np.linalg.norm(compiled.params["head"]))
    return _largest_safe(layer_norms(compiled), compiled.layout.bits, head, compiled.correction)


def norms_by_counts(states: float, symbols: float, bits: float, /) -> list[LayerNorms]:
    """Bound `layer_norms` of the layers that compute, and of the layers that attend.

    The machine is compiled with the lookahead adder and has k states, the compiler's own state
    included. The squared norm |W1|^2 is at most the largest row sum times the largest column sum of
    |W1|. These two sums are k|A| and 3 in the layer of the transition, and w_pos and 2 w_pos - 1 in
    the layer that computes the carries of the addition. For the halves of the XOR, the largest row
    sum and the largest column sum are 3. Other layers have smaller sums. In layers with attention,
    W1 copies coordinates, the query and key matrices are twice a partial permutation, and the value
    matrices are a partial permutation. The null keys have norms of at most 2 w_pos - 1 in the
    decoder and w_pos - 1 in the encoder.
    """
    content = math.sqrt(max(3.0 * states * symbols, bits * (2.0 * bits - 1.0), 9.0))
    computes = LayerNorms(content, 0.0, 0.0, 0.0, 0.0, 0.0, attends=False)
    return [computes, LayerNorms(1.0, 1.0, 1.0, 2.0, 2.0 * bits - 1.0, bits - 1.0, attends=True)]


def machine_margin_by_counts(
    states: float, symbols: float, bits: float, correction: Correction, /
) -> float:
    """Compute `machine_margin_lower` from the numbers of states, symbols and bits alone.

    The result holds for every machine with these numbers.
    """
    norms = norms_by_counts(states, symbols, bits)
    return _largest_safe(norms, bits, math.sqrt(states), correction)


def _largest_safe(
    norms: list[LayerNorms], bits: float, head: float, correction: Correction, /
) -> float:
    zeta, different = (correction.slope, correction.radius), set(norms)

    def least(r: float) -> float:
        eta = state_error(bits, *zeta, r)
        decided = 1 - (head * eta + r * (state_norm(bits) + eta))
        return min(decided, *(slack(n, bits, *zeta, r) for n in different))

    # `least` is positive at 0, negative at 1 and concave; its root is rounded to the safe side.
    return scipy.optimize.brentq(least, 0.0, 1.0, xtol=1e-300) * (1 - 1e-14)
