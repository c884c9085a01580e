"""How instances are moved until a hypothesis is missed."""

import pytest
from stubs import statement

from jaxbounds.claims.statements import Form, Size
from jaxbounds.falsification.hypothesis_coverage import never_missed

ONE = Size({"d": 1})


def _guards(flags, *forms, **options):
    claim = statement(hypotheses=flags, forms=forms or (Form(name="printed"),), **options)
    return never_missed(claim)


@pytest.mark.parametrize("host", [True, False])
def test_what_no_moved_instance_misses_is_named(host):
    flags = lambda i, s: {
        "x >= 0": i["x"] >= 0,
        "x < inf": i["x"] < float("inf"),
        "x = x": i["x"] == i["x"],
    }
    own = Form(
        name="derived", hypotheses=lambda i, s: {"x > -9e9": i["x"] > -9e9, "x < 2": i["x"] < 2}
    )
    found = _guards(flags, Form(name="printed"), own, host=host)
    assert found == ("x < inf", "x = x", "x > -9e9")
    assert _guards(None) == ()


@pytest.mark.parametrize(
    "sizes, left", [((1, 2), ()), ((2, 1), ()), ((1,), ("x < 2",)), ((2,), ())]
)
def test_one_size_at_which_it_is_missed_is_enough(sizes, left):
    # At size one nothing that is moved from here comes to the border.
    flags = lambda i, s: {"x < 2": (i["x"] < 2) | (s["d"] == 1), "x = x": i["x"] == i["x"]}
    assert _guards(flags, sizes=tuple({"d": d} for d in sizes)) == (*left, "x = x")


def test_what_the_functions_refuse_is_not_left_to_the_hypotheses():
    def flags(instance, size):
        if instance["x"] < 0 or instance["x"] > 5:
            raise ValueError("no such thing")
        return {"0 <= x": instance["x"] >= 0, "x <= 1": instance["x"] <= 1}

    assert _guards(flags) == ("0 <= x",)
