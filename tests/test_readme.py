"""What the README says is true: its counts, its two commands, its example statement."""

import re
from pathlib import Path
from typing import get_args

from jaxbounds.cli import main
from jaxbounds.papers import experiments, load_papers
from jaxbounds.qstr import architectures
from jaxbounds.results import load
from jaxbounds.statements.paper import Weight

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_table_of_papers_counts_right():
    rows = re.findall(r"^\| `(\w+)` \| [A-Z].* \| (\d+) \|$", README, re.MULTILINE)
    assert rows == [(p.id, str(len(p.statements))) for p in load_papers()]
    kinds = get_args(Weight)
    columns = r"\| (\d+) " * len(kinds)
    errata = re.findall(r"^\| `(\w+)` " + columns + r"\|$", README, re.MULTILINE)
    by_kind = lambda paper, kind: str(sum(e.kind == kind for e in paper.errata))
    assert errata == [(p.id, *(by_kind(p, kind) for kind in kinds)) for p in load_papers()]


def test_the_two_commands_are_one_line_each():
    commands = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    assert [re.search(r"jaxbounds verify$|pytest[^&]*$", c) is not None for c in commands] == [
        True,
        True,
    ]


def test_the_example_statement_is_verified(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    example = re.search(r'```python\n("""mine.py""".*?)```', README, re.DOTALL).group(1)
    Path("mine.py").write_text(example)
    assert main(["verify", "mine", "--import", "mine.py", "--jobs", "1"]) == 0
    assert "2 holds" in capsys.readouterr().out
    erratum = re.search(r"```python\n(def evaluate_half.*?)```", README, re.DOTALL).group(1)
    Path("both.py").write_text(f"{example}\n\n{erratum}")
    assert main(["verify", "mine.half", "--import", "both.py", "--jobs", "1"]) == 0
    assert main(["errata", "mine", "--import", "both.py"]) == 0
    assert "All but Inequality 2." in capsys.readouterr().out


def test_the_example_architecture_enters_figure_1(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    example = re.search(r'```python\n("""network.py""".*?)```', README, re.DOTALL).group(1)
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


def test_the_notebook_snippets_run():
    snippets = re.findall(r"```python\n(.*?)```", README.split("## In a notebook")[1], re.DOTALL)
    assert len(snippets) == 3
    for snippet in snippets[1:]:
        exec(snippet, {})


def test_every_experiment_is_in_the_table():
    rows = re.findall(r"^\| `(\w+\.\w+)` \| .* \| .* \|$", README, re.MULTILINE)
    assert rows == list(experiments())


def test_the_commands_name_experiments_and_presets_that_exist():
    known = experiments()
    runs = re.findall(r"jaxbounds run (\w+\.\w+)(?: --preset (\w+))?", README)
    assert runs
    for name, preset in runs:
        assert not preset or preset in known[name].presets
