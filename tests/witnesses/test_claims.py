"""What a witness says of itself cannot change what is confirmed: each alteration of it is refused.

Altered are relation, words, sizes, shapes, types, leaves and entry, in every stored witness, by
rule. And on instances where the form is true no witness is confirmed, whatever it says.
"""

import copy
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import checker
import pytest
from checker.claims import Claim, checks
from checker.witness import TEXT
from stored import (
    FILES,
    KNOWN,
    NOT_RECOMPUTED,
    QUICK,
    decimals,
    entries_altered,
    key,
    load,
    signed,
)

Alterations = Iterator[tuple[str, dict[str, Any]]]


def relations(document: dict[str, Any]) -> Alterations:
    for relation in {"<=", "=", "<", ">=", "==", "!=", ""} - {document["relation"]}:
        yield f"relation {relation}", {**document, "relation": relation}


def words(document: dict[str, Any]) -> Alterations:
    for name in ("formula", "statement", "form", *TEXT):
        for text in {"1 + 1 = 2", "", document[name] + " ", document[name][1:]} - {document[name]}:
            yield f"{name} {text!r}", {**document, name: text}
    missed = document["hypotheses"]
    for other in ([*missed, "R >= 1"], missed[1:], [""]):
        if other != missed:
            yield f"hypotheses {other}", {**document, "hypotheses": other}


def sizes(document: dict[str, Any]) -> Alterations:
    size = document["size"]
    for name, number in size.items():
        for other in (0, number - 1, number + 1, 2 * number, -number, float(number), str(number)):
            yield f"{name} = {other!r}", {**document, "size": {**size, name: other}}
        fewer = {other: n for other, n in size.items() if other != name}
        yield f"no {name}", {**document, "size": fewer}
    yield "another size", {**document, "size": {**size, "other": 1}}


def with_leaf(document: dict[str, Any], name: str, **changes: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    changed["instance"][name].update(changes)
    return changed


def shapes(document: dict[str, Any]) -> Alterations:
    for name, leaf in document["instance"].items():
        shape, count = leaf["shape"], len(leaf["exact"])
        others = [[*shape, 1], [1, *shape], shape[::-1], [count], [-1], [*shape[:-1], count], []]
        for other in others:
            if other != shape:
                yield f"{name} {other}", with_leaf(document, name, shape=other)
        more = {"shape": [shape[0] + 1, *shape[1:]] if shape else [2], "exact": leaf["exact"] * 2}
        more["exact"] = more["exact"][: count // shape[0] * (shape[0] + 1) if shape else 2]
        # One more of what may be any number is another instance, and is judged as such.
        if (key(document)[0], name) not in MAY_GROW:
            yield f"{name} of one more", with_leaf(document, name, **more)


MAY_GROW = {
    ("multihead.eq9", "patterns"): "M + 2 patterns",
    ("multihead.lem16", "alpha"): "H is no size",
    ("seqlength.lemma3.2", "x"): "any number of points",
}


def types(document: dict[str, Any]) -> Alterations:
    for name, leaf in document["instance"].items():
        for kind in {"f", "i", "b", "u", "c", "O", ""} - {leaf["type"]}:
            yield f"{name} {kind}", with_leaf(document, name, type=kind)


def leaves(document: dict[str, Any]) -> Alterations:
    instance = document["instance"]
    for name, leaf in instance.items():
        rest = {other: x for other, x in instance.items() if other != name}
        yield f"no {name}", {**document, "instance": rest}
        yield f"{name} by another name", {**document, "instance": {**rest, name + "_": leaf}}
        yield f"{name} twice", {**document, "instance": {**instance, name + "_": leaf}}


def entries(document: dict[str, Any]) -> Alterations:
    others = [0.5, 0.0, "0", True, False, -1, [0], 10**30]
    for other in [*others, *([None] if document["relation"] == "=" else [0, 1])]:
        yield f"entry {other!r}", {**document, "entry": other}


def ends(document: dict[str, Any]) -> Alterations:
    for side in ("lhs", "rhs"):
        low, high = document[side]
        for other in ([low], [low, high, high], [], low, [float(low), float(high)], ["nan", "nan"]):
            yield f"{side} {other}", {**document, side: other}
        for text in ("inf", "-inf", "1e999999999", "1E+999999999", "1/2", "0x1", " 1", "1_0", "٣"):
            yield f"{side} {text}", {**document, side: [text, text]}


ALTERATIONS = [relations, words, sizes, shapes, types, leaves, entries, ends]


@pytest.mark.parametrize("altered", ALTERATIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("document", KNOWN)
def test_alterations_are_refused(document, altered):
    tried = list(altered(document))
    for change, other in tried:
        verdict = checker.check(signed(other))
        unknown = "no recomputation" in verdict.reason
        assert verdict.word == "refused" or unknown, (change, verdict)
        assert "\n" not in verdict.reason, change
    assert tried or altered is sizes


@pytest.mark.parametrize("document", [p for p in KNOWN if p.values[0]["relation"] == "="])
def test_an_entry_beyond_the_last_is_rejected(document):
    verdict = checker.check(signed({**document, "entry": 10**6}))
    assert (verdict.word, "is no one" in verdict.reason) == ("rejected", True)


TRUE_OF_BOTH = {
    ("multihead.sec5.2.phi0", "multihead.eq25"): "at v = 0 both print the same matrix",
    ("seqlength.appe.chain", "seqlength.appe.cover"): "both bounds are the same there",
}
"""Statements of which one's witness is the other's, too, under its name."""


@pytest.mark.slow_cases("multihead.footnote1.pooling.w.printed")
@pytest.mark.parametrize("document", QUICK)
def test_no_witness_passes_for_one_of_another_form(document):
    """All that names the claim is taken from the other; instance and enclosures stay."""
    for other in map(load, FILES):
        if key(other) == key(document):
            continue
        named = ("statement", "form", "relation", "formula", "hypotheses", *TEXT)
        renamed = {**document, **{name: other[name] for name in named}}
        for posed in (renamed, {**renamed, "size": other["size"], "entry": other["entry"]}):
            both = (document["statement"], other["statement"]) in TRUE_OF_BOTH
            assert checker.check(signed(posed)).confirmed == both, key(other)


def _true_instance(document: dict[str, Any]) -> dict[str, Any] | None:
    """A witness whose enclosures are right, on an altered instance where the form is true."""
    for altered in _altered_widely(document):
        verdict = checker.check(altered)
        known = verdict.lhs is not None and all(x.a * x.b > 0 for x in (verdict.lhs, verdict.rhs))
        if known and (verdict.lhs - verdict.rhs).b < 0:
            sides = {"lhs": _enclosed(verdict.lhs), "rhs": _enclosed(verdict.rhs)}
            return signed({**altered, **sides})
    return None


def _altered_widely(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """By hand, single entries by one or their sign, a leaf by a factor or to one number."""
    if key(document) in TRUE:
        by_hand = copy.deepcopy(document)
        for name, value in TRUE[key(document)].items():
            by_hand["instance"][name]["exact"] = [str(Fraction(value))]
        yield signed(by_hand)
    yield from (altered for _, altered in entries_altered(document))
    for name, leaf in document["instance"].items():
        for factor in FACTORS:
            scaled = [Fraction(text) * factor for text in leaf["exact"]]
            for numbers in (scaled, [factor] * len(scaled)):
                if leaf["type"] == "f" or all(x.denominator == 1 for x in numbers):
                    yield signed(with_leaf(document, name, exact=list(map(str, numbers))))


TRUE = {("multihead.sec5.3.sparsity", "derived, gamma* - gamma_lin"): {"zeta": 0.9, "less": 0.7}}
"""Instances on which a form is true, where two numbers have to change."""

FACTORS = [Fraction(2) ** power for power in (-20, -8, -4, -2, -1, 1, 2, 4, 8)] + [Fraction(3)]


def _enclosed(x: Any) -> list[str]:
    lower, upper = (Fraction(float(end)) for end in (x.a.mid, x.b.mid))
    return decimals(lower - abs(lower) / 10**12, upper + abs(upper) / 10**12)


@pytest.mark.slow_cases("multihead.prop7.distance.printed")
@pytest.mark.parametrize("document", [p for p in QUICK if p.values[0]["relation"] == "<="])
def test_a_true_instance_is_not_confirmed_whatever_the_witness_says(document):
    right = _true_instance(document)
    assert (right is None) == (key(document) in NONE_FOUND)
    if right is not None:
        verdict = checker.check(right)
        assert "not certainly violated" in verdict.reason, verdict
        turned = signed({**right, "relation": "=", "entry": 0})
        assert "the relation is '<='" in checker.check(turned).reason


NONE_FOUND = {
    ("multihead.eq116", "printed, alpha = +-1"),
    ("multihead.eq21", "printed"),
    ("multihead.footnote1.pooling", "printed"),
    ("multihead.prop3.margin", "printed, Section 7"),
    ("multihead.prop7.distance", "printed"),
    ("qstr.lem12.small", "printed"),
    ("qstr.lem38.bias", "derived as read"),
    ("seqlength.appc.norms", "derived, over rows"),
    ("seqlength.appc.peeling", "derived"),
    ("seqlength.cor4.2.1", "derived"),
    ("seqlength.lemma3.1", "printed"),
    ("seqlength.lemma3.1.count", "printed"),
    ("smapprox.condd.3.ties", "printed"),
    ("smapprox.lemmab.1.norm", "printed"),
    ("smapprox.thm4.1.norms", "printed"),
}
"""Forms whose witness becomes no true instance by these alterations."""


def test_the_count_of_heads_is_that_of_the_instance():
    """Four heads called one: L = log(1 + e^{-y Phi}) has 1/sqrt(H) in Phi."""
    document = copy.deepcopy(load(next(p for p in FILES if p.name.startswith("multihead.eq24"))))
    for name in ("U", "W"):
        leaf = document["instance"][name]
        leaf["shape"][0], leaf["exact"] = 4, leaf["exact"] * 4
    assert "the size of this instance is" in checker.check(signed(document)).reason


@pytest.mark.parametrize("document", KNOWN)
def test_the_registration_is_that_of_the_stored_witness(document):
    """A statement changed its words, and its witness was written anew: what to change is said."""
    witness = checker.read(document)
    claim = checker.CLAIMS[key(document)]
    words = (claim.formula, claim.text)
    assert words == (witness.formula, checker.text_digest(witness.text)), claim.renewed(witness)


def test_how_to_register_new_words_is_said():
    document = load(next(p for p in FILES if p.name.startswith("multihead.eq129")))
    witness = checker.read(signed({**document, "formula": "2x <= x", "note": "another"}))
    said = checker.CLAIMS[key(document)].renewed(witness)
    assert "the decorator of scores_off in checker/multihead/oracle.py" in said
    assert 'formula="2x <= x"' in said
    assert f'text="{checker.text_digest(witness.text)}"' in said


@pytest.mark.parametrize("document", KNOWN)
def test_what_was_confirmed_is_said_in_the_checkers_words(document):
    verdict = checker.check(document)
    claim = checker.CLAIMS[key(document)]
    assert verdict.claim is claim
    assert f"{claim.lhs} {document['relation']} {claim.rhs}" in verdict.reason
    for name, number in document["size"].items():
        assert f"{name} = {number}" in verdict.reason


def test_every_leaf_and_size_is_registered():
    for path in FILES:
        document = load(path)
        if key(document) not in NOT_RECOMPUTED:
            claim: Claim = checker.CLAIMS[key(document)]
            assert set(claim.leaves) == set(document["instance"])
            assert {part.split("=")[0] for part in claim.size.split()} == set(document["size"])


@pytest.mark.parametrize(
    ("relation", "leaf"), [("<", "f"), ("==", "f"), ("<=", "x"), ("<=", "u T"), ("=", "float")]
)
def test_registrations_that_are_none(relation, leaf):
    with pytest.raises(ValueError, match=r"mine\.claim"):
        checks(
            "mine.claim", "printed", ("a", relation, "b"), formula="", text="", leaves={"x": leaf}
        )


def test_a_form_is_registered_once():
    with pytest.raises(ValueError, match="one claim"):
        checks(*key(load(FILES[0])), ("a", "<=", "b"), formula="", text="", leaves={})
