"""A statement of Section 3.2 (after Theorem 4): the number of labels that any learner needs."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Reals, Sphere
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, stacked
from jaxbounds.qstr import data, label_limits
from jaxbounds.qstr.links import sphere
from jaxbounds.qstr.statements.common import searched


def _prompts(key: Array, size: Size) -> dict[str, Array]:
    (key_x, key_t), n, N = jax.random.split(key), size["n"], size["N"]
    return {
        "x": jax.random.normal(key_x, (n, N, size["d"])),
        "t": data.sample_positions(key_t, (n,), N, size["q"], distinct=True),
    }


def _repeated(key: Array, size: Size) -> dict[str, Array]:
    """Draw prompts, the last of which copies the first; its label tells nothing new about u."""
    drawn = _prompts(key, size)
    return {name: leaf.at[-1].set(leaf[0]) for name, leaf in drawn.items()}


def _best(size: Size) -> Instance:
    key_x, key_u = jax.random.split(jax.random.key(3))
    instance = _prompts(key_x, size) | {"u": sphere(key_u, size["q"] * size["d"])}
    x, t, u = map(np.asarray, instance.values())
    seen = x[np.arange(len(x))[:, None], t[:, 0]].reshape(len(x), -1)
    return stacked([{**instance, "estimate": np.linalg.pinv(seen) @ seen @ u}])


def _limit(i: Instance, size: Size) -> Sides:
    n, N, d, q = (size[name] for name in ("n", "N", "d", "q"))
    relevant = data.relevant_tokens(i["x"], i["t"])
    one = relevant[:, 0].reshape(n, q * d)  # one label of each prompt, as in (2.3)
    every = relevant.reshape(n * N, q * d)  # all labels, as in (2.2)
    # The mean of a quadratic form over the sphere equals its mean over an orthonormal basis.
    risks = lambda tokens: jax.vmap(lambda e: label_limits.hidden_risk(tokens, e))(jnp.eye(q * d))
    least = jnp.mean(risks(one))
    u, other = i["u"], label_limits.mirrored_direction(one, i["u"])
    apart = lambda direction: jnp.sum((direction - i["estimate"]) ** 2)
    hidden = label_limits.hidden_risk(one, u)
    return Sides.pairs(
        {
            "printed": (label_limits.label_limit(n, q=q, d=d), least),
            "derived any learner": (hidden, (apart(u) + apart(other)) / 2),
            "derived same labels": (
                jnp.max(jnp.abs(one @ (u - other))) / (1 + jnp.max(jnp.abs(one)))
                + jnp.abs(jnp.sum(other**2) - 1),
                1e-10,
            ),
            "derived all labels": (
                label_limits.label_limit(n * N, q=q, d=d), jnp.mean(risks(every)),
            ),
            "control": (label_limits.label_limit(n - 1, q=q, d=d), least),
        },
        error=1e-12,
    )  # fmt: skip


def _conditioned(i: Instance, size: Size) -> dict[str, ArrayLike]:
    """Check that no singular value of the relevant tokens makes their rank doubtful."""
    relevant = data.relevant_tokens(i["x"], i["t"])[:, 0].reshape(size["n"], -1)
    values = jnp.linalg.svd(relevant, compute_uv=False)
    share = values / jnp.maximum(values[0], 1e-300)
    return {"the rank is clear": jnp.all((share < 1e-14) | (share > 1e-2))}


LIMIT = searched(
    id="qstr.sec3.limit",
    label="Section 3.2, remarks after Theorem 4 (the limit Omega(qd))",
    formula="sup_u E(y - yhat)^2 >= 1 - n/(qd) for every learner from n labels of the linear link",
    tex=r"\inf_{\hat y} \sup_{u \in \mathbb{S}^{qd - 1}} \mathbb{E}\left[(y - \hat y)^2\right] \ge "
    r"1 - \frac{n}{q d}",
    judges=(label_limits.label_limit, label_limits.hidden_risk, label_limits.mirrored_direction),
    over={"u": Sphere(1, "q*d"), "estimate": Reals("q*d")},
    sample={"distinct": _prompts, "repeated": _repeated},
    cases=_best,
    evaluate=_limit,
    forms=(
        Form(
            name="printed",
            cites="the third remark after Theorem 4: 'the information-theoretic limit of "
            "Omega(qd)'",
            equality="independent relevant tokens",
            note="The directions u and 2 P u - u have the same labels. So any estimate errs by "
            "at least |u - P u|^2 on average over the two directions. The mean of this "
            "number over the sphere is 1 - rank/(qd), so a risk of r requires (1 - r) q d labels. "
            "The paper prints only the order of this number. The link function and the constant "
            "are ours.",
        ),
        Form(
            name="derived any learner",
            equality="the estimate P u",
            note="The bound holds for any estimate, linear or not, because the proof uses only the "
            "estimate's value. A prediction that is not linear in the fresh tokens has at "
            "least the risk of the nearest linear prediction.",
        ),
        Form(
            name="derived same labels",
            note="P projects onto the span of the relevant tokens. The directions u and 2 P u - u "
            "give the same labels, so no learner can tell u from 2 P u - u.",
            hypotheses=_conditioned,
        ),
        Form(
            name="derived all labels",
            equality="independent relevant tokens",
            note=(
                "As in (2.2), the learner sees all N labels of each prompt, so n N replaces n. "
                "The limit of this version counts labels, not prompts. A limit on the number of "
                "prompts follows only for the risk (2.3), as in Theorem 4, or for simple-qSTR."
            ),
        ),
    ),
    control="n - 1 in place of n",
    sizes=({"n": 2, "N": 3, "d": 4, "q": 2}, {"n": 5, "N": 4, "d": 3, "q": 2}),
    assumptions="the link <u, (x_{t_1}, .., x_{t_q})>, |u| = 1, normal tokens, t of distinct "
    "entries; n < q d (else the bound is 0)",
    source="Section 3.2",
    budget=Budget(samples=128, restarts=2, steps=40, batch=128),
)

STATEMENTS = (LIMIT,)
