"""Theorem D.6: the lower bound on the all-layer margin."""

from jaxbounds.claims.statements import Form, Instance, Sides, Size
from jaxbounds.smapprox import certified
from jaxbounds.smapprox.attack import try_rays
from jaxbounds.smapprox.certified import (
    circuit_constants,
    joint_budget,
    theorem_d6,
    without_halvings,
)
from jaxbounds.smapprox.statements.margin_cases import attacked, case_network, on_cases


def _d6(i: Instance, size: Size) -> Sides:
    lower, (_, upper) = case_network(i["circuit"])["lower"], attacked(i)
    bounds = lower | {"control": 10 * lower["sharpened joint"]}
    return Sides.pairs({name: (bound, upper) for name, bound in bounds.items()})


THEOREM_D6 = on_cases(
    id="smapprox.thmd.6",
    label="Theorem D.6",
    formula="the minimum of the nine terms (D.5) <= rho",
    tex=r"\rho_F((\theta, \xi), x, \mathbb{1}(F(x, \theta, \xi) \ge 0)) \ge \min\left\{"
    r"\frac{\lambda}{\mu_0}, \frac{\sigma_\zeta}{\mu_0}, \sigma_\theta, \sigma_\xi, "
    r"\frac{1}{2 \kappa_\theta}, \frac{\sigma_\zeta}{2 \kappa_\theta \lambda}, "
    r"\frac{\sigma_h}{2 \kappa_\xi \lambda}, \frac{\sigma_\zeta}{4 \lambda \mu \kappa_\xi}, "
    r"\frac{1}{4 \mu \kappa_\xi}\right\}",
    evaluate=_d6,
    judges=(
        theorem_d6,
        certified.theorem_d6_terms,
        without_halvings,
        joint_budget,
        certified.best_over_trust,
        circuit_constants,
        certified.circuit_margin_lower,
        try_rays,
    ),
    forms=(
        Form(
            name="printed",
            cites="Theorem D.6, (D.5)",
            note=(
                "The check measures the constants of Condition D.3 on balls around the parameters "
                "(erratum E23), and uses the radius with the largest bound."
            ),
        ),
        Form(
            name="sharpened",
            note="This lower bound on the margin avoids the factors 1/2 of the paper. A "
            "perturbation of norm r needs only kappa_theta lambda r + mu kappa_xi (lambda + "
            "sigma_zeta) r <= sigma_zeta. The estimate |g| <= lambda + sigma_zeta replaces the "
            "paper's 2 lambda.",
        ),
        Form(
            name="sharpened joint",
            note=(
                "The perturbations of theta_i and xi_{i-1} are parts of a single perturbation "
                "delta. The bound therefore adds the squares of the error terms of theta_i and "
                "xi_{i-1}."
            ),
        ),
    ),
    control="10 times the bound",
    assumptions="a chain of identity gates and a random circuit; rho from above, by attack; (D.5) "
    "without shared weights; with them: smapprox.lemmad.9",
    kind="inequality",
    source="Appendix D",
)


STATEMENTS = (THEOREM_D6,)
