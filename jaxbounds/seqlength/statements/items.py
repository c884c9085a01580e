"""Every numbered item and display of the paper, and what is said about it here."""

_SECTION_2 = {
    "Section 2.1, ||W||_{q,p}": "seqlength.sec2.1-norm, E14",
    "Section 2.1, ||W||_{q->p}": "seqlength.sec2.1-operator",
    "Section 2.1, ||W||_F": "seqlength.sec2.1-frobenius",
    "Section 2.2, the generalization gap": "seqlength.sec2.3-gap",
    "Section 2.3, Rad_n": "seqlength.sec2.3-linear, seqlength.sec2.3-monte-carlo",
    "Section 2.3, the gap by Rad": "seqlength.sec2.3-gap, seqlength.sec2.3-tail, E16",
    "Section 2.4, covering numbers": "code: jaxbounds.seqlength.covering_numbers.covering_number",
    "Section 2.4, Dudley's integral": "seqlength.sec2.4-dudley",
    "Section 2.5, two types of bounds": "seqlength.sec2.5-counting, E15",
    "Section 2.6, the head": "code: jaxbounds.seqlength.model.head",
    "Section 2.6, several heads": "code: jaxbounds.seqlength.model.SingleLayer",
    "Section 2.6, f and g^1": "code: jaxbounds.seqlength.model.attend",
    "Section 2.6, g^(i+1)": "seqlength.sec2.6-block, seqlength.sec4.2-networks",
    "Section 2.6, W_Q and W_K": "none: shapes of W_Q, W_K, which only enter as W_QK in R^{d x d};"
    " d x T is in the remarks",
}
_SECTION_3 = {
    "Lemma 3.1": "seqlength.lemma3.1, seqlength.lemma3.1-greedy, E1",
    "after Lemma 3.1, d^k": "seqlength.lemma3.1-count, E2",
    "Section 3, a scalar cover for each row": "seqlength.appendix-a",
    "Lemma 3.2": "seqlength.lemma3.2, E13",
    "Lemma 3.3": "seqlength.lemma3.3, seqlength.lemma3.6-size, seqlength.lemma3.6-lists",
    "Lemma 3.3, proof: the cover of V": "seqlength.lemma3.3-radius, seqlength.lemma3.3-count",
    "Lemma 3.3, proof: the product of covers": "seqlength.lemma3.3",
    "Lemma 3.3, proof: max over i": "seqlength.lemma3.3",
    "Lemma 3.4": "seqlength.lemma3.4, seqlength.lemma3.4-count, seqlength.lemma3.4-size, E3",
    "Lemma 3.5": "seqlength.lemma3.5, seqlength.lemma3.5-cover, seqlength.lemma3.5-count,"
    " seqlength.lemma3.5-size, E3",
    "Lemma 3.6": "seqlength.lemma3.6, seqlength.lemma3.6-size, seqlength.lemma3.6-lists",
    "Lemma 3.6, proof: ||(W - What) x||": "seqlength.lemma3.6",
    "Section 3.4, ||W||_{p,1} <= d ||W||_{p,inf}": "seqlength.sec3.4",
    "Section 3.4, a d^2 B_w^2 term": "seqlength.sec3.4-converted",
}
_SECTION_4 = {
    "Section 4.1, the norms": "E4, seqlength.appc-peeling",
    "Section 4.1, Y_[CLS]": "seqlength.sec4.1-cls",
    "Section 4.1, the display of the Rademacher complexity": "seqlength.sec4.1-cls, E17, E19",
    "Theorem 4.1": "seqlength.thm4.1-class, seqlength.thm4.1, seqlength.thm4.1-norms, E4, E5",
    "Corollary 4.1.1": "seqlength.cor4.1.1, E7",
    "Section 4.1, no dependence on k": "code: jaxbounds.seqlength.single_layer.theorem_4_1",
    "Section 4.2, the display": "seqlength.sec4.2",
    "Section 4.2, a linear H": "seqlength.sec4.2-bounds",
    "Theorem 4.2": "seqlength.thm4.2, seqlength.thm4.2-packing, seqlength.appe-cover, E10",
    "Theorem 4.2, alpha_i": "code: jaxbounds.seqlength.multi_layer.downstream_factors",
    "Theorem 4.2, tau_i, gamma, eta": "code: jaxbounds.seqlength.multi_layer.theorem_4_2_printed",
    "Section 4.3, Dudley after Theorem 4.2": "seqlength.sec4.3-dudley",
    "Corollary 4.2.1": "seqlength.cor4.2.1-packing, seqlength.cor4.2.1, E9, E11",
    "Corollary 4.2.1, alpha_i, tau_i, gamma, eta": "seqlength.cor4.2.1-packing",
    "Section 4.3, the order with (..)^{O(L)}": "seqlength.sec4.3-order, E9",
    "Section 4.3, one layer: a factor B_x^2": "E9",
    "Section 4.3, H^1.5": "seqlength.sec4.3-heads",
}
_SECTIONS_5_AND_6 = {
    "Section 5, the cross entropy": "code: jaxbounds.seqlength.masking.cross_entropy",
    "Theorem 5.1": "seqlength.thm5.1, seqlength.thm5.1-constants, seqlength.thm5.1-links,"
    " seqlength.thm5.1-cover, seqlength.thm5.1-binary",
    "Theorem 5.1, proof: the display": "seqlength.thm5.1, E19",
    "Theorem 5.1, proof: 2-Lipschitz": "seqlength.sec5-lipschitz",
    "Theorem 5.1, proof: W_s Y is of the form of Theorems 4.1 and 4.2": "seqlength.sec4.2-networks",
    "Section 5, clipped cross entropy": "seqlength.sec5-clipping",
    "Section 6, the label": "seqlength.sec6-task",
    "Section 6, the network": "seqlength.sec6-network",
    "Figure 1": "code: jaxbounds.seqlength.experiments.majority, jaxbounds.seqlength.trends.trend",
    "Figure 2": "code: jaxbounds.seqlength.experiments.majority, jaxbounds.seqlength.trends.trend",
    "Figure 3": "code: jaxbounds.seqlength.experiments.majority, jaxbounds.seqlength.trends.trend",
}
_APPENDICES = {
    "Appendix A": "seqlength.appendix-a, E16",
    "Appendix B": "seqlength.lemma3.2, E13",
    "Appendix C, v.u <= B_v max_j |e_j u|": "seqlength.appc-holder, E16",
    "Lemma C.1": "seqlength.lemma-c.1",
    "Appendix C, removing w, W_c and W_v": "seqlength.appc-peeling, E4, E19",
    "Appendix C, Rad(F u -F) <= 2 Rad(F)": "seqlength.appc-negation, seqlength.appc-sign",
    "Appendix C, contraction": "seqlength.appc-contraction, seqlength.appc-sign",
    "Appendix C, the set S": "seqlength.appc-cover-size",
    "Appendix C, the chain to 2 B_x^2 eps / (2 B_x^2)": "seqlength.appc-cover",
    "Appendix C, the size of S": "seqlength.appc-cover-size",
    "Appendix C, Dudley's integral": "seqlength.appc-dudley, seqlength.appc-massart, E6",
    "Appendix C, delta": "seqlength.appc-optimum, E5",
    "Appendix C, the last display": "seqlength.appc-optimum, E5",
    "Corollary D.0.1": "seqlength.cor-d.0, seqlength.cor-d.0-orientation, E3",
    "Corollary D.0.2": "seqlength.cor-d.0, seqlength.cor-d.0-logarithms, seqlength.cor-d.0-class,"
    " seqlength.sec4.3-logarithms, seqlength.cor-d.0-orientation, E3",
    "Lemma E.1": "seqlength.lemma-e.1, seqlength.lemma-e.1-minimiser, E8",
    "Lemma E.2": "seqlength.lemma-e.2, seqlength.lemma-e.2-first, E9",
    "Lemma E.3": "seqlength.lemma-e.3",
    "Appendix E, the product of covers": "seqlength.appe-cover, E16",
    "Appendix E, ||(W - What) C||_{2,inf} is a maximum over tokens": "code:"
    " jaxbounds.norms.max_row_norm",
    "Appendix E, one layer": "seqlength.lemma-e.2",
    "Appendix E, the unrolled chain": "seqlength.appe-chain, E9",
    "Corollary F.0.1": "seqlength.cor-f.0.1, seqlength.cor-f.0-shapes, E18, E3",
    "Corollary F.0.1, alpha_i, tau_i, gamma, eta": "code:"
    " jaxbounds.seqlength.multi_layer.theorem_4_2_printed",
    "Corollary F.0.2": "seqlength.cor-f.0-shapes, seqlength.cor-d.0-logarithms,"
    " seqlength.cor-d.0-class, E18, E3",
    "Corollary F.0.2, alpha_i, tau_i, gamma, eta": "code:"
    " jaxbounds.seqlength.multi_layer.theorem_4_2_printed",
    "Appendix G, 2-Lipschitz": "seqlength.sec5-lipschitz",
    "Appendix G, the mean value theorem": "seqlength.sec5-lipschitz",
    "Appendix G, the two derivatives": "seqlength.appendix-g",
    "Appendix G, the l_1 norm of the gradient": "seqlength.appendix-g",
}
ITEMS = {**_SECTION_2, **_SECTION_3, **_SECTION_4, **_SECTIONS_5_AND_6, **_APPENDICES}
