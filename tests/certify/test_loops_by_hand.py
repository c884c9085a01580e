"""Programs inside programs, step by step: what a loop in Python over small fractions gives.

The oracle is that loop, or the numbers it leads to, written out, with no rule of the interpreter.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax

from jaxbounds.certification import enclose
from jaxbounds.ground.jax_internals import ClosedJaxpr, Primitive, UnknownParametersError
from jaxbounds.programs.balls import loops
from jaxbounds.programs.balls.values import Flags, NotSupported, Undecided, as_flags, flags, reals

pytestmark = pytest.mark.usefixtures("x64")
X = np.array([1.0, 2.0, 4.0])


def numbers(value):
    """The entries of exact balls, or of plain numbers."""
    value = np.asarray(value)
    return [float(v) for v in value.ravel()]


def balls(*pairs):
    return reals((len(pairs),), (arb(mid, rad) for mid, rad in pairs))


@pytest.mark.parametrize(("reverse", "before"), [(False, [1.0, 3.0, 8.0]), (True, [8.0, 3.0, 1.0])])
def test_a_scan_goes_step_by_step_in_its_direction(reverse, before):
    """c -> 2 c + x from 1, over 1, 2, 4, or from behind over 4, 2, 1; each c before is kept."""
    given = X if not reverse else X[::-1].copy()

    def step(c, x):
        return 2 * c + x, (c, c + x)

    run = lambda x: lax.scan(step, jnp.asarray(1.0), x, reverse=reverse)
    ((carry, (kept, added)),) = enclose(run, given).ways
    assert numbers(carry) == [2 * 8 + 4]
    assert numbers(kept) == before
    assert numbers(added) == [a + b for a, b in zip(before, given)]


def test_a_scan_takes_what_is_fixed_carried_and_stacked_apart():
    """Two fixed, two carried, two sequences, one of whole numbers: each in its place."""

    def run(a, b, c, d, xs, ks):
        def step(state, item):
            c, d = state
            x, k = item
            return (c + a * x, d - b), (c, k + 1, x > a)

        return lax.scan(step, (c, d), (xs, ks))

    (((c, d), (before, counted, above)),) = enclose(
        run, np.array(2.0), np.array(3.0), np.array(5.0), np.array(7.0), X, np.array([10, 20, 30])
    ).ways
    assert (numbers(c), numbers(d)) == ([5 + 2 * 7], [7 - 9])
    assert numbers(before) == [5, 7, 11]
    assert np.asarray(counted).tolist() == [11, 21, 31]
    assert np.asarray(above).tolist() == [False, False, True]


def test_rows_of_a_sequence_are_arrays():
    table = np.arange(6.0).reshape(3, 2)
    run = lambda x: lax.scan(lambda c, row: (c + row, row[::-1]), jnp.zeros(2), x)
    ((total, turned),) = enclose(run, table).ways
    assert numbers(total) == [6, 9]
    assert turned.shape == (3, 2) and numbers(turned) == [1, 0, 3, 2, 5, 4]


def test_a_scan_of_no_steps():
    run = lambda x: lax.scan(lambda c, v: (c + v, (v, c > v)), jnp.asarray(3.0), x)
    ((carry, (kept, above)),) = enclose(run, np.zeros(0)).ways
    assert numbers(carry) == [3.0]
    assert (kept.shape, above.shape) == ((0,), (0,))
    assert np.asarray(above).dtype == bool


def test_what_is_open_in_a_step_is_open_in_the_stack():
    """Of [-1, 1] it is open whether it is positive, of the others it is not."""
    given = balls((0, 1), (2, 0), (-2, 0))
    run = lambda x: lax.scan(lambda c, v: (c, v > 0), jnp.asarray(0.0), x)
    ((_, above),) = enclose(run, given).ways
    assert isinstance(above, Flags) and as_flags(above).tolist() == [2, 1, 0]
    # And taken apart again.
    twice = lambda x: lax.scan(lambda c, v: (c, jnp.logical_not(v)), 0, run(x)[1])
    ((_, below),) = enclose(twice, given).ways
    assert as_flags(below).tolist() == [2, 0, 1]
    assert isinstance(loops._entry(flags([2, 1]), 1), np.ndarray)
    assert not isinstance(loops._entry(flags([2, 1]), 1), Flags)
    assert as_flags(loops._entry(flags([1, 2]), 1)) == 2


def test_keys_are_taken_one_by_one():
    keys = jax.random.split(jax.random.key(0), 3)
    assert loops._entry(keys, 1) == keys[1]


def halved(x, least):
    """Halve it until it is at most so large, and count."""
    go = lambda state: state[0] > least
    return lax.while_loop(go, lambda state: (state[0] / 2, state[1] + 1), (x, 0))


def test_a_loop_ends_where_its_condition_says():
    """9 -> 4.5 -> 2.25 -> 1.125."""
    ((value, count),) = enclose(halved, np.array(9.0), np.array(2.0)).ways
    assert (numbers(value), int(count)) == ([1.125], 3)
    ((value, count),) = enclose(halved, np.array(2.0), np.array(2.0)).ways
    assert (numbers(value), int(count)) == ([2.0], 0)


def test_a_loop_of_which_it_is_open_whether_it_goes_on_forks():
    """From [3, 5] down to 2: at most twice; after one halving it is [1.5, 2.5], after two below."""
    found = enclose(halved, balls((4, 1))[0:1].reshape(()), np.array(2.0)).ways
    ends = sorted((int(count), float(value.ravel()[0].mid())) for value, count in found)
    assert ends == [(1, 2.0), (2, 1.0)]


def test_what_a_loop_asks_and_what_it_does_have_numbers_of_their_own():
    """While x a < 40: x -> x b, of a = 2 and b = 3: 1, 3, 9, 27."""

    def run(x, a, b):
        return lax.while_loop(lambda v: v * a < 40, lambda v: v * b, x)

    (value,) = enclose(run, np.array(1.0), np.array(2.0), np.array(3.0)).ways
    assert numbers(value) == [27.0]


def test_a_loop_that_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr(loops, "LONGEST", 5)
    count = lambda x, end: lax.while_loop(lambda v: v < end, lambda v: v + 1, x)
    (value,) = enclose(count, np.array(0.0), np.array(4.0)).ways
    assert numbers(value) == [4.0]
    with pytest.raises(NotSupported, match="more than 5 steps"):
        enclose(count, np.array(0.0), np.array(5.0))


@pytest.mark.parametrize(("index", "value"), [(-3, 11.0), (0, 11.0), (1, 30.0), (2, 5.0), (9, 5.0)])
def test_a_branch_beyond_the_last_is_the_last(index, value):
    """10 + 1, 10 * 3, 10 / 2."""
    branches = [lambda x: x + 1, lambda x: x * 3, lambda x: x / 2]
    (found,) = enclose(
        lambda i, x: lax.switch(i, branches, x), np.array(index), np.array(10.0)
    ).ways
    assert numbers(found) == [value]


CALL = jax.make_jaxpr(jax.jit(lambda x: (x + 1, x + 2)))(1.0).jaxpr.eqns[0]


class Runs:
    """Stands for the interpreter: says which program is run; of a choice it takes the second."""

    def closed(self, program, *given, wanted=None):
        return [program, given, wanted]

    def jaxpr(self, program, consts, given, wanted):
        return [program, consts, given, wanted]

    def used(self, variable):
        return variable is CALL.outvars[1]

    def fork(self, ways, what):
        self.what = (ways, what)
        return 1


def equation(**params):
    return equation_of("call_me", **params)


def test_a_branch_that_is_open_forks():
    """|x| by a branch, of [-1, 3]: both, where the condition is open; of [1, 3] one."""
    size = lambda x: lax.cond(x > 0, lambda v: v, lambda v: -v, x)
    ways = enclose(size, balls((1, 2)).reshape(())).ways
    assert sorted(float(v.ravel()[0].mid()) for v in ways) == [-1, 1]
    assert len(enclose(size, balls((2, 1)).reshape(())).ways) == 1


def equation_of(name, **params):
    return CALL.replace(primitive=Primitive(name), params=params)


@pytest.mark.parametrize("name, held", [
    ("jit", "jaxpr"), ("checkpoint", "jaxpr"), ("custom_jvp_call", "call_jaxpr"),
    ("closed_call", "call_jaxpr"),
])  # fmt: skip
def test_a_call_runs_the_program_it_holds(name, held):
    """With its constants where it has some; of its results those that are used."""
    closed = jax.make_jaxpr(lambda x: (x, x + 1))(1.0)
    found = loops.call(equation_of(name, **{held: closed}), [3, 4], Runs())
    assert found == [closed, (3, 4), (False, True)]
    found = loops.call(equation_of(name, **{held: closed.jaxpr}), [3, 4], Runs())
    alone = isinstance(closed.jaxpr, ClosedJaxpr)  # from JAX 0.12 on a program has its constants
    wanted = (False, True)
    assert found == ([closed, (3, 4), wanted] if alone else [closed.jaxpr, [], [3, 4], wanted])


def test_a_call_of_nothing_is_refused():
    with pytest.raises(UnknownParametersError, match=r"jit has unknown parameters=.*other"):
        loops.call(equation_of("jit", other=3), [1], Runs())


@jax.custom_jvp
def of_its_own(x):
    return 2 * x, jnp.sqrt(x)


of_its_own.defjvps(lambda d, out, x: (d, d))

CALLS = {
    "jit": jax.jit(lambda x: (2 * x, jnp.sqrt(x))),
    "checkpoint": jax.checkpoint(lambda x: (2 * x, jnp.sqrt(x))),
    "of a derivative of its own": of_its_own,
}


@pytest.mark.parametrize("name", CALLS)
def test_programs_that_are_called(name):
    ((twice, root),) = enclose(CALLS[name], np.array(9.0)).ways
    assert (numbers(twice), numbers(root)) == ([18.0], [3.0])
    (twice,) = enclose(lambda x: CALLS[name](x)[0], np.array(9.0)).ways
    assert numbers(twice) == [18.0]


def test_what_changes_no_value():
    given = [arb(1), arb(2)]
    assert loops.same(equation(), given, None) == given
    run = lambda x: lax.optimization_barrier((lax.stop_gradient(x), jax.device_put(x + 1)))
    (found,) = enclose(run, np.array(2.0)).ways
    assert [numbers(v) for v in found] == [[2.0], [3.0]]


def test_too_many_forks_are_undecided():
    """Each of nine steps leaves open whether it adds."""
    given = balls(*[(0, 1)] * 9)
    step = lambda c, v: (lax.cond(v > 0, lambda: c + 1, lambda: c), c)
    with pytest.raises(Undecided, match="too many"):
        enclose(lambda x: lax.scan(step, 0, x), given)
