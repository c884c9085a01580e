"""Lemma 3.5 with explicit constants: the cover by corrections, its size, and a lower bound."""

import itertools
import math

import numpy as np

from jaxbounds.claims.sets import Box, Integers, Matrices
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size
from jaxbounds.seqlength.correction_covers import (
    decode_corrections,
    encode_corrections,
    project_rows,
)
from jaxbounds.seqlength.linear_bounds import (
    RATIOS,
    lemma_3_5_corrected_leading,
    lemma_3_5_explicit,
    lemma_3_5_sharp,
    packing_of_points,
)
from jaxbounds.seqlength.statements import instances as draw

FINE = 1.1
"""The ratio q of the sharpened claim. A larger q needs fewer levels and allows more corrections, at
most q x^2 with x = B B_x / epsilon."""


def _cases(size: Size) -> Instance:
    """Return maps whose errors on orthonormal points barely need a correction.

    These maps need the most corrections.
    """
    k, d, N = size["k"], size["d"], size["N"]
    rows = []
    for n in range(1, d + 1):
        W = np.zeros((k, d))
        W[0, :n] = 1.0 / math.sqrt(n)
        X = np.eye(d)[np.arange(N) % d]
        rows.append({"W": W, "X": X, "x": math.sqrt(n) * (1.0 + 1e-9)})
    return draw.stacked(rows)


def _cover(instance: Instance, size: Size) -> Sides:
    W, X, (x,) = instance["W"], instance["X"], draw.numbers(instance, "x")
    pairs = {}
    for name, q in (("derived", 2.0), ("sharpened", FINE)):
        code = encode_corrections(W, X, 1.0, 1.0 / x, ratio=q)
        What = decode_corrections(code, X, 1.0, 1.0 / x, len(W), ratio=q)
        error = np.linalg.norm((W - What) @ X.T, axis=0).max()
        inside = np.linalg.norm(What, axis=1).sum()
        pairs[name] = error, 1.0 / x
        pairs[f"{name}, norm"] = inside, 1.0
        pairs[f"{name}, code"] = float(len(code)), q * x**2
    pairs["control"] = pairs["derived"][0], 0.3 / x
    return Sides.pairs(pairs)


LEMMA_3_5_COVER = draw.random_search_on_host(
    id="seqlength.lemma3.5.cover",
    label="Lemma 3.5, an explicit cover",
    tex=r"\max_i \left\| (W - \hat{W}) x_i \right\|_2 < \epsilon, \quad \text{at most } q x^2 "
    r"\text{ letters}, \quad \|W^\top\|_{2,1}, \|\hat{W}^\top\|_{2,1} \le B_w, \ \|x_i\|_2 \le B_x",
    formula="||W^T||_{2,1} <= B_w: What read from at most q x^2 corrections is in the class and"
    " within eps of W at every point, ||x_i||_2 <= B_x",
    budget=Budget(samples=32, restarts=6, steps=40),
    over={
        "W": Matrices(("k", "d"), norm="row sum"),
        "X": Matrices(("N", "d"), norm="rows"),
        "x": Box(1, 4),
    },
    cases=_cases,
    evaluate=_cover,
    judges=(encode_corrections, decode_corrections, project_rows),
    sizes=({"k": 3, "d": 4, "N": 6},),
    assumptions="B_w = B_x = 1, 1 <= x <= 4",
    forms=(
        Form(
            name="derived",
            note="The cover sorts the rows into levels (ranges of their norms). The ratio of "
            "neighbouring levels is q = 2. The docstring of "
            "`jaxbounds.seqlength.correction_covers` proves that the corrections give a cover.",
        ),
        Form(
            name="derived, norm",
            note="Each corrected approximation of W is projected onto the class, so every member "
            "of the cover is in the class.",
            equality="a code that ends on the sphere",
        ),
        Form(
            name="derived, code",
            note="V is the current approximation of W. Each correction of V lowers the potential "
            "F(W - V), a weighted squared norm, by at least eps^2 / (B_w B_x^2).",
        ),
        Form(
            name="sharpened",
            note="The cover sorts the rows into levels (ranges of their norms). The ratio of "
            "neighbouring levels is q = 1.1.",
        ),
        Form(
            name="sharpened, norm",
            note="Each corrected approximation of W is projected onto the class, so every member "
            "of the cover is in the class.",
            equality="a code that ends on the sphere",
        ),
        Form(
            name="sharpened, code",
            note="For one row, orthonormal points and errors slightly above eps, the approximation "
            "of W is corrected x^2 times, with x = B_w B_x / eps. The bound allows q x^2 "
            "corrections.",
        ),
    ),
    control="three tenths of the resolution",
    source="Lemma 3.5, from Edelman et al. (2022), Lemma 4.6; proved here as Zhang (2002) does",
)


def log_codes(x: float, k: int, n: int, q: float, signs: tuple[int, ...] = (1, -1)) -> float:
    """Compute the logarithm of the number of codes of length floor(q x^2).

    Each letter of a code is empty, or names a matrix entry, a sign and one of the levels.
    """
    length = sum(1 for count in range(1, 1000) if count <= q * x**2)
    below = itertools.takewhile(lambda level: q**level < q * x**2, itertools.count())
    levels = 1 + sum(1 for _ in below)
    letters = list(itertools.product(range(k), range(n), signs, range(levels)))
    # For x < 1, the matrix 0 alone is a cover.
    return length * math.log(len(letters) + 1) if x >= 1 else 0.0


def _letters(instance: Instance, size: Size) -> Sides:
    x, k, points, q = draw.numbers(instance, "x", "k", "points", "q")
    one, least = log_codes(x, k, points, q), min(log_codes(x, k, points, q) for q in RATIOS)
    return Sides.pairs(
        {
            "derived": (lemma_3_5_explicit(x, k=k, points=points, ratio=q), one),
            "sharpened": (lemma_3_5_sharp(x, k=k, points=points), least),
            "control": (1.0 + log_codes(x, k, points, q, (1,)), one),
        }
    )


LEMMA_3_5_COUNT = draw.identity_on_host(
    id="seqlength.lemma3.5.count",
    label="Lemma 3.5, the number of codes",
    tex=r"\ln \mathcal{N} = \lfloor q x^2 \rfloor \ln\left( 2 k N \left( \lceil \log_q(q x^2) "
    r"\rceil + 1 \right) + 1 \right)",
    formula="ln N = floor(q x^2) ln(2 k N levels + 1), levels = ceil(log_q(q x^2)) + 1; 0 for"
    " x < 1",
    over={"x": Box(0.5, 4)} | dict.fromkeys(("k", "points"), Integers(1, 4)) | {"q": Box(1.02, 3)},
    cases=draw.grid(x=(0.5, 1.3, 2.0, 3.1), k=(1, 3), points=(1, 4), q=(1.02, 1.1, 2.0)),
    evaluate=_letters,
    judges=(lemma_3_5_explicit, lemma_3_5_sharp),
    sizes=({"points": 4},),
    forms=(
        Form(
            name="derived",
            note="The cover encodes each matrix as a word. The check lists and counts all letters; "
            "a letter names an entry of the matrix, a sign and a level.",
        ),
        Form(
            name="sharpened",
            note="The cover sorts the rows into levels (ranges of their norms). The bound is the "
            "smallest log size over six ratios q of neighbouring levels.",
        ),
    ),
    control="without signs",
)


def _sizes(instance: Instance, size: Size) -> Sides:
    x, points = draw.numbers(instance, "x", "points")
    below, sharp = packing_of_points(x, points=points), lemma_3_5_sharp(x, k=1, points=points)
    above = lemma_3_5_explicit(x, k=1, points=points)
    leading = lemma_3_5_corrected_leading(x, k=1, points=points)
    return Sides.pairs(
        {
            "corrected, leading term": (below, leading),
            "derived": (below, above),
            "sharpened": (below, sharp),
            "control": (below, sharp / 10.0),
        }
    )


LEMMA_3_5_SIZE = draw.random_search_on_host(
    id="seqlength.lemma3.5.size",
    label="Lemma 3.5 with constants",
    tex=r"\ln \binom{N}{s} 2^s \le \ln \mathcal{N} \le \lfloor q x^2 \rfloor \ln\left( 2 k N "
    r"\left( \lceil \log_q(q x^2) \rceil + 1 \right) + 1 \right), \quad s = "
    r"\lfloor x^2 / 4 \rfloor",
    formula="ln(C(N, s) 2^s) <= ln N <= floor(q x^2) ln(2 k N levels + 1) for ||W^T||_{2,1} <= B_w,"
    " ||x_i||_2 <= B_x, s = floor(x^2 / 4)",
    over={"x": Box(1, 100), "points": Integers(1, 10**6)},
    cases=draw.grid(x=(1.0, 2.0, 3.0, 5.0, 10.0, 30.0), points=(1, 4, 100, 10**6)),
    evaluate=_sizes,
    judges=(lemma_3_5_explicit, lemma_3_5_sharp, lemma_3_5_corrected_leading, packing_of_points),
    sizes=({"largest": 10**6},),
    assumptions="one row on N orthonormal points with d >= N; a packing bounds the cover's size "
    "from below",
    forms=(
        Form(
            name="corrected, leading term",
            note="The leading term of the bound is x^2 ln(kN), with norms over rows and the hidden "
            "constant 1. The packing of this check does not refute this term.",
            hypotheses=lambda i, size: {"N >= 4": i["points"] >= 4},
        ),
        Form(
            name="derived",
            note="The cover sorts the rows into levels (ranges of their norms). The bound uses q = "
            "2 for the ratio of neighbouring levels.",
        ),
        Form(
            name="sharpened",
            note="The bound on ln N is the smallest value over six ratios q of neighbouring levels "
            "(ranges of row norms). For N points the bound is nearly x^2 ln(2 k N levels + 1).",
        ),
    ),
    control="a tenth of the sharpened size",
    source="Lemma 3.5, from Edelman et al. (2022), Lemma 4.6",
)

STATEMENTS = (LEMMA_3_5_COVER, LEMMA_3_5_COUNT, LEMMA_3_5_SIZE)
