"""Networks of one layer and how far two of them are apart: Appendix E; Theorem 4.2's two lists."""

from fractions import Fraction
from typing import Any

import numpy as np

from ..claims import checks
from ..intervals import ONE, exp, greatest, interval, norm, power, softmax, spectral_norm
from ..judge import Sides, assume
from ..witness import Witness

NAMES = ("W_QK", "W_v", "W_c")

LAYERS = {
    "X": "f T d",
    "w": "f d",
    "what": "f d",
    "layers.W_QK": "f L d d",
    "layers.W_v": "f L d k",
    "layers.W_c": "f L k d",
    "moved.W_QK": "f L d d",
    "moved.W_v": "f L d k",
    "moved.W_c": "f L k d",
}
"""The arrays of two scalar networks on one input."""


def tanh(x: Any) -> Any:
    """The activation: 1-Lipschitz, 0 at 0."""
    small = exp(-2 * abs(x))
    size = (ONE - small) / (ONE + small)
    return size if x.a >= 0 else -size


def onto_ball(row: np.ndarray) -> np.ndarray:
    """Pi_norm: a row of norm at most one stays, a longer one is divided by its norm."""
    length = norm(row)
    if length.b <= 1:
        return row
    if length.a < 1:
        raise ValueError("whether a row is longer than one is undecided")
    return row / length


def attended(X: np.ndarray, layer: dict[str, np.ndarray]) -> np.ndarray:
    """f(X; W) = RowSoftmax(X W_QK X^T) X W_v, Section 2.6."""
    rows = [softmax(row) for row in X @ layer["W_QK"] @ X.T]
    return np.stack(rows) @ X @ layer["W_v"]


def hidden(X: np.ndarray, layer: dict[str, np.ndarray]) -> np.ndarray:
    """sigma(Pi_norm(f))."""
    return np.stack([[tanh(x) for x in onto_ball(row)] for row in attended(X, layer)])


def block(X: np.ndarray, layer: dict[str, np.ndarray]) -> np.ndarray:
    """Pi_norm(sigma(Pi_norm(f)) W_c), Section 2.6."""
    return np.stack([onto_ball(row) for row in hidden(X, layer) @ layer["W_c"]])


def rows(A: np.ndarray) -> Any:
    """||A^T||_{2,inf}: the longest row of A."""
    return greatest(norm(row) for row in A)


def _layers(w: Witness, name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The layer and the moved one: the only layer of `layers`, or `layer`."""
    pick = lambda group: {
        key: interval(w[f"{group}.{key}"].reshape(w[f"{group}.{key}"].shape[-2:])) for key in NAMES
    }
    return pick(name), pick("moved")


def _bounds(layers: tuple[dict[str, np.ndarray], ...]) -> tuple[Any, Any]:
    """B_c2 and B_v2, the least that both layers meet."""
    return tuple(
        greatest(spectral_norm(layer[name]) for layer in layers) for name in ("W_c", "W_v")
    )


def _measured(X: np.ndarray, own: dict, moved: dict) -> dict[str, Any]:
    """How far each matrix is moved on what it is applied to, ||(W - W^)^T x||_{2,inf}."""
    away = {name: own[name] - moved[name] for name in NAMES}
    return {
        "W_c": rows(hidden(X, moved) @ away["W_c"]),
        "W_QK": rows(X @ away["W_QK"]),
        "W_v": rows(X @ away["W_v"]),
    }


@checks(
    "seqlength.lemmae.2.first",
    "printed",
    (
        "||(g - g^)^T||_{2,inf} after the first block",
        "<=",
        "eps_c + 2 B_c2 B_v2 eps_QK + B_c2 eps_v",
    ),
    formula="the same for g^(1) = X with tokens of norm up to B_x",
    text="a89a7ec54493a0252480abea07892ae2",
    size="T d k",
    leaves={
        "X": "f T d",
        "layer.W_QK": "f d d",
        "layer.W_v": "f d k",
        "layer.W_c": "f k d",
        "moved.W_QK": "f d d",
        "moved.W_v": "f d k",
        "moved.W_c": "f k d",
    },
)
def first_block(w: Witness) -> Sides:
    """Lemma E.2 at i = 1, where g^(1) = X for both; L_sigma = 1."""
    X = interval(w["X"])
    own, moved = _layers(w, "layer")
    B_c, B_v = _bounds((own, moved))
    away = _measured(X, own, moved)
    rhs = away["W_c"] + 2 * B_c * B_v * away["W_QK"] + B_c * away["W_v"]
    return Sides(rows(block(X, own) - block(X, moved)), rhs)


def _scalar_outputs(w: Witness) -> tuple[Any, np.ndarray, tuple[dict, dict], Any]:
    """|g_scalar - g^_scalar| at [CLS] = token 0, X, both layers, and eps_w = ||w - w^||."""
    X = interval(w["X"])
    layers = _layers(w, "layers")
    first = [interval(w[name]) @ block(X, layer)[0] for name, layer in zip(("w", "what"), layers)]
    return abs(first[0] - first[1]), X, layers, norm(w["w"] - w["what"])


def _unit(w: Witness) -> dict[str, bool]:
    lengths = (sum(w[name] ** 2) for name in ("w", "what"))
    return {
        "||w||, ||w^|| <= B_w = 1": all(length <= 1 for length in lengths),
        "L = 1": w.size["L"] == 1,
    }


@checks(
    "seqlength.appe.chain",
    "printed",
    ("|g - g^|", "<=", "eps_w + eps_c + B_c2 eps_v + 2 B_c2 B_v2 eps_QK, as measured"),
    formula=(
        "|g_scalar - ghat_scalar| <= eps_w + B_w sum_i alpha_i (eps_c + L B_c eps_v + 2 L B_c "
        "B_v eps_QK), the eps measured"
    ),
    text="c40694020e12501adeb497f5bf71f6fe",
    size="L=1 T d k",
    leaves=LAYERS,
)
def chain(w: Witness) -> Sides:
    """|g - g^| <= eps_w + B_w (eps_c + B_c2 eps_v + 2 B_c2 B_v2 eps_QK), the eps measured, L = 1.

    eps_w is |(w - w^).g^| at [CLS], which Lemma E.3 has, and at most ||w - w^||: here zero.
    """
    assume(_unit(w) | {"w is not moved": bool((w["w"] == w["what"]).all())})
    lhs, X, layers, eps_w = _scalar_outputs(w)
    B_c, B_v = _bounds(layers)
    away = _measured(X, *layers)
    rhs = eps_w + away["W_c"] + B_c * away["W_v"] + 2 * B_c * B_v * away["W_QK"]
    return Sides(lhs, rhs)


@checks(
    "seqlength.appe.cover",
    "derived",
    ("|g - g^|", "<=", "eps_w + eps_c + B_c2 eps_v + 2 B_c2 B_v2 eps_QK of the covers"),
    formula="covers at scales eps_i of the single matrices cover the network at sum beta_i eps_i",
    text="18ce33605c87876d704ea79d8180c1bc",
    size="L=1 T d k",
    leaves=LAYERS,
)
def cover_at_norm_one(w: Witness) -> Sides:
    """The same with the eps at which the proof's covers contain the moved matrices.

    By the proof W_v and W_c are covered for ||x|| <= 1, the first W_QK for ||x|| <= B_x: eps is
    ||W - W^||_2 times that norm.
    """
    assume(_unit(w))
    lhs, X, layers, eps_w = _scalar_outputs(w)
    B_c, B_v = _bounds(layers)
    own, moved = layers
    away = {name: spectral_norm(own[name] - moved[name]) for name in NAMES}
    rhs = eps_w + away["W_c"] + B_c * away["W_v"] + 2 * B_c * B_v * rows(X) * away["W_QK"]
    return Sides(lhs, rhs)


@checks(
    "seqlength.thm4.2",
    "printed",
    ("eps^2 ln N of the proof's last display", "=", "(gamma + eta)^3"),
    formula="eps^2 ln N = (gamma + eta)^3 by Lemma E.1 from the proof's last display",
    text="7d39008de2c85ec4823eab9d04ac948a",
    size="L=1",
    leaves={
        "B_QK": "f",
        "B_c": "f",
        "B_v": "f",
        "B_w": "f",
        "B_x": "f",
        "C_1": "f",
        "C_Bx": "f",
        "L_sigma": "f",
    },
)
def two_lists(w: Witness) -> Sides:
    """(sum C_i^{1/3} beta_i^{2/3})^3 of the proof's last display by Lemma E.1, and (gamma + eta)^3.

    At L = 1, where alpha_1 = 1 and eta = 0; B_QK is in alpha only.
    """
    assume({"L = 1": w.size["L"] == 1, "all >= 0": all(x >= 0 for x in w.instance.values())})
    B_c, B_v, B_w, s = (interval(w[name]) for name in ("B_c", "B_v", "B_w", "L_sigma"))
    third = Fraction(1, 3)
    two = lambda x: power(x, 2 * third)
    one, large = power(w["C_1"], third), power(w["C_Bx"], third)
    shared = large * two(2 * s * B_c * B_v * B_w)
    proof = one * (1 + two(B_w) + two(B_w * s * B_c)) + shared
    printed = shared + one * (1 + two(B_w * s * B_v))
    return Sides(proof**3, printed**3)
