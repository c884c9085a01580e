"""Functions are the same where their code and what it refers to are: counted by hand."""

from functools import partial

import numpy as np

from jaxbounds.curvature import Composite
from jaxbounds.curvature.sameness import meaning

DATA = np.ones(3)


def helper(x):
    return x * DATA


def through_a_helper(x):
    return sum(helper(x))


def scaled(x, scale):
    return x * scale


class Model:
    def apply(self, x):
        return x


def maker(constant):
    return lambda x: x + constant


def test_what_is_the_same():
    model, array = Model(), np.ones(2)
    assert meaning(maker(2)) == meaning(maker(2))
    assert hash(meaning(maker(2))) == hash(meaning(maker(2)))
    assert meaning(maker(array)) == meaning(maker(array))
    assert meaning(model.apply) == meaning(model.apply)
    assert meaning(partial(scaled, scale=2)) == meaning(partial(scaled, scale=2))
    assert meaning(Composite(helper, scaled)) == meaning(Composite(helper, scaled))


def test_what_is_not(monkeypatch):
    one, other = np.ones(2), np.ones(2)
    different = [
        maker(2), maker(2.0), maker(True), maker(one), maker(other), maker((one, one)),
        maker((one, other)), maker(None), maker(maker(1)), maker(maker(2)), scaled, helper,
        partial(scaled, scale=2), partial(scaled, scale=3), partial(scaled, 2), Model().apply,
        Model().apply, Composite(helper, scaled), Composite(scaled, helper), lambda x: x,
        lambda x, y=1: x, lambda x, y=2: x, lambda x, *, y=2: x,
    ]  # fmt: skip
    assert len({meaning(function) for function in different}) == len(different)
    before = meaning(through_a_helper)
    assert meaning(through_a_helper) == before
    monkeypatch.setitem(globals(), "DATA", np.ones(3))
    assert meaning(through_a_helper) != before


def test_functions_that_call_themselves():
    def fall(n):
        return n and fall(n - 1)

    def fall_again(n):
        return n and fall(n - 1)

    assert meaning(fall) == meaning(fall) != meaning(fall_again)
