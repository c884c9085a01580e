"""What of the paper stands, and what is no erratum and yet worth knowing, by its place."""

SURVIVES = (
    "Both main theorems survive. Theorem 3.1 stands by its proof, whose networks end with the "
    "layer 2z - 1; its 'at most s' is O(s), and it uses Lemma 2.4 with epsilon = 0 in (2.3). "
    "Theorem 4.1 stands: the sentence of its proof on what attention attends to is false where "
    "keys tie, but it serves Condition D.3 only. Lemma D.8 needs of that condition no more than "
    "its version at the unperturbed parameters, and that one holds: the set attended to stays "
    "within the tied positions, whose values agree there. "
    "Lemma 2.4 needs O(epsilon) for one of its two epsilons; both theorems use it with margins "
    "that hold on every input, where the two do not meet. What else is wrong or missing are "
    "constants, one size of a scratch space, the position bits at powers of two, a start for "
    "timestep 0, left moves on the left-most cell, the margin of a network that ties unequal "
    "values, one step in Case 2 of Claim C.5, and slips of the pen."
)

REMARKS = {
    "Lemma 2.4, covering number": "With the floor, O(floor(alpha^2 log p / (gamma eps)^2)) is 0 "
    "for p = 2 at some gamma eps below alpha, where one ball does not cover: it needs log p >= 1, "
    "p >= 3.",
    "Lemma 2.4, Rademacher complexity": "'For all n' has to leave out n = 1, where log n = 0 "
    "and Rad_1 is 1/2 for losses that may be 0 or 1 at every input. From n = 3 on it is true with "
    "the constant 15 (smapprox.lemma2.4-rademacher).",
    "Theorems 3.1 and 4.1, sample sizes": "With (2.3) on all inputs no Rademacher complexity is "
    "needed: a gamma/2 cover and Chernoff's bound give (log N + log 100)/epsilon samples, of order "
    "1/epsilon. Covers counted by parameters, p log(1 + 4 alpha/gamma), are smaller than those "
    "by norms, (2 alpha/gamma)^2 log 2p, up to p of the order of (2 alpha/gamma)^2: 10^10 for "
    "circuits of depth 8, 10^14 and more for machines. Independence of the width, which the l_1 "
    "norm is for, begins there.",
    "Section 3.1, after Claim 3.5": "The claim leaves the parameters of round out, as it says. "
    "With them, corrections do not enlarge the margin of shallow networks: the gain is in depth "
    "and T.",
    "Section 3.1, the example": "The loss without corrections is 1/sqrt(d) in the example. For "
    "compiled machines it is exponential in T, as every step multiplies an error by about 2 or "
    "more: corrections are essential for Theorem 4.1, not a refinement.",
    "Appendices B and C.2, norms of the corrections": "O(s) and poly(k, |A|, log T) are right. 9 "
    "for each coordinate of each layer, they make up 78 to 93 percent of |theta|_1 of the compiled "
    "machines, falling with T: from T = 7 to 2^19 - 1 from .90-.93 to .85-.89 with the ripple "
    "adder and from .88-.92 to .78-.83 with the lookahead adder. So they govern the sample sizes "
    "of Lemma 2.4; slope 2 instead of 3 needs 7.",
    "Appendix C.2, inputs of the encoder": "That 'm layers which depend on the input x' make 'a "
    "minor difference' to Theorem D.6 is so. There what depends on x passes a correction, h~_0 = "
    "zeta_0(g_0), whereas Enc_i = E_{:,x_i} + beta(i) passes none and goes into every layer as it "
    "is; so E counts among the parameters of each layer that reads the encoder, with its share of "
    "kappa_theta. Its norm is |A|, and the order is the same; the certified bound of "
    "smapprox.thm4.1-margin counts E so.",
    "Lemma D.9": "Right as it stands, also for parameters shared by many layers, since its "
    "hypothesis is for each layer; it would be false with duplicates inside a layer, which "
    "Definition D.5 excludes.",
}
