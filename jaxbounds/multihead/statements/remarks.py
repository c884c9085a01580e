"""What of the paper stands, and what is worth knowing about it without being an erratum."""

SURVIVES = (
    "Theorems 3 and 4, which are Theorems 1 and 2 with constants, Proposition 1, Corollary 1 and "
    "Corollaries 3 and 4 survive every erratum. The head count (3) and the rho of the main text "
    "are not Theorem 3's; use (74). Proposition 7 is false as stated by a factor sqrt(2) in g_0, "
    "so that Corollaries 2 and 5 are proved with other constants only, and Corollary 2's head "
    "count where g_0(1/K) is at least of order one; for its rho(K) take that of Corollary 5 "
    "(E11). Section 5's gain over the linear model needs "
    "the true centre (zeta/4) u* of the first phase, not alpha = +-1: about the printed one gamma* "
    "is always below gamma_lin. Section 5.3's negative result follows from (12), (74) and Theorem "
    "3, and not from (3). Proposition 3 stands for Gamma >= 0."
)

REMARKS = {
    "Sections 2 and 5, normalizations": "R, B_2, B_Phi >= 1 only normalise: the bounds of "
    "Section 3 hold for every R > 0. zeta T is taken to be an integer, and d >= M + 2 for "
    "orthogonal patterns.",
    "eq. (6)": "The constant C is not given; 1 / sqrt(2) will do about the true centre. "
    "P# = (R/2)(1 + sqrt(2 log(1/delta))) / sqrt(n1) does without the dimension (multihead.lem17).",
    "Section 5.1, 'we cannot directly show that theta^(0) = 0 is good'": "It is, wherever "
    "gamma_lin > 0: (106) holds at U = W = 0, so that zero has NTK margin sqrt(2) gamma_lin and "
    "B_2 = B_Phi = 1 (multihead.sec5.1-zero).",
    "eqs. (115), (116)": "(115) counts 2 sqrt(2 (M+1)) P T^{5/2} S^2 (S+Z)^3, (116) half of it: "
    "exact for E|alpha| = 1/2. For signs it is right too, since zeta S^2 + (1 - zeta)(S + Z)^2 <= "
    "(S + Z)^2; and T^{5/2} can be T (multihead.eq114).",
    "The early version": "Its Notation has phi'(v) = diag(phi(v)) - v v^T for phi(v) phi(v)^T, its "
    "(14) <= for >=; both are right in the published version (multihead.eq25, multihead.eq14).",
    "Lemma 15": "It divides by gamma* and is about gamma* > 0. For signs no condition on H is "
    "needed (multihead.lem15, S12).",
    "Theorem 4, Corollary 4": "At the step sizes that (84) and rho certify the bounds exceed the "
    "loss itself by many orders of magnitude, which is a bound on the gap too: vacuous there. "
    "Since eta <= D^2 / (K L(theta)) and eta <= 1 / rho they are at least 17 K L(theta) / n "
    "and 9 rho D^2 / n: they can beat that trivial bound, the loss L(theta_K) on fresh data, only "
    "for n above 17 K L(theta) / L(theta_K) and above 9 rho D^2 / L(theta_K).",
    "Appendix G, 'all the optimizers find the planted model'": "Not reproduced for every teacher: "
    "Adam with step .06 ends in a sign-flipped basin for some, and smaller steps rescue it. "
    "Neither the teacher's law nor the step of these runs is stated.",
    "Appendix G, DM1": "The experiments' Gaussian noise is unbounded, which Assumption 3 excludes, "
    "and the step eta = O(sqrt(H)) is beyond what Theorem 1 covers, as the paper says.",
}
