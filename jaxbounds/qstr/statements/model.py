"""Statements of Sections 2 and 3 about data, links, assumptions and encodings."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Integers, Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement, stacked
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr import bounds, data, encodings, heads
from jaxbounds.qstr.links import LINKS
from jaxbounds.qstr.statements import common


def _labels(i: Instance, size: Size) -> Sides:
    N, d, q = size["N"], size["d"], size["q"]
    keys = jax.random.split(jax.random.wrap_key_data(i["seed"]), 3)
    # There is one key, so all links share their direction.
    parameters = {name: link.init(keys[0], q, d) for name, link in LINKS.items()}
    network = LINKS["two_layer"], parameters["two_layer"]
    drawn = data.sample_prompts(keys[1], *network, shape=(), N=N, d=d, q=q)
    tokens = drawn.x[drawn.t]
    value = {name: link.apply(parameters[name], tokens) for name, link in LINKS.items()}
    as_network = {
        name: link.two_layer(parameters[name]) for name, link in LINKS.items() if link.two_layer
    }
    token_direction = parameters["xor"]["u"]
    mean = LINKS["linear"].apply({"u": jnp.tile(token_direction, q) / q}, tokens)
    xor = jnp.sign(jnp.prod(tokens @ token_direction, axis=-1))
    hard = heads.lower_bound_prompts(keys[2], shape=(), N=2 * q + 2, q=q, d=d)
    quadratic = LINKS["quadratic"].apply({}, hard.x[:q])
    pair: Callable[..., Any] = lambda *sides: tuple(
        jnp.stack(side) for side in zip(*sides, strict=True)
    )
    return Sides.pairs(
        {
            "printed": (drawn.y, value["two_layer"]),
            "derived Assumption 2": pair(*((value[n], f(tokens)) for n, f in as_network.items())),
            "derived radii": pair(*zip(as_network["linear"].radii(), jnp.array([2.0, 1.0]))),
            "derived links": pair(
                (value["mean_linear"], mean),
                (value["sine_index"], jnp.sin(value["linear"])),
                (value["xor"], xor),
                (jnp.full_like(mean, quadratic), jnp.full_like(mean, hard.y[-1])),
            ),
            "control": (drawn.y, jnp.roll(value["two_layer"], 1, axis=-1)),
        }
    )


LABELS = Statement(
    id="qstr.def2",
    label="Definition 2, Assumption 2",
    formula="y_i = g(x_{t_i1}, .., x_{t_iq}); g = a^T relu(W (x_1; ..; x_q) + b)",
    tex=r"y_i = g(x_{t_{i1}}, \ldots, x_{t_{iq}})",
    kind="identity",
    judges=(data.sample_prompts, data.relevant_tokens, heads.lower_bound_prompts),
    sample=lambda key, size: {"seed": jax.random.key_data(key)},
    evaluate=_labels,
    forms=(
        Form(
            name="printed",
            cites="Definition 2, Section 2",
            note="The check selects the relevant tokens of each prompt by their indices, and "
            "applies the link g to the relevant tokens.",
        ),
        Form(
            name="derived Assumption 2",
            note="A link function that a network computes exactly has the approximation error "
            "eps_2NN = 0.",
        ),
        Form(
            name="derived radii",
            note="The exact network of the linear link has the norms r_a = 2 and r_w = 1.",
        ),
        Form(
            name="derived links",
            note="The check recomputes the links mean_linear, sine_index and xor from inner "
            "products of the relevant tokens with fixed directions. The check also compares "
            "Proposition 3's link with the labels of random prompts.",
        ),
    ),
    control="labels one place off",
    sizes=({"N": 5, "d": 3, "q": 2},),
    budget=Budget(samples=16, batch=16),
    source="Definition 2, Assumption 2",
)


def _encoding(i: Instance, size: Size) -> Sides:
    d, q = size["d"], size["q"]
    z = data.encode(i["x"], i["t"], common.encodings(i["signs"]))
    square = jnp.sum(z[:, d:] ** 2, axis=1)
    return Sides.pairs(
        {
            "derived": (square, jnp.full_like(square, d * (1 + 1 / q))),
            "printed r_z": (vector_norm(z), bounds.encoded_radius(vector_norm(i["x"]), d=d, q=q)),
            "control": (square, jnp.full_like(square, 1 + q)),
        }
    )


ENCODING = Statement(
    id="qstr.encoding",
    label="Section 3 (encoding)",
    formula="|enc(i, t_i)|^2 = d (1 + 1/q)",
    tex=r"\|\mathrm{enc}(i, t_i)\|_2^2 = d \left(1 + \frac{1}{q}\right)",
    kind="identity",
    judges=(data.encode, bounds.encoded_radius),
    over={"x": Reals(("N", "d"))},
    sample=common.positions,
    evaluate=_encoding,
    forms=(
        Form(
            name="derived",
            note="The encoding consists of q + 1 unit vectors, each scaled by sqrt(d/q).",
        ),
        Form(
            name="printed r_z",
            cites="Corollary 19: r_z = sqrt(r_x^2 + d (1 + 1/q))",
            note="The squared norm of an encoded token is |z_i|^2 = |x_i|^2 + d (1 + 1/q).",
        ),
    ),
    control="1 + q: the factor sqrt(d/q) forgotten",
    sizes=({"N": 6, "d": 3, "q": 2, "de": 12},),
    budget=Budget(samples=32, batch=32),
    source="Section 3, encoding of the positions",
)


def _moment_cases(size: Size) -> Instance:
    pairs = itertools.product((1, 2, 10, 100), (1.0, 1.5, 3.0, 40.0, 300.0))
    return stacked({"d": d, "r": r} for d, r in pairs)


def _moments(i: Instance, size: Size) -> Sides:
    ratio = math.sqrt(data.gaussian_moment_ratio(int(i["d"]), float(i["r"])))
    return Sides(lhs=ratio, rhs={"derived C_x = 1": 1.0, "control": math.sqrt(0.5)})


ASSUMPTION_1 = common.searched_on_host(
    id="qstr.asm1",
    label="Assumption 1 for Gaussian tokens",
    formula="(E|x|^r)^{1/r} <= sqrt(C_x d r), x ~ N(0, I_d)",
    tex=r"\mathbb{E}[\|x_i\|_2^r]^{1/r} \le \sqrt{C_x d r}, \quad x_i \sim \mathcal{N}(0, I_d)",
    kind="inequality",
    judges=(data.gaussian_moment_ratio,),
    cases=_moment_cases,
    evaluate=_moments,
    forms=(
        Form(
            name="derived C_x = 1",
            note="The moments of |x| (the chi law) have a closed form. At r = 1, the left side "
            "divided by the right side tends to one as d -> inf.",
        ),
    ),
    over={"d": Integers(1, 1000), "r": Box(1, 1e4)},
    control="C_x = 1/2",
    sizes=({},),
    source="Assumption 1; the constant C_x is the paper's",
)


def _risks(i: Instance, size: Size) -> Sides:
    n, N = size["n"], size["N"]
    choices = jnp.stack(jnp.meshgrid(*[jnp.arange(N)] * n, indexing="ij"), axis=-1).reshape(-1, n)
    risk = lambda predicted, j: data.pointwise_risk(predicted, i["y"], j)
    values = jax.vmap(risk, (None, 0))(i["predicted"], choices)
    whole = data.averaged_risk(i["predicted"], i["y"])
    return Sides.pairs({"derived": (jnp.mean(values), whole), "control": (jnp.max(values), whole)})


RISKS = Statement(
    id="qstr.eq2.2",
    label="(2.2) and (2.3)",
    formula="E_j of the point-wise risk (2.3) over uniform positions = the averaged risk (2.2)",
    tex=r"\mathbb{E}_{j^{(1)}, \ldots, j^{(n)}}\left[\hat R_n^{\mathrm{arc}}(\Theta)\right] = "
    r"\hat R_{n,N}^{\mathrm{arc}}(\Theta)",
    kind="identity",
    judges=(data.averaged_risk, data.pointwise_risk),
    over=common.reals("predicted: n N, y: n N"),
    evaluate=_risks,
    forms=(
        Form(
            name="derived",
            note="The position j is uniform on [N], as in (2.3). So the empirical risks (2.2) "
            "and (2.3) both have the mean (2.1).",
        ),
    ),
    control="the largest value in place of the mean",
    sizes=({"n": 2, "N": 3},),
    budget=Budget(samples=16, batch=16),
    source="Section 2: (2.1), (2.2), (2.3)",
)


def _coherence_sample(key: Array, size: Size) -> Instance:
    omega = encodings.rademacher_encodings(key, size["N"], size["wide"])
    return {"wide": jnp.sign(omega).astype(jnp.int8)}


def _coherence(i: Instance, size: Size) -> Sides:
    wide = common.encodings(i["wide"])
    broken = 1.0 - encodings.satisfies_assumption_3(wide).astype(wide.dtype)
    return Sides.pairs(
        {"derived": (broken, 0.0), "control": (encodings.coherence(wide, signed=False), 0.25)}
    )


ASSUMPTION_3 = Statement(
    id="qstr.asm3",
    label="Assumption 3 for Rademacher encodings",
    formula="P(max_{i != j} |<w_i, w_j>| > 1/2) <= 1/5 for Rademacher w in R^de, de = 16 log N",
    tex=r"\mathbb{P}\left(\max_{i \ne j} |\langle \omega_i, \omega_j \rangle| > \frac{1}{2}\right) "
    r"\le \frac{1}{5}, \quad d_e = 16 \log N",
    kind="probability",
    level=0.2,
    judges=(encodings.satisfies_assumption_3, encodings.coherence),
    sample=_coherence_sample,
    evaluate=_coherence,
    forms=(
        Form(
            name="derived",
            note="The paper takes 'd_e = Theta(log N)', and the check takes d_e = 16 log N. "
            "At d_e = 16 log N, about one draw of the encodings in 20 violates Assumption 3. From "
            "d_e = 24 log N on, the union bound N (N - 1) exp(-de/8) is below 1/N.",
        ),
    ),
    control="coherence 1/4 at de = 16 log N",
    sizes=({"N": 12, "wide": 40}, {"N": 33, "wide": 56}),
    budget=Budget(samples=600, batch=300),
    source="Assumption 3 and the sentence after it",
)


STATEMENTS = (LABELS, RISKS, ENCODING, ASSUMPTION_1, ASSUMPTION_3)
