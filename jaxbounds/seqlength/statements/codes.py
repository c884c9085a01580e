"""The short names (S1 to S11) of this paper's sharpenings, each with an explanation.

No statement uses S8, because S8 improved no bound.
"""

CODES = {
    "S1": "The proof of Maurey's Lemma 3.1 approximates a point by a sum of k terms, and we "
    "multiply the sum of terms by a factor. For points of norm at most b the radius of the cover "
    "is then "
    "b/(1 + sqrt(k)) in place of b/sqrt(k). The smaller radius frees Lemmas 3.3 and 3.6 from "
    "rounding k to the next larger integer.",
    "S2": "We count the signed sparsifications (integer vectors of length n whose absolute values "
    "sum to at most K) exactly. The paper bounds the number of signed sparsifications by (2 n + "
    "1)^K.",
    "S3": "If the matrix norms in Lemma 3.4 are norms of rows, an elementary cover proves Lemma "
    "3.4's bound on the log covering number, with explicit constants.",
    "S4": "The softmax in Lemma C.1 has the Lipschitz constant 1 from l_inf to l_1, where the "
    "paper has the constant 2.",
    "S5": "In Theorem 4.1's bound on the Rademacher complexity, the largest absolute entry of the "
    "tokens replaces one factor B_x (the largest token norm).",
    "S6": "We use the smallest of three bounds on the Rademacher complexity: a chaining sum over "
    "covers at several scales, a bound from one cover (Massart's lemma), and Dudley's integral.",
    "S7": "We subtract the output of uniform attention from each function of the network class. "
    "The range of the functions in Dudley's integral is then small if the matrix W_QK is small.",
    "S9": "If the vocabulary has K = 2 words, the loss is a logistic function of the difference "
    "of the two outputs. For K = 2 the bound of Theorem 5.1 needs no sqrt(K), no factor 2 and no "
    "logarithms.",
    "S10": "McDiarmid's inequality, used three times, gives a smaller deviation term in the "
    "generalization bound than Section 2.3 prints.",
    "S11": "The cross entropy of logits of absolute value at most M has a Lipschitz constant "
    "below 2, which depends on M and on the number K of words.",
}
"""The explanation of each sharpening by its short name, such as "S10"; `jaxbounds show` prints it.
"""
