"""Lemmas 12, 38 and 41."""

from fractions import Fraction
from itertools import pairwise

from ..claims import checks
from ..intervals import exp, interval, least, log
from ..judge import Sides, assume
from ..witness import Witness


@checks(
    "qstr.lem12.small",
    "printed",
    ("P(|x| >= r sqrt(d))", "<=", "n N exp(-r^2 / (2 e))"),
    formula="P(max |x_j| >= r) <= nN exp(-r^2/(2 C_x e d)) for every r > 0, n = N = 1 too",
    text="5dd5e0157246c6b3bec13e75af4a1963",
    size="n=1 N=1 d=3",
    leaves={"r": "f"},
)
def tail_of_a_sphere(w: Witness) -> Sides:
    """P(|x| >= r sqrt(d)) against n N exp(-r^2 / (2 e)), n = N = 1, for x uniform on a sphere.

    Of radius sqrt(d): then E[|x|^k]^{1/k} = sqrt(d) <= sqrt(C_x d k) for all k >= 1 with C_x = 1.
    """
    r, n, N = w["r"], w.size["n"], w.size["N"]
    sure = {"n = N = 1": n == N == 1, "r > 0": r > 0, "d >= 1": w.size["d"] >= 1}
    assume(sure)
    return Sides(int(r <= 1), n * N * exp(-(interval(r) ** 2) / (2 * exp(1))))


@checks(
    "qstr.lem38.bias",
    "derived as read",
    ("|b'|^2", "<=", "|z|^2 + 1"),
    formula="|b'|^2 <= |z|^2 + 1, as the text at hand reads",
    text="0c6f05daa1989c56607ff8e4dc82156f",
    size="n",
    leaves={"y": "f n", "z": "f n"},
)
def biases(w: Witness) -> Sides:
    """|b'|^2 = (1 - z_1)^2 + z_1^2 + ... + z_{n-1}^2 against |z|^2 + 1.

    g(t) = y_1 relu(t - z_1 + 1) + c_2 relu(t - z_1) + ... + c_n relu(t - z_{n-1}): the kinks of a
    piecewise linear function through (z_i, y_i) that starts at z_1 - 1.
    """
    z, y = w["z"], w["y"]
    gaps = [b - a for a, b in pairwise(z)]
    b = [1 - z[0], *(-value for value in z[:-1])]
    sure = {
        "n >= 2": len(z) == len(y) == w.size["n"] >= 2,
        "z increases by at least 0.01": all(gap >= Fraction(1, 100) for gap in gaps),
        "y != 0": any(y),
        "g(z_i) = y_i": _interpolates(z, y, b),
    }
    assume(sure)
    return Sides(sum(x**2 for x in b), sum(z**2) + 1)


def _interpolates(z: list, y: list, b: list) -> bool:
    """Whether weights a' of the neurons relu(t + b'_j) fit the data: found one by one."""
    weights: list[Fraction] = []
    for i in range(len(z)):
        active = [max(z[i] + bias, Fraction(0)) for bias in b]
        if active[i] == 0 or any(active[i + 1 :]):
            return False
        got = sum(a * s for a, s in zip(weights, active))
        weights.append((y[i] - got) / active[i])
    return True


@checks(
    "qstr.lem41",
    "printed",
    ("d log 2", "<=", "min(d log(1 + 2/eps), (1 + log(1 + 2 d eps^2)) / eps^2), eps = 1/2"),
    formula="log P <= min(d log(1 + 2/eps), (1 + log(1 + 2 d eps^2))/eps^2)",
    text="bc4aa0f394f0e95dc43b5a78e959d3e0",
    leaves={"d": "i", "family": "i"},
)
def packing_of_a_ball(w: Witness) -> Sides:
    """d log 2 against (d log(1 + 2/eps)) ^ ((1 + log(1 + 2 d eps^2)) / eps^2) at eps = 1/2.

    Balls of radius 1/2 about a maximal 1/2-packing cover the unit ball, so there are 2^d of them
    at least. (The family is the third of the library's: all of the unit ball.)
    """
    d = w.whole("d")
    sure = {"the whole unit ball": w["family"] == 2, "d >= 1": d >= 1}
    eps = Fraction(1, 2)
    volume = d * log(1 + 2 / eps)
    maurey = (1 + log(1 + 2 * d * eps**2)) / interval(eps**2)
    assume(sure)
    return Sides(d * log(2), least((volume, maurey)))
