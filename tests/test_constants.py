"""Sharp constants: found where they are known by hand, and not claimed where they are not.

The oracles are formulas from textbooks, proved by hand in the comments; nothing of the search or of
the library enters them.
"""

import json
import math
from decimal import Decimal

import jax
import jax.numpy as jnp
import jsonschema
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements import Budget, Form, Sides, Size, Statement
from jaxbounds.cli import main
from jaxbounds.constants import SharpConstant, closed_form, dependence, parse
from jaxbounds.constants.constant import examined, sharp_constant
from jaxbounds.constants.polish import at
from jaxbounds.constants.problem import Problem
from jaxbounds.constants.sizes import check, grid
from jaxbounds.numerics.norms import frobenius_norm, spectral_norm
from jaxbounds.report.constants import (
    constant_figure,
    constant_table,
    constant_text,
    constants_schema,
    looseness_rows,
)
from jaxbounds.report.schemas import to_json

SMALL = Budget(samples=48, restarts=8, steps=80)
QUICK = {"budget": SMALL, "seconds": 8}


def inequality(name, sides, sample, sizes, **settings):
    """lhs <= rhs with nothing but what a user must give."""

    def evaluate(instance, size):
        lhs, rhs = sides(instance, size)
        return Sides(lhs=lhs, rhs={"printed": rhs, "control": 0.5 * rhs})

    return Statement(
        id=f"own.{name}",
        label=name,
        formula=name,
        kind="inequality",
        evaluate=evaluate,
        sample=sample,
        sizes=sizes,
        forms=(Form(name="printed"),),
        control="half of it",
        **settings,
    )


ENTRIES = inequality(
    "entries",
    lambda i, size: (jnp.sum(jnp.abs(i["X"])), frobenius_norm(i["X"])),
    lambda key, size: {"X": jax.random.normal(key, (size["T"], size["d"]))},
    ({"T": 2, "d": 2},),
)


def _third_cumulant(i, size):
    weights = jax.nn.softmax(i["logits"])
    centre = lambda values: values - weights @ values
    lhs = jnp.abs(jnp.sum(weights * centre(i["A"]) * centre(i["B"]) ** 2))
    return lhs, jnp.max(jnp.abs(i["A"])) * jnp.max(jnp.abs(i["B"])) ** 2


def _law(key, size):
    keys = jax.random.split(key, 3)
    return {n: jax.random.normal(k, (size["S"],)) for n, k in zip(("logits", "A", "B"), keys)}


CUMULANT = inequality("cumulant", _third_cumulant, _law, ({"S": 4},))


def _softmax_step(i, size):
    moved = jax.nn.softmax(i["a"]) - jax.nn.softmax(i["b"])
    return jnp.sum(jnp.abs(moved)), jnp.max(jnp.abs(i["a"] - i["b"]))


def _two(key, size):
    a, b = jax.random.normal(key, (2, size["T"]))
    return {"a": a, "b": b}


STEP = inequality("step", _softmax_step, _two, ({"T": 2},))


def _jacobian(i, size):
    p = jax.nn.softmax(i["v"])
    return spectral_norm(jnp.diag(p) - jnp.outer(p, p)), jnp.asarray(1.0)


_logits = lambda key, size: {"v": 2 * jax.random.normal(key, (size["T"],))}
JACOBIAN = inequality("jacobian", _jacobian, _logits, ({"T": 2},))
ENCLOSES = lambda s, truth: float(s.low) <= truth * (1 + 1e-15) and s.ratio <= truth * (1 + 1e-15)


@pytest.mark.slow
def test_entries_against_frobenius_is_the_root_of_their_number():
    # Cauchy-Schwarz over T d entries, with equality where all have one size.
    found = sharp_constant(ENTRIES, sizes={"T": (2, 4), "d": (2, 3, 4)}, **QUICK)
    for s in found.sizes:
        truth = math.sqrt(s.size["T"] * s.size["d"])
        assert abs(s.ratio / truth - 1) < 1e-12 and s.where == "attained"
        # Certified digits are those of an instance: never above the supremum.
        assert ENCLOSES(s, truth) and s.digits >= 30
    exponents = {e.axis: e for e in found.dependence}
    assert set(exponents) == {"T", "d"}
    for exponent in exponents.values():
        assert exponent.word == "power" and abs(exponent.value - 0.5) < 1e-9
        assert exponent.low <= exponent.value <= exponent.high
        assert exponent.high - exponent.low < 1e-6
    assert found.law == "sqrt(T d)"
    assert found.fails  # as it stands, with the constant one


@pytest.mark.slow
def test_the_third_cumulant_is_recovered_with_its_closed_form():
    # Linear in A, so A = +-1 at the optimum; B = A there. With E B = r the cumulant is
    # 2 r (1 - r^2), largest at r = 1/sqrt(3): 4 / (3 sqrt(3)).
    (s,) = sharp_constant(CUMULANT, budget=SMALL, seconds=3).sizes
    truth = 4 / (3 * math.sqrt(3))
    assert abs(s.ratio / truth - 1) < 1e-13 and ENCLOSES(s, truth)
    assert s.where == "attained" and s.gain < 1e-20
    assert s.closed.text == "4/(3 sqrt(3))"
    assert s.closed.digits >= 20 and s.closed.chance < 1e-12
    # What is shown can be put in: numpy gives the stated ratio, within a thousandth of the best.
    shown = {name: np.array(value) for name, value in s.instance.items()}
    weights = np.exp(shown["logits"]) / np.sum(np.exp(shown["logits"]))
    a, b = (shown[n] - weights @ shown[n] for n in ("A", "B"))
    ratio = abs(np.sum(weights * a * b**2)) / np.max(np.abs(shown["A"])) / np.max(shown["B"] ** 2)
    assert math.isclose(ratio, s.instance_ratio, rel_tol=1e-12)
    assert ratio > truth * (1 - 1.1e-3)


@pytest.mark.parametrize("hump, where", [(2.0, "attained"), (1.9, "limit")])
def test_what_is_reached_nearer_by_is_no_limit(hump, where):
    # hump x / (1 + x^2) has its maximum hump/2 at 1; x^2 / (1 + x^2) rises to 1 at infinity.
    def sides(i, size):
        x = jnp.abs(i["x"])
        return jnp.maximum(hump * x, x**2) / (1 + x**2), jnp.ones(())

    claim = inequality("hump", sides, lambda key, size: {"x": jax.random.normal(key)}, ({},))
    (s,) = sharp_constant(claim, **QUICK).sizes
    assert s.where == where and abs(s.ratio - 1) < 1e-12 and s.closed.text == "1"


def test_wrong_maxima_are_not_identified():
    # With B short of its corner the best logits still give a flat slope in themselves, and a tight
    # ball around a number that is no supremum.
    problem = Problem(CUMULANT, "printed", {"S": 4})
    corner = np.array([1.0, -1.0, -1.0, 1.0])
    r = 1 / math.sqrt(3)
    logits = np.log([(1 - r) / 4, (1 + r) / 4, (1 + r) / 4, (1 - r) / 4])
    short = np.array([1.0, -1.0, -0.9993, 1.0])
    with jb.float64_on_cpu():
        off = at(problem, {"A": corner, "B": short, "logits": logits}, 0.0)
        found = examined(problem, [off, off], until=math.inf, snap=False)
    assert 0.765 < found.ratio <= 4 / (3 * math.sqrt(3))
    assert found.digits >= 15  # certain, and of no use
    assert found.where == "rising" and found.closed is None


def test_one_start_is_not_enough_for_a_closed_form():
    problem = Problem(JACOBIAN, "printed", {"T": 2})
    with jb.float64_on_cpu():
        alone = at(problem, {"v": np.zeros(2)}, 0.0)
        found = examined(problem, [alone], until=math.inf)
        twice = examined(problem, [alone, alone], until=math.inf)
    assert found.ratio == twice.ratio == 0.5
    assert found.where == "rising" and found.closed is None
    assert twice.where == "attained" and twice.closed.text == "1/2"


def test_the_softmax_jacobian_is_half_attained_for_two_tokens_only():
    # Popoviciu: v^T (diag(p) - p p^T) v is a variance, at most half the squared range times 1/2;
    # two tokens of weight 1/2 attain 1/2, and with more the others must have no weight at all.
    found = sharp_constant(JACOBIAN, sizes={"T": (2, 3)}, **QUICK)
    two, three = found.sizes
    assert (two.where, three.where) == ("attained", "limit")
    for s in found.sizes:
        assert abs(s.ratio - 0.5) < 1e-12 and s.closed.text == "1/2"
    assert "infinity" in three.along
    assert [e.word for e in found.dependence] == ["none"] and found.law == "1/2"


@pytest.mark.slow
def test_a_difference_quotient_is_reported_as_a_limit():
    # |softmax a - softmax b|_1 = 2 tanh(t) for logits +-t against -+t, so tanh(t)/t of |a - b|_inf:
    # one, in the limit alone.
    (s,) = sharp_constant(STEP, budget=SMALL, seconds=36).sizes
    assert s.where == "limit" and s.along in ("a - b -> 0", "a, b -> 0", "a -> 0", "b -> 0")
    assert abs(s.ratio - 1) < 1e-12 and Decimal(s.low) < 1
    assert s.closed.text == "1"


def test_a_difference_quotient_of_numbers_is_reported_as_a_limit():
    # |tanh a - tanh b| / |a - b| is a slope of tanh in between: below one, and one at a = b = 0.
    numbers = lambda key, size: dict(zip("ab", jax.random.normal(key, (2,))))
    sides = lambda i, size: (jnp.abs(jnp.tanh(i["a"]) - jnp.tanh(i["b"])), jnp.abs(i["a"] - i["b"]))
    (s,) = sharp_constant(inequality("slope", sides, numbers, ({},)), **QUICK).sizes
    assert s.where == "limit" and s.along in ("a - b -> 0", "a, b -> 0", "a -> 0", "b -> 0")
    assert abs(s.ratio - 1) < 1e-12 and Decimal(s.low) < 1
    assert s.closed.text == "1"


def test_ratios_that_never_change_or_never_end():
    first = lambda key, size: {"x": jax.random.normal(key, (2,))}
    same = inequality(
        "same", lambda i, s: (2 * jnp.abs(i["x"][0]), jnp.abs(i["x"][0])), first, ({},)
    )
    found = sharp_constant(same, **QUICK)
    assert found.sizes[0].where == "every instance" and found.sizes[0].ratio == 2
    assert "every draw" in constant_text(found)
    square = lambda i, s: (jnp.sum(i["x"] ** 2), jnp.sum(jnp.abs(i["x"])))
    grows = sharp_constant(inequality("grows", square, first, ({},)), **QUICK)
    assert grows.sizes[0].where == "unbounded" and grows.sizes[0].closed is None
    assert not grows.dependence


def test_a_positive_side_beside_zero_has_no_constant():
    numbers = lambda key, size: {"x": jax.random.uniform(key)}
    sides = lambda i, size: (i["x"], jnp.where(i["x"] < 0.5, 0.0, 1.0))
    (s,) = sharp_constant(inequality("zero", sides, numbers, ({},)), **QUICK).sizes
    assert s.where == "unbounded" and s.closed is None and "rhs=0" in s.reason


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.5", "1/2"),
        ("0.76980035891950101934553170733594", "4/(3 sqrt(3))"),  # 4 / (3 sqrt 3)
        ("1.6180339887498948482045868343656", "(1 + sqrt(5))/2"),
        ("0.72134752044448170367996234050095", "1/(2 log(2))"),
        ("0.78539816339744830961566084581988", "pi/4"),
        ("0.36787944117144232159552377016146", "1/e"),
        ("2.8284271247461900976033774484194", "2 sqrt(2)"),
    ],
)
def test_closed_forms_of_numbers_from_tables(value, text):
    found = closed_form(value, 30)
    assert found.text == text and found.chance < 1e-12


def test_no_closed_form_without_digits_or_by_accident():
    assert closed_form("0.76980035891950101934", 10) is None
    # Digits that are no constant: random ones never pass the chance that is allowed.
    rng = np.random.default_rng(0)
    for _ in range(12):
        digits = "0." + "".join(map(str, rng.integers(0, 10, 40)))
        assert closed_form(digits, 24) is None
    # The number that a search without corners stopped at, to as many digits as you like.
    assert closed_form("0.769570000000000000000000000001234567", 30) is None


def test_exponents_of_known_laws():
    sizes = [{"T": t, "d": d} for t in (2, 4, 8) for d in (2, 4)]
    (t, d), left = dependence(sizes, [3 * s["T"] ** 1.5 for s in sizes])
    assert (t.word, d.word) == ("power", "none") and abs(t.value - 1.5) < 1e-12 and left < 1e-12
    (t, d), left = dependence(sizes, [1 + s["T"] for s in sizes])
    assert (t.word, d.word) == ("no single power", "none") and left > 1e-3
    (t,), _ = dependence([{"T": 2}, {"T": 4}], [1.0, 2.0])
    assert abs(t.value - 1) < 1e-12 and t.low is None and t.high is None
    assert dependence([{"T": 2}], [1.0]) == ((), 0.0)


def test_bad_input_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"no axis 'Q', got .* its axes: T, d"):
        sharp_constant(ENTRIES, sizes={"Q": (2,)})
    with pytest.raises(jb.Refused, match=r"no form='sharpened'\. Try one of: printed"):
        sharp_constant(ENTRIES, "sharpened")
    with pytest.raises(ValueError, match="does not fit into memory: one array of a batch of 64"):
        sharp_constant(ENTRIES, sizes={"T": (2, 2**20), "d": (2**14,)})
    with pytest.raises(ValueError, match="whole numbers from 1 on"):
        grid(ENTRIES, {"T": (0,)})
    with pytest.raises(ValueError, match="sizes=65 combinations"):
        grid(ENTRIES, {"T": range(1, 66)})
    with pytest.raises(ValueError, match=r"own\.square .* cannot be measured at T=3; "):
        square = lambda i, size: (jnp.sum(i["v"].reshape(2, -1)), jnp.asarray(1.0))
        check(inequality("square", square, _logits, ({"T": 2},)), "printed", Size({"T": 3}))
    with pytest.raises(ValueError, match="kind='identity'"):
        sharp_constant("multihead.eq25")
    for words in (["T"], ["T=2,x"], ["T=", "d=1"], ["T=2", "T=4"]):
        with pytest.raises(ValueError, match="--sizes"):
            parse(words)
    assert parse(["T=2,4,4", "d=3"]) == {"T": (2, 4), "d": (3,)}


def test_what_is_found_is_data_a_table_and_a_figure():
    found = sharp_constant(ENTRIES, sizes={"T": (2, 3), "d": (2,)}, **QUICK)
    stored = json.loads(json.dumps(to_json([found])))
    jsonschema.validate(stored, constants_schema())
    assert SharpConstant.from_json(stored[0]) == found
    assert constant_table(found, width=80).row_count == 2
    assert "C = sqrt(2) sqrt(T)" in constant_text(found)
    assert "lower estimate" in constant_text(found)
    (row,) = looseness_rows([found])
    assert row[0] == "own.entries" and row[3] == "fails"
    figure = constant_figure(found)
    (line,) = figure.axes[0].lines
    np.testing.assert_allclose(line.get_ydata(), [2, math.sqrt(6)], rtol=1e-9)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    out = tmp_path / "out"
    name = ["constant", "multihead.eq42", "--sizes", "T=2", "d=2", "--seconds", "1"]
    name += ["--jobs", "1", "--out", str(out)]
    assert main([*name, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    # Popoviciu once more: a covariance of two variables on two points is at most half.
    assert one["form"] == "printed" and abs(one["sizes"][0]["ratio"] - 0.5) < 1e-9
    assert json.loads((out / "constants.json").read_text()) == [one]
    for wrong, words in (
        (["constant"], "names no statement"),
        (["constant", "multihead.eq42", "--form", "sharp"], "no form='sharp'. Try one of: printed"),
        (["constant", "multihead.eq42", "--sizes", "Q=2"], "no axis 'Q', got axes=['Q']"),
        (["constant", "multihead.eq25"], "kind='identity'"),
    ):
        assert main([*wrong, "--out", str(tmp_path / "none")]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
