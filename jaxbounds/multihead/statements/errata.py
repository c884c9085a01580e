"""Errata of the paper."""

from jaxbounds.statements import Erratum

ERRATA = (
    Erratum(
        id="E1",
        where="Appendix A, eq. (24)",
        kind="false",
        text="Prints L' <= L <= 1, but L is unbounded; L' <= min(L, 1) is true.",
        consequence="Used in (66) and in Theorem 3's proof only through L' <= 1: nothing breaks.",
        evidence="multihead.eq24.loss: L = 30.0 for three equal tokens",
    ),
    Erratum(
        id="E2",
        where="Lemma 2, Lemma 16, Lemma 17, Section 5.1",
        kind="false",
        text="E[y mu_y] = u*/2, not u*: U^(1) tends to alpha (zeta/4) 1 u*^T, not (zeta/2). "
        "Lemma 17's E[X_v] = <v, u*> has the same slip.",
        consequence="With the printed centre P >= zeta S sqrt(2)/4 for every n1 and gamma* of (7) "
        "is always below gamma_lin. Recentred, all of Section 5 goes through.",
        evidence="multihead.lem2.rate, multihead.sec5.3-order",
    ),
    Erratum(
        id="E3",
        where="Proposition 2, Lemma 13, eqs. (115), (116)",
        kind="underspecified",
        text="alpha ~ Unif(+-1) is never said to be signs or an interval; (116) divides by two as "
        "for [-1, 1]. With signs and the true centre zeta/4 the two factors cancel and (7) holds; "
        "with [-1, 1] and zeta/4 its first term is twice too large.",
        consequence="Read alpha = +-1 and the centre (zeta/4) u*.",
        evidence="multihead.lem13",
    ),
    Erratum(
        id="E4",
        where="eqs. (114), (115), (116)",
        kind="proof",
        text="(115) counts a factor two that (116) drops; it was not needed, since "
        "zeta S^2 + (1 - zeta)(S + Z)^2 <= (S + Z)^2.",
        consequence="None: (7) survives, and T^{5/2} can be T (S13).",
        evidence="multihead.eq114",
    ),
    Erratum(
        id="E5",
        where="Proposition 7; Corollary 2 / Corollary 5",
        kind="false",
        text="theta(eps) = theta_0 + G theta* with ||theta*|| = sqrt(2) is sqrt(2) G away from "
        "theta_0, not g_0 = G; (100) drops the same factor.",
        consequence="(98) survives with its constant 5. Corollary 5 in terms of G: 5/2 for 5/4, "
        "34 for 17, (4 sqrt(2) G + B_2) and 2 G^2 in H, 8 for 4 in the step. Or take ||theta*|| = "
        "1 in P3.",
        evidence="multihead.prop7.distance",
    ),
    Erratum(
        id="E6",
        where="Appendix E, eq. (123)",
        kind="false",
        text="U_opt = 1_d (mu_+ - mu_-)^T / (S sqrt(T)) has norm sqrt(2); 1_d is 1_T.",
        consequence="None: (9) is right and is what (11) uses.",
        evidence="multihead.eq9",
    ),
    Erratum(
        id="E7",
        where="Section 7; eq. (8)",
        kind="inconsistent",
        text="Section 7 restates Proposition 3 with '=', Z_mu / S and 1/S; (11) has '>=', "
        "Z_mu / S^2 and 1/S^2. The gap that (8) gives for W* is O(S^4); O(S^2) is W_opt's.",
        consequence="None downstream.",
        evidence="multihead.prop3.margin, multihead.eq8",
    ),
    Erratum(
        id="E8",
        where="Section 6.2, eq. (21); Appendix C, the display before (89), and (89)",
        kind="typo",
        text="The factor ((1 + eta beta_3 / sqrt(H)) max L) of ||theta_k - theta_k^{-i}|| must be "
        "(1 + (eta beta_3 / sqrt(H)) max L), as in (20) and (22). In the sum after (91), (79) "
        "bounds the leave-one-out loss of the leave-one-out run, not its full loss.",
        consequence="(22), which is what is used, has the bracket right; Lemma 11 survives.",
        evidence="multihead.eq21",
    ),
    Erratum(
        id="E9",
        where="Fact 2; Lemma 12",
        kind="false",
        text="Two-sided Hoeffding needs log(2/delta). Three signs: P(|mean| >= 1) = 1/4 > .2232.",
        consequence="P2 with log(2/delta), for all samples at once; Lemma 14 is one-sided.",
        evidence="multihead.fact2, multihead.lem12",
    ),
    Erratum(
        id="E10",
        where="Section 5.3, below eq. (12)",
        kind="typo",
        text="H^{p - 1/4} must be H^{p - 3/4}.",
        consequence="None: the contradiction stands, in the omitted case too.",
        evidence="multihead.sec5.3-exponent, multihead.sec5.3-target",
    ),
    Erratum(
        id="E11",
        where="Section 4.1, eq. (3) and rho of Theorem 1; Corollary 2",
        kind="inconsistent",
        text="(3) and (74) do not imply each other unless ||theta||_{2,inf} and D are at least "
        "one: for a target spread over the heads (3) asks for H >~ D^4, (74) for H >~ D^6. The "
        "rho of Theorem 1 lacks the term T R^2 / 4 alpha^2 of Theorem 3, of order d T^2 R^12.",
        consequence="Use Theorem 3; likewise for Corollary 2 against Corollary 5.",
        evidence="multihead.eq3, multihead.thm1.rho",
    ),
    Erratum(
        id="E12",
        where="Appendices B.5 and C.2, proofs of Corollaries 3 and 4",
        kind="proof",
        text="They use ||theta(eps) - theta_0|| = g_0(eps), but Assumption 2 gives <= only, from "
        "which eta <= D^2 / (K L) does not follow.",
        consequence="None: Theorem 3's proof works with any upper bound of D, here g_0(1/K).",
        evidence="multihead.cor3, on instances with strict inequality",
    ),
    Erratum(
        id="E13",
        where="Appendix A.1, eqs. (49), (51), (52)",
        kind="proof",
        text="The block matrices have d^2 Phi / dW_ij dW_kl at row (i, k), column (j, l): they are "
        "realignments of the Hessian, and the quadratic form (52) is not <v, Hess v>.",
        consequence="The proof does not bound the Hessian; (58) is true, since S5 implies it.",
        evidence="multihead.eq51",
    ),
    Erratum(
        id="E14",
        where="Section 2, footnote to eq. (1)",
        kind="false",
        text="Pooling U = u 1_T^T is d x T; 1_T u^T is meant. With a trainable u the gradient "
        "bound sqrt(T) R becomes T R and the mixed Hessian block sqrt(T) R^3 becomes T R^3.",
        consequence="'Our results also apply' holds for pooling only with T for sqrt(T).",
        evidence="multihead.footnote1.pooling",
    ),
    Erratum(
        id="E15",
        where="Section 5.2",
        kind="typo",
        text="phi'(0) = I - (1/T) 1 1^T lacks the factor 1/T in front; Appendix D.2.3 has it.",
        consequence="None downstream.",
        evidence="multihead.sec5.2-phi0",
    ),
    Erratum(
        id="E16",
        where="Lemma 16",
        kind="typo",
        text="l'(0) = 1/2 is -1/2; 1/n is 1/n1; the tau-th column is a row.",
        consequence="None: descent turns the sign, so (120) is right.",
        evidence="multihead.lem16",
    ),
    Erratum(
        id="E17",
        where="Appendix A.1, eqs. (26), (32), (34)",
        kind="false",
        text="The remainder is O(||delta||^2), not o(||delta||^2). Also phi'(d) for phi'(v).",
        consequence="None: o(||delta||) is what the gradient formulas need.",
        evidence="multihead.eq26",
    ),
    Erratum(
        id="E18",
        where="Sections 5.3 and 7",
        kind="false",
        text="gamma_attn >= gamma* >= gamma_lin: gamma* grows as S^4 and passes gamma_attn (it is "
        "not normalised by the size of theta^(1)), and at moderate noise it is below gamma_lin.",
        consequence="NTK margins at different starts are not comparable without their norms.",
        evidence="multihead.sec5.3-order",
    ),
    Erratum(
        id="E19",
        where="Section 5.1",
        kind="false",
        text="'We cannot directly show that theta(0) = 0 is good': (106) holds at U = W = 0, so "
        "zero has NTK margin sqrt(2) gamma_lin, B_2 = B_Phi = 1.",
        consequence="Zero initialisation is good wherever gamma_lin > 0.",
        evidence="multihead.sec5.1-zero",
    ),
    Erratum(
        id="E20",
        where="Appendix E.1, below eq. (129)",
        kind="typo",
        text="1.25 S^4 / 4 bounds B, not 2 B.",
        consequence="None: A > 2 B is still true.",
        evidence="multihead.eq129",
    ),
    Erratum(
        id="E21",
        where="Section 5.2",
        kind="typo",
        text="W* = W_K W_Q^T has the names swapped relative to W = W_Q W_K^T.",
        consequence="None: W* itself is right.",
        evidence="by reading",
    ),
    Erratum(
        id="E22",
        where="Appendix B, eq. (67), and the proofs around it",
        kind="inconsistent",
        text="The theta on the right of (67) is unbound; eq. (15) has the maximum over the "
        "segment. (16) has theta_1, theta_2 for theta, theta_k; the proof of Lemma 7 has "
        "beta_2(theta) v beta_2(theta_k) for theta_k, theta_{k+1}, that of Theorem 3 eta <= 1 v "
        "1/rho for the minimum; Lemmas 8 to 10 need k = 0 as well as k in [K - 1].",
        consequence="None: (15) is what is used, and the proofs read right with these.",
        evidence="by reading",
    ),
    Erratum(
        id="E23",
        where="the early version only",
        kind="typo",
        text="phi'(v) = diag(phi) - v v^T, and <= for >= in (14).",
        consequence="Corrected in the published version.",
        evidence="multihead.eq25, multihead.eq14",
    ),
    Erratum(
        id="E24",
        where="Sections 4.3 and 5",
        kind="underspecified",
        text="The constant C of (6); that zeta T is an integer and d >= M + 2; that Lemma 15 needs "
        "gamma* > 0. R, B_2, B_Phi >= 1 only normalise. The experiments' Gaussian noise violates "
        "Assumption 3.",
        consequence="P# gives an explicit (6); data are refused where the sizes contradict.",
        evidence="by reading",
    ),
    Erratum(
        id="E25",
        where="Lemma 18; Proposition 3",
        kind="false",
        text="Needs A > 0 and Gamma >= 0: with A < 0, or eps > T/L - 1, the printed Gamma may be "
        "zero or negative and the mass off the top exceeds eps.",
        consequence="Proposition 3 needs the positive part of its logarithm.",
        evidence="multihead.lem18, multihead.prop3.mass, multihead.prop3.margin",
    ),
    Erratum(
        id="E26",
        where="Appendix G",
        kind="not reproduced",
        text="'All the optimizers find the planted model': Adam with step .06 ends in a sign-"
        "flipped basin for some teachers; smaller steps rescue it. Neither the teacher's law nor "
        "the step is stated.",
        consequence="The claim depends on teacher and step size.",
        evidence="training runs on DM2 with three teachers",
    ),
)
