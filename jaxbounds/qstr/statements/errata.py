"""What is wrong, missing or inconsistent in the paper, with evidence and consequence."""

from types import MappingProxyType

from jaxbounds.statements import Erratum

ERRATA = (
    Erratum(
        id="E1",
        where="Abstract, Theorem 1, Section 3.1",
        kind="false",
        text="'Transformers learn iff H >= q' needs Proposition 21's block-diagonal W_QK. Without "
        "it two heads are enough at d = 1, and d + 1 heads in R^d, for any q.",
        consequence="For the quadratic label of Propositions 3 and 21, H >= min(q, d) is necessary "
        "(sharpened Proposition 3) and min(q, d + 1) is enough.",
        evidence="qstr.thm1.heads",
    ),
    Erratum(
        id="E2",
        where="Lemma 41, second branch; Propositions 8 and 35",
        kind="false",
        text="The second branch is Maurey's covering bound of the l_1 ball, not a packing bound of "
        "the l_2 ball; so |U|_op^2 >= Omega(N/(L^2 log(1 + dh))) is not derived, and the "
        "random-code RNN violates it.",
        consequence="|U|_F^2 >= Omega(N/L^2) holds instead, without the logarithm; Theorem 9, "
        "whose AM-GM step works with |U|_F, survives.",
        evidence="qstr.lem41 and qstr.prop8",
    ),
    Erratum(
        id="E3",
        where="Proposition 35, proof",
        kind="proof",
        text="The errors z^(i) are said to be iid, but they share the token x_j, which f_y reads; "
        "they are iid only given x_j. Also the pair of states lives in R^{2 dh}.",
        consequence="Condition on an x_j whose risk is at most the average; constants stay.",
        evidence="read in the proof",
    ),
    Erratum(
        id="E4",
        where="Theorem 9, proof, case dh < n",
        kind="typo",
        text="'By invoking Proposition 26' must be Proposition 8.",
        consequence="None.",
        evidence="read in the proof",
    ),
    Erratum(
        id="E5",
        where="Assumption 3 and the experiments",
        kind="inconsistent",
        text="At the experiments' de = int(5 log N), Rademacher encodings almost never meet "
        "Assumption 3, and for small N two of them often coincide.",
        consequence="The theory does not cover the figures as drawn; attention needs only a signed "
        "coherence below 1, and the RNN's gate a threshold above the coherence.",
        evidence="qstr.asm3",
    ),
    Erratum(
        id="E6",
        where="Lemma 12",
        kind="false",
        text="'For any r_x > 0' fails below r^2 = C_x e d, where the moment order of the proof is "
        "less than 1; it is used at nN = 1 in Lemma 34.",
        consequence="Assume r^2 >= C_x e d.",
        evidence="qstr.lem12.small",
    ),
    Erratum(
        id="E7",
        where="Corollary 27",
        kind="underspecified",
        text="The first case must read t_l >= i: the induction step from t_l = i needs h_i(l) = 0.",
        consequence="None once read so.",
        evidence="qstr.cor27",
    ),
    Erratum(
        id="E8",
        where="Theorem 6 against Figure 1",
        kind="inconsistent",
        text="Figure 1's online AdamW is outside Definition 5 (decoupled decay leaves the span), "
        "and the bound asks for 36 samples where 115,600 are seen (N = 12, d = 10).",
        consequence="Figure 1 is consistent with Theorem 6, not explained by it.",
        evidence="qstr.def5.span; tests of the off-span identity with AdamW",
    ),
    Erratum(
        id="E9",
        where="Lemma 16, first branch",
        kind="underspecified",
        text="Quoted for the 2-norm over the data; for the supremum over prompts and positions a "
        "factor log(nN) is missing.",
        consequence="Absorbed by O~ in Theorem 4.",
        evidence="read in the proof",
    ),
    Erratum(
        id="E10",
        where="Lemma 38, proof",
        kind="proof",
        text="|b'|^2 <= |z|^2 + 1 is false, since z_1 is used twice; 3 |z|^2 + 2 is right.",
        consequence="(C.16) itself survives, with constant 19.",
        evidence="qstr.lem38.bias",
    ),
    Erratum(
        id="E12",
        where="Theorem 4",
        kind="underspecified",
        text="R^2 and C_1 as printed do not follow from the appendix; the derivation gives "
        "q^3/d^2 and R^4 q d.",
        consequence="The theorem is a rate only.",
        evidence="re-derived from Proposition 17 and Lemma 18",
    ),
    Erratum(
        id="E13",
        where="Figure 1",
        kind="not reproduced",
        text="The published Transformer curve of Figure 1a has log-log slope 0.99 over N = 4..12; "
        "'almost independent of N' is not what it shows. Figure 1b spans N = 25..33 only.",
        consequence="Slopes, not levels, can be compared, with their intervals.",
        evidence="digitised from the published figure",
    ),
)

_RATE = "only an order of growth with hidden constants and logarithms"

UNCHECKED = MappingProxyType(
    {
        "Theorem 1": "informal summary of Theorems 4, 6, 7 and 9; its head count is checked",
        "Assumption 2": "an assumption; exact for the links that ship a two-layer network",
        "Theorem 4, Theorem 10": f"{_RATE}; needs global constrained risk minimisers",
        "Theorem 7": f"{_RATE}; needs global constrained risk minimisers",
        "Theorem 9": "needs min-norm risk minimisers; its chain is checked link by link",
        "Lemma 14, Lemma 16, Proposition 17": f"{_RATE}, of covering numbers nobody computes",
        "Lemma 18, Corollary 19, Lemma 20": f"{_RATE}; the size of a prediction is checked",
        "Lemma 24, Lemma 25": "rest on Lemma 42; explicit gates take their place in Proposition 26",
        "Corollary 31, Lemma 32, Corollary 33, Lemma 34": _RATE,
        "Lemma 42": "quoted from [Bac17] with an unknown constant C_d",
    }
)
