"""What earlier runs found: when it is kept, when it is replaced, and when it is taken."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from stubs import TENTH, measured, plain, statement

from jaxbounds.claims.statements import Form, Sides, Size
from jaxbounds.constants.problem import with_one_form
from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.examples import NONE, SOURCE, Examples, recall, remember
from jaxbounds.falsification.origins import source_digest
from jaxbounds.falsification.programs import UNKEPT
from jaxbounds.falsification.storage import load_instance, save_instance

pytestmark = pytest.mark.usefixtures("x64")
ONE, PRINTED = Size({"d": 1}), Form(name="printed", expected="holds")


def anything(instance, size):
    """Hypotheses that every instance meets."""
    return {"any": True}


@pytest.mark.parametrize(
    "options, form, kept",
    [
        ({}, PRINTED, True),
        ({"kind": "identity"}, PRINTED, True),
        ({"kind": "probability", "level": 0.5}, PRINTED, False),
        ({"kind": "expectation"}, PRINTED, False),
        ({"kind": "rate", "forms": (Form(name="printed", sense="at most"),)}, PRINTED, False),
        ({"enumerates": "all"}, PRINTED, False),
        ({}, Form(name="printed", expected="vacuous"), False),
    ],
)
def test_examples_are_of_forms_that_should_hold_and_that_one_instance_decides(
    options, form, kept, tmp_path
):
    told = statement(**{"hypotheses": anything} | options)
    file = Examples(tmp_path).of(told, form, ONE)
    place = tmp_path / source_digest(told)[:32]
    assert file == (place / "mine.claim.printed.d1.npz" if kept else None)
    assert NONE.of(told, form, ONE) is None
    assert not Examples(tmp_path).every and NONE.folder is None


def test_a_file_is_named_after_its_form_and_size(tmp_path):
    tagged, size = Form(name="sharpened S 5", expected="holds"), Size({"n": 3, "R": 0.5})
    name = "mine.claim.sharpened-S-5.R0.5_n3.npz"
    assert Examples(tmp_path).of(statement(hypotheses=anything), tagged, size).name == name


def _bench(evaluate=plain, **options):
    options = {"hypotheses": anything, "forms": (PRINTED,)} | options
    return Bench(statement(evaluate, **options), 8, UNKEPT)


def _place(folder, form="printed", d=1, evaluate=plain):
    """The file of an example of what `_bench` measures."""
    told = _bench(evaluate).statement
    return Examples(folder).of(told, Form(name=form, expected="holds"), Size({"d": d}))


def _kept(folder, x, ratio, size=None, form="printed", evaluate=plain):
    """A file as an earlier run left it."""
    size = size or {"d": 1}
    about = {"id": "mine.claim", "form": form, "ratio": repr(ratio), "size": size}
    file = _place(folder, form, size["d"], evaluate)
    save_instance(file, {"x": np.asarray(x)}, **about)


def _recalled(folder, every=False, drawn=0.0, **options):
    bench, pool = _bench(**({"tolerance": TENTH, "sizes": ({"d": 1}, {"d": 2})} | options)), Pool()
    for size in range(2):
        batch = {"x": np.asarray(drawn)[None]}
        pool.add("draws", size, batch, measured(np.zeros((1, 2))))
    recall(bench, pool, Examples(folder, every))
    return [
        (source, size, batch["x"].tolist(), m.value[:, 0].tolist())
        for source, size, batch, m in zip(pool.sources, pool.sizes, pool.instances, pool.measured)
    ][2:]


EDGE = 1 + TENTH


@pytest.mark.parametrize("ratio, every, taken", [
    (float(np.nextafter(EDGE, 2)), False, True), (EDGE, False, False), (0.1, True, True),
    (0.1, False, False),
])  # fmt: skip
def test_what_violated_is_taken_and_the_rest_on_request(tmp_path, ratio, every, taken):
    _kept(tmp_path, 3.0, ratio)
    found = _recalled(tmp_path, every)
    assert found == ([(SOURCE, 0, [3.0], [1.5])] if taken else [])


def test_it_is_taken_at_its_size_if_it_still_fits(tmp_path):
    assert SOURCE == "earlier"
    _kept(tmp_path, 3.0, 5.0, {"d": 2})
    assert [size for _, size, _, _ in _recalled(tmp_path)] == [1]
    _kept(tmp_path, 3.0, 5.0, {"d": 3})
    assert len(_recalled(tmp_path)) == 1
    _place(tmp_path, d=2).unlink()
    for drawn in (np.zeros(2), np.float32(0), np.asarray(0), np.zeros(1)):
        _kept(tmp_path, 3.0, 5.0)
        assert _recalled(tmp_path, drawn=drawn) == []


@pytest.mark.parametrize("meta", [
    {"size": {"d": 1}}, {"ratio": "much", "size": {"d": 1}},
])  # fmt: skip
def test_a_file_that_says_too_little_is_passed_over(tmp_path, meta):
    save_instance(_place(tmp_path), {"x": np.asarray(3.0)}, **meta)
    assert _recalled(tmp_path, True) == []
    _place(tmp_path).write_bytes(b"no archive")
    assert _recalled(tmp_path, True) == []
    assert _recalled(tmp_path / "nowhere", True) == []


def _remembered(folder, found, x=3.0, size=ONE, evaluate=plain, form=PRINTED):
    """What is kept after a run that found this ratio: the entry and its ratio."""
    bench = _bench(evaluate)
    remember(bench, form, 0, ({"x": np.asarray(x)}, size, found), Examples(folder))
    file = _place(folder, evaluate=evaluate)
    if not file.is_file():
        return None
    stored = load_instance(file)
    return stored.instance["x"].tolist(), float(stored.meta["ratio"]), stored.meta["size"]


def test_what_was_found_is_kept_with_its_ratio(tmp_path):
    assert _remembered(tmp_path, 1.5) == (3.0, 1.5, {"d": 1})
    stored = load_instance(_place(tmp_path))
    assert stored.meta["id"] == "mine.claim" and stored.meta["form"] == "printed"


@pytest.mark.parametrize("ratio", [np.nan, np.inf, -np.inf])
def test_a_ratio_that_is_none_is_not_kept(tmp_path, ratio):
    assert _remembered(tmp_path, ratio) is None


def test_what_should_not_hold_is_not_kept(tmp_path):
    assert _remembered(tmp_path, 1.5, form=Form(name="printed", expected="vacuous")) is None
    remember(_bench(), PRINTED, 0, ({"x": np.asarray(3.0)}, ONE, 1.5), NONE)


def _twice(instance, size):
    return Sides(2 * instance["x"], {"printed": 2.0, "control": -9.0})


def _nowhere(instance, size):
    return Sides(instance["x"], {"printed": 2.0, "control": -9.0}, error=99.0)


@pytest.mark.parametrize("was, ratio, found, size, evaluate, replaced", [
    # Less than what was kept, at its size, where that is still worse.
    (4.0, 2.0, 1.5, {"d": 1}, plain, False), (4.0, 2.0, 2.5, {"d": 1}, plain, True),
    # Less than what was told then, but what was kept is no longer worse.
    (1.0, 2.0, 1.5, {"d": 1}, plain, True), (3.0, 2.0, 1.5, {"d": 1}, plain, True),
    (3.1, 2.0, 1.5, {"d": 1}, plain, False), (1.6, 2.0, 1.5, {"d": 1}, _twice, False),
    (4.0, 2.0, 1.5, {"d": 1}, _nowhere, True),  # it does not count any more
    ([4.0], 2.0, 1.5, {"d": 1}, plain, True),  # it is of another shape
])  # fmt: skip
def test_the_worse_one_is_kept(tmp_path, was, ratio, found, size, evaluate, replaced):
    _kept(tmp_path, was, ratio, size, evaluate=evaluate)
    told = _remembered(tmp_path, found, 7.0, evaluate=evaluate)
    assert told == ((7.0, found, {"d": 1}) if replaced else (was, ratio, size))


def test_the_same_ratio_again_changes_nothing(tmp_path):
    _kept(tmp_path, 4.0, 2.0)
    assert _remembered(tmp_path, 2.0, 7.0) == (4.0, 2.0, {"d": 1})


def test_each_size_keeps_its_own(tmp_path):
    _kept(tmp_path, 4.0, 2.0, {"d": 2})
    assert _remembered(tmp_path, 1.5) == (3.0, 1.5, {"d": 1})
    assert float(load_instance(_place(tmp_path, d=2)).meta["ratio"]) == 2.0


def test_without_a_place_nothing_is_remembered(tmp_path):
    (tmp_path / "file").write_text("no folder")
    remember(_bench(), PRINTED, 0, ({"x": np.asarray(3.0)}, ONE, 1.5), Examples(tmp_path / "file"))


def test_the_form_is_the_one_of_its_index(tmp_path):
    # What was kept is 2 for the first form and 1 for the second.
    two = lambda i, s: Sides(i["x"], {"printed": 2.0, "derived": 4.0, "control": -9.0})
    forms = (PRINTED, Form(name="derived", expected="holds"))
    bench = _bench(two, forms=forms)
    for form, index, replaced in ((forms[0], 0, False), (forms[1], 1, True)):
        _kept(tmp_path, 4.0, 2.0, form=form.name, evaluate=two)
        remember(bench, form, index, ({"x": np.asarray(7.0)}, ONE, 1.5), Examples(tmp_path))
        stored = load_instance(_place(tmp_path, form.name, evaluate=two))
        assert (float(stored.instance["x"]) == 7.0) == replaced


def test_where_nothing_is_kept_nothing_is_recalled():
    bench, pool = _bench(), Pool()
    pool.add("draws", 0, {"x": np.zeros(1)}, measured(np.zeros((1, 2))))
    recall(bench, pool, NONE)
    assert pool.sources == ["draws"]


def _positive(instance, size):
    return {"x <= 1": instance["x"] <= 1.0}


def _onto(instance, size):
    return {"x": np.minimum(instance["x"], 2.5)}


@pytest.mark.parametrize("options, found", [
    ({"hypotheses": None}, None),  # nothing says that there is such an instance
    ({"hypotheses": anything}, (3.0, True)),
    ({"hypotheses": _positive}, (3.0, False)),
    ({"hypotheses": None, "project": _onto}, (2.5, True)),
    ({"hypotheses": _positive, "project": _onto}, (2.5, False)),
    ({"hypotheses": anything, "project": _onto}, (3.0, True)),  # it meets them as it is
])  # fmt: skip
def test_an_example_counts_only_where_it_is_confirmed(options, found, tmp_path):
    bench, pool = _bench(**{"tolerance": TENTH} | options), Pool()
    pool.add("draws", 0, {"x": np.zeros(1)}, measured(np.zeros((1, 2))))
    file = Examples(tmp_path).of(bench.statement, PRINTED, ONE)
    assert (file is None) == (found is None)
    about = {"id": "mine.claim", "form": "printed", "ratio": "5.0", "size": {"d": 1}}
    if file is not None:
        save_instance(file, {"x": np.asarray(3.0)}, **about)
    recall(bench, pool, Examples(tmp_path))
    taken = [(b["x"].item(), bool(m.counted[0, 0])) for b, m in zip(pool.instances, pool.measured)]
    assert taken[1:] == ([] if found is None else [found])


def test_an_example_is_of_one_source(tmp_path, monkeypatch):
    """Files of equal ids, and one file before and after an edit, share nothing."""
    text = "import numpy as np\n\n\ndef hypotheses(i, size):\n    return {'any': True}\n# {}\n"
    names = set()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for edit in ("a", "b"):
            (tmp_path / folder / "foreign_claim.py").write_text(text.replace("{}", edit))
            monkeypatch.syspath_prepend(str(tmp_path / folder))
            monkeypatch.delitem(sys.modules, "foreign_claim", raising=False)
            importlib.invalidate_caches()
            module = importlib.import_module("foreign_claim")
            assert Path(module.__file__).parent.name == folder
            told = statement(hypotheses=module.hypotheses)
            assert source_digest(told) == source_digest(told)
            names.add(Examples(tmp_path).of(told, PRINTED, ONE))
    monkeypatch.delitem(sys.modules, "foreign_claim")
    assert len(names) == 4


def test_functions_without_a_file_count_by_their_code():
    made = []
    for limit in ("1.0", "2.0", "1.0"):
        space = {"__name__": "typed"}
        exec(f"def hypotheses(i, size):\n    return {{'x': i['x'] < {limit}}}", space)
        made.append(source_digest(statement(hypotheses=space["hypotheses"])))
    assert made[0] == made[2] != made[1]


def test_a_form_at_one_size_has_the_source_of_its_statement():
    """What `constant` finds `verify` takes."""
    told = statement(
        hypotheses=anything, sizes=({"d": 1}, {"d": 2}),
        forms=(PRINTED, Form(name="derived", hypotheses=_positive)),
        evaluate=lambda i, s: Sides(i["x"], {"printed": 2.0, "derived": 2.0, "control": -9.0}),
    )  # fmt: skip
    assert source_digest(with_one_form(told, "derived", Size({"d": 2}))) == source_digest(told)


@pytest.mark.parametrize("length", [1, 300])
def test_a_long_name_is_a_name_of_a_file(length, tmp_path):
    sizes = {f"{'n' * 60}{k}": k for k in range(6)}
    told = statement(hypotheses=anything, sizes=(sizes,))
    form = Form(name="a" * length, expected="holds")
    file = Examples(tmp_path).of(told, form, Size(sizes))
    assert len(file.name) <= 250
    save_instance(file, {"x": np.zeros(1)}, id="mine.claim")
    assert file != Examples(tmp_path).of(told, form, Size(sizes | {"n" * 60 + "5": 6}))
