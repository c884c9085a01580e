"""No wrong word near the edges: tiny violations, float32, noisy limits, zeros, infinities.

Each case is a claim that a user could write; a fresh reader found an earlier word wrong.
"""

import math

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.report.remarks import remarks

UNIT = {"k": jb.Box(0, 1)}
PAIR = {"p": jb.Simplex("n"), "q": jb.Simplex("n")}
FEW = jb.Budget(samples=128, restarts=4, steps=30)


@pytest.fixture(autouse=True)
def as_a_user():
    """Types and ranks are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _distance(p, q):
    return 0.5 * jnp.abs(p - q).sum()


def _of(*given, over=UNIT, sizes=None, **named):
    claim = jb.claim("mine.x", *given, over=over, sizes=sizes, budget=FEW, **named)
    return next(v for v in jb.falsify(claim) if v.form == "printed")


HIDDEN = {
    "a number": (lambda k: k, "<=", 1 - 5e-10, {}),
    "a named case": (lambda k: k, "<=", 1 - 5e-10, {"equality": "k = 1"}),
    "at least": (lambda k: 2 - k, ">=", 1 + 5e-10, {"equality": "k = 1"}),
    "two formulas": (lambda k: 1 / (1 + k), "<=", lambda k: 1 - k,
                     {"over": {"k": jb.Box(0, 1e-5)}, "equality": "k = 0"}),
    "a simplex": (_distance, "<=", 1 - 9e-10, {"over": PAIR, "sizes": {"n": (2, 3)}}),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
def test_a_false_claim_does_not_hold_by_its_tolerance(name):
    *sides, named = HIDDEN[name]
    found = _of(*sides, **named)
    assert found.status == "inconclusive", found.reason
    assert "less than tolerance=1e-09" in found.reason and "Try tolerance=" in found.reason


def test_the_tolerance_that_the_reason_names_refutes_the_claim():
    reason = _of(lambda k: k, "<=", 1 - 5e-10).reason
    least = float(reason.rpartition("tolerance=")[2])
    assert _of(lambda k: k, "<=", 1 - 5e-10, tolerance=least).status == "fails"


def test_a_true_claim_with_equality_still_holds():
    found = _of(_distance, "<=", 1, over=PAIR, sizes={"n": (2, 3)})
    assert (found.status, found.evidence) == ("holds", "attained")


NARROW = {
    "cancels": (lambda k: 1 - 1 / (1 + k.astype(jnp.float32)), "<=", lambda k: k, "inconclusive"),
    "cancels in a sum": (lambda k: (k.astype(jnp.float32) + 1e4) - 1e4, "<=", lambda k: 1.001 * k,
                         "inconclusive"),
    "is false": (lambda k: 1 + k.astype(jnp.float32), "<=", lambda k: 1.5 + 0 * k, "fails"),
}  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_the_rounding_of_float32_refutes_no_claim(name):
    *sides, status = NARROW[name]
    assert _of(*sides).status == status


def _circle(n):
    return n**2 * (1 - jnp.cos(2 * jnp.pi / n))


LIMITS = {
    "a cancelling difference": (_circle, 2 * math.pi**2, "n", [1e3, 1e4, 1e5, 1e6, 1e7],
                                "inconclusive"),
    "at moderate sizes": (_circle, 2 * math.pi**2, "n", [8, 32, 128, 512, 2048], "consistent"),
    "Python's numbers": (lambda n: (1 + 1 / n) ** n, math.e, "n", [1e3, 1e6, 1e9, 1e12, 1e15],
                         "inconclusive"),
    "a difference quotient": (lambda h: (jnp.exp(h) - 1) / h, 1, "h",
                              [10.0**-j for j in range(1, 13)], "consistent"),
    "a false quotient": (lambda h: (jnp.exp(h) - 1) / h, 1.001, "h",
                         [10.0**-j for j in range(1, 13)], "inconsistent"),
    "a crossed value": (lambda h: 1 / (1 + h), 0.98, "h", [10.0**-j for j in range(1, 9)],
                        "inconsistent"),
    "a crossed value far out": (_circle, 19.3, "n", [8, 32, 128, 512, 2048], "inconsistent"),
    "a slow decay that first rises": (lambda n: (1 - 1 / n) / jnp.log(jnp.log(n + 20)), 0, "n",
                                      [10, 1e2, 1e3, 1e4, 1e5, 1e6], "inconclusive"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_not_decided_by_rounding_nor_by_its_first_sizes(name):
    side, value, axis, sizes, status = LIMITS[name]
    found = _of(side, "->", value, over={}, sizes={axis: sizes})
    assert found.status == status, found.reason


ZEROS = {
    "a square": (lambda k: k**2, ">=", 0, {"equality": "k = 0"}),
    "a negative number": (lambda k: -k, "<=", lambda k: 0 * k, {"equality": "k = 0"}),
    "without a named case": (lambda k: -k, "<=", 0, {}),
    "zero on the left": (lambda k: 0 * k, "<=", lambda k: k, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ZEROS)
def test_a_bound_by_zero_holds_with_and_without_its_equality_case(name):
    *sides, named = ZEROS[name]
    assert _of(*sides, **named).status == "holds"


def test_a_named_case_that_no_instance_meets_is_still_told():
    found = _of(lambda k: 1 + k, ">=", 0, equality="k = 0")
    assert "no instance came near the named equality case" in found.reason


def _laplacian(a):
    w = jnp.triu(a, 1)
    return jnp.diag((w + w.T).sum(0)) - w - w.T


@pytest.mark.slow_cases("1")
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_an_equality_at_one_size_is_not_called_approached(seed):
    largest = lambda a: jnp.linalg.eigvalsh(_laplacian(a))[-1]
    twice = lambda a: 2 * jnp.max(jnp.diag(_laplacian(a)))
    over = {"a": jb.Box(0, 1, ("n", "n"))}
    claim = jb.claim("mine.x", largest, "<=", twice, over=over, sizes={"n": (2, 3)}, budget=FEW)
    (found,) = jb.falsify(claim, seed=seed)
    assert found.status == "holds" and found.evidence != "approached", found.reason


def test_two_infinite_sides_are_called_infinite():
    large = {"x": jb.Box(1e200, 2e200)}
    found = _of(lambda x: x**2, "<=", lambda x: 2 * x**2, over=large)
    assert found.reason.startswith("both sides are infinite on ")
    found = _of(lambda x: 1 / x, "<=", lambda x: 2 / x, over={"x": jb.Box(0, 1)})
    assert "both sides are infinite" in found.reason and "an entry of x is 0" in found.reason
    assert 'jnp.all(i["x"] > 0)' in found.reason and "xlogy" not in found.reason


def test_advice_against_nan_excludes_the_instances_with_nan():
    found = _of(lambda k: jnp.sqrt(1 - 2 * k), "<=", 1)
    assert "k>0" not in found.reason and "such as k = " in found.reason
    found = _of(lambda x: jnp.sqrt(x), "<=", 2, over={"x": jb.Box(-1, 1)})
    assert "Try a hypothesis that excludes them" in found.reason
    assert 'jnp.all(i["x"] > 0)' in found.reason


def test_a_promised_entry_that_no_point_can_take_is_named():
    found = _of(lambda x: x, "<=", 2.0, over={"a": jb.OneOf(0.1, 0.9)},
                there_is={"x": jb.OneOf(0.0, 1.0)},
                hypotheses=lambda a, x: {"a x >= .5": a * x >= 0.5})  # fmt: skip
    assert found.status == "inconclusive" and "found no x that meets" in found.reason


def test_a_number_is_compared_with_each_entry_of_the_other_side():
    residual = lambda p: p / p.sum() - p
    found = _of(residual, "=", 0.0, over={"p": jb.Simplex("n")}, sizes={"n": (2, 3)}, false=[0.1])
    assert found.status == "holds", found.reason
    assert _of(lambda k, x: x - k, "=", 0.0, over=UNIT | {"x": jb.Box(0, 1, 3)}).status == "fails"


def test_an_id_with_capitals_gets_an_id_that_fits():
    with pytest.raises(ValueError, match=r"Try 'mine\.negh'"):
        jb.claim("mine.negH", 1.0, "<=", 2.0, over={})


def test_a_reason_names_no_size_where_there_is_none():
    constant = {"k": jb.Ball(1, 0)}
    found = _of(lambda k: jnp.sum(k), "<=", lambda k: jnp.sum(k) + 1, over=constant)
    assert "no entries, so all 128 draws are equal" in found.reason


STRICT = {
    "far below": (lambda k: k, "<", 2.0, {}, "holds"),
    "at an infinite end": (lambda x: jnp.tanh(x), "<", 1.0, {"over": {"x": jb.Reals()}}, "holds"),
    "equal at an end": (lambda k: k, "<", 1.0, {}, "fails"),
    "equal at zero": (lambda k: -k, "<", 0.0, {}, "fails"),
    "far above zero": (lambda x: x**2 + 10, ">", 0.0, {"over": {"x": jb.Reals()}}, "holds"),
    "a whole number": (lambda n: n, "<", 5, {"over": {"n": jb.Integers(0, 5)}}, "fails"),
    "above zero": (lambda k: 1 + k, ">", 0.0, {}, "holds"),
    "at least zero": (lambda k: k**2, ">", 0.0, {}, "fails"),
    "zero at one point": (lambda k: (k - 1 / 3) ** 2, ">", 0.0, {}, "fails"),
    "zero at a root": (lambda k: (k**2 - 1 / 3) ** 2, ">", 0.0, {}, "inconclusive"),
    "an equality": (lambda k: 2 * k, "<", lambda k: k + k, {}, "fails"),
    "a flat top": (lambda x: x * (1 - x), "<", 0.25, {"over": {"x": jb.Box(0, 1, ())}}, "fails"),
    "two zeros": (lambda k: 0 * k, "<", lambda k: -0.0 * k, {}, "fails"),
    "false": (lambda k: 2 * k, "<", lambda k: k + 0.5, {}, "fails"),
}  # fmt: skip


@pytest.mark.parametrize("name", STRICT)
def test_a_strict_inequality_holds_only_if_the_sides_differ_everywhere(name):
    *sides, named, status = STRICT[name]
    found = _of(*sides, **named)
    assert found.status == status, found.reason
    if status == "fails" and name != "false":
        assert "the inequality is strict, and both sides are equal at " in found.reason
    if status == "inconclusive":
        assert "the inequality is strict, but" in found.reason and "Try the rel" in found.reason


def test_no_erratum_is_proposed_where_floats_overflow(tmp_path):
    over = {"x": jb.Box(0, 1, ())}
    claim = jb.claim(
        "mine.exp", lambda x: jnp.exp(2e4 + x), "<=", lambda x: jnp.exp(1e4 + x), over=over
    )
    paper = jb.Paper(id="mine", title="Mine", statements=(claim,))
    run = jb.verify(paper, out=str(tmp_path / "out"), jobs=1)
    (verdict,) = run
    lines = " ".join(remarks([verdict], lambda name: tmp_path / "out" / name, ()))
    assert verdict.status == "fails" and "Try the logarithms" in lines and "nan" not in lines


def test_a_strict_inequality_has_no_equality_case():
    with pytest.raises(ValueError, match="has no equality case"):
        jb.claim("mine.x", lambda k: k, "<", 2.0, over=UNIT, equality="k = 1")
    claim = jb.claim("mine.x", lambda k: k, "<", 2.0, over=UNIT)
    assert claim.strict and claim.relation == "<=" and claim.formula == "k < 2.0"


@pytest.mark.parametrize("radius", [1e150, 1e155])
def test_equality_at_every_scale_is_not_called_approached(radius):
    over = {"x": jb.Box(-radius, radius, 2)}
    found = _of(lambda x: jnp.max(jnp.abs(x)), "<=", lambda x: jnp.sqrt(jnp.sum(x**2)), over=over)
    assert (found.status, found.evidence) == ("holds", "attained"), found.reason


def test_a_side_that_overflows_everywhere_is_not_called_vacuous():
    over = {"x": jb.Box(1e160, 1e200, 2)}
    found = _of(lambda x: jnp.max(jnp.abs(x)), "<=", lambda x: jnp.sqrt(jnp.sum(x**2)), over=over)
    assert found.status == "inconclusive" and "perhaps by overflow. Try" in found.reason


@pytest.mark.parametrize("name", ["a ratio", "one point"])
def test_a_side_that_is_nan_at_zero_does_not_hold(name):
    side = {
        "a ratio": lambda x: jnp.sum(jnp.abs(x)) / jnp.sqrt(jnp.sum(x**2)),
        "one point": lambda x: jnp.where(jnp.all(x == 0), jnp.nan, 2 + x[0] ** 2),
    }[name]
    found = _of(side, ">=", 1, over={"x": jb.Ball(1, 2)})
    assert found.status == "inconclusive" and "an entry of x is 0" in found.reason
    outside = lambda x: {"x!=0": jnp.any(x != 0)}
    assert _of(side, ">=", 1, over={"x": jb.Ball(1, 2)}, hypotheses=outside).status == "holds"


def test_a_number_without_a_formula_costs_only_the_file_of_the_theorem():
    values = lambda A: jnp.linalg.svd(A, compute_uv=False)
    twin = lambda A: jnp.sum(values(A) ** 2)
    claim = jb.claim("mine.x", lambda A: values(A)[1], "<=", lambda A: values(A)[0],
                     over={"A": jb.Reals((2, 2))}, false=[twin], budget=FEW)  # fmt: skip
    printed, false = jb.verify(claim, jobs=1, certify=True)
    assert (printed.status, false.status) == ("holds", "fails"), false.reason


@pytest.mark.slow_cases(
    *(
        f"{form}-{d}"
        for form in ("0 <= f", "-f <= 0", "f >= -below/2")
        for d in ("1-1e-06", "12-0.001")
    )
)
@pytest.mark.parametrize("d, below", [(1, 1e-6), (5, 1e-4), (12, 1e-3)])
@pytest.mark.parametrize("form", ["f >= 0", "0 <= f", "-f <= 0", "f >= -below/2"])
def test_a_bound_by_zero_is_searched_along_the_difference(d, below, form):
    """The ratio of zero to f is zero wherever f is positive, so the ratio leads no search."""
    f = lambda x: jnp.sum((x - 1 / 3) ** 2) - below
    sides = {
        "f >= 0": (f, ">=", 0.0), "0 <= f": (0.0, "<=", f), "-f <= 0": (lambda x: -f(x), "<=", 0.0),
        "f >= -below/2": (f, ">=", -below / 2),
    }[form]  # fmt: skip
    found = _of(*sides, over={"x": jb.Box(0, 1, d)})
    assert found.status == "fails", found.reason


def test_the_certificate_of_a_strict_claim_with_equal_sides_does_not_call_it_true():
    claim = jb.claim("mine.five", lambda n: n, "<", 5, over={"n": jb.Integers(0, 5)})
    (found,) = jb.verify(claim, jobs=1, fresh=True, certify=True)
    assert found.status == "fails" and found.certificate["word"] == "undecided"
    assert "violates the strict inequality" in found.certificate["reason"]
