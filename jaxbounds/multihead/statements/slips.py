"""Slips of the pen in the paper: errata of kind "typo"."""

from jaxbounds.claims.statements import Erratum

SLIPS = (
    Erratum(
        id="E8",
        where="Section 6.2, eq. (21); Appendix C, the display before (89), and (89)",
        kind="typo",
        quote="∥θ_{k+1} − θ^{¬i}_{k+1}∥ ≤ ((1 + ηβ̃_3(θ)/√H) max_α L̂^{¬i}(θ^{¬i}_{kα})) ∥θ_k − "
        "θ^{¬i}_k∥ + (ηβ_1(θ_k)/n) ℓ_i(θ_k). (21)",
        text="The bracket closes too late: 1 + (eta beta~_3 / sqrt(H)) max L^{-i} is meant, as in "
        "(20) and (22).",
        consequence="None: (22), which is what is used, has the bracket right.",
        main="survive",
        evidence="multihead.eq21",
    ),
    Erratum(
        id="E7",
        where="Section 7, the restatement of Proposition 3; Section 5.3 on eq. (8)",
        kind="typo",
        quote="yΦ(X; U_opt, Γ_ε·W_opt) = (S√T/√2)((1−ε) − 2εZ_µ/S) for all Γ_ε ≳ "
        "log((ζ^{−1}−1)/ε)/S",
        text="(11) has '>=', Z_mu / S^2 and 1/S^2. In Section 5.3 the gap of relevance scores that "
        "(8) gives for W* is of order S^4; O(S^2) is W_opt's.",
        consequence="None downstream.",
        main="survive",
        evidence="multihead.prop3.margin, multihead.eq8",
    ),
    Erratum(
        id="E28",
        where="Section 4.3, below Corollary 2",
        kind="typo",
        quote="Assuming B_Φ = Õ_K(1) and γ = O_K(1), then choosing η = Õ_K(1), the corollary "
        "guarantees train loss is Õ_K(1/K) [...] Moreover, after K ≈ n GD steps the expected test "
        "loss is O(1/n).",
        text="gamma is in the denominator: Omega_K(1) is meant. And O~(1/n), as Section 1 has it: "
        "n times the bound is of order log(n)^4 at Corollary 5's step, log(n)^6 at Corollary 2's "
        "own rho(K).",
        consequence="None.",
        main="survive",
        evidence="by reading; multihead.cor2.rates",
    ),
    Erratum(
        id="E10",
        where="Section 5.3, the display above 'Combining these two gives'",
        kind="typo",
        quote="H^{p−2} ≳ C and H^{p−1/4} ≲ C/log^{5/2}(n).",
        text="The second exponent is p - 3/4.",
        consequence="None: the contradiction with (12) stands, in the omitted case too; it is one "
        "with (12), not with (3) (E27).",
        main="survive",
        evidence="multihead.sec5.3-exponent, multihead.sec5.3-target",
    ),
    Erratum(
        id="E17",
        where="Appendix A.1, eqs. (25), (26), (32), (34)",
        kind="typo",
        quote="φ(v+δ) = φ(v) + (diag(φ(v)) − φ(v)φ(v)^⊺)δ + o(∥δ∥²). (26)",
        text="The remainder is O(||delta||^2). Above it v is in R^T, not R^d, and phi'(d) is "
        "phi'(v).",
        consequence="None: o(||delta||) is what the gradient formulas need.",
        main="survive",
        evidence="multihead.eq26",
    ),
    Erratum(
        id="E6",
        where="Appendix E, eq. (123)",
        kind="typo",
        quote="U_opt := (1/(S√T)) 1_d(µ_+ − µ_−)^⊺, (123) [...] normalized so that ∥θ_opt∥_F = √2.",
        text="1_d is 1_T, and the norm is sqrt(2): S sqrt(2 T) is meant.",
        consequence="None: (9) is right and is what (11) uses.",
        main="survive",
        evidence="multihead.eq9",
    ),
    Erratum(
        id="E15",
        where="Section 5.2, above 'To simplify the exposition here'",
        kind="typo",
        quote="Note that φ′(0) = I − (1/T) 1_T 1_T^⊺.",
        text="The factor 1/T in front is missing; R_0 of Appendix D.2.3 has it.",
        consequence="None downstream.",
        main="survive",
        evidence="multihead.sec5.2-phi0",
    ),
    Erratum(
        id="E16",
        where="Appendix D.3, proof of Lemma 16, and eq. (120)",
        kind="typo",
        quote="and also ℓ′(0) = 1/2 for the logistic loss.",
        text="l'(0) = -1/2; 1/n is 1/n1; the tau-th column is a row.",
        consequence="None: descent turns the sign, so (120) is right.",
        main="survive",
        evidence="multihead.lem16",
    ),
    Erratum(
        id="E20",
        where="Appendix E.1, the display below eq. (129)",
        kind="typo",
        quote="Z_µ = Z_ν ≤ S²/8 [...] A ≥ (3/4)S⁴ > (1.25/4)S⁴ ≥ 2B.",
        text="1.25 S^4 / 4 bounds B, not 2 B.",
        consequence="None: A > 2 B is still true.",
        main="survive",
        evidence="multihead.eq129",
    ),
    Erratum(
        id="E22",
        where="Appendix B, eq. (67), and the places named here",
        kind="typo",
        quote="min_{θ∈[θ_1,θ_2]} λ_min(∇²L̂(θ)) ≥ −((β_3(θ_1)∨β_3(θ_2))/√H) · L̂(θ). (67)",
        text="The theta on the right of (67) is unbound; (15) has the maximum over the segment. "
        "(16) has theta_1, theta_2 for theta, theta_k; Lemma 7's proof beta_2(theta) v "
        "beta_2(theta_k) for theta_k, theta_{k+1}; Theorem 3's eta <= 1 v 1/rho for the minimum; "
        "Lemmas 8 to 10 need k = 0 as well as k in [K - 1]; Lemma 17 has probability 1 - 2 delta, "
        "Lemma 2 has 1 - delta; Lemma 16 refers to the step 'as in (102)', which is Section 5.1's. "
        "(Proposition 2's R^4 for Lemma 15's R^3 is the stronger condition, and no slip.)",
        consequence="None: (15) is what is used, and the proofs read right with these.",
        main="survive",
        evidence="by reading; multihead.eq15, multihead.eq16",
    ),
    Erratum(
        id="E21",
        where="Section 5.2, the factors of W*",
        kind="typo",
        quote="note that W_⋆ = W_{K,⋆}W_{Q,⋆}^⊺",
        text="The names are swapped relative to W = W_Q W_K^T of Section 2.",
        consequence="None: W* itself is right.",
        main="survive",
        evidence="by reading",
    ),
    Erratum(
        id="E31",
        where="Appendix D.2.2, proof of Lemma 12, eq. (103)",
        kind="typo",
        quote="(1/√H) ∑_{h∈[H]} ⟨U_h^{(1)}, φ(XW_h^{(1)}X^⊺)X⟩ = (1/√H) ∑_{h∈[H]} (α_h/T) "
        "⟨U_h^{(1)}, 1_T 1_T^⊺ X⟩ =: (1/√H) ∑_{h∈[H]} X_h. (103)",
        text="U_h^(1) of (102) has the factor alpha_h already, so that it is counted twice: "
        "alpha_h^2 is what it says. <U^(1), .> without the index, as two lines below, is meant.",
        consequence="None: the bound of |X_h| below it is for one factor.",
        main="survive",
        evidence="multihead.lem12",
    ),
    Erratum(
        id="E32",
        where="Appendix E.1, the last display of the proof of Proposition 3, on psi_t",
        kind="typo",
        quote="≥ yS² ∑_{t′∈R} [φ(x_t^⊺ W_⋆ X^⊺)]_{t′} − 2Z_µ ∑_{t′∈R^c} [φ(x_t^⊺ W_⋆ X^⊺)]_{t′} ≥ "
        "yS²(1−ϵ) − 2ϵZ_µ.",
        text="For y = -1 the second step is false, -S^2 a >= -S^2 (1 - epsilon) for a >= 1 - "
        "epsilon, and the factor y that follows would turn both. y psi_t >= S^2 a - 2 Z_mu (1 - a) "
        ">= S^2 (1 - epsilon) - 2 epsilon Z_mu is meant.",
        consequence="None: (11) follows from that.",
        main="survive",
        evidence="multihead.prop3.margin",
    ),
    Erratum(
        id="E33",
        where="Appendix D.2.3, eq. (115) and the displays above it",
        kind="typo",
        quote="y⟨∇_WΦ(X;θ^(1)), W_⋆⟩ ≥ α{ [...] −2((4−ζ²)Z_µ+2ζ(1−ζ)Z_ν)Z_µS²",
        text="For alpha < 0 the inequality turns: sign(alpha) W* and |alpha| are meant, as in "
        "(107) and (116). (112) and (113) add up to 4 - 2 zeta - zeta^2 for 4 - zeta^2: the '=' "
        "is '>='.",
        consequence="None: (116) has |alpha|, and the printed brace is the smaller.",
        main="survive",
        evidence="by reading; multihead.lem13",
    ),
    Erratum(
        id="E34",
        where="Appendix D.2.3, the display above 'Using Assumption 3 to simplify the second term'",
        kind="typo",
        quote="∑_{t′∈R^c} ((z_t^⊺µ_+)(z_{t′}^⊺µ_+) + (z_t^⊺µ_−)µ_−) + (∑_{j_t} ν_{j_t}^⊺z_t)"
        "(z_{t′}^⊺µ_+) + [...] + S²z_{t′}^⊺(µ_+ + µ_−))",
        text="The second product lacks z_t'^T, without which it is a vector, with the bracket that "
        "opens it: (z_t^T mu_-)(z_t'^T mu_-), as in (110).",
        consequence="None: the next display and (113) have it.",
        main="survive",
        evidence="by reading; multihead.eq110, multihead.eq113",
    ),
    Erratum(
        id="E35",
        where="Section 5.3, below the choice of U_h and W_h",
        kind="typo",
        quote="To yield the margin γ_attn of (10), we need that each W_h has norm at least Γ_ε ∝ "
        "1/S².",
        text="The margin gamma_attn is (11); (10) is about attention scores.",
        consequence="None.",
        main="survive",
        evidence="by reading",
    ),
)
