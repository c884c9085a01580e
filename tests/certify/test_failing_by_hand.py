"""What a run hands on to be certified, what becomes of its verdicts, and draws looked at again.

Certificates and proofs are given by stubs, so that the words of a verdict follow from what stands
here. That floats go wrong is made by hand: 2^54 + 1 is 2^54 in them, so that x + 2^54 - 2^54 is 0
at x = 1, where the truth is 1.
"""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from jaxbounds.certification import crosscheck as looked
from jaxbounds.certification import failing
from jaxbounds.certification.crosscheck import _off, crosscheck
from jaxbounds.certification.failing import Failing, certified, failed_in, failing_forms, proofs
from jaxbounds.certification.proof import Proof
from jaxbounds.claims.statements import Counterexample, Domain, Form, Sides, Size, Statement
from jaxbounds.falsification import Verdict, float64_on_cpu
from jaxbounds.falsification.storage import save_instance
from jaxbounds.programs.balls.certificate import Certificate
from jaxbounds.programs.balls.values import NotSupported, Undecided

SIZE = {"d": 1}
STATIC = Size(dict(SIZE))


def claim(lhs: Any = lambda x: 3 * x, rhs: Any = lambda x: x, error: Any = 0.0, **options: Any):
    """3 x <= x, in each form, unless the options say otherwise."""
    forms = options.get("forms", (Form(name="printed"),))

    def evaluate(i, size):
        sides = {form.name: rhs(i["x"]) for form in forms}
        return Sides(lhs(i["x"]), sides | {"control": 0 * rhs(i["x"]) - 9}, error)

    plain: dict[str, Any] = {
        "id": "mine.claim", "label": "1", "formula": "lhs <= rhs", "kind": "inequality",
        "sample": lambda key, size: {"x": jax.random.uniform(key, ())}, "sizes": (SIZE,),
        "forms": forms, "control": "far off", "evaluate": evaluate,
    }  # fmt: skip
    return Statement(**plain | options)


STORED = Counterexample(instance={"x": 2.0}, size={"d": 4}, ratio=3.0)
FAILS = Form(name="printed", expected="fails", counterexample=STORED, note="three of it is more")
BARE = Form(name="derived")
HOLDS = Form(name="corrected")
THREE = claim(forms=(FAILS, BARE, HOLDS))


def verdict(form, status, **given):
    about: dict[str, Any] = {
        "id": "mine.claim", "paper": "mine", "label": "1", "kind": "inequality",
        "relation": "<=", "form": form, "expected": "holds", "status": status, "reason": "so",
        "worst_ratio": 1.5, "instances": 7, "searches": 0, "evidence": "searched",
    }  # fmt: skip
    return Verdict(**about | given)


# --- what there is to disprove ---


def test_stored_counterexamples_are_of_forms_that_fail():
    assert failing.stored(THREE) == (Failing("printed", {"x": 2.0}, {"d": 4}),)
    assert failing.stored(claim()) == ()
    kept = Form(name="printed", expected="inconclusive", counterexample=STORED)
    assert failing.stored(claim(forms=(kept,))) == ()
    bare = Form(name="printed", expected="fails", note="it grows")
    assert failing.stored(claim(kind="trajectory", forms=(bare,))) == ()


def test_what_failed_in_a_run_is_on_what_is_stored_or_was_found(tmp_path):
    save_instance(tmp_path / "worst.npz", {"x": np.array(5.0)}, size={"d": 7})
    save_instance(tmp_path / "shrunk.npz", {"x": np.array(6.0)}, size={"d": 8})
    found = failed_in(THREE, [verdict("printed", "fails", worst_file="worst.npz")], tmp_path)
    assert found == (Failing("printed", {"x": 2.0}, {"d": 4}),)
    said = lambda form, status, **files: [
        (f.form, float(f.instance["x"]), dict(f.size))
        for f in failed_in(THREE, [verdict(form, status, **files)], tmp_path)
    ]
    both = {"worst_file": "worst.npz", "shrunk_file": "shrunk.npz"}
    assert said("derived", "fails", **both) == [("derived", 6.0, {"d": 8})]
    assert said("derived", "fails", worst_file="worst.npz") == [("derived", 5.0, {"d": 7})]
    assert said("derived", "fails") == []
    for status in ("holds", "vacuous", "inconclusive"):
        assert said("derived", status, **both) == said("printed", status, **both) == []
    two = [
        verdict("derived", "holds"),
        verdict("printed", "fails"),
        verdict("derived", "fails", **both),
    ]
    assert [f.form for f in failed_in(THREE, two, tmp_path)] == ["printed", "derived"]


def test_a_statement_that_stores_nothing_is_searched(monkeypatch):
    asked = []

    def verdicts(statement, *, seed, store, referee, examples):
        asked.append((statement.id, seed, referee, examples))
        save_instance(f"{store}/worst.npz", {"x": np.array(5.0)}, size={"d": 7})
        return (verdict("derived", "fails", worst_file="worst.npz"),)

    monkeypatch.setattr(failing, "verdicts_on", verdicts)
    assert [f.form for f in failing_forms(THREE, seed=3)] == ["printed"] and asked == []
    (found,) = failing_forms(claim(forms=(BARE, HOLDS)), seed=3, examples=failing.NONE)
    assert (found.form, float(found.instance["x"]), found.size) == ("derived", 5.0, {"d": 7})
    assert asked == [("mine.claim", 3, failing.referee, failing.NONE)]


# --- what is proved ---


def domain(name):
    return Domain(name=name, chart=lambda p, s: {"x": p[0]}, size=SIZE, lower=(0.0,), upper=(1.0,))


def proof(form="printed", word="proved on D", where="A", **given):
    return Proof(id="mine.claim", form=form, word=word, domain=where, **given)


def test_every_form_is_proved_on_each_of_its_domains(monkeypatch):
    asked = []
    prove = lambda *given, **options: asked.append((*given[1:], options)) or proof()
    monkeypatch.setattr(failing, "prove", prove)
    a, b, c = map(domain, "ABC")
    two = claim(forms=(Form(name="printed", domains=(a, b)), Form(name="derived", domains=(c,)),
                       Form(name="corrected")))  # fmt: skip
    assert len(proofs(two, seconds=9.0)) == 3
    given = {"seconds": 9.0, "boxes": failing.MOST_BOXES, "slack": None}
    assert asked == [("printed", a, given), ("printed", b, given), ("derived", c, given)]
    proofs(two, slack="1e-9")
    assert asked[-1] == ("derived", c, given | {"seconds": 120.0, "slack": "1e-9"})


def test_what_is_said_of_a_proof():
    found = (proof(boxes=3), proof(where="B", boxes=4, slack=0.5))
    said = failing._proved(found)
    assert said["reason"] == "A (3 boxes); B up to 0.5 (4 boxes)"
    assert (said["word"], said["lhs"]) == ("proved on D", None)
    assert [p["boxes"] for p in said["proofs"]] == [3, 4]
    some = (found[0], proof(word="undecided", where="B", reason="wide"),
            proof(word="proved on D as coded", where="C"))  # fmt: skip
    said = failing._open(some)
    assert said["reason"] == "B: wide; C: proved on D as coded"
    assert (said["word"], said["lhs"], len(said["proofs"])) == ("undecided", None, 3)


# --- what becomes of verdicts ---


@pytest.fixture
def certify(monkeypatch, tmp_path):
    """`certified` with certificates and proofs that are given; what was asked stands beside."""

    def run(verdicts, words=(), shown=(), statement=THREE, **options):
        asked, left = [], iter(words)

        def disprove(statement, form, instance, size, *, seconds):
            asked.append((form, instance, dict(size), seconds))
            return Certificate(id=statement.id, form=form, word=next(left), size=dict(size))

        monkeypatch.setattr(failing, "disprove", disprove)
        monkeypatch.setattr(
            failing, "proofs", lambda s, *, seconds: asked.append(seconds) or tuple(shown)
        )
        (tmp_path / "counterexamples").mkdir(exist_ok=True)
        return certified(statement, verdicts, tmp_path, **options), asked

    return run


def test_a_form_that_fails_gets_its_certificate_and_its_witness(certify, tmp_path):
    given = [verdict("printed", "fails"), verdict("corrected", "holds")]
    (one, two), asked = certify(given, ["disproved"], citation="Someone", seconds=9.0)
    assert asked == [("printed", {"x": 2.0}, {"d": 4}, 9.0), 9.0]
    assert (one.evidence, one.status, one.certificate["word"]) == (
        "disproved",
        "fails",
        "disproved",
    )
    assert one.witness_file == "counterexamples/mine.claim.printed.json"
    witness = json.loads((tmp_path / one.witness_file).read_text())
    assert (witness["citation"], witness["word"], witness["size"]) == (
        "Someone",
        "disproved",
        {"d": 4},
    )
    assert witness["instance"]["x"]["exact"] == ["2"]
    text = (tmp_path / one.theorem_file).read_text()
    assert "Someone" in text and one.theorem_file.endswith(".v")
    assert two is given[1]


def test_what_is_undecided_has_no_witness(certify, tmp_path):
    (one,), _ = certify([verdict("printed", "fails")], ["undecided"])
    assert (one.evidence, one.witness_file) == ("searched", "")
    assert one.certificate["word"] == "undecided"
    assert not list((tmp_path / "counterexamples").iterdir())


@pytest.mark.parametrize(("word", "as_coded"), [("disproved", False), ("disproved as coded", True)])
def test_the_file_for_a_kernel_is_of_the_same_word(certify, monkeypatch, tmp_path, word, as_coded):
    asked = []
    write = lambda *given, **options: asked.append((given[1:], options)) or "text"
    monkeypatch.setattr(failing, "disproof_file", write)
    (one,), _ = certify([verdict("printed", "fails")], [word], citation="Someone")
    assert one.evidence == word
    ((given, options),) = asked
    assert given == ("printed", {"x": 2.0}, {"d": 4})
    assert (options["as_coded"], options["citation"]) == (as_coded, "Someone")
    assert (tmp_path / one.theorem_file).read_text() == "text"

    def refuse(*given, **options):
        raise ValueError("too many operations")

    monkeypatch.setattr(failing, "disproof_file", refuse)
    (tmp_path / one.theorem_file).unlink()
    (one,), _ = certify([verdict("printed", "fails")], [word])
    assert one.evidence == word and not (tmp_path / one.theorem_file).exists()


@pytest.mark.parametrize(
    ("status", "words", "evidence", "word"),
    [
        ("holds", ["proved on D"], "proved on D", "proved on D"),
        ("holds", ["proved on D"] * 2, "proved on D", "proved on D"),
        ("holds", ["proved on D", "undecided"], "searched", "undecided"),
        ("holds", ["undecided", "proved on D"], "searched", "undecided"),
        ("holds", ["proved on D as coded"], "searched", "proved on D as coded"),
        ("holds", ["false on D"], "searched", "false on D"),
        ("holds", [], "searched", None),
        ("inconclusive", ["proved on D"], "searched", None),
        ("vacuous", ["proved on D"], "searched", None),
    ],
)
def test_a_form_is_proved_where_it_holds_and_on_all_of_its_domains(
    certify, status, words, evidence, word
):
    shown = [proof("corrected", word) for word in words] + [proof("derived")]
    given = verdict("corrected", status)
    (one,), _ = certify([given], shown=shown)
    assert (one.evidence, one.status) == (evidence, status)
    assert (one.certificate or {}).get("word") == word
    if word is None:
        assert one is given


def test_a_form_that_fails_is_not_proved(certify):
    (one,), _ = certify([verdict("printed", "fails")], ["disproved"], [proof("printed")])
    assert (one.evidence, one.certificate["word"]) == ("disproved", "disproved")


# --- draws that are looked at again ---

LOST = lambda x: (x + 2.0**54) - 2.0**54
"""0 in floats, at 1."""


def compared(statement, x=1.0):
    with float64_on_cpu():
        end = looked.time.process_time() + 20.0
        given = {"x": jnp.asarray(x)}
        return looked._compare(statement, statement.forms[0], given, STATIC, end)


IDENTITY: dict[str, Any] = {"kind": "identity", "relation": "="}
AMONG_LARGE = (lambda x: jnp.stack([LOST(x), 8192 * x]), lambda x: jnp.stack([0 * x, 8192 * x]))


def tie(x):
    """5 or 7, where no precision says which."""
    return jnp.array([7.0, 5.0])[jnp.argmax(jnp.stack([jnp.sqrt(2 * x) ** 2, 2 * x]))]


@pytest.mark.parametrize(
    ("statement", "finding", "amount"),
    [
        (claim(lambda x: x, lambda x: 4 * x), "agrees", -0.75),
        (claim(LOST, lambda x: 8 * x), "error too small", 0.125),
        (claim(LOST, lambda x: 8 * x, 0.5), "error too small", 0.125),
        (claim(LOST, lambda x: 8 * x, 1.0), "agrees", -0.875),
        (claim(lambda x: 8 * x, LOST, relation=">="), "error too small", 0.125),
        (claim(lambda x: -8 * x, LOST), "error too small", 0.125),
        (claim(tie, lambda x: 6 * x), "agrees", -1 / 6),
        (claim(*AMONG_LARGE, tolerance=2.0**-10, **IDENTITY), "agrees", 2.0**-13),
        (claim(*AMONG_LARGE, 0.5, tolerance=2.0**-10, **IDENTITY),
         "error too small", 2.0**-13),
        (claim(LOST, lambda x: 2048 * x, tolerance=2.0**-10), "agrees", 2.0**-11 - 1),
        (claim(LOST, lambda x: 2048 * x, tolerance=2.0**-12), "error too small", 2.0**-11),
        (claim(LOST, lambda x: x / 2), "violated", 0.5),
        (claim(LOST, lambda x: x / 2, kind="trajectory"), "error too small", 2.0),
        (claim(lambda x: jnp.stack([LOST(x), 8 * x]), lambda x: jnp.stack([0 * x, 8 * x]),
               **IDENTITY), "apart", 0.125),
        (claim(lambda x: jnp.stack([x, 8 * x]), lambda x: jnp.stack([x, 8 * x]), **IDENTITY),
         "agrees", 0.0),
        (claim(lambda x: 0 * x, lambda x: 0 * x, **IDENTITY), "agrees", 0.0),
    ],
)  # fmt: skip
def test_what_a_second_look_at_a_draw_finds(statement, finding, amount):
    found = compared(statement)
    assert found[0] == finding
    assert found[1] == pytest.approx(amount, abs=1e-9)


def test_what_floats_cannot_tell_apart_is_in_the_reason():
    _, _, reason = compared(claim(LOST, lambda x: 8 * x, 0.5))
    assert reason == "the float difference is wrong by 1, and the stated error is 0.5"


def test_a_hypothesis_that_floats_wrongly_meet_is_named():
    plain = {"forms": (Form(name="printed"),)}
    asked = lambda i, s: {"a": i["x"] > 0, "small": LOST(i["x"]) <= 0}
    missed = claim(rhs=lambda x: 9 * x, hypotheses=asked, **plain)
    assert compared(missed) == ("hypothesis missed", 0.0, "small")
    out = claim(hypotheses=lambda i, s: {"small": i["x"] <= 0}, **plain)
    assert compared(out) == ("agrees", 0.0, "the draw misses a hypothesis, so it does not count")


def balls(*pairs):
    out = np.empty(len(pairs), object)
    out[:] = [arb(*pair) if isinstance(pair, tuple) else arb(pair) for pair in pairs]
    return out


@pytest.mark.parametrize(
    ("near", "way", "off"),
    [
        (([1.0, 2.0], [0.0, 0.0]), (balls(1, 3), balls(0, 0.5)), 0.5),
        (([1.0, 2.0], [0.0, 0.0]), (balls(1, 3), balls(0, 2)), 1.0),
        (([1.0], [0.0]), (balls((3, 1)), balls(0)), 1.0),
        (([1.0], [0.0]), (balls(3), balls((0, 1))), 1.0),
        (([5.0], [1.0]), (balls(3), balls(1)), 2.0),
        (([1.0, 2.0], [4.0]), (balls(1, 3), balls(4)), 1.0),
        (([4.0], [1.0, 2.0]), (balls(4), balls(1, 3)), 1.0),
        (([np.inf, 2.0], [0.0, 0.0]), (balls(1, 3), balls(0, 0)), 1.0),
        (([0.0, 2.0], [np.nan, 0.0]), (balls(9, 3), balls(0, 0)), 1.0),
        (([9.0, 2.0], [0.0, 0.0]), (balls(arb("inf"), 3), balls(0, 0)), 1.0),
        (([np.inf], [0.0]), (balls(1), balls(0)), 0.0),
    ],
)
def test_how_far_floats_are_off(near, way, off):
    assert _off([np.array(side) for side in near], way) == pytest.approx(off, abs=1e-8)


def test_floats_that_may_be_right_are_not_off():
    """At least nothing, which is a negative number too."""
    assert _off([np.array([1.0]), np.array([0.0])], (balls((1, 1)), balls(0))) <= 0


def drawn_by(key, size):
    return {"x": jax.random.uniform(key, ())}


def test_what_is_drawn():
    """So many of each sampler, from one key each, and so many of the cases."""
    other = lambda key, size: {"x": -jax.random.uniform(key, ())}
    statement = claim(sample={"a": drawn_by, "b": other},
                      cases=lambda size: {"x": jnp.array([5.0, 6.0, 7.0])})  # fmt: skip
    draws = [float(i["x"]) for i in looked._draws(statement, STATIC, 2, 3)]
    keys = jax.random.split(jax.random.key(3), 2)
    first = [float(jax.random.uniform(key, ())) for key in keys]
    assert draws == [*first, *(-x for x in first), 5.0, 6.0]
    assert len(list(looked._draws(statement, STATIC, 5, 3))) == 5 + 5 + 3
    assert len(list(looked._draws(claim(), STATIC, 2, 3))) == 2


def test_forms_that_hold_are_compared_on_every_draw(monkeypatch):
    answers = iter([("violated", 0.5, "why"), Undecided("wide"), NotSupported("none"),
                    ("agrees", -1.0, "")])  # fmt: skip
    asked = []

    def compare(statement, form, instance, size, end):
        asked.append((form.name, dict(size), end - looked.time.process_time()))
        out = next(answers)
        if isinstance(out, Exception):
            raise out
        return out

    monkeypatch.setattr(looked, "_compare", compare)
    vacuous = Form(name="derived", expected="vacuous", note="it says nothing")
    statement = claim(forms=(FAILS, vacuous, HOLDS), sizes=({"d": 2}, {"d": 3}))
    found = crosscheck(statement, draws=2, seconds=50.0)
    said = [(f.id, f.form, f.finding, f.amount, f.reason) for f in found]
    assert said == [
        ("mine.claim", "derived", "violated", 0.5, "why"),
        ("mine.claim", "corrected", "not run", 0.0, "wide"),
        ("mine.claim", "derived", "not run", 0.0, "none"),
        ("mine.claim", "corrected", "agrees", -1.0, ""),
    ]
    assert all(0 <= f.seconds < 20 for f in found)
    assert all(size == {"d": 2} and 0 < left <= 50 for _, size, left in asked)
    assert crosscheck(statement, draws=2, seconds=-1.0) == []
