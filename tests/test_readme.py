"""What the front page and the guide say is true: counts, names, commands, snippets, the picture."""

import functools
import json
import re
import runpy
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.claims.renamed import STATEMENTS
from jaxbounds.claims.statements.paper import Weight
from jaxbounds.cli import main
from jaxbounds.cli import run as running
from jaxbounds.experiments.results import load
from jaxbounds.papers import experiments, load_papers
from jaxbounds.qstr import architectures
from jaxbounds.report.codes import explained

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf8")
GUIDE = {p.stem: p.read_text(encoding="utf8") for p in (ROOT / "jaxbounds/guide").glob("*.md")}
TEXTS = {"README": README} | GUIDE
PAPERS = load_papers()
FORMS = [(s, form) for paper in PAPERS for s in paper.statements for form in s.forms]


def _python(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_front_page_is_short():
    assert len(README.split()) <= 1300


def test_the_two_commands_are_one_line_each():
    commands = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    assert [re.search(r"jaxbounds verify$|pytest[^&]*$", c) is not None for c in commands] == [
        True,
        True,
    ]


def _errata(paper):
    """How many there are, by weight, and of those that change a main theorem."""
    weights = [sum(e.kind == weight for e in paper.errata) for weight in get_args(Weight)]
    changed = sum(e.main.startswith("changed") for e in paper.errata)
    return len(paper.errata), *weights, changed


def test_the_tables_of_papers_count_right():
    counts = {p.id: (len(p.statements), *_errata(p)) for p in PAPERS}
    totals = tuple(map(sum, zip(*counts.values())))
    numbers = lambda row: tuple(map(int, re.findall(r"(?<=\| )\d+(?= \|)", row)))
    rows = re.findall(r"^\| `(\w+)` \|.*arxiv\.org/abs/.*?\)( \| .*)$", README, re.MULTILINE)
    assert {name: numbers(row) for name, row in rows} == counts
    (last,) = re.findall(r"^\| \| all( \| .*)$", README, re.MULTILINE)
    assert numbers(last) == totals
    rows = re.findall(r"^\| `(\w+)` \| [A-Z].* \| (\d+) \|$", GUIDE["papers"], re.MULTILINE)
    assert rows == [(p.id, str(len(p.statements))) for p in PAPERS]
    rows = re.findall(r"^\| `(\w+)`(?= \| \d)(.*)$", GUIDE["papers"], re.MULTILINE)
    counted = [(p.id, (*_errata(p)[1:], len(p.unchecked))) for p in PAPERS]
    assert [(name, numbers(row)) for name, row in rows] == counted
    unchecked = sum(len(p.unchecked) for p in PAPERS)
    assert f"{unchecked} claims are not checked as printed" in " ".join(README.split())


def test_every_paper_has_its_links():
    for paper in PAPERS:
        assert paper.links["arXiv"] in README and paper.links["arXiv"] in GUIDE["papers"]


def test_the_errata_that_change_a_main_theorem_are_named():
    """A new one must be said on the front page; smapprox has none."""
    changed = {p.id: [e.id for e in p.errata if e.main.startswith("changed")] for p in PAPERS}
    assert {name: len(ids) for name, ids in changed.items() if ids} == {
        "multihead": 3, "seqlength": 5, "qstr": 1,
    }  # fmt: skip
    for name in ("multihead", "qstr"):
        assert [e for e in changed[name] if f"({e})" not in GUIDE["papers"]] == []


def test_counts_of_forms_are_those_of_the_declarations():
    """Each number of the guide that declarations give, in the words around it."""
    expected = lambda word, kind=None: sum(
        form.expected == word and kind in (None, s.kind) for s, form in FORMS
    )
    domains = [form.domains for _, form in FORMS if form.domains]
    failing, along = expected("fails"), sum(s.kind == "trajectory" for s, _ in FORMS)
    said = {
        "evidence": [
            f"the {expected('holds', 'inequality')} inequality forms that hold",
            f"The {along} forms about whole training runs",
            f"all {len(FORMS)} forms are as recorded",
        ],
        "certify": [
            f"There are {failing} failing forms",
            f"The {expected('inconsistent')} other forms that do not hold are rates",
            f"{len(domains)} forms that hold are proved on {sum(map(len, domains))} boxes",
            f"The program `checker` confirms {failing - 1} of the {failing} witnesses",
        ],
    }
    for topic, sentences in said.items():
        plain = " ".join(GUIDE[topic].split())
        assert [s for s in sentences if s not in plain] == []
    assert len(list((ROOT / "tests/witnesses/files").glob("*.json"))) == failing


def test_the_picture_is_made_from_the_records():
    made = runpy.run_path(str(ROOT / ".github/looseness.py"))["picture"]()
    assert (ROOT / ".github/looseness.svg").read_text(encoding="utf8") == made
    assert "(.github/looseness.svg)" in README


@pytest.mark.parametrize("name", TEXTS)
def test_ids_are_there(name):
    """Statements, patterns of them, experiments; what follows "jaxbounds." is a module."""
    known = {s.id for s, _ in FORMS} | set(experiments())
    known |= set(STATEMENTS) if name == "changes" else set()
    known |= {f"{paper.id}.{code}" for paper in PAPERS for code in explained(paper)}
    found = re.findall(rf"(?<![\w./])(?:{'|'.join(p.id for p in PAPERS)})\.[\w.-]+", TEXTS[name])
    for given in {one.rstrip(".") for one in found}:
        assert any(one.startswith(given) for one in known), given


@pytest.mark.parametrize("name", TEXTS)
def test_names_and_files_are_there(name):
    text = TEXTS[name]
    for face in set(re.findall(r"\bjb\.(\w+)", text)):
        assert hasattr(jb, face), face
    for module, thing in set(re.findall(r"(jaxbounds(?:\.[a-z]\w*)+)\.(\w+)", text)):
        found = __import__(module, fromlist=[thing])
        assert hasattr(found, thing), f"{module}.{thing}"
    for path in set(re.findall(r"\b(?:benchmarks|tests|colab)/[\w/]+(?:\.\w+)?", text)):
        assert (ROOT / path).exists(), path
    for file in set(re.findall(r"\.github/\w+\.\w+", text)):
        assert (ROOT / file).is_file(), file


def _runs(text):
    """The words of each `jaxbounds run`, also those that stand in a sentence."""
    blocks = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
    lines = "".join(code for kind, code in blocks.findall(text) if kind != "python").splitlines()
    inline = [" ".join(c.split()) for c in re.findall(r"`([^`]+)`", blocks.sub("", text))]
    found = [re.search(r"jaxbounds run (\w+\.\w.*)", line) for line in (*lines, *inline)]
    return [shlex.split(match[1], comments=True) for match in found if match]


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if _runs(text)])
def test_runs_are_asked_as_they_can_be(name):
    """Their flags, presets and fields, read as the command does; nothing is run."""
    runs = [words for words in _runs(TEXTS[name]) if not {"--import", "--help"} & set(words)]
    for experiment, *flags in runs:
        asked = running._asked(experiment, tuple(flags))
        assert asked.request.experiment.id == experiment


def test_runs_are_found_in_blocks_and_in_sentences():
    text = "Try `jaxbounds run a.b --seed 1`.\n\n```\njaxbounds run a.c  # a remark\n```\n"
    assert _runs(text) == [["a.c"], ["a.b", "--seed", "1"]]
    assert len([name for name in TEXTS if _runs(TEXTS[name])]) >= 5


def test_every_experiment_is_in_the_table():
    rows = re.findall(r"^\| `(\w+\.\w+)`(\*?) \| .* \| (.*?) ?\|$", GUIDE["figures"], re.MULTILINE)
    assert rows == [(e.id, "*" * e.resumable, ", ".join(e.presets)) for e in experiments().values()]


def test_the_first_lines_find_a_violation(capsys):
    first = _python(README)[0]
    assert sum(bool(line) for line in first.splitlines()) == 3
    exec(first, {})
    printed = capsys.readouterr().out
    assert printed.startswith("violated") and "d=4" in printed


def test_a_table_says_which_function_one_wants():
    """One screen; every name of it exists."""
    table = README.split("## Which function do I want?")[1].split("\n\n")[1]
    assert len(table.splitlines()) <= 24 and max(map(len, table.splitlines())) <= 100
    for name in ("claim", "Statement", "find_violation", "sharp_constant", "Curvature", "sweep"):
        assert f"`jb.{name}`" in table and hasattr(jb, name)


def test_a_paper_of_ones_own(tmp_path, monkeypatch, capsys):
    """The file, the commands and the Python of the front page."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    mine, door = _python(README)[2:]
    assert sum(bool(line) for line in mine.splitlines()) <= 10
    Path("mine.py").write_text(mine)
    assert main(["verify", "mine.py", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"printed +holds +x2 loose", printed)
    assert re.search(r"false 1\.9 +fails", printed)
    exec(door, {"ThreadPoolExecutor": ThreadPoolExecutor})
    assert "mine.one" in capsys.readouterr().out
    assert Path("results/mine/verdicts.json").is_file()


def test_the_statement_of_the_guide(tmp_path, monkeypatch, capsys):
    """The file of the page; and how the guide counts its evidence."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (mine,) = [code for code in _python(GUIDE["say"]) if "jb.Statement(" in code]
    Path("mine.py").write_text(mine)
    assert main(["verify", "mine.py", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"printed +holds +x2 loose", printed)
    assert re.search(r"sharpened +holds +attained", printed)
    counted = _python(GUIDE["evidence"])
    exec(counted[0], {})
    assert capsys.readouterr().out.startswith("Counter({'searched': 1, 'attained': 1})\n1 0 2")


def test_the_claim_of_the_guide(capsys):
    (code,) = [code for code in _python(GUIDE["say"]) if "jb.claim(" in code]
    exec(code, {"__name__": "say"})
    printed = capsys.readouterr().out
    assert re.search(r"mine\.cs +.*printed +.*holds", printed) and "half the bound" in printed


def test_the_limit_and_the_rate_of_the_guide(capsys):
    (code,) = [code for code in _python(GUIDE["limits"]) if "LIMIT = claim(" in code]
    exec(code, {"__name__": "limits"})
    printed = capsys.readouterr().out
    assert len(re.findall(r"printed +.*consistent", printed)) == 2
    assert re.search(r"false 2\.7 +.*inconsistent", printed)


def test_the_page_for_programs(tmp_path, monkeypatch, capsys):
    """Its claim file and its command give what it says, as a schema describes it."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    claims, python = _python(GUIDE["programs"])
    Path("claims.py").write_text(claims)
    (line,) = re.findall(
        r"^jaxbounds (verify .*) > verdicts\.json$", GUIDE["programs"], re.MULTILINE
    )
    assert main([*shlex.split(line), "--jobs", "1"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [(v["id"], v["form"], v["status"]) for v in found] == [
        ("job.norms", "printed", "holds"), ("job.norms", "false 1.0", "fails"),
        ("job.wrong", "printed", "fails"), ("job.slip", "printed", "error"),
    ]  # fmt: skip
    (said,) = re.findall(r'"(statement \'job\.slip\'.*?)"', GUIDE["programs"])
    assert found[-1]["reason"] == said and found[2]["size"] == {"d": 4}
    assert main(["schema", "verdicts"]) == 0
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(found, json.loads(capsys.readouterr().out))
    rows = re.findall(r"^\| ((?:`\w+`,? ?)+) \|", GUIDE["programs"], re.MULTILINE)
    fields = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(fields) >= 9 and fields <= set(found[0])
    monkeypatch.setattr(jb, "verify", functools.partial(jb.verify, jobs=1))
    exec(python, {})
    assert "job.wrong printed fails" in capsys.readouterr().out


def test_curvature_of_ones_own(capsys):
    params = {"a": jnp.full((3, 4), 0.3), "b": jnp.ones(4)}
    loss = lambda w, x: jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"] - 1) ** 2)
    batches = [jnp.ones((8, 3)), jnp.full((8, 3), -0.5)]
    snippet = _python(README)[1]
    assert len(snippet.splitlines()) == 3
    exec(snippet, {"jb": jb, "loss": loss, "params": params, "batches": batches})
    least, greatest, _, converged = capsys.readouterr().out.splitlines()[0].split()
    assert float(least) < float(greatest) and converged == "True"


@pytest.mark.slow
def test_the_curvature_topic_runs(capsys):
    scope = {}
    for snippet in _python(GUIDE["curvature"]):
        exec(snippet, scope)
    printed = capsys.readouterr().out
    assert "float64" in printed and "3.64 TiB" in printed
    assert scope["records"].sizes["step"] == 1


def test_the_architecture_of_the_figures_topic_enters_figure_1(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    example = re.search(r'```python\n("""network.py""".*?)```', GUIDE["figures"], re.DOTALL).group(
        1
    )
    Path("network.py").write_text(example)
    protocol = ["--protocol.d", "2", "--protocol.check-every", "2", "--protocol.test-prompts", "8"]
    small = ["--lengths", "3", "4", "--seeds", "2", "--protocol.max-samples", "400", *protocol]
    run = ["run", "qstr.fig1a", "--import", "network.py", "--architectures", "tokenwise", *small]
    try:
        assert main([*run, "--out", "out"]) == 0
    finally:
        architectures.ARCHITECTURES.pop("tokenwise", None)
    dataset = load("out/result.nc")
    assert dataset.architecture.values.tolist() == ["tokenwise"]
    assert (dataset.seen == 384).all()  # three chunks of 2 * 64 prompts fit into 400
    assert dataset.risk.shape == (1, 2, 2) and (dataset.risk > 0).all()
    capsys.readouterr()
