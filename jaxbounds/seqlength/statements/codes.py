"""The short names of this paper's sharpenings in forms and notes, each with an explanation.

S8 gained nothing and has no form.
"""

CODES = {
    "S1": "The sum of Maurey's Lemma 3.1 is scaled, so the radius is b/(1 + sqrt(k)) in place of "
    "b/sqrt(k). Lemmas 3.3 and 3.6 then need no rounding up.",
    "S2": "The number of signed sparsifications is counted exactly. The paper has the power "
    "(2 n + 1)^K.",
    "S3": "An elementary cover proves Lemma 3.4 with explicit constants, for norms over rows.",
    "S4": "The softmax has the constant 1 from l_inf to l_1 in Lemma C.1, where the paper has 2.",
    "S5": "The largest entry of the tokens takes the place of one factor B_x in Theorem 4.1.",
    "S6": "The least of three bounds takes the place of Dudley's integral: two-term chaining, one "
    "cover with Massart's lemma, and the integral.",
    "S7": "Uniform attention is subtracted first, so the range in Dudley's integral is small if "
    "the attention weights are small.",
    "S9": "The loss on two words is logistic in the difference of the outputs. Theorem 5.1 then "
    "needs no sqrt(K), no factor 2 and no logarithms.",
    "S10": "McDiarmid's inequality, used three times, gives a smaller tail than Section 2.3 "
    "prints.",
    "S11": "The cross entropy of logits within M has a Lipschitz constant below 2, which depends "
    "on M and on the number K of words.",
}
"""Each short name with one or two sentences; `jaxbounds show` prints them."""
