"""Autograd measures the left side of every bound: no closed form of a derivative supplies it."""

import contextlib
import inspect
import types
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.statements import CONTROL, Size
from jaxbounds.falsification.called import may_call
from jaxbounds.falsification.measure import float64_on_cpu
from jaxbounds.multihead import calculus, loss, ntk, tied
from jaxbounds.multihead.statements import PAPER
from jaxbounds.multihead.statements.instances import loss_generic
from jaxbounds.multihead.statements.loss_bounds import COROLLARY_1_3
from jaxbounds.papers import PAPERS, load_paper
from jaxbounds.seqlength import masking

CLOSED_FORMS = (
    *(
        f
        for _, f in inspect.getmembers(calculus, inspect.isfunction)
        if f.__module__ == calculus.__name__
    ),
    loss.logistic_slope,
    loss.logistic_curvature,
    ntk.sample_gradients,
    ntk.ntk_gram,
    ntk.separator,
    tied.per_head,
    masking.gradient_l1,
)
"""The derivatives that the rooms write out."""

SMALL = {"multihead.cor1.sizes": Size({"n": 3, "T": 2, "d": 2, "H": 2})}
"""Sizes at which a statement is looked at here, where its own take long."""

CHOSEN_BY = {
    "multihead.cor5": {"cumulants", "head_gradient", "ntk_gram", "sample_gradients", "separator"},
}
"""Closed forms that choose a problem: the margin of theta*, certified by a duality gap, says how
many heads and which step the measured run has. The run itself is autograd's."""

BOUNDS = [s for s in PAPER.statements if s.is_bound]


def _instance(statement, size):
    if statement.id in SMALL:
        sampler = loss_generic
    elif statement.samplers:
        sampler = next(iter(statement.samplers.values()))
    else:
        return jax.tree.map(lambda leaf: np.asarray(leaf)[0], statement.cases(size))
    return jax.tree.map(np.asarray, jax.jit(lambda key: sampler(key, size))(jax.random.key(0)))


def _sides(statement, instance, size):
    if statement.host:
        return statement.evaluate(instance, size)
    return jax.jit(lambda one: statement.evaluate(one, size))(jax.tree.map(jnp.asarray, instance))


def _plain(function):
    return inspect.unwrap(function)


@contextlib.contextmanager
def _lost(functions):
    """For the length of a `with` block the functions give NaN."""
    kept = {}
    for function in functions:
        plain = _plain(function)
        kept[plain] = plain.__code__, plain.__closure__
        copy = types.FunctionType(plain.__code__, plain.__globals__, plain.__name__,
                                  plain.__defaults__, plain.__closure__)  # fmt: skip
        plain.__globals__[f"_kept_{plain.__name__}"] = copy
        text = (
            f"def {plain.__name__}(*given, **named):\n"
            f"    import jax, jax.numpy as jnp\n"
            f"    lose = lambda leaf: leaf * jnp.nan if jnp.issubdtype(jnp.result_type(leaf), "
            f"jnp.floating) else leaf\n"
            f"    return jax.tree.map(lose, _kept_{plain.__name__}(*given, **named))\n"
        )
        made = {}
        exec(text, plain.__globals__, made)
        plain.__code__ = made[plain.__name__].__code__
    jax.clear_caches()
    try:
        yield
    finally:
        for plain, (code, _) in kept.items():
            plain.__code__ = code
            del plain.__globals__[f"_kept_{plain.__name__}"]
        jax.clear_caches()


def _left(sides):
    return {name: side for name, side in dict(sides.lhs).items() if name != CONTROL} if isinstance(
        sides.lhs, dict
    ) else {"every form": sides.lhs}  # fmt: skip


def _forms_on_the_left(statement):
    """The forms whose left side is lost with the closed forms, and the closed forms."""
    called = may_call(statement.evaluate, CLOSED_FORMS, room=("jaxbounds", __name__))
    called -= {f for f in called if f.__name__ in CHOSEN_BY.get(statement.id, ())}
    if not called:
        return (), ()
    with float64_on_cpu():
        size = SMALL.get(statement.id, Size(statement.sizes[0]))
        instance = _instance(statement, size)
        with _lost(called):
            sides = _sides(statement, instance, size)
        lost = [name for name, side in _left(sides).items() if np.any(np.isnan(side))]
    return tuple(lost), tuple(sorted(f.__name__ for f in called))


@pytest.mark.slow_cases("multihead.cor1.sizes", "multihead.selfbounded.model")
@pytest.mark.parametrize("statement", BOUNDS, ids=lambda s: s.id)
def test_no_closed_form_supplies_the_left_side_of_a_bound(statement):
    lost, called = _forms_on_the_left(statement)
    assert not lost, f"{statement.id}: the left side of {lost} comes from one of {called}"


def test_the_walk_sees_a_closed_form_on_the_left():
    """A statement as Corollary 1 (3) once was."""

    def by_closed_form(instance, size):
        params = {"U": instance["U"], "W": instance["W"]}
        data = {"X": instance["X"], "y": instance["y"]}
        values = jnp.linalg.eigvalsh(calculus.loss_hessian(params, data))
        return COROLLARY_1_3.evaluate(instance, size)._replace(lhs=-values[0])

    lost, called = _forms_on_the_left(replace(COROLLARY_1_3, evaluate=by_closed_form))
    assert lost == ("every form",) and "loss_hessian" in called


def test_other_rooms_hold_one_closed_form_of_a_derivative():
    """Their statements compare differences; the one derivative is a form of an identity."""
    for paper in PAPERS:
        for statement in load_paper(paper).statements:
            if paper != "multihead" and statement.is_bound:
                assert not set(statement.judges) & set(CLOSED_FORMS), statement.id
