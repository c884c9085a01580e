"""A form's own hypothesis stands beside the statement's, also where both have one name.

What counts is seen from two comparisons with numbers that stand here.
"""

import numpy as np
import pytest
from stubs import statement

from jaxbounds.claims.statements import Form, Size
from jaxbounds.falsification.measure import measure


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("of_statement", "of_form"), [(0.0, -5.0), (-5.0, 0.0), (-5.0, -5.0)])
def test_a_name_that_two_hypotheses_share_hides_none(of_statement, of_form):
    """x > of_statement and x > of_form, at -1 and at 1; the control has the statement's alone."""
    above = lambda least: lambda i, s: {"large": i["x"] > least}
    form = Form(name="printed", hypotheses=above(of_form))
    claim = statement(hypotheses=above(of_statement), forms=(form,))
    for x in (-1.0, 1.0):
        found = measure(claim, Size({"d": 1}))({"x": np.array(x)})
        assert found.met.tolist() == [x > max(of_statement, of_form), x > of_statement]


@pytest.mark.usefixtures("x64")
def test_a_hypothesis_called_finite_is_one():
    """x > 0 under the name of what is asked of every instance."""
    claim = statement(hypotheses=lambda i, s: {"finite": i["x"] > 0})
    counts = [measure(claim, Size({"d": 1}))({"x": np.array(x)}).met.all() for x in (-1.0, 1.0)]
    assert counts == [False, True]
    assert not measure(claim, Size({"d": 1}))({"x": np.array(np.inf)}).met.any()
