"""Section 5 and Appendix C: recurrent networks, what bounds them from above and below."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import spectral_norm, vector_norm
from jaxbounds.qstr import rnn_bounds
from jaxbounds.qstr.bounds import network_value_bound, recurrent_perturbation_bound
from jaxbounds.qstr.code_rnn import CodeRNN, code_rnn, encode_tokens, read_token
from jaxbounds.qstr.recurrent import exclusive_states, project_to_ball
from jaxbounds.qstr.relu_networks import Layer, evaluate, layer, shrink_output
from jaxbounds.qstr.statements.common import CASES_ON_HOST, SEARCHED, normals
from jaxbounds.statements import Budget, Form, Sides, Statement


def _pair(key, size):
    a, b = 2.0 * jax.random.normal(key, (2, size["dh"]))
    return {"a": a, "b": b}


def _projection(i, size):
    a, b = i["a"], i["b"]
    gap = vector_norm(a - b)
    moved = vector_norm(project_to_ball(a, 1.5) - project_to_ball(b, 1.5))
    return Sides(lhs=moved, rhs={"printed": gap, "control": gap / 2})


PROJECTION = Statement(
    id="qstr.projection",
    label="Section 5 (projection)",
    formula="|Pi_r h - Pi_r h'| <= |h - h'|",
    judges=(project_to_ball,),
    sample=_pair,
    evaluate=_projection,
    forms=(Form(name="printed", equality="both states inside the ball"),),
    control="half the distance",
    sizes=({"dh": 3},),
    source="Section 5",
    **SEARCHED,
)


def _accumulate(i, size):
    """Errors of the final state from steps that err by noise in [eps/2, eps], eps = 0.01."""
    eps, noise, x, N = 0.01, i["noise"], i["x"], size["N"]
    plain = jnp.abs(jnp.sum(noise))
    step = jnp.where(jnp.arange(N) == N // 2, x, 0.0 * noise) + noise
    shrunk = evaluate(shrink_output((layer(np.eye(1)),), eps), step[:, None])
    rectified = jnp.abs(jnp.sum(shrunk) - x)
    return Sides(
        lhs={"derived C.1": plain, "sharpened C.2": N * rectified, "control": N * plain},
        rhs={name: float(N) for name in ("derived C.1", "sharpened C.2", "control")},
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
    judges=(shrink_output,),
    sample=_noise_sample,
    evaluate=_accumulate,
    forms=(
        Form(
            name="derived C.1",
            sense="exactly",
            note="Error linear in N without rectifier.",
        ),
        Form(
            name="sharpened C.2",
            sense="exactly",
            note="N times the rectified error is linear in N: the error itself is flat.",
        ),
    ),
    control="the unrectified errors of all N states add up to O(N)",
    sizes=({"N": 8}, {"N": 32}, {"N": 128}, {"N": 512}),
    budget=Budget(samples=200),
    source="(C.1), (C.2)",
)


def _contract(A, N):
    """A scaled so that its Frobenius, hence operator, norm is at most 1/N."""
    square = jnp.sum(A**2, axis=(-2, -1), keepdims=True)
    return A / (N * jnp.maximum(jnp.sqrt(square), 1.0))


def _perturbation(i, size):
    N, z, v = size["N"], i["z"], i["v"].ravel()
    # Axes: the two networks, the two directions; the backward one reads the reversed prompt.
    A = _contract(jnp.stack([i["A"], i["A2"]]), N)
    B, read = jnp.stack([i["B"], i["B2"]]), jnp.stack([z, z[::-1]])
    step = lambda A, B, h, token: jnp.tanh(A @ h + B @ token)
    run = lambda A, B, z: exclusive_states(
        lambda h, token: step(A, B, h, token), z, size["dh"], radius=1.5
    )
    states = jax.vmap(jax.vmap(run), (0, 0, None))(A, B, read)
    steps = jax.vmap(jax.vmap(step, (None, None, 0, 0)))  # along the second network's states
    apart = steps(A[0], B[0], states[1], read) - steps(A[1], B[1], states[1], read)
    gaps = jnp.sum(jnp.max(vector_norm(apart), axis=1))
    change = states[0] - states[1]
    moved = jnp.max(jnp.abs(jnp.concatenate([change[0], change[1, ::-1]], axis=1) @ v))
    L = vector_norm(v)
    bound = lambda sharp: recurrent_perturbation_bound(
        jnp.zeros(()), gaps, N=N, lipschitz=L, sharp=sharp
    )
    return Sides(
        lhs=moved, rhs={"printed": bound(False), "sharpened": bound(True), "control": L * gaps}
    )


PERTURBATION = Statement(
    id="qstr.lem29",
    label="Lemma 29",
    formula="|F - F'| <= |f_y - f_y'| + L_y e N (|f-> - f->'| + |f<- - f<-'|)",
    judges=(recurrent_perturbation_bound, exclusive_states),
    sample=normals("z: N De", "A: 2 dh dh", "B: 2 dh De", "A2: 2 dh dh", "B2: 2 dh De", "v: 2 dh"),
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
    assumptions="transitions 1/N-Lipschitz in h; one linear readout f_y = <v, (h->, h<-)>",
    source="Lemma 29",
    **SEARCHED,
)


def _value(i, size):
    x, W, b = i["x"], i["W"], i["b"]
    value = evaluate(tuple(map(Layer, W, b)), x)
    reach, bare = (network_value_bound(list(W), list(bias), x) for bias in (b, 0.0 * b))
    return Sides(lhs=vector_norm(value), rhs={"printed": reach, "control": bare})


VALUE = Statement(
    id="qstr.lem30.value",
    label="Lemma 30 (C.13)",
    formula="|x_L| <= prod |W_l| |x_0| + sum_l |b_l| prod_{k>l} |W_k|",
    judges=(network_value_bound, evaluate),
    sample=normals("x: k", "W: 3 k k", "b: 3 k"),
    evaluate=_value,
    forms=(Form(name="printed", equality="rank-one layers aligned with one another"),),
    control="biases dropped",
    sizes=({"k": 2},),
    source="Lemma 30, (C.13)",
    **SEARCHED,
)

BITS = 2
ON_CODES: dict[str, Any] = {
    "sizes": ({"N": 2}, {"N": 4}, {"N": 6}, {"N": 8}),
    "cases": lambda size: {"seed": np.arange(3)},
    **CASES_ON_HOST,
}


@functools.lru_cache
def _machine(seed: int, N: int) -> CodeRNN:
    return code_rnn(jax.random.key(seed), N, bits=BITS)


def _norm_growth(i, size):
    N = size["N"]
    m = _machine(int(i["seed"]), N)
    L, width = m.lipschitz, m.width
    needed = L**2 * rnn_bounds.repaired_norm_lower_bound(N=N, lipschitz=L)
    least = rnn_bounds.width_lower_bound(N=N, lipschitz=L, operator_norm=m.operator_norm)
    claimed = L**2 * rnn_bounds.printed_norm_lower_bound(N=N, lipschitz=L, width=width)
    operator = (L * m.operator_norm) ** 2
    return Sides.pairs(
        {
            "printed width": (width, least),
            "printed": (operator, claimed),
            "corrected": ((L * m.frobenius_norm) ** 2, needed),
            "control": (operator, needed),
        }
    )


PROPOSITION_8 = Statement(
    id="qstr.prop8",
    label="Propositions 8 and 35",
    formula="dh >= Omega(N/log(1 + L^2|U|_op^2)) and |U|_op^2 >= Omega(N/(L^2 log(1 + dh)))",
    kind="rate",
    judges=(code_rnn,),
    evaluate=_norm_growth,
    forms=(
        Form(
            name="printed width",
            sense="at least",
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
            note="|U|_F^2 >= Omega(N/L^2), no logarithm: Sudakov's inequality for "
            "{(U-> h->, U<- h<-)} in place of Lemma 41's second branch.",
        ),
    ),
    control="L^2 |U|_op^2 claimed to grow like N itself",
    source="Propositions 8 and 35, Lemma 41",
    **ON_CODES,
)


def _constants(i, size):
    N = size["N"]
    m = _machine(int(i["seed"]), N)
    L, square = m.lipschitz, m.frobenius_norm**2
    states = BITS * N * math.log(2)  # the logarithm of their number
    # Sudakov's bound at states a distance spread/L apart, solved for |U|_F^2.
    spread = float(m.quantiser.levels[-1] - m.quantiser.levels[0])
    constant = BITS * spread**2 / (4 * math.pi)
    least = rnn_bounds.width_lower_bound(N=N, lipschitz=L, operator_norm=m.operator_norm)
    repaired = rnn_bounds.repaired_norm_lower_bound(N=N, lipschitz=L)
    printed = rnn_bounds.printed_norm_lower_bound(N=N, lipschitz=L, width=m.width)
    sudakov = lambda norm: rnn_bounds.sudakov_log_packing(norm, m.distance)
    values = np.random.default_rng(int(i["seed"])).standard_normal(N)
    state, levels = encode_tokens(m, values), m.quantiser.levels
    nearest = levels[np.argmin(np.abs(values[-1] - levels))]
    misread = abs(read_token(m, state, N - 1) - nearest)
    return Sides.pairs(
        {
            "derived reading": (misread + abs(np.linalg.norm(state) - 1), 1e-14),
            "derived width": (BITS * math.log(2) * least, m.width),
            "derived Sudakov": (states, sudakov(m.frobenius_norm)),
            "corrected": (constant * repaired, square),
            "derived printed with |U|_F": (constant * printed, square),
            "control": (states, sudakov(m.operator_norm / 2)),
        }
    )


CONSTANTS = Statement(
    id="qstr.prop8.constants",
    label="Propositions 8 and 35 (constants)",
    formula="|U|_F^2 >= c N/L^2 with c = b spread^2/(4 pi), and dh >= b log(2) N/log(1 + L^2|U|^2)",
    kind="inequality",
    judges=(
        rnn_bounds.width_lower_bound,
        rnn_bounds.printed_norm_lower_bound,
        rnn_bounds.repaired_norm_lower_bound,
        rnn_bounds.sudakov_log_packing,
        code_rnn,
        encode_tokens,
        read_token,
    ),
    evaluate=_constants,
    forms=(
        Form(
            name="derived reading",
            note="A unit state, from which the last token's level is decoded.",
        ),
        Form(name="derived width", note="The volume bound on a packing of the 2^{bN} states."),
        Form(name="derived Sudakov", note="log of the number of states, spread/L apart."),
        Form(name="corrected", note="The same, solved for |U|_F."),
        Form(name="derived printed with |U|_F", note="With |U|_F the second branch is true."),
    ),
    control="half the operator norm in place of |U|_F",
    source="library: the constants of Propositions 8 and 35 on the random-code RNN of b bits",
    **{**ON_CODES, "sizes": ON_CODES["sizes"][:3]},
)


def _equal_case(size):
    one = np.zeros((size["k"], size["k"]))
    one[0, 0] = 1.7
    return {"U": one[None], "W": np.stack([one, one])[None]}


def _am_gm(i, size):
    U, none = i["U"], jnp.zeros(size["k"])
    L, total = rnn_bounds.lipschitz_and_norm(U, [Layer(W, none) for W in i["W"]])
    mean = lambda square: rnn_bounds.weight_norm_lower_bound(L**2 * square, 3)
    frobenius = mean(jnp.sum(U**2))
    return Sides.pairs(
        {
            "printed": (mean(spectral_norm(U) ** 2), total),
            "sharpened": (frobenius, total),
            "control": (2 * frobenius, total),
        }
    )


AM_GM = Statement(
    id="qstr.thm9.amgm",
    label="Theorem 9 (AM-GM step)",
    formula="L_y (L^2 |U|_op^2)^{1/L_y} <= |vec Theta|^2, L_y = 3",
    judges=(rnn_bounds.weight_norm_lower_bound, rnn_bounds.lipschitz_and_norm),
    sample=normals("U: k k", "W: 2 k k"),
    cases=_equal_case,
    evaluate=_am_gm,
    forms=(
        Form(name="printed", equality="equal rank-one layers"),
        Form(name="sharpened", equality="equal rank-one layers", note="|U|_F in place of |U|_op."),
    ),
    control="twice the left side",
    sizes=({"k": 2},),
    source="Theorem 9, proof in Appendix C.4",
    **SEARCHED,
)


MAIN = (PROJECTION, PROPOSITION_8, CONSTANTS, AM_GM)
APPENDIX = (ACCUMULATION, PERTURBATION, VALUE)
