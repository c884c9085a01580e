"""Autograd measures the left side of every bound: no closed form of a derivative supplies it."""

import contextlib
import functools
import inspect
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.statements import CONTROL, Size
from jaxbounds.falsification.measure import float64_on_cpu
from jaxbounds.multihead import calculus, loss, ntk, tied
from jaxbounds.multihead.statements import PAPER
from jaxbounds.multihead.statements.instances import loss_generic
from jaxbounds.papers import PAPERS, load_paper
from jaxbounds.seqlength import masking

CLOSED_FORMS = (
    *(f for _, f in inspect.getmembers(calculus, inspect.isfunction) if f.__module__ == calculus.__name__),
    loss.logistic_slope,
    loss.logistic_curvature,
    ntk.sample_gradients,
    ntk.ntk_gram,
    ntk.separator,
    tied.per_head,
    masking.gradient_l1,
)
"""The derivatives that the rooms write out."""

SMALL = {"multihead.cor1.paper-sizes": Size({"n": 3, "T": 2, "d": 2, "H": 2})}
"""Sizes at which a statement is looked at here, where its own take long."""
SLOW = {
    "multihead.cor5", "multihead.cor5.unbalanced", "multihead.cor5.gap", "multihead.onset",
    "multihead.cor2.heads", "multihead.cor2.rates",
}  # fmt: skip
"""Statements whose left sides are losses after a run on the host, none a derivative."""

BOUNDS = [s for s in PAPER.statements if s.is_bound and s.id not in SLOW]


def _instance(statement, size):
    if statement.id in SMALL:
        return jax.tree.map(np.asarray, loss_generic(jax.random.key(0), size))
    if statement.samplers:
        sampler = next(iter(statement.samplers.values()))
        return jax.tree.map(np.asarray, sampler(jax.random.key(0), size))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], statement.cases(size))


def _sides(statement, instance, size):
    if statement.host:
        return statement.evaluate(instance, size)
    return jax.jit(lambda one: statement.evaluate(one, size))(jax.tree.map(jnp.asarray, instance))


def _plain(function):
    return inspect.unwrap(function)


CODES = {_plain(f).__code__: f for f in CLOSED_FORMS if hasattr(_plain(f), "__code__")}


def _called(statement, size, instance):
    """The closed forms that `evaluate` calls."""
    seen = set()
    look = lambda frame, event, _: seen.add(CODES[frame.f_code]) if frame.f_code in CODES else None
    before = sys.getprofile()
    jax.clear_caches()
    sys.setprofile(look)
    try:
        if statement.host:
            statement.evaluate(instance, size)
        else:
            jax.eval_shape(lambda one: statement.evaluate(one, size), instance)
    finally:
        sys.setprofile(before)
    return seen


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


@functools.cache
def _forms_on_the_left(statement):
    """The forms whose left side is lost with the closed forms, and the closed forms."""
    with float64_on_cpu():
        size = SMALL.get(statement.id, Size(statement.sizes[0]))
        instance = _instance(statement, size)
        called = _called(statement, size, instance)
        if not called:
            return (), ()
        with _lost(called):
            sides = _sides(statement, instance, size)
        lost = [name for name, side in _left(sides).items() if np.any(np.isnan(side))]
    return tuple(lost), tuple(sorted(f.__name__ for f in called))


@pytest.mark.parametrize("statement", BOUNDS, ids=lambda s: s.id)
def test_no_closed_form_supplies_the_left_side_of_a_bound(statement):
    lost, called = _forms_on_the_left(statement)
    assert not lost, f"{statement.id}: the left side of {lost} comes from one of {called}"


def test_the_walk_sees_a_closed_form_on_the_left():
    """A statement as Corollary 1 (3) once was."""
    from dataclasses import replace

    from jaxbounds.claims.statements import Sides
    from jaxbounds.multihead.statements.loss_bounds import COROLLARY_1_3

    def by_closed_form(instance, size):
        params = {"U": instance["U"], "W": instance["W"]}
        data = {"X": instance["X"], "y": instance["y"]}
        values = jnp.linalg.eigvalsh(calculus.loss_hessian(params, data))
        return COROLLARY_1_3.evaluate(instance, size)._replace(lhs=-values[0])

    assert by_closed_form and Sides
    lost, called = _forms_on_the_left(replace(COROLLARY_1_3, evaluate=by_closed_form))
    assert lost == ("every form",) and "loss_hessian" in called


def test_a_host_statement_that_is_passed_over_calls_no_closed_form_by_name():
    """What `SLOW` names is run nowhere here: its module's text holds none of the names."""
    names = {f.__name__ for f in CLOSED_FORMS} - {"softmax_derivative"}
    for statement in PAPER.statements:
        if statement.id in SLOW:
            module = sys.modules[statement.evaluate.__module__]
            held = {name for name in names if vars(module).get(name) is not None}
            assert not held, f"{statement.id}: {held}"


def test_other_rooms_hold_one_closed_form_of_a_derivative():
    """Their statements compare differences; the one derivative is a form of an identity."""
    for paper in PAPERS:
        for statement in load_paper(paper).statements:
            if paper != "multihead" and statement.is_bound:
                assert not set(statement.judges) & set(CLOSED_FORMS), statement.id
