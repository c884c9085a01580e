"""Errata of the paper that concern Section 3 and Appendix A."""

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
        id="E17",
        where="Appendix A.1, eqs. (26), (32), (34)",
        kind="false",
        text="The remainder is O(||delta||^2), not o(||delta||^2). Also phi'(d) for phi'(v).",
        consequence="None: o(||delta||) is what the gradient formulas need.",
        evidence="multihead.eq26",
    ),
    Erratum(
        id="E22",
        where="Appendix B, eq. (67)",
        kind="inconsistent",
        text="The theta on the right is unbound; eq. (15) has the maximum over the segment.",
        consequence="None: (15) is what is used.",
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
)
