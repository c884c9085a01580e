"""Statements that compare the printed orders of growth with bounds from the paper's lemmas.

Proposition 17, Lemmas 18, 20, 32 and 34, Corollaries 19, 31 and 33, and Theorems 4, 7 and 10 hide
their constants. The lemmas of the proofs give explicit bounds. Each check lets one parameter of the
problem grow, and compares the growth of the explicit bound with the printed order. If the explicit
bound grew faster, the lemmas would not prove the printed order.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import bounds, covers, excess, theorems
from jaxbounds.qstr.links import LINKS

STEPS = 8
"""Each check doubles its growing parameter this many times; n grows 4-fold each time. A larger
number takes more time.
"""
SAMPLES = 2.0**80
"""The number n of prompts at the start, before a parameter is doubled. A larger number makes every
bound smaller, compared with the trivial bound."""

Pair = tuple[float, float]


def _moved(base: dict[str, float], letter: str, k: int) -> dict[str, float]:
    """Return the parameters, one doubled k times (n: multiplied by 4; eps and delta: halved)."""
    factor = {"n": 4.0, "eps": 0.5, "delta": 0.5}.get(letter, 2)
    return base | {letter: base[letter] * factor**k}


def _forms(
    letters: dict[str, tuple[float, float]], cites: str, prefix: str = ""
) -> tuple[Any, ...]:
    return tuple(
        Form(
            name=f"printed {prefix}{letter}",
            cites=cites,
            sense="at least" if letter == "n" else "at most",
            exponent=band,
        )
        for letter, band in letters.items()
    )


_order = functools.partial(
    Statement, kind="rate", host=True, cases=lambda size: {"k": np.arange(STEPS)}, sizes=({},)
)
_CLASS = {"m": 64, "H": 4, "De": 64, "eps": 2.0**-20, "n": SAMPLES, "tau": 4.0}


def _class(g: dict[str, float]) -> covers.TransformerClass:
    return covers.TransformerClass(
        m=int(g["m"]), H=int(g["H"]), De=int(g["De"]), r_a=1.0, R_w=1.0, r_QK=8.0, r_z=16.0
    )


def _log_covering(g: dict[str, float]) -> Pair:
    f = _class(g)
    printed = bounds.transformer_log_covering_rate(
        g["eps"], m=f.m, H=f.H, De=f.De, R=f.reach, r_a=f.r_a, R_w=f.R_w, r_z=f.r_z, r_QK=f.r_QK
    )
    return float(covers.transformer_log_covering(g["eps"], f)), printed


def _uniform(g: dict[str, float]) -> tuple[float, float, float]:
    """Return bounds on the Rademacher complexity and generalization gap, and the printed order.

    The printed order is tau times the square root of p log(np) / n, with p = m H De + H De^2.
    """
    f = _class(g)
    covering = lambda eps: covers.transformer_log_covering(eps, f)
    sizes = f.m * f.H * f.De + f.H * f.De**2
    printed = g["tau"] * math.sqrt(sizes * math.log(g["n"] * sizes) / g["n"])
    rademacher = excess.truncated_rademacher(covering, g["n"], tau=g["tau"])
    gap = excess.truncated_gap(covering, g["n"], tau=g["tau"], delta=0.01, sharp=False)
    return rademacher, gap, printed


def _coverings(i: Instance, size: Size) -> Sides:
    k, pairs = int(i["k"]), dict[str, Pair]()
    for letter in ("m", "H", "De", "eps"):
        pairs[f"printed Proposition 17, {letter}"] = _log_covering(_moved(_CLASS, letter, k))
    grown = pairs["printed Proposition 17, m"][0]
    return Sides.pairs(pairs | {"control": (grown, 2.0 ** (k / 8))})


def _uniform_pairs(name: str, side: int) -> Callable[..., Sides]:
    def sides(i: Instance, size: Size) -> Sides:
        k, pairs = int(i["k"]), dict[str, Pair]()
        for letter in _OF_UNIFORM:
            found = _uniform(_moved(_CLASS, letter, k))
            pairs[f"printed {name}, {letter}"] = found[side], found[-1]
        grown = pairs[f"printed {name}, m"][0]
        return Sides.pairs(pairs | {"control": (grown, 2.0 ** (k / 8))})

    return sides


_OF_UNIFORM = {
    "m": (0.5, 1.0), "H": (0.9, 1.02), "De": (0.9, 1.02), "tau": (0.9, 1.05), "n": (1.0, 1.05),
}  # fmt: skip
"""A dictionary from each growing parameter to the least and largest exponents of growth that the
checks of Lemma 18 and Corollary 19 accept.
"""

COVERINGS = _order(
    id="qstr.prop17.order",
    label="Proposition 17 (order)",
    formula="log C = O(m_g H De log(1 + R / eps) + H De^2 log(1 + poly(R) / eps))",
    tex=r"\log \mathcal{C} \lesssim m_g H D_e \log(1 + R/\epsilon) + H D_e^2 \log(\cdot)",
    judges=(bounds.transformer_log_covering_rate, covers.transformer_log_covering),
    evaluate=_coverings,
    forms=_forms(
        {"m": (0.5, 1.0), "H": (0.9, 1.02), "De": (0.9, 1.02), "eps": (0.9, 1.02)},
        "Proposition 17, Appendix A.1",
        "Proposition 17, ",
    ),
    control="log C at most of the order m^{1/8}",
    assumptions="formulas only; poly(R) = (H r_z^2 + 1)^{1/2}; the printed minimum of two branches "
    "is its second one here, H De^2 log(..), which is true (E9)",
    source="Proposition 17",
)

_ONE_LOGARITHM = "formulas only; C_1 + C_3, the branch of Lemma 16 that is true, and one logarithm"

RADEMACHER = _order(
    id="qstr.lem18.order",
    label="Lemma 18 (order)",
    formula="Rad_n = O~(tau sqrt((m_g H De + H De^2) / n))",
    tex=r"\mathfrak{R}_n(\mathcal{L}_\tau) \le "
    r"\tilde O\left(\tau \sqrt{\frac{m_g H D_e + H D_e^2}{n}}\right)",
    judges=(covers.transformer_log_covering, excess.truncated_rademacher),
    evaluate=_uniform_pairs("Lemma 18", 0),
    forms=_forms(_OF_UNIFORM, "Lemma 18, Appendix A.1", "Lemma 18, "),
    control="the complexity at most of the order m^{1/8}",
    assumptions=_ONE_LOGARITHM,
    source="Lemma 18",
)

GAP = _order(
    id="qstr.cor19.order",
    label="Corollary 19 (order)",
    formula="R_tau - hat R_tau = O~(tau sqrt((m_g H De + H De^2) / n)) "
    "+ O(tau sqrt(log(1/delta) / n))",
    tex=r"R_\tau - \hat R_\tau \le "
    r"\tilde O\left(\tau \sqrt{\frac{m_g H D_e + H D_e^2}{n}}\right) "
    r"+ O\left(\tau \sqrt{\frac{\log(1/\delta)}{n}}\right)",
    judges=(covers.transformer_log_covering, excess.truncated_gap),
    evaluate=_uniform_pairs("Corollary 19", 1),
    forms=_forms(_OF_UNIFORM, "Corollary 19, Appendix A.1", "Corollary 19, "),
    control="the gap at most of the order m^{1/8}",
    assumptions=f"{_ONE_LOGARITHM}; delta = 1/100, whose term is left out of the right side: a "
    "smaller right side is harder to stay below",
    source="Corollary 19",
)


_RNN = {"p": 256, "N": 64, "R": 4.0, "eps": 2.0**-20, "n": SAMPLES, "tau": 4.0, "delta": 2.0**-4}


def _recurrent_covering(g: dict[str, float]) -> Callable[[Any], Any]:
    lipschitz = covers.recurrent_lipschitz(
        g["R"], N=int(g["N"]), r_z=g["R"], r_h=g["R"], depth_y=2, depth_h=2
    )
    return lambda eps: covers.ball_log_covering(
        eps, parameters=int(g["p"]), radius=g["R"], lipschitz=float(lipschitz)
    )


def _recurrent(i: Instance, size: Size) -> Sides:
    k, pairs = int(i["k"]), dict[str, Pair]()
    for letter in ("p", "N", "R", "eps"):
        g = _moved(_RNN, letter, k)
        printed = g["p"] * math.log1p(g["R"] ** 6 * g["N"] / g["eps"])
        pairs[f"printed Corollary 31, {letter}"] = float(_recurrent_covering(g)(g["eps"])), printed
    for letter in ("n", "p", "tau"):
        g = _moved(_RNN, letter, k)
        rademacher = excess.truncated_rademacher(_recurrent_covering(g), g["n"], tau=g["tau"])
        gap = excess.truncated_gap(
            _recurrent_covering(g), g["n"], tau=g["tau"], delta=g["delta"], sharp=False
        )
        printed = bounds.rnn_excess_rate(
            g["n"], parameters=int(g["p"]), N=int(g["N"]), R=g["R"], tau=g["tau"]
        )
        tail = g["tau"] * math.sqrt(math.log(1 / g["delta"]) / g["n"])
        pairs[f"printed Lemma 32, {letter}"] = rademacher, printed
        pairs[f"printed Corollary 33, {letter}"] = gap, printed + tail
    flat = pairs["printed Lemma 32, p"][0]
    return Sides.pairs(pairs | {"control": (flat, 2.0 ** (k / 4))})


RECURRENT = _order(
    id="qstr.cor31.order",
    label="Corollary 31, Lemma 32, Corollary 33 (orders)",
    formula="log C <= p log(1 + poly(R) N/eps), Rad_n = O(tau sqrt(p log(R N n tau) / n)), and the "
    "gap = O(tau sqrt(p log(R N n tau) / n) + tau sqrt(log(1/delta) / n))",
    tex=r"\log \mathcal{C}(\mathcal{F}_{\mathrm{RNN}}, d_\infty, \epsilon) \le p \log(1 + "
    r"\mathrm{poly}(R) N / \epsilon), \quad \hat{\mathfrak{R}}_n \le O\left(\tau \sqrt{\frac{p "
    r"\log(R N n \tau)}{n}}\right), \quad R_\tau - \hat R_\tau \le O\left(\tau \sqrt{\frac{p "
    r"\log(R N n \tau)}{n}} + \tau \sqrt{\frac{\log(1/\delta)}{n}}\right)",
    judges=(
        bounds.rnn_excess_rate,
        covers.recurrent_lipschitz,
        covers.ball_log_covering,
        excess.truncated_rademacher,
        excess.truncated_gap,
    ),
    evaluate=_recurrent,
    forms=(
        *_forms(
            {"p": (0.99, 1.01), "N": (0.5, 1.1), "R": (0.5, 1.1), "eps": (0.9, 1.02)},
            "Corollary 31, Appendix C.2",
            "Corollary 31, ",
        ),
        *_forms(
            {"n": (0.98, 1.05), "p": (0.9, 1.02), "tau": (0.9, 1.05)},
            "Lemma 32, Appendix C.2",
            "Lemma 32, ",
        ),
        *_forms(
            {"n": (0.98, 1.05), "p": (0.9, 1.02), "tau": (0.9, 1.05)},
            "Corollary 33, Appendix C.2",
            "Corollary 33, ",
        ),
    ),
    control="the complexity at most of the order p^{1/4}",
    assumptions="formulas only; depth 2, r_z = r_h = R, poly(R) = R^6",
    source="Corollary 31, Lemma 32, Corollary 33",
)  # fmt: skip

_PROBLEM = {"n": SAMPLES, "N": 1024, "q": 4, "d": 8, "m": 8}
_WIDE = {"q": {"d": 8, "q": 64}, "d": {"q": 4, "d": 256}, "m": {"q": 4, "d": 8}}
"""A dictionary from each growing parameter to start values of q, d or m at which the bound's term
with this parameter is the largest term."""
_EPS = 2.0**-80
"""The largest allowed squared error of the attention, relative to the variance of the label. A
larger value allows a class of smaller norms."""


def _problem(letter: str, k: int) -> tuple[excess.Setting, dict[str, float]]:
    g = _moved(_PROBLEM | _WIDE.get(letter, {}), letter, k)
    return excess.Setting(N=int(g["N"]), d=int(g["d"]), q=int(g["q"])), g


_NETWORK: dict[str, Any] = {"de": 32, "r_a": 1.0, "r_w": 1.0, "eps": _EPS}


def _shape(setting: excess.Setting, m: int) -> dict[str, Any]:
    return {"q": setting.q, "d": setting.d, "m_g": m, "eps_2nn": 0.0, "approximation": 1.0}


def _theorem_10(i: Instance, size: Size) -> Sides:
    k, pairs = int(i["k"]), dict[str, Pair]()
    for letter in ("n", "q", "d", "m"):
        setting, g = _problem(letter, k)
        n, m = g["n"], int(g["m"])
        r_x = bounds.token_radius(n=int(n), N=setting.N, d=setting.d)
        found = theorems.theorem_10_explicit(n, setting, m=m, **_NETWORK)
        logs = math.log(n * setting.N * setting.q * setting.d * m)
        pairs[f"printed {letter}"] = (
            found,
            theorems.theorem_10(
                n, r_a=1.0, r_w=1.0, r_x=r_x, estimation=logs, **_shape(setting, m)
            ),
        )
    slow = pairs["printed n"][0]
    return Sides.pairs(pairs | {"control": (slow, 1 / (4.0**k * SAMPLES))})


def _theorem_4(i: Instance, size: Size) -> Sides:
    k, pairs = int(i["k"]), dict[str, Pair]()
    for letter in ("n", "q", "d", "m"):
        setting, g = _problem(letter, k)
        n, m = g["n"], int(g["m"])
        R, _ = theorems.least_radius(n, setting, m=m, **_NETWORK)
        found = theorems.theorem_4_explicit(n, setting, m=m, **_NETWORK)
        logs = math.log(n * setting.N * setting.q * setting.d * m)
        pairs[f"printed {letter}"] = (
            found,
            theorems.theorem_4(n, R=R, estimation=logs**2, power=4, **_shape(setting, m)),
        )
    slow = pairs["printed n"][0]
    return Sides.pairs(pairs | {"control": (slow, 1 / (4.0**k * SAMPLES))})


_FORMULAS = (
    "formulas only: no data and no minimiser stands behind them; r_a = r_w = 1, de = 32, eps_2NN = "
    "0; within O~ "
)
_TEX = (
    r"R^{\mathrm{TR}}(\hat\Theta) \lesssim \epsilon_{\mathrm{2NN}} + \tilde O\left(C_1 "
    r"\sqrt{\frac{m_g q (d + q) + q^3 + q d^2}{n}}\right)"
)

THEOREM_10 = _order(
    id="qstr.thm10.order",
    label="Theorem 10 (orders in n, q, d and m_g)",
    formula="R = O(eps_2NN) + O~(C_1 sqrt((m_g q (d + q) + q (q^2 + d^2)) / n)), C_1 = q r_a^2 "
    "r_w^2 r_x^2",
    tex=_TEX,
    judges=(
        theorems.theorem_10,
        theorems.theorem_10_explicit,
        bounds.transformer_excess_rate,
        bounds.token_radius,
    ),
    evaluate=_theorem_10,
    forms=_forms(
        {"n": (1.0, 1.05), "q": (0.9, 1.02), "d": (0.7, 1.02), "m": (0.2, 1.0)},
        "Theorem 10, Appendix A.1",
    ),
    control="1/n",
    assumptions=_FORMULAS + "one logarithm",
    source="Theorem 10",
)

THEOREM_4 = _order(
    id="qstr.thm4.order",
    label="Theorem 4 (orders in n, q, d and m_g)",
    formula="R = O(eps_2NN) + O~(C_1 sqrt((m_g q (d + q) + q^3 + q d^2) / n)), C_1 = R^4 q d",
    tex=_TEX,
    judges=(theorems.theorem_4, theorems.theorem_4_explicit, theorems.least_radius),
    evaluate=_theorem_4,
    forms=_forms(
        {"n": (1.0, 1.1), "q": (0.9, 1.02), "d": (0.5, 1.02), "m": (0.2, 1.0)},
        "Theorem 4, Section 3.2; R^4 as Appendix A has it, where the text at hand reads R^2 (E12)",
    ),
    control="1/n",
    assumptions=_FORMULAS + "two logarithms; the least R at which the class holds Lemma 11's "
    "network",
    source="Theorem 4",
)


@functools.lru_cache
def _rnn_class(setting: excess.Setting, de: int) -> excess.RecurrentClass:
    link = LINKS["linear"]
    assert link.two_layer is not None
    network = link.two_layer(link.init(jax.random.key(0), setting.q, setting.d))
    return excess.recurrent_class(setting, network, de=de)


def _recurrent_theorem(i: Instance, size: Size) -> Sides:
    k, pairs = int(i["k"]), dict[str, Pair]()
    degrees = {"n": (20, 0), "N": (28, 0), "q": (20, 16), "d": (20, 26)}
    for letter, (of_logs, of_size) in degrees.items():
        base = {"n": SAMPLES, "N": 64, "q": 1, "d": 2}
        g = _moved(base, letter, k if letter == "n" else k // (1 if letter == "N" else 2))
        setting = excess.Setting(N=int(g["N"]), d=int(g["d"]), q=int(g["q"]))
        de = math.ceil(16 * math.log(g["N"]))
        found = theorems.theorem_7_explicit(g["n"], setting, _rnn_class(setting, de))
        unit: float = g.get(letter, 1.0) ** of_size if of_size else 1.0
        pairs[f"printed {letter}"] = found, theorems.theorem_7(
            g["n"], N=setting.N, eps_2nn=0.0, approximation=1.0,
            polynomial=lambda logs, unit=unit, of_logs=of_logs: unit * logs**of_logs,  # type: ignore[misc]
        )  # fmt: skip
    slow = pairs["printed n"][0]
    return Sides.pairs(pairs | {"control": (slow, 1 / (4.0**k * SAMPLES))})


RECURRENT_THEOREM = _order(
    id="qstr.thm7.order",
    label="Theorem 7 (orders in n, N, q and d)",
    formula="R = O(eps_2NN) + sqrt(poly(d, q, m_g, r_a, r_w, log(nN)) / n)",
    tex=r"R^{\mathrm{RNN}}(\hat\Theta) \lesssim \epsilon_{\mathrm{2NN}} + \sqrt{\frac{\mathrm{poly}"
    r"(d, q, m_g, \epsilon_{\mathrm{2NN}}^{-1}, r_a, r_w, \log(nN))}{n}}",
    judges=(theorems.theorem_7, theorems.theorem_7_explicit, excess.recurrent_class),
    evaluate=_recurrent_theorem,
    forms=_forms(
        {"n": (1.0, 1.2), "N": (0.5, 1.0), "q": (0.5, 1.0), "d": (0.5, 1.0)},
        "Theorem 7, Section 5.1",
    ),
    control="1/n",
    assumptions="formulas only; the linear link, de = 16 log N; polynomials of degree 20 in log n, "
    "28 in log N, 16 in q and 26 in d",
    source="Theorem 7",
)

_LAST = {"n": SAMPLES, "N": 64, "q": 2, "d": 4}


def _truncations(i: Instance, size: Size) -> Sides:
    k = int(i["k"])
    g: dict[str, Any] = _moved(_LAST, "n", k)
    setting = excess.Setting(N=g["N"], d=g["d"], q=g["q"])
    tail = 2.0 * math.log(g["n"])
    of_transformer = excess.prediction_moment(setting, heads=setting.q, slope=4.0)
    tokens = excess.largest_token_moment(N=setting.N, d=setting.d)
    of_rnn = 4.0**2 * math.sqrt(2.0 * setting.q * tokens + tokens + setting.q + 1) + 4.0
    lost = lambda fourth: excess.truncation_error(setting, tail=tail, fourth=fourth)
    root = g["n"] ** -0.5
    return Sides.pairs(
        {
            "printed Lemma 20": (lost(of_transformer), root),
            "printed Lemma 34": (lost(of_rnn), root),
            "control": (lost(of_transformer) * g["n"] ** 0.6, root),
        }
    )


TRUNCATIONS = _order(
    id="qstr.lem20.order",
    label="Lemmas 20 and 34 (the order in n)",
    formula="R - R_tau = O(n^{-1/2}) where the radii are exceeded with probability n^-2",
    tex=r"R(\hat\Theta) - R_\tau(\hat\Theta) \lesssim \sqrt{1/n}",
    judges=(excess.truncation_error, excess.prediction_moment, excess.largest_token_moment),
    evaluate=_truncations,
    forms=tuple(
        Form(
            name=f"printed {lemma}", cites=f"{lemma}, its display", sense="at least",
            exponent=(1.9, 2.1),
            note=(
"The truncation level tau is of order log(n). By the Cauchy-Schwarz inequality, the error has the "
"factor exp(-tail/2) = 1/n."
),
        )
        for lemma in ("Lemma 20", "Lemma 34")
    ),
    control="the loss as a share of n^{-3/5}",
    assumptions="formulas only; the radii of qstr.lem20, slope 4, R = 4 for the RNN",
    source="Lemmas 20 and 34",
)  # fmt: skip

STATEMENTS = (
    COVERINGS, RADEMACHER, GAP, RECURRENT, THEOREM_10, THEOREM_4, RECURRENT_THEOREM, TRUNCATIONS,
)  # fmt: skip
