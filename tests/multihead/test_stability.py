"""Section 4's statements at reduced strength, and the arithmetic of the erratum E8 by hand."""

import math

import jax
import numpy as np
import pytest

from jaxbounds.falsify import falsify, measure, verification
from jaxbounds.statements import Budget, load_paper

STATEMENTS = {s.id: s for s in load_paper("multihead").statements}
BUDGET = Budget(samples=96, restarts=0, steps=0, batch=96)


@pytest.mark.parametrize("name", ["multihead.thm3", "multihead.lem11"])
def test_verdicts_are_as_expected_and_controls_rejected(name):
    for verdict in falsify(STATEMENTS[name], seed=1, budget=BUDGET):
        assert verdict.as_expected, (verdict.form, verdict.reason)
        assert verdict.control["status"] == "fails"
        assert verdict.instances >= 10


def test_the_counterexample_to_the_printed_bracket_is_scalar_logistic_regression():
    # Oracle: the stored instance is T = d = 1 with W = 0, so that every head is one number and
    # the loss is that of a scalar z = sqrt(H) u; two samples, one of which is left out.
    forms = STATEMENTS["multihead.eq21"]
    example = forms.form("printed").counterexample
    heads, step, root = sum(example["copies"]), example["step"], math.sqrt(sum(example["copies"]))
    target = example["U"][0][0][0]
    sigmoid = lambda z: 1 / (1 + math.exp(-z))
    loss = lambda z: math.log1p(math.exp(-z))
    distance, full, without, worst = target * root, 0.0, 0.0, {"printed": 0.0, "corrected": 0.0}
    weak = 2 * (3 * (3 * distance + target) + 1) / root
    for _ in range(example["K"]):
        gradient = 1 + 2 * abs(full) / root
        added = step * gradient * loss(full) / 2
        apart = abs(full - without)
        highest = 0.5 * loss(min(full, without))
        after = full + step * sigmoid(-full), without + step * sigmoid(-without) / 2
        moved = abs(after[0] - after[1])
        printed = (1 + step * weak) * highest * apart + added
        corrected = (1 + step * weak * highest) * apart + added
        worst["printed"] = max(worst["printed"], moved / printed)
        worst["corrected"] = max(worst["corrected"], moved / corrected)
        full, without = after
    assert heads == 30
    assert worst["printed"] > 2 > 1 > worst["corrected"]
    arrays = jax.tree.map(np.asarray, dict(example), is_leaf=lambda leaf: isinstance(leaf, list))
    with verification():
        measured = jax.jit(measure(forms))(arrays)
    names = [form.name for form in forms.forms]
    for name, ratio in worst.items():
        np.testing.assert_allclose(measured.value[names.index(name)], ratio, rtol=1e-6)
    assert measured.counted[names.index("printed")]
