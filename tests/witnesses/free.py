"""Alterations of an instance that leave its witness one, with the reason.

By statement and form, or by statement for all of its forms: `NAME[INDEX] +1` raises an entry,
`NAME -` turns the sign of any entry of the field. Each is an instance on which the form fails with
the same two sides.
"""

FIRST_PHASE = "p is left by the first phase, which the statement does not have"
LABELS = "mu_+ and mu_- change places with the label"
OUTSIDE = "noise outside of the patterns' span is in no score, output or margin"
EQUAL_TOKENS = "all tokens are equal, so any attention gives the same"
NO_SECOND = "the other factor has no second coordinate"
SECOND = "what differs, and what w reads, is in the first coordinate"
ABSOLUTE = "only absolute values count"
TOO_LITTLE = "it moves the sides by less than one in 10^9, to which they are compared"
ANY_B_X = "neither side has B_x, which is large enough either way"
LINEAR = "the gradient of a linear function of u does not depend on u"

_BLOCKS = {f"{group}.W_QK[{i}] +1": NO_SECOND for group in ("layers", "moved") for i in (2, 3)}
_SECOND = {
    f"{group}.{name}[3] -": SECOND for group in ("layers", "moved") for name in ("W_c", "W_v")
}

FREE: dict[str | tuple[str, str], dict[str, str]] = {
    "multihead.eq116": {"y -": LABELS},
    "multihead.eq129": {
        "log_eps -": "eq. (129) has no epsilon",
        "log_eps +1": "eq. (129) has no epsilon",
        "p +1": FIRST_PHASE,
        "y -": LABELS,
        "z[4] -": ABSOLUTE,
        "z[7] +1": OUTSIDE,
    },
    "multihead.eq21": {"U -": "the target counts by its norm, and its loss stays small enough"},
    "multihead.eq24.loss": {
        "U[1] +1": NO_SECOND,
        "U[3] +1": NO_SECOND,
        "U[5] +1": NO_SECOND,
        "W +1": EQUAL_TOKENS,
        "X[1] +1": NO_SECOND,
        "X[3] +1": NO_SECOND,
        "X[5] +1": NO_SECOND,
    },
    "multihead.eq49": {"U +1": LINEAR},
    "multihead.eq9": {f"patterns[{i}] -": "norms do not see the signs" for i in (0, 4, 8)},
    "multihead.footnote1.pooling": {"U +1": LINEAR, "W +1": EQUAL_TOKENS},
    "multihead.footnote1.pooling.w": {
        "U -": ABSOLUTE,
        **{f"U[{i}] +1": "u is the first row of U" for i in range(2, 16)},
        **{f"W[{i}] +1": "tokens have no second coordinate" for i in (1, 2, 3)},
    },
    "multihead.lem12": {
        "y -": LABELS,
        "z[4] +1": "twice the output, still surely above the bound: both sides are probabilities",
    },
    "multihead.lem13": {"y -": LABELS, "z[7] +1": OUTSIDE},
    "multihead.lem16": {
        "p +1": "the lemma says what p is, it is not given",
        "alpha[1] -": "the sides are compared at the first head",
        **{f"z[{i}] +1": "the sides are compared along mu_+" for i in (5, 6, 7, 13, 14, 15)},
    },
    ("multihead.prop3.margin", "printed, Section 7"): {
        "p +1": FIRST_PHASE,
        "y -": LABELS,
        "z[7] +1": OUTSIDE,
    },
    ("multihead.prop3.margin", "printed"): {
        "p +1": FIRST_PHASE,
        "y -": LABELS,
        "z[19] +1": OUTSIDE,
    },
    "multihead.prop3.mass": {
        "S +1": "W_opt and Gamma undo S where there is no noise",
        "p +1": FIRST_PHASE,
        "y -": LABELS,
        "z[19] +1": OUTSIDE,
    },
    "multihead.prop7.distance": {
        "p[1] +1": "the tokens have nothing along mu_-",
        "p[3] +1": "the tokens have nothing outside of the patterns' span",
        "y -": LABELS,
        "z[7] +1": OUTSIDE,
    },
    "multihead.prop7.exists": {
        "x -": "||x|| counts",
        "x +1": "gamma grows with ||x||, the reach falls with gamma: their product stays",
    },
    "multihead.sec5.3.exponent": {
        "log_C +1": "any C between the two thresholds shows that they differ",
        "log_S +1": "any S that is large enough",
    },
    "multihead.sec5.3.target": {"log_n +1": "the smaller ratio is S^2 C / H^p"},
    "qstr.lem38.bias": {
        "y -": "biases are of the z",
        "y +1": "biases are of the z",
    },
    "seqlength.appc.norms": {
        "P -": "the only column's length counts",
        "v -": ABSOLUTE,
        "u -": "it is the other display's",
        "u +1": "it is the other display's",
    },
    "seqlength.appc.peeling": {"w -": ABSOLUTE},
    "seqlength.appe.chain": {"X[1] +1": SECOND, "X[3] +1": SECOND, **_BLOCKS, **_SECOND},
    "seqlength.appe.cover": {
        "X[1] +1": SECOND,
        "X[3] +1": SECOND,
        "layers.W_v[3] -": SECOND,
        "moved.W_v[3] -": SECOND,
    },
    "seqlength.corf.0.1.packing": {"B_x +1": TOO_LITTLE, "M +1": TOO_LITTLE},
    ("seqlength.corf.0.2.packing", "derived"): {"B_x +1": ANY_B_X},
    "seqlength.cor4.2.1": {"x +1": "x^2 goes with both sides, whose quotient is compared"},
    "seqlength.lemmae.2.first": {
        name.replace("layers", "layer"): why for name, why in {**_BLOCKS, **_SECOND}.items()
    },
    "seqlength.lemma3.1": {"vectors -": "f turns with V"},
    "seqlength.lemma3.2": {
        **{
            f"W[{i}] +1": "the least covers have two and one members still"
            for i in (1, 2, 4, 5, 6, 7, 9, 10, 12, 13, 14, 15)
        },
        "x -": ABSOLUTE,
    },
    "seqlength.sec2.1.norm": {"W -": ABSOLUTE},
    "seqlength.sec4.1.cls": {
        "W_QK[0] +1": "x_[CLS] has no first coordinate: only the other row and column are read",
        "W_c[1] +1": "the sides are compared at the first coordinate of the output",
        "X[3] +1": "W_v and W_QK^T x_[CLS] have no such coordinate",
    },
    "seqlength.thm4.2": {
        "B_QK +1": "it is in alpha_i, i < L, and L = 1",
        "B_x +1": "it is in C_Bx, which is given",
    },
    "smapprox.claimc.5.case2": {
        "j +1": "bit 3 of 100 and 011 differs, too",
        "last +1": "101 has the same bit 2 as 100",
    },
    "smapprox.condd.3.ties": {"value[1] -": "the tie breaks to either side alike"},
    "smapprox.sec2.1.positive": {"values[0] +1": "F is right still"},
}
