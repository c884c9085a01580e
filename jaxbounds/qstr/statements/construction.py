"""Statements of Appendix C.1 about the parts of the RNN that solves simple-qSTR."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Sphere
from jaxbounds.claims.statements import Budget, Domain, Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import data, gates, relu_networks, rnn_construction
from jaxbounds.qstr.relu_networks import evaluate
from jaxbounds.qstr.statements.common import encodings, positions, searched

_KNOTS = 8
"""The number of knots at which Lemma 22's network interpolates each square; more knots give a
smaller error."""
RADIUS = 4.0
"""The bound B on the absolute entries of a token; a larger bound admits larger tokens in the
checks."""


def _inner_product(i: Instance, size: Size) -> Sides:
    w, v = i["w"], i["v"]
    first, A = rnn_construction.inner_products(q=1, d=0, de=size["de"], knots=_KNOTS)
    hidden = jax.nn.relu(jnp.asarray(first.W) @ jnp.concatenate([w, v]) + jnp.asarray(first.b))
    error = jnp.abs((jnp.asarray(A) @ hidden)[0] - w @ v)
    bound = size["de"] * relu_networks.product_error(2.0, _KNOTS)
    return Sides(lhs=error, rhs={"printed": bound, "control": bound / 50}, error=1e-14)


def _on_circles(point: Array, size: Size) -> dict[str, Array]:
    (a, b), zero = point, 0.0 * point[0]
    return {
        "w": jnp.stack([jnp.cos(a), jnp.sin(a), zero]),
        "v": jnp.stack([jnp.cos(b), zero, jnp.sin(b)]),
    }


INNER_PRODUCT = searched(
    id="qstr.lem22",
    label="Lemmas 22 and 23",
    formula="|net(w, v) - <w, v>| <= eps = de s^2/16, s the spacing of the knots",
    tex=r"\left| \langle \omega_1, \omega_2 \rangle - a^\top \sigma(W (\omega_1; \omega_2) + b) "
    r"\right| \le \frac{d_e s^2}{16}",
    judges=(
        rnn_construction.inner_products,
        relu_networks.square_hinges,
        relu_networks.product_error,
    ),
    over={"w": Sphere(1, "de"), "v": Sphere(1, "de")},
    evaluate=_inner_product,
    forms=(
        Form(
            name="printed",
            cites="Lemma 22, Appendix C.1, its first display; Lemma 23 for each slot",
            note="An explicit network replaces the network of Lemma 42. Each of its squares "
            "exceeds the true square by at most s^2/4, and is never below the true square. The "
            "statement qstr.lem22.norms is about the norms of this network.",
            domains=(
                Domain(
                    name="de = 3, unit vectors (cos a, sin a, 0) and (cos b, 0, sin b), |a| and "
                    "|b| up to 1.6",
                    chart=_on_circles,
                    size={"de": 3},
                    lower=(-1.6, -1.6),
                    upper=(1.6, 1.6),
                ),
            ),
        ),
    ),
    control="the bound / 50",
    sizes=({"de": 3},),
    assumptions="eps = de s^2/16 at 8 knots, s = 1/4",
    source="Lemmas 22 and 23",
)


def _prompt_project(i: Instance, size: Size) -> Instance:
    t = jnp.broadcast_to(i["t"][:1], i["t"].shape) if size["simple"] else i["t"]
    return {**i, "t": t}


def _shared(i: Instance, size: Size) -> dict[str, ArrayLike]:
    return {"one t": jnp.all(i["t"] == i["t"][:1])} if size["simple"] else {}


SIZES = {"N": 6, "d": 2, "q": 2, "de": 12}
SIMPLE, GENERAL = ({**SIZES, "simple": 1},), ({**SIZES, "simple": 0},)
on_prompts = functools.partial(
    Statement,
    kind="construction",
    over={"x": Box(-RADIUS, RADIUS, ("N", "d"))},
    sample=positions,
    budget=Budget(samples=64),
)

searched_prompts = functools.partial(
    Statement,
    kind="inequality",
    over={"x": Box(-RADIUS, RADIUS, ("N", "d"))},
    sample=positions,
    search="random",
    project=_prompt_project,
    hypotheses=_shared,
    budget=Budget(samples=64, restarts=4, steps=80),
)


def tokens_of(i: Instance, size: Size) -> tuple[Array, dict[str, Any]]:
    """Return encoded tokens without the factor sqrt(d/q), and the arguments of a transition."""
    z = data.encode(i["x"], i["t"], encodings(i["signs"]), scale=False)
    return z, {"q": size["q"], "d": size["d"], "de": size["de"], "radius": RADIUS}


def _gated(i: Instance, size: Size) -> tuple[Array, Array]:
    N, q, d = size["N"], size["q"], size["d"]
    here = i["t"] == jnp.arange(N, dtype=i["t"].dtype)[:, None]
    own = jnp.broadcast_to(i["x"][:, None, :], (N, q, d))
    open_ = jnp.broadcast_to(here[:, :, None], own.shape)
    return own.reshape(N, q * d), jnp.where(open_, own, 0.0 * own).reshape(N, q * d)


def _gate(i: Instance, size: Size) -> Sides:
    z, sizes = tokens_of(i, size)
    own, want = _gated(i, size)
    eps = 0.01
    noise = eps * np.linspace(0.5, 1.0, own.shape[1])
    biased = lambda rectified: evaluate(
        rnn_construction.biased_transition(noise, rectified=rectified, eps=eps, **sizes), z
    )
    err = want + jnp.broadcast_to(jnp.asarray(noise), want.shape)
    return Sides.pairs(
        {
            "sharpened": (evaluate(rnn_construction.exact_transition(**sizes), z), want),
            "derived biased": (biased(False), err),
            "derived rectified": (biased(True), jnp.sign(err) * jax.nn.relu(jnp.abs(err) - eps)),
            "control": (evaluate(rnn_construction.exact_transition(**sizes), z), own),
        }
    )


GATE = on_prompts(
    id="qstr.prop26",
    label="Proposition 26",
    formula="f(z_i)(l) = x_i if t_il = i, else 0",
    tex=r"f_h^\to(h, z_i; \Theta_h^\to)_l = x_i \mathbf{1}[t_l = i]",
    judges=(
        rnn_construction.exact_transition,
        rnn_construction.biased_transition,
        relu_networks.shift_output,
    ),
    evaluate=_gate,
    forms=(
        Form(
            name="sharpened",
            note="The network has no error (eps = 0). For Rademacher encodings of coherence at "
            "most 1/2, two encodings w and v have the inner product |w + v|_1/sqrt(de) - 1. The "
            "ReLU of x - B(1 - c) is the ReLU of x if the gate c is 1, and 0 if c = 0.",
        ),
        Form(
            name="derived biased",
            note="The transition of (C.1) makes a constant error in every step.",
        ),
        Form(
            name="derived rectified",
            note="The rectified transition of (C.2) makes an error only in slots (blocks of the "
            "state) l with t_il = i. In these slots the state stores token i.",
        ),
    ),
    control="the gate always open",
    source="Proposition 26, Lemmas 23-25",
    sizes=GENERAL,
)


_EPS = 2.0
"""The allowed error eps of Proposition 26's network as the paper builds it; a larger eps gives
coarser gates."""


def _interpolated(i: Instance, size: Size) -> Sides:
    z, sizes = tokens_of(i, size)
    knots, mu = 16, 0.5 + size["de"] * relu_networks.product_error(2.0, 16)
    want = _gated(i, size)[1]
    miss = lambda network: jnp.abs(evaluate(network, z) - want)
    network = rnn_construction.interpolated_transition(**sizes, knots=knots, coherence=mu)
    error = jnp.max(miss(network))
    bound = rnn_construction.interpolated_error(**sizes, knots=knots, coherence=mu)
    # If the gate is closed, the output must be 0, not just small.
    weight = jnp.where(want == 0.0, 1e12, 1.0)
    printed = jnp.max(weight * miss(gates.printed_transition(**sizes, eps=_EPS)))
    return Sides.pairs(
        {"derived": (error, bound), "printed": (printed, _EPS), "control": (error, bound / 50)},
        error=1e-13,
    )


INTERPOLATED = searched_prompts(
    id="qstr.prop26.interpolated",
    label="Proposition 26 (any unit encodings)",
    formula="|f(z_i)(l) - x_i 1{t_il = i}| <= B de s^2/(16 (1 - mu)) + s'^2/16",
    tex=r"\left\| f_h^\to(h, z_i)_l - x_i \mathbf{1}[t_l = i] \right\|_\infty \le "
    r"\frac{B d_e s^2}{16 (1 - \mu)} + \frac{s'^2}{16}",
    judges=(
        rnn_construction.interpolated_transition,
        rnn_construction.interpolated_error,
        rnn_construction.inner_products,
        gates.printed_transition,
    ),
    evaluate=_interpolated,
    forms=(
        Form(
            name="derived",
            note="The network's inner product errs by at most de s^2/16, with s = 2/knots. The "
            "gate errs by at most de s^2/(16 (1 - mu)). The product of gate and token errs by at "
            "most s'^2/16, with s' = (B + 1.5)/knots.",
        ),
        Form(
            name="printed",
            cites="Proposition 26, Appendix C.1, and its proof",
            note="The output is within eps = 2 of x_i if t_il = i, and exactly 0 otherwise. The "
            "network combines Lemmas 23 and 25 at eps_2 = eps/4, eps_1 = eps/(4 "
            "|A_2^T|_{1,inf} |W_2^T|_{1,inf}) and the threshold at eps/2. In the available text, "
            "the index of the norm in Proposition 26 is only partly legible. The proof bounds the "
            "largest entry.",
        ),
    ),
    control="the bound / 50",
    source="Proposition 26; library: other explicit networks in place of Lemma 42's",
    sizes=GENERAL,
)


STATEMENTS = (INNER_PRODUCT, GATE, INTERPOLATED)
