"""The public face: names that own themselves, and doors that do what the commands do."""

import concurrent.futures
import inspect
import itertools
import json
import multiprocessing
import pydoc
import subprocess
import sys
import types
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements import Budget, Status
from jaxbounds.cli import main
from jaxbounds.papers import load_module, load_papers
from jaxbounds.papers.selection import selected, the_statement

CLAIMS = '''
import jax
from jaxbounds import Budget, Form, Paper, Sides, Statement

def product_of_norms(x, y):
    """|x| |y|."""
    return (x @ x) ** 0.5 * (y @ y) ** 0.5

def evaluate(instance, size):
    x, y = instance["x"], instance["y"]
    bound = product_of_norms(x, y)
    return Sides(abs(x @ y), {"printed": bound, "control": bound / 2})

def pair(key, size):
    x, y = jax.random.normal(key, (2, size["d"]))
    return {"x": x, "y": y}

PAPER = Paper(id="facenotes", title="Notes", statements=(Statement(
    id="facenotes.cauchy", label="Lemma 1", formula="|x.y| <= |x| |y|", kind="inequality",
    evaluate=evaluate, judges=(product_of_norms,), sample=pair, sizes=({"d": 2},),
    forms=(Form(name="printed", equality="y = x"),), control="half",
    budget=Budget(samples=64, restarts=2, steps=60)),))
'''


TWICE = """
import dataclasses
(one,) = PAPER.statements
both = tuple(dataclasses.replace(one, id=f"facetwo.{name}") for name in ("first", "second"))
PAPER = dataclasses.replace(PAPER, statements=both)
"""


@pytest.fixture
def claims(tmp_path):
    file = tmp_path / "facenotes.py"
    file.write_text(CLAIMS)
    yield file
    sys.modules.pop("facenotes", None)


def test_names_own_themselves_and_nothing_is_private():
    assert [name for name in dir(jb) if name.startswith("_")] == []
    for name in dir(jb):
        found = getattr(jb, name)
        assert not isinstance(found, types.ModuleType), name
        assert found.__name__ == name and found.__doc__, name
        assert "Python Library Documentation" in pydoc.render_doc(found), name
    with pytest.raises(AttributeError, match="nothing"):
        jb.nothing  # noqa: B018


def test_arguments_can_be_given_by_name():
    for name in dir(jb):
        found = getattr(jb, name)
        if inspect.isfunction(found) and name not in ("lanes_of", "enclose"):
            kinds = {p.kind for p in inspect.signature(found).parameters.values()}
            assert inspect.Parameter.POSITIONAL_ONLY not in kinds, name


NAMED_BY_THE_USER = {("run", "fields"), ("lanes_of", "grid"), ("Item", "given")}
"""Keyword arguments whose names are the fields of a configuration, a grid's axes, or all arguments
of `jb.claim` and `jb.Statement`, which an item of a paper passes on."""


def _signatures():
    for name in dir(jb):
        found = getattr(jb, name)
        if inspect.isclass(found):
            for method, function in vars(found).items():
                function = getattr(function, "__func__", function)
                own = method == "__init__" or not method.startswith("_")
                if inspect.isfunction(function) and own:
                    yield name, f"{name}.{method}", inspect.signature(function)
        elif callable(found):
            yield name, name, inspect.signature(found)


def test_each_option_stands_in_its_signature():
    hidden = [
        f"{where}(**{p.name})"
        for name, where, signature in _signatures()
        for p in signature.parameters.values()
        if p.kind is p.VAR_KEYWORD and (name, p.name) not in NAMED_BY_THE_USER
    ]
    assert hidden == []


def test_defaults_print_as_what_a_user_would_type():
    plain = (type(None), bool, int, float, str, tuple)
    odd = [
        f"{where}({p})"
        for _, where, signature in _signatures()
        for p in signature.parameters.values()
        if p.default is not p.empty and not isinstance(p.default, plain)
        if type(p.default).__name__ not in ("_HAS_DEFAULT_FACTORY_CLASS", "mappingproxy")
    ]
    assert odd == []


def test_the_stub_groups_each_name_once_by_theme():
    lines = Path(jb.__file__).with_name("__init__.pyi").read_text().split("\n")
    names = [line.split(" as ")[1] for line in lines if line.startswith("from ")]
    assert sorted(names) == sorted(dir(jb))
    for before, line in itertools.pairwise(lines):
        if line.startswith("from ") and not before.startswith("from "):
            assert before.startswith("# "), f"a group without its theme: {line}"


def test_statuses_carry_their_meaning_and_cure():
    assert {*jb.Status} == {*get_args(Status)}
    sound = {jb.Status.HOLDS, jb.Status.CONSISTENT}
    for status in jb.Status:
        assert status == str(status) == status.value and status.meaning
        assert bool(status.cure) == (status not in sound), status
    assert jb.Status("fails") is jb.Status.FAILS


def test_exceptions_are_on_the_face():
    from jaxbounds.programs.balls import values

    assert values.Undecided is jb.Undecided and values.NotSupported is jb.NotSupported


def test_importing_it_imports_no_jax():
    program = "import jaxbounds, sys; print('jax' in sys.modules, 'xarray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_ids_and_files_are_taken_where_a_statement_is(claims):
    few = Budget(samples=64, restarts=0)
    by_id = jb.falsify("multihead.eq1", budget=few)
    assert [v.id for v in by_id] == ["multihead.eq1"] * len(by_id)
    (mine,) = jb.falsify(claims)
    assert (mine.id, mine.status) == ("facenotes.cauchy", "holds")
    assert jb.is_bound_to(claims, sys.modules["facenotes"].product_of_norms)
    with pytest.raises(ValueError, match=r"names count=\d+ statements"):
        jb.falsify("multihead.cor1")
    with pytest.raises(ValueError, match=r"Try multihead\.eq"):
        jb.falsify("multihead.eq511")


def test_a_whole_id_names_its_own_statement_where_other_ids_begin_with_it():
    """As multihead.thm1, beside multihead.thm1.rho: the refusal said "Try multihead.thm1"."""
    for paper in load_papers():
        for statement in paper.statements:
            assert the_statement(statement.id) is statement


def test_a_file_beside_ids_of_its_paper_says_where_they_are(tmp_path):
    file = tmp_path / "facetwo.py"
    file.write_text(CLAIMS.replace("facenotes", "facetwo") + TWICE)
    try:
        ids = lambda *named: [s.id for s in selected(named).statements]
        both = ["facetwo.first", "facetwo.second"]
        assert ids(file) == both == ids(file, "facetwo.*")
        assert ids(file, "facetwo.second") == both[1:]
        assert set(ids(file, "facetwo.s*", "multihead.eq51")) == {*both[1:], "multihead.eq51"}
        assert set(ids(file, "multihead.eq51")) == {*both, "multihead.eq51"}
        with pytest.raises(ValueError, match=r"no statement matches pattern='facetwo\.third'"):
            ids(file, "facetwo.third")
        # The file names the paper, so that its name need not come again.
        assert ids(file, "second") == ids(file, "sec*") == both[1:]
        assert ids(file, "first", "facetwo.second") == both
        with pytest.raises(ValueError, match=r"pattern='third'. Try facetwo.first, facetwo.sec"):
            ids(file, "third")
    finally:
        sys.modules.pop("facetwo", None)


def test_verify_does_what_the_command_does(claims, tmp_path, capsys, monkeypatch):
    # What one of them found the other would start from.
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "first"))
    found = jb.verify(claims, out=tmp_path / "door", jobs=1)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "second"))
    assert main(["verify", str(claims), "--out", str(tmp_path / "command"), "--jobs", "1"]) == 0
    ours, theirs = (
        json.loads((tmp_path / where / "verdicts.json").read_text())
        for where in ("door", "command")
    )
    without = lambda vs: [v | {"seconds": 0} for v in vs]
    assert without(ours) == without(theirs) and found.status == 0
    for name in ("report.html", "run.json", "worst/facenotes.cauchy.printed.npz"):
        assert (tmp_path / "door" / name).is_file()
    assert "1 statement, 1 form: 1 holds\n" in repr(found)
    assert "<table>" in found._repr_html_()
    x, y = (found.instance().instance[name] for name in "xy")
    assert abs(x @ y) == pytest.approx(np.linalg.norm(x) * np.linalg.norm(y), rel=1e-9)
    assert found["facenotes.cauchy"] == found
    with pytest.raises(ValueError, match="no instance was measured for verdicts=0: there are no"):
        jb.Verdicts((), folder=tmp_path).instance()
    with pytest.raises(KeyError, match="no verdict on 'nobody'"):
        found["nobody"]


def test_on_any_executor(claims):
    spawned = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawned) as pool:
        away = jb.verify(["multihead.eq1", claims], on=pool)
    here = jb.verify(["multihead.eq1", claims], jobs=1)
    for a, b in zip(away, here):
        assert (a.id, a.form, a.status) == (b.id, b.form, b.status)
        assert a.worst_ratio == pytest.approx(b.worst_ratio, rel=1e-6)
    assert away.instance(away[0]).meta["id"] == here.instance(here[0]).meta["id"]
    forking = multiprocessing.get_context("fork")
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=forking) as pool,
        pytest.raises(ValueError, match="a fork hangs with JAX"),
    ):
        jb.verify("multihead.eq51", on=pool)
    with pytest.raises(ValueError, match="expected processes"):
        jb.verify("multihead.eq51", on="dusk://a:1")


def test_a_script_without_a_guard_runs_once(claims, tmp_path):
    """Processes do not execute the script that started them."""
    script = tmp_path / "script.py"
    claims.write_text(CLAIMS + TWICE.replace("facetwo", "facenotes"))
    script.write_text(
        f"import jaxbounds as jb\nprint('begun')\nfound = jb.verify({str(claims)!r}, jobs=2)\n"
        "print(found.status, len(found))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.stdout.split() == ["begun", "0", "2"], done.stdout + done.stderr


def test_a_paper_at_hand_is_judged_here(claims):
    paper = jb.load_paper(str(claims))
    at_hand = jb.Paper(id="facenotes", title="Notes", statements=paper.statements)
    (verdict,) = jb.verify(at_hand)
    (again,) = jb.verify(at_hand.statements)
    assert verdict.status == again.status == "holds"
    with pytest.raises(ValueError, match="exists in this process alone"):
        jb.verify(at_hand, jobs=2)
    with pytest.raises(ValueError, match="was not loaded from a file"):
        jb.verify(at_hand, record=True)


def test_ones_own_paper_has_records_beside_it(claims, capsys):
    jb.verify(claims, record=True, jobs=1)
    file = claims.with_name("facenotes-records") / "ratios.json"
    recorded = json.loads(file.read_text())
    assert recorded["facenotes.cauchy"]["printed"]["worst"] == pytest.approx(1.0)
    drawn = recorded["facenotes.cauchy"]["printed"]["drawn"]
    recorded["facenotes.cauchy"]["printed"]["drawn"] = drawn + 0.01
    file.write_text(json.dumps(recorded))
    out = str(claims.with_name("out"))
    assert main(["verify", str(claims), "--jobs", "1", "--out", out]) == 0
    assert f"drawn {drawn:.8g}, on record" in capsys.readouterr().out


def test_what_was_kept_may_be_left_out(claims, tmp_path, monkeypatch):
    """A violation that an earlier version of the file kept; nothing is kept by the run itself."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    source = CLAIMS.replace("return (x @ x)", "return 0.5 * (x @ x)")
    source = source.replace("control=", "hypotheses=lambda i, size: {}, control=")
    claims.write_text(source)
    kept = lambda: list((tmp_path / "cache").rglob("facenotes*.npz"))
    assert jb.verify(claims, jobs=1, fresh=True).status == 1 and not kept()
    assert jb.verify(claims, jobs=1).status == 1 and kept()
    (with_it,) = jb.verify(claims, jobs=1)
    (without,) = jb.verify(claims, jobs=1, fresh=True)
    assert "earlier" in with_it.sources and "earlier" not in without.sources


def test_what_moved_since_it_was_recorded_is_said(claims):
    """A right side 1% larger: the verdict stays, the ratios are not those on record."""
    assert jb.verify(claims, record=True, jobs=1).moved == ()
    claims.write_text(CLAIMS.replace("return (x @ x)", "return 1.01 * (x @ x)"))
    later = jb.verify(claims, jobs=1)
    assert [v.status for v in later] == ["holds"] and later[0].evidence != "attained"
    (line,) = later.moved
    assert line.startswith("facenotes.cauchy (printed): drawn") and ", on record" in line
    assert line in repr(later) and later["facenotes.cauchy"].moved == later.moved


def test_a_file_that_changed_is_executed_again(claims):
    """As in a notebook: what is judged is what stands in the file, and what its digest says."""
    claims.with_name("helper_of_notes.py").write_text("FACTOR = 1.0")
    text = CLAIMS.replace("return (x @ x)", "return helper_of_notes.FACTOR * (x @ x)")
    claims.write_text("import helper_of_notes" + text)
    before = jb.verify(claims, jobs=1)
    assert before[0].status == "holds"
    claims.with_name("helper_of_notes.py").write_text("FACTOR = 0.990")
    after = jb.verify(claims, jobs=1)
    assert after[0].status == "fails" and "violate it" in repr(after)
    sys.modules.pop("helper_of_notes", None)


def test_what_is_installed_beside_a_file_stays_loaded(claims):
    """A virtual environment in the folder of the file, as the README makes it."""
    site = claims.parent / ".venv" / "lib" / "site-packages"
    site.mkdir(parents=True)
    (site / "installed_beside.py").write_text("COUNT = []")
    path = f"import sys; sys.path.append({str(site)!r}); import installed_beside\n"
    claims.write_text(path + CLAIMS)
    assert jb.load_paper(str(claims)).id == "facenotes"
    installed = sys.modules["installed_beside"]
    claims.write_text(path + CLAIMS + "\nCHANGED = 1\n")
    assert load_module(str(claims)).CHANGED == 1
    assert sys.modules.pop("installed_beside") is installed
    sys.path.remove(str(site))


def test_an_engine_that_breaks_leaves_the_earlier_results(claims, tmp_path):
    class Gone(concurrent.futures.ThreadPoolExecutor):
        def submit(self, *arguments):
            raise RuntimeError("gone")

    out = tmp_path / "out"
    jb.verify(claims, out=out, jobs=1)
    kept = (out / "verdicts.json").read_text()
    with Gone(1) as pool, pytest.raises(RuntimeError, match="gone"):
        jb.verify([claims, "multihead.eq51"], out=out, on=pool)
    assert (out / "verdicts.json").read_text() == kept


@pytest.mark.parametrize("on", [3, 0.5])
def test_what_is_no_engine_is_refused_in_a_sentence(on, unannotated):
    with pytest.raises(ValueError, match=r"on=.* expected .* any concurrent.futures.Executor"):
        jb.verify("multihead.eq51", on=on)


def test_certify_from_python(tmp_path):
    found = jb.certify("multihead.eq51", out=tmp_path, jobs=1)
    assert [c.word for c in found] == ["disproved"] and found.status == 0
    assert (tmp_path / "certificates.json").is_file()
    assert found.witnesses["multihead.eq51", "printed"]["statement"] == "multihead.eq51"
    assert "1 certificates" in repr(found)
    certificate = jb.disprove("multihead.eq51")
    assert certificate.word == "disproved"
    text = repr(certificate)
    assert "multihead.eq51 (printed): disproved" in text and "left side" in text
    assert len(text) < 1500 and "<table>" in certificate._repr_html_()


def test_run_from_python(tmp_path):
    dataset = jb.run("smapprox.machine", out=tmp_path, machine="parity", input="0110")
    assert (tmp_path / "result.nc").is_file()
    experiment = jb.find_experiment("smapprox.machine")
    assert experiment.claims(dataset)
    with pytest.raises(ValueError, match=r"no field='colour'\. Try one of"):
        jb.run("smapprox.machine", colour="red")
    with pytest.raises(ValueError, match="cannot be resumed"):
        jb.run("smapprox.machine", shards=2)


def test_audit_from_python(claims, tmp_path):
    found = jb.audit(claims, out=tmp_path / "audit", certify=False, jobs=1)
    assert (tmp_path / "audit" / "audit.md").read_text().startswith("# Notes")
    assert len(found.verdicts) == 1 and len(found.digest) == 64
    assert found.digest[:16] in repr(found)  # the folder before it may fill the line
    again = jb.audit(claims, out=tmp_path / "audit", certify=False, jobs=1)
    assert again.digest == found.digest
    with pytest.raises(ValueError, match="no paper has id='nobody'"):
        jb.audit("nobody", out=tmp_path)
