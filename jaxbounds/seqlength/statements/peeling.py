"""Appendix C: the proof removes w, W_c, the sign, the activation and W_v from the complexity."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.seqlength.norms import column_norm, row_norm
from jaxbounds.seqlength.rademacher import empirical_rademacher, linear_support, with_negation
from jaxbounds.seqlength.statements.instances import activation, inequality


def _holder(instance: Instance, size: Size) -> Sides:
    v, u = instance["v"], instance["u"]
    support = lambda B: linear_support(jnp.eye(size["d"]), B)(u)
    whole = support(jnp.sum(jnp.abs(v)))
    return Sides(v @ u, {"printed": support(1.0), "corrected": whole, "control": whole / 2.0})


def _holder_meets(instance: Instance, size: Size) -> dict[str, Any]:
    return {"||v||_1 <= B_v, its own (Appendix C)": np.abs(instance["v"]).sum() < math.inf}


HOLDER = inequality(
    id="seqlength.appc.holder",
    label="Appendix C, the first display",
    tex=r"v^\top u \le B_v \max_j |u_j| = \max_{j, s} s \, e_j^\top u, \quad \|v\|_1 \le B_v",
    formula="v.u <= B_v max_j |u_j| = max_{j,s} s u_j, ||v||_1 <= B_v",
    over={"v": Reals("d"), "u": Reals("d")},
    evaluate=_holder,
    judges=(linear_support,),
    sizes=({"d": 3},),
    forms=(
        Form(
            name="printed",
            cites="Appendix C, the first display, its second expression",
            erratum="E16",
            note="The second expression of the display lacks the factor B_v.",
            counterexample=Counterexample(
                instance={"v": [2.0], "u": [1.0]}, size={"d": 1}, ratio=2.0, meets=_holder_meets
            ),
        ),
        Form(name="corrected", equality="v = B_v s e_j at the largest |u_j|"),
    ),
    control="half of the right side",
)


def _linear(z: Array | float) -> Array | float:
    return z


def _peeling(instance: Instance, size: Size) -> Sides:
    w, W_c, W_v, z = (instance[name] for name in ("w", "W_c", "W_v", "z"))
    outer = jnp.sum(jnp.abs(w)) * jnp.max(jnp.abs(z))
    bound = lambda norm: outer * norm(W_c, 1, math.inf) * norm(W_v, 1, math.inf)
    right = bound(column_norm)
    return Sides(
        jnp.abs(w @ (W_c.T @ _linear(W_v.T @ z))),
        {"derived": bound(row_norm), "corrected": right, "control": right / 2.0},
    )


def _aligned(size: Size) -> Instance:
    """Return instances with positive entries, so that no terms cancel in either side's sums."""
    rng, d, k = np.random.default_rng(0), size["d"], size["k"]
    W_c, W_v = rng.uniform(0.1, 1.0, (4, k, d)), rng.uniform(0.1, 1.0, (4, d, k))
    # All columns have equal l_1 norms, so every column is a longest column.
    W_c, W_v = (W / W.sum(axis=1, keepdims=True) for W in (W_c, W_v))
    w, z = np.zeros((4, d)), np.ones((4, d))
    w[:, 0] = 1.0
    return {"w": w, "W_c": W_c, "W_v": W_v, "z": z}


def _peeling_meets(instance: Instance, size: Size) -> dict[str, Any]:
    """Check the printed hypotheses; the input is one token z, so the attention's output is z."""
    w, W_c, W_v = (np.asarray(instance[name]) for name in ("w", "W_c", "W_v"))
    rows = lambda W: np.abs(W).sum(axis=1).max()
    return {
        "||w||_1 <= B_w = 1 (Section 4.1)": np.abs(w).sum() <= 1,
        "||W_c^T||_{1,inf} <= B_Wc = 1 (Section 4.1)": rows(W_c) <= 1,
        "||W_v^T||_{1,inf} <= B_Wv = 1 (Section 4.1)": rows(W_v) <= 1,
        "||x||_2 <= B_x = sqrt 2 (Theorem 4.1)": np.linalg.norm(instance["z"]) <= math.sqrt(2.0),
        "sigma(z) = z: sigma(0) = 0, L_sigma = 1 (Section 2.6)": _linear(0.0) == 0
        and _linear(1.0) == 1,
        "W_c in R^{k x d}, W_v in R^{d x k} (Section 4.1)": W_c.shape == W_v.shape[::-1],
    }


PEELING = inequality(
    id="seqlength.appc.peeling",
    label="Appendix C, removing w, W_c and W_v",
    tex=r"|w^\top W_c^\top W_v^\top z| \le \|w\|_1 \|W_c^\top\|_{1,\infty} "
    r"\|W_v^\top\|_{1,\infty} \max_j |z_j|",
    formula="|w.W_c^T W_v^T z| <= ||w||_1 ||W_c^T||_{1,inf} ||W_v^T||_{1,inf} max_j |z_j|",
    over=dict.fromkeys("wz", Reals("d")) | {"W_c": Reals(("k", "d")), "W_v": Reals(("d", "k"))},
    cases=_aligned,
    evaluate=_peeling,
    judges=(column_norm, row_norm),
    hypotheses=lambda i, size: {
        "nothing is zero": jnp.min(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in i.values()]))
        > 1e-6
    },
    sizes=({"d": 2, "k": 2},),
    forms=(
        Form(
            name="derived",
            cites="Section 4.1, the norms, in Appendix C's displays for w, W_c and W_v",
            erratum="E4",
            reading="columns",
            note="The proof applies Appendix C's first display to e_j^T W_c^T, which is a column "
            "of W_c.",
            counterexample=Counterexample(
                instance={
                    "w": [1.0, 0.0],
                    "W_c": [[1.0, 0.0], [1.0, 0.0]],
                    "W_v": [[1.0, 0.0], [0.0, 1.0]],
                    "z": [1.0, 1.0],
                },
                ratio=2.0,
                meets=_peeling_meets,
            ),
        ),
        Form(
            name="corrected",
            note="The right side has the column norms of W_c and W_v in place of the printed "
            "norms of the transposes.",
            equality="nonnegative columns",
        ),
    ),
    control="half the corrected product",
)


def _sign_removal(instance: Instance, size: Size) -> Sides:
    F, slopes = jnp.concatenate([jnp.zeros((1, size["m"])), instance["F"]]), instance["slopes"]
    plain, L_sigma = empirical_rademacher(F), jnp.sum(slopes)
    two = empirical_rademacher(with_negation(activation(slopes)(F)))
    symmetric, odd_slopes = with_negation(F), slopes.at[2].set(0.0)
    odd = empirical_rademacher(with_negation(activation(odd_slopes)(symmetric)))
    return Sides.pairs(
        {
            "printed": (two, 2.0 * L_sigma * plain),
            "sharpened": (odd, jnp.sum(odd_slopes) * empirical_rademacher(symmetric)),
            "control": (two, L_sigma * plain / 2.0),
        }
    )


def _one_linear(size: Size) -> Instance:
    F = np.zeros((8, size["functions"], size["m"]))
    F[:, 0] = np.random.default_rng(0).normal(size=(8, size["m"]))
    return {"F": F, "slopes": np.tile([1.0, 0.0, 0.0], (8, 1))}


SIGN = inequality(
    id="seqlength.appc.sign",
    label="Appendix C, removing s and sigma",
    tex=r"\mathbb{E} \sup_{s, f} \sum_{i=1}^m s \, \epsilon_i \sigma(f(x_i)) \le 2 L_\sigma "
    r"\mathbb{E} \sup_f \sum_{i=1}^m \epsilon_i f(x_i), \quad s \in \{-1, 1\}",
    formula="E sup_{s,f} s sum sigma_i sigma(f(x_i)) <= 2 L_sigma E sup_f sum sigma_i f(x_i)",
    over={"F": Reals(("functions", "m")), "slopes": Box(0, math.inf, 3)},
    cases=_one_linear,
    evaluate=_sign_removal,
    judges=(with_negation, empirical_rademacher),
    sizes=({"functions": 2, "m": 6},),
    forms=(
        Form(
            name="printed",
            cites="Appendix C, the display with 2 B_w B_Wc L_sigma",
            note=(
                "The class F contains the zero function. The check uses the activation sigma(z) = "
                "a z + b tanh(z) + c relu(z)."
            ),
            equality="sigma linear, F = {0, f}",
        ),
        Form(
            name="sharpened",
            note="For an odd sigma, for example a z + b tanh(z), -sigma(f) = sigma(-f), so the "
            "factor 2 is unnecessary.",
            equality="sigma linear",
        ),
    ),
    control="half the complexity of F",
)

STATEMENTS = (HOLDER, PEELING, SIGN)
