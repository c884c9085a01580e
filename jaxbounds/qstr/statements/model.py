"""Sections 2 and 3: data, links, assumptions and encodings."""

import itertools
import math

import jax
import jax.numpy as jnp

from jaxbounds.norms import vector_norm
from jaxbounds.qstr import bounds, data, encodings, heads
from jaxbounds.qstr.links import LINKS
from jaxbounds.qstr.statements import common
from jaxbounds.statements import Budget, Form, Sides, Statement


def _labels(i, size):
    N, d, q = size["N"], size["d"], size["q"]
    keys = jax.random.split(jax.random.wrap_key_data(i["seed"]), 3)
    # One key: links of a kind share their direction.
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
    pair = lambda *sides: tuple(jnp.stack(side) for side in zip(*sides, strict=True))
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
    kind="identity",
    judges=(
        data.sample_prompts,
        data.relevant_tokens,
        heads.lower_bound_prompts,
    ),
    sample=lambda key, size: {"seed": jax.random.key_data(key)},
    evaluate=_labels,
    forms=(
        Form(name="printed", note="Positions gathered one by one."),
        Form(name="derived Assumption 2", note="eps_2NN = 0 for links that ship a network."),
        Form(name="derived radii", note="r_a = 2, r_w = 1 for the linear link."),
        Form(name="derived links", note="Each by another link; Proposition 3's by its prompts."),
    ),
    control="labels one place off",
    sizes=({"N": 5, "d": 3, "q": 2},),
    budget=Budget(samples=16, batch=16),
    source="Definition 2, Assumption 2",
)


def _encoding(i, size):
    d, q = size["d"], size["q"]
    z = data.encode(i["x"], i["t"], common.encodings(i["signs"]))
    square = jnp.sum(z[:, d:] ** 2, axis=1)
    return Sides.pairs(
        {
            "printed": (square, jnp.full_like(square, d * (1 + 1 / q))),
            "derived r_z": (vector_norm(z), bounds.encoded_radius(vector_norm(i["x"]), d=d, q=q)),
            "control": (square, jnp.full_like(square, 1 + q)),
        }
    )


ENCODING = Statement(
    id="qstr.encoding",
    label="Section 3 (encoding)",
    formula="|enc(i, t_i)|^2 = d (1 + 1/q)",
    kind="identity",
    judges=(data.encode, bounds.encoded_radius),
    sample=lambda key, size: common.prompt(jax.random.split(key), size),
    evaluate=_encoding,
    forms=(
        Form(name="printed", note="q + 1 unit vectors, each scaled by sqrt(d/q)."),
        Form(name="derived r_z", note="|z_i|^2 = |x_i|^2 + d (1 + 1/q), as r_z of Appendix A."),
    ),
    control="1 + q: the factor sqrt(d/q) forgotten",
    sizes=({"N": 6, "d": 3, "q": 2, "de": 12},),
    budget=Budget(samples=32, batch=32),
    source="Section 3, encoding of the positions",
)


def _moment_cases(size):
    pairs = itertools.product((1, 2, 10, 100), (1.0, 1.5, 3.0, 40.0, 300.0))
    return common.stacked(*({"d": d, "r": r} for d, r in pairs))


def _moments(i, size):
    ratio = math.sqrt(data.gaussian_moment_ratio(int(i["d"]), float(i["r"])))
    return Sides(lhs=ratio, rhs={"derived C_x = 1": 1.0, "control": math.sqrt(0.5)})


ASSUMPTION_1 = Statement(
    id="qstr.asm1",
    label="Assumption 1 for Gaussian tokens",
    formula="(E|x|^r)^{1/r} <= sqrt(C_x d r), x ~ N(0, I_d)",
    kind="inequality",
    judges=(data.gaussian_moment_ratio,),
    cases=_moment_cases,
    evaluate=_moments,
    forms=(Form(name="derived C_x = 1", note="Moments of the chi law in closed form."),),
    control="C_x = 1/2",
    sizes=({},),
    **common.CASES_ON_HOST,
    source="Assumption 1; the constant C_x is the paper's",
)


def _coherence_sample(key, size):
    N = size["N"]
    draw = lambda key, de: jnp.sign(encodings.rademacher_encodings(key, N, de)).astype(jnp.int8)
    own, wide = jax.random.split(key)
    published = encodings.published_encoding_dimension(N)
    return {"own": draw(own, published), "wide": draw(wide, size["wide"])}


def _coherence(i, size):
    own, wide = common.encodings(i["own"]), common.encodings(i["wide"])
    broken = lambda omega: 1.0 - encodings.satisfies_assumption_3(omega).astype(omega.dtype)
    return Sides.pairs(
        {
            "printed": (broken(own), 0.0),
            "corrected": (broken(wide), 0.0),
            "control": (encodings.coherence(wide, signed=False), 0.25),
        }
    )


ASSUMPTION_3 = Statement(
    id="qstr.asm3",
    label="Assumption 3 for the experiments' encodings",
    formula="P(max_{i != j} |<w_i, w_j>| > 1/2) <= 1/5 for Rademacher w in R^de",
    kind="probability",
    level=0.2,
    judges=(encodings.satisfies_assumption_3, encodings.coherence),
    sample=_coherence_sample,
    evaluate=_coherence,
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E5",
            note="de = int(5 log N), the dimension of the paper's experiments.",
        ),
        Form(
            name="corrected",
            note="de = 24 log N: the union bound N (N - 1) exp(-de/8) is N^{-1}.",
        ),
    ),
    control="coherence 1/4 at de = 24 log N",
    sizes=({"N": 12, "wide": 60}, {"N": 33, "wide": 84}),
    budget=common.DRAWS,
    source="Assumption 3 and the caption of Figure 1",
)


STATEMENTS = (LABELS, ENCODING, ASSUMPTION_1, ASSUMPTION_3)
