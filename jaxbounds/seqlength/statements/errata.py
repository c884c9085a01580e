"""Where the paper's text is wrong or unclear, and what cannot be checked."""

from jaxbounds.statements import Erratum

ERRATA = (
    Erratum(
        id="E1",
        where="Lemma 3.1",
        kind="false",
        text="(gamma^2 b^2 - ||f||^2) / k is printed with (1/k) sum k_i V_i; true is"
        " (gamma b^2 - ||f||^2) / k, or gamma^2 with (gamma/k) sum k_i V_i.",
        consequence="None: only b^2 / k is used, which both imply.",
        evidence="seqlength.lemma3.1",
    ),
    Erratum(
        id="E2",
        where="after Lemma 3.1",
        kind="false",
        text="The number of (k_1, .., k_d) is C(d + k, k), not at most d^k; (d + 1)^k is a bound.",
        consequence="None: Lemmas 3.3 and 3.6 use (2n + 1)^k for n signed coordinates.",
        evidence="seqlength.lemma3.1-count",
    ),
    Erratum(
        id="E3",
        where="Lemmas 3.4 and 3.5, Corollaries D.0.2 and F.0.2",
        kind="false",
        text="A transposition is lost: with the paper's column norm {||W||_{2,1} <= B_w} contains"
        " all v e_1^T, whose covers have log size at least k ln(B_w B_x / eps). The sum of the"
        " *row* norms must be bounded; in Lemma 3.5 log(dn) becomes log(kn).",
        consequence="D.0.2 and F.0.2 hold with row norms of the matrix of the map.",
        evidence="seqlength.lemma3.4-size, seqlength.lemma3.5",
    ),
    Erratum(
        id="E4",
        where="Theorem 4.1",
        kind="false",
        text="||W_c^T||_{1,inf} and ||W_v^T||_{1,inf} are printed; the proof needs the columns of"
        " W_c and W_v. With the printed norms the complexity can exceed the bound by any factor"
        " (it grows like sqrt(d), the bound like sqrt(ln d)).",
        consequence="With the transposes removed the bound and its independence of T survive.",
        evidence="seqlength.appc-peeling, seqlength.thm4.1-norms",
    ),
    Erratum(
        id="E5",
        where="Theorem 4.1 and the end of Appendix C",
        kind="false",
        text="The minimiser delta is inside only if 2 B_x sqrt C < sqrt m - sqrt(ln 2d); otherwise"
        " the formula is not a bound and may be negative (-5.17 for unit norms, C = 1000, m = 100,"
        " d = 10). Then delta = B_x and the bound is B_x. m > d is not needed.",
        consequence="The bound must be clipped at the trivial value.",
        evidence="seqlength.appc-optimum",
    ),
    Erratum(
        id="E6",
        where="Appendix C, the displays with Dudley's integral",
        kind="typo",
        text="Two displays lack 1/m on the term 4 B_x^4 C / eps^2; the third restores it.",
        consequence="None.",
        evidence="seqlength.appc-dudley checks the final display against the right integral",
    ),
    Erratum(
        id="E7",
        where="Corollary 4.1.1",
        kind="inconsistent",
        text="alpha = B_QK sqrt(2 ln(2 d^2 + 1)) should be 2 B_QK sqrt(ln(2 d^2 + 1)), and the last"
        " factor of B is B_Wv, not B_Wc again.",
        consequence="A constant inside O(.), but inside the logarithm too.",
        evidence="seqlength.cor4.1.1",
    ),
    Erratum(
        id="E8",
        where="Lemma E.1",
        kind="underspecified",
        text="The eps_i must be positive: with eps = (100, -99) and C = beta = (1, 1) the sum is"
        " 2e-4, below the stated minimum 8.",
        consequence="None: resolutions are positive.",
        evidence="seqlength.lemma-e.1",
    ),
    Erratum(
        id="E9",
        where="Lemma E.2 at i = 1, and the proof of Theorem 4.2",
        kind="false",
        text="g^(1) = X is not projected: the QK terms need the factor B_x^2. For two opposite"
        " tokens of norm B_x the left side exceeds the right by B_x^2 / 2.",
        consequence="Section 4.3's remark that one layer trades cross terms for B_x^2 is an"
        " artefact: the multi-layer bound needs the same factor (B_x^6 in place of B_x^2).",
        evidence="seqlength.lemma-e.2-first, seqlength.appe-chain",
    ),
    Erratum(
        id="E10",
        where="Theorem 4.2",
        kind="inconsistent",
        text="gamma and tau are not what the proof's last display gives with Lemma E.1: the eps_c"
        " term of layer 1 is missing, its eps_v term lacks alpha_1, and the v terms have B_v for"
        " B_c. Also the covers of W_c must be for inputs of norm L_sigma, of the first W_v for B_x,"
        " and two covers are mislabelled in the proof.",
        consequence="The printed number is neither above nor below the proved one (46.2 against"
        " 96.5 for all ones, 74.2 against 65.6 elsewhere).",
        evidence="seqlength.thm4.2, seqlength.appe-cover",
    ),
    Erratum(
        id="E11",
        where="Corollaries 4.2.1, F.0.1, F.0.2",
        kind="false",
        text="One C is used for matrices of different shapes: W_QK needs ln(2 d^2 + 1). F.0.1 and"
        " F.0.2 need tokens of l_1 norm at most 1 in every layer, but the projection is on the"
        " l_2 ball, where Lemma 3.3 is false.",
        consequence="Use one C per matrix; project on the l_1 ball, or multiply C by d.",
        evidence="seqlength.cor4.2.1, seqlength.cor-f.0.1",
    ),
    Erratum(
        id="E12",
        where="Section 2.6",
        kind="inconsistent",
        text="W_Q, W_K in R^{d x T} make the parameters and rank(W_QK) depend on T; R^{d x d_k}.",
        consequence="None: only W_QK in R^{d x d} is used.",
        evidence="by reading",
    ),
    Erratum(
        id="E13",
        where="Section 2.4 and Lemma 3.2",
        kind="false",
        text="q > 0 is allowed, but the proof needs the triangle inequality: q >= 1. It also writes"
        " rows W_i for columns.",
        consequence="None: q = 2 is used.",
        evidence="seqlength.lemma3.2",
    ),
    Erratum(
        id="E14",
        where="Section 2.1",
        kind="typo",
        text="The outer norm of ||W||_{q,p} is printed as l_r, r the number of rows; l_p is meant.",
        consequence="None.",
        evidence="seqlength.sec2.1-norm",
    ),
    Erratum(
        id="E15",
        where="Section 2.5",
        kind="typo",
        text="sqrt(dk ln(B_x B_w)) / n and sqrt(B_x B_w ln(dk)) / n should be sqrt(dk ln(..) / n)"
        " and B_x B_w sqrt(ln(dk) / n).",
        consequence="None.",
        evidence="dimensions, and Lemma 3.6 in Dudley's integral",
    ),
    Erratum(
        id="E16",
        where="Section 2.3, Lemma 3.6, Section 5, Appendices A, C, E and G",
        kind="typo",
        text="m for the sample size n; /2 for /eps^2 at the end of Lemma 3.6; the sum to k for K"
        " and softmax(x) for softmax(yhat) in Section 5 and Appendix G;"
        " W^{1:i} is {W^1, .., W^{i-1}};"
        " |.|^q for (.)^q in Appendix A; the second expression of Appendix C's first display lacks"
        " B_v.",
        consequence="None.",
        evidence="by reading; the last one: seqlength.appc-holder",
    ),
    Erratum(
        id="E17",
        where="display 4.3 and Appendix C",
        kind="inconsistent",
        text="softmax(X W_QK x_cls) for softmax(X W_QK^T x_cls) of the definition of Y_cls.",
        consequence="Which of ||W_QK|| and ||W_QK^T|| must be bounded, except for the (1,1) norm.",
        evidence="seqlength.sec4.1-cls",
    ),
)

UNCHECKED = {
    "Lemma 3.5 (corrected)": "the constant of Edelman et al.'s Lemma 4.6 is not stated; only its"
    " leading term is evaluated, in `comparisons`",
    "Corollaries D.0.2 and F.0.2, the hidden logarithms": "leading terms only",
    "Section 4.3, 'ignoring polylog terms'": "an O(L) in the exponent fixes no number to compare",
    "Theorem 5.1, the factors hidden in O~(.)": "powers of log m from Foster and Rakhlin; the"
    " leading term is checked with constant 1, and K = 2 exactly",
}
