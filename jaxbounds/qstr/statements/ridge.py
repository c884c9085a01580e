"""A statement that compares Lemma 42's bounds in two dimensions with networks of least norm."""

import functools

import numpy as np

from jaxbounds.claims.statements import Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import ridge_networks

EPS = (0.2, 0.17, 0.14, 0.12, 0.1, 0.085, 0.07)
WAVES = (1.0, 0.5)
"""The spacings of two lattices. The check approximates the distance to the nearest lattice point by
networks."""


def _wave(x: np.ndarray, spacing: float) -> np.ndarray:
    """Return the distance from x to the nearest lattice point, minus half the largest distance."""
    cell = x / spacing - np.round(x / spacing)
    return spacing * (np.linalg.norm(cell, axis=1) - np.sqrt(0.5) / 2)


@functools.lru_cache
def _least(eps: float, spacing: float) -> tuple[float, float, float]:
    """Return m, |a|_2 sqrt(m) and the error of the network of width m and least |a|_1."""
    x, fine = (ridge_networks.disc(radius=1.0, spacing=s) for s in (1 / 8, 1 / 32))
    network = ridge_networks.least_ridge_network(
        x, _wave(x, spacing), eps=eps, radius=1.0, directions=12, biases=17
    )
    error = float(np.max(np.abs(network(fine) - _wave(fine, spacing))))
    m = float(len(network.a))
    return m, float(np.linalg.norm(network.a)) * m**0.5, error


def _orders(i: Instance, size: Size) -> Sides:
    eps = float(i["eps"])
    found = [_least(eps, spacing) for spacing in WAVES]
    m, outer = (max(one[k] for one in found) for k in (0, 1))
    error = max(one[2] for one in found)
    of = {"lipschitz": 1.0, "radius": 1.0, "eps": error}
    widths, norms = ridge_networks.printed_lipschitz_norms(**of, dimension=2)
    _, straight = ridge_networks.printed_lipschitz_norms(**of, dimension=0)
    return Sides.pairs(
        {"printed m": (m, widths), "printed |a|": (outer, norms), "control": (outer, straight)}
    )


DISC = Statement(
    id="qstr.lem42.disc",
    label="Lemma 42 (two dimensions)",
    formula="m = O((L R log(L R/eps)/eps)^d), |a|_2 sqrt(m) = O(L R (L R log(L R/eps)/eps)^{(d+1)/"
    "2}), d = 2",
    tex=r"m \le C_1 \left(\frac{L R (1 + \log(L R / \varepsilon))}{\varepsilon}\right)^d, \quad "
    r"\|a\|_2 \le \frac{C_2 L R}{\sqrt m} \left(\frac{L R (1 + \log(L R / \varepsilon))}"
    r"{\varepsilon}\right)^{\frac{d + 1}{2}}, \quad d = 2",
    kind="rate",
    host=True,
    judges=(
        ridge_networks.least_ridge_network,
        ridge_networks.printed_lipschitz_norms,
        ridge_networks.disc,
        ridge_networks.RidgeNetwork.__call__,
    ),
    cases=lambda size: {"eps": np.array(EPS)},
    evaluate=_orders,
    forms=(
        Form(
            name="printed m",
            cites="Lemma 42, Appendix D",
            sense="at most",
            exponent=(0.2, 1.0),
            note="In the bound on the width m, the constant C_1 = 1 is enough at all eps of the "
            "check.",
        ),
        Form(
            name="printed |a|",
            cites="Lemma 42, Appendix D",
            sense="at most",
            exponent=(0.5, 1.0),
            note="In the bound on |a|_2 sqrt(m), the constant C_2 = 1 is enough, and the least "
            "possible C_2 falls with eps. Bach's Propositions 1 and 6 prove the lemma, but give no "
            "value of its constant C_d.",
        ),
    ),
    control="|a| at most of the order of eps^{-1/2}",
    sizes=({},),
    assumptions="L = R = 1; distances to two lattices, of spacing 1 and 1/2; units of 24 "
    "directions and 17 biases, all with |w| = 1/R and |b| <= 1, least by linear programs; errors "
    "on a lattice of spacing 1/32",
    source="Lemma 42 ([Bac17, Propositions 1 and 6])",
)

STATEMENTS = (DISC,)
