"""Makes the oracle importable: a package of its own, that shares no code with the rules."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest

OPEN = {
    "test_a_rule_contains_the_truth[gather-20]": "fills out of range are not enclosed as JAX's",
    "test_a_rule_contains_the_truth[gather-500]": "fills out of range are not enclosed as JAX's",
    "test_a_rule_contains_the_truth[sort-20]": "arrays sorted together",
    "test_a_rule_contains_the_truth[sort-500]": "arrays sorted together",
    "test_what_has_no_meaning_in_real_arithmetic_is_refused[<lambda>0]": "complex types",
    "test_what_has_no_meaning_in_real_arithmetic_is_refused[<lambda>1]": "complex types",
    "test_vectors_have_the_signs_that_jax_gives[shape2]": "signs of vectors of wide matrices",
    "test_a_power_that_may_be_whole_and_odd_reaches_below_zero[y1]": "unknown, where it is known",
    "test_a_power_that_may_be_whole_and_odd_reaches_below_zero[y2]": "unknown, where it is known",
    "test_numbers_that_are_none[entry6]": "a witness that is not refused",
    "test_names_that_exclude_each_other": "a witness that is not refused in one sentence",
}
"""What was known to be wrong in the rules when these tests were written; none may join it."""


def pytest_collection_modifyitems(items):
    """Known defects fail, and are seen to."""
    for item in items:
        if item.name in OPEN and "certify" in str(item.path):
            item.add_marker(pytest.mark.xfail(reason=OPEN[item.name], strict=False))
