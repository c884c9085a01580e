"""The command line as a user meets it: exit statuses, files, messages."""

import inspect
import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from jaxbounds.cli import main, screen
from jaxbounds.ground.folders import Marked
from jaxbounds.multihead.bounds import beta3
from jaxbounds.runs.merged_files import add_to

CLAIMS = """
import jax
import jax.numpy as jnp
from jaxbounds import Counterexample, Erratum, Form, Paper, Sides, Statement
from jaxbounds.claims.statements import Budget

def product(x, y):
    return jnp.sqrt(x @ x) * jnp.sqrt(y @ y)

def sample(key, size):
    x, y = jax.random.normal(key, (2, size["d"]))
    return {"x": x, "y": y}

def evaluate(instance, size):
    x, y = instance["x"], instance["y"]
    bound = product(x, y)
    rhs = {"printed": 0.5 * bound, "corrected": 2 * bound, "control": 0.4 * bound}
    return Sides(lhs=jnp.abs(x @ y), rhs=rhs)

PAPER = Paper(
    id="mine",
    title="My notes",
    statements=(
        Statement(
            id="mine.cauchy", label="Inequality 1", formula="|<x, y>| <= |x| |y| / 2",
            kind="inequality", judges=(product,), sample=sample, evaluate=evaluate,
            sizes=({"d": 2},),
            forms=(
                Form(name="printed", expected="EXPECTED", note="aligned vectors", erratum="E1",
                     counterexample=Counterexample(instance={"x": [1.0, 0.0], "y": [1.0, 0.0]},
                                                   size={"d": 2}, ratio=2.0)),
                Form(name="corrected"),
            ),
            control="a factor 0.4", search="none", budget=Budget(samples=32),
        ),
    ),
    errata=(Erratum(id="E1", where="Inequality 1", kind="false", quote="|x| |y| / 2",
                    text="The half is wrong.", consequence="none", main="survive",
                    evidence="mine.cauchy"),),
    survives="Everything but the half.",
)
"""

FIELDS = {
    "id", "paper", "label", "kind", "form", "expected", "status", "worst_ratio", "instances",
    "searches", "precision", "tolerance", "seconds", "seed",
}  # fmt: skip


@pytest.fixture
def claims(tmp_path, monkeypatch):
    """A user's own module, and a private place for compiled programs."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def write(expected="fails"):
        path = tmp_path / f"claims_{expected}.py"
        path.write_text(textwrap.dedent(CLAIMS.replace("EXPECTED", expected)))
        return str(path)

    return write


def test_verify_then_replay(claims, capsys):
    file = claims()
    assert main(["verify", "mine", "--import", file, "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "mine.cauchy" in printed and "all as recorded" in printed
    assert max(map(len, printed.splitlines())) <= 100
    verdicts = json.loads(Path("results/verify/verdicts.json").read_text())
    assert [v["status"] for v in verdicts] == ["fails", "holds"]
    assert all(set(v) >= FIELDS for v in verdicts)
    assert verdicts[0]["label"] == "Inequality 1"
    page = Path("results/verify/report.html").read_text()
    assert "mine.cauchy" in page and "http://" not in page and "https://" not in page
    for folder in ("worst", "counterexamples"):
        stored = f"results/verify/{folder}/mine.cauchy.printed.npz"
        assert main(["replay", stored, "--import", file]) == 0
        assert ": equal" in capsys.readouterr().out


MORE = """
import dataclasses
one = PAPER.statements[0]
other = dataclasses.replace(one, id="mine.cauchy.b", label="B")
PAPER = dataclasses.replace(PAPER, statements=(other, one))
"""


def test_an_id_is_never_a_pattern(claims, capsys):
    """`mine.cauchy` begins `mine.cauchy.b`, which is listed before it: each is measured once."""
    file = Path(claims())
    file.write_text(file.read_text() + MORE)
    assert main(["verify", "--import", str(file), "--out", "out", "--jobs", "1", "mine"]) == 0
    verdicts = json.loads(Path("out/verdicts.json").read_text())
    assert [v["id"] for v in verdicts] == ["mine.cauchy.b"] * 2 + ["mine.cauchy"] * 2
    assert [v["label"] for v in verdicts] == ["B"] * 2 + ["Inequality 1"] * 2
    assert main(["replay", "out/worst/mine.cauchy.printed.npz", "--import", str(file)]) == 0
    assert "Inequality 1" in capsys.readouterr().out


@pytest.mark.parametrize("columns", ["80", ""])
def test_every_verdict_is_on_the_screen(columns, claims, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    file = Path(claims())
    long = MORE.replace('label="B"', 'label="Section 2.1, a label that is much longer than any id"')
    file.write_text(file.read_text() + long)
    assert main(["verify", "mine", "--import", str(file), "--jobs", "1"]) == 0
    table = capsys.readouterr().out.split("\npaper ")[0]
    assert max(map(len, table.splitlines())) <= int(columns or 100)
    words = table.split()
    assert words.count("fails") == words.count("holds") == 2
    assert "mine.cauchy.b" in words and words.count("corrected") == 2


MANY = """
import dataclasses
one = dataclasses.replace(PAPER.statements[0], budget=Budget(samples=4))
held = dataclasses.replace(one.forms[0], expected="holds", erratum="", counterexample=None)
copies = [dataclasses.replace(one, id=f"mine.copy{i}") for i in range(COUNT)]
odd = dataclasses.replace(one, id="mine.odd", forms=(held, one.forms[1]))
wrong = Erratum(id="E2", where="Theorem 1", kind="gap", quote="so", text="It does not follow.",
                consequence="none", main="changed to Theorem 2", evidence="mine.cauchy")
PAPER = dataclasses.replace(
    PAPER, statements=(*copies, odd) if ODD else tuple(copies), errata=(*PAPER.errata, wrong)
)
"""


def test_of_many_forms_what_is_as_recorded_is_summed_up(claims, capsys, monkeypatch):
    """Rows are for what is not as recorded; then a line a paper, the headline, and where."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(screen, "FEW", 4)
    plain = Path(claims()).read_text()

    def printed(count, odd, *more):
        file = Path(f"claims_{count}_{odd}.py")
        file.write_text(plain + MANY.replace("COUNT", str(count)).replace("ODD", str(odd)))
        assert main(["verify", "mine", "--import", str(file), "--jobs", "1", *more]) == odd
        return capsys.readouterr().out

    brief = printed(3, 0)
    lines = brief.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= 10
    assert "mine.copy" not in brief and "3 (3 false)" in brief
    assert "6 forms: 3 fails, 3 holds; all as recorded" in " ".join(brief.split())
    headline = lines.index("2 errata: 1 false, 1 gap; 1 changes a main theorem: mine E2")
    (where,) = [i for i, line in enumerate(lines) if line.startswith("written to ")]
    assert headline < where and lines[-1] == "more: --all prints every row"
    monkeypatch.setenv("COLUMNS", "120")
    every = printed(3, 0, "--all")
    assert every.count("mine.copy") == 3 and "more: " not in every
    assert printed(2, 0).count("mine.copy") == 2  # 4 forms: all are shown
    surprise = printed(3, 1)
    assert "mine.copy" not in surprise and "1 NOT as recorded" in surprise
    assert surprise.split().count("corrected") == 1 and "(recorded:" in surprise
    assert (
        "either your code" in surprise
        and "compute both sides by hand" in " ".join(surprise.split())
        and "counterexample=jb.Counterexample(instance=" in surprise
    )


def test_what_changes_no_verdict_is_said_where_it_is_asked_for(claims, capsys, monkeypatch):
    """Of few forms always; of more with -v."""
    file = Path(claims())
    few = (
        'hypotheses=lambda instance, size: {"x_1 > 1": instance["x"][0] > 1},\n            judges='
    )
    file.write_text(file.read_text().replace("judges=", few))
    run = ["verify", "mine", "--import", str(file), "--jobs", "1"]
    file.write_text(file.read_text().replace('"x": [1.0, 0.0], "y"', '"x": [2.0, 0.0], "y"'))
    assert main([*run, "--record"]) == 0
    capsys.readouterr()
    records = next(Path().glob("*-records/ratios.json"))
    stored = json.loads(records.read_text())
    stored["mine.cauchy"]["printed"]["worst"] = 1.5
    records.write_text(json.dumps(stored))
    assert main(run) == 0
    few = capsys.readouterr().out
    monkeypatch.setattr(screen, "FEW", 0)
    assert main(run) == 0
    quiet = capsys.readouterr().out
    assert main([*run, "-v", "--all"]) == 0
    loud = capsys.readouterr().out
    notes = [line for line in loud.splitlines() if "left out" in line or "on record" in line]
    assert all(line in few for line in notes) and "more: " not in few
    assert any("draws left out ('x_1 > 1')" in line for line in notes)
    assert any("worst" in line for line in notes) and "more: " not in loud
    assert f"-v prints {len(notes)} notes on draws and ratios" in quiet
    assert "left out" not in quiet and "on record" not in quiet


def test_the_errata_in_brief(claims, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    file = Path(claims())
    file.write_text(file.read_text() + MANY.replace("COUNT", "1").replace("ODD", "0"))
    assert main(["errata", "mine", "--import", str(file), "--brief"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 errata: 1 false, 1 gap; 1 changes a main theorem: mine E2",
        "  mine E2 (gap)  Theorem 1: Theorem 2",
    ]
    assert main(["errata", "--brief"]) == 0
    out = capsys.readouterr().out
    assert " change a main theorem: " in " ".join(out.split()) and out.count("\n") <= 12
    assert max(map(len, out.splitlines())) <= 80
    assert main(["errata", "seqlength"]) == 0
    assert "\\" not in capsys.readouterr().out  # no LaTeX
    assert main(["errata", "--brief", "--json"]) == 2


def test_who_judges_a_function(claims, capsys):
    file = claims()
    assert main(["show", "mine.cauchy", file]) == 0
    judged = re.search(r"judges +(\S+)", capsys.readouterr().out)[1]
    assert judged.startswith(Path(file).stem) and judged.endswith(".product")
    assert main(["list", "--judging", "product", "--import", file]) == 0
    assert "mine.cauchy" in capsys.readouterr().out
    assert main(["list", "--judging", "prodct", "--import", file]) == 2
    assert "Try " in capsys.readouterr().err


def test_verify_says_what_is_not_as_expected(claims, capsys):
    assert main(["verify", "mine", "--import", claims("holds"), "--jobs", "1"]) == 1
    printed = capsys.readouterr().out
    assert "(recorded:" in printed and "1 NOT as recorded" in printed


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["verify", "nothing"], "no statement matches"),
        (["verify", "multihead.cor1.33"], "Try multihead.cor1.3"),
        (["verify", "--import", "no.py"], "no file"),
        (["verify", "multihead.eq1", "--seed", "-1"], "whole number from 0"),
        (["show", "nothing"], "no statement matches"),
        (["show"], "Try jaxbounds show"),
        (["errata", "nothing"], "no paper=nothing"),
        (["replay", "nothing.npz"], "does not exist"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(arguments, message, claims, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_unknown_options_are_status_2(claims, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["verify", "--no-such-option"])
    assert exit_info.value.code == 2


def test_a_replay_that_differs_is_status_1(claims, capsys):
    from jaxbounds.falsification import load_instance, save_instance

    file = claims()
    main(["verify", "mine", "--import", file, "--jobs", "1"])
    stored = load_instance("results/verify/worst/mine.cauchy.printed.npz")
    save_instance("other.npz", stored.instance, **(stored.meta | {"ratio": "3.0"}))
    assert main(["replay", "other.npz", "--import", file]) == 1
    assert "DIFFERENT" in capsys.readouterr().out


def test_version_experiments_and_a_closed_pipe(claims, capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("jaxbounds 0.")
    assert main(["run", "--help"]) == 0
    printed = capsys.readouterr().out
    assert "multihead.fig2 " in printed and "qstr.phase " in printed and "--preset" in printed
    piped = f"set -o pipefail; {sys.executable} -m jaxbounds list | true"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == ""


def test_list_show_errata(claims, capsys):
    file = claims()
    assert main(["list", "mine", "--import", file]) == 0
    assert main(["show", "mine.cauchy", "--import", file]) == 0
    assert main(["errata", "mine", "--import", file]) == 0
    printed = capsys.readouterr().out
    for words in ("Inequality 1", "counterexample", "a factor 0.4", "The half is wrong."):
        assert words in printed
    assert main(["list"]) == 0 and main(["errata"]) == 0


LONG = """
import time
import numpy as np
import jaxbounds as jb

def claim(name, seconds):
    def evaluate(instance, size):
        time.sleep(seconds)
        return jb.Sides(lhs=instance["x"], rhs={"printed": 2.0, "control": 0.1})

    return jb.Statement(
        id=name, label="1", formula="x <= 2", kind="inequality", evaluate=evaluate, host=True,
        cases=lambda size: {"x": np.ones(1)}, sizes=({},), forms=(jb.Form(name="printed"),),
        control="a tenth",
    )

ALL = tuple(claim(f"mine.{i}", 60 * (i > 0)) for i in range(4))
PAPER = jb.Paper(id="mine", title="Mine", statements=ALL)
"""


def test_ctrl_c_keeps_what_was_done_and_stops_the_rest(tmp_path):
    """In a session of its own, as a terminal does: the signal reaches all processes at once."""
    (tmp_path / "long.py").write_text(LONG)
    command = [sys.executable, "-c", "import sys; from jaxbounds.cli import main; sys.exit(main())"]
    running = subprocess.Popen(
        [*command, "verify", "long.py", "--jobs", "2", "--out", "out"],
        cwd=tmp_path, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    judged = tmp_path / "out/unfinished/judged.jsonl"
    while not (judged.is_file() and '"id"' in judged.read_text()):
        assert running.poll() is None, running.communicate()
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)
    printed, errors = running.communicate(timeout=60)
    assert running.returncode == 1, errors
    assert "interrupted: " in printed and "Traceback" not in errors
    assert [v["id"] for v in json.loads((tmp_path / "out/verdicts.json").read_text())] == ["mine.0"]
    for _ in range(100):
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("processes of the interrupted run are still there after 10 seconds")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_cut_loses_nothing_and_is_continued(how, tmp_path):
    """Only the main process is told to end; its workers end with it."""
    select = ("multihead.eq1", "multihead.eq2", "multihead.eq3")
    command = [sys.executable, "-m", "jaxbounds", "verify", *select]
    two, alone = ["--jobs", "2", "--out", "out"], ["--jobs", "1", "--out"]
    options = {"cwd": tmp_path, "start_new_session": True, "text": True, "stdout": subprocess.PIPE}
    running = subprocess.Popen([*command, *two], stderr=subprocess.DEVNULL, **options)
    judged = tmp_path / "out/unfinished/judged.jsonl"
    while not (judged.is_file() and '"id"' in judged.read_text()):
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(how)
    running.communicate(timeout=60)
    for _ in range(50):
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("processes of the run are still there after 5 seconds")
    both = "import sys; from jaxbounds.cli import main; "
    both += "sys.exit(max(main([*sys.argv[1:], out]) for out in ('out', 'again')))"
    done = subprocess.run(
        [sys.executable, "-c", both, "verify", *select, *alone],
        stderr=subprocess.PIPE, check=False, **options | {"timeout": 200},
    )  # fmt: skip
    assert done.returncode == 0 and " judged in the unfinished run" in done.stderr
    plain = lambda folder: [
        {**verdict, "seconds": 0.0}
        for verdict in json.loads((tmp_path / folder / "verdicts.json").read_text())
    ]
    assert plain("out") == plain("again")
    assert not (tmp_path / "out/unfinished").exists()


def test_some_statements_never_replace_those_of_another_run(claims, capsys):
    file = Path(claims())
    file.write_text(file.read_text() + MORE)
    run = ["verify", "--import", str(file), "--jobs", "1", "--out", "out"]
    assert main([*run, "mine"]) == 0
    before = Path("out/verdicts.json").read_text()
    assert main([*run, "mine.cauchy.b"]) == 0  # the same run: merged
    merged = json.loads(Path("out/verdicts.json").read_text())
    assert [v["id"] for v in merged] == [v["id"] for v in json.loads(before)]
    assert main([*run, "mine.cauchy.b", "--seed", "1"]) == 0  # another: in a folder of its own
    said = capsys.readouterr().err
    assert "out holds another run, since seed was 0 and is 1; the results go to " in said
    assert [v["seed"] for v in json.loads(Path("out/verdicts.json").read_text())] == [0] * 4
    own = json.loads(Path("out-mine.cauchy.b/verdicts.json").read_text())
    assert [v["seed"] for v in own] == [1, 1]
    Marked(Path("out")).write("worst/stale.npz", b"")
    Path("out/worst/of_the_user.npz").write_bytes(b"")
    assert main([*run, "mine"]) == 0
    assert not Path("out/worst/stale.npz").exists()
    assert Path("out/worst/of_the_user.npz").exists()


@pytest.mark.parametrize("out", ["gs://bucket/folder", "s3:/bucket", "file/inside", "/proc/none"])
def test_a_folder_that_takes_nothing_is_said_at_once(out, claims, capsys):
    Path("file").write_text("")
    status = main(["verify", "mine", "--import", claims(), "--out", out])
    printed = capsys.readouterr()
    assert status == (2 if ":" in out else 3)
    assert printed.out == "" and printed.err.count("\n") == 1


def test_what_breaks_is_an_error_of_its_own(claims, capsys):
    file = Path(claims())
    file.write_text(file.read_text().replace("bound = product(x, y)", "bound = float(x[0])"))
    assert main(["verify", "mine", "--import", str(file), "--jobs", "1"]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 error" in printed and "Try jax.numpy" in printed
    assert main(["verify", "mine", "--import", str(file), "--jobs", "1", "--traceback"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_import_is_light():
    # A fresh interpreter: no backend is started and no setting is changed by the import.
    code = """
import jax
before = jax.config.values.copy()
import jaxbounds, jaxbounds.claims.statements, jaxbounds.falsification
import jaxbounds.networks.curvature, jaxbounds.numerics.norms
import jaxbounds.multihead.statements
from jax._src import xla_bridge
assert not xla_bridge._backends, "a device was touched"
assert jax.config.values == before, "a setting was changed"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_item_of_a_paper_is_found_by_its_name_in_print(capsys):
    assert main(["show", "multihead", "Corollary", "1"]) == 0
    out = capsys.readouterr().out
    assert all(f"multihead.cor1.{part}  Corollary 1 ({part})" in out for part in (1, 2, 3))
    assert main(["show", "multihead Corollary 1 (3)"]) == 0
    assert "multihead.cor1.3  Corollary 1 (3)" in capsys.readouterr().out
    assert main(["show", "multihead.thm3"]) == 0
    assert "if: (74), eta of Theorem 3" in capsys.readouterr().out
    assert main(["show", "Theorem 41"]) == 2
    assert "Try Theorem 4.1" in capsys.readouterr().err


def test_the_code_behind_a_statement_in_one_text(capsys):
    """All that one has to read, each piece with its place, and nothing of another room."""
    assert main(["show", "multihead.cor1.3", "--code"]) == 0
    out = capsys.readouterr().out
    line = inspect.getsourcelines(beta3)[1]
    assert f"\njaxbounds/multihead/bounds.py:{line}\n" in out
    assert 'id="multihead.cor1.3",' in out and "def network_risk(" in out
    assert "sqrt(T) R^3 (c* R^2 size + 1)" in out
    # What functions only hold: constants, and the factory of a sampler.
    assert (
        "C_STAR = 4 / (3 * math.sqrt(3))" in out and "BY_SIZE = (" in out and "def _trained(" in out
    )


def test_what_was_listed_is_printed_again_without_jax(tmp_path):
    code = textwrap.dedent("""
    import json, os, sys
    from jaxbounds.cli import main
    for columns, words in json.loads(sys.argv[1]):
        os.environ["COLUMNS"] = columns
        status = main(words)
        print(status, "jax" in sys.modules, file=sys.stderr)
        print("---")
    """)
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(tmp_path)}

    def ran(*commands):
        """One process that answers several commands: what each prints, and what is said of it."""
        done = subprocess.run(
            [sys.executable, "-c", code, json.dumps(commands)],
            capture_output=True, text=True, check=True, env=environment,
        )  # fmt: skip
        said = [line for line in done.stderr.splitlines() if line[0].isdigit()]
        return done.stdout.split("---\n")[:-1], said

    listed = ["list", "qstr.lem3*"]
    answers = [("80", words) for words in (listed, ["show", "qstr.lem36"], ["errata", "qstr"])]
    nothing = "80", ["list", "nothing.such"]  # an error is not kept as an answer
    first, with_jax = ran(*answers, nothing)
    second, without = ran(*answers, nothing, ("60", listed))
    assert all(first[:3]) and first == second[:4]
    assert with_jax == ["0 True"] * 3 + ["2 True"]
    assert without == ["0 False"] * 3 + ["2 True", "0 True"]
    widest = [max(map(len, listing.splitlines())) for listing in (second[0], second[4])]
    assert widest[1] <= 60 < widest[0]


def test_results_of_other_forms_stay_in_the_file(tmp_path, capsys):
    file = tmp_path / "constants.json"
    form = lambda name, form, n: {"id": name, "form": form, "n": n}

    def add(*found, **more):
        add_to(tmp_path, "constants.json", [(one, {}) for one in found], **more)
        return json.loads(file.read_text())

    add(form("a", "x", 1), form("a", "y", 2), form("b", "x", 3))
    assert [one["n"] for one in add(form("a", "x", 4))] == [2, 3, 4]
    assert [one["n"] for one in add(instead={"a"})] == [3]
    for damaged in ("{no JSON", "[[]]", '[{"id": {}, "form": 1}]', "[" * 10**5, '["a"]', "3"):
        file.write_text(damaged)
        assert add(form("a", "x", 5)) == [form("a", "x", 5)]
        aside = max(tmp_path.glob("constants.aside-*"), key=lambda path: path.stat().st_mtime_ns)
        assert aside.read_text() == damaged
        assert f"the old content is kept as {aside.name}" in capsys.readouterr().err
    assert add(form("b", "y", math.inf))[-1]["n"] == "inf"
