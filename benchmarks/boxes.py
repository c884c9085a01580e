"""Sharp inequalities on boxes of one to three parameters: how many are proved at slack zero.

Each is an equality somewhere on its box, so that no subdivision alone proves it. Twins that are
false by 1e-9 of the larger side, or of odd order, near the point of equality, must not be proved.

    python benchmarks/boxes.py
    python benchmarks/boxes.py --only young --seconds 60
"""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import tyro

from jaxbounds.certification import prove
from jaxbounds.claims.statements import Domain, Form, Sides, Statement

print = functools.partial(print, flush=True)
Side = Callable[[jax.Array], Any]


class Sharp(NamedTuple):
    """lhs(x) <= rhs(x) for x in a box, with equality somewhere.

    Attributes:
        name: short.
        source: where it is stated.
        lhs: left side.
        rhs: right side.
        lower: the box.
        upper: its other corner.
        asked: the hypothesis, if there is one.
    """

    name: str
    source: str
    lhs: Side
    rhs: Side
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    asked: Side | None = None


def half_pi() -> jax.Array:
    """2 arctan 1: traced, so that no float stands for it."""
    return 2 * jnp.arctan(1.0)


def _mitrinovic(x: jax.Array) -> jax.Array:
    """x^3 cos x: of the form in which nothing is divided by zero."""
    return jnp.cos(x[0]) * x[0] ** 3


def _schur(x: jax.Array) -> jax.Array:
    a, b, c = x
    return a * b * (a + b) + b * c * (b + c) + c * a * (c + a)


def _rest(x: jax.Array) -> jax.Array:
    return 1 - x[0] - x[1]


HLP = "Hardy, Littlewood, Polya, Inequalities (1934)"
MITRINOVIC = "Mitrinovic, Analytic Inequalities (1970)"
SHARP = (
    Sharp("AM-GM, two", f"{HLP}, 2.5", lambda x: jnp.sqrt(x[0] * x[1]), lambda x: (x[0] + x[1]) / 2,
          (0.0, 0.0), (1.0, 1.0)),
    Sharp("AM-GM, three", f"{HLP}, 2.5", lambda x: jnp.cbrt(jnp.prod(x)), jnp.mean,
          (0.0,) * 3, (1.0,) * 3),
    Sharp("Bernoulli", f"{MITRINOVIC}, 2.4", lambda x: 1 + 2.5 * x[0], lambda x: (1 + x[0]) ** 2.5,
          (-0.75,), (3.0,)),
    Sharp("logarithm", f"{HLP}, 2.15", lambda x: jnp.log(x[0]), lambda x: x[0] - 1,
          (0.125,), (8.0,)),
    Sharp("Jordan", f"{MITRINOVIC}, 2.3", lambda x: x[0], lambda x: jnp.sin(half_pi() * x[0]),
          (0.0,), (1.0,)),
    Sharp("cosh", "Hoeffding (1963), proof of (4.16)", lambda x: jnp.cosh(x[0]),
          lambda x: jnp.exp(x[0] ** 2 / 2), (-3.0,), (3.0,)),
    Sharp("tanh", "of its Taylor series, order three", lambda x: jnp.tanh(x[0]), lambda x: x[0],
          (0.0,), (4.0,)),
    Sharp("Young", f"{HLP}, 4.8; p = 3", lambda x: x[0] * x[1],
          lambda x: x[0] ** 3 / 3 + x[1] ** 1.5 / 1.5, (0.0, 0.0), (1.0, 1.0)),
    Sharp("Cauchy-Schwarz", f"{HLP}, 2.4; (1, x) and (y, z)", lambda x: (x[1] + x[0] * x[2]) ** 2,
          lambda x: (1 + x[0] ** 2) * (x[1] ** 2 + x[2] ** 2), (-1.0,) * 3, (1.0,) * 3),
    Sharp("entropy", "Shannon (1948), section 6", lambda x: -x[0] * jnp.log(x[0])
          - x[1] * jnp.log(x[1]) - _rest(x) * jnp.log(_rest(x)), lambda x: jnp.log(3.0 + 0 * x[0]),
          (0.0625, 0.0625), (0.4375, 0.4375)),
    Sharp("Nesbitt", "Nesbitt (1903)", lambda x: 1.5 + 0 * x[0],
          lambda x: x[0] / (x[1] + x[2]) + x[1] / (x[0] + x[2]) + x[2] / (x[0] + x[1]),
          (1.0,) * 3, (4.0,) * 3),
    Sharp("Schur", f"{HLP}, theorem 80", _schur, lambda x: jnp.sum(x**3) + 3 * jnp.prod(x),
          (0.0,) * 3, (1.0,) * 3),
    Sharp("softmax", "Gao, Pavel (2017), proposition 4", lambda x: jnp.max(jnp.abs(
          jnp.linalg.norm(jax.jacobian(jax.nn.softmax)(jnp.append(x, 0.0)), ord="fro"))),
          lambda x: 0.5 + 0 * x[0], (-4.0,), (4.0,)),
    Sharp("sigmoid'", "the logistic function is 1/4-Lipschitz",
          lambda x: jax.nn.sigmoid(x[0]) * jax.nn.sigmoid(-x[0]), lambda x: 0.25 + 0 * x[0],
          (-6.0,), (6.0,)),
    Sharp("Hoeffding's lemma", "Hoeffding (1963), (4.16); s, p", lambda x: jnp.log(
          x[1] * jnp.exp(x[0] * (1 - x[1])) + (1 - x[1]) * jnp.exp(-x[0] * x[1])),
          lambda x: x[0] ** 2 / 8, (-2.0, 0.125), (2.0, 0.875)),
    Sharp("Huygens", f"{MITRINOVIC}, 3.4.14", lambda x: 3 * x[0] * jnp.cos(x[0]),
          lambda x: 2 * jnp.sin(x[0]) * jnp.cos(x[0]) + jnp.sin(x[0]), (0.0,), (1.5,)),
    Sharp("Mitrinovic-Adamovic", f"{MITRINOVIC}, 3.4.6", _mitrinovic,
          lambda x: jnp.sin(x[0]) ** 3, (0.0,), (1.5,)),
    Sharp("Motzkin", "Motzkin (1967); two zeros on [0, 2] x [-2, 2]",
          lambda x: 3 * x[0] ** 2 * x[1] ** 2,
          lambda x: x[0] ** 4 * x[1] ** 2 + x[0] ** 2 * x[1] ** 4 + 1, (0.0, -2.0), (2.0, 2.0)),
    Sharp("fourth order", "cos and its Taylor polynomial", lambda x: 1 - x[0] ** 2 / 2
          + 0 * x[1], lambda x: jnp.cos(x[0]) + x[1] ** 4, (-1.0, -1.0), (1.0, 1.0)),
    Sharp("a curve", "square of x y - z, along a surface", lambda x: 2 * x[0] * x[1] * x[2],
          lambda x: x[0] ** 2 * x[1] ** 2 + x[2] ** 2, (-1.0,) * 3, (1.0,) * 3),
    Sharp("means", f"{HLP}, 2.9; harmonic and geometric", lambda x: 2 * x[0] * x[1] / (x[0] + x[1]),
          lambda x: jnp.sqrt(x[0] * x[1]), (0.5, 0.5), (2.0, 2.0)),
    Sharp("a kink", "|x| + |y| and the larger", lambda x: jnp.maximum(jnp.abs(x[0]), jnp.abs(x[1])),
          lambda x: jnp.abs(x[0]) + jnp.abs(x[1]), (-1.0, -1.0), (1.0, 1.0)),
    Sharp("softplus", "Fenchel and Young for the logistic loss, two conjugate logits",
          lambda x: jnp.log(2.0 + 0 * x[0]) + x[0] / 2, lambda x: jax.nn.softplus(x[0]),
          (-5.0,), (5.0,)),
    Sharp("a hypothesis", "Jordan, for x <= pi / 2", lambda x: x[0] / half_pi(),
          lambda x: jnp.sin(x[0]), (0.0,), (2.0,), lambda x: x[0] <= half_pi()),
    Sharp("cubic", "x - x^3 at the root of 1/3", lambda x: x[0] - x[0] ** 3,
          lambda x: 2 / (3 * jnp.sqrt(3.0 + 0 * x[0])), (0.0,), (1.0,)),
    Sharp("two points", "x^4 - 2 x^2 + 1", lambda x: 2 * x[0] ** 2, lambda x: x[0] ** 4 + 1,
          (-1.5,), (1.5,)),
)  # fmt: skip


def statement_of(claim: Sharp, /, change: Side | None = None) -> Statement:
    """The claim as a statement; `change` is added to the left side."""

    def evaluate(instance: Any, size: Any) -> Sides:
        x = instance["x"]
        left = claim.lhs(x) + (0.0 if change is None else change(x))
        return Sides(left, {"printed": claim.rhs(x), "control": claim.rhs(x)})

    asked = claim.asked
    return Statement(
        id="mine.sharp", label=claim.name, formula=claim.name, kind="inequality",
        evaluate=evaluate,
        sample=lambda key, size: {"x": jax.random.uniform(key, (size["n"],))},
        sizes=({"n": len(claim.lower)},), forms=(Form(name="printed"),), control="the same",
        hypotheses=None if asked is None else lambda i, size: {"asked": asked(i["x"])},
    )  # fmt: skip


def domain_of(claim: Sharp, /, slack: float = 0.0) -> Domain:
    """Its box."""
    return Domain(
        name=claim.name, chart=lambda point, size: {"x": point}, size={"n": len(claim.lower)},
        lower=claim.lower, upper=claim.upper, slack=slack,
    )  # fmt: skip


def main(seconds: float = 60.0, only: str = "", boxes: int = 20_000) -> None:
    """Try to prove each."""
    proved = tried = 0
    for claim in (c for c in SHARP if only.lower() in c.name.lower()):
        started, tried = time.process_time(), tried + 1
        proof = prove(statement_of(claim), "printed", domain_of(claim), seconds=seconds,
                      boxes=boxes)  # fmt: skip
        proved += proof.word == "proved on D"
        took = time.process_time() - started
        print(f"{claim.name} [{claim.source}]: {proof.word}, {proof.boxes} boxes, {took:.1f} s"
              f"{', ' + proof.reason if proof.reason else ''}")  # fmt: skip
    print(f"{proved} of {tried} proved at slack 0")


if __name__ == "__main__":
    tyro.cli(main)
