"""The first mistakes of a new user: each message names the argument and something to try."""

import jax.numpy as jnp
import pytest

import jaxbounds as jb
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
     r"calls jb.supremum. .* but estimates=\{\} does not name the side. Try estimates=\{\"lhs\": "),
])  # fmt: skip
def test_a_mistake_inside_a_claim_is_named(given, words):
    with pytest.raises((ValueError, TypeError, AttributeError), match=words):
        jb.falsify(made(**given))


def test_a_search_for_a_violation_takes_hypotheses():
    two = {"x": jb.Box(-1, 1), "y": jb.Box(-1, 1)}
    about = {"over": two, "budget": jb.Budget(samples=64, restarts=2, steps=30)}
    assert jb.find_violation(lambda x, y: x, lambda y: y, **about)
    ordered = jb.find_violation(
        lambda x, y: x, lambda y: y, hypotheses=lambda x, y: {"x <= y": x <= y}, **about
    )
    assert not ordered and ordered.instances > 0 and ordered.line["code"] == ""


def test_each_ratio_of_a_violation_names_its_instance():
    found = jb.find_violation(lambda k: k, lambda k: (k - 0.5) ** 2, over=U)
    assert found.ratio > found.instance_ratio
    words = repr(found)
    assert "simpler instance" in words and "ratio of the simpler" in words
    same = repr(jb.find_violation(lambda k: 2 * k, lambda k: k + 0.5, over=U))
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
