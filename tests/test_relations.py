"""What can be said besides `<=` and `=`: `>=`, suprema, there is, limits; each true and false."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.certification.disproof import disprove
from jaxbounds.certification.proof import prove
from jaxbounds.claims.statements import Size
from jaxbounds.falsification import verdicts_on
from jaxbounds.falsification.limits import trend
from jaxbounds.report.columns import closeness
from jaxbounds.report.describe import describe
from jaxbounds.report.rows import quantity
from jaxbounds.report.schemas import statement_json, statements_schema, verdicts_schema

SMALL = jb.Budget(samples=64, restarts=4, steps=60)
FEW = jb.Budget(samples=12, restarts=2, steps=10, batch=12)
TRUE, FALSE = BOTH = "printed", "printed, false"
"""Forms of one claim, with two factors."""
norm = lambda x: jnp.sqrt(jnp.sum(x**2))


def claim(sides, *, forms=("printed",), equality="", **options):
    """`sides(instance, size)` gives lhs, and rhs for each form and the control.

    Equality is of the first form; another one is false, and its author knows of no such case.
    """

    def evaluate(instance, size):
        lhs, rhs = sides(instance, size)
        return jb.Sides(lhs=lhs, rhs=rhs)

    given = {"kind": "inequality", "sizes": ({"d": 3},), "budget": SMALL} | options
    return jb.Statement(
        id="said.claim", label="a claim", formula="a claim", evaluate=evaluate, control="false",
        forms=tuple(jb.Form(name=name, equality=equality if name == forms[0] else "")
                    for name in forms), **given,
    )  # fmt: skip


def judged(statement, **options):
    found = verdicts_on(statement, **options)
    return {verdict.form: verdict for verdict in found}


def _cauchy(factor):
    """d |x|^2 >= factor (sum x)^2, sharp at factor one."""

    def sides(instance, size):
        x = instance["x"]
        total = jnp.sum(x) ** 2
        return size["d"] * jnp.sum(x**2), {"printed": factor * total, "control": 4 * total}

    return claim(sides, relation=">=", over={"x": jb.Ball(1, "d")},
                 equality="all x equal" if factor >= 1 else "")  # fmt: skip


def test_at_least_is_said_as_it_is(tmp_path):
    true = judged(_cauchy(1.0))["printed"]
    assert (true.status, true.relation, true.evidence) == ("holds", ">=", "attained")
    assert closeness(true) == "attained" and true.sensitivity < 1e-6
    false = judged(_cauchy(1.3), store=tmp_path)["printed"]
    assert false.status == "fails" and closeness(false) == "x1.3 short"
    loose = judged(_cauchy(0.25))["printed"]
    assert loose.status == "holds" and loose.worst_ratio == pytest.approx(0.25, rel=1e-4)
    assert closeness(loose) == "x4 loose"
    assert quantity(_cauchy(1.0))[1].startswith("right side over left side")


def test_at_least_in_balls_and_constants():
    pytest.importorskip("flint")
    size = {"d": 3}
    assert disprove(_cauchy(1.0), "printed", {"x": [0.5] * 3}, size).word == "undecided"
    false = disprove(_cauchy(1.3), "printed", {"x": [0.5] * 3}, size)
    assert false.word == "disproved" and false.relation == ">="
    # The left side is 9/4 and the right side 1.3 times it: the words keep their sides.
    assert float(false.lhs[0]) == pytest.approx(2.25) and float(false.rhs[0]) > 2.9
    constant = jb.sharp_constant(_cauchy(0.25), seconds=4)
    (found,) = constant.sizes
    assert found.ratio == pytest.approx(0.25, rel=1e-9)
    assert "C lhs >= rhs" in constant._table().title
    box = jb.Domain(name="D", chart=lambda t, size: {"x": t}, size={"d": 2}, lower=(0.1, 0.1),
                    upper=(0.5, 0.5))  # fmt: skip
    sides = lambda c: lambda i, s: (jnp.sum(i["x"]), {"printed": c * i["x"][0], "control": 9.0})
    sets, sizes = {"x": jb.Box(-1, 1, "d")}, ({"d": 2},)
    one = lambda c: claim(sides(c), relation=">=", over=sets, sizes=sizes)
    assert prove(one(1.0), "printed", box).word == "proved on D"
    assert prove(one(7.0), "printed", box).word == "false on D"


def _largest(side, true, false):
    """sup over |y| <= 1 of <A y, x> is |A^T x|; claimed at most or at least a factor times that."""

    def sides(instance, size):
        a, x = instance["a"], instance["x"]
        found = jb.supremum(lambda y: (a @ y) @ x, {"y": jb.Ball(1, "d")}, size=size)
        exact = norm(a.T @ x)
        if side == "lhs":
            return found, {TRUE: true * exact, FALSE: false * exact, "control": 0.5 * exact}
        return exact, {TRUE: found / true, FALSE: found / false, "control": 0.5 * found}

    return claim(
        sides, forms=BOTH, estimates={side: "below"}, budget=FEW, search="random",
        equality="y along A^T x" if side == "lhs" else "",
        over={"a": jb.Ball(1, ("d", "d")), "x": jb.Sphere(1, "d")}, sizes=({"d": 2},),
    )  # fmt: skip


def test_a_supremum_on_the_left():
    """An estimate from below that exceeds the right side is a violation, with its point."""
    found = judged(_largest("lhs", 1.0, 0.9))
    true, false = found[TRUE], found[FALSE]
    assert true.status == "holds" and true.worst_ratio == pytest.approx(1, abs=1e-9)
    assert false.status == "fails" and false.worst_ratio == pytest.approx(1 / 0.9, rel=1e-6)


def test_a_supremum_on_the_right_supports_one_side_only():
    statement = _largest("rhs", 0.9, 1.1)
    found = judged(statement)
    true, false = found[TRUE], found[FALSE]
    assert true.status == "holds" and true.worst_ratio == pytest.approx(0.9, rel=1e-6)
    assert false.status == "inconclusive"
    assert "estimates the rhs from below" in false.reason and ". " not in false.reason
    pytest.importorskip("flint")
    instance = {"a": np.eye(2).tolist(), "x": [1.0, 0.0]}
    assert "may miss the optimum" in disprove(statement, FALSE, instance, {"d": 2}).reason


def test_a_supremum_that_is_not_declared_is_refused():
    statement = claim(
        lambda i, s: (jb.supremum(lambda y: y @ i["x"], {"y": jb.Ball(1, "d")}, size=s),
                      {"printed": 2.0, "control": 0.1}),
        over={"x": jb.Ball(1, "d")}, budget=FEW,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r'Try estimates=\{"lhs": "below"\}'):
        verdicts_on(statement)


def test_estimates_are_what_they_say():
    """Against closed forms: the l_p ball's support function is the dual norm."""
    with jb.float64_on_cpu():
        a = jnp.array([3.0, -1.0, 2.0])
        ball = lambda p: {"y": jb.Ball(1, "d", p=p)}
        over = lambda a, p: jb.supremum(lambda y: y @ a, ball(p), size={"d": 3})
        under = lambda a: jb.infimum(lambda y: y @ a, ball(math.inf), size={"d": 3})
        two, most, least = map(
            float, jax.jit(lambda a: (over(a, 2), over(a, math.inf), under(a)))(a)
        )
        for found, dual in ((two, float(np.sqrt(14))), (most, 6.0)):
            assert found <= dual * (1 + 1e-12) and found == pytest.approx(dual, rel=1e-9)
        assert least == pytest.approx(-6.0, rel=1e-9)
        # Over a finite set it is the largest, and its slope that of the point that is.
        signs = {"s": jb.Signs("d")}
        largest = lambda b: jb.supremum(lambda s: s @ b, signs, size={"d": 3})
        value, slope = jax.jit(jax.value_and_grad(largest))(a)
        assert float(value) == 6.0
        np.testing.assert_array_equal(slope, [1.0, -1.0, 1.0])


def _some_vector(instance, size):
    """For each A there is a y of length one with |A y| >= .99 |A|_op, and none with 1.2 |A|_op."""
    a = instance["a"]
    largest = jnp.linalg.norm(a, ord=2)
    bounds = {TRUE: 0.99 * largest, FALSE: 1.2 * largest, "control": 3 * largest}
    return norm(a @ instance["y"]), bounds


THERE_IS = claim(
    _some_vector, forms=BOTH, relation=">=", over={"a": jb.Matrices("d", at_most=2)},
    there_is={"y": jb.Sphere(1, "d")}, budget=FEW, sizes=({"d": 2},), search="random",
)  # fmt: skip


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The folder of what is stored, and the verdicts."""
    folder = tmp_path_factory.mktemp("there")
    return folder, judged(THERE_IS, store=folder)


def test_for_each_there_is(there):
    folder, found = there
    true = found[TRUE]
    assert true.status == "holds" and true.worst_ratio == pytest.approx(0.99, rel=1e-6)
    # What is stored has the promised entry: plain NumPy measures the ratio.
    stored = jb.load_instance(folder / true.worst_file)
    a, y = stored.instance["a"], stored.instance["y"]
    assert abs(np.linalg.norm(y) - 1) < 1e-9
    plain = 0.99 * np.linalg.norm(a, 2) / np.linalg.norm(a @ y)
    assert plain == pytest.approx(stored.meta["ratio"] and float(stored.meta["ratio"]), rel=1e-9)
    from jaxbounds.falsification import replay

    _, ratios, before = replay(lambda name: THERE_IS, stored)
    assert ratios[TRUE] == before  # the same program on the same numbers


def test_what_a_search_does_not_find_may_be_there(there):
    false = there[1][FALSE]
    assert false.status == "inconclusive"
    assert "found no y for" in false.reason
    with pytest.raises(ValueError, match="does not bound the sharp constant"):
        jb.sharp_constant(THERE_IS)
    pytest.importorskip("flint")
    box = jb.Domain(name="D", chart=lambda t, s: {}, size={"d": 2}, lower=(0.0,), upper=(1.0,))
    assert prove(THERE_IS, TRUE, box).word == "undecided"


def test_there_is_among_finitely_many_is_decided():
    """Some signs give |sum s_i a_i| >= |a|_2, and none always give more: one entry."""

    def sides(instance, size):
        a = instance["a"]
        bound = norm(a)
        reached = jnp.abs(jnp.sum(a * instance["s"]))
        return reached, {TRUE: bound, FALSE: 1.5 * bound, "control": 4 * bound}

    found = judged(claim(sides, forms=BOTH, relation=">=", over={"a": jb.Sphere(1, "d")},
                         there_is={"s": jb.Signs("d")}, budget=FEW,
                         equality="one entry"))  # fmt: skip
    true, false = found[TRUE], found[FALSE]
    assert (true.status, true.evidence) == ("holds", "attained")
    assert false.status == "fails" and false.worst_ratio == pytest.approx(1.5)


@pytest.mark.slow_cases("over0")
@pytest.mark.parametrize("over", [{}, None])
def test_there_is_over_nothing(over):
    """On each circle is a point whose entries are equal, and none whose sum is larger."""

    def sides(instance, size):
        bound = jnp.sqrt(1.0 * size["d"])
        bounds = {TRUE: 0.99 * bound, FALSE: 1.2 * bound, "control": 2 * bound}
        return jnp.sum(instance["y"]), bounds

    found = judged(claim(sides, forms=BOTH, relation=">=", over=over, budget=FEW, search="none",
                         there_is={"y": jb.Sphere(1, "d")}))  # fmt: skip
    assert (found[TRUE].status, found[FALSE].status) == ("holds", "inconclusive")


def _mean(limit, sizes=(8, 64, 512, 4096)):
    """(1 + x/n)^n -> exp(x)."""

    def sides(instance, size):
        x, n = instance["x"], size["n"]
        return (1 + x / n) ** n, {"printed": limit * jnp.exp(x), "control": 1.1 * jnp.exp(x)}

    return claim(
        sides, kind="limit", towards={"n": math.inf}, over={"x": jb.Box(0, 2)},
        sizes=tuple({"n": n} for n in sizes), budget=FEW,
    )  # fmt: skip


def test_a_limit_never_holds():
    true = judged(_mean(1.0))["printed"]
    assert (true.status, true.relation, true.expected) == ("consistent", "->", "consistent")
    assert "local exponents -0.89, -0.98, -1.00" in true.reason
    assert closeness(true).endswith("apart") and true.evidence != "attained"
    false = judged(_mean(1.02))["printed"]
    assert (false.status, false.evidence) == ("inconsistent", "not seen")
    assert "remains in the limit" in false.reason


def test_a_limit_to_zero_follows_the_same_instances():
    """(f(x + h) - f(x)) / h -> f'(x), with h a float among the sizes."""

    def statement(slope):
        def sides(instance, size):
            x, h = instance["x"], size["h"]
            return (jnp.sin(x + h) - jnp.sin(x)) / h, {"printed": slope(x), "control": jnp.sin(x)}

        return claim(sides, kind="limit", towards={"h": 0}, over={"x": jb.Box(-1, 1)}, budget=FEW,
                     sizes=tuple({"h": 0.5**k} for k in range(2, 9)))  # fmt: skip

    assert judged(statement(jnp.cos))["printed"].status == "consistent"
    assert judged(statement(lambda x: 1 - x**2 / 2))["printed"].status == "inconsistent"


@pytest.mark.parametrize("distance, word", [
    (lambda n: 3 / n, "consistent"),
    (lambda n: n**-0.3, "consistent"),
    (lambda n: 0.2 + 1 / n, "inconsistent"),
    (lambda n: 0.2 - 0.1 / n, "inconsistent"),
    (lambda n: 0 * n + 0.5, "inconsistent"),
    (lambda n: 1 / np.log(n), "consistent"),
    (lambda n: 0.05 + 1 / np.log(n), "inconsistent"),
    (lambda n: 1 / np.log(np.log(n)), "inconclusive"),  # true, but slower than every model
    (lambda n: 1e-16 * n**0, "consistent"),
])  # fmt: skip
def test_trends(distance, word):
    n = np.array([8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
    assert trend(np.log(n), distance(n), 1e-12).status == word


def _theta(lower, sense="exactly"):
    """2 n^2 + lower(n) is Theta(n^2)."""

    def sides(instance, size):
        n = float(size["n"])
        return instance["c"] * (2 * n**2 + lower(n)), {"printed": n**2, "control": n**3}

    return jb.Statement(
        id="said.theta", label="", formula="2 n^2 + ... = Theta(n^2)", kind="rate",
        evaluate=lambda i, s: jb.Sides(*sides(i, s)), over={"c": jb.Box(1, 1.001)},
        forms=(jb.Form(name="printed", sense=sense),), control="n^3", budget=FEW,
        sizes=tuple({"n": 2**k} for k in range(2, 9)),
    )  # fmt: skip


def test_theta_with_lower_order_terms():
    true = judged(_theta(lambda n: 30 * n))["printed"]
    assert true.status == "consistent" and "lower-order terms" in true.reason
    assert judged(_theta(lambda n: 0.1 * n**2 * np.log(n)))["printed"].status != "consistent"
    assert judged(_theta(lambda n: 9 * n**2.5))["printed"].status == "inconsistent"


def test_continuous_parameters_are_axes_of_a_size():
    from jaxbounds.constants.sizes import grid, parse

    statement = claim(
        lambda i, s: (jnp.sum(i["x"] ** 2), {"printed": s["R"] ** 2, "control": 0.1 * s["R"] ** 2}),
        over={"x": jb.Ball("R", "d")}, sizes=({"d": 2, "R": 0.5}, {"d": 2, "R": 2.0}),
        equality="|x| = R",
    )  # fmt: skip
    found = judged(statement)["printed"]
    assert found.status == "holds" and set(found.by_size) == {"d=2, R=0.5", "d=2, R=2.0"}
    assert parse(["R=.5,1,2e-1", "d=3"]) == {"R": (0.5, 1, 0.2), "d": (3,)}
    assert grid(statement, parse(["R=.25,3"])) == ({"d": 2, "R": 0.25}, {"d": 2, "R": 3.0})
    for words in (["d=2.5"], ["d=0"]):
        with pytest.raises(ValueError, match="whole numbers from 1 on"):
            grid(statement, parse(words))
    for word in ("R=half", "R=1,,nan", "R=inf", "R"):
        with pytest.raises(ValueError, match="expected a size's name with its values"):
            parse([word])
    import jsonschema

    jsonschema.validate([found.to_json()], verdicts_schema())
    jsonschema.validate([json.loads(json.dumps(statement_json(statement)))], statements_schema())
    assert "x in Ball(R='R', shape='d', p=2)" in describe(statement).plain


def test_sets_and_what_no_set_says_go_together():
    """The sampler's entries replace the sets'; hypotheses and projections come on top."""
    statement = claim(
        lambda i, s: (i["x"] @ i["y"], {"printed": 0.0, "control": -9.0}),
        over={"x": jb.Sphere(1, "d"), "y": jb.Ball(1, "d")},
        sample=lambda key, size: {"y": jnp.zeros(size["d"]), "k": jnp.ones(())},
        hypotheses=lambda i, s: {"k is one": i["k"] == 1},
        project=lambda i, s: {**i, "y": i["y"] - (i["x"] @ i["y"]) * i["x"]},
        search="none",
    )  # fmt: skip
    found = verdicts_on(statement)[0]
    assert found.status == "inconclusive" and found.worst_ratio == 0  # 0 <= 0, no equality named
    assert set(found.checked) == {"|x|_2 = 1", "|y|_2 <= 1", "k is one"}
    drawn = jax.jit(statement.samplers["sample"], static_argnums=1)(
        jax.random.key(0), Size({"d": 3})
    )
    assert set(drawn) == {"x", "y", "k"} and not np.any(drawn["y"])
    import dataclasses

    again = dataclasses.replace(statement, label="another")
    assert again.hypotheses == statement.hypotheses and again.project == statement.project


def test_a_domain_from_sets_is_proved():
    pytest.importorskip("flint")
    from jaxbounds.claims.statements import Domain

    (box,) = Domain.over({"x": jb.Ball(1, "d")}, size={"d": 2}, slack=1e-3)
    assert "Ball(R=1" in box.name
    one = lambda c: claim(lambda i, s: (i["x"][0], {"printed": c + 0 * i["x"][0], "control": 0.1}),
                          over={"x": jb.Ball(1, "d")}, sizes=({"d": 2},))  # fmt: skip
    assert prove(one(1.0), "printed", box).word == "proved on D"
    assert prove(one(0.9), "printed", box).word == "false on D"
    assert len(Domain.over({"q": jb.Orthogonal(2)}, size={})) == 2


@pytest.mark.parametrize("options, says", [
    ({"relation": "->"}, "kind 'limit' has relation '->'"),
    ({"kind": "limit"}, r"towards=\{\}, expected .* Try towards=\{'d': math.inf\}"),
    ({"kind": "limit", "towards": {"d": 5}}, "to 0 or infinity"),
    ({"kind": "limit", "towards": {"m": math.inf}}, "must be a positive number in every size"),
    ({"kind": "limit", "towards": {"d": math.inf}}, "at least 3 values of 'd'"),
    ({"relation": "=", "estimates": {"lhs": "below"}}, 'Try two claims: .*lhs, "<=", rhs'),
    ({"relation": "=", "estimates": {"lhs": "above"}}, 'Try two claims: .*lhs, ">=", rhs'),
    ({"relation": "=", "estimates": {"rhs": "below"}}, 'Try two claims: .*lhs, ">=", rhs'),
    ({"there_is": {"x": jb.Ball(1, "d")}}, "both name x"),
    ({"there_is": {"y": jb.Ball(1, "d")}, "host": True}, "needs gradients of evaluate"),
    ({"kind": "construction", "there_is": {"y": jb.Ball(1, "d")}}, "kind='construction'"),
    ({"kind": "probability", "level": 0.1}, "a set has no probability distribution"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_where_it_is_declared(options, says):
    sides = lambda i, s: (0.0, {"printed": 1.0, "control": -1.0})
    with pytest.raises(ValueError, match=says):
        claim(sides, over={"x": jb.Ball(1, "d")}, **options)


def test_a_law_is_not_a_set():
    sides = lambda i, s: (i["x"] @ i["x"], {"printed": 2.0, "control": 0.0})
    drawn = claim(sides, kind="expectation", over={"x": jb.Ball(1, "d"), "y": jb.Signs("d")},
                  sample=lambda key, size: {"x": jnp.zeros(size["d"])})  # fmt: skip
    with pytest.raises(ValueError, match="Try to draw y"):
        verdicts_on(drawn)


def test_a_proof_that_was_not_found_is_told_with_its_reason(tmp_path):
    pytest.importorskip("flint")
    from jaxbounds.certification import certified
    from jaxbounds.claims.statements import Domain
    from jaxbounds.report.rows import certificate_words

    statement = jb.Statement(
        id="said.open", label="", formula="x <= 2", kind="inequality", control="x <= -1",
        evaluate=lambda i, s: jb.Sides(lhs=i["x"], rhs={"printed": 2.0, "control": -1.0}),
        over={"x": jb.Box(0, 1)}, sizes=({},), estimates={"lhs": "below"}, budget=FEW,
        forms=(jb.Form(name="printed", domains=Domain.over({"x": jb.Box(0, 1)}, size={})),),
    )  # fmt: skip
    (verdict,) = certified(statement, verdicts_on(statement), tmp_path)
    assert verdict.status == "holds" and verdict.evidence != "proved on D"
    assert "undecided" in certificate_words(verdict) and "a search" in certificate_words(verdict)
