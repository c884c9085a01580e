"""Values on record: a formula that changes is noticed, also where each verdict stays."""

import dataclasses
import inspect
import itertools
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.claims.records import VALUES, place_of_records, read_records, write_records
from jaxbounds.claims.statements import full_name
from jaxbounds.cli import main
from jaxbounds.falsification.noted_values import numbers
from jaxbounds.falsification.noting import noted_alone
from jaxbounds.falsification.rounding_bars import OFTEN, noted_with_bars
from jaxbounds.multihead import bounds
from jaxbounds.papers import find_statement, load_paper, load_papers
from jaxbounds.runs import values
from jaxbounds.runs.values import differences_of_values, read_back, written

CLAIMS = '''
import jax
import jax.numpy as jnp
import numpy as np
from jaxbounds import Budget, Form, Paper, Sides, Statement

def product_of_norms(x, y):
    """|x| |y|."""
    return (x @ x) ** 0.5 * (y @ y) ** 0.5

def squares(x):
    """The squares of the entries."""
    return x * x

def ranks(x):
    """The ranks of the entries."""
    return np.argsort(np.argsort(x))

def loose(instance, size):
    x, y = instance["x"], instance["y"]
    bound = 3.0 * product_of_norms(x, y)
    return Sides(abs(x @ y), {"printed": bound, "control": -bound})

def scaled(instance, size):
    x = instance["x"]
    return Sides(squares(3 * x), {"printed": 9 * squares(x), "control": squares(x)})

def counted(instance, size):
    x = instance["x"]
    return Sides(float(np.sum(ranks(x))), {"printed": len(x) * (len(x) - 1) / 2, "control": 0.5})

def pair(key, size):
    x, y = jax.random.normal(key, (2, size["d"]))
    return {"x": x, "y": y}

FORMS = (Form(name="printed"),)
FEW = Budget(samples=16, restarts=0, batch=16)
PAPER = Paper(id="ownvalues", title="Notes", statements=(
    Statement(id="ownvalues.cauchy", label="Lemma 1", formula="|x.y| <= 3 |x| |y|",
              kind="inequality", evaluate=loose, judges=(product_of_norms,), sample=pair,
              sizes=({"d": 2}, {"d": 5}), forms=FORMS, control="negative", budget=FEW),
    Statement(id="ownvalues.square", label="Lemma 2", formula="(3 x)^2 = 9 x^2", kind="identity",
              evaluate=scaled, judges=(squares,), sample=pair, sizes=({"d": 7},), forms=FORMS,
              control="1", budget=FEW),
    Statement(id="ownvalues.ranks", label="Lemma 3", formula="ranks sum to n(n-1)/2",
              kind="identity", evaluate=counted, judges=(ranks,), sample=pair, host=True,
              sizes=({"d": 5},), forms=FORMS, control="1/2"),
))
'''

NUMBERS = itertools.count()


@pytest.fixture
def claims(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    name = f"ownvalues{next(NUMBERS)}"
    file = tmp_path / f"{name}.py"
    file.write_text(CLAIMS.replace("ownvalues", name))
    yield file
    sys.modules.pop(name, None)


@pytest.fixture
def coded(monkeypatch):
    """Exchanges the code of a function in place: whoever holds the function has the other one."""
    from jaxbounds.falsification.trace_watch import forget

    def exchange(function, before, after):
        plain = inspect.unwrap(function)
        source = inspect.getsource(plain)
        assert source.count(before) == 1
        scope = dict(vars(sys.modules[plain.__module__]))
        exec(compile(source.replace(before, after), plain.__code__.co_filename, "exec"), scope)
        monkeypatch.setattr(plain, "__code__", inspect.unwrap(scope[plain.__name__]).__code__)
        forget(plain.__module__)

    yield exchange
    monkeypatch.undo()
    forget("jaxbounds")


def _apart(name):
    """The lines of `verify` about a statement whose values are measured now."""
    statement = find_statement(name)
    recorded = read_records(load_paper(statement.paper), VALUES)[name]
    pairs = zip(statement.forms, noted_alone(statement), strict=True)
    return [line for f, now in pairs for line in differences_of_values(now, recorded[f.name])]


@pytest.mark.slow_cases("beta3")
@pytest.mark.parametrize(
    "function, before, after, name",
    [
        (bounds.beta3, "(3 * ", "(4 * ", "multihead.cor1.3"),
        (bounds.covariance_bound, "2 * cov", "3 * cov", "multihead.eq42"),
    ],
    ids=["beta3", "covariance_bound"],
)
def test_a_looser_constant_is_noticed(function, before, after, name, coded):
    """Both bounds still hold, and their controls are still rejected."""
    assert _apart(name) == []
    coded(function, before, after)
    found = _apart(name)
    assert any(line.startswith("rhs is ") for line in found)
    judged = full_name(function).removeprefix("jaxbounds.")
    assert any(line.startswith(f"{judged} is ") for line in found)


@pytest.mark.slow
def test_a_looser_constant_ends_verify_with_status_1(coded, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    command = ["verify", "multihead.eq42", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert "all as recorded" in capsys.readouterr().out
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "another"))
    coded(bounds.covariance_bound, "2 * cov", "3 * cov")
    assert main([*command[:-1], str(tmp_path / "later")]) == 1
    said = capsys.readouterr().out
    (line,) = [x for x in said.splitlines() if x.startswith("NOT as recorded: multihead.eq42 (pri")]
    now, before = (
        float(part.split(" ")[0].rstrip(",")) for part in line.split(" is ")[1].split("on record ")
    )
    assert now / before == pytest.approx(1.5)
    assert "NOT as recorded" in said and "all as recorded" not in said


def test_papers_of_ones_own_without_records_stay_quiet(claims, capsys):
    assert main(["verify", str(claims), "--jobs", "1"]) == 0
    assert "NOT as recorded" not in capsys.readouterr().out
    assert not _records(claims).exists()


def _records(claims):
    return claims.with_name(f"{claims.stem}-records") / VALUES


def _edit(claims, before, after):
    text = claims.read_text()
    assert text.count(before) == 1
    claims.write_text(text.replace(before, after))


@pytest.mark.slow_cases("both sides of an identity", "other entries")
@pytest.mark.parametrize(
    "before, after, said",
    [
        ("return (x @ x) ** 0.5", "return 1.01 * (x @ x) ** 0.5", "cauchy"),
        ("return x * x", "return 1.01 * x * x", "square"),
        ("return x * x", "return x * x[::-1]", "square"),
        ("np.argsort(np.argsort(x))", "np.argsort(np.argsort(-x))", "ranks"),
    ],
    ids=["a bound", "both sides of an identity", "other entries", "on the host, the same sum"],
)
def test_what_no_verdict_shows_is_not_as_recorded(claims, before, after, said):
    recorded = jb.verify(claims, record=True, jobs=1)
    assert recorded.status == 0 and recorded.changed == ()
    _edit(claims, before, after)
    later = jb.verify(claims, jobs=1)
    assert all(v.as_expected for v in later)
    (line,) = later.changed
    name = f"{claims.stem}.{said}"
    assert line.startswith(f"{name} (printed): ") and ", on record " in line
    assert later.status == 1 and "values of 1 form NOT as recorded" in repr(later)
    assert later[name].changed == later.changed and later[name].status == 1
    others = [v.id for v in later if v.id != name]
    assert all(later[other].status == 0 for other in others)


def test_recording_again_changes_what_changed_alone(claims, capsys):
    jb.verify(claims, record=True, jobs=1)
    file = _records(claims)
    before = file.read_text()
    jb.verify(claims, record=True, jobs=1)
    assert file.read_text() == before
    _edit(claims, "return x * x", "return 2.0 * x * x")
    assert main(["verify", str(claims), "--jobs", "1", "--record"]) == 0
    said = capsys.readouterr().out
    assert "NOT as recorded" not in said  # the run has just recorded the difference
    lines = [x for x in said.splitlines() if x.startswith("recorded: ")]
    assert len(lines) == 1 and lines[0].startswith(f"recorded: {claims.stem}.square (")
    changed = [a != b for a, b in zip(before.splitlines(), file.read_text().splitlines())]
    assert len(changed) == len(file.read_text().splitlines()) and sum(changed) == 2
    assert main(["verify", str(claims), "--jobs", "1"]) == 0


def test_a_record_that_is_missing_is_named_with_the_command_that_makes_it(claims, capsys):
    jb.verify(claims, record=True, jobs=1)
    file = _records(claims)
    whole = file.read_text()
    paper = dataclasses.replace(load_paper("qstr"), folder=file.parent)
    recorded = read_records(paper, VALUES)
    write_records(paper, VALUES, {k: v for k, v in recorded.items() if "square" not in k}, depth=3)
    capsys.readouterr()
    assert main(["verify", str(claims), "--jobs", "1"]) == 1
    said = capsys.readouterr().out
    name = f"{claims.stem}.square"
    assert f"{name}: no values are on record. Try jaxbounds verify {name} --record" in said
    file.write_text(whole[:-9])
    assert main(["verify", str(claims), "--jobs", "1"]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_shipped_paper_without_a_file_of_values_says_how_to_make_it(tmp_path):
    paper = dataclasses.replace(load_paper("qstr"), folder=tmp_path)
    verdicts = [dataclasses.replace(_verdict(), values={})]
    (line,) = values.Expected([paper]).changed(verdicts)
    assert str(tmp_path / VALUES) in line and "Try jaxbounds verify qstr --record" in line


def _verdict():
    from jaxbounds.falsification import unmeasured

    (first, *_) = unmeasured(find_statement("qstr.lem12"), "")
    return dataclasses.replace(first, status="holds")


@pytest.mark.parametrize("seed", [{"seed": 1}, {"thorough": True}])
def test_other_draws_are_not_compared(claims, seed):
    jb.verify(claims, record=True, jobs=1)
    _edit(claims, "return x * x", "return 2.0 * x * x")
    assert jb.verify(f"{claims.stem}.square", imports=[str(claims)], jobs=1, **seed).changed == ()


@pytest.mark.parametrize("paper", load_papers(), ids=lambda p: p.id)
def test_each_statement_has_its_values_on_record(paper):
    recorded = read_records(paper, VALUES)
    forms = {s.id: [f.name for f in s.forms] for s in paper.statements}
    assert {name: list(known) for name, known in recorded.items()} == forms
    for name, known in recorded.items():
        assert known[forms[name][0]], name
        for places in known.values():
            for named in places.values():
                assert all(map(read_back, named.values()))


def test_most_judged_functions_are_on_record():
    """The others are called inside a loop or a derivative alone, or return no number."""
    for paper in load_papers():
        judged = {
            full_name(f).removeprefix("jaxbounds.") for s in paper.statements for f in s.judges
        }
        known = {
            name
            for forms in read_records(paper, VALUES).values()
            for places in forms.values()
            for named in places.values()
            for name in named
        }
        assert len(judged & known) >= 0.75 * len(judged), sorted(judged - known)


def test_the_records_of_values_are_small():
    files = [place_of_records(paper, VALUES) for paper in load_papers()]
    assert sum(file.stat().st_size for file in files) < 1_000_000


@pytest.mark.parametrize("shape", [(), (2,), (3,), (4,), (5, 7), (70, 60)])
@pytest.mark.parametrize("xp", [np, jnp])
def test_each_entry_that_changes_moves_the_numbers(shape, xp):
    x = np.random.default_rng(0).normal(size=shape)
    before = np.asarray(numbers({"x": x, "n": 3}, np))
    for i in range(0, x.size, max(1, x.size // 50)):
        other = x.copy()
        other.flat[i] += 0.5
        moved = np.abs(np.asarray(numbers({"x": xp.asarray(other), "n": 3}, xp)) - before)
        assert np.max(moved) >= 0.2
    if x.ndim == 2:
        assert np.max(np.abs(np.asarray(numbers({"x": x[::-1], "n": 3}, np)) - before)) > 1e-3


def test_infinite_entries_hide_no_others():
    masked = lambda x: np.asarray(numbers(np.array([-np.inf, x, 2.0, 3.0, np.nan]), np))
    assert np.all(np.isfinite(masked(1.0))) and np.all(masked(1.0) != masked(1.5))


def test_words_and_objects_are_noted():
    @dataclasses.dataclass(frozen=True)
    class Machine:
        states: tuple[str, ...]
        table: np.ndarray

    one = Machine(("start", "halt"), np.eye(2, dtype=int))
    for other in (
        dataclasses.replace(one, states=("start", "stop")),
        dataclasses.replace(one, table=np.array([[1, 0], [1, 1]])),
    ):
        assert np.any(numbers(one, np) != numbers(other, np))
    assert numbers((print, None), np) is None


@pytest.mark.parametrize(
    "number, bar, text",
    [
        (0.5, 1e-14, "0.5"),
        (-1 / 3, 2e-9, "-0.3333333333333 +-2.1e-09"),
        (math.nan, 0.0, "nan"),
        (math.inf, 0.0, "inf"),
        (7.0, math.inf, "7 +-inf"),
        (0.0, 0.0, "0"),
    ],
)
def test_values_are_read_back(number, bar, text):
    assert written((number, 1.0), (bar, 0.0)) == f"{text}, 1"
    value, one = read_back(f"{text}, 1")
    assert value.number == pytest.approx(number, rel=1e-12, nan_ok=True)
    assert one == (1.0, 1e-12) and (math.isnan(number) or value.bar >= bar)


@pytest.mark.parametrize(
    "now, before, apart",
    [
        (1.0 + 1e-13, "1", False),
        (1.0 + 1e-11, "1", True),
        (1.0 + 1e-11, "1 +-2.0e-11", False),
        (math.nan, "nan", False),
        (1.0, "nan", True),
        (math.nan, "1", True),
        (math.inf, "inf", False),
        (-math.inf, "inf", True),
        (3.0, "7 +-inf", False),
        (1e-300, "0", True),
    ],
)
def test_what_is_not_as_recorded(now, before, apart):
    found = differences_of_values(
        {"n=1, sample 0": {"rhs": (now,)}}, {"n=1, sample 0": {"rhs": before}}
    )
    assert bool(list(found)) == apart


def test_sides_that_come_or_go_are_not_as_recorded():
    known, other = {"n=1, sample 0": {"rhs": "1"}}, {"n=2, sample 0": {"rhs": (1.0,)}}
    assert len(list(differences_of_values(other, known))) == 2
    assert len(list(differences_of_values({"n=1, sample 0": {"rhs": (1.0, 2.0)}}, known))) == 1


def test_a_judged_function_that_nobody_saw_called_is_not_compared():
    """A table may hold its value."""
    known = {"n=1, sample 0": {"rhs": "1", "mine.f": "2"}}
    assert list(differences_of_values({"n=1, sample 0": {"rhs": (1.0,)}}, known)) == []


def _claim(evaluate, **more):
    return jb.Statement(
        id="valuetest.one", label="", formula="x", kind="inequality", control="-1",
        forms=(jb.Form(name="printed"),), sizes=({},),
        sample=lambda key, size: {"x": jax.random.uniform(key, (), minval=0.3, maxval=0.7)},
        evaluate=lambda i, size: jb.Sides(evaluate(i["x"]), {"printed": 9.0, "control": -9.0}),
        **more,
    )  # fmt: skip


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize(
    "evaluate, least, most",
    [
        (lambda x: 3 * x, 1e-14, 1e-12),
        (lambda x: (1e6 * x + 1 / 3) - 1e6 * x, 1e-9, 1e-6),
        (lambda x: jnp.floor(3 * x) * 0 + 2.0, 0.0, 1e-12),
    ],
    ids=["a product", "a sum that cancels", "a step"],
)
def test_a_bar_is_rounding_of_the_size_of_the_terms(evaluate, least, most, host):
    (found,) = noted_with_bars(_claim(evaluate, host=host))
    for place in found.values:
        (bar,), (value,) = found.bars[place]["lhs"], found.values[place]["lhs"]
        assert least <= bar <= max(most, 1.01 * OFTEN * abs(value) * host)


def test_what_hangs_on_a_rounding_has_no_bar():
    """At 1/3 the product is one, or one less a rounding: the step goes either way."""
    claim = _claim(lambda x: jnp.floor((x / x) * (1 / 3.0) * 3.0 + (x - x)))
    (found,) = noted_with_bars(claim)
    assert all(math.isinf(named["lhs"][0]) for named in found.bars.values())
