"""Statements about the size that a recurrent network needs (Propositions 8 and 35, Theorem 9)."""

import functools
import itertools
import math

import jax
import numpy as np

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement, stacked
from jaxbounds.qstr import rnn_bounds
from jaxbounds.qstr.code_rnn import (
    CodeRNN,
    code_rnn,
    encode_tokens,
    light_words,
    lloyd_max,
    number_rnn_lipschitz,
    read_token,
)
from jaxbounds.qstr.statements.common import cases_on_host, searched_on_host

BITS = 3
"""The number of bits to which each token's scalar is rounded; a larger number makes the quantiser
finer."""
CODE_SIZES = tuple({"N": N} for N in (2, 3, 4, 5))


@functools.lru_cache
def machine(seed: int, N: int, bits: int = BITS, redundancy: int = 8) -> CodeRNN:
    """Return the random-code RNN whose code is drawn with this seed."""
    return code_rnn(jax.random.key(seed), N, bits=bits, redundancy=redundancy)


REDUNDANCIES = (4, 6, 8, 12, 16)


def _least_frobenius(seed: int, N: int) -> float:
    found = (machine(seed, N, BITS, r) for r in REDUNDANCIES)
    return min((m.lipschitz * m.frobenius_norm) ** 2 for m in found)


def _norm_growth(i: Instance, size: Size) -> Sides:
    N, seed = size["N"], int(i["seed"])
    m, finer = machine(seed, N), machine(seed, N, 4)
    L = m.lipschitz
    needed = L**2 * rnn_bounds.repaired_norm_lower_bound(N=N, lipschitz=L)
    operator = lambda m: (m.lipschitz * m.operator_norm) ** 2
    claimed = lambda m: (
        m.lipschitz**2
        * rnn_bounds.printed_norm_lower_bound(N=N, lipschitz=m.lipschitz, width=m.width)
    )
    return Sides.pairs(
        {
            "printed": (operator(m), claimed(m)),
            "printed (4 bits)": (operator(finer), claimed(finer)),
            "corrected": (_least_frobenius(seed, N), needed),
            "control": (operator(m), needed),
        }
    )


_PROPOSITIONS_8_35 = "Proposition 8, Section 5.2; Proposition 35, Appendix C.3"
PROPOSITION_8 = cases_on_host(
    id="qstr.prop8",
    label="Propositions 8 and 35 (second bound)",
    formula="|U|_op^2 >= Omega(N/(L^2 log(1 + dh)))",
    tex=r"\|U\|_{\mathrm{op}}^2 \ge \Omega\left(\frac{N}{\mathfrak{L}^2 \log(1 + d_h)}\right)",
    kind="rate",
    judges=(code_rnn,),
    evaluate=_norm_growth,
    forms=(
        Form(
            name="printed",
            sense="at least",
            exponent=(0.0, 0.3),
            cites=f"{_PROPOSITIONS_8_35}: 'lower bounds on d_h and |U|_op'",
            expected="inconsistent",
            erratum="E14",
            reading="the operator norm",
            note="The random-code RNN of 3 bits has the mean squared error 0.0345 per token at "
            "every N. Its L^2 |U|_op^2 is bounded in N, but N/log(1 + dh) diverges.",
        ),
        Form(
            name="printed (4 bits)",
            sense="at least",
            exponent=(-0.1, 0.1),
            cites=_PROPOSITIONS_8_35,
            expected="inconsistent",
            erratum="E14",
            reading="the operator norm",
            note="The random-code RNN of 4 bits has the mean squared error 0.0095. More bits "
            "give any risk c > 0, and L^2 |U|_op^2 remains bounded in N.",
        ),
        Form(
            name="corrected",
            sense="at least",
            exponent=(0.95, 1.25),
            note="The corrected bound is |U|_F^2 >= Omega(N/L^2), without a logarithm. Sudakov's "
            "inequality for the set {(U-> h->, U<- h<-)} replaces the second branch of Lemma "
            "41. The check takes the least L^2 |U|_F^2 of random-code RNNs with five code lengths, "
            "and measures the distances of their states.",
        ),
    ),
    control="L^2 |U|_op^2 claimed to grow like N itself",
    assumptions="Section 5.2's: |proj h| <= r_h = 1, f_y L/r_h-Lipschitz on the pair (U-> h->, U<- "
    "h<-), t_i uniform and independent, x normal, (1/N) E|y - yhat|^2 <= c: the printed risk is at "
    "most the quantiser's mse, since x_i is read directly. d = 1; both directions store their "
    "tokens; the risk is the mean squared error of the levels, see qstr.prop8.constants",
    source="Propositions 8 and 35, Lemma 41",
    sizes=CODE_SIZES,
    cases=lambda size: {"seed": np.arange(4)},
)


_LONG = 60
"""The number N of tokens in the prompts for the RNNs that store all bits in a state of few numbers.
A larger N takes more time.
"""


def _widths(i: Instance, size: Size) -> Sides:
    k = int(i["numbers"])
    L = number_rnn_lipschitz(_LONG, bits=BITS, numbers=k)
    bound = lambda L: rnn_bounds.width_lower_bound(N=_LONG, lipschitz=L, operator_norm=2**0.5)
    return Sides.pairs({"printed": (k, bound(L)), "control": (k, bound(L) ** 2)})


WIDTH = cases_on_host(
    id="qstr.prop8.width",
    label="Propositions 8 and 35 (first bound)",
    formula="dh >= Omega(N/log(1 + L^2|U|_op^2))",
    tex=r"d_h \ge \Omega\left(\frac{N}{\log(1 + \mathfrak{L}^2 \|U\|_{\mathrm{op}}^2)}\right)",
    kind="rate",
    judges=(number_rnn_lipschitz, rnn_bounds.width_lower_bound),
    cases=lambda size: {
        "numbers": np.array([k for k in range(1, BITS * _LONG + 1) if BITS * _LONG % k == 0])
    },
    evaluate=_widths,
    forms=(
        Form(
            name="printed",
            sense="at least",
            exponent=(1.0, 1.6),
            cites=_PROPOSITIONS_8_35,
            note=(
                "The check uses RNNs of every width dh, from one number for all bits to one number "
                "for each bit. We know no narrower RNNs of equal Lipschitz constant L. The width "
                "dh of these RNNs is at most a constant times 2 b log 2 times the lower bound."
            ),
        ),
    ),
    control="the square of the bound",
    sizes=({},),
    assumptions="as in qstr.prop8; 60 tokens of 3 bits, L from the distance of two states",
    source="Propositions 8 and 35",
)


_SHARE = 0.25
"""A codeword is light if its share of ones is at most this number. A larger limit makes more
codewords light.
"""


def _light(i: Instance, size: Size) -> Sides:
    N, bits = int(i["N"]), int(i["bits"])
    entropy = -_SHARE * math.log2(_SHARE) - (1 - _SHARE) * math.log2(1 - _SHARE)
    expected = light_words(N, bits=bits, share=_SHARE)
    found = {"derived": (2.0**expected, 2.0 ** (-bits * N * (8 * (1 - entropy) - 1)))}
    found["derived existence"] = 2.0**expected, 1.0
    found["control"] = 2.0**expected, 2.0 ** (-bits * N * (16 * (1 - entropy) - 1))
    if N >= 2 and bits * N <= 15:
        spread = np.ptp(lloyd_max(bits).levels)
        best = min((machine(s, N, bits).lipschitz * 2**0.5) ** 2 for s in range(4))
        found["derived codes"] = best, spread**2 / (2 * _SHARE)
    else:
        found["derived codes"] = 0.0, 1.0
    return Sides.pairs(found)


BOUNDED = Statement(
    id="qstr.prop8.bounded",
    label="Propositions 8 and 35 (L^2 |U|_op^2 is bounded in N)",
    formula="E #{words of weight <= D/4} <= 2^{-b N (8 (1 - H(1/4)) - 1)} < 1, D = 8 b N, so that "
    "L^2 |U|_op^2 <= 2 spread^2 at every N",
    tex=r"\mathbb{E}\, \#\{\text{words of weight} \le D/4\} \le 2^{-bN(8(1 - H(1/4)) - 1)} < 1, "
    r"\quad \mathfrak{L}^2 \|U\|_{\mathrm{op}}^2 \le 2\, (\text{spread})^2",
    kind="inequality",
    host=True,
    search="random",
    judges=(light_words, code_rnn),
    over={"N": Integers(1, 200), "bits": Integers(1, 6)},
    cases=lambda size: {"N": np.array([1, 2, 3, 4, 5, 40]), "bits": np.array([3, 3, 3, 3, 3, 4])},
    evaluate=_light,
    forms=(
        Form(
            name="derived",
            note="Chernoff's bound of the binomial tail, with the entropy H(1/4) = .811, gives "
            "this inequality for every b and N.",
        ),
        Form(
            name="derived existence",
            note="If the expected number of low-weight codewords is below 1, some code has no "
            "low-weight codeword (Gilbert and Varshamov). At the largest weight for which this "
            "expectation is below 1, L^2 |U|_op^2 tends to 1.695 spread^2 (spread: range of the "
            "levels).",
        ),
        Form(
            name="derived codes",
            note="The check draws four random codes, and takes the code with the least L^2 "
            "|U|_op^2.",
        ),
    ),
    control="a code of twice the length",
    sizes=({},),
    budget=Budget(samples=24, restarts=2, steps=10),
    source="library: E14 at every N",
)


def _coded_tokens(size: Size) -> Instance:
    rng = np.random.default_rng(3)
    pairs = itertools.product(range(4), (1, 2, BITS))
    tokens = lambda: rng.standard_normal(size["N"])
    return stacked({"seed": k, "bits": bits, "x": tokens()} for k, bits in pairs)


def _constants(i: Instance, size: Size) -> Sides:
    N, bits, values = size["N"], int(i["bits"]), np.asarray(i["x"])
    m = machine(int(i["seed"]), N, bits)
    L, square = m.lipschitz, m.frobenius_norm**2
    states = bits * N * math.log(2)  # the logarithm of the number of states
    # Sudakov's bound at states a distance spread/L apart, solved for |U|_F^2.
    spread = float(m.quantiser.levels[-1] - m.quantiser.levels[0])
    constant = bits * spread**2 / (4 * math.pi)
    limit = lambda L, norm: rnn_bounds.width_lower_bound(N=N, lipschitz=L, operator_norm=norm)
    repaired = rnn_bounds.repaired_norm_lower_bound(N=N, lipschitz=L)
    printed = rnn_bounds.printed_norm_lower_bound(N=N, lipschitz=L, width=m.width)
    sudakov = lambda norm: rnn_bounds.sudakov_log_packing(norm, m.distance)
    state, levels = encode_tokens(m, values), m.quantiser.levels
    nearest = levels[np.argmin(np.abs(values[-1] - levels))]
    misread = abs(read_token(m, state, N - 1) - nearest)
    narrow = number_rnn_lipschitz(N, bits=bits)
    return Sides.pairs(
        {
            "derived reading": (misread + abs(np.linalg.norm(state) - 1), 1e-14),
            "derived risk": (m.quantiser.error, math.pi * math.sqrt(3) / 2 * 4.0**-bits),
            "derived width": (bits * math.log(2) * limit(L, m.operator_norm), m.width),
            "derived width of one number": (bits * math.log(2) * limit(narrow, math.sqrt(2)), 1.0),
            "derived Sudakov": (states, sudakov(m.frobenius_norm)),
            "corrected": (constant * repaired, square),
            "derived printed with |U|_F": (constant * printed, square),
            "control": (states, sudakov(m.operator_norm / 2)),
        }
    )


CONSTANTS = searched_on_host(
    id="qstr.prop8.constants",
    label="Propositions 8 and 35 (constants)",
    formula="|U|_F^2 >= c N/L^2 with c = b spread^2/(4 pi), and dh >= b log(2) N/log(1 + L^2|U|^2)",
    tex=r"\|U\|_F^2 \ge \frac{b\, (\text{spread})^2}{4 \pi} \frac{N}{\mathfrak{L}^2}, \quad d_h "
    r"\ge \frac{b \log(2)\, N}{\log(1 + \mathfrak{L}^2 \|U\|_{\mathrm{op}}^2)}",
    kind="inequality",
    judges=(
        rnn_bounds.width_lower_bound,
        rnn_bounds.printed_norm_lower_bound,
        rnn_bounds.repaired_norm_lower_bound,
        rnn_bounds.sudakov_log_packing,
        code_rnn,
        encode_tokens,
        read_token,
        number_rnn_lipschitz,
    ),
    sizes=CODE_SIZES[:3],
    cases=_coded_tokens,
    evaluate=_constants,
    forms=(
        Form(
            name="derived reading",
            note="The state is a unit vector, from which the readout decodes the quantised level "
            "of the last token.",
        ),
        Form(
            name="derived risk",
            note="A quantiser of b bits has an error of at most pi sqrt(3)/2 4^{-b} (Panter and "
            "Dite). So enough bits meet Proposition 8's condition risk <= c.",
        ),
        Form(
            name="derived width",
            note="This version of the claim is the volume bound on a packing of the 2^{bN} states.",
        ),
        Form(
            name="derived width of one number",
            note="The state stores all b N bits in one number, so its dimension is dh = 1. The "
            "readout's Lipschitz constant is L = 2^{bN} spread / 2. Proposition 8's bound on dh is "
            "within a factor near 2 of dh = 1.",
        ),
        Form(
            name="derived Sudakov",
            note="Any two states are at least spread/L apart, so Sudakov's inequality bounds the "
            "log of the number of states.",
        ),
        Form(
            name="corrected",
            note="This version of the claim is Sudakov's inequality, rearranged as a lower bound "
            "on |U|_F.",
        ),
        Form(
            name="derived printed with |U|_F",
            note="The second bound of Proposition 8 is true with |U|_F in place of |U|_op.",
        ),
    ),
    control="half the operator norm in place of |U|_F",
    source="library: the constants of Propositions 8 and 35 on the random-code RNN of b bits",
    budget=Budget(samples=8, restarts=4, steps=8),
)


def _risk(i: Instance, size: Size) -> Sides:
    """Compare the variance that the random-code RNN explains with Theorem 9's limit.

    The check multiplies the RNN's predictions by a factor c, for which both sides of the claim have
    closed forms. If the best quantiser Q has the mean squared error D, then E(x - c Q(x))^2 = 1 -
    (2 c - c^2)(1 - D).
    """
    N, c = size["N"], float(i["scale"])
    m = machine(int(i["seed"]), N)
    explained = 1 / N + (1 - 1 / N) * (2 * c - c**2) * (1 - m.quantiser.error)
    product = (c * m.lipschitz * m.frobenius_norm) ** 2
    return Sides(
        lhs=explained,
        rhs={"derived": 1 - rnn_bounds.unlearned_risk(product, N=N), "control": 1 / N},
        trivial=1.0,
        error=1e-14,
    )


UNLEARNED = Statement(
    id="qstr.thm9.risk",
    label="Theorem 9 (risk of small networks)",
    formula="risk >= (1 - 1/N)(1 - tau)^2 e^{-tau}, tau^3 e^{-tau} = 8 pi log(2) L^2 |U|_F^2/(N-1)",
    tex=r"\frac1N \mathbb{E}\|\hat y - y\|_2^2 \ge \left(1 - \tfrac1N\right) (1 - \tau)^2 "
    r"e^{-\tau}, \quad \tau^3 e^{-\tau} = \frac{8 \pi \ln 2\, \mathfrak{L}^2 \|U\|_F^2}"
    r"{N - 1}, \ \tau \le 1",
    kind="inequality",
    host=True,
    search="random",
    judges=(rnn_bounds.unlearned_risk,),
    over={"scale": Box(0, 1), "seed": Integers(0, 3)},
    cases=lambda size: {"scale": np.append(0.0, np.logspace(-5, 0, 31)), "seed": np.arange(32) % 4},
    evaluate=_risk,
    forms=(
        Form(
            name="derived",
            equality="c = 0: only the own token is read, L = 0",
            note=(
                "The proof of this lower bound on the risk covers the states by a net, and uses "
                "the rate-distortion function of N - 1 normal tokens. The proof avoids Proposition "
                "35's random packing, which has hidden constants."
            ),
        ),
    ),
    control="nothing learned but the own token",
    sizes=({"N": 4},),
    budget=Budget(samples=24, restarts=2, steps=10),
    assumptions="Section 5.2's: |h| <= r_h = 1, f_y L-Lipschitz in U h; the random-code RNN, its "
    "predictions of other tokens scaled by c. Its norm is far above the least that such a risk "
    "allows, so that only c = 0 is close",
    source="Theorem 9, Proposition 35 with |U|_F and every constant",
)


STATEMENTS = (WIDTH, PROPOSITION_8, BOUNDED, CONSTANTS, UNLEARNED)
