"""What the README says about Section 3, at full search strength."""

from jaxbounds.falsify import falsify
from jaxbounds.multihead.statements import PAPER


def _forms(name):
    statement = next(s for s in PAPER.statements if s.id == name)
    return {verdict.form: verdict for verdict in falsify(statement)}


def test_the_search_attains_the_sharpened_hessian_bound():
    forms = _forms("multihead.prop1.2")
    assert 0.97 <= forms["sharpened S5"].worst_ratio <= 1 + 1e-9
    assert forms["printed"].worst_ratio <= 0.5


def test_weak_convexity_is_nearly_tight_after_sharpening():
    forms = _forms("multihead.cor1.3")
    assert forms["printed"].worst_ratio < 0.3
    assert 0.9 < forms["sharpened S6"].worst_ratio < 1
    for source in ("GD on DM1", "Adam on DM1", "GD on DM2", "Adam on DM2"):
        assert forms["printed"].sources[source]["instances"] > 0
