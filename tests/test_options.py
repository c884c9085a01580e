"""The options of `verify`: field of `Options`, parameter of `jb.verify` and flag of the command."""

import inspect
import re

import jaxbounds as jb
from jaxbounds.cli.verify import verify as command
from jaxbounds.papers.selection import selected
from jaxbounds.runs.statement_run import Options

OF_THE_SCREEN = {"traceback": "the command prints it; a caller in Python has a debugger"}
"""Fields of `Options` that `jb.verify` lacks, with the reason."""
NO_VERDICT = {"traceback": "it prints, and changes no verdict"}
"""Fields of `Options` that the settings of a run lack, with the reason."""
NAMES = {"what": "patterns", "kinds": "kind"}
"""Parameters of `jb.verify` whose flag has another name."""


def _parameters(function):
    return inspect.signature(function).parameters


def _said(function):
    text = re.split(r"\n *Raises:", inspect.getdoc(function))[0].split("Args:\n")[1]
    entries = re.split(r"^    (\w+): ", text, flags=re.MULTILINE)[1:]
    return dict(zip(entries[::2], (" ".join(words.split()) for words in entries[1::2])))


def test_each_field_is_a_flag_and_a_parameter_with_its_default():
    face, flags = _parameters(jb.verify), _parameters(command)
    for name, default in Options()._asdict().items():
        assert flags[name].default == default, name
        if name not in OF_THE_SCREEN:
            assert face[name].default == default, name
    assert {*OF_THE_SCREEN} <= {*Options._fields} - {*face}


def test_each_parameter_of_the_face_is_a_flag():
    for name in _parameters(jb.verify):
        assert NAMES.get(name, name) in _parameters(command), name


def test_both_say_what_each_option_does():
    for function in (jb.verify, command):
        assert _said(function).keys() == _parameters(function).keys()


def test_shared_options_are_said_in_the_same_words():
    face, flags = _said(jb.verify), _said(command)
    for name in ("seed", "fresh"):
        assert face[name] == flags[name]


def test_verdicts_depend_on_each_field_that_the_settings_name():
    catalogue = selected("multihead.cor1.3").catalogue
    usual = Options().settings(catalogue)
    for name, default in Options()._asdict().items():
        other = Options()._replace(**{name: 7 if name == "seed" else not default})
        assert (other.settings(catalogue) != usual) == (name not in NO_VERDICT), name
