"""A test that teaches prose: a room has no fault but those that `prose.EXCEPTIONS` explains."""

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("prose", Path(__file__).with_name("prose.py"))
prose = sys.modules.setdefault("prose", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(prose)


@pytest.fixture(scope="module")
def found():
    """{room: its faults}."""
    return prose.faults()


@pytest.mark.parametrize("room", prose.files_by_room())
def test_a_room_has_no_fault(found, room):
    """On failure: the place, the rule and the words of each fault. Rewrite these sentences."""
    assert not [str(fault) for fault in found[room] if not prose.excused_by(fault)]


def test_each_exception_excuses_a_message_and_gives_a_reason(found):
    used = {prose.excused_by(fault) for faults in found.values() for fault in faults} - {""}
    assert used == set(prose.EXCEPTIONS) and all(prose.EXCEPTIONS.values())


def test_an_exception_excuses_its_own_message_alone():
    key = "ground/renamed.py 'module {} has no attribute {}'"
    fault = prose.Fault("jaxbounds/ground/renamed.py:9", "cure", "module {} has no attribute {}")
    assert prose.excused_by(fault) == key
    for other in (
        fault._replace(rule="opening"),
        fault._replace(words="module {} has no name {}"),
        fault._replace(place="jaxbounds/ground/files.py:9"),
    ):
        assert not prose.excused_by(other)


def _rules(text):
    return [fault.rule for fault in prose.in_python(text, "x.py")]


@pytest.mark.parametrize("word", ["What", "Of", "By", "Where", "With"])
def test_openings_are_found_in_docstrings(word):
    assert _rules(f'"""{word} the run keeps."""') == ["opening"]
    assert _rules(f'def f(x):\n    """A line.\n\n    {word} others go.\n    """') == ["opening"]
    assert _rules(f'def f(x):\n    """A line.\n\n    Args:\n        x: {word} it is.\n    """') == [
        "opening"
    ]
    assert _rules(f'"""The run keeps {word.lower()} it can."""') == []
    assert _rules(f'"""A run.\n\n```\n{word} code.\n```\n"""') == []


def test_long_sentences_are_found():
    words = " ".join(["word"] * 31)
    assert _rules(f'"""{words}."""') == ["length"]
    assert _rules(f'"""{words[:-5]}."""') == []
    assert _rules(f'"""One {words[:70]}. Two {words[:70]}."""') == []


def test_constants_give_their_unit_and_effect():
    assert _rules("LIMIT = 3") == ["constant"]
    assert _rules('LIMIT = 3\n"""The limit."""') == ["constant"]
    assert _rules('LIMIT = 3\n"""Seconds; a larger limit waits longer."""') == []
    assert _rules('_LIMIT: float = -2**9\n"""Bytes."""') == ["constant"]
    assert _rules('NAME = "a"') == _rules("limit = 3") == []


def test_messages_give_a_value_and_a_cure():
    assert _rules('raise ValueError("no steps")') == ["value", "cure"]
    assert _rules('raise ValueError(f"steps={steps} is below 1")') == ["cure"]
    assert _rules('raise ValueError(f"steps={steps} is below 1. " f"Try {1}")') == []
    assert _rules('raise ValueError(f"{name}={value}. Try {name}=1")') == []
    assert _rules('raise ValueError("a=" + repr(a) + ". Try b")') == []
    assert _rules("raise ValueError(words)") == _rules('raise StopIteration("x")') == []


def test_a_fault_says_its_place_its_rule_and_its_words():
    (fault,) = prose.in_python('"""What it is."""', "jaxbounds/cli/x.py")
    assert str(fault).startswith("jaxbounds/cli/x.py:1: a sentence opens with What, Of, By")
    assert "'What it is.'" in str(fault)
