"""Where the paper is wrong, inconsistent, or silent about something it needs, by weight."""

from jaxbounds.claims.statements import Erratum

IN_C2 = "Appendix C.2, proof of Theorem 4.1"

ERRATA = (
    Erratum(
        id="E11",
        where=f"{IN_C2}, last paragraph",
        kind="false",
        quote="the positions attended to by the layer will not change unless we perturb the "
        "parameters and inputs by Omega(poly^-1(|Z|, |A|, log T))",
        text="Ties occur whenever the head comes back to a cell that it left twice before (Claims "
        "C.4 and C.5), and a change of a key weight on pos1, however small, breaks them. At "
        "perturbed weights the tied keys then have different values, and moving h by any amount "
        "jumps between them: the second line of Definition D.2, hence Condition D.3, holds with no "
        "constants mu and sigma_h, sigma_theta > 0. True, and enough: the set attended to stays "
        "within the tied ones, whose values agree at the unperturbed point, so |f(H', theta') - "
        "f(H, theta)| <= kappa |theta' - theta| max(|H|, 1) + mu |H' - H|. Lemma D.8 uses nothing "
        "more.",
        consequence="Condition D.3 has to be asked at the base point only; with that Theorem D.6 "
        "and the bound are the same.",
        main="survive: Theorem 4.1 by the base-point version of Condition D.3",
        evidence="smapprox.condd.3-ties",
    ),
    Erratum(
        id="E19",
        where="Lemma 2.4, its conclusion",
        kind="false",
        quote="Then, F_alpha epsilon-SM-approximates G with respect to (l_0-1, P) with sample "
        "complexity O~((1/epsilon^2) (alpha^2 log(p)/gamma^2 + 1))",
        text="One epsilon stands for two things: the mass without margin in (2.3), which does not "
        "shrink with n, and the precision of the estimate. With F = theta_1, Theta = {(1, 0), "
        "(-1, 0)} and two targets of probability 1/2 + eta and 1/2 - eta that differ on mass "
        "2 eta, (2.3) holds with epsilon = 1/2 - eta, but any rule needs of the order of 1/eta "
        "samples to tell which model has risk at most epsilon, whatever the constant and the "
        "logarithms, and whatever the surrogate loss of Definition 2.2. The proof, through "
        "Proposition 2.3, gives risk O(epsilon).",
        consequence="O(epsilon)-SM-approximates; with epsilon = 0 in (2.3), any epsilon for the "
        "risk.",
        main="survive: Theorems 3.1 and 4.1 have (2.3) with epsilon = 0",
        evidence="smapprox.lemma2.4-epsilon",
    ),
    Erratum(
        id="E2",
        where="Lemma 3.3, its claim",
        kind="false",
        quote="the composition F'(., theta') := f_{q-1} o zeta_{q-2} o f_{q-2} o ... o zeta_1 o "
        "f_1 has large all-layer margin: rho_F'(theta', x, G(x)) >= 1/poly(s) for all x in {0, "
        "1}^m",
        text="f_{q-1} ends with a ReLU (Lemmas 3.2, B.1), so F' >= 0 whatever the corrections are: "
        "where G(x) = 0, (y - 0.5) F' <= 0 and rho = 0. The last layer z -> 2z - 1 is needed, "
        'which the proof of Theorem 3.1 adds as one of its "minor modifications".',
        consequence="Lemma 3.3 holds with that layer.",
        main="survive",
        evidence="smapprox.lemma3.3",
    ),
    Erratum(
        id="E3",
        where="Appendix C.1, the definition of w_pos and Bin",
        kind="false",
        quote="Define w_pos := ceil(log_2 T). ... For 0 <= i <= T, define Bin(i) in R^w_pos to be "
        "the vector containing the binary encoding of i",
        text="Where T is a power of two, T has one bit more. At i = T the head of a machine that "
        "reads on is on cell T + 1 = 1 modulo 2^w_pos, and the symbol a_T is wrong. The bit length "
        "of T is enough.",
        consequence="(C.2) fails at i = T; decisions survive, since z_T does not depend on a_T.",
        main="survive: w_pos is still of the order of log T",
        evidence="smapprox.thm4.1-positions",
    ),
    Erratum(
        id="E7",
        where="Appendix B, proof of Theorem 3.1",
        kind="false",
        quote="The total ||.||_1-norm of the parameters so far is at most s.",
        text="It is O(s), as Lemma B.1 says of each layer: at most 5 for each gate, which an OR "
        "gate needs. A single OR gate has norm 5 and s = 3.",
        consequence="None: only the order in s is used.",
        main="survive",
        evidence="smapprox.lemmab.1-norm",
    ),
    Erratum(
        id="E8",
        where="Appendix C.1, the definition of w_TM",
        kind="false",
        quote="we choose the dimension w = w_TM := |Z| + 2|A| + 3 w_pos + w_scr for storing all "
        "the hidden representations of the model, where w_scr = O(w_pos + |A| + |Z|)",
        text="Lemma C.1 maps to R^(|Z||A| + w_TM), a hidden representation that does not fit once "
        "|Z||A| exceeds the order of |Z| + |A| + w_pos. The two ReLU layers are two transformer "
        "layers (C.2, before Lemma C.1), and hidden layers have width w (Section 4.1), so the "
        "vector between them is a state of the model.",
        consequence="None: Theorem 4.1 asks for w of the order of k|A| + log T, which is right.",
        main="survive",
        evidence="by counting coordinates; smapprox.thm4.1-width builds the network",
    ),
    Erratum(
        id="E9",
        where="Appendix C.2, proof of Claim C.5, Case 2",
        kind="gap",
        quote="if t <= i', t must have (j+1)-th bit 0",
        text="Not so: i' = 100, t = 011, j = 1. It is so for those t whose first j bits are those "
        "of i'; for the others these bits cost 2 in the score, and the bound w_pos + j - 1 "
        "follows all the same.",
        consequence="None: Claim C.5 stands.",
        main="survive",
        evidence="smapprox.claimc.5-case2 (78 violations for 3 and 4 bits)",
    ),
    Erratum(
        id="E4",
        where="Section 4.1, Decoder outputs, and Appendix C.1, (C.2) at i = 0",
        kind="gap",
        quote="The initial decoder input h_0^(0) is a trainable parameter.",
        text="o_0 has to encode z_0, a_0 = x_1 and l_0. It can, as the layers run at timestep 0 "
        "and read x_1 through the encoder; but no start value is given from which they do, and "
        "Lemmas C.1 to C.8 speak of i >= 1 only. One more state, which moves to z_init and from "
        "cell 0 to cell 1, will do.",
        consequence="k becomes k + 1, and T + 1 passes are made.",
        main="survive",
        evidence="by reading; smapprox.thm4.1 is built so",
    ),
    Erratum(
        id="E5",
        where="Appendix C.2, proof of Lemma C.2",
        kind="gap",
        quote="Note that the output would always be l_i(x) by the definition of v_1, v_2.",
        text="Where the head starts and what a left move on the left-most cell does is left to "
        "[49] (Sipser), by whom it starts there, and stays. Position codes of the input start at "
        "1, so l_0 = 1. On such a move l_i = l_{i-1} = 1, but l_{i-1} - v_1 + v_2 = 0, a cell "
        "that the tape has not and of which (C.15) would say 1(l_i <= m) = 1.",
        consequence="One gate more, that clears v_1 at l_{i-1} = 1, mends the lemma, and nothing "
        "after it breaks; or the machine is changed: one that marks its left-most cell, and moves "
        "right and back where it would stay, has 2k + 1 states, 2|A| symbols and time 2T.",
        main="survive: by either repair the orders in k, |A| and log T are the same",
        evidence="by reading; smapprox.lemmac.2 has the move from cell 1 to 0, the last form of "
        "smapprox.lemmac.7 cell 0",
    ),
    Erratum(
        id="E12",
        where="Section 2.1, before (2.2)",
        kind="reading",
        quote="A key and immediate property of the all-layer margin is that it is strictly "
        "positive if and only if F(x, theta) predicts the correct label.",
        text="Where F is not continuous in theta, as hard-max attention is not, a correct "
        "prediction may have perturbations of every size that flip it: the margin is 0 as an "
        "infimum, and the minimum in (2.1) need not exist.",
        readings=(
            "for 'a general parameterized function F : X x R^p -> R', as Section 2.1 has it and "
            "Section 4 uses it: false",
            "for F continuous in theta, where the minimum in (2.1) exists, as all networks of "
            "Section 3 are: true",
        ),
        consequence="l-bar >= l_0-1 and the Lipschitz property survive with an infimum; compiled "
        "machines have a positive margin, as they tie only equal values.",
        main="survive",
        evidence="smapprox.sec2.1-positive",
    ),
    Erratum(
        id="E20",
        where=f"{IN_C2}, Condition D.4",
        kind="reading",
        quote="all of the intermediate layers are sparse binary vectors with at most |Z| + |A| + "
        "log T nonzero entries",
        text="By (C.11) a state holds up to four numbers of w_pos bits, pos1, pos2, pos3 and scr3: "
        "15 entries (of which pos1, pos2 and pos3 hold 13, st and sym2 two) against 4 + 3 + 5 for "
        "the parity machine at T = 31. At most 4 w_pos + 5 is true.",
        readings=(
            "that number, as printed",
            "that order of growth, which is all that lambda = poly(|Z|, |A|, log T) needs",
        ),
        consequence="None.",
        main="survive",
        evidence="smapprox.thm4.1-norms",
    ),
    Erratum(
        id="E23",
        where="Condition D.3, the condition on f_0",
        kind="reading",
        quote="||f_0(x, theta) - f_0(x, theta^)||_2 <= mu_0 ||theta - theta^||_2 for all x in X, "
        "theta in Theta_0",
        text="Two ReLU layers have no Lipschitz constant in their parameters on all of R^p. A "
        "constant on the ball of the perturbations is enough for Lemma D.7.",
        readings=(
            "Theta_0 = R^p, as the perturbed parameters of (2.1) may be anywhere",
            "Theta_0 bounded, where mu_0 depends on its size",
        ),
        consequence="None.",
        main="survive",
        evidence="by reading; smapprox.lemmad.7 measures mu_0 on a ball",
    ),
    Erratum(
        id="E24",
        where="Appendix B, proof of Lemma B.1, the NOT gate",
        kind="reading",
        quote="to implement NOT(z) = 1 - z for z in {0, 1} on coordinate j, we can set the j-th "
        "row of W_1 to have -1 on the diagonal and 0 everywhere else",
        text="Row j belongs to the j-th gate of the output. The -1 belongs into the column of its "
        "parent, which is the diagonal only if the parent has the same index.",
        readings=(
            "j is the gate's own coordinate, wherever its parent is",
            "parent and gate both stand on coordinate j",
        ),
        consequence="None.",
        main="survive",
        evidence="smapprox.lemmab.1-not",
    ),
    Erratum(
        id="E1",
        where="Appendix C.1, (C.3), third line",
        kind="typo",
        quote="(o_i + beta(i+1))^pos1 = Bin(i)",
        text="By the definition of beta it is Bin(i+1).",
        consequence="None: counting timesteps from 0 throughout would work as well.",
        main="survive",
        evidence="by reading; smapprox.thm4.1 runs with Bin(i+1)",
    ),
    Erratum(
        id="E6",
        where="Lemma C.3, the definition of i'",
        kind="typo",
        quote="If j such that l_{t-1}(x) = l_i(x) exists, we define i' = 0 otherwise.",
        text="i' = 0 if no such t exists.",
        consequence="None.",
        main="survive",
        evidence="by reading; smapprox.lemmac.3",
    ),
    Erratum(
        id="E13",
        where="Appendix D, (D.1), before (D.2) and (D.6), (D.8), Definition D.1, Condition D.3, "
        "the proofs of Theorem D.6 and Lemma D.8",
        kind="typo",
        quote="h~_i(x, theta, xi) = zeta_i(g_{i-1}(x, theta, xi), xi_i)",
        text="(D.1): zeta_i(g_i), as in the proof of Lemma D.7, and f_i takes no xi_i. Definition "
        "D.1: h^ is in R^w, and i runs from 0 to d-1, not over [d-1]. (D.8) bounds ||xi^_i - "
        "xi_i||. Condition D.3 lacks sigma_xi in its list. In the proof of Lemma D.8 the term "
        "added and subtracted has xi^_0, ..., xi^_{i-2}, as in E_1 and E_2, not xi_0, ..., "
        "xi_{i-1}; |||H - H'||| is at most the maximum, not equal to it. Before (D.2): v_j is in "
        "R^w, not h_j. Before (D.6): xi^_i ends with xi_{d-1}, as xi does, not xi_d.",
        consequence="None.",
        main="survive",
        evidence="by reading; smapprox.lemmad.7 and smapprox.lemmad.8 run the corrected ones",
    ),
    Erratum(
        id="E14",
        where="Proposition 3.4, and the example and the proof of Claim 3.5 in Section 3.1",
        kind="typo",
        quote="3x - 1 if 1/3 <= z < 2/3",
        text="3z - 1. In the example delta_i is -3/d; for the claim |delta_i| <= 1/3.",
        consequence="None.",
        main="survive",
        evidence="by reading; smapprox.prop3.4 and smapprox.claim3.5",
    ),
    Erratum(
        id="E22",
        where="Appendix C, proofs of Lemmas C.1, C.3 and C.7, Claim C.5 and Theorem 4.1; (C.1); "
        "Appendix B, proof of Theorem 3.1; Appendix A, proof of Lemma 2.4 and (A.2)",
        kind="typo",
        quote="if h is in the form provided in (C.6), then Q(h)_{1:w_pos} = Bin(l_i(x))",
        text="Lemma C.7: Q and K are 2 Bin - 1, as its first display has them. Claim C.5: with i' "
        "= 0 the query holds -1s, not 0s. (C.1): 1(x) is 1(x_i). Lemma C.3 is finished by Claim "
        'C.6, not C.5. Lemma C.1: "adding alpha_1" is adding b_1. Theorem 4.1: theta_cls . o_T is '
        "2 TM(x) - 1, not TM(x). Theorem 3.1: Lemma B.1 is applied q - 1 times, not q. Lemma 2.4: "
        "L_G is that of Proposition 2.3, not of Definition 2.2. (A.2): the pairs (x, y) are drawn "
        "from Q, not x.",
        consequence="None.",
        main="survive",
        evidence="by reading; smapprox.lemmac.7 and smapprox.claimc.5 run the right ones",
    ),
)
