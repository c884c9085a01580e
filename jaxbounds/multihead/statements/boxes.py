"""Boxes of instances (inputs of a claim) on which interval arithmetic proves the claim."""

import jax
import jax.numpy as jnp

from jaxbounds.claims.statements import Domain, Instance, Size


def _margins(point: jax.Array, size: Size) -> Instance:
    n = point.size
    datum = {"X": jnp.eye(n)[:, None, :], "y": jnp.ones(n, int)}
    return datum | {"U": point.reshape(1, 1, n), "W": jnp.zeros((1, n, n))}


def up_to(largest: float, /, *, n: int, slack: float = 0.0, beyond: str = "") -> Domain:
    """Return a box of instances: n samples with any margins between -`largest` and `largest`."""
    return Domain(
        name=f"n = {n}, {'margin t, |t|' if n == 1 else 'margins t_1, t_2, |t_i|'} <= {largest:g}",
        chart=_margins,
        size={"n": n, "T": 1, "d": n, "H": 1},
        lower=(-largest,) * n,
        upper=(largest,) * n,
        slack=slack,
        beyond=beyond,
    )


def signs(outcomes: int, /, *, slack: float) -> Domain:
    """Return a box of distributions of A = B = (1, -1, .., -1), for bounds on kappa_3(A, B, B).

    A point of the box is a vector of logits, from which the outcomes' probabilities follow. The
    logit of the last outcome is 0. The logits of the other outcomes are at most 4 in absolute
    value, or at most 6 if there are two outcomes.
    """
    largest = 6.0 if outcomes == 2 else 4.0

    def chart(point: jax.Array, size: Size) -> Instance:
        values = jnp.where(jnp.arange(outcomes) == 0, 1.0, -1.0)
        return {"logits": jnp.append(point, 0.0), "A": values, "B": values}

    return Domain(
        name=f"S = {outcomes}, A = B = (1, -1, ..), logits within {largest:g} of the last",
        chart=chart,
        size={"S": outcomes},
        lower=(-largest,) * (outcomes - 1),
        upper=(largest,) * (outcomes - 1),
        slack=slack,
    )


def heads(point: jax.Array, size: Size) -> Instance:
    """Return an instance of Proposition 7 with (B_2, R) = `point`.

    All other numbers of the instance are fixed: B_Phi = g_0 = 1 and epsilon = .01.
    """
    one = jnp.ones(())
    return {"B": point[0], "b": one, "R": point[1], "g": one, "eps": 0.01 * one}


def scores(point: jax.Array, size: Size) -> Instance:
    """Return an instance of Lemma 18 with three tokens, of relevance 2 + a, b and 0.

    The entries of `point` are a, b, and Gamma minus its least value; epsilon = e^-2 and L = 1.
    """
    relevance = jnp.stack([2.0 + point[0], point[1], 0.0 * point[0]])
    at = jnp.asarray(-2.0)
    return {"r": relevance, "L": jnp.asarray(1), "log_eps": at, "extra": point[2]}


def two_logits(*, slack: float) -> Domain:
    """Return a box of instances: the softmax map with two logits, t and 0, for |t| <= 8."""
    return Domain(
        name="T = 2, logits (t, 0), |t| <= 8",
        chart=lambda point, size: {"v": jnp.append(point, 0.0)},
        size={"T": 2},
        lower=(-8.0,),
        upper=(8.0,),
        slack=slack,
        beyond="adding a constant to both logits changes neither side",
    )


def two_tokens(*, slack: float = 0.0) -> Domain:
    """Return a box of instances: one head, |W| <= 3 and u = 1, on the two scalar tokens 1 and b."""

    def chart(point: jax.Array, size: Size) -> Instance:
        tokens = jnp.stack([1.0, point[0]])[:, None]
        return {"X": tokens, "U": jnp.ones((2, 1)), "W": point[1].reshape(1, 1)}

    return Domain(
        name="T = 2, d = 1, tokens 1 and b, u = 1, |b| <= 1, |W| <= 3",
        chart=chart,
        size={"T": 2, "d": 1},
        lower=(-1.0, -3.0),
        upper=(1.0, 3.0),
        slack=slack,
        beyond="both sides scale alike with the larger token and with u",
    )
