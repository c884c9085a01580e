"""The loop of a researcher: what failed, what takes long, what changed, what an edit touched."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jsonschema
import pytest

from jaxbounds.cli import main
from jaxbounds.cli.schema import SCHEMAS
from jaxbounds.cli.watch import Round, Watched, judge_changed, stamps_of
from jaxbounds.ground.folders import Marked
from jaxbounds.papers import load_paper, load_papers
from jaxbounds.report.schemas import errata_schema, statements_schema, verdicts_schema
from jaxbounds.runs.folder import judged_before
from jaxbounds.runs.statement_run import Options

CLAIMS = """
import numpy as np
import jaxbounds as jb

def double(x):
    return FIRST * x

def square(x):
    return x**SECOND

def cases(size):
    return {"x": np.arange(1.0, 1.0 + size["n"])}

def evaluate_double(instance, size):
    x = instance["x"]
    return jb.Sides(lhs=x + x, rhs={"printed": double(x), "control": 3 * x})

def evaluate_square(instance, size):
    x = instance["x"]
    return jb.Sides(lhs=x * x, rhs={"printed": square(x), "control": x**3})

DOUBLE = jb.Statement(
    id="mine.double", label="1", formula="x + x = 2 x", kind="identity", judges=(double,),
    cases=cases, evaluate=evaluate_double, host=True, sizes=({"n": 4},),
    forms=(jb.Form(name="printed"),), control="3 x",
)
SQUARE = jb.Statement(
    id="mine.square", label="2", formula="x x = x^2", kind="construction", judges=(square,),
    cases=cases, evaluate=evaluate_square, host=True, sizes=({"n": 4},),
    forms=(jb.Form(name="printed"),), control="x^3",
)
PAPER = jb.Paper(id="mine", title="Mine", statements=(DOUBLE, SQUARE))
"""


@pytest.fixture
def claims(tmp_path, monkeypatch):
    """Writes two statements on small numbers; with the factor or the power 2 they hold."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def write(first=2, second=2, name="claims.py"):
        Path(name).write_text(CLAIMS.replace("FIRST", str(first)).replace("SECOND", str(second)))
        return name

    return write


def _verify(file, *more):
    return main(["verify", "mine", "--import", file, "--jobs", "1", *more])


def test_x_stops_at_the_first_surprise(claims, capsys):
    file = claims(first=5)
    assert _verify(file, "-x", "--json") == 1
    printed = capsys.readouterr()
    assert [v["id"] for v in json.loads(printed.out)] == ["mine.double"]
    assert "1 statement was not tried; without -x the same command" in printed.err
    assert _verify(file, "--json") == 1
    printed = capsys.readouterr()
    assert [v["status"] for v in json.loads(printed.out)] == ["fails", "holds"]
    assert "1 statement was judged in the unfinished run" in printed.err


def test_last_failed_is_what_was_not_as_recorded_when_judged_last(claims, capsys):
    ids = lambda: [v["id"] for v in json.loads(capsys.readouterr().out)]
    assert _verify(claims(first=5, second=3), "--json") == 1
    assert ids() == ["mine.double", "mine.square"]
    halved = claims(second=3, name="halved.py")
    assert _verify(halved, "--last-failed", "--json") == 1
    assert ids() == ["mine.double", "mine.square"]
    assert _verify(claims(second=3, name="again.py"), "--last-failed", "--json") == 1
    assert ids() == ["mine.square"]
    assert _verify(claims(name="mended.py"), "--last-failed", "--json") == 0
    assert ids() == ["mine.square"]
    assert _verify("mended.py", "--last-failed", "--json") == 0
    printed = capsys.readouterr()
    assert "no statement failed" in printed.err and len(json.loads(printed.out)) == 2


def test_last_failed_also_judges_what_no_run_has_judged(claims, capsys):
    ids = lambda: [v["id"] for v in json.loads(capsys.readouterr().out)]
    file = Path(claims(first=5))
    two = file.read_text()
    file.write_text(two.replace("(DOUBLE, SQUARE)", "(DOUBLE,)"))
    assert _verify(str(file), "--json") == 1
    assert ids() == ["mine.double"]
    third = two.replace("(DOUBLE, SQUARE)", "(DOUBLE, SQUARE, jb.claim('mine.new', 1, '<=', 2))")
    Path("more.py").write_text(third.replace("'<=', 2)", "'<=', 2, over={})"))
    assert _verify("more.py", "--last-failed", "--json") == 1
    printed = capsys.readouterr()
    assert [v["id"] for v in json.loads(printed.out)] == ["mine.double", "mine.square", "mine.new"]
    assert "failed in results/verify before (1), or that have no verdict there (2)" in printed.err
    assert _verify("more.py", "--last-failed", "--json") == 1
    assert ids() == ["mine.double"]


def test_a_list_of_failed_statements_of_an_earlier_version_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Marked(Path("out")).write("failed.json", json.dumps(["mine.double"]))
    assert judged_before(Path("out")) == {"mine.double": False}


def test_some_kinds_and_what_took_long(claims, capsys):
    file = claims()
    assert _verify(file, "--kind", "identity", "--durations", "5") == 0
    printed = capsys.readouterr().out
    assert "mine.square" not in printed and " s  mine.double" in printed
    assert main(["list", "mine", "--import", file, "--kind", "construction", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["id"] == "mine.square" and listed["judges"][0].endswith(".square")
    assert main(["list", "mine", "--import", file, "--kind", "rate"]) == 2
    error = capsys.readouterr().err
    assert "Try one of: identity, construction" in error and error.count("\n") == 1
    with pytest.raises(SystemExit) as refused:
        main(["list", "--kind", "lemma"])
    assert refused.value.code == 2


def test_json_is_what_its_schema_says(claims, capsys):
    """The schemas come from types, the values from the commands; jsonschema knows neither."""
    file = claims(first=5)
    _verify(file, "--json")
    verdicts = json.loads(capsys.readouterr().out)
    assert verdicts == json.loads(Path("results/verify/verdicts.json").read_text())
    jsonschema.validate(verdicts, verdicts_schema())
    for broken in ({"id": 3}, {"more": 1}, {"status": "true"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([verdicts[0] | broken], verdicts_schema())
    del verdicts[0]["seed"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(verdicts, verdicts_schema())
    for command in (["list", "qstr"], ["show", "mine.double", "--import", file]):
        assert main([*command, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        jsonschema.validate(shown, statements_schema())
    assert "written_in" in shown[0] and shown[0]["hypotheses"] == {"printed": []}
    assert main(["errata", "qstr", "--kind", "false", "--json"]) == 0
    errata = json.loads(capsys.readouterr().out)
    jsonschema.validate(errata, errata_schema())
    expected = [e.id for e in load_paper("qstr").errata if e.kind == "false"]
    assert [e["id"] for e in errata[0]["errata"]] == expected and expected


def test_every_schema_is_one_and_says_what_fields_mean(capsys):
    assert main(["schema"]) == 0
    stated = json.loads(capsys.readouterr().out)
    assert list(stated) == list(SCHEMAS)
    for name, one in stated.items():
        jsonschema.Draft202012Validator.check_schema(one)
        assert main(["schema", name]) == 0
        assert json.loads(capsys.readouterr().out) == one
    said = stated["verdicts"]["items"]["properties"]
    assert "adversar" not in said
    assert said["status"]["description"].startswith("the status of the form")
    assert main(["schema", "nothing"]) == 2
    assert "Try one of: verdicts" in capsys.readouterr().err


def test_diff_names_what_changed(claims, capsys):
    assert _verify(claims(), "--out", "a") == 0
    assert _verify(claims(first=5, name="other.py"), "--out", "b", "--seed", "1") == 1
    capsys.readouterr()
    assert main(["diff", "a", "a"]) == 0
    assert "2 forms in both: no change" in capsys.readouterr().out
    assert main(["diff", "a", "b"]) == 1
    printed = capsys.readouterr().out
    assert "seed: 0 -> 1" in printed and "2 forms in both: 1 verdict" in printed
    verdicts = json.loads(Path("b/verdicts.json").read_text())
    Path("c").mkdir()
    Path("c/verdicts.json").write_text(json.dumps(verdicts[:1]))
    assert main(["diff", "a", "c", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    main(["schema", "changes"])
    jsonschema.validate(found, json.loads(capsys.readouterr().out))
    assert [(c["id"], c["what"], c["before"], c["after"]) for c in found] == [
        ("mine.double", "verdict", "holds", "fails"),
        ("mine.square", "only in A", "holds", ""),
    ]
    assert main(["diff", "a", "nothing"]) == 2
    assert "path='nothing' holds no verdicts" in capsys.readouterr().err


def test_diff_says_when_a_ratio_or_its_evidence_moved(claims, capsys):
    _verify(claims(first=5), "--out", "a")
    stored = json.loads(Path("a/verdicts.json").read_text())
    Path("b").mkdir()
    for change, words in (
        ({"worst_ratio": stored[0]["worst_ratio"] * (1 + 1e-4)}, ["ratio"]),
        ({"worst_ratio": stored[0]["worst_ratio"] * (1 + 1e-9)}, []),
        ({"evidence": "searched"}, ["evidence"]),
    ):
        Path("b/verdicts.json").write_text(json.dumps([stored[0] | change, stored[1]]))
        capsys.readouterr()
        main(["diff", "a", "b", "--json"])
        assert [c["what"] for c in json.loads(capsys.readouterr().out)] == words


EDITS = (
    ("x**2", "x**3", {"mine.square"}),
    ("3 x", "4 x", {"mine.double"}),
    ("np.arange(1.0", "np.arange(2.0", {"mine.double", "mine.square"}),
    ("import numpy as np", "import numpy as np\nimport json", {"mine.double", "mine.square"}),
    ("PAPER =", '"""Nothing."""\nPAPER =', set()),
)


def test_an_edit_touches_what_uses_it(claims, tmp_path, monkeypatch):
    file = Path(claims())
    text = file.read_text()

    source = importlib.import_module("jaxbounds.report.source")  # the package has a function so
    every = source.own_files  # the library's own files may be edited while this runs
    of_the_test = lambda: {f: n for f, n in every().items() if f.parent == tmp_path.resolve()}
    monkeypatch.setattr(source, "own_files", of_the_test)

    def digests():
        for cached in (source._assigned, source._imported, source._ids, source._code_outside):
            cached.cache_clear()
        for name in [name for name in sys.modules if name.startswith("claims")]:
            del sys.modules[name]
        return {s.id: source.code_digest(s) for s in load_paper(str(file)).statements}

    old = digests()
    for before, after, touched in EDITS:
        assert before in text
        file.write_text(text.replace(before, after, 1))
        assert {name for name, digest in digests().items() if digest != old[name]} == touched, after


@pytest.mark.slow
def test_watching_judges_what_an_edit_touches(claims, tmp_path):
    """A real process: two edits, one of them half of one, then Ctrl-C."""
    file = Path(claims())
    command = [sys.executable, "-m", "jaxbounds", "verify", "mine", "--import", str(file)]
    seen, said = Path("seen.txt"), Path("said.txt")
    with seen.open("w") as out, said.open("w") as errors:
        running = subprocess.Popen(
            [*command, "--watch", "--jobs", "1"], stdout=out, stderr=errors, start_new_session=True
        )

    def wait(times, words="watching"):
        for _ in range(600):
            assert running.poll() is None, said.read_text()
            if said.read_text().count(words) >= times:
                return
            time.sleep(0.1)
        pytest.fail(said.read_text())

    wait(1)
    assert "mine.double" in seen.read_text() and "mine.square" in seen.read_text()
    before = len(seen.read_text())
    file.write_text(file.read_text().replace("x**2", "x**3"))
    wait(2)
    since = seen.read_text()[before:]
    assert "mine.square" in since and "mine.double" not in since and "NOT shown to hold" in since
    file.write_text(file.read_text() + "x = (")
    wait(3)
    assert "cannot be loaded" in said.read_text()
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(30) in (1, 2)
    assert "Traceback" not in said.read_text()


@pytest.mark.slow_cases("c.txt-<lambda>-True", "c.txt-<lambda>-False1")
@pytest.mark.parametrize(
    "prepare, change, touched",
    [
        ("c.txt", lambda: Path("c.txt").write_text("3"), True),
        ("c.txt", lambda: os.utime("c.txt", (1e9, 1e9)), False),
        ("parts/1", lambda: Path("parts/2").write_text(""), True),
        ("c.txt", lambda: Path("unread.txt").write_text("3"), False),
    ],
)
def test_a_round_judges_what_data_touch(prepare, change, touched, claims, capsys):
    """Rounds in this process: the file of a statement, the names in a folder, and nothing else."""
    file, data = Path(claims(name="watched_data.py")), Path(prepare)
    data.parent.mkdir(exist_ok=True)
    data.write_text("2")
    count, number = "len(list(Path('parts').iterdir())) + 1", "float(Path('c.txt').read_text())"
    reads = number if data.parent == Path() else count
    text = file.read_text().replace("return 2 * x", f"return ({reads}) * x")
    file.write_text("from pathlib import Path\n" + text)
    options = Options()
    watched = Watched(("mine",), (), (str(file),), Path("out"), 1, False, 0, options)
    first = judge_changed(watched, Round({}, {}, 0))
    assert first.status == 0 and "2 holds" in capsys.readouterr().out
    assert data.absolute() in first.stamps or data.parent.absolute() in first.stamps
    change()
    # What wakes the command.
    assert not touched or stamps_of(first.stamps) != first.stamps
    second = judge_changed(watched, first)
    assert second.status == int(touched)
    assert ("fails" in capsys.readouterr().out) == touched


def test_watch_is_refused_where_it_makes_no_sense(claims, capsys):
    assert _verify(claims(), "--watch", "--json") == 2
    assert "leave --record" in capsys.readouterr().err


PYTEST = [sys.executable, "-m", "pytest", "-p", "no:jaxbounds", "-p", "jaxbounds.pytest_plugin"]


def _pytest(*arguments):
    """In a process of its own, as a user has it."""
    done = subprocess.run([*PYTEST, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_statements_are_tests(claims):
    claims(first=5)
    Path("pytest.ini").write_text("[pytest]\njaxbounds_statements = claims.py\n")
    Path("test_own.py").write_text("def test_own():\n    pass\n")
    status, printed = _pytest("-q")
    assert status == 1 and "1 failed, 3 passed" in printed, printed
    for words in (
        "printed: fails", "counterexample=jb.Counterexample(instance={",
        "jaxbounds verify mine.double --seed 0 --import claims.py",
        "FAILED claims.py::mine.double",
    ):  # fmt: skip
        assert words in printed, words


@pytest.mark.slow
def test_some_statements_are_tests(claims):
    claims(first=5)
    Path("pytest.ini").write_text("[pytest]\njaxbounds_statements = claims.py\n")
    Path("test_own.py").write_text("def test_own():\n    pass\n")
    for chosen, words in (
        (["claims.py::mine.square", "test_own.py"], "2 passed"),
        (["test_own.py"], "1 passed"),
        (["-m", "jaxbounds", "-k", "construction"], "1 passed"),
    ):
        status, printed = _pytest("-q", *chosen)
        assert status == 0 and words in printed, printed


def test_a_module_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pytest.ini").write_text("[pytest]\njaxbounds_statements = nothing.here\n")
    status, printed = _pytest()
    assert (
        status == 4 and "names where='nothing.here', which is no file, folder or module" in printed
    )


@pytest.mark.slow
def test_every_shipped_statement_is_what_the_schema_says(capsys):
    for command in (["list"], *(["show", paper.id] for paper in load_papers())):
        assert main([*command, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        jsonschema.validate(shown, statements_schema())
        assert shown


def test_a_claim_on_the_host_needs_no_flax(claims):
    """Its import takes a sixth of the time of a short run."""
    if jax.__version_info__ < (0, 10):
        pytest.skip("Flax alone knows how to ask an earlier JAX for its trace")
    words = ["verify", claims(), "--jobs", "1", "--out", "out"]
    program = f"""
import sys
from jaxbounds.cli import main
print(main({words}), "flax" in sys.modules, file=sys.stderr)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "0 False"
