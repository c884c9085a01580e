"""Statements of Appendix A.1: Lipschitz bounds and covering numbers of the Transformer."""

import itertools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Sides, Size, stacked
from jaxbounds.numerics.norms import spectral_norm, vector_norm
from jaxbounds.qstr import bounds, excess, rnn_bounds
from jaxbounds.qstr.statements.common import reals, searched, searched_on_host, zeros
from jaxbounds.qstr.statements.lipschitz import WEIGHTS, predict
from jaxbounds.qstr.transformer import SparseTransformer, attention

_ATTENTIONS = reals("z: N De, W: H De De, moved: H De De")


def _pair_case(size: Size) -> Instance:
    case = zeros(_ATTENTIONS, size)
    case["z"][:, ::2, 0], case["z"][:, 1::2, 0] = 2.0, -2.0
    case["moved"][..., 0, 0] = 1e-4
    return case


def _attention_lipschitz(i: Instance, size: Size) -> Sides:
    z, W, moved, De = i["z"], i["W"], i["moved"], size["De"]
    change = [attention(z, W[h]) - attention(z, moved[h]) for h in range(size["H"])]
    difference = jnp.moveaxis(W - moved, 0, 1).reshape(De, size["H"] * De)
    bound = lambda factor: bounds.attention_lipschitz(difference, z, factor=factor)
    return Sides(
        lhs=jnp.max(vector_norm(jnp.concatenate(change, axis=1))),
        rhs={"printed": bound(2.0), "sharpened": bound(1.0), "control": bound(0.1)},
        error=1e-14 * jnp.max(vector_norm(z)),
    )


ATTENTION_LIPSCHITZ = searched(
    id="qstr.lem15",
    label="Lemma 15 (proof)",
    formula="sup |f(p; Th) - f(p; Th')| <= 2 r_z^2 sup_j |(Th - Th')^T z_j|",
    tex=r"\sup_{p, j \in S_n} \left\| f_{\mathrm{Attn}}^{(H)}(p; \Theta_{\mathrm{QK}})_j - "
    r"f_{\mathrm{Attn}}^{(H)}(p; \hat\Theta_{\mathrm{QK}})_j \right\|_2 \le 2 r_z^2 "
    r"\sup_{p, j \in S_n} \left\| \Theta_{\mathrm{QK}}^\top z_j - "
    r"\hat\Theta_{\mathrm{QK}}^\top z_j \right\|_2",
    judges=(bounds.attention_lipschitz, attention),
    over=_ATTENTIONS,
    cases=_pair_case,
    evaluate=_attention_lipschitz,
    forms=(
        Form(
            name="printed",
            cites="Lemma 15, proof, last display",
            note="The proof uses |softmax(u) - softmax(v)|_1 <= 2 |u - v|_inf.",
        ),
        Form(
            name="sharpened",
            equality="infinitesimally close weights, two opposite tokens sharing the attention",
            note="The factor 1 in place of 2 suffices. The derivative diag(p) - p p^T of softmax "
            "maps s in [-1, 1]^N to a "
            "vector of l_1 norm at most 4 a (1 - a) <= 1. Here a is the mass that p gives to "
            "the entries s = 1.",
        ),
    ),
    control="factor 1/10",
    sizes=({"N": 4, "De": 3, "H": 2},),
    source="Lemma 15; [EGKZ22, Corollary A.7]",
)


_NETWORK = reals("z: N De") | WEIGHTS


def _aligned_case(size: Size) -> Instance:
    case = zeros(_NETWORK, size)
    case["z"][..., 0] = case["a"][:, 0] = case["W"][:, 0, :: size["De"]] = 1.0
    return case


def _prediction(i: Instance, size: Size) -> Sides:
    H, z = size["H"], i["z"]
    predicted = predict({name: i[name] for name in WEIGHTS}, z, size)
    bound = lambda **options: bounds.prediction_bound(i["a"], i["W"], i["b"], z, **options)
    return Sides(
        lhs=jnp.max(jnp.abs(predicted)),
        rhs={
            "printed": bound(heads=H),
            "sharpened": bound(heads=H, norm=spectral_norm),
            "control": bound(heads=1),
        },
    )


_ALIGNED = "one unit, all tokens equal and aligned with its weights"
PREDICTION = searched(
    id="qstr.lem20.value",
    label="Lemma 20 (size of a prediction)",
    formula="|yhat_i| <= |a| (|W|_F sqrt(H) max|z_l| + |b|)",
    tex=r"|\hat y_{\mathrm{TR}}(p; \Theta)_i| \le \|a_{\mathrm{2NN}}\|_2 \left( \sqrt{H} "
    r"\|W_{\mathrm{2NN}}\|_F \max_l \|z_l\|_2 + \|b_{\mathrm{2NN}}\|_2 \right)",
    judges=(bounds.prediction_bound, SparseTransformer.__call__),
    over=_NETWORK,
    cases=_aligned_case,
    evaluate=_prediction,
    forms=(
        Form(
            name="printed",
            cites="Lemma 20, proof: the bound of |yhat_TR(p; Theta)_j|",
            equality=_ALIGNED,
        ),
        Form(
            name="sharpened",
            equality=_ALIGNED,
            note="In the bound on a prediction, the operator norm of W replaces the Frobenius "
            "norm.",
        ),
    ),
    control="sqrt(H) dropped",
    sizes=({"N": 3, "De": 3, "H": 4, "m": 2},),
    source="Lemma 20, proof",
)


def _assembly_cases(size: Size) -> Instance:
    grid = itertools.product((1, 3), (2, 4), (5, 50), (2.0, 6.0), (100, 10_000))
    return stacked(dict(zip(("q", "d", "m", "r", "n"), row)) for row in grid)


def _assembly(i: Instance, size: Size) -> Sides:
    q, d, m, n = (int(i[name]) for name in ("q", "d", "m", "n"))
    r, De = float(i["r"]), d + q
    r_QK, two_layer = q / d, m * q * De  # R = e - 1, eps = 1: so the logarithm is 1
    whole = bounds.transformer_log_covering_rate(
        1.0, m=m, H=q, De=De, R=math.e - 1, r_a=1.0, R_w=1.0, r_z=r, r_QK=r_QK
    )
    attended: dict[str, Any] = {"r_z": r, "H": q, "De": De}
    parts = (
        bounds.query_key_log_covering_rate(r**-2, radius_21=q * r_QK, **attended),
        bounds.query_key_log_covering(r**-2, radius=math.sqrt(q) * r_QK, **attended),
    )
    over_tokens = bounds.column_log_covering_rate(
        r**-2, radius_21=q * r_QK, positions=n, **attended
    )
    setting = excess.Setting(N=n, d=d, q=q)
    tokens = excess.largest_token_moment(N=n, d=d)
    moment = excess.prediction_moment(setting, heads=q, slope=r)
    interval: dict[str, Any] = {"r_z": r, "radius": float(n), "H": 1, "De": 1}
    whole_risk = bounds.transformer_excess_rate(n, q=q, d=d, m_g=m, r_a=1.0, r_w=1.0, r_x=r)
    discretised = 1 / n + math.sqrt(2 * m * math.log1p(r * d * n) / n)
    exponent = rnn_bounds.sample_exponent(depth=d, width_exponent=0.3, repaired=q == 1)
    gained = math.log(n) if q == 1 else math.log(n / n**0.3)  # the gain of N / log dh at N = n
    return Sides.pairs(
        {
            "derived Theorem 9": (gained / d, 3 * exponent * math.log(n)),
            "derived Lemma 16": (
                math.log(math.ceil(n * r)),
                bounds.query_key_log_covering(1.0, **interval),
            ),
            "derived Lemma 16 with log(nN)": (
                over_tokens,
                (r**3 * q * r_QK) ** 2 * math.log(2 * q * De**2) * math.log(n),
            ),
            "derived Lemma 20": ((moment / r) ** 2 - 1, q * tokens + d * (q + 1)),
            "derived Proposition 17": (whole, two_layer + min(parts)),
            "derived Theorem 10": (whole_risk, q * r**2 * math.sqrt(whole / n)),
            "derived Lemma 32": (bounds.rnn_excess_rate(n, parameters=m, N=d, R=r), discretised),
            "control": (whole, two_layer),
        }
    )


ASSEMBLY = searched_on_host(
    id="qstr.prop17.assembly",
    label="Lemmas 16, 20 and 32, Proposition 17, Theorems 9 and 10 (how they follow)",
    formula="Lemma 16 at eps/(L_f r_z^2) gives Proposition 17, and that at eps = 1 Theorem 10",
    tex=r"\log \mathcal{C}(\mathcal{F}_{\mathrm{TR}}, \epsilon) \lesssim m_g H D_e "
    r"\log(1 + R / \epsilon) + \min\left(\frac{r_z^6 r_{m,a}^2 R_{m,w}^2 H^2 "
    r"r_{\mathrm{QK}}^2 \log(H D_e^2)}{\epsilon^2}, H D_e^2 \log\left(1 + \frac{\sqrt{H} "
    r"r_{\mathrm{QK}} r_z^3 r_{m,a} R_{m,w}}{\epsilon}\right)\right)",
    kind="inequality",
    judges=(
        bounds.query_key_log_covering,
        bounds.query_key_log_covering_rate,
        bounds.column_log_covering_rate,
        excess.prediction_moment,
        bounds.transformer_log_covering_rate,
        bounds.transformer_excess_rate,
        bounds.rnn_excess_rate,
        rnn_bounds.sample_exponent,
    ),
    cases=_assembly_cases,
    evaluate=_assembly,
    project=lambda i, size: {**i, "r": np.clip(i["r"], 2.0, 10.0)},
    hypotheses=lambda i, size: {"r >= 2 (logarithms at least 1)": i["r"] >= 2},
    forms=(
        Form(
            name="derived Theorem 9",
            equality="always",
            note="Theorem 9 needs a memorising network's squared norm n^3 = N^{3 c_1} below the "
            "lower bound (N / log dh)^{1/L_y}. At the largest exponent c_1 the two numbers are "
            "equal. The repaired lower bound is N^{1/L_y}.",
        ),
        Form(
            name="derived Lemma 16",
            note="At H = De = 1, the exact covering number of an interval is ceil(R r_z / eps).",
        ),
        Form(
            name="derived Lemma 16 with log(nN)",
            equality="always",
            note=(
                "The first branch of Lemma 16's minimum, with the factor log(nN), is a true "
                "bound at eps = r_z^-2 and R_{2,1} = H r_QK."
            ),
        ),
        Form(
            name="derived Lemma 20",
            equality="always",
            note="The H = q heads attend to q tokens of squared norm |x_j|^2 + d (1 + 1/q), so the "
            "bound of qstr.lem20 applies.",
        ),
        Form(
            name="derived Proposition 17",
            note="This version of the claim combines Lemmas 13 and 15 with R_{2,1} = H r_QK. If "
            "||.||_{2,1} sums over columns, the norm of the heads side by side is the sum of the "
            "heads' norms.",
        ),
        Form(
            name="derived Theorem 10",
            note="This version of the claim takes H = q, De = d + q and r_QK = q/d, and assumes r "
            ">= 2, so that the logarithms are at least 1.",
        ),
        Form(
            name="derived Lemma 32",
            note="This version of the claim applies Massart's lemma to a cover at scale eps = 1/n, "
            "with the bound R on the norms of a single layer.",
        ),
    ),
    control="Proposition 17 without its attention part",
    sizes=({},),
    source="Lemmas 13, 15, 16, 20, 31, 32, Proposition 17, Theorems 9 and 10",
)

STATEMENTS = (ATTENTION_LIPSCHITZ, PREDICTION, ASSEMBLY)
