"""The options of `verify` and of `run`: the function in Python and the command have the same."""

import contextlib
import inspect
import re
from dataclasses import asdict, fields, replace

import pytest

import jaxbounds as jb
from jaxbounds.cli import COMMANDS, main
from jaxbounds.cli.guide import TOPICS, topic_text
from jaxbounds.cli.help_text import page
from jaxbounds.cli.run import Options as Running
from jaxbounds.cli.verify import verify as command
from jaxbounds.papers.lookup import experiments
from jaxbounds.papers.selection import selected
from jaxbounds.runs import experiment
from jaxbounds.runs.experiment import compute
from jaxbounds.runs.request import Request, again, requested
from jaxbounds.runs.statement_run import Options

FIELDS = [field.name for field in fields(Options)]

OF_THE_SCREEN = {"traceback": "the command prints it; a caller in Python has a debugger"}
"""Fields of `Options` that `jb.verify` lacks, with the reason."""
NO_VERDICT = {
    "traceback": "it prints, and changes no verdict",
    "timeout": "a verdict that ran out of time is measured again in any case",
}
"""Fields of `Options` that the settings of a run lack, with the reason."""
NAMES = {"what": "patterns", "kinds": "kind"}
"""Parameters of `jb.verify` whose flag has another name."""


def _parameters(function):
    return inspect.signature(function).parameters


def _said(function):
    text = re.split(r"\n *Raises:", inspect.getdoc(function))[0]
    text = re.split("(?:Args|Attributes):\n", text)[1]
    entries = re.split(r"^    (\w+): ", text, flags=re.MULTILINE)[1:]
    return dict(zip(entries[::2], (" ".join(words.split()) for words in entries[1::2])))


def test_the_command_reads_its_flags_from_the_declaration():
    flags = _parameters(command)
    assert flags["judging"].default == Options() and not {*FIELDS} & {*flags}


@pytest.mark.parametrize("name", FIELDS)
def test_the_face_takes_each_option_with_its_default_and_its_words(name):
    if name not in OF_THE_SCREEN:
        assert _parameters(jb.verify)[name].default == getattr(Options, name)
        assert _said(jb.verify)[name] == _said(Options)[name]


def test_what_the_face_lacks_is_said():
    assert {*OF_THE_SCREEN} == {*FIELDS} - {*_parameters(jb.verify)}


def test_the_help_of_the_command_names_each_option(capsys):
    with pytest.raises(SystemExit):
        main(["verify", "--help"])
    said = capsys.readouterr().out
    for name in FIELDS:
        assert f"--{name} " in said or f"--{name}," in said, name


def test_a_flag_reaches_the_options(capsys):
    assert main(["verify", "multihead.eq51", "--seed", "-1"]) == 2
    assert "seed=-1 is no whole number" in capsys.readouterr().err
    assert main(["verify", "multihead.eq51", "--timeout", "0"]) == 2
    assert "timeout=0" in capsys.readouterr().err
    assert main(["verify", "multihead.eq51", "--thorough", "--record"]) == 2
    assert "thorough=True" in capsys.readouterr().err


def test_each_parameter_of_the_face_is_a_flag():
    for name in _parameters(jb.verify):
        assert NAMES.get(name, name) in {*_parameters(command), *FIELDS}, name


def test_both_say_what_each_option_does():
    for function in (jb.verify, command):
        assert _said(function).keys() == _parameters(function).keys()


def test_verdicts_depend_on_each_field_that_the_settings_name():
    catalogue = selected("multihead.cor1.3").catalogue
    usual = Options().settings(catalogue)
    for name, default in asdict(Options()).items():
        other = replace(Options(), **{name: 7 if name == "seed" else not default})
        assert (other.settings(catalogue) != usual) == (name not in NO_VERDICT), name


RUN_FIELDS = {field.name: field.default for field in fields(Running)}
RUN_LACKS = {
    "deadline": "a signal to the command starts it; a caller in Python has handlers of its own",
    "verbose": "the command prints it; a caller in Python has the data set",
    "shard": "a share gives no data set; `jaxbounds merge` puts the shares together",
    "together": "each process of a cluster starts the command",
}
"""Fields of the options of `run` that `jb.run` lacks, with the reason."""
RUN_NAMES = {"imports": "import", "on": "engine", "together": "distributed"}
"""Fields of the options of `run` whose first flag has another name."""
RUN_DEFAULTS = {"out": None, "on": None}
"""Defaults of `jb.run` that differ: it writes no folder, and takes None for the usual engine."""


WORKERS_LACK = {
    "deadline": "the engine ends its workers",
    "out": "a worker writes into a folder of its own, whose files the command unpacks",
    "verbose": "the command that merges the shares prints the claims",
    "resume": "a share of `run --shards` is computed as a whole",
    "shard": "the worker is told its share",
    "shards": "the worker is told its share",
    "on": "the command opens the engine",
    "together": "a run with shares on an engine has no other processes",
}
"""Fields of the options of `run` that a worker of `run --shards` does without, with the reason."""
ASKED = {"preset": "published", "seed": 7, "precision": "high", "imports": ("math",)}
"""For each option that a worker needs, a value that is no default."""


def test_workers_of_shards_get_each_option_of_run():
    """A worker makes its request from flags; an option that they lack would be lost there."""
    assert {*RUN_FIELDS} == {*WORKERS_LACK} | {*ASKED}
    taken = _parameters(requested)
    assert {*ASKED} == {name for name, p in taken.items() if p.kind is p.KEYWORD_ONLY}
    for name, value in ASKED.items():
        usual, asked = requested("qstr.fig2"), requested("qstr.fig2", **{name: value})
        assert asked._replace(flags=()) != usual._replace(flags=()), name
        assert again("qstr.fig2", asked.flags) == asked, name
        if name != "imports":  # the digest of the source stands for modules
            assert asked.about != usual.about, name


@pytest.mark.parametrize("name", sorted({*Request._fields} - {"flags"}))
def test_each_part_of_a_request_is_read_by_its_run(name):
    part = {"seed": "key"}.get(name, name)
    assert re.search(rf"\brequest\.{part}\b", inspect.getsource(compute))


class _Computed(Exception):
    """The request of a run, which stops before it computes."""


@pytest.fixture
def stopped(monkeypatch):
    def stop(request, *given, **named):
        raise _Computed(request)

    for module in (experiment, inspect.getmodule(Running)):
        monkeypatch.setattr(module, "compute", stop)


@pytest.mark.parametrize("name", ASKED)
def test_a_run_gets_each_option_from_the_function_and_from_the_command(name, stopped, tmp_path):
    asked = requested("qstr.fig2", **{name: ASKED[name]})
    calls = (
        lambda: jb.run("qstr.fig2", **{name: ASKED[name]}),
        lambda: main(["run", "qstr.fig2", *asked.flags, "--out", str(tmp_path / "new")]),
    )
    for call in calls:
        with pytest.raises(_Computed) as found:
            call()
        given = found.value.args[0]
        assert (given.about, given.imports) == (asked.about, asked.imports)


@pytest.mark.parametrize("name", RUN_FIELDS)
def test_the_command_run_reads_each_of_its_options(name):
    source = inspect.getsource(inspect.getmodule(Running))
    assert re.search(rf"\boptions\.{name}\b", source)


def test_the_command_run_and_its_face_have_the_same_options_and_defaults():
    face = {name: p.default for name, p in _parameters(jb.run).items()}
    own = {name for name, p in _parameters(jb.run).items() if p.kind is p.KEYWORD_ONLY}
    assert own == {*RUN_FIELDS} - {*RUN_LACKS}
    assert {*RUN_LACKS} < {*RUN_FIELDS}
    for name in own:
        assert face[name] == RUN_DEFAULTS.get(name, RUN_FIELDS[name]), name


def test_run_says_each_of_its_options(capsys):
    assert {*_said(Running)} == {*RUN_FIELDS}
    with pytest.raises(SystemExit):
        main(["run", "multihead.fig2", "--help"])
    said = capsys.readouterr().out
    words = re.search(r"Further options: (.*?)\.\s+Presets:", said.replace("│", ""), re.DOTALL)[1]
    flags = {RUN_NAMES.get(name, name) for name in RUN_FIELDS}
    said = {flag.replace("-", "_") for flag in re.findall(r"--([\w-]+)", words)}
    assert said == flags


@pytest.mark.parametrize("words", [
    [], ["run", "multihead.fig2"], *([name] for name in COMMANDS),
], ids=lambda words: " ".join(words) or "all")  # fmt: skip
def test_no_line_of_a_help_text_is_wider_than_the_terminal(words, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):
        main([*words, "--help"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("usage: ") and not text.endswith("\n\n")


def test_a_page_of_the_guide_fits_a_narrow_terminal(monkeypatch):
    text = (
        "# t: a title\n\nOne two three four\nfive `six seven` eight.\n\n- one two three four five\n"
    )
    text += "  six\n- two\n\n```\nx = 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8\n```\n\n| a | b |\n"
    monkeypatch.setenv("COLUMNS", "100")
    assert page(text) == text
    monkeypatch.setenv("COLUMNS", "24")
    assert page(text) == (
        "# t: a title\n\nOne two three four five\n`six seven` eight.\n\n- one two three four\n"
        "  five six\n- two\n\n```\nx = 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8\n```\n\n| a | b |\n"
    )
    for topic in TOPICS:
        assert page(topic_text(topic)).split() == topic_text(topic).split()


OTHER_PROGRAMS = {"--nthreads", "--no-binary", "--no-deps", "--no-install-recommends"}
"""Flags of Dask, pip and apt in the guide."""


def test_each_flag_in_the_guide_is_a_flag_of_a_command(capsys):
    configs = [requested(name).config for name in experiments()]
    known = OTHER_PROGRAMS | {f"--{f.name.replace('_', '-')}" for c in configs for f in fields(c)}
    for words in ([], ["run", "multihead.fig2"], *([name] for name in COMMANDS)):
        with contextlib.suppress(SystemExit):
            main([*words, "--help"])
        known |= set(re.findall(r"(?<![\w-])--[a-z][\w-]*", capsys.readouterr().out))
    unknown = [
        f"{topic}: {flag}"
        for topic in TOPICS
        for code in re.findall(r"`([^`]+)`", topic_text(topic))
        for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", code)
        if flag not in known and f"--no-{flag[2:]}" not in known
    ]
    assert sorted(set(unknown)) == []
