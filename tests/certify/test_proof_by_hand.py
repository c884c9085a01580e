"""How a proof on a box is put together: the margin, the slack, the readings, the words.

Margins are computed by hand at points where all numbers are short, or as fractions; searches are
stubs whose outcome is written beside them, so that each word follows from what stands here.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.certification import Box, Proof, proof, prove
from jaxbounds.certification.proof import _powers, _reason, _rounded_up, _share, margin_of
from jaxbounds.certification.second_look import Doubt
from jaxbounds.claims.statements import Domain, Form, Sides, Statement
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.programs.balls.boxes import BoxSearch, Open
from jaxbounds.programs.balls.values import NotSupported, Undecided

TRUE = lambda i: jnp.asarray(True)


def claim(lhs: Any = lambda x: x[0], rhs: Any = lambda x: x[1], error: Any = 0.0, **options: Any):
    """x_0 <= x_1, unless the options say otherwise."""
    plain: dict[str, Any] = {
        "id": "mine.claim", "label": "1", "formula": "lhs <= rhs", "kind": "inequality",
        "sample": lambda key, size: {"x": jax.random.uniform(key, (2,))}, "sizes": ({"d": 2},),
        "forms": (Form(name="printed"),), "control": "far off",
        "evaluate": lambda i, size: Sides(
            lhs(i["x"]), {"printed": rhs(i["x"]), "control": -9.0}, error
        ),
    }  # fmt: skip
    return Statement(**plain | options)


def box(lower=(-8.0, -8.0), upper=(8.0, 8.0), **slack):
    chart = lambda point, size: {"x": point}
    return Domain(name="D", chart=chart, size={"d": 2}, lower=lower, upper=upper, **slack)


# --- the margin ---


def margin(point, statement, **slack):
    with enable_x64():
        found = margin_of(statement, statement.forms[0], box(**slack))(jnp.asarray(point))
        return tuple(np.asarray(v).item() for v in found)


IDENTITY: dict[str, Any] = {"kind": "identity", "relation": "="}
VECTORS = (lambda x: jnp.stack([x[0], x[1]]), lambda x: jnp.stack([x[1], x[0] + 0.5]))


@pytest.mark.parametrize(
    ("point", "statement", "slack", "expected"),
    [
        ((1.0, 6.0), claim(), {}, (5.0, 6.0, 0.0)),
        ((6.0, 1.0), claim(), {}, (-5.0, 6.0, 0.0)),
        ((-6.0, 1.0), claim(), {}, (7.0, 6.0, 0.0)),
        ((1.0, -6.0), claim(), {}, (-7.0, 6.0, 0.0)),
        ((1.0, 6.0), claim(error=0.25), {}, (4.75, 6.0, 0.25)),
        ((1.0, 6.0), claim(error=np.array([0.25, 0.5, 0.125])), {}, (4.5, 6.0, 0.5)),
        ((1.0, 6.0), claim(relation=">="), {}, (-5.0, 6.0, 0.0)),
        ((6.0, 1.0), claim(relation=">=", error=0.25), {}, (4.75, 6.0, 0.25)),
        ((1.0, 6.0), claim(), {"relative_slack": 0.5}, (8.0, 6.0, 0.0)),
        ((1.0, -6.0), claim(), {"relative_slack": 0.5}, (-4.0, 6.0, 0.0)),
        ((6.0, 1.0), claim(relation=">="), {"relative_slack": 0.5}, (5.5, 6.0, 0.0)),
        ((1.0, -6.0), claim(relation=">="), {"relative_slack": 0.5}, (10.0, 6.0, 0.0)),
        # An absolute slack is not added here, but where the margin is enclosed.
        ((1.0, 6.0), claim(), {"slack": 0.5}, (5.0, 6.0, 0.0)),
        # |1 - 2| and |2 - 1.5|; the largest entry is 2.
        ((1.0, 2.0), claim(*VECTORS, **IDENTITY), {}, (-1.0, 2.0, 0.0)),
        ((1.0, -2.0), claim(*VECTORS, **IDENTITY), {}, (-3.5, 2.0, 0.0)),
        ((1.0, 2.0), claim(*VECTORS, 0.25, **IDENTITY), {}, (-1.25, 2.0, 0.25)),
        ((-4.0, -2.0), claim(*VECTORS, **IDENTITY), {"relative_slack": 0.5}, (0.0, 4.0, 0.0)),
        ((2.0, 2.0), claim(*VECTORS, **IDENTITY), {"relative_slack": 0.25}, (0.125, 2.5, 0.0)),
    ],
)
def test_the_margin_by_hand(point, statement, slack, expected):
    assert margin(point, statement, **slack) == (*expected, True)


@pytest.mark.parametrize("error", [-0.25, np.nan, np.array([0.25, np.nan])])
def test_an_error_that_is_none_gives_no_margin(error):
    least, _, stated, _ = margin((1.0, 6.0), claim(error=error))
    assert math.isnan(least) and math.isnan(stated)


@pytest.mark.parametrize("of_statement", [True, False])
@pytest.mark.parametrize("of_form", [True, False])
def test_a_point_counts_where_all_hypotheses_are_met(of_statement, of_form):
    given = lambda met, *names: lambda i, size: dict.fromkeys(names, i["x"] > 9 * (1 - 2 * met))
    form = Form(name="printed", hypotheses=given(of_form, "a", "b"))
    both = claim(hypotheses=given(of_statement, "c", "d"), forms=(form,))
    with enable_x64():
        counted = margin_of(both, form, box())(jnp.asarray((1.0, 6.0)))[3]
    assert bool(counted) == (of_statement and of_form)
    assert margin((1.0, 6.0), claim(hypotheses=given(of_statement, "a")))[3] == of_statement


@pytest.mark.parametrize("name", ["a", "finite"])
@pytest.mark.parametrize("first", [True, False])
def test_a_name_that_two_hypotheses_share_hides_none(name, first):
    """Also if it is that of what is asked of every instance."""
    given = lambda met: lambda i, size: {name: i["x"][0] > 9 * (1 - 2 * met)}
    form = Form(name="printed", hypotheses=given(not first))
    assert not margin((1.0, 6.0), claim(hypotheses=given(first), forms=(form,)))[3]
    assert not margin((1.0, 6.0), claim(hypotheses=given(False)))[3]


def test_a_point_that_misses_a_hypothesis_is_no_counterexample():
    """x_0 <= x_1 - 50 is false all over the box, where the form asks for less by the same name."""
    given = lambda least: lambda i, size: {"a": i["x"][0] > least}
    form = Form(name="printed", hypotheses=given(-9.0))
    false = claim(rhs=lambda x: x[1] - 50.0, hypotheses=given(9.0), forms=(form,))
    assert prove(false, "printed", box(), boxes=4).word == "undecided"


@pytest.mark.parametrize("relation", ["<=", ">="])
@pytest.mark.parametrize("sides", [(lambda x: x, lambda x: x[0]), (lambda x: x[0], lambda x: x)])
def test_sides_of_a_bound_are_scalars(relation, sides):
    with pytest.raises(ValueError, match=f"both sides of a {relation} must be scalars"):
        margin((1.0, 6.0), claim(*sides, relation=relation))


@pytest.mark.parametrize("share", [0.5, 1e-9, 0.3, 3.0, 1e-30, 1e-300, 0.75, 2e20])
def test_a_share_is_exactly_its_first_26_bits(share):
    """As fractions: m 2^e with 1/2 <= m < 1, of which floor(2^26 m) is kept."""
    m, e = math.frexp(share)
    kept = Fraction(math.floor(Fraction(m) * 2**26)) * Fraction(2) ** (e - 26)
    with enable_x64():
        found, less = (float(_share(jnp.asarray(x), share)) for x in (1.0, -5.0))
    assert Fraction(found) == kept <= Fraction(share) < kept * (1 + Fraction(1, 2**24))
    assert less == -5 * found


@pytest.mark.parametrize("exponent", [0, 1, -1, 20, -20, 21, -21, 40, -45, 300, -900])
def test_powers_of_two_in_short_steps(exponent):
    steps = _powers(exponent)
    assert math.prod(map(Fraction, steps)) == Fraction(2) ** exponent
    assert all(2.0**-20 <= step <= 2.0**20 for step in steps)


@pytest.mark.parametrize("x", [1e-10, 1.0, 1.0049, 9.999, 0.0123456, 777.7, 5e-320])
def test_a_slack_that_would_do_is_rounded_up(x):
    """1.006 x, moved by at most half of one in a hundred."""
    found = Fraction(_rounded_up(x))
    assert Fraction(x) <= found
    assert x < 1e-300 or found <= Fraction(x) * Fraction(1006, 1000) * Fraction(1005, 1000)


# --- which word is said ---

WHOLE = Box((-8.0, -8.0), (8.0, 8.0))
HALF = Box((-8.0, -8.0), (0.0, 8.0))


class Searches:
    """Stands for `_search`: what each reading finds, and what was asked."""

    def __init__(self, **found):
        self.found, self.asked = found, []

    def __call__(self, about, asked, reading):
        self.asked.append((reading, asked))
        given, widened = self.found[reading]
        return proof.replace(about, boxes=3, **given), widened


PROVED = {"word": "proved on D"}
OPEN = {"word": "undecided", "reason": "open"}
LEFT = OPEN | {"left": (HALF,)}
FALSE = {"word": "false on D", "reason": "false at here", "point": (1.0, 1.0)}
NOTHING = Doubt("", None, 99)
CODED = "only if each constant of the claim is exactly its float in the program"


def said(monkeypatch, searches, doubt=NOTHING, statement=None, **options):
    """What `prove` says where the searches and the second look are given."""
    looks = []
    look = lambda *given: looks.append(given) or doubt
    monkeypatch.setattr(proof, "_search", searches)
    monkeypatch.setattr(proof, "against", look)
    before = proof.time.process_time()
    found = prove(statement or claim(), "printed", options.pop("domain", box()), **options)
    assert 0 <= found.seconds <= proof.time.process_time() - before
    return found, looks


@pytest.mark.parametrize(
    ("ulp", "exact", "word", "reason", "left", "looks"),
    [
        ((PROVED, True), None, "proved on D", "", (), 1),
        ((PROVED, False), None, "proved on D", "", (), 1),
        ((FALSE, True), None, "false on D", "false at here", (), 0),
        ((OPEN, False), None, "undecided", "open", (), 0),
        ((LEFT, True), None, "undecided", "open", (HALF,), 0),
        ((OPEN, True), (PROVED, False), "proved on D as coded", CODED, (), 1),
        ((OPEN, True), (OPEN, False), "undecided", "open", (), 0),
        ((OPEN, True), (LEFT, False), "undecided", "open", (), 0),
        (
            (OPEN, True),
            (FALSE, False),
            "undecided",
            "if the program's floats are read as exact numbers, the claim is false at here",
            (),
            0,
        ),
    ],
)
def test_the_word_follows_from_both_readings(monkeypatch, ulp, exact, word, reason, left, looks):
    searches = Searches(ulp=ulp, exact=exact)
    found, looked = said(monkeypatch, searches)
    assert (found.word, found.reason, found.left) == (word, reason, left)
    assert [reading for reading, _ in searches.asked] == ["ulp", "exact"][: 1 + bool(exact)]
    assert len(looked) == looks and found.looked == (99 if looks else 0)
    if word == "undecided":
        assert found.point is None


@pytest.mark.parametrize("searches", [{"ulp": (PROVED, True)},
                                      {"ulp": (OPEN, True), "exact": (PROVED, True)}])  # fmt: skip
def test_what_float64_objects_to_is_not_proved(monkeypatch, searches):
    statement = claim(tolerance=2.0**-10)
    doubt = Doubt("a contradiction", (0.5, 0.25), 7)
    found, (look,) = said(monkeypatch, Searches(**searches), doubt, statement)
    assert (found.word, found.reason) == ("undecided", "a contradiction")
    assert (found.point, found.looked) == ((0.5, 0.25), 7)
    asked, domain, tolerance = look
    assert domain == box() or domain.lower == box().lower
    assert tolerance == 2.0**-10
    with enable_x64():
        assert float(asked(jnp.asarray((1.0, 6.0)))[0]) == 5.0


def test_what_is_asked_is_handed_on(monkeypatch):
    searches, progress = Searches(ulp=(PROVED, False)), lambda done, left: None
    found, _ = said(
        monkeypatch, searches, boxes=5, seconds=40.0, bits=99, start=[HALF], progress=progress,
        slack=0.5,
    )  # fmt: skip
    ((_, asked),) = searches.asked
    assert (asked.boxes, asked.bits, asked.start) == (5, 99, (HALF,))
    assert asked.progress is progress and asked.domain.slack == found.slack == 0.5
    now = proof.time.process_time()
    assert now < asked.until <= now + 40.0
    assert (found.bits, found.domain, found.id, found.form) == (99, "D", "mine.claim", "printed")
    found, _ = said(monkeypatch, searches, slack="1e-3 relative", domain=box(slack=0.5))
    assert (found.slack, found.relative_slack) == (0.0, 1e-3)
    found, _ = said(monkeypatch, searches, domain=box(slack=0.5, relative_slack=0.25))
    assert (found.slack, found.relative_slack) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "probability", "level": 0.1}, "no single instance"),
        ({"kind": "expectation"}, "no single instance"),
        ({"host": True}, "on the host"),
        ({"estimates": {"rhs": "below"}}, "a search only estimates a side"),
        ({"estimates": {"lhs": "below"}}, "a search only estimates a side"),
    ],
)
def test_what_no_box_decides_is_not_searched(monkeypatch, options, reason):
    searches = Searches(ulp=(PROVED, False))
    found, looks = said(monkeypatch, searches, statement=claim(**options))
    assert (found.word, searches.asked, looks) == ("undecided", [], [])
    assert reason in found.reason


def test_what_is_only_promised_to_exist_is_not_searched(monkeypatch):
    from jaxbounds.claims.sets import Ball

    searches = Searches(ulp=(PROVED, False))
    found, _ = said(monkeypatch, searches, statement=claim(there_is={"y": Ball("d")}))
    assert (found.word, searches.asked) == ("undecided", [])


# --- one search ---


class Found(BoxSearch):
    """A search that goes as the script says: what has changed after each step."""

    script: Any = ()
    last: Any = None
    todo, worst = [], None  # type: ignore[assignment]

    def __init__(self, programs, boxes, equalities):
        self.first, self.equalities, self.rest = list(boxes), equalities, list(self.script)
        self.todo, self.boxes, self.false, self.stuck = self.first, 0, None, []
        self.faces, self.outside, self.inside, self.narrowest = 4, 5, 6, 0.125
        self.worst, self.stuck_at = None, None
        Found.last = self

    def step(self):
        self.boxes += 32
        step = self.rest.pop(0)
        if isinstance(step, Exception):
            raise step
        for name, value in step.items():
            setattr(self, name, value)


class Stub:
    def __init__(self, **given):
        self.__dict__ |= given


@pytest.fixture
def searched(monkeypatch):
    """`_search` with a search that is scripted, and with what it was started from."""

    def run(*script, reading="ulp", most=10**6, until=math.inf, widened=False, start=(), **slack):
        calls, progress = {}, []

        def programs(margin, count, slack, reading):
            calls["programs"] = (count, slack, reading, ctx_bits())
            return Stub(widened=widened)

        def equalities(margin, whole, alone, reading, until):
            calls["equalities"] = (whole, alone, reading, until)
            return Stub(points=[(0.5, 0.5)])

        def by_symmetry(alone, whole, reading):
            calls["reduced"] = (alone, whole, reading)
            return [HALF]

        stubs = {
            "Programs": programs, "Equalities": equalities, "BoxSearch": Found,
            "reduced": by_symmetry, "point_program": lambda margin, count: ("alone", count),
        }  # fmt: skip
        for name, value in stubs.items():
            monkeypatch.setattr(proof, name, value)
        monkeypatch.setattr(Found, "script", list(script))
        asked = proof._Asked(
            lambda p: p, box(**slack), tuple(start), most, until, 77,
            lambda *given: progress.append(given),
        )  # fmt: skip
        about = Proof(id="a.b", form="printed", word="undecided", domain="D")
        found, wide = proof._search(about, asked, reading)
        return found, wide, calls, progress

    return run


def ctx_bits():
    from flint import ctx

    return ctx.prec


TWO = [HALF, WHOLE]
DONE: dict[str, Any] = {"todo": []}


def test_a_search_that_ends_has_proved(searched):
    before = ctx_bits()
    found, widened, calls, progress = searched({"todo": TWO}, DONE, widened=True)
    assert (found.word, found.reason, found.left, widened) == ("proved on D", "", (), True)
    assert (found.boxes, found.faces, found.outside, found.narrowest) == (64, 4, 5, 0.125)
    assert found.touching == ((0.5, 0.5),) and found.point is None
    assert progress == [(32, 2), (64, 0)]
    assert calls["programs"] == (2, 0.0, "ulp", 77) and ctx_bits() == before
    assert calls["equalities"] == (WHOLE, ("alone", 2), "ulp", math.inf)
    assert calls["reduced"] == (("alone", 2), WHOLE, "ulp")
    assert Found.last.first == [HALF]


def test_where_a_search_starts(searched):
    *_, calls, _ = searched(DONE, slack=0.5)
    assert Found.last.first == [WHOLE] and "reduced" not in calls
    assert calls["programs"][1] == 0.5
    searched(DONE, relative_slack=0.5)
    assert Found.last.first == [HALF]  # which scales with the sides
    for slack in ({}, {"slack": 0.5}):
        *_, calls, _ = searched(DONE, start=(WHOLE, HALF), **slack)
        assert Found.last.first == [WHOLE, HALF] and "reduced" not in calls


def test_a_point_ends_a_search(searched):
    found, *_ = searched({"todo": TWO}, {"false": (1.0, 2.0)}, DONE)
    assert (found.word, found.reason) == ("false on D", "false at (1.0, 2.0)")
    assert (found.point, found.left, found.boxes) == ((1.0, 2.0), (), 64)


def test_a_budget_ends_a_search_and_what_is_left_is_kept(searched):
    worst = Open(HALF, -0.5)
    open_ = {"todo": TWO, "worst": worst}
    for most, boxes in ((64, 64), (63, 64), (65, 96), (0, 0)):
        found, *_ = searched(open_, open_, open_, most=most)
        if most:
            assert (found.word, found.left, found.boxes) == ("undecided", tuple(TWO), boxes)
            assert found.reason.startswith("2 boxes are undecided at the end of the budget")
    found, *_ = searched(open_, until=-1.0)
    assert (found.left, found.boxes) == ((HALF,), 0)


def test_where_no_proof_can_come_a_search_goes_on_for_a_while(searched, monkeypatch):
    monkeypatch.setattr(proof, "AFTERWARDS", 64)
    worst = Open(HALF, -0.5)
    stuck = {"todo": TWO, "stuck": [worst], "worst": worst, "stuck_at": (3.0, 4.0)}
    found, *_ = searched({"todo": TWO}, stuck, stuck, stuck, stuck, stuck)
    assert (found.word, found.boxes, found.left) == ("undecided", 128, ())
    assert found.reason.startswith("the proof fails at (3.0, 4.0); a violation of up to 0.5 is")
    found, *_ = searched(stuck, stuck, stuck, most=64)
    assert found.boxes == 64
    found, *_ = searched(stuck | DONE)
    assert (found.word, found.left) == ("undecided", ())


@pytest.mark.parametrize("problem", [Undecided("too open"), NotSupported("no rule")])
def test_what_cannot_be_enclosed_is_undecided(searched, problem):
    """Nor can it be gone on with: what was taken to be enclosed is not among what is open."""
    found, *_ = searched({"todo": TWO}, problem)
    assert (found.word, found.reason, found.left) == ("undecided", str(problem), ())


def test_boxes_that_could_not_be_enclosed_are_not_forgotten():
    """Beyond 1/2 it is false by 2^-40. Of 41 boxes 32 are taken, in one of which that is open."""
    table = np.array([0.0, 1.0 + 2.0**-40])
    at = lambda x: jax.lax.dynamic_slice(
        jnp.asarray(table), (jnp.ceil(x[0] - 0.5).astype(int),), (1,)
    )[0]  # fmt: skip
    false = claim(at, lambda x: 1.0 + 0 * x[1])
    flat = Domain(name="D", chart=lambda p, size: {"x": jnp.stack([p[0], p[0]])}, size={"d": 2},
                  lower=(0.0,), upper=(1.0,))  # fmt: skip
    ends = np.linspace(0, 1, 42)
    many = [Box((float(a),), (float(b),)) for a, b in itertools.pairwise(ends)]
    first = prove(false, "printed", flat, start=many)
    assert first.word == "undecided" and "integer part" in first.reason
    assert not prove(false, "printed", flat, start=first.left).word.startswith("proved")


def test_a_program_that_cannot_be_traced_is_undecided(monkeypatch):
    def programs(*given):
        raise TypeError("a tracer\nand more")

    monkeypatch.setattr(proof, "Programs", programs)
    asked = proof._Asked(lambda p: p, box(), (), 9, math.inf, 64, lambda *given: None)
    about = Proof(id="a.b", form="printed", word="undecided", domain="D")
    found, widened = proof._search(about, asked, "ulp")
    assert (found.word, found.reason, widened) == ("undecided", "a tracer", False)


class Ended(BoxSearch):
    """A search that has ended."""

    todo, worst, inside, stuck_at = [], None, 0, None  # type: ignore[assignment]

    def __init__(self, **given):
        for name, value in given.items():
            setattr(type(self), name, value)


def ended(**given):
    return type("Now", (Ended,), {})(**given)


WHERE = "the box from (-8.0, -8.0) to (0.0, 8.0)"
NO_BOUND = "ball arithmetic gives no bound on the violation in"


@pytest.mark.parametrize(
    ("given", "slack", "reason"),
    [
        ({"inside": 1}, 0.0, ""),
        ({}, 0.0, "no instance of the domain meets the hypotheses"),
        (
            {"worst": Open(HALF, -math.inf), "stuck_at": (1.0, 2.0)}, 0.0,
            f"the proof fails at (1.0, 2.0); {NO_BOUND} {WHERE}",
        ),
        (
            {"worst": Open(HALF, -math.inf), "todo": [HALF] * 3}, 0.0,
            f"3 boxes are undecided at the end of the budget; {NO_BOUND} {WHERE}",
        ),
        (
            {"worst": Open(HALF, -0.25), "todo": [HALF]}, 0.5,
            "1 boxes are undecided at the end of the budget; a violation of up to 0.25 is possible "
            f"in {WHERE}; a slack of 0.754 would suffice",
        ),
        (
            {"worst": Open(HALF, -2.0), "stuck_at": (0.0, 0.0)}, 0.0,
            "the proof fails at (0.0, 0.0); a violation of up to 2 is possible in "
            f"{WHERE}; a slack of 2.01 would suffice",
        ),
    ],
)  # fmt: skip
def test_why_nothing_is_proved(given, slack, reason):
    assert _reason(ended(**given), slack) == reason


# --- how it reads ---


def test_a_proof_says_up_to_what():
    about = {"id": "a.b", "form": "printed", "word": "proved on D", "domain": "all of it"}
    assert Proof(**about).upto == ""
    assert Proof(**about, slack=0.5).upto == "0.5"
    assert Proof(**about, relative_slack=0.25).upto == "0.25 relative"
    assert Proof(**about, slack=0.5, relative_slack=0.25).upto == "0.5 and 0.25 relative"
    rows = dict(Proof(**about, boxes=7)._table().rows)
    assert rows == {"D": "all of it", "boxes": "7"}
    full = Proof(**about, slack=0.5, reason="why", left=(HALF, HALF), point=(1.0,))
    assert dict(full._table().rows) == {
        "D": "all of it", "slack": "0.5", "because": "why", "boxes": "0", "open": "2",
        "at": "(1.0,)",
    }  # fmt: skip
