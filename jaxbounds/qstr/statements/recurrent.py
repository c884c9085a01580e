"""Section 5 and Appendix C: recurrent networks, what bounds them from above and below."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import vector_norm
from jaxbounds.qstr.bounds import network_value_bound
from jaxbounds.qstr.code_rnn import code_rnn
from jaxbounds.qstr.recurrent import exclusive_states, project_to_ball
from jaxbounds.qstr.relu_networks import Layer, evaluate
from jaxbounds.qstr.statements.common import QUICK, stacked
from jaxbounds.statements import Budget, Form, Sides, Statement


def _pair(key, size):
    a, b = 2.0 * jax.random.normal(key, (2, size["dh"]))
    return {"a": a, "b": b}


def _projection(i):
    a, b = i["a"], i["b"]
    gap = vector_norm(a - b)
    moved = vector_norm(project_to_ball(a, 1.5) - project_to_ball(b, 1.5))
    return Sides(lhs=moved, rhs={"printed": gap, "control": gap / 2})


PROJECTION = Statement(
    id="qstr.projection",
    label="Section 5 (projection)",
    formula="|Pi_r h - Pi_r h'| <= |h - h'|",
    kind="inequality",
    sample=_pair,
    evaluate=_projection,
    forms=(Form(name="printed", equality="both states inside the ball"),),
    control="half the distance",
    sizes=({"dh": 3},),
    budget=QUICK,
    source="Section 5",
)


def _accumulate(i):
    """Errors of the final state from steps that err by noise in [eps/2, eps], eps = 0.01."""
    eps, noise, x = 0.01, i["noise"], i["x"]
    N = noise.shape[0]
    plain = jnp.abs(jnp.sum(noise))
    shrink = lambda v: jax.nn.relu(v - eps) - jax.nn.relu(-v - eps)
    step = jnp.where(jnp.arange(N) == N // 2, x, 0.0 * noise) + noise
    rectified = jnp.abs(jnp.sum(shrink(step)) - x)
    return Sides(
        lhs={"derived C.1": plain, "sharpened C.2": N * rectified, "control": N * plain},
        rhs={name: jnp.asarray(float(N)) for name in ("derived C.1", "sharpened C.2", "control")},
    )


def _noise_sample(key, size):
    key_n, key_x = jax.random.split(key)
    noise = 0.01 * jax.random.uniform(key_n, (size["N"],), minval=0.5, maxval=1.0)
    return {"noise": noise, "x": jax.random.uniform(key_x, (), minval=0.5, maxval=2.0)}


ACCUMULATION = Statement(
    id="qstr.eqc2",
    label="(C.1) and (C.2)",
    formula="steps within eps accumulate to N eps; rectified ones to O(sqrt(q) eps)",
    kind="rate",
    sample=_noise_sample,
    evaluate=_accumulate,
    forms=(
        Form(
            name="derived C.1",
            sense="exactly",
            expected="consistent",
            note="Error linear in N without rectifier.",
        ),
        Form(
            name="sharpened C.2",
            sense="exactly",
            expected="consistent",
            note="N times the rectified error is linear in N: the error itself is flat.",
        ),
    ),
    control="the unrectified errors of all N states add up to O(N)",
    sizes=({"N": 8}, {"N": 32}, {"N": 128}, {"N": 512}),
    budget=Budget(samples=200),
    source="(C.1), (C.2)",
)


def _perturbation_sample(key, size):
    keys = jax.random.split(key, 6)
    N, De, dh = size["N"], size["De"], size["dh"]
    draw = lambda k, *shape: jax.random.normal(keys[k], shape)
    return {
        "z": draw(0, N, De), "A": draw(1, 2, dh, dh), "B": draw(2, 2, dh, De),
        "A2": draw(3, 2, dh, dh), "B2": draw(4, 2, dh, De), "v": draw(5, 2 * dh),
    }  # fmt: skip


def _contract(A, N):
    """A scaled so that its Frobenius, hence operator, norm is at most 1/N."""
    return A / (N * jnp.maximum(jnp.sqrt(jnp.sum(A**2, axis=(1, 2), keepdims=True)), 1.0))


def _perturbation(i):
    z, v = i["z"], i["v"]
    N, dh = z.shape[0], i["A"].shape[1]
    A, A2 = _contract(i["A"], N), _contract(i["A2"], N)
    state, gap = [], []
    for side in range(2):
        f = lambda h, token, s=side: jnp.tanh(A[s] @ h + i["B"][s] @ token)
        g = lambda h, token, s=side: jnp.tanh(A2[s] @ h + i["B2"][s] @ token)
        runs = [exclusive_states(m, z, dh, radius=1.5, reverse=bool(side)) for m in (f, g)]
        state.append(runs[0] - runs[1])
        apart = jax.vmap(f)(runs[1], z) - jax.vmap(g)(runs[1], z)
        gap.append(jnp.max(vector_norm(apart)))
    moved = jnp.max(jnp.abs(jnp.concatenate(state, axis=1) @ v))
    L, gaps = vector_norm(v), gap[0] + gap[1]
    return Sides(
        lhs=moved,
        rhs={
            "printed": L * math.e * N * gaps,
            "sharpened": L * N * ((1 + 1 / N) ** N - 1) * gaps,
            "control": L * gaps,
        },
    )


PERTURBATION = Statement(
    id="qstr.lem29",
    label="Lemma 29",
    formula="|F - F'| <= |f_y - f_y'| + L_y e N (|f-> - f->'| + |f<- - f<-'|)",
    kind="inequality",
    sample=_perturbation_sample,
    evaluate=_perturbation,
    forms=(
        Form(name="printed", note="(1 + 1/N)^N <= e; gaps along the second network's states."),
        Form(
            name="sharpened",
            note="sum_k (1 + 1/N)^k = N ((1 + 1/N)^N - 1) <= (e - 1) N steps' worth of error.",
        ),
    ),
    control="the factor e N dropped",
    sizes=({"N": 4, "De": 2, "dh": 2},),
    budget=QUICK,
    assumptions="transitions 1/N-Lipschitz in h; one linear readout f_y = <v, (h->, h<-)>",
    source="Lemma 29",
)


def _value_sample(key, size):
    keys = jax.random.split(key, 5)
    k = size["k"]
    draw = lambda j, *shape: jax.random.normal(keys[j], shape)
    return {"x": draw(0, k), "W": draw(1, 3, k, k), "b": draw(2, 3, k)}


def _value(i):
    x, W, b = i["x"], i["W"], i["b"]
    value = evaluate(tuple(map(Layer, W, b)), x)
    reach, bare = (network_value_bound(list(W), list(bias), x) for bias in (b, 0.0 * b))
    return Sides(lhs=vector_norm(value), rhs={"printed": reach, "control": bare})


VALUE = Statement(
    id="qstr.lem30.value",
    label="Lemma 30 (C.13)",
    formula="|x_L| <= prod |W_l| |x_0| + sum_l |b_l| prod_{k>l} |W_k|",
    kind="inequality",
    sample=_value_sample,
    evaluate=_value,
    forms=(Form(name="printed", equality="rank-one layers aligned with one another"),),
    control="biases dropped",
    sizes=({"k": 2},),
    budget=QUICK,
    source="Lemma 30, (C.13)",
)


def _code_cases(size):
    machines = [code_rnn(jax.random.key(seed), size["N"]) for seed in range(3)]
    return stacked(
        *[
            {
                "N": np.int32(size["N"]),
                "width": np.int32(m.width),
                "norms": np.array([m.lipschitz, m.operator_norm, m.frobenius_norm]),
            }
            for m in machines
        ]
    )


def _norm_growth(i):
    N, width = i["N"].astype(jnp.float64), i["width"].astype(jnp.float64)
    L, operator, frobenius = i["norms"]
    operator, frobenius = (L * operator) ** 2, (L * frobenius) ** 2
    return Sides(
        lhs={
            "printed": operator,
            "corrected": frobenius,
            "printed width": width,
            "control": operator,
        },
        rhs={
            "printed": N / jnp.log1p(width),
            "corrected": N,
            "printed width": N / jnp.log1p(operator),
            "control": N,
        },
    )


PROPOSITION_8 = Statement(
    id="qstr.prop8",
    label="Propositions 8 and 35",
    formula="dh >= Omega(N/log(1 + L^2|U|_op^2)) and |U|_op^2 >= Omega(N/(L^2 log(1 + dh)))",
    kind="rate",
    cases=_code_cases,
    evaluate=_norm_growth,
    forms=(
        Form(
            name="printed width",
            sense="at least",
            expected="consistent",
            note="The valid first branch, on the random-code RNN.",
        ),
        Form(
            name="printed",
            sense="at least",
            expected="inconsistent",
            erratum="E2",
            note="The random-code RNN (mse 0.12 per token at every N) has L^2 |U|_op^2 bounded, "
            "while N/log(1 + dh) diverges.",
        ),
        Form(
            name="corrected",
            sense="at least",
            expected="consistent",
            note="|U|_F^2 >= Omega(N/L^2), no logarithm: Sudakov's inequality for "
            "{(U-> h->, U<- h<-)} in place of Lemma 41's second branch.",
        ),
    ),
    control="L^2 |U|_op^2 claimed to grow like N itself",
    sizes=({"N": 2}, {"N": 4}, {"N": 6}, {"N": 8}),
    source="Propositions 8 and 35, Lemma 41",
)


def _weights_sample(key, size):
    keys = jax.random.split(key, 2)
    k = size["k"]
    return {"U": jax.random.normal(keys[0], (k, k)), "W": jax.random.normal(keys[1], (2, k, k))}


def _equal_case(size):
    one = np.zeros((size["k"], size["k"]))
    one[0, 0] = 1.7
    return {"U": one[None], "W": np.stack([one, one])[None]}


def _am_gm(i):
    op = lambda W: jnp.linalg.norm(W, ord=2)
    L = op(i["W"][0]) * op(i["W"][1])
    total = jnp.sum(i["U"] ** 2) + jnp.sum(i["W"] ** 2)
    mean = lambda u: 3 * jnp.cbrt(L**2 * u)
    return Sides(
        lhs={
            "printed": mean(op(i["U"]) ** 2),
            "sharpened": mean(jnp.sum(i["U"] ** 2)),
            "control": 2 * mean(jnp.sum(i["U"] ** 2)),
        },
        rhs={"printed": total, "sharpened": total, "control": total},
    )


AM_GM = Statement(
    id="qstr.thm9.amgm",
    label="Theorem 9 (AM-GM step)",
    formula="L_y (L^2 |U|_op^2)^{1/L_y} <= |vec Theta|^2, L_y = 3",
    kind="inequality",
    sample=_weights_sample,
    cases=_equal_case,
    evaluate=_am_gm,
    forms=(
        Form(name="printed", equality="equal rank-one layers"),
        Form(name="sharpened", equality="equal rank-one layers", note="|U|_F in place of |U|_op."),
    ),
    control="twice the left side",
    sizes=({"k": 2},),
    budget=QUICK,
    source="Theorem 9, proof in Appendix C.4",
)

MAIN = (PROJECTION, PROPOSITION_8, AM_GM)
APPENDIX = (ACCUMULATION, PERTURBATION, VALUE)
