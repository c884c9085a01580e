"""Section 2 and Lemma 1 / Lemma 4: the model, its gradients and Hessians."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.calculus import head_gradient, head_hessian_blocks, loss_hessian
from jaxbounds.multihead.derivatives import one_head, risk_hessian
from jaxbounds.multihead.model import (
    MultiHeadAttention,
    attention_scores,
    combine_query_key,
    head_output,
    model_output,
)
from jaxbounds.multihead.runs import training_set
from jaxbounds.multihead.statements.common import params_of
from jaxbounds.multihead.statements.instances import LOSS, loss_generic, single_generic
from jaxbounds.multihead.tied import tied_output, untie

on_head = functools.partial(
    Statement, kind="identity", sample=single_generic, sizes=({"T": 4, "d": 3},)
)
"""Settings of identities about one head and one sequence."""


VECTORS = {"a": Reals("T"), "b": Reals("d"), "c": Reals("d")}
"""The sets of the arbitrary vectors a, b, c of Lemma 1, for statements about one head."""


def _potential(point: Array, tokens: Array) -> Array:
    return jax.nn.logsumexp(tokens @ point)


def _single_head(instance: Instance, size: Size) -> Sides:
    tokens, projection, weights = instance["X"], instance["U"], instance["W"]

    def summed(points: Array) -> Array:
        mean = jax.vmap(jax.grad(_potential), in_axes=(0, None))(points, tokens)
        return jnp.sum(projection * mean)

    return Sides(
        lhs=head_output(projection, weights, tokens),
        rhs={"printed": summed(tokens @ weights), "control": summed(tokens @ weights.T)},
        error=1e-13 * jnp.sum(jnp.abs(projection)) * jnp.max(jnp.abs(tokens)),
    )


EQ_1 = on_head(
    id="multihead.eq1",
    label="eq. (1)",
    formula="Phi(X; W, U) = <U, phi(X W X^T) X> = sum_t u_t . grad K(W^T x_t)",
    tex=r"\Phi(X; W, U) = \langle U, \varphi(X W X^\top) X \rangle = \sum_{t} u_t^\top "
    r"\nabla K(W^\top x_t), \quad K(a) = \ln \sum_{s} e^{x_s^\top a}",
    evaluate=_single_head,
    judges=(head_output, attention_scores),
    forms=(
        Form(
            name="printed",
            cites="eq. (1), Section 2",
            note="The gradient of K(a) = log sum_s exp(x_s . a) at a_t is row t of phi(.) X. The "
            "check compares the matrix formula with autograd of K.",
        ),
    ),
    control="the logits use W x_t in place of W^T x_t",
    source="Section 2, eq. (1)",
)


def _query_key(instance: Instance, size: Size) -> Sides:
    tokens, query, key = instance["X"], instance["WQ"], instance["WK"]
    logits = jnp.einsum("td,dk,sk->ts", tokens, query, tokens @ key)
    return Sides(
        lhs=attention_scores(combine_query_key(query, key), tokens),
        rhs={
            "printed": jax.nn.softmax(logits, axis=-1),
            "control": jax.nn.softmax(logits.T, axis=-1),
        },
        error=1e-15 * jnp.sum(jnp.abs(tokens)) ** 2 * jnp.sum(jnp.abs(query) @ jnp.abs(key.T)),
    )


QUERY_KEY = Statement(
    id="multihead.sec2.qk",
    label="Section 2, W = W_Q W_K^T",
    formula="phi(X W_Q (X W_K)^T) = phi(X W X^T) for W = W_Q W_K^T",
    tex=r"\varphi(X W_Q W_K^\top X^\top) = \varphi(X W X^\top), \quad W = W_Q W_K^\top",
    kind="identity",
    over={"X": Reals(("T", "d")), "WQ": Reals(("d", "k")), "WK": Reals(("d", "k"))},
    evaluate=_query_key,
    judges=(combine_query_key,),
    sizes=({"T": 3, "d": 3, "k": 2},),
    forms=(Form(name="printed", cites="Section 2, above eq. (1) and above eq. (2)"),),
    control="queries and keys are exchanged",
    budget=Budget(samples=64),
    source="Section 2, above eq. (1)",
)


def _many_heads(instance: Instance, size: Size) -> Sides:
    tokens, heads = instance["X"][0], size["H"]
    outputs = [head_output(instance["U"][h], instance["W"][h], tokens) for h in range(heads)]
    copies, params = (1,) * (heads - 1) + (2,), params_of(instance)
    total, twice = sum(outputs), (sum(outputs) + outputs[-1]) / (heads + 1) ** 0.5
    tied = tied_output(params, jnp.asarray(copies, float), tokens)
    flax: Any = MultiHeadAttention(heads=heads).apply({"params": params}, tokens)
    return Sides.pairs(
        {
            "printed": (flax, total / heads**0.5),
            "derived, equal heads": (tied, twice),
            "derived, written out": (model_output(untie(params, copies), tokens), twice),
            "control": (model_output(params, tokens), total / heads),
        },
        error=1e-13 * jnp.sum(jnp.abs(instance["U"])) * jnp.max(jnp.abs(tokens)),
    )


EQ_2 = Statement(
    id="multihead.eq2",
    label="eq. (2)",
    formula="Phi~(X; theta) = H^(-1/2) sum_h <U_h, phi(X W_h X^T) X>",
    tex=r"\tilde\Phi(X; \tilde\theta) = \frac{1}{\sqrt{H}} \sum_{h} \langle U_h, \varphi(X "
    r"W_h X^\top) X \rangle",
    kind="identity",
    sample=loss_generic,
    evaluate=_many_heads,
    judges=(MultiHeadAttention.__call__, model_output, tied_output, untie),
    sizes=({"n": 1, "T": 4, "d": 3, "H": 3},),
    forms=(
        Form(
            name="printed",
            cites="eq. (2), Section 2; eq. (61)",
            note="The check compares the Flax module with a loop over heads.",
        ),
        Form(
            name="derived, equal heads",
            note="The formula for equal heads counts the last head "
            "twice, so that there are H + 1 heads.",
        ),
        Form(
            name="derived, written out",
            note="The parameters contain the last head twice, so that there are H + 1 heads.",
        ),
    ),
    control="the sum is divided by H in place of sqrt(H)",
    source="Section 2, eq. (2); eq. (61)",
)


def _gradient(which: int) -> Callable[[Instance, Size], Sides]:
    def evaluate(instance: Instance, size: Size) -> Sides:
        arguments = instance["U"], instance["W"], instance["X"]
        wrong = head_gradient(instance["U"], instance["W"].T, instance["X"])[which]
        scale = jnp.sum(jnp.abs(instance["U"])) * jnp.max(jnp.abs(instance["X"])) ** 3
        return Sides(
            lhs=jax.grad(one_head, argnums=which)(*arguments),
            rhs={"printed": head_gradient(*arguments)[which], "control": wrong},
            error=1e-14 * which * scale,
        )

    return evaluate


LEMMA_1_U = on_head(
    id="multihead.lemma1.1.u",
    label="Lemma 1 (1)",
    formula="grad_U Phi = phi(X W X^T) X",
    tex=r"\nabla_U \Phi = \varphi(X W X^\top) X",
    evaluate=_gradient(0),
    judges=(head_gradient,),
    forms=(Form(name="printed", cites="Lemma 1, Section 3; Lemma 4 (1), Appendix A.1"),),
    control="W is transposed",
    source="Section 3, Lemma 1, first item, first half; Lemma 4 (1), Appendix A.1",
)
LEMMA_1_W = on_head(
    id="multihead.lemma1.1.w",
    label="Lemma 1 (1)",
    formula="grad_W Phi = sum_t x_t u_t^T X^T phi'(X W^T x_t) X",
    tex=r"\nabla_W \Phi = \sum_{t} x_t u_t^\top X^\top \varphi'(X W^\top x_t) X",
    evaluate=_gradient(1),
    judges=(head_gradient,),
    forms=(
        Form(
            name="printed",
            cites="Lemma 1, Section 3; Lemma 4 (2), Appendix A.1",
            note="X^T phi'(g_t) X is the covariance of the tokens under the softmax weights "
            "phi(g_t).",
        ),
    ),
    control="W is transposed",
    source="Section 3, Lemma 1, first item, second half; Lemma 4 (2), Appendix A.1",
)


def _mixed_derivative(instance: Instance, size: Size) -> Sides:
    tokens, weights, a, b = (instance[name] for name in "XWab")
    along = lambda w: a @ jax.grad(one_head)(instance["U"], w, tokens) @ b
    mixed, _ = head_hessian_blocks(instance["U"], weights, tokens)
    closed = jnp.einsum("t,i,tijk->jk", a, b, mixed)
    scale = jnp.sum(jnp.abs(a)) * jnp.sum(jnp.abs(b)) * jnp.max(jnp.abs(tokens)) ** 3
    return Sides(
        lhs=jax.grad(along)(weights),
        rhs={"printed": closed, "control": closed.T},
        error=1e-13 * scale,
    )


LEMMA_1_UW = on_head(
    id="multihead.lemma1.2.uw",
    label="Lemma 1 (2)",
    formula="grad_W <a, grad_U Phi b> = sum_t x_t a_t b^T X^T phi'(g_t) X",
    tex=r"\nabla_W \langle a, \nabla_U \Phi \, b \rangle = \sum_{t} x_t a_t b^\top X^\top "
    r"\varphi'(X W^\top x_t) X",
    evaluate=_mixed_derivative,
    judges=(head_hessian_blocks,),
    forms=(Form(name="printed", cites="Lemma 1, Section 3; eq. (30), Appendix A.1"),),
    control="the result is transposed",
    source="Section 3, Lemma 1, second item, first half; Lemma 4 (3), eq. (30)",
    over=VECTORS,
)


def _second_derivative(instance: Instance, size: Size) -> Sides:
    tokens, weights, projection, b, c = (instance[name] for name in "XWUbc")
    along = lambda w: c @ jax.grad(one_head, argnums=1)(projection, w, tokens) @ b

    def of_token(weight: Array, u: Array) -> Array:
        scores, values = tokens @ u, tokens @ b
        d = values * scores - scores * (values @ weight) - values * (scores @ weight)
        return tokens.T @ (weight * (d - weight @ d))

    contracted = jax.vmap(of_token)(attention_scores(weights, tokens), projection)
    _, inner = head_hessian_blocks(projection, weights, tokens)
    closed = lambda b: jnp.einsum("i,j,ijkl->kl", c, b, inner)
    largest = jnp.max(jnp.abs(tokens))
    scale = jnp.sum(jnp.abs(projection)) * jnp.sum(jnp.abs(b)) * jnp.sum(jnp.abs(c)) * largest**5
    return Sides(
        lhs=jax.grad(along)(weights),
        rhs={
            "printed": tokens.T @ ((tokens @ c)[:, None] * contracted),
            "derived": closed(b),
            "control": closed(b + 1.0),
        },
        error=1e-13 * scale,
    )


LEMMA_1_WW = on_head(
    id="multihead.lemma1.2.ww",
    label="Lemma 1 (2)",
    formula="grad_W <c, grad_W Phi b> = sum_t (c.x_t) x_t d_t^T phi'(g_t) X",
    tex=r"\nabla_W \langle c, \nabla_W \Phi \, b \rangle = \sum_{t} (c^\top x_t) x_t "
    r"d_t^\top \varphi'(X W^\top x_t) X",
    evaluate=_second_derivative,
    judges=(head_hessian_blocks, attention_scores),
    forms=(
        Form(
            name="printed",
            cites="Lemma 1, Section 3; eq. (36), Appendix A.1",
            note="The printed vector in this sum is d_t = diag(Xb) X u_t - X u_t (b^T X^T phi) - "
            "X b (u_t^T X^T phi). With this vector, the sum over t contains the third central "
            "moment kappa_3(u_t.x, b.x, x) under the attention of x_t.",
        ),
        Form(
            name="derived",
            note=(
                "This version of the claim computes the sum over t with the third central moment "
                "kappa_3(u_t.x, b.x, x) of the tokens."
            ),
        ),
    ),
    control="b is replaced by b + 1",
    source="Section 3, Lemma 1, second item, second half; Lemma 4 (4), eq. (36)",
    over=VECTORS,
)


def _loss_hessian(instance: Instance, size: Size) -> Sides:
    params, data = params_of(instance), training_set(instance)
    closed = loss_hessian(params, data)
    flipped = {"U": -instance["U"], "W": instance["W"]}
    return Sides(
        lhs=risk_hessian(params, data),
        rhs={"printed": closed, "control": loss_hessian(flipped, data)},
        error=1e-13 * jnp.max(jnp.abs(closed)),
    )


EQ_65 = Statement(
    id="multihead.eq65",
    label="eq. (65)",
    formula="Hess L = (1/n) sum_i [l''_i grad Phi_i grad Phi_i^T + l'_i y_i Hess Phi_i]",
    tex=r"\nabla^2 \hat L = \frac{1}{n} \sum_{i} \left[ \ell''_i \nabla \tilde\Phi_i \nabla "
    r"\tilde\Phi_i^\top + \ell'_i y_i \nabla^2 \tilde\Phi_i \right]",
    kind="identity",
    sample={name: LOSS[name] for name in ("generic", "GD on DM1")},
    evaluate=_loss_hessian,
    judges=(loss_hessian, risk_hessian),
    sizes=({"n": 4, "T": 3, "d": 2, "H": 2},),
    forms=(
        Form(
            name="printed",
            cites="eq. (65), Appendix A.2",
            note="The Hessian is a block-diagonal matrix, with one block for each head, plus a "
            "matrix of rank n. The check compares closed forms of both matrices with "
            "jax.hessian of the loss.",
        ),
    ),
    control="U_h is replaced by -U_h",
    source="Appendix A.2, eq. (65)",
)


STATEMENTS = (EQ_1, QUERY_KEY, EQ_2, LEMMA_1_U, LEMMA_1_W, LEMMA_1_UW, LEMMA_1_WW, EQ_65)
