"""Errata of the paper, the weightiest first; slips of the pen are in `slips`."""

from jaxbounds.claims.statements import Erratum
from jaxbounds.multihead.statements.slips import SLIPS

FALSE = (
    Erratum(
        id="E5",
        where="Appendix C.3, Proposition 7, its last sentence; the proof's last paragraph",
        kind="false",
        quote="Then, the realizability Assumption 2 holds with g_0(ε) = (1/γ)(2 B_Φ + log(1/ε)) "
        "and g(ε) = B_2 + g_0(ε).",
        text="No theta need be that near. One token x = 1, one sample, theta_0 = 0: gamma = "
        "sqrt(2), B_Phi = 1, and at epsilon = e^-7 the least loss within g_0 = 9 / sqrt(2) is "
        ".00172 > .00091, for every H. The proof's theta(epsilon) = theta_0 + G theta* with "
        "||theta*|| = sqrt(2) is sqrt(2) G away, not G; (100) drops its square. With "
        "g_0 = sqrt(2) G and g = B_2 + sqrt(2) G it holds.",
        consequence="(98) survives with its constant 5. Corollary 5 is unproved as printed, not "
        "refuted; in terms of G its proof gives 5/2 for 5/4, 34 for 17, (4 sqrt(2) G + B_2) and "
        "2 G^2 in H, 8 for 4 in the step. Or take ||theta*|| = 1 in P3.",
        main="survive: Theorems 3 and 4 do not use it; Corollaries 2 and 5 get other constants",
        evidence="multihead.prop7.exists, multihead.prop7.distance",
    ),
    Erratum(
        id="E2",
        where="Appendix D.3, proof of Lemma 17; with it Lemma 2, Section 5.1, and eq. (102)",
        kind="false",
        quote="Note that E[X_v] = ⟨v, u_⋆⟩.",
        text="E[y mu_y] = (mu_+ - mu_-) / 2 = u*/2: U^(1) tends to alpha (zeta/4) 1 u*^T, not "
        "alpha (zeta/2) 1 u*^T, and p of Lemma 2 does not vanish as n1 grows.",
        consequence="About the printed centre ||p|| tends to zeta S sqrt(2) / 4, and then "
        "gamma* of (7) is below gamma_lin, always. About (zeta/4) u* all of Section 5 "
        "goes through with alpha = +-1, and with half of gamma*'s first two terms on [-1, 1]: its "
        "gain over the linear model is real.",
        main="survive: Section 5 applies them; its gain needs the true centre",
        evidence="multihead.lem2.rate, multihead.sec5.3-order",
    ),
    Erratum(
        id="E18",
        where="Section 5.3, below Proposition 3; Section 7",
        kind="false",
        quote="In particular, γ_attn ≥ γ_⋆ ≥ γ_lin and the gap increases with decreasing sparsity.",
        text="gamma* grows as S^4 (it is not normalised by the size of theta^(1)) and passes "
        "gamma_attn, which grows as S. At Z_mu = Z_nu = S^2/10, which Proposition 3 allows, and "
        "zeta = 1/2 it is below gamma_lin for every S, even at P = 0: .809 < .894 at S = 1, T = "
        "10, M = 2. With noise of order S, as in Section 5.1, and P = O(1) the second inequality "
        "holds for large S; with the P of the printed centre (E2) it fails always. That the gap "
        "increases as zeta falls is true of gamma_attn - gamma_lin and, without noise, at P = 0 "
        "and where the order holds, of gamma_attn - gamma*; gamma* - gamma_lin, without noise, "
        "falls with zeta below 2/3.",
        consequence="NTK margins at different starts are not comparable without their norms; "
        "gamma_lin <= gamma_attn holds.",
        main="survive",
        evidence="multihead.sec5.3-order, multihead.sec5.3-sparsity",
    ),
    Erratum(
        id="E25",
        where="Appendix E, Lemma 18",
        kind="false",
        quote="such that for some L ∈ [T] and A, B ∈ R: [...] Further assume A > 2B. Fix any ε > 0 "
        "and Γ ≥ (2/A) log((T/L − 1)/ε).",
        text="That Gamma >= (2/A) log(C/epsilon) ensures exp(Gamma A / 2) >= C / epsilon needs A > "
        "0 (the step before it, Gamma (A - B) >= Gamma A / 2, needs Gamma >= 0: E29). A = -1, B = "
        "-2, T = 4, L = 2, epsilon = .1 allow Gamma = 1, which leaves mass .269 off the top.",
        consequence="None for Proposition 3, where A >= 3 S^4 / 4 > 0; see E29.",
        main="survive",
        evidence="multihead.lem18",
    ),
    Erratum(
        id="E9",
        where="Appendix D.1, Fact 2; Lemma 12 where alpha = +-1",
        kind="false",
        quote="with probability at least 1−δ it holds that |(1/H) ∑_h X_h − µ| ≤ "
        "2B √(log(1/δ)/(2H)).",
        text="Two-sided Hoeffding needs log(2/delta). Three signs: P(|mean| >= 1) = 1/4 > .2231.",
        consequence="Lemma 12 fails for signs and delta close to one (at a first phase of two "
        "samples from .9986 on), and holds for alpha on [-1, 1]. With log(2/delta) P2 holds for "
        "all samples at once; P2 as printed is true for n >= 2; Lemma 14 is one-sided.",
        main="survive",
        evidence="multihead.fact2, multihead.lem12",
    ),
    Erratum(
        id="E1",
        where="Appendix A, eq. (24)",
        kind="false",
        quote="L̂′(θ) ≤ L̂(θ) ≤ 1, and L̂″(θ) ≤ 1/4.",
        text="L is unbounded: 30.0 for three equal tokens; L' <= min(L, 1) is true.",
        consequence="Used in (66) and in Theorem 3's proof only through L' <= 1: nothing breaks.",
        main="survive",
        evidence="multihead.eq24.loss",
    ),
)

GAPS = (
    Erratum(
        id="E11",
        where="Section 4.1, Theorem 1, eq. (3) and rho; Section 4.3, Corollary 2",
        kind="gap",
        quote="√H ≳ dT^{1/2}R^5 ∥θ∥_{2,∞}∥θ − θ^(0)∥^3. (3) [...] with ρ(θ) ≲ "
        "d^{3/2}T^{3/2}R^{13}∥θ∥²_{2,∞}∥θ − θ^(0)∥²",
        text="What is proved is Theorem 3. Its (74) has the sum (3 D + ||theta||_{2,inf}) D^2, "
        "which (3) implies only where ||theta||_{2,inf} and D are at least of order one: for a "
        "target spread over the heads (3) asks for H >~ D^4, (74) for H >~ D^6. Its rho has a "
        "term of order d T^2 R^12 without 1 / sqrt(H), which the printed order covers only for "
        "T <~ d R^2. Corollary 2's B_2^2 g_0(1/K)^3 covers the B_2 (4 g_0 + B_2) g_0^2 of "
        "Corollary 5 only where g_0 >~ 1: for T = R equal tokens of norm R, g_0 is of order "
        "R^{-3/2}, and print asks for sqrt(H) of order R, Corollary 5 for R^{5/2}. Its rho(K) >~ "
        "d^{3/2} T^{3/2} R^13 g_0(1/K)^4 drops B_2, which Corollary 5 adds to 4 g_0(1/K).",
        consequence="Use Theorem 3; likewise Corollary 5 for Corollary 2. Nothing refutes (4) "
        "under (3).",
        main="changed to Theorems 3 and 4, with (74), (84) and their rho; those stand",
        evidence="multihead.eq3, multihead.thm1.rho, multihead.cor2.heads",
    ),
    Erratum(
        id="E13",
        where="Appendix A.1, proof of Proposition 5, eqs. (49), (51), (52)",
        kind="gap",
        quote="∇²_W Φ(X;θ) = [∇_W([∇_W Φ(X;θ)]_11) ... ∇_W([∇_W Φ(X;θ)]_1d); ...; "
        "∇_W([∇_W Φ(X;θ)]_d1) ... ∇_W([∇_W Φ(X;θ)]_dd)]. (51)",
        text="The block matrices have d^2 Phi / dW_ij dW_kl at row (i, k), column (j, l): they are "
        "realignments of the Hessian, and the quadratic form (52) is not <v, Hess v>. One line "
        "for each repairs it, with the same constants: (53)-(56) bound sum_ij Q_ij <M_ij, Q>, "
        "M_ij = grad_W [grad_W Phi]_ij, since sum_ij |Q_ij| <= d ||Q||_F; and (57) bounds "
        "2 sum_tj P_tj <N_tj, Q>, N_tj = grad_W [grad_U Phi]_tj, since sum_tj |P_tj| <= "
        "sqrt(T d) ||P||_F. Together they are <v, Hess v>.",
        consequence="None: (58) is true; S5 implies it too.",
        main="survive",
        evidence="multihead.eq49, multihead.eq51, multihead.prop1.2",
    ),
    Erratum(
        id="E12",
        where="Appendices B.5 and C.2, proofs of Corollaries 3 and 4",
        kind="gap",
        quote="there exists a θ(ε) such that L̂(θ(ε)) ≤ ε and ∥θ(ε) − θ_0∥ = g_0(ε).",
        text="Assumption 2 gives <= only, from which eta <= D^2 / (K L) does not follow.",
        consequence="None: Theorem 3's proof works with any upper bound of D, here g_0(1/K).",
        main="survive",
        evidence="multihead.cor3, multihead.cor4",
    ),
    Erratum(
        id="E24",
        where="Section 6.2, Lemma 3, and Appendix C.1, proof of Theorem 4",
        kind="gap",
        quote="Moreover, as per Corollary 1 the objective is Lipschitz at all iterates with "
        "parameter β̃_1(θ)",
        text="Lemma 3 asks for a G-Lipschitz loss; beta~_1 is a Lipschitz constant on a ball only, "
        "and for fresh samples too where Assumption 1 holds almost surely. The iterates of all "
        "runs and the segments between them lie in that ball by (75), which is enough.",
        consequence="None.",
        main="survive",
        evidence="multihead.lem3",
    ),
    Erratum(
        id="E30",
        where="Appendix C, proof of Lemma 11, the display after (91)",
        kind="gap",
        quote="4ηβ̃_3(θ)/(3√H) ∑_l (L̂(θ_l) + L̂(θ_l^{¬i})) ≤ 4ηβ̃_3(θ)/(3√H) (5k L̂(θ) + "
        "5∥θ − θ_0∥²/(2η))",
        text="(79) bounds the leave-one-out loss of the leave-one-out run, not its full loss "
        "L(theta_l^{-i}).",
        consequence="None: without the line before it the sum of L^{-i}(theta_l^{-i}) is "
        "bounded by (79) for that run, and Lemma 11 stands.",
        main="survive",
        evidence="multihead.lem11",
    ),
)

READINGS = (
    Erratum(
        id="E27",
        where="Section 5.3, the end of the paragraph 'Intuitively, this contradiction arises'",
        kind="reading",
        quote="We thus conclude that the construction of weights in Proposition 3 does not yield a "
        "target parameter that simultaneously achieves low empirical loss and allows choosing H "
        "large enough as per (3).",
        text="(12) has ||theta||^3 where (3) has ||theta||_{2,inf} ||theta - theta_0||^3, and here "
        "||theta||_{2,inf} is of order log(n) / S^2. At H = S^2 and ||W_h|| = Gamma_eps the right "
        "side of (3) is of order log(n)^4 and sqrt(H) = S: (3) is met for large S. As per (12) or "
        "(74) the conclusion stands, for every normalization H^c too.",
        readings=("(3) as it is printed", "(3) as Theorem 3 states it, (74)"),
        consequence="If (3) were sufficient, the construction would be a target. What is proved "
        "asks for (74) (E11).",
        main="survive",
        evidence="multihead.sec5.3-target",
    ),
    Erratum(
        id="E3",
        where="Appendix D.2.3, the last step of eq. (116)",
        kind="reading",
        quote="≥ E_{α∼Unif(±1)} |α|/∥W_⋆∥ {T(1−ζ)ζ/2 (ζS⁶ − 7Z̄S⁴ − 12Z̄²S² − 16Z̄³) − "
        "2√(2(M+1)) PT^{5/2}S²(S+Z)³} ≥ T(1−ζ)ζ/(4√(2(M+1))) (ζS⁴ − 7Z̄S² − 12Z̄² − 16Z̄³/S²) − "
        "PT^{5/2}(S+Z)³. (116)",
        text="The step halves the brace: exact for alpha uniform on [-1, 1], E|alpha| = 1/2. For "
        "signs, which Lemma 17 writes Rad(+-1), E|alpha| = 1: the step loses a factor of two, and "
        "is false where the brace is negative, as it always is at the P that the printed centre "
        "forces (E2). The last line, and Lemma 13, held in every draw on both readings. About the "
        "true centre (zeta/4) u* (E2) signs make (7) exact; on the interval its first term is "
        "twice too large.",
        readings=("Unif(+-1) is uniform on [-1, 1]", "Unif(+-1) is a sign"),
        consequence="Read alpha = +-1 and the centre (zeta/4) u*.",
        main="survive",
        evidence="multihead.eq116, multihead.lem13",
    ),
    Erratum(
        id="E29",
        where="Section 5.3, Proposition 3, the condition on Gamma",
        kind="reading",
        quote="For any ε > 0, consider Γ_ε satisfying Γ_ε ≥ (8√(2(M+1))/(3S²)) log((ζ^{−1} − "
        "1)/ε).",
        text="Where epsilon > 1/zeta - 1 the logarithm is negative: four of five tokens relevant "
        "and epsilon = 1/2 allow Gamma < 0, which leaves mass .61 > 1/2 on the irrelevant one.",
        readings=("Gamma is any real number", "Gamma is a scale, at least zero"),
        consequence="None: Gamma at least the positive part is all that is used.",
        main="survive",
        evidence="multihead.prop3.mass, multihead.prop3.margin",
    ),
    Erratum(
        id="E14",
        where="Section 2, footnote to eq. (1)",
        kind="reading",
        quote="our results also apply to (ii) Pooling: U = u1_T^⊺ with trainable u ∈ R^d",
        text="With a trainable u the gradient sums over tokens: the bound sqrt(T) R of (37) "
        "becomes T R, the 2 sqrt(T) R^3 ||u|| of (46) becomes 2 T R^3 ||u|| and the mixed block 2 "
        "sqrt(T d) R^3 of (57) 2 T sqrt(d) R^3. (u 1_T^T is d x T; 1_T u^T is meant.)",
        readings=("apply with the same constants", "apply with T for sqrt(T) in the constants"),
        consequence="The last-token output (iii) has the printed bounds, and smaller ones.",
        main="survive",
        evidence="multihead.footnote1.pooling, multihead.footnote1.pooling-w",
    ),
)

ERRATA = (*FALSE, *GAPS, *READINGS, *SLIPS)
