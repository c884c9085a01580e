"""What stands behind a verdict, on statements whose sharp constants are known by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds import falsify
from jaxbounds.claims.statements import Budget, Form, Sides, Statement
from jaxbounds.falsification import Examples
from jaxbounds.falsification.hypothesis_coverage import never_missed

QUICK = Budget(samples=64, restarts=4, steps=80, batch=32)


def _pair(key, size):
    x, y = jax.random.normal(key, (2, size["d"]))
    return {"x": x, "y": y}


def _cauchy(factor):
    def evaluate(instance, size):
        x, y = instance["x"], instance["y"]
        product = jnp.sqrt(x @ x) * jnp.sqrt(y @ y)
        return Sides(
            lhs=jnp.abs(x @ y), rhs={"printed": factor * product, "control": 0.5 * product}
        )

    return evaluate


def _verdict(factor=1.0, *, equality="y = x", **options):
    defaults = {
        "id": "mine.cauchy",
        "label": "1",
        "formula": "|<x, y>| <= |x| |y|",
        "kind": "inequality",
        "sample": _pair,
        "evaluate": _cauchy(factor),
        "forms": (Form(name="printed", equality=equality),),
        "control": "half of it",
        "sizes": ({"d": 2}, {"d": 3}),
        "budget": QUICK,
    }
    return falsify(Statement(**(defaults | options)))[0]


def test_an_equality_case_that_is_reached():
    verdict = _verdict()
    assert (verdict.status, verdict.evidence, verdict.near) == ("holds", "attained", True)
    assert 0 <= verdict.sensitivity < 1e-9
    # Continuous draws differ; a search gives one instance a start, for either size.
    assert verdict.distinct > 2 * 64 and verdict.accepted > 0
    assert set(verdict.by_size) == {"d=2", "d=3"}
    assert max(verdict.by_size.values()) == verdict.worst_ratio


def test_an_equality_case_that_is_not_reached():
    """The right side is twice what it should be: the claimed equality would never be noticed."""
    verdict = _verdict(2.0)
    assert verdict.status == "inconclusive" and not verdict.near
    assert "the named equality case: y = x" in verdict.reason


@pytest.mark.parametrize("factor, near", [(1.005, True), (1.02, False)])
def test_the_near_control_is_one_per_cent_away(factor, near):
    verdict = _verdict(factor, equality="")
    assert (verdict.status, verdict.near, verdict.evidence) == ("holds", near, "searched")
    assert verdict.sensitivity == pytest.approx(1 - 1 / factor, abs=1e-6)


def test_without_a_search_the_evidence_is_a_sample():
    verdict = _verdict(2.0, equality="", search="none")
    assert (verdict.evidence, verdict.accepted, verdict.distinct) == ("sampled", 0, 128)


def test_what_was_enumerated_is_said():
    bits = lambda size: {"x": np.array([[0.0, 1], [1, 0], [1, 1]]), "y": np.ones((3, 2))}
    options = {"sample": {}, "cases": bits, "sizes": ({"d": 2},), "search": "none"}
    verdict = _verdict(2.0, equality="", enumerates="all non-zero bits", **options)
    assert (verdict.evidence, verdict.enumerates) == ("enumerated", "all non-zero bits")
    assert verdict.distinct == 3
    with pytest.raises(ValueError, match=r"Try cases=\.\.\., and no sample"):
        _verdict(enumerates="everything")


def test_the_near_control_of_an_identity_needs_an_error_below_a_millionth():
    def evaluate(error):
        def of(instance, size):
            total = jnp.sum(instance["x"])
            sides = {"printed": instance["x"] @ jnp.ones(size["d"]), "control": 2 * total}
            return Sides(lhs=total, rhs=sides, error=error * jnp.abs(total))

        return of

    options = {"kind": "identity", "equality": "", "tolerance": 1e-5}
    assert not _verdict(evaluate=evaluate(0.0), **options).near
    assert _verdict(evaluate=evaluate(0.0), **(options | {"tolerance": 1e-10})).near


@pytest.mark.parametrize(
    "words, options",
    [
        ("that uses its key", {"sample": lambda key, size: _pair(jax.random.key(0), size)}),
        (
            "Try `project`",
            {
                "hypotheses": lambda instance, size: {
                    "on a grid": jnp.all(
                        instance["x"] == instance["n"].astype(float) * instance["y"]
                    )
                    & jnp.all(instance["y"] == jnp.arange(1.0, 1.0 + size["d"])),
                },
                "sample": lambda key, size: {
                    "x": jnp.arange(1.0, 1.0 + size["d"])
                    * (n := jax.random.randint(key, (), 1, 99)).astype(float),
                    "y": jnp.arange(1.0, 1.0 + size["d"]),
                    "n": n,
                },
            },
        ),
        (
            "that differ between instances",
            {
                "evaluate": lambda instance, size: Sides(
                    lhs=1.0, rhs={"printed": 2.0, "control": 0.5}
                )
            },
        ),
    ],
)
def test_what_is_no_evidence_does_not_hold(words, options):
    verdict = _verdict(2.0, equality="", **options)
    assert verdict.status == "inconclusive" and words in verdict.reason


def test_a_frequency_is_given_by_size():
    """Uniform draws pass x <= t with frequency 1 - t: at level 1/2 the ratios are known."""

    def evaluate(instance, size):
        return Sides(lhs=instance["x"], rhs={"printed": 0.8, "control": 0.1})

    verdict = _verdict(
        equality="", kind="probability", level=0.5, evaluate=evaluate, sizes=({"d": 1},),
        sample=lambda key, size: {"x": jax.random.uniform(key)},
        budget=Budget(samples=2000),
    )  # fmt: skip
    assert verdict.by_size["d=1"] == pytest.approx(0.4, abs=0.06)
    assert verdict.evidence == "sampled" and verdict.sensitivity == 1 - verdict.worst_ratio


def test_a_horizon_is_an_entry_of_the_sizes():
    sizes = ({"d": 2}, {"d": 5})
    assert _verdict(2.0, equality="", horizon="d", sizes=sizes).horizon == 5
    with pytest.raises(ValueError, match="horizon='steps' is not in every size"):
        _verdict(horizon="steps")


def test_a_search_on_the_host_reaches_an_attained_maximum():
    """|<x, y>| <= |x| |y| on signs: attained where y = +-x; moves recombine what was drawn."""

    def signs(key, size):
        x, y = jax.random.rademacher(key, (2, size["d"]), dtype=float)
        return {"x": x, "y": y}

    def evaluate(instance, size):
        x, y = instance["x"], instance["y"]
        assert isinstance(x, np.ndarray)
        return Sides(lhs=abs(x @ y), rhs={"printed": x @ x, "control": x @ x / 2})

    options = {"host": True, "sample": signs, "sizes": ({"d": 12},), "evaluate": evaluate}
    alone = _verdict(budget=Budget(samples=6), **options, equality="")
    assert alone.searches == 0 and alone.worst_ratio < 1
    budget = Budget(samples=6, restarts=6, steps=400)
    keep = lambda instance, size: {k: np.sign(v) for k, v in instance.items()}
    found = _verdict(budget=budget, search="random", project=keep, **options)
    assert (found.evidence, found.worst_ratio) == ("attained", 1.0) and found.accepted > 0


def _plateau(top):
    """Almost every draw is far below one; at the corner (1, 1) the left side is `top`."""

    def evaluate(instance, size):
        x = instance["x"]
        peak = jnp.where(jnp.all(x >= 0.999), top, 0.0)
        return Sides(lhs=0.1 * jnp.max(x) + peak, rhs={"printed": 1.0, "control": 1e-3})

    corner = lambda size: {"x": np.ones((1, 2))}
    options = {
        "id": "mine.plateau",
        "sample": lambda key, size: {"x": 0.9 * jax.random.uniform(key, (2,))},
        "evaluate": evaluate,
        "hypotheses": lambda i, size: {"0 <= x <= 1": (i["x"] >= 0) & (i["x"] <= 1)},
        "forms": (Form(name="printed"),),
        "search": "none",
    }
    return options, corner


def _tried(statement, folder, every=False):
    return falsify(statement, examples=Examples(folder, every))[0]


def _plain(options, **more):
    base = {"label": "1", "formula": "f <= 1", "kind": "inequality", "control": "1e-3"}
    return Statement(**(base | {"sizes": ({"d": 2},), "budget": QUICK} | options | more))


def test_a_violation_is_found_again_and_others_on_request(tmp_path):
    """What a run found once is tried first by those after it, for as long as it fits."""
    options, corner = _plateau(2.0)
    alone = _tried(_plain(options), tmp_path / "empty")
    assert alone.status == "holds"
    assert _tried(_plain(options, cases=corner), tmp_path).status == "fails"
    again = _tried(_plain(options), tmp_path)
    assert again.status == "fails" and again.sources["earlier"]["worst_ratio"] == pytest.approx(2.1)

    mended, _ = _plateau(0.5)  # the same instance, and a formula that holds there
    passed = _tried(_plain(mended), tmp_path)
    assert passed.status == "holds" and passed.worst_ratio == pytest.approx(0.6)
    # That was kept in its place, violates nothing, and so is taken on request only.
    assert "earlier" not in _tried(_plain(mended), tmp_path).sources
    assert _tried(_plain(mended), tmp_path, every=True).worst_ratio == pytest.approx(0.6)


def test_certify_tries_no_instance_that_the_claim_does_not_have(tmp_path):
    failing = pytest.importorskip("jaxbounds.certification.failing")
    options, corner = _plateau(2.0)
    assert _tried(_plain(options, cases=corner), tmp_path).status == "fails"
    (found,) = failing.failing_forms(_plain(options), examples=Examples(tmp_path))
    assert np.min(found.instance["x"]) >= 0.999
    for says in ({"hypotheses": None}, {"hypotheses": lambda i, size: {"low": i["x"] <= 0.95}}):
        assert failing.failing_forms(_plain(options | says), examples=Examples(tmp_path)) == ()


def test_an_instance_that_the_claim_does_not_have_is_not_tried(tmp_path):
    """A run found the corner among its cases; the sampler alone never draws it."""
    options, corner = _plateau(2.0)
    for says in ({"hypotheses": None}, {"hypotheses": lambda i, size: {"low": i["x"] <= 0.95}}):
        assert _tried(_plain(options, cases=corner), tmp_path).status == "fails"
        found = _tried(_plain(options | says), tmp_path, every=True)
        assert found.status == "holds" and found.worst_ratio < 1
    assert _tried(_plain(options, cases=corner), tmp_path).status == "fails"
    inside = lambda i, size: {"x": jnp.clip(i["x"], 0.0, 0.95)}
    near = _tried(_plain(options | {"hypotheses": None}, project=inside), tmp_path, every=True)
    assert near.status == "holds" and near.sources["earlier"]["worst_ratio"] == pytest.approx(0.095)


def test_an_example_that_is_damaged_or_of_another_shape_is_passed_over(tmp_path):
    options, corner = _plateau(2.0)
    _tried(_plain(options, cases=corner), tmp_path)
    wider = {"sample": lambda key, size: {"x": 0.9 * jax.random.uniform(key, (3,))}}
    assert _tried(_plain(options | wider), tmp_path, every=True).status == "holds"
    for file in tmp_path.glob("*/*"):
        file.write_bytes(b"no archive")
    assert _tried(_plain(options), tmp_path, every=True).status == "holds"


def test_a_hypothesis_that_nothing_misses_is_named():
    within = lambda i, size: {
        "|x| <= 3": jnp.max(jnp.abs(i["x"])) <= 3.0,
        "y = y": i["y"] == i["y"],
    }
    sample = lambda key, size: {"x": jax.random.uniform(key, (2,)), "y": jnp.ones(2)}
    options, _ = _plateau(0.0)
    assert never_missed(_plain(options, sample=sample, hypotheses=within)) == ("y = y",)
