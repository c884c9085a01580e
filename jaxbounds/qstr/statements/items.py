"""Every numbered item and display of the paper, with the statements that check it.

The value of an item lists the ids of the statements and errata about the item. Otherwise, the value
begins with "code:" and names the code of a definition, or with "none:" and explains why no
statement checks the item.
"""

_WEIGHTS = "code: jaxbounds.qstr.rnn_construction.inner_products"

ITEMS: dict[str, str] = {
    "Theorem 1": "qstr.thm1.heads, qstr.thm1.direction, qstr.thm1.two, qstr.thm1.length, "
    "qstr.thm4.length, qstr.thm6, qstr.thm9, E1",
    "Table 1": "none: the table summarises Theorems 4, 6, 7 and 9",
    "Figure 1": "qstr.fig1.networks",
    "Figure 2": "code: jaxbounds.qstr.experiments.figure2.run",
    "Definition 2": "qstr.def2",
    "Assumption 1": "qstr.asm1",
    "Assumption 2": "qstr.def2, qstr.asm2",
    "Assumption 3": "qstr.asm3",
    "(2.1)": "qstr.eq2.2",
    "(2.2)": "qstr.eq2.2",
    "(2.3)": "qstr.eq2.2",
    "(2.4)": "qstr.thm9.minimiser",
    "Proposition 3": "qstr.prop3, qstr.prop3.averaging",
    "Theorem 4": "qstr.cor19, qstr.thm10.rate, qstr.thm4.length, qstr.thm1.length, "
    "qstr.thm4.order, E12",
    "Section 1, notation: ||.||_{2,1}": "qstr.lem16, qstr.lem11.norms, E9",
    "Section 2, after Assumption 2: additive links": "none: the paper quotes m_g, r_a and r_w "
    "from [Bac17], as orders with an unknown "
    "constant; qstr.asm2 has networks of links "
    "with all constants",
    "Section 2, after (2.3): bounds transfer to the averaged risk": "none: the bound holds for "
    "each choice of the positions j(i), hence on average over "
    "them; qstr.eq2.2 shows that the expectation of (2.3) is "
    "(2.2)",
    "Section 3, separate projections W_Q, W_K, W_V": "none: a product W_Q^T W_K of full size can "
    "be any matrix W_QK, and the network absorbs "
    "W_V. If the norms of the factors are bounded, the class differs. Figure 2 trains "
    "the factors separately",
    "Section 3.1, remark: one head suffices for sparse averages": "qstr.prop3.averaging",
    "Theorem 4, first remark: clipping removes C_1": "qstr.thm4.length, qstr.thm1.length",
    "Theorem 4, first remark: m > m_g and H > q": "none: the paper calls the extension "
    "straightforward; units and heads of zero "
    "weights change no function, and the covers of "
    "qstr.prop17.explicit have any m and H",
    "Theorem 4, second remark: feedforward or attention layer": "none: the remark compares m_g "
    "(d + q) with q^2 + d^2 in the bound, and makes no further "
    "claim",
    "Theorem 4, third remark: the limit Omega(qd)": "qstr.sec3.limit",
    "Theorem 4, third remark: optimization dynamics": "none: the remark is about future work",
    "Section 2, r_w = 1 by homogeneity": "qstr.asm2.homogeneity",
    "Section 2, the mean as link: sparse averaging": "qstr.def2, qstr.prop3.averaging",
    "Section 2, the two formulations related by eps": "none: the text defines eps, the risk that "
    "the restriction to a class costs",
    "Section 3, the prefactor sqrt(d/q)": "qstr.encoding",
    "Section 3.1, Proposition 21 for all d": "qstr.prop21.dimensions, E16",
    "Section 5.1, without Lipschitz transitions: linear in N": "none: the list of unchecked "
    "claims gives the reason",
    "Section 5.1, one way to meet the Lipschitz constraint": "none: divide the first layer by "
    "the product of all operator norms and multiply it by alpha_N; the "
    "product of the norms is then alpha_N",
    "Section 5.2, Section 5.1 as a special case": "none: the list of unchecked claims gives the "
    "reason",
    "Section 5.2, LSTM and GRU are covered": "none: LSTM and GRU are names of other transitions; "
    "the formulation only requires bounded states",
    "Definition 5": "qstr.def5, qstr.def5.span, E15",
    "Section 4, simple-qSTR: the risks (2.2) and (2.3) are equivalent": "none: the risks are "
    "equivalent for predictions that do not depend on j, as the "
    "remarks explain; Theorem 6 holds for both risks",
    "Theorem 6": "qstr.thm6, qstr.thm6.risk",
    "Theorem 6, remark: at least Nd samples": "qstr.thm6",
    "Theorem 7": "qstr.cor31, qstr.thm10.rate, qstr.thm4.length, qstr.prop28, qstr.thm7.order",
    "Theorem 7, remark: alpha_N = 0, transitions that do not see the states": "qstr.prop28, "
    "qstr.prop26",
    "Proposition 8": "qstr.prop8, qstr.prop8.constants, qstr.prop8.width, qstr.prop8.bounded, E14",
    "Proposition 8, remark: labels uniform on the sphere of radius sqrt(N)": "none: the remark's "
    "proof is a variant of the proposition's "
    "proof; see the remarks",
    "Proposition 8, first implication: width linear in N": "qstr.prop8, qstr.prop8.width",
    "Proposition 8, second implication: norm bounds depend on N": "qstr.prop8, qstr.thm9.risk",
    "Theorem 9": "qstr.thm9, qstr.thm9.amgm, qstr.thm9.embedding, qstr.thm9.risk, "
    "qstr.thm9.memoriser, qstr.thm9.minimiser, qstr.thm9.length, E4",
    "Section 5.2, before Theorem 9: r_h = 1 by homogeneity": "none: U h / r_h replaces U h, and "
    "W_y, b_y and W_2 are rescaled; the statements on Theorem 9 have r_h = "
    "1",
    "Theorem 9, remark: no bound on |vec Theta| over families of d_h": "qstr.thm9",
    "Theorem 10": "qstr.prop17.assembly, qstr.prop17.explicit, qstr.thm10.rate, qstr.thm10.order",
    "(A.1)": "qstr.prop17.assembly",
    "(A.2)": "qstr.lem11, qstr.lem11.norms",
    "Lemma 11": "qstr.lem11, qstr.lem11.tail, qstr.lem11.norms",
    "Lemma 12": "qstr.lem12, qstr.lem12.small, E6",
    "Lemma 13": "qstr.lem13, qstr.lem13.pointwise",
    "Lemma 14": "qstr.lem30, qstr.prop17.lipschitz, qstr.prop17.explicit",
    "Lemma 15": "qstr.lem13, qstr.lem15",
    "Lemma 16": "qstr.lem16, qstr.prop17.assembly, qstr.prop17.explicit, E9",
    "Proposition 17": "qstr.prop17.assembly, qstr.prop17.lipschitz, qstr.prop17.explicit, "
    "qstr.prop17.order",
    "(A.3)": "none: (A.3) defines the truncated loss class",
    "Lemma 18": "qstr.lem18, qstr.lem18.order",
    "Corollary 19": "qstr.cor19, qstr.encoding, qstr.cor19.order",
    "Lemma 20": "qstr.lem20, qstr.lem20.value, qstr.lem20.order",
    "Proposition 21": "qstr.prop21, qstr.prop21.dimensions, E16",
    "(A.4)": "qstr.prop21",
    "(C.1)": "qstr.eqc2",
    "(C.2)": "qstr.eqc2",
    "Lemma 22": "qstr.lem22, qstr.lem22.norms",
    "Lemma 23": "qstr.prop26.interpolated, qstr.lem22, qstr.lem22.norms",
    "(C.3)": _WEIGHTS,
    "(C.4)": _WEIGHTS,
    "(C.5)": _WEIGHTS,
    "(C.6)": _WEIGHTS,
    "(C.7)": _WEIGHTS,
    "Lemma 24": "qstr.lem24, qstr.lem24.norms",
    "Lemma 25": "qstr.lem25, qstr.lem25.norms",
    "(C.8)": "qstr.lem25, qstr.lem25.norms",
    "(C.9)": "qstr.lem25, qstr.lem25.norms",
    "Proposition 26": "qstr.prop26, qstr.prop26.interpolated, qstr.prop26.norms",
    "(C.10)": "code: jaxbounds.qstr.relu_networks.shrink_output",
    "Corollary 27": "qstr.cor27",
    "Proposition 28": "qstr.prop28",
    "(C.11)": "qstr.prop28",
    "(C.12)": "none: (C.12) gives only an order of growth of the norms of Proposition 28's RNN; "
    "qstr.prop26.norms measures the norms of the transition",
    "Lemma 29": "qstr.lem29, qstr.projection",
    "Lemma 30": "qstr.lem30, qstr.lem30.value",
    "(C.13)": "qstr.lem30.value",
    "(C.14)": "qstr.lem30",
    "Corollary 31": "qstr.cor31, qstr.cor31.order",
    "Lemma 32": "qstr.lem18, qstr.prop17.assembly, qstr.cor31.order",
    "Corollary 33": "qstr.cor19, qstr.cor31.order",
    "Lemma 34": "qstr.lem20, qstr.lem30.value, qstr.lem20.order",
    "Proposition 35": "qstr.prop8, qstr.prop8.constants, qstr.prop8.width, qstr.prop8.bounded, "
    "E3, E14",
    "Lemma 36": "qstr.lem36, qstr.lem36.order",
    "Lemma 37": "qstr.lem37",
    "(C.15)": "qstr.lem37",
    "Lemma 38": "qstr.lem38, qstr.lem38.values, qstr.lem38.bias, E10",
    "(C.16)": "qstr.lem38",
    "Lemma 39": "qstr.lem39",
    "Lemma 40": "qstr.lem40",
    "Lemma 41": "qstr.lem41, E2",
    "Lemma 42": "qstr.lem42, qstr.lem42.disc",
}
