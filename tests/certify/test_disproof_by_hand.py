"""What each step of a disproof says, at its borders.

The balls and the words that go in stand here, and what must come out is arithmetic of small
numbers (fractions with denominators that are powers of two, or done with `Fraction`): nothing of
the library is asked what it should be.
"""

from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from jaxbounds.certification import disproof
from jaxbounds.certification import enclosures as enclosures_module
from jaxbounds.certification.apart import Gap, apart
from jaxbounds.certification.disproof import confirmed, disprove
from jaxbounds.certification.enclosures import Met, enclosures, hypotheses_of
from jaxbounds.claims.statements import Counterexample, Form, Sides, Size, Statement
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.certificate import Certificate, as_fraction
from jaxbounds.programs.balls.interpreter import Enclosed
from jaxbounds.programs.balls.values import NotSupported, Undecided, flags

SIZE = {"d": 1}
STATIC = Size(dict(SIZE))
X = {"x": np.array(1.0)}
INF = arb("inf")


def claim(lhs: Any = lambda i: 2 * i["x"], rhs: Any = lambda i: i["x"], **options: Any) -> Any:
    """2 x <= x, which is false at 1 by half of the larger side."""
    error = options.pop("error", 0.0)
    plain: dict[str, Any] = {
        "id": "mine.claim", "label": "1", "formula": "lhs <= rhs", "kind": "inequality",
        "sample": lambda key, size: {"x": jnp.zeros(())}, "forms": (Form(name="printed"),),
        "sizes": (SIZE,), "control": "far off",
        "evaluate": lambda i, size: Sides(lhs(i), {"printed": rhs(i), "control": -9.0}, error),
    }  # fmt: skip
    return Statement(**plain | options)


PLAIN = claim()
FORM = PLAIN.form("printed")
IDENTITY: dict[str, Any] = {"kind": "identity", "relation": "="}


def balls(*values: Any) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = [v if isinstance(v, arb) else arb(v) for v in values]
    return out


def between(low: float, high: float) -> arb:
    return arb((low + high) / 2, (high - low) / 2)


def is_near(x: arb, value: float) -> bool:
    """From below: what is certain is rounded down, by next to nothing."""
    return bool(x.is_exact() and arb(value - 1e-8) < x and x <= arb(value))


# --- how far two sides are certainly apart ---


@pytest.mark.parametrize("relation", ["<=", ">="])
@pytest.mark.parametrize(
    ("left", "right", "error", "amount"),
    [
        (4, 1, 0, 0.75),
        (4, 1, 1, 0.5),
        (4, 1, 3, 0.0),
        (1, 4, 0, -0.75),
        (1, 4, 1, -1.0),
        (-1, -4, 0, 0.75),
        (-4, -1, 0, -0.75),
        (1, -4, 0, 1.25),
        (0, 0, 0, 0.0),
        (between(3, 5), between(-1, 1), 0, 0.4),  # at least 2, of at most 5
        (between(-1, 1), between(-5, -3), 0, 0.4),
        (4, 1, between(0.5, 1), 0.5),  # the error is 1 at most
        (5, between(-16, -4), 0, 9 / 16),
        (0.5, 0.25, 0, 0.5),
        (between(-5, 16), -6, 0, 1 / 16),
        (INF, 7, 0, 1),
        (INF, INF, 0, 0),
        (INF, -INF, 0, 1),
        (INF, 7, INF, 0),
        (4, 1, INF, 0),
        (7, -INF, 0, 1),
        (arb(0, INF), -INF, 0, 0),
        (7, arb(0, INF), 0, 0),
        (7, INF, 0, 0),
        (-INF, 7, 0, 0),
    ],
)
def test_the_gap_of_a_bound(relation, left, right, error, amount):
    gap = apart(relation, balls(left), balls(right), balls(error))
    assert is_near(gap.amount, amount)
    assert gap.entry == 0
    pairs = ((gap.lhs, left), (gap.rhs, right))
    assert all(str(side) == str(balls(one)[0]) for side, one in pairs)


def test_the_largest_stated_error_counts_and_no_error_is_none():
    sides = balls(8), balls(4)
    assert apart("<=", *sides, balls(1, 3, 2)).amount == arb(1) / 8
    assert apart("<=", *sides, balls()).amount == arb(1) / 2
    for errors in (balls(1.5, between(1, 2)), balls(between(1, 2), 1.5)):
        assert is_near(apart("<=", *sides, errors).amount, 1 / 4)
    assert apart("<=", *sides).amount == arb(1) / 2


@pytest.mark.parametrize("error", [balls(-1), balls(1, -1), balls(arb("nan")), balls(arb(0, 1))])
@pytest.mark.parametrize("relation", ["<=", "="])
def test_an_error_that_may_be_negative_decides_nothing(relation, error):
    with pytest.raises(Undecided, match="not certainly a number >= 0"):
        apart(relation, balls(4), balls(1), error)


@pytest.mark.parametrize("relation", ["<=", "="])
@pytest.mark.parametrize("sides", [(arb("nan"), arb(1)), (arb(1), arb("nan"))])
def test_a_side_of_which_nothing_is_known_decides_nothing(relation, sides):
    with pytest.raises(Undecided, match="may be undefined"):
        apart(relation, balls(sides[0], 2) if relation == "=" else balls(sides[0]), balls(sides[1]))


def test_a_vector_is_no_side_of_a_bound():
    with pytest.raises(NotSupported, match="scalars, got entries=2"):
        apart("<=", balls(4, 4), balls(1, 1))
    with pytest.raises(NotSupported, match="scalars, got entries=0"):
        apart(">=", balls(), balls())


@pytest.mark.parametrize(
    ("left", "right", "error", "amount", "entry"),
    [
        ((8, 1), (8, 3), 0, 0.25, 1),
        ((1, 8), (3, 8), 0, 0.25, 0),
        ((-8, 1), (-8, 3), 0, 0.25, 1),
        ((1, 2), (1, -8), 0, 1.25, 1),
        ((8, 1), (8, 3), 1, 0.125, 1),
        ((8, 1), (8, 3), between(0.5, 1), 0.125, 1),
        ((8, 1), (8, 3), 3, -0.125, 1),
        ((8, between(0, 2)), (8, between(4, 6)), 0, 0.25, 1),
        ((between(4, 8), 0), (between(4, 8), 2), 0, 0.25, 1),
        ((4, 2), (5, 8), 0, 0.75, 1),
        ((0, 0), (0, 0), 0, 0, 0),
        ((), (), 0, 0, 0),
        ((3, 1), (3, 2), 0, 1 / 3, 1),
        # At least 2 of the first, though it may be 6; of the second 3, of at most 16.
        ((between(8, 12), 16), (between(14, 18), 13), 0, 3 / 18, 1),
        ((5,), (between(-16, -4),), 0, 9 / 16, 0),
        ((0.5,), (0.25,), 0, 0.5, 0),
        ((1,), (1, 8, 3), 0, 0.875, 1),
        ((1, 8, 3), (1,), 0, 0.875, 1),
        ((8, INF), (7, 1), 0, 0, None),
        ((8, 1), (7, INF), 0, 0, None),
        ((8, 1), (7, 1), INF, 0, None),
    ],
)  # fmt: skip
def test_the_gap_of_an_identity(left, right, error, amount, entry):
    gap = apart("=", balls(*left), balls(*right), balls(error))
    assert is_near(gap.amount, amount)
    assert entry is None or gap.entry == entry
    decided = entry is not None and any(left)
    of = lambda side: balls(*side)[entry if len(side) > 1 else 0] if decided else arb(0)
    assert (str(gap.lhs), str(gap.rhs)) == (str(of(left)), str(of(right)))


# --- what is enclosed, and how ---


def test_a_whole_instance_is_traced_where_it_can_be():
    with float64_on_cpu():
        found = enclosures(lambda i: 3 * i["x"], X)
    assert (found.whole, found.computed) == (True, False)
    assert found.ways[0].ravel()[0] == 3


def test_of_whole_numbers_and_floats_each_stays_in_its_place():
    """n decides how often it is doubled, which no trace of n could do: 2^3 * .75 + 2^1 * .25."""
    given = {"a": np.array(3), "b": np.array(0.75), "c": np.array(1), "d": np.array(0.25)}
    power = lambda i: i["b"] * 2 ** int(i["a"]) + i["d"] * 2 ** int(i["c"])
    with float64_on_cpu():
        found = enclosures(power, given)
    assert not found.whole
    assert found.ways[0].ravel()[0] == arb(6.5)


def test_whole_numbers_of_the_host_are_taken_and_fractions_are_not():
    count = lambda i: float(np.sum(np.asarray(i["x"])))
    found = enclosures(count, {"x": np.array([2.0, 3.0])})
    assert (found.computed, found.whole) == (True, False)
    assert float(found.ways[0]) == 5
    found = enclosures(lambda i: sum(map(int, i["n"])), {"n": np.array([2, 5])})  # no floats at all
    assert (found.whole, int(found.ways[0])) == (False, 7)
    with pytest.raises(Undecided, match="rounding errors cannot be enclosed"):
        enclosures(count, {"x": np.array([2.0, 0.5])})
    for some in (lambda x: np.array([2.0, x]), lambda x: (2.0, x)):  # one of them is whole
        with pytest.raises(Undecided, match="rounding errors cannot be enclosed"):
            enclosures(lambda i, some=some: some(float(np.asarray(i["x"]))), {"x": np.array(0.5)})
    root = lambda i: np.sqrt(float(i["n"]))  # of what no float was given for
    with pytest.raises(Undecided, match="rounding errors cannot be enclosed"):
        enclosures(root, {"n": np.array(2)})


def test_what_is_asked_of_an_enclosure_is_handed_on():
    third = lambda i: i["x"] / 3
    with float64_on_cpu():
        coarse = enclosures(third, X, bits=32).ways[0].ravel()[0]
        fine = enclosures(third, X).ways[0].ravel()[0]
        assert float(coarse.rad()) > 1e-12 > 1e-50 > float(fine.rad()) > 1e-70
        tenth = lambda i: 0.1 * i["x"]
        assert enclosures(tenth, X).ways[0].ravel()[0].is_exact()
        assert not enclosures(tenth, X, reading="ulp").ways[0].ravel()[0].is_exact()
        with pytest.raises(Undecided, match="time"):
            enclosures(third, X, seconds=-1.0)
        with pytest.raises(NotSupported, match="no rule"):
            enclosures(third, X, rules={})


# --- hypotheses ---


def met_by(monkeypatch, of_statement, of_form=None, **options):
    """What is said of hypotheses that enclose as given; each a list of ways, and how it came."""
    asked = []

    def enclosing(named, instance):
        def enclosed(**given):
            asked.append(given)
            ways, computed, whole = named(instance)["ways"]
            return Enclosed(ways, computed, whole)

        return enclosed

    monkeypatch.setattr(enclosures_module, "Enclosing", enclosing)
    stub = lambda found: None if found is None else lambda i, size: {"ways": found}
    form = Form(name="printed", hypotheses=stub(of_form))
    statement = claim(hypotheses=stub(of_statement), forms=(form,), **options)
    found = hypotheses_of(statement, form, X, STATIC)(bits=77)
    assert all(given == {"bits": 77} for given in asked)
    return found


YES, NO, MAYBE = np.array(True), np.array(False), flags([1, 2])


@pytest.mark.parametrize(
    ("ways", "word"),
    [
        ([YES], "certain"),
        ([NO], "missed"),
        ([MAYBE], "open"),
        ([flags([0, 2])], "missed"),
        ([flags([0, 1])], "missed"),
        ([flags([1, 1])], "certain"),
        ([YES, YES], "certain"),
        ([YES, NO], "open"),
        ([NO, YES], "open"),
        ([NO, NO], "missed"),
        ([MAYBE, YES], "open"),
        ([YES, MAYBE], "open"),
    ],
)
@pytest.mark.parametrize("of_form", [True, False])
def test_a_hypothesis_is_met_on_every_way_or_not_certain(monkeypatch, ways, word, of_form):
    given = ([{"mine": value} for value in ways], False, True)
    found = met_by(monkeypatch, *((None, given) if of_form else (given, None)))
    assert found == Met({"mine": word}, False)
    assert found.certain == (word == "certain")


def test_hypotheses_of_the_statement_and_of_the_form_are_all_asked():
    one, two = (lambda i, size: {"a": i["x"] > 0, "c": i["x"] > 0}), (
        lambda i, size: {"b": i["x"] > 2, "c": i["x"] > 2})  # fmt: skip
    form = Form(name="printed", hypotheses=two)
    with float64_on_cpu():
        found = hypotheses_of(claim(hypotheses=one, forms=(form,)), form, X, STATIC)()
        assert found == Met({"a": "certain", "b": "missed", "c": "open"}, False)
        assert not found.certain
        none = hypotheses_of(PLAIN, FORM, X, STATIC)()
    assert none == Met({}, False) and none.certain


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("computed", "whole", "host", "taken"),
    [(True, True, True, True), (True, True, False, False), (False, False, False, True),
     (False, True, True, False)],
)  # fmt: skip
def test_one_hypothesis_that_the_host_computed_is_enough(
    monkeypatch, first, computed, whole, host, taken
):
    plain, other = ([{"a": YES}], False, True), ([{"b": YES}], computed, whole)
    given = (other, plain) if first else (plain, other)
    assert met_by(monkeypatch, *given, host=host).computed == taken


@pytest.mark.parametrize("value", [np.array(1), np.array(1.0), balls(1)])
def test_a_number_is_no_hypothesis(monkeypatch, value):
    with pytest.raises(NotSupported, match="'mine' returns dtype="):
        met_by(monkeypatch, ([{"mine": value}], False, True))


# --- one attempt ---


class Enclosures:
    """Stands for `Enclosing` of sides: for each reading what it gives, and what was asked."""

    def __init__(self, computed=False, whole=True, **by_reading):
        self.given, self.asked = by_reading, []
        self.computed, self.whole = computed, whole

    def __call__(self, *, reading="exact", **options):
        self.asked.append((reading, options))
        ways = self.given[reading]
        if isinstance(ways, Exception):
            raise ways
        return Enclosed(ways, self.computed, self.whole)


def way(left, right, *error):
    return (balls(left), balls(right), *map(balls, error))


def attempt(monkeypatch, given, statement=PLAIN, margin=0.0, met=None, in_ulp=None):
    """One attempt whose sides, and whose hypotheses, are enclosed as given."""
    met = met or Met({}, False)
    words = {"exact": met, "ulp": in_ulp or met}

    def hypotheses(*, reading="exact", **options):
        if isinstance(words[reading], Exception):
            raise words[reading]
        return words[reading]

    monkeypatch.setattr(disproof, "Enclosing", lambda program, instance: given)
    monkeypatch.setattr(disproof, "hypotheses_of", lambda *of: hypotheses)
    found = disproof._attempting(statement, statement.forms[0], X, STATIC, 9.0, margin)(64)
    assert all(options == {"bits": 64, "seconds": 9.0} for _, options in given.asked)
    return found


FAR, NEAR, TRUE = [way(2, 1)], [way(1 + 2.0**-10, 1)], [way(1, 2)]
AS_CODED = "only if each constant of the claim is exactly its float in the program"
ON_HOST = "numbers that were computed on the host count as exact"
OPEN = Met({"mine": "open"}, False)


@pytest.mark.parametrize(
    ("ulp", "exact", "options", "word", "reason"),
    [
        (FAR, None, {}, "disproved", None),
        (FAR, None, {"in_ulp": OPEN}, "disproved as coded", AS_CODED),
        (FAR, None, {"in_ulp": Undecided("many ways")}, "disproved as coded", AS_CODED),
        (FAR, None, {"met": Met({}, True)}, "disproved as coded", ON_HOST),
        (TRUE, FAR, {}, "disproved as coded", AS_CODED),
        (TRUE, FAR, {"in_ulp": OPEN}, "disproved as coded", AS_CODED),
        (Undecided("open"), FAR, {}, "disproved as coded", AS_CODED),
        (TRUE, TRUE, {}, "undecided", "the claim is true on this instance"),
        (FAR + TRUE, FAR, {}, "disproved as coded", AS_CODED),
        ([way(1, 1)], [way(1, 1)], {}, "undecided", "the claim is true on this instance"),
        (FAR, None, {"margin": 0.5}, "disproved", None),
        (FAR, FAR, {"margin": 0.5 + 2.0**-40}, "undecided", "differ by less"),
        (NEAR, None, {}, "disproved", None),
        (NEAR, FAR, {"margin": 0.25}, "disproved as coded", AS_CODED),
    ],
)
def test_the_word_of_an_attempt(monkeypatch, ulp, exact, options, word, reason):
    given = Enclosures(ulp=ulp, exact=exact)
    found = attempt(monkeypatch, given, **options)
    assert found["word"] == word
    assert found.get("reason") == reason or reason in found["reason"]
    assert [reading for reading, _ in given.asked] == (
        ["ulp"] if exact is None else ["ulp", "exact"]
    )
    assert found["bits"] == 64


@pytest.mark.parametrize(
    ("computed", "whole", "host", "word"),
    [(True, True, True, "disproved as coded"), (True, True, False, "disproved"),
     (False, False, False, "disproved as coded"), (False, True, True, "disproved")],
)  # fmt: skip
def test_sides_that_the_host_computed_are_as_coded(monkeypatch, computed, whole, host, word):
    given = Enclosures(ulp=FAR, computed=computed, whole=whole)
    found = attempt(monkeypatch, given, claim(host=host))
    assert (found["word"], found["traced"]) == (word, whole)
    assert found.get("reason") == (None if word == "disproved" else ON_HOST)


def test_sides_that_are_enclosed_in_no_reading_are_undecided(monkeypatch):
    given = Enclosures(ulp=Undecided("wide"), exact=Undecided("it is open"))
    with pytest.raises(Undecided, match="it is open"):
        attempt(monkeypatch, given)


def test_hypotheses_that_are_not_certain_end_an_attempt(monkeypatch):
    given = Enclosures()
    words = {"a": "certain", "b": "open", "c": "missed"}
    found = attempt(monkeypatch, given, met=Met(words, False))
    assert found == {
        "hypotheses": words, "bits": 64, "word": "undecided",
        "reason": "hypothesis 'b' is open, 'c' is missed",
    }  # fmt: skip
    assert given.asked == []


def test_what_is_written_of_a_bound(monkeypatch):
    """Sides 3 to 4 against 1 on one way, 8 against 1 to 2 on the other: apart by 1/2 at least."""
    ways = [way(between(3, 4), 1), way(8, between(1, 2))]
    found = attempt(monkeypatch, Enclosures(ulp=ways), met=Met({"h": "certain"}, False))
    assert 0.5 - 1e-8 < found["gap"] <= 0.5
    assert (found["ways"], found["entry"], found["traced"]) == (2, None, True)
    ends = [tuple(map(Fraction, found[side])) for side in ("lhs", "rhs")]
    tiny = Fraction(1, 10**7)
    for (low, high), (least, most) in zip(ends, ((3, 8), (1, 2))):
        assert least - tiny <= low <= least and most <= high <= most + tiny
    assert found["hypotheses"] == {"h": "certain"}


def test_the_sides_of_a_bound_from_below_stand_where_they_are_printed(monkeypatch):
    """lhs >= rhs: the smaller side, which is enclosed first, is the right one."""
    statement = claim(relation=">=")
    found = attempt(monkeypatch, Enclosures(ulp=[way(2, 1)]), statement)
    assert (found["word"], found["lhs"], found["rhs"]) == ("disproved", ("1", "1"), ("2", "2"))


def test_an_identity_names_its_entry(monkeypatch):
    statement = claim(**IDENTITY)
    ways = [(balls(1, 4), balls(1, 1))]
    found = attempt(monkeypatch, Enclosures(ulp=ways), statement)
    assert (found["entry"], found["lhs"], found["rhs"]) == (1, ("4", "4"), ("1", "1"))
    assert found["gap"] == 0.75


def test_the_stated_error_is_taken_off_also_where_the_host_computes_it(monkeypatch):
    """2 x <= x is false at 1 by 1; with an error of 2 it is not."""
    for error, word in ((0.5, "disproved"), (2.0, "undecided")):
        given = Enclosures(ulp=[way(2, 1, error)], exact=[way(2, 1, error)])
        assert attempt(monkeypatch, given)["word"] == word
        sides = Enclosures(ulp=FAR, exact=FAR)
        found = attempt(monkeypatch, sides, claim(host=True, error=error))
        assert found["word"] == word
        assert found["gap"] == (1 - error) / 2


def test_of_a_statement_on_the_host_the_sides_alone_are_enclosed():
    """Its error is a number that no trace could follow: the root of 1 over 4, of sides 2 and 1."""

    def evaluate(i, size):
        try:
            error = float(np.sqrt(np.asarray(i["x"]))) / 4
        except Exception:  # under a trace
            error = i["x"] * np.inf
        return Sides(2 * i["x"], {"printed": i["x"], "control": -9.0}, error)

    found = disprove(claim(host=True, evaluate=evaluate), "printed", X, SIZE)
    assert (found.word, found.gap) == ("disproved", 0.375)


# --- why not ---


A_TRUTH = "the claim is true on this instance"
TOO_NEAR = "the sides differ by less than a relative 1e-06, or their balls overlap"
NO_ENTRY = "no entry of the sides certainly differs by a relative 1e-06"


@pytest.mark.parametrize(
    ("gaps", "relation", "reason"),
    [
        ([(0, 1, 2)], "<=", A_TRUTH),
        ([(0, 1, 2)], ">=", A_TRUTH),
        ([(0, 1, 1)], "<=", A_TRUTH),
        ([(0, 1, 2), (0, 2, 1)], "<=", TOO_NEAR),
        ([(0, 2, 1), (0, 1, 2)], "<=", TOO_NEAR),
        ([(0, between(1, 3), between(2, 4))], "<=", TOO_NEAR),
        ([(0, 2, 1), (1, INF, 2)], "<=", TOO_NEAR),
        ([(1, 2, 1), (0, INF, 2)], "<=", NO_ENTRY),
        ([(0, INF, 2), (1, 2, 1)], "<=", NO_ENTRY),
        ([(0, 2, -INF)], "<=", NO_ENTRY),
        ([(0, 1, 2)], "=", NO_ENTRY),
        ([(0, 2, 1)], "=", NO_ENTRY),
    ],
)
def test_why_nothing_is_disproved(gaps, relation, reason):
    """Of several ways the one whose gap is least says it."""
    found = [Gap(arb(amount), 0, arb(left), arb(right)) for amount, left, right in gaps]
    statement = claim(**IDENTITY) if relation == "=" else claim(relation=relation)
    assert disproof._why(found, statement) == reason


# --- several precisions, and a second look in floats ---


def certificate(monkeypatch, script, statement=PLAIN, floats=None, bits=(10, 20, 30)):
    """What is said where the attempts end as the script says; which precisions were tried."""
    tried, rest, looks = [], iter(script), []

    def attempting(s, form, instance, size, seconds, margin, *, by_entry):
        assert by_entry  # of a violation that was found

        def attempted(precise):
            tried.append((precise, seconds, margin))
            out = next(rest)
            if isinstance(out, Exception):
                raise out
            return dict(out)

        return attempted

    def in_floats(*given):
        looks.append(given)
        return floats or {}

    monkeypatch.setattr(disproof, "_attempting", attempting)
    monkeypatch.setattr(disproof, "_in_floats", in_floats)
    found = disproof._certificate(statement, "printed", X, SIZE, 7.0, bits, 0.125)
    assert all(one[1:] == (7.0, 0.125) for one in tried)
    assert 0 <= found.seconds < 60
    assert (found.id, found.form, found.size) == ("mine.claim", "printed", SIZE)
    assert found.relation == statement.relation
    return found, [one[0] for one in tried], len(looks)


SURE = {"word": "disproved", "traced": True}
UNSURE = {"word": "undecided", "reason": "wide", "traced": True}
MISSED = {"word": "undecided", "reason": "missed", "hypotheses": {"a": "certain", "b": "missed"}}
NOT_MET = {"word": "undecided", "reason": "open", "hypotheses": {"a": "open"}}


@pytest.mark.parametrize(
    ("script", "word", "reason", "tried", "looks"),
    [
        ([SURE], "disproved", "", [10], 1),
        ([SURE | {"word": "disproved as coded"}], "disproved as coded", "", [10], 1),
        ([SURE | {"traced": False}], "disproved", "", [10], 0),
        ([UNSURE, SURE], "disproved", "", [10, 20], 1),
        ([UNSURE, UNSURE, UNSURE], "undecided", "wide", [10, 20, 30], 0),
        ([NOT_MET, SURE], "disproved", "", [10, 20], 1),
        ([MISSED], "undecided", "missed", [10], 0),
        ([Undecided("hm"), SURE], "disproved", "", [10, 20], 1),
        ([Undecided("hm"), Undecided("h2"), Undecided("h3")], "undecided", "h3", [10, 20, 30], 0),
        ([NotSupported("none")], "undecided", "none", [10], 0),
        ([UNSURE, NotSupported("none")], "undecided", "none", [10, 20], 0),
    ],
)
def test_finer_balls_are_tried_where_they_may_help(monkeypatch, script, word, reason, tried, looks):
    found, precisions, looked = certificate(monkeypatch, script)
    assert (found.word, found.reason) == (word, reason)
    assert (precisions, looked) == (tried, looks)
    if reason in ("h3", "none"):
        assert found.bits == tried[-1]


def test_what_float64_contradicts_is_not_said(monkeypatch):
    against = {"word": "undecided", "reason": "a contradiction"}
    found, *_ = certificate(monkeypatch, [SURE | {"gap": 0.5}], floats=against)
    assert (found.word, found.reason, found.gap) == ("undecided", "a contradiction", 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "probability", "level": 0.1},
        {"kind": "expectation"},
        {"kind": "limit", "towards": {"d": np.inf}, "sizes": ({"d": 1}, {"d": 2}, {"d": 4})},
        {"estimates": {"rhs": "below"}},
        {"estimates": {"lhs": "above"}},
    ],
)
def test_of_what_no_instance_decides_none_is_asked(monkeypatch, options):
    found, tried, _ = certificate(monkeypatch, [SURE], claim(**options))
    assert (found.word, tried) == ("undecided", [])


def test_of_what_is_only_promised_to_exist_no_instance_is_asked(monkeypatch):
    from jaxbounds.claims.sets import Ball

    there = claim(there_is={"y": Ball("d")})
    found, tried, _ = certificate(monkeypatch, [SURE], there)
    assert (found.word, tried) == ("undecided", [])
    assert "may miss the optimum" in found.reason


@pytest.mark.parametrize("host", [True, False])
@pytest.mark.parametrize(
    ("relation", "lhs", "error", "silent"),
    [
        # x <= 1, with a tolerance of 2^-10: more than 1 + 2^-10 is a violation.
        ("<=", 1 + 2.0**-10, 0.0, False), ("<=", 1 + 2.0**-9, 0.0, True), ("<=", 1.0, 0.0, False),
        ("<=", 1 + 2.0**-9, 2.0**-10, False), ("<=", 1.5, 0.25, True), ("<=", np.nan, 0.0, False),
        (">=", 0.5, 0.0, True), (">=", 1.5, 0.0, False),
    ],
)  # fmt: skip
def test_float64_has_nothing_against_what_it_sees_itself(host, relation, lhs, error, silent):
    statement = claim(
        lambda i: lhs * i["x"], lambda i: 1.0 * i["x"], relation=relation, host=host,
        tolerance=2.0**-10, error=error,
    )  # fmt: skip
    with float64_on_cpu():
        found = disproof._in_floats(statement, statement.forms[0], {"x": jnp.asarray(1.0)}, STATIC)
    assert (found == {}) == silent
    if not silent:
        assert found["word"] == "undecided" and "a contradiction" in found["reason"]


# --- the two doors ---


def test_a_small_gap_is_enough_only_where_the_floats_are_meant():
    """2^-24 is certain, and below 1e-6."""
    statement = claim(lambda i: (1 + 2.0**-24) * i["x"])
    assert confirmed(statement, "printed", X, SIZE).word == "disproved"
    assert disprove(statement, "printed", X, SIZE).word == "undecided"


def test_an_instance_comes_with_its_size_or_from_the_store():
    stored = Counterexample(instance={"x": 4.0}, size=SIZE, ratio=2.0)
    statement = claim(forms=(Form(name="printed", expected="fails", counterexample=stored,
                                  note="2 x is more than x"),))  # fmt: skip
    assert disprove(statement).lhs == ("8", "8")
    assert disprove(statement, "printed", X, SIZE).lhs == ("2", "2")
    for given in ({"instance": X}, {"size": SIZE}, {}):
        with pytest.raises(ValueError, match="declares no counterexample="):
            disprove(PLAIN, **given)
    with pytest.raises(ValueError, match="Try instance="):
        disprove(statement, "printed", X)


def test_the_file_for_a_kernel_is_of_the_word_that_was_said(monkeypatch):
    asked = []
    monkeypatch.setattr(disproof, "disproof_file", lambda *a, **k: asked.append((a, k)) or "text")
    for word, as_coded in (("disproved", False), ("disproved as coded", True)):
        about = Certificate(id="mine.claim", form="printed", word=word, size=SIZE)
        make = disproof._theorem_of(PLAIN, X, about)
        assert make(None, "Someone") == make(7, "") == "text"
        (first, given), (_, other) = asked[-2:]
        assert first == (PLAIN, "printed", X, SIZE)
        assert given == {"as_coded": as_coded, "operations": disproof.OPERATIONS,
                         "citation": "Someone"}  # fmt: skip
        assert other["operations"] == 7


def test_a_certificate_of_balls_is_of_exact_numbers():
    """Of a third: the gap of 1 <= 1/3 lies below 2/3, by less than 2^-150."""
    found = disprove(claim(lambda i: i["x"], lambda i: i["x"] / 3), "printed", X, SIZE)
    low, high = map(Fraction, found.rhs)
    assert low < Fraction(1, 3) < high and high - low < Fraction(1, 10**28)
    assert found.gap <= Fraction(2, 3) < found.gap + 1e-15
    assert as_fraction(arb(0.375)) == Fraction(3, 8)
