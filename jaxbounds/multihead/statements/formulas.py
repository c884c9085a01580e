"""Section 2 and Lemma 1 / Lemma 4: the model, its gradients and Hessians."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.calculus import cumulants, head_gradient, loss_hessian, third_cumulant
from jaxbounds.multihead.instances import LOSS, loss_generic, single_generic
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.model import MultiHeadAttention, head_output
from jaxbounds.statements import Form, Instance, Sides, Statement

SIZES = ({"T": 4, "d": 3},)


def _with_vectors(key, size) -> Instance:
    """One head with the free vectors a, b, c of Lemma 1, and W not symmetric."""
    instance_key, a_key, b_key, c_key = jax.random.split(key, 4)
    return single_generic(instance_key, size) | {
        "a": jax.random.normal(a_key, (size["T"],)),
        "b": jax.random.normal(b_key, (size["d"],)),
        "c": jax.random.normal(c_key, (size["d"],)),
    }


def _potential(point, tokens):
    """K(a) = log sum_s exp(x_s . a)."""
    return jax.nn.logsumexp(tokens @ point)


def _single_head(instance: Instance) -> Sides:
    tokens, projection, weights = instance["X"], instance["U"], instance["W"]

    def summed(points):
        mean = jax.vmap(jax.grad(_potential), in_axes=(0, None))(points, tokens)
        return jnp.sum(projection * mean)

    return Sides(
        lhs=head_output(projection, weights, tokens),
        rhs={"printed": summed(tokens @ weights), "control": summed(tokens @ weights.T)},
        error=1e-13 * jnp.sum(jnp.abs(projection)) * jnp.max(jnp.abs(tokens)),
    )


def _many_heads(instance: Instance) -> Sides:
    params = {"U": instance["U"], "W": instance["W"]}
    tokens, heads = instance["X"][0], instance["U"].shape[0]
    module = MultiHeadAttention(heads=heads)
    total = sum(head_output(instance["U"][h], instance["W"][h], tokens) for h in range(heads))
    return Sides(
        lhs=module.apply({"params": params}, tokens),
        rhs={"printed": total / jnp.sqrt(1.0 * heads), "control": total / heads},
        error=1e-13 * jnp.sum(jnp.abs(instance["U"])) * jnp.max(jnp.abs(tokens)),
    )


def _gradient(which: int):
    def evaluate(instance: Instance) -> Sides:
        arguments = instance["U"], instance["W"], instance["X"]
        measured = jax.grad(head_output, argnums=which)(*arguments)
        closed = head_gradient(*arguments)[which]
        wrong = head_gradient(instance["U"], instance["W"].T, instance["X"])[which]
        scale = jnp.sum(jnp.abs(instance["U"])) * jnp.max(jnp.abs(instance["X"])) ** 3
        return Sides(
            lhs=measured, rhs={"printed": closed, "control": wrong}, error=1e-14 * which * scale
        )

    return evaluate


def _mixed_derivative(instance: Instance) -> Sides:
    tokens, weights, a, b = (instance[name] for name in "XWab")
    along = lambda w: a @ (jax.nn.softmax(tokens @ w @ tokens.T, axis=-1) @ tokens) @ b
    pulled = jnp.einsum("tij,j->ti", cumulants(weights, tokens).covariance, b)
    closed = tokens.T @ (a[:, None] * pulled)
    scale = jnp.sum(jnp.abs(a)) * jnp.sum(jnp.abs(b)) * jnp.max(jnp.abs(tokens)) ** 3
    return Sides(
        lhs=jax.grad(along)(weights),
        rhs={"printed": closed, "control": closed.T},
        error=1e-13 * scale,
    )


def _second_derivative(instance: Instance) -> Sides:
    tokens, weights, projection, b, c = (instance[name] for name in "XWUbc")
    along = lambda w: c @ jax.grad(head_output, argnums=1)(projection, w, tokens) @ b
    attention = jax.nn.softmax(tokens @ weights @ tokens.T, axis=-1)
    query = tokens @ c

    def of_token(weight, u):
        scores, values = tokens @ u, tokens @ b
        d = values * scores - scores * (values @ weight) - values * (scores @ weight)
        return tokens.T @ (weight * (d - weight @ d))

    contracted = jax.vmap(of_token)(attention, projection)
    closed = tokens.T @ (query[:, None] * contracted)
    # The same by the key identity, with the wrong cumulant: second moments are not centred.
    third = third_cumulant(cumulants(weights, tokens), projection)
    wrong = tokens.T @ (query[:, None] * jnp.einsum("tij,j->ti", third, b + 1.0))
    largest = jnp.max(jnp.abs(tokens))
    scale = jnp.sum(jnp.abs(projection)) * jnp.sum(jnp.abs(b)) * jnp.sum(jnp.abs(c)) * largest**5
    return Sides(
        lhs=jax.grad(along)(weights),
        rhs={"printed": closed, "control": wrong},
        error=1e-13 * scale,
    )


def _loss_hessian(instance: Instance) -> Sides:
    data = {"X": instance["X"], "y": instance["y"]}
    heads, T, d = instance["U"].shape
    split = T * d

    def risk(flat):
        rows = flat.reshape(heads, split + d * d)
        projections, weights = rows[:, :split], rows[:, split:]
        params = {"U": projections.reshape(heads, T, d), "W": weights.reshape(heads, d, d)}
        return empirical_risk(params, data)

    params = {"U": instance["U"], "W": instance["W"]}
    rows = [instance["U"].reshape(heads, -1), instance["W"].reshape(heads, -1)]
    closed = loss_hessian(params, data)
    flipped = {"U": -instance["U"], "W": instance["W"]}
    return Sides(
        lhs=jax.hessian(risk)(jnp.concatenate(rows, axis=1).ravel()),
        rhs={"printed": closed, "control": loss_hessian(flipped, data)},
        error=1e-13 * jnp.max(jnp.abs(closed)),
    )


STATEMENTS = (
    Statement(
        id="multihead.eq1",
        label="eq. (1)",
        formula="Phi(X; W, U) = <U, phi(X W X^T) X> = sum_t u_t . grad K(W^T x_t)",
        kind="identity",
        sample=single_generic,
        evaluate=_single_head,
        sizes=SIZES,
        forms=(
            Form(
                name="printed",
                note="K(a) = log sum_s exp(x_s . a); its gradient at a_t is row t of phi(.) X. "
                "Measured as the matrix formula against autograd of K.",
            ),
        ),
        control="the logits use W x_t in place of W^T x_t",
        source="Section 2, eq. (1)",
    ),
    Statement(
        id="multihead.eq2",
        label="eq. (2)",
        formula="Phi~(X; theta) = H^(-1/2) sum_h <U_h, phi(X W_h X^T) X>",
        kind="identity",
        sample=loss_generic,
        evaluate=_many_heads,
        sizes=({"n": 1, "T": 4, "d": 3, "H": 3},),
        forms=(Form(name="printed", note="The Flax module against a loop over heads."),),
        control="the sum is divided by H in place of sqrt(H)",
        source="Section 2, eq. (2); eq. (61)",
    ),
    Statement(
        id="multihead.lemma1.1-u",
        label="Lemma 1 (1)",
        formula="grad_U Phi = phi(X W X^T) X",
        kind="identity",
        sample=single_generic,
        evaluate=_gradient(0),
        sizes=SIZES,
        forms=(Form(name="printed"),),
        control="W is transposed",
        source="Section 3, Lemma 1, first item, first half; Lemma 4 (1), Appendix A.1",
    ),
    Statement(
        id="multihead.lemma1.1-w",
        label="Lemma 1 (1)",
        formula="grad_W Phi = sum_t x_t u_t^T X^T phi'(X W^T x_t) X",
        kind="identity",
        sample=single_generic,
        evaluate=_gradient(1),
        sizes=SIZES,
        forms=(
            Form(name="printed", note="X^T phi'(g_t) X is the covariance of the tokens under g_t."),
        ),
        control="W is transposed",
        source="Section 3, Lemma 1, first item, second half; Lemma 4 (2), Appendix A.1",
    ),
    Statement(
        id="multihead.lemma1.2-uw",
        label="Lemma 1 (2)",
        formula="grad_W <a, grad_U Phi b> = sum_t x_t a_t b^T X^T phi'(g_t) X",
        kind="identity",
        sample=_with_vectors,
        evaluate=_mixed_derivative,
        sizes=SIZES,
        forms=(Form(name="printed"),),
        control="the result is transposed",
        source="Section 3, Lemma 1, second item, first half; Lemma 4 (3), eq. (30)",
    ),
    Statement(
        id="multihead.lemma1.2-ww",
        label="Lemma 1 (2)",
        formula="grad_W <c, grad_W Phi b> = sum_t (c.x_t) x_t d_t^T phi'(g_t) X",
        kind="identity",
        sample=_with_vectors,
        evaluate=_second_derivative,
        sizes=SIZES,
        forms=(
            Form(
                name="printed",
                note="d_t = diag(Xb) X u_t - X u_t (b^T X^T phi) - X b (u_t^T X^T phi); the sum is "
                "the third central moment kappa_3(u_t.x, b.x, x) under the attention of x_t.",
            ),
        ),
        control="b is replaced by b + 1",
        source="Section 3, Lemma 1, second item, second half; Lemma 4 (4), eq. (36)",
    ),
    Statement(
        id="multihead.eq65",
        label="eq. (65)",
        formula="Hess L = (1/n) sum_i [l''_i grad Phi_i grad Phi_i^T + l'_i y_i Hess Phi_i]",
        kind="identity",
        sample={name: LOSS[name] for name in ("generic", "GD on DM1")},
        evaluate=_loss_hessian,
        sizes=({"n": 4, "T": 3, "d": 2, "H": 2},),
        forms=(
            Form(
                name="printed",
                note="Block-diagonal over heads plus rank n; blocks in closed form against "
                "jax.hessian of the loss.",
            ),
        ),
        control="U_h is replaced by -U_h",
        source="Appendix A.2, eq. (65)",
    ),
)
