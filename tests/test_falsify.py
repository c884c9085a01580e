"""The engine on statements whose truth is known beforehand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbounds import falsify
from jaxbounds.certification import disprove
from jaxbounds.claims.statements import Budget, Counterexample, Form, Sides, Statement
from jaxbounds.falsification import (
    clopper_pearson,
    fitted_exponent,
    load_instance,
    no_referee,
    replay,
    save_instance,
    verdicts_on,
)

QUICK = Budget(samples=64, restarts=4, steps=80, batch=32)


def _pair(key, size):
    x, y = jax.random.normal(key, (2, size["d"]))
    return {"x": x, "y": y}


def _cauchy(factor, control=0.9):
    def evaluate(instance, size):
        x, y = instance["x"], instance["y"]
        product = jnp.sqrt(x @ x) * jnp.sqrt(y @ y)
        return Sides(
            lhs=jnp.abs(x @ y), rhs={"printed": factor * product, "control": control * product}
        )

    return evaluate


def _statement(evaluate=None, **options):
    defaults = {
        "id": "mine.cauchy",
        "label": "1",
        "formula": "|<x, y>| <= |x| |y|",
        "kind": "inequality",
        "sample": _pair,
        "evaluate": evaluate or _cauchy(2.0),
        "forms": (Form(name="printed"),),
        "control": "times 0.9",
        "sizes": ({"d": 2}, {"d": 3}),
        "budget": QUICK,
    }
    return Statement(**(defaults | options))


def _verdict(statement, **options):
    return falsify(statement, **options)[0]


def test_a_true_inequality_holds_and_the_search_attains_its_supremum():
    verdict = _verdict(_statement())
    assert verdict.status == "holds"
    assert verdict.worst_ratio == pytest.approx(0.5, rel=1e-6)
    assert verdict.control["status"] == "fails"


def test_a_false_inequality_fails_with_a_shrunk_counterexample(tmp_path):
    form = Form(
        name="printed",
        expected="fails",
        note="false",
        counterexample=Counterexample(
            instance={"x": [1.0, 0], "y": [1.0, 0]}, size={"d": 2}, ratio=2.0
        ),
    )
    verdict = _verdict(_statement(_cauchy(0.5), forms=(form,)), store=tmp_path)
    assert verdict.status == "fails" and verdict.as_expected
    shrunk = load_instance(tmp_path / verdict.shrunk_file)
    assert shrunk.instance["x"].shape == (2,)
    x, y = shrunk.instance["x"], shrunk.instance["y"]
    assert abs(x @ y) > 0.5 * np.linalg.norm(x) * np.linalg.norm(y)
    decimals = np.r_[x, y]
    np.testing.assert_array_equal(decimals, np.round(decimals, 2))


def test_a_ratio_of_one_needs_a_known_equality_case_or_ball_arithmetic():
    assert verdicts_on(_statement(_cauchy(1.0)), referee=no_referee)[0].status == "inconclusive"
    found = _verdict(_statement(_cauchy(1.0)))
    assert found.status == "holds" and "ball arithmetic finds" in found.reason
    form = Form(name="printed", equality="x parallel to y")
    assert _verdict(_statement(_cauchy(1.0), forms=(form,))).status == "holds"


def test_nothing_holds_when_the_control_is_not_rejected():
    verdict = _verdict(_statement(_cauchy(2.0, control=1.5)))
    assert verdict.status == "inconclusive" and "control" in verdict.reason


def test_nan_never_holds():
    def evaluate(instance, size):
        good = _cauchy(2.0)(instance, size)
        return good._replace(lhs=jnp.where(instance["x"][0] > 0, good.lhs, jnp.nan))

    assert _verdict(_statement(evaluate, search="none")).status == "inconclusive"


def test_instances_outside_the_hypotheses_never_count():
    never = lambda instance, size: {"x is huge": instance["x"][0] > 1e9}
    verdict = _verdict(_statement(hypotheses=never))
    assert verdict.status == "vacuous" and verdict.excluded == {"x is huge": 128}
    short = lambda instance, size: {"|x| <= 1": instance["x"] @ instance["x"] <= 1}

    def evaluate(instance, size):
        return Sides(lhs=instance["x"] @ instance["x"], rhs={"printed": 2.0, "control": 0.5})

    shrink = lambda instance, size: {**instance, "x": instance["x"] / 1e3}
    assert _verdict(_statement(evaluate, hypotheses=short)).worst_ratio <= 0.5
    assert _verdict(_statement(evaluate, hypotheses=short, project=shrink)).status == "holds"


def test_a_bound_that_never_beats_the_trivial_one_is_vacuous():
    def evaluate(instance, size):
        return Sides(
            lhs=jnp.cos(instance["x"][0]), rhs={"printed": 5.0, "control": 0.0}, trivial=1.0
        )

    assert _verdict(_statement(evaluate)).status == "vacuous"


def test_an_error_bar_across_one_is_inconclusive():
    def evaluate(instance, size):
        return Sides(lhs=0.9, rhs={"printed": 1.0, "control": 0.5}, error=0.2)

    assert _verdict(_statement(evaluate, search="none")).status == "inconclusive"


def test_identities_compare_whole_arrays():
    def evaluate(instance, size):
        x = instance["x"]
        return Sides(lhs=jnp.sin(2 * x), rhs={"printed": 2 * jnp.sin(x) * jnp.cos(x), "control": x})

    verdict = _verdict(_statement(evaluate, kind="identity"))
    assert verdict.status == "holds" and verdict.worst_ratio < 1e-14


@pytest.mark.parametrize(
    "y, ratio, said", [([0.0, 1], 2.0, "satisfies the form"), ([1.0, 0], 2.1, "ratio=2.1")]
)
def test_a_stored_counterexample_that_is_not_as_recorded_is_noticed(y, ratio, said):
    form = Form(
        name="printed", expected="fails", note="?",
        counterexample=Counterexample(instance={"x": [1.0, 0], "y": y}, size={"d": 2}, ratio=ratio),
    )  # fmt: skip
    verdict = _verdict(_statement(_cauchy(0.5), forms=(form,)))
    assert verdict.status == "inconclusive" and said in verdict.reason


@pytest.mark.parametrize(
    "instance, said",
    [
        (
            {"x": [1.0, 0, 0], "y": [1.0, 0, 0]},
            r"has \['x'\] of shape \(3,\).*; expected \['x'\] of shape \(2,\)",
        ),
        ({"x": [1.0, 0]}, r"has fewer entries; expected \['y'\] of shape \(2,\)"),
    ],
)
def test_a_counterexample_of_another_shape_is_refused(instance, said):
    counterexample = Counterexample(instance=instance, size={"d": 2}, ratio=2.0)
    form = Form(name="printed", expected="fails", note="?", counterexample=counterexample)
    statement = _statement(_cauchy(0.5), forms=(form,))
    with pytest.raises(ValueError, match=said):
        _verdict(statement)
    with pytest.raises(ValueError, match=said):
        disprove(statement, "printed", instance, {"d": 2})


def _noise(key, size):
    return {"z": jax.random.normal(key, (size["d"],))}


@pytest.mark.parametrize("level, status", [(0.2, "holds"), (0.02, "fails"), (0.13, "inconclusive")])
def test_probabilities_use_exact_intervals(level, status):
    # P(|z| > 1.5) = 0.1336.
    def evaluate(instance, size):
        return Sides(lhs=jnp.abs(instance["z"][0]), rhs={"printed": 1.5, "control": 0.1})

    statement = _statement(
        evaluate, kind="probability", sample=_noise, level=level, budget=Budget(samples=2000)
    )
    assert _verdict(statement).status == status


def test_expectations_compare_means():
    def evaluate(instance, size):
        z = instance["z"]
        return Sides(lhs=z @ z, rhs={"printed": 1.2 * len(z), "control": 0.8 * len(z)})

    statement = _statement(evaluate, kind="expectation", sample=_noise, budget=Budget(samples=4000))
    verdict = _verdict(statement)
    assert verdict.status == "holds" and verdict.worst_ratio == pytest.approx(1 / 1.2, rel=0.05)


@pytest.mark.parametrize(
    "power, sense, status",
    [
        (1.0, "at most", "consistent"),
        (1.0, "at least", "consistent"),
        (1.0, "exactly", "consistent"),
        (1.001, "at most", "inconsistent"),
        (0.999, "at least", "inconsistent"),
        (1.001, "exactly", "inconsistent"),
    ],
)
def test_an_exact_power_is_judged_whatever_its_rounding(power, sense, status):
    def evaluate(instance, size):
        n = 1.0 * instance["x"].shape[0]
        off = 0.5 if sense == "at least" else 2.0
        return Sides(lhs={"printed": 3 * n**power, "control": 3 * n**off}, rhs=_both(n))

    _both = lambda n: {"printed": n, "control": n}
    statement = _statement(
        evaluate,
        kind="rate",
        forms=(Form(name="printed", sense=sense, expected=status),),
        sizes=tuple({"d": d} for d in (3, 7, 20, 50)),
        search="none",
    )
    assert _verdict(statement).status == status


@pytest.mark.parametrize("power, status", [(0.5, "consistent"), (-3.97, "inconclusive")])
def test_an_exponent_far_below_a_claim_at_most_is_noticed(power, status):
    def evaluate(instance, size):
        n = 1.0 * instance["x"].shape[0]
        return Sides(lhs={"printed": n**power, "control": n**2}, rhs={"printed": n, "control": n})

    form = Form(name="printed", sense="at most", exponent=(0.4, 0.6))
    sizes = tuple({"d": d} for d in (3, 7, 20, 50))
    options = {"kind": "rate", "sizes": sizes, "search": "none"}
    verdict = _verdict(_statement(evaluate, forms=(form,), **options))
    assert verdict.status == status and verdict.worst_ratio == pytest.approx(power)
    with pytest.raises(ValueError, match=r"expected \(low, high\) of a rate"):
        _statement(forms=(Form(name="printed", exponent=(0.0, 1.0)),))


def test_files_have_plain_names_of_their_own(tmp_path):
    form = Form(name="printed, l'(0) <= 1/2")
    verdict = _verdict(_statement(_named(form.name), forms=(form,)), store=tmp_path)
    assert verdict.worst_file == "worst/mine.cauchy.printed-l-0-1-2.npz"
    assert (tmp_path / verdict.worst_file).is_file()
    with pytest.raises(ValueError, match="must differ in letters and digits"):
        _statement(forms=(Form(name="printed <"), Form(name="printed >")))


def _named(name):
    def evaluate(instance, size):
        x, y = instance["x"], instance["y"]
        bound = jnp.linalg.norm(x) * jnp.linalg.norm(y)
        return Sides(lhs=jnp.abs(x @ y), rhs={name: 2 * bound, "control": 0.9 * bound})

    return evaluate


def test_rates_are_never_said_to_hold():
    def evaluate(instance, size):
        x = jnp.exp(instance["z"][0])
        noise = jnp.exp(0.01 * instance["z"][1])
        return Sides(lhs=noise * x**2, rhs={"printed": x**2.5, "sharpened": x, "control": x**1.5})

    forms = (
        Form(name="printed", sense="at most"),
        Form(name="sharpened", expected="inconsistent", sense="at most"),
    )
    statement = _statement(evaluate, kind="rate", sample=_noise, forms=forms)
    printed, sharpened = falsify(statement)
    assert (printed.status, sharpened.status) == ("consistent", "inconsistent")
    assert printed.worst_ratio == pytest.approx(0.8, rel=0.01)


def test_random_search_moves_integers():
    def sample(key, size):
        return {"bits": jax.random.randint(key, (12,), 0, 2), "x": jnp.zeros(1)}

    def evaluate(instance, size):
        ones = jnp.sum(instance["bits"]).astype(float)
        return Sides(lhs=ones, rhs={"printed": 12.5, "control": 11.5})

    statement = _statement(evaluate, sample=sample, search="random", sizes=({"d": 1},))
    budget = Budget(samples=8, restarts=8, steps=300)
    assert _verdict(statement, budget=budget).control["status"] == "fails"


def test_exhaustive_cases_are_all_measured():
    def cases(size):
        return {"n": np.arange(100)}

    def evaluate(instance, size):
        n = instance["n"].astype(float)
        return Sides(lhs=n * n, rhs={"printed": n**2, "control": n**2 + 1})

    statement = _statement(evaluate, kind="construction", sample={}, cases=cases)
    verdict = _verdict(statement)
    assert verdict.status == "holds" and verdict.instances == 200


def test_the_same_seed_gives_the_same_verdict(tmp_path):
    statement = _statement()
    first, second = _verdict(statement, seed=3), _verdict(statement, seed=3, store=tmp_path)
    assert first.worst_ratio == second.worst_ratio and first.quantiles == second.quantiles
    assert first.quantiles != _verdict(statement, seed=4).quantiles


def test_the_worst_instance_replays_to_the_same_ratio(tmp_path):
    statement = _statement()
    verdict = _verdict(statement, store=tmp_path)
    stored = load_instance(tmp_path / verdict.worst_file)
    _, ratios, before = replay(lambda name: statement, stored)
    assert ratios["printed"] == before == verdict.worst_ratio
    other = dataclasses.replace(statement, forms=(Form(name="sharpened"),))
    with pytest.raises(ValueError, match="has no form='printed'"):
        replay(lambda name: other, stored)


def test_an_instance_of_another_shape_is_not_replayed(tmp_path):
    statement = _statement()
    verdict = _verdict(statement, store=tmp_path)
    stored = load_instance(tmp_path / verdict.worst_file)
    for leaves in (
        {name: np.append(leaf, 1.0) for name, leaf in stored.instance.items()},
        {name: leaf[None] for name, leaf in stored.instance.items()},
        {**stored.instance, "more": np.zeros(3)},
        {name + "2": leaf for name, leaf in stored.instance.items()},
    ):
        with pytest.raises(ValueError, match="do not fit statement"):
            replay(lambda name: statement, stored._replace(instance=leaves))


def test_damaged_instances_are_refused(tmp_path):
    path = save_instance(tmp_path / "a.npz", {"p": {"x": np.arange(3.0)}}, ratio="1")
    assert load_instance(path).instance["p"]["x"].tolist() == [0, 1, 2]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    for damage in (bytes(content), path.read_bytes()[:100], b"not a zip"):
        (tmp_path / "b.npz").write_bytes(damage)
        with pytest.raises(ValueError, match="damaged"):
            load_instance(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", x=1)
    with pytest.raises(ValueError, match="damaged"):
        load_instance(tmp_path / "c.npz")
    with pytest.raises(ValueError, match="does not exist"):
        load_instance(tmp_path / "missing.npz")
    with pytest.raises(TypeError, match="sequence"):
        save_instance(tmp_path / "d.npz", {"x": [1, 2]})


@pytest.mark.parametrize("failures, trials", [(0, 10), (3, 10), (10, 10), (7, 1000)])
def test_clopper_pearson_is_the_binomial_tail(failures, trials):
    # The definition: at each end the binomial tail beyond the observation is alpha / 2.
    low, high = clopper_pearson(failures, trials, confidence=0.99)
    if failures:
        assert stats.binom.sf(failures - 1, trials, low) == pytest.approx(0.005)
    if failures < trials:
        assert stats.binom.cdf(failures, trials, high) == pytest.approx(0.005)
    with pytest.raises(ValueError, match="trials"):
        clopper_pearson(2, 1)


def test_fitted_exponent_recovers_a_power_law():
    x = np.logspace(0, 3, 50)
    noise = np.exp(0.05 * np.random.default_rng(1).normal(size=50))
    _, low, high = fitted_exponent(x, 3 * x**0.7 * noise)
    assert low < 0.7 < high and high - low < 0.05
    for bad in (x[:2], -x, np.ones(50)):
        with pytest.raises(ValueError):
            fitted_exponent(bad, bad)
