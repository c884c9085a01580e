"""Witness files: exact there and back, and each bad file refused with one sentence."""

import hashlib
import json
import math

import numpy as np
import pytest

from jaxbounds.certification import disprove, load_witness, save_witness, witness_of
from jaxbounds.certification.witness import LIMIT, digest_of
from jaxbounds.claims.statements import Form, Sides, Statement

STATEMENT = Statement(
    id="mine.double",
    label="Claim 2",
    formula="2x <= x",
    kind="inequality",
    evaluate=lambda i, size: Sides(
        lhs=2 * i["x"].sum(), rhs={"printed": i["x"].sum(), "control": 0.0}
    ),
    sample=lambda key, size: {},
    forms=(Form(name="printed", note="a note", cites="Section 1"),),
    sizes=({"d": 1},),
    control="zero",
)
INSTANCE = {
    "x": np.array([[0.1, 1e300], [5e-324, math.pi]]),
    "more": {"n": np.array([3, -(2**60) - 1]), "sign": np.array([True, False])},
    "one": np.array(-0.75, np.float32),
}


@pytest.fixture
def witness():
    return witness_of(STATEMENT, INSTANCE, disprove(STATEMENT, "printed", INSTANCE, {"d": 1}))


def test_an_instance_comes_back_to_the_last_bit(witness, tmp_path):
    found, instance = load_witness(save_witness(tmp_path / "w.json", witness))
    assert found == witness
    assert instance["x"].tolist() == INSTANCE["x"].tolist()
    assert instance["one"] == -0.75
    assert instance["more"]["n"].tolist() == [3, -(2**60) - 1]
    assert instance["more"]["sign"].tolist() == [True, False]
    assert [instance["more"][k].dtype for k in ("n", "sign")] == [np.int64, np.bool_]


def test_it_says_what_a_checker_needs(witness):
    said = {name: witness[name] for name in ("statement", "form", "relation", "word", "cites")}
    assert said == {
        "statement": "mine.double",
        "form": "printed",
        "relation": "<=",
        "word": "disproved",
        "cites": "Section 1",
    }
    assert witness["instance"]["more.n"] == {
        "shape": [2],
        "exact": ["3", "-1152921504606846977"],
        "type": "i",
    }
    assert witness["instance"]["one"]["exact"] == ["-3/4"]


def test_its_digest_can_be_computed_without_the_library(witness):
    rest = {name: value for name, value in witness.items() if name != "digest"}
    text = json.dumps(dict(reversed(rest.items())), sort_keys=True, separators=(",", ":"))
    assert witness["digest"] == hashlib.sha256(text.encode()).hexdigest()


def altered(witness, change):
    """Changed, with a digest that matches again."""
    copy = json.loads(json.dumps(witness))
    change(copy)
    return copy | {"digest": digest_of(copy)}


def written(tmp_path, text):
    path = tmp_path / "w.json"
    path.write_text(text, encoding="utf8")
    return path


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"is not a file\. Try a witness"):
        load_witness(tmp_path / "absent.json")


def test_a_folder(tmp_path):
    with pytest.raises(ValueError, match="is not a file"):
        load_witness(tmp_path)


def test_a_file_that_is_too_large(tmp_path):
    with pytest.raises(ValueError, match="at most"):
        load_witness(written(tmp_path, " " * (LIMIT + 1)))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nope"])
def test_a_file_that_is_no_json(text, tmp_path):
    with pytest.raises(ValueError, match="is no JSON"):
        load_witness(written(tmp_path, text))


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "w.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is no JSON"):
        load_witness(path)


@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"format": "another 1"}'])
def test_json_that_is_no_witness(text, tmp_path):
    with pytest.raises(ValueError, match="is not a witness"):
        load_witness(written(tmp_path, text))


@pytest.mark.parametrize("name", ["lhs", "instance", "word", "formula", "digest"])
def test_a_witness_that_was_altered(name, witness, tmp_path):
    changed = witness | {name: "something else"}
    with pytest.raises(ValueError, match="digest does not match"):
        load_witness(save_witness(tmp_path / "w.json", changed))


@pytest.mark.parametrize("name", ["statement", "form", "size", "instance"])
def test_a_witness_that_lacks_something(name, witness, tmp_path):
    changed = altered(witness, lambda w: w.pop(name))
    with pytest.raises(ValueError, match=f"lacks {name}"):
        load_witness(save_witness(tmp_path / "w.json", changed))


@pytest.mark.parametrize(
    "entry",
    [
        {"shape": [1], "exact": ["nan"], "type": "f"},
        {"shape": [1], "exact": ["1/0"], "type": "f"},
        {"shape": [1], "exact": ["one"], "type": "f"},
        {"shape": [1], "exact": ["1/3"], "type": "f"},  # no float64
        {"shape": [1], "exact": ["1/2"], "type": "i"},
        {"shape": [1], "exact": ["10000000000000000000"], "type": "i"},
        {"shape": [1], "exact": ["2"], "type": "b"},
        {"shape": [2], "exact": ["1"], "type": "f"},
        {"shape": [1], "exact": ["1"], "type": "x"},
        {"shape": "one", "exact": ["1"], "type": "f"},
        {"shape": [-1], "exact": ["1"], "type": "f"},
        {"shape": 1, "exact": ["1"], "type": "f"},
        {"shape": [1], "type": "f"},
        {"shape": [1], "exact": 3, "type": "f"},
        {"shape": [1], "exact": ["1e400"], "type": "f"},
        3,
    ],
)
def test_numbers_that_are_none(entry, witness, tmp_path):
    changed = altered(witness, lambda w: w["instance"].update(x=entry))
    with pytest.raises(ValueError, match="entry 'x' of the instance is unreadable"):
        load_witness(save_witness(tmp_path / "w.json", changed))


@pytest.mark.parametrize("entry", [3, [], "x"])
def test_an_instance_that_is_none(entry, witness, tmp_path):
    changed = altered(witness, lambda w: w.update(instance=entry))
    with pytest.raises(ValueError, match=str(tmp_path)):
        load_witness(save_witness(tmp_path / "w.json", changed))


def test_names_that_exclude_each_other(witness, tmp_path):
    one = {"shape": [1], "exact": ["1"], "type": "f"}
    changed = altered(witness, lambda w: w.update(instance={"x": one, "x.y": one}))
    with pytest.raises(ValueError, match=str(tmp_path)):
        load_witness(save_witness(tmp_path / "w.json", changed))


@pytest.mark.parametrize("size", [[], None, 3, {"d": 1.0}, {"d": "1"}, {"d": True}, {"d": None}])
def test_a_size_that_is_none(size, witness, tmp_path):
    changed = altered(witness, lambda w: w.update(size=size))
    with pytest.raises(ValueError, match="expected an object of integers"):
        load_witness(save_witness(tmp_path / "w.json", changed))


def test_a_key_that_comes_twice(witness, tmp_path):
    text = json.dumps(witness).replace('"word"', '"form": "printed", "word"')
    with pytest.raises(ValueError, match="the file has the key 'form' twice"):
        load_witness(written(tmp_path, text))
