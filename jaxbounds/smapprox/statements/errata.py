"""Where the paper is wrong, inconsistent, or silent about something it needs."""

from jaxbounds.statements import Erratum

ERRATA = (
    Erratum(
        id="E1",
        where="Appendix C.1, (C.3)",
        kind="typo",
        text="Prints (o_i + beta(i+1))^pos1 = Bin(i); by the definition of beta it is Bin(i+1).",
        consequence="None: counting timesteps from 0 throughout would work as well.",
        evidence="by reading; smapprox.thm4.1 runs with Bin(i+1)",
    ),
    Erratum(
        id="E2",
        where="Lemma 3.3",
        kind="false",
        text="With F = G in {0, 1}, inputs with G(x) = 0 have F = 0, hence (y - 0.5) F <= 0 and "
        "rho = 0. The last layer z -> 2z - 1, added in the proof of Theorem 3.1, is needed.",
        consequence="None for Theorem 3.1, whose proof has that layer.",
        evidence="smapprox.lemma3.3",
    ),
    Erratum(
        id="E3",
        where="Section 4, Appendix C.1: w_pos = ceil(log2 T)",
        kind="false",
        text="Bin(T) does not fit when T is a power of two: at i = T the head wraps and a_T is "
        "wrong. The bit length of T is needed on a one-way tape, ceil(log2(2T + 1)) on a two-way "
        "one.",
        consequence="Decisions survive on one-way tapes, since z_T does not depend on a_T; the "
        "lemmas at i = T do not.",
        evidence="smapprox.thm4.1-positions",
    ),
    Erratum(
        id="E4",
        where="Appendix C.1: h_0 and o_0",
        kind="underspecified",
        text="o_0 must encode a_0(x), the first input symbol, but is said to be independent of "
        "the input. Running the layers at timestep 0 with an empty memory repairs it, at the cost "
        "of one state.",
        consequence="k becomes k + 1, and T + 1 passes are made.",
        evidence="by reading; smapprox.thm4.1 is built with the repair",
    ),
    Erratum(
        id="E5",
        where="Section 4: l_0",
        kind="underspecified",
        text="The initial head is never stated; position codes of the input start at 1, so l_0 "
        "= 1. Cells left of the input are not provided for.",
        consequence="With encoder codes from 0 the network reads the wrong cells.",
        evidence="tests: encoder codes from 0 give wrong traces",
    ),
    Erratum(
        id="E6",
        where="Lemma C.3",
        kind="typo",
        text="\"If j such that l_{t-1} = l_i exists, we define i' = 0 otherwise\" means i' = 0 if "
        "no such t exists.",
        consequence="None.",
        evidence="by reading; smapprox.lemmac.3",
    ),
    Erratum(
        id="E7",
        where="Lemma B.1 and the proof of Theorem 3.1",
        kind="false",
        text='"-1 on the diagonal" for NOT must be in the parent\'s column; "total norm at most s" '
        'must be O(s), with at most 5 for each gate; "applying Lemma B.1 q times" against '
        '"q - 1 times".',
        consequence="None: only the order in s is used.",
        evidence="smapprox.lemmab.1-not, smapprox.lemmab.1-norm",
    ),
    Erratum(
        id="E8",
        where="Appendix C.1: w_TM",
        kind="inconsistent",
        text="w_TM = |Z| + 2|A| + 3 w_pos + w_scr with w_scr = O(w_pos + |A| + |Z|) cannot hold "
        "the |Z||A| coordinates that Lemma C.1 maps to, nor the 2w of a correction.",
        consequence="None: Theorem 4.1's w > k|A| + log T is right.",
        evidence="by counting coordinates; smapprox.thm4.1-size builds the network",
    ),
    Erratum(
        id="E9",
        where="Claims C.4-C.6, Lemma C.7",
        kind="proof",
        text="(a) With i' = 0 the query holds -1s, not 0s. (b) In Case 2 of Claim C.5, t <= i' "
        "does not force the (j+1)-th bit of t to be 0: only with the same j-bit prefix. (c) Lemma "
        "C.7 prints Q = Bin(l); it is 2 Bin(l) - 1, and the flag is 1 <= l <= m. (d) 1(x) in (C.1) "
        "is 1(x_i). (e) The proof of C.3 cites C.5 for C.6.",
        consequence="The score bounds are right: different prefixes cost 2.",
        evidence="smapprox.claimc.5-case2 (78 violations for 3 and 4 bits), smapprox.lemmac.7",
    ),
    Erratum(
        id="E10",
        where="Lemma D.9",
        kind="underspecified",
        text="True also for parameters shared by many layers, since the hypothesis is for each "
        "layer; it would be false with duplicates inside a layer. The embedding must count as a "
        "parameter of the layer that reads the encoder.",
        consequence="None.",
        evidence="smapprox.lemmad.9",
    ),
    Erratum(
        id="E11",
        where="Condition D.3 in the proof of Theorem 4.1",
        kind="false",
        text="The second line of Definition D.2 fails for hard-max layers with ties: at perturbed "
        "weights tied keys have different values, and moving h by any amount jumps between them. "
        "The inequality at the base point, which is all that Lemma D.8 uses, holds.",
        consequence="The printed proof of Theorem 4.1 has a gap; the repaired one gives the same "
        "bound.",
        evidence="smapprox.condd.3-ties",
    ),
    Erratum(
        id="E12",
        where="Section 2.1",
        kind="false",
        text='"Strictly positive if and only if F predicts the correct label" fails for '
        "discontinuous F: breaking a tie may flip the sign at no cost, and the minimum in (2.1) "
        "need not exist.",
        consequence="l-bar >= l_01 and the Lipschitz property survive with an infimum.",
        evidence="smapprox.sec2.1-positive",
    ),
    Erratum(
        id="E13",
        where="Appendix D",
        kind="typo",
        text="(D.1): h~_i = zeta_i(g_i), not g_{i-1}; f_i takes no xi_i. Definition D.1: h-hat is "
        "in R^w. (D.8): xi-hat_i - xi_i. D.3 lacks sigma_xi, and needs mu_0 only locally (a "
        "two-ReLU layer has no global one).",
        consequence="None.",
        evidence="by reading; smapprox.lemmad.7",
    ),
    Erratum(
        id="E14",
        where="Proposition 3.4, Claim 3.5",
        kind="typo",
        text="3x - 1 is 3z - 1; delta_i <= 1/3 is |delta_i| <= 1/3; the example's perturbation "
        "is -3/d. In float32 round(1) = 1 - 6e-8: rounding is exact with slope 2, not 3.",
        consequence="None.",
        evidence="smapprox.prop3.4, smapprox.claim3.5",
    ),
    Erratum(
        id="E15",
        where="Theorem D.6, the output layer",
        kind="underspecified",
        text="The last layer has no correction after it, so the induction of Lemma D.8 ends with "
        "|F - F-hat| <= sigma_zeta, not with an exact output. The sign is kept because |F| = 1 and "
        "sigma_zeta < 1, which is not said.",
        consequence="None for outputs of -1 and 1; an output of smaller size than sigma_zeta "
        "would not be covered.",
        evidence="by reading; the certified bounds check the head apart from the layers",
    ),
    Erratum(
        id="E16",
        where="Section 3.1, after Claim 3.5",
        kind="underspecified",
        text="Corrections do not enlarge the margin of shallow networks: their own parameters are "
        "sensitive. The gain is asymptotic in depth and T.",
        consequence="At a few layers the uncorrected network has the larger margin.",
        evidence="the margins experiment",
    ),
    Erratum(
        id="E17",
        where="Section 3.1, after Proposition 3.4",
        kind="underspecified",
        text="Corrections are said to increase alpha only polynomially; 9 for each coordinate of "
        "each layer, they make up 87 to 93 percent of |theta|_1 of the compiled machines, and so "
        "govern the sample sizes of Lemma 2.4. Slope 2 instead of 3 needs 7: 84 to 91 percent.",
        consequence="None for the order; the constants are those of the rounding, not of the "
        "machine.",
        evidence="tests: the share of the corrections in the nine machines",
    ),
    Erratum(
        id="E18",
        where="Section 3.1",
        kind="underspecified",
        text="The loss without corrections is presented as polynomial; for compiled machines it is "
        "exponential in T, as every step multiplies an error by about 2 or more.",
        consequence="Corrections are essential for Theorem 4.1, not a refinement.",
        evidence="the margins experiment",
    ),
)
