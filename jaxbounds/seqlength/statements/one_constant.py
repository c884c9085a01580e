"""Statements on Corollary F.0.1, which prints one constant C for matrices of several shapes."""

import math
from typing import Any

import numpy as np

from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.numerics.arrays import array_module, real
from jaxbounds.seqlength.linear_bounds import lemma_3_3, volumetric_lower_cube
from jaxbounds.seqlength.multi_layer import constants_F_0_1_corrected
from jaxbounds.seqlength.statements import instances as draw


def _packing(columns: Any, rows: Any, eps: Any) -> Any:
    """Compute the log of the number of maps to R^rows with all columns +-e_i; 0 if sqrt 2 < 2 eps.

    Two of these maps send some e_j to images sqrt 2 or 2 apart.
    """
    xp = array_module(columns, rows, eps)
    return xp.where((2.0 * eps) ** 2 <= 2.0, real(columns) * xp.log(2.0 * real(rows)), 0.0)


def _one_constant(instance: Instance, size: Size) -> Sides:
    d, k, eps = draw.numbers(instance, "d", "k", "epsilon")
    xp = array_module(d, k, eps)
    one, own = lemma_3_3(1.0 / eps, k=k, d=d), constants_F_0_1_corrected(1.0 / eps, d, k)
    W_c, W_QK = _packing(k, d, eps), _packing(d, d, eps)
    # If the map's rows are bounded instead, the images of e_1 fill a cube in R^d.
    x = 4.0 / xp.sqrt(d)
    cube = volumetric_lower_cube(x, k=d)
    return Sides.pairs(
        {
            "derived, W_c^T x": (W_c, one),
            "derived, W_c^T x, constant 10": (W_c, 10.0 * one),
            "derived, W_c^T x, rows": (cube, lemma_3_3(x, k=k, d=d)),
            "derived, W_QK x": (W_QK, one),
            "corrected, W_c^T x": (W_c, own.c),
            "corrected, W_QK x": (W_QK, own.QK),
            "control": (W_QK, own.QK / 3.0),
        }
    )


def _meets(instance: Instance, size: Size) -> dict[str, Any]:
    d, k = int(instance["d"]), int(instance["k"])
    rng = np.random.default_rng(0)
    some = lambda rows, columns: np.eye(rows)[:, rng.integers(rows, size=columns)]
    maps = {"W_c^T": some(d, k), "W_QK": some(d, d)}  # d x k and d x d; signs do not matter
    # The maps have inputs in R^k and in R^d.
    points = [np.concatenate([np.eye(n), np.zeros((1, n))]) for n in (k, d)]
    cube = np.outer(np.ones(d), np.eye(k)[0])
    longest = max(np.linalg.norm(M) for M in (*maps.values(), cube))
    return {
        "columns of the maps W_c^T and W_QK have l_1 norm at most B = 1 (Lemma 3.3)": all(
            np.abs(M).sum(axis=0).max() <= 1 for M in maps.values()
        ),
        "and rows of the map u e_1^T, u in [-1, 1]^d: ||W_c||_{1,inf} <= B = 1 (Lemma 3.3)": np.abs(
            cube
        )
        .sum(axis=1)
        .max()
        <= 1,
        "||x||_1 <= B_x = 1 at the inputs e_j and 0 (Lemma 3.3)": all(
            np.abs(x).sum(axis=1).max() <= 1 for x in points
        ),
        "N >= the input dimension: one point more (Lemma 3.3)": all(
            len(x) >= x.shape[1] for x in points
        ),
        "spectral norms are bounded: B_c2 = B_QK2 = sqrt max(d, k) (Theorem 4.2)": longest
        <= math.sqrt(max(d, k)) * (1 + 1e-12),
        "d, k >= 1 (Section 2.6)": min(d, k) >= 1,
        "eps > 0": instance["epsilon"] > 0,
    }


WIDE, NARROW = {"d": 2, "k": 1000, "epsilon": 0.5}, {"d": 1024, "k": 1, "epsilon": 0.5}

ONE_CONSTANT = draw.random_search_on_host(
    id="seqlength.corf.0.1.constant",
    label="Corollary F.0.1, one C for all matrices",
    tex=r"k \ln(2d) \le \ln \mathcal{N} \le \frac{d B^2}{\epsilon^2} \ln(2k + 1) \ \text{for } "
    r"W_c, \quad d \ln(2d) \le \ln \mathcal{N} \le \frac{d B^2}{\epsilon^2} \ln(2k + 1) \ "
    r"\text{for } W_{QK}, \quad \epsilon \le \frac{B}{\sqrt 2}",
    formula="k ln(2d) <= ln N <= d x^2 ln(2k + 1) for W_c^T, and d ln(2d) <= ln N <= d x^2"
    " ln(2k + 1) for W_QK, x = B / eps, inputs e_j",
    cases=draw.grid(d=(1, 2, 16, 64, 1024), k=(1, 2, 64, 1000), epsilon=(0.1, 0.5, 0.7)),
    project=draw.positive("epsilon"),
    evaluate=_one_constant,
    judges=(constants_F_0_1_corrected, lemma_3_3, volumetric_lower_cube),
    sizes=({"largest": 1024},),
    assumptions="the check uses the C of one matrix, for inputs in the l_1 ball, where the "
    "corollary prints the network's (gamma + eta)^3; packings bound ln N from below, so they can "
    "refute a form but cannot prove it; a form that holds is Lemma 3.3 for the map's own shape",
    forms=(
        Form(
            name="derived, W_c^T x",
            cites="Corollary F.0.1, (d B^2 ln(2k + 1))^{1/3}; Theorem 4.2, one C_1",
            erratum="E11",
            note="A map from R^k to R^d has k columns. For d = 2, k = 1000 and eps = 1/2 the "
            "packing proves that the cover's log size is at least 1386, and the claimed bound is "
            "60.8.",
            counterexample=Counterexample(instance=WIDE, ratio=22.79668770479254, meets=_meets),
        ),
        Form(
            name="derived, W_c^T x, constant 10",
            cites="Corollary F.0.1, (d B^2 ln(2k + 1))^{1/3}, with a constant",
            erratum="E11",
            note="No constant factor repairs the bound: at d = 2 the log size of the packing "
            "grows like k, and the bound grows like ln k.",
            counterexample=Counterexample(instance=WIDE, ratio=2.279668770479254, meets=_meets),
        ),
        Form(
            name="derived, W_c^T x, rows",
            cites="Corollary F.0.1, with ||W_c||_{1,inf} as printed, the rows of the map",
            erratum="E11",
            note="The corollary is also false if its norm is taken over the rows of the map, as "
            "printed. The images of the input e_1 then fill a cube in R^d. At eps = sqrt(d) / 4 a "
            "comparison of volumes refutes the claimed bound on ln N.",
            counterexample=Counterexample(instance=NARROW, ratio=38.70754446898384, meets=_meets),
        ),
        Form(
            name="derived, W_QK x",
            cites="Corollary F.0.1, (d B^2 B_x^2 ln(2k + 1))^{1/3}",
            erratum="E11",
            note="The map W_QK has d columns in R^d. Lemma 3.3 gives the factor ln(2d + 1), and a "
            "packing (a set of separated maps) shows that the factor is at least ln(2d) / 4.",
            counterexample=Counterexample(instance=NARROW, ratio=1.735056822321508, meets=_meets),
        ),
        Form(
            name="corrected, W_c^T x",
            note="The logarithm of the cover's size is k x^2 ln(2d + 1), with x = B_w B_x / eps.",
        ),
        Form(
            name="corrected, W_QK x",
            note="The logarithm of the cover's size is d x^2 ln(2d + 1), with x = B_w B_x / eps.",
        ),
    ),
    control="a third of the C for W_QK's own shape",
    source="Corollary F.0.1",
)

STATEMENTS = (ONE_CONSTANT,)
