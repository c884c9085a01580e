"""Statements of Section 5 and Appendix C about recurrent networks."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.numerics.norms import spectral_norm, vector_norm
from jaxbounds.qstr.bounds import (
    network_perturbation_bound,
    network_value_bound,
    polynomial_perturbation_bound,
    recurrent_perturbation_bound,
)
from jaxbounds.qstr.recurrent import exclusive_states, project_to_ball
from jaxbounds.qstr.relu_networks import Layer, evaluate, layer, shrink_output
from jaxbounds.qstr.statements.common import reals, searched, zeros


def _projection(i: Instance, size: Size) -> Sides:
    a, b = i["a"], i["b"]
    gap = vector_norm(a - b)
    moved = vector_norm(project_to_ball(a, 1.5) - project_to_ball(b, 1.5))
    return Sides(lhs=moved, rhs={"printed": gap, "control": gap / 2})


PROJECTION = searched(
    id="qstr.projection",
    label="Section 5 (projection)",
    formula="|Pi_r h - Pi_r h'| <= |h - h'|",
    tex=r"\|\Pi_{r_h} h - \Pi_{r_h} \hat h\|_2 \le \|h - \hat h\|_2",
    judges=(project_to_ball,),
    over=reals("a: dh, b: dh"),
    evaluate=_projection,
    forms=(
        Form(
            name="printed",
            cites="Lemma 29, proof: 'by Lipschitzness of Pi_{r_h}'; Section 5.1",
            equality="both states inside the ball",
        ),
    ),
    control="half the distance",
    sizes=({"dh": 3},),
    source="Section 5",
)


def _accumulate(i: Instance, size: Size) -> Sides:
    eps, noise, x, N = 0.01, i["noise"], i["x"], size["N"]
    plain = jnp.abs(jnp.sum(noise))
    step = jnp.where(jnp.arange(N) == 0, x, 0.0 * noise) + noise
    shrunk = evaluate(shrink_output((layer(np.eye(1)),), eps), step[:, None])
    rectified = jnp.abs(jnp.sum(shrunk) - x)
    return Sides(
        lhs={"derived C.1": plain, "sharpened C.2": N * rectified, "control": N * plain},
        rhs={name: float(N) for name in ("derived C.1", "sharpened C.2", "control")},
    )


def _repeated_noise(size: Size) -> Instance:
    """Return N errors that repeat eight values, so that the mean error is equal for all N."""
    rng, repeats = np.random.default_rng(0), size["N"] // 8
    noise = np.tile(0.01 * rng.uniform(0.5, 1.0, (16, 8)), repeats)
    return {"noise": noise, "x": rng.uniform(0.5, 2.0, 16)}


ACCUMULATION = Statement(
    id="qstr.eqc2",
    label="(C.1) and (C.2)",
    formula="steps within eps accumulate to N eps; rectified ones to O(sqrt(q) eps)",
    tex=r"\left\| h_i^\to - \sum_{j=1}^{i-1} \Psi(x_j, \omega_t, \omega_j) \right\|_2 \lesssim N "
    r"\varepsilon \; \text{by (C.1)}, \quad \le \sqrt{q}\, \varepsilon \; \text{by (C.2)}",
    kind="rate",
    judges=(shrink_output,),
    cases=_repeated_noise,
    evaluate=_accumulate,
    forms=(
        Form(
            name="derived C.1",
            sense="exactly",
            exponent=(0.98, 1.02),
            note="The error of the transitions (C.1), which lack the ReLU, grows linearly in N.",
        ),
        Form(
            name="sharpened C.2",
            sense="exactly",
            exponent=(0.9, 1.1),
            note="The check multiplies N by the error of a network with a ReLU after each "
            "transition. The product grows linearly in N, so the error stays bounded as N grows.",
        ),
    ),
    control="the unrectified errors of all N states add up to O(N)",
    sizes=({"N": 8}, {"N": 32}, {"N": 128}, {"N": 512}),
    source="(C.1), (C.2)",
)


def bounded(A: Array, limit: float) -> Array:
    """Scale A to a Frobenius norm of at most `limit`; the operator norm is then at most `limit`."""
    square = jnp.sum(A**2, axis=(-2, -1), keepdims=True)
    return limit * A / jnp.maximum(jnp.sqrt(square), 1.0)


def _perturbation(i: Instance, size: Size) -> Sides:
    z, dh, N = i["z"], size["dh"], size["N"]
    transitions = bounded(i["A1"], 1 / N), bounded(i["A2"], 1.0), i["B"], i["c"]
    step: Callable[..., Array] = lambda A1, A2, B, c, h, token: (
        A2 @ jax.nn.relu(A1 @ h + B @ token + c)
    )
    run = lambda p, z: exclusive_states(lambda h, token: step(*p, h, token), z, dh, radius=1.5)
    read = jnp.stack([z, z[::-1]])  # the backward RNN reads the reversed prompt
    states = jax.vmap(jax.vmap(run), (0, None))(transitions, read)
    steps = jax.vmap(jax.vmap(step, (None,) * 4 + (0, 0)))  # along the second network's states
    first, second = ([leaf[k] for leaf in transitions] for k in (0, 1))
    apart = steps(*first, states[1], read) - steps(*second, states[1], read)
    gaps = jnp.sum(jnp.max(vector_norm(apart), axis=1))
    seen = [jnp.concatenate([own[0], own[1, ::-1], z], axis=1) for own in states]
    shifted = lambda v, e: v + jnp.broadcast_to(e, v.shape)
    readout = lambda k, v: jax.nn.relu(shifted(v @ i["V"][k].T, i["e"][k])) @ i["a"][k]
    moved = jnp.max(jnp.abs(readout(0, seen[0]) - readout(1, seen[1])))
    own = jnp.max(jnp.abs(readout(0, seen[1]) - readout(1, seen[1])))
    L = vector_norm(i["a"][0]) * spectral_norm(i["V"][0][:, : 2 * dh])
    bound = lambda sharp: recurrent_perturbation_bound(own, gaps, N=N, lipschitz=L, sharp=sharp)
    return Sides(
        lhs=moved,
        rhs={"printed": bound(False), "sharpened": bound(True), "control": own + L * gaps / 2},
    )


_PAIR = reals(
    "z: N De, A1: 2 2 m dh, A2: 2 2 dh m, B: 2 2 m De, c: 2 2 m, V: 2 m n, e: 2 m, a: 2 m"
)


def _one_unit_case(size: Size) -> Instance:
    case = zeros(_PAIR, size, cases=2)
    case["A1"][..., 0, 0] = case["A2"][..., 0, 0] = case["a"][..., 0] = 1.0
    case["V"][..., 0, [0, 2]] = 1.0
    case["c"][:, 0, :, 0] = 0.01
    # The second pair has equal transitions and different readouts.
    case["c"][1, 1, :, 0] = 0.01
    case["a"][1, 1, 0] = 0.5
    return case


_AGREE = "transitions that agree along the prompt"
PERTURBATION = searched(
    id="qstr.lem29",
    label="Lemma 29 (proof)",
    formula="|F - F'| <= |f_y - f_y'| + C_N^y e N (|f-> - f->'| + |f<- - f<-'|)",
    tex=r"\sup_{p, j} |F - \hat F| \le d_\infty(f_y, \hat f_y) + e\, C_N^y N \left\{ "
    r"d_\infty(f_h^\to, \hat f_h^\to) + d_\infty(f_h^\leftarrow, \hat f_h^\leftarrow) \right\}",
    judges=(recurrent_perturbation_bound, exclusive_states),
    over=_PAIR,
    cases=_one_unit_case,
    evaluate=_perturbation,
    forms=(
        Form(
            name="printed",
            cites="Lemma 29, proof, last display, with the bound of E_1",
            equality=_AGREE,
            note="The proof uses (1 + 1/N)^N <= e, and evaluates the gaps between the two "
            "networks' maps at the second network's states.",
        ),
        Form(
            name="sharpened",
            equality=_AGREE,
            note="The exact sum is sum_k (1 + 1/N)^k = N ((1 + 1/N)^N - 1) <= (e - 1) N. So the "
            "errors of all steps add up to at most (e - 1) N times the error of one step.",
        ),
    ),
    control="half of one step's error instead of e N",
    sizes=({"N": 8, "De": 2, "dh": 2, "m": 2, "n": 6},),
    assumptions="transitions and readout of two layers; |W_2| |W_1h| <= 1/N; distances along one "
    "prompt, which is harder than their suprema; the covering numbers follow",
    source="Lemma 29",
    budget=Budget(samples=256, restarts=2, steps=30, batch=128),
)


def _value(i: Instance, size: Size) -> Sides:
    x, W, b = i["x"], i["W"], i["b"]
    value = evaluate(tuple(map(Layer, W, b)), x)
    reach, bare = (network_value_bound(list(W), list(bias), x) for bias in (b, b / 2))
    return Sides(lhs=vector_norm(value), rhs={"printed": reach, "control": bare})


VALUE = searched(
    id="qstr.lem30.value",
    label="Lemma 30 (C.13)",
    formula="|x_L| <= prod |W_l| |x_0| + sum_l |b_l| prod_{k > l} |W_k|",
    tex=r"\|x_l\|_2 \le \prod_{i=1}^{l} \|W_i\|_{\mathrm{op}} \|x_0\|_2 + \sum_{i=0}^{l-1} "
    r"\|b_{l-i-1}\|_2 \prod_{j=0}^{i} \|W_{l-j}\|_{\mathrm{op}} + \|b_l\|_2, \quad b_0 = 0",
    judges=(network_value_bound, evaluate),
    over=reals("x: k, W: 3 k k, b: 3 k"),
    evaluate=_value,
    forms=(
        Form(
            name="printed",
            cites="the display after (C.13), before (C.14), Appendix C.2",
            equality="rank-one layers aligned with one another",
            note="The printed sum also contains a bias b_0, which no layer has. The check takes "
            "b_0 = 0, and l = 3 layers, the last with a bias and without a ReLU. The paper has l "
            "<= L - 1.",
        ),
    ),
    control="half of each bias",
    sizes=({"k": 2},),
    source="Lemma 30, (C.13)",
)


def _parameters_apart(i: Instance, size: Size) -> Sides:
    x, W, b = i["x"], i["W"], i["b"]
    W2, b2 = W + i["dW"], b + i["db"]
    first, second = tuple(map(Layer, W, b)), tuple(map(Layer, W2, b2))
    steps = network_perturbation_bound(first, second, x)
    norms = [jnp.sqrt(jnp.sum(v**2, axis=(1, 2))) for v in (W, W2)]
    norms += [vector_norm(v) for v in (b, b2)]
    R = jnp.max(jnp.stack(norms))
    apart = jnp.sqrt(jnp.sum((W - W2) ** 2) + jnp.sum((b - b2) ** 2))
    poly = polynomial_perturbation_bound(depth=3, R=R, r=vector_norm(x))
    return Sides(
        lhs=vector_norm(evaluate(first, x) - evaluate(second, x)),
        rhs={"printed": steps, "derived poly(R)": poly * apart, "control": 0.1 * poly * apart},
    )


APART = Statement(
    id="qstr.lem30",
    label="Lemma 30 (parameters)",
    formula="|f(x) - f'(x)| <= poly(R) |vec Theta - vec Theta'|",
    tex=r"\|f(x) - \hat f(x)\|_2 \le \mathrm{poly}(R) \left\| \mathrm{vec}(\Theta_{\mathrm{NN}}) - "
    r"\mathrm{vec}(\hat\Theta_{\mathrm{NN}}) \right\|_2",
    judges=(network_perturbation_bound, polynomial_perturbation_bound, evaluate),
    over=reals("x: k, W: 3 k k, b: 3 k, dW: 3 k k, db: 3 k"),
    evaluate=_parameters_apart,
    forms=(
        Form(
            name="printed",
            cites="Lemma 30, proof: |x_l - x'_l| <= |W_l|_op |x_{l-1} - x'_{l-1}| + .., unrolled",
            equality="the last layers are zero, and one bias of theirs alone differs",
        ),
        Form(
            name="derived poly(R)",
            note="This version of the claim writes out the polynomial poly(R) for networks of "
            "depth 3.",
        ),
    ),
    control="a tenth of poly(R)",
    sizes=({"k": 2},),
    kind="inequality",
    budget=Budget(samples=128, restarts=4, steps=80, batch=128),
    assumptions="depth 3; log C(F) <= log C of the ball of parameters follows",
    source="Lemma 30, (C.14)",
)


MAIN = (PROJECTION,)
APPENDIX = (ACCUMULATION, PERTURBATION, VALUE, APART)
