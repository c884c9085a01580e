"""The first mistakes of a new user: each message names the argument and something to try."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.falsification.second_opinion import cure
from jaxbounds.report.items import coverage

U = {"k": jb.Box(0, 1)}
SMALL = jb.Budget(samples=16, restarts=1, steps=5)


def own(k):
    return k


def made(lhs=own, relation="<=", rhs=2.0, over=U, **given):
    return jb.claim("w.a", lhs, relation, rhs, over=over, budget=SMALL, **given)


@pytest.mark.parametrize("relation, words", [
    ("≤", "Try '<='$"), ("≥", "Try '>='$"), ("=<", "Try '<='$"), ("=>", "Try '>='$"),
    ("==", "Try '='$"), ("→", "Try '->'$"), ("!=", "Try one of '<=', '>=', '=', '->', '<', '>'$"),
    (None, "Try one of"),
])  # fmt: skip
def test_the_words_for_a_relation_keep_its_direction(relation, words):
    with pytest.raises(ValueError, match=words):
        made(relation=relation)
    if relation not in ("→", "=="):
        with pytest.raises(ValueError, match=words.partition("'=', '->'")[0].rstrip("$, ")):
            jb.find_violation(own, 2.0, over=U, relation=relation)


@pytest.mark.parametrize("rhs, words", [
    (True, "Try 1.0"), (False, "Try 0.0"), ("2.5", "Try 2.5"), (jnp.asarray(3), "Try 3.0"),
    ([1], "Try a number, or lambda"),
])  # fmt: skip
def test_the_words_for_a_side_keep_its_value(rhs, words):
    with pytest.raises(TypeError, match=words):
        made(rhs=rhs)


@pytest.mark.parametrize("given, words", [
    ({"lhs": lambda x: jnp.sum(x), "over": {"x": jb.Box(0, 1, "n")}},
     r"names no size='n'. Try sizes=\{\"n\": \(2, 4\)\}"),
    ({"hypotheses": lambda k: jnp.all(k > 0)},
     r"hypotheses returned an array, expected a dict .* Try hypotheses=lambda k: \{"),
    ({"hypotheses": lambda k: None}, "hypotheses returned None, expected a dict"),
    ({"lhs": lambda k: None},
     "statement 'w.a': the left side of 'printed' returned value=None, expected a number"),
    ({"rhs": lambda k: jnp.ones(3) @ jnp.ones(2) * k},
     "statement 'w.a': the right side of 'printed' raised TypeError: .* Try to call the function"),
    ({"rhs": lambda k: k.no_such}, "the right side of 'printed' raised AttributeError"),
    ({"false": [lambda k: None]}, "the right side of 'false None' returned value=None"),
    ({"lhs": lambda x: jb.supremum(lambda y: y @ x, {"y": jb.Ball(1, 2)}, size={}),
      "over": {"x": jb.Ball(1, 2)}},
     r"but estimates=\{\} does not name this side of the claim. Try estimates=\{\"lhs\": "),
])  # fmt: skip
def test_a_mistake_inside_a_claim_is_named(given, words):
    with pytest.raises((ValueError, TypeError, AttributeError), match=words):
        jb.falsify(made(**given))


BALL = jb.Ball(1, "d")
AT_D = {"d": (1, 3)}


def _norm(x):
    return jnp.sqrt(jnp.sum(x**2))


@pytest.mark.parametrize("over, words", [
    (BALL, r"Try over=\{'x': jb.Ball\(R=1, shape='d', p=2\)\}"),
    ([BALL], r"Try over=\{'x': jb.Ball\(R=1, shape='d', p=2\)\}"),
    ([BALL, BALL], r"Try over=\{'x': jb.Ball\(1, 'd'\)\}"), (None, "over=None: expected a dict"),
    ("x", "over='x': expected a dict from the names of arguments to sets"),
])  # fmt: skip
def test_sets_without_names_are_refused_with_their_names(over, words):
    with pytest.raises(TypeError, match=f"statement 'w.a': .*{words}"):
        made(_norm, over=over, sizes={"d": 2})
    with pytest.raises(TypeError, match=words):
        jb.find_violation(_norm, 1.0, over=over, sizes={"d": 2})


def test_other_sets_without_names_are_refused_with_their_names():
    gap = lambda k, y: abs(k - y)
    with pytest.raises(TypeError, match=r"there_is=.* Try there_is=\{'y': jb.Box\("):
        made(gap, there_is=jb.Box(0, 1))
    with pytest.raises(TypeError, match=r"Try over=\{'u': jb.Ball\("):
        jb.supremum(lambda u: u @ u, BALL, size={"d": 2})
    both = "jb.Box(lo=0, hi=1, shape=())"
    with pytest.raises(TypeError) as refused:
        made(gap, over=(jb.Box(0, 1), jb.Box(0, 1)))
    assert str(refused.value).endswith(f"Try over={{'k': {both}, 'y': {both}}}")


@pytest.mark.parametrize("ends, words", [
    ((3, 2), r"expected lo <= hi. Try jb.Integers\(2, 3\)"),
    ((0.5, 2), r"expected whole numbers. Try jb.Integers\(1, 2\)"),
    ((2.5, 2.6), r"expected whole numbers. Try jb.Integers\(3, 3\)"),
])  # fmt: skip
def test_the_ends_of_integers_are_refused_apart(ends, words):
    with pytest.raises(ValueError, match=words):
        jb.Integers(*ends)


@pytest.mark.parametrize("sizes, over, words", [
    ((0, 1), BALL, "no entries at d=0, so all .* draws are equal. Try sizes=[{'d': 1}]"),
    ((0,), BALL, "no entries at d=0, so all .* draws are equal. Try sizes of at least 1"),
])  # fmt: skip
def test_a_set_of_empty_arrays_is_named(sizes, over, words):
    (found,) = jb.falsify(made(_norm, rhs=4.0, over={"x": over}, sizes={"d": sizes}))
    before, _, after = words.partition(".*")
    assert found.status == "inconclusive"
    assert before in found.reason and after.strip() in found.reason


@pytest.mark.parametrize("over", [jb.Simplex("d"), jb.Sphere(1, "d"), jb.Integers(1, "d")])
def test_a_claim_over_sets_of_one_point_is_judged(over):
    judged = lambda rhs: jb.falsify(made(_norm, rhs=rhs, over={"x": over}, sizes={"d": (1,)}))
    assert [judged(rhs)[0].status for rhs in (4.0, 0.5)] == ["holds", "fails"]


@pytest.mark.parametrize("lhs, rhs", [
    (lambda x: jnp.sum(abs(x)), lambda x: 5 * _norm(x)),
    (lambda x: jnp.sum(x**2), lambda x: 5 * jnp.sum(x**2)),
])  # fmt: skip
def test_an_underflow_is_named(lhs, rhs):
    given = {"sizes": AT_D}
    (found,) = jb.falsify(made(lhs, rhs=rhs, over={"x": jb.Ball(1e-200, "d")}, **given))
    assert found.status == "inconclusive" and "perhaps because products underflow" in found.reason
    assert "Try larger sets in over=, such as jb.Ball(1, 'd')" in found.reason
    assert jb.falsify(made(lhs, rhs=rhs, over={"x": BALL}, **given))[0].status == "holds"


@pytest.mark.parametrize("lhs, rhs, false, over, cure", [
    (lambda x: 0 * jnp.sum(x), 0.0, [-1.0], jb.Reals(2), "Try the relation '=' and false=[1.0]"),
    (lambda x: 0 * jnp.sum(x), 0.0, [], jb.Reals(2), "Try the relation '=' and false=[1.0]"),
])  # fmt: skip
def test_the_cure_of_equal_constant_sides_works(lhs, rhs, false, over, cure):
    over = {"x": over}
    (found, *_) = jb.falsify(made(lhs, rhs=rhs, over=over, false=false))
    assert found.status == "inconclusive" and found.reason.endswith(cure), found.reason
    twins = [1.0] if "false" in cure else []
    (found, *_) = jb.falsify(made(lhs, "=", rhs, over=over, false=twins))
    assert found.status == "holds", found.reason


def test_sides_that_are_equal_in_floats_only_never_hold():
    """The left side is smaller by 1e-30."""
    ratio, over = lambda x: x / (x + 1e-30), {"x": jb.Box(1, 2)}
    for relation, end in ("<=", "or a bound on lhs - rhs"), ("=", "bounds the difference"):
        (found,) = jb.falsify(made(ratio, relation, 1.0, over=over))
        assert found.status == "inconclusive" and found.reason.endswith(end), found.reason


def test_a_rate_says_its_senses():
    form = jb.Form(name="printed")
    growth = lambda instance, size: jb.Sides(lhs=size["n"], rhs={"printed": size["n"]})
    given = {
        "id": "w.r", "label": "r", "formula": "r", "evaluate": growth, "over": {},
        "sizes": [{"n": float(n)} for n in (10, 100, 1000, 10000)],
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"'at most', .* Try jb.Form\(name='printed', sense='at m"):
        jb.Statement(kind="rate", forms=(form,), **given)
    jb.Statement(kind="rate", forms=(jb.Form(name="printed", sense="at most"),), **given)
    with pytest.raises(ValueError, match=r"only a rate has a sense\. Try sense=None"):
        jb.Statement(kind="identity", forms=(jb.Form(name="printed", sense="exactly"),), **given)


@pytest.mark.parametrize("sizes, towards, cure", [
    ({"n": (10.0,)}, None, "[{'n': n} for n in (10, 100, 1000, 10000)]"),
    ({"n": (0.1, 0.01)}, None, "[{'n': n} for n in (0.1, 0.01, 0.001, 0.0001)]"),
    ({"n": (8, 16), "m": (2,)}, {"n": float("inf")},
     "[{'m': 2, 'n': n} for n in (10, 100, 1000, 10000)]"),
])  # fmt: skip
def test_a_limit_with_few_sizes_proposes_sizes_that_work(sizes, towards, cure):
    lhs = (lambda n: 1 / n) if "10, 100" in cure else (lambda n: 1 * n)
    with pytest.raises(
        ValueError, match="expected at least 3 values of 'n' for a limit"
    ) as refused:
        made(lhs, "->", 0.0, over={}, sizes=sizes, towards=towards)
    assert str(refused.value).endswith(f"Try sizes={cure}")
    claim = made(lhs, "->", 0.0, over={}, sizes=eval(cure), towards=towards)
    assert jb.falsify(claim)[0].status == "consistent"


@pytest.mark.parametrize("size, rhs", [
    (63, lambda d: 2**d), (63, lambda d: jnp.sqrt(2**d)), (2000, lambda d: 2.0**d),
])  # fmt: skip
def test_a_number_beyond_the_arrays_is_named(size, rhs):
    claim = made(lambda d: d**2, rhs=rhs, over={}, sizes={"d": (4, size)})
    words = rf"the right side of 'printed' at d={size} got OverflowError, .* Try floats in the side"
    with pytest.raises(ValueError, match=words):
        jb.falsify(claim)
    claim = made(lambda d: d**2, rhs=lambda d: 2.0**d, over={}, sizes={"d": (4, 63)})
    assert jb.falsify(claim)[0].status == "holds"


@pytest.mark.parametrize("one, words", [
    (jb.Ball(9, "d"), "a smaller set such as 'x': jb.Ball(R=1, shape='d', p=2), or squares"),
    (jb.PSD("d", 50), "a smaller set such as 'x': jb.PSD(shape='d', at_most=1, norm='operator')"),
    (jb.Reals("d"), "a smaller set such as 'x': jb.Box(lo=-2, hi=2, shape='d')"),
    (BALL, "the sides or squares of both"), (jb.Ball("d", "d"), "the sides or squares of both"),
    (jb.Integers(-9, 9, "d"), "the sides or squares of both"),
])  # fmt: skip
def test_the_advice_about_rounding_names_a_set_that_exists(one, words):
    assert words in cure(made(lambda x: jnp.sum(x), over={"x": one}, sizes={"d": 2}))


def test_a_search_for_a_violation_takes_hypotheses():
    two = {"x": jb.Box(-1, 1), "y": jb.Box(-1, 1)}
    about = {"over": two, "budget": jb.Budget(samples=64, restarts=2, steps=30)}
    assert jb.find_violation(lambda x, y: x, lambda y: y, **about)
    ordered = jb.find_violation(
        lambda x, y: x, lambda y: y, hypotheses=lambda x, y: {"x <= y": x <= y}, **about
    )
    assert not ordered and ordered.instances > 0 and ordered.line["code"] == ""


def test_each_ratio_of_a_violation_names_its_instance():
    found = jb.find_violation(lambda k: k, lambda k: (k - 0.5) ** 2, over=U, budget=SMALL)
    assert found.ratio > found.instance_ratio
    words = repr(found)
    assert "simpler instance" in words and "ratio of the simpler" in words
    same = repr(jb.find_violation(lambda k: 2 * k, lambda k: k + 0.5, over=U, budget=SMALL))
    assert "simpler" not in same and "instance" in same


def test_an_item_is_covered_by_its_labelled_displays():
    rows = ["x \\ge 0", "y \\le 2"]
    theorem = jb.Item(id="t.thm1", kind="Theorem", number="1", tex=" and ".join(rows))
    one, two = (
        jb.Item(id=f"t.eq{n}", kind="Equation", number=str(n), label=f"eq:{n}", tex=row)
        for n, row in enumerate(rows, 1)
    )
    claims = [item.claim(1.0, "<=", 2.0, over={}, sizes={"d": 1}) for item in (one, two)]
    for given, covered in ((claims, True), (claims[:1], False)):
        paper = jb.Paper(
            id="t", title="t", contents=jb.Items(theorem, one, two), statements=tuple(given)
        )
        verdicts = [verdict for claim in given for verdict in jb.falsify(claim)]
        first = coverage(paper, verdicts)[0]
        assert bool(first.ids) == first.decided == covered
        assert ("in Equation (1): printed: holds; in Equation (2)" in first.words) == covered


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: jb.Budget(step=3), "jb.Budget has no argument='step'.* Try steps="),
        (lambda: jb.Ball(1, shap=2), "jb.Ball has no argument='shap'.* Try shape="),
        (lambda: made(size={"d": 2}), "jb.claim has no argument='size'.* Try sizes="),
        (lambda: jb.Form(nam="a"), "jb.Form has no argument='nam'.* Try name="),
    ],
)
def test_a_wrong_name_of_an_argument_gets_the_right_one(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def _branches(k):
    return 1.0 if k > 0.5 else 0.0


@pytest.mark.parametrize(
    "side, words",
    [
        (_branches, "_branches|k > 0.5.*decides in Python about a traced number. Try jnp.where"),
        (lambda k: np.sort(k[None])[0], "hands a traced array to NumPy or Python. Try jax.numpy"),
        (lambda k: float(k), "needs the value of a traced number in Python. Try jax.numpy"),
    ],
)
def test_python_that_needs_a_number_of_a_trace_is_named_with_its_line(side, words):
    for judge in (
        lambda: list(jb.falsify(made(side))),
        lambda: jb.find_violation(side, 2.0, over=U),
    ):
        with pytest.raises(ValueError, match="at test_first_mistakes.py:.*" + words):
            judge()
