"""Where the paper's text is wrong or unclear, what survives, and what cannot be checked.

By weight: false, gap, reading, typo, undecidable. Quotes are the paper's words.
"""

from jaxbounds.claims.statements import Erratum

_COLUMNS = (
    "changed to norms without the transposes, over columns: ||W_c||_{1,inf} and ||W_v||_{1,inf};"
    " over rows survive; the order in m and the independence of T survive either way"
)
_POWER = (
    "changed to B_x^6 in place of B_x^2 in (gamma + eta)^3, by the factor B_x^2 on the perturbation"
    " of W_QK^(1); the independence of T survives"
)

ERRATA = (
    Erratum(
        id="E9",
        where="Lemma E.2 at i = 1, in the proof of Theorem 4.2; so Corollaries 4.2.1, F.0.1 and"
        " F.0.2",
        kind="false",
        quote=r"2L_{\sigma} B_{c2} B_{v2} \left\| (W_{QK}^{(i)} - \hat{W}_{QK}^{(i)})^{\top}"
        r" g_{block}^{(i)}(X;\hat{W}^{1:i})^{\top} \right\|_{2,\infty}",
        text="g^(1) = X is not projected: keys and values have norm up to B_x, which puts B_x^2 on"
        " this term at i = 1. For two opposite tokens of norm B_x the left side is B_x^2 / 2 times"
        " the right. All three corollaries are false as numbers, for it and for what E10 says of"
        " the first W_v. 4.2.1: 2^(d-2) networks with ||.||_{1,1} <= 1 are sqrt 2 apart, ln N >="
        " 414.5 for d = 600, eps = 0.7, where it has 251.3, and the quotient grows like d / ln d."
        " F.0.2, for either orientation of its norms and tokens in the l_1 ball: 2^(d-2) networks"
        " are 1 apart, ln N >= 691.8 for d ="
        " 1000, eps = 0.49, B_x = 100 sqrt d, where it has 501.0, and 69,313 against 832 for d ="
        " 10^5; the quotient passes every power of ln B_x that Lemma 3.4 may hide. F.0.1"
        " likewise: M^(d-3) networks are 1.87 apart, M of the order B_x^2 / d, where it has 22 d"
        " with no B_x: 29,844 against 22,002 for d = 1000, B_x = 3 10^9, and the quotient grows"
        " like ln B_x (past the proof's own list of terms from B_x = 10^63 at the latest).",
        consequence="Section 4.3's remark that one layer 'trades the cross product terms in the"
        " cubed factor for a factor of B_x^2' falls: this proof needs B_x^6.",
        main=_POWER,
        evidence="seqlength.lemma-e.2-first, seqlength.appe-chain, seqlength.cor4.2.1-packing,"
        " seqlength.cor-f.0.2-packing, seqlength.cor-f.0.1-packing",
    ),
    Erratum(
        id="E10",
        where="Theorem 4.2, gamma and tau_i, and with them Corollaries 4.2.1, F.0.1 and F.0.2",
        kind="false",
        quote=r"\gamma = C_{B_x}^{1/3} \left(2L_{\sigma} B_{c2} B_{v2} \alpha_1 B_w\right)^{2/3}"
        r" + C_1^{1/3} \left(1 + (B_w L_{\sigma} B_{v2})^{2/3} \right)",
        text="By the proof's last display and Lemma E.1, C_1^{1/3} has in gamma the terms 1, (B_w"
        " alpha_1)^{2/3} of eps_c^(1) and (B_w alpha_1 L B_c2)^{2/3} of eps_v^(1): the first of"
        " these two is missing, the second lacks alpha_1 and has B_v2 for B_c2, as tau_i has. Four"
        " one-layer networks of the class are 1 apart, so ln N(1/2) >= 1.386 where the theorem has"
        " 0.117 (the proof's list: 15.6). The corollaries print the same gamma and tau_i; these"
        " four networks refute the theorem only: in the corollaries one B bounds w too. Also the"
        " covers of W_c must be for inputs of norm L_sigma and of the first W_v for B_x.",
        consequence="The printed number is neither above nor below the proof's: 46.2 against 96.5"
        " for all ones, 74.2 against 65.6 (L = 2, B_w = B_v = 1, B_c = L_sigma = 1/2, B_QK = .1,"
        " C = 1).",
        main="changed to the proof's own list of terms, with E9's factor and covers of W_c for"
        " inputs of norm L_sigma and of W_v^(1) for B_x",
        evidence="seqlength.thm4.2-packing, seqlength.thm4.2, seqlength.appe-cover",
    ),
    Erratum(
        id="E2",
        where="Section 3, after Lemma 3.1",
        kind="false",
        quote=r"the total amount of (k_1, \ldots, k_d) 's that fit the criteria above is less than"
        r" or equal to d^k",
        text="The criteria are k_i in Z_{>=0}, sum k_i <= k: there are C(d + k, k) of them, two"
        " already for d = k = 1. (d + 1)^k is a bound; d^k bounds those with sum k_i = k.",
        consequence="None: Lemmas 3.3 and 3.6 use (2n + 1)^k for n signed coordinates.",
        main="survive",
        evidence="seqlength.lemma3.1-count",
    ),
    Erratum(
        id="E11",
        where="Corollaries 4.2.1, F.0.1 and F.0.2, one C for all matrices",
        kind="gap",
        quote=r"\gamma = (dB^2 B_x^2 \ln(2k+1))^{1/3} \left(2L_{\sigma} B_{c2} B_{v2} \alpha_1 B_w"
        r" \right)^{2/3} + (dB^2 \ln(2k+1))^{1/3}",
        text="Each cover is for the shape of its own map. In F.0.1, here quoted, the map W_c^T"
        " from R^k to R^d needs k B^2 ln(2d + 1) by Lemma 3.3, and W_QK needs d B^2 ln(2d + 1)."
        " The printed C is refuted for either matrix: for W_c^T at d = 2, k = 1000, eps = B / 2 a"
        " cover has ln N >= k ln(2d) = 1386, against 60.8, and bounding the transpose in its place"
        " repairs nothing. In 4.2.1 W_QK needs ln(2 d^2 + 1), where k < d more than the printed"
        " ln(2dk + 1); there C is unsupported, not refuted: at d = 4, k = 1, x = 1 nine matrices"
        " do cover. In F.0.2 it is ln(d^2), to leading order. We refute no network's number by"
        " it alone: that is E9.",
        consequence="One C per matrix (`constants_4_2_1`, `constants_F_0_1`): a factor below 2 in"
        " 4.2.1, at most 2 in F.0.2; in F.0.1 (k / d) ln(2d + 1) / ln(2k + 1) for W_c and"
        " ln(2d + 1) / ln(2k + 1) for W_QK.",
        main="changed to one C for each matrix; else as E9 and E10",
        evidence="seqlength.cor4.2.1, seqlength.cor-f.0.1-one-constant",
    ),
    Erratum(
        id="E4",
        where="Theorem 4.1, and Appendix C, 'Thus we can use the inequality again'",
        kind="reading",
        quote=r"$\|W_c^{\top}\|_{1,\infty} \leq B_{W_c}$, and"
        r" $\|W_v^{\top}\|_{1,\infty} \leq B_{W_v}$",
        text="The proof bounds e_j^T W_c^T u, a *column* of W_c, by its l_1 norm, so it needs"
        " ||W_c||_{1,inf} and ||W_v||_{1,inf} where ||.||_{q,p} is over columns, as Section 2.1"
        " defines it and Lemma 3.3 is proved. With the printed norms the complexity then grows with"
        " d at least like sqrt(d / m) where the bound has sqrt(ln(d) / m). One convention carries"
        " this and E3: over rows the printed norms, and Lemma 3.4, are right, and Lemma 3.3 is not."
        " Against rows there is here, beside Section 2.1, the proof itself: its ||Pv|| <="
        " ||P||_{2,inf} ||v||_1 and ||X||_{2->inf} = ||X^T||_{2,inf} are true over columns and"
        " false over rows.",
        readings=(
            "columns, as Sections 2.1 and 3.1 and the same proof say: false, by at least"
            " sqrt(d / ln d) up to a constant",
            "rows, against all three: the printed norms are right",
        ),
        consequence="Over columns too small by at least sqrt(d / ln d), up to a constant, in"
        " Theorem 4.1 and its three corollaries.",
        main=_COLUMNS,
        evidence="seqlength.appc-peeling, seqlength.thm4.1-norms, seqlength.appc-norms",
    ),
    Erratum(
        id="E3",
        where="Lemmas 3.4 and 3.5, and the choice of norms in D.0.1, D.0.2, F.0.1, F.0.2",
        kind="reading",
        quote=r"\mathcal{W} = \{W \in \mathbb{R}^{k \times d} \mid \|W\|_{2,1} \leq B_w\}",
        text="The convention of E4. ||.||_{q,p} is over columns in Section 2.1, and so Lemma 3.3 is"
        " proved. But then the"
        " class of Lemmas 3.4 and 3.5 contains all v e_1^T, whose covers have log size at least"
        " k ln(B_w B_x / eps). Over rows Lemma 3.4 holds to leading order, Lemma 3.3 does not, and"
        " Lemma 3.5 holds with ln(kn) for ln(dn): the 2k matrices +-B_w e_j e_1^T are at least"
        " B_w B_x apart at one input, so ln N >= ln(2k) at eps = B_w B_x / 2, against 4 ln(dn), and"
        " k is one of the letters that <~ does not hide. With ln(dn) at n = d, Lemma 3.5 would give"
        " ln(d^2), not the ln(dk) of Lemma 3.4, so k is meant. In the corollaries the map is"
        " W_QK^T x under the definition of Y_[CLS], and W_QK x in the display of the Rademacher"
        " complexity: under the first the covering number of Lemma 3.4 behind D.0.2 is right and"
        " that of Lemma 3.3 behind D.0.1 is not, under the second the reverse; F.0.1 and F.0.2"
        " alike.",
        readings=(
            "columns, as Section 2.1 says: Lemmas 3.4 and 3.5 are false",
            "rows: Lemma 3.4 is true to leading order, Lemma 3.5 with ln(kn) for ln(dn), and"
            " Lemma 3.3 is false",
        ),
        consequence="In each orientation of the map one corollary of each pair must bound the"
        " norm of the transposed matrix.",
        main="survive; of each pair of corollaries one with the norm of the transpose",
        evidence="seqlength.lemma3.4-size, seqlength.lemma3.5, seqlength.cor-d.0-orientation, "
        "seqlength.cor-f.0.1 (F.0.1 only)",
    ),
    Erratum(
        id="E18",
        where="Corollaries F.0.1 and F.0.2, the inputs of later layers",
        kind="reading",
        quote=r"Suppose we have the norm bounds required in lemma 3.3 for each"
        r" $W_c^{(i)}, W_v^{(i)}, W_{QK}^{(i)}, w$",
        text="Lemmas 3.3 and 3.4 are for inputs with ||x||_1 <= B_x. Section 2.6 does not name the"
        " norm of the ball on which Pi_norm projects; Theorem 4.2 has ||x||_2 <= 1, and with the"
        " l_2 ball inputs in R^n have l_1 norm up to sqrt n, where Lemma 3.3 is false: n = d for w,"
        " W_v and W_QK, and n = k for W_c. Shown for F.0.1 only; F.0.2 has the same inputs.",
        readings=(
            "Pi_norm projects on the l_2 ball, as Theorem 4.2 wants: the input dimension of each"
            " map is missing",
            "Pi_norm projects on the l_1 ball: the inputs are as Lemmas 3.3 and 3.4 want them",
        ),
        consequence="Project on the l_1 ball, or multiply each C by the dimension of its map's"
        " inputs, k for W_c and d else.",
        main="changed to each C times its map's input dimension in F.0.1 and F.0.2 on the first"
        " reading; survive on the second; E9 changes both either way",
        evidence="seqlength.cor-f.0.1",
    ),
    Erratum(
        id="E5",
        where="Theorem 4.1 and the end of Appendix C",
        kind="reading",
        quote=r"When $m > \ln(2d)$ standard analysis can find the minimum for δ is when $$\delta ="
        r" \frac{\frac{2B_x^2\sqrt{C}}{\sqrt{m}}}{1 - \sqrt{\frac{\ln(2d)}{m}}}"
        r" = \frac{2B_x^2\sqrt{C}}{\sqrt{m} - \sqrt{\ln(2d)}}$$",
        text="This delta is at most B_x only if 2 B_x sqrt C <= sqrt m - sqrt(ln 2d). Otherwise the"
        " formula is not a bound (beyond B_x the integral runs backwards, and the second line of"
        " the display is no longer above its first) and may be negative (for unit norms, C = 1000,"
        " m = 100, d = 10 Theorem 4.1's display gives -5.17, Appendix C's last one -6.4); then"
        " delta = B_x and the bound is B_x. m > d is not needed.",
        readings=(
            "for every m > d with m > ln(2d), as the theorem says, with delta in [0, B_x]",
            "as m grows with everything else fixed; over all delta >= 0 both formulas are right",
        ),
        consequence="For given m the bound must be clipped at the trivial value.",
        main="survive, clipped at the trivial value",
        evidence="seqlength.appc-optimum",
    ),
    Erratum(
        id="E8",
        where="Lemma E.1",
        kind="reading",
        quote=r"For $\epsilon, C_i, \beta_i \geq 0, i \in [n]$ the solution to"
        r" $\min_{\epsilon_1,\ldots,\epsilon_n} \sum_{i=1}^n \frac{C_i}{\epsilon_i^2}$",
        text="The eps_i must be positive: with eps = (100, -99) and C = beta = (1, 1) the sum is"
        " 2e-4, below the stated minimum 8. C_i = 0 or beta_i = 0, which are allowed, break the"
        " formula for the minimiser: eps_i = 0, or a division by zero; such terms are dropped.",
        readings=("the eps_i are any real numbers", "the eps_i are resolutions: positive"),
        consequence="None: resolutions are positive.",
        main="survive",
        evidence="seqlength.lemma-e.1",
    ),
    Erratum(
        id="E13",
        where="Lemma 3.2 with Section 2.4",
        kind="reading",
        quote=r"Let $q \in \mathbb{R}_{>0}$",
        text="The proof of Lemma 3.2 uses the triangle inequality of ||.||_q, which needs q >= 1;"
        " at q = 1/2 the lemma is false. It also writes rows W_i for columns.",
        readings=("any q > 0, as Section 2.4 says", "q >= 1, where ||.||_q is a norm"),
        consequence="None: q = 2 is used.",
        main="survive",
        evidence="seqlength.lemma3.2",
    ),
    Erratum(
        id="E7",
        where="Corollary 4.1.1, B and alpha",
        kind="typo",
        quote=r"$B = B_w B_{W_c} L_\sigma B_{W_c}$ and let"
        r" $\alpha = B_{W_{QK}} \sqrt{2\log(2d^2 + 1)}$",
        text="The last factor of B is B_Wv, as in D.0.1 (the second B_Wc rests on one glyph of the"
        " text at hand), and Theorem 4.1 gives alpha = 2 B_QK sqrt(ln(2 d^2 + 1)). As the O(.) that"
        " it is, the display is true with the printed alpha: sqrt 2 times it is above"
        " Theorem 4.1's wherever both are informative.",
        consequence="A constant inside O(.).",
        main="survive",
        evidence="seqlength.cor4.1.1",
    ),
    Erratum(
        id="E17",
        where="Section 4.1, the display of the Rademacher complexity, and Appendix C",
        kind="typo",
        quote=r"\operatorname{softmax}\left(X_{(i)}W_{QK}x_{[CLS]}\right)",
        text="softmax(X W_QK^T x_[CLS]) by the definition of Y_[CLS], in the display before.",
        consequence="Which of ||W_QK|| and ||W_QK^T|| must be bounded (E3), but for ||.||_{1,1}.",
        main="survive",
        evidence="seqlength.sec4.1-cls",
    ),
    Erratum(
        id="E19",
        where="Section 4.1, the display of the Rademacher complexity; Section 4.2, Theorem 5.1 and"
        " Appendix C up to Dudley's integral",
        kind="typo",
        quote=r"\mathbb{E}\left[\sup_{w,W_{c},W_{v},W_{QK}}\sum_{i=1}^{m}\epsilon_{i}w^{\top}"
        r"W_{c}^{\top}\sigma\left(W_{v}^{\top}X_{(i)}^{\top}",
        text="'Our Rademacher complexity is thus the following' lacks the factor 1/m of Section"
        " 2.3, and so do the displays that follow from it; Theorem 4.1 has it again.",
        consequence="None.",
        main="survive",
        evidence="by reading: Section 2.3 and Theorem 4.1 have 1/m, the displays between have not",
    ),
    Erratum(
        id="E6",
        where="Appendix C, the display with Dudley's integral",
        kind="typo",
        quote=r"\delta + \int_{\delta}^{B_x} \sqrt{\frac{\ln(2d)}{m} + \frac{4B_x^4 C}{\epsilon^2}}"
        r" d\epsilon",
        text="Two lines of the display lack 1/m on the term 4 B_x^4 C / eps^2; the third restores"
        " it.",
        consequence="None.",
        main="survive",
        evidence="seqlength.appc-dudley checks the final display against the right integral",
    ),
    Erratum(
        id="E15",
        where="Section 2.5",
        kind="typo",
        quote=r"$O(\sqrt{dk \log(B_x B_w)})/n)$ .. $O(\sqrt{B_x B_w \log(dk)})/n)$",
        text="sqrt(dk ln(..) / n) and B_x B_w sqrt(ln(dk) / n) are meant. That the norms are"
        " inside the root is in the text; whether n is outside it rests on one brace of the text at"
        " hand, whose parentheses do not balance.",
        consequence="None.",
        main="survive",
        evidence="by reading; seqlength.sec2.5-counting has both covers",
    ),
    Erratum(
        id="E16",
        where="Sections 2.1, 2.3 and 5, Appendices A, C, E and G",
        kind="typo",
        quote=r"v' u \le B_v \max_{j \in [d]} |e_j u| = \max_{j \in [d], s \in \{-1,1\}} se_j u",
        text="The second expression lacks B_v. Also: m for the sample size n in Section 2.3; the"
        " sum to k for K in Section 5; softmax(x) for softmax(yhat) in Appendix G; (.)^q for |.|^q"
        " in Appendix A; two covers are mislabelled in Appendix E; ||W||_F is the root of the sum"
        " of squares, not of the 'squared sum', of the singular values in Section 2.1; e_i^T W_c^T"
        " for e_j^T W_c^T in Appendix C.",
        consequence="None.",
        main="survive",
        evidence="by reading; the first one: seqlength.appc-holder",
    ),
    Erratum(
        id="E1",
        where="Lemma 3.1",
        kind="undecidable",
        quote=r"\left\| f - \frac{1}{k} \sum_{i=1}^{d} k_i V_i \right\|_2^2"
        r" \le \frac{\gamma^2 b^2 - \|f\|^2}{k}",
        text="With (1/k) sum k_i V_i the right side is (gamma b^2 - ||f||^2) / k; gamma^2 goes with"
        " (gamma/k) sum k_i V_i. Rests on the one exponent of gamma in the text at hand.",
        consequence="None: only b^2 / k is used, which both imply.",
        main="survive",
        evidence="seqlength.lemma3.1",
    ),
    Erratum(
        id="E14",
        where="Section 2.1",
        kind="undecidable",
        quote=r"||W||_{q,p} = \left\| [||W_{:,1}||_q, \dots ||W_{:,d}||_q]^\top \right\|_r",
        text="The outer norm reads l_r, r the number of rows; l_p is meant. Rests on one subscript"
        " of the text at hand.",
        consequence="None.",
        main="survive",
        evidence="seqlength.sec2.1-norm",
    ),
)

SURVIVES = (
    "Independence of the sequence length survives everything, and so do Lemmas 3.2 (q >= 1), 3.6"
    " and, for norms over columns as Section 2.1 defines them, 3.3. Over columns Theorem 4.1 holds"
    " for the norms of W_c and W_v without the transposes (with the printed ones it is false by at"
    " least sqrt(d / ln d)) once it is clipped at the trivial value, and Lemmas 3.4 and 3.5 hold"
    " for the norm of W^T, 3.5 with ln(kn) for ln(dn); over rows these norms are right as printed,"
    " and that of Lemma 3.3 is not (E3, E4). Corollary 4.1.1 holds with Theorem 4.1; of"
    " D.0.1 and D.0.2 one needs the norm of the transpose (E3). Theorem 4.2 and Corollaries 4.2.1,"
    " F.0.1 and F.0.2 are false as numbers: with the proof's own list of terms, one C per matrix,"
    " B_x^6 for B_x^2, and covers of W_c for inputs of norm L_sigma and of W_v^(1) for B_x Theorem"
    " 4.2 and Corollary 4.2.1 are theorems; so are F.0.1, and F.0.2 to leading order, with the"
    " norm of the transpose where E3 asks for it, and tokens in the l_1 ball or each C times its"
    " map's input dimension (E18). Theorem 5.1 stands with the corrected Theorems 4.1 and 4.2; the"
    " linear dependence on the number of heads and the experiment's set-up are untouched."
)

REMARKS = {
    "Section 2.4": "With delta = 0 Dudley's integral diverges for ln N ~ 1 / eps^2; the infimum"
    " over delta > 0 is used. The constant c is open; 12 is a theorem.",
    "Section 2.6": "'projects each row onto the unit ball' does not name the norm; l_2 follows from"
    " Theorem 4.2's ||x||_2 <= 1. W^{1:i} = {W^1, .., W^(i-1)} fits g^(1)(X; W^{1:1}) = X. W_Q and"
    " W_K are d x T in the text at hand, by one glyph, so that their size grows with T; the"
    " sentence on the total dimensionality is about W_QK, W_c and W_v, and only W_QK in"
    " R^{d x d} is used.",
    "Lemmas 3.3 and 3.6, proofs": "Maurey's K is a whole number: the proofs' covers have log size"
    " ceil(x^2) ln(2k + 1) for each column, and ceil(x^2) ln(2dk + 1), x = B_w B_x / eps, where x^2"
    " is printed. The lemmas stand: with the sharper radius of S1 some K <= x^2 is enough.",
    "Section 3.4": "All three pairs of norms are compared on one matrix; the inputs of Lemmas 3.3"
    " and 3.4 are in the l_1 ball, those of Lemma 3.6 in the l_2 ball, so the bounds are not"
    " comparable by their symbols alone.",
    "Section 4.2": "The equality is for a fixed w, as displayed; with a supremum over w too it"
    " remains one where the heads have equal norm balls, and is <= otherwise.",
    "Section 4.3, several heads": "H^1.5 is for one layer, which the sentence compares; in earlier"
    " ones of several layers alpha_i gains another H^{L-i}.",
    "Theorem 5.1": "Foster and Rakhlin's contraction is in terms of complexities that are worst"
    " over samples, as Theorems 4.1 and 4.2 bound them; the display has one sample on both sides."
    " With every constant and logarithm, sqrt(K) was larger than Maurer's 2 K, which needs"
    " none, or vacuous at all K and m tried, up to 10^15 (seqlength.thm5.1-constants); by"
    " covers (Theorem 4.2) it is a sqrt(K) beside the read-out alone (seqlength.thm5.1-cover).",
    "Lemma 3.6, last line": "B_x^2 B_w^2 / 2 for B_x^2 B_w^2 / eps^2 rests on one glyph.",
}
