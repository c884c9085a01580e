"""Statements about covers of Theorem 4's class: Lemmas 14 and 16, Proposition 17."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import bounds, covers, packing
from jaxbounds.qstr.statements.common import searched_on_host

_CLASSES = {
    "m": Integers(1, 19), "H": Integers(1, 3), "De": Integers(2, 39), "r_a": Box(0.5, 3),
    "R_w": Box(0.5, 3), "r_QK": Box(1, 20), "r_z": Box(1, 9),
}  # fmt: skip


def _sizes_of_covers(i: Instance, size: Size) -> Sides:
    eps = math.exp(i["log_eps"])
    f = covers.TransformerClass(**{name: i[name].item() for name in _CLASSES})
    of_a, of_w, of_heads = f.parameters
    slope, r = f.r_a * f.R_w, f.r_z
    two = of_a + of_w
    L, R = slope * math.sqrt(f.H * r**2 + 1), math.sqrt(f.H) * f.r_QK
    share = of_heads / (two + of_heads)
    # A ball of parameters has ((R + e/2) / (e/2))^p cells; this code calls no function of `covers`.
    ball = lambda p, radius, moved: p * math.log((radius + moved / 2) / (moved / 2))
    left = (1 - share) * eps
    moved_a, moved_w = (left * p / two for p in (of_a, of_w))
    by_hand = ball(of_a, f.r_a, moved_a / (f.R_w * L / slope)) + ball(
        of_w, f.R_w, moved_w / (f.r_a * L / slope)
    )
    heads = ball(of_heads, R, share * eps / (slope * r**2) / r)
    printed = f.m * f.H * f.De * math.log1p(2 * (f.H * f.De + 2) * L / eps)
    one: dict[str, Any] = {"parameters": two, "radius": 1.0, "lipschitz": 2.0 * L}
    even = covers.ball_log_covering(eps, **one)
    exact = math.log(math.ceil(2.0 / eps))
    line = covers.ball_log_covering(eps, parameters=1, radius=2.0, lipschitz=1.0)
    own = covers.two_layer_log_covering(left, f)
    return Sides.pairs(
        {
            "printed": (covers.two_layer_log_covering(eps, f), printed * (1 + 2 / (f.H * f.De))),
            "derived": (own, by_hand * (1 + 1e-12)),
            "derived split": (covers.two_layer_log_covering(eps, f), even),
            "derived Proposition 17": (
                covers.transformer_log_covering(eps, f), (by_hand + heads) * (1 + 1e-12),
            ),
            "derived interval": (exact, line),
            "control": (by_hand + heads, own),
        }
    )  # fmt: skip


COVERS = searched_on_host(
    id="qstr.prop17.explicit",
    label="Lemmas 14 and 16, Proposition 17 (sizes of covers)",
    formula="log C(F_TR, eps) <= sum over a, (W, b), Theta_QK of p log(1 + 2 R_p L_p / eps_p), eps "
    "split like the numbers of parameters",
    tex=r"\log \mathcal{C}(\mathcal{F}_{\mathrm{TR}}, \epsilon) \le \sum_{p} p \log\left(1 + "
    r"\frac{2 R_p L_p}{\epsilon_p}\right), \quad \epsilon_p = \frac{p}{\sum p} \epsilon",
    kind="inequality",
    judges=(
        covers.two_layer_log_covering,
        covers.transformer_log_covering,
        covers.ball_log_covering,
        bounds.query_key_log_covering,
    ),
    over={**_CLASSES, "log_eps": Box(-9, -1)},
    evaluate=_sizes_of_covers,
    forms=(
        Form(
            name="printed",
            cites="Lemma 14: m_g H De log(1 + poly(R)/eps)",
            note="The polynomial is poly(R) = 2 (H De + 2) r_a R_w s, where s is the square root "
            "of H r_z^2 + 1. The class has m (H De + 2) parameters.",
        ),
        Form(
            name="derived",
            equality="always",
            note="The proof compares the volume of a ball of radius R + r/2 with the volume of "
            "balls of radius r/2.",
        ),
        Form(
            name="derived split",
            note=(
                "This version of the claim splits eps between the output weights a and the hidden "
                "layer (W, b) in proportion to their numbers of parameters. This split is never "
                "worse than eps/2 for each. The bound then reads m (H De + 2) log(1 + 4L/eps)."
            ),
        ),
        Form(
            name="derived Proposition 17",
            equality="always",
            note="The proof of Proposition 17 combines Lemmas 13, 15 and 16.",
        ),
        Form(
            name="derived interval",
            note="For p = 1 parameter, the smallest cover of [-R, R] has ceil(R L/eps) intervals.",
        ),
    ),
    control="Proposition 17 without its heads",
    sizes=({},),
    assumptions="m < 20, H < 4, De < 40, eps from e^-9 to 1/e",
    source="Lemmas 13, 14, 16, Proposition 17",
    budget=Budget(samples=16, restarts=4, steps=90),
)


N, DE = 12, 40
"""The number N of tokens in a prompt, and the dimension 16 log N of the encodings (Assumption
3)."""


def _branches(i: Instance, size: Size) -> Sides:
    d = int(i["d"])
    De = d + 2 * DE

    def of(bound: Callable[..., float], prompts: int, **options: Any) -> float:
        r_x = bounds.token_radius(n=prompts, N=N, d=d)
        r_z = float(bounds.encoded_radius(r_x, d=d, q=1))
        return bound(0.5 * r_x, r_z=r_z, H=1, De=De, **options)

    net, printed = 5**d, bounds.query_key_log_covering_rate
    by_columns = packing.volume_lower(d, 4.0 / 7.0)
    by_rows = packing.volume_lower(De, 0.5)
    over = lambda n: of(bounds.column_log_covering_rate, n, radius_21=1.0, positions=n * N)
    volume = lambda n: of(bounds.query_key_log_covering, n, radius=1.0)
    return Sides.pairs(
        {
            "printed first branch": (by_columns, of(printed, net, radius_21=1.0)),
            "printed first branch, rows": (by_rows, of(printed, 1, radius_21=1.0)),
            "corrected first branch": (by_columns, over(net)),
            "derived first branch, rows": (by_rows, over(1)),
            "printed second branch": (by_columns, volume(net)),
            "printed second branch, rows": (by_rows, volume(1)),
            "control": (by_rows * De**2, volume(1)),
        }
    )


_e9 = functools.partial(
    Form, expected="inconsistent", erratum="E9", sense="at most", exponent=(5.0, 12.0)
)
_SECOND = "Lemma 16: H De^2 log(1 + R_F r_z/eps)"
BRANCHES = Statement(
    id="qstr.lem16",
    label="Lemma 16 (its branches)",
    formula="log C({||Theta||_{2,1} <= 1}, r_x/2) <~ min(4 log(2 De^2), De^2 log 5), on encoded "
    "prompts",
    tex=r"\log \mathcal{C}\left(\left\{\|\Theta\|_{2,1} \le 1\right\}, d_\infty, "
    r"\frac{r_x}{2}\right) \lesssim \min\left(\frac{4 r_z^2}{r_x^2} \log(2 D_e^2), D_e^2 "
    r"\log\left(1 + \frac{4 r_z}{r_x}\right)\right)",
    kind="rate",
    judges=(
        bounds.query_key_log_covering,
        bounds.query_key_log_covering_rate,
        bounds.column_log_covering_rate,
        bounds.encoded_radius,
        packing.volume_lower,
    ),
    host=True,
    cases=lambda size: {"d": 2 ** np.arange(5, 14)},
    evaluate=_branches,
    forms=(
        _e9(
            name="printed first branch",
            cites="Lemma 16: r_z^2 R_{2,1}^2 log(2 H De^2) / eps^2",
            note=(
                "Here ||Theta||_{2,1} sums the norms of columns. The 5^d tokens are a net of "
                "fineness r_x/2 of the sphere of radius r_x. So the distance d_infty of u e_1^T "
                "and u' e_1^T is at least (7/8) r_x |u - u'|. If both matrices lie within eps of "
                "a common matrix, u and u' therefore differ by at most 8/7. So the log covering "
                "number is at least d log(7/4)."
            ),
        ),
        _e9(
            name="printed first branch, rows",
            cites="Lemma 16, were it ||Theta_QK^T||_{2,1}: rows",
            note="For x = r_x e_1 and Theta = e_1 v^T with any |v| <= 1, Theta^T z = v x_1. So a "
            "single token forces a log covering number of at least De log 2.",
        ),
        Form(
            name="corrected first branch",
            sense="at most",
            exponent=(0.8, 1.0),
            note="The corrected bound on the log covering number has the factor log(nN), which the "
            "paper omits. The norm ||Theta||_{2,1} sums the norms of columns.",
        ),
        _e9(
            name="derived first branch, rows",
            note=(
                "If ||Theta||_{2,1} sums the norms of rows, the factor log(nN) does not repair the "
                "bound, because a single prompt is a counterexample."
            ),
        ),
        Form(
            name="printed second branch",
            cites=_SECOND,
            sense="at most",
            exponent=(0.4, 0.75),
            note=(
                "The second branch of Lemma 16's minimum is a true bound if the argument of its "
                "logarithm includes 2 R_F r_z / eps (see qstr.prop17.assembly)."
            ),
        ),
        Form(
            name="printed second branch, rows",
            cites=_SECOND,
            sense="at most",
            exponent=(0.4, 0.6),
            note="The Frobenius norms of a matrix and of its transpose are equal.",
        ),
    ),
    control="De^2 times as many needed",
    sizes=({},),
    assumptions="q = H = 1, d from 32 to 8192, N = 12, de = 40, De = d + 80; encoded prompts (x; "
    "enc) on the event of Lemma 12, |x| <= r_x = sqrt(3 e d log(nN)) and r_z^2 = r_x^2 + 2d; the "
    "least covers by volume, with centres anywhere",
    source="Lemma 16",
)


STATEMENTS = (COVERS, BRANCHES)
