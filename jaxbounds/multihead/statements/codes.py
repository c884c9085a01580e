"""The short names in this paper's statements and notes, each explained.

P1 to P3, DM1 and DM2 are the paper's names. S1 to S16 number our sharpenings: smaller bounds that
we prove in place of the paper's bounds.
"""

CODES = {
    "DM1": "In the paper's sparse-context data model (Section 5) a few relevant tokens carry the "
    "label, and the other tokens are distractors or noise.",
    "DM2": "DM2 is the paper's planted data model (Appendix G). In DM2 the tokens are standard "
    "normal, and the sign of one fixed attention head's output is the label.",
    "P1": "The paper's first condition on a good start says that some B_2 >= 1 bounds the "
    "parameter norm of each head.",
    "P2": "The paper's second condition on a good start says that some B_Phi >= 1 bounds the "
    "output of the model on each sample.",
    "P3": "The paper's third condition on a good start is NTK separability: the gradients of the "
    "model's outputs at the start separate the samples by a margin gamma.",
    "S1": "The paper's bound (42) on the norm of X^T phi'(X u) X u holds with the constant 1 in "
    "place of 2. In (42), X holds the tokens, and phi is the softmax. The vector X^T phi'(X u) X u "
    "is a covariance, so a product of standard deviations bounds its norm.",
    "S2": "The bound on the norm of the model's gradient becomes the root of a sum of squares, in "
    "place of a sum of norms. The gradient's blocks in U and W, and the gradient's blocks of "
    "different heads, are orthogonal.",
    "S3": "The third cumulant kappa_3 of bounded variables satisfies |kappa_3(A, B, B)| <= c* "
    "max|A| max|B|^2. The bound on the third cumulant kappa_3 is false with any constant smaller "
    "than c* = 4/(3 sqrt(3)).",
    "S4": "The operator norm of the block in W of a head's Hessian is at most c* R^4 sum_t ||X "
    "u_t||_inf, where c* is 4/(3 sqrt(3)). Here R bounds the norms of the tokens, and u_t is row "
    "t of U. The bound of the sharpening S4 does not depend on the dimension d of the tokens.",
    "S5": "For T tokens of norm at most R, the mixed block in U and W of a head's Hessian has an "
    "operator norm of at most sqrt(T) R^3. The sharpenings S4 and S5 together bound the norm of a "
    "head's Hessian without the dimension d.",
    "S6": "The constant beta_3 bounds the norm of each head's Hessian. The sharpened beta_3 is "
    "sqrt(T) R^3 (c* R^2 m + 1), where m = max ||U_h||_F and c* = 4/(3 sqrt(3)). For T tokens of "
    "dimension d and norm at most R, the paper's beta_3 is 2 sqrt(T d) R^3 (3 sqrt(d) R^2 m + 1). "
    "The smoothness constant beta_2 contains beta_3, so a smaller beta_3 makes beta_2 smaller.",
    "S7": "The constants beta_3 and beta_2 of the sharpening S6 depend on the norms ||U_h||_F of "
    "the heads' value matrices, but not on the attention matrices W_h.",
    "S8": "Let the second derivative of a loss g along a segment be at least -k g. Sturm's "
    "comparison theorem then replaces the factor 4/3 in Proposition 4 by sec(sqrt(k)/2), which is "
    "1.0659 at k = 1/2.",
    "S9": "Gradient descent stays within the radius 3 D of Lemma 10, where D is the distance from "
    "the start to the target. The smaller radius sqrt(3 + 2 q) D suffices, where q is a factor in "
    "the proof's bounds on the loss. For the paper's q = 2/3, the last line of the proof of Lemma "
    "10 gives the radius sqrt(13/3) D.",
    "S10": "In Theorem 3, the smoothness constant rho needs to bound the loss's curvature only at "
    "points that a gradient step reaches. The sharpened smoothness constant rho is of order T R^6 "
    "in place of d T^2 R^12, so the step size may be larger.",
    "S11": "Sums of covariances and third cumulants over tokens bound the norms of the blocks of "
    "a head's Hessian. A program computes the sums. The bound of the sharpening S11 lies between "
    "the norm of the Hessian and the bound of the sharpening S5.",
    "S12": "A start with a random sign alpha = +-1 for each head attains the NTK margin gamma* "
    "with certainty, for every number of heads. Balanced signs make the output of the model zero "
    "at the start.",
    "S13": "The norm ||p|| of the noise in the weights after the first training step has an "
    "explicit bound without the dimension d. The factor T^(5/2) in Lemma 13's NTK margin becomes "
    "T, the number of tokens.",
    "S14": "In Lemma 18 the scale of the scores that leaves the irrelevant tokens an attention of "
    "at most eps is log((T/L - 1)/eps)/(A - B). In Lemma 18, L of the T tokens are relevant, A is "
    "the least relevant score, and B < A is the largest irrelevant score. The paper's scale of the "
    "scores has the factor 2/A in place of 1/(A - B). The proof of Proposition 3 uses Lemma 18, so "
    "Proposition 3 has the smaller factor too.",
    "S15": "Pinelis' inequality bounds the norm ||p|| of the noise in the weights by R "
    "sqrt(log(2/delta)/(2 n1)), with probability 1 - delta. The number n1 counts the samples of "
    "the first training step.",
    "S16": "Let the factors alpha of the heads at the start be uniform on [-1, 1]. The NTK margin "
    "in Lemma 14 then loses only sqrt(2 log(1/delta)/(3 H)) times the first term of gamma*. The "
    "proof of the term sqrt(2 log(1/delta)/(3 H)) uses that the NTK margin is linear in the mean "
    "of |alpha|.",
}
"""A dictionary from each short name to its explanation, which `jaxbounds show` prints."""
