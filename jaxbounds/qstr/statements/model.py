"""Sections 2 and 3: data, assumptions and encodings."""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from jaxbounds.qstr import data
from jaxbounds.qstr.statements.common import DRAWS, encodings, signs, stacked
from jaxbounds.statements import Budget, Form, Sides, Statement


def _encoding_sample(key, size):
    key_x, key_t = jax.random.split(key)
    N, d, q = size["N"], size["d"], size["q"]
    return {
        "x": jax.random.normal(key_x, (N, d)),
        "t": data.sample_positions(key_t, (), N, q),
        "signs": jnp.asarray(signs(N, size["de"])),
    }


def _encoding(i):
    d, q = i["x"].shape[1], i["t"].shape[1]
    z = data.encode(i["x"], i["t"], encodings(i["signs"]))
    square = jnp.sum(z[:, d:] ** 2, axis=1)
    return Sides(
        lhs=square,
        rhs={
            "printed": jnp.full_like(square, d * (1 + 1 / q)),
            "control": jnp.full_like(square, 1 + q),
        },
    )


ENCODING = Statement(
    id="qstr.encoding",
    label="Section 3 (encoding)",
    formula="|enc(i, t_i)|^2 = d (1 + 1/q)",
    kind="identity",
    sample=_encoding_sample,
    evaluate=_encoding,
    forms=(Form(name="printed", note="q + 1 unit vectors, each scaled by sqrt(d/q)."),),
    control="1 + q: the factor sqrt(d/q) forgotten",
    sizes=({"N": 6, "d": 3, "q": 2, "de": 12},),
    budget=Budget(samples=32),
    source="Section 3, encoding of the positions",
)


def _moment_cases(size):
    pairs = [(d, r) for d in (1, 2, 3, 10, 100) for r in (1.0, 1.5, 2.0, 3.0, 8.0, 40.0, 300.0)]
    return stacked(*[{"d": float(d), "r": r} for d, r in pairs])


def _moments(i):
    d, r = i["d"], i["r"]
    log_moment = 0.5 * r * jnp.log(2.0) + gammaln((d + r) / 2) - gammaln(d / 2)
    return Sides(
        lhs=jnp.exp(log_moment / r),
        rhs={"derived C_x = 1": jnp.sqrt(d * r), "control": jnp.sqrt(0.5 * d * r)},
    )


ASSUMPTION_1 = Statement(
    id="qstr.asm1",
    label="Assumption 1 for Gaussian tokens",
    formula="(E|x|^r)^{1/r} <= sqrt(C_x d r), x ~ N(0, I_d)",
    kind="inequality",
    cases=_moment_cases,
    evaluate=_moments,
    forms=(Form(name="derived C_x = 1", note="Moments of the chi law in closed form."),),
    control="C_x = 1/2",
    sizes=({"d": 1},),
    search="none",
    source="Assumption 1; the constant C_x is the paper's",
)


def _coherence_sample(key, size):
    keys = jax.random.split(key)
    N = size["N"]
    draw = lambda k, de: jax.random.rademacher(k, (N, de), dtype=jnp.int8)
    return {"own": draw(keys[0], size["de"]), "wide": draw(keys[1], size["wide"])}


def _coherence(i):
    def largest(s):
        gram = jnp.abs(encodings(s) @ encodings(s).T)
        return jnp.max(jnp.where(jnp.eye(s.shape[0], dtype=bool), 0.0, gram))

    own, wide = largest(i["own"]), largest(i["wide"])
    half = jnp.asarray(0.5 + 1e-12)
    return Sides(
        lhs={"printed": own, "corrected": wide, "control": wide},
        rhs={"printed": half, "corrected": half, "control": half / 2},
    )


ASSUMPTION_3 = Statement(
    id="qstr.asm3",
    label="Assumption 3 for the experiments' encodings",
    formula="P(max_{i != j} |<w_i, w_j>| > 1/2) <= 1/5 for Rademacher w in R^de",
    kind="probability",
    level=0.2,
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
    sizes=({"N": 12, "de": 12, "wide": 60}, {"N": 33, "de": 17, "wide": 84}),
    budget=DRAWS,
    source="Assumption 3 and the caption of Figure 1",
)


STATEMENTS = (ENCODING, ASSUMPTION_1, ASSUMPTION_3)
