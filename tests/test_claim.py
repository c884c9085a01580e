"""`jb.claim`: a claim in a line, its false twins, and the control that the engine makes."""

import dataclasses
import inspect
import math
import textwrap

import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements.claim import claim
from jaxbounds.falsification import verdicts_on
from jaxbounds.falsification.controls import EXCEEDS

SMALL = jb.Budget(samples=64, restarts=2, steps=30, batch=64)
PAIR = {"x": jb.Reals("d"), "y": jb.Reals("d")}


def product(x, y):
    """The left side of Cauchy-Schwarz."""
    return jnp.abs(x @ y)


def norms(x, y):
    """The right side."""
    return jnp.linalg.norm(x) * jnp.linalg.norm(y)


def twice(x, y):
    """A loose right side, which calls the sharp one."""
    return 2 * norms(x, y)


def by_form(statement):
    return {v.form: v for v in jb.falsify(statement, budget=SMALL)}


def simple(**given):
    return claim("t.cs", product, "<=", twice, over=PAIR, sizes={"d": (2, 3)}, **given)


def test_a_line_is_a_statement_of_a_paper_and_its_twins_are_named():
    one = simple(false=[lambda x, y: 0.4 * twice(x, y), norms, 0.5])
    assert isinstance(one, jb.Statement)
    assert jb.Paper(id="t", title="t", statements=(one,)).statements == (one,)
    found = by_form(one)
    assert list(found) == ["printed", "false 0.4 * twice(x, y)", "false norms", "false 0.5"]
    assert found["printed"].status == "holds" and found["printed"].control["status"] == "fails"
    assert found["false 0.4 * twice(x, y)"].status == "fails"
    assert found["false 0.5"].status == "fails" and found["false 0.5"].as_expected
    # Cauchy-Schwarz is no false twin: the library does not refute it, and says so.
    assert found["false norms"].status != "fails" and not found["false norms"].as_expected


def test_twins_have_names_of_their_own_and_may_have_a_left_side():
    named = simple(false={"without the factor": lambda x, y: 0.3 * twice(x, y)})
    assert [form.name for form in named.forms] == ["printed", "false without the factor"]
    alike = simple(false=[lambda x, y: 0.1, lambda x, y: 0.1])
    assert [form.name for form in alike.forms] == ["printed", "false 0.1", "false 0.1 (2)"]
    pair = simple(false={"another left side": (lambda x, y: 3 * product(x, y), twice)})
    assert by_form(pair)["false another left side"].status == "fails"


def test_the_claim_judges_functions_of_a_module_and_prints_their_names():
    assert simple().judges == (product, twice) and simple().formula == "product <= twice"
    own = claim("t.cs", lambda x, y: product(x, y), "<=", twice, over=PAIR, sizes={"d": 2})
    assert own.judges == (twice,) and own.formula == "product(x, y) <= twice"
    more = simple(judges=(norms,))
    assert more.judges == (product, twice, norms)
    for function in more.judges:
        assert jb.is_bound_to(more, function, budget=SMALL), function


def test_a_function_that_takes_the_name_later_is_not_meant():
    claims = []
    for factor in (2.0, 0.25):

        def right(x, y, factor=factor):
            return factor * norms(x, y)

        globals()["right"] = right
        right.__qualname__ = "right"
        claims.append(claim(f"t.c{len(claims)}", product, "<=", right, over=PAIR, sizes={"d": 2}))
    statuses = [by_form(one)["printed"].status for one in claims]
    assert statuses == ["holds", "fails"]


@pytest.mark.parametrize(
    ("lhs", "relation", "rhs"),
    [
        (lambda x: jnp.sum(x**2), "<=", 2.0),
        (lambda x: -1 - jnp.sum(x**2), "<=", -0.5),
        (lambda x: -1 - jnp.sum(x**2), "<=", 0.0),
        (lambda x: jnp.minimum(x[0], 0.0), "<=", 1.0),
        (lambda x: 2.0 + jnp.sum(x), ">=", 0.5),
        (lambda x: jnp.sum(x**2) - 3, "<=", lambda x: 5 + x[0]),
        (lambda x: jnp.sum(x + x), "=", lambda x: 2 * jnp.sum(x)),
    ],
)
def test_the_engine_makes_a_control_that_the_same_code_rejects(lhs, relation, rhs):
    one = claim("t.a", lhs, relation, rhs, over={"x": jb.Ball(1, "d")}, sizes={"d": 2})
    (verdict,) = jb.falsify(one, budget=SMALL)
    assert verdict.status == "holds", verdict.reason
    assert verdict.control["status"] == "fails"
    if relation != "=" and not callable(rhs) and rhs > 0 and verdict.worst_ratio > 0:
        assert verdict.control["worst_ratio"] == pytest.approx(1 + EXCEEDS, rel=1e-6)


def test_a_control_of_nothing_is_not_rejected():
    same = claim("t.zero", lambda x: 0 * x[0], "<=", 0.0, over={"x": jb.Reals("d")}, sizes={"d": 1})
    (verdict,) = jb.falsify(same, budget=SMALL)
    assert verdict.status != "holds"
    equal = claim("t.zero", lambda x: 0 * x[0], "=", 0.0, over={"x": jb.Reals("d")}, sizes={"d": 1})
    (verdict,) = jb.falsify(equal, budget=SMALL)
    assert verdict.status == "inconclusive" and "variant, was not rejected" in verdict.reason


def test_a_statement_without_a_control_gets_one_too():
    evaluate = lambda instance, size: jb.Sides(
        lhs=instance["x"], rhs={"printed": 2.0, "sharpened": 1.5}
    )
    one = jb.Statement(
        id="t.b", label="b", formula="x <= 2", kind="inequality", evaluate=evaluate,
        over={"x": jb.Box(0, 1, ())}, sizes=({"d": 1},),
        forms=(jb.Form(name="printed"), jb.Form(name="sharpened")),
    )  # fmt: skip
    assert {v.status for v in jb.falsify(one, budget=SMALL)} == {"holds"}
    with pytest.raises(ValueError, match=r"t\.b.*control=''"):
        dataclasses.replace(one, kind="expectation", sample=lambda key, size: {"x": 0.0},
                            relation=None, search=None, tolerance=None)  # fmt: skip


def test_claim_and_statement_share_one_declaration_of_their_arguments():
    """Each argument that a claim hands on has the type that the statement or the form gives it."""
    stated = {f.name: f for kind in (jb.Form, jb.Statement) for f in dataclasses.fields(kind)}
    own = {"id", "lhs", "relation", "rhs", "sizes", "false", "error"}
    shared = {n: p for n, p in inspect.signature(claim).parameters.items() if n not in own}
    assert len(shared) > 12 and set(shared) <= set(stated)
    hints = {**inspect.get_annotations(jb.Form), **inspect.get_annotations(jb.Statement)}
    for name, argument in shared.items():
        said = [
            hint.__name__ if isinstance(hint, type) else str(hint)
            for hint in (argument.annotation, hints[name])
        ]
        assert len({words.replace(" | None", "") for words in said}) == 1, name


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"over": {"x": 1, "y": 1}}, "t.cs.*over.*'x'"),
        ({"false": 0.5}, "t.cs.*false=0.5.*list"),
        ({"false": [(1, 2, 3)]}, "t.cs.*sides=3"),
        ({"false": [lambda z: z]}, "t.cs.*'z'"),
        ({"judges": norms}, "t.cs.*judges"),
        ({"equality": 3}, "t.cs.*'printed'.*equality"),
        ({"label": 7}, "t.cs.*label"),
        ({"sizes": {"d": "t"}}, "t.cs.*d='t'.*number"),
        ({"sizes": 3}, "t.cs.*sizes=3"),
        ({"over": None}, "t.cs.*'x'"),
        ({"estimates": 3}, "t.cs.*estimates"),
        ({"budget": 3}, "t.cs.*budget"),
        ({"tolerance": 1.0}, "t.cs.*tolerance"),
    ],
)
def test_a_refusal_names_the_claim_and_the_field(given, words):
    usual = {"over": PAIR, "sizes": {"d": (2, 3)}}
    with pytest.raises((TypeError, ValueError), match=f"(?s){words}"):
        claim("t.cs", product, "<=", twice, **{**usual, **given})


def test_an_estimate_on_an_identity_is_told_what_helps():
    best = lambda x, d: jb.supremum(lambda y: y @ x, {"y": jb.Ball(1, "d")}, size={"d": d})
    one = claim("t.sup", best, "=", 1.0, over={"x": jb.Sphere(1, "d")}, sizes={"d": 2})
    with pytest.raises(ValueError, match=r'Try two claims: .*, "<=", .*equality="'):
        jb.falsify(one, budget=SMALL)


def test_the_advised_claims_about_a_supremum_hold_at_once():
    few = {"starts": 4, "steps": 8}
    best = lambda x, d: jb.supremum(lambda y: y @ x, {"y": jb.Ball(1, "d")}, size={"d": d}, **few)
    norm = lambda x: jnp.linalg.norm(x)
    usual = {"over": {"x": jb.Box(1, 2, "d")}, "sizes": {"d": 2}}
    with pytest.raises(ValueError, match=r'estimates={"lhs": "below"}, equality="where') as refused:
        claim("t.sup", best, "=", norm, estimates={"lhs": "below"}, **usual)
    assert "there_is=..., witness=..." in str(refused.value)
    above = claim("t.above", best, "<=", norm, estimates={"lhs": "below"},
                  equality="where the sides agree", **usual)  # fmt: skip
    there = claim("t.there", lambda y, x: y @ x, "=", norm, there_is={"y": jb.Ball(1, "d")},
                  witness=lambda x: x / norm(x), **usual)  # fmt: skip
    for one in (above, there):
        (found,) = jb.falsify(one, budget=jb.Budget(samples=16, restarts=0, steps=0, batch=16))
        assert found.status == "holds", found.reason


def test_a_search_in_a_line_does_not_speak_of_forms():
    found = jb.find_violation(product, norms, over=PAIR, sizes={"d": 1}, budget=SMALL)
    assert not found and "Form" not in found.reason and "claim" not in found.reason
    unnamed = claim("t.cs", product, "<=", norms, over=PAIR, sizes={"d": 1})
    (verdict,) = verdicts_on(unnamed, budget=SMALL)  # without ball arithmetic
    assert "Try equality=" in verdict.reason
    said = claim("t.cs", product, "<=", norms, over=PAIR, sizes={"d": 1}, equality="x = y")
    assert jb.falsify(said, budget=SMALL)[0].status == "holds"


def test_a_paper_of_lines_from_a_file(tmp_path):
    file = tmp_path / "lines.py"
    file.write_text(
        textwrap.dedent("""
        import jaxbounds as jb

        def left(x):
            return x**2

        BOX = {"x": jb.Box(-1, 1, ())}
        PAPER = jb.Paper(id="lines", title="Lines", statements=(
            jb.claim("lines.square", left, "<=", 2.0, over=BOX, false=[0.5]),
            jb.claim("lines.cube", lambda x: x**3, "<=", 2.0, over=BOX),
        ))
    """)
    )
    found = jb.verify(file, out=tmp_path / "out", jobs=1)
    assert [(v.id, v.form, v.status) for v in found] == [
        ("lines.square", "printed", "holds"), ("lines.square", "false 0.5", "fails"),
        ("lines.cube", "printed", "holds"),
    ]  # fmt: skip
    assert found.status == 0


def test_the_old_name_of_a_finding_warns():
    with pytest.warns(DeprecationWarning, match=r"Try jb\.Finding"):
        assert jb.Claim is jb.Finding


@pytest.mark.parametrize(
    "hypotheses",
    [
        lambda x: {"x > 0": x > 0},
        lambda x, d: {"x > 0": x > 0.0 * d},
        lambda i, size: {"x > 0": i["x"] > 0},
    ],
)
def test_hypotheses_take_entries_by_name_or_an_instance(hypotheses):
    """log x is undefined below zero; with the hypothesis log x <= x - 1 holds."""
    claim = jb.claim(
        "mine.log", lambda x: jnp.log(x), "<=", lambda x: x - 1.0, over={"x": jb.Box(-1, 5)},
        sizes={"d": 2}, hypotheses=hypotheses, equality="x = 1",
    )  # fmt: skip
    (found,) = jb.falsify(claim)
    assert found.status == "holds", found.reason


LIMIT = {"over": {}, "sizes": {"n": (1e2, 1e3, 1e4, 1e5)}}


def _compound(n):
    return (1 + 1 / n) ** n


def test_a_limit_is_a_claim_in_a_line_and_the_engine_makes_its_control():
    twins = {"a little more": math.e + 0.01, "a little less": math.e - 0.01}
    found = jb.falsify(jb.claim("mine.e", _compound, "->", math.e, false=twins, **LIMIT))
    assert [row.status for row in found] == ["consistent", "inconsistent", "inconsistent"]
    assert found[0].control["status"] == "inconsistent"


def test_a_limit_goes_to_zero_where_its_size_falls_and_where_it_is_told():
    slope = lambda h, x: (jnp.exp(x + h) - jnp.exp(x)) / h
    over, sizes = {"x": jb.Box(-1, 1)}, {"h": (1e-1, 1e-2, 1e-3, 1e-4)}
    claim = jb.claim("mine.slope", slope, "->", lambda x: jnp.exp(x), over=over, sizes=sizes)
    assert claim.towards == {"h": 0} and jb.falsify(claim)[0].status == "consistent"
    two = {"n": (10, 100, 1000), "d": (1, 2)}
    with pytest.raises(ValueError, match="towards="):
        jb.claim("mine.two", lambda n, d: d / n, "->", 0.0, over={}, sizes=two)
    told = {"towards": {"n": math.inf}, "sizes": two, "over": {}}
    assert jb.claim("mine.two", lambda n, d: d / n, "->", 0.0, **told).towards == {"n": math.inf}


@pytest.mark.parametrize("sense, power, status", [
    ("at most", 0.5, "consistent"), ("at most", 0.7, "inconsistent"),
    ("at least", 0.4, "inconsistent"),
])  # fmt: skip
def test_a_rate_without_a_control_has_that_of_the_engine(sense, power, status):
    rate = jb.Statement(
        id="mine.rate", label="r", formula="f = O(sqrt n)", kind="rate", over={},
        evaluate=lambda i, s: jb.Sides(3.0 * s["n"] ** power, {"printed": s["n"] ** 0.5}),
        sizes=tuple({"n": 4**k} for k in range(2, 8)),
        forms=(jb.Form(name="printed", sense=sense),),
    )  # fmt: skip
    (found,) = jb.falsify(rate)
    assert (found.status, found.control["status"]) == (status, "inconsistent"), found.reason


def test_a_rate_that_does_not_grow_has_no_control_of_the_engine():
    flat = jb.Statement(
        id="mine.flat", label="r", formula="f = O(n)", kind="rate", over={},
        evaluate=lambda i, s: jb.Sides(3.0, {"printed": s["n"]}),
        sizes=tuple({"n": 4.0**k} for k in range(2, 8)),
        forms=(jb.Form(name="printed", sense="at most"),),
    )  # fmt: skip
    (found,) = jb.falsify(flat)
    assert found.status == "inconclusive" and "variant, was not rejected" in found.reason


@pytest.mark.parametrize("given", [{}, {"x > 0": True}])
def test_hypotheses_that_are_no_function_are_refused_with_the_right_form(given):
    with pytest.raises(TypeError, match=r"Try hypotheses=lambda i, size: \{\"x > 0\": jnp.all"):
        jb.claim("mine.h", 1.0, "<=", 2.0, over={"x": jb.Ball(1)}, hypotheses=given)


def test_each_set_takes_both_names_of_the_nuclear_norm():
    assert jb.Matrices("d", norm="trace") == jb.Matrices("d", norm="nuclear")
    size, x = {"d": 2}, jnp.array([[3.0, 1.0], [1.0, -2.0]])
    for one in (jb.PSD, jb.Symmetric):
        points = [one("d", 1, norm=norm).project(x, size) for norm in ("trace", "nuclear")]
        assert jnp.array_equal(*points) and jnp.sum(jnp.linalg.svd(points[0])[1]) <= 1 + 1e-9
    for one in (jb.PSD, jb.Symmetric, jb.Matrices):
        with pytest.raises(ValueError, match="'nuclear'"):
            one("d", norm="spectral")


def test_a_side_may_be_a_function_of_jax_with_positional_arguments():
    (found,) = jb.falsify(jb.claim("mine.tanh", jnp.tanh, "<=", 2.0, over={"x": jb.Box(-1, 1)}))
    assert found.status == "holds"


@pytest.mark.parametrize("hypotheses", [
    lambda x, y, least=1.5: {"apart": jnp.linalg.norm(x - y) >= least},
    lambda x, y, d=2: {"apart": jnp.linalg.norm(x - y) >= d - 0.5},
    lambda instance, size, least=0.1: {"apart": instance["x"][0] - instance["y"][0] >= least},
])  # fmt: skip
def test_hypotheses_may_have_arguments_with_defaults(hypotheses):
    far = claim("t.far", product, "<=", norms, over=PAIR, sizes={"d": 2}, hypotheses=hypotheses)
    found = jb.falsify(far, budget=SMALL)[0]
    assert found.status == "holds" and found.excluded.keys() == {"apart"}, found.reason


def test_the_dots_of_an_advice_are_named():
    with pytest.raises(ValueError, match=r"false=\[Ellipsis\]: expected a wrong right side"):
        jb.claim("mine.dots", lambda x: x, "<=", 1.0, over={"x": jb.Box(0, 1)}, false=[...])


def test_a_function_of_a_library_is_wrapped():
    with pytest.raises(ValueError, match=r"Try one of: x, or lambda x: std\(x\)"):
        jb.claim("mine.std", lambda x: x[0], "<=", jnp.std, over={"x": jb.Box(0, 1, 2)})
