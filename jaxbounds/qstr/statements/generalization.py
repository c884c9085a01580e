"""Theorems 4, 7 and 10 with every constant, link by link: covers, gaps, truncation, risks.

Covers and truncation (Lemmas 14, 16, 18, 20, 32, 34, Propositions 17, Corollaries 19, 31, 33) are
judged on small networks by search, gaps by ascent over a whole class on prompts of signs, of which
all can be listed; the risks at their own sample sizes.
"""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import vector_norm
from jaxbounds.qstr import bounds, covers, data, excess, packing
from jaxbounds.qstr.recurrent import exclusive_states
from jaxbounds.qstr.statements.common import (
    CASES_ON_HOST,
    gauss_hermite,
    normals,
    stacked,
)
from jaxbounds.qstr.transformer import SparseTransformer
from jaxbounds.statements import Budget, Form, Sides, Size, Statement

LEVEL = 0.2
NAMES = ("W_QK", "W", "b", "a")


def _shapes(size):
    H, De, m = size["H"], size["De"], size["m"]
    return {"W_QK": (H, De, De), "W": (m, H * De), "b": (m,), "a": (m,)}


def _predict(params, z, size):
    return SparseTransformer(heads=size["H"], width=size["m"]).apply({"params": params}, z)


def _length(tree):
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def _pair_sample(key, size):
    """Two Transformers near each other, and a prompt."""
    keys = jax.random.split(key, 9)
    drawn = {"z": jax.random.normal(keys[0], (size["N"], size["De"]))}
    for number, (name, shape) in enumerate(_shapes(size).items()):
        drawn[name] = jax.random.normal(keys[1 + number], shape)
        drawn[f"d_{name}"] = 0.1 * jax.random.normal(keys[5 + number], shape)
    return drawn


def _aligned_pair(size):
    """Equal tokens and one unit aligned with them: the readout moves, by much and by little."""
    zero = {name: np.zeros(shape) for name, shape in _shapes(size).items()}
    rows = []
    for token, readout in ((1.0, 1.0), (0.3, 0.01)):
        row = {name: value.copy() for name, value in zero.items()}
        row |= {f"d_{name}": value.copy() for name, value in zero.items()}
        row["z"] = np.zeros((size["N"], size["De"]))
        row["z"][:, 0] = token
        row["W"].reshape(size["m"], size["H"], -1)[0, :, 0] = token
        row["b"][0] = 1.0
        row["a"][0] = readout
        row["d_a"][0] = 0.1 * readout
        rows.append(row)
    return stacked(*rows)


def _moved(i, size):
    params = {name: i[name] for name in NAMES}
    other = {name: i[name] + i[f"d_{name}"] for name in NAMES}
    z = i["z"]
    r_z = jnp.max(vector_norm(z))
    inner = lambda p: _length([p["W"], p["b"]])
    f = covers.TransformerClass(
        m=size["m"], H=size["H"], De=size["De"], r_z=r_z, r_QK=0.0,
        r_a=jnp.maximum(vector_norm(params["a"]), vector_norm(other["a"])),
        R_w=jnp.maximum(inner(params), inner(other)),
    )  # fmt: skip
    change = {name: i[f"d_{name}"] for name in NAMES}
    of_two = f.reach * (f.R_w * vector_norm(change["a"]) + f.r_a * inner(change))
    whole = of_two + f.r_a * f.R_w * r_z**3 * _length(change["W_QK"])
    R = jnp.maximum(_length(params), _length(other))
    ball = covers.transformer_lipschitz(R, H=size["H"], r_z=r_z) * _length(change)
    alike = {**other, "W_QK": params["W_QK"]}
    gap = lambda one, two: jnp.max(jnp.abs(_predict(one, z, size) - _predict(two, z, size)))
    largest = jnp.maximum(*(jnp.max(jnp.abs(_predict(p, z, size))) for p in (params, other)))
    return Sides.pairs(
        {
            "derived Lemma 14": (gap(params, alike), of_two),
            "derived": (gap(params, other), whole),
            "derived ball": (gap(params, other), ball),
            "derived prediction": (largest, f.largest_prediction),
            "control": (gap(params, other), 0.05 * ball),
        }
    )


_ALIGNED = "equal tokens, one unit aligned with (h, 1), and a moves"
LIPSCHITZ = Statement(
    id="qstr.prop17.lipschitz",
    label="Lemma 14, Proposition 17 (in parameters)",
    formula="|yhat - yhat'| <= s (R_w |a - a'| + r_a |(W, b) - (W', b')|_F) + r_a R_w r_z^3 "
    "|Theta - Theta'|_F, s^2 = H r_z^2 + 1",
    tex=r"|\hat y - \hat y'| \le s \left( R_w \|a - a'\|_2 + r_a \|(W, b) - (W', b')\|_F \right) "
    r"+ r_a R_w r_z^3 \|\Theta_{\mathrm{QK}} - \Theta_{\mathrm{QK}}'\|_F, \quad s^2 = H r_z^2 + 1",
    judges=(
        covers.transformer_lipschitz,
        SparseTransformer.__call__,
    ),
    sample=_pair_sample,
    cases=_aligned_pair,
    evaluate=_moved,
    forms=(
        Form(
            name="derived Lemma 14",
            equality=_ALIGNED,
            note="The two-layer network alone, on attended tokens.",
        ),
        Form(
            name="derived",
            equality=_ALIGNED,
            note="Lemmas 13, 14 and 15, with the constant 1 of qstr.lem15.",
        ),
        Form(
            name="derived ball",
            note="Theorem 4's class: the derivatives by a, (W, b) and Theta together, |a| |W| <= "
            "R^2/2.",
        ),
        Form(
            name="derived prediction",
            equality=_ALIGNED,
            note="r_a R_w s bounds a prediction.",
        ),
    ),
    control="a twentieth of the last",
    sizes=({"N": 3, "De": 3, "H": 2, "m": 2},),
    source="Lemmas 13 to 15, Proposition 17",
    kind="inequality",
    search="random",
    budget=Budget(samples=128, restarts=2, steps=20, batch=128),
)


def _class_cases(size):
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(12):
        rows.append(
            {
                "m": rng.integers(1, 20), "H": rng.integers(1, 4), "De": rng.integers(2, 40),
                "r_a": rng.uniform(0.5, 3), "R_w": rng.uniform(0.5, 3),
                "r_QK": rng.uniform(1, 20), "r_z": rng.uniform(1, 9),
                "eps": math.exp(rng.uniform(-9, -1)),
            }
        )  # fmt: skip
    return stacked(*rows)


def _sizes_of_covers(i, size):
    given = {name: v.item() for name, v in i.items()}
    eps = given.pop("eps")
    f = covers.TransformerClass(**given)
    of_a, of_w, of_heads = f.parameters
    slope, r = f.r_a * f.R_w, f.r_z
    two = of_a + of_w
    L, R = slope * math.sqrt(f.H * r**2 + 1), math.sqrt(f.H) * f.r_QK
    share = of_heads / (two + of_heads)
    # The numbers of balls by a product of their radii, in place of sums of logarithms.
    ball = lambda p, radius, moved: p * math.log((radius + moved / 2) / (moved / 2))
    left = (1 - share) * eps
    moved_a, moved_w = (left * p / two for p in (of_a, of_w))
    by_hand = ball(of_a, f.r_a, moved_a / (f.R_w * L / slope)) + ball(
        of_w, f.R_w, moved_w / (f.r_a * L / slope)
    )
    heads = ball(of_heads, R, share * eps / (slope * r**2) / r)
    printed = f.m * f.H * f.De * math.log1p(2 * (f.H * f.De + 2) * L / eps)
    one = {"parameters": two, "radius": 1.0, "lipschitz": 2.0 * L}
    even = covers.ball_log_covering(eps, **one)
    exact = math.log(math.ceil(2.0 / eps))
    line = covers.ball_log_covering(eps, parameters=1, radius=2.0, lipschitz=1.0)
    own = covers.two_layer_log_covering(left, f)
    return Sides.pairs(
        {
            "printed": (covers.two_layer_log_covering(eps, f), printed * (1 + 2 / (f.H * f.De))),
            "derived": (own, by_hand * (1 + 1e-12)),
            "derived split": (covers.two_layer_log_covering(eps, f), even),
            "derived Proposition 17": (
                covers.transformer_log_covering(eps, f), (by_hand + heads) * (1 + 1e-12),
            ),
            "derived interval": (exact, line),
            "control": (by_hand + heads, own),
        }
    )  # fmt: skip


COVERS = Statement(
    id="qstr.prop17.explicit",
    label="Lemmas 14 and 16, Proposition 17 (sizes of covers)",
    formula="log C(F_TR, eps) <= sum over a, (W, b), Theta_QK of p log(1 + 2 R_p L_p / eps_p), eps "
    "split like the numbers of parameters",
    tex=r"\log \mathcal{C}(\mathcal{F}_{\mathrm{TR}}, \epsilon) \le \sum_{p} p \log\left(1 + "
    r"\frac{2 R_p L_p}{\epsilon_p}\right), \quad \epsilon_p = \frac{p}{\sum p} \epsilon",
    kind="inequality",
    judges=(
        covers.two_layer_log_covering,
        covers.transformer_log_covering,
        covers.ball_log_covering,
        bounds.query_key_log_covering,
    ),
    cases=_class_cases,
    evaluate=_sizes_of_covers,
    forms=(
        Form(
            name="printed",
            cites="Lemma 14: m_g H De log(1 + poly(R)/eps)",
            note="poly(R) = 2 (H De + 2) r_a R_w s, and m (H De + 2) parameters.",
        ),
        Form(name="derived", equality="always", note="Balls of radius R + r/2 over balls of r/2."),
        Form(
            name="derived split",
            note="No more than for eps/2 each; as m (H De + 2) log(1 + 4L/eps).",
        ),
        Form(name="derived Proposition 17", equality="always", note="With Lemmas 13, 15 and 16."),
        Form(name="derived interval", note="p = 1: ceil(R L/eps) intervals are the least cover."),
    ),
    control="Proposition 17 without its heads",
    sizes=({},),
    source="Lemmas 13, 14, 16, Proposition 17",
    **{**CASES_ON_HOST, "budget": Budget(samples=1)},
)


def _branches(i, size):
    De = int(i["De"])
    needed = packing.volume_lower(De, 4.0 / 7.0)
    claimed = bounds.query_key_log_covering_rate(0.5, r_z=1.0, radius_21=1.0, H=1, De=De)
    volume = bounds.query_key_log_covering(0.5, r_z=1.0, radius=1.0, H=1, De=De)
    return Sides.pairs(
        {
            "printed first branch": (needed, claimed),
            "printed second branch": (needed, volume),
            "control": (needed * De**2, volume),
        }
    )


BRANCHES = Statement(
    id="qstr.lem16",
    label="Lemma 16 (its branches)",
    formula="log C({u e_1^T : |u| <= 1}, 1/2) <~ min(4 log(2 De^2), De^2 log 5), on a net of unit "
    "vectors",
    tex=r"\log \mathcal{C}\left(\left\{u e_1^\top : \|u\|_2 \le 1\right\}, \frac{1}{2}\right) "
    r"\lesssim \min(4 \log(2 D_e^2), D_e^2 \log 5)",
    kind="rate",
    judges=(
        bounds.query_key_log_covering,
        bounds.query_key_log_covering_rate,
        packing.volume_lower,
    ),
    host=True,
    cases=lambda size: {"De": 2 ** np.arange(4, 14)},
    evaluate=_branches,
    forms=(
        Form(
            name="printed first branch",
            cites="Lemma 16: r_z^2 R_{2,1}^2 log(2 H De^2) / eps^2",
            expected="inconsistent",
            erratum="E9",
            sense="at most",
            exponent=(5.0, 8.0),
            note="On data that contain a net of fineness r_z/2 of the sphere, d_infty is at least "
            "7/8 of |u - u'|: De log(7/4) are needed. The missing factor is log(nN).",
        ),
        Form(
            name="printed second branch",
            cites="Lemma 16: H De^2 log(1 + R_F r_z/eps)",
            sense="at most",
            exponent=(0.4, 0.6),
            note="With 2 R_F r_z / eps it is a bound: qstr.prop17.assembly.",
        ),
    ),
    control="De^2 times as many needed",
    sizes=({},),
    source="Lemma 16",
)

RADIUS = 3.0
"""Of the ball of parameters that is searched, on prompts of two signs: N = 2, d = q = 1, de = 2."""


@functools.lru_cache
def _all_prompts():
    """All encoded prompts and positions, as numbers: tokens (32, 2, De), which, labels (32,)."""
    pairs = lambda values: [*itertools.product(values, repeat=2)]
    rows = [*itertools.product(pairs((-1.0, 1.0)), pairs(range(2)), range(2))]
    x, t, which = (np.array(column) for column in zip(*rows))
    with jax.ensure_compile_time_eval():
        z = jax.vmap(data.encode, (0, 0, None))(x[:, :, None], t[:, :, None], jnp.eye(2))
    return np.asarray(z), which, x[np.arange(32), t[np.arange(32), which]]


def _counts_sample(key, size):
    law = jnp.full(32, 1.0 / 32)
    return {"counts": jax.random.multinomial(key, 2 ** size["log_n"], law).astype(int)}


def _ball_climb(objective, shapes, *, starts, steps):
    """The largest objective that projected ascent meets in the ball of parameters: from below."""
    sizes = [math.prod(shape) for shape in shapes.values()]
    ends = np.cumsum(sizes)[:-1].tolist()

    def params(v):
        parts = jnp.split(v, ends)
        return {name: part.reshape(s) for part, (name, s) in zip(parts, shapes.items())}

    value = lambda v: objective(params(v))
    drawn = np.random.default_rng(0).normal(size=(starts, sum(sizes)))
    first = RADIUS * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def step(v, rate):
        now, slope = jax.value_and_grad(value)(v)
        v = v + rate * slope / jnp.maximum(vector_norm(slope), 1e-30)
        return v * jnp.minimum(1.0, RADIUS / jnp.maximum(vector_norm(v), 1e-30)), now

    rates = 0.5 * RADIUS * (1.0 - jnp.arange(steps) / steps)
    last, met = jax.vmap(lambda v: jax.lax.scan(step, v, rates))(jnp.asarray(first))
    return jnp.maximum(jnp.max(met), jnp.max(jax.vmap(value)(last)))


def _signs_covering(size):
    """Of the ball of parameters, on these prompts: r_z^2 = 1 + d (1 + 1/q) = 3."""
    parameters = sum(math.prod(shape) for shape in _shapes(size).values())
    lipschitz = covers.transformer_lipschitz(RADIUS, H=size["H"], r_z=math.sqrt(3.0))
    of = {"parameters": parameters, "radius": RADIUS, "lipschitz": lipschitz}
    return lambda eps: covers.ball_log_covering(eps, **of)


def _gaps(i, size):
    n, tau, counts = 2 ** size["log_n"], 2.0, i["counts"]
    z, which, y = (jnp.asarray(v) for v in _all_prompts())

    def losses(params):
        predicted = _predict(params, z, size)[jnp.arange(len(y)), which]
        return jnp.minimum((predicted - y) ** 2, tau)

    seen = counts.astype(y.dtype) / n
    root = lambda v: jnp.sqrt(jnp.maximum(v, 1e-12))

    def apart(params, kind):
        mean, empirical = jnp.mean(losses(params)), seen @ losses(params)
        gap = mean - empirical
        return jnp.stack([gap, -gap, root(mean) - root(empirical)])[kind]

    climb = lambda kind: _ball_climb(lambda p: apart(p, kind), _shapes(size), starts=2, steps=15)
    above, below, roots = jax.vmap(climb)(jnp.arange(3))
    covering, given = _signs_covering(size), {"tau": tau, "delta": LEVEL}
    worst = jnp.maximum(above, below)
    return Sides.pairs(
        {
            "derived": (worst, excess.truncated_gap(covering, n, sharp=False, **given)),
            "sharpened": (worst, excess.truncated_gap(covering, n, **given)),
            "sharpened roots": (roots, math.sqrt(excess.truncated_risk(covering, n, **given))),
            "control": (worst, 0.3 * math.sqrt(tau / n)),
        },
        trivial=tau,
    )


GAPS = Statement(
    id="qstr.cor19",
    label="Corollaries 19 and 33",
    formula="sup |R_tau - R-hat_tau| <= inf 4 sqrt(tau) eps + tau sqrt((log C(eps) + log(2/delta))/"
    "(2n)) with probability 1 - delta",
    tex=r"\sup_\Theta |R_\tau - \hat R_\tau| \le \inf_\epsilon \left( 4 \sqrt{\tau} \epsilon "
    r"+ \tau \sqrt{\frac{\log \mathcal{C}(\epsilon) + \log(2/\delta)}{2 n}} \right) \quad "
    r"\text{with probability } 1 - \delta",
    kind="probability",
    level=LEVEL,
    judges=(
        excess.truncated_gap,
        excess.truncated_risk,
        covers.ball_log_covering,
        covers.transformer_lipschitz,
    ),
    sample=_counts_sample,
    evaluate=_gaps,
    forms=(
        Form(name="derived", note="By symmetrisation and one scale, as in Lemma 32."),
        Form(name="sharpened", note="Hoeffding for the functions of a cover."),
        Form(
            name="sharpened roots",
            note="sqrt R_tau - sqrt R-hat_tau <= 2 eps + sqrt(2 tau (log C + log(1/delta))/n).",
        ),
    ),
    control="0.3 sqrt(tau/n)",
    sizes=({"H": 1, "De": 5, "m": 2, "log_n": 17},),
    assumptions="Theorem 4's class, |vec Theta| <= 3, on all 32 prompts of two signs; "
    "the supremum by projected ascent, from below",
    budget=Budget(samples=40, restarts=0, steps=0, batch=40),
    source="Lemmas 18 and 32, Corollaries 19 and 33",
)


def _rademacher_sample(key, size):
    copies = 2 ** size["log_copies"]
    return {"sums": 2.0 * jax.random.binomial(key, copies, 0.5, (32,)) - copies}


def _rademacher(i, size):
    n, tau = 32 * 2 ** size["log_copies"], 2.0
    z, which, y = (jnp.asarray(v) for v in _all_prompts())

    def correlation(params):
        predicted = _predict(params, z, size)[jnp.arange(len(y)), which]
        return i["sums"] @ jnp.minimum((predicted - y) ** 2, tau) / n

    found = _ball_climb(correlation, _shapes(size), starts=2, steps=15)
    bound = excess.truncated_rademacher(_signs_covering(size), n, tau=tau)
    return Sides(found, {"derived": bound, "control": 0.1 * tau / math.sqrt(n)}, trivial=tau / 2)


RADEMACHER = Statement(
    id="qstr.lem18",
    label="Lemmas 18 and 32",
    formula="Rad_n(L_tau) <= inf 2 sqrt(tau) eps + tau sqrt(log C(eps) / (2n))",
    tex=r"\mathfrak{R}_n(\mathcal{L}_\tau) \le \inf_\epsilon \left( 2 \sqrt{\tau} \epsilon + \tau "
    r"\sqrt{\frac{\log \mathcal{C}(\epsilon)}{2 n}} \right)",
    kind="expectation",
    judges=(excess.truncated_rademacher, covers.ball_log_covering),
    sample=_rademacher_sample,
    evaluate=_rademacher,
    forms=(Form(name="derived", note="One scale, and losses within tau/2 of tau/2."),),
    control="a tenth of tau/sqrt n",
    sizes=({"H": 1, "De": 5, "m": 2, "log_copies": 12},),
    assumptions="as in qstr.cor19",
    budget=Budget(samples=32, restarts=0, steps=0, batch=32),
    source="Lemmas 18 and 32",
)

_RECURRENT = ("A1", "A2", "B", "c", "V", "e", "a")


def _recurrent_sample(key, size):
    """Two RNNs near each other: transitions on the second axis forward and backward."""
    shapes = ("2 m dh", "2 dh m", "2 m De", "2 m", "n k", "n", "n")
    texts = [f"{name}: {shape}" for name, shape in zip(_RECURRENT, shapes)]
    moved = [f"d_{text}" for text in texts]
    drawn = normals("z: N De", *texts, *moved)(
        key, Size({**size, "k": 2 * size["dh"] + size["De"]})
    )
    return {n: 0.1 * v if n.startswith("d_") else v for n, v in drawn.items()}


def _contracting(p, N):
    """|A1| |A2| <= 1/N, as the class has it."""
    limited = lambda A, limit: (
        limit * A / jnp.maximum(jnp.sqrt(jnp.sum(A**2, axis=(-2, -1), keepdims=True)), 1.0)
    )
    return {**p, "A1": limited(p["A1"], 1.0 / N), "A2": limited(p["A2"], 1.0)}


def _run(p, z, dh, r_h):
    step = lambda k: (
        lambda h, token: p["A2"][k] @ jax.nn.relu(p["A1"][k] @ h + p["B"][k] @ token + p["c"][k])
    )
    forward = exclusive_states(step(0), z, dh, radius=r_h)
    backward = exclusive_states(step(1), z, dh, radius=r_h, reverse=True)
    seen = jnp.concatenate([forward, backward, z], axis=1) @ p["V"].T
    return jax.nn.relu(seen + jnp.broadcast_to(p["e"], seen.shape)) @ p["a"]


def _recurrent(i, size):
    N, z, r_h = size["N"], i["z"], 1.5
    one = _contracting({name: i[name] for name in _RECURRENT}, N)
    two = _contracting({name: i[name] + i[f"d_{name}"] for name in _RECURRENT}, N)
    gap = jnp.max(jnp.abs(_run(one, z, size["dh"], r_h) - _run(two, z, size["dh"], r_h)))
    R = jnp.maximum(_length(one), _length(two))
    bound = covers.recurrent_lipschitz(
        R, N=N, r_z=jnp.max(vector_norm(z)), r_h=jnp.asarray(r_h), depth_y=2, depth_h=2
    ) * _length({name: one[name] - two[name] for name in _RECURRENT})
    return Sides(gap, {"derived": bound, "control": 1e-5 * bound})


RECURRENT = Statement(
    id="qstr.cor31",
    label="Corollary 31 (in parameters)",
    formula="|yhat - yhat'| <= sqrt(D_y^2 + 2 (R^{L_y} N ((1 + 1/N)^N - 1) D_h)^2) |vec Theta - "
    "vec Theta'|, log C <= p log(1 + 2 R L/eps)",
    tex=r"|\hat y - \hat y'| \le \sqrt{D_y^2 + 2 \left(R^{L_y} N ((1 + 1/N)^N - 1) D_h\right)^2} "
    r"\, \|\mathrm{vec}(\Theta) - \mathrm{vec}(\Theta')\|_2",
    judges=(covers.recurrent_lipschitz, exclusive_states),
    sample=_recurrent_sample,
    evaluate=_recurrent,
    forms=(
        Form(
            name="derived",
            note="Lemmas 29 and 30 with their polynomials, at depth 2; norms of single layers are "
            "bounded by that of all.",
        ),
    ),
    control="a hundred-thousandth of it",
    sizes=({"N": 6, "De": 2, "dh": 2, "m": 2, "n": 3},),
    assumptions="|W_2| |W_1h| <= 1/N, states projected onto the ball of radius 1.5",
    source="Lemmas 29 and 30, Corollary 31",
    kind="inequality",
    search="random",
    budget=Budget(samples=256, restarts=2, steps=20, batch=256),
)


def _truncation_cases(size):
    rows = itertools.product((2.0, 4.0, 8.0), (0.01, 0.3, 1.0), (0, 1))
    return stacked(*({"tail": t, "scale": c, "seed": k} for t, c, k in rows))


@functools.lru_cache
def _normal_pairs():
    """Nodes and weights for two normal tokens, and the prompts in which both want the second."""
    x, mass = gauss_hermite(2, nodes=40)
    wanted = jnp.ones((2, 1), int)
    return (
        x,
        mass,
        np.asarray(jax.vmap(lambda v: data.encode(v, wanted, jnp.eye(2)))(x[:, :, None])),
    )


_PAIR = {"H": 1, "De": 5, "m": 2}
_first_predictions = jax.jit(lambda params, z: _predict(params, z, _PAIR)[:, 0])


def _truncated(i, size):
    """One head on two normal tokens; fourth moments and tails by quadrature."""
    tail, N = float(i["tail"]), 2
    setting = excess.Setting(N=N, d=1, q=1)
    r_x = setting.token_radius(tail)
    rng = np.random.default_rng(int(i["seed"]))
    params = {name: rng.normal(size=shape) for name, shape in _shapes(_PAIR).items()}
    params["a"] *= float(i["scale"])
    length = lambda *names: math.sqrt(sum(np.sum(params[name] ** 2) for name in names))
    f = covers.TransformerClass(
        **_PAIR, r_a=length("a"), R_w=length("W", "b"), r_QK=0.0, r_z=math.sqrt(r_x**2 + 2.0)
    )
    x, mass, z = _normal_pairs()
    predicted = np.asarray(_first_predictions(params, z))
    square = (predicted - x[:, 1]) ** 2
    tau = (f.largest_prediction + setting.label_radius(tail)) ** 2
    lost = mass @ np.maximum(square - tau, 0.0)
    tokens = excess.largest_token_moment(N=N, d=1)
    moment = math.sqrt(mass @ np.max(np.abs(x), axis=1) ** 4)
    fourth = f.r_a * f.R_w * math.sqrt(tokens + 3.0)
    bound = excess.truncation_error(setting, tail=tail, fourth=fourth)
    normal = math.erfc(setting.label_radius(tail) / math.sqrt(2.0))
    exact = math.erfc(r_x / math.sqrt(2.0))
    return Sides.pairs(
        {
            "derived": (lost, bound),
            "derived moment": (moment, tokens),
            "derived prediction": ((mass @ predicted**4) ** 0.25, fourth),
            "derived label radius": (normal, math.exp(-tail)),
            "derived token radius": (1.0 - (1.0 - exact) ** N, math.exp(-tail)),
            "control": (moment, tokens / 10),
        }
    )


TRUNCATION = Statement(
    id="qstr.lem20",
    label="Lemmas 20 and 34",
    formula="R - R_tau <= sqrt 2 (|y|_4 + |yhat|_4)^2 exp(-tail/2), tau = (r_a R_w s + B)^2",
    tex=r"R - R_\tau \le \sqrt{2} \left( \|y\|_4 + \|\hat y\|_4 \right)^2 e^{-t/2}, \quad \tau = "
    r"(r_a R_w s + B)^2, \quad P(|y| > B) \le e^{-t}",
    kind="inequality",
    judges=(
        excess.truncation_error,
        excess.moment_radius,
        excess.largest_token_moment,
    ),
    cases=_truncation_cases,
    evaluate=_truncated,
    forms=(
        Form(name="derived", note="Cauchy-Schwarz on where |yhat - y| exceeds sqrt tau."),
        Form(name="derived moment", note="(E max |x_j|^4)^{1/2} <= N^{2/r} C_x d r."),
        Form(name="derived prediction", note="|yhat|_4 <= r_a R_w (.. + d (1 + 1/q) + 1)^{1/2}."),
        Form(name="derived label radius", note="Assumption 1's radius, for a normal label."),
        Form(name="derived token radius", note="The same for two tokens."),
    ),
    control="a tenth of the moment of the tokens",
    sizes=({},),
    assumptions="one head, d = 1, N = 2, y = x_2; expectations by Gauss-Hermite quadrature",
    source="Lemmas 20 and 34",
    **{**CASES_ON_HOST, "budget": Budget(samples=1)},
)

STATEMENTS = (COVERS, BRANCHES, LIPSCHITZ, RADEMACHER, GAPS, TRUNCATION, RECURRENT)
