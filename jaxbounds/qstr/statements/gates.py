"""Statements about Lemmas 24, 25 and 42 with explicit networks (Appendices C.1 and D)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import gates
from jaxbounds.qstr.relu_networks import evaluate

RADIUS, STATE, EPS = 2.0, 3.0, 0.3
"""The radius r_x of tokens, the radius r_h of states, and the allowed error eps of the network in
Lemma 24."""
searched_gates = functools.partial(
    Statement, kind="inequality", budget=Budget(samples=64, restarts=1, steps=30)
)


def _grid(size: Size) -> Instance:
    """Return a grid of inputs that contains the corners and the inputs with the largest errors."""
    axes = [np.linspace(-end, end, k) for end, k in ((STATE, 3), (RADIUS, 17), (1.0, 17))]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    worst = np.array([[0.0, RADIUS, 0.5], [0.0, RADIUS / 2, 0.5 + 1.5 * EPS / RADIUS]])
    return dict(zip("hxz", np.concatenate([grid, worst]).T))


def _gate(i: Instance, size: Size) -> Sides:
    target = 2 * i["x"] * jax.nn.relu(i["z"] - 0.5)
    value = lambda inputs, state: evaluate(
        gates.gate_network(radius=RADIUS, eps=EPS, state_radius=state), jnp.stack(inputs)
    )[0]
    with_state = value([i["h"], i["x"], i["z"]], STATE) - (i["h"] + target)
    without = value([i["x"], i["z"]], 0.0) - target
    return Sides.pairs(
        {
            "printed": (jnp.abs(with_state), EPS),
            "printed r_h = 0": (jnp.abs(without), EPS),
            "sharpened": (-jnp.sign(i["x"]) * without, EPS / 2),
            "control": (jnp.abs(without), EPS / 2),
        },
        error=1e-13,
    )


GATE = searched_gates(
    id="qstr.lem24",
    label="Lemma 24",
    formula="|h + 2 x relu(z - 1/2) - a^T relu(W (h, x, z) + b)| <= eps",
    tex=r"\sup_{|h| \le r_h, |x| \le r_x, |z| \le 1} \left| h + 2 x \sigma(z - \tfrac12) - "
    r"a^\top \sigma(W (h, x, z)^\top + b) \right| \le \varepsilon",
    judges=(gates.gate_network,),
    over={"h": Box(-STATE, STATE), "x": Box(-RADIUS, RADIUS), "z": Box(-1, 1)},
    cases=_grid,
    evaluate=_gate,
    forms=(
        Form(
            name="printed",
            cites="Lemma 24, Appendix C.1",
            equality="x = r_x, z = 1/2",
            note="The function (relu(s + e x)^2 - relu(s - e x)^2)/(2 e) differs from 2 x relu(s) "
            "by at most e x^2/2, and the difference has the sign of x. Linear interpolation of "
            "relu(.)^2 between knots at distance t is too large, by at most t^2/4. The "
            "interpolation therefore changes the function by at most t^2/(8 e), up or down. At t = "
            "2 eps/r_x and e = t/(2 r_x), each of the two errors is at most eps/2.",
        ),
        Form(
            name="printed r_h = 0",
            cites="Lemma 24: 'if r_h = 0, we have the improved bounds'",
            equality="x = r_x, z = 1/2",
        ),
        Form(
            name="sharpened",
            equality="x = r_x/2, z = 1/2 + 3 t/4",
            note=(
                "Only the interpolation can err with the sign opposite to the sign of x, and the "
                "interpolation errs by at most eps/2."
            ),
        ),
    ),
    control="half of eps, on both sides",
    sizes=({},),
    assumptions="r_x = 2, r_h = 3, eps = 0.3; from eps = r_x on the zero network serves",
    source="Lemma 24",
)


def _block_grid(size: Size) -> Instance:
    axes = [np.linspace(-RADIUS, RADIUS, 5)] * size["d"] + [np.linspace(-1, 1, 5)] * size["q"]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return {"x": points[:, : size["d"]], "w": points[:, size["d"] :]}


def _block(i: Instance, size: Size) -> Sides:
    x, w = i["x"], i["w"]
    network = gates.block_network(q=size["q"], d=size["d"], radius=RADIUS, eps=EPS)
    want = (2 * jax.nn.relu(w - 0.5)[:, None] * x[None, :]).reshape(-1)
    error = jnp.max(jnp.abs(evaluate(network, jnp.concatenate([x, w])) - want))
    return Sides(lhs=error, rhs={"printed": EPS, "control": EPS / 2}, error=1e-13)


BLOCKS = searched_gates(
    id="qstr.lem25",
    label="Lemma 25",
    formula="|chi_2(l) - 2 chi_x relu(chi_w(l) - 1/2)|_inf <= eps",
    tex=r"\left\| \chi_2(l) - 2 \chi^x \sigma(\chi^\omega(l) - \tfrac12) \right\|_\infty \le "
    r"\varepsilon, \quad l \in [q]",
    judges=(gates.block_network,),
    over={"x": Box(-RADIUS, RADIUS, "d"), "w": Box(-1, 1, "q")},
    cases=_block_grid,
    evaluate=_block,
    forms=(
        Form(
            name="printed",
            cites="Lemma 25, (C.8) and (C.9)",
            equality="x_j = r_x, chi_w(l) = 1/2",
            note="The network applies Lemma 24's gate to every coordinate of every slot (output "
            "block).",
        ),
    ),
    control="half of eps",
    sizes=({"q": 2, "d": 2},),
    assumptions="r_x = 2, eps = 0.3; the half legible 'absolute constant' in (0, 1) is not used",
    source="Lemma 25",
)


SLOPE, CELLS = 3.0, 4


def _function_cases(size: Size) -> Instance:
    up_down = np.tile(np.repeat([1.0, -1.0], CELLS // 2), size["K"])
    return {"slopes": np.stack([up_down, -up_down, np.ones_like(up_down)])}


def _approximated(i: Instance, size: Size) -> Sides:
    K, n = size["K"], CELLS * size["K"]
    step = 2 * RADIUS / n
    values = SLOPE * step * jnp.concatenate([jnp.zeros(1), jnp.cumsum(i["slopes"])])
    values = values - values[n // 2]  # f(0) = 0, so that |f| <= L R
    network = gates.lipschitz_network(values[::CELLS], radius=RADIUS)
    at = jnp.linspace(-RADIUS, RADIUS, n + 1)
    # Both functions are linear between these points, so this maximum is the supremum.
    error = jnp.max(jnp.abs(evaluate(network, at[:, None])[:, 0] - values))
    eps = SLOPE * RADIUS / K
    norms = gates.network_norms(network)
    limit = gates.lipschitz_norms(lipschitz=SLOPE, radius=RADIUS, eps=eps)
    others = jnp.maximum(norms.width / limit.width, norms.bias / limit.bias)
    return Sides.pairs(
        {
            "derived": (error, eps),
            "derived |a|": (norms.outer, limit.outer),
            "derived m, |W|, |b|": (jnp.maximum(norms.rows / limit.rows, others), 1.0),
            "control": (error, eps / 2),
        },
        error=1e-13,
    )


LIPSCHITZ = searched_gates(
    id="qstr.lem42",
    label="Lemma 42 (one dimension)",
    formula="sup |f - a^T relu(W t + b)| <= eps for L-Lipschitz f, m <= C L R/eps, |a| sqrt(m) <= "
    "C (L R)^2/eps, C = 9/2",
    tex=r"\sup_{|t| \le R} \left| f(t) - a^\top \sigma(W t + b) \right| \le \varepsilon, \quad m "
    r"\le \frac{9 L R}{2 \varepsilon}, \; \|a\|_2 \le \frac{9 (L R)^2}{2 \varepsilon \sqrt{m}}, \; "
    r"\|W\|_{2, \infty} \le \frac1R, \; \|b\|_\infty \le 1",
    judges=(gates.lipschitz_network, gates.lipschitz_norms, gates.network_norms),
    over={"slopes": Box(-1, 1, f"{CELLS}*K")},
    cases=_function_cases,
    evaluate=_approximated,
    forms=(
        Form(
            name="derived",
            equality="f up and down between any two knots",
            note="Interpolation at the endpoints of K = L R/eps intervals of equal length errs by "
            "at most L R/K.",
        ),
        Form(
            name="derived |a|",
            note="At each knot the slope of the interpolant changes by at most 2 L. So |a|^2 <= (L "
            "R)^2 (4 K - 2) if f(0) = 0.",
        ),
        Form(
            name="derived m, |W|, |b|",
            equality="every unit but the constant",
            note="The network has m = K + 1 units, so the bound on m needs no logarithm.",
        ),
    ),
    control="half of eps",
    sizes=({"K": 6},),
    assumptions="d = 1, L = 3, R = 2, piecewise linear f. For d = 2: qstr.lem42.disc",
    source="Lemma 42 ([Bac17]) with C_1 explicit",
    budget=Budget(samples=64, restarts=3, steps=60),
)

STATEMENTS = (GATE, BLOCKS)
AUXILIARY = (LIPSCHITZ,)
