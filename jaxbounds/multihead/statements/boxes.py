"""Boxes on which forms are proved: charts from a few numbers to instances."""

import jax
import jax.numpy as jnp

from jaxbounds.statements import Domain, Instance, Size


def _one_margin(point: jax.Array, size: Size) -> Instance:
    """The model is u x at x = 1: its margin is the coordinate."""
    one = jnp.ones((1, 1, 1))
    return {"X": one, "y": jnp.array([1]), "U": point.reshape(1, 1, 1), "W": 0.0 * one}


def _two_margins(point: jax.Array, size: Size) -> Instance:
    """Two data, one on each axis, and U = (t_1, t_2)."""
    tokens = jnp.eye(2)[:, None, :]
    zero = jnp.zeros((1, 2, 2))
    return {"X": tokens, "y": jnp.array([1, 1]), "U": point.reshape(1, 1, 2), "W": zero}


def one_margin(largest: float, /, *, slack: float = 0.0, beyond: str = "") -> Domain:
    """One datum whose margin t is anything up to `largest` in size."""
    return Domain(
        name=f"n = 1, margin t, |t| <= {largest:g}",
        chart=_one_margin,
        size={"n": 1, "T": 1, "d": 1, "H": 1},
        lower=(-largest,),
        upper=(largest,),
        slack=slack,
        beyond=beyond,
    )


def two_margins(largest: float, /, *, slack: float = 0.0, beyond: str = "") -> Domain:
    """Two data whose margins are independent."""
    return Domain(
        name=f"n = 2, margins t_1, t_2, |t_i| <= {largest:g}",
        chart=_two_margins,
        size={"n": 2, "T": 1, "d": 2, "H": 1},
        lower=(-largest,) * 2,
        upper=(largest,) * 2,
        slack=slack,
        beyond=beyond,
    )


def signs(outcomes: int, /, *, slack: float) -> Domain:
    """kappa_3 at A = B = (1, -1, .., -1) and any law with logits within 6, or 4, of the last."""
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
    """Proposition 7 at B_Phi = g_0 = 1 and epsilon = .01; B_2 and R vary."""
    one = jnp.ones(())
    return {"B": point[0], "b": one, "R": point[1], "g": one, "eps": 0.01 * one}


def scores(point: jax.Array, size: Size) -> Instance:
    """Lemma 18 for three tokens of relevance 2 + a, b, 0; epsilon = e^-2, L = 1."""
    relevance = jnp.stack([2.0 + point[0], point[1], 0.0 * point[0]])
    at = jnp.asarray(-2.0)
    return {"r": relevance, "L": jnp.asarray(1), "log_eps": at, "extra": point[2]}


def two_logits(*, slack: float) -> Domain:
    """The softmax map at logits (t, 0)."""
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
    """Two tokens on a line, 1 and b, u = 1, and any scores within 6 of another."""

    def chart(point: jax.Array, size: Size) -> Instance:
        one = jnp.ones((1, 1))
        tokens = jnp.stack([1.0, point[0]])[:, None]
        return {"X": tokens, "U": jnp.ones((2, 1)), "W": point[1] * one}

    return Domain(
        name="T = 2, d = 1, tokens 1 and b, u = 1, |b| <= 1, |W| <= 3",
        chart=chart,
        size={"T": 2, "d": 1},
        lower=(-1.0, -3.0),
        upper=(1.0, 3.0),
        slack=slack,
        beyond="both sides scale alike with the larger token and with u",
    )
