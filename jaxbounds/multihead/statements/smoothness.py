"""Section 6.1, the end of the proof sketch: bounds on beta_2 and beta_3 along the run."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import Form, Instance, Sides, Size
from jaxbounds.multihead import descent
from jaxbounds.multihead.bounds import beta2, beta2_sharp, beta3
from jaxbounds.multihead.runs import descend, distances, setting, sizes_along, target_of, within
from jaxbounds.multihead.statements.run_instances import certified, on_runs, worst_step

SHARP, SHARPEST = "sharpened S6, S9, S10", "sharpened S2, S6, S8, S10"


def _following(along: ArrayLike) -> Array:
    values = jnp.asarray(along)
    return jnp.maximum(values[:-1], values[1:])


def _along(instance: Instance, size: Size) -> Sides:
    run, s = descend(instance), setting(instance)
    norms, largest, squares = sizes_along(run, instance["copies"])
    away = distances(run, target_of(instance), instance["copies"])
    shape = {"T": s.T, "d": s.d}
    before, until = within(instance, last=0)[:-1], within(instance, last=1)
    rho_k = _following(beta2(norms, s.radius, **shape, H=s.heads))
    sharp = {
        # The largest head, or the mean over heads for the form with the root mean square.
        SHARP: beta2_sharp(largest, largest**2, s.radius, T=s.T, H=s.heads),
        SHARPEST: beta2_sharp(largest, squares, s.radius, T=s.T, H=s.heads),
    }
    constants = {SHARP: descent.LARGEST_HEAD, SHARPEST: descent.SHARPEST}
    weak = jnp.maximum(beta3(s.size, s.radius, **shape), beta3(norms, s.radius, **shape))
    reach = beta3(3 * s.distance + s.size, s.radius, **shape)
    level = lambda value, along: jnp.broadcast_to(jnp.asarray(value), along.shape)
    pairs = {
        "printed": worst_step(rho_k, level(descent.rho(s), rho_k), before),
        "printed, sizes": worst_step(
            _following(norms), away[:-1] + jnp.asarray(s.size) + 1, before
        ),
        "printed, beta_3": worst_step(weak, level(reach, weak), until),
        "control": worst_step(rho_k, level(1e-3 * descent.rho(s), rho_k), before),
    }
    for name, kind in constants.items():
        bound = level(descent.rho(s, kind), rho_k)
        pairs[name] = worst_step(_following(sharp[name]), bound, before)
    return Sides.pairs(pairs)


PRINTED = certified(descent.PRINTED)

SMOOTHNESS = on_runs(
    id="multihead.sec6.1.smoothness",
    label="Section 6.1, beta_2 and beta_3 along the run",
    formula="beta_2(theta_k) v beta_2(theta_{k+1}) <= rho(theta), ||theta_k||_{2,inf} v "
    "||theta_{k+1}||_{2,inf} <= ||theta - theta_k|| + ||theta||_{2,inf} + 1 for k < K",
    tex=r"\beta_2(\theta_k) \vee \beta_2(\theta_{k+1}) \le \rho(\theta), \quad "
    r"\|\theta_k\|_{2,\infty} \vee \|\theta_{k+1}\|_{2,\infty} \le \|\theta - \theta_k\| + "
    r"\|\theta\|_{2,\infty} + 1, \quad k < K",
    evaluate=_along,
    judges=(descent.rho, beta2_sharp),
    forms=(
        Form(
            name="printed",
            cites="Section 6.1: 'establishing a rho(theta) such that rho_k <= rho(theta) for all "
            "k < K'; Appendix B.4",
            hypotheses=PRINTED,
            note=(
                "The number alpha is 3 sqrt(d) R^2 (3 sqrt(T) R^3 (3 D + ||theta||_{2,inf}) + 2 "
                "sqrt(T) R), and the factor in parentheses is at least beta_1(theta_k). So beta_2 "
                "at theta_k and at theta_{k+1} is at most (2 sqrt(T d) R^3 / sqrt(H) + T R^2 / 4) "
                "alpha^2."
            ),
        ),
        Form(
            name="printed, sizes",
            cites="Section 6.1: '(||theta_k||_{2,inf} v ||theta_{k+1}||_{2,inf}) <~ "
            "||theta - theta_k|| + ||theta||_{2,inf} + 1'",
            hypotheses=PRINTED,
            note="The claim adds the constant one to the norms, because a gradient step has a "
            "length of at most eta beta_1(theta_k) <= 4 beta_1 / (T R^2 alpha^2) < 1. The last "
            "inequality uses alpha >= 3 beta_1 and alpha >= 6.",
        ),
        Form(
            name="printed, beta_3",
            cites="Section 6.1: '(beta_3(theta) v beta_3(theta_k)) <~ ||theta - theta_0|| + "
            "||theta||_{2,inf}'",
            hypotheses=PRINTED,
            note="Lemma 10 has the bound 2 sqrt(T d) R^3 (3 sqrt(d) R^2 (3 D + ||theta||_{2,inf}) "
            "+ 1). The last summand, 1, may be omitted only if D or ||theta||_{2,inf} is at least "
            "of order one (erratum E11).",
        ),
        Form(
            name=SHARP,
            hypotheses=certified(descent.LARGEST_HEAD),
            note="The bound on beta_2 along gradient descent is rho#, the smoothness constant rho "
            "that S10 sharpens.",
        ),
        Form(
            name=SHARPEST,
            hypotheses=certified(descent.SHARPEST),
            note="The bound on beta_2 along gradient descent is rho#, the smoothness constant rho "
            "as sharpened by S10, with the root mean square of the heads' norms (S2).",
        ),
    ),
    control="rho / 1000",
    source="Section 6.1, its last two paragraphs; Appendix B.4",
    assumptions="Assumption 1; (74); eta of Theorem 3. Sharpened: their own",
)

STATEMENTS = (SMOOTHNESS,)
